"""The world on the codec: what a service is told, and what becomes of what it answers."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from conformance.testbed.scheduling.small_world import at, job, load, mesh, of, site, world
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.baselines import WeighedCompletion
from kuayu_conformance.testbed.scheduling.codec import (
    PATH,
    REASONS,
    BadAnswer,
    Names,
    RemotePolicy,
    StateCodec,
    placement_of,
)
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Refusal, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.engine.world import Cut, Disturbances, World, play
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Timing, scenario
from kuayu_conformance.testbed.scheduling.values import Dataset, Placement, Share, Split
from kuayu_schemas import schema

HOUR = 3600.0
A, B = site("a", 8), site("b", 8)
WAITS = job("waits", "a", 8, 100.0)


def viewed(its: World, until: float) -> View:
    view = its.advance(until)
    assert view is not None
    return view


def decision(names: Names, order: Order) -> dict[str, Any]:
    name = names.of("job", order.job)
    if isinstance(order, Start):
        return {"job": name, "verb": "start", "placement": placement_of(order.placement, names)}
    if isinstance(order, Move):
        return {"job": name, "verb": "migrate", "placement": placement_of(order.placement, names)}
    assert isinstance(order, Stop)
    return {"job": name, "verb": "stop"}


def report(state: Mapping[str, Any], *decisions: Mapping[str, Any]) -> dict[str, Any]:
    method = {"name": "a test", "version": "1"}
    return {"revision": state["revision"], "method": method, "decisions": list(decisions)}


def test_a_state_says_what_a_view_shows_and_by_other_names() -> None:
    """Data of 20 GB come over 8 Gbit/s in 20 s, so that the job has run for 40 s at the next epoch."""
    jobs = load(job("one", "a", 4, 100.0, data="d"), WAITS, d=Dataset("d", 20e9, ("b",)))
    its = world(mesh(A, B, tariff=3.0), jobs)
    viewed(its, 60.0)
    its.obey([Start("one", at("a", 4))])
    codec = StateCodec("run")
    state = codec.state_of(viewed(its, 120.0))
    assert schema.errors("SchedulingState", state) == []
    (waiting,), (running,) = state["waiting"], state["running"]
    name = codec.names.of
    assert waiting == {"spec": waiting["spec"]}, "nothing is said of one that has not run"
    assert waiting["spec"]["id"] == name("job", "waits")
    assert running["placement"]["shares"] == [
        {"domain": name("domain", "a"), "accelerator": name("accelerator", "plain"), "devices": 4}
    ]
    assert (running["phase"], running["done"], running["rate"], running["used"]) == ("running", 160.0, 4.0, 1.0)
    domains = {domain["id"]: domain["pools"][0] for domain in state["domains"]}
    assert (domains[name("domain", "a")]["free"], domains[name("domain", "b")]["free"]) == (4, 8)
    link = next(link for link in state["links"] if link["source"] == name("domain", "b"))
    assert (link["bandwidth"], link["available"], link["tariff"]) == (8e9, 8e9, 3.0)
    assert state["copies"] == [
        {"artefact": name("data", "d"), "domains": sorted([name("domain", "a"), name("domain", "b")])}
    ]
    said = json.dumps(state)
    assert not any(f'"{word}"' in said for word in ("one", "waits", "a", "b", "plain", "any", "t", "d"))


def test_whoever_waits_for_data_is_staging_and_says_until_when() -> None:
    jobs = load(job("one", "a", 4, 100.0, data="d"), WAITS, d=Dataset("d", 200e9, ("b",)))
    its = world(mesh(A, B), jobs)
    viewed(its, 60.0)
    its.obey([Start("one", at("a", 4))])
    codec = StateCodec("run")
    state = codec.state_of(viewed(its, 120.0))
    (running,) = state["running"]
    assert (running["phase"], running["ready_at"]) == ("staging", codec.names.instant(260.0))
    assert not {"rate", "used"} & running.keys()
    into = next(link for link in state["links"] if link["source"] == codec.names.of("domain", "b"))
    assert into["available"] == 4e9, "one more flow would share"


def test_a_job_that_is_stopped_a_job_that_moves_and_what_is_left_of_them() -> None:
    """Checkpoints take ten seconds, so that at the next epoch one waits again and the other runs elsewhere."""
    big = {"minimum": 1, "used": 0.5}
    its = world(mesh(A, B), load(job("stops", "a", 2, 1000.0, **big), job("moves", "a", 2, 1000.0, **big), WAITS))
    viewed(its, 60.0)
    its.obey([Start("stops", at("a", 2)), Start("moves", at("a", 2))])
    view = viewed(its, 120.0)
    its.obey([Stop("stops"), Move("moves", at("b", 2))])
    codec = StateCodec("run")
    state = codec.state_of(view)  # as it stands when orders were carried out
    told = {each["spec"]["id"]: each for each in state["running"]}
    stops, moves = (told[codec.names.of("job", name)] for name in ("stops", "moves"))
    assert (stops["phase"], moves["phase"]) == ("interrupted", "staging")
    assert stops["placement"]["shares"][0]["domain"] == codec.names.of("domain", "a")
    assert moves["placement"]["shares"][0]["domain"] == codec.names.of("domain", "b")
    state = codec.state_of(viewed(its, 180.0))
    waiting = {each["spec"]["id"]: each for each in state["waiting"]}[codec.names.of("job", "stops")]
    assert (waiting["used"], waiting["done"]) == (0.5, 60.0)
    assert waiting["checkpoint_domain"] == codec.names.of("domain", "a")


def test_a_domain_that_is_cut_off_says_so_and_its_links_offer_nothing() -> None:
    its = world(mesh(A, B), load(WAITS), Disturbances(cuts=(Cut("b", 30.0, 90.0),)))
    codec = StateCodec("run")
    state = codec.state_of(viewed(its, 60.0))
    domains = {domain["id"]: domain for domain in state["domains"]}
    assert domains[codec.names.of("domain", "b")]["reachable"] is False
    assert "reachable" not in domains[codec.names.of("domain", "a")]
    assert {(link["bandwidth"], link["available"]) for link in state["links"]} == {(0.0, 0.0)}


def test_prices_are_told_where_they_are_asked_for() -> None:
    its = scenario(Cell("reference", 0.5), Timing(0.0, HOUR, 0.0), "prices")
    world = its.world()
    view = viewed(world, HOUR)
    for domain in StateCodec("run", priced=True).state_of(view)["domains"]:
        for pool in domain["pools"]:
            ((purchase, devices, price),) = [tuple(offer.values()) for offer in pool["offers"]]
            assert (purchase, devices) == ("on_demand", pool["free"])
            assert price > 0.0


def test_orders_come_back_as_they_were_meant() -> None:
    its = world(mesh(A, B), load(WAITS, job("one", "b", 8, 1.0)))
    codec = StateCodec("run")
    state = codec.state_of(viewed(its, 60.0))
    both = Placement((Share("a", "plain", 4), Share("b", "plain", 4)), Split.PERIODIC, 7)
    meant = (Start("waits", both), Stop("one"), Move("one", at("a", 3)))
    said = report(state, *(decision(codec.names, order) for order in meant))
    assert codec.orders_of(said) == meant
    waits = {"job": codec.names.of("job", "waits"), "verb": "wait"}
    resize = decision(codec.names, Move("one", at("a", 3))) | {"verb": "resize"}
    assert codec.orders_of(report(state, waits, resize)) == (Resize("one", 3),)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _said: None,
        lambda _said: "no",
        lambda said: {**said, "decisions": None},
        lambda said: {**said, "revision": {**said["revision"], "number": 99}},
        lambda said: {**said, "decisions": [{"job": "x", "verb": "start"}]},
    ],
    ids=["nothing", "text", "no list", "another state", "no place"],
)
def test_an_answer_that_is_none_is_counted_and_nothing_is_ordered(spoil: Callable[[dict[str, Any]], object]) -> None:
    def ask(path: str, body: bytes) -> object:
        assert path == PATH
        return spoil(report(json.loads(body)["state"]))

    its = world(mesh(A, B), load(WAITS))
    policy = RemotePolicy(ask, StateCodec("run"))
    play(its, policy, 180.0)
    assert (policy.answers, policy.bad_answers, len(policy.reasons)) == (0, 3, 3)
    assert its.outcome().refusals == 0


def test_what_the_state_does_not_hold_is_refused_and_told_by_the_name_that_was_given() -> None:
    """Not even a name by which the world itself calls a job means one."""
    its = world(mesh(A, B), load(WAITS))
    codec = StateCodec("run")
    state = codec.state_of(viewed(its, 60.0))
    nowhere = {"shares": [{"domain": "x", "accelerator": "y", "devices": 8}], "split_mode": "none"}
    unknown = {"job": "waits", "verb": "stop"}
    lost = {"job": codec.names.of("job", "waits"), "verb": "start", "placement": nowhere}
    many = decision(codec.names, Start("waits", at("a", 9)))
    its.obey(codec.orders_of(report(state, unknown, lost, many)))
    state = codec.state_of(viewed(its, 120.0))
    assert schema.errors("SchedulingState", state) == []
    known = codec.names.of("job", "waits")
    assert state["refused"] == [
        {"job": "waits", "verb": "stop", "reason": "unknown_job"},
        {"job": known, "verb": "start", "reason": "unknown_pool"},
        {"job": known, "verb": "start", "reason": "no_room"},
    ]


def test_every_refusal_has_a_reason_of_the_model() -> None:
    assert set(REASONS) == set(Refusal)
    for reason in REASONS.values():
        assert schema.is_valid("RefusedDecision", {"job": "j", "verb": "start", "reason": reason})


def test_names_and_dates_are_of_the_run_and_hours_of_the_world() -> None:
    one, again, other = Names("one"), Names("one"), Names("other")
    assert one.of("job", "j") == again.of("job", "j") != other.of("job", "j")
    assert one.of("job", "j") != one.of("domain", "j")
    assert one.instant(0.0)[:10] != other.instant(0.0)[:10]
    assert {names.instant(90.0625)[10:] for names in (one, other)} == {"T16:01:30.062Z"}, "midnight in China is 16:00 Z"
    order = [sorted("abcdef", key=names.by("domain")) for names in (one, other)]
    assert order[0] != order[1]


@settings(max_examples=30, deadline=None)
@given(st.floats(0.0, 1e8))
def test_instants_are_those_of_the_model(seconds: float) -> None:
    state = {"accelerators": [], "domains": [{"id": "a", "pools": []}], "links": [], "waiting": [], "running": []}
    revision = {"epoch": "e", "number": 1}
    assert schema.is_valid("SchedulingState", state | {"revision": revision, "now": Names("x").instant(seconds)})


def test_a_policy_that_is_asked_over_the_wire_does_what_it_does_at_hand() -> None:
    """B3c, told what it ordered and understood again: the same figures to the last digit, every request valid."""
    its = scenario(Cell("faulty", 1.0, nodes=4), Timing(0.0, 2 * HOUR, 2 * HOUR), "over the codec")
    codec, plain = StateCodec("run"), StateCodec("run")

    class Relayed:
        """Answers with the orders of B3c, which looks at the view itself."""

        def __init__(self) -> None:
            self._policy, self._asked = WeighedCompletion(), RemotePolicy(self._answer, codec, {"explain": False})
            self._view: View

        def _answer(self, path: str, body: bytes) -> object:
            del path
            request = json.loads(body)
            assert schema.errors("PlacementRequest", request) == []
            state = plain.state_of(self._view)
            assert request == {"state": state, "explain": False}
            assert body.decode() == json.dumps(request, separators=(",", ":")), "texts are what json writes"
            return report(state, *(decision(codec.names, order) for order in self._policy.decide(self._view)))

        def decide(self, view: View) -> tuple[Order, ...]:
            self._view = view
            return tuple(self._asked.decide(view))

    told, direct = its.world(), its.world()
    play(told, Relayed(), its.timing.horizon)
    play(direct, WeighedCompletion(), its.timing.horizon)
    assert repr(told.outcome()) == repr(direct.outcome())
    assert told.outcome().decisions > 100


def test_an_answer_to_no_question_is_none() -> None:
    with pytest.raises(BadAnswer, match="nothing was asked"):
        StateCodec("run").orders_of({})


def test_a_service_that_starts_whoever_is_first_at_home_gets_jobs_done() -> None:
    its = world(mesh(A, B), load(WAITS))
    policy = RemotePolicy(
        lambda _path, body: report((state := json.loads(body)["state"]), _first(state)), StateCodec("run")
    )
    play(its, policy, HOUR)
    assert of(its.outcome(), "waits").finished == 160.0


def _first(state: Mapping[str, Any]) -> dict[str, Any]:
    """The first that waits, in its home."""
    spec = state["waiting"][0]["spec"]
    home = next(domain for domain in state["domains"] if domain["id"] == spec["home_domain"])
    pool = home["pools"][0]["accelerator"]
    share = {"domain": home["id"], "accelerator": pool, "devices": spec["devices"]["requested"]}
    return {"job": spec["id"], "verb": "start", "placement": {"shares": [share], "split_mode": "none"}}
