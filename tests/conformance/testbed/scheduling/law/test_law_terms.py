"""Speed of a placed job: worked by hand, small facts of the literature, and laws that hold for all of them.

1. **Steps.** Seconds of a step, and what more devices gain.
2. **Exchanges.** What domains exchange, against what was published.
3. **Quality.** What periodic reconciliation costs in tokens.
4. **Rounds.** Speed in one domain and over several.
"""

from dataclasses import replace
from hashlib import sha256
from math import inf

import numpy as np
import pytest
from conformance.testbed.scheduling.law.law_examples import DEVICES, GIGABIT, JOB, LAW, job, placed
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.law import (
    PUBLISHED,
    Rows,
    Terms,
    bandwidth_for,
    cut_bits,
    gain,
    operations,
    overlapped_utilisation,
    penalties,
    penalty,
    ring_bits,
    ring_latency,
    seconds,
    speed,
    terms,
    useful,
    utilisation,
)
from kuayu_conformance.testbed.scheduling.values import Placement, Share, Split


def test_operations_of_a_small_transformer_by_hand() -> None:
    """72 · 2 · 6 · 1 · 1 · (1 + 6/6 + 24/12) = 864 · 4; recomputed 96 · 2 · 6 · (1 + 1 + 24/16) = 1152 · 3.5."""
    of = {"batch": 2, "sequence": 6, "layers": 1, "hidden": 1, "vocabulary": 24}
    assert operations(**of, recomputed=False) == pytest.approx(3456)
    assert operations(**of, recomputed=True) == pytest.approx(4032)


def test_operations_are_six_for_each_parameter_and_token_and_attention_beside() -> None:
    """GPT-3: 96 layers of width 12 288; 12 L h² parameters without embeddings, and s/6h = 2.8 % for attention."""
    of = operations(batch=1, sequence=2048, layers=96, hidden=12_288, vocabulary=0, recomputed=False)
    assert of == pytest.approx(6 * (12 * 96 * 12_288**2) * 2048 * (1 + 2048 / 6 / 12_288))


def test_a_pipeline_waits_until_it_is_filled() -> None:
    """8e15 operations at half of 8 · 1e14 FLOP/s are 20 s; four stages with twelve micro-batches add 3/12 of it."""
    assert seconds(8e15, 8, 1e14, 0.5) == pytest.approx(20)
    assert seconds(8e15, 8, 1e14, 0.5, stages=4, micro_batches=12) == pytest.approx(25)


def test_a_tenth_that_is_serial_makes_ten_devices_worth_five() -> None:
    assert gain(1, 0.1) == 1
    assert gain(10, 0.1) == pytest.approx(10 / 1.9)
    assert gain(1e9, 0.1) == pytest.approx(10)


def test_who_asked_for_too_much_loses_nothing_when_it_is_taken_away() -> None:
    """A job that keeps half of 16 devices busy runs on 8 as fast as on 16, and slower on 4."""
    of = {"requested": 16, "maximum": 32, "serial": 0.0, "used": 0.5}
    assert speed(16, 1.0, **of) == speed(8, 1.0, **of) == 8
    assert speed(4, 1.0, **of) == 4
    assert speed(32, 1.0, **of) == 16
    assert speed(64, 1.0, **of) == 16, "more than its maximum is of no use"


def test_work_is_counted_so_that_a_job_takes_what_it_states_on_what_it_asked_for() -> None:
    of = {"requested": 16, "maximum": 16, "serial": 0.05, "used": 1.0}
    assert speed(16, 1.0, **of) == 16
    assert speed(16, 2.0, **of) == 32
    assert speed(8, 1.0, **of) == pytest.approx(16 * gain(8, 0.05) / gain(16, 0.05))
    assert speed(8, 1.0, **of) > 8, "the serial share weighs less on fewer devices"


shares = st.floats(0.0, 1.0)


@settings(deadline=None)
@given(st.integers(1, 512), st.integers(1, 512), st.floats(0.05, 1.0), shares, st.integers(0, 512))
def test_a_device_more_never_slows(devices: int, requested: int, used: float, serial: float, more: int) -> None:
    of = {"requested": requested, "maximum": 2 * requested, "serial": serial, "used": used}
    assert speed(devices + more, 1.0, **of) >= speed(devices, 1.0, **of) * (1 - 1e-12)
    assert speed(requested, 1.0, **of) == pytest.approx(used * requested)


@settings(deadline=None)
@given(st.integers(1, 512), st.integers(1, 512), st.integers(1, 1024), st.floats(0.05, 1.0))
def test_no_more_are_busy_than_are_held(devices: int, requested: int, maximum: int, used: float) -> None:
    assert 0 < useful(devices, requested, maximum, used) <= min(devices, maximum)


INTELLECT_1 = {103.0: 0.957, 382.0: 0.856, 469.0: 0.830}
"""S. Jaghouar et al., arXiv:2412.01152: median seconds of an all-reduce (USA; USA and Europe; three continents) between
stretches of 38 minutes, and the utilisation that they report."""


REQUIRED = (
    # billion parameters, seconds of a step, period, share of computing, Gbit/s
    (10, 0.8, 1, 0.5, 104.8),
    (10, 0.8, 10, 0.8, 49.4),
    (10, 0.8, 100, 0.9, 13.3),
    (405, 26.0, 1, 0.9, 268.3),
    (405, 26.0, 50, 0.5, 3.6),
    (405, 26.0, 300, 0.95, 13.3),
    (671, 20.0, 1, 0.5, 323.8),
    (671, 20.0, 10, 0.99, 686.6),
    (671, 20.0, 300, 0.5, 1.7),
)
"""Z. Charles et al., arXiv:2503.09799, table 6, simulated by its authors on a grid of bandwidths with steps of 1.21."""


def test_utilisations_that_intellect_1_reports() -> None:
    """2280 s of computing; the last is 82.9 % by its own figures, where 83.0 % is reported."""
    for all_reduce, reported in INTELLECT_1.items():
        assert utilisation(2280.0, all_reduce) == pytest.approx(reported, abs=0.001)


@pytest.mark.parametrize(("billions", "step", "period", "share", "gigabits"), REQUIRED)
def test_bandwidth_that_low_communication_training_needs(
    billions: float, step: float, period: int, share: float, gigabits: float
) -> None:
    bits = ring_bits(2, 2 * billions * 1e9)
    needed = bandwidth_for(share, step, period, bits, PUBLISHED.overlap)
    assert 1 / 1.46 < needed / 1e9 / gigabits < 1.46
    assert overlapped_utilisation(step, period, bits / needed, PUBLISHED.overlap) == pytest.approx(share)


def test_a_ring_by_hand() -> None:
    """Two domains send the whole gradient each, four send one and a half of it; six messages of half a round trip."""
    assert ring_bits(2, 1e9) == 8e9
    assert ring_bits(4, 1e9) == 12e9
    assert ring_latency(4, 0.02) == pytest.approx(6 * 0.01)


def test_half_of_what_crosses_a_cut_goes_each_way() -> None:
    assert cut_bits(4e9) == 16e9


def test_what_hides_behind_a_backward_pass_costs_nothing() -> None:
    assert overlapped_utilisation(3.0, 1, 2.0, 2 / 3) == 1.0
    assert overlapped_utilisation(3.0, 1, 5.0, 2 / 3) == pytest.approx(3 / 6)
    assert overlapped_utilisation(3.0, 10, 5.0, 2 / 3) == pytest.approx(30 / 33)


def test_tokens_to_the_loss_of_one_model_as_read_off_published_runs() -> None:
    """Between the two that table 7 of arXiv:2501.18512 gives for four replicas and a period of 100.

    They reach 2.73, 2.54 and 2.47 with 25, 100 and 250 billion tokens. One model reaches 2.67 with 25, 2.52 with 100;
    the same losses lie, straight in the logarithm of tokens, at 25 · 4^(0.06/0.19) = 38.7 and at
    100 · 2.5^(0.02/0.07) = 129.9 billion.
    """
    first, second = 4 ** (0.06 / 0.19), 2.5 ** (0.02 / 0.07)
    assert second < penalty(4, 100) < first


def test_two_domains_with_the_period_of_the_baseline() -> None:
    """0.0240 · 1 · ln(1 + 50 / 18.4) = 0.0315; 1.0315^(1 / 0.3658) = 1.0885."""
    assert penalty(2, 50) == pytest.approx(1.0885, abs=1e-4)


def test_one_replica_pays_nothing() -> None:
    assert penalty(1, 500) == 1.0


counts = st.integers(2, 64)


periods = st.integers(1, 100_000)


@settings(deadline=None)
@given(counts, periods, counts, periods)
def test_more_replicas_and_longer_periods_cost_more(m: int, h: int, more: int, later: int) -> None:
    assert 1.0 < penalty(m, h) <= penalty(m + more, h)
    assert penalty(m, h) < penalty(m, h + later)


@settings(deadline=None)
@given(st.lists(st.tuples(counts, periods), min_size=1, max_size=20))
def test_penalties_in_arrays_are_those_of_single_jobs(jobs: list[tuple[int, int]]) -> None:
    told = penalties(np.array([float(m) for m, _ in jobs]), np.array([float(h) for _, h in jobs]))
    assert told.tolist() == [penalty(m, h) for m, h in jobs]


def test_penalties_have_the_same_bytes_on_every_processor() -> None:
    m, h = np.meshgrid(np.arange(1.0, 65.0), np.array([1.0, 10.0, 50.0, 100.0, 500.0, 2000.0]))
    assert sha256(penalties(m, h).tobytes()).hexdigest()[:16] == "41864425a636f8a4"


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
