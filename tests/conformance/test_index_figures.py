"""Verdicts on the compute index from pairs made by hand: near-misses fail, controls pass."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.index.prediction_error import HeldOutIndices, UnansweredIndex, judge
from kuayu_conformance.holdout import Pair, Simple
from kuayu_conformance.run.judgement import conclude
from kuayu_schemas import registers
from kuayu_schemas.models import PlotKind, Replay, RequirementResult, Verdict

DEVICES = [f"d{number}" for number in range(8)]
TASKS = [f"t{number}" for number in range(10)]
SIMPLE = Simple(peak=2.0, scalar=1.0, roofline=1.5)


def pairs(error: float = 0.05, *, held: float = 1.0, abstained: float = 0.0) -> list[Pair]:
    """Every device and task, each off by the error upwards or downwards; some shares held and abstained from."""
    made = []
    for d, device in enumerate(DEVICES):
        for t, task in enumerate(TASKS):
            measured = 1.0 + d
            value = measured * (1 + error * (1 if (d + t) % 2 else -1))
            width = 1.05 * error if (t + 0.5) / len(TASKS) < held else 0.5 * error
            unsure = (t + 0.5) / len(TASKS) < abstained
            low, high = value / (1 + 2 * width), value * (1 + 2 * width)
            if width < error:
                low, high = value * 0.9999, value * 1.0001
            made.append(
                Pair("table", True, "device", 4, True, device, task, measured, 1.0, value, low, high, unsure, SIMPLE)
            )
    return made


def verdicts(found: Sequence[Pair], refused: Sequence[UnansweredIndex] = ()) -> dict[str, RequirementResult]:
    findings = list(judge(HeldOutIndices(tuple(found), tuple(refused))))
    rows = [
        row
        for row in registers.requirements().requirements
        if row.check == "kuayu_conformance.checks.index.prediction_error"
    ]
    return {
        row.id: conclude(
            row, [each for each in findings if each.requirement == row.id], "idx_error", Replay.deterministic, 1.0
        )
        for row in rows
    }


@pytest.mark.parametrize(("error", "verdict"), [(0.095, Verdict.pass_), (0.105, Verdict.fail)])
def test_an_error_just_below_a_tenth_passes_and_one_just_above_fails(error: float, verdict: Verdict) -> None:
    result = verdicts(pairs(error))["IDX-001"]
    assert result.verdict is verdict
    assert result.estimate == pytest.approx(error)


def test_devices_that_differ_widely_leave_the_error_open() -> None:
    """Seven devices at 6 % and one at 28 % make 8.75 % on average, but another eight might make more than ten."""
    good, bad = pairs(0.06), pairs(0.28)
    mixed = [pair for pair in good if pair.device != "d7"] + [pair for pair in bad if pair.device == "d7"]
    result = verdicts(mixed)["IDX-001"]
    assert result.estimate == pytest.approx(0.0875)
    assert result.verdict is Verdict.inconclusive


def test_an_error_that_is_small_only_where_it_was_sent_before_proves_nothing() -> None:
    """The estimate is that of all folds; its bound is no better than that of devices as they arrive."""
    arriving = [replace(pair, split="arrival") for pair in pairs(0.14)]
    result = verdicts([*pairs(0.01), *arriving])["IDX-001"]
    assert result.estimate == pytest.approx(0.01)
    assert result.bound == pytest.approx(0.14)
    assert result.verdict is Verdict.inconclusive
    assert [part.label for part in result.parts] == ["table, device left out", "table, devices as they arrive"]


def test_pairs_that_were_abstained_from_count_as_they_are() -> None:
    worse = [
        replace(pair, value=pair.measured * 1.5, abstained=True) if pair.task == "t0" else pair for pair in pairs()
    ]
    result = verdicts(worse)["IDX-001"]
    assert result.estimate == pytest.approx(0.9 * 0.05 + 0.1 * 0.5)


def test_tables_that_are_only_printed_and_fewer_probes_do_not_count() -> None:
    printed = [replace(pair, counts=False, value=9 * pair.value) for pair in pairs()]
    fewer = [replace(pair, last=False, probes=0, value=9 * pair.value) for pair in pairs()]
    result = verdicts([*pairs(), *printed, *fewer])["IDX-001"]
    assert result.estimate == pytest.approx(0.05)
    assert [part.label for part in result.parts] == ["table, device left out"]


@pytest.mark.parametrize(("swapped", "verdict"), [(1, Verdict.pass_), (4, Verdict.fail)])
def test_order_is_judged_for_each_task(swapped: int, verdict: Verdict) -> None:
    """Of the 28 pairs of eight devices each swap of neighbours that are alike turns one; of four, far ones."""
    order = list(range(len(DEVICES)))
    for number in range(swapped):
        order[number], order[-1 - number] = order[-1 - number], order[number]
    turned = (
        [replace(pair, value=1.0 + order[int(pair.device[1:])]) for pair in pairs()] if swapped > 1 else pairs(0.01)
    )
    assert verdicts(turned)["IDX-002"].verdict is verdict


@pytest.mark.parametrize(("held", "verdict"), [(0.9, Verdict.pass_), (0.7, Verdict.fail)])
def test_intervals_must_hold(held: float, verdict: Verdict) -> None:
    result = verdicts(pairs(held=held))["IDX-003"]
    assert result.estimate == pytest.approx(held)
    assert result.verdict is verdict


@pytest.mark.parametrize(("abstained", "verdict"), [(0.1, Verdict.pass_), (0.4, Verdict.fail)])
def test_abstaining_often_is_no_way_out(abstained: float, verdict: Verdict) -> None:
    result = verdicts(pairs(abstained=abstained))["IDX-004"]
    assert result.estimate == pytest.approx(abstained)
    assert result.verdict is verdict


def test_a_question_that_is_not_answered_fails_all_of_them() -> None:
    answer = Answer(3, "POST /v1/compute-indices", 500, {}, b"", "", 0.0, 0.0)
    found = verdicts(pairs(), [UnansweredIndex("compute indices", answer, counts=True)])
    assert {result.verdict for result in found.values()} == {Verdict.fail}
    printed = verdicts(pairs(), [UnansweredIndex("compute indices", answer, counts=False)])
    assert {result.verdict for result in printed.values()} == {Verdict.pass_}


def test_a_target_that_stops_answering_before_any_order_can_be_seen_fails_all_of_them() -> None:
    """It is the target's fault, and must not end in one of the suite."""
    answer = Answer(20, "POST /v1/compute-indices", 0, {}, b"", "ConnectError", 0.0, 0.0)
    one = [pair for pair in pairs() if pair.device == DEVICES[0]]
    found = verdicts(one, [UnansweredIndex("compute indices", answer, counts=True)])
    assert {result.verdict for result in found.values()} == {Verdict.fail}


def test_the_report_shows_tables_and_plots_beside_the_error() -> None:
    sweep = [replace(pair, probes=k, last=k == 4) for k in range(7) for pair in pairs(0.2 - 0.02 * k)]
    result = verdicts(sweep)["IDX-001"]
    by_probes, simple, by_device = result.tables or []
    assert [row.cells[2] for row in by_probes.rows] == list("0123456")
    assert [row.cells[4] for row in by_probes.rows][:2] == ["20.0 %", "18.0 %"]
    assert simple.columns[-3:] == ["ratio of peaks", "one scalar for each device", "roofline of the data sheet"]
    assert [row.cells[2:] for row in by_device.rows] == [[device, "10", "12.0 %"] for device in DEVICES]
    assert [plot.kind for plot in result.plots or []] == [PlotKind.agreement, PlotKind.lines]
    assert len((result.plots or [])[0].series[0].x) == len(DEVICES) * len(TASKS)
