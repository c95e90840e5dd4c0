"""RES-001 and RES-002: what counts as recognised and responded to, what does not, and how much of it is enough."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from conformance.told_faults import BEGIN, OPENED, Story, about, demanded, story, world

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.resilience.detection import (
    CHECK,
    NEVER,
    RECOGNISED,
    RESPONDED,
    RESPONSES,
    Account,
    DetectionRun,
    Response,
    account,
    judge,
    tellings,
)
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.run.judgement import conclude
from kuayu_conformance.testbed.heartbeats import (
    AMID,
    FLAPPING,
    HANG,
    JOB_HUNG,
    KINDS,
    NODE_DEAD,
    RESET,
    SINGLE,
    SLOW,
    Incident,
)
from kuayu_schemas import registers
from kuayu_schemas.models import Replay, RequirementResult


def result(o: DetectionRun, requirement: str) -> RequirementResult:
    its = next(each for each in registers.requirements().requirements if each.id == requirement)
    mine = [each for each in judge(o) if each.requirement == requirement]
    return conclude(its, mine, CHECK.name, Replay.recorded_times, None)


def verdicts(o: DetectionRun) -> list[str]:
    return [result(o, requirement).verdict.value for requirement in (RECOGNISED, RESPONDED)]


def figure(o: DetectionRun, requirement: str) -> Figure:
    return next(each for each in judge(o) if isinstance(each, Figure) and each.requirement == requirement)


def accounted(its: Story) -> Account:
    o = its.observed()
    return account(o.world, o.clock, tellings(o.events), o.responses)


def one(cause: str, suits: Callable[[Incident], bool] = lambda _: True) -> Incident:
    """An incident of a cause."""
    return next(each for each in demanded() if each.cause == cause and suits(each))


def others(left_out: Incident) -> list[Incident]:
    """All but one."""
    return [each for each in demanded() if each is not left_out]


def untroubled() -> list[dict[str, object]]:
    """Nodes to which nothing happens."""
    troubled = {each.node for each in world().incidents}
    return [body for body in world().nodes if body["id"] not in troubled]


def test_who_tells_all_in_time_passes_both() -> None:
    o = story().observed()
    assert verdicts(o) == ["pass", "pass"]
    assert figure(o, RECOGNISED).n == len(demanded()) == 498
    assert figure(o, RECOGNISED).estimate == 1.0
    assert figure(o, RESPONDED).estimate == pytest.approx(2.4, abs=0.01)
    assert [part.label for part in figure(o, RECOGNISED).parts] == list(KINDS)


@pytest.mark.parametrize(("errors", "verdict"), [(0, "pass"), (1, "pass"), (2, "inconclusive"), (5, "fail")])
def test_one_of_so_many_may_be_missed_and_five_are_too_many(errors: int, verdict: str) -> None:
    missed = {id(each) for each in [each for each in demanded() if each.cause == SINGLE][:errors]}
    o = story(lambda each: None if id(each) in missed else 2.0).observed()
    assert result(o, RECOGNISED).verdict.value == verdict
    assert figure(o, RECOGNISED).estimate == pytest.approx(1 - errors / 498)
    assert len(figure(o, RECOGNISED).misses) == errors


@pytest.mark.parametrize(("errors", "verdict"), [(1, "pass"), (2, "inconclusive"), (6, "fail")])
def test_false_alarms_count_as_much(errors: int, verdict: str) -> None:
    its = story()
    for number, body in enumerate(untroubled()[:errors]):
        its.tell(f"false{number}", 50.0, {"kind": NODE_DEAD, "domain": body["domain"], "node": body["id"]})
    o = its.observed()
    assert result(o, RECOGNISED).verdict.value == verdict
    assert figure(o, RECOGNISED).estimate == pytest.approx(498 / (498 + errors))
    assert "only what is so is told" in {miss.expected for miss in figure(o, RECOGNISED).misses}


def test_what_is_told_of_others_who_use_the_same_tenant_is_not_judged() -> None:
    its = story()
    its.tell("dead", 50.0, {"kind": NODE_DEAD, "domain": "somewhere", "node": "someone"})
    its.tell("away", 50.0, {"kind": "domain_unreachable", "domain": "somewhere"})
    assert figure(its.observed(), RECOGNISED).estimate == 1.0
    its.tell("nobody", 50.0, {"kind": NODE_DEAD})
    assert figure(its.observed(), RECOGNISED).estimate == pytest.approx(498 / 499), "what is told of nothing is wrong"


@pytest.mark.parametrize(("seconds", "verdict"), [(2.8, "pass"), (3.0, "pass"), (3.2, "fail")])
def test_a_fifth_of_a_second_makes_the_difference(seconds: float, verdict: str) -> None:
    slow = {id(each) for each in [each for each in demanded() if each.kind in RESPONSES][:25]}
    o = story(acted=lambda each: seconds - 0.001 if id(each) in slow else 2.4).observed()
    assert result(o, RESPONDED).verdict.value == verdict
    assert figure(o, RESPONDED).estimate == pytest.approx(seconds, abs=0.01)


@pytest.mark.parametrize(("late", "verdict"), [(1, "pass"), (2, "inconclusive"), (5, "fail")])
def test_one_late_response_of_so_many_is_no_more_than_chance(late: int, verdict: str) -> None:
    rows = [each for each in demanded() if each.kind in RESPONSES]
    slow = {id(each) for each in rows[:late]}
    o = story(acted=lambda each: 3.2 if id(each) in slow else 2.4).observed()
    assert result(o, RESPONDED).verdict.value == verdict
    assert len(figure(o, RESPONDED).misses) == late


def test_what_has_no_action_within_ten_seconds_never_has_one() -> None:
    rows = [each for each in demanded() if each.kind in RESPONSES][:10]
    o = story(acted=lambda each: (None if each is rows[0] else 10.1) if each in rows else 2.4).observed()
    its = figure(o, RESPONDED)
    assert its.estimate == NEVER
    assert f"10 of {its.n} had none" in its.estimator
    assert "no action in time" in its.misses[0].found


def test_a_job_of_two_domains_is_stopped_in_both_or_not_at_all() -> None:
    hung = one(HANG, lambda each: len(each.queried_domains) == 2)
    its = story(incidents=others(hung))
    its.tell("hung", hung.onset + 1.0, about(hung))
    its.fetch("hung", hung.onset + 1.5, hung.queried_domains[:1])
    assert [each.responded_s for each in accounted(its).outcomes if each.incident is hung] == [float("inf")]
    its.fetch("hung", hung.onset + 2.5, hung.queried_domains[1:])
    found = next(each for each in accounted(its).outcomes if each.incident is hung)
    assert found.responded_s == pytest.approx(2.5)
    assert found.acting_s == pytest.approx(1.5)


@pytest.mark.parametrize("cause", [HANG, SLOW])
def test_what_comes_to_be_so_may_be_told_before(cause: str) -> None:
    its = one(cause)
    for at, wrong in ((its.since + 0.1, 0), (its.since - 0.5, 1)):
        told = story(incidents=others(its))
        told.tell("early", at, about(its))
        told.fetch("early", at + 0.1, its.queried_domains)
        found = accounted(told)
        assert len(found.wrong) == wrong
        outcome = next(each for each in found.outcomes if each.incident is its)
        assert outcome.told_s == 0.0
        assert outcome.responded_s in {0.0, None}


def test_a_hang_that_is_taken_back_before_it_begins_was_not_recognised() -> None:
    its = one(HANG)
    told = story(incidents=others(its))
    told.tell("early", its.since + 0.1, about(its))
    told.tell("early", its.onset - 0.1, about(its), "cleared")
    assert [each.telling for each in accounted(told).outcomes if each.incident is its] == [None]


def test_what_lasts_may_be_told_late_and_what_is_over_may_not() -> None:
    lasting = one(SINGLE, lambda each: each.until > each.onset + 20.0)
    late = story(incidents=others(lasting))
    late.tell("late", lasting.onset + 19.0, about(lasting))
    assert not accounted(late).wrong
    assert all(each.telling for each in accounted(late).outcomes)
    over = one(SINGLE, lambda each: each.until < world().scale.end)
    gone = story(incidents=others(over))
    gone.tell("gone", over.until + 0.5, about(over))
    found = accounted(gone)
    assert [each.fault for each in found.wrong] == ["gone"]
    assert [each.incident for each in found.outcomes if each.telling is None] == [over]


def test_a_node_that_comes_and_goes_is_told_once_and_told_again_is_counted() -> None:
    its = one(FLAPPING)
    told = story()
    told.tell("again", its.until - 1.0, about(its))
    found = accounted(told)
    assert (len(found.wrong), found.repeated) == (0, 1)
    assert "1 were told again" in figure(told.observed(), RECOGNISED).tables[0].title


def test_a_node_that_is_reset_may_be_told_dead_and_need_not_be() -> None:
    short = next(each for each in world().incidents if each.cause == RESET)
    told = story()
    told.tell("short", short.onset + 3.0, about(short))
    assert not accounted(told).wrong
    assert len(accounted(told).outcomes) == 498


def test_nodes_of_a_domain_that_cannot_be_reached_are_not_told_dead() -> None:
    amid = one(AMID)
    its = story(incidents=others(amid))
    its.tell("soon", amid.onset - 3.0, about(amid))
    its.fetch("soon", amid.onset - 2.0, amid.queried_domains)
    found = accounted(its)
    assert [each.fault for each in found.wrong] == ["soon"]
    its.tell("heard", amid.onset + 2.0, about(amid))
    assert len(accounted(its).wrong) == 1


def test_a_fault_is_not_recognised_by_what_was_told_of_one_before_it() -> None:
    rows = [each for each in demanded() if each.kind == NODE_DEAD]
    first, second = next((a, b) for a in rows for b in rows if a.node == b.node and a.onset < b.onset)
    its = story(incidents=others(second))
    found = accounted(its)
    assert first in [each.incident for each in found.outcomes if each.telling]
    assert [each.incident for each in found.outcomes if each.telling is None] == [second]


def test_the_kind_and_what_it_is_about_have_to_be_right() -> None:
    slow = one(SLOW)
    its = story(incidents=others(slow))
    its.tell("other", slow.onset + 1.0, {**about(slow), "rank": (slow.rank or 0) + 1})
    found = accounted(its)
    assert [each.fault for each in found.wrong] == ["other"]
    assert [each.incident for each in found.outcomes if each.telling is None] == [slow]


def test_an_event_of_a_fault_that_goes_on_tells_nothing_new() -> None:
    its = story()
    first = demanded()[0]
    its.tell("f0", first.onset + 5.0, about(first))
    assert accounted(its).repeated == 0
    assert accounted(its).outcomes[0].told_s == pytest.approx(2.0, abs=0.01)


def test_tables_are_whole_and_pictures_end_at_all_of_it() -> None:
    o = story().observed()
    kinds, causes = figure(o, RECOGNISED).tables
    assert [row.cells[0] for row in kinds.rows] == [*KINDS, "all"]
    assert kinds.rows[-1].cells[1:5] == ["498", "498", "0", "0"]
    assert len(causes.rows) == 9
    (times,) = figure(o, RESPONDED).tables
    tables = (kinds, causes, times)
    assert all(len(row.cells) == len(table.columns) for table in tables for row in table.rows)
    assert [row.cells[0] for row in times.rows][-2:] == ["until told", "from there until it can be fetched"]
    for requirement in CHECK.requirements:
        for plot in figure(o, requirement).plots:
            assert all(max(series.y) == 100.0 for series in plot.series)
    labels = [part.label for part in figure(o, RESPONDED).parts]
    assert labels == [*RESPONSES, "until told", "from there until it can be fetched"]


def test_delays_are_those_of_the_clock_of_the_suite() -> None:
    """Where the world waited for the suite, what was due after that began later."""
    o = story().observed()
    o.clock.wait(0.0, 1.0)
    assert figure(o, RESPONDED).estimate == pytest.approx(1.4, abs=0.01)


def test_who_tells_nothing_fails_both() -> None:
    o = Story().observed()
    assert verdicts(o) == ["fail", "fail"]
    assert (figure(o, RECOGNISED).estimate, figure(o, RECOGNISED).bound) == (0.0, 0.0)
    assert figure(o, RESPONDED).estimate == NEVER


REFUSAL = Answer(3, "PUT /v1/nodes/n", 500, body=b"{}")


def test_a_world_that_is_not_taken_fails_with_the_reason() -> None:
    o = replace(Story().observed(), unregistered=(REFUSAL,))
    for requirement in CHECK.requirements:
        its = result(o, requirement)
        assert its.verdict.value == "fail"
        assert its.evidence[0].exchange == 3
    assert not [each for each in judge(o) if isinstance(each, Figure)]


def test_a_stream_that_does_not_open_fails_with_the_reason() -> None:
    o = replace(Story().observed(), openings=(Answer(4, "GET /v1/faults/events", 404),))
    for requirement in CHECK.requirements:
        assert result(o, requirement).verdict.value == "fail"
        assert "stream of faults" in result(o, requirement).evidence[0].expected


def unmet(o: DetectionRun) -> set[tuple[str, str]]:
    return {(each.requirement, each.expected) for each in judge(o) if isinstance(each, Claim) and not each.met}


def test_what_is_refused_is_no_faults_and_no_answers_are_claimed() -> None:
    whole = story().observed()
    assert not unmet(whole)
    taken = (RECOGNISED, "heartbeats and log lines are taken whole")
    listed = (RESPONDED, "open actions are listed, and their results taken")
    assert unmet(replace(whole, refused=(REFUSAL,))) == {taken}
    assert unmet(replace(whole, unanswered=(REFUSAL,))) == {listed}
    odd = replace(whole.events[0], data="{}")
    assert unmet(replace(whole, events=(odd, *whole.events[1:]))) == {(RECOGNISED, "each fault is valid")}
    assert unmet(replace(whole, openings=(OPENED, REFUSAL))) == {
        (requirement, "the stream of faults is opened: 200") for requirement in CHECK.requirements
    }


def test_an_action_that_was_there_before_the_fault_began_is_at_once() -> None:
    hung = one(HANG)
    its = story(incidents=others(hung))
    its.tell("early", hung.since + 0.5, about(hung))
    its.responses += [Response("early", domain, BEGIN + hung.onset - 0.5) for domain in hung.queried_domains]
    assert [each.responded_s for each in accounted(its).outcomes if each.incident is hung] == [0.0]
    assert hung.kind == JOB_HUNG
