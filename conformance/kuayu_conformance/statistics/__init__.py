"""Estimators and bounds. Each one-sided bound is fixed before a run; none is chosen by its outcome.

``quotients`` needs SciPy and is imported by itself; nothing else here needs a numeric library.
"""

from kuayu_conformance.statistics.bootstrap import clustered_mean, mean_lower_bound, mean_upper_bound, ratio_lower_bound
from kuayu_conformance.statistics.holm import stepped_down
from kuayu_conformance.statistics.proportions import proportion_lower_bound
from kuayu_conformance.statistics.quantiles import quantile, quantile_upper_bound
from kuayu_conformance.statistics.rounding import rounded

__all__ = [
    "clustered_mean",
    "mean_lower_bound",
    "mean_upper_bound",
    "proportion_lower_bound",
    "quantile",
    "quantile_upper_bound",
    "ratio_lower_bound",
    "rounded",
    "stepped_down",
]
