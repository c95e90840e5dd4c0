"""The judge's heartbeats: nodes that beat, what becomes of them, when their beats arrive, and the truth.

:class:`~kuayu_conformance.testbed.heartbeats.world.World` is what a check plays. Behind it:

- ``values``: who is there, on which nodes jobs run, and which domain cannot be reached when; numbers that decide what
  can be told from what stand here, too;
- ``fault_plan``: which nodes die, come and go, or fail, which jobs hang and which ranks straggle, and what logs say.
"""

from kuayu_conformance.testbed.heartbeats.values import FULL, QUICK, SMOKE, Beat, Cut, Delivery, Incident, Line, Scale
from kuayu_conformance.testbed.heartbeats.world import World

__all__ = ["FULL", "QUICK", "SMOKE", "Beat", "Cut", "Delivery", "Incident", "Line", "Scale", "World"]
