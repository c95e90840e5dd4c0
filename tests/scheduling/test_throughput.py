"""The reference's own speed of a placed job: worked by hand, and laws that hold for all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.scheduling.state import NONE, PERIODIC, PIPELINE, SYNCHRONOUS
from kuayu.scheduling.throughput import SpeedInputs, Speeds, fast, gain, penalty, restart, saving, spread

GIGABIT = 1e9


def asked(requested: int = 16, used: float = 1.0, serial: float = 0.0, maximum: int = 64) -> SpeedInputs:
    """A job whose step takes three seconds, with 2 GB to sum up and 2 GB over a cut."""
    return SpeedInputs(
        np.array([requested]),
        np.array([maximum]),
        np.array([serial]),
        np.array([used]),
        np.array([3.0]),
        np.array([2e9]),
        np.array([2e9]),
    )


def over_two(mode: int, period: int, bandwidth: float) -> Speeds:
    """Sixteen reference devices in two domains that are 20 ms apart."""
    numbers = np.array([mode]), np.array([period])
    figures = np.array([bandwidth]), np.array([0.02])
    return spread(asked(), np.array([16.0]), np.array([1.0]), np.array([2]), *numbers, *figures)


def test_in_one_domain_only_devices_and_index_count() -> None:
    one = spread(
        asked(), np.array([16.0]), np.array([2.0]), np.array([1]), np.array([NONE]), np.array([1]), *[np.ones(1)] * 2
    )
    assert (one.rate[0], one.occupied[0]) == (32.0, 0.0)


def test_a_synchronous_step_of_three_seconds_takes_as_long_as_its_exchange_is_not_hidden() -> None:
    """16 Gbit over 4 Gbit/s and a round trip take 4.02 s, of which 2 s hide."""
    found = over_two(SYNCHRONOUS, 1, 4 * GIGABIT)
    assert found.rate[0] == pytest.approx(48 / 5.02)
    assert found.occupied[0] == pytest.approx(16e9 / 5.02)


def test_every_tenth_step_costs_less_and_counts_less() -> None:
    found = over_two(PERIODIC, 10, 4 * GIGABIT)
    assert found.rate[0] == pytest.approx(480 / 32.02 / float(penalty(np.array([2.0]), np.array([10.0]))[0]))
    assert found.occupied[0] == pytest.approx(16e9 / 32.02)


def test_a_pipeline_is_paced_by_computing_or_by_its_cut() -> None:
    assert over_two(PIPELINE, 1, 8 * GIGABIT).rate[0] == pytest.approx(48 / (3 * 129 / 128 + 0.02))
    assert over_two(PIPELINE, 1, 2 * GIGABIT).rate[0] == pytest.approx(48 / (8 * 129 / 128 / 2 + 0.02), rel=1e-3)


def test_without_bandwidth_nothing_goes_on() -> None:
    for mode in (SYNCHRONOUS, PERIODIC, PIPELINE):
        assert over_two(mode, 1, 0.0).rate[0] == 0.0


def test_half_the_devices_cost_nothing_where_half_are_kept_busy() -> None:
    whole, half = (fast(np.array([n]), np.ones(1), asked(used=0.5))[0] for n in (16.0, 8.0))
    assert whole == half == 8.0


def test_checkpoints_are_read_by_the_smallest_replica_and_written_by_the_largest() -> None:
    assert restart(np.array([122_070_312.5e2]), np.array([10.0]))[0] == pytest.approx(40.0)
    assert saving(np.array([122_070_312.5e2]), np.array([100.0]))[0] == pytest.approx(1.0)


@given(st.floats(0.0, 1.0), st.integers(1, 64), st.integers(1, 64))
def test_more_devices_are_never_slower(serial: float, few: int, more: int) -> None:
    least, most = sorted((few, more))
    assert (
        gain(np.array([float(least)]), np.array([serial]))[0]
        <= gain(np.array([float(most)]), np.array([serial]))[0] + 1e-9
    )


@given(st.integers(2, 8), st.integers(1, 500), st.integers(1, 500))
def test_rarer_reconciliation_takes_more_steps(domains: int, one: int, other: int) -> None:
    often, rarely = sorted((one, other))
    many = np.array([float(domains)])
    assert 1.0 < penalty(many, np.array([float(often)]))[0] <= penalty(many, np.array([float(rarely)]))[0]
