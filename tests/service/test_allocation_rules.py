"""The rules of allocations: small stories by hand, and what holds whatever domains do."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.service import allocation_rules
from kuayu.service.allocation_rules import FINISHED, AllocationStanding, Result, Step, held_in, placements
from kuayu_schemas import schema
from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, AllocationPhase

PATIENCE_MS = 10_000

PREPARE, COMMIT, ABORT = ActionPhase.prepare, ActionPhase.commit, ActionPhase.abort
GRANTED = {PREPARE: ActionOutcome.prepared, COMMIT: ActionOutcome.committed, ABORT: ActionOutcome.aborted}


def placement(*domains: str) -> dict[str, Any]:
    shares = [{"domain": domain, "accelerator": "a800", "devices": 8} for domain in domains]
    return {"shares": shares, "split_mode": "none" if len(domains) == 1 else "synchronous"}


def allocation(*alternatives: Sequence[str]) -> dict[str, Any]:
    first, *others = (placement(*domains) for domains in alternatives)
    return {
        "id": "train-7",
        "job": "job-7",
        "revision": {"epoch": "e", "number": 4},
        "placement": first,
        **({"alternatives": others} if others else {}),
    }


def open_steps(standing: AllocationStanding) -> list[Step]:
    return [step for step in standing.steps if step.open]


def shown(standing: AllocationStanding) -> set[tuple[str, int, str]]:
    """Domain, attempt and phase of what is asked."""
    return {(step.domain, step.attempt, step.phase.value) for step in open_steps(standing)}


def answer(
    standing: AllocationStanding, domain: str, outcome: ActionOutcome | None = None, now: int = 1
) -> AllocationStanding:
    """A domain answers the oldest step that it is shown, well unless it is said how."""
    step = next(step for step in open_steps(standing) if step.domain == domain)
    return told(standing, Result(step.action, step.phase, outcome or GRANTED[step.phase]), now)


def told(standing: AllocationStanding, result: Result, now: int) -> AllocationStanding:
    """A domain has said something; the turn of what waits for it comes at once, as where nothing else is of the job."""
    standing = allocation_rules.take_result(standing, result, now)
    return allocation_rules.begin_commit(standing, now) if standing.ready else standing


def late(
    standing: AllocationStanding, attempt: int, domain: str, phase: ActionPhase, now: int = 1
) -> AllocationStanding:
    """A domain grants a step whatever has become of it."""
    [step] = [
        step
        for step in standing.steps
        if (step.attempt, step.domain, step.phase, step.kind) == (attempt, domain, phase, ActionKind.reserve)
    ]
    return told(standing, Result(step.action, phase, GRANTED[phase]), now)


def test_all_promise_then_all_take() -> None:
    standing = allocation_rules.begin(allocation(("x", "y")), 0)
    assert shown(standing) == {("x", 0, "prepare"), ("y", 0, "prepare")}
    standing = answer(standing, "x")
    assert standing.phase is AllocationPhase.preparing
    standing = answer(standing, "y")
    assert standing.phase is AllocationPhase.committing
    assert shown(standing) == {("x", 0, "commit"), ("y", 0, "commit")}
    standing = answer(answer(standing, "y"), "x")
    assert standing.phase is AllocationPhase.committed
    assert standing.holding == standing.spec["placement"]
    assert standing.deadline is None
    assert not open_steps(standing)


def test_both_steps_of_an_action_bear_one_name_and_keep_to_the_schema() -> None:
    standing = allocation_rules.begin(allocation(("x",), ("x",)), 0)
    first = standing.steps[0]
    assert first.body["expires_after"] == 10.0
    assert (first.body["devices"], first.body["accelerator"]) == (8, "a800")
    assert "nodes" not in first.body
    standing = answer(standing, "x")
    assert [step.action for step in standing.steps] == [first.action] * 2
    standing = answer(answer(standing, "x", ActionOutcome.expired), "x")
    assert open_steps(standing)[0].action != first.action  # another attempt
    assert all(schema.errors("Action", dict(step.body)) == [] for step in standing.steps)


def test_one_refusal_has_everyone_let_go_and_then_the_alternative_is_tried() -> None:
    standing = answer(allocation_rules.begin(allocation(("x", "y"), ("z",)), 0), "x")
    standing = answer(standing, "y", ActionOutcome.refused)
    assert standing.phase is AllocationPhase.aborting
    assert shown(standing) == {("x", 0, "abort"), ("y", 0, "abort")}
    standing = answer(standing, "x")
    assert standing.phase is AllocationPhase.aborting
    standing = answer(standing, "y")
    assert standing.phase is AllocationPhase.preparing
    assert shown(standing) == {("z", 1, "prepare")}
    standing = answer(answer(standing, "z"), "z")
    assert standing.holding == placement("z")
    assert standing.reason == "y answered prepare with refused"


def test_silence_beyond_patience_is_a_refusal_and_the_silent_find_the_abort() -> None:
    standing = answer(allocation_rules.begin(allocation(("x", "y"), ("x",)), 0), "x")
    assert allocation_rules.expire(standing, PATIENCE_MS - 1) == standing
    standing = allocation_rules.expire(standing, PATIENCE_MS)
    assert shown(standing) == {("x", 0, "abort"), ("y", 0, "abort")}
    standing = answer(standing, "x", now=PATIENCE_MS + 1)
    standing = allocation_rules.expire(standing, 2 * PATIENCE_MS)
    assert standing.phase is AllocationPhase.preparing
    assert shown(standing) == {("y", 0, "abort"), ("x", 1, "prepare")}


def test_a_partition_between_the_phases_takes_back_what_was_committed() -> None:
    standing = answer(answer(allocation_rules.begin(allocation(("x", "y")), 0), "x"), "y")
    standing = answer(standing, "x")
    standing = allocation_rules.expire(standing, 1 + PATIENCE_MS)
    assert shown(standing) == {("x", 0, "abort"), ("y", 0, "abort")}
    standing = allocation_rules.expire(answer(standing, "x"), 1 + 2 * PATIENCE_MS)
    assert standing.phase is AllocationPhase.aborting  # y may hold its share, and run the job
    assert standing.deadline is None
    assert shown(standing) == {("y", 0, "abort")}  # for when it is back
    standing = late(standing, 0, "y", COMMIT)
    assert standing.phase is AllocationPhase.aborting
    standing = answer(standing, "y")
    assert standing.phase is AllocationPhase.refused
    assert not open_steps(standing)


def test_the_alternative_waits_for_whoever_may_have_committed_but_not_for_a_silent_promise() -> None:
    standing = answer(answer(allocation_rules.begin(allocation(("x", "y"), ("z",)), 0), "x"), "y")
    standing = allocation_rules.expire(answer(allocation_rules.expire(standing, 1 + PATIENCE_MS), "x"), 9 * PATIENCE_MS)
    assert (standing.attempt, standing.may_be_held) == (0, True)
    assert shown(answer(standing, "y", now=9 * PATIENCE_MS)) == {("z", 1, "prepare")}


def test_one_that_could_not_let_go_is_asked_again_until_it_has() -> None:
    standing = answer(allocation_rules.begin(allocation(("x",)), 0), "x")
    standing = answer(standing, "x", ActionOutcome.failed)
    assert standing.may_be_held  # what was begun and not finished may run
    assert answer(standing, "x", ActionOutcome.failed) == standing
    standing = answer(standing, "x")
    assert (standing.phase, standing.may_be_held) == (AllocationPhase.refused, False)


def test_one_that_let_go_by_itself_takes_the_whole_allocation_with_it() -> None:
    standing = allocation_rules.begin(allocation(("x", "y")), 0)
    for domain in ("x", "y", "x", "y"):
        standing = answer(standing, domain)
    assert allocation_rules.lapse(standing, ["z"], 5) == standing
    gone = allocation_rules.lapse(standing, ["y"], 5)
    assert (gone.phase, gone.reason) == (AllocationPhase.releasing, "y let go without being asked")
    assert [(step.domain, step.kind) for step in open_steps(gone)] == [("x", ActionKind.release)]
    assert answer(gone, "x").phase is AllocationPhase.released


def test_one_that_let_go_by_itself_while_others_commit_leads_to_the_alternative() -> None:
    standing = answer(answer(allocation_rules.begin(allocation(("x", "y"), ("z",)), 0), "x"), "y")
    standing = allocation_rules.lapse(answer(standing, "y"), ["y"], 5)
    assert standing.phase is AllocationPhase.aborting
    assert shown(standing) == {("x", 0, "abort")}
    assert shown(answer(standing, "x")) == {("z", 1, "prepare")}


def test_a_domain_that_is_silent_for_good_is_waited_for_no_longer_once_its_lease_is_over() -> None:
    standing = allocation_rules.begin(allocation(("x", "y")), 0)
    for domain in ("x", "y", "x", "y"):
        standing = answer(standing, domain)
    standing = answer(allocation_rules.withdraw(standing, 5), "x")
    assert standing.may_be_held
    assert allocation_rules.lapse(standing, ["y"], 9).phase is AllocationPhase.released


def test_what_a_domain_loses_of_an_earlier_attempt_does_not_touch_the_present_one() -> None:
    standing = answer(answer(allocation_rules.begin(allocation(("x", "y"), ("z",)), 0), "x"), "y")
    standing = answer(answer(allocation_rules.lapse(standing, ["y"], 5), "x"), "z")
    standing = late(answer(standing, "z"), 0, "y", COMMIT)
    assert (standing.phase, standing.may_be_held) == (AllocationPhase.committed, True)
    standing = allocation_rules.lapse(standing, ["y"], 9)
    assert standing.phase is AllocationPhase.committed
    assert not open_steps(standing)


def test_what_was_committed_and_is_told_as_expired_is_gone() -> None:
    standing = allocation_rules.begin(allocation(("x", "y")), 0)
    for domain in ("x", "y", "x", "y"):
        standing = answer(standing, domain)
    told_so = Result(standing.steps[1].action, COMMIT, ActionOutcome.expired)
    gone = allocation_rules.take_result(standing, told_so, 5)
    assert gone.phase is AllocationPhase.releasing
    assert allocation_rules.take_result(gone, told_so, 6) == gone
    assert answer(gone, "x").phase is AllocationPhase.released


def test_a_domain_that_says_late_that_it_committed_holds_up_the_alternative() -> None:
    standing = answer(answer(allocation_rules.begin(allocation(("x", "y"), ("z",)), 0), "x"), "y")
    standing = answer(answer(standing, "y", ActionOutcome.expired), "y")
    standing = answer(standing, "x")  # its answer to the abort overtakes that to the commit
    assert shown(standing) == {("z", 1, "prepare")}
    standing = answer(late(standing, 0, "x", COMMIT), "z")
    assert shown(standing) == {("x", 0, "abort")}
    assert not standing.ready
    assert shown(answer(standing, "x")) == {("z", 1, "commit")}


def test_a_late_promise_is_aborted_again_and_revives_nothing() -> None:
    standing = allocation_rules.expire(allocation_rules.begin(allocation(("x",), ("z",)), 0), PATIENCE_MS)
    standing = answer(standing, "x", now=PATIENCE_MS)
    assert shown(standing) == {("z", 1, "prepare")}
    standing = late(standing, 0, "x", PREPARE, PATIENCE_MS)
    assert standing.phase is AllocationPhase.preparing
    assert shown(standing) == {("x", 0, "abort"), ("z", 1, "prepare")}
    assert late(standing, 0, "x", PREPARE, PATIENCE_MS) == standing


def test_an_answer_that_comes_with_the_deadline_is_late() -> None:
    standing = late(allocation_rules.begin(allocation(("x",)), 0), 0, "x", PREPARE, PATIENCE_MS)
    assert standing.phase is AllocationPhase.aborting
    assert shown(standing) == {("x", 0, "abort")}


def test_the_first_answer_counts() -> None:
    standing = answer(allocation_rules.begin(allocation(("x", "y")), 0), "x")
    again = Result(standing.steps[0].action, PREPARE, ActionOutcome.prepared)
    assert allocation_rules.take_result(standing, again, 1) == standing
    other = Result(standing.steps[0].action, PREPARE, ActionOutcome.refused)
    assert allocation_rules.take_result(standing, other, 1) == standing


def test_who_cannot_tell_is_asked_again() -> None:
    standing = allocation_rules.begin(allocation(("x",)), 0)
    assert answer(standing, "x", ActionOutcome.unknown) == standing


@pytest.mark.parametrize(("phase", "outcome"), [(PREPARE, "committed"), (PREPARE, "aborted")])
def test_a_step_does_not_end_like_another(phase: ActionPhase, outcome: str) -> None:
    standing = allocation_rules.begin(allocation(("x",)), 0)
    with pytest.raises(allocation_rules.MisfitError):
        allocation_rules.take_result(standing, Result(standing.steps[0].action, phase, ActionOutcome(outcome)), 1)


def test_what_was_not_asked_is_not_answered() -> None:
    standing = allocation_rules.begin(allocation(("x",)), 0)
    with pytest.raises(allocation_rules.NotAskedError):
        allocation_rules.take_result(standing, Result(standing.steps[0].action, COMMIT, ActionOutcome.committed), 1)


def test_what_is_held_is_given_back_when_nobody_wants_it() -> None:
    standing = allocation_rules.begin(allocation(("x", "y")), 0)
    for domain in ("x", "y", "x", "y"):
        standing = answer(standing, domain)
    standing = allocation_rules.withdraw(standing, 5)
    assert standing.phase is AllocationPhase.releasing
    assert {step.kind for step in open_steps(standing)} == {ActionKind.release}
    assert shown(standing) == {("x", 0, "commit"), ("y", 0, "commit")}
    reserved = {step.domain: step.action for step in standing.steps if step.kind is ActionKind.reserve}
    assert {step.domain: step.body["reservation"] for step in open_steps(standing)} == reserved
    assert all(schema.errors("Action", dict(step.body)) == [] for step in standing.steps)
    assert allocation_rules.withdraw(standing, 6) == standing
    standing = answer(answer(standing, "x"), "y")
    assert standing.phase is AllocationPhase.released
    assert standing.holding is None


def test_what_is_being_asked_for_is_let_go_and_no_alternative_follows() -> None:
    standing = allocation_rules.withdraw(allocation_rules.begin(allocation(("x",), ("y",)), 0), 1)
    assert shown(standing) == {("x", 0, "abort")}
    standing = answer(standing, "x")
    assert standing.phase is AllocationPhase.refused
    assert allocation_rules.withdraw(standing, 2) == standing


def test_a_withdrawal_while_letting_go_keeps_alternatives_from_being_tried() -> None:
    standing = answer(allocation_rules.begin(allocation(("x",), ("y",)), 0), "x", ActionOutcome.refused)
    standing = answer(allocation_rules.withdraw(standing, 1), "x")
    assert standing.phase is AllocationPhase.refused


def test_domains_get_their_time_anew_after_the_service_was_away() -> None:
    standing = allocation_rules.begin(allocation(("x",)), 0)
    assert allocation_rules.resume(standing, 50_000).deadline == 50_000 + PATIENCE_MS
    ended = allocation_rules.expire(allocation_rules.expire(standing, PATIENCE_MS), 2 * PATIENCE_MS)
    assert allocation_rules.resume(ended, 50_000) == ended


UNEVEN = ({"node": "m", "devices": 7}, {"node": "n", "devices": 1})


def test_what_is_held_is_where_domains_say_and_else_where_it_was_asked_to_be() -> None:
    asked = placement("x", "y")
    asked["shares"][0]["nodes"] = [{"node": "o", "devices": 8}]
    assert held_in(asked, {"x": None, "y": ()}) == asked
    [first, second] = held_in(asked, {"x": UNEVEN})["shares"]
    assert first["nodes"] == list(UNEVEN)
    assert second == asked["shares"][1]


def test_nodes_of_the_commit_prevail_over_those_of_the_promise() -> None:
    standing = allocation_rules.begin(allocation(("x",)), 0)
    name = standing.steps[0].action
    promised = ({"node": "o", "devices": 8},)
    standing = told(standing, Result(name, PREPARE, ActionOutcome.prepared, promised), 1)
    taken = allocation_rules.take_result(standing, Result(name, COMMIT, ActionOutcome.committed, UNEVEN), 1)
    assert taken.holding is not None
    assert taken.holding["shares"][0]["nodes"] == list(UNEVEN)
    silent = allocation_rules.take_result(standing, Result(name, COMMIT, ActionOutcome.committed), 1)
    assert silent.holding is not None
    assert silent.holding["shares"][0]["nodes"] == list(promised)


def test_nodes_that_do_not_make_up_what_was_asked_for_are_no_promise() -> None:
    standing = allocation_rules.begin(allocation(("x",)), 0)
    name = standing.steps[0].action
    with pytest.raises(allocation_rules.MisfitError, match="8 devices") as trouble:
        allocation_rules.take_result(standing, Result(name, PREPARE, ActionOutcome.prepared, UNEVEN[:1]), 1)
    assert trouble.value.member == "nodes"
    refused = allocation_rules.take_result(standing, Result(name, PREPARE, ActionOutcome.refused, UNEVEN[:1]), 1)
    assert refused.phase is AllocationPhase.aborting  # where it would have been does not matter


OUTCOMES = [outcome for outcome in ActionOutcome if outcome not in GRANTED.values()]
MOVES = st.one_of(
    st.tuples(st.just("grant"), st.integers(0, 9)),
    st.tuples(st.just("deny"), st.integers(0, 9)),
    st.tuples(st.just("late"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.integers(0, 15_000)),
    st.tuples(st.just("withdraw"), st.just(0)),
    st.tuples(st.just("restart"), st.just(0)),
)


@settings(max_examples=300, deadline=None)
@given(moves=st.lists(MOVES, max_size=40), chance=st.randoms())
def test_whatever_domains_do_all_is_held_or_nothing_and_it_ends(moves: list[tuple[str, int]], chance: Any) -> None:
    standing, now = allocation_rules.begin(allocation(("x", "y"), ("y", "z"), ("x",)), 0), 0
    for kind, number in moves:
        before = standing
        steps = open_steps(standing) if kind in {"grant", "deny"} else list(standing.steps)
        if kind == "wait":
            now += number
            standing = allocation_rules.expire(standing, now)
        elif kind == "withdraw":
            standing = allocation_rules.withdraw(standing, now)
        elif kind == "restart":
            standing = allocation_rules.resume(standing, now)
        elif steps:
            step = steps[number % len(steps)]
            outcome = chance.choice(OUTCOMES) if kind == "deny" else GRANTED[step.phase]
            standing = told(standing, Result(step.action, step.phase, outcome), now)
        check(before, standing)
    for _ in range(20):  # everyone answers and time passes
        for step in open_steps(standing):
            standing = told(standing, Result(step.action, step.phase, GRANTED[step.phase]), now)
        now += PATIENCE_MS
        standing = allocation_rules.expire(standing, now)
    assert standing.phase in FINISHED | {AllocationPhase.committed}
    assert not open_steps(standing)


def check(before: AllocationStanding, after: AllocationStanding) -> None:
    """What must hold after every move."""
    reserved = {step.action for step in after.steps if step.kind is ActionKind.reserve}
    aborted = {step.action for step in after.steps if step.phase is ABORT}
    for attempt in range(after.attempt):  # every other attempt was called off everywhere
        assert {step.action for step in after.steps if step.attempt == attempt} & reserved <= aborted
    assert (after.holding is not None) == (after.phase in {AllocationPhase.committed, AllocationPhase.releasing})
    if after.phase is AllocationPhase.committed:
        current = [step for step in after.steps if step.attempt == after.attempt and step.kind is ActionKind.reserve]
        taken = {step.domain for step in current if step.outcome is ActionOutcome.committed}
        assert taken == {share["domain"] for share in placements(after.spec)[after.attempt]["shares"]}
        assert not {step.action for step in current} & aborted
    for step in open_steps(after):  # nobody is asked to take and to let go at once
        assert step.phase is ABORT or step.action not in aborted
    assert before.phase not in FINISHED or after.phase is before.phase
    waiting = after.phase is AllocationPhase.aborting and after.may_be_held
    timeless = after.phase in FINISHED | {AllocationPhase.committed, AllocationPhase.releasing}
    assert waiting or (after.deadline is None) == timeless
