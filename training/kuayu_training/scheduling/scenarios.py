"""Worlds to learn in: days of families, loads and sizes that are drawn; no judge takes their seeds."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, Timing, scenario
from kuayu_conformance.testbed.scheduling.topology import FAMILIES

HOUR = 3600.0
TIMING = Timing(0.0, 18 * HOUR, 0.0)
"""Whoever learns decides from the first job on, and jobs are submitted until the end.

Worlds that another policy has begun, or that end after a few hours, mislead: fast devices are idle that a good policy
would not have left, and who is made to wait has not waited to the end (decision 20).
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """What scenarios may be like.

    Attributes:
        name: What they are called.
        families: Families, as often as they are drawn.
        sites: Least and greatest number of domains.
        nodes: Least and greatest number of nodes of a domain on average.
        loads: Least and greatest load.
        source: Where jobs come from.
    """

    name: str
    families: tuple[str, ...]
    sites: tuple[int, int] = (5, 7)
    nodes: tuple[int, int] = (8, 16)
    loads: tuple[float, float] = (0.5, 1.0)
    source: str = "fitted"


LEARNED = Kind(
    "learned",
    (
        *("reference",) * 6,
        *("heterogeneous",) * 3,
        *("wan-poor", "east-west") * 2,
        *("gravity", "bursty", "balanced", "misjudged"),
    ),
)
"""Those that are learned in; other families are left for the judge, and to see how well what was learned carries."""
LEARNED_PHILLY = Kind("learned, Philly", LEARNED.families, LEARNED.sites, LEARNED.nodes, (0.2, 0.4), "fitted-philly")
TUNED = Kind("tuned", LEARNED.families, (6, 6), (14, 14), (0.6, 0.8))
"""Those in which the rule is tuned: as large as the judge's, at loads around the reference."""
TUNED_PHILLY = Kind("tuned, Philly", LEARNED.families, (6, 6), (14, 14), (0.22, 0.32), "fitted-philly")
LARGER = Kind("larger", LEARNED.families, (10, 16), (12, 20))
STRANGE = Kind("strange", tuple(sorted(set(FAMILIES) - set(LEARNED.families))))
PHILLY = Kind("philly", ("reference",), source="fitted-philly")
TRACE = Kind("trace", ("reference",), source="itp")
"""Jobs of a real trace; its folder is needed."""


def drawn(
    purpose: str, number: int, timing: Timing = TIMING, kind: Kind = LEARNED, data: Path | None = None
) -> Scenario:
    """The scenario of a number; each purpose has scenarios of its own.

    Args:
        purpose: ``learning`` with the seed of a training, ``looking`` for its curves, ``held out`` for comparisons,
            ``tuning`` of the rule.
        number: Any.
        timing: Its parts.
        kind: What it may be like.
        data: Folder of public originals, else that of ``KUAYU_DATA``; only traces need it.

    Raises:
        MissingTraces: The kind takes jobs from a trace, and its folder is not known or does not hold it.
    """
    seed = f"training/{purpose}/{number}"
    chance = np.random.default_rng(int.from_bytes(sha256(seed.encode()).digest()[:8]))
    cell = Cell(
        family=kind.families[chance.integers(len(kind.families))],
        load=round(float(chance.uniform(*kind.loads)), 3),
        source=kind.source,
        sites=int(chance.integers(*kind.sites, endpoint=True)),
        nodes=int(chance.integers(*kind.nodes, endpoint=True)),
    )
    return scenario(cell, timing, seed, data=data)
