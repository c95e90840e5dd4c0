"""Where the judge's jobs can run: domains at real places, their accelerators, lines between them, and their weather.

:func:`build` makes a topology. Behind it:

- ``places``: the eight hubs and cities near them, kilometres, fibre, round-trip times;
- ``accelerators``: published figures, indices by task profile and what is hidden of them; sizes and prices of sites;
- ``assembly``: capacities and tariffs of wires, and the topology; ``link_variation``: what of them varies with time;
- ``families``: what each family changes, and what has no source, with ranges to draw from;
- ``fitted`` and ``fitting``: parameters fitted to public measurements, and the command that fits them.

Money is in yuan, seconds begin at midnight.
"""

from kuayu_conformance.testbed.scheduling.topology.accelerators import PROFILES, REFERENCE, capacity
from kuayu_conformance.testbed.scheduling.topology.assembly import ASSIGNMENTS, Topology, build
from kuayu_conformance.testbed.scheduling.topology.families import ASSUMPTIONS, FAMILIES, drawn, varied
from kuayu_conformance.testbed.scheduling.topology.places import EASTERN, MAX_DOMAINS, MIN_DOMAINS, PLACES, hub_of

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
