"""Changes that are carried out: which begins when, what takes whose place, and what is told of it."""

from typing import Any

import pytest
from conformance.testbed.adjustment.calm_windows import running, window

from kuayu_conformance.testbed.adjustment.run import ASKED_S, ChangeInForce, Codec, JobState, Plant, play
from kuayu_conformance.testbed.adjustment.world import RISE, SLOW, Event, Policy
from kuayu_conformance.testbed.collectives import HIERARCHICAL, LOW, Method
from kuayu_schemas import schema

Json = dict[str, Any]

EVEN = Policy((50, 50), Method(HIERARCHICAL), (0, 1))
SHIFTED = Policy((40, 60), Method(HIERARCHICAL), (0, 1))
RARE = Policy((40, 60), Method(LOW, 5), (0, 1))


def state() -> JobState:
    """A job that moves a part in 50 ms and switches in half a second."""
    return JobState(running(), EVEN)


def test_changes_wait_for_their_time_and_for_the_one_before() -> None:
    """Ten parts take half a second, so does the switch; the second one was to begin in the middle of the first."""
    job = state()
    job.plan(10.0, [(2.0, SHIFTED), (2.25, RARE)], 3)
    assert job.policy == EVEN
    job.go_on(12.0)
    assert job.carried == [ChangeInForce(12.0, 12.5, SHIFTED, 3)]
    assert job.policy == SHIFTED
    job.go_on(12.4)
    assert len(job.planned) == 1
    job.go_on(20.0)
    assert job.carried[1:] == [ChangeInForce(12.5, 13.0, RARE, 3)]
    assert (job.ready, job.planned) == (13.0, [])


def test_a_new_plan_takes_the_place_of_what_has_not_begun_and_no_plan_leaves_it() -> None:
    job = state()
    job.plan(0.0, [(0.0, SHIFTED), (8.0, EVEN)], 0)
    job.go_on(4.0)
    job.plan(4.0, [], 1)
    assert [each.policy for each in job.planned] == [EVEN]
    job.plan(4.0, [(1.0, RARE)], 2)
    job.go_on(30.0)
    assert [(each.begins, each.policy, each.answer) for each in job.carried] == [(0.0, SHIFTED, 0), (5.0, RARE, 2)]


def test_what_is_on_its_way_goes_on_when_a_new_plan_comes() -> None:
    job = state()
    job.plan(4.0, [(0.0, RARE)], 0)
    job.plan(4.0, [(0.0, EVEN)], 1)
    assert job.carried == [ChangeInForce(4.0, 5.0, RARE, 0)]
    job.go_on(5.0)
    assert job.carried[1:] == [ChangeInForce(5.0, 6.0, EVEN, 1)]


def test_a_change_that_changes_nothing_takes_no_time_and_is_passed_over() -> None:
    job = state()
    turned = Policy((50, 50), Method(HIERARCHICAL), (1, 0))
    job.plan(0.0, [(0.0, EVEN), (0.0, turned), (1.0, SHIFTED)], 0)
    job.go_on(9.0)
    assert [each.policy for each in job.carried] == [SHIFTED]


def test_jobs_begin_with_what_is_best_at_the_first_levels() -> None:
    plant = Plant(window(jobs=[running(), running(domains=(2, 0, 1))]))
    assert plant.jobs[0].policy.parts == (50, 50)
    assert sorted(plant.jobs[1].policy.parts) == [33, 33, 34]


def test_a_request_tells_of_policies_plans_and_levels_as_they_stand() -> None:
    world = window(Event(8.0, RISE, 0, 1.4), Event(8.0, SLOW, 2, 3.0))
    plant, wire = Plant(world), Codec(world)
    first = wire.request(plant)
    assert "changed" not in first["jobs"][0]
    assert "planned" not in first["jobs"][0]
    plant.go_on(12.0)
    plant.jobs[0].plan(12.0, [(0.0, RARE), (3.0, SHIFTED)], 0)
    under_way = wire.request(plant)
    assert under_way["jobs"][0]["changed"] == 0.0
    assert under_way["jobs"][0]["planned"] == [
        {"after": 3.0, "parts": [40, 60], "collective": "hierarchical", "period": 1, "order": ["a", "b"]}
    ]
    assert [each["parts"] for each in under_way["jobs"][0]["shares"]] == [40, 60]
    assert under_way["domains"][0]["loads"][-3:] == [0.5, 0.7, 0.7]
    plant.go_on(16.0)
    plant.note_levels()
    after = wire.request(plant)
    assert after["jobs"][0]["changed"] == pytest.approx(16.0 - 15.5)
    assert [each["level"] for each in after["domains"]] == [0.7, 0.5, 0.5]
    slowed = {(each["source"], each["target"]): each["level"] for each in after["links"]}
    assert slowed["a", "b"] == 0.01
    assert slowed["a", "c"] == slowed["c", "b"] == 0.03
    for request in (first, under_way, after):
        assert schema.is_valid("AdjustmentRequest", request)
    assert [each["revision"]["number"] for each in (first, under_way, after)] == [1, 2, 3]


def test_levels_are_those_of_the_last_answer_that_named_or_changed_something() -> None:
    """The load rises at 8 s, and is first named at 16 s: then its level is 0.7, and it is calm from then on."""
    told: list[float] = []

    def adjuster(request: Json) -> Json:
        told.append(request["domains"][0]["level"])
        named = len(told) == 5
        trigger = {"kind": "load", "domain": "a", "before": 0.5, "now": 0.7}
        return {"triggers": [trigger] if named else [], "jobs": []}

    found = play(window(Event(8.0, RISE, 0, 1.4), seconds=40.0), adjuster)
    assert found.request_times == tuple(ASKED_S * number for number in range(10))
    assert told == pytest.approx([0.5] * 5 + [0.7] * 5)


def test_an_answer_about_jobs_that_there_are_not_or_about_one_twice_is_carried_out_as_far_as_it_goes() -> None:
    change = {"after": 0.0, "parts": [40, 60], "collective": "hierarchical", "period": 1, "order": ["a", "b"]}
    again = {**change, "parts": [60, 40]}

    def adjuster(request: Json) -> Json:
        del request
        told = [("nobody", change), ("job", change), ("job", again)]
        return {"triggers": [], "jobs": [{"job": name, "changes": [its]} for name, its in told]}

    found = play(window(seconds=8.0), adjuster)
    assert found.planned == ((0,), (0,))
    assert [each.policy.parts for each in found.jobs[0].carried] == [(40, 60)]
