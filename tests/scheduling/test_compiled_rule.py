"""The compiled rule decides what the reference decides, order by order, in the suite's own worlds.

The reference decides through the Python face of a compiled world, and its orders are carried out; beside it the
compiled rule decides on the same arrays, and its orders are compared: job, pools (domain and accelerator), devices,
mode and period, at equal times and in equal order. Nodes within pools are not told in these worlds, so that none are
compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from kuayu.bench.reference import ReferencePolicy, orders
from kuayu.bench.snapshots import Snapshots
from kuayu.scheduling.availability import Availability, ends, trusted
from kuayu.scheduling.candidates import CandidateSet
from kuayu.scheduling.policy_network import HIDDEN, SEEN, SET, PolicyNetwork, seen
from kuayu.scheduling.pricing import PurchaseOptions
from kuayu.scheduling.scheduler import QueuePolicy, crowding, decide, features_of, gathered, priority_order
from kuayu.scheduling.scoring import BEGINS, CROWD, DEVICES, EXCHANGING, LOST, MOVING, OWN, RUNS, Rule
from kuayu.scheduling.state import Numbers, Snapshot
from kuayu_conformance.checks.scheduling.cells import FULL, OTHERS, assignment
from kuayu_conformance.checks.scheduling.stability import MOST_MIGRATIONS
from kuayu_conformance.testbed.scheduling.core.world import CompiledWorld
from kuayu_conformance.testbed.scheduling.engine.orders import Order, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.engine.world import play
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, Timing, scenario
from kuayu_conformance.testbed.scheduling.values import Split
from kuayu_conformance.testbed.scheduling.windows import play_window
from kuayu_training.scheduling.core import candidates, epoch_loop, layout, scheduler
from kuayu_training.scheduling.core.network import flat
from kuayu_training.scheduling.core.player import CompiledRule, constants

HOUR = 3600.0
FAMILIES = ("reference", *OTHERS)
COLUMNS = {
    BEGINS: layout.BEGINS,
    RUNS: layout.RUNS,
    MOVING: layout.MOVING,
    EXCHANGING: layout.EXCHANGING,
    DEVICES: layout.DEVICES,
    CROWD: layout.CROWD,
    LOST: layout.LOST,
}
"""Columns of the reference's features, and of the compiled ones."""

Made = tuple[str, int, tuple[tuple[int, int], ...], int, int]
"""An order: what it is, of which job, what it holds, in which mode and at which period."""


def cell(family: str) -> Cell:
    """The reference cell, or that of another family."""
    return FULL.reference("fitted") if family == "reference" else FULL.of_family(family)


def made(family: str, hours: float, **changed: object) -> Scenario:
    """A scenario of a family."""
    return scenario(replace(cell(family), **changed), Timing(0.0, hours * HOUR, 0.0), f"compiled rule {family}")


@dataclass
class Epoch:
    """An epoch that is to be decided."""

    world: CompiledWorld
    view: View
    rule: CompiledRule
    snapshot: Snapshot
    numbers: Numbers


def epochs(
    its: Scenario, rule: CompiledRule, scorer: Rule | None = None, network: PolicyNetwork | None = None
) -> Iterator[tuple[Epoch, list[Order]]]:
    """Epochs of a scenario that the reference plays, each with its orders, which are then carried out."""
    world, snapshots = its.world(), Snapshots()
    assert isinstance(world, CompiledWorld)
    while (view := world.advance(its.timing.horizon)) is not None:
        rule.meet(world)
        snapshot, numbers = snapshots.of(view)
        by, queue = network.constants(snapshot) if network else (scorer or Rule(), QueuePolicy())
        found = orders(view, snapshot, numbers, decide(snapshot, by, OWN, queue))
        yield Epoch(world, view, rule, snapshot, numbers), found
        world.obey(found)


def by_reference(world: CompiledWorld, found: list[Order]) -> list[Made]:
    """Orders of the reference, by numbers."""
    told: list[Made] = []
    for order in found:
        job = world.numbers[order.job]
        if isinstance(order, Stop):
            told.append(("stops", job, (), 0, 1))
            continue
        if isinstance(order, Resize):
            told.append(("goes on", job, ((world.runs[job].holding[0][0], order.devices),), 0, 1))
            continue
        where = order.placement
        holding, mode = world.places.holding(where.shares), tuple(Split).index(where.split)
        told.append(("starts" if isinstance(order, Start) else "goes on", job, holding, mode, where.period))
    return told


def by_compiled(rule: CompiledRule) -> list[Made]:
    """Orders of the compiled rule, by numbers."""
    tables = rule.tables
    assert tables is not None
    told: list[Made] = []
    for order in range(int(tables.epoch["orders"][0])):
        if tables.order_kind[order] == layout.STOP:
            told.append(("stops", int(tables.order_job[order]), (), 0, 1))
            continue
        shares = range(int(tables.order_count[order]))
        holding = tuple((int(tables.order_pools[order, n]), int(tables.order_devices[order, n])) for n in shares)
        what = "starts" if tables.order_kind[order] == layout.START else "goes on"
        mode = int(tables.order_mode[order])
        periodic = mode == tuple(Split).index(Split.PERIODIC)
        period = int(layout.PERIODS[tables.order_period[order]]) if periodic else 1
        told.append((what, int(tables.order_job[order]), holding, mode, period))
    return told


@pytest.mark.parametrize("family", FAMILIES)
def test_it_gives_the_orders_of_the_reference_epoch_by_epoch(family: str) -> None:
    rule, count = CompiledRule(), 0
    for epoch, found in epochs(made(family, 2.0), rule):
        epoch_loop.decide(epoch.world.handle, rule.handle)
        assert by_compiled(rule) == by_reference(epoch.world, found), epoch.view.now
        count += len(found)
    assert count > 50


@pytest.mark.parametrize(("family", "load"), [("reference", 1.6), ("heterogeneous", 1.3), ("giant", 1.2)])
def test_it_does_where_hundreds_wait_and_others_have_to_make_room(family: str, load: float) -> None:
    rule = CompiledRule()
    went = 0
    for epoch, found in epochs(made(family, 4.0, load=load), rule):
        epoch_loop.decide(epoch.world.handle, rule.handle)
        told = by_compiled(rule)
        assert told == by_reference(epoch.world, found), epoch.view.now
        went += sum(what == "goes on" for what, *_ in told)
    assert went > 5


def test_it_does_where_jobs_have_many_priorities() -> None:
    """Whose losses count a tenth for each priority between, so that the lowest make room."""
    its, rule, stopped = made("reference", 4.0, load=1.6), CompiledRule(), 0
    jobs = tuple(replace(job, priority=number % 4) for number, job in enumerate(its.workload.jobs))
    for epoch, found in epochs(replace(its, workload=replace(its.workload, jobs=jobs)), rule):
        epoch_loop.decide(epoch.world.handle, rule.handle)
        told = by_compiled(rule)
        assert told == by_reference(epoch.world, found), epoch.view.now
        stopped += sum(what == "stops" for what, *_ in told)
    assert stopped > 5


@pytest.mark.parametrize("family", ["reference", "partition"])
def test_a_network_sets_the_same_constants_and_the_same_orders_follow(family: str) -> None:
    """Weights are drawn, and large enough that constants differ from epoch to epoch; the other sees the same."""
    chance = np.random.default_rng(5)
    weights = {
        f"{name}.{part}": chance.normal(0.0, 0.5, shape).astype(np.float32)
        for name, rows, columns in (("enter", HIDDEN, len(SEEN)), ("meet", HIDDEN, HIDDEN), ("leave", len(SET), HIDDEN))
        for part, shape in (("weight", (rows, columns)), ("bias", (rows,)))
    }
    network, rule, count, moneys = PolicyNetwork.of(weights), CompiledRule(network=flat(weights)), 0, set()
    for epoch, found in epochs(made(family, 3.0, load=1.3), rule, network=network):
        epoch_loop.decide(epoch.world.handle, rule.handle)
        assert rule.tables is not None
        np.testing.assert_allclose(rule.tables.seen, seen(epoch.snapshot), rtol=1e-9, atol=1e-12)
        by, queue = network.constants(epoch.snapshot)
        told = dict(zip(layout.PARAMETERS, rule.tables.parameters.tolist(), strict=True))
        expected = [by.money, by.lost, by.doubt, queue.eager, queue.gang]
        np.testing.assert_allclose([told[name] for name in SET], expected, rtol=1e-9)
        assert by_compiled(rule) == by_reference(epoch.world, found), epoch.view.now
        moneys.add(round(by.money, 3))
        count += len(found)
    assert count > 50
    assert len(moneys) > 20


def test_it_spreads_jobs_that_no_domain_can_hold_as_the_reference_does() -> None:
    rule, spread = CompiledRule(), 0
    its = made("giant", 4.0, load=0.2)
    for epoch, found in epochs(its, rule):
        epoch_loop.decide(epoch.world.handle, rule.handle)
        told = by_compiled(rule)
        assert told == by_reference(epoch.world, found), epoch.view.now
        spread += sum(len(holding) > 1 for _, _, holding, _, _ in told)
    assert spread


def test_its_constants_count_as_those_of_the_reference_do() -> None:
    changed = CompiledRule(constants({"money": 40.0, "doubt": 1.5}))
    differ = 0
    plain = CompiledRule()
    for epoch, found in epochs(made("reference", 3.0, load=1.2), changed, Rule(money=40.0, doubt=1.5)):
        epoch_loop.decide(epoch.world.handle, changed.handle)
        told = by_compiled(changed)
        assert told == by_reference(epoch.world, found)
        plain.meet(epoch.world)
        epoch_loop.decide(epoch.world.handle, plain.handle)
        differ += told != by_compiled(plain)
    assert differ


def test_a_constant_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no constant is named patients"):
        constants({"patients": 1.0})


@pytest.mark.parametrize("family", ["reference", "wan-poor", "giant", "false-capacity", "partition"])
def test_candidates_and_what_they_lead_to_are_those_of_the_reference(family: str) -> None:
    rule, compared = CompiledRule(), 0
    for number, (epoch, _) in enumerate(epochs(made(family, 2.0), rule)):
        snapshot, handle, tables = epoch.snapshot, rule.handle, rule.tables
        assert tables is not None
        scheduler.begin(epoch.world.handle, handle)  # in each epoch: what jobs keep busy is seen while they run
        if number % 10:
            continue
        order = priority_order(snapshot, QueuePolicy())
        assert epoch.numbers[order].tolist() == tables.order[: len(order)].tolist()
        free = trusted(snapshot)
        assert tables.free.tolist() == free.tolist()
        found, prediction, first = gathered(CandidateSet(snapshot, free), order)
        availability = Availability(snapshot, free, ends(snapshot), PurchaseOptions(snapshot))
        features = features_of(snapshot, found, prediction, availability)
        features[:, CROWD] *= np.repeat(crowding(snapshot, order, QueuePolicy()), np.diff(first))
        for place, job in enumerate(epoch.numbers[order].tolist()):
            its = slice(int(first[place]), int(first[place + 1]))
            delay = scheduler.delay_of(epoch.world.handle, handle, place)
            rows = candidates.rows_of(epoch.world.handle, handle, job, delay)
            assert rows == its.stop - its.start
            width = found.pools.shape[1]
            count = tables.row_count[:rows, None] > np.arange(width)
            assert np.array_equal(np.where(count, tables.row_pools[:rows, :width], -1), found.pools[its])
            assert np.array_equal(np.where(count, tables.row_shares[:rows, :width], 0), found.devices[its])
            assert np.array_equal(tables.row_mode[:rows], found.mode[its])
            for column, ours in COLUMNS.items():
                scale = np.abs(features[its, DEVICES] * (features[its, BEGINS] + features[its, RUNS]))
                absolute = 1e-9 * scale if column == LOST else 0.0  # a difference of two numbers that are nearly equal
                close = np.isclose(tables.rows[:rows, ours], features[its, column], rtol=1e-9, atol=absolute)
                assert close.all(), (column, epoch.view.now)
            compared += rows
    assert compared > 20


@pytest.mark.parametrize("family", ["reference", "heterogeneous", "faulty", "partition", "giant"])
def test_what_it_plays_by_itself_ends_as_under_the_reference(family: str) -> None:
    its = made(family, 3.0, load=1.0)
    worlds = its.world(), its.world()
    play(worlds[0], ReferencePolicy(), its.timing.horizon)
    play(worlds[1], CompiledRule(), its.timing.horizon)
    one, other = (world.outcome() for world in worlds)
    assert one.jobs == other.jobs
    assert (one.decisions, one.refusals) == (other.decisions, other.refusals)
    assert np.array_equal(one.money, other.money)


def test_the_rule_that_ships_moves_jobs_no_more_often_than_sch_008_allows() -> None:
    """In windows that no run of the suite draws, and that differ tenfold; method 1.4.0 moved jobs too often."""
    its = [
        scenario(FULL.swinging("step"), FULL.swing_timing, f"moves/{number}", assignment=assignment(number))
        for number in range(12)
    ]
    before = {
        "interruption_seconds": 150.0,
        "min_remaining_ratio": 1.0,
        "max_pause_share": 0.05,
        "min_gain_share": 0.06,
    }
    before |= {"max_migration_pause_share": 0.009, "min_gain_per_pause": 4.5}

    def moves_an_hour(changed: dict[str, float]) -> float:
        scores = [play_window(each, CompiledRule(constants(changed)), "rule") for each in its]
        return sum(score.migrations for score in scores) / sum(score.job_hours for score in scores)

    assert 0.0 < moves_an_hour({}) < MOST_MIGRATIONS < moves_an_hour(before)


def test_it_makes_no_views(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> View:
        raise AssertionError("a view was made")

    monkeypatch.setattr(CompiledWorld, "_view", none)
    world = made("reference", 2.0).world()
    play(world, CompiledRule(), 2.0 * HOUR)
    assert world.outcome().decisions > 50
