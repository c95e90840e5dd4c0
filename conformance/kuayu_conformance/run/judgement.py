"""From a transcript to a report, and from findings to a verdict. A run and its re-judgement go through here alike.

Thresholds come from the register and from nowhere else.
"""

import gc
import json
import multiprocessing
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from kuayu_conformance import corpora
from kuayu_conformance.answers import Answer, shorten
from kuayu_conformance.check import Check, Exchanges, RunCheck
from kuayu_conformance.claims import LEFT_TO_LONGER_RUNS
from kuayu_conformance.episode import Episode, FellBehind, NotTestable, SetUpFailure
from kuayu_conformance.findings import Claim, Figure, Finding, reaches
from kuayu_conformance.kept_scores import KeptScores
from kuayu_conformance.origin import origin_of
from kuayu_conformance.run.machine import MachineLoad
from kuayu_conformance.run.plan import (
    ORIGINALS,
    PREAMBLE,
    Plan,
    blank_settings,
    check_of,
    extra_of,
    install_command,
    lacking,
    originals_named,
    testable,
)
from kuayu_conformance.run.replay import ReplaySource
from kuayu_conformance.statistics import rounded
from kuayu_conformance.transcript import Event, Transcript, TranscriptError
from kuayu_schemas.models import (
    ConformanceReport,
    DataTable,
    Environment,
    Evidence,
    Modal,
    Part,
    Profile,
    Replay,
    Requirement,
    RequirementResult,
    Resumption,
    Summary,
    Threshold,
    Verdict,
)

MOST_EVIDENCE = 8
"""Pieces of evidence kept for one requirement; more would hide the first."""
NOTHING_TO_JUDGE = "nothing that could be judged was answered"
"""Why a requirement is not met of which a check that did its part has found nothing."""

Results = dict[str, RequirementResult]
WHOLE_RUN = "whole run"
"""What stands for an episode in evidence that is gathered from all of them."""
EXIT_PASS, EXIT_FAIL, EXIT_OPEN, EXIT_HARNESS = 0, 1, 2, 3
SAYS_NO_LESS = frozenset({Verdict.pass_, Verdict.harness_error})
"""Verdicts that a busy machine takes nothing from: a pass was reached in spite of it, a fault of the suite is one."""
EXCUSE = ", so that delays may be those of the machine"
ROOM = "with the target on another machine, or both on one with more processors"
NOT_REACHED = "the run ended before this check did: "
ASK_MORE = "select other requirements beside it: every answer to what their checks ask is looked at"
GO_ON = "with --resume a run that was called off is gone on with"


def without_verdict(
    requirement: Requirement, verdict: Verdict, reason: str, hint: str = "", *, duration: float | None = None
) -> RequirementResult:
    """Result of a requirement on which nothing was found, and why."""
    applies = verdict not in {Verdict.not_applicable, Verdict.not_supported}
    return RequirementResult(
        requirement=requirement.id,
        verdict=verdict,
        required=applies and requirement.modal is Modal.shall,
        reason=shorten(reason, 2000),
        hint=hint or None,
        threshold=requirement.threshold,
        aim=requirement.aim,
        parts=[],
        evidence=[],
        duration=duration,
    )


def conclude(
    requirement: Requirement,
    findings: Sequence[Finding],
    episode: str,
    replay: Replay,
    duration: float | None,
    last: Answer | None = None,
) -> RequirementResult:
    """Verdict on one requirement from all that was found about it.

    A claim that is not met fails the requirement. A figure passes when its bound lies on the right side of the
    threshold, fails when the estimate itself does not, nor its other bound where it has one, and is inconclusive in
    between.

    Where nothing was found although the target was asked (``last`` is its last answer), the target has answered nothing
    that could be judged, and fails. A check that has asked nothing is at fault itself.
    """
    if not findings and last is not None:
        findings = [Claim(requirement.id, "an answer that this requirement can be judged by", False, last.brief, last)]
        result = conclude(requirement, findings, episode, replay, duration)
        return result.model_copy(update={"reason": NOTHING_TO_JUDGE})
    claims = [finding for finding in findings if isinstance(finding, Claim)]
    figures = [finding for finding in findings if isinstance(finding, Figure)]
    if not findings:
        nothing = "the check asked nothing and found nothing about this requirement"
        return without_verdict(requirement, Verdict.harness_error, nothing, duration=duration)
    unmet = [claim for claim in claims if not claim.met]
    verdict = Verdict.fail if unmet else Verdict.pass_
    reason = f"{len(unmet)} of {len(claims)} expectations were not met" if unmet else None
    result = RequirementResult(
        requirement=requirement.id,
        verdict=verdict,
        required=requirement.modal is Modal.shall,
        threshold=requirement.threshold,
        aim=requirement.aim,
        n=len(claims),
        replay=replay,
        parts=[],
        evidence=[_evidence(claim, episode) for claim in unmet[:MOST_EVIDENCE]],
        duration=duration,
        reason=reason,
    )
    return _with_figure(result, figures[0], episode) if figures else result


def _with_figure(result: RequirementResult, figure: Figure, episode: str) -> RequirementResult:
    limit = result.threshold or result.aim
    if limit is None:
        raise ValueError(f"{result.requirement} has a figure, but neither a threshold nor an aim")
    estimate, bound = rounded(figure.estimate), rounded(figure.bound)
    ceiling = estimate if figure.ceiling is None else rounded(figure.ceiling)
    verdict, reason = result.verdict, result.reason
    if verdict is Verdict.pass_ and result.threshold:  # what is only aimed at is printed and not judged
        verdict, reason = _verdict_on(estimate, bound, ceiling, result.threshold)
    return result.model_copy(
        update={
            "verdict": verdict,
            "reason": reason,
            "estimate": estimate,
            "bound": bound,
            "aim_met": reaches(estimate, result.aim) if result.aim else None,
            "n": figure.n,
            "unit": limit.unit,
            "estimator": figure.estimator,
            "parts": [_part(*part) for part in ((p.label, p.estimate, p.bound, p.n) for p in figure.parts)],
            "evidence": [*result.evidence, *(_evidence(claim, episode) for claim in figure.misses)][:MOST_EVIDENCE],
            "tables": list(figure.tables) or None,
            "plots": list(figure.plots) or None,
        }
    )


def _verdict_on(estimate: float, bound: float, ceiling: float, threshold: Threshold) -> tuple[Verdict, str | None]:
    """Verdict on a figure, and why it is not a pass."""
    words = f"{estimate:g} {threshold.unit} against {threshold.comparison.value} {threshold.value:g}"
    if not (reaches(estimate, threshold) or reaches(ceiling, threshold)):
        return Verdict.fail, f"the figure misses the threshold: {words}"
    if not reaches(estimate, threshold):
        other = f"its other bound {ceiling:g} does not" if isfinite(ceiling) else "but there is too little to tell"
        return Verdict.inconclusive, f"the figure misses the threshold, {other}: {words}"
    if not reaches(bound, threshold):
        return Verdict.inconclusive, f"the figure reaches the threshold, its bound {bound:g} does not: {words}"
    return Verdict.pass_, None


def _part(label: str, estimate: float, bound: float | None, n: int) -> Part:
    return Part(label=label, estimate=rounded(estimate), bound=None if bound is None else rounded(bound), n=n)


def _evidence(claim: Claim, episode: str) -> Evidence:
    answer = claim.answer
    return Evidence(
        episode=(answer and answer.branch) or episode,
        exchange=answer.exchange if answer else None,
        expected=shorten(claim.expected, 2000),
        found=shorten(claim.found, 2000),
        request=shorten(answer.request, 2000) if answer else None,
        answer=answer.brief if answer else None,
    )


def read_declaration(episode: Episode) -> Answer:
    """The answer to GET /v1/conformance, with which a run begins."""
    return episode.ask("GET", "/v1/conformance")


def every(_: Check[Any]) -> bool:
    """Whether a check is wanted where all are."""
    return True


def plan_of(
    transcript: Transcript,
    data: Path | None,
    wanted: Callable[[Check[Any]], bool] = every,
    score_store: KeptScores | None = None,
) -> Plan:
    """The plan that the transcript was made by, with what the wanted checks of it need.

    Raises:
        TranscriptError: Measurements or a trace that the run used are not at hand, or are others by now; or an extra
            that it used is not installed.
    """
    header = transcript.header
    source = ReplaySource(PREAMBLE, transcript.episodes.get(PREAMBLE, ()))
    declaration = read_declaration(Episode(PREAMBLE, blank_settings(header), source))
    plan = Plan.from_header(header, declaration, corpora.shipped())
    plan = replace(plan, begun_anew=transcript.begun_anew, score_store=score_store or KeptScores())
    for extra in sorted(lacking() & {check.extra for check in plan.listed()}):
        raise TranscriptError(f"the run made checks that need the extra {extra}; {install_command(extra)} installs it")
    checks = list(filter(wanted, plan.checks()))
    if any(check.measurements for check in checks):
        plan = replace(plan, tables=(*plan.tables, *_named_tables(header, data)))
    if any(check.traces for check in checks):
        plan = replace(plan, traces=originals_named(header["data"], data))
    return plan


def _named_tables(header: Event, data: Path | None) -> Iterator[corpora.Table]:
    for used in header["data"]:
        if used["name"] in ORIGINALS:
            continue
        try:
            table = corpora.load(used["name"], data)
        except corpora.UnknownTable as unknown:
            raise TranscriptError(
                f"the run used measurements ({used['name']}) that do not come with the suite and are not at hand: "
                f"{unknown}; name their folder with --data or KUAYU_DATA"
            ) from unknown
        if table.digest != used["digest"]:
            raise TranscriptError(f"the measurements {used['name']} at hand are not those that the run used")
        yield table


def judge(
    transcript: Transcript,
    data: Path | None = None,
    passed: Callable[[str, int, int], None] | None = None,
    score_store: KeptScores | None = None,
    processes: int = 1,
) -> ConformanceReport:
    """The report that follows from a transcript, the measurements and traces that it names, and nothing else.

    ``data`` is the folder of those that do not come with the suite; ``passed`` is told how much of a long check has
    been judged: its name, parts that are through, and all of them. What ``score_store`` has need not be computed
    again. Several ``processes`` judge checks side by side, and then nobody is told what has ``passed``.

    Raises:
        TranscriptError: The transcript lacks what every run begins with, or data that it names are not at hand.
    """
    plan = plan_of(transcript, data, score_store=score_store)
    header = transcript.header
    checks = plan.checks()
    if _can_fork(checks, processes):
        results = _judged_side_by_side(checks, transcript, plan, processes)
    else:
        results, exchanges = {}, list[tuple[str, Any, Answer]]()
        for check in checks:
            results_of_check, answered = _judged_again(check, transcript, plan, passed)
            results |= results_of_check
            exchanges += answered
        results |= judge_whole_run(plan, tuple(exchanges), transcript.called_off)
    ordered = [results.get(r.id) or _left_out(r, plan, header["target"]) for r in testable()]
    return ConformanceReport(
        spec_version=header["spec_version"],
        suite_version=header["suite_version"],
        target=header["target"],
        declaration=plan.declaration,
        run_level=plan.level,
        profiles=list(header["profiles"]),
        sub_profiles=list(header.get("sub_profiles", ())) or None,
        selection=list(plan.selection),
        nonce=plan.nonce,
        started_at=header["started_at"],
        finished_at=(transcript.footer or transcript.called_off)["finished_at"],
        called_off=transcript.called_off.get("why"),
        resumptions=[_resumption(event) for event in transcript.resumptions] or None,
        environment=Environment.model_validate(header["environment"]),
        data=[DataTable.model_validate(used) for used in header["data"] if used["name"] in plan.data_names] or None,
        origin=origin_of(header),
        results=ordered,
        summary=_summary(ordered),
        exit_code=exit_code(ordered, nothing_claimed=_declares_nothing(plan)),
        transcript=transcript.digest,
    )


def judge_some(
    transcript: Transcript,
    wanted: Callable[[Check[Any]], bool],
    data: Path | None = None,
    passed: Callable[[str, int, int], None] | None = None,
    score_store: KeptScores | None = None,
    processes: int = 1,
) -> Results:
    """Results of some checks of a run, as :func:`judge` comes to them; nothing of what is looked for in all exchanges.

    Several ``processes`` judge checks side by side, and then nobody is told what has ``passed``.

    Raises:
        TranscriptError: As :func:`judge`.
    """
    plan = plan_of(transcript, data, wanted, score_store)
    checks = list(filter(wanted, plan.checks()))
    results: Results = {}
    if not _can_fork(checks, processes):
        for check in checks:
            results |= _judged_again(check, transcript, plan, passed)[0]
        return results
    for judged in _beside(_judged_beside, checks, transcript, plan, processes).values():
        results |= judged
    return results


def _can_fork(checks: Sequence[Check[Any]], processes: int) -> bool:
    return processes > 1 and len(checks) > 1 and "fork" in multiprocessing.get_all_start_methods()


Judged = TypeVar("Judged")


def _beside(
    judged: Callable[[str], Judged], checks: Sequence[Check[Any]], transcript: Transcript, plan: Plan, processes: int
) -> dict[str, Judged]:
    """What comes of checks that are judged side by side, those first that took longest, by name."""
    longest = sorted(checks, key=lambda check: -(duration_of(transcript.episodes.get(check.name, ())) or 0.0))
    names = [check.name for check in longest]
    gc.freeze()  # a collection would copy what has been read of the transcript to every process
    fork = multiprocessing.get_context("fork")  # others would have to read the transcript anew
    try:
        with ProcessPoolExecutor(processes, fork, _shared.extend, ((transcript, plan),)) as pool:
            return dict(zip(names, pool.map(judged, names), strict=True))
    finally:
        gc.unfreeze()


_shared: list[Any] = []
"""Transcript and plan, in a process that judges checks beside others."""


def _judged_beside(name: str) -> Results:
    transcript, plan = _shared
    check = next(entry for entry in plan.checks() if entry.name == name)
    return _judged_again(check, transcript, plan, None)[0]


@dataclass(frozen=True)
class _Part:
    """What a check of many comes to.

    Attributes:
        results: Of its own requirements.
        findings: What checks over the whole run find in its exchanges, or what kept them from it, by their names.
        last: Its last answer; None where nothing was asked.
    """

    results: Results
    findings: dict[str, list[Finding] | str]
    last: Answer | None


def _judged_side_by_side(checks: Sequence[Check[Any]], transcript: Transcript, plan: Plan, processes: int) -> Results:
    """Results of all checks, and of those over the whole run."""
    parts = _beside(_part_beside, checks, transcript, plan, processes)
    results, together = Results(), dict[str, list[Finding] | str]()
    for check in checks:  # in the order in which their exchanges are looked at
        results |= parts[check.name].results
        for name, findings in parts[check.name].findings.items():
            so_far = together.setdefault(name, [])
            if isinstance(so_far, list):  # the first that kept it from judging stays
                together[name] = so_far + findings if isinstance(findings, list) else findings
    last = next((part.last for check in checks[::-1] if (part := parts[check.name]).last), None)
    for entry in plan.run_checks():
        results |= _over_all(entry, plan, together[entry.name], last, transcript.called_off)
    return results


def _part_beside(name: str) -> _Part:
    transcript, plan = _shared
    check = next(entry for entry in plan.checks() if entry.name == name)
    results, exchanges = _judged_again(check, transcript, plan, None)
    findings = {entry.name: _found_in(entry, tuple(exchanges)) for entry in plan.run_checks()}
    brief = {key: _without_answers(value) if isinstance(value, list) else value for key, value in findings.items()}
    return _Part(results, brief, exchanges[-1][2] if exchanges else None)


def _without_answers(findings: list[Finding]) -> list[Finding]:
    """The same findings, but no answers of which nothing is shown, so that less has to be handed over."""
    return [replace(claim, answer=None) if isinstance(claim, Claim) and claim.met else claim for claim in findings]


def _judged_again(
    check: Check[Any], transcript: Transcript, plan: Plan, passed: Callable[[str, int, int], None] | None
) -> tuple[Results, list[tuple[str, Any, Answer]]]:
    """Results of a check, and all that it had asked."""
    events = transcript.episodes.get(check.name, ())
    if transcript.called_off and duration_of(events) is None:
        return _not_reached(check.name, plan, transcript.called_off), []
    report_progress = partial(passed, check.name) if passed else None
    source = ReplaySource(check.name, without_end(events), transcript.episodes)
    episode = Episode(check.name, plan.settings_of(check), source, report_progress)
    by_requirement = judge_check(check, episode, plan, duration=duration_of(events))
    if truth_of(events) != json.loads(json.dumps(episode.truth)):
        by_requirement = {name: _played_otherwise(result) for name, result in by_requirement.items()}
    load = load_of(events)
    results = excused(by_requirement, check, episode, load, transcript.header["target"]) if load else by_requirement
    results = attributed(results, episode, load) if load else results
    for _, answer in episode.exchanges:
        answer.release()
    return results, [(check.name, *pair) for pair in episode.exchanges]


def _resumption(event: Event) -> Resumption:
    return Resumption(
        at=event["at"],
        broken_off_at=event["broken_off_at"],
        again=event["again"],
        across_epochs=event.get("across_epochs"),
    )


def judge_check(check: Check[Any], episode: Episode, plan: Plan, *, duration: float | None) -> Results:
    """Results of one check; whatever goes wrong in the suite itself is shown as a harness error.

    What the target answers is no fault of the suite: a requirement about which its answers say nothing is not met.
    """
    mine = [r for r in testable() if check_of(r) == check.name and plan.applies(r) is None]
    try:
        findings = list(check.judge(check.observe(episode)))
    except SetUpFailure as failed:
        hint = "see COM-002 and COM-003, which judge the operations themselves"
        return {r.id: without_verdict(r, Verdict.not_testable, str(failed), hint, duration=duration) for r in mine}
    except NotTestable as not_testable:
        episode.behind = not_testable if isinstance(not_testable, FellBehind) else None
        reason, hint = str(not_testable), not_testable.hint
        return {r.id: without_verdict(r, Verdict.not_testable, reason, hint, duration=duration) for r in mine}
    except Exception as error:  # noqa: BLE001 - a fault of the suite must never look like one of the vendor's
        return {r.id: without_verdict(r, Verdict.harness_error, _where(error), duration=duration) for r in mine}
    replay = Replay.recorded_times if check.recorded_times else Replay.deterministic
    if (
        plan.declaration is None and not episode.exchanges
    ):  # what to ask follows from it, so that nothing could be asked
        expected = "a declaration, from which follows what is asked of the target"
        findings += [Claim(r.id, expected, met=False, found="none that can be read") for r in mine]
    last = episode.exchanges[-1][1] if episode.exchanges else None
    return {r.id: conclude(r, _about(r, findings), check.name, replay, duration, last) for r in mine}


def excused(results: Results, check: Check[Any], episode: Episode, load: MachineLoad, target: str) -> Results:
    """The same results, but nothing is held against the target that this machine may have done.

    Where others kept the machine busy, a verdict that rests on the clock, or on an answer that did not come in time,
    says nothing about the target unless it is a pass. Where suite and target alone left too little of it idle, that
    holds for figures: what was expected and was not met stays so, or nothing could fail on a small machine.
    """
    if not load.late or not (check.recorded_times or any(_late(answer) for _, answer in episode.exchanges)):
        return results
    return {
        name: _not_for_this_machine(result, load, target)
        if result.verdict not in SAYS_NO_LESS and (load.busy or result.estimate is not None)
        else result
        for name, result in results.items()
    }


def attributed(results: Results, episode: Episode, load: MachineLoad) -> Results:
    """The same results, but it is said whose it is that a world had to wait.

    It is held against the target where it can be nobody else's. Where suite and target left this machine too little, it
    may be the machine's, and what was not tested is such as others' work would have kept from being tested.
    """
    if episode.behind is None:
        return results
    seconds = [answer.seconds for _, answer in episode.exchanges if answer.status]
    mean = sum(seconds) / len(seconds) if seconds else 0.0
    waited = f"{episode.behind}; at most {episode.behind.most} may be."
    idle = f"{load.idle or 0.0:.1f} of {load.processors} processors"
    if load.round_trip is not None and load.leaves_to_target(mean):
        verdict, hint = Verdict.fail, ""
        reason = (
            f"{waited} It is the target's: an answer took {mean * 1e3:.0f} ms on average, the path "
            f"{load.round_trip * 1e3:.1f} of them, and {idle} of the suite's machine were idle"
        )
    elif load.crowded and not load.busy:
        verdict, hint = Verdict.not_testable, ROOM
        reason = f"{waited} No more than {idle} of the suite's machine were idle{EXCUSE}"
    else:
        return results
    rows = {row.id: row for row in testable()}
    return {
        name: without_verdict(rows[name], verdict, reason, hint, duration=result.duration)
        for name, result in results.items()
    }


def _late(answer: Answer) -> bool:
    """Whether an answer did not come in time, or the target said that it had too much to do."""
    return (not answer.status and "Timeout" in answer.failure) or answer.problem == "overloaded"


def _not_for_this_machine(result: RequirementResult, load: MachineLoad, target: str) -> RequirementResult:
    again = f"kuayu conformance run --target {target} --requirement {result.requirement} -o DIR"
    outcome = "; ".join(filter(None, (result.verdict.value, result.reason)))
    requirement = next(row for row in testable() if row.id == result.requirement)
    return without_verdict(
        requirement,
        Verdict.not_testable,
        f"{load.words}{EXCUSE}; found all the same: {outcome}",
        f"{'when the machine has less to do' if load.busy else ROOM}, run {again}",
        duration=result.duration,
    )


def machine_was_busy(result: RequirementResult) -> bool:
    """Whether nothing was said of a requirement since the suite's machine was busy with something else."""
    return result.verdict is Verdict.not_testable and EXCUSE in (result.reason or "")


def _not_reached(check: str, plan: Plan, called_off: Event) -> Results:
    """Results of a check that the run had not ended when it was called off."""
    mine = [row for row in testable() if check_of(row) == check and plan.applies(row) is None]
    return {row.id: without_verdict(row, Verdict.not_testable, NOT_REACHED + called_off["why"], GO_ON) for row in mine}


def judge_whole_run(plan: Plan, exchanges: Exchanges, called_off: Event) -> Results:
    """Results of checks over all exchanges; of a run that was called off, only what it shows to be wrong."""
    results: Results = {}
    last = exchanges[-1][2] if exchanges else None
    for check in plan.run_checks():
        results |= _over_all(check, plan, _found_in(check, exchanges), last, called_off)
    return results


def _found_in(check: RunCheck, exchanges: Exchanges) -> list[Finding] | str:
    """What a check over the whole run finds in exchanges; where it fails, why."""
    try:
        return list(check.judge(exchanges))
    except Exception as error:  # noqa: BLE001 - as above
        return _where(error)


def _over_all(
    check: RunCheck, plan: Plan, findings: list[Finding] | str, last: Answer | None, called_off: Event
) -> Results:
    """Results of a check over the whole run from what it has found, and the last answer of the run."""
    mine = [r for r in testable() if check_of(r) == check.name and plan.applies(r) is None]
    if isinstance(findings, str):
        return {r.id: without_verdict(r, Verdict.harness_error, findings) for r in mine}
    if last is None:
        reason = "nothing was asked in this run that it could be judged by"
        return {r.id: without_verdict(r, Verdict.not_testable, reason, ASK_MORE) for r in mine}
    shown = None if called_off else last
    results = {r.id: conclude(r, _about(r, findings), WHOLE_RUN, Replay.deterministic, None, shown) for r in mine}
    open_ = _not_reached(check.name, plan, called_off) if called_off else {}
    return {n: r if r.verdict is Verdict.fail else open_.get(n, r) for n, r in results.items()}


def _where(error: Exception) -> str:
    if isinstance(error, TranscriptError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (in {place.name}, line {place.lineno})"


def _about(requirement: Requirement, findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.requirement == requirement.id]


def _left_out(requirement: Requirement, plan: Plan, target: str) -> RequirementResult:
    verdict, reason = plan.applies(requirement) or (
        Verdict.harness_error,
        "the register names a check that is not there",
    )
    extra = extra_of(requirement) if verdict is Verdict.not_testable else ""
    hint = install_command(extra) if extra else ""
    if reason == LEFT_TO_LONGER_RUNS:
        hint = f"run kuayu conformance run --target {target} --level quick --requirement {requirement.id} -o DIR"
    return without_verdict(requirement, verdict, reason, hint)


def _played_otherwise(result: RequirementResult) -> RequirementResult:
    requirement = next(row for row in testable() if row.id == result.requirement)
    reason = "what was played, as the transcript says, is not what follows from its nonce"
    return without_verdict(requirement, Verdict.harness_error, reason, duration=result.duration)


MARKS = ("truth", "machine", "end")
"""Kinds of the events with which an episode ends: what was played, what the machine did, and that it is through."""


def without_end(events: Sequence[Event]) -> Sequence[Event]:
    """Events of an episode that the target had a part in: without the mark of its end and what the machine did."""
    marks = sum(event.get("kind") in MARKS for event in events[-len(MARKS) :])
    return events[: len(events) - marks]


def truth_of(events: Sequence[Event]) -> list[Any]:
    """What was played in an episode, where the transcript keeps it."""
    return next((list(event["value"]) for event in events[-len(MARKS) :] if event.get("kind") == "truth"), [])


def load_of(events: Sequence[Event]) -> MachineLoad | None:
    """How busy the machine was during an episode, where that is on record."""
    return next((MachineLoad.of(event) for event in events[-len(MARKS) :] if event.get("kind") == "machine"), None)


def duration_of(events: Sequence[Event]) -> float | None:
    """Seconds that the episode took, from the mark of its end."""
    return next((float(event["seconds"]) for event in events[-len(MARKS) :] if event.get("kind") == "end"), None)


def _summary(results: list[RequirementResult]) -> list[Summary]:
    counted = {verdict: sum(result.verdict is verdict for result in results) for verdict in Verdict}
    return [Summary(verdict=verdict, count=count) for verdict, count in counted.items() if count]


def _declares_nothing(plan: Plan) -> bool:
    """Whether a run was to judge all that is declared, and that is no profile and no part of one."""
    return not plan.selection and plan.declaration is not None and plan.declared <= {Profile.COM}


def exit_code(results: Iterable[RequirementResult], *, nothing_claimed: bool = False) -> int:
    """Exit code of a run with these results; where ``nothing_claimed`` is, nothing can be passed.

    A requirement that is not met is not met whatever befell the suite elsewhere, so a fault of the suite stands beside
    failures and never hides them; only where nothing failed does it leave the run without a verdict.
    """
    verdicts = {result.verdict for result in results if result.required}
    if Verdict.fail in verdicts:
        return EXIT_FAIL
    if Verdict.harness_error in verdicts:
        return EXIT_HARNESS
    if verdicts & {Verdict.inconclusive, Verdict.not_testable} or nothing_claimed:
        return EXIT_OPEN
    return EXIT_PASS
