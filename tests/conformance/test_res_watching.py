"""What is watched, judged: who tells and clears in time passes, who is too late by a second or two does not."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.metrics.timeline import Clock
from kuayu_conformance.checks.resilience import fault_response as script
from kuayu_conformance.checks.resilience.fault_response import FaultRun, Look, judge_faults

BEGIN = 1_800_000_000.0
SITES = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Row:
    """A fault: what it is about, when it is told, and when it is cleared."""

    kind: str
    member: str
    label: str
    told: float
    cleared: float = inf


BEST = (
    Row("domain_unreachable", "domain", script.SILENT, script.WARM + 2, script.HEARD + 1),
    Row("node_dead", "node", script.LOST, script.HEARD + 3),
    Row("node_dead", "node", script.RETURNS, script.WARM + 4, script.BACK + 12),
    Row("node_failing", "node", script.FAILS, script.WARM + 0.5, script.BACK + 1),
    Row("job_hung", "job", script.HANGING, script.HUNG_FROM + 1, script.GOES_ON + 0.5),
    Row("node_dead", "node", script.FLAPS, script.WARM + 2.5, script.LAST_RETURN + 24),
    Row("node_dead", "node", script.DIES, script.WARM + 2.5),
    Row("node_dead", "node", script.BURIED, script.WARM + 5.5, script.LAST_RETURN + 0.5),
)
"""What a good service tells."""


def observed(*rows: Row) -> FaultRun:
    """Looks of every second at a service that tells these."""
    names = {label: f"k-{label}" for label in (*script.COURSES, *SITES, script.HANGING, script.ENDING)}

    def faults(second: float) -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows):
            if row.told <= second:
                state = "cleared" if row.cleared <= second else "open"
                yield {"id": f"f-{number}", "kind": row.kind, row.member: names[row.label], "state": state}

    looks = []
    for second in range(int(script.MAX_SECONDS) + 1):
        body = json.dumps({"items": list(faults(second))}).encode()
        page = Answer(second, "GET /v1/faults", 200, {"content-type": "application/json"}, body)
        looks.append(Look(BEGIN + second, (page,), {}))
    return FaultRun(Clock(BEGIN), names, None, {}, looks, (), (), None, "", ())


def broken(*rows: Row) -> set[str]:
    """Requirements that are not met."""
    return {each.requirement for each in judge_faults(observed(*rows)) if not each.met}  # type: ignore[union-attr]  # claims alone


def changed(kind: str, label: str, **members: float) -> tuple[Row, ...]:
    """The best, but for one row."""
    return tuple(replace(row, **members) if (row.kind, row.label) == (kind, label) else row for row in BEST)


def without(kind: str, label: str) -> tuple[Row, ...]:
    return tuple(row for row in BEST if (row.kind, row.label) != (kind, label))


def test_a_service_that_tells_and_clears_in_time_meets_everything() -> None:
    assert broken(*BEST) == set()


@pytest.mark.parametrize(
    ("kind", "label", "begin", "requirement"),
    [
        ("domain_unreachable", script.SILENT, script.WARM, "RES-017"),
        ("node_dead", script.LOST, script.HEARD, "RES-017"),
        ("node_dead", script.RETURNS, script.WARM + 1.5, "RES-018"),
        ("node_failing", script.FAILS, script.WARM, "RES-018"),
        ("job_hung", script.HANGING, script.HUNG_FROM, "RES-018"),
        ("node_dead", script.DIES, script.WARM, "RES-020"),
    ],
)
def test_ten_seconds_are_in_time_and_twelve_are_too_late(kind: str, label: str, begin: float, requirement: str) -> None:
    assert broken(*changed(kind, label, told=begin + script.TOLD)) == set()
    assert broken(*changed(kind, label, told=begin + script.TOLD + 2)) == {requirement}
    assert broken(*without(kind, label)) == {requirement}
    assert broken(*changed(kind, label, told=min(begin, script.HANGS) - 2)) == {requirement}


@pytest.mark.parametrize(
    ("kind", "label", "over"),
    [
        ("node_dead", script.RETURNS, script.BACK),
        ("node_failing", script.FAILS, script.BACK),
        ("job_hung", script.HANGING, script.GOES_ON),
        ("node_dead", script.FLAPS, script.LAST_RETURN),
    ],
)
def test_what_is_over_is_cleared_within_thirty_seconds(kind: str, label: str, over: float) -> None:
    assert broken(*changed(kind, label, cleared=over + script.CLEARED)) == set()
    assert broken(*changed(kind, label, cleared=over + script.CLEARED + 2)) == {"RES-018"}
    assert broken(*changed(kind, label, cleared=inf)) == {"RES-018"}


def test_what_lasts_is_not_cleared() -> None:
    assert broken(*changed("node_dead", script.RETURNS, cleared=script.BACK - 2)) == {"RES-018"}
    assert broken(*changed("node_dead", script.DIES, cleared=script.WARM + 15)) == {"RES-020"}


@pytest.mark.parametrize(
    ("row", "requirement"),
    [
        (Row("node_dead", "node", "b0", script.WARM + 8), "RES-017"),
        (Row("node_dead", "node", script.FLAPS, script.WARM + 10), "RES-018"),
        (Row("node_dead", "node", script.RESTARTS, script.WARM + 8), "RES-020"),
        (Row("node_dead", "node", script.DELETED, script.WARM + 8), "RES-022"),
        (Row("job_hung", "job", script.ENDING, script.HUNG_FROM + 4), "RES-022"),
        (Row("rank_straggling", "job", script.ENDING, script.HUNG_FROM), "RES-022"),
    ],
)
def test_nothing_is_told_that_is_not_so(row: Row, requirement: str) -> None:
    assert broken(*BEST, row) == {requirement}


def test_a_node_that_comes_and_goes_need_not_be_told_at_all() -> None:
    assert broken(*without("node_dead", script.FLAPS)) == set()


def test_old_beats_are_such_as_were_sent_or_kept_back_and_none_is_news() -> None:
    course = script.COURSES[script.DIES]
    given = [due for turn in range(200) for due in script.old(turn * script.PERIOD)]
    assert given
    assert all(course.beats(due) for due in given)
    assert set(script.KEPT_BACK) <= set(given)
    assert max(given) < script.WARM
    repeated = [due for due in given if due not in script.KEPT_BACK]
    assert any(before > after for before, after in itertools.pairwise(repeated))
    assert any(before < after for before, after in itertools.pairwise(repeated))
