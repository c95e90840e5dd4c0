"""The policies that every other is compared with; all of them know what a :class:`View` shows, and no more.

- ``HomeFifo``, B0: each domain for itself, in the order of submission.
- ``HomeBackfill``, B1: each domain for itself with EASY backfill; the KPIs are relative to it.
- ``FirstToAdmit``, B2: any domain, the first that has room.
- ``EarliestCompletion``, B3: any domain, greedily by completion, with EASY backfill.
"""

from kuayu_conformance.testbed.scheduling.baselines.admission import FirstToAdmit
from kuayu_conformance.testbed.scheduling.baselines.greedy import EarliestCompletion
from kuayu_conformance.testbed.scheduling.baselines.home import HomeBackfill, HomeFifo

__all__ = ["EarliestCompletion", "FirstToAdmit", "HomeBackfill", "HomeFifo"]
