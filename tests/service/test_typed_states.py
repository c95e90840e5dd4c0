"""Whole states are read by types; the answer, and what is complained of, is that of reading them in plain JSON."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from service.conftest import JsonObject
from service.test_patched_states import edits, states

from kuayu.scheduling import parse, typed
from kuayu.service import scheduling

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
"""A job that keeps nothing busy is fast nowhere: what is made of that divides nought by nought."""

PARTS = ("jobs", "holdings", "pools", "links")


def answers(body: bytes) -> tuple[scheduling.ComputedAnswer, scheduling.ComputedAnswer]:
    """What is answered, and what is where nothing is read by types."""
    found = scheduling.place(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typed, "read", lambda *_: None)
        return found, scheduling.place(body)


def arrays(snapshot: Any) -> dict[str, bytes]:
    """All arrays of a snapshot, bit by bit."""
    found = {name: getattr(snapshot, name) for name in ("memory", "index", "reachable")}
    for part in PARTS:
        its = getattr(snapshot, part)
        found |= {f"{part}.{name}": getattr(its, name) for name in its.__dataclass_fields__}
    return {
        name: each.dtype.str.encode() + each.tobytes() for name, each in found.items() if isinstance(each, np.ndarray)
    }


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_whatever_a_state_is_it_is_answered_as_if_it_were_read_in_plain_json(seed: int) -> None:
    draw = Random(seed)
    state = states(1, seed=seed % 5)[0]
    with suppress(ValueError, KeyError, IndexError, TypeError, AttributeError):  # one mistake made another impossible
        edits(draw, state)
    found, expected = answers(orjson.dumps({"state": state, "explain": draw.random() < 0.5}))
    assert (found.status, found.body) == (expected.status, expected.body)


def texts(body: str) -> list[Callable[[Random], str]]:
    """Ways to spoil a text, or to write it otherwise."""

    def somewhere(pattern: str, made: Callable[[re.Match[str]], str]) -> Callable[[Random], str]:
        def spoil(draw: Random) -> str:
            places = list(re.finditer(pattern, body))
            place = draw.choice(places)
            return body[: place.start()] + made(place) + body[place.end() :]

        return spoil

    name, number, string = r'"[a-z_]+":', r"(?<=:)[0-9][0-9.]*", r'(?<=:)"[a-z0-9]+"'
    return [
        # members that stand twice, the same and another
        somewhere(r'"done":[0-9.e+]+', lambda hit: f"{hit[0]},{hit[0]}"),
        somewhere(r'"kind":"training"', lambda hit: f'{hit[0]},"kind":"serving"'),
        somewhere(r'"id":"[a-z0-9]+"', lambda hit: f'"id":"other",{hit[0]}'),
        somewhere(r'"kind":"training"', lambda hit: f'{hit[0]},"k\\u0069nd":"serving"'),
        # one twice, and a colon elsewhere in disguise
        somewhere(r'"kind":"training"(.*?)T([0-9]+):', lambda hit: f'"kind":"serving",{hit[0][:-1]}\\u003a'),
        somewhere(name, lambda hit: hit[0].replace(":", "")),
        somewhere(name, lambda hit: f'"x{hit[0][1:]}'),
        somewhere(name, lambda hit: f"\t{hit[0]} \n"),
        *(
            somewhere(number, lambda _, new=new: new)
            for new in ("null", "-1", "-0.0", "01", "1.", ".5", "+1", "1e400", "NaN", "true", '"1"', "3.0", "1E2")
        ),
        *(somewhere(number, lambda _, new=new: new) for new in ("9007199254740993", "123456789012345678901", "1e-400")),
        *(
            somewhere(string, lambda _, new=new: new)
            for new in (
                '""',
                '"a b"',
                '"a\\n"',
                '"a\n"',
                '"\\ud800"',
                '"é"',
                "null",
                '"-a"',
                '"a-b"',
                '"a:b"',
                "{}",
                "[]",
            )
        ),
        somewhere(r"T[0-9]{2}", lambda _: "T24"),
        somewhere(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}T", lambda _: "2027-02-30T"),
        somewhere(r"\.000Z", lambda _: "Z"),
        somewhere(r"\.000Z", lambda _: "+00:00"),
        somewhere(r",", lambda _: ",,"),
        somewhere(r"\]", lambda _: ",]"),
        somewhere(r"\}", lambda _: ""),
        lambda _: body + "x",
        lambda _: body[:-1],
        lambda _: "\ufeff" + body,
        lambda draw: body[: draw.randrange(len(body))],
    ]


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_whatever_is_done_to_the_text_the_same_is_answered(seed: int) -> None:
    draw = Random(seed)
    body = json.dumps({"state": states(1, seed=seed % 5)[0]}, separators=(",", ":"))
    for _ in range(draw.choice((1, 1, 2))):
        body = draw.choice(texts(body))(draw)
    found, expected = answers(body.encode("utf-8", "surrogatepass"))
    assert (found.status, found.body) == (expected.status, expected.body)


def described(state: JsonObject) -> JsonObject:
    """The same, whose first jobs tell all that a job may."""
    state = deepcopy(state)
    place = state["domains"][0]["id"]
    artefact = {"id": "a-b.c_d", "size": 0, "domains": [place], "pinned": True}
    waiting, running = state["waiting"][0], state["running"][0]
    waiting |= {"used": 0.5, "done": 3, "checkpoint_domain": place}
    waiting["spec"] |= {
        "tenant": "red", "deadline": "2030-01-01T00:00:00Z", "memory_per_device": 1, "device_kinds": ["gpu", "npu"],
        "work": waiting["spec"]["duration"], "sync_period": 5, "links": {"bandwidth": 1e9, "round_trip_time": 0.1},
        "nodes": {"devices_per_node": 1, "within": "switch"}, "checkpoint": artefact, "data": [artefact, artefact],
    }  # fmt: skip
    state["waiting"][1]["spec"].pop("communication")
    state["waiting"][2]["spec"].update(links={}, nodes={}, device_kinds=[], data=[])
    running |= {"interrupted_at": state["now"], "ready_at": "2031-01-01T00:00:00Z", "phase": "staging"}
    running["placement"] |= {"split_mode": "periodic", "sync_period": 15}
    running["placement"]["shares"][0]["purchase"] = "on_demand"
    return state


def test_what_is_read_by_types_is_what_is_read_of_plain_json_bit_by_bit() -> None:
    for state in (*states(5), described(states(1)[0])):
        found = typed.read(orjson.dumps({"state": state}))
        assert found is not None
        asked, jobs = found
        snapshot = parse.snapshot_of(asked["state"], parse.ParsedJobs(jobs))
        expected = parse.snapshot_of(state)
        assert arrays(snapshot) == arrays(expected)
        assert (snapshot.names, snapshot.waiting, snapshot.denied) == (
            expected.names,
            expected.waiting,
            expected.denied,
        )
        assert typed.plain(jobs.placements) == [each["placement"] for each in state["running"]]


def test_types_are_made_of_all_that_the_schema_says_of_jobs_but_of_what_is_open() -> None:
    types = typed._types()  # noqa: SLF001 - a member that no type says is read slowly, and nobody would notice
    classes = typed.schema.document()["$defs"]
    missing = {
        (name, member)
        for name, its in types.members.items()
        for member in classes[name]["properties"].keys() - {each.name for each in its}
    }
    assert missing == {("JobSpec", "extensions")}


@pytest.mark.parametrize("levels", [60, 70, 2_000, 200_000])
@pytest.mark.parametrize("place", ['{"state":{"links":%s}}', '{"shares":%s}', '{"state":{"waiting":%s}}', "%s"])
def test_what_is_nested_deeply_is_refused_as_ever(place: str, levels: int) -> None:
    found, expected = answers((place % ("[" * levels + "]" * levels)).encode())
    assert found.status in {400, 422}
    assert found.body == expected.body


@pytest.mark.parametrize("member", ["extensions", "forecast"])
def test_what_no_type_says_is_read_in_plain_json(member: str) -> None:
    state = states(1)[0]
    state["waiting"][0]["spec"][member] = {"extensions": {"org.example/x": {"a": [1]}}, "forecast": "urn:x:y"}[member]
    found, expected = answers(orjson.dumps({"state": state}))
    assert found.status == 200
    assert found.body == expected.body


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_what_was_read_of_a_state_before_changes_no_answer_to_the_next(seed: int) -> None:
    draw = Random(seed)
    tenant = f"tenant {draw.randrange(3)}"
    for state in states(3, seed=seed % 7):
        with suppress(ValueError, KeyError, IndexError, TypeError, AttributeError):  # as above
            if draw.random() < 0.5:
                edits(draw, state)
        body = orjson.dumps({"state": state})
        found, expected = scheduling.place(body, tenant), scheduling.place(body, "nobody before")
        scheduling._caches().keep("nobody before", typed.JobCache())  # noqa: SLF001
        assert (found.status, found.body) == (expected.status, expected.body)


def test_texts_of_jobs_that_are_read_again_are_kept_in_bounded_memory() -> None:
    caches, bodies = typed.JobCaches(40_000), [orjson.dumps({"state": state}) for state in states(3)]
    read = [typed.read(body) for body in bodies]
    sizes = [found[1].cache.size for found in read if found]
    assert len(sizes) == 3
    assert 20_000 < min(sizes) <= max(sizes) < 40_000, "one has room, and two have not"
    for number, found in enumerate(read):
        assert found is not None
        caches.keep(str(number), found[1].cache)
    assert [bool(caches.of(str(number)).specs) for number in range(3)] == [False, False, True]
