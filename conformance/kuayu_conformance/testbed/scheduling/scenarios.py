"""Scenarios: a cell (what it is about) with a timing and a seed gives topology, workload, law and what goes wrong.

Everything follows from these: the same cell, timing, seed and assignment give the same scenario. Domains are as large
as the 95th percentile of their own demand, in proportion, but where the family says how large they are.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kuayu_conformance.testbed.scheduling.adversity import adversity
from kuayu_conformance.testbed.scheduling.bounds import pooled
from kuayu_conformance.testbed.scheduling.engine.disturbances import Disturbances
from kuayu_conformance.testbed.scheduling.engine.interfaces import Law, Topology, Workload
from kuayu_conformance.testbed.scheduling.engine.world import AnyWorld, World
from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.swings import swung
from kuayu_conformance.testbed.scheduling.timing import Timing
from kuayu_conformance.testbed.scheduling.topology import FAMILIES, PLACES, PROFILES, build, capacity
from kuayu_conformance.testbed.scheduling.topology.sites import PER_NODE
from kuayu_conformance.testbed.scheduling.topology.weather import Weather
from kuayu_conformance.testbed.scheduling.workload import demand, draw
from kuayu_conformance.testbed.scheduling.workload.drawing import arrive
from kuayu_conformance.testbed.scheduling.workload.families import Family, family_of
from kuayu_conformance.testbed.scheduling.workload.submitting import Arrivals

__all__ = ["Cell", "Scenario", "Timing", "ideal", "scenario", "submitted"]

SIZED = frozenset({"balanced", "east-west"})
"""Families that say how large domains are: all alike, or as published."""


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
        """The world at its begin: compiled, or in Python where weather or law are not those of the test bed."""
        if not (isinstance(self.topology.weather, Weather) and isinstance(self.law, PublishedLaw)):
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
    habits = _changed(cell)
    topology, disturbances, load = _places(cell, timing, seed, assignment)
    counted = timing.counted or timing.horizon
    parts = load, counted, seed, cell.source
    drawn = draw(habits, topology.sites, *parts, until=timing.horizon, devices=topology.devices, data=data)
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


def ideal(original: Scenario) -> Scenario:
    """The same with all devices in one place and a free network, to be played with a baseline; nodes fail as before."""
    pool = pooled(original.topology, original.workload)
    failures = Disturbances(failures=original.disturbances.failures, repair=original.disturbances.repair)
    return dataclasses.replace(original, topology=pool, workload=pool, law=PublishedLaw.of(pool), disturbances=failures)


def _changed(cell: Cell) -> Family:
    habits = family_of(cell.family)
    numbers = {field.name for field in dataclasses.fields(Family) if field.type in {float, "float"}}
    unknown = sorted(name for name, _ in cell.changed if name not in numbers)
    if unknown:
        raise ValueError(f"no parameter is named {', '.join(unknown)}; there are {', '.join(sorted(numbers))}")
    changed: dict[str, Any] = dict(cell.changed)
    return dataclasses.replace(habits, **changed)


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
