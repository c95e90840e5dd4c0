from typing import Any

import numpy as np
import pytest
from forecast.asked import NOW, REVISION, at, coming, lasting, running

from kuayu.forecast.structure import courses
from kuayu.forecast.totals import added, near, total
from kuayu.forecast.waveforms import waveform
from kuayu.refusals import Impossible, Refusal, RepeatedName
from kuayu_schemas.schema import is_valid

LEVELS = np.array([0.05, 0.5, 0.95])


def drawn(jobs: list[dict[str, Any]], period: float = 7200.0, step: float = 1800.0, **others: Any) -> dict[str, Any]:
    return waveform({"revision": REVISION, "now": at(0), "period": period, "step": step, "jobs": jobs} | others)


def expected(made: dict[str, Any]) -> list[float]:
    return [point["expected"] for point in made["points"]]


def test_sure_courses_are_laid_one_after_the_other() -> None:
    # 8 devices for one more hour; after half an hour 4 for half an hour
    made = drawn([running("a", 8, 3600, lasting(7200)), coming("b", 4, 1800, lasting(1800))])
    assert [point["at"] for point in made["points"]] == [0, 1800, 3600, 5400, 7200]
    assert expected(made) == [8, 12, 0, 0, 0]
    assert made["device_seconds"]["expected"] == 20 * 1800
    assert made["device_seconds"]["low"] == pytest.approx(made["device_seconds"]["high"], rel=1e-3)
    assert is_valid("Waveform", made, reader=False)


def test_who_waits_begins_now_at_the_earliest() -> None:
    assert expected(drawn([coming("a", 4, -900, lasting(3600))])) == [4, 4, 0, 0, 0]


def test_an_uncertain_end_is_an_expectation_and_an_interval() -> None:
    made = drawn([running("a", 10, 0, lasting(3600, 2.0))])
    point = made["points"][2]
    assert (point["expected"], point["low"], point["high"]) == (pytest.approx(5, abs=0.01), 0, 10)


def test_an_interval_is_narrower_where_less_is_to_be_covered() -> None:
    jobs = [running(f"j{n}", 1, 0, lasting(3600, 2.0)) for n in range(40)]
    wide, narrow = (drawn(jobs, coverage=each)["points"][2] for each in (0.95, 0.5))
    # binomial (40, ½): 20 ± 1.96 · 3.16 and 20 ± 0.674 · 3.16
    assert (wide["low"], wide["high"]) == (14, 26)
    assert (narrow["low"], narrow["high"]) == (18, 22)


def test_a_budget_counts_the_price_of_the_hour() -> None:
    # now is noon: an hour at 2, then an hour at 5; half-hour steps, the last one counts too
    prices = [{"begin": 0.0, "price": 2.0}, {"begin": 46_800.0, "price": 5.0}]
    made = drawn([running("a", 10, 0, lasting(86_400))], prices=prices)
    assert made["budget"]["expected"] == pytest.approx(10 * 0.5 * (2 + 2 + 5 + 5 + 5))


def test_the_spread_of_a_sum_is_that_of_drawn_courses() -> None:
    jobs = [running(f"j{n}", 8, 1800, lasting(3600 + 100 * n, 2.0)) for n in range(20)]
    made = drawn(jobs, period=14_400.0, step=60.0)
    chance = np.random.default_rng(1)
    sums = np.zeros(4000)
    for number in range(20):
        lasts = (3600 + 100 * number) * np.exp(np.log(2) / 1.6449 * chance.standard_normal(100_000))
        left = lasts[lasts > 1800][:4000] - 1800
        sums += 8 * 60 * np.minimum(np.floor(left / 60) + 1, 241)
    told = made["device_seconds"]
    assert told["expected"] == pytest.approx(sums.mean(), rel=0.01)
    assert told["high"] - told["low"] == pytest.approx(np.ptp(np.quantile(sums, [0.05, 0.95])), rel=0.08)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_the_interval_of_few_jobs_holds_what_it_promises(coverage: float) -> None:
    # two jobs, steps of a quarter of an hour: the sum takes few values, and is no bell
    jobs = [running("a", 8, 0, lasting(3600, 1.3), lasting(1800, 1.5)), running("b", 64, 1000, lasting(5000, 1.4))]
    jobs[0]["periods"][1]["devices"] = 32
    told = drawn(jobs, period=10_800.0, step=900.0, coverage=coverage)["device_seconds"]
    chance, draws = np.random.default_rng(8), 200_000
    scores, instants = chance.standard_normal((3, draws)) / 1.6449, 900.0 * np.arange(13)[:, None]
    first = 3600 * np.exp(np.log(1.3) * scores[0])
    second = first + 1800 * np.exp(np.log(1.5) * scores[1])
    other = 5000 * np.exp(np.log(1.4) * scores[2])
    held = 8 * (instants < first) + 32 * ((first <= instants) & (instants < second)) + 64 * (instants + 1000 < other)
    sums = 900 * held.sum(axis=0)[other > 1000]
    below, above = (sums < told["low"]).mean(), (sums > told["high"]).mean()
    # neither end leaves out more than half of the rest, nor could it be drawn in by a step
    outside = (1 - coverage) / 2 + 0.01
    assert max(below, above) <= outside
    assert (sums <= told["low"]).mean() >= outside - 0.02
    assert (sums >= told["high"]).mean() >= outside - 0.02


def test_later_periods_begin_when_earlier_ones_end() -> None:
    # both durations uncertain: the second holds at x with F1(x) - F2(x), here drawn
    job = running("a", 8, 0, lasting(1800, 1.5), lasting(1800, 1.5))
    chance = courses([job], NOW.timestamp(), np.array([1800.0, 3600.0])).chance
    draws = 1800 * np.exp(np.log(1.5) / 1.6449 * np.random.default_rng(2).standard_normal((100_000, 2)))
    for place, instant in enumerate((1800, 3600)):
        first, second = (draws[:, 0] > instant).mean(), (draws.sum(axis=1) > instant).mean()
        assert chance[:, place] == pytest.approx([first, second - first], abs=0.02)


def test_unlike_sides_of_an_estimate_both_hold() -> None:
    duration = {"expected": 3600.0, "low": 3000.0, "high": 14_400.0, "coverage": 0.9}
    chance = courses([running("a", 1, 0, duration)], NOW.timestamp(), np.array([3000.0, 3600.0, 14_400.0])).chance
    assert chance[0] == pytest.approx([0.95, 0.5, 0.05], abs=0.002)


def test_few_jobs_are_added_up_exactly_and_many_nearly_so() -> None:
    chance = np.random.default_rng(4)
    devices, held = chance.integers(1, 9, 200).astype(float), chance.random((200, 3))
    jobs = np.arange(200)
    draws = (devices * (chance.random((20_000, 200)) < held[:, 0])).sum(axis=1)
    exact = total(jobs, devices, held)
    assert exact.mean == pytest.approx(devices @ held, rel=1e-9)
    assert exact.at(LEVELS)[0] == pytest.approx(np.quantile(draws, LEVELS), abs=3)
    assert near(jobs, devices, held, LEVELS) == pytest.approx(exact.at(LEVELS), abs=2)


def test_a_sum_with_something_independent_keeps_its_mean() -> None:
    spread = total(np.arange(3), np.array([1.0, 5.0, 9.0]), np.full((3, 2), 0.3))
    cases = np.array([[0.0, 2.5, 7.0], [-1.0, 0.0, 1.0]])
    assert added(spread, cases).mean == pytest.approx(spread.mean + cases.mean(axis=1))


@pytest.mark.parametrize(
    ("changed", "kind", "pointer"),
    [
        ({"jobs": [coming("a", 1, 0, lasting(9)), coming("a", 1, 0, lasting(9))]}, RepeatedName, "/jobs/1/id"),
        ({"prices": [{"begin": 60.0, "price": 1.0}]}, Impossible, "/prices/0/begin"),
        ({"prices": [{"begin": 0.0, "price": 1.0}, {"begin": 0.0, "price": 1.0}]}, Impossible, "/prices/1/begin"),
    ],
)
def test_what_is_impossible_is_refused_where_it_stands(
    changed: dict[str, Any], kind: type[Refusal], pointer: str
) -> None:
    with pytest.raises(kind) as raised:
        drawn(**({"jobs": []} | changed))
    assert [each[0] for each in raised.value.pointers] == [pointer]
