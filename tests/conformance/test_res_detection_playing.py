"""How the world of heartbeats is played: in time, in batches that are taken, with actions fetched and answered."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from conformance.fault_oracle import Oracle, played

from kuayu_conformance.checks.resilience import detection as res_detection
from kuayu_conformance.checks.resilience.detection import GIVEN_UP, RECOGNISED, RESPONDED, DetectionRun, judge, observe
from kuayu_conformance.episode import NotTestable, Request, Taken
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.heartbeats import QUICK

SMALL = replace(QUICK, nodes=80, seconds=60.0, incidents=90, jobs=6, racks=1, flapping=3, logged=8)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(res_detection, "QUICK", SMALL)


@pytest.fixture(scope="module")
def whole() -> Iterator[tuple[DetectionRun, Oracle]]:
    """A world that was played before somebody who tells everything after two seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(res_detection, "QUICK", SMALL)
        episode, oracle = played(SMALL)
        yield observe(episode), oracle


def figure(o: DetectionRun, requirement: str) -> Figure:
    return next(each for each in judge(o) if isinstance(each, Figure) and each.requirement == requirement)


def test_everything_that_is_told_is_seen_and_timed(whole: tuple[DetectionRun, Oracle]) -> None:
    o, oracle = whole
    assert figure(o, RECOGNISED).estimate == 1.0
    assert figure(o, RECOGNISED).n == 90
    assert 2.0 <= figure(o, RESPONDED).estimate <= 2.3
    assert not [each for each in judge(o) if isinstance(each, Claim) and not each.met]
    assert o.clock.waited == 0.0
    assert oracle.opened == [""]


def test_every_beat_and_line_of_the_world_is_sent_in_batches_that_are_taken(whole: tuple[DetectionRun, Oracle]) -> None:
    o, oracle = whole
    sent = [each for each in map(o.world.delivery, range(o.world.sendings)) if each]
    beats = [beat for body in oracle.posted["/v1/heartbeats"] for beat in body["beats"]]
    lines = [line for body in oracle.posted["/v1/log-lines"] for line in body["lines"]]
    assert len(beats) == sum(len(each.beats) for each in sent)
    assert len(lines) == sum(len(each.lines) for each in sent)
    assert max(len(body["beats"]) for body in oracle.posted["/v1/heartbeats"]) <= 60
    assert o.batches == sum(map(len, oracle.posted.values()))


def test_each_action_is_answered_once(whole: tuple[DetectionRun, Oracle]) -> None:
    o, oracle = whole
    due = [domain for each in o.world.incidents if each.demanded for domain in each.queried_domains]
    assert len(oracle.results) == len(set(oracle.results)) == len(due) == len(o.responses)


def test_beats_do_not_wait_for_the_results_of_actions_that_come_together() -> None:
    """Beats that come late would look like nodes that are silent."""
    episode, oracle = played(SMALL, settling=0.05)
    o = observe(episode)
    assert o.clock.waited == 0.0
    assert figure(o, RESPONDED).estimate <= 2.3
    assert len(oracle.results) == len(set(oracle.results)) == len(o.responses)


def test_an_action_that_comes_later_than_its_fault_is_asked_for_again() -> None:
    episode, oracle = played(SMALL, delay=1.0, lag=0.75)
    o = observe(episode)
    assert 1.75 <= figure(o, RESPONDED).estimate <= 2.1
    assert len(o.responses) == len(oracle.results)


def test_an_action_that_was_fetched_before_its_fault_was_told_is_not_lost() -> None:
    """Others' faults have the suite ask, and it answers all that is there."""
    episode, oracle = played(SMALL, lag=-1.0)
    o = observe(episode)
    assert {each.fault for each in o.responses} == {name.split("-")[1] for name in oracle.results}
    assert figure(o, RESPONDED).estimate <= 2.2


class Babbling(Oracle):
    """Tells, and lists, what is no fault and no action beside what is."""

    def take(self, stream: int, seconds: float, at_least: int) -> Taken:
        """Odd events come before others."""
        taken = super().take(stream, seconds, at_least)
        odd = ("no JSON", "[]", '{"id": [], "kind": [], "state": "open"}', '{"id": "o", "kind": "node_dead"}')
        members = {"id": "odd", "kind": "job_hung", "state": "open", "job": {}, "actions": 7}
        told = [StreamEvent(self.clock, "", "fault", data) for data in (*odd, json.dumps(members))]
        return replace(taken, events=(*(told if taken.events else ()), *taken.events))

    def _open(self, domain: str) -> list[Any]:
        odd = [7, {"id": []}, {"id": f"odd-{domain}", "kind": "fence", "nodes": 7, "job": []}]
        return [*odd, *super()._open(domain)]


def test_who_babbles_is_judged_by_what_is_about_the_world_and_told_what_is_not_valid() -> None:
    episode, _ = played(SMALL, kind=Babbling)
    o = observe(episode)
    assert figure(o, RECOGNISED).estimate == 1.0
    assert figure(o, RESPONDED).estimate <= 2.3
    assert "each fault is valid" in {each.expected for each in judge(o) if isinstance(each, Claim) and not each.met}


def test_a_stream_that_ends_is_resumed_behind_its_last_event() -> None:
    episode, oracle = played(SMALL, ends=(30.0, 50.0))
    o = observe(episode)
    assert len(oracle.opened) == len(o.openings) == 3
    assert all(each.startswith("e:") for each in oracle.opened[1:])
    assert figure(o, RECOGNISED).estimate == 1.0


def test_a_target_that_takes_nothing_is_given_up() -> None:
    episode, oracle = played(SMALL, refuses=lambda request: request.path in {"/v1/heartbeats", "/v1/log-lines"})
    o = observe(episode)
    assert len(o.refused) == o.batches == len(oracle.posted["/v1/heartbeats"]) + len(oracle.posted["/v1/log-lines"])
    assert o.batches <= GIVEN_UP + 5
    assert "heartbeats and log lines are taken whole" in {
        each.expected for each in judge(o) if isinstance(each, Claim) and not each.met
    }


@pytest.mark.parametrize("what", ["/v1/nodes/", "/v1/faults/events"])
def test_where_nothing_can_be_registered_or_followed_nothing_is_played(what: str) -> None:
    def refuses(request: Request) -> bool:
        return request.path.startswith(what)

    episode, oracle = played(SMALL, refuses=refuses)
    o = observe(episode)
    assert not oracle.posted
    assert {each.requirement for each in judge(o) if isinstance(each, Claim) and not each.met} == {
        RECOGNISED,
        RESPONDED,
    }


def test_a_path_that_is_too_slow_for_the_world_tells_nothing_of_the_target() -> None:
    episode, _ = played(SMALL, slow=0.1)
    with pytest.raises(NotTestable, match="waited"):
        observe(episode)
