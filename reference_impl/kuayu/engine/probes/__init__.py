"""Measured probes: what this host can do, found by doing it.

Each probe is a module with a docstring of its method and source. A probe warms up, repeats its work until a stated time
has passed and the spread is small (:mod:`~kuayu.engine.probes.harness`), and gives the median with the interquartile
range, the number of repetitions and the software it ran on, since software changes a figure as much as silicon does.
"""

from kuayu.engine.probes.harness import ProbeFailedError, ProbeResult, ProbeUnavailableError, Progress, SkippedProbe
from kuayu.engine.probes.run import PROBES, ProbeReport, probe_all

__all__ = [
    "PROBES",
    "ProbeFailedError",
    "ProbeReport",
    "ProbeResult",
    "ProbeUnavailableError",
    "Progress",
    "SkippedProbe",
    "probe_all",
]
