"""How fast a placed job is, what it sends between domains, and what moving it costs.

:class:`~kuayu_conformance.testbed.scheduling.law.published.PublishedLaw` is what the engine and policies ask; behind
it, one after the other:

- ``steps``: operations and seconds of a step, and what more devices gain;
- ``exchanges``: what domains exchange, and the share of the time that is left for computing;
- ``quality``: how many more tokens it takes to the same loss when domains reconcile only now and then;
- ``terms``: all of these for one placed job, or in arrays for many;
- ``moving``: staging, checkpoints, restarts, migration.

Constants and their sources are in ``facts``, published losses in ``evidence``; ``fitting`` fits the penalty to them.
``python -m kuayu_conformance.testbed.scheduling.law`` fits again, and says how much each constant matters.
"""

from kuayu_conformance.testbed.scheduling.law.facts import PUBLISHED, Constants
from kuayu_conformance.testbed.scheduling.law.published import PublishedLaw
from kuayu_conformance.testbed.scheduling.law.quality import penalties, penalty
from kuayu_conformance.testbed.scheduling.law.terms import Rows, Terms, terms

__all__ = ["PUBLISHED", "Constants", "PublishedLaw", "Rows", "Terms", "penalties", "penalty", "terms"]
