"""The judge's telemetry: jobs that take their steps on nodes of several makes, what goes wrong, and the truth.

:class:`~kuayu_conformance.testbed.telemetry.world.World` is what a check plays. Behind it, one after the other:

- ``population``: who is there; ``accelerators``: of which make, and what its exporters show;
- ``planning`` with ``work``, ``troubles``, ``mending`` and ``ledger``: which node changes its state when, and by what;
- ``steps``: the step loops of all jobs, from which it follows who waits for whom; ``serving``: servers of inference;
- ``history`` and ``signals``: what devices, ports and disks do in each second;
- ``metering``: what exporters show of it, ``parts``: of which device; ``lateness``: when that is delivered.

``chance`` and ``elementary`` see to it that a seed gives the same bytes on every processor. Numbers and their sources
are in ``facts``, ``accelerators`` and ``jobs``; what is left out, as undecidable, in ``planning``.
``python -m kuayu_conformance.testbed.telemetry`` draws an excerpt.
"""

from kuayu_conformance.testbed.telemetry.values import FULL, QUICK, STATES, Delivery, Incident, Partition, Scale
from kuayu_conformance.testbed.telemetry.world import World

__all__ = ["FULL", "QUICK", "STATES", "Delivery", "Incident", "Partition", "Scale", "World"]
