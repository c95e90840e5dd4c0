"""Which scenarios the KPIs of scheduling are measured in, fixed before a run: families, loads, curves, windows.

1. Training periods and money are measured in windows that drain until the whole cohort has ended, for 28 days at most
   (14 in a trace, which has no more days to give), while demand goes on. A drain that is shorter than the jobs charges
   every policy the same constant instead.
2. Utilisation is measured over a grid of loads. Whether a job is served well shows within hours, so that these windows
   drain for ten.
3. Windows of the reference cells are chosen among four times as many that are drawn, in proportion to how many jobs
   longer than 50 h were submitted in them (systematic sampling of the ordered list: W. G. Cochran, "Sampling
   Techniques", 3rd ed., 1977, section 8.1), for each way of dealing accelerators to domains apart. A few of these
   jobs hold most of all hours, and chance alone would give one run many of them and the next one none.
4. Every figure is looked at once, when all its windows are played.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from kuayu_conformance.testbed.scheduling.scenarios import Cell, Timing
from kuayu_conformance.testbed.scheduling.topology import ASSIGNMENTS, ASSUMPTIONS
from kuayu_conformance.testbed.scheduling.workload import FAMILIES

HOUR = 3600.0

SERVICE = "service"
POOL = "B5 pool"
"""B3 with all devices in one place and a free network."""
ALL = ("B0", "B1", "B2", "B3", "B3c", "B4", POOL)
LINEAR = "B4"
AGAINST = "B1"
"""What the KPIs are relative to."""

LONG = 50 * HOUR
"""Seconds on what it asks for, of the reference device, from which on a job counts as long."""

REFERENCE = "reference"
OTHERS = tuple(name for name in FAMILIES if name != REFERENCE)
"""Families beside that of the reference cell."""

LOADS_FILE = "reference_loads.json"
"""Beside this module."""

SITES, NODES = 6, 14
"""Domains, and nodes of a domain on average; reference loads hold for them."""

TRACE = "itp"
"""The real trace whose jobs a full run plays beside those that are drawn, where its folder is given."""

DRAIN_OF_TRACE = 14 * 24 * HOUR
"""Seconds for which a window of a trace drains at most: of longer ones too few begin on days of their own."""

SWINGS = ("step", "ramp", "oscillating")
"""How the load varies by ±20 % (SCH-008)."""


@dataclass(frozen=True)
class Curve:
    """A row of cells in which one thing is moved.

    Attributes:
        label: What is moved.
        points: Its values and the cell of each.
        vanishing: Where the gain has to vanish, in words; empty where nobody says so.
    """

    label: str
    points: tuple[tuple[float, Cell], ...]
    vanishing: str = ""


@dataclass(frozen=True)
class Plan:
    """What a run plays.

    Attributes:
        timing: Parts of each scenario of the grid.
        whole: Parts of every other scenario; see ``drained``.
        sources: Where the jobs of the reference cell come from.
        windows: Windows of the reference cell of each source.
        candidates: Windows that are drawn for each of these.
        loads: Loads of the grid, as multiples of the reference load, in order.
        load_windows: Windows of each load.
        families: Families beside the reference.
        family_windows: Windows of each of them.
        curves: What is moved.
        curve_windows: Windows of each point of a curve.
        swings: How the load varies where stability is measured.
        swing_timing: Parts of each scenario there; interruptions show without anything being drained.
        swing_windows: Windows of each.
        beside: Baselines that are played in grid and curves; in families B4 too, in the reference cells all of them.
        sites: Domains.
        nodes: Nodes of a domain on average.
    """

    timing: Timing
    whole: Timing
    sources: tuple[str, ...]
    windows: int
    candidates: int
    loads: tuple[float, ...]
    load_windows: int
    families: tuple[str, ...]
    family_windows: int
    curves: tuple[Curve, ...]
    curve_windows: int
    swings: tuple[str, ...]
    swing_timing: Timing
    swing_windows: int
    beside: tuple[str, ...]
    sites: int
    nodes: int = NODES

    def reference(self, source: str) -> Cell:
        """The reference cell of a source."""
        return Cell(REFERENCE, reference_loads()[source], source, self.sites, self.nodes)

    def drained(self, cell: Cell) -> Timing:
        """Parts of a scenario whose window drains until its cohort has ended."""
        most = DRAIN_OF_TRACE if cell.source == TRACE else self.whole.drain
        return replace(self.whole, drain=min(self.whole.drain, most))

    def at_load(self, multiple: float) -> Cell:
        """The cell of the grid with so many times the reference load."""
        cell = self.reference(self.sources[0])
        return replace(cell, load=round(cell.load * multiple, 6))

    def of_family(self, family: str) -> Cell:
        """The cell of a family at the reference load."""
        return replace(self.reference(self.sources[0]), family=family)

    def due(self) -> Mapping[Cell, int]:
        """Windows of each cell that are played to the end."""
        rows = [(self.reference(source), self.windows) for source in self.sources]
        rows += [(self.of_family(family), self.family_windows) for family in self.families]
        rows += [(cell, self.curve_windows) for curve in self.curves for _, cell in curve.points]
        due: dict[Cell, int] = {}
        for cell, windows in rows:
            due[cell] = max(windows, due.get(cell, 0))
        return due

    def swinging(self, swing: str) -> Cell:
        """The reference cell with a load that varies."""
        return replace(self.reference(self.sources[0]), swing=swing)


@cache
def reference_loads() -> Mapping[str, float]:
    """Reference load by source: that which B1 just sustains; :mod:`.reference_loads` finds it."""
    found = json.loads(files(__package__).joinpath(LOADS_FILE).read_text("utf-8"))
    return {source: float(entry["load"]) for source, entry in found.items()}


def assignment(number: int) -> int:
    """Which way accelerators are dealt to domains in a window: in turn, as that moves the figures most."""
    return number % ASSIGNMENTS


def chosen(long: Sequence[int], windows: int, nonce: str) -> tuple[int, ...]:
    """Windows that are played, of those that were drawn: numbers, ways of dealing accelerators in turn.

    Args:
        long: How many jobs longer than ``LONG`` were submitted in each that was drawn; a multiple of ``windows``.
        windows: How many are played.
        nonce: Says where in each list it begins, so that nobody knows beforehand.
    """
    every = len(long) // windows
    if every == 1:
        return tuple(range(windows))

    def drawn(text: str) -> float:
        return int(hashlib.sha256(f"{nonce}/windows/{text}".encode()).hexdigest()[:12], 16) / 16.0**12

    rows = []
    for dealt in range(ASSIGNMENTS):
        selected = sorted(range(dealt, len(long), ASSIGNMENTS), key=lambda number: (long[number], drawn(str(number))))
        taken = selected[int(drawn(f"begin {dealt}") * every) :: every]
        rows.append(sorted(taken, key=lambda number: drawn(f"turn {number}")))
    turns = (row[turn] for turn in range(max(map(len, rows))) for row in rows if turn < len(row))
    return tuple(turns)[:windows]


def seed(nonce: str, number: int) -> str:
    """Seed of a window; the same in all cells, so that cells differ in nothing but what they are about."""
    return f"{nonce}/scheduling/{number}"


def _curves(cell: Cell) -> tuple[Curve, ...]:
    """Where gains come from, and where they vanish; each runs through the reference cell itself."""

    def changed(name: str, *values: float) -> tuple[tuple[float, Cell], ...]:
        usual = getattr(FAMILIES[cell.family], name)
        return tuple((value, cell if value == usual else replace(cell, changed=((name, value),))) for value in values)

    def assumed(name: str, *values: float) -> tuple[tuple[float, Cell], ...]:
        usual = ASSUMPTIONS[name].value
        return tuple((value, cell if value == usual else replace(cell, assumed=((name, value),))) for value in values)

    return (
        Curve("skew of demand", changed("skew", 0.0, 1.0, 1.5), "0 is balanced"),
        Curve(
            "load over the reference load",
            tuple((times, replace(cell, load=round(cell.load * times, 6))) for times in (0.3, 1.0)),
            "near 0 all is idle",
        ),
        Curve("chance that data are at home", changed("locality", 0.3, 0.7, 1.0), "at 1 data need not move for home"),
        Curve("devices asked for beyond use", changed("over_request", 0.0, 1.0), "0 is as much as is used"),
        Curve("tariff over the usual", assumed("tariff", 0.0, 1.0), "at 0 traffic is free"),
        Curve("share of the work in jobs larger than their home", changed("oversize", 0.0, 0.1)),
        Curve("share of jobs that are elastic", changed("elastic", 0.0, 0.5), "at 0 none can be resized"),
        Curve("factor by which durations are misjudged", changed("misjudged", 1.0, 10.0)),
    )


QUICK = Plan(
    timing=Timing(2 * HOUR, 3 * HOUR, 9 * HOUR),
    whole=Timing(2 * HOUR, 3 * HOUR, 24 * HOUR, 14 * HOUR),
    sources=("fitted",),
    windows=2,
    candidates=1,
    loads=(1.0, 1.45),
    load_windows=2,
    families=(),
    family_windows=0,
    curves=(),
    curve_windows=0,
    swings=SWINGS,
    swing_timing=Timing(1 * HOUR, 3 * HOUR, 0.0),
    swing_windows=1,
    beside=("B1", "B3", "B3c"),
    sites=SITES,
)

FULL = Plan(
    timing=Timing(6 * HOUR, 8 * HOUR, 10 * HOUR),
    whole=Timing(6 * HOUR, 8 * HOUR, 28 * 24 * HOUR, 24 * HOUR),
    sources=("fitted", "fitted-philly"),
    windows=48,
    candidates=4,
    loads=(0.85, 1.0, 1.2, 1.45, 1.7, 2.0, 2.4),
    load_windows=32,
    families=OTHERS,
    family_windows=3,
    curves=_curves(Cell(REFERENCE, reference_loads()["fitted"], "fitted", SITES, NODES)),
    curve_windows=2,
    swings=SWINGS,
    swing_timing=Timing(3 * HOUR, 12 * HOUR, 0.0),
    swing_windows=6,
    beside=("B1", "B3", "B3c"),
    sites=SITES,
)


def plan(*, full: bool, traces: Iterable[str] = ()) -> Plan:
    """What a run plays.

    Args:
        full: Whether it is a full one.
        traces: Real traces that are at hand.
    """
    if not full:
        return QUICK
    return replace(FULL, sources=(*FULL.sources, TRACE)) if TRACE in traces else FULL
