"""Scenarios: a cell (what it is about) with a timing and a seed gives topology, workload, law and what goes wrong.

1. **Timing.** The parts of a scenario are whole minutes each.
2. **Adversity.** What goes wrong in each family, beside what its topology and its workload hold already. How much of it
   is an assumption: each is such that a window of a day has some.
3. **Swings.** The rate of submissions varies in a window by a fifth either way; before and after it is steady. The same
   jobs come earlier or later: where the rate is ``1 + s``, the clock of submissions goes ``1 + s`` times as fast. Each
   swing sums up to nothing over the window, so that as many jobs are submitted in it as without.
4. **Scenario.** The same cell, timing, seed and assignment give the same one. Domains are as large as the 95th
   percentile of their own demand, in proportion, but where the family says how large they are.
5. **Digest.** What a baseline reached in a scenario is kept and found again by :func:`digest_of`, code included.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.bounds import pooled
from kuayu_conformance.testbed.scheduling.engine.interfaces import Law, Topology, Workload
from kuayu_conformance.testbed.scheduling.engine.world import (
    CALM,
    EPOCH,
    LLAMA_3_FAILURES,
    AnyWorld,
    Claim,
    Cut,
    Disturbances,
    World,
)
from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.topology import FAMILIES, PER_NODE, PLACES, PROFILES, build, capacity
from kuayu_conformance.testbed.scheduling.topology.link_variation import LinkVariation
from kuayu_conformance.testbed.scheduling.values import Job
from kuayu_conformance.testbed.scheduling.workload import Arrivals, Family, arrive, demand, draw, family_of

SELDOM = 600.0
"""Seconds between decisions while the last jobs of a cohort drain: they last for days."""
FAULTS = 50.0
"""How many times as often nodes fail in ``faulty`` as they did when Llama 3 was trained: each one every five days."""
WORSE = 0.8
"""Speed of the domain that is fastest on paper in ``slow-on-site``, over that of the slowest."""
BOAST = 1.5
"""Devices that the domain that is fastest on paper claims in ``false-capacity``, over those that it has."""
CUTS, CUT_LASTS = 3, 3_600.0
"""Partitions of a window in ``partition``, one in each part of it and each of a domain drawn for it, the likelier the
larger; and seconds of one, at most half of a part."""
SWING = 0.2
"""Part by which the rate varies."""
WAVES = 4
"""Times that it rises and falls again in ``oscillating``."""
SIZED = frozenset({"balanced", "east-west"})
"""Families that say how large domains are: all alike, or as published."""
_Floats = NDArray[np.float64]
_STEPS = 2_000
_PACKAGE = "kuayu_conformance.testbed"
_SUFFIXES = (".py", ".json")


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of the parts of a scenario, each a whole number of minutes.

    Attributes:
        warm: Until the window begins; the policy decides already.
        window: In which the cohort is submitted.
        drain: For which the cohort may go on at most.
        counted: From the beginning, over which the load is counted; all of it where it is zero. Demand goes on at the
            same level for as long as the cohort drains, but policies are asked less often then.

    Raises:
        ValueError: One of them is no whole number of minutes, or the window has none.
    """

    warm: float
    window: float
    drain: float
    counted: float = 0.0

    def __post_init__(self) -> None:
        parts = (self.warm, self.window, self.drain, self.counted)
        if min(parts) < 0.0 or self.window <= 0.0 or any(part % EPOCH for part in parts):
            raise ValueError(f"a scenario has whole minutes of warm start, window, drain and count, not {parts}")

    def epoch(self, now: float) -> float:
        """Seconds between the decisions from some second on."""
        return SELDOM if self.counted and now >= self.counted else EPOCH

    @property
    def begin(self) -> float:
        """When the window begins, seconds since the scenario did."""
        return self.warm

    @property
    def end(self) -> float:
        """When it ends."""
        return self.warm + self.window

    @property
    def horizon(self) -> float:
        """When the scenario ends."""
        return self.warm + self.window + self.drain


def adversity(family: str, topology: Topology, timing: Timing, seed: str) -> Disturbances:
    """What goes wrong in a scenario of a family; nothing in those that are not named here."""
    chance = Chance(seed, f"adversity of {family}")
    if family == "faulty":
        return Disturbances(failures=FAULTS * LLAMA_3_FAILURES)
    if family == "slow-on-site":
        speeds = _speeds(topology)
        worse = WORSE * min(speeds.values()) / speeds[_fastest(speeds)]
        return Disturbances(slow={_fastest(speeds): min(1.0, worse)})
    if family == "false-capacity":
        return Disturbances(claims=(Claim(_fastest(_speeds(topology)), BOAST, timing.begin, timing.end),))
    if family == "partition":
        sizes = [(site.name, float(sum(pool.devices for pool in site.pools))) for site in topology.sites]
        part = timing.window / CUTS
        lasts = min(CUT_LASTS, part / 2)
        begins = [timing.begin + number * part + chance.between(0.0, part - lasts) for number in range(CUTS)]
        return Disturbances(cuts=tuple(Cut(chance.weighted(sizes), begin, begin + lasts) for begin in begins))
    return CALM


def swung(jobs: tuple[Job, ...], swing: str, timing: Timing) -> tuple[Job, ...]:
    """Jobs as they are submitted at a rate that varies; deadlines go with them.

    Raises:
        ValueError: There is no such swing.
    """
    if swing not in SWINGS:
        raise ValueError(f"no swing is named {swing}; there are {', '.join(SWINGS)}")
    if swing == "steady":
        return jobs
    middle = (np.arange(_STEPS) + 0.5) / _STEPS
    passed = np.concatenate(([0.0], np.cumsum(1.0 + SWING * SWINGS[swing](middle)))) / _STEPS
    submitted = np.array([job.submitted for job in jobs])
    part = np.interp((submitted - timing.begin) / timing.window, passed / passed[-1], np.linspace(0.0, 1.0, _STEPS + 1))
    inside = (submitted > timing.begin) & (submitted < timing.end)
    moved = np.where(inside, np.rint((timing.begin + timing.window * part) * 1e3) / 1e3, submitted)
    return tuple(
        job
        if submitted == job.submitted
        else dataclasses.replace(
            job, submitted=submitted, deadline=job.deadline + submitted - job.submitted if job.deadline < inf else inf
        )
        for job, submitted in zip(jobs, moved.tolist(), strict=True)
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """What scenarios have in common that differ in their seed.

    Attributes:
        family: Of topology, workload and disturbances; see ``FAMILIES`` of both.
        load: Devices that jobs would hold on average if each of them started at once on what it asks for, over those
            that are of use: a device counts as its index, one that is slow in practice as what is left of it.
        source: Where jobs come from: ``fitted``, ``fitted-philly``, ``itp``, ``philly`` or ``openb``.
        sites: Domains.
        nodes: Nodes of a domain on average, were they all of the reference device.
        swing: How the rate of submissions varies in the window; see ``SWINGS``.
        changed: Parameters of the workload other than those of the family, by name (``skew``, ``over_request``, …).
        assumed: Assumptions about the topology other than those that are taken, by name (``tariff``, ``access``, …).
    """

    family: str
    load: float
    source: str = "fitted"
    sites: int = 5
    nodes: int = 16
    swing: str = "steady"
    changed: tuple[tuple[str, float], ...] = ()
    assumed: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario; nothing in it changes.

    Attributes:
        cell: What it is about.
        timing: Its parts.
        seed: What was drawn follows from it.
        topology: Where jobs can run.
        workload: What is submitted.
        law: How fast it is there.
        disturbances: What goes wrong.
    """

    cell: Cell
    timing: Timing
    seed: str
    topology: Topology
    workload: Workload
    law: Law
    disturbances: Disturbances

    def world(self) -> AnyWorld:
        """The world at its beginning: compiled, or in Python where variation or law are not those of the test bed."""
        if not (isinstance(self.topology.variation, LinkVariation) and isinstance(self.law, PublishedLaw)):
            return World(self.topology, self.workload, self.law, self.seed, self.disturbances)
        from kuayu_conformance.testbed.scheduling.core.world import CompiledWorld  # numba takes a while to load

        return CompiledWorld(self.topology, self.workload, self.law, self.seed, self.disturbances)


def scenario(
    cell: Cell, timing: Timing, seed: str, *, assignment: int | None = None, data: Path | None = None
) -> Scenario:
    """A scenario.

    Args:
        cell: What it is about.
        timing: Its parts.
        seed: What is drawn follows from it.
        assignment: Which of ``topology.ASSIGNMENTS`` ways accelerators are dealt to domains; drawn unless it is given.
        data: Folder of public originals, else that of ``KUAYU_DATA``; only traces need it.

    Raises:
        MissingTraces: The source is a trace, and its folder is not known or does not hold it.
        NotEnoughJobs: The trace is shorter than the scenario.
        UnknownFamily: There is no family of that name.
        UnknownSource: Jobs do not come from there.
        ValueError: There is no such swing, parameter, assumption or number of domains.
    """
    family = _changed(cell)
    topology, disturbances, load = _places(cell, timing, seed, assignment)
    counted = timing.counted or timing.horizon
    parts = load, counted, seed, cell.source
    drawn = draw(family, topology.sites, *parts, until=timing.horizon, devices=topology.devices, data=data)
    workload = dataclasses.replace(drawn, jobs=swung(drawn.jobs, cell.swing, timing))
    return Scenario(cell, timing, seed, topology, workload, PublishedLaw.of(topology), disturbances)


def submitted(
    cell: Cell, timing: Timing, seed: str, *, assignment: int | None = None, data: Path | None = None
) -> Arrivals:
    """When the jobs of a scenario are submitted, and how long they take: a third of the time in which it is drawn.

    The load of the cell is to be steady; arguments and errors are those of ``scenario``.
    """
    assert cell.swing == "steady"
    topology, _, load = _places(cell, timing, seed, assignment)
    counted = timing.counted or timing.horizon
    parts = load, counted, seed, cell.source, timing.horizon, topology.devices, data
    return arrive(_changed(cell), topology.sites, *parts)[1]


def ideal(original: Scenario) -> Scenario:
    """The same with all devices in one place and a free network, to be played with a baseline; nodes fail as before."""
    pool = pooled(original.topology, original.workload)
    failures = Disturbances(failures=original.disturbances.failures, repair=original.disturbances.repair)
    return dataclasses.replace(original, topology=pool, workload=pool, law=PublishedLaw.of(pool), disturbances=failures)


def digest_of(scenario: Scenario) -> str:
    """SHA-256 of all that a scenario consists of, with the code that plays it: 64 hexadecimal digits.

    Scenarios of the same digest are the same, and so is what becomes of a baseline in them. Variation follows from the
    code, the cell and the seed.
    """
    digest = hashlib.sha256(code().encode())
    topology, workload = scenario.topology, scenario.workload
    parts = (scenario.cell, scenario.timing, scenario.seed, topology.sites, topology.links, scenario.disturbances)
    devices = sorted(topology.devices.items())
    for part in (*parts, *devices, *workload.jobs, *sorted(workload.datasets.items())):
        digest.update(repr(part).encode())
        digest.update(b"\n")
    return digest.hexdigest()


@cache
def code() -> str:
    """SHA-256 of the simulated world's own files: what was kept of another version of them is not used."""
    digest = hashlib.sha256()
    for name, content in _contents(files(_PACKAGE), _PACKAGE):
        digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def _speeds(topology: Topology) -> dict[str, float]:
    """Mean index of a device over profiles, by domain, as it is on paper."""
    return {
        site.name: sum(capacity(site, topology.devices, profile) for profile in PROFILES)
        / sum(pool.devices for pool in site.pools)
        / len(PROFILES)
        for site in topology.sites
    }


def _fastest(speeds: Mapping[str, float]) -> str:
    return max(speeds, key=lambda name: speeds[name])


def _oscillating(phase: _Floats) -> _Floats:
    """A triangle wave about zero that begins at zero, rising."""
    cycle = (WAVES * phase + 0.25) % 1.0
    wave: _Floats = 1.0 - np.abs(4.0 * cycle - 2.0)
    return wave


SWINGS: Mapping[str, Callable[[_Floats], _Floats]] = MappingProxyType(
    {
        "steady": np.zeros_like,
        "step": lambda phase: np.where(phase < 0.5, -1.0, 1.0),  # noqa: PLR2004 - half of the window
        "ramp": lambda phase: 2.0 * phase - 1.0,
        "oscillating": _oscillating,
    }
)
"""Deviation of the rate, over ``SWING``, by the part of the window that is over."""


def _places(cell: Cell, timing: Timing, seed: str, assignment: int | None) -> tuple[Topology, Disturbances, float]:
    """Where jobs can run, what goes wrong there, and the load."""
    topology = build(
        cell.family,
        cell.sites,
        seed,
        None if cell.family in SIZED else _sizes(cell, seed),
        nodes=cell.nodes,
        assignment=assignment,
        assumed=dict(cell.assumed),
    )
    disturbances = adversity(cell.family, topology, timing, seed)
    return topology, disturbances, cell.load * _of_use(topology, disturbances)


def _changed(cell: Cell) -> Family:
    family = family_of(cell.family)
    numbers = {field.name for field in dataclasses.fields(Family) if field.type in {float, "float"}}
    unknown = sorted(name for name, _ in cell.changed if name not in numbers)
    if unknown:
        raise ValueError(f"no parameter is named {', '.join(unknown)}; there are {', '.join(sorted(numbers))}")
    changed: dict[str, Any] = dict(cell.changed)
    return dataclasses.replace(family, **changed)


def _sizes(cell: Cell, seed: str) -> dict[str, float] | None:
    """Reference devices of each domain, in proportion to its demand and as many on average as the cell says."""
    if cell.family not in FAMILIES or not 0 < cell.sites <= len(PLACES):
        return None  # ``build`` says what is wrong
    demands = demand([place.name for place in PLACES[: cell.sites]], seed, cell.source)
    factor = cell.nodes * PER_NODE * cell.sites / sum(demands.values())
    return {name: devices * factor for name, devices in demands.items()}


def _of_use(topology: Topology, disturbances: Disturbances) -> float:
    """Share of the devices, each as many as its index, that is left by domains that are slow in practice."""
    speeds = {
        site.name: sum(capacity(site, topology.devices, profile) for profile in PROFILES) for site in topology.sites
    }
    left = sum(speed * disturbances.slow.get(name, 1.0) for name, speed in speeds.items())
    return left / sum(speeds.values())


def _contents(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda child: child.name):
        if entry.is_dir():
            yield from _contents(entry, f"{name}/{entry.name}")
        elif entry.name.endswith(_SUFFIXES):
            yield f"{name}/{entry.name}", entry.read_bytes()
