"""Cohorts, worked by hand in a world of whole numbers: two domains of eight plain devices."""

import json
from collections.abc import Mapping, Sequence

import pytest
from conformance.testbed.scheduling.small_world import RoundLaw, at, job, load, mesh, site

from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.engine.world import CALM, Disturbances, play
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, Timing, ideal, scenario
from kuayu_conformance.testbed.scheduling.values import Job, Placement, Share, Split
from kuayu_conformance.testbed.scheduling.windows import BASELINES, cohort, play_window, window_result_of

HOUR = 3600.0
TIMING = Timing(120.0, 600.0, 1200.0)
LATER = job("later", "a", 8, 10_000.0, submitted=1900.0)
"""Comes after the window: the world goes on."""


def made(*jobs: Job, timing: Timing = TIMING, disturbances: Disturbances = CALM) -> Scenario:
    topology = mesh(site("a", 8), site("b", 8), tariff=1e-9)
    return Scenario(Cell("by hand", 1.0), timing, "s", topology, load(*jobs), RoundLaw(), disturbances)


class Script:
    """Orders that are known beforehand."""

    def __init__(self, orders: Mapping[float, Sequence[Order]]) -> None:
        self._orders = orders

    def decide(self, view: View) -> Sequence[Order]:
        """Those of the instant."""
        return self._orders.get(view.now, ())


def test_a_window_is_scored_by_what_was_submitted_in_it_and_what_was_done_in_it() -> None:
    """At 60 *warm* takes a for 200 s; *first* has it from 300 to 600, and *second* until 1000."""
    its = made(
        job("warm", "a", 8, 200.0),
        job("first", "a", 8, 300.0, submitted=150.0),
        job("second", "a", 8, 400.0, submitted=180.0),
        LATER,
    )
    played = play_window(its, BASELINES["B1"](), "B1")
    first, second = played.jobs
    assert (first.period, second.period) == (600.0 - 150.0, 1000.0 - 180.0)
    assert first.finished
    assert second.finished
    assert (first.alone, first.slowdown, second.slowdown) == (300.0, 1.0, 820.0 / 600.0)
    assert played.work == 8 * (140.0 + 300.0 + 120.0), "from 120 to 720"
    assert played.capacity == 16 * 600.0
    assert played.utilisation == pytest.approx(4480.0 / 9600.0)
    assert (played.queued_before, played.queued) == (0.0, 0.0)
    assert played.job_hours == (140.0 + 300.0 + 120.0) / HOUR
    assert (played.money, played.bits, played.migrations, played.forced_stops, played.unfinished) == (0, 0, 0, 0, 0)


def test_what_waits_at_the_end_of_a_window_is_work_in_days() -> None:
    its = made(job("first", "a", 8, 2000.0, submitted=150.0), job("second", "a", 8, 864.0, submitted=180.0))
    played = play_window(its, BASELINES["B0"](), "B0")
    assert played.queued == pytest.approx(8 * 864.0 / (16 * 86_400.0))


def test_what_is_left_of_a_job_goes_on_at_the_pace_of_what_it_was_given() -> None:
    """By 1920 it has run 1740 s on 8 devices; all 16 would have been faster, but that is not what the policy did."""
    its = made(job("long", "a", 8, 10_000.0, submitted=150.0))
    (long,) = play_window(its, BASELINES["B1"](), "B1").jobs
    assert (long.finished, long.done) == (False, 8 * 1740.0)
    assert long.imputed == pytest.approx(10_000.0 - 1740.0)
    assert long.period == pytest.approx(1920.0 - 150.0 + long.imputed)


def test_a_job_that_was_stopped_goes_on_where_it_was_last() -> None:
    its = made(job("halved", "a", 8, 10_000.0, submitted=150.0, minimum=4), job("large", "a", 9, 1.0))
    orders: dict[float, list[Order]] = {180.0: [Start("halved", at("a", 4))], 600.0: [Stop("halved")]}
    (halved,) = play_window(its, Script(orders), "script").jobs
    assert halved.done == 4 * 420.0
    assert halved.imputed == pytest.approx((8 * 10_000.0 - halved.done) / 4)


def test_a_job_that_was_never_given_devices_goes_on_in_the_best_pool_with_room() -> None:
    """Four devices are left in a and none in b; with all taken, any pool that is large enough."""
    few = job("few", "a", 4, 1000.0, submitted=150.0, maximum=8)
    holders = [job("other", "b", 8, 1e6), job("one", "a", 4, 1e6), job("more", "a", 4, 1e6)]
    orders: dict[float, list[Order]] = {60.0: [Start("other", at("b", 8)), Start("one", at("a", 4))]}
    (waits,) = play_window(made(*holders, few), Script(orders), "script").jobs
    assert waits.imputed == pytest.approx(1000.0)
    orders[60.0].append(Start("more", at("a", 4)))
    (waits,) = play_window(made(*holders, few), Script(orders), "script").jobs
    assert waits.imputed == pytest.approx(500.0)


def test_policies_are_asked_every_minute_of_what_is_counted_and_every_ten_after_it() -> None:
    asked: list[float] = []

    class Silent:
        def decide(self, view: View) -> Sequence[Order]:
            asked.append(view.now)
            return ()

    play_window(
        made(job("waits", "a", 8, 1.0, submitted=150.0), timing=Timing(120.0, 600.0, 9360.0, 3600.0)), Silent(), "x"
    )
    assert asked == [*range(180, 3601, 60), *range(4200, 10081, 600)]


def test_demand_goes_on_at_the_same_level_while_a_window_drains() -> None:
    """What jobs would hold had each started at once, by day: a job of weeks may fill a day alone, but none is empty."""
    day = 24 * HOUR
    its = scenario(Cell("reference", 0.8, nodes=8), Timing(6 * HOUR, 8 * HOUR, 4 * day + 10 * HOUR, day), "drain")
    jobs = [(each.submitted, each.work / each.used / each.requested, each.requested) for each in its.workload.jobs]

    def held(since: float, until: float) -> float:
        return sum(n * max(0.0, min(begin + lasts, until) - max(begin, since)) for begin, lasts, n in jobs)

    first, *later = (held(day * number, day * (number + 1)) for number in range(5))
    assert all(0.9 < each / first < 2.0 for each in later)
    assert sum(each < 1.1 * first for each in later) >= 3


def test_whoever_holds_jobs_back_gains_nothing_by_it() -> None:
    its = made(*(job(f"j{number}", "a", 8, 500.0, submitted=150.0) for number in range(3)))
    served, held = (play_window(its, policy, "x") for policy in (BASELINES["B1"](), Script({})))
    assert held.unfinished == 3
    pairs = zip(served.jobs, held.jobs, strict=True)
    assert all(after.period > before.period for before, after in pairs)


def test_interruptions_moves_and_splits_are_told_apart() -> None:
    """Checkpoints take 10 s to write and 20 s to go on from.

    - *stopped* runs from 180 to 300, waits until 420, and runs again from 440 on.
    - *moved* stands still for 10 + 16 + 20 s while 14 GB of it go over the 7 Gbit/s that *wide* leaves, and for 30 s
      when it is given more devices.
    - *wide* does 1600 of work at 3.6 a second, and holds a gigabit a second each way.
    """
    wide = Placement((Share("a", "plain", 2), Share("b", "plain", 2)), Split.PERIODIC, 50)
    its = made(
        job("stopped", "a", 2, 400.0, submitted=150.0),
        job("moved", "a", 2, 400.0, submitted=150.0),
        job("wide", "a", 4, 400.0, submitted=150.0),
        job("large", "a", 9, 1.0, submitted=150.0),
    )
    orders: dict[float, list[Order]] = {
        180.0: [Start("stopped", at("a", 2)), Start("moved", at("a", 2)), Start("wide", wide)],
        300.0: [Stop("stopped"), Move("moved", at("b", 2))],
        420.0: [Start("stopped", at("a", 2))],
        480.0: [Resize("moved", 4)],
    }
    played = play_window(its, Script(orders), "script")
    stopped, moved, spread, _ = played.jobs
    assert stopped.interrupted_seconds == 140.0
    assert stopped.lived_seconds == 540.0
    assert moved.interrupted_seconds == pytest.approx(46.0 + 30.0)
    assert spread.interrupted_seconds == 0.0
    assert (played.migrations, played.forced_stops) == (2, 1)
    assert [each.spanning for each in played.jobs] == [False, False, True, False]
    assert [each.larger for each in played.jobs] == [False, False, False, True]
    assert spread.money == played.money_of_spanning == pytest.approx(2 * 1600.0 / 3.6)
    assert played.money - played.money_of_spanning == pytest.approx(112.0)
    assert moved.money == pytest.approx(112.0)
    assert played.work_of_spanning == pytest.approx(1600.0)


def test_a_domain_that_is_slow_in_practice_could_not_have_done_more() -> None:
    jobs = (job("one", "a", 8, 100.0, submitted=150.0), LATER)
    scenarios = [made(*jobs, disturbances=Disturbances(slow=each)) for each in ({}, {"b": 0.5})]
    calm, slow = (play_window(each, BASELINES["B1"](), "B1") for each in scenarios)
    assert (calm.capacity, slow.capacity) == (16 * 600.0, 12 * 600.0)


def test_all_policies_have_the_same_world_and_the_same_cohort() -> None:
    its = scenario(Cell("reference", 1.0, nodes=4), Timing(2 * HOUR, 4 * HOUR, 6 * HOUR), "same")
    known = cohort(its)
    played = {name: play_window(its, BASELINES[name](), name, known) for name in ("B0", "B1", "B3")}
    again = play_window(its, BASELINES["B3"](), "B3")
    assert again == played["B3"]
    facts = {tuple((job.submitted, job.work, job.alone) for job in each.jobs) for each in played.values()}
    assert len(facts) == 1
    assert all(0.0 < each.utilisation <= 1.0 for each in played.values())
    for each in played["B3"].jobs:
        assert each.period >= each.alone * (1 - 1e-9) or each.devices > 1, "on what it asks for"
    assert window_result_of(json.loads(json.dumps(again.as_json()))) == again


def test_time_in_slices_is_the_same_time() -> None:
    its = scenario(Cell("partition", 1.0, nodes=4), Timing(0.0, 6 * HOUR, 0.0), "slices")
    whole, slices = its.world(), its.world()
    play(whole, EarliestCompletion(), its.timing.horizon)
    policy = EarliestCompletion()
    for minute in range(7, 361, 7):
        play(slices, policy, min(minute * 60.0, its.timing.horizon))
    play(slices, policy, its.timing.horizon)
    assert repr(whole.outcome()) == repr(slices.outcome())


def test_a_window_without_jobs_is_none() -> None:
    with pytest.raises(ValueError, match="no job"):
        cohort(made(job("early", "a", 8, 100.0)))


def test_in_the_ideal_pool_a_job_of_two_domains_runs_as_in_one() -> None:
    """It starts at 180 and takes 400 s on all 16 devices, where two domains lose a tenth."""
    its = made(job("large", "a", 16, 400.0, submitted=150.0, minimum=16))
    apart, together = (play_window(each, BASELINES["B3"](), "B3") for each in (its, ideal(its)))
    assert apart.jobs[0].period == pytest.approx(30.0 + 400.0 / 0.9)
    assert together.jobs[0].period == pytest.approx(430.0)
    assert (together.money, together.jobs[0].spanning) == (0.0, False)
    assert apart.money > 0.0


def test_a_policy_decides_before_its_window_begins() -> None:
    """B1 starts *early* at the first minute; a script that orders nothing has it wait."""
    its = made(job("early", "a", 8, 864.0), job("first", "a", 8, 60.0, submitted=150.0))
    waits = [play_window(its, policy, "x").queued_before for policy in (BASELINES["B1"](), Script({}))]
    assert waits == [0.0, pytest.approx(8 * 864.0 / (16 * 86_400.0))]
