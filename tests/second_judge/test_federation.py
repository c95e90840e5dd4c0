"""A federation of the second judge goes as one of the suite does: jobs that B1 or B3 places end at the same time.

What is drawn is the suite's here, so that nothing is left to chance; what follows from it is made by either's own code.
Links are as narrow as in *wan-poor*, so that data are long on their way and flows share them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np
import pytest

from kuayu_conformance.checks.scheduling.cells import NODES, SITES
from kuayu_conformance.testbed.scheduling.engine.interfaces import LinkVariation
from kuayu_conformance.testbed.scheduling.engine.world import World, play
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, Timing, scenario
from kuayu_conformance.testbed.scheduling.values import JobKind
from kuayu_conformance.testbed.scheduling.windows import BASELINES
from second_judge.baselines import B1, B3, periods
from second_judge.drawn_jobs import HOUR, Job, Network, Pool, Window
from second_judge.federation import Link, fair

TIMING = Timing(warm=6 * HOUR, window=8 * HOUR, drain=10 * HOUR)
POLICIES: Mapping[str, type[B1 | B3]] = {"B1": B1, "B3": B3}


@dataclass(frozen=True)
class Offered(Network):
    """Links that offer what the suite's variation says."""

    variation: LinkVariation
    wires: Mapping[Link, int]
    known: dict[Link, tuple[float, float]] = field(default_factory=dict)
    """What each link offers, and until when."""

    def bandwidth(self, source: int, target: int, at: float) -> float:
        """Bits a second from a domain to another."""
        return self._look((source, target), at)[0]

    def changes(self, source: int, at: float) -> float:
        """When a link from a domain next offers something else."""
        return min(self._look(link, at)[1] for link in self.wires if link[0] == source)

    def _look(self, link: Link, at: float) -> tuple[float, float]:
        if link not in self.known or at >= self.known[link][1]:
            wire = np.array([self.wires[link]], dtype=np.intp)
            offered = self.capacity[link] * self.variation.factor(wire, at)[0]
            self.known[link] = float(offered), float(self.variation.until(wire, at)[0])
        return self.known[link]


def _drawn(number: int) -> Scenario:
    return scenario(Cell("wan-poor", 0.68, "fitted", SITES, NODES), TIMING, f"federation {number}", assignment=number)


def _window(drawn: Scenario) -> Window:
    """What the suite drew, as the second judge has it."""
    topology, data = drawn.topology, drawn.workload.datasets
    places = {site.name: place for place, site in enumerate(topology.sites)}
    sets = {name: number for number, name in enumerate(data)}
    pools = []
    for site in topology.sites:
        (pool,) = site.pools
        kind = topology.devices[pool.device]
        pools.append(Pool(pool.devices, kind.memory, dict(kind.index), {}))
    round_trip, capacity = np.zeros((2, len(places), len(places)))
    wires: dict[Link, int] = {}
    for number, wire in enumerate(topology.links):
        link = places[wire.source], places[wire.target]
        wires[link], round_trip[link], capacity[link] = number, wire.round_trip, wire.capacity
    none = np.zeros(len(places))
    network = Offered(
        round_trip, capacity, none, lambda _: False, lambda *_: 1.0, topology.variation, wires
    )  # what the annex draws has no say here
    jobs = tuple(
        Job(
            submitted=job.submitted,
            duration=job.work / (job.requested * job.used),
            devices=job.requested,
            home=places[job.home],
            serving=job.kind is JobKind.SERVING,
            batch=0,
            profile=job.profile,
            priority=job.priority,
            minimum=job.minimum,
            used=job.used,
            stated=job.stated,
            serial=job.serial,
            step=job.model.step,
            exchange=job.model.gradient,
            memory=job.memory,
            size=data[job.data].size,
            data=sets[job.data],
        )
        for job in drawn.workload.jobs
    )
    return Window(tuple(pools), network, jobs, tuple(places[each.sites[0]] for each in data.values()))


@pytest.mark.parametrize(("policy", "number", "spread"), [("B1", 2, 1), ("B3", 7, 0)])
def test_jobs_end_when_they_do_in_the_suite(policy: str, number: int, spread: int) -> None:
    drawn = _drawn(number)
    world = World(drawn.topology, drawn.workload, drawn.law, drawn.seed, drawn.disturbances)
    play(world, BASELINES[policy](), TIMING.horizon)
    rows = zip(world.outcome().jobs, drawn.workload.jobs, strict=False)
    trained = [row for row, job in rows if job.kind is not JobKind.SERVING and job.submitted < TIMING.end]
    found = periods(_window(drawn), POLICIES[policy](), 0.0, TIMING.end, TIMING.horizon)
    pairs = [(own, row) for (own, _), row in zip(found, trained, strict=True) if row.finished < inf]
    first = [row.periods[0] for _, row in pairs]
    assert sum(len(period.placement.shares) > 1 for period in first) == spread
    assert sum(period.running > period.begin for period in first) > 50, "data are on their way"
    assert [own for own, _ in pairs] == pytest.approx([row.finished - row.submitted for _, row in pairs], rel=1e-9)


def test_flows_share_a_link_fairly_and_none_gets_more_than_it_wishes() -> None:
    assert fair(10.0, [float("inf"), 1.0, float("inf")]) == [4.5, 1.0, 4.5]
    assert fair(10.0, [1.0, 2.0]) == [1.0, 2.0]
    assert fair(3.0, [9.0, 8.0, float("inf")]) == [1.0, 1.0, 1.0]
