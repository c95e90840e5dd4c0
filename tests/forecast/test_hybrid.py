"""Structure and history weighed by how well both did of late."""

from typing import Any

import numpy as np
import pytest
from forecast.asked import LEVELS, asking, at, lasting, running, series

from kuayu.forecast.forecasting import forecast
from kuayu.forecast.history import LEVELS as KNOWN
from kuayu.forecast.hybrid import REPLAYED_LEVELS, Choice, Replay, at_levels, rest_moves, weighed
from kuayu.forecast.requests import Floats
from kuayu.forecast.series import all_cleaned, change, changes, cleaned
from kuayu.forecast.totals import total, totals
from kuayu.refusals import Impossible

HOUR = 3600.0


def points(report: dict[str, Any], place: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report["forecasts"][0]["points"]
    return [*found][place:]


def world(factor: float, *, ended: bool = True) -> tuple[Floats, list[dict[str, Any]]]:
    """A day of jobs of 8 devices, one of which ends every twelve minutes, and what is told of their durations."""
    chance = np.random.default_rng(20_261_225)
    begins = np.arange(-40 * HOUR, 0, 720.0)
    lasts = chance.uniform(2 * HOUR, 6 * HOUR, len(begins))
    ends = begins + lasts
    instants = np.arange(-1440, 1) * 60.0
    values = 8.0 * ((begins <= instants[:, None]) & (instants[:, None] < ends)).sum(axis=1)
    jobs = []
    for number, (begin, last, end) in enumerate(zip(begins.tolist(), lasts.tolist(), ends.tolist(), strict=True)):
        told = last * factor ** chance.choice([-1.0, 1.0])
        job = running(f"j{number}", 8, -begin, lasting(told, 1.2))
        if end > 0:
            jobs.append(job)
        elif ended and end > -14 * HOUR:
            jobs.append(job | {"ended_at": at(end)})
    return values, jobs


def test_structure_counts_the_more_the_better_it_foretold() -> None:
    shares = []
    for factor in (1.02, 2.0, 4.0):
        values, jobs = world(factor)
        shares.append(points(forecast(asking(series("s", values), jobs=jobs)))[1]["structure_share"])
    assert shares[0] > shares[2] + 0.1


def test_structure_that_was_wrong_gives_way_to_history() -> None:
    values, jobs = world(4.0)
    with_evidence = points(forecast(asking(series("s", values), jobs=jobs)))[1]
    without = points(forecast(asking(series("s", values), jobs=[job for job in jobs if "ended_at" not in job])))[1]
    history = points(forecast(asking(series("s", values))))[1]
    assert with_evidence["structure_share"] < 0.75 * without["structure_share"]
    assert abs(with_evidence["expected"] - history["expected"]) < abs(without["expected"] - history["expected"])


def test_who_has_ended_holds_nothing() -> None:
    gone = running("gone", 512, 4 * HOUR, lasting(10 * HOUR)) | {"ended_at": at(-HOUR)}
    stays = running("stays", 8, 4 * HOUR, lasting(100 * HOUR))
    told = forecast(asking(series("s", np.full(600, 8.0)), jobs=[stays, gone]))
    assert [point["expected"] for point in points(told)] == [8, 8]


@pytest.mark.parametrize("ended", [60.0, -5 * HOUR])
def test_nobody_ends_after_now_or_before_the_begin(ended: float) -> None:
    job = running("j", 8, 4 * HOUR, lasting(HOUR)) | {"ended_at": at(ended)}
    with pytest.raises(Impossible):
        forecast(asking(series("s", np.full(60, 8.0)), jobs=[job]))


def replay(structure: Floats, history: Floats, real: Floats) -> Replay:
    """A replay of one series whose quantiles lie 1 apart around medians."""
    around = np.arange(-2.0, 3.0)
    middle = [medians[None, :, None] + around for medians in (structure, history)]
    return Replay(middle[0] + 50, middle[1] + 50, real[None] + 50, real[None] + 49, 1.0)


def test_of_two_the_one_that_is_right_counts() -> None:
    chance = np.random.default_rng(3)
    real = chance.normal(0, 5, 60)
    off = real + chance.normal(0, 8, 60)
    for by_jobs, by_history, low, high in ((real, off, 0.9, 1.0), (off, real, 0.0, 0.1)):
        weight, _ = weighed(replay(by_jobs, by_history, real), np.array([0.5]), Choice())
        assert low <= weight[0] <= high


def test_intervals_become_as_wide_as_what_was_missed() -> None:
    real = np.random.default_rng(4).normal(0, 6, 60)
    _, width = weighed(replay(np.zeros(60), np.zeros(60), real), np.array([0.5]), Choice())
    _, narrow = weighed(replay(np.zeros(60), np.zeros(60), real / 20), np.array([0.5]), Choice())
    assert width[0] > 1.8
    assert narrow[0] < 0.8


def test_where_nothing_moved_the_usual_weight_stands() -> None:
    still = Replay(*(np.ones((2, 6, 5)),) * 2, np.ones((2, 6)), np.ones((2, 6)), 0.5)
    weight, width = weighed(still, np.array([0.2, 0.7]), Choice())
    assert weight.tolist() == [0.2, 0.7]
    assert width.tolist() == [1, 1]


def test_the_rest_moves_as_it_did() -> None:
    last = np.array([[10.0, 12, 14, 16]])
    real = last + 2
    still, all_of_it = np.zeros((1, 4)), last - 10
    usual = np.array([0.5])
    assert rest_moves(still, still, last, real, usual, 1.0)[0] == pytest.approx(0.5 * 2 / (8 + 2))
    assert rest_moves(all_of_it, all_of_it + 2, last, real, usual, 1.0)[0] == pytest.approx((8 + 1) / (8 + 2))


def test_levels_between_and_beyond_those_that_are_known() -> None:
    values = np.sort(np.random.default_rng(5).uniform(50, 90, (3, len(KNOWN))), axis=1)
    assert at_levels(values, KNOWN) == pytest.approx(values)
    assert (np.diff(at_levels(values, np.array([0.001, *LEVELS, 0.999])), axis=1) > 0).all()
    assert len(REPLAYED_LEVELS) == 5  # the median stands in the middle
    assert REPLAYED_LEVELS[2] == 0.5


def test_sums_of_many_series_are_those_of_each() -> None:
    chance = np.random.default_rng(6)
    parts = []
    for owner in range(7):
        count = int(chance.integers(1, 9))
        rows = np.repeat(np.arange(count), 2)
        held = chance.uniform(0, 0.5, (2 * count, 3)) * chance.choice([0, 1], (2 * count, 1), p=[0.3, 0.7])
        parts.append((np.full(2 * count, owner), rows, 8.0 * chance.integers(1, 20, 2 * count), held))
    together = totals(*(np.concatenate(column) for column in zip(*parts, strict=True)), 8)  # type: ignore[arg-type]
    for (_, job, devices, held), one in zip(parts, together, strict=False):
        alone = total(job, devices, held)
        assert one.mean == pytest.approx(alone.mean)
        assert one.mean == pytest.approx(devices @ held)
        assert one.at(np.array(LEVELS)) == pytest.approx(alone.at(np.array(LEVELS)))
    assert together[7].mean.tolist() == [0, 0, 0]


def test_series_looked_at_together_are_looked_at_alone() -> None:
    chance = np.random.default_rng(7)
    day = 100 + 40 * np.sin(np.arange(9 * 144) / 144 * 2 * np.pi)
    rows = day + chance.normal(0, 1, (6, len(day)))
    rows[1, 700] = 0.0
    rows[2, -1] = 900.0
    rows[3, 1000:] = np.roll(day, -6)[1000:]
    rows[4] = np.cumsum(chance.normal(0, 1, len(day))) + 200
    rows[5, -40:] += 300
    for one, row in zip(all_cleaned(rows), rows, strict=True):
        alone = cleaned(row)
        assert one.values.tolist() == alone.values.tolist()
        assert (one.doubtful, one.chance) == (alone.doubtful, alone.chance)
    assert changes(rows, 600.0) == [change(row, 600.0) for row in rows]
    assert changes(rows, 600.0)[3] != (0, 0)
    assert changes(rows, 600.0)[0] == (0, 0)
