"""Shard plans on the wire: sound whatever is asked, finite whatever the numbers, and refused where they cannot be."""

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import count, islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resilience.transfer_requests import STEP, asking, link, plans, stream, way

from kuayu.refusals import Impossible, Refusal, RepeatedName, UnknownName
from kuayu.resilience.shard_planner import shard_plan
from kuayu_schemas.models import ShardPlan, ShardPlanRequest

Json = dict[str, Any]
NEAR = 1e-6


def test_a_plan_fetches_what_comes_next_from_the_copy_whose_link_is_quicker() -> None:
    asked = asking(links=[link("near", share=3.0), link("far", share=0.5)], streams=[stream("job", "near", "far")])
    made = shard_plan(asked)
    first = made["shards"][0]
    assert (first["stream"], first["begin"], first["slot"], first["after"]) == ("job", 0.0, 0, 0.0)
    by_source = [each["source"] for each in made["shards"]]
    assert by_source.count("near") > by_source.count("far")
    assert made["revision"] == asked["revision"]


def test_steps_for_which_there_is_no_room_yet_wait_for_those_before_them() -> None:
    plan = shard_plan(asking(rooms=[{"domain": "here", "size": 3 * STEP}]))
    assert plan["streams"][0]["steps_ahead"] <= 3
    late = [each for each in plan["shards"] if each["after"] > 0.0]
    assert late
    assert all(each["begin"] >= 2 * STEP for each in late)


def test_data_that_cannot_be_in_time_leave_their_slots_to_local_data() -> None:
    plan = shard_plan(asking(links=[link("far", share=0.3)], streams=[stream(local_steps=8)]))
    local = plan["streams"][0]["local_slots"]
    assert local[0] == 0
    assert plan["streams"][0]["local_when_late"]
    assert plan["shards"][0]["slot"] == next(each for each in count() if each not in local)


@pytest.mark.parametrize("local", [{}, {"local_steps": 0}])
def test_without_local_data_no_slot_takes_any(local: Json) -> None:
    made = shard_plan(asking(links=[link("far", share=0.3)], streams=[stream(**local)]))["streams"][0]
    assert made["local_slots"] == []
    assert not made["local_when_late"]


def test_a_transfer_that_hangs_on_a_link_that_is_out_is_abandoned_and_fetched_elsewhere() -> None:
    waits = stream("job", "far", "near", missing=[{"begin": STEP, "end": 9 * STEP}], transfers=[way(0, 1, 0.5)])
    made = shard_plan(asking(links=[link("far", up=False), link("near")], streams=[waits | {"remote_steps": 9}]))
    assert made["streams"][0]["abandoned"] == [{"source": "far", "begin": 0.0}]
    assert min(each["begin"] for each in made["shards"]) == 0.0
    assert {each["source"] for each in made["shards"]} == {"near"}


def test_where_no_source_is_up_nothing_is_fetched_and_the_reason_says_so() -> None:
    plan = shard_plan(asking(links=[link("far", up=False)]))
    assert plan["shards"] == []
    assert any("no source" in each for each in plan["streams"][0]["reasons"])


def test_reasons_stay_within_what_the_standard_lets_them_be() -> None:
    slow = stream(remote_steps=9000, local_steps=9000, missing=[{"begin": 0.0, "end": 9000 * STEP}])
    made = shard_plan(asking(links=[link("far", up=False)], streams=[slow], horizon=8000.0))
    assert len(made["streams"][0]["local_slots"]) > 1000
    ShardPlan.model_validate_json(json.dumps(made))


@settings(max_examples=300, deadline=None)
@given(plans())
def test_whatever_is_asked_a_plan_is_sound(asked: Json) -> None:
    ShardPlanRequest.model_validate_json(json.dumps(asked))
    made = shard_plan(asked)
    ShardPlan.model_validate_json(json.dumps(made, allow_nan=False))
    assert made == shard_plan(json.loads(json.dumps(asked)))
    assert [each["stream"] for each in made["streams"]] == [each["id"] for each in asked["streams"]]
    for each, plan in zip(asked["streams"], made["streams"], strict=True):
        shards = [shard for shard in made["shards"] if shard["stream"] == each["id"]]
        _sound(asked, each, plan, shards)


def _sound(asked: Json, each: Json, plan: Json, shards: list[Json]) -> None:
    """By every rule of RES-012."""
    size, local, off = each["step_size"], plan["local_slots"], NEAR * each["step_size"]
    ways = {(way["source"], way["begin"]): way for way in each["transfers"]}
    stopped = [ways[way["source"], way["begin"]] for way in plan["abandoned"]]
    open_ = _joined([*each["missing"], *stopped], off)
    up = {(one["source"], one["target"]) for one in asked["links"] if one.get("up", True)}
    room = sum(one["size"] for one in asked["rooms"] if one["domain"] == each["target"])
    assert all(one < other for one, other in pairwise(local))
    assert len(local) <= each.get("local_steps", 0)
    for shard in shards:
        begin, end = shard["begin"], shard["end"]
        assert begin < end <= each["remote_steps"] * size + off
        assert any(low - off <= begin and end <= high + off for low, high in open_)
        assert shard["source"] in each["sources"]
        assert (shard["source"], each["target"]) in up
        assert end - begin <= room + off
        step = int(begin // size)
        assert shard["slot"] == next(islice((slot for slot in count() if slot not in set(local)), step, None))
    ordered = sorted(shards, key=lambda shard: float(shard["begin"]))
    assert all(one["end"] <= other["begin"] + off for one, other in pairwise(ordered))


def _joined(ranges: Iterable[Json], off: float) -> list[tuple[float, float]]:
    """Ranges with those that touch made one."""
    made: list[tuple[float, float]] = []
    for each in sorted(ranges, key=lambda one: float(one["begin"])):
        if made and each["begin"] <= made[-1][1] + off:
            made[-1] = made[-1][0], max(made[-1][1], each["end"])
        else:
            made.append((each["begin"], each["end"]))
    return made


def two(changed: Json) -> Json:
    """The usual request with two streams, the second one changed."""
    return asking(streams=[stream(), stream("other", **changed)])


@pytest.mark.parametrize(
    ("request_", "refusal", "pointer"),
    [
        (asking(streams=[stream(), stream()]), RepeatedName, "/streams/1/id"),
        (asking(rooms=[{"domain": "here", "size": 1.0}] * 2), RepeatedName, "/rooms/1/domain"),
        (asking(links=[link("far")] * 2), RepeatedName, "/links/1/target"),
        (asking(links=[link("far"), link("here")]), Impossible, "/links/1/target"),
        (two({"missing": [], "transfers": [way(0, 1, 1, "afar")]}), UnknownName, "/streams/1/transfers/0/source"),
        (two({"missing": [{"begin": STEP, "end": STEP}]}), Impossible, "/streams/1/missing/0/end"),
        (two({"missing": [{"begin": 0.0, "end": 101 * STEP}]}), Impossible, "/streams/1/missing/0/end"),
        (two({"missing": [], "transfers": [way(2, 2, 0)]}), Impossible, "/streams/1/transfers/0/end"),
        (two({"missing": [], "transfers": [way(99, 101, 0)]}), Impossible, "/streams/1/transfers/0/end"),
        (two({"missing": [], "transfers": [way(2, 3, 1.5)]}), Impossible, "/streams/1/transfers/0/left"),
        (two({"missing": [], "transfers": [way(0, 2, 1), way(1, 3, 1)]}), Impossible, "/streams/1/transfers/1/begin"),
        (two({"transfers": [way(2, 3, 1)]}), Impossible, "/streams/1/transfers/0/begin"),
        (
            two({"missing": [{"begin": 0.0, "end": 2 * STEP}, {"begin": STEP, "end": 3 * STEP}]}),
            Impossible,
            "/streams/1/missing/1/begin",
        ),
        (
            two({"missing": [{"begin": 3 * STEP, "end": 4 * STEP}, {"begin": 0.0, "end": STEP}]}),
            Impossible,
            "/streams/1/missing/1/begin",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_where_it_stands(
    request_: Json, refusal: type[Refusal], pointer: str
) -> None:
    with pytest.raises(refusal) as raised:
        shard_plan(request_)
    assert [each[0] for each in raised.value.pointers] == [pointer]


@pytest.mark.parametrize(
    ("request_", "pointer"),
    [
        (asking(horizon=1e30), "/horizon"),
        (asking(interval=1e-300), "/interval"),
        (asking(streams=[stream(step_time=1e-9)]), "/streams/0/step_time"),
        (asking(streams=[stream(step_size=1e-300, missing=[])]), "/streams/0/step_size"),
        (asking(streams=[stream(due=1e300)]), "/streams/0/due"),
        (asking(links=[link("far", latency=1e300)]), "/links/0/latency"),
        (asking(links=[link("far", bandwidths=[1.0, 1e30])]), "/links/0/bandwidths/1"),
        (asking(rooms=[{"domain": "here", "size": 1e300}]), "/rooms/0/size"),
        (asking(horizon=1e12, streams=[stream(remote_steps=9 * 10**15)]), "/horizon"),
        (asking(horizon=1e12, streams=[stream(local_steps=9 * 10**15)]), "/horizon"),
        (asking(streams=[stream(missing=[{"begin": n, "end": n + 0.5} for n in range(12_001)])]), "/streams"),
    ],
)
def test_what_nobody_can_plan_is_refused_where_it_stands(request_: Json, pointer: str) -> None:
    with pytest.raises(Impossible) as raised:
        shard_plan(request_)
    assert pointer in [each[0] for each in raised.value.pointers]


SIZES = st.sampled_from([0.0, 1e-9, 1.0, 1e3, 1e9, 1e15, 9e15, 1e30])
TIMES = st.sampled_from([1e-9, 1e-6, 1e-3, 1.0, 1e6, 1e12])
COUNTS = st.sampled_from([0, 1, 3, 1000, 9 * 10**15])


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_whatever_the_numbers_a_plan_is_finite_or_refused_and_soon(data: st.DataObject) -> None:
    draw = data.draw
    links = [link(name, latency=draw(TIMES), bandwidths=draw(st.lists(SIZES, max_size=30))) for name in ("far", "near")]
    made = []
    for name in ("one", "other"):
        steps, size = draw(COUNTS), draw(SIZES.filter(lambda each: each > 0.0))
        edges = [share * steps * size for share in sorted(draw(st.sets(st.floats(0.0, 1.0), min_size=2, max_size=4)))]
        missing = [{"begin": edges[0], "end": edges[1]}] if edges[1] > edges[0] else []
        transfers = []
        if len(edges) == 4 and edges[3] > edges[2]:
            transfers = [{"source": "far", "begin": edges[2], "end": edges[3], "left": edges[3] - edges[2]}]
        made.append(
            stream(name, "far", "near", remote_steps=steps, step_size=size, step_time=draw(TIMES), missing=missing)
            | {"local_steps": draw(COUNTS), "due": draw(TIMES), "transfers": transfers}
        )
    asked = asking(links=links, streams=made, rooms=[{"domain": "here", "size": draw(SIZES)}])
    asked |= {"interval": draw(TIMES), "horizon": draw(TIMES)}
    began = time.process_time()
    with suppress(Impossible):
        ShardPlan.model_validate_json(json.dumps(shard_plan(asked), allow_nan=False))
    assert time.process_time() - began < 5.0
