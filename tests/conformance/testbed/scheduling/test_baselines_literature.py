"""SRTF and DRF on small cases that are worked out by hand: 8 plain devices a domain unless it is said otherwise."""

from collections.abc import Sequence
from math import ceil, inf, log2

import pytest
from conformance.testbed.scheduling.small_world import FAST, Map, RoundLaw, job, load, mesh, of, site, world
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.checks.scheduling import cells as sch_cells
from kuayu_conformance.testbed.scheduling.baselines import DominantResourceFairness, ShortestRemainingTime
from kuayu_conformance.testbed.scheduling.engine.state import Outcome
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import World, play
from kuayu_conformance.testbed.scheduling.values import Dataset, Job, Placement
from kuayu_conformance.testbed.scheduling.windows import BASELINES, LITERATURE

A, B, QUICK = site("a", 8), site("b", 8), site("q", 8, FAST)


def under(policy: Policy, topology: Map, *jobs: Job, **datasets: Dataset) -> Outcome:
    """What becomes of jobs."""
    its = world(topology, load(*jobs, **datasets))
    play(its, policy, 100_000.0)
    return its.outcome()


def begun(outcome: Outcome, *names: str) -> list[list[float]]:
    """When each of some jobs was given devices, each time."""
    return [[period.begin for period in of(outcome, name).periods] for name in names]


def test_srtf_starts_the_shortest_first() -> None:
    jobs = (job("x", "a", 8, 300.0), job("y", "a", 8, 100.0), job("z", "a", 8, 50.0))
    assert begun(under(ShortestRemainingTime(), mesh(A), *jobs), "x", "y", "z") == [[240.0], [120.0], [60.0]]


def test_srtf_preempts_a_long_job_for_a_short_one() -> None:
    """Stopped at 120 and saved by 130; the short one runs from 180 to 280, and the long one goes on at 320."""
    jobs = (job("x", "a", 8, 10_000.0), job("y", "a", 8, 100.0, submitted=70.0))
    outcome = under(ShortestRemainingTime(), mesh(A), *jobs)
    assert begun(outcome, "x", "y") == [[60.0, 300.0], [180.0]]
    assert (of(outcome, "x").stops, of(outcome, "y").stops) == (1, 0)
    assert of(outcome, "x").finished == 320.0 + 10_000.0 - 60.0


def test_srtf_goes_by_what_remains_and_not_by_what_was_stated() -> None:
    """At 1920 x has 140 s left of 2000, less than the 300 s of y."""
    jobs = (job("x", "a", 8, 2_000.0), job("y", "a", 8, 300.0, submitted=1_900.0))
    outcome = under(ShortestRemainingTime(), mesh(A), *jobs)
    assert begun(outcome, "x", "y") == [[60.0], [2_100.0]]


@pytest.mark.parametrize(("long", "stops"), [(2_000.0, 0), (4_000.0, 8)])
def test_srtf_counts_what_all_victims_lose(long: float, stops: int) -> None:
    """A gang of eight takes 200 s and would displace eight jobs: each loses 340 s, with decisions and checkpoints.

    That is 2720 s for all of them. The gang would wait for 1940 s, or for 3940 s.
    """
    small = [job(f"x{place}", "a", 1, long) for place in range(8)]
    outcome = under(ShortestRemainingTime(), mesh(A), *small, job("y", "a", 8, 200.0, submitted=70.0))
    assert sum(record.stops for record in outcome.jobs) == stops


def test_srtf_preempts_no_more_than_are_needed() -> None:
    """The longest go first, but for one that is not needed once a larger one goes."""
    held = (job("x", "a", 1, 9_000.0), job("y", "a", 4, 8_000.0), job("z", "a", 3, 7_000.0))
    outcome = under(ShortestRemainingTime(), mesh(A), *held, job("s", "a", 4, 60.0, submitted=70.0))
    assert [of(outcome, name).stops for name in "xyzs"] == [0, 1, 0, 0]


def test_srtf_preempts_nobody_of_a_higher_priority() -> None:
    jobs = (job("x", "a", 8, 10_000.0, priority=1), job("y", "a", 8, 100.0, submitted=70.0))
    outcome = under(ShortestRemainingTime(), mesh(A), *jobs)
    assert begun(outcome, "x", "y") == [[60.0], [10_080.0]]


def test_srtf_starts_a_short_job_elsewhere_rather_than_preempt() -> None:
    jobs = (job("x", "a", 8, 10_000.0), job("y", "a", 8, 100.0, submitted=70.0))
    outcome = under(ShortestRemainingTime(), mesh(A, B), *jobs)
    assert begun(outcome, "x", "y") == [[60.0], [120.0]]


class SlowSaving(RoundLaw):
    """One job takes two minutes longer to be saved."""

    def saving(self, job: Job, placement: Placement) -> float:
        """Of ``v``."""
        return super().saving(job, placement) + (120.0 if job.name == "v" else 0.0)


def test_srtf_keeps_what_is_freed_for_whom_it_is_freed() -> None:
    """Four devices are free from 130 on, the others from 250: neither u, nor t that comes at 150, takes them before."""
    jobs = (
        *(job(name, "a", 4, 20_000.0) for name in "uv"),
        job("s", "a", 8, 100.0, submitted=70.0),
        job("t", "a", 4, 9_000.0, submitted=150.0),
    )
    its = World(mesh(A), load(*jobs), SlowSaving(), "small")
    play(its, ShortestRemainingTime(), 100_000.0)
    assert begun(its.outcome(), "s", "t", "u", "v") == [[300.0], [420.0], [60.0, 420.0], [60.0, 9_420.0]]
    assert its.outcome().refusals == 0


def test_drf_shares_devices_between_tenants_who_ask_for_more_than_there_is() -> None:
    """Whose jobs come first does not matter, nor how many there are."""
    jobs = [job(f"p{place}", "a", 4, 1_000.0, tenant="p") for place in range(3)]
    late = job("x", "a", 4, 1_000.0, tenant="x")
    outcome = under(DominantResourceFairness(), mesh(A), *jobs, late)
    assert begun(outcome, "p0", "p1", "p2", "x") == [[60.0], [1_080.0], [1_080.0], [60.0]]


def test_drf_goes_by_the_kind_of_which_a_tenant_holds_most() -> None:
    """Both hold eight devices: p all of the fast ones, x half of the plain ones. So x is next, though it asks later."""
    jobs = (
        job("p0", "q", 8, 6_000.0, tenant="p"),
        job("x0", "a", 8, 6_000.0, tenant="x", submitted=61.0),
        job("p1", "a", 8, 100.0, tenant="p", submitted=121.0),
        job("x1", "a", 8, 100.0, tenant="x", submitted=122.0),
    )
    outcome = under(DominantResourceFairness(), mesh(site("a", 16), QUICK, gigabits=0.001), *jobs, **PLACED)
    assert begun(outcome, "p0", "x0", "x1", "p1") == [[60.0], [120.0], [180.0], [300.0]]


PLACED = {name: Dataset(name, 1e9, (name,)) for name in "aq"}
"""Data that take hours to get elsewhere."""


def test_drf_takes_a_tenants_own_jobs_in_the_order_of_the_queue() -> None:
    jobs = (job("x", "a", 8, 100.0), job("y", "a", 8, 100.0), job("z", "a", 8, 100.0, priority=1))
    assert begun(under(DominantResourceFairness(), mesh(A), *jobs), "x", "y", "z") == [[180.0], [300.0], [60.0]]


def test_drf_keeps_devices_for_a_gang_that_is_next_and_fills_in_what_does_not_delay_it() -> None:
    """The gang can start at 660; of what comes later, w would be through before, v would not."""
    jobs = (
        job("h", "a", 6, 600.0, tenant="h"),
        job("g", "a", 8, 300.0, tenant="g", submitted=61.0),
        job("v", "a", 2, 900.0, tenant="v", submitted=62.0),
        job("w", "a", 2, 400.0, tenant="w", submitted=63.0),
    )
    outcome = under(DominantResourceFairness(), mesh(A), *jobs)
    assert begun(outcome, "h", "g", "v", "w") == [[60.0], [660.0], [960.0], [120.0]]


def test_drf_preempts_nobody() -> None:
    jobs = (job("x", "a", 8, 10_000.0, tenant="p"), job("y", "a", 8, 100.0, tenant="q", submitted=70.0))
    outcome = under(DominantResourceFairness(), mesh(A), *jobs)
    assert begun(outcome, "x", "y") == [[60.0], [10_080.0]]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            *(st.integers(1, 20), st.integers(1, 40), st.sampled_from([0.1, 1.0, 10.0])),
            *(st.sampled_from("abc"), st.sampled_from("pq"), st.integers(0, 1), st.integers(0, 20)),
        ),
        max_size=15,
    )
)
def test_both_finish_everything_that_can_run_without_thrashing(
    drawn: Sequence[tuple[int, int, float, str, str, int, int]],
) -> None:
    """There are no more stops than jobs, or than estimates: one that a job outlives is doubled, as good as another job.

    Of two jobs that last ten times as long as was stated each makes way for the other, and is the shorter one again.
    """
    jobs = [
        job(
            f"j{place:02}",
            home,
            size,
            120.0 * long,
            stated=120.0 * long * factor,
            minimum=1,
            data="d",
            tenant=tenant,
            priority=priority,
            submitted=90.0 * after,
        )
        for place, (size, long, factor, home, tenant, priority, after) in enumerate(drawn)
    ]
    estimates = sum(1 + max(0, ceil(log2(1.0 / factor))) for _, _, factor, *_ in drawn)
    for make in LITERATURE.values():
        outcome = under(make(), mesh(A, B, site("c", 8)), *jobs, d=Dataset("d", 1e9, ("b",)))
        assert all(record.finished < inf for record in outcome.jobs)
        assert outcome.refusals == 0
        assert sum(record.stops for record in outcome.jobs) <= estimates


def test_no_check_plays_them() -> None:
    assert not set(LITERATURE) & {*BASELINES, *sch_cells.ALL, *sch_cells.FULL.beside}
