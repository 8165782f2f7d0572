"""Statistics that test the paper's claims: pure functions of arrays, each checked on planted states.

They take whatever ``numpy.asarray`` takes (CPU tensors too), compute in float64 and keep no state. Letters in shapes:
M samples, T source steps, S target steps, n units, V words. Masks are bool, True where a position counts; what lies
where a mask is False is never read, not even to see whether it is finite. Whatever leaves a statistic undefined (no
position, NaN, a zero vector where an angle is asked for) is a ``ValueError`` that names the argument.
"""

from .attention import (
    accuracy,
    argmax_agreement,
    distance_to_attention,
    distance_to_mean_attention,
    mean_attention,
    peak_steps,
    ranked_steps,
    softmax,
    top_weights_on,
    total_variation,
)
from .clusters import nearest_centre_share, silhouette
from .components import energy_ratio, energy_share, variance_drop
from .diagonal import diagonal_distance, entropy, peak_drops
from .directions import Orthogonality, mean_absolute_cosine, orthogonality, readout_orthogonality
from .geometry import (
    Circle,
    PrincipalComponents,
    adjacent_neighbours,
    circle,
    explained_variance,
    join_distance,
    path_similarity,
    principal_components,
    simplex_cosines,
    simplex_deviation,
)
from .inference import Interval, Line, fit_line, spearman, t_interval
from .offsets import mean_by_offset, negative_share
from .readouts import dictionary, dictionary_agreement, logit_difference_shares
from .trees import PrefixPurity, prefix_purity

__all__ = [
    "Circle",
    "Interval",
    "Line",
    "Orthogonality",
    "PrefixPurity",
    "PrincipalComponents",
    "accuracy",
    "adjacent_neighbours",
    "argmax_agreement",
    "circle",
    "diagonal_distance",
    "dictionary",
    "dictionary_agreement",
    "distance_to_attention",
    "distance_to_mean_attention",
    "energy_ratio",
    "energy_share",
    "entropy",
    "explained_variance",
    "fit_line",
    "join_distance",
    "logit_difference_shares",
    "mean_absolute_cosine",
    "mean_attention",
    "mean_by_offset",
    "nearest_centre_share",
    "negative_share",
    "orthogonality",
    "path_similarity",
    "peak_drops",
    "peak_steps",
    "prefix_purity",
    "principal_components",
    "ranked_steps",
    "readout_orthogonality",
    "silhouette",
    "simplex_cosines",
    "simplex_deviation",
    "softmax",
    "spearman",
    "t_interval",
    "top_weights_on",
    "total_variation",
    "variance_drop",
]
