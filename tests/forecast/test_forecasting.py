import math
from random import Random
from typing import Any

import numpy as np
import pytest
from forecast.asked import asking, at, coming, lasting, running, series
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.forecast.forecasting import forecast
from kuayu.forecast.requests import Floats
from kuayu.refusals import Impossible, Refusal, RepeatedName
from kuayu_schemas.schema import is_valid


def medians(report: dict[str, Any], which: int = 0) -> list[float]:
    return [point["expected"] for point in report["forecasts"][which]["points"]]


def quantiles(report: dict[str, Any], which: int = 0, horizon: int = 0) -> list[float]:
    return [each["value"] for each in report["forecasts"][which]["points"][horizon]["quantiles"]]


def noisy(length: int = 600, seed: int = 3) -> Floats:
    return np.round(20 + 5 * np.sin(np.arange(length) / 40) + np.random.default_rng(seed).normal(0, 2, length), 2)


def test_what_never_moved_is_expected_to_stay() -> None:
    assert medians(forecast(asking(series("s", np.full(400, 12.0))))) == [12, 12]


def test_a_job_known_to_end_before_the_horizon_frees_its_devices() -> None:
    # 8 devices are freed after half an hour, 4 stay for a day
    ends, stays = running("a", 8, 100_000, lasting(101_800)), running("b", 4, 100_000, lasting(200_000))
    report = forecast(asking(series("s", np.full(400, 12.0)), jobs=[ends, stays]))
    assert medians(report) == [12, 4]
    assert report["forecasts"][0]["points"][1]["structure_share"] == pytest.approx(1, abs=0.01)


def test_a_job_that_is_announced_comes_and_one_beyond_the_horizon_does_not() -> None:
    announced = [coming("soon", 16, 1200, lasting(86_400)), coming("late", 99, 7200, lasting(86_400))]
    held = running("a", 4, 600, lasting(86_400))
    assert medians(forecast(asking(series("s", np.full(400, 4.0)), jobs=[held, *announced]))) == [4, 20]


def test_the_next_period_of_a_job_needs_other_devices() -> None:
    job = running("a", 8, 300, lasting(1200), lasting(86_400))
    job["periods"][1]["devices"] = 2
    assert medians(forecast(asking(series("s", np.full(400, 8.0)), jobs=[job]))) == [8, 2]


def test_what_jobs_do_not_explain_stays_beside_them() -> None:
    ends = running("a", 8, 1800, lasting(3600))
    assert medians(forecast(asking(series("s", np.full(400, 20.0)), jobs=[ends])))[1] == pytest.approx(12, abs=0.5)


def test_jobs_count_for_their_domain_alone() -> None:
    told = [series("s", np.full(400, 8.0)), series("other", np.full(400, 8.0), domain="e")]
    report = forecast(asking(*told, jobs=[running("a", 8, 1800, lasting(3600))]))
    assert (medians(report, 0), medians(report, 1)) == ([8, 0], [8, 8])


def test_a_job_that_has_survived_its_median_is_judged_by_what_is_left() -> None:
    # median 1 h, σ = ln 2 / 1.645; after 1 h it lasts another with chance Φ(-ln 2 / σ) / Φ(0) = 0.05 / 0.5
    job = running("a", 10, 3600, lasting(3600, 2.0))
    told = series("s", np.full(400, 10.0), job="a")
    report = forecast(asking(told, jobs=[job], horizons=[3600.0], levels=[0.88, 0.92]))
    assert quantiles(report) == [0, 10]


def test_two_jobs_give_the_distribution_of_their_sum() -> None:
    # each holds its devices with chance ½: 0, 4, 8 and 12 come with ¼ each
    jobs = [running("a", 4, 0, lasting(3600, 3.0)), running("b", 8, 0, lasting(3600, 3.0))]
    told = series("s", [12.0, 12.0])
    report = forecast(asking(told, jobs=jobs, horizons=[3600.0], levels=[0.2, 0.3, 0.45, 0.55, 0.7, 0.8]))
    assert quantiles(report) == [0, 4, 4, 8, 8, 12]


def test_who_waits_takes_what_is_given_back() -> None:
    jobs = [running("a", 8, 1800, lasting(3600)), coming("b", 8, -600, lasting(86_400))]
    told = [
        series("held", np.full(400, 8.0), quantity="held_devices"),
        series("waiting", np.full(400, 8.0), quantity="waiting_devices"),
    ]
    report = forecast(asking(*told, jobs=jobs))
    assert (medians(report, 0), medians(report, 1)) == ([8, 8], [8, 0])


def test_a_campaign_adds_its_devices_while_it_lasts() -> None:
    event = {"kind": "campaign", "begins_at": at(1800), "ends_at": at(7200), "devices": 30, "domain": "d"}
    told = [series("s", np.full(400, 5.0)), series("other", np.full(400, 5.0), domain="e")]
    report = forecast(asking(*told, events=[event], horizons=[600.0, 3600.0, 10_800.0]))
    assert (medians(report, 0), medians(report, 1)) == ([5, 35, 5], [5, 5, 5])


def test_a_daily_course_is_learned_where_the_last_value_misses() -> None:
    minutes = np.arange(0, 6 * 1440, 10)
    values = 50 + 40 * np.sin(2 * np.pi * minutes / 1440)
    told = medians(forecast(asking(series("s", values, step=600.0), horizons=[3600.0, 6 * 3600.0])))
    real = 50 + 40 * np.sin(2 * np.pi * (minutes[-1] + np.array([60, 360])) / 1440)
    assert np.abs(np.array(told) - real).max() < 0.2 * np.abs(values[-1] - real).max()


def test_intervals_hold_what_they_promise_on_a_walk() -> None:
    walk = 500 + np.cumsum(np.random.default_rng(5).normal(0, 1, 9000))
    inside = []
    for end in range(3000, 8900, 100):
        low, *_, high = quantiles(forecast(asking(series("s", walk[end - 1000 : end]), horizons=[1200.0])))
        inside.append(low <= walk[end + 19] <= high)
    # 59 cases that hang together a little: five standard deviations around 0.9
    assert 0.7 <= np.mean(inside) < 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 300), st.floats(0, 1), st.lists(st.integers(1, 64), max_size=6))
def test_quantiles_never_cross_and_answers_have_the_form_of_the_schema(
    seed: int, length: int, quiet: float, devices: list[int]
) -> None:
    chance = np.random.default_rng(seed)
    steps = chance.normal(0, 3, length) * (chance.random(length) > quiet)
    values = np.maximum(sum(devices) + np.cumsum(steps), 0)
    jobs = [running(f"j{n}", each, 60 * n, lasting(3000, 4.0)) for n, each in enumerate(devices)]
    report = forecast(asking(series("s", values), jobs=jobs, horizons=[30.0, 600.0, 5000.0]))
    assert is_valid("ForecastReport", report, reader=False)
    for point in report["forecasts"][0]["points"]:
        told = [each["value"] for each in point["quantiles"]]
        assert told == sorted(told)
        assert told[0] <= point["expected"] <= told[-1]
        assert all(math.isfinite(each) for each in told)


@settings(max_examples=10, deadline=None)
@given(st.randoms(use_true_random=False))
def test_neither_order_nor_names_change_a_forecast(chance: Random) -> None:
    told = [series(f"s{n}", noisy(200 + 100 * (n % 2), n), domain=f"d{n}") for n in range(4)]
    jobs = [running(f"j{n}", 2 + n, 700 * n, lasting(3000 + n, 2.0), domain=f"d{n % 4}") for n in range(9)]
    before = {each["series"]: each["points"] for each in forecast(asking(*told, jobs=jobs))["forecasts"]}
    names = dict(zip([f"d{n}" for n in range(4)], chance.sample(["x0", "x1", "d0", "z9"], 4), strict=True))
    chance.shuffle(told)
    chance.shuffle(jobs)
    told = [each | {"domain": names[each["domain"]]} for each in told]
    jobs = [each | {"domain": names[each["domain"]], "id": f"k{number}"} for number, each in enumerate(jobs)]
    after = {each["series"]: each["points"] for each in forecast(asking(*told, jobs=jobs))["forecasts"]}
    assert after == before


def test_a_series_that_others_stand_beside_is_forecast_as_alone() -> None:
    told = [series("a", noisy(300)), series("b", noisy(900, 4), domain="e")]
    both = forecast(asking(*told))["forecasts"]
    assert both == [forecast(asking(each))["forecasts"][0] for each in told]


def test_no_more_than_all_is_busy() -> None:
    values = np.clip(0.95 + np.random.default_rng(2).normal(0, 0.05, 500), 0, 1)
    assert max(quantiles(forecast(asking(series("s", values, quantity="utilisation"))))) <= 1


def test_an_hour_ahead_is_an_hour_ahead_whatever_the_step() -> None:
    values = np.repeat([10.0, 20.0], 200)
    fine = forecast(asking(series("s", values, step=60.0)))
    coarse = forecast(asking(series("s", values[::10], step=600.0)))
    assert medians(fine) == pytest.approx(medians(coarse), rel=0.1)


@pytest.mark.parametrize(
    ("changed", "kind", "pointer"),
    [
        ({"horizons": [600.0, 600.0]}, Impossible, "/horizons/1"),
        ({"horizons": [0.0, 600.0]}, Impossible, "/horizons/0"),
        ({"levels": [0.0, 0.5]}, Impossible, "/levels/0"),
        ({"levels": [0.5, 1.0]}, Impossible, "/levels/1"),
        ({"levels": [0.5, 0.4]}, Impossible, "/levels/1"),
        ({"now": at(-60)}, Impossible, "/series/0/values"),
        ({"jobs": [running("a", 1, 0, lasting(9)), running("a", 1, 0, lasting(9))]}, RepeatedName, "/jobs/1/id"),
        ({"series": [series("s", [1, 2]), series("s", [1, 2])]}, RepeatedName, "/series/1/id"),
        (
            {"events": [{"kind": "holiday", "begins_at": at(9), "ends_at": at(0)}]},
            Impossible,
            "/events/0/ends_at",
        ),
    ],
)
def test_what_is_impossible_is_refused_where_it_stands(
    changed: dict[str, Any], kind: type[Refusal], pointer: str
) -> None:
    with pytest.raises(kind) as raised:
        forecast(asking(series("s", [1.0, 2.0])) | changed)
    assert [each[0] for each in raised.value.pointers] == [pointer]
