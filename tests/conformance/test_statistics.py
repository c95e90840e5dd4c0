"""The bounds against known answers and against their own promise."""

import math
import random
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv
from scipy.stats import binom

from kuayu_conformance.statistics import (
    mean_lower_bound,
    mean_upper_bound,
    proportion_lower_bound,
    quantile,
    quantile_upper_bound,
    rounded,
)


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


@given(st.data())
def test_the_bound_is_that_of_the_beta_distribution_by_scipy(data: st.DataObject) -> None:
    """Clopper and Pearson's limits are quantiles of it; reports show nine digits of a bound."""
    trials = data.draw(st.one_of(st.integers(1, 5_000), st.integers(900_000, 1_000_000)))
    successes = data.draw(st.one_of(st.integers(1, trials), st.integers(max(1, trials - 20), trials)))
    exact = float(betaincinv(successes, trials - successes + 1, 0.05))
    assert proportion_lower_bound(successes, trials) == pytest.approx(exact, rel=1e-13)


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


def test_a_bootstrap_of_like_clusters_knows_their_mean() -> None:
    assert mean_upper_bound([[0.2, 0.4]] * 5, "seed") == pytest.approx(0.3)
    assert mean_lower_bound([[0.2, 0.4]] * 5, "seed") == pytest.approx(0.3)


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=2, max_size=8))
@settings(max_examples=20)
def test_bootstrap_bounds_stand_on_either_side_of_the_median_resample(clusters: list[list[float]]) -> None:
    lower, upper = mean_lower_bound(clusters, "seed"), mean_upper_bound(clusters, "seed")
    everything = [value for cluster in clusters for value in cluster]
    assert min(everything) - 1e-9 <= lower <= upper <= max(everything) + 1e-9


def test_a_bootstrap_draws_clusters_and_not_their_members() -> None:
    """A hundred members of two clusters say little; a hundred clusters say much."""
    two = mean_upper_bound([[0.0] * 50, [1.0] * 50], "seed")
    hundred = mean_upper_bound([[0.0]] * 50 + [[1.0]] * 50, "seed")
    assert two == 1.0
    assert hundred < 0.6


def test_the_bound_is_that_of_the_normal_distribution_where_clusters_are_many() -> None:
    chance = random.Random(9)
    values = [chance.gauss(0.5, 0.1) for _ in range(400)]
    expected = fmean(values) + 1.645 * stdev(values) / math.sqrt(400)
    assert mean_upper_bound([[value] for value in values], "seed") == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("clusters", [[], [[]], [[0.1], []]])
def test_nothing_cannot_be_drawn_from(clusters: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="clusters"):
        mean_upper_bound(clusters, "seed")


def test_a_quantile_is_one_of_the_values() -> None:
    assert [quantile([4.0, 1.0, 3.0, 2.0], q) for q in (0.01, 0.25, 0.5, 0.99)] == [1.0, 1.0, 2.0, 4.0]
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)


def test_the_bound_of_a_99th_percentile_needs_299_values() -> None:
    assert quantile_upper_bound(range(298), 0.99) == math.inf
    assert quantile_upper_bound(range(299), 0.99) == 298


@given(st.integers(0, 20_000), st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]))
def test_the_order_statistic_of_a_bound_is_that_of_the_binomial_by_scipy(n: int, q: float) -> None:
    rank = int(binom.ppf(0.95, n, q))
    assert quantile_upper_bound(range(n), q) == (rank if rank < n else math.inf)


def test_the_bound_lies_above_the_quantile_in_95_of_a_hundred_samples_or_more() -> None:
    chance = random.Random(7)
    above = sum(quantile_upper_bound([chance.random() for _ in range(400)], 0.99) >= 0.99 for _ in range(2000))
    assert above >= 0.94 * 2000
