"""A domain fences nodes as it is asked to: none of their devices is given out until that is released."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from engine.test_controller import ABORT, COMMIT, Noted, Service, action, domain_of, refusal, release, shares
from hypothesis import given
from hypothesis import strategies as st

from kuayu.client import UnreachableError
from kuayu.engine.controller import DomainController
from kuayu.engine.holdings import Holdings, Journal
from kuayu_schemas.models import Action, ActionKind, ActionOutcome

FAULT = "the node n is dead"


def fence(name: str, *nodes: str, devices: int = 8) -> Action:
    asked = action(name, COMMIT, None, kind=ActionKind.fence, nodes=dict.fromkeys(nodes, devices), accelerator=None)
    return asked.model_copy(update={"cause": FAULT, "job": None, "expires_after": None})


def stop(name: str, job: str | None = "job") -> Action:
    return action(name, COMMIT, None, kind=ActionKind.stop, accelerator=None).model_copy(update={"job": job})


def committed(domain: Holdings, asked: Action, now: float = 0.0) -> None:
    assert domain.carry_out(asked, now).outcome is ActionOutcome.committed


def reserved(domain: Holdings, name: str, devices: int = 8, **nodes: int) -> None:
    domain.carry_out(action(name, devices=devices, nodes=nodes or None), 0.0)
    committed(domain, action(name, COMMIT, devices))


def test_no_device_of_a_fenced_node_is_given_out_until_it_is_released() -> None:
    domain = domain_of(m=8, n=8)
    result = domain.carry_out(fence("f", "n"), 0.0)
    assert (result.outcome, result.nodes) == (ActionOutcome.committed, shares({"n": 8}))
    assert domain.free("a800") == {"m": 8, "n": 0}
    assert refusal(domain.carry_out(action("a", devices=9), 0.0)).detail == "8 devices of a800 are free, of 9"
    assert domain.carry_out(action("b", devices=8), 0.0).nodes == shares({"m": 8})
    lifted = domain.carry_out(release("r", "f"), 1.0)
    assert (lifted.outcome, lifted.nodes) == (ActionOutcome.committed, shares({"n": 8}))
    assert domain.free("a800") == {"m": 0, "n": 8}
    committed(domain, release("s", "f"))


def test_what_is_held_on_a_fenced_node_stays_held_and_what_is_only_promised_has_expired() -> None:
    domain = domain_of(m=8, n=8)
    reserved(domain, "held", n=4, devices=4)
    for name, node in (("here", "n"), ("there", "m")):
        domain.carry_out(action(name, devices=4, nodes={node: 4}), 0.0)
    committed(domain, fence("f", "n"))
    assert domain.carry_out(action("here", COMMIT, 4), 1.0).outcome is ActionOutcome.expired
    committed(domain, action("there", COMMIT, 4), 1.0)
    assert [each.action for each in domain.current] == ["held", "there"]
    committed(domain, release("r", "held"))
    assert domain.free("a800") == {"m": 4, "n": 0}


def test_a_node_that_is_fenced_twice_is_released_twice() -> None:
    domain = domain_of(n=8)
    committed(domain, fence("f", "n"))
    committed(domain, fence("g", "n"))
    committed(domain, release("r", "f"))
    assert domain.free("a800") == {"n": 0}
    assert domain.carry_out(action("g", ABORT, kind=ActionKind.fence), 0.0).outcome is ActionOutcome.aborted
    assert domain.free("a800") == {"n": 8}


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (fence("f"), "invalid-body"),
        (fence("f", "m", "elsewhere"), "unknown-reference"),
        (action("f", kind=ActionKind.fence), "invalid-body"),  # there is nothing to promise
        (stop("s", None), "invalid-body"),
        (stop("s", "stranger"), "unknown-reference"),
    ],
)
def test_what_a_domain_cannot_do_it_refuses_and_nothing_is_fenced(asked: Action, problem: str) -> None:
    domain = domain_of(m=8)
    domain.carry_out(action("a"), 0.0)  # a promise for a job is no job yet
    assert refusal(domain.carry_out(asked, 0.0)).type == f"urn:kuayu:problem:{problem}"
    assert (domain.fences, [each.action for each in domain.current]) == ([], ["a"])


def test_a_job_is_stopped_where_it_holds_devices_which_it_keeps() -> None:
    domain = domain_of(m=8)
    reserved(domain, "a")
    committed(domain, stop("s"))
    assert [each.action for each in domain.current] == ["a"]


STEPS = st.lists(st.tuples(st.sampled_from("fgh"), st.sampled_from(["fence", "release"]), st.sampled_from("mn")))


@given(STEPS)
def test_a_node_is_free_exactly_while_no_fence_on_it_stands(steps: list[tuple[str, str, str]]) -> None:
    domain = domain_of(m=8, n=4)
    standing: dict[str, str] = {}
    for number, (name, kind, node) in enumerate(steps):
        if kind == "release":
            committed(domain, release(f"r{number}", name))
            standing.pop(name, None)
        else:
            asked = f"{name}{number}"
            committed(domain, fence(asked, node))
            standing[asked] = node
            committed(domain, fence(asked, node))
        copy = domain_of(m=8, n=4)
        copy.restore(json.loads(json.dumps(domain.to_json())))
        for each in (domain, copy):
            assert {name for name, devices in each.free("a800").items() if not devices} == set(standing.values())
            assert [fence.action for fence in each.fences] == list(standing)


def test_a_fence_outlives_the_process_and_hands_are_told(tmp_path: Path) -> None:
    journal, hooks = tmp_path / "held.json", Noted()

    def controller(service: Service) -> DomainController:
        with closing(Journal(journal, "x")) as kept:
            return DomainController(service, "x", {"a800": {"m": 8}}, journal=kept, hooks=hooks, clock=lambda: 1.0)

    with Service(action("a"), action("a", COMMIT), fence("f", "m"), stop("s")) as service:
        controller(service).poll()
        assert hooks.heard == [("take", "a"), ("fence", "f"), ("stop", "job")]
        service.asked.append(release("r", "f"))
        service.lost = 1
        hooks.heard.clear()
        with pytest.raises(UnreachableError):
            controller(service).poll()
        assert hooks.heard == [("take", "a"), ("fence", "f"), ("lift", "f")]
        assert json.loads(journal.read_text("utf-8"))["fences"] == []
        controller(service).poll()
    assert [each.action for each in service.taken] == ["a", "a", "f", "s", "r"]
    assert {each.outcome for each in service.taken[1:]} == {ActionOutcome.committed}


def test_a_journal_of_before_there_were_fences_is_read(tmp_path: Path) -> None:
    journal = tmp_path / "held.json"
    journal.write_text('{"domain": "x", "holdings": [], "answers": []}', encoding="utf-8")
    with Service() as service, closing(Journal(journal, "x")) as kept:
        assert DomainController(service, "x", {"a800": {"m": 8}}, journal=kept).holdings.fences == []
