"""The judge's telemetry: jobs that take their steps on nodes of several makes, what goes wrong, and the truth.

:class:`~kuayu_conformance.testbed.telemetry.world.World` is what a check plays. Behind it, one after the other:

- ``values``: what it consists of; ``population``: who is there, of which make, and what its exporters show;
- ``jobs``: what jobs are like, with the numbers that were fitted, and their sources;
- ``ledger`` and ``fault_plan``: which node changes its state when, and by what; what is undecidable is left out there;
- ``history``: the step loops of all jobs, from which it follows who waits for whom, and servers of inference;
- ``signals``: what devices, ports and disks do in each second, and what exporters show of it;
- ``world``: when that is delivered, and the truth; ``drawing``: an excerpt for people.

:mod:`~kuayu_conformance.testbed.chance` and :mod:`~kuayu_conformance.testbed.elementary` see to it that a seed gives
the same bytes on every processor.
``python -m kuayu_conformance.testbed.telemetry`` draws an excerpt.
"""

from kuayu_conformance.testbed.telemetry.values import FULL, QUICK, STATES, Delivery, Incident, Partition, Scale
from kuayu_conformance.testbed.telemetry.world import World

__all__ = ["FULL", "QUICK", "STATES", "Delivery", "Incident", "Partition", "Scale", "World"]
