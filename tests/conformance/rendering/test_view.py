"""Tables keep every cell and know columns of figures; reasons are stored as judged and shown as tables show figures."""

import math

import pytest
from conformance.rendering.plotted import table as body
from conformance.rendering.samples import sample, with_reason
from conformance.rendering.test_junit import parsed
from conformance.rendering.test_terminal import printed
from conformance.test_busy_machine import BUSY, BY_THE_CLOCK, episode

from kuayu_conformance.findings import Figure
from kuayu_conformance.rendering import page
from kuayu_conformance.rendering.view import limit_of, reason_of, table
from kuayu_conformance.run.judgement import conclude, excused
from kuayu_schemas.models import Replay, ReportTable, Requirement, RequirementResult, Verdict
from kuayu_schemas.registers import requirements


@pytest.mark.parametrize(
    ("cells", "figures"),
    [
        (["12", "1 234", "−3.5"], True),
        (["5.2 %", "—", ""], True),
        (["5.2 % (4.1–6.3)", "< 0.1 %"], True),
        (["1.2e-7", "2·10⁻⁷"], True),
        (["3/18", "18/18"], True),
        (["V100", "3090"], False),
        (["2080 Ti"], False),
        (["—", ""], False),
        ([], False),
    ],
)
def test_a_column_holds_figures_where_every_cell_does(cells: list[str], figures: bool) -> None:
    rows = [{"cells": ["name", cell]} for cell in cells]
    shown = table(ReportTable.model_validate(body(columns=["of what", "how much"], rows=rows)))
    assert shown.head[1].figure is figures
    assert all(row[1].figure is figures for row in shown.rows)


def test_no_cell_is_lost_where_rows_and_headings_differ_in_length() -> None:
    rows = [{"cells": []}, {"cells": ["a", "b", "c"]}]
    shown = table(ReportTable.model_validate(body(columns=["one"], rows=rows)))
    assert [cell.text for cell in shown.head] == ["one", "", ""]
    assert [[cell.text for cell in row] for row in shown.rows] == [["", "", ""], ["a", "b", "c"]]


def test_a_table_may_be_empty() -> None:
    shown = table(ReportTable.model_validate(body(columns=[], rows=[])))
    assert shown.head == shown.rows == ()


def row(identifier: str) -> Requirement:
    return next(row for row in requirements().requirements if row.id == identifier)


def judged(identifier: str, estimate: float, bound: float, ceiling: float | None = None) -> RequirementResult:
    """A figure as the suite judges it."""
    figure = Figure(identifier, estimate, bound, 100, "by hand", ceiling=ceiling)
    return conclude(row(identifier), [figure], "episode", Replay.deterministic, 1.0)


def said(result: RequirementResult) -> str:
    return (reason_of(result) or "").replace("\u202f", " ")


def test_a_share_is_said_in_per_cent_and_no_unit_1_is_left() -> None:
    result = judged("RES-005", 0.35, 0.31)
    assert result.reason == "the figure misses the threshold: 0.35 1 against at_least 0.4", "stored as it was judged"
    assert said(result) == "the figure misses the threshold: 35 % against at least 40 %"


def test_a_bound_is_said_in_the_same_unit() -> None:
    result = judged("IDX-001", 0.0821721, 0.104231)
    assert said(result) == "the figure reaches the threshold, its bound 10.4 % does not: 8.22 % against at most 10 %"


@pytest.mark.parametrize(
    ("identifier", "estimate", "bound", "words"),
    [
        ("MET-006", 22.784, 23.0, "22.8 s against at most 10 s"),
        ("RES-003", 7500.0, 8000.0, "2.08 h against at most 5 min"),
        ("SCH-011", 2.0, 2.0, "2 against at least 3"),
        ("SCH-010", 0.25, 0.3, "0.25 against at most −0.001"),
    ],
)
def test_other_figures_are_said_as_tables_say_them(identifier: str, estimate: float, bound: float, words: str) -> None:
    assert said(judged(identifier, estimate, bound)).endswith(words)


def test_figures_that_differ_look_different() -> None:
    assert "97.99996 %" in said(judged("MET-003", 0.9799996, 0.97))


def test_what_a_busy_machine_is_blamed_for_is_said_alike() -> None:
    results = {"RES-005": judged("RES-005", 0.35, 0.31)}
    result = excused(results, BY_THE_CLOCK, episode(), BUSY, "http://target")["RES-005"]
    assert (result.verdict, result.estimate) == (Verdict.not_testable, None)
    assert said(result).endswith("fail; the figure misses the threshold: 35 % against at least 40 %")


def test_the_other_bound_is_not_taken_for_the_bound() -> None:
    words = said(judged("RES-005", 0.35, 0.31, 0.43))
    assert words == "the figure misses the threshold, its other bound 43 % does not: 35 % against at least 40 %"
    unknown = said(judged("RES-005", 0.35, 0.31, math.inf))
    assert unknown == "the figure misses the threshold, but there is too little to tell: 35 % against at least 40 %"


@pytest.mark.parametrize(
    "reason", ["2 of 9 expectations were not met", "x 1 against at_least y", "-1x 1 against at_most 0x"]
)
def test_other_reasons_stay_as_they_are(reason: str) -> None:
    assert reason_of(judged("RES-005", 0.35, 0.31).model_copy(update={"reason": reason})) == reason


def test_every_rendering_says_it_alike() -> None:
    reason = "the figure misses the threshold: 0.9764 1 against at_least 0.98"
    report = with_reason(sample({"MET-003": "fail"}), "MET-003", reason)
    words = "97.6 % against at least 98 %"
    for text in (page(report), printed(report)):
        assert words in text.replace("\u202f", " ")
    failure = parsed(report).find(".//failure")
    assert failure is not None
    assert words in str(failure.get("message")).replace("\u202f", " ")
    figures = str(failure.text).replace("\u202f", " ")
    assert "estimate 97.6 %, bound 97.5 %, n 38400; required at least 98 %" in figures


def test_no_requirement_is_explained_with_a_unit_1() -> None:
    limits = {
        name.id: limit_of(name.threshold, name.aim)
        for name in requirements().requirements
        if name.threshold is not None
    }
    assert limits["RES-005"].replace("\u202f", " ") == "at least 40 %"
    assert not [limit for limit in limits.values() if limit.endswith(" 1")]
