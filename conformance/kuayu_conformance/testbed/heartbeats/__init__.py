"""The judge's heartbeats: nodes that beat through weather, what becomes of them, and the truth.

:class:`~kuayu_conformance.testbed.heartbeats.world.World` is what a check plays. Behind it, one after the other:

- ``placing``: who is there, and on which nodes jobs run; ``cutting``: which domain cannot be reached when;
- ``stepping``: the steps of jobs, some of which hang and some of whose ranks straggle;
- ``planning``: which nodes die, come and go, or fail, so that each has time to recover; ``lines``: what logs say;
- ``weather``: when each beat arrives, if it does. No live node of a domain that is heard is silent for long.

Numbers that decide what can be told from what are in ``values``.
"""

from kuayu_conformance.testbed.heartbeats.values import FULL, QUICK, SMOKE, Beat, Cut, Delivery, Incident, Line, Scale
from kuayu_conformance.testbed.heartbeats.world import World

__all__ = ["FULL", "QUICK", "SMOKE", "Beat", "Cut", "Delivery", "Incident", "Line", "Scale", "World"]
