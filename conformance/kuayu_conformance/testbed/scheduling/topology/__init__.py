"""Where the judge's jobs can run: domains at real places, their accelerators, lines between them, and their weather.

:func:`build` makes a topology. Behind it:

- ``places``: the eight hubs and cities near them; ``distance``: kilometres, fibre, round-trip times;
- ``accelerators``: published figures, indices by task profile and what is hidden of them; ``sites``: sizes and prices;
- ``wires``: capacities and tariffs; ``weather`` with ``clock`` and ``lots``: what of them varies with time;
- ``families``: what each family changes; ``assumptions``: what has no source, with ranges to draw from;
- ``fitted`` and ``fitting``: parameters fitted to public measurements, and the command that fits them.

Money is in yuan, seconds begin at midnight.
"""

from kuayu_conformance.testbed.scheduling.topology.accelerators import PROFILES, REFERENCE
from kuayu_conformance.testbed.scheduling.topology.assembly import ASSIGNMENTS, Topology, build
from kuayu_conformance.testbed.scheduling.topology.assumptions import ASSUMPTIONS, drawn, varied
from kuayu_conformance.testbed.scheduling.topology.families import FAMILIES
from kuayu_conformance.testbed.scheduling.topology.places import EASTERN, MAX_DOMAINS, MIN_DOMAINS, PLACES, hub_of
from kuayu_conformance.testbed.scheduling.topology.sites import capacity

__all__ = [
    "ASSIGNMENTS",
    "ASSUMPTIONS",
    "EASTERN",
    "FAMILIES",
    "MAX_DOMAINS",
    "MIN_DOMAINS",
    "PLACES",
    "PROFILES",
    "REFERENCE",
    "Topology",
    "build",
    "capacity",
    "drawn",
    "hub_of",
    "varied",
]
