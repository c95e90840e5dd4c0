from typing import Any

import numpy as np
import pytest
from forecast.asked import NOW, asking, at, coming, lasting, running, series

from kuayu.forecast.forecasting import forecast
from kuayu.forecast.structure import Spans, Standing, courses, remaining, truncated
from kuayu.forecast.totals import Additions, convolved, total

HALVES = np.array([0.5])


def stand(*jobs: dict[str, Any]) -> Standing:
    return Standing.seen(jobs, NOW.timestamp())


def growing(name: str, since: float, *durations: dict[str, float]) -> dict[str, Any]:
    """A job that needs 4 devices at first and twice as many from one period to the next."""
    job: dict[str, Any] = running(name, 4, since, *durations)
    for number, period in enumerate(job["periods"]):
        period["devices"] = 4 << number
    return job


def waited(name: str, wait: float, since: float, domain: str = "d") -> dict[str, Any]:
    """A job that began so many seconds ago, after a wait."""
    job: dict[str, Any] = coming(name, 1, -wait - since, lasting(1e6), domain)
    return job | {"started_at": at(-since)}


def medians(report: dict[str, Any]) -> list[float]:
    return [point["expected"] for point in report["forecasts"][0]["points"]]


def test_who_has_waited_for_hours_is_not_taken_to_begin_at_once() -> None:
    # two hours of waiting: begins within the hour in one case of three, and grows only after that
    waits = growing("a", 0, lasting(600), lasting(600), lasting(86_400))
    del waits["started_at"]
    waits["submitted_at"] = at(-7200)
    assert medians(forecast(asking(series("s", np.full(400, 4.0)), jobs=[waits]))) == [4, 4]


def test_alone_a_job_waits_as_long_again_in_every_second_case() -> None:
    standing = stand(coming("a", 1, -3000, lasting(9)))
    assert remaining(standing, np.array([0]), HALVES)[0] == pytest.approx(3000)


def test_those_who_waited_as_long_and_began_are_evidence() -> None:
    # 100 s of the job's own, 200 s beyond it of each of two that began: 3 starts in 500 s; 500·(2^(1/3) - 1)
    jobs = [coming("a", 1, -100, lasting(9)), waited("b", 300, 50), waited("c", 300, 50), waited("at once", 0, 50)]
    assert remaining(stand(*jobs), np.array([0]), HALVES)[0] == pytest.approx(500 * (2 ** (1 / 3) - 1))


def test_another_domain_is_no_evidence() -> None:
    standing = stand(coming("a", 1, -100, lasting(9)), waited("b", 300, 50, "e"))
    assert remaining(standing, np.array([0]), HALVES)[0] == pytest.approx(100)


def test_who_is_announced_waits_only_where_others_do() -> None:
    standing = stand(
        coming("a", 1, 60, lasting(9)), coming("b", 1, 60, lasting(9), "e"), coming("c", 1, -60, lasting(9))
    )
    assert standing.waits.tolist() == [True, False, True]


def test_a_period_after_those_that_are_measured_holds_still() -> None:
    # 1000 s are over for sure; the second has lasted 1900 s, median 1800 s, so it is known to be late
    job = growing("a", 2900, lasting(1000), lasting(1800, 1.2), lasting(86_400, 2.0))
    now, after = NOW.timestamp(), np.array([1.0])
    told = courses([job], now, after, standing=stand(job))
    assert told.now == pytest.approx([0, 1, 0], abs=0.01)
    assert courses([job], now, after).now[1] < 0.5


def test_where_nothing_is_measured_periods_are_laid_as_told() -> None:
    job = growing("a", 2900, lasting(1000, 1.2), lasting(1800, 1.2), lasting(86_400, 2.0))
    standing = stand(job)
    assert (standing.over.tolist(), standing.holds.tolist()) == ([0], [False])


def test_what_is_longer_than_it_has_lasted_is_cut_from_its_distribution() -> None:
    spans = Spans.of([lasting(1000, 2.0)])
    draws = spans.at(np.random.default_rng(0).standard_normal((1, 200_000)))[0]
    levels = np.array([0.1, 0.5, 0.9])
    expected = np.quantile(draws[draws > 1200], levels)
    assert truncated(spans, np.array([1200.0]), levels)[0] == pytest.approx(expected, rel=0.01)


def test_jobs_that_grow_are_no_arrivals() -> None:
    # the series has risen every hour for a day, by periods of one job; it is in its last one now
    hours = [lasting(3600) for _ in range(8)]
    job = growing("a", 8 * 3600 + 600, *hours, lasting(86_400))
    grown = np.repeat([4.0 * 2**number for number in range(9)], 60)[: 8 * 60 + 11]
    report = forecast(asking(series("s", grown), jobs=[job], levels=[0.25, 0.5, 0.75]))
    assert medians(report) == [1024, 1024]
    assert [each["value"] for each in report["forecasts"][0]["points"][1]["quantiles"]] == [1024] * 3


def test_those_who_keep_coming_unannounced_are_expected() -> None:
    # every five minutes somebody comes for a day with two devices: 12 of them within the hour
    jobs = [running(f"j{number}", 2, 300.0 * number + 150, lasting(300.0 * number + 90_000)) for number in range(60)]
    values = 2.0 * np.clip((np.arange(600) - 299) // 5, 1, 60)
    told = medians(forecast(asking(series("s", values), jobs=jobs)))
    assert told == pytest.approx([120 + 4, 120 + 24], abs=4)


@pytest.mark.parametrize("shape", [0.3, 2.0, 1e6])
def test_visitors_come_in_groups(shape: float) -> None:
    spread = total(np.arange(2), np.array([3.0, 5.0]), np.ones((2, 1)))
    visitors = Additions(np.zeros((1, 1)), np.array([0.7]), np.array([2.0, 4.0]), np.array([shape]))
    [made] = convolved([spread], [visitors])
    assert made.mean == pytest.approx(8 + 0.7 * 3)
    nobody = (1 + 0.7 / shape) ** -shape  # e to the −0.7, where the shape is so great that they come one by one
    assert made.mass[0, int((8 - made.first[0]) / made.unit)] == pytest.approx(nobody)
