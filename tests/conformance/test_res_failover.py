"""RES-003 and RES-004: who holds spares and copies and uses both passes, whoever lacks one of them does not."""

from collections.abc import Sequence
from math import inf

import pytest
from conformance.conforming_recovery import Change, episode, source, unchanged
from conformance.recorded import Recorded, Recording

from kuayu_conformance.checks.kit.decisions import GIVEN_UP, Json
from kuayu_conformance.checks.resilience import failover as res_failover
from kuayu_conformance.checks.resilience.failover import (
    INTERRUPTION,
    NEVER,
    QUICK,
    SERVICE,
    SWITCH,
    Extent,
    FailoverWindow,
    FailoverWindows,
    judge,
    observe,
)
from kuayu_conformance.checks.resilience.resilience_requests import BACKUPS
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding
from kuayu_conformance.run.judgement import conclude
from kuayu_conformance.testbed.recovery.run import COLD, FIXED, Outcome
from kuayu_conformance.testbed.recovery.world import KINDS, Holdings, Incident
from kuayu_schemas import registers
from kuayu_schemas.models import Replay, RequirementResult

SMALL, WHOLE = Extent(1, beside=False), Extent(1, beside=True)
"""A single window: more is not needed to see what is always right or wrong."""
FEW = Extent(3, beside=False)
"""Windows with enough incidents for some that only whoever lacks copies elsewhere does not survive in time."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_failover, "QUICK", SMALL)
    monkeypatch.setattr(res_failover, "FULL", WHOLE)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_failover, "QUICK", FEW)


def found(change: Change = unchanged, *, full: bool = False) -> list[Finding]:
    """What the check says of a planner."""
    return list(judge(observe(episode("res_failover", change, full=full))))


def verdict(findings: Sequence[Finding], requirement: str) -> str:
    """What becomes of one requirement."""
    return result(findings, requirement).verdict.value


def result(findings: Sequence[Finding], requirement: str) -> RequirementResult:
    """The result of one requirement."""
    its = next(each for each in registers.requirements().requirements if each.id == requirement)
    mine = [each for each in findings if each.requirement == requirement]
    return conclude(its, mine, "res_failover", Replay.deterministic, None)


def figure(findings: Sequence[Finding], requirement: str) -> Figure:
    """The figure of one requirement."""
    return next(each for each in findings if isinstance(each, Figure) and each.requirement == requirement)


def test_a_conforming_planner_passes_both_in_a_quick_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_failover, "QUICK", QUICK)
    findings = found()
    assert [verdict(findings, each) for each in (SWITCH, INTERRUPTION)] == ["pass", "pass"]
    assert figure(findings, SWITCH).n >= 59
    assert figure(findings, SWITCH).estimate < figure(findings, SWITCH).bound < 300.0
    assert [part.label for part in figure(findings, SWITCH).parts] == list(KINDS)
    assert not figure(findings, SWITCH).misses


def no_nodes(path: str, body: Json, answer: Json) -> Json:
    """Gives nobody a node."""
    if path == BACKUPS:
        return answer
    told = []
    for each in answer["recoveries"]:
        job = next(its for its in body["jobs"] if its["id"] == each["job"])
        fit = [node for node in body["nodes"] if node.get("job") == each["job"] and node["condition"] == "fit"]
        counts = [sum(node["replica"] == number for node in fit) for number in range(job["replicas"])]
        whole = sum(count == job["nodes_each"] for count in counts)
        way = "go_on" if whole >= job["least_replicas"] else "wait"
        told.append({"job": each["job"], "strategy": way, "replicas": [], "after": 0.0})
    return {**answer, "recoveries": told}


def test_who_never_uses_spares_fails() -> None:
    findings = found(no_nodes)
    assert verdict(findings, SWITCH) == "fail"
    assert figure(findings, SWITCH).estimate == NEVER
    assert "were not over at the end" in figure(findings, SWITCH).estimator


def no_spares(path: str, body: Json, answer: Json) -> Json:
    """Holds no spares."""
    del body
    return answer if path != BACKUPS else {**answer, "pools": [{**each, "spares": 0} for each in answer["pools"]]}


def test_who_holds_no_spares_fails() -> None:
    assert verdict(found(no_spares), SWITCH) == "fail"


def no_copies(path: str, body: Json, answer: Json) -> Json:
    """Keeps no copies."""
    del body
    return answer if path != BACKUPS else {**answer, "copies": []}


@pytest.mark.usefixtures("few")
def test_who_keeps_no_copies_fails() -> None:
    findings = found(no_copies)
    assert [verdict(findings, each) for each in (SWITCH, INTERRUPTION)] == ["fail", "fail"]


def at_home(path: str, body: Json, answer: Json) -> Json:
    """Keeps copies in the job's own domain alone."""
    homes = {job["id"]: job["domain"] for job in body["jobs"]}
    if path != BACKUPS:
        return answer
    return {**answer, "copies": [each for each in answer["copies"] if homes[each["job"]] == each["domain"]]}


@pytest.mark.usefixtures("few")
def test_who_keeps_copies_at_home_alone_does_not_pass() -> None:
    findings = found(at_home)
    assert [verdict(findings, each) for each in (SWITCH, INTERRUPTION)] == ["fail", "fail"]


def rarely(path: str, body: Json, answer: Json) -> Json:
    """Takes checkpoints once in half an hour."""
    del body
    if path != BACKUPS:
        return answer
    return {**answer, "copies": [{**each, "period": max(each["period"], 1800.0)} for each in answer["copies"]]}


def test_who_takes_checkpoints_rarely_restores_soon_and_interrupts_for_long() -> None:
    findings = found(rarely)
    assert figure(findings, SWITCH).estimate < 300.0
    assert verdict(findings, INTERRUPTION) == "fail"


def waits(path: str, body: Json, answer: Json) -> Json:
    """Lets all jobs stand still."""
    del body
    if path == BACKUPS:
        return answer
    told = [{"job": each["job"], "strategy": "wait", "replicas": [], "after": 0.0} for each in answer["recoveries"]]
    return {**answer, "recoveries": told}


def test_who_always_waits_fails() -> None:
    findings = found(waits)
    assert [verdict(findings, each) for each in (SWITCH, INTERRUPTION)] == ["fail", "fail"]


def window(switch: Sequence[float], interruption: Sequence[float]) -> FailoverWindow:
    """A window with incidents of such times."""
    pairs = zip(switch, interruption, strict=True)
    its = tuple(Incident(0, "node", 5000.0, 2, 1.0, one, other) for one, other in pairs)
    outcome = Outcome(its, (), Holdings((), ()), 0.0, 5.0, 0.0, 0, 0, len(its))
    return FailoverWindow(backed=True, plans=1, outcomes={SERVICE: outcome})


@pytest.mark.parametrize(("seconds", "verdict_of_it"), [(290.0, "pass"), (310.0, "fail")])
def test_half_a_minute_makes_the_difference(seconds: float, verdict_of_it: str) -> None:
    times = [60.0] * 92 + [seconds] * 8
    findings = list(judge(FailoverWindows((window(times, [2 * each for each in times]),), 1)))
    assert figure(findings, SWITCH).estimate == seconds
    assert [verdict(findings, each) for each in (SWITCH, INTERRUPTION)] == [verdict_of_it] * 2


def test_where_the_bound_alone_is_too_late_nobody_can_tell() -> None:
    times = [60.0] * 97 + [310.0] * 3
    findings = list(judge(FailoverWindows((window(times, times),), 1)))
    assert (verdict(findings, SWITCH), verdict(findings, INTERRUPTION)) == ("inconclusive", "pass")


def test_fewer_incidents_than_59_tell_nothing_and_what_never_ends_counts() -> None:
    few = list(judge(FailoverWindows((window([60.0] * 58, [60.0] * 58),), 1)))
    assert verdict(few, SWITCH) == "inconclusive"
    assert figure(few, SWITCH).bound == NEVER
    ever = list(judge(FailoverWindows((window([60.0] * 90 + [inf] * 10, [60.0] * 100),), 1)))
    assert figure(ever, SWITCH).estimate == NEVER
    assert (verdict(ever, SWITCH), verdict(ever, INTERRUPTION)) == ("fail", "pass")


def test_a_full_run_prints_others_on_the_same_faults_and_what_was_expected() -> None:
    findings = found(full=True)
    for requirement, tables in ((SWITCH, 2), (INTERRUPTION, 3)):
        its = figure(findings, requirement)
        assert len(its.tables) == tables
        kinds, beside = its.tables[:2]
        assert [row.cells[0] for row in kinds.rows][-1] == "all"
        assert [row.cells[0] for row in beside.rows] == [SERVICE, FIXED, COLD]
        assert all(len(row.cells) == len(table.columns) for table in its.tables for row in table.rows)
        assert [series.label for series in its.plots[0].series] == [SERVICE, FIXED, COLD]
    parts = {part.label: part.estimate for part in figure(findings, SWITCH).parts}
    assert parts[COLD] > 300.0
    strategies = [row.cells[0] for row in figure(findings, INTERRUPTION).tables[2].rows]
    assert {"replace", "restore"} <= set(strategies)


def greedy(path: str, body: Json, answer: Json) -> Json:
    """Gives the first job what another holds, and plans for more spares than there shall be."""
    if path == BACKUPS:
        return {**answer, "pools": [{**each, "spares": each["spares"] + 1} for each in answer["pools"]]}
    taken = [node["id"] for node in body["nodes"] if "job" in node and node["condition"] == "fit"]
    first, *others = answer["recoveries"]
    placed = [{**each, "nodes": taken[: len(each["nodes"])]} for each in first["replicas"]]
    return {**answer, "recoveries": [{**first, "replicas": placed}, *others]}


def test_what_is_unsound_is_not_carried_out_and_is_told() -> None:
    findings = found(greedy)
    assert verdict(findings, SWITCH) == "fail"
    expected = [each.expected for each in figure(findings, SWITCH).misses]
    assert expected[0].startswith("recoveries that can be carried out, in every failover plan")
    assert expected[-1] == "backup plans that can be held"
    assert "where a pool has" in figure(findings, SWITCH).misses[-1].found


def no_plan(path: str, body: Json, answer: Json) -> None:
    """A server in trouble."""


def no_failover(path: str, body: Json, answer: Json) -> Json | None:
    """Backs up and does nothing else."""
    del body
    return answer if path == BACKUPS else None


@pytest.mark.parametrize("change", [no_plan, no_failover])
@pytest.mark.usefixtures("few")
def test_windows_without_plans_fail_with_the_reason(change: Change) -> None:
    made = episode("res_failover", change)
    findings = list(judge(observe(made)))
    for requirement in (SWITCH, INTERRUPTION):
        its = result(findings, requirement)
        assert its.verdict.value == "fail"
        assert its.evidence[0].expected == "a backup plan, and a failover plan at least, for every window"
        assert its.evidence[0].found.startswith("0 of 3 windows had them")
    assert len(made.exchanges) <= GIVEN_UP + 1


def test_a_service_that_fails_now_and_then_is_asked_again() -> None:
    class Faltering:
        asked = 0

        def __call__(self, path: str, body: Json, answer: Json) -> Json | None:
            del body
            self.asked += 1
            return None if path != BACKUPS and self.asked % 5 == 0 else answer

    findings = found(Faltering())
    claim = next(each for each in findings if isinstance(each, Claim))
    assert claim.met
    assert "answers were no plan" in claim.found
    assert figure(findings, SWITCH).estimate < 300.0


def test_the_findings_follow_from_the_answers_alone() -> None:
    settings = episode("res_failover").settings
    live = Recording(source(unchanged))
    first = list(judge(observe(Episode("res_failover", settings, live))))  # type: ignore[arg-type]  # a source of exchanges alone
    again = list(judge(observe(Episode("res_failover", settings, Recorded(live.kept)))))  # type: ignore[arg-type]  # likewise
    assert again == first


def test_progress_is_told_window_by_window_and_other_nonces_draw_other_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_failover, "QUICK", Extent(2, beside=False))
    told: list[tuple[int, int]] = []
    made = episode("res_failover", nonce="another")
    made.passed = lambda done, all_of_them: told.append((done, all_of_them))
    windows = observe(made).windows
    assert told == [(1, 2), (2, 2)]
    monkeypatch.setattr(res_failover, "QUICK", SMALL)
    assert windows[:1] != observe(episode("res_failover")).windows
