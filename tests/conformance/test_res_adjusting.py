"""RES-007, RES-008 and RES-009: who adjusts what has to be, bit by bit, passes all three; who does not, fails one."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import pytest
from conformance.conforming_adjuster import Change, adjust, episode, source, trigger
from conformance.recorded import Recorded, Recording

from kuayu_conformance.checks.kit.decisions import GIVEN_UP, Json
from kuayu_conformance.checks.resilience import adjustment_gain as res_adjusting
from kuayu_conformance.checks.resilience import adjustment_gain as res_adjusting_windows
from kuayu_conformance.checks.resilience.adjustment_gain import (
    ADJUSTED,
    DIP,
    NEVER,
    RECOVERED,
    SERVICE,
    AdjustmentExchange,
    AdjustmentWindow,
    AdjustmentWindows,
    JobTrace,
    calm,
    judge,
    named,
    observe,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding
from kuayu_conformance.run.judgement import conclude
from kuayu_conformance.testbed.adjustment.run import ADJUSTERS, AT_ONCE, KEPT, Disturbance, Score
from kuayu_conformance.testbed.adjustment.run import at_once as opponent
from kuayu_conformance.testbed.adjustment.world import FALL, KINDS, RISE, SLOW, Event, Motion, levels
from kuayu_schemas import registers
from kuayu_schemas.models import Replay, RequirementResult

ALL_THREE = (ADJUSTED, DIP, RECOVERED)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single window: more is not needed to see that something is always wrong."""
    monkeypatch.setattr(res_adjusting, "QUICK", 1)


def found(change: Change | None = None, first: Callable[[Json], Json] = adjust) -> list[Finding]:
    """What the check says of an adjuster."""
    return list(judge(observe(episode(change=change, first=first) if change else episode(first=first))))


def result(findings: Sequence[Finding], requirement: str) -> RequirementResult:
    """The result of one requirement."""
    its = next(each for each in registers.requirements().requirements if each.id == requirement)
    mine = [each for each in findings if each.requirement == requirement]
    return conclude(its, mine, "res_adjusting", Replay.deterministic, None)


def verdicts(findings: Sequence[Finding]) -> list[str]:
    """What becomes of all three."""
    return [result(findings, requirement).verdict.value for requirement in ALL_THREE]


def figure(findings: Sequence[Finding], requirement: str) -> Figure:
    """The figure of one requirement."""
    return next(each for each in findings if isinstance(each, Figure) and each.requirement == requirement)


def complaints(findings: Sequence[Finding]) -> str:
    """All that RES-007 has to say."""
    its = [each for each in findings if isinstance(each, Claim) and each.requirement == ADJUSTED and not each.met]
    return "\n".join(each.found for each in its)


def test_a_conforming_adjuster_passes_all_three_in_a_quick_run_and_others_in_the_same_windows_do_not() -> None:
    findings = found()
    assert verdicts(findings) == ["pass", "pass", "pass"]
    for requirement, tables in ((DIP, 2), (RECOVERED, 3)):
        its = figure(findings, requirement)
        assert its.n >= 59
        assert [part.label for part in its.parts] == [*KINDS, *ADJUSTERS]
        assert len(its.tables) == tables
        assert all(len(row.cells) == len(table.columns) for table in its.tables for row in table.rows)
        assert [row.cells[0] for row in its.tables[1].rows][:3] == [SERVICE, KEPT, AT_ONCE]
        assert all(series.x for series in its.plots[0].series)
    dips, times = ({part.label: part.estimate for part in figure(findings, each).parts} for each in (DIP, RECOVERED))
    assert dips[AT_ONCE] > 0.1
    assert (dips[KEPT], times[KEPT]) == (0.0, NEVER)
    assert figure(findings, RECOVERED).tables[2].rows[-1].cells[0] == "calm minutes, acted in"


def keeps(body: Json, answer: Json) -> Json:
    """Names what has changed, and changes nothing."""
    del body
    return {**answer, "jobs": [{**each, "changes": []} for each in answer["jobs"]]}


@pytest.mark.usefixtures("few")
def test_who_names_changes_and_keeps_policies_has_not_adjusted_itself_and_never_recovers() -> None:
    findings = found(keeps)
    assert verdicts(findings)[0] == "fail"
    assert "no change where it would make" in complaints(findings)
    assert figure(findings, RECOVERED).estimate == NEVER
    assert verdicts(findings)[2] == "fail"
    assert figure(findings, DIP).estimate == 0.0


def deaf(body: Json) -> Json:
    """Never names and never changes anything."""
    return {**keeps(body, adjust(body)), "triggers": []}


@pytest.mark.usefixtures("few")
def test_who_does_nothing_has_missed_every_change() -> None:
    findings = found(first=deaf)
    assert [verdicts(findings)[at] for at in (0, 2)] == ["fail", "fail"]
    assert "no trigger of the" in complaints(findings)
    told = figure(findings, RECOVERED).tables[2].rows
    assert all(row.cells[2] == row.cells[3] for row in told[:3])


def at_once(body: Json) -> Json:
    """What is best at the levels now, in one change."""
    told = opponent(body)
    return deaf(body) if told is None else told


def test_who_changes_all_at_once_does_so_in_time_and_loses_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_adjusting, "QUICK", 8)
    findings = found(first=at_once)
    assert verdicts(findings)[:2] == ["pass", "fail"]
    its = figure(findings, DIP)
    assert its.estimate > 0.1
    assert its.misses[0].expected.endswith("10.0 % at most")
    assert its.parts[-1].estimate == its.estimate


def restless(body: Json, answer: Json) -> Json:
    """Shifts a part from one domain to the other where nothing else is to be done."""
    told = []
    for job, each in zip(body["jobs"], answer["jobs"], strict=True):
        parts = [share["parts"] for share in job["shares"]]
        parts[0], parts[1] = parts[0] + 1, parts[1] - 1
        shifted = {"after": 0.0, "parts": parts, **{name: job[name] for name in ("collective", "period", "order")}}
        told.append(each if each["changes"] else {**each, "changes": [shifted]})
    return {**answer, "jobs": told}


@pytest.mark.usefixtures("few")
def test_who_changes_policies_in_calm_is_found() -> None:
    findings = found(restless)
    assert verdicts(findings)[0] == "fail"
    assert "1 changes where all is calm" in complaints(findings)
    minutes = figure(findings, RECOVERED).tables[2].rows[-1].cells
    assert int(minutes[2]) == int(minutes[3]) > 0


def nervous(body: Json, answer: Json) -> Json:
    """Looks at the last interval alone."""
    named = list(answer["triggers"])
    known = {(each["kind"], each["domain"], each.get("target")) for each in named}
    values = [*(each["loads"] for each in body["domains"]), *(each["latencies"] for each in body["links"])]
    for its, measured in zip(levels(body), values, strict=True):
        if its.key not in known and abs(measured[-1] - its.before) > 0.2 * its.before:
            named.append(trigger(its))
    return {**answer, "triggers": named}


@pytest.mark.usefixtures("few")
def test_who_takes_spikes_for_changes_is_found() -> None:
    findings = found(nervous)
    assert verdicts(findings)[0] == "fail"
    assert "which is calm" in complaints(findings)


def blind(body: Json, answer: Json) -> Json:
    """Sees no link."""
    del body
    return {**answer, "triggers": [each for each in answer["triggers"] if each["kind"] != "latency"]}


def forgetful(body: Json, answer: Json) -> Json:
    """Names the first change alone."""
    del body
    return {**answer, "triggers": answer["triggers"][:1]}


def stammering(body: Json, answer: Json) -> Json:
    """Names the first change twice."""
    del body
    return {**answer, "triggers": [*answer["triggers"][:1], *answer["triggers"]]}


def imprecise(body: Json, answer: Json) -> Json:
    """States what was measured last in place of the level."""
    last = {each["id"]: each["loads"][-1] for each in body["domains"]}
    told = [{**each, "now": last[each["domain"]]} if each["kind"] == "load" else each for each in answer["triggers"]]
    return {**answer, "triggers": told}


def elsewhere(body: Json, answer: Json) -> Json:
    """Names what there is not."""
    nowhere = {"kind": "load", "domain": "nowhere", "before": 0.5, "now": 0.7}
    changed = any(each.motion is Motion.CHANGED for each in levels(body))
    return {**answer, "triggers": [*answer["triggers"], nowhere]} if changed else answer


def silent(body: Json, answer: Json) -> Json:
    """Leaves out the jobs that it has to change."""
    del body
    return {**answer, "jobs": [each for each in answer["jobs"] if not each["changes"]]}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (blind, "no trigger of the latency of"),
        (forgetful, "no trigger of the latency of"),
        (stammering, "is named 2 times"),
        (imprecise, ", where it is from"),
        (elsewhere, "which the request does not hold"),
        (silent, "no change where it would make"),
    ],
)
def test_one_deviation_fails_and_is_told(change: Change, complaint: str) -> None:
    findings = found(change)
    assert verdicts(findings)[0] == "fail"
    assert complaint in complaints(findings)


def late(body: Json, answer: Json) -> Json:
    """Plans everything for a time that never comes."""
    del body
    told = [
        {**each, "changes": [{**its, "after": 1e4 + its["after"]} for its in each["changes"]]}
        for each in answer["jobs"]
    ]
    return {**answer, "jobs": told}


@pytest.mark.usefixtures("few")
def test_who_plans_for_good_and_all_but_never_changes_never_recovers() -> None:
    findings = found(late)
    assert figure(findings, RECOVERED).estimate == NEVER
    assert verdicts(findings)[2] == "fail"


def broken(body: Json, answer: Json) -> Json:
    """Loses a part on the way."""
    del body
    told = [
        {**each, "changes": [{**its, "parts": [its["parts"][0] - 1, *its["parts"][1:]]} for its in each["changes"]]}
        for each in answer["jobs"]
    ]
    return {**answer, "jobs": told}


@pytest.mark.usefixtures("few")
def test_what_cannot_be_carried_out_is_not_and_is_told() -> None:
    findings = found(broken)
    assert figure(findings, RECOVERED).estimate == NEVER
    told = [each for each in figure(findings, DIP).misses if "can be carried out" in each.expected]
    assert "parts in all where a step has" in told[0].found


def window(losses: Sequence[float], seconds: Sequence[float]) -> AdjustmentWindow:
    """A window with disturbances that come to so much."""
    pairs = zip(losses, seconds, strict=True)
    its = tuple(Disturbance(Event(100.0, RISE, 0, 1.5), 200.0, one, other, 1) for one, other in pairs)
    scores = dict.fromkeys((SERVICE, *ADJUSTERS), Score(its, 0.9))
    return AdjustmentWindow(("a",), 1, (), scores, JobTrace(1, {}, {}, ()))


def judged(losses: Sequence[float], seconds: Sequence[float]) -> list[Finding]:
    """What is said of such a window."""
    return list(judge(AdjustmentWindows((window(losses, seconds),), 1, 1)))


@pytest.mark.parametrize(("loss", "verdict"), [(0.09, "pass"), (0.11, "fail")])
def test_a_fiftieth_of_the_steps_makes_the_difference(loss: float, verdict: str) -> None:
    findings = judged([0.02] * 92 + [loss] * 8, [5.0] * 100)
    assert figure(findings, DIP).estimate == loss
    assert verdicts(findings) == ["pass", verdict, "pass"]


@pytest.mark.parametrize(("seconds", "verdict"), [(19.0, "pass"), (21.0, "fail")])
def test_two_seconds_make_the_difference(seconds: float, verdict: str) -> None:
    findings = judged([0.02] * 100, [5.0] * 92 + [seconds] * 8)
    assert figure(findings, RECOVERED).estimate == seconds
    assert verdicts(findings) == ["pass", "pass", verdict]


def test_where_the_bound_alone_is_too_much_nobody_can_tell() -> None:
    findings = judged([0.02] * 97 + [0.11] * 3, [5.0] * 97 + [21.0] * 3)
    assert verdicts(findings) == ["pass", "inconclusive", "inconclusive"]


def test_fewer_disturbances_than_59_tell_nothing_and_what_never_recovers_counts() -> None:
    few = judged([0.02] * 58, [5.0] * 58)
    assert verdicts(few)[1:] == ["inconclusive", "inconclusive"]
    assert (figure(few, DIP).bound, figure(few, RECOVERED).bound) == (1.0, NEVER)
    ever = judged([0.02] * 100, [5.0] * 90 + [inf] * 10)
    assert figure(ever, RECOVERED).estimate == NEVER
    assert "after 10 of 100 some job never recovered" in figure(ever, RECOVERED).estimator
    assert figure(ever, RECOVERED).misses[0].found.startswith("never: load rises to × 1.50")


def heard(
    at: float, *, named: Sequence[Any] = (), changed: Sequence[Any] = (), acted: bool = False
) -> AdjustmentExchange:
    """A question that is calm where nothing has changed."""
    return AdjustmentExchange(at, frozenset(changed), not changed, frozenset(named), acted or bool(named))


def test_a_disturbance_is_missed_where_some_of_what_changed_was_never_named() -> None:
    """The load is named at the second question; of two links that slow down, one is; the third changes too little."""
    load, one, other = ("load", "a", None), ("latency", "a", "b"), ("latency", "b", "a")
    events = [Event(100.0, RISE, 0, 1.5), Event(200.0, SLOW, 0, 2.0), Event(300.0, FALL, 0, 0.8)]
    its = tuple(Disturbance(event, event.instant + 100.0, 0.0, 0.0, 0) for event in events)
    asked = (
        heard(104.0, changed=[load]),
        heard(108.0, changed=[load], named=[load]),
        heard(204.0, changed=[one, other], named=[one]),
        heard(208.0, changed=[other]),
        heard(304.0),
    )
    played = AdjustmentWindow(("a", "b"), 5, asked, {SERVICE: Score(its, 1.0)}, JobTrace(0, {}, {}, ()))
    rises, slows, falls = (named([played], kind) for kind in (RISE, SLOW, FALL))
    assert (rises.missed.times, rises.missed.of, rises.after_s) == (0, 1, 8.0)
    assert (slows.missed.times, slows.missed.of, slows.after_s) == (1, 1, None)
    assert (falls.n, falls.missed.of) == (1, 0)
    assert slows.missed.bound == 1.0
    assert rises.missed.bound == pytest.approx(0.95)


def test_minutes_are_calm_where_all_of_their_questions_are() -> None:
    """Thirty-one calm questions are two minutes and a bit; a change begins them anew."""
    quiet = [heard(4.0 * number) for number in range(31)]
    stirred = [*quiet[:14], heard(0.0, changed=["something"]), *quiet[:20]]
    acting = [*quiet[:3], heard(0.0, acted=True), *quiet[:11]]
    windows = [
        AdjustmentWindow(("a",), 1, tuple(each), {SERVICE: Score((), 1.0)}, JobTrace(0, {}, {}, ()))
        for each in (quiet, stirred, acting)
    ]
    assert (calm(windows).of, calm(windows).times) == (4, 1)


def no_answer(body: Json, answer: Json) -> None:
    """A server in trouble."""


@pytest.mark.usefixtures("few")
def test_a_service_that_answers_nothing_fails_with_the_reason_and_is_not_asked_on_and_on() -> None:
    made = episode(change=no_answer)
    findings = list(judge(observe(made)))
    assert verdicts(findings) == ["fail", "fail", "fail"]
    assert result(findings, ADJUSTED).evidence[0].expected == "every question is answered by an adjustment"
    assert result(findings, DIP).evidence[0].expected == "adjustments in every window"
    assert len(made.exchanges) == GIVEN_UP


@pytest.mark.usefixtures("few")
def test_a_service_that_fails_now_and_then_is_asked_again_and_does_not_adjust_itself_on_every_question() -> None:
    class Faltering:
        asked = 0

        def __call__(self, body: Json, answer: Json) -> Json | None:
            del body
            self.asked += 1
            return None if self.asked % 5 == 0 else answer

    findings = found(Faltering())
    assert verdicts(findings)[0] == "fail"
    claims = [each for each in findings if isinstance(each, Claim) and each.requirement == DIP]
    assert all(each.met for each in claims)
    assert figure(findings, DIP).estimate < 0.1


@pytest.mark.usefixtures("few")
def test_the_findings_follow_from_the_answers_alone() -> None:
    settings = episode().settings
    live = Recording(source())
    first = list(judge(observe(Episode("res_adjusting", settings, live))))  # type: ignore[arg-type]  # a source of exchanges alone
    again = list(judge(observe(Episode("res_adjusting", settings, Recorded(live.kept)))))  # type: ignore[arg-type]  # likewise
    assert again == first


def test_a_full_run_has_more_than_three_hundred_disturbances_and_a_quick_one_enough_for_a_bound() -> None:
    assert 5 * res_adjusting_windows.FULL >= 300
    assert 5 * res_adjusting_windows.QUICK >= 93


def test_progress_is_told_window_by_window_and_other_nonces_draw_other_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_adjusting, "QUICK", 2)
    told: list[tuple[int, int]] = []
    made = episode(nonce="another")
    made.passed = lambda done, all_of_them: told.append((done, all_of_them))
    windows = observe(made).windows
    assert told == [(1, 2), (2, 2)]
    monkeypatch.setattr(res_adjusting, "QUICK", 1)
    assert windows[0].names != observe(episode()).windows[0].names
