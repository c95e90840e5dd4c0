"""B4: the linear programme and its rounding by hand, and what it does with a world."""

from math import inf

import numpy as np
import pytest
from conformance.testbed.scheduling.small_world import FAST, PLAIN, Map, RoundLaw, job, load, mesh, of, site, world
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion, Goodput
from kuayu_conformance.testbed.scheduling.baselines.goodput import allocate, gangs
from kuayu_conformance.testbed.scheduling.engine.interfaces import Speed
from kuayu_conformance.testbed.scheduling.engine.state import Outcome
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import Claim, Disturbances, World, play
from kuayu_conformance.testbed.scheduling.law import PublishedLaw
from kuayu_conformance.testbed.scheduling.topology import build
from kuayu_conformance.testbed.scheduling.values import Dataset, DeviceType, Job, Placement
from kuayu_conformance.testbed.scheduling.workload import draw

A, B, QUICK = site("a", 8), site("b", 8), site("q", 8, FAST)


def under(policy: Policy, topology: Map, *jobs: Job, **datasets: Dataset) -> Outcome:
    its = world(topology, load(*jobs, **datasets))
    play(its, policy, 100_000.0)
    return its.outcome()


def counts(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_each_class_is_given_the_pool_where_it_is_worth_most_relative_to_the_other() -> None:
    """Both are best on the first; the second class loses less by going to the other."""
    value = np.array([[1.0, 0.2], [1.0, 0.9]])
    assert allocate(value, counts(4, 4), counts(2, 2), counts(8, 8)).tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_capacity_and_numbers_limit_what_is_given() -> None:
    """Gangs of three in eight devices: two and two thirds; nobody goes where it cannot run or never fits."""
    value = np.array([[1.0, 0.0], [1.0, 1.0]])
    found = allocate(value, counts(3, 9), counts(5, 5), counts(8, 8))
    assert found == pytest.approx(np.array([[8 / 3, 0.0], [0.0, 0.0]]))
    assert allocate(value, counts(3, 9), counts(1, 5), counts(8, 8))[0, 0] == pytest.approx(1.0)
    assert not allocate(np.zeros((2, 2)), counts(1, 1), counts(1, 1), counts(8, 8)).any()


def test_rounding_keeps_whole_gangs_and_gives_the_rest_to_the_largest_fractions() -> None:
    wanted = np.array([[1.4, 0.0], [0.7, -3.0], [0.0, 0.6]])
    assert gangs(wanted, counts(3, 3, 8), counts(9, 9, 9), counts(8, 7)).tolist() == [[1, 0], [1, 0], [0, 0]]


TABLE = st.integers(1, 4).flatmap(
    lambda classes: st.tuples(
        st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=classes, max_size=classes),
        st.lists(st.integers(1, 9), min_size=classes, max_size=classes),
        st.lists(st.integers(0, 50), min_size=classes, max_size=classes),
        st.lists(st.integers(0, 40), min_size=3, max_size=3),
    )
)


@settings(max_examples=100, deadline=None)
@given(TABLE)
def test_neither_the_programme_nor_its_rounding_exceeds_anything(
    drawn: tuple[list[list[float]], list[int], list[int], list[int]],
) -> None:
    value, gang, jobs, capacity = np.array(drawn[0]), *(counts(*each) for each in drawn[1:])
    found = allocate(value, gang, jobs, capacity)
    assert (found.sum(axis=1) <= jobs + 1e-6).all()
    assert (gang @ found <= capacity + 1e-6).all()
    whole = gangs(found, gang, jobs, capacity)
    assert (whole >= 0).all()
    assert (whole.sum(axis=1) <= jobs).all()
    assert (gang @ whole <= capacity).all()
    wild = gangs(10.0 * found - 3.0, gang, jobs, capacity)
    assert (wild.sum(axis=1) <= jobs).all()
    assert (gang @ wild <= capacity).all()


@settings(max_examples=50, deadline=None)
@given(TABLE)
def test_the_programme_is_solved_as_scipy_solves_it(
    drawn: tuple[list[list[float]], list[int], list[int], list[int]],
) -> None:
    """Of several best allocations too, it is the same one to the last bit."""
    value, gang, jobs, capacity = np.array(drawn[0]), *(counts(*each) for each in drawn[1:])
    rows, pools = np.nonzero((value > 0.0) & (gang[:, np.newaxis] <= capacity) & (jobs[:, np.newaxis] > 0))
    found = allocate(value, gang, jobs, capacity)
    assert np.flatnonzero(found).size <= len(rows)
    if len(rows):
        limits = np.zeros((len(gang) + len(capacity), len(rows)))
        limits[rows, np.arange(len(rows))] = 1.0
        limits[len(gang) + pools, np.arange(len(rows))] = gang[rows]
        weights = value[rows, pools] / value.max()
        solved = linprog(-weights, A_ub=limits, b_ub=np.concatenate([jobs, capacity]), method="highs")
        assert np.array_equal(found[rows, pools], np.maximum(solved.x, 0.0))


def test_comparative_advantage_where_b3_takes_the_fastest_for_whoever_comes_first() -> None:
    """The first gains little on the fast devices and the second much: B3 gives them to the first, B4 to the second."""
    devices = {
        PLAIN: DeviceType(PLAIN, 80e9, 1e15, {"u": 1.0, "v": 1.0}, 500.0),
        FAST: DeviceType(FAST, 80e9, 1e15, {"u": 4.0, "v": 1.1}, 500.0),
    }

    class Law(RoundLaw):
        """By profile."""

        def speed(self, job: Job, placement: Placement, granted: object) -> Speed:
            del granted
            share = placement.shares[0]
            return Speed(share.devices * devices[share.device].index[job.profile], 1.0, ())

    base = mesh(A, QUICK)
    jobs = load(*(job(name, "a", 8, 600.0, profile=name) for name in "vu"))
    for policy, expected in ((EarliestCompletion(), ["q", "a"]), (Goodput(0.0), ["a", "q"])):
        its = World(Map(base.sites, base.links, devices, base.variation), jobs, Law(), "small")
        play(its, policy, 10_000.0)
        found = [of(its.outcome(), name).periods[0].placement.shares[0].site for name in "vu"]
        assert found == expected


def test_short_jobs_go_first_behind_the_one_that_waits_if_they_are_favoured() -> None:
    """Six of eight are held until 660; w waits for all. Of the two that are left, either x or y has them until then."""
    jobs = (
        job("h", "a", 6, 600.0),
        job("w", "a", 8, 60.0, submitted=61.0),
        job("x", "a", 2, 500.0, submitted=62.0),
        job("y", "a", 2, 60.0, submitted=63.0),
    )
    for policy, first in ((Goodput(1.0), "y"), (EarliestCompletion(), "x")):
        outcome = under(policy, mesh(A, site("b", 0)), *jobs)
        assert of(outcome, first).periods[0].begin == 120.0


def test_what_the_programme_leaves_open_is_filled_as_b3_does() -> None:
    """No pool holds twelve: it is spread by the rules of B3, and pinned data are where they are."""
    pinned = Dataset("d", 1e9, ("b",), pinned=True)
    jobs = (job("x", "a", 12, 100.0, minimum=9, data="e"), job("y", "a", 4, 100.0, data="d", submitted=300.0))
    outcome = under(Goodput(), mesh(A, B), *jobs, d=pinned, e=Dataset("e", 0.0, ("a", "b")))
    assert len(of(outcome, "x").periods[0].placement.shares) == 2
    assert of(outcome, "y").periods[0].placement.shares[0].site == "b"
    assert all(record.finished < inf for record in outcome.jobs)


def test_a_domain_that_boasts_is_left_alone_for_a_while() -> None:
    its = world(
        mesh(A, B),
        load(job("x", "a", 8, 900.0), job("y", "a", 8, 900.0), job("z", "a", 8, 900.0)),
        Disturbances(claims=(Claim("a", 2.0, 0.0, 1e6),)),
    )
    play(its, Goodput(), 100_000.0)
    assert all(record.finished < inf for record in its.outcome().jobs)
    assert its.outcome().refusals <= 3


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 40), st.sampled_from("abq")), max_size=15))
def test_everything_that_can_run_is_finished_and_nothing_refused(drawn: list[tuple[int, int, str]]) -> None:
    jobs = [
        job(f"j{place:02}", home, size, 30.0 * long, minimum=1, data="d")
        for place, (size, long, home) in enumerate(drawn)
    ]
    outcome = under(Goodput(), mesh(A, B, QUICK), *jobs, d=Dataset("d", 1e9, ("b",)))
    assert all(record.finished < inf for record in outcome.jobs)
    assert outcome.refusals == 0


def test_it_is_the_same_again_in_a_real_scenario_and_asks_for_no_more_than_there_is() -> None:
    topology = build("heterogeneous", 5, "goodput", nodes=8)
    workload = draw("heterogeneous", topology.sites, 1.2, 7200.0, "goodput", devices=topology.devices)

    def played() -> Outcome:
        its = World(topology, workload, PublishedLaw.of(topology), "goodput")
        play(its, Goodput(), 6 * 3600.0)
        return its.outcome()

    first, again = played(), played()
    assert repr(first) == repr(again)
    assert first.refusals == 0
    assert (first.occupied <= first.available * (1 + 1e-9)).all()
