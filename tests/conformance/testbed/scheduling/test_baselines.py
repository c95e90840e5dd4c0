"""Each baseline on small cases that are worked out by hand: 8 plain devices a domain unless it is said otherwise."""

from collections.abc import Sequence
from math import inf
from zlib import crc32

import pytest
from conformance.testbed.scheduling.small_world import Map, job, load, mesh, of, site, world
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion, FirstToAdmit, HomeBackfill, HomeFifo
from kuayu_conformance.testbed.scheduling.engine.state import Outcome
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import Claim, Disturbances, play
from kuayu_conformance.testbed.scheduling.values import Dataset, Job, Pool, Site, Split

A, B, C = site("a", 8), site("b", 8), site("c", 8)
ALL = (HomeFifo, HomeBackfill, FirstToAdmit, EarliestCompletion)


def under(policy: Policy, topology: Map, *jobs: Job, **datasets: Dataset) -> Outcome:
    """What becomes of jobs."""
    its = world(topology, load(*jobs, **datasets))
    play(its, policy, 20_000.0)
    return its.outcome()


def begun(outcome: Outcome, names: str) -> list[float]:
    """When each of some jobs was given devices first; infinite if never."""
    periods = [of(outcome, name).periods for name in names]
    return [each[0].begin if each else inf for each in periods]


def where(outcome: Outcome, name: str) -> list[tuple[str, int]]:
    """Domains and devices of a job's first placement."""
    return [(share.site, share.devices) for share in of(outcome, name).periods[0].placement.shares]


def test_b0_lets_nobody_pass_who_waits() -> None:
    """Six devices are held until 160; who wants four waits, and who wants two waits behind it."""
    jobs = (job("x", "a", 6, 100.0), job("y", "a", 4, 100.0), job("z", "a", 2, 50.0), job("o", "b", 1, 10.0))
    assert begun(under(HomeFifo(), mesh(A, B), *jobs), "xyzo") == [60.0, 180.0, 180.0, 60.0]


def test_b1_fills_in_what_ends_before_the_first_that_waits_can_start() -> None:
    jobs = (job("x", "a", 6, 100.0), job("y", "a", 8, 100.0), job("z", "a", 2, 500.0), job("s", "a", 2, 90.0))
    assert begun(under(HomeBackfill(), mesh(A, B), *jobs), "xyzs") == [60.0, 180.0, 300.0, 60.0]


def test_b1_fills_in_what_leaves_enough_to_the_first_that_waits() -> None:
    """At 160 eight are free and y needs five: u may hold two beyond that, but then v may not."""
    jobs = (job("x", "a", 4, 100.0), job("y", "a", 5, 100.0), *(job(name, "a", 2, 500.0) for name in "uv"))
    assert begun(under(HomeBackfill(), mesh(A, B), *jobs), "xyuv") == [60.0, 180.0, 60.0, 300.0]


def test_b1_leaves_other_domains_alone() -> None:
    jobs = (job("x", "a", 8, 600.0), job("y", "a", 8, 600.0))
    assert begun(under(HomeBackfill(), mesh(A, B), *jobs), "xy") == [60.0, 660.0]


@pytest.mark.parametrize(
    ("gigabits", "splits", "asked", "least", "expected"),
    [
        (8.0, (Split.PERIODIC,), 12, 1, [("a", 6), ("b", 6)]),  # 0.9 of 12 is more than 6
        (0.5, (Split.PERIODIC,), 12, 1, [("a", 6)]),  # half the bandwidth, half of 10.8 is less than 6
        (8.0, (Split.SYNCHRONOUS,), 12, 1, [("a", 6)]),  # may not be reconciled periodically
        (8.0, (Split.PERIODIC,), 14, 14, [("a", 7), ("c", 7)]),  # the nearest is too small for the rest
        (8.0, (Split.PERIODIC,), 40, 16, [("a", 8), ("c", 8)]),  # nobody is large enough, c has most
        (8.0, (), 12, 7, [("a", 8)]),  # can neither be shrunk to 6 nor split
    ],
)
def test_b1_shrinks_or_splits_a_job_too_large_for_its_home(
    gigabits: float, splits: tuple[Split, ...], asked: int, least: int, expected: list[tuple[str, int]]
) -> None:
    near = site("b", 4 if least in {14, 16} else 8, per_node=4)
    large = job("x", "a", asked, 100.0, minimum=least, splits=splits, data="d")
    outcome = under(HomeBackfill(), mesh(A, near, C, gigabits=gigabits), large, d=Dataset("d", 0.0, ("a", "b", "c")))
    assert where(outcome, "x") == expected
    split = of(outcome, "x").periods[0].placement
    assert (split.split, split.period) == ((Split.PERIODIC, 50) if len(expected) > 1 else (Split.NONE, 1))


def test_b1_reserves_devices_of_both_domains_for_a_split_job() -> None:
    """Five of b are held until 260: the pair has a reservation of six and six then.

    Of the two of b that are left beyond it, y takes both, so that z has to wait; s would hold too many of a.
    """
    jobs = (
        job("h", "b", 5, 200.0),
        job("x", "a", 12, 100.0, minimum=12, data="d", submitted=61.0),
        job("y", "b", 2, 1000.0, submitted=62.0),
        job("z", "b", 1, 1000.0, submitted=63.0),
        job("s", "a", 8, 190.0, submitted=64.0),
    )
    outcome = under(HomeBackfill(), mesh(A, B), *jobs, d=Dataset("d", 0.0, ("a", "b")))
    assert where(outcome, "x") == [("a", 6), ("b", 6)]
    assert begun(outcome, "hxyzs") == [60.0, 300.0, 120.0, 420.0, 420.0]


def test_b1_chooses_the_pool_of_its_home_where_it_is_finished_first() -> None:
    both = Site("a", 0.0, 0.0, (Pool("plain", 1, 8, {}), Pool("fast", 1, 8, {})))
    outcome = under(HomeBackfill(), mesh(both, B), *(job(name, "a", 8, 600.0) for name in "xyz"))
    devices = [of(outcome, name).periods[0].placement.shares[0].device for name in "xyz"]
    assert devices == ["fast", "plain", "fast"]
    assert begun(outcome, "xyz") == [60.0, 60.0, 360.0]


def test_b1_runs_where_its_data_are_if_these_may_not_leave() -> None:
    outcome = under(HomeBackfill(), mesh(A, B, C), job("x", "a", 4, 10.0, data="d"), d=Dataset("d", 1.0, ("c",), True))
    assert where(outcome, "x") == [("c", 4)]


def test_b2_goes_to_the_first_that_has_room_and_nobody_blocks_another() -> None:
    sites = [site(name, 8) for name in "abcd"]
    first = "abcd"[crc32(b"x") % 4 :] + "abcd"[: crc32(b"x") % 4]
    held = [job(f"h{name}", name, 8, 1000.0) for name in first[:2]]
    its = world(mesh(*sites), load(*held, job("x", "a", 8, 100.0, submitted=70.0)))
    play(its, HomeFifo(), 70.0)
    play(its, FirstToAdmit(), 10_000.0)
    assert where(its.outcome(), "x") == [(first[2], 8)]
    full = [job(name, "a", 7, 1000.0) for name in "klmn"]
    outcome = under(FirstToAdmit(), mesh(*sites), *full, job("w", "a", 2, 10.0), job("s", "a", 1, 10.0))
    assert begun(outcome, "klmnws") == [60.0, 60.0, 60.0, 60.0, 1080.0, 60.0]


def test_b2_admits_with_fewer_devices_who_fits_nowhere_and_never_spreads() -> None:
    outcome = under(FirstToAdmit(), mesh(A, B), job("x", "a", 12, 10.0, minimum=8), job("y", "a", 12, 10.0))
    assert where(outcome, "x")[0][1] == 8
    assert begun(outcome, "y") == [inf]


@pytest.mark.parametrize(("gigabytes", "expected"), [(200.0, "q"), (400.0, "a")])
def test_b3_weighs_staging_against_speed(gigabytes: float, expected: str) -> None:
    """Six hundred seconds at home; half of that where devices are fast, and 200 or 400 s for the data to get there."""
    quick = site("q", 8, "fast")
    outcome = under(
        EarliestCompletion(), mesh(A, quick), job("x", "a", 8, 600.0, data="d"), d=Dataset("d", gigabytes * 1e9, ("a",))
    )
    assert where(outcome, "x")[0][0] == expected


def test_b3_waits_for_a_fast_pool_if_that_is_worth_it_and_fills_in_meanwhile() -> None:
    """The fast pool is held until 160. x is finished there at 460, at home at 660; y would delay it, z would not."""
    quick = site("q", 8, "fast")
    jobs = (
        job("h", "q", 8, 200.0, submitted=0.0, memory=1.0),
        job("x", "a", 8, 600.0, submitted=61.0),
        job("y", "a", 4, 500.0, submitted=62.0),
    )
    outcome = under(EarliestCompletion(), mesh(A, quick), *jobs)
    assert where(outcome, "h") == [("q", 8)]
    assert where(outcome, "x") == [("q", 8)]
    assert begun(outcome, "hxy") == [60.0, 180.0, 120.0]
    assert where(outcome, "y") == [("a", 4)]


def test_b3_spreads_over_as_many_domains_as_are_needed() -> None:
    everything = job("x", "a", 24, 100.0, minimum=20, data="d")
    outcome = under(EarliestCompletion(), mesh(A, B, C), everything, d=Dataset("d", 0.0, ("a", "b", "c")))
    assert sorted(where(outcome, "x")) == [("a", 8), ("b", 8), ("c", 8)]


@pytest.mark.parametrize("policy", ALL)
def test_a_domain_that_boasts_is_left_alone_for_a_while(policy: type[HomeFifo]) -> None:
    """It says that it has 16 devices; two jobs of eight both get there in the end."""
    jobs = load(job("x", "a", 8, 900.0), job("y", "a", 8, 900.0))
    its = world(mesh(A, site("b", 8, per_node=8)), jobs, Disturbances(claims=(Claim("a", 2.0, 0.0, 1e6),)))
    play(its, policy(), 100_000.0)
    assert all(record.finished < inf for record in its.outcome().jobs)
    assert its.outcome().refusals <= 3


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 40)), min_size=2, max_size=12))
def test_backfill_never_delays_the_first_that_waits(drawn: Sequence[tuple[int, int]]) -> None:
    """When all durations are as stated, it starts no later than if nobody had passed it."""
    jobs = [job(f"j{place:02}", "a", size, 30.0 * long) for place, (size, long) in enumerate(drawn)]
    plain, filled = (under(policy(), mesh(A, B), *jobs) for policy in (HomeFifo, HomeBackfill))
    names = [each.name for each in jobs]
    starts = [of(plain, name).periods[0].begin for name in names]
    first = next((place for place, start in enumerate(starts) if start > 60.0), 0)
    assert of(filled, names[first]).periods[0].begin <= starts[first]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 40), st.sampled_from("abc")), max_size=15))
def test_every_baseline_finishes_everything_that_can_run(drawn: Sequence[tuple[int, int, str]]) -> None:
    jobs = [
        job(f"j{place:02}", home, size, 30.0 * long, minimum=1, data="d")
        for place, (size, long, home) in enumerate(drawn)
    ]
    for policy in ALL:
        outcome = under(policy(), mesh(A, B, C), *jobs, d=Dataset("d", 1e9, ("b",)))
        assert all(record.finished < inf for record in outcome.jobs)
        assert outcome.refusals == 0
