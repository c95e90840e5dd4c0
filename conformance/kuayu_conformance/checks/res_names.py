"""Requests of resilience that name what they do not hold, one thing twice, or what cannot be (RES-013)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.fct_names import changed
from kuayu_conformance.checks.res_adjustment_names import adjustment, of_adjustments
from kuayu_conformance.checks.res_faults import INVALID, NOWHERE, UNKNOWN, Fault
from kuayu_conformance.checks.res_fixtures import (
    ADJUSTMENTS,
    BACKUPS,
    COLLECTIVES,
    FAILOVERS,
    SHARDS,
    Json,
    ask,
    name,
    revision,
)
from kuayu_conformance.checks.res_recovery_names import backup, failover, of_backups, of_failovers
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds

REQUIREMENT = "RES-013"
_SIZE = 1e8


@dataclass(frozen=True)
class Wrong:
    """A request with a fault, and what came."""

    path: str
    fault: Fault
    answer: Answer


def observe(episode: Episode) -> tuple[Wrong, ...]:
    """Ask for everything as it should be, then with one thing wrong each time.

    Raises:
        SetUpFailed: What is right is not answered.
    """
    bodies = {path: body for path, body in requests(episode.random).items() if episode.settings.asks(f"POST {path}")}
    for path, body in bodies.items():
        ask(episode, path, body)
    found = []
    for path, whole in bodies.items():
        for fault in FAULTS[path](whole):
            body = whole
            for place, value in fault.values.items():
                body = changed(body, place, value)
            found.append(Wrong(path, fault, episode.ask("POST", path, body)))
    return tuple(found)


def requests(chance: Random) -> dict[str, Json]:
    """A small request for each operation, with a name in every place that may hold one."""
    names = [name(chance) for _ in range(5)]
    target, sources, elsewhere = names[0], names[1:4], names[4]
    streams = [_stream(chance, target, [*sources[:2], elsewhere]) for _ in range(2)]
    return {
        SHARDS: {
            "revision": revision(chance),
            "interval": 10.0,
            "horizon": 60.0,
            "links": [_link(chance, source, target) for source in sources],
            "rooms": [{"domain": domain, "size": 20 * _SIZE} for domain in (target, elsewhere)],
            "streams": streams,
        },
        COLLECTIVES: {
            "revision": revision(chance),
            "interval": 30.0,
            "domains": sources,
            "links": [_link(chance, one, other) for one in sources for other in sources if one != other],
            "nodes": 4,
            "node_bandwidth": 1e11,
            "node_latency": 1e-5,
            "exchange": 1e9,
            "step_time": 5.0,
            "switch_time": 10.0,
            "in_use": {"collective": "hierarchical", "period": 1, "order": sources, "since": 600.0},
        },
        BACKUPS: backup(chance),
        FAILOVERS: failover(chance),
        ADJUSTMENTS: adjustment(chance),
    }


def _link(chance: Random, source: str, target: str) -> Json:
    bandwidths = [round(chance.uniform(1e9, 9e9)) for _ in range(10)]
    return {"source": source, "target": target, "latency": 0.02, "bandwidths": bandwidths}


def _stream(chance: Random, target: str, sources: list[str]) -> Json:
    """Twenty steps, of which two are under way and one is there."""
    begin = 3 * _SIZE
    transfers = [
        {"begin": place * _SIZE, "end": (place + 1) * _SIZE, "source": source, "left": 0.5 * _SIZE}
        for place, source in enumerate(sources[:2])
    ]
    return {
        "id": name(chance),
        "target": target,
        "sources": sources,
        "step_size": _SIZE,
        "step_time": 2.0,
        "due": 1.0,
        "remote_steps": 20,
        "missing": [{"begin": begin, "end": 10 * _SIZE}, {"begin": 12 * _SIZE, "end": 20 * _SIZE}],
        "transfers": transfers,
    }


def _of_shards(whole: Json) -> Iterator[Fault]:
    stream, links = whole["streams"][1], whole["links"]
    place, gaps, moves = "/streams/1", stream["missing"], stream["transfers"]
    missing, transfers = f"{place}/missing", f"{place}/transfers"
    source = f"{transfers}/1/source"
    yield Fault("a transfer from an unknown domain", UNKNOWN, source, False, {source: NOWHERE})
    yield Fault("a stream, twice", INVALID, f"{place}/id", False, {f"{place}/id": whole["streams"][0]["id"]})
    room = "/rooms/1/domain"
    yield Fault("a room, twice", INVALID, room, False, {room: whole["rooms"][0]["domain"]})
    yield Fault("a link, twice", INVALID, "/links/2", True, {"/links/2/source": links[0]["source"]})
    yield Fault("a link to its source", INVALID, "/links/2", True, {"/links/2/target": links[2]["source"]})
    for what, list_, of in (("missing bytes", missing, gaps), ("transfers", transfers, moves)):
        end, nothing = f"{list_}/1/end", {f"{list_}/1/left": 0.0} if list_ == transfers else {}
        empty, turned = {**nothing, end: of[1]["begin"]}, {**nothing, end: 0.5 * of[1]["begin"]}
        yield Fault(f"{what} without a byte", INVALID, f"{list_}/1", True, empty)
        yield Fault(f"{what} that end before they begin", INVALID, f"{list_}/1", True, turned)
        beyond = (stream["remote_steps"] + 1) * _SIZE
        values = {f"{list_}/1/begin": beyond - _SIZE, end: beyond}
        yield Fault(f"{what} beyond the last step", INVALID, place, True, values)
    yield Fault("missing bytes that do not rise", INVALID, missing, True, {missing: gaps[::-1]})
    yield Fault("missing bytes that overlap", INVALID, missing, True, {f"{missing}/1/begin": 9 * _SIZE})
    yield Fault("transfers that overlap", INVALID, place, True, {f"{transfers}/1/begin": 0.5 * _SIZE})
    yield Fault("a transfer of missing bytes", INVALID, place, True, {f"{transfers}/1/end": 3.5 * _SIZE})
    more = {f"{transfers}/1/left": 2.0 * _SIZE}
    yield Fault("a transfer with more left than it has", INVALID, f"{transfers}/1", True, more)


def _of_collectives(whole: Json) -> Iterator[Fault]:
    domains, links, order = whole["domains"], whole["links"], "/in_use/order"
    last = f"/links/{len(links)}"
    for end in ("source", "target"):
        further = {"/links": [*links, {**links[0], end: NOWHERE}]}
        yield Fault(f"an unknown {end} of a link", UNKNOWN, f"{last}/{end}", False, further)
    yield Fault("an unknown domain in use", UNKNOWN, f"{order}/1", False, {f"{order}/1": NOWHERE})
    yield Fault("a domain, twice", INVALID, "/domains", True, {"/domains": [*domains, domains[0]]})
    yield Fault("a link, twice", INVALID, last, True, {"/links": [*links, links[0]]})
    loop = {**links[0], "target": links[0]["source"]}
    yield Fault("a link to its source", INVALID, last, True, {"/links": [*links, loop]})
    yield Fault("domains without a link", INVALID, "/links", True, {"/links": links[1:]})
    yield Fault("an order that leaves one out", INVALID, order, True, {order: domains[1:]})
    yield Fault("an order that holds one twice", INVALID, order, True, {f"{order}/1": domains[0]})
    for collective in ("ring", "hierarchical"):
        values = {"/in_use/collective": collective, "/in_use/period": 5}
        yield Fault(f"a period of 5 with {collective}", INVALID, "/in_use", True, values)


FAULTS = {
    SHARDS: _of_shards,
    COLLECTIVES: _of_collectives,
    BACKUPS: of_backups,
    FAILOVERS: of_failovers,
    ADJUSTMENTS: of_adjustments,
}
"""What is wrong with requests, one thing each, by operation."""


def judge(observation: tuple[Wrong, ...]) -> Iterable[Finding]:
    """Claims about refusals."""
    for wrong in observation:
        fault, answer = wrong.fault, wrong.answer
        what = f"{fault.what} ({wrong.path})"
        yield answered(REQUIREMENT, answer, 422, what, problem=fault.problem)
        pointers = [str(error.get("pointer")) for error in answer.items("errors") if isinstance(error, dict)]
        named = any(fault.names(pointer) for pointer in pointers)
        yield holds(REQUIREMENT, named, f"{what}: the place {fault.where}", pointers, answer)


CHECK = Check("res_names", (REQUIREMENT,), observe, judge)
