"""What the judge of exporters' pages takes for the rest of a sample of which one value was refused."""

import json
from typing import Any

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.metrics.exposition import judge_rest
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
