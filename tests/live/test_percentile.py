"""The bound of a percentile holds as often as it says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kuayu.live.findings import percentile


def test_fifty_nine_figures_are_the_first_to_have_a_bound() -> None:
    assert percentile(range(58)) == (55, None)
    assert percentile(range(59)) == (56, 58)


def test_the_bound_covers_the_percentile_often_enough() -> None:
    random = np.random.default_rng(7)
    truth = -np.log(0.05)
    covered = [(percentile(list(random.exponential(size=100)))[1] or 0.0) >= truth for _ in range(1000)]
    assert np.mean(covered) > 0.93


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=120))
def test_the_bound_is_no_less_than_the_estimate(figures: list[float]) -> None:
    estimate, bound = percentile(figures)
    assert sum(each <= estimate for each in figures) >= 0.95 * len(figures)
    assert bound is None or bound >= estimate
