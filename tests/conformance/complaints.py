"""Somebody who looks at names and numbers in requests of resilience, for himself."""

from collections.abc import Callable, Iterator
from typing import Any

from conformance.adjustment_complaints import Complaint, of_adjustments

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS, BACKUPS, COLLECTIVES, FAILOVERS, SHARDS


def of_shards(body: Json) -> Iterator[Complaint]:
    """What is wrong with a request for a shard plan."""
    ways = [(link["source"], link["target"]) for link in body["links"]]
    for number, stream in enumerate(body["streams"]):
        for place, move in enumerate(stream["transfers"]):
            if (move["source"], stream["target"]) not in ways:
                yield "unknown-reference", f"/streams/{number}/transfers/{place}/source"
    yield from _twice("/streams", "/id", [stream["id"] for stream in body["streams"]])
    yield from _twice("/rooms", "/domain", [room["domain"] for room in body["rooms"]])
    yield from _links(ways)
    for number, stream in enumerate(body["streams"]):
        yield from (("invalid-body", f"/streams/{number}{place}") for place in _bytes(stream))


def _bytes(stream: Json) -> Iterator[str]:
    last, before = stream["remote_steps"] * stream["step_size"], 0.0
    for place, gap in enumerate(stream["missing"]):
        if not before <= gap["begin"] < gap["end"] <= last:
            yield f"/missing/{place}"
        before = gap["end"]
    moves = stream["transfers"]
    for place, move in enumerate(moves):
        apart = [*moves[:place], *stream["missing"]]
        overlaps = any(move["begin"] < other["end"] and other["begin"] < move["end"] for other in apart)
        if overlaps or not move["begin"] < move["end"] <= last or move["left"] > move["end"] - move["begin"]:
            yield f"/transfers/{place}"


def of_collectives(body: Json) -> Iterator[Complaint]:
    """What is wrong with a request for a collective."""
    domains, used = body["domains"], body["in_use"]
    ways = [(link["source"], link["target"]) for link in body["links"]]
    for place, link in enumerate(body["links"]):
        ends = (end for end in ("source", "target") if link[end] not in domains)
        yield from (("unknown-reference", f"/links/{place}/{end}") for end in ends)
    strangers = (place for place, name in enumerate(used["order"]) if name not in domains)
    yield from (("unknown-reference", f"/in_use/order/{place}") for place in strangers)
    yield from _twice("/domains", "", domains)
    yield from _links(ways)
    if {(one, other) for one in domains for other in domains if one != other} - set(ways):
        yield "invalid-body", "/links"
    if sorted(used["order"]) != sorted(domains):
        yield "invalid-body", "/in_use/order"
    if used["period"] != 1 and used["collective"] != "low_communication":
        yield "invalid-body", "/in_use/period"


def of_backups(body: Json) -> Iterator[Complaint]:
    """What is wrong with a request for a backup plan."""
    domains = [each["id"] for each in body["domains"]]
    yield from _twice("/domains", "/id", domains)
    for number, job in enumerate(body["jobs"]):
        if job["domain"] not in domains:
            yield "unknown-reference", f"/jobs/{number}/domain"
    yield from _of_both(body)


def of_failovers(body: Json) -> Iterator[Complaint]:
    """What is wrong with a request for a failover plan."""
    stores = [each["domain"] for each in body["stores"]]
    jobs = {each["id"]: each for each in body["jobs"]}
    yield from _twice("/nodes", "/id", [each["id"] for each in body["nodes"]])
    for number, job in enumerate(body["jobs"]):
        copies = [each["domain"] for each in job["copies"]]
        yield from _twice(f"/jobs/{number}/copies", "/domain", copies)
        strangers = (place for place, each in enumerate(copies) if each not in stores)
        yield from (("unknown-reference", f"/jobs/{number}/copies/{place}/domain") for place in strangers)
    held = []
    for number, node in enumerate(body["nodes"]):
        if ("job" in node) != ("replica" in node):
            yield "invalid-body", f"/nodes/{number}"
        if "fenced_in" in node and node["condition"] != "unreachable":
            yield "invalid-body", f"/nodes/{number}/fenced_in"
        if node.get("job") in jobs and "replica" in node:
            job = jobs[node["job"]]
            held.append((node["job"], node["replica"]))
            if node["replica"] >= job["replicas"]:
                yield "invalid-body", f"/nodes/{number}/replica"
            if node["domain"] != job["domain"]:
                yield "invalid-body", f"/nodes/{number}/domain"
            if held.count(held[-1]) > job["nodes_each"]:
                yield "invalid-body", f"/nodes/{number}/job"
    yield from _of_both(body)


def _of_both(body: Json) -> Iterator[Complaint]:
    yield from _twice("/jobs", "/id", [each["id"] for each in body["jobs"]])
    yield from _twice("/stores", "/domain", [each["domain"] for each in body["stores"]])
    yield from _links([(link["source"], link["target"]) for link in body["links"]])
    for number, job in enumerate(body["jobs"]):
        if job["least_replicas"] > job["replicas"]:
            yield "invalid-body", f"/jobs/{number}/least_replicas"


def _twice(place: str, last: str, names: list[Any]) -> Iterator[Complaint]:
    for number, name in enumerate(names):
        if name in names[:number]:
            yield "invalid-body", f"{place}/{number}{last}"


def _links(ways: list[tuple[str, str]]) -> Iterator[Complaint]:
    yield from _twice("/links", "", ways)
    yield from (("invalid-body", f"/links/{place}") for place, (one, other) in enumerate(ways) if one == other)


LOOKS: dict[str, Callable[[Json], Iterator[Complaint]]] = {
    SHARDS: of_shards,
    COLLECTIVES: of_collectives,
    BACKUPS: of_backups,
    FAILOVERS: of_failovers,
    ADJUSTMENTS: of_adjustments,
}
"""What is wrong with a request, unknown names first, by operation."""
