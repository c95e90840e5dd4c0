"""The bounds against known answers and against their own promise."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from kuayu_conformance.statistics import proportion_lower_bound, rounded


@pytest.mark.parametrize(
    ("successes", "trials", "lower"),
    [
        # All right: the bound is 0.05 ** (1 / n) by hand.
        (300, 300, 0.05 ** (1 / 300)),
        (149, 149, 0.05 ** (1 / 149)),
        (0, 300, 0.0),
        # Lower ends of two-sided 90 % limits of Clopper and Pearson, as tables give them to four places.
        (5, 20, 0.1041),
        (15, 20, 0.5444),
        (1, 10, 0.0051),
        (7, 10, 0.3934),
    ],
)
def test_bounds_are_those_of_the_tables(successes: int, trials: int, lower: float) -> None:
    assert proportion_lower_bound(successes, trials) == pytest.approx(lower, abs=5e-5)


def test_sample_sizes_that_the_checks_rely_on() -> None:
    """149 right ones support 98 %, 148 do not; 2 995 support 99.9 %; 450 forgive three for 98 %, not four."""
    assert proportion_lower_bound(149, 149) >= 0.98 > proportion_lower_bound(148, 148)
    assert proportion_lower_bound(2995, 2995) >= 0.999 > proportion_lower_bound(2994, 2994)
    assert proportion_lower_bound(447, 450) >= 0.98 > proportion_lower_bound(446, 450)


@given(st.integers(1, 60), st.floats(0.01, 0.99))
def test_the_bound_is_wrong_in_at_most_one_case_of_twenty(trials: int, truth: float) -> None:
    outcomes = range(trials + 1)
    wrong = sum(binom.pmf(k, trials, truth) for k in outcomes if proportion_lower_bound(k, trials) > truth)
    assert wrong <= 0.05 + 1e-9


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_bound_is_never_above_the_estimate(right: int, wrong: int) -> None:
    trials = right + wrong
    lower = proportion_lower_bound(right, trials)
    assert 0 <= lower <= (right / trials if trials else 0)


def test_nothing_observed_supports_nothing() -> None:
    assert proportion_lower_bound(0, 0) == 0


@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5)])
def test_impossible_counts_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes in"):
        proportion_lower_bound(successes, trials)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_keeps_nine_digits_and_is_settled(value: float) -> None:
    once = rounded(value)
    assert rounded(once) == once
    assert math.isclose(once, value, rel_tol=1e-8, abs_tol=1e-300)
