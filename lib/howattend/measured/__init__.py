"""What the claims and figures on translation need from the test split, measured once and stored.

The corpus takes 187 MB to fetch and is not part of the repository, so a fresh machine has no sentences to run a
network on. A :class:`Measured` holds what the claims T1–T10 and Fig. 4 and 5 need of them: components, sums of terms,
counts. It is computed in two passes over batches, in memory that does not grow with the number of pairs, and stored
with the results (``python -m howattend measure`` writes it).

    found, recomputed = measured.obtain(runs.load_run("translation-aed-gru"))
    found.shares.signed           # [3, 3] as of any run
    found.temporal_scores         # [S, T] μ^D_s·μ^E_t
    found.terms(trace)            # [3, 3, B, S, T] the nine terms of sentences of one's own
"""

from howattend.measured.dictionary import LEXICON_OF, lexicon, lexicon_path, read_lexicon, write_lexicon
from howattend.measured.passes import (
    is_measured,
    mean_attention_distance,
    measure,
    measure_batches,
    require_measured,
)
from howattend.measured.results import COMMON_SHARE, Measured
from howattend.measured.store import load, obtain, of, path, save, stored

__all__ = [
    "COMMON_SHARE",
    "LEXICON_OF",
    "Measured",
    "is_measured",
    "lexicon",
    "lexicon_path",
    "load",
    "mean_attention_distance",
    "measure",
    "measure_batches",
    "obtain",
    "of",
    "path",
    "read_lexicon",
    "require_measured",
    "save",
    "stored",
    "write_lexicon",
]
