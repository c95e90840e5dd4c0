"""RES-005 and RES-006: whoever fetches ahead passes, whoever does not or gives no plans does not, and says why."""

import copy
from collections.abc import Sequence
from math import floor

import pytest
from conformance.conforming_shards import Change, episode, source, unchanged
from conformance.recorded import Recorded, Recording

from kuayu_conformance.checks.kit.decisions import GIVEN_UP, Json
from kuayu_conformance.checks.resilience import shards
from kuayu_conformance.checks.resilience.shards import (
    BLOCKED,
    DEMAND,
    QUICK,
    SERVICE,
    WAITING,
    Extent,
    ShardWindow,
    ShardWindows,
    fall,
    judge,
    observe,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding
from kuayu_conformance.run.judgement import conclude
from kuayu_conformance.testbed.shards import FAMILIES, MILD, Outcome
from kuayu_schemas import registers
from kuayu_schemas.models import Replay, RequirementResult

SMALL = Extent(200, {MILD: 4}, beside=False)
WHOLE = Extent(100, dict.fromkeys(FAMILIES, 2), beside=True)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "QUICK", SMALL)
    monkeypatch.setattr(shards, "FULL", WHOLE)


def found(change: Change = unchanged, *, full: bool = False) -> list[Finding]:
    """What the check says of a planner."""
    return list(judge(observe(episode("res_shards", change, full=full))))


def verdict(findings: Sequence[Finding], requirement: str) -> RequirementResult:
    """The result of one requirement."""
    its = next(each for each in registers.requirements().requirements if each.id == requirement)
    mine = [each for each in findings if each.requirement == requirement]
    return conclude(its, mine, "res_shards", Replay.deterministic, None)


def figure(findings: Sequence[Finding], requirement: str) -> Figure:
    """The figure of one requirement."""
    return next(each for each in findings if isinstance(each, Figure) and each.requirement == requirement)


def test_who_fetches_ahead_passes_both() -> None:
    findings = found()
    for requirement in (WAITING, BLOCKED):
        assert verdict(findings, requirement).verdict.value == "pass"
    assert figure(findings, WAITING).bound > 0.9
    (table,) = figure(findings, WAITING).tables
    assert table.columns[2:] == [DEMAND, "fixed, one ahead", SERVICE, "not finished under the service"]


def on_demand(body: Json, answer: Json) -> Json:
    """Fetches the data of a step when its slot is due."""
    due = {each["id"]: (each["due"], each["step_time"]) for each in body["streams"]}
    told = copy.deepcopy(answer)
    for shard in told["shards"]:
        first, time = due[shard["stream"]]
        shard["after"] = first + shard["slot"] * time
    return {**told, "streams": [{**each, "local_when_late": False} for each in told["streams"]]}


def test_who_fetches_on_demand_gains_next_to_nothing_and_fails_both() -> None:
    findings = found(on_demand)
    for requirement in (WAITING, BLOCKED):
        assert verdict(findings, requirement).verdict.value == "fail"
    assert figure(findings, BLOCKED).estimate < 0.2  # a plan ten seconds old asks a little before the slot is due


def test_who_says_that_shards_are_for_slots_far_away_is_blocked_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "QUICK", Extent(200, {MILD: 1}, beside=False))

    def far(body: Json, answer: Json) -> Json:
        told = on_demand(body, answer)
        return {**told, "shards": [{**each, "slot": 9999} for each in told["shards"]]}

    assert figure(found(far), BLOCKED).estimate == figure(found(on_demand), BLOCKED).estimate


def test_many_small_shards_in_time_and_one_large_one_late_do_not_pass_for_few_blocked_ones() -> None:
    def window(blocked: float, by_bytes: float) -> ShardWindow:
        ours = Outcome(0.1, blocked, by_bytes, 100, 0.5)
        return ShardWindow(MILD, 1, {SERVICE: ours, DEMAND: Outcome(0.5, 1.0, 1.0, 40, 0.1)}, {})

    findings = list(judge(ShardWindows((window(0.02, 0.9), window(0.04, 0.8)), 2, None, 0)))
    assert figure(findings, BLOCKED).estimate == pytest.approx(0.15)
    assert verdict(findings, BLOCKED).verdict.value == "fail"
    assert figure(findings, WAITING).estimate == pytest.approx(0.8)
    labels = [part.label for part in figure(findings, BLOCKED).parts]
    assert labels == [f"±30 %, by {what}, against fixed, on demand" for what in ("number", "bytes")]


def test_sums_are_divided_and_not_quotients_averaged_and_the_bounds_hold_the_figure() -> None:
    def window(ours: float, theirs: float) -> ShardWindow:
        both = {name: Outcome(share, share, share, 1, 0.0) for name, share in ((SERVICE, ours), (DEMAND, theirs))}
        return ShardWindow(MILD, 1, both, {})

    its = fall([window(0.0, 0.1), window(0.3, 0.3), window(0.0, 0.4)], "waiting", "seed")
    assert its.estimate == pytest.approx(1 - 0.3 / 0.8)
    assert its.bound == pytest.approx(0.1 / 0.7)  # 1 in 27 samples holds the second window alone, 3 the first as well
    assert its.bound < its.estimate < its.ceiling == 1.0


def test_a_service_that_fails_now_and_then_is_carried_on_by_the_plan_before() -> None:
    class Faltering:
        asked = 0

        def __call__(self, body: Json, answer: Json) -> Json | None:
            del body
            self.asked += 1
            return None if self.asked % 3 == 2 else answer

    findings = found(Faltering())
    assert verdict(findings, WAITING).verdict.value == "pass"
    claim = next(each for each in findings if isinstance(each, Claim))
    assert claim.met
    assert "answers were no shard plan" in claim.found


def no_plan(body: Json, answer: Json) -> None:
    """A server in trouble."""


def nobody(body: Json, answer: Json) -> Json:
    """Plans for streams that nobody asked about."""
    del body
    return {**answer, "streams": [{**each, "stream": "nobody"} for each in answer["streams"]]}


@pytest.mark.parametrize("change", [no_plan, nobody])
def test_windows_without_any_plan_fail_with_the_reason(change: Change) -> None:
    findings = found(change)
    for requirement in (WAITING, BLOCKED):
        result = verdict(findings, requirement)
        assert result.verdict.value == "fail"
        assert result.evidence[0].expected == "a shard plan at least for every window"
        assert result.evidence[0].found.startswith("0 of 4 windows had one")
    assert figure(findings, WAITING).estimate < 0.0  # fixed shards wait less than who fetches nothing


def test_a_service_that_never_answers_is_given_up_soon() -> None:
    made = episode("res_shards", no_plan)
    list(judge(observe(made)))
    assert len(made.exchanges) == GIVEN_UP


def test_a_full_run_prints_all_families_static_schedules_and_who_knows_the_links() -> None:
    findings = found(full=True)
    shown = figure(findings, WAITING)
    shares, schedules = shown.tables
    assert [row.cells[0] for row in shares.rows] == list(FAMILIES)
    assert len(shares.columns) == 9
    assert all(row.cells[6].endswith(" %") for row in shares.rows)
    assert [row.cells[0] for row in schedules.rows] == list(FAMILIES)
    assert len(shown.plots) == len(FAMILIES)
    assert shown.n == WHOLE.windows[MILD]


def test_progress_is_told_window_by_window() -> None:
    told: list[tuple[int, int]] = []
    made = episode("res_shards", unchanged)
    made.passed = lambda done, all_of_them: told.append((done, all_of_them))
    observe(made)
    assert told == [(number + 1, 4) for number in range(4)]


def test_the_findings_follow_from_the_answers_alone() -> None:
    settings = episode("res_shards").settings
    live = Recording(source(unchanged))
    first = list(judge(observe(Episode("res_shards", settings, live))))  # type: ignore[arg-type]  # a source of exchanges alone
    again = list(judge(observe(Episode("res_shards", settings, Recorded(live.kept)))))  # type: ignore[arg-type]  # likewise
    assert again == first


def test_other_nonces_draw_other_windows() -> None:
    one, other = (observe(episode("res_shards", nonce=nonce)).windows for nonce in ("one", "other"))
    assert all(a.outcomes[DEMAND] != b.outcomes[DEMAND] for a, b in zip(one, other, strict=True))


def test_the_quick_run_asks_a_few_hundred_times() -> None:
    asked = sum(QUICK.windows.values()) * floor((60 + QUICK.seconds) / 10)
    assert asked < 600
