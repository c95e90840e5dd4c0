"""Series as they are met: gaps, zeros for missing values, spikes, jumps at the same time of the day or week."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from forecast.asked import REVISION, asking, lasting, running, series

from kuayu.forecast.forecasting import forecast, reserve
from kuayu.forecast.requests import Floats
from kuayu.forecast.series import change, cleaned, filled
from kuayu.refusals import Impossible

DAY, HOUR = 144, 6
"""Steps of ten minutes."""

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def ahead(values: Any, *, step: float = 600.0, horizons: tuple[float, ...] = (600.0, 3600.0)) -> list[list[float]]:
    """Median and quantiles 0.1 and 0.9 at each horizon; values that are not numbers are missing."""
    told = [None if np.isnan(value) else float(value) for value in np.asarray(values, dtype=float)]
    now = MONDAY + timedelta(seconds=step * (len(told) - 1))
    observed = {"id": "s", "quantity": "demanded_devices", "domain": "d", "begin": "2026-03-02T00:00:00Z"}
    request = {
        "revision": REVISION,
        "now": now.isoformat().replace("+00:00", "Z"),
        "series": [observed | {"step": step, "values": told}],
        "horizons": list(horizons),
        "levels": [0.1, 0.9],
    }
    points = forecast(request)["forecasts"][0]["points"]
    return [[each["expected"], *(one["value"] for one in each["quantiles"])] for each in points]


def nights(
    days: int, begin: int, length: int, low: float = 64, high: float = 256, *, day: int = DAY, noise: float = 0.0
) -> Floats:
    """Every day from a step on and for so many steps, another level, whole devices."""
    since = (np.arange(days * day) - begin) % day
    values = np.where(since < length, high, low).astype(float)
    return np.maximum(np.round(values + np.random.default_rng(7).normal(0, noise, len(values))), 0) if noise else values


def daily(days: int = 7) -> Floats:
    return np.round(40 + 20 * np.cos(2 * np.pi * (np.arange(days * DAY + 1) / DAY - 0.6)))


def test_a_gap_leaves_the_forecast_near_that_of_the_whole_series() -> None:
    whole = daily()
    holed = whole.copy()
    holed[500:560] = np.nan
    for (expected, low, high), (wanted, *_) in zip(ahead(holed), ahead(whole), strict=True):
        assert low <= wanted <= high
        assert expected == pytest.approx(wanted, abs=2)


@pytest.mark.parametrize("gap", [1, 5, 30])
@pytest.mark.parametrize("zeros", [1, 2])
@pytest.mark.parametrize("values", [np.full(1000, 64.0), daily()[:960]])
def test_a_zero_with_which_an_outage_ends_is_no_level_that_the_gap_led_to(values: Floats, zeros: int, gap: int) -> None:
    whole = ahead(np.append(values, np.full(gap + zeros, np.nan)))
    holed = ahead(np.concatenate([values, np.full(gap, np.nan), np.zeros(zeros)]))
    for (_, low, high), (wanted, *_) in zip(holed, whole, strict=True):
        assert low == 0
        assert high >= wanted - 4


@pytest.mark.parametrize("missing", [1, 6, 30])
def test_values_missing_at_the_end_put_the_horizon_farther_and_are_no_zeros(missing: int) -> None:
    whole = daily()
    holed = whole.copy()
    holed[-missing:] = np.nan
    for (expected, low, high), (wanted, *_) in zip(ahead(holed), ahead(whole), strict=True):
        assert expected == pytest.approx(wanted, abs=4)
        assert low - 3 <= wanted <= high + 3


def test_values_missing_at_the_begin_are_as_if_the_series_began_later() -> None:
    whole = daily()
    holed = whole.copy()
    holed[:100] = np.nan
    assert ahead(holed)[0][0] == pytest.approx(ahead(whole)[0][0], abs=1)


def test_a_gap_is_filled_from_the_day_before() -> None:
    whole = nights(4, 120, 60)
    holed = whole.copy()
    holed[2 * DAY + 100 : 2 * DAY + 130] = np.nan
    assert (filled(holed, 600.0) == whole).all()


@pytest.mark.parametrize("known", [0, 1])
def test_a_series_of_which_too_little_is_known_is_refused(known: int) -> None:
    told = series("s", [1.0, 2.0, 3.0]) | {"values": [5.0] * known + [None] * (3 - known)}
    with pytest.raises(Impossible) as raised:
        forecast(asking(told))
    assert [place for place, _ in raised.value.pointers] == ["/series/0/values"]


@pytest.mark.parametrize("noise", [0.0, 4.0])
@pytest.mark.parametrize("level", [64.0, 2000.0])
def test_one_zero_at_the_end_is_rather_a_failed_scrape_and_both_are_within_the_interval(
    level: float, noise: float
) -> None:
    values = np.round(level + np.random.default_rng(1).normal(0, noise, 1001))
    values[-1] = 0
    for expected, low, high in ahead(values):
        assert expected == pytest.approx(level, abs=4 * noise)
        assert low == 0
        assert high >= level


@pytest.mark.parametrize("known", [2, 3, 9, 23, 24])
@pytest.mark.parametrize(("read", "zeros"), [(0.0, 1), (0.0, 2), (5000.0, 1)])
def test_an_error_is_doubted_in_a_series_of_few_readings_too(known: int, read: float, zeros: int) -> None:
    for _, low, high in ahead([64.0] * known + [read] * min(zeros, known - 1)):
        assert low <= min(64, read)
        assert high >= max(64, read)


def test_the_first_demand_of_a_series_of_few_readings_is_no_error() -> None:
    assert ahead([0.0] * 9 + [64.0])[0][0] == pytest.approx(64, abs=3)


def test_zeros_that_go_on_are_believed() -> None:
    values = np.full(1001, 64.0)
    found = []
    for last in range(1, 9):
        values[-last:] = 0
        found.append(ahead(values)[0])
    assert [each[0] for each in found] == [64, *[0] * 7]
    assert found[1][2] == 64, "two zeros may still be an error"
    assert found[-1] == [0, 0, 0]


def test_jobs_that_are_there_say_that_a_zero_is_an_error() -> None:
    values = np.full(1001, 64.0)
    values[-1] = 0
    told = series("s", values, step=600.0)
    report = forecast(asking(told, jobs=[running("a", 64, 900_000, lasting(3_000_000))]))
    assert [each["expected"] for each in report["forecasts"][0]["points"]] == [64, 64]


@pytest.mark.parametrize("ago", [1, 2, 9, 300])
@pytest.mark.parametrize("read", [0.0, 5000.0])
@pytest.mark.parametrize("brief", [1, 2])
def test_what_was_gone_at_once_leaves_no_trace(ago: int, read: float, brief: int) -> None:
    values = np.full(1003, 10.0)
    values[-ago - brief : -ago] = read
    assert ahead(values) == [[10, 10, 10]] * 2


def test_a_spike_at_the_end_is_within_the_interval_and_does_not_take_over() -> None:
    values = np.full(1001, 10.0)
    values[-1] = 5000
    for expected, low, high in ahead(values):
        assert (expected, low) == (10, 10)
        assert high >= 5000


def test_a_new_level_of_ordinary_size_is_believed_with_the_old_one_in_the_interval() -> None:
    values = np.full(1001, 64.0)
    values[-1] = 128
    assert ahead(values)[0] == [128, 64, 128]


def test_spikes_of_every_hour_are_no_errors() -> None:
    values = np.full(1000, 10.0)
    values[::6] = 40
    assert (cleaned(values).values == values).all()


def test_a_reservation_is_not_given_away_for_a_zero_nor_blown_up_by_a_spike() -> None:
    def devices(values: Floats) -> int:
        request = {
            "revision": REVISION,
            "now": asking()["now"],
            "series": [series("s", values, step=600.0, tenant="t")],
            "qualities": [{"tenant": "t", "violations": 0.05}],
            "horizon": 3600.0,
        }
        return int(reserve(request)["reservations"][0]["devices"])

    values = np.full(1001, 64.0)
    values[-1] = 0
    assert devices(values) >= 64
    values[-1], values[-5] = 64, 5000
    assert devices(values) == 64


@pytest.mark.parametrize("begin", [20 * HOUR, 2 * HOUR, 0, 81])
@pytest.mark.parametrize("high", [256.0, 100.0, 0.0])
@pytest.mark.parametrize("noise", [0.0, 5.0])
def test_the_step_before_a_nightly_jump_is_forecast_as_it_comes(begin: int, high: float, noise: float) -> None:
    values = nights(16, begin, 60, 64, high, noise=noise)
    (expected, low, upper), _ = ahead(values[: 15 * DAY + begin])
    assert expected == pytest.approx(high, abs=3 * noise)
    assert low <= high + 2 * noise
    assert upper >= high - 2 * noise
    (back, *_), _ = ahead(values[: 14 * DAY + begin + 60])
    assert back == pytest.approx(64, abs=3 * noise)


@pytest.mark.parametrize("step", [60, 300, 900, 1800])
def test_a_jump_is_met_whatever_the_step(step: int) -> None:
    day = 86_400 // step
    days = 8 if step == 60 else 15
    values = nights(days, day * 20 // 24, day * 10 // 24, day=day, noise=5.0)
    before = values[: (days - 1) * day + day * 20 // 24]
    assert ahead(before, step=step, horizons=(max(600.0, step),))[0][0] == pytest.approx(256, abs=15)


@pytest.mark.parametrize("noise", [0.0, 5.0])
def test_the_step_before_a_weekly_jump_is_forecast_as_it_comes(noise: float) -> None:
    values = np.full(28 * DAY, 10.0)
    for week in range(4):
        values[(7 * week + 6) * DAY + 12 : (7 * week + 6) * DAY + 36] = 200
    values = np.maximum(np.round(values + np.random.default_rng(2).normal(0, noise, len(values))), 0)
    assert ahead(values[: 27 * DAY + 12])[0][0] == pytest.approx(200, abs=3 * noise)
    assert ahead(values[: 26 * DAY + 12])[0][0] == pytest.approx(10, abs=3 * noise), "and no day before"


def test_nights_of_working_days_alone_are_met_and_none_at_the_weekend() -> None:
    values = nights(28, 20 * HOUR, 60)
    for place in range(len(values)):
        if ((place - 20 * HOUR) // DAY) % 7 > 4:
            values[place] = 64
    met = [ahead(values[: day * DAY + 20 * HOUR])[0][0] for day in range(21, 28)]
    assert met == [256] * 5 + [64] * 2


@pytest.mark.parametrize("seed", range(4))
def test_a_jump_that_comes_now_and_then_a_step_later_leaves_the_interval_open(seed: int) -> None:
    late = np.append(np.random.default_rng(seed).permutation([0, 1] * 8), 0)
    values = np.concatenate([nights(1, 20 * HOUR + int(each), 24, 64, 256) for each in late])
    _, low, high = ahead(values[: 16 * DAY + 20 * HOUR])[0]
    assert high - low > 100


@pytest.mark.parametrize("earlier", [HOUR, -HOUR])
@pytest.mark.parametrize("noise", [0.0, 5.0])
@pytest.mark.parametrize("day", [15, 16, 18])
def test_a_change_of_the_clock_moves_what_is_regular(earlier: int, noise: float, day: int) -> None:
    """In the night to day 15; the end of that night has shown it."""
    plain = nights(22, 20 * HOUR, 60, noise=noise)
    changed = 15 * DAY + HOUR
    values = np.concatenate([plain[:changed], plain[changed + max(earlier, 0) + min(earlier, 0) :]])
    jump = day * DAY + 20 * HOUR - earlier
    assert ahead(values[:jump])[0][0] == pytest.approx(256, abs=3 * noise)
    assert ahead(values[: jump - HOUR])[0][0] == pytest.approx(64, abs=3 * noise + 3)


@pytest.mark.parametrize("earlier", [HOUR, -HOUR])
@pytest.mark.parametrize("weeks", [3, 5])
@pytest.mark.parametrize("day", [1, 2, 4, 8])
def test_a_change_of_the_clock_on_a_sunday_moves_working_days(earlier: int, weeks: int, day: int) -> None:
    """Clocks change on Sundays; that Monday shows it, which is held against the Monday before and not the Sunday."""
    office = np.tile([200.0 if 9 * HOUR <= step < 18 * HOUR else 50.0 for step in range(DAY)], 7 * (weeks + 2))
    office[np.arange(len(office)) // DAY % 7 > 4] = 50
    changed = (7 * weeks - 1) * DAY + HOUR
    values = np.concatenate([office[:changed], office[changed + max(earlier, 0) + min(earlier, 0) :]])
    jump = (7 * weeks + day) * DAY + 9 * HOUR - earlier
    assert ahead(values[:jump])[0] == [200, 200, 200]
    assert ahead(values[: jump - HOUR])[0] == [50, 50, 50]


def test_neither_holidays_nor_noise_change_the_clock_of_working_days() -> None:
    office = np.tile([200.0 if 9 * HOUR <= step < 18 * HOUR else 50.0 for step in range(DAY)], 35)
    office[np.arange(len(office)) // DAY % 7 > 4] = 50
    holidays = np.where(np.isin(np.arange(len(office)) // DAY, (21, 30)), 50, office)
    noisy = office + np.random.default_rng(1).normal(0, 40, len(office))
    found = {change(values[:upto], 600.0) for values in (holidays, noisy) for upto in range(20 * DAY, 35 * DAY, 97)}
    assert found == {(0, 0)}


def test_the_first_quiet_evening_of_a_weekend_is_no_change_of_the_clock() -> None:
    values = nights(27, 20 * HOUR, 60)
    for place in range(len(values)):
        if ((place - 20 * HOUR) // DAY) % 7 > 4:
            values[place] = 64
    evening = 26 * DAY + 20 * HOUR
    assert {change(values[:upto], 600.0) for upto in range(evening, evening + 70, 5)} == {(0, 0)}


def test_noise_has_no_clock() -> None:
    found = [change(np.random.default_rng(seed).normal(50, 5, 15 * DAY), 600.0) for seed in range(40)]
    assert found.count((0, 0)) >= 38


def test_competitors_that_disagree_keep_the_interval_open() -> None:
    """A level that was there on one Sunday only: nobody knows whether it is weekly."""
    values = np.full(14 * DAY, 10.0)
    values[6 * DAY + 12 : 6 * DAY + 36] = 200
    values = np.maximum(np.round(values + np.random.default_rng(3).normal(0, 1, len(values))), 0)
    _, low, high = ahead(values[: 13 * DAY + 12])[0]
    assert high > low
