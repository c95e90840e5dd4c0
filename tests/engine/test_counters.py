"""Flows follow from counters whatever the counters do."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kuayu.engine.host import Counters, increase

SPAN = 2**32
readings = st.lists(st.integers(0, 2**53), min_size=2, max_size=20)
steps = st.lists(st.integers(0, SPAN - 1), min_size=1, max_size=20)


@given(readings)
def test_a_counter_that_only_grows_yields_all_that_it_grew_by(values: list[int]) -> None:
    values.sort()
    assert sum(increase(a, b) for a, b in pairwise(values)) == values[-1] - values[0]


@given(readings)
def test_no_increase_is_ever_negative(values: list[int]) -> None:
    assert all(increase(a, b) >= 0 for a, b in pairwise(values))


@given(before=st.integers(100, 2**53), after=st.integers(0, 2**53))
def test_a_counter_that_fell_far_was_reset_and_its_increase_is_its_value(before: int, after: int) -> None:
    if after < 0.75 * before:
        assert increase(before, after) == after


@given(before=st.integers(100, 2**53), fallen=st.floats(0, 0.24))
def test_a_counter_that_fell_a_little_slipped_and_gained_nothing(before: int, fallen: float) -> None:
    assert increase(before, before - fallen * before) == 0


@given(start=st.integers(0, SPAN - 1), grown=steps)
def test_a_counter_that_wraps_loses_nothing(start: int, grown: list[int]) -> None:
    seen, total = start, 0.0
    for step in grown:
        shown = (seen + step) % SPAN
        total += increase(seen, shown, SPAN)
        seen = shown
    assert total == sum(grown)


@given(
    before=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 10**9)),
    after=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 10**9)),
    seconds=st.floats(0.001, 1000),
)
def test_a_flow_is_the_sum_over_the_series_that_were_there_before(
    before: dict[str, int], after: dict[str, int], seconds: float
) -> None:
    counters = Counters()
    assert counters.step(0.0, before) is None
    growth = counters.step(seconds, after)
    common = before.keys() & after.keys()
    if not common:
        assert growth is None
    else:
        assert growth is not None
        assert growth.amount == sum(increase(before[name], after[name]) for name in common)
        assert growth.rate == growth.amount / seconds


def test_two_readings_at_one_instant_make_no_flow() -> None:
    counters = Counters()
    counters.step(5.0, {"eth0": 10})
    assert counters.step(5.0, {"eth0": 20}) is None
