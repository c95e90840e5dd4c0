"""From a snapshot to what the service does with each job, and why."""

import json
from dataclasses import replace
from typing import Any

import pytest
from jobs.federations import (
    ASCEND,
    DOUBLE,
    H100,
    Json,
    allocation,
    before,
    federation,
    job,
    link,
    node,
    placed,
    running,
)

from kuayu import canonical
from kuayu.jobs import decisions
from kuayu.jobs.decisions import BrokenInvariantError, JobStep, JobVerb, PassResult, check, decide, record, replay
from kuayu.jobs.federation import FederationSnapshot, scheduling_state
from kuayu.jobs.progress import INTERRUPTED
from kuayu_schemas import schema

A = "nvidia-a100-sxm4-80gb"
H = "nvidia-h100-80gb-hbm3"


def steps_of(snapshot: FederationSnapshot) -> dict[str, JobStep]:
    """Steps of a pass by job; everything that is told is valid."""
    result = decide(snapshot)
    for step in result.steps:
        told = result.job_decision(step)
        assert told is None or schema.errors("JobDecision", told) == []
        for placement in (step.placement, *step.alternatives):
            assert placement is None or schema.errors("JobPlacement", placement) == []
    return {step.job: step for step in result.steps}


def domains_of(step: JobStep) -> set[str]:
    assert step.placement is not None
    return {share["domain"] for share in step.placement["shares"]}


def priced(name: str, domain: str, price: float, count: int = 8) -> Json:
    return node(name, domain, count, extensions={"org.kuayu/price": price})


def test_a_job_is_placed_on_named_nodes_with_its_next_best_and_what_devices_are_worth_to_it() -> None:
    nodes = [node("a1", "a"), node("b1", "b", 8, H100 | DOUBLE)]
    step = steps_of(federation(*nodes, links=[link("a", "b"), link("b", "a")], waiting=[job("j")]))["j"]
    assert step.verb is JobVerb.PLACE
    assert step.placement == placed(("b", H, {"b1": 8}))
    assert step.alternatives == (placed(("a", A, {"a1": 8})),)
    assert step.weights == {"a": {A: 1.0}, "b": {H: 2.0}}
    assert step.decision is not None
    assert step.decision["explanation"]["reason"] == step.reason


def test_the_higher_priority_goes_first_and_of_the_same_the_older_one_and_the_other_is_told_why_it_waits() -> None:
    waiting = [job("low", age=99), job("younger", age=1, priority=5), job("older", age=2, priority=5)]
    one = steps_of(federation(node("a1", "a"), waiting=waiting))
    assert {name: step.verb.value for name, step in one.items()} == {
        "older": "place",
        "younger": "decide",
        "low": "decide",
    }
    assert one["low"].decision is not None
    assert one["low"].decision["verb"] == "wait"
    assert one["low"].reason.startswith("It waits")
    two = steps_of(federation(node("a1", "a"), node("a2", "a"), waiting=waiting))
    assert [name for name, step in two.items() if step.verb is JobVerb.PLACE] == ["older", "younger"]


def test_nobody_is_placed_in_a_domain_that_cannot_be_reached_or_on_a_node_with_a_fault() -> None:
    nodes = [node("a1", "a"), node("b1", "b"), node("b2", "b")]
    fault = {"id": "f", "kind": "node_dead", "domain": "b", "node": "b1"}
    step = steps_of(federation(*nodes, reachable=["b"], faults=[fault], waiting=[job("j")]))["j"]
    assert step.placement == placed(("b", A, {"b2": 8}))


def test_a_job_runs_in_no_domain_but_those_that_it_names_though_others_are_better() -> None:
    nodes = [node("a1", "a"), node("b1", "b", 8, H100 | DOUBLE), node("c1", "c", 8, ASCEND)]
    links = [link(one, other) for one in "abc" for other in "abc" if one != other]
    waiting = [job("free"), job("named", domains=["a", "c"]), job("nowhere", domains=["x"])]
    steps = steps_of(federation(*nodes, links=links, waiting=waiting))
    assert domains_of(steps["free"]) == {"b"}
    assert domains_of(steps["named"]) <= {"a", "c"}
    assert all(share["domain"] in {"a", "c"} for each in steps["named"].alternatives for share in each["shares"])
    assert steps["nowhere"].verb is JobVerb.DECIDE
    assert steps["nowhere"].reason.endswith("It may only run in x.")


TALKS = {"step_time": 0.05, "exchange": 1e6, "boundary": 0.0, "checkpoint_size": 1e6}


def test_a_job_that_is_too_large_for_each_domain_is_spread_or_told_what_it_lacks_for_that() -> None:
    nodes = [node("a1", "a"), node("b1", "b")]
    waiting = [
        job("whole", 16),
        job("silent", 16, split_modes=["periodic"]),
        job("spread", 16, split_modes=["none", "periodic"], communication=TALKS),
    ]
    alone = steps_of(federation(*nodes, waiting=waiting))
    assert {step.verb for step in alone.values()} == {JobVerb.DECIDE}
    assert "may be spread" not in alone["whole"].reason
    assert alone["silent"].reason.endswith("does not say what it sends between them (communication).")
    assert alone["spread"].reason.endswith("no link between those allowed is registered (kuayu domain link).")
    assert alone["spread"].decision is not None
    assert alone["spread"].decision["explanation"]["reason"] == alone["spread"].reason
    joined = steps_of(federation(*nodes, links=[link("a", "b")], waiting=waiting))
    assert domains_of(joined["spread"]) == {"a", "b"}
    assert joined["spread"].placement is not None
    assert joined["spread"].placement["sync_period"] > 1  # the job leaves it open
    assert joined["silent"].reason == alone["silent"].reason
    assert joined["whole"].reason == alone["whole"].reason


def test_where_no_domain_asks_for_its_actions_a_job_is_told_so() -> None:
    nodes = [node("a1", "a"), node("b1", "b")]
    for reachable, told in ((["a"], False), ([], True)):
        step = steps_of(federation(*nodes, reachable=reachable, waiting=[job("large", 99)]))["large"]
        assert step.reason.endswith("No domain asks for its actions now (kuayu domain run).") is told


def test_a_job_that_names_domains_does_not_lose_its_place_to_later_ones() -> None:
    """All are decided on together, by priority."""
    waiting = [job("first", priority=1, domains=["a"]), job("second")]
    steps = steps_of(federation(node("a1", "a"), waiting=waiting))
    assert steps["first"].verb is JobVerb.PLACE
    assert steps["second"].verb is JobVerb.DECIDE


def test_two_jobs_that_start_at_once_in_the_same_domain_do_not_set_each_other_free() -> None:
    """A job confined to a and b that is staging in a brings nothing that would let one confined to b go to a."""
    held = placed(("a", A, {"a1": 8}))
    starting = running("starts", held, state="starting", domains=["a", "b"])
    steps = steps_of(
        federation(
            *(node("a1", "a"), node("a2", "a"), node("b1", "b", 2)),
            links=[link("a", "b"), link("b", "a")],
            active=[starting],
            allocations=[allocation("starts.1.1", "starts", held)],
            waiting=[job("bound", domains=["b"])],
        )
    )
    assert steps["bound"].verb is JobVerb.DECIDE


def test_a_job_that_would_cost_more_than_its_budget_is_held_and_it_is_said_what_it_would_cost() -> None:
    """Eight devices for an hour at two each cost 16."""
    steps = steps_of(
        federation(priced("a1", "a", 2.0), waiting=[job("poor", budget=15.0), job("rich", budget=17.0, age=1.0)])
    )
    assert steps["poor"].verb is JobVerb.HOLD
    assert "16.0" in steps["poor"].reason
    assert "15.00 of its budget" in steps["poor"].reason
    alone = steps_of(federation(priced("a1", "a", 2.0), waiting=[job("rich", budget=17.0)]))
    assert alone["rich"].verb is JobVerb.PLACE


def test_what_was_spent_counts_against_the_budget() -> None:
    spent = job("j", budget=17.0, device_hours=1.0)
    assert steps_of(federation(priced("a1", "a", 2.0), waiting=[spent]))["j"].verb is JobVerb.HOLD


def test_where_the_best_is_too_dear_the_best_that_can_be_afforded_is_started() -> None:
    quick = node("b1", "b", 8, H100 | DOUBLE, extensions={"org.kuayu/price": 40.0})
    step = steps_of(federation(node("a1", "a"), quick, waiting=[job("j", budget=10.0)]))["j"]
    assert step.verb is JobVerb.PLACE
    assert domains_of(step) == {"a"}
    assert step.alternatives == ()


def test_a_job_that_is_held_for_its_budget_is_let_go_when_it_would_do() -> None:
    held = job("j", budget=15.0, state="held")
    assert steps_of(federation(priced("a1", "a", 2.0), held=[held])) == {}
    assert steps_of(federation(priced("a1", "a", 1.5), held=[held]))["j"].verb is JobVerb.RELEASE


def urgent_beside_a_long_one(**members: Any) -> FederationSnapshot:
    """Somebody of high priority wants the only devices, which a job of low priority holds for hours yet."""
    held = placed(("a", A, {"a1": 8}))
    long = {"expected": 360_000.0, "low": 1.0, "high": 1e6, "coverage": 0.8}
    low = running("low", held, since=7200.0, priority=-10, duration=long, **members)
    return federation(
        node("a1", "a"),
        waiting=[job("urgent", priority=100)],
        active=[low],
        allocations=[allocation("low.1.1", "low", held)],
    )


def test_a_job_of_low_priority_is_stopped_for_one_of_high_and_its_reason_says_by_what() -> None:
    steps = steps_of(urgent_beside_a_long_one(checkpoint="file:///ckpt"))
    assert steps["low"].verb is JobVerb.STOP
    assert steps["low"].reason.startswith(INTERRUPTED)
    assert steps["low"].attempt == 1
    assert steps["urgent"].verb is JobVerb.DECIDE


def test_a_job_without_a_checkpoint_is_not_stopped_for_anybody() -> None:
    assert "low" not in steps_of(urgent_beside_a_long_one())


def test_a_job_that_a_decision_interrupted_within_half_an_hour_is_left_alone() -> None:
    snapshot = urgent_beside_a_long_one(checkpoint="file:///ckpt")
    [low] = snapshot.active
    told = {"state": "restarting", "at": before(1200), "attempt": 1, "reason": f"{INTERRUPTED}it makes room"}
    disturbed = replace(snapshot, active=[{**low, "transitions": [told, *low["transitions"]]}])
    assert "low" not in steps_of(disturbed)


def gone_for(beneficiary: str, seconds: float = 5.0, **members: Any) -> Json:
    """A long job that ran on fast devices, as it waits so many seconds after it was stopped to make room."""
    told = running("long", placed(("fast", H, {"f1": 8})), since=7200.0, state="restarting", **members)
    told["transitions"].append({"state": "queued", "at": before(seconds), "attempt": 1, "reason": "it was stopped"})
    told["transitions"][-2]["reason"] = f"{INTERRUPTED}it makes room for {beneficiary}"
    return {name: value for name, value in told.items() if name not in {"allocation", "placement"}} | {
        "state": "queued"
    }


def with_fast_and_slow(**members: Any) -> FederationSnapshot:
    nodes = [node("f1", "fast", 8, H100 | DOUBLE), node("s1", "slow")]
    return federation(*nodes, links=[link("fast", "slow"), link("slow", "fast")], **members)


LONG_ONE: Json = {
    "duration": {"expected": 3.6e6, "low": 3e6, "high": 4.2e6, "coverage": 0.8},
    "checkpoint": "file:///ckpt",
    "account": "red",
}
SHORT_ONE = job("short", account="blue", domains=["fast"])
BLUE_HAS_USED_MORE = [{"id": "blue", "used": 50.0, "weight": 1.0}, {"id": "red", "used": 0.0, "weight": 1.0}]


def test_a_job_that_is_stopped_to_make_room_says_for_whom() -> None:
    held = placed(("fast", H, {"f1": 8}))
    snapshot = with_fast_and_slow(
        waiting=[SHORT_ONE],
        active=[running("long", held, since=7200.0, **LONG_ONE)],
        allocations=[allocation("long.1.1", "long", held)],
    )
    step = steps_of(snapshot)["long"]
    assert (step.verb, step.beneficiary) == (JobVerb.STOP, "short")
    assert step.decision is not None
    assert step.decision["verb"] == "migrate"
    assert steps_of(urgent_beside_a_long_one(checkpoint="file:///ckpt"))["low"].beneficiary == "urgent"


def test_a_job_that_made_room_does_not_take_its_place_back_before_the_other_is_placed() -> None:
    """By what its account has used it would go first; it waits for as long as the other does, and not for ever."""
    waiting = [gone_for("short", **LONG_ONE), SHORT_ONE]
    snapshot = with_fast_and_slow(waiting=waiting, accounts=BLUE_HAS_USED_MORE)
    before_it_was_so = steps_of(snapshot)
    assert domains_of(before_it_was_so["long"]) == {"fast"}
    assert before_it_was_so["short"].verb is JobVerb.DECIDE

    made = replace(snapshot, makes_room={"long": "short"})
    steps = steps_of(made)
    assert domains_of(steps["short"]) == {"fast"}
    assert steps["long"].verb is JobVerb.DECIDE
    assert steps["long"].reason.startswith("It was stopped to make room for short, which goes first.")
    assert replay(record(made)) == decide(made)

    alone = replace(made, waiting=[waiting[0]])
    assert domains_of(steps_of(alone)["long"]) == {"fast"}
    for seconds, placed_again in ((590.0, False), (610.0, True)):
        late = replace(made, waiting=[gone_for("short", seconds, **LONG_ONE), SHORT_ONE])
        assert (steps_of(late)["long"].verb is JobVerb.PLACE) is placed_again
    resting = replace(made, waiting=[waiting[0], SHORT_ONE | {"devices": {"minimum": 8, "maximum": 4}}])
    assert steps_of(resting)["long"].verb is JobVerb.PLACE  # the other could start nowhere


def test_a_run_on_a_dead_node_is_lost_and_nothing_else_is_decided_about_it() -> None:
    held = {name: placed(("a", A, {node: 8})) for name, node in (("on", "a1"), ("off", "a2"))}
    fault = {"id": "fault-1", "kind": "node_dead", "domain": "a", "node": "a1"}
    steps = steps_of(
        federation(
            *(node("a1", "a"), node("a2", "a")),
            active=[running(name, each) for name, each in held.items()],
            allocations=[allocation(f"{name}.1.1", name, each) for name, each in held.items()],
            faults=[fault],
        )
    )
    assert list(steps) == ["on"]
    assert steps["on"].verb is JobVerb.LOSE
    assert steps["on"].attempt == 1
    assert "a1" in steps["on"].reason
    assert "fault-1" in steps["on"].reason


@pytest.mark.parametrize(("reachable", "lost"), [(["a"], False), ([], True)])
def test_a_domain_that_is_not_heard_loses_its_runs_only_if_its_controller_is_silent_too(
    reachable: list[str], lost: bool
) -> None:
    """Heartbeats can fail by themselves; whoever asks for actions can still be told to stop, and tells how runs are."""
    held = placed(("a", A, {"a1": 8}))
    steps = steps_of(
        federation(
            node("a1", "a"),
            active=[running("j", held)],
            allocations=[allocation("j.1.1", "j", held)],
            faults=[{"id": "f", "kind": "domain_unreachable", "domain": "a"}],
            reachable=reachable,
        )
    )
    assert ("j" in steps) is lost


def test_where_nothing_is_registered_jobs_wait_and_are_told_so() -> None:
    for snapshot in (federation(waiting=[job("j")]), federation({"id": "n", "domain": "a"}, waiting=[job("j")])):
        step = steps_of(snapshot)["j"]
        assert step.verb is JobVerb.DECIDE
        assert step.reason == decisions.NOBODY_OFFERS


def test_a_job_that_the_scheduler_refuses_waits_with_the_reason_and_keeps_nobody_else_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever one job contradicts, the others are decided on."""
    monkeypatch.setattr("kuayu.jobs.federation.contradiction", lambda _: None)
    wrong = job("wrong", priority=9, devices={"minimum": 8, "maximum": 4})
    steps = steps_of(federation(node("a1", "a"), waiting=[wrong, job("fine")]))
    assert steps["fine"].verb is JobVerb.PLACE
    assert steps["wrong"].verb is JobVerb.DECIDE
    assert "cannot be decided on" in steps["wrong"].reason


def crowded() -> FederationSnapshot:
    """Three unlike domains, jobs of all kinds, one of them running."""
    held = placed(("a", A, {"a1": 8}))
    return federation(
        *(node("a1", "a"), node("a2", "a"), node("b1", "b", 8, H100 | DOUBLE), node("c1", "c", 4, ASCEND)),
        links=[link(one, other) for one in "abc" for other in "abc" if one != other],
        waiting=[job(f"w{n}", 1 + n % 8, age=float(n), priority=n % 3) for n in range(20)],
        active=[running("r", held, checkpoint="file:///ckpt")],
        allocations=[allocation("r.1.1", "r", held)],
    )


def test_the_same_snapshot_gives_the_same_decisions_also_from_what_was_recorded() -> None:
    first = decide(crowded())
    recorded = json.loads(json.dumps(record(crowded())))
    again = replay(recorded)
    assert again == first
    assert first.digest == canonical.digest(scheduling_state(crowded()).document)
    moved = replay({**recorded, "now": "2026-01-05T00:00:01.000Z"})
    assert moved.digest != first.digest


def test_every_job_that_waits_is_named_once() -> None:
    result = decide(crowded())
    assert sorted(step.job for step in result.steps if step.verb in {JobVerb.PLACE, JobVerb.DECIDE}) == sorted(
        each["id"] for each in crowded().waiting
    )
    assert result.waiting == 20
    assert result.free == 8 + 8 + 4


def broken(result: PassResult, **changes: Any) -> PassResult:
    """The result with the first placement changed."""
    first, *others = [step for step in result.steps if step.verb is JobVerb.PLACE]
    return replace(result, steps=(replace(first, **changes), *others))


def test_a_pass_that_breaks_an_invariant_is_not_carried_out() -> None:
    snapshot = crowded()
    state, result = scheduling_state(snapshot), decide(snapshot)
    check(result, snapshot, state)
    first = next(step for step in result.steps if step.verb is JobVerb.PLACE)
    assert first.placement is not None
    elsewhere = placed(("a", A, {"a1": first.placement["shares"][0]["devices"]}))
    stopped = JobStep("r", JobVerb.STOP, "", 1)
    wrong = {
        "more than one step": replace(result, steps=(first, first)),
        "does not wait": broken(result, job="r"),
        "not free": broken(result, placement=elsewhere),
        "is given": broken(result, placement=placed(("a", A, {"a2": 8, "a1": 8}))),
        "may not be": replace(result, steps=(replace(stopped, job="w1"),)),
    }
    check(replace(result, steps=(stopped,)), snapshot, state)
    for words, made in wrong.items():
        with pytest.raises(BrokenInvariantError, match=words):
            check(made, snapshot, state)
