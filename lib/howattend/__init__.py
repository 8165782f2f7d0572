"""How encoder–decoders attend: models, tasks and the hidden-state decomposition of Aitken et al. (NeurIPS 2021)."""

__version__ = "0.1.0"
