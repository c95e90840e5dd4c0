"""Domains that fail or are cut off, worked out by hand; ``plain_windows`` has the sizes."""

from math import inf

import pytest
from conformance.testbed.recovery.plain_windows import (
    HERE,
    THERE,
    YONDER,
    Json,
    first,
    go_on,
    job,
    plain,
    played,
    restore,
)

from kuayu_conformance.testbed.recovery.world import CUT_OFF, DOMAIN, Fault

FAR = ("job", THERE, 200.0)
HOME = ("job", HERE, 100.0)


def away(kind: str, lasts: float, at: float = 450.0, domain: int = 0) -> Fault:
    """A domain that nothing is heard of."""
    return Fault(at, kind, domain, lasts_s=lasts)


def test_a_job_of_a_domain_that_failed_is_restored_elsewhere_once_it_is_fenced() -> None:
    """The copy of 200 s took until 400; that of 400 s is lost with its way. 446 s of work were done, 200 are held."""
    world = plain(job(), faults=[away(DOMAIN, 1000.0)], ends=2000.0)
    outcome, planner, run = played(world, first(restore({0: ["there-0"]}, THERE, after=27.0)), FAR)
    body = planner.asked[0][1]
    held = next(node for node in body["nodes"] if node.get("job") == "job")
    assert (held["condition"], held["fenced_in"]) == ("unreachable", 27.0)
    assert {(link["source"], link["target"]) for link in body["links"] if link["up"]} == {
        (THERE, YONDER),
        (YONDER, THERE),
    }
    assert planner.told(0)["copies"] == [{"domain": THERE, "age": 246.0}]
    (its,) = outcome.incidents
    assert (its.kind, its.lost_s) == (DOMAIN, 246.0)
    assert its.switch_s == pytest.approx(30.0 + 10.0 + 30.0)
    assert its.interruption_s == pytest.approx(70.0 + 246.0 + 2.0)  # the copy that was due at 600 s paused it
    assert run.state.jobs[0].domain == 1


def test_its_nodes_come_back_free_and_without_the_job() -> None:
    world = plain(job(), faults=[away(DOMAIN, 300.0)], ends=1000.0)
    outcome, planner, _ = played(world, lambda _: [])
    before, after = (next(body for at, body in planner.asked if at > when) for when in (700.0, 751.0))
    node = {each["id"]: each for each in before["nodes"]}["job-0-0"]
    assert (node["condition"], node["fenced_in"], node["job"]) == ("unreachable", 0.0, "job")
    node = {each["id"]: each for each in after["nodes"]}["job-0-0"]
    assert node == {"id": "job-0-0", "domain": HERE, "condition": "fit"}
    assert 753.0 in planner.instants
    assert outcome.incidents[0].switch_s == inf


def test_a_cut_off_shorter_than_the_lease_is_none_of_the_jobs_business() -> None:
    """It was to be restored elsewhere, is heard of before, and goes on where it is; the nodes are free again."""
    world = plain(job(), faults=[away(CUT_OFF, 20.0)], ends=1990.0)
    outcome, planner, run = played(world, first(restore({0: ["there-0"]}, THERE, after=27.0)), FAR)
    assert outcome.incidents == ()
    assert planner.instants == [453.0]
    assert run.state.jobs[0].domain == 0
    assert [node.job for node in run.state.nodes] == [0, 1, 2] + [-1] * 9
    assert run.state.jobs[0].progress == pytest.approx(1990.0 - 2.0 * outcome.copies)


def test_a_job_that_is_cut_off_goes_on_until_it_is_fenced_and_again_when_it_is_heard_of() -> None:
    world = plain(job(), faults=[away(CUT_OFF, 130.0)], ends=2000.0)
    outcome, planner, run = played(world, lambda _: [])
    (its,) = outcome.incidents
    assert (its.kind, its.onset) == (CUT_OFF, 480.0)
    assert its.switch_s == its.interruption_s == pytest.approx(100.0)
    assert its.lost_s == 0.0
    assert planner.instants == [453.0 + 10.0 * each for each in range(13)]
    assert run.state.jobs[0].progress == pytest.approx(1900.0)


def test_restored_elsewhere_it_does_again_what_it_did_while_nobody_heard_of_it() -> None:
    """Of 476 s of work until the fence, 200 are held; it comes back at 600 s, when it has begun elsewhere."""
    world = plain(job(), faults=[away(CUT_OFF, 150.0)], ends=2000.0)
    outcome, _, run = played(world, first(restore({0: ["there-0"]}, THERE, after=27.0)), FAR)
    (its,) = outcome.incidents
    assert (its.onset, its.lost_s) == (480.0, 276.0)
    assert its.switch_s == pytest.approx(40.0)
    assert its.interruption_s == pytest.approx(40.0 + 276.0 + 2.0)
    assert run.state.jobs[0].domain == 1
    assert run.state.nodes[0].job == -1


def test_a_recovery_is_off_when_its_source_its_target_or_its_way_is_away() -> None:
    """It reads over the link from 503 s on; what it was to get is free again."""
    rack = Fault(450.0, "rack", 0, (0,))
    for domain in (0, 1):
        faults = [rack, away(DOMAIN, 300.0, at=480.0, domain=domain)]
        outcome, planner, run = played(
            plain(job(), faults=faults, ends=1000.0), first(restore({0: ["there-0"]}, HERE)), HOME
        )
        assert planner.instants[:2] == [453.0, 483.0]
        assert outcome.incidents[0].switch_s == inf
        assert all(node.job in {-1, 1, 2} for node in run.state.nodes[1:])


def test_a_domain_that_fails_amid_an_incident_makes_no_other() -> None:
    """One replica failed at 450 s and was left out; then all is lost, at 500, and restored after the fence at 530."""
    faults = [Fault(450.0, "node", 0, (1,)), away(DOMAIN, 2000.0, at=500.0)]
    world = plain(job(replicas=2), faults=faults, ends=2000.0)

    def says(request: Json) -> list[Json]:
        lost = all(node["condition"] == "unreachable" for node in request["nodes"] if node.get("job") == "job")
        both = restore({0: ["there-0"], 1: ["there-1"]}, THERE, after=27.0)
        return [both if lost else go_on()]

    outcome, planner, _ = played(world, says, FAR)
    (its,) = outcome.incidents
    assert planner.instants == [453.0, 468.0, 478.0, 488.0, 498.0, 503.0]
    assert (its.kind, its.onset) == ("node", 450.0)
    assert its.strategies == ["go_on", "restore"]
    assert its.switch_s == pytest.approx(80.0 + 10.0 + 30.0)
    lost = 450.0 - 4.0 + (500.0 - 458.0) / 2 - 200.0
    assert its.lost_s == pytest.approx(lost)
    assert its.interruption_s == pytest.approx(8.0 + 70.0 + lost + 2 * 2.0)


def test_no_copy_is_taken_to_where_nothing_can_be_reached_and_those_at_home_go_on() -> None:
    world = plain(job(), faults=[away(CUT_OFF, 1000.0, at=350.0)], ends=500.0)
    outcome, _, run = played(world, lambda _: [], HOME, FAR)
    assert run.state.jobs[0].copies.keys() == {0}  # that of 200 s would have been there at 400
    assert run.state.jobs[0].copies[0] == pytest.approx(296.0)
    assert outcome.skipped == 3  # at 400 s it is fenced, and at 500 s too
