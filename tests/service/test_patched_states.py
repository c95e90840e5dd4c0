"""A state that is sent as a patch is answered as if it had been sent whole."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import islice
from random import Random
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from service.conftest import JsonObject, Service, StartService, problem

from kuayu import canonical
from kuayu.client import Client
from kuayu.client.placement_session import _name
from kuayu.json_patch import difference
from kuayu.scheduling import parse
from kuayu.scheduling.state_digest import CanonicalState
from kuayu.service import scheduling
from kuayu.service.scheduling import Base, Bases
from kuayu_conformance.checks.scheduling.placement_requests import PLACEMENTS, Scale, StateBuilder, Stream
from kuayu_schemas import schema
from kuayu_schemas.models import PlacementRequest

SMALL = Scale(domains=3, nodes=6, running=30, waiting=15)
ROOM, MOST = 1 << 24, 1 << 20


def states(count: int, seed: int = 1) -> list[JsonObject]:
    """States of a busy federation, a minute after each other."""
    stream = Stream(StateBuilder(Random(seed)), SMALL)
    return [json.loads(text)["state"] for text in islice(stream, count)]


def whole(state: JsonObject, **members: Any) -> JsonObject:
    return {"state": state, "digest": canonical.digest(state), **members}


def patch(base: JsonObject, state: Any, **members: Any) -> JsonObject:
    made = {
        "base": canonical.digest(base),
        "result": canonical.digest(state),
        "operations": list(difference(base, state, _name)),
    }
    return {"patch": {**made, **members}}


def test_epoch_after_epoch_is_sent_as_a_patch_of_the_one_before(shared: Service) -> None:
    first, *others = states(4)
    assert shared.client.post(PLACEMENTS, json=whole(first)).status_code == 200
    before = first
    for state in others:
        asked = {**patch(before, state), "explain": True}
        assert len(json.dumps(asked)) < len(json.dumps(state))
        answer = shared.client.post(PLACEMENTS, json=asked)
        assert answer.status_code == 200
        assert answer.content == shared.client.post(PLACEMENTS, json={"state": state, "explain": True}).content
        before = state


def test_what_was_not_sent_with_its_digest_or_was_refused_is_no_base(shared: Service) -> None:
    one, other = states(2, seed=2)
    assert shared.client.post(PLACEMENTS, json={"state": one}).status_code == 200
    assert problem(shared.client.post(PLACEMENTS, json=patch(one, other))) == "unknown-base"
    refused = deepcopy(one)
    refused["waiting"][0]["spec"]["home_domain"] = "nowhere"
    assert problem(shared.client.post(PLACEMENTS, json=whole(refused))) == "unknown-reference"
    answer = shared.client.post(PLACEMENTS, json=patch(refused, other))
    assert problem(answer) == "unknown-base"
    assert "send the whole state" in answer.json()["detail"]
    assert answer.json()["retryable"] is False


@pytest.mark.parametrize(
    ("pointer", "change"),
    [
        ("/patch/result", lambda asked: asked.update(operations=[])),
        ("/patch/result", lambda asked: asked.update(result="sha256:" + "0" * 64)),
        ("/patch/operations/1", lambda asked: asked["operations"].insert(1, {"op": "remove", "path": "/running/999"})),
        ("/patch/operations/0", lambda asked: asked["operations"].insert(0, {"op": "add", "path": "/now"})),
        ("/patch/operations/0/op", lambda asked: asked["operations"][0].update(op="move")),
        ("/patch/base", lambda asked: asked.update(base="sha256:none")),
    ],
)
def test_a_patch_that_is_not_what_it_says_is_refused_with_its_place(
    shared: Service, pointer: str, change: Callable[[JsonObject], object]
) -> None:
    base, state = states(2, seed=3)
    shared.client.post(PLACEMENTS, json=whole(base)).raise_for_status()
    asked = patch(base, state)
    change(asked["patch"])
    answer = shared.client.post(PLACEMENTS, json=asked)
    assert problem(answer) == "invalid-body"
    assert pointer in {place["pointer"] for place in answer.json()["errors"]}
    assert shared.client.post(PLACEMENTS, json=patch(base, state)).status_code == 200, "the base is as it was"


@pytest.mark.parametrize(
    "change",
    [
        lambda asked: asked.update(digest="sha256:" + "0" * 64),
        lambda asked: asked.update(patch(asked["state"], asked["state"])),
        lambda asked: asked.pop("state"),
    ],
)
def test_a_request_brings_a_state_with_its_own_digest_or_a_patch(
    shared: Service, change: Callable[[JsonObject], object]
) -> None:
    asked = whole(states(1)[0])
    change(asked)
    assert problem(shared.client.post(PLACEMENTS, json=asked)) == "invalid-body"


def test_a_state_that_has_no_canonical_json_has_no_digest(shared: Service) -> None:
    base = states(1)[0]
    shared.client.post(PLACEMENTS, json=whole(base)).raise_for_status()
    state = deepcopy(base)
    beyond = {"org.example/serial": 2**60}
    state["waiting"][0]["spec"]["extensions"] = beyond
    assert shared.client.post(PLACEMENTS, json={"state": state}).status_code == 200, "nobody needs a digest of it"
    operation = {"op": "add", "path": "/waiting/0/spec/extensions", "value": beyond}
    for asked in (whole(base) | {"state": state}, patch(base, base, operations=[operation])):
        answer = shared.client.post(PLACEMENTS, json=asked)
        assert problem(answer) == "invalid-body"
        assert "no canonical JSON" in answer.json()["detail"]


def test_a_patch_leads_no_deeper_than_a_body_may_be(shared: Service) -> None:
    base = states(1)[0]
    shared.client.post(PLACEMENTS, json=whole(base)).raise_for_status()
    for levels, status in ((58, 200), (59, 422)):
        deep: Any = json.loads("[" * levels + "]" * levels)
        state = deepcopy(base)
        state["waiting"][0]["spec"]["extensions"] = {"org.example/deep": deep}
        assert shared.client.post(PLACEMENTS, json=patch(base, state)).status_code == status
        assert shared.client.post(PLACEMENTS, json={"state": state}).status_code == (status if status == 200 else 400)


def test_tenants_never_start_from_what_another_sent(start_service: StartService) -> None:
    base, state = states(2, seed=4)
    service = start_service("--token", "red=secret-of-red", "--token", "blue=secret-of-blue")
    with service.as_tenant("secret-of-red") as one, service.as_tenant("secret-of-blue") as other:
        one.post(PLACEMENTS, json=whole(base)).raise_for_status()
        assert problem(other.post(PLACEMENTS, json=patch(base, state))) == "unknown-base"
        assert one.post(PLACEMENTS, json=patch(base, state)).status_code == 200


def test_a_session_of_the_client_sends_patches_and_starts_anew_where_the_service_forgot(shared: Service) -> None:
    sent: list[JsonObject] = []

    def look(request: httpx.Request) -> None:
        sent.append(orjson.loads(request.content))

    with Client(shared.url) as client:
        client._http.event_hooks["request"] = [look]  # noqa: SLF001 - what goes over the wire is what is tested
        session = client.placement_session()
        requests = [PlacementRequest.model_validate({"state": state}) for state in states(4, seed=5)]
        reports = [session.place(request) for request in requests]
        assert ["patch" in each for each in sent] == [False, True, True, True]
        assert reports == [client.place(request) for request in requests]
        assert session._base is not None  # noqa: SLF001
        session._base = CanonicalState({**session._base.state, "now": "2031-01-01T00:00:00Z"})  # noqa: SLF001
        sent.clear()
        assert session.place(requests[0]) == reports[0]
        assert ["patch" in each for each in sent] == [True, False], "the service never had that one"


def edits(draw: Random, state: JsonObject) -> None:
    """Change a state as an epoch, a mistake or malice may."""
    waiting, running = state["waiting"], state["running"]
    some = [entry for entry in running if isinstance(entry, dict)]

    def begin() -> None:
        entry = waiting.pop(draw.randrange(len(waiting)))
        running.append({**deepcopy(some[0]), "spec": entry["spec"], "done": 0})

    def one(queue: list[Any]) -> Any:
        return queue[draw.randrange(len(queue))]

    def place() -> str:
        return str(one(state["domains"])["id"])

    kinds: list[Callable[[], object]] = [
        lambda: [entry.update(done=entry["done"] + draw.choice([1, 60.0, 1e-9])) for entry in some],
        lambda: running.pop(draw.randrange(len(running))),
        lambda: waiting.pop(draw.randrange(len(waiting))),
        begin,
        lambda: draw.shuffle(waiting),
        lambda: one(some).update(phase="starting", ready_at="2040-01-01T00:00:00Z"),
        lambda: one(some).pop("rate", None),
        lambda: one(some).update(checkpoint_domain=place()),
        lambda: one(waiting)["spec"].update(priority=draw.randrange(4)),
        lambda: one(waiting)["spec"].update(
            checkpoint={"id": "c", "size": 1e9, "domains": [one(state["domains"])["id"]]}
        ),
        lambda: one(waiting).update(used=draw.random(), done=draw.random() * 100),
        lambda: one(state["domains"]).update(reachable=False),
        lambda: one(one(state["domains"])["pools"]).update(free=draw.randrange(8)),
        lambda: state.update(copies=[{"artefact": "x", "domains": [place()]}]),
        lambda: state.update(refused=[{"job": one(waiting)["spec"]["id"], "verb": "start", "reason": "no_room"}]),
        lambda: state["revision"].update(number=draw.randrange(1000)),
        # what is wrong
        lambda: one(some).update(done=-1),
        lambda: one(some).update(colour="red"),
        lambda: one(some).pop("phase"),
        lambda: one(some).update(phase=3),
        lambda: one(some)["placement"]["shares"][0].update(domain="nowhere"),
        lambda: one(some)["spec"].update(submitted_at="2026-02-30T00:00:00Z"),
        lambda: one(waiting)["spec"].update(home_domain="nowhere"),
        lambda: waiting.append(deepcopy(one(waiting))),
        lambda: waiting.append("no job"),
        lambda: running.insert(0, {}),
        lambda: state.pop("now", None),
        lambda: state.update(domains=[]),
        lambda: state.update(links={}),
    ]
    for _ in range(draw.randrange(1, 4)):
        draw.choice(kinds[: draw.choice([16, 16, len(kinds)])])()


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**32))
def test_whatever_is_changed_the_answer_is_that_of_the_whole_state(seed: int) -> None:
    draw = Random(seed)
    state = states(1, seed=seed % 5)[0]
    assert scheduling.place(orjson.dumps(whole(state)), "tenant", ROOM, MOST).status == 200
    for _ in range(4):
        after = deepcopy(state)
        try:
            edits(draw, after)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            continue  # one mistake made another impossible
        more = {"explain": draw.random() < 0.5}
        expected = scheduling.place(orjson.dumps({"state": after, **more}))
        found = scheduling.place(orjson.dumps({**patch(state, after), **more}), "tenant", ROOM, MOST)
        assert (found.status, found.body) == (expected.status, expected.body)
        if found.status == 200:
            state = after


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_read_and_written_again_is_as_if_for_the_first_time(seed: int) -> None:
    before, after = states(2, seed=seed % 7)
    asked = {**whole(before)}
    scheduling.place(orjson.dumps(asked), "reader", ROOM, MOST)
    scheduling.place(orjson.dumps(patch(before, after)), "reader", ROOM, MOST)
    base = scheduling._bases.get("reader", canonical.digest(after))  # noqa: SLF001
    assert base is not None
    assert base.canonical.written() == schema.canonical(after)
    anew = parse.parse_jobs(after)
    assert base.parsed.names == anew.names
    for name, column in anew.figures.items():
        assert base.parsed.figures[name].tobytes() == column.tobytes(), name


def bases(count: int) -> Iterator[Base]:
    for state in states(count):
        yield Base(CanonicalState(state), parse.parse_jobs(state))


def test_bases_fit_into_their_room_and_the_tenant_who_holds_most_loses_first() -> None:
    held, made = Bases(), list(bases(4))
    size = max(base.canonical.size for base in made)
    held.hold("small", made[0], 3 * size)
    for base in made[1:]:
        held.hold("large", base, 3 * size)
    digests = [base.canonical.digest for base in made]
    assert held.get("small", digests[0]) is made[0]
    assert held.get("large", digests[1]) is None
    assert held.get("large", digests[3]) is made[3]
    held.hold("large", made[0], size // 2)
    assert held.get("large", digests[0]) is None, "what is larger than all the room is not held"


def test_a_patch_may_not_lead_to_a_state_that_could_not_be_sent_whole() -> None:
    state = states(1)[0]
    assert scheduling.place(orjson.dumps(whole(state)), "grower", ROOM, MOST).status == 200
    after = {**state, "refused": [{"job": "j" * 100, "verb": "start", "reason": "size"}] * 100}
    size = len(canonical.dumps(after))
    asked = orjson.dumps(patch(state, after))
    refused = scheduling.place(asked, "grower", ROOM, size - 1)
    assert json.loads(refused.body)["type"].endswith("payload-too-large")
    assert scheduling.place(asked, "grower", ROOM, size).status == 200
