"""Speed of a placed job: worked by hand, and laws that hold for all of them."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from conformance.testbed.scheduling.law.law_examples import DEVICES, GIGABIT, JOB, LAW, job, placed
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.law import PUBLISHED, Rows, Terms, penalty, terms
from kuayu_conformance.testbed.scheduling.values import Placement, Share, Split

SPLITS = (Split.SYNCHRONOUS, Split.PERIODIC, Split.PIPELINE)


def test_in_one_domain_nothing_is_sent_and_index_counts() -> None:
    assert LAW.flows(JOB, placed(16)) == ()
    plain = LAW.speed(JOB, placed(16), ())
    assert (plain.rate, plain.computing, plain.occupied) == (16.0, 1.0, ())
    assert LAW.speed(JOB, placed(16, device="quick"), ()).rate == 32.0


def test_unlike_devices_add_up() -> None:
    """Eight of index 1 and eight of index 2 are worth 24."""
    mixed = Placement((Share("a", "plain", 8), Share("b", "quick", 8)), Split.SYNCHRONOUS)
    assert LAW.speed(JOB, mixed, (inf, inf)).rate == pytest.approx(24.0)


def test_synchronous_over_two_domains_by_hand() -> None:
    """A step of 3 s takes 5.02 s.

    16 Gbit over 4 Gbit/s and a round trip of 20 ms take 4.02 s, of which 2 s hide behind the backward pass.
    """
    both = placed(8, 8, split=Split.SYNCHRONOUS)
    assert [(flow.source, flow.target) for flow in LAW.flows(JOB, both)] == [("a", "b"), ("b", "a")]
    found = LAW.speed(JOB, both, (4 * GIGABIT, 9 * GIGABIT))
    assert found.rate == pytest.approx(48 / 5.02)
    assert found.computing == pytest.approx(3 / 5.02)
    assert found.occupied == pytest.approx((16e9 / 5.02,) * 2)


def test_periodic_over_two_domains_by_hand() -> None:
    """The same exchange every tenth step: 30 s of computing in 32.02 s, and the penalty on top."""
    both = placed(8, 8, split=Split.PERIODIC, period=10)
    found = LAW.speed(JOB, both, (4 * GIGABIT, 4 * GIGABIT))
    assert found.rate == pytest.approx(480 / 32.02 / penalty(2, 10))
    assert found.computing == pytest.approx(30 / 32.02)
    assert found.occupied == pytest.approx((16e9 / 32.02,) * 2)


def test_pipeline_over_two_domains_by_hand() -> None:
    """Filling takes 1/128 more. A cut is crossed in 2 s at 8 Gbit/s, while stages compute for 3 s; in 8 s at 2."""
    both = placed(8, 8, split=Split.PIPELINE)
    assert [(flow.source, flow.target) for flow in LAW.flows(JOB, both)] == [("a", "b"), ("b", "a")]
    wide = LAW.speed(JOB, both, (8 * GIGABIT,) * 2)
    assert wide.rate == pytest.approx(48 / (3 * 129 / 128 + 0.02))
    narrow = LAW.speed(JOB, both, (2 * GIGABIT,) * 2)
    assert narrow.rate == pytest.approx(48 / (8 * 129 / 128 + 0.02))


def test_a_ring_goes_around_and_a_pipeline_does_not() -> None:
    ring = LAW.flows(JOB, placed(4, 4, 4, split=Split.SYNCHRONOUS))
    assert [(flow.source, flow.target) for flow in ring] == [("a", "b"), ("b", "c"), ("c", "a")]
    line = LAW.flows(JOB, placed(4, 4, 4, split=Split.PIPELINE))
    assert {(flow.source, flow.target) for flow in line} == {("a", "b"), ("b", "c"), ("b", "a"), ("c", "b")}


def test_utilisations_of_intellect_1_through_a_placement() -> None:
    """10.2 billion parameters in int8 over 14 nodes, 100 steps of 22.8 s, and nothing hidden.

    Bandwidths of the ring are those that follow from the medians of its all-reduce, arXiv:2412.01152.
    """
    names = [f"n{number}" for number in range(14)]
    placement = Placement(tuple(Share(name, "plain", 8) for name in names), Split.PERIODIC, 100)
    model = replace(JOB.model, gradient=10.2e9, step=22.8)
    run = job(requested=112, maximum=112, model=model)
    its = terms(run, placement, DEVICES, lambda _, __: 0.0, replace(PUBLISHED, overlap=0.0))
    for gigabits, reported in ((1.471, 0.957), (0.397, 0.856), (0.323, 0.830)):
        assert its.speed((gigabits * GIGABIT,) * 14).computing == pytest.approx(reported, abs=0.001)


def test_a_synchronous_split_over_a_public_link_is_a_straw_man() -> None:
    """7 billion parameters with steps of 1 s over 1 Gbit/s: 112 times slower; with a period of 50, 3.5 times."""
    run = job(model=replace(JOB.model, gradient=14e9, step=1.0))
    alone = LAW.speed(run, placed(16), ()).rate
    granted = (GIGABIT,) * 2
    in_step = LAW.speed(run, placed(8, 8, split=Split.SYNCHRONOUS), granted)
    assert alone / in_step.rate == pytest.approx(112.02 + 1 / 3)
    periodic = LAW.speed(run, placed(8, 8, split=Split.PERIODIC, period=50), granted)
    assert alone / periodic.rate == pytest.approx((49 + 112.02 + 1 / 3) / 50 * penalty(2, 50))
    assert 3.4 < alone / periodic.rate < 3.6


@pytest.mark.parametrize("split", SPLITS)
def test_a_partition_stops_it(split: Split) -> None:
    found = LAW.speed(JOB, placed(8, 8, split=split, period=50), (GIGABIT, 0.0))
    assert (found.rate, found.computing, found.occupied) == (0.0, 0.0, (0.0, 0.0))


@pytest.mark.parametrize("split", SPLITS)
def test_more_than_it_wishes_for_is_of_no_use(split: Split) -> None:
    both = placed(8, 8, split=split, period=10)
    wish = LAW.flows(JOB, both)[0].wish
    best = LAW.speed(JOB, both, (inf, inf)).rate
    assert LAW.speed(JOB, both, (wish, wish)).rate == pytest.approx(best, rel=1e-12)
    assert LAW.speed(JOB, both, (0.9 * wish, wish)).rate < best


def test_an_exchange_that_cannot_hide_wishes_for_all() -> None:
    short = job(model=replace(JOB.model, step=0.01))
    assert LAW.flows(short, placed(8, 8, split=Split.SYNCHRONOUS))[0].wish == inf


def test_speed_depends_on_neither_work_nor_stated() -> None:
    both, granted = placed(8, 8, split=Split.PERIODIC, period=10), (GIGABIT,) * 2
    assert LAW.speed(job(work=1.0, stated=1.0), both, granted) == LAW.speed(JOB, both, granted)


@pytest.mark.parametrize(
    ("placement", "why"),
    [
        (placed(), "without devices"),
        (placed(0), "without devices"),
        (placed(8, 8), "without a split"),
        (placed(8, 8, split=Split.PERIODIC, period=0), "period of 0"),
        (Placement((Share("a", "plain", 1), Share("a", "quick", 1)), Split.PIPELINE), "named twice"),
    ],
)
def test_what_is_no_placement_is_refused(placement: Placement, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        LAW.terms(JOB, placement)


drawn = st.builds(
    lambda counts, split, period, step, used, serial: LAW.terms(
        job(used=used, serial=serial, model=replace(JOB.model, step=step)),
        placed(*counts, split=split if len(counts) > 1 else Split.NONE, period=period),
    ),
    st.lists(st.integers(1, 64), min_size=1, max_size=4),
    st.sampled_from(SPLITS),
    st.integers(1, 1000),
    st.floats(0.05, 60.0),
    st.floats(0.1, 1.0),
    st.floats(0.0, 0.5),
)
bandwidths = st.floats(0.0, 400 * GIGABIT, allow_subnormal=False)


@settings(deadline=None)
@given(drawn, bandwidths, st.floats(1.0, 10.0))
def test_more_bandwidth_never_slows_and_no_flow_holds_more_than_it_has(
    its: Terms, bandwidth: float, factor: float
) -> None:
    found = its.speed((bandwidth,) * len(its.pairs))
    assert its.speed((bandwidth * factor,) * len(its.pairs)).rate >= found.rate
    assert 0.0 <= found.computing <= 1.0
    assert all(held <= bandwidth * (1 + 1e-12) for held in found.occupied)


@settings(deadline=None)
@given(st.lists(st.tuples(drawn, bandwidths), min_size=1, max_size=10))
def test_arrays_say_the_same_as_single_jobs(jobs: list[tuple[Terms, float]]) -> None:
    rows = Rows.of([its for its, _ in jobs])
    bandwidth = np.array([granted for _, granted in jobs])
    single = [its.speed((granted,) * len(its.pairs)) for its, granted in jobs]
    assert rows.rates(bandwidth).tolist() == [found.rate for found in single]
    held = [found.occupied[0] if found.occupied else 0.0 for found in single]
    assert rows.occupied(bandwidth).tolist() == held


def test_no_jobs_have_no_rates() -> None:
    assert Rows.of([]).rates(np.zeros(0)).shape == (0,)
