"""Sparse telemetry: nodes that send any part of their measures, healthy ones and hung ones, and the truth.

:class:`~kuayu_conformance.testbed.sparse.world.World` is what a check plays. Behind it:

- ``patterns``: what accelerators do, of which nothing is wrong with most;
- ``troubles``: how some of them stop, with evidence that suffices;
- ``exporters``: which measures are sent, how finely and how often.

The worlds of MET-006 (``testbed.telemetry``) hold what goes wrong in many ways at nodes that send most of their
measures. These hold little that goes wrong, and all that healthy nodes look like while few measures are known of them.

What telemetry cannot decide is left out: a single node that rests with its memory held and will never go on shows what
one shows that will, so nothing of that kind stops here without a counted fault.
"""

from kuayu_conformance.testbed.sparse.values import FULL, QUICK, Scale, Unit
from kuayu_conformance.testbed.sparse.world import World

__all__ = ["FULL", "QUICK", "Scale", "Unit", "World"]
