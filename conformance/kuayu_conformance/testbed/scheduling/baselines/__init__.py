"""The policies that every other is compared with; all of them know what a :class:`View` shows, and no more.

- ``HomeFifo``, B0: each domain for itself, in the order of submission.
- ``HomeBackfill``, B1: each domain for itself with EASY backfill; the KPIs are relative to it.
- ``FirstToAdmit``, B2: any domain, the first that has room.
- ``EarliestCompletion``, B3: any domain, greedily by completion, with EASY backfill.
- ``WeighedCompletion``, B3c: the same by completion, money for bandwidth and comparative advantage, weighed.
- ``Goodput``, B4: a linear programme says which kinds of jobs should run where; its gaps are filled as B3 does.

Policies of the literature, which stand beside them in tables; no requirement is relative to them:

- ``ShortestRemainingTime``, SRTF: any domain, the shortest remaining time first, with preemption where it pays.
- ``DominantResourceFairness``, DRF: any domain, the tenant of least dominant share first.

What none of them can beat, B5, is in ``bounds``. ``python -m kuayu_conformance.testbed.scheduling.baselines`` tunes
B3c and B4, and writes what it found to ``tuned.json``.
"""

from kuayu_conformance.testbed.scheduling.baselines.goodput import Goodput
from kuayu_conformance.testbed.scheduling.baselines.greedy import (
    EarliestCompletion,
    FirstToAdmit,
    HomeBackfill,
    HomeFifo,
    WeighedCompletion,
    Weights,
)
from kuayu_conformance.testbed.scheduling.baselines.literature import DominantResourceFairness, ShortestRemainingTime

__all__ = [
    "DominantResourceFairness",
    "EarliestCompletion",
    "FirstToAdmit",
    "Goodput",
    "HomeBackfill",
    "HomeFifo",
    "ShortestRemainingTime",
    "WeighedCompletion",
    "Weights",
]
