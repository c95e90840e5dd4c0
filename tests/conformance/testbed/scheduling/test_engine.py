"""The simulator, in worlds that are worked out by hand: 8 plain devices a domain, links of a gigabyte a second."""

from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np
import pytest
from conformance.testbed.scheduling.small_world import GIGABIT, Steady, at, job, load, mesh, of, site, world
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Refusal, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.paths import fair_rates
from kuayu_conformance.testbed.scheduling.engine.state import Phase
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.engine.world import (
    LLAMA_3_FAILURES,
    Claim,
    Cut,
    Disturbances,
    World,
    exponential_variate,
    play,
)
from kuayu_conformance.testbed.scheduling.values import Dataset, Link, Placement, Share, Split

A, B, C = site("a", 8), site("b", 8), site("c", 8)


WAITS = job("waits", "a", 8, 1.0, submitted=0.0)
"""Pending for ever unless it is started: there is an epoch every minute."""


class Script:
    """A policy that knows beforehand what it will order at which epoch."""

    def __init__(self, orders: Mapping[float, Sequence[Order]]) -> None:
        self._orders = orders
        self.views: dict[float, View] = {}

    def decide(self, view: View) -> Sequence[Order]:
        """What was planned."""
        self.views[view.now] = view
        return self._orders.get(view.now, ())


def played(its: World, orders: Mapping[float, Sequence[Order]], until: float = 10_000.0) -> Script:
    script = Script(orders)
    play(its, script, until)
    return script


def test_a_job_runs_from_the_next_epoch_for_as_long_as_its_work_takes() -> None:
    its = world(mesh(A, B), load(job("one", "a", 4, 100.0, submitted=70.0)))
    played(its, {120.0: [Start("one", at("a", 4))]})
    record = of(its.outcome(), "one")
    assert record.finished == 220.0
    assert [(each.begin, each.running, each.end) for each in record.periods] == [(120.0, 120.0, 220.0)]
    assert its.now == 220.0, "nothing is left to happen"
    outcome = its.outcome()
    assert outcome.occupied.tolist() == [400.0, 0.0]
    assert outcome.computing.tolist() == outcome.work.tolist() == [400.0, 0.0]
    assert outcome.available.tolist() == [8 * 220.0, 8 * 220.0]
    assert outcome.decisions == 1, "nothing was pending at the second minute"


def test_a_faster_device_is_faster_by_its_index() -> None:
    its = world(mesh(A, site("quick", 8, "fast")), load(job("one", "a", 4, 100.0)))
    played(its, {60.0: [Start("one", at("quick", 4, "fast"))]})
    assert of(its.outcome(), "one").finished == 110.0


def test_data_come_first_and_devices_are_held_meanwhile() -> None:
    """20 GB over 8 Gbit/s are 20 s."""
    jobs = load(job("one", "a", 4, 100.0, data="d"), d=Dataset("d", 20e9, ("b",)))
    its = world(mesh(A, B, tariff=3.0), jobs)
    played(its, {60.0: [Start("one", at("a", 4))]})
    record, outcome = of(its.outcome(), "one"), its.outcome()
    assert record.periods[0].running == pytest.approx(80.0)
    assert record.finished == pytest.approx(180.0)
    assert outcome.occupied[0] == pytest.approx(480.0)
    assert outcome.computing[0] == pytest.approx(400.0)
    assert outcome.bits.tolist() == pytest.approx([0.0, 160e9])
    assert record.money == outcome.money.sum() == pytest.approx(3 * 160e9)


def test_two_transfers_share_a_link_and_a_third_uses_another() -> None:
    """Two of 20 GB at 4 Gbit/s each take 40 s."""
    sets = {name: Dataset(name, 20e9, (where,)) for name, where in (("d", "b"), ("e", "b"), ("f", "c"))}
    jobs = load(*(job(name, "a", 2, 100.0, data=name) for name in "def"), **sets)
    its = world(mesh(A, B, C), jobs)
    played(its, {60.0: [Start(name, at("a", 2)) for name in "def"]})
    running = [of(its.outcome(), name).periods[0].running for name in "def"]
    assert running == pytest.approx([100.0, 100.0, 80.0])


def test_a_copy_on_its_way_is_not_sent_again_and_is_kept_for_a_week() -> None:
    week = 7 * 86_400.0
    names = {"first": 0.0, "second": 0.0, "third": 6000.0, "late": 2 * week}
    jobs = load(
        *(job(name, "a", 2, 60.0, data="d", submitted=when) for name, when in names.items()),
        d=Dataset("d", 20e9, ("b",)),
    )
    its = world(mesh(A, B), jobs)
    starts = {60.0: ["first", "second"], 6000.0: ["third"], 2 * week: ["late"]}
    played(its, {when: [Start(name, at("a", 2)) for name in names] for when, names in starts.items()}, 3 * week)
    running = [of(its.outcome(), name).periods[0].running for name in names]
    assert running == pytest.approx([80.0, 80.0, 6000.0, 2 * week + 20.0])
    assert its.outcome().bits.sum() == pytest.approx(2 * 160e9)


def test_variation_changes_a_transfer_under_way_and_the_hour_its_price() -> None:
    """10 s at 8 Gbit/s and then at 2: half of 20 GB take 40 s more; from then on a bit costs twice as much."""
    variation = Steady({1: ((70.0, 0.25),)}, dear_after=70.0)
    jobs = load(job("one", "a", 4, 100.0, data="d"), d=Dataset("d", 20e9, ("b",)))
    its = world(mesh(A, B, variation=variation), jobs)
    played(its, {60.0: [Start("one", at("a", 4))]})
    assert of(its.outcome(), "one").periods[0].running == pytest.approx(110.0)
    assert its.outcome().money.sum() == pytest.approx(80e9 + 2 * 80e9)


def test_a_split_job_occupies_links_and_stands_still_while_they_are_cut() -> None:
    """8 + 8 devices at nine tenths; 144 work are 10 s; the link is gone from 65 until 100."""
    variation = Steady({0: ((65.0, 0.0), (100.0, 1.0))})
    its = world(
        mesh(A, B, variation=variation), load(job("one", "a", 16, 9.0, data="b"), b=Dataset("b", 0.0, ("a", "b")))
    )
    both = Placement((Share("a", "plain", 8), Share("b", "plain", 8)), Split.PERIODIC, 50)
    played(its, {60.0: [Start("one", both)]})
    outcome = its.outcome()
    assert of(outcome, "one").finished == pytest.approx(105.0)
    assert outcome.bits.tolist() == pytest.approx([10 * GIGABIT, 45 * GIGABIT]), "the way back was held throughout"
    assert outcome.computing.tolist() == pytest.approx([80.0, 80.0])
    assert outcome.work.tolist() == pytest.approx([72.0, 72.0])


def test_a_preempted_job_goes_on_from_its_checkpoint_elsewhere() -> None:
    """60 s of 100 are done; 10 s to save, 14 GB of checkpoint are 14 s, 20 s to restart, 40 s to run."""
    its = world(mesh(A, B), load(job("one", "a", 8, 100.0), WAITS, b=Dataset("b", 0.0, ("b",))))
    orders: dict[float, Sequence[Order]] = {
        60.0: [Start("one", at("a", 8))],
        120.0: [Stop("one")],
        180.0: [Start("one", at("b", 8))],
    }
    played(its, orders, 1000.0)
    record = of(its.outcome(), "one")
    assert record.periods[0].end == 130.0
    assert record.periods[1].running == pytest.approx(180.0 + 14.0 + 20.0)
    assert record.finished == pytest.approx(254.0)
    assert record.stops == 1
    assert its.outcome().work.tolist() == pytest.approx([480.0, 320.0])


def test_a_migrating_job_holds_both_places_while_it_saves() -> None:
    its = world(mesh(A, B), load(job("one", "a", 4, 100.0), WAITS))
    script = played(its, {60.0: [Start("one", at("a", 4))], 120.0: [Move("one", at("b", 4))]}, 1000.0)
    record = of(its.outcome(), "one")
    assert record.finished == pytest.approx(120.0 + 10.0 + 14.0 + 20.0 + 40.0)
    assert its.outcome().occupied.tolist() == pytest.approx([4 * 70.0, 4 * 84.0])
    assert script.views[180.0].free.tolist() == [8, 4]


def test_resizing_takes_a_restart_on_the_spot() -> None:
    its = world(mesh(A, B), load(job("one", "a", 4, 100.0), WAITS))
    played(its, {60.0: [Start("one", at("a", 4))], 120.0: [Resize("one", 8)]}, 1000.0)
    assert of(its.outcome(), "one").finished == pytest.approx(120.0 + 10.0 + 20.0 + 20.0)


def test_orders_that_cannot_be_carried_out_are_refused_and_shown() -> None:
    jobs = load(
        job("one", "a", 4, 1000.0),
        job("pinned", "b", 4, 100.0, data="p"),
        job("large", "a", 4, 100.0, memory=90e9),
        p=Dataset("p", 1.0, ("b",), pinned=True),
    )
    its = world(mesh(A, B), jobs)
    split = Placement((Share("a", "plain", 4), Share("b", "plain", 4)), Split.PIPELINE)
    wrong: dict[Order, Refusal] = {
        Start("nobody", at("a", 4)): Refusal.UNKNOWN_JOB,
        Start("one", at("z", 4)): Refusal.UNKNOWN_POOL,
        Start("one", at("a", 2)): Refusal.SIZE,
        Start("one", at("a", 12)): Refusal.NO_ROOM,
        Start("one", split): Refusal.SPLIT,
        Start("pinned", at("a", 4)): Refusal.DATA,
        Start("large", at("a", 4)): Refusal.MEMORY,
        Stop("one"): Refusal.NOT_RUNNING,
        Start("one", Placement((Share("a", "plain", 2), Share("a", "plain", 2)), Split.PERIODIC)): Refusal.TWICE,
    }
    script = played(its, {60.0: [*wrong, Start("one", at("a", 4))], 120.0: [Start("one", at("a", 4))]}, 180.0)
    assert {refused.order: refused.why for refused in script.views[120.0].refused} == wrong
    assert [refused.why for refused in script.views[180.0].refused] == [Refusal.NOT_PENDING]
    assert of(its.outcome(), "one").phase == Phase.RUNNING
    assert its.outcome().refusals == len(wrong) + 1


class Watch(Script):
    """Keeps a figure of each view while it is valid."""

    def __init__(self, orders: Mapping[float, Sequence[Order]], figure: Callable[[View], object]) -> None:
        super().__init__(orders)
        self._figure = figure
        self.seen: list[object] = []

    def decide(self, view: View) -> Sequence[Order]:
        """What was planned, too."""
        self.seen.append(self._figure(view))
        return super().decide(view)


def test_what_a_policy_knows_is_what_was_stated_until_the_job_has_run() -> None:
    """It says 100 s, takes 250, and keeps half of its devices busy: then its work is known to be half as much."""
    its = world(mesh(A, B), load(job("one", "a", 4, 100.0, work=500.0, used=0.5), WAITS))
    watch = Watch({60.0: [Start("one", at("a", 4))]}, lambda view: (view.job(0).work, view.job(0).used))
    play(its, watch, 120.0)
    assert watch.seen == [(400.0, 1.0), (200.0, 0.5)]
    play(its, watch, 400.0)
    assert of(its.outcome(), "one").finished == 310.0


def test_who_runs_longer_than_it_said_is_expected_to_take_twice_as_long() -> None:
    its = world(mesh(A, B), load(job("one", "a", 4, 100.0, work=4000.0), WAITS))
    watch = Watch({60.0: [Start("one", at("a", 4))]}, lambda view: (view.now, *view.ends.tolist()))
    play(its, watch, 300.0)
    assert watch.seen == [(60.0,), (120.0, 160.0), (180.0, 260.0), (240.0, 260.0), (300.0, 460.0)]


def test_a_node_that_fails_takes_its_jobs_and_what_they_had_not_saved() -> None:
    """One failure on average in 100 s; checkpoints every 100 s; the job starts again where its checkpoint is."""
    disturbances = Disturbances(failures=0.005, repair=60.0)
    its = world(mesh(A, B), load(job("one", "a", 8, 400.0)), disturbances)

    class Again:
        def decide(self, view: View) -> Sequence[Order]:
            return [Start("one", at("a", 8))] if view.free[0] == 8 else []

    play(its, Again(), 100_000.0)
    record, outcome = of(its.outcome(), "one"), its.outcome()
    assert record.failures >= 1
    assert record.finished < inf
    assert record.lost > 0.0
    assert outcome.work[0] == pytest.approx(8 * 400.0), "what was lost does not count"
    assert outcome.computing[0] == pytest.approx(8 * 400.0 + record.lost)
    assert outcome.available[0] < 8 * its.now


def test_a_domain_that_is_cut_off_is_refused_and_reports_what_was() -> None:
    jobs = load(job("one", "a", 4, 30.0), job("two", "a", 4, 100.0, data="b"), b=Dataset("b", 0.0, ("a", "b")))
    its = world(mesh(A, B), jobs, Disturbances(cuts=(Cut("a", 70.0, 150.0),)))
    orders = {60.0: [Start("one", at("a", 4))], 120.0: [Start("two", at("a", 4))], 180.0: [Start("two", at("a", 4))]}
    script = played(its, orders)
    assert script.views[120.0].cut == {0}
    assert script.views[120.0].free.tolist() == [4, 8], "the job has finished by now"
    assert [refused.why for refused in script.views[180.0].refused] == [Refusal.CUT_OFF]
    assert script.views[180.0].free.tolist() == [8, 8]
    assert of(its.outcome(), "two").finished == 280.0


def test_a_boastful_domain_refuses_what_it_cannot_hold() -> None:
    its = world(mesh(A, B), load(job("one", "a", 12, 30.0)), Disturbances(claims=(Claim("a", 2.0, 0.0, 1000.0),)))
    script = played(its, {60.0: [Start("one", at("a", 12))]}, 120.0)
    assert script.views[60.0].free.tolist() == [16, 8]
    assert [refused.why for refused in script.views[120.0].refused] == [Refusal.NO_ROOM]


def test_a_domain_that_is_slow_in_practice_shows_it_once_the_job_runs() -> None:
    its = world(mesh(A, B), load(job("one", "a", 4, 100.0), WAITS), Disturbances(slow={"a": 0.5}))
    script = played(its, {60.0: [Start("one", at("a", 4))]}, 180.0)
    assert script.views[60.0].expected(0, at("a", 4)) == (0.0, 4.0)
    view = its.advance(240.0)
    assert view is not None
    assert view.ends[0] == pytest.approx(260.0)


def test_exponential_variates_have_mean_and_quantiles_of_their_law() -> None:
    chance = Chance("law", "exponential")
    drawn = np.sort([exponential_variate(chance) for _ in range(20_000)])
    assert drawn.mean() == pytest.approx(1.0, abs=0.03)
    for share in (0.1, 0.5, 0.9, 0.99):
        assert (drawn < -np.log(1 - share)).mean() == pytest.approx(share, abs=0.01)
    days = 1 / (LLAMA_3_FAILURES * 86_400)
    assert days == pytest.approx(264, abs=1), "between failures of one node"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_is_ordered_capacity_is_kept_and_the_same_comes_of_it_again(data: st.DataObject) -> None:
    """Placements at random, possible or not, with faults, a partition and variation: asserts hold, sums agree."""
    seed = data.draw(st.integers(0, 10**6))
    outcomes = [_at_random(seed).outcome() for _ in range(2)]
    assert repr(outcomes[0]) == repr(outcomes[1])
    outcome = outcomes[0]
    assert (outcome.occupied <= outcome.available + 1e-6).all()
    assert (outcome.computing <= outcome.occupied + 1e-6).all()
    assert outcome.money.sum() == pytest.approx(sum(record.money for record in outcome.jobs))
    assert outcome.work.sum() == pytest.approx(sum(record.done for record in outcome.jobs), abs=1e-3)


def _at_random(seed: int) -> World:
    chance = Chance(str(seed), "orders")
    sets = {name: Dataset(name, 50e9 * chance.fraction(), (chance.pick("abc"),)) for name in "xyz"}
    jobs = [
        job(
            f"j{number}",
            chance.pick("abc"),
            1 + chance.below(8),
            chance.between(10.0, 600.0),
            submitted=chance.between(0.0, 600.0),
            data=chance.pick("xyz"),
            minimum=1,
            used=chance.between(0.3, 1.0),
        )
        for number in range(12)
    ]
    variation = Steady({number: ((300.0 + 7 * number, chance.pick((0.0, 0.3))), (900.0, 1.0)) for number in range(6)})
    disturbances = Disturbances(failures=0.0005, repair=200.0, cuts=(Cut("b", 400.0, 700.0),))
    its = world(mesh(A, B, C, variation=variation), load(*jobs, **sets), disturbances)
    while (view := its.advance(3600.0)) is not None:
        its.obey([_order(chance, chance.pick(jobs).name) for _ in range(4)])
        assert (view.free >= 0).all()
    return its


def _order(chance: Chance, name: str) -> Order:
    places = chance.order([("a", 1.0), ("b", 1.0), ("c", 1.0)])[: chance.pick((1, 1, 2, 3))]
    shares = tuple(Share(place, "plain", 1 + chance.below(6)) for place in places)
    split = Split.NONE if len(shares) == 1 else chance.pick((Split.PERIODIC, Split.SYNCHRONOUS))
    placement = Placement(shares, split, 50 if split == Split.PERIODIC else 1)
    start, move = Start(name, placement), Move(name, placement)
    orders: tuple[Order, ...] = (start, start, Stop(name), move, Resize(name, 3))
    return chance.pick(orders)


def test_who_wants_little_gets_it_and_the_others_share_the_rest() -> None:
    assert fair_rates({0: 10.0}, [(0,), (0,), (0,)], [2.0, inf, inf]) == [2.0, 4.0, 4.0]


def test_who_is_held_up_elsewhere_leaves_more_to_others() -> None:
    """The example of textbooks: one flow over both links, the first of which carries two others."""
    assert fair_rates({0: 3.0, 1: 5.0}, [(0, 1), (0,), (0,), (1,)], [inf] * 4) == [1.0, 1.0, 1.0, 4.0]


def test_a_link_that_is_cut_stops_its_flows_alone() -> None:
    assert fair_rates({0: 0.0, 1: 5.0}, [(0, 1), (1,)], [inf, inf]) == [0.0, 5.0]


FLOWS = st.lists(
    st.tuples(st.sets(st.integers(0, 4), min_size=1, max_size=3), st.one_of(st.just(inf), st.floats(0.0, 50.0))),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(FLOWS, st.lists(st.floats(0.0, 100.0), min_size=5, max_size=5))
def test_rates_are_max_min_fair(flows: list[tuple[set[int], float]], offered: list[float]) -> None:
    """No link is exceeded; who does not get its wish uses a full link on which nobody gets more."""
    paths, wishes = [tuple(sorted(path)) for path, _ in flows], [wish for _, wish in flows]
    rates = fair_rates(dict(enumerate(offered)), paths, wishes)
    carried = [sum(rate for rate, path in zip(rates, paths, strict=True) if link in path) for link in range(5)]
    assert all(load <= offer + 1e-9 * (1 + offer) for load, offer in zip(carried, offered, strict=True))
    for rate, path, wish in zip(rates, paths, wishes, strict=True):
        assert rate <= wish
        held_up = [
            link
            for link in path
            if carried[link] >= offered[link] - 1e-6
            and all(rate >= other - 1e-6 for other, its in zip(rates, paths, strict=True) if link in its)
        ]
        assert rate == wish or held_up


def test_traffic_takes_the_way_of_the_shortest_round_trip() -> None:
    """Between a and b is a link of their own, but the way by the exchange is shorter; c has two exchanges."""
    ends = (("a", "b", 9.0), ("a", "x", 1.0), ("x", "b", 1.0), ("x", "c", 2.0), ("a", "y", 1.0), ("y", "c", 1.5))
    routes = Routes(["a", "b", "c"], [Link(one, other, 1.0, seconds, 1.0) for one, other, seconds in ends])
    assert routes.paths == {(0, 1): (1, 2), (0, 2): (4, 5)}
    assert routes.round_trips[0].tolist() == [0.0, 2.0, 2.5]
    by_link = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert routes.narrowest(by_link).tolist() == [[inf, 2.0, 5.0], [0.0, inf, 0.0], [0.0, 0.0, inf]]
    assert routes.total(by_link).tolist() == [[0.0, 5.0, 11.0], [inf, 0.0, inf], [inf, inf, 0.0]]


def test_without_links_there_is_no_way() -> None:
    routes = Routes(["a", "b"], [])
    assert routes.paths == {}
    assert routes.narrowest(np.zeros(0)).tolist() == [[inf, 0.0], [0.0, inf]]
    assert routes.round_trips[0, 1] == pytest.approx(inf)


@settings(deadline=None)
@given(FLOWS, st.lists(st.integers(0, 100), min_size=5, max_size=5))
def test_the_order_in_which_flows_are_told_does_not_matter(
    flows: list[tuple[set[int], float]], offered: list[int]
) -> None:
    capacities = {link: float(offer) for link, offer in enumerate(offered)}
    paths, wishes = [tuple(sorted(path)) for path, _ in flows], [wish for _, wish in flows]
    there, back = (fair_rates(capacities, paths[::way], wishes[::way])[::way] for way in (1, -1))
    assert there == pytest.approx(back, abs=1e-9)
