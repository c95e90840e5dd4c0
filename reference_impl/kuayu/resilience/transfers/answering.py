"""Shard plans on the wire: what a request says as a scene, and a plan as an answer."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from kuayu.resilience.transfers.checking import check_shard_plan, looked_at
from kuayu.resilience.transfers.explaining import reasons
from kuayu.resilience.transfers.planning import Plan, plan
from kuayu.resilience.transfers.scene import Floats, Link, Scene, Stream, UnderWay

METHOD = {"name": "kuayu-rolling-shards", "version": "1.0.0"}

BITS = 8.0
"""In a byte."""

MEASUREMENTS = 1_000_000
"""Most of them over all links; where there are more, the oldest are left out."""

SILENT = 0.125
"""Bytes a second below which a link counts as out: one bit."""

REASONS = 100
"""Most of them that the standard lets a stream have."""

_SAME = 1e-12
"""Share of a step, for each step from the first byte, by which sums of shares of steps are off."""

_NEAR = 1e-6
"""Share of a step that is no other step."""


def shard_plan(request: dict[str, Any]) -> dict[str, Any]:
    """Plan what to fetch, from where, in what pieces and how early.

    Args:
        request: A ``ShardPlanRequest``.

    Returns:
        A ``ShardPlan``. It follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Streams, rooms or links share a name.
        kuayu.refusals.UnknownName: A transfer comes from where no link leads to its stream.
        kuayu.refusals.Impossible: A range contradicts itself or another, or there is more than can be planned at once.
    """
    check_shard_plan(request)
    scene = scene_of(request)
    made = plan(scene)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "streams": [_stream_plan(scene, made, row, each) for row, each in enumerate(request["streams"])],
        "shards": _shards(scene, made),
    }


def scene_of(request: Mapping[str, Any]) -> Scene:
    """What a checked ``ShardPlanRequest`` says, in bytes and by number."""
    links = request["links"]
    most = max(1, MEASUREMENTS // max(len(links), 1))
    number = {(link["source"], link["target"]): place for place, link in enumerate(links)}
    return Scene(
        tuple(
            Link(link["source"], link["target"], _measured(link, most), link["latency"], link.get("up", True))
            for link in links
        ),
        tuple(_stream(each, number, request["horizon"]) for each in request["streams"]),
        {room["domain"]: room["size"] for room in request["rooms"]},
        request["interval"],
        request["horizon"],
    )


def _measured(link: Mapping[str, Any], most: int) -> Floats:
    """Bytes a second, the newest of them."""
    rates: Floats = np.array(link["bandwidths"][-most:], dtype=np.float64) / BITS
    return np.where(rates < SILENT, 0.0, rates)


def _stream(each: Mapping[str, Any], number: Mapping[tuple[str, str], int], horizon: float) -> Stream:
    target = each["target"]
    return Stream(
        each["id"],
        target,
        frozenset(each["sources"]),
        each["step_size"],
        each["step_time"],
        each["due"],
        each["remote_steps"],
        min(each.get("local_steps") or 0, looked_at(each, horizon)),
        tuple((gap["begin"], gap["end"]) for gap in each["missing"]),
        tuple(
            UnderWay(number[way["source"], target], way["begin"], way["end"], way["left"])
            for way in each.get("transfers") or ()
        ),
    )


def _stream_plan(scene: Scene, made: Plan, row: int, each: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "stream": each["id"],
        "steps_ahead": int(made.depths.steps[row]),
        "shard_size": float(made.sizes.bytes[row]),
        "local_slots": list(made.tables[row].local),
        "local_when_late": bool(each.get("local_steps")),
        "abandoned": [{"source": scene.links[way.link].source, "begin": way.begin} for way in made.given_up[row]],
        "reasons": list(islice(reasons(scene, made, row), REASONS)),
    }


def _shards(scene: Scene, made: Plan) -> list[dict[str, Any]]:
    """Shards that have a source, in the order in which links are to take them."""
    shards, order = made.shards, made.order
    size = np.array([stream.step_bytes for stream in scene.streams])[shards.stream]
    begin, end = _on_steps(shards.begin, size), _on_steps(shards.end, size)
    rows = np.lexsort((shards.stream, begin, order.start_s))
    rows = rows[(order.link[rows] >= 0) & (end[rows] > begin[rows])]
    first = np.floor(begin / size + _NEAR).astype(np.int64)
    return [
        {
            "stream": scene.streams[stream].name,
            "begin": low,
            "end": high,
            "source": scene.links[link].source,
            "after": after,
            "slot": int(made.tables[stream].slot[min(step, len(made.tables[stream].slot) - 1)]),
        }
        for stream, low, high, link, after, step in zip(
            shards.stream[rows].tolist(),
            begin[rows].tolist(),
            end[rows].tolist(),
            order.link[rows].tolist(),
            shards.release_s[rows].tolist(),
            first[rows].tolist(),
            strict=True,
        )
    ]


def _on_steps(at: Floats, size: Floats) -> Floats:
    """Bytes, those beside the first of a step moved onto it, so that any division finds that step."""
    near = np.rint(at / size)
    first: Floats = near * size
    first = np.where(np.floor_divide(first, size) < near, np.nextafter(first, np.inf), first)
    return np.where(np.abs(at / size - near) <= _SAME * np.maximum(near, 1.0), first, at)
