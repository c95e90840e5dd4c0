"""What the judge of series takes for right: steps that may be gone, and numbers that no service should send."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.metrics.indicators import HOUR, SeriesAnswers, SeriesQuery, Subject, judge_series
from kuayu_conformance.episode import instant

NODE = Subject("node", "n", "power")
BEGIN = 1_700_002_800
"""An hour of the clock."""
VALUES = {(BEGIN + second) * 1000: float(second) for second in (10, 20, HOUR + 10, HOUR + 40)}
POINTS = [
    {"start": instant(BEGIN), "count": 2, "mean": 15.0, "minimum": 10.0, "maximum": 20.0},
    {"start": instant(BEGIN + HOUR), "count": 2, "mean": HOUR + 25.0, "minimum": HOUR + 10.0, "maximum": HOUR + 40.0},
]


def all_met(points: Sequence[Any], kept: float) -> bool:
    """Whether points of two hours are taken for right where all since ``kept`` is kept."""
    about = {"subject": "n", "subject_kind": "node", "measure": "power", "unit": "W", "step": HOUR}
    answer = Answer(
        1, "GET", 200, {"content-type": "application/json"}, json.dumps({**about, "points": points}).encode()
    )
    asked = SeriesQuery(NODE, BEGIN, BEGIN + 2 * HOUR, HOUR, answer, kept)
    return all(claim.met for claim in judge_series(SeriesAnswers({NODE: VALUES}, (), (asked,), ())))  # type: ignore[union-attr]


def test_steps_that_are_kept_whole_are_due() -> None:
    assert all_met(POINTS, kept=BEGIN)
    assert not all_met(POINTS[1:], kept=BEGIN)


def test_a_step_of_which_a_part_may_be_gone_is_shown_rightly_or_not_at_all() -> None:
    since = BEGIN + 15.0
    assert all_met(POINTS, kept=since)
    assert all_met(POINTS[1:], kept=since)
    assert not all_met([POINTS[0] | {"count": 1, "mean": 20.0, "minimum": 20.0}, POINTS[1]], kept=since)
    assert not all_met(POINTS[:1], kept=since), "the other is whole"


@pytest.mark.parametrize("member", ["count", "mean", "minimum", "maximum"])
@pytest.mark.parametrize("value", [10**400, -(10**400), math.inf, math.nan, True, "15", None, [], {}])
def test_whatever_stands_for_a_number_is_wrong_and_no_stumbling(member: str, value: Any) -> None:
    assert not all_met([POINTS[0] | {member: value}, POINTS[1]], kept=BEGIN)
