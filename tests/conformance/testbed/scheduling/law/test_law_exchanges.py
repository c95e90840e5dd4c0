"""What domains exchange, against the literature: small cited facts."""

import pytest

from kuayu_conformance.testbed.scheduling.law.terms import (
    PUBLISHED,
    bandwidth_for,
    cut_bits,
    overlapped_utilisation,
    ring_bits,
    ring_latency,
    utilisation,
)

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
    for seconds, reported in INTELLECT_1.items():
        assert utilisation(2280.0, seconds) == pytest.approx(reported, abs=0.001)


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
