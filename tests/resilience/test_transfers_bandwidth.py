import numpy as np
import pytest
from resilience.transfer_scenes import link

from kuayu.resilience.network import CAUTIOUS, MEDIAN, Floats, Link, forecast


def varied(seed: int, count: int, correlation: float) -> Floats:
    """Logarithms that wander and come back."""
    chance, made = np.random.default_rng(seed), np.zeros(count)
    for place in range(1, count):
        made[place] = correlation * made[place - 1] + np.sqrt(1 - correlation**2) * chance.standard_normal()
    return 1e8 * np.exp(0.3 * made)


def test_nine_of_ten_means_are_above_the_cautious_quantile() -> None:
    held = []
    for seed in range(60):
        series = varied(seed, 260, 0.9)
        told = forecast((Link("a", "b", series[:240], 0.1),), 5.0)
        held.append(series[240:248].mean() >= told.rates[0, 1, CAUTIOUS])
    assert 0.78 <= np.mean(held) <= 0.98  # 60 windows: a standard error of 4 points around 90 %


def test_a_level_that_moved_is_followed() -> None:
    series = np.concatenate([np.full(200, 1e8), np.full(40, 3e7)]) * np.exp(0.02 * np.sin(np.arange(240)))
    told = forecast((Link("a", "b", series, 0.1),), 5.0)
    assert 2.5e7 < told.rates[0, 0, MEDIAN] < 3.6e7


def test_a_wandering_link_is_forecast_by_what_is_recent_and_a_noisy_one_by_a_long_mean() -> None:
    wandering = forecast((Link("a", "b", varied(1, 240, 0.99), 0.1),), 5.0)
    noisy = forecast((link("a", 1.0, noise=0.3),), 5.0)
    assert wandering.half_lives[0] < noisy.half_lives[0]


def test_outages_count_as_outages_and_not_as_bandwidth() -> None:
    steady = np.full(200, 1e8)
    broken = steady.copy()
    broken[50:62] = broken[150:162] = 0.0
    told = forecast((Link("a", "b", broken, 0.1), Link("c", "b", steady, 0.1)), 5.0)
    assert told.rates[:, 1, MEDIAN] == pytest.approx(1e8)
    assert told.hazards[0] > 2 * told.hazards[1]
    assert 30.0 < told.outage_s < 120.0


def test_quantiles_rise_and_are_finite_whatever_was_measured() -> None:
    rows = (np.zeros(0), np.full(3, np.nan), np.zeros(40), np.array([1e8]), np.array([np.nan, 1e8, 0.0, 2e8]))
    told = forecast(tuple(Link(f"s{row}", "b", each, 0.1) for row, each in enumerate(rows)), 5.0)
    assert np.isfinite(told.rates).all()
    assert (told.rates > 0.0).all()
    assert (np.diff(told.rates, axis=2) >= 0.0).all()
