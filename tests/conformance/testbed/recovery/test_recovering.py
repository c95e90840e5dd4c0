"""Plans carried out as the clause says, worked out by hand; ``plain_windows`` has the sizes."""

import dataclasses
from math import inf

import pytest
from conformance.testbed.recovery.plain_windows import (
    HERE,
    THERE,
    fails,
    first,
    go_on,
    in_turn,
    job,
    plain,
    played,
    replace,
    restore,
)

from kuayu_conformance.testbed.recovery.world import Incident

HOME = ("job", HERE, 100.0)


def only(incidents: tuple[Incident, ...]) -> Incident:
    """The one incident of a window."""
    (its,) = incidents
    return its


def test_a_job_of_two_goes_on_with_half_of_it_after_regrouping_and_is_never_whole_again() -> None:
    world = plain(job(replicas=2), faults=[fails(500.0, 1)], ends=1000.0)
    outcome, planner, run = played(world, first(go_on()))
    its = only(outcome.incidents)
    assert (its.kind, its.had, its.switch_s) == ("node", 2, inf)
    assert its.interruption_s == pytest.approx(3.0 + 5.0)
    assert run.state.jobs[0].progress == pytest.approx(500.0 + (1000.0 - 508.0) / 2)
    assert planner.instants[:3] == [503.0, 518.0, 528.0]  # ten seconds after the recovery is over


def test_to_go_on_again_when_nothing_is_left_to_be_given_up_takes_no_time() -> None:
    world = plain(job(replicas=2), faults=[fails(500.0, 1)], ends=1000.0)
    outcome, planner, _ = played(world, lambda _: [go_on()])
    assert only(outcome.incidents).interruption_s == pytest.approx(8.0)
    assert len(planner.instants) > 40
    assert only(outcome.incidents).strategies == ["go_on"]


def test_a_replica_is_replaced_while_the_other_goes_on() -> None:
    """3 s until asked, 20 s for the state, 30 s to start, 5 s to regroup; it stood for 3 + 5 s, and for 5 s."""
    world = plain(job(replicas=2), faults=[fails(500.0, 1)], ends=1000.0)
    outcome, planner, run = played(world, first(replace({1: ["here-0"]})))
    its = only(outcome.incidents)
    assert its.switch_s == pytest.approx(3.0 + 20.0 + 30.0 + 5.0)
    assert its.interruption_s == pytest.approx(3.0 + 5.0 + 5.0)
    assert run.state.jobs[0].progress == pytest.approx(500.0 + 45.0 / 2 + (1000.0 - 558.0))
    assert planner.instants == [503.0]
    assert its.least_s == pytest.approx(20.0)


def test_where_too_few_are_whole_to_go_on_it_stands_until_the_others_have_joined() -> None:
    world = plain(job(replicas=2, least=2), faults=[fails(500.0, 1)], ends=1000.0)
    outcome, _, _ = played(world, first(replace({1: ["here-0"]})))
    its = only(outcome.incidents)
    assert its.switch_s == its.interruption_s == pytest.approx(58.0)
    assert its.lost_s == 0.0


def test_two_replicas_that_are_replaced_share_what_the_whole_one_gives() -> None:
    world = plain(job(replicas=3), faults=[fails(500.0, 1, 2)], ends=1000.0)
    outcome, _, _ = played(world, first(replace({1: ["here-0"], 2: ["here-1"]})))
    assert only(outcome.incidents).switch_s == pytest.approx(3.0 + 40.0 + 30.0 + 5.0)


def test_a_restored_job_does_again_what_was_done_since_the_copy() -> None:
    """Checkpoints at 100 and 200 s hold 100 and 198 s of work; the fault at 250 s finds 246. The third pauses it."""
    world = plain(job(), faults=[fails(250.0, 0)], ends=1000.0)
    outcome, planner, run = played(world, first(restore({0: ["here-0"]}, HERE)), HOME)
    its = only(outcome.incidents)
    assert planner.told(0)["copies"] == [{"domain": HERE, "age": 48.0}]
    assert its.switch_s == pytest.approx(3.0 + 10.0 + 30.0)
    assert its.lost_s == pytest.approx(48.0)
    assert its.interruption_s == pytest.approx(43.0 + 48.0 + 2.0)
    assert its.least_s == pytest.approx(10.0)
    assert run.state.jobs[0].progress == pytest.approx(198.0 + (1000.0 - 293.0) - 2.0 * 7)


def test_a_copy_is_there_only_when_all_of_it_has_come() -> None:
    """That of 200 s takes until 220."""
    world = plain(job(), faults=[fails(216.0, 0)], ends=1000.0)
    _, planner, _ = played(world, first(restore({0: ["here-0"]}, HERE)), HOME)
    assert planner.told(0)["copies"] == [{"domain": HERE, "age": 112.0}]


def test_a_copy_that_is_due_while_the_one_before_is_under_way_is_skipped_and_pauses_nothing() -> None:
    """The link carries half of what was measured, so that a copy takes 400 s where it is due every 210."""
    world = plain(job(), ends=1000.0)
    slow = dataclasses.replace(world, links=dataclasses.replace(world.links, carried=world.links.carried / 2))
    outcome, _, run = played(slow, first(), ("job", THERE, 210.0))
    assert (outcome.copies, outcome.skipped) == (2, 2)
    assert run.state.jobs[0].copies == {1: 210.0}
    assert run.state.jobs[0].progress == pytest.approx(1000.0 - 4.0)


def test_copies_that_are_due_at_once_come_of_one_checkpoint() -> None:
    outcome, _, run = played(plain(job(), ends=450.0), first(), ("job", THERE, 200.0), HOME)
    assert outcome.copies == 4 + 2
    assert run.state.jobs[0].progress == pytest.approx(450.0 - 4 * 2.0)


def test_two_restored_at_once_share_the_store_and_one_over_a_link_does_not_need_all_of_it() -> None:
    world = plain(job(), job("other"), faults=[fails(250.0, 0, 1)], ends=1000.0)
    copies = (HOME, ("other", HERE, 100.0))
    both = first(restore({0: ["here-0"]}, HERE), restore({0: ["here-1"]}, HERE, "other"))
    outcome, _, _ = played(world, both, *copies)
    assert [its.switch_s for its in outcome.incidents] == pytest.approx([3.0 + 20.0 + 30.0] * 2)
    apart = first(restore({0: ["here-0"]}, HERE), restore({0: ["there-0"]}, HERE, "other"))
    outcome, _, _ = played(world, apart, *copies)
    assert [its.switch_s for its in outcome.incidents] == pytest.approx([53.0, 133.0])


def test_copies_keep_their_share_from_who_is_restored_meanwhile() -> None:
    """The other job's copy is under way from 300 to 320 s; from 303 the state gets 40 Gbit/s, and all of it after."""
    world = plain(job(), job("other"), faults=[fails(300.0, 0)], ends=1000.0)
    outcome, _, _ = played(world, first(restore({0: ["here-0"]}, HERE)), HOME, ("other", HERE, 100.0))
    left = 800.0 - (320.0 - 303.0) * 40.0
    assert outcome.incidents[0].switch_s == pytest.approx(20.0 + left / 80.0 + 30.0)


def test_with_fewer_replicas_a_restored_job_takes_longer_for_what_it_does_again_and_is_not_whole() -> None:
    """48 s of work were lost, which one of two replicas does in 96; the checkpoint of 300 s pauses it."""
    world = plain(job(replicas=2), faults=[fails(250.0, 0, 1)], ends=390.0)
    outcome, _, run = played(world, first(restore({0: ["here-0"]}, HERE)), HOME)
    its = only(outcome.incidents)
    assert its.switch_s == inf
    assert its.interruption_s == inf  # 96 s from 293 on, and 2 s: one too few
    assert run.state.jobs[0].progress == pytest.approx(198.0 + (390.0 - 293.0 - 2.0) / 2)
    longer = dataclasses.replace(world, ends_s=398.0)
    outcome, _, _ = played(longer, first(restore({0: ["here-0"]}, HERE)), HOME)
    assert only(outcome.incidents).interruption_s == pytest.approx(43.0 + 96.0 + 2.0)
    assert only(outcome.incidents).switch_s == inf


def test_a_second_fault_while_a_recovery_is_under_way_is_part_of_the_incident() -> None:
    """The spare fails at 520 s, the recovery is off, and the other spare is given at 523."""
    world = plain(job(replicas=2), faults=[fails(500.0, 1), fails(520.0, 4)], ends=1000.0)
    outcome, planner, _ = played(world, in_turn([replace({1: ["here-0"]})], [replace({1: ["here-1"]})]))
    its = only(outcome.incidents)
    assert planner.instants == [503.0, 523.0]
    assert its.switch_s == pytest.approx(23.0 + 20.0 + 30.0 + 5.0)
    assert its.interruption_s == pytest.approx(3.0 + 5.0 + 5.0)  # the whole one went on all the time
    states = {node["id"]: node["condition"] for node in planner.asked[1][1]["nodes"]}
    assert states["here-0"] == "failed"


def test_a_fault_of_the_whole_one_meanwhile_stops_all_of_it() -> None:
    world = plain(job(replicas=2), faults=[fails(450.0, 1), fails(470.0, 0)], ends=1000.0)
    then = in_turn([replace({1: ["here-0"]})], [restore({0: ["here-0"], 1: ["here-1"]}, HERE)])
    outcome, _, _ = played(world, then, HOME)
    its = only(outcome.incidents)
    assert its.switch_s == pytest.approx(23.0 + 10.0 + 30.0)
    assert its.lost_s == pytest.approx((50.0 - 2.0) + (470.0 - 458.0) / 2)
    assert its.strategies == ["replace", "restore"]


def test_nodes_are_held_from_the_plan_on_and_free_when_they_are_given_up_or_repaired() -> None:
    world = plain(job(replicas=2, nodes_each=2), job("other", replicas=2), faults=[fails(500.0, 2), fails(505.0, 4)])
    outcome, planner, _ = played(world, in_turn([replace({1: ["job-1-1", "here-0"]})], [go_on("other")], []))
    del outcome
    at, body = planner.asked[1]
    assert at == 508.0
    assert {each["id"] for each in body["jobs"]} == {"other", "keeper", "other keeper"}
    assert "here-0" not in {node["id"] for node in body["nodes"]}
    late = next(body for at, body in planner.asked if at > 1510.0)
    free = {node["id"]: node["condition"] for node in late["nodes"] if "job" not in node}
    assert free["job-1-0"] == free["other-0-0"] == "fit"


def test_who_waits_is_asked_every_ten_seconds_and_never_whole() -> None:
    world = plain(job(), faults=[fails(500.0, 0)], ends=600.0)
    outcome, planner, _ = played(world, lambda _: [{**go_on(), "strategy": "wait"}])
    assert planner.instants == [503.0 + 10.0 * each for each in range(10)]
    assert only(outcome.incidents).switch_s == only(outcome.incidents).interruption_s == inf


def test_nobody_is_told_of_a_fault_before_it_is_known() -> None:
    """A question is due a second after the second fault, and is put off until both are known."""
    world = plain(job(replicas=2), job("other"), faults=[fails(500.0, 0), fails(512.0, 2)], ends=600.0)
    _, planner, _ = played(world, lambda _: [])
    assert planner.instants[:3] == [503.0, 515.0, 525.0]


def test_what_a_plan_expects_is_held_against_what_happens() -> None:
    world = plain(job(), faults=[fails(250.0, 0)], ends=1000.0)
    told = {**restore({0: ["here-0"]}, HERE), "resumes": 100.0}
    outcome, _, _ = played(world, first(told), HOME)
    (its,) = outcome.predictions
    assert (its.strategy, its.expected_s) == ("restore", 100.0)
    assert its.happened_s == pytest.approx(90.0)
