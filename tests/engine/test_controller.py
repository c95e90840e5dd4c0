"""A domain's controller: what it promises it has, what it has said it says again, and a restart changes nothing."""

import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.client import Client, RefusedError, UnauthorisedError, UnreachableError
from kuayu.engine.controller import DomainController
from kuayu.engine.holdings import Fence, Holding, Holdings, Journal, JournalError
from kuayu_schemas import schema
from kuayu_schemas.models import (
    Action,
    ActionKind,
    ActionOutcome,
    ActionPhase,
    ActionResult,
    NodeShare,
    Problem,
    Revision,
)

PREPARE, COMMIT, ABORT = ActionPhase.prepare, ActionPhase.commit, ActionPhase.abort
PROMISED_S = 10.0


def action(
    name: str,
    phase: ActionPhase = PREPARE,
    devices: int | None = 8,
    *,
    kind: ActionKind = ActionKind.reserve,
    accelerator: str | None = "a800",
    nodes: Mapping[str, int] | None = None,
    reservation: str | None = None,
) -> Action:
    return Action(
        id=name,
        kind=kind,
        phase=phase,
        revision=Revision(epoch="e", number=1),
        job="job",
        domain="x",
        accelerator=accelerator,
        devices=devices,
        expires_after=PROMISED_S,
        nodes=None if nodes is None else shares(nodes),
        reservation=reservation,
    )


def shares(nodes: Mapping[str, int]) -> list[NodeShare]:
    return [NodeShare(node=node, devices=devices) for node, devices in nodes.items()]


def release(name: str, reservation: str | None) -> Action:
    return action(name, COMMIT, kind=ActionKind.release, reservation=reservation)


def domain_of(**nodes: int) -> Holdings:
    return Holdings({"a800": nodes})


def refusal(result: ActionResult) -> Problem:
    """Why a step was refused, as a registered problem."""
    assert result.outcome is ActionOutcome.refused
    assert schema.errors("ActionResult", result.to_wire()) == []
    assert result.problem is not None
    return result.problem


def test_a_promise_is_held_until_it_is_committed_or_over() -> None:
    domain = domain_of(m=8, n=8)
    promise = domain.carry_out(action("a"), 0.0)
    assert promise.outcome is ActionOutcome.prepared
    assert promise.nodes == shares({"m": 8})
    assert promise.expires_at is not None
    assert promise.expires_at.timestamp() == PROMISED_S
    assert sum(domain.free("a800").values()) == 8
    assert domain.carry_out(action("a", COMMIT), 9.0).outcome is ActionOutcome.committed
    domain.carry_out(action("b"), 9.0)
    assert domain.carry_out(action("b", COMMIT), 19.5).outcome is ActionOutcome.expired
    assert [each.action for each in domain.current] == ["a"]


def test_there_is_room_for_what_fits_and_the_rest_is_refused_with_a_reason() -> None:
    domain = domain_of(m=8, n=4)
    problem = refusal(domain.carry_out(action("a", devices=13), 0.0))
    assert (problem.type, problem.status, problem.retryable) == ("urn:kuayu:problem:no-capacity", 409, True)
    assert problem.detail == "12 devices of a800 are free, of 13"
    assert domain.carry_out(action("a", COMMIT, 13), 0.0).outcome is ActionOutcome.failed
    problem = refusal(domain.carry_out(action("b", devices=8, nodes={"m": 3, "n": 5}), 0.0))
    assert (problem.type, problem.detail) == (
        "urn:kuayu:problem:no-capacity",
        "4 devices of a800 are free on n, of 5",
    )
    assert refusal(domain.carry_out(action("c", accelerator="h100"), 0.0)).type == "urn:kuayu:problem:no-capacity"


@pytest.mark.parametrize(
    ("devices", "nodes", "expected"),
    [
        (3, None, {"n": 3}),  # the fullest that has so much
        (10, None, {"m": 8, "o": 2}),
        (14, None, {"m": 8, "n": 4, "o": 2}),
        (6, {"m": 5, "n": 1}, {"m": 5, "n": 1}),
        (None, {"o": 2, "m": 1}, {"o": 2, "m": 1}),
    ],
)
def test_nodes_are_those_that_are_named_or_few(
    devices: int | None, nodes: dict[str, int] | None, expected: dict[str, int]
) -> None:
    domain = domain_of(m=8, n=4, o=2)
    promise = domain.carry_out(action("a", devices=devices, nodes=nodes), 0.0)
    assert promise.nodes == shares(expected)
    assert domain.current[0].nodes == expected
    assert domain.carry_out(action("a", COMMIT, devices), 0.0).nodes == shares(expected)


def test_devices_are_of_the_kind_that_is_wanted() -> None:
    domain = Holdings({"a800": {"m": 8, "n": 8}, "910b": {"o": 8, "n": 4}})
    assert domain.carry_out(action("a", accelerator="910b", devices=12), 0.0).outcome is ActionOutcome.prepared
    assert domain.free("a800") == {"m": 8, "n": 8}
    assert domain.free("910b") == {"o": 0, "n": 0}
    problem = refusal(domain.carry_out(action("b", accelerator=None), 0.0))
    assert problem.type == "urn:kuayu:problem:invalid-body"
    assert domain_of(m=8).carry_out(action("b", accelerator=None), 0.0).outcome is ActionOutcome.prepared


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (action("a", devices=8, nodes={"m": 4, "n": 3}), "invalid-body"),
        (action("a", devices=None), "invalid-body"),
        (action("a", devices=0), "invalid-body"),
        (action("a", kind=ActionKind.migrate), "invalid-body"),
        (action("a", COMMIT, kind=ActionKind.migrate), "invalid-body"),
        (release("a", None), "invalid-body"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_held(asked: Action, problem: str) -> None:
    domain = domain_of(m=8, n=8)
    assert refusal(domain.carry_out(asked, 0.0)).type == f"urn:kuayu:problem:{problem}"
    assert domain.current == []


def test_nodes_that_have_lost_devices_give_none() -> None:
    before = domain_of(m=8, n=8)
    before.carry_out(action("a", devices=16), 0.0)
    after = domain_of(m=4, o=8)
    after.restore(before.to_json())
    assert after.free("a800") == {"m": 0, "o": 8}


def test_an_abort_lets_go_of_what_was_promised_or_taken_and_of_what_never_was() -> None:
    domain = domain_of(m=8)
    domain.carry_out(action("a"), 0.0)
    domain.carry_out(action("a", COMMIT), 0.0)
    assert domain.carry_out(action("a", ABORT), 0.0).outcome is ActionOutcome.aborted
    assert domain.carry_out(action("b", ABORT), 0.0).outcome is ActionOutcome.aborted
    assert refusal(domain.carry_out(action("b"), 0.0)).type == "urn:kuayu:problem:stale-revision"
    assert domain.current == []


def test_a_release_gives_back_what_the_action_reserved_that_it_names() -> None:
    domain = domain_of(m=8, n=8)
    for name in ("a", "b"):
        domain.carry_out(action(name), 0.0)
        domain.carry_out(action(name, COMMIT), 0.0)
    result = domain.carry_out(release("r", "b"), 1.0)
    assert (result.outcome, result.nodes) == (ActionOutcome.committed, shares({"n": 8}))
    assert [each.action for each in domain.current] == ["a"]
    again = domain.carry_out(release("s", "b"), 2.0)
    assert (again.outcome, again.nodes) == (ActionOutcome.committed, None)
    assert [each.action for each in domain.current] == ["a"]


STEPS = st.tuples(st.sampled_from("abcd"), st.sampled_from(ActionPhase), st.integers(1, 9), st.floats(0, 8))


@given(st.lists(STEPS, max_size=40))
def test_no_device_is_given_twice_and_every_step_has_one_answer(
    steps: list[tuple[str, ActionPhase, int, float]],
) -> None:
    domain, now = domain_of(m=8, n=4), 0.0
    said: dict[tuple[str, ActionPhase], ActionResult] = {}
    for name, phase, devices, later in steps:
        now += later
        result = domain.carry_out(action(name, phase, devices), now)
        assert result == said.setdefault((name, phase), result)
        assert sum(domain.free("a800").values()) + sum(sum(each.nodes.values()) for each in domain.current) == 12
        copy = domain_of(m=8, n=4)
        copy.restore(domain.to_json())
        assert copy.to_json() == domain.to_json()
        assert copy.current == domain.current


class Service(Client):
    """A service that asks what it is told to, and notes results; some of them get lost."""

    def __init__(self, *asked: Action) -> None:
        super().__init__("http://localhost")
        self.asked = list(asked)
        self.taken: list[ActionResult] = []
        self.lost = 0
        self.refused = 0
        self.strangers = 0
        self.stop: threading.Event | None = None

    def open_actions(self, domain: str, *, wait_s: float = 0.0) -> list[Action]:  # noqa: ARG002
        """What no result was taken of."""
        self._know()
        done = {(each.action, each.phase) for each in self.taken}
        return [each for each in self.asked if (each.id, each.phase) not in done]

    def post_action_result(self, result: ActionResult) -> Any:
        """Take a result, or lose it."""
        self._know()
        if self.lost:
            self.lost -= 1
            raise UnreachableError("no answer", "wait", transient=True)
        if self.refused:
            self.refused -= 1
            problem = Problem(type="urn:kuayu:problem:invalid-body", title="No", status=422, retryable=False)
            raise RefusedError(problem)
        self.taken.append(result)
        if self.stop is not None:
            self.stop.set()

    def _know(self) -> None:
        """Say for so many requests that the token is unknown."""
        if self.strangers:
            self.strangers -= 1
            raise UnauthorisedError(
                Problem(type="urn:kuayu:problem:unauthorised", title="No", status=401, retryable=False)
            )


class Noted:
    """Notes what is taken and given back."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def take(self, holding: Holding) -> None:
        """Note it."""
        self.heard.append(("take", holding.action))

    def give_back(self, holding: Holding) -> None:
        """Note it."""
        self.heard.append(("give back", holding.action))

    def fence(self, fence: Fence) -> None:
        """Note it."""
        self.heard.append(("fence", fence.action))

    def lift(self, fence: Fence) -> None:
        """Note it."""
        self.heard.append(("lift", fence.action))

    def stop(self, job: str, cause: str | None) -> None:  # noqa: ARG002
        """Note it."""
        self.heard.append(("stop", job))


POOLS = {"a800": {"m": 8}}


def controller(service: Service, journal: Path, hooks: Noted | None = None, now: float = 1.0) -> DomainController:
    """One that has just begun; the one before it was killed."""
    with closing(Journal(journal, "x")) as kept:
        return DomainController(service, "x", POOLS, journal=kept, hooks=hooks, clock=lambda: now)


def test_what_was_promised_is_kept_over_a_restart_and_said_again(tmp_path: Path) -> None:
    journal, hooks = tmp_path / "held.json", Noted()
    with Service(action("a")) as service:
        service.lost = 1
        with pytest.raises(UnreachableError):
            controller(service, journal, hooks).poll()
        again = controller(service, journal, hooks, now=5.0)
        assert [each.action for each in again.holdings.current] == ["a"]
        again.poll()
        [promise] = service.taken
        assert promise.expires_at is not None
        assert promise.expires_at.timestamp() == 1.0 + PROMISED_S  # as it was said first
        service.asked.append(action("a", COMMIT))
        again.poll()
        controller(service, journal, hooks)
        service.asked.append(release("r", "a"))
        again.poll()
    assert hooks.heard == [("take", "a"), ("take", "a"), ("give back", "a")]
    assert service.taken[-1].outcome is ActionOutcome.committed


def test_a_result_that_is_refused_is_not_sent_on_and_on(tmp_path: Path) -> None:
    with Service(action("a")) as service:
        service.refused = 2
        running = controller(service, tmp_path / "held.json")
        service.stop = threading.Event()
        began = time.monotonic()
        running.run(service.stop)
        assert time.monotonic() - began >= 0.6  # a pause, and one of twice the length
        assert [each.action for each in service.taken] == ["a"]


def test_a_domain_whose_token_was_taken_out_waits_for_it_and_keeps_what_it_has_to_say(tmp_path: Path) -> None:
    with Service(action("a")) as service:
        running = controller(service, tmp_path / "held.json")
        running.poll()
        service.asked.append(action("a", COMMIT))
        service.strangers, service.stop = 2, threading.Event()
        running.run(service.stop)
        assert [each.phase for each in service.taken] == [PREPARE, COMMIT]


def test_a_domain_that_was_never_known_says_so_and_ends(tmp_path: Path) -> None:
    with Service(action("a")) as service:
        service.strangers = 1
        running = controller(service, tmp_path / "held.json")
        with pytest.raises(UnauthorisedError):
            running.run(threading.Event())


def test_a_journal_that_is_none_is_told(tmp_path: Path) -> None:
    journal = tmp_path / "held.json"
    held = '{"domain": "x", "holdings": [{"nodes": 3}], "answers": []}'
    for content in ("[", "{}", "[]", '{"domain": "y", "holdings": [], "answers": []}', held):
        journal.write_text(content, encoding="utf-8")
        with Service() as service, pytest.raises(JournalError):
            controller(service, journal)


def test_two_controllers_do_not_share_a_journal(tmp_path: Path) -> None:
    journal = tmp_path / "held.json"
    with closing(Journal(journal, "x")), pytest.raises(JournalError, match="another controller"):
        Journal(journal, "x")
    Journal(journal, "x").close()
    with pytest.raises(JournalError, match="cannot write"):
        Journal(tmp_path / "nowhere" / "held.json", "x")
