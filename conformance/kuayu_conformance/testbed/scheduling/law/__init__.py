"""How fast a placed job is, what it sends between domains, and what moving it costs.

:class:`~kuayu_conformance.testbed.scheduling.law.published.PublishedLaw` is what the engine and policies ask; behind
it, one after the other:

- ``published``: the law itself, and what moving costs: staging, checkpoints, restarts, migration;
- ``terms``: constants and their sources, steps, exchanges and the penalty on quality, for one placed job or for many;
- ``fitting``: published losses, and the penalty fitted to them.

``python -m kuayu_conformance.testbed.scheduling.law`` fits again, and says how much each constant matters.
"""

from kuayu_conformance.testbed.scheduling.law.published import PublishedLaw
from kuayu_conformance.testbed.scheduling.law.terms import PUBLISHED, Constants, Rows, Terms, penalties, penalty, terms

__all__ = ["PUBLISHED", "Constants", "PublishedLaw", "Rows", "Terms", "penalties", "penalty", "terms"]
