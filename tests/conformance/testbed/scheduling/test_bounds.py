"""Bounds on small cases that are worked out by hand, and that no baseline comes below them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, permutations, product
from math import ceil, inf

import numpy as np
import pytest
from conformance.testbed.scheduling.small_world import FAST, PLAIN, Map, RoundLaw, job, load, mesh, site, world
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.baselines import (
    EarliestCompletion,
    FirstToAdmit,
    Goodput,
    HomeBackfill,
    HomeFifo,
    WeighedCompletion,
    Weights,
)
from kuayu_conformance.testbed.scheduling.bounds import (
    Instance,
    Option,
    SolverFailure,
    Task,
    capacity,
    cheapest,
    cheapest_seconds,
    front,
    instance,
    makespan,
    needs,
    periods,
    pooled,
    quickest,
    shortest_first,
    soonest,
)
from kuayu_conformance.testbed.scheduling.engine.interfaces import Speed
from kuayu_conformance.testbed.scheduling.engine.state import Outcome
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import World, play
from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.topology import build
from kuayu_conformance.testbed.scheduling.values import Dataset, DeviceType, Job, Placement, Split
from kuayu_conformance.testbed.scheduling.workload import draw

A, B, QUICK = site("a", 8), site("b", 8), site("q", 8, FAST)
SLOT = 60.0


def baselines() -> tuple[Policy, ...]:
    """All of them."""
    greedy = (EarliestCompletion(), WeighedCompletion(Weights(10.0, 0.5)), Goodput(0.5))
    return HomeFifo(), HomeBackfill(), FirstToAdmit(), *greedy


def under(policy: Policy, topology: Map, *jobs: Job, **datasets: Dataset) -> Outcome:
    its = world(topology, load(*jobs, **datasets))
    play(its, policy, 1e6)
    return its.outcome()


def mean_period(outcome: Outcome) -> float:
    return sum(record.finished - record.submitted for record in outcome.jobs) / len(outcome.jobs)


def test_a_job_alone_takes_all_fast_devices_that_it_has_use_for() -> None:
    """4800 of work on sixteen devices, all as fast as the fast ones, are 150 s; one that may have 8 takes 300 s."""
    jobs = load(job("x", "a", 8, 600.0), job("y", "a", 8, 600.0, maximum=8))
    found = needs(mesh(A, QUICK), jobs, RoundLaw())
    assert found.shortest.tolist() == [150.0, 300.0]
    assert found.rates.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    modest = needs(mesh(A, QUICK), jobs, RoundLaw(), jobs.jobs[:1], expanding=False)
    assert modest.shortest.tolist() == [300.0]


def test_pinned_data_bind_a_job_to_their_domain_and_memory_to_a_device() -> None:
    pinned = Dataset("d", 1e9, ("a",), pinned=True)
    jobs = load(job("x", "q", 8, 600.0, data="d"), job("y", "a", 8, 600.0, memory=1e12), d=pinned)
    found = needs(mesh(A, QUICK), jobs, RoundLaw())
    assert found.rates.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert found.shortest.tolist() == [600.0, inf]
    with pytest.raises(ValueError, match="able to run"):
        periods(found)
    with pytest.raises(ValueError, match="able to run"):
        makespan(found)


def test_capacity_lets_each_kind_work_where_it_is_at_its_best() -> None:
    """Half of the work is of each kind, and each is twice as fast at one place.

    That is 16 in each, where a sum of mean indices would say 12 in each.
    """
    devices = {
        PLAIN: DeviceType(PLAIN, 80e9, 1e15, {"u": 1.0, "v": 2.0}, 500.0),
        FAST: DeviceType(FAST, 80e9, 1e15, {"u": 2.0, "v": 1.0}, 500.0),
    }

    class Law(RoundLaw):
        """By profile."""

        def speed(self, job: Job, placement: Placement, granted: Sequence[float]) -> Speed:
            share = placement.shares[0]
            return replace(
                super().speed(job, placement, granted), rate=share.devices * devices[share.device].index[job.profile]
            )

    jobs = load(job("x", "a", 8, 600.0, profile="u"), job("y", "a", 8, 600.0, profile="v"))
    found = needs(replace(mesh(A, QUICK), devices=devices), jobs, Law())
    limit = capacity(found)
    assert limit.throughput == pytest.approx(32.0)
    assert limit.share == pytest.approx([1.0, 1.0])
    assert limit.values @ found.places.devices == pytest.approx(32.0)
    assert capacity(found, np.array([8.0, 4.0])).throughput == pytest.approx(2 * 32.0 / 3)


def test_capacity_is_bound_by_what_only_one_pool_can_do() -> None:
    """Three quarters of the work are pinned to ``a``, which does 8 of it a second; so a third of that comes beside."""
    pinned = Dataset("d", 1e9, ("a",), pinned=True)
    jobs = load(job("x", "a", 8, 600.0, data="d"), job("y", "a", 4, 400.0), d=pinned)
    limit = capacity(needs(mesh(A, QUICK), jobs, RoundLaw()))
    assert limit.throughput == pytest.approx(8.0 * 4 / 3)
    assert limit.values == pytest.approx([4 / 3, 0.0])
    with pytest.raises(ValueError, match="no job"):
        capacity(needs(mesh(A, QUICK), load(job("z", "a", 8, 1.0, memory=1e12)), RoundLaw()))


def test_the_shortest_remaining_goes_first() -> None:
    """The long one is interrupted at 2 for three seconds, and goes on then."""
    assert shortest_first(np.array([0.0, 2.0, 3.0]), np.array([10.0, 2.0, 1.0])).tolist() == [13.0, 4.0, 5.0]
    assert shortest_first(np.array([7.0, 0.0]), np.array([1.0, 1.0])).tolist() == [8.0, 1.0]


def test_bounds_on_the_period() -> None:
    """Two jobs of 1600 on sixteen devices: alone 100 s each; one after the other 100 and 200."""
    jobs = needs(mesh(A, B), load(job("x", "a", 8, 200.0), job("y", "b", 8, 200.0)), RoundLaw())
    found = periods(jobs)
    assert (found.alone, found.ideal, found.least) == pytest.approx((100.0, 150.0, 150.0))


def test_bounds_on_the_makespan() -> None:
    """Sixteen devices have 1600 and 800 to do from 0 on; the latter is pinned to eight, and comes at 150."""
    pinned = Dataset("d", 1e9, ("a",), pinned=True)
    late = job("y", "a", 8, 100.0, data="d", submitted=150.0)
    found = makespan(needs(mesh(A, B), load(job("x", "a", 8, 200.0), late, d=pinned), RoundLaw()))
    assert found.path == pytest.approx(250.0)
    assert found.pinned == pytest.approx(250.0)
    assert found.work == pytest.approx(200.0)
    assert found.least == pytest.approx(250.0)


def test_the_ideal_pool_has_all_devices_in_one_place() -> None:
    """Nine devices fit where there are sixteen, and their data are at hand."""
    pinned = Dataset("d", 1e12, ("b",), pinned=True)
    workload = load(job("x", "a", 9, 100.0, data="d"), d=pinned)
    scenario = pooled(mesh(A, B, QUICK), workload)
    assert [(pool.device, pool.devices, pool.per_node) for pool in scenario.sites[0].pools] == [
        (PLAIN, 16, 8),
        (FAST, 8, 8),
    ]
    its = World(scenario, scenario, RoundLaw(), "pool")
    play(its, EarliestCompletion(), 1e4)
    assert its.outcome().jobs[0].finished == 160.0
    mixed = pooled(mesh(A, site("b", 4, per_node=4)), load(job("x", "a", 9, 100.0)))
    assert [(pool.devices, pool.per_node) for pool in mixed.sites[0].pools] == [(12, 1)]


def test_the_quickest_schedule_is_found() -> None:
    """Short before long on the fast pool, and the third at once on the plain one.

    x and y take 60 s on the fast one, z 600 s: x there at 60, y at 120, z at home at 60 (1200 s), or on the fast one
    at 180 (600 s): ends 120, 180, 780.
    """
    jobs = (job("x", "a", 8, 120.0), job("y", "a", 8, 120.0), job("z", "a", 8, 1200.0))
    best = quickest(instance(mesh(A, QUICK), load(*jobs), RoundLaw(), SLOT))
    assert best.period == pytest.approx((120.0 + 180.0 + 720.0) / 3)
    assert sorted(best.starts) == [60.0, 60.0, 120.0]
    assert soonest(instance(mesh(A, QUICK), load(*jobs), RoundLaw(), SLOT)).makespan == pytest.approx(660.0)


def test_the_front_of_period_and_money() -> None:
    """Two jobs at home, one after the other, cost nothing; either moves for 80 GB (80 s) and one for half the money."""
    data = {"d": Dataset("d", 80e9, ("a",)), "e": Dataset("e", 40e9, ("a",))}
    jobs = (job("x", "a", 8, 600.0, data="d"), job("y", "a", 8, 600.0, data="e"))
    its = instance(mesh(A, B), load(*jobs, **data), RoundLaw(), SLOT)
    points = front(its)
    assert [point.period for point in points] == pytest.approx([(660.0 + 700.0) / 2, (660.0 + 1260.0) / 2])
    assert [point.money for point in points] == pytest.approx([320e9, 0.0])
    assert (points[-1].period, points[-1].money) == (cheapest(its).period, cheapest(its).money)
    assert (points[0].period, points[0].money) == (quickest(its).period, quickest(its).money)


def test_instances_refuse_what_they_cannot_say() -> None:
    with pytest.raises(ValueError, match="read by 2"):
        instance(
            mesh(A, B),
            load(*(job(n, "a", 8, 1.0, data="d") for n in "xy"), d=Dataset("d", 1.0, ("a",))),
            RoundLaw(),
            SLOT,
        )
    with pytest.raises(ValueError, match="nowhere"):
        instance(mesh(A, B), load(job("x", "a", 8, 1.0, memory=1e12)), RoundLaw(), SLOT)
    many = tuple(job(f"j{n}", "a", 1 + n % 7, 60.0 + 97.0 * n) for n in range(14))
    with pytest.raises(SolverFailure):
        quickest(instance(mesh(A, B, QUICK), load(*many), RoundLaw(), SLOT), seconds=0.01)


def every_schedule(its: Instance) -> Iterator[tuple[float, float, float]]:
    """Period, money and makespan of all choices and all orders; each task starts as soon as there is room.

    One of the best is among them, since it never pays to start later.
    """
    for chosen in product(*(task.options for task in its.tasks)):
        for order in permutations(range(len(its.tasks))):
            held: dict[tuple[int, int], int] = {}
            ends = [0.0] * len(its.tasks)
            for number in order:
                option, start = chosen[number], max(1, ceil(its.tasks[number].submitted / its.slot))
                slots = ceil(option.seconds / its.slot)
                while any(
                    held.get((pool, start + later), 0) + devices > its.capacity[pool]
                    for later in range(slots)
                    for pool, devices in option.holding
                ):
                    start += 1
                for later, (pool, devices) in product(range(slots), option.holding):
                    held[pool, start + later] = held.get((pool, start + later), 0) + devices
                ends[number] = start * its.slot + option.seconds
            waited = [(end - task.submitted) * task.weight for end, task in zip(ends, its.tasks, strict=True)]
            weights = sum(task.weight for task in its.tasks)
            yield sum(waited) / weights, sum(option.money for option in chosen), max(ends)


OPTIONS = st.lists(
    st.builds(
        lambda pool, devices, seconds, money: Option(Placement(()), ((pool, devices),), 30.0 * seconds, 5.0 * money),
        st.integers(0, 1),
        st.integers(1, 4),
        st.integers(1, 10),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
TASKS = st.lists(
    st.builds(Task, st.just("x"), st.sampled_from([0.0, 90.0]), st.sampled_from([1.0, 3.0]), OPTIONS),
    min_size=1,
    max_size=3,
)


@settings(max_examples=25, deadline=None)
@given(TASKS)
def test_optima_and_front_are_those_of_all_schedules(tasks: list[Task]) -> None:
    its = Instance(tuple(tasks), (4, 5), SLOT)
    found = set(every_schedule(its))
    assert quickest(its).period == pytest.approx(min(period for period, _, _ in found))
    assert cheapest(its).money == pytest.approx(min(money for _, money, _ in found))
    assert soonest(its).makespan == pytest.approx(min(ends for _, _, ends in found))
    unbeaten = {money: min(period for period, paid, _ in found if paid <= money) for _, money, _ in found}
    expected = sorted(
        {min(m for m, p in unbeaten.items() if p <= period + 1e-6): period for period in unbeaten.values()}.items(),
        reverse=True,
    )
    points = front(its)
    assert [point.money for point in points] == pytest.approx([money for money, _ in expected])
    assert [point.period for point in points] == pytest.approx([period for _, period in expected])


DRAWN = st.lists(st.tuples(st.integers(1, 10), st.integers(1, 5), st.sampled_from("abq")), min_size=1, max_size=3)


@settings(max_examples=20, deadline=None)
@given(DRAWN, st.integers(0, 40))
def test_no_baseline_comes_below_a_bound_and_none_beats_the_optimum(
    drawn: Sequence[tuple[int, int, str]], gigabytes: int
) -> None:
    """All jobs are there from the begin, each with data of its own; they may be too large for a domain."""
    data = {f"d{place}": Dataset(f"d{place}", gigabytes * 1e9, (home,)) for place, (_, _, home) in enumerate(drawn)}
    jobs = tuple(
        job(f"j{place}", home, size, 50.0 * long, minimum=-(-3 * size // 5), maximum=16, data=f"d{place}")
        for place, (size, long, home) in enumerate(drawn)
    )
    topology = mesh(A, B, QUICK)
    found = needs(topology, load(*jobs, **data), RoundLaw())
    its = instance(topology, load(*jobs, **data), RoundLaw(), SLOT)
    best, last, least = quickest(its), soonest(its), cheapest(its)
    assert periods(found).least <= best.period * (1 + 1e-6)
    assert makespan(found).least <= last.makespan * (1 + 1e-6)
    assert best.period <= least.period * (1 + 1e-6)
    assert least.money <= best.money * (1 + 1e-6)
    for policy in baselines():
        outcome = under(policy, topology, *jobs, **data)
        ends = max(record.finished for record in outcome.jobs)
        assert best.period <= mean_period(outcome) * (1 + 1e-6)
        assert last.makespan <= ends * (1 + 1e-6)
        assert least.money <= float(outcome.money.sum()) * (1 + 1e-6) + 1e-6
        assert outcome.work.sum() <= capacity(found).throughput * ends * (1 + 1e-6)


@settings(max_examples=15, deadline=None)
@given(DRAWN)
def test_no_point_of_a_front_is_beaten(drawn: Sequence[tuple[int, int, str]]) -> None:
    data = {f"d{place}": Dataset(f"d{place}", 10e9 * (place + 1), ("a",)) for place in range(len(drawn))}
    jobs = [
        job(f"j{place}", "a", min(size, 8), 50.0 * long, splits=(), data=f"d{place}")
        for place, (size, long, _) in enumerate(drawn)
    ]
    points = front(instance(mesh(A, QUICK), load(*jobs, **data), RoundLaw(), SLOT))
    for before, after in pairwise(points):
        assert before.period < after.period
        assert before.money > after.money


@pytest.mark.parametrize("family", ["heterogeneous", "gravity"])
def test_bounds_hold_in_a_real_scenario(family: str) -> None:
    """By the published law, on five of the real places; of jobs that are finished, which are most."""
    topology = build(family, 5, "bounds", nodes=8)
    workload = draw(family, topology.sites, 0.5, 3600.0, "bounds", devices=topology.devices)
    law = PublishedLaw.of(topology)
    assert any(Split.PERIODIC in each.splits for each in workload.jobs)
    found = needs(topology, workload, law, expanding=False)
    limit = capacity(found.only(np.isfinite(found.shortest)))
    for policy in baselines():
        its = World(topology, workload, law, "bounds")
        play(its, policy, 3 * 86_400.0)
        outcome = its.outcome()
        ends = np.array([record.finished for record in outcome.jobs])
        finished = np.isfinite(ends)
        assert finished.mean() > 0.6
        its_jobs, its_periods = found.only(finished), (ends - found.submitted)[finished]
        assert (its_jobs.shortest <= its_periods * (1 + 1e-9)).all()
        assert periods(its_jobs).least <= its_periods.mean()
        assert makespan(its_jobs).least <= ends[finished].max() * (1 + 1e-9)
        done = replace(found, work=np.array([record.done for record in outcome.jobs]))
        assert cheapest_seconds(done, limit.values).sum() <= limit.values @ found.places.devices * outcome.instant
