"""Counters that fall, slip, leap, begin anew, or come from two sources."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.perception.counters import Known, Step, sighting, step

PERIOD = 15_000
"""Milliseconds between two pages."""


def steps(values: Sequence[float], began: Sequence[int | None] | None = None, shortest: float = 0.5) -> list[Step]:
    """What follows from a counter that shows these values, a period apart."""
    known: Known | None = None
    found = []
    for index, value in enumerate(values):
        found.append(step(known, index * PERIOD, value, None if began is None else began[index], shortest))
        known = found[-1].known
    return found


def amounts(values: Sequence[float], began: Sequence[int | None] | None = None) -> list[float | None]:
    return [found.amount for found in steps(values, began)]


def test_a_counter_that_slipped_back_gives_nothing_and_counts_on_from_there() -> None:
    assert amounts([5e15, 5e15 - 4096, 5e15 + 1e5]) == [None, None, 104096]


def test_a_counter_that_was_reset_gives_its_value() -> None:
    assert amounts([5e12, 1e9, 2e9]) == [None, 1e9, 1e9]
    assert amounts([1e6, 3e6, 1e6]) == [None, 2e6, 1e6]
    assert amounts([3, 2]) == [None, 2]  # a small count does not slip


@pytest.mark.parametrize(
    ("values", "last"),
    [
        ([100, 50, 100], 50),  # as much again as since the reset, and just where it had been
        ([150, 300, 150, 50, 200, 305, 115, 265, 415, 150], 150),  # a reset to where it has been, and counted past
        ([150, 150, 150, 50, 150], 100),  # it stood still, which is no pace
        ([5e12, 3e12, 5.1e12], 2.1e12),
    ],
)
def test_a_counter_that_was_reset_may_come_by_where_it_had_been(values: list[float], last: float) -> None:
    found = steps(values)
    assert not any(each.returned for each in found)
    assert found[-1].amount == last


@given(st.lists(st.tuples(st.integers(1, 150), st.booleans()), min_size=2, max_size=30))
def test_resets_of_a_counter_that_goes_on_evenly_are_no_returns(gains: list[tuple[int, bool]]) -> None:
    values, counted = [0.0], 0.0
    for gain, reset in gains:
        gain += 3000  # noqa: PLW2901 - even enough that no rise is a leap
        resets = reset and gain < 0.75 * values[-1]
        values.append(gain if resets else values[-1] + gain)
        counted += gain
    found = steps(values)
    assert not any(each.returned for each in found)
    assert sum(each.amount or 0 for each in found) == counted


@pytest.mark.parametrize("blank", [0, 12, 1e6])
def test_a_value_that_goes_on_where_it_was_is_compared_with_that(blank: float) -> None:
    *_, dip, back = steps([5e12, 5.0001e12, blank, 5.0003e12])
    assert dip.amount == blank
    assert back.amount == pytest.approx(2e8)
    assert (back.seconds, back.returned) == (30.0, True)
    assert not back.known.alternates


def test_a_leap_upwards_and_back_is_no_reset() -> None:
    *_, back = steps([5e12, 5.0001e12, 8e14, 5.0003e12])
    assert back.amount == pytest.approx(2e8)
    assert back.seconds == 30.0


@pytest.mark.parametrize(
    "values",
    [
        [5.0e12, 1.0e9, 5.001e12, 1.1e9],
        [1.0e9, 5.0e12, 1.1e9, 5.001e12],
        [5.0e12, 3.0e12, 5.001e12, 3.001e12],
        [5.0e12, 5.001e12, 1.0e9, 1.1e9, 5.003e12, 5.004e12, 1.2e9],
        [5.0e12, 1.0e9, 7.0e10, 5.001e12, 1.1e9, 7.01e10],
    ],
)
def test_two_sources_under_one_identity_are_told(values: list[float]) -> None:
    last = steps(values)[-1]
    assert last.known.alternates
    assert last.amount is None


@pytest.mark.parametrize(
    "values",
    [
        [5.0e12, 4.0e12, 5.001e12, 4.001e12],
        [3.0e12, 2.5e12, 3.001e12, 2.501e12, 3.002e12],
        [2.5e12, 3.0e12, 2.501e12, 3.001e12, 2.502e12],
        [3.0e12, 3.0001e12, 2.5e12, 2.5001e12, 3.0002e12, 3.0003e12, 2.5002e12],
    ],
)
def test_two_sources_are_told_too_where_their_counters_are_less_than_a_quarter_apart(values: list[float]) -> None:
    """Cloned machines of like age: node_exporter's disk and port counters fall by less than a reset would."""
    found = steps(values)
    assert found[-1].known.alternates
    assert max(each.amount or 0 for each in found[2:]) <= 2e9


@pytest.mark.parametrize("garbage", [808334905, 4294967290, 2**63])
def test_a_small_count_goes_on_after_a_leap_that_no_fault_counter_makes(garbage: float) -> None:
    """AMD's gpu_ecc_uncorrect_total, Hygon's dcu_ue_count: what was counted before is not counted again."""
    *_, back, later = steps([3, garbage, 3, 4])
    assert (back.amount, back.returned, later.amount) == (0, True, 1)
    assert amounts([0, garbage, 2]) == [None, garbage, 2]


@given(st.floats(1e9, 1e15), st.lists(st.tuples(st.floats(1e5, 1e8), st.booleans()), min_size=2, max_size=20))
def test_small_slips_of_a_kernel_s_counter_are_no_second_source(first: float, gains: list[tuple[float, bool]]) -> None:
    values = [first]
    for gain, slips in gains:
        values.append(values[-1] - 4096 if slips else values[-1] + gain)
    found = steps(values)
    assert not any(each.known.alternates for each in found)


def test_a_conflict_that_is_over_is_forgotten_after_ten_minutes() -> None:
    known = steps([5.0e12, 1.0e9, 5.001e12, 1.1e9])[-1].known
    later = step(known, 3 * PERIOD + 601_000, 1.2e9)
    assert not later.known.alternates
    assert later.amount == pytest.approx(1e8)


@given(gains=st.lists(st.floats(0, 1e9), min_size=2, max_size=30))
def test_a_counter_that_only_grows_yields_all_that_it_grew_by(gains: list[float]) -> None:
    values = [1e6]
    for gain in gains:
        values.append(values[-1] + gain)
    found = steps(values)
    assert not any(each.returned for each in found)
    assert sum(each.amount or 0 for each in found) == pytest.approx(values[-1] - values[0])


@given(st.lists(st.floats(0, 2**53), min_size=2, max_size=20))
def test_no_amount_is_ever_negative(values: list[float]) -> None:
    assert all(found.amount is None or found.amount >= 0 for found in steps(values))


def test_a_start_time_tells_a_reset_that_the_values_do_not() -> None:
    assert amounts([3, 5], [-1_000_000, PERIOD - 10_000]) == [None, 5]
    assert amounts([3, 5], [-1_000_000, -1_000_000]) == [None, 2]
    assert amounts([1e6, 10], [-1_000_000, -1_000_400]) == [None, None]  # the same run: it was not reset
    assert amounts([3, 5], [-1_000_000, PERIOD]) == [None, None]  # a stream whose zero is not known
    assert amounts([3, 5, 9], [-1_000_000, PERIOD, PERIOD]) == [None, None, 4]
    assert amounts([3, 5], [None, PERIOD - 10_000]) == [None, 5]  # an agent that states it only since
    assert amounts([3, 5], [None, -1_000_000]) == [None, 2]


def test_a_start_time_that_drifts_while_a_counter_goes_on_is_no_reset() -> None:
    """Uptimes in whole minutes, clocks that are put right, agents that state their own start or the point before."""
    goes_on = [5e9 + 1e7 * page for page in range(6)]
    for drift in (
        [0, 30_000, 0, 45_000, 15_000, 59_000],
        [page * 2_500 for page in range(6)],
        [-page * 2_500 for page in range(6)],
    ):
        found = steps(goes_on, [moment - 9_000_000 for moment in drift])
        assert [each.amount for each in found] == [None, *[1e7] * 5]
        assert not any(each.returned or each.known.alternates for each in found)
    previous = [page * PERIOD - PERIOD for page in range(6)]
    assert amounts(goes_on, previous) == [None, *[1e7] * 5]
    assert amounts(goes_on, [None, None, 1 * PERIOD + 3_000, 1 * PERIOD + 3_000, None, None]) == [None, *[1e7] * 5]
    assert amounts([5e9, 4e9, 4.1e9], [-9_000_000, PERIOD - 9_000, PERIOD - 9_000]) == [None, 4e9, 1e8]
    assert amounts([3, 5, 9], [-9_000_000, -8_970_000, -9_000_000]) == [None, 2, 4]


def test_start_times_of_two_sources_are_told() -> None:
    found = steps([3e9, 1e6, 3.1e9, 2e6], [-9_000_000, -5_000, -9_000_000, -5_000])
    assert found[-1].known.alternates
    assert [each.amount for each in found[2:]] == [None, None]
    # also where their counters are a twentieth apart
    for starts in ([-9_000_000, -8_800_000] * 3, [-8_800_000, -9_000_000] * 3):
        found = steps([1_000_000, 1_050_000, 1_000_300, 1_050_300, 1_000_600, 1_050_600], starts)
        assert found[-1].known.alternates
        assert [each.amount for each in found[3:]] == [None] * 3


def test_no_rate_is_taken_over_a_moment_and_nothing_is_lost() -> None:
    known = step(None, 0, 1000.0).known
    moment = step(known, 40, 2000.0, shortest=0.5)
    assert moment.amount is None
    later = step(moment.known, 10_000, 3000.0, shortest=0.5)
    assert (later.amount, later.seconds) == (2000.0, 10.0)


def test_hardware_that_is_replaced_is_no_conflict_and_hardware_that_alternates_is() -> None:
    known = None
    for index, identity in enumerate((1.0, 1.0, 2.0, 2.0)):
        known = sighting(known, index * PERIOD, identity)
    assert known is not None
    assert known.rises == known.falls == 0
    for index, identity in enumerate((1.0, 2.0), start=4):
        known = sighting(known, index * PERIOD, identity)
    assert known.alternates


@given(st.lists(st.floats(0, 2**53), min_size=1, max_size=8))
def test_what_is_remembered_survives_being_kept(values: list[float]) -> None:
    known = steps(values)[-1].known
    assert Known.from_wire(known.to_wire()) == known


def test_what_earlier_versions_kept_is_read() -> None:
    assert Known.from_wire([5, 7.0]) == Known(5, 7.0)
