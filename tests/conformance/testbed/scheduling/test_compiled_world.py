"""The compiled world and its baselines come to what the engine in Python comes to, to the last bit.

The engine is the oracle: closed loops of policies, and orders at random that split, move, resize and stop jobs while
nodes fail and domains are cut off.
"""

import gc
import random
import weakref
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from conformance.testbed.scheduling import small_world

from kuayu_conformance.checks.scheduling.cells import FULL, OTHERS
from kuayu_conformance.testbed.scheduling.core import world as compiled
from kuayu_conformance.testbed.scheduling.core.baselines import RULES
from kuayu_conformance.testbed.scheduling.core.world import CompiledWorld
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.state import Outcome
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.engine.world import AnyWorld, World, play
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, Timing, ideal, scenario
from kuayu_conformance.testbed.scheduling.values import Placement, Share, Split
from kuayu_conformance.testbed.scheduling.windows import BASELINES

HOUR, DAY = 3600.0, 86_400.0
TIMING = Timing(1 * HOUR, 2 * HOUR, 5 * HOUR)
SUMS = ("bits", "money", "available", "occupied", "computing", "work")
FAMILIES = ("reference", *OTHERS)


def cell(family: str) -> Cell:
    """The reference cell, or that of another family."""
    return FULL.reference("fitted") if family == "reference" else FULL.of_family(family)


def made(family: str, seed: str, timing: Timing = TIMING, **changed: float) -> Scenario:
    """A scenario of a family with parameters of the workload changed."""
    return scenario(replace(cell(family), changed=tuple(changed.items())), timing, seed, assignment=len(seed) % 5)


def both(its: Scenario) -> tuple[World, CompiledWorld]:
    """Its world in Python and compiled."""
    parts = (its.topology, its.workload, its.law, its.seed, its.disturbances)
    return World(*parts), CompiledWorld(*parts)  # type: ignore[arg-type]  # the law is the published one


def assert_same(one: Outcome, other: Outcome) -> None:
    """Nothing differs, not even in the last bit."""
    assert (one.instant, one.decisions, one.refusals) == (other.instant, other.decisions, other.refusals)
    assert one.jobs == other.jobs
    for name in SUMS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("family", FAMILIES)
def test_baselines_come_to_the_same_in_every_family(family: str) -> None:
    its = made(family, f"closed {family}")
    for name in BASELINES:
        oracle, world = both(its)
        for each in (oracle, world):
            play(each, BASELINES[name](), TIMING.horizon)
        assert_same(oracle.outcome(), world.outcome())


def test_baselines_that_are_compiled_make_no_views(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> View:
        raise AssertionError("a view was made")

    for policy in RULES:
        monkeypatch.setattr(CompiledWorld, "_view", none)
        world = made("reference", "by themselves").world()
        play(world, policy(), TIMING.horizon)
        assert world.outcome().decisions > 0


def test_a_policy_that_is_derived_from_a_compiled_one_decides_for_itself() -> None:
    asked: list[float] = []

    class Noting(next(iter(RULES))):  # type: ignore[misc]  # a class of the baselines
        def decide(self, view: View) -> Sequence[Order]:
            asked.append(view.now)
            return ()

    play(made("reference", "derived").world(), Noting(), TIMING.horizon)
    assert asked


def test_a_world_that_was_played_is_gone_at_once() -> None:
    """Hundreds are played in a run, each with the jobs of weeks: none may wait for a collection of garbage."""
    gc.disable()
    try:
        world = made("reference", "gone").world()
        play(world, BASELINES["B2"](), TIMING.horizon)
        kept = weakref.ref(world)
        del world
        assert kept() is None
    finally:
        gc.enable()


def test_a_copy_of_a_world_goes_on_by_itself_and_comes_to_the_same() -> None:
    its = made("faulty", "copied")
    world = its.world()
    assert isinstance(world, CompiledWorld)
    play(world, BASELINES["B3"](), TIMING.begin)
    copies = [world.copy(), world.copy()]
    before = world.outcome()
    for each in copies:
        play(each, BASELINES["B2"](), TIMING.horizon)
    assert_same(world.outcome(), before)
    play(world, BASELINES["B2"](), TIMING.horizon)
    for each in copies:
        assert_same(each.outcome(), world.outcome())


def test_a_policy_that_is_compiled_elsewhere_plays_by_itself() -> None:
    class Waiting:
        def __init__(self) -> None:
            self.played: list[float] = []

        def decide(self, view: View) -> Sequence[Order]:
            raise AssertionError(f"asked at {view.now}")

        def player(self) -> "Waiting":
            return self

        def play(self, world: object, until: float, seconds: float) -> tuple[int, int]:
            del world, seconds
            self.played.append(until)
            return 3, 1

    policy, world = Waiting(), made("reference", "elsewhere").world()
    play(world, policy, TIMING.begin)
    play(world, policy, TIMING.end)
    assert policy.played == [TIMING.begin, TIMING.end]
    assert (world.outcome().decisions, world.outcome().refusals) == (6, 2)


def test_the_ideal_pool_comes_to_the_same() -> None:
    its = ideal(made("reference", "pool"))
    oracle, world = both(its)
    for each in (oracle, world):
        play(each, BASELINES["B3"](), TIMING.horizon)
    assert_same(oracle.outcome(), world.outcome())


def test_days_on_end_variation_and_faults_go_on() -> None:
    """Variation and faults are drawn two days at a time; policies are asked every ten minutes."""
    timing = Timing(1 * HOUR, 2 * HOUR, 5 * DAY, 6 * HOUR)
    its = scenario(replace(cell("faulty"), load=0.3, nodes=4), timing, "days", assignment=1)
    for name in ("B1", "B3", "B3c"):
        oracle, world = both(its)
        for each in (oracle, world):
            policy = BASELINES[name]()
            play(each, policy, timing.end)
            play(each, policy, timing.horizon, 600.0)
        assert_same(oracle.outcome(), world.outcome())
    assert any(job.failures for job in world.outcome().jobs)


class AtRandom:
    """Starts, stops, moves and resizes at random, split in every way; much of it is refused."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(seed)

    def decide(self, view: View) -> Sequence[Order]:
        """Orders for some who wait and for some who run."""
        chance = self._chance
        orders: list[Order] = [
            Start(view.job(number).name, self._somewhere(view, number))
            for number in view.pending[:30].tolist()
            if chance.random() < 0.7
        ]
        for number in view.running.tolist():
            name, drawn = view.job(number).name, chance.random()
            if drawn < 0.02:
                orders.append(Stop(name))
            elif drawn < 0.04:
                orders.append(Move(name, self._somewhere(view, number)))
            elif drawn < 0.06:
                orders.append(Resize(name, chance.randint(1, 2 * view.job(number).requested)))
        return orders

    def _somewhere(self, view: View, number: int) -> Placement:
        chance, job, places = self._chance, view.job(number), view.places
        able = np.flatnonzero((view.free > 0) & (places.memory[places.type] >= job.memory)).tolist()
        wanted = 1 if chance.random() < 0.5 else chance.randint(2, 4)
        chosen: dict[str, int] = {}
        for _ in range(3 * wanted):
            pool = chance.choice(able or range(len(places.pools)))
            if len(chosen) < wanted:
                chosen.setdefault(places.pools[pool][0], pool)
        devices = chance.choice([job.requested, chance.randint(job.minimum, job.maximum)])
        each, left = divmod(devices, len(chosen))
        shares = tuple(
            Share(*places.pools[pool], max(1, each + (place < left))) for place, pool in enumerate(chosen.values())
        )
        if len(shares) == 1:
            return Placement(shares)
        split = chance.choice([mode for mode in job.splits if mode is not Split.NONE] or [Split.PERIODIC])
        return Placement(shares, split, chance.choice([1, 20, 50, 200]) if split is Split.PERIODIC else 1)


@pytest.mark.parametrize("family", ["reference", "faulty", "partition", "false-capacity", "collapse", "wan-poor"])
def test_orders_at_random_come_to_the_same(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is seen on the way is the same as well; arrays begin so small that all of them have to grow."""
    monkeypatch.setattr(compiled, "EVENTS", 16)
    monkeypatch.setattr(compiled, "RUNS", 2)
    its = made(family, f"random {family}", oversize=0.3)
    if family in {"reference", "wan-poor"}:
        its = replace(its, disturbances=replace(its.disturbances, failures=2e-5, repair=1800.0))
    oracle, world = both(its)
    policies = AtRandom(family), AtRandom(family)
    splits = 0
    while True:
        views = oracle.advance(TIMING.horizon), world.advance(TIMING.horizon)
        if None in views:
            break
        one, other = views
        assert one is not None
        assert other is not None
        assert_seen(one, other)
        orders, again = (policy.decide(view) for policy, view in zip(policies, (one, other), strict=True))
        assert orders == again
        splits += sum(isinstance(order, Start) and len(order.placement.shares) > 1 for order in orders)
        assert oracle.obey(orders) == world.obey(orders)
    assert views == (None, None)
    assert_same(oracle.outcome(), world.outcome())
    assert_ends(oracle, world)
    assert splits > 20
    assert any(job.moves for job in oracle.outcome().jobs)


def assert_seen(one: View, other: View) -> None:
    """What policies see does not differ."""
    assert (one.now, one.revision, one.cut, one.refused) == (other.now, other.revision, other.cut, other.refused)
    assert one.running.tolist() == other.running.tolist()
    for name in ("pending", "free", "working", "ends", "shares", "next_flow_rates", "offered", "tariffs"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for number in one.running[:5].tolist():
        assert one.placement(number) == other.placement(number)
        assert one.going(number) == other.going(number)
        assert one.job(number) == other.job(number)
        assert (one.phase(number), one.checkpoint_at(number)) == (other.phase(number), other.checkpoint_at(number))
    for number in one.pending[:5].tolist():
        assert one.data_at(number) == other.data_at(number)
        assert np.array_equal(one.staging(number), other.staging(number))


def assert_ends(one: AnyWorld, other: AnyWorld) -> None:
    """What is said of a world when it is left does not differ."""
    jobs = len(one.outcome().jobs)
    left = [number for number in range(jobs) if not one.finished(number, number + 1)]
    assert left
    assert [one.pace(number) for number in left] == [other.pace(number) for number in left]
    gauges = one.gauges(), other.gauges()
    assert (gauges[0].waiting, gauges[0].devices) == (gauges[1].waiting, gauges[1].devices)
    assert np.array_equal(gauges[0].work, gauges[1].work)


def test_what_is_no_world_of_the_test_bed_is_played_in_python() -> None:
    topology = small_world.mesh(small_world.site("a", 8), tariff=1e-9)
    load = small_world.load(small_world.job("one", "a", 8, 100.0))
    its = made("reference", "other law")
    assert isinstance(its.world(), CompiledWorld)
    assert isinstance(replace(its, topology=topology, workload=load, law=small_world.RoundLaw()).world(), World)
