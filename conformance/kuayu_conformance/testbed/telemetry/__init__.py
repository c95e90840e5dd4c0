"""The judge's telemetry: jobs that take their steps on nodes of several makes, what goes wrong, and the truth.

:class:`~kuayu_conformance.testbed.telemetry.world.World` is what a check plays. Behind it, one after the other:

- ``population``: how large it is, who is there, of which make, what exporters show, and what jobs are like, with the
  numbers that were fitted, and their sources;
- ``fault_plan``: which node changes its state when, and by what; what is undecidable is left out there;
- ``signals``: the step loops of all jobs, from which it follows who waits for whom, and what devices, ports and disks
  do in each second;
- ``world``: when that is delivered, and the truth.

:mod:`~kuayu_conformance.testbed.chance` and :mod:`~kuayu_conformance.testbed.elementary` see to it that a seed gives
the same bytes on every processor.
``python -m kuayu_conformance.testbed.telemetry`` draws an excerpt.
"""

from kuayu_conformance.testbed.telemetry.population import FULL, QUICK, STATES, Delivery, Incident, Partition, Scale
from kuayu_conformance.testbed.telemetry.world import World

__all__ = ["FULL", "QUICK", "STATES", "Delivery", "Incident", "Partition", "Scale", "World"]
