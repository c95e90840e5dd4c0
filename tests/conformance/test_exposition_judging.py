"""What judges of telemetry take for the rest of a sample with a value refused, and what for the same samples."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.metrics.exposition import ExportAnswers, Samples, Twins, judge_otlp, judge_rest
from kuayu_conformance.exporters.player import Cell

AT = 1_780_000_000.0
REST = (
    Cell("0", "power", AT, 300.0, 1.0),
    Cell("0", "health_state", AT, "faulty"),
    Cell("0", "matrix_pipe_activity", AT, None),
)
RIGHT = {"device": "0", "observed_at": "2026-05-28T20:26:40.000Z", "power": 300.5, "health_state": "faulty"}


def passes(*items: dict[str, Any]) -> bool:
    answer = Answer(1, "GET", 200, {"content-type": "application/json"}, json.dumps({"items": items}).encode())
    return all(finding.met for finding in judge_rest(answer, REST))  # type: ignore[union-attr]


def test_the_rest_of_a_sample_is_held_with_its_values() -> None:
    assert passes(RIGHT)
    assert passes({**RIGHT, "device": "1", "power": 5.0}, RIGHT)


@pytest.mark.parametrize(
    "item",
    [
        {**RIGHT, "accelerator_utilisation": 2.5},
        {**RIGHT, "accelerator_utilisation": 1.0},
        {name: value for name, value in RIGHT.items() if name != "health_state"},
        {name: value for name, value in RIGHT.items() if name != "power"},
        {**RIGHT, "power": 302.0},
        {**RIGHT, "power": "300"},
        {**RIGHT, "health_state": "healthy"},
        {**RIGHT, "matrix_pipe_activity": 0.1},
        {**RIGHT, "device": "1"},
        {**RIGHT, "observed_at": "2026-05-28T20:26:41.000Z"},
    ],
)
def test_what_is_missing_or_another_value_or_of_others_is_not_the_rest(item: dict[str, Any]) -> None:
    assert not passes(item)


def test_a_sample_that_was_dropped_whole_is_not_taken() -> None:
    assert not passes()


INSTANTS = tuple(f"2026-11-21T00:00:{second:02}Z" for second in (0, 10, 20, 30))
MEASURES = ("power", "accelerator_utilisation", "accelerator_memory_used")
DEVICES = tuple(str(number) for number in range(8))
JSON = {"content-type": "application/json"}
Row = dict[str, Any]


def devices(changed: Callable[[Row], Row]) -> list[Row]:
    """Records of eight devices at four instants, each changed."""
    return [
        changed({"device": device, "observed_at": at, **{m: 10.0 + place for place, m in enumerate(MEASURES)}})
        for device in DEVICES
        for at in INSTANTS
    ]


def held(rows: list[Row]) -> Samples:
    """What a service says that it holds of a node and of its devices."""
    return tuple(Answer(1, "GET", 200, JSON, json.dumps({"items": items}).encode()) for items in ([], rows))  # type: ignore[return-value]


def alike(changed: Callable[[Row], Row]) -> bool:
    """Whether samples of metrics are taken for those of pages."""
    twins = Twins("by hand", held(devices(changed)), held(devices(lambda row: row)), ())
    quiet, strange = held([]), held([{"device": "0"}])
    return all(claim.met for claim in judge_otlp(ExportAnswers((), (twins,), quiet, strange, ())))  # type: ignore[union-attr]


def wrong(row: Row, *measures: str, by: Any = 7) -> Row:
    """A record of which some measures are wrong."""
    return row | {measure: row[measure] * by for measure in measures}


def test_the_same_samples_are_alike_but_for_the_order_of_sums() -> None:
    assert alike(lambda row: row)
    assert alike(lambda row: wrong(row, *MEASURES, by=1 + 1e-12))


def test_a_stray_value_is_not_what_this_is_about() -> None:
    stray = {("3", INSTANTS[1]), ("5", INSTANTS[2])}
    assert alike(lambda row: wrong(row, "power") if (row["device"], row["observed_at"]) in stray else row)


def test_three_devices_of_eight_are_no_strays() -> None:
    assert not alike(lambda row: wrong(row, *MEASURES) if row["device"] in "257" else row)


@pytest.mark.parametrize(
    "changed",
    [
        lambda row: wrong(row, "power") if row["device"] == "2" else row,
        lambda row: wrong(row, *MEASURES) if (row["device"], row["observed_at"]) == ("2", INSTANTS[0]) else row,
        lambda row: wrong(row, "power") if row["observed_at"] == INSTANTS[3] else row,
        lambda row: wrong(row, "power", by=1 + 1e-6),
    ],
)
def test_what_is_wrong_wherever_it_belongs_together_is_found(changed: Callable[[Row], Row]) -> None:
    assert not alike(changed)


def test_a_measure_of_two_values_that_are_both_wrong_is_found() -> None:
    """They are as few as strays may be."""

    def rows(factor: float) -> list[Row]:
        extra = [{"device": "0", "observed_at": at, "queue_pressure": 2.0 * factor} for at in INSTANTS[:2]]
        return devices(lambda row: row) + extra

    twins = Twins("by hand", held(rows(7)), held(rows(1)), ())
    claims = list(judge_otlp(ExportAnswers((), (twins,), held([]), held([{"device": "0"}]), ())))
    unmet = [claim.found for claim in claims if not claim.met]  # type: ignore[union-attr]
    assert unmet == ["wrong for measure queue_pressure"]


@pytest.mark.parametrize("value", [10**400, math.inf, math.nan, "10", None])
def test_whatever_stands_for_a_number_is_wrong_and_no_stumbling(value: Any) -> None:
    assert not alike(lambda row: row | {"power": value})
