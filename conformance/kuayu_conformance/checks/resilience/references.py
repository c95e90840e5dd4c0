"""Requests of resilience that name what they do not hold, one thing twice, or what cannot be (RES-013).

1. A small request for adjustments, and what can be wrong with it.
2. Small requests for backup and failover plans, and what can be wrong with them.
3. Likewise for shard plans and collectives, and what becomes of all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import (
    INVALID,
    NOWHERE,
    UNKNOWN,
    BadRequest,
    Fault,
    bad_requests,
    name,
    refusals,
    repeated,
    revision,
    unknown,
)
from kuayu_conformance.checks.resilience.recovery_invariants import FAILED, FailoverRequestBuilder, fenced
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS, BACKUPS, COLLECTIVES, FAILOVERS, SHARDS
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding

if TYPE_CHECKING:
    from kuayu_schemas import documents


def adjustment(chance: Random) -> "documents.AdjustmentRequest":
    """Three jobs, in one, two and three of four domains, the second with two changes planned for the same instant.

    No job is in the fourth domain, and a link leads there but none back: this is allowed.
    """
    one, two, three, aside = (name(chance) for _ in range(4))
    ways = [(source, target) for source in (one, two, three) for target in (one, two, three) if source != target]
    changes: list[tuple[documents.CollectiveKind, int, list[str]]]
    changes = [("hierarchical", 1, [two, one]), ("low_communication", 50, [one, two])]
    planned: list[documents.PolicyChange] = [
        {"after": 5.0, "parts": [9 + number, 7 - number], "collective": kind, "period": period, "order": order}
        for number, (kind, period, order) in enumerate(changes)
    ]
    return {
        "revision": revision(chance),
        "interval": 2.0,
        "patience": 10.0,
        "window": 10.0,
        "allowance": 0.1,
        "domains": [{"id": entry, "level": 0.4, "loads": [0.39, 0.41]} for entry in (one, two, three, aside)],
        "links": [_adjusted_link(*way) for way in [*ways, (one, aside)]],
        "jobs": [
            _job(chance, [one], collective="ring"),
            _job(chance, [one, two], collective="ring", changed=0.0, planned=planned),
            _job(chance, [one, two, three], collective="low_communication", period=15, changed=40.0),
        ],
    }


def _adjusted_link(source: str, target: str) -> "documents.DelayedLink":
    return {"source": source, "target": target, "bandwidth": 1e10, "level": 0.02, "latencies": [0.021, 0.019, 0.02]}


def _job(chance: Random, domains: list[str], **members: object) -> "documents.AdjustedJob":
    job = {
        "id": name(chance),
        "shares": [{"domain": domain, "parts": 8, "part_time": 0.1} for domain in domains],
        "nodes": 4,
        "node_bandwidth": 1e11,
        "node_latency": 1e-5,
        "exchange": 1e9,
        "period": 1,
        "order": domains[::-1],
        "move_time": 0.01,
        "switch_time": 0.3,
        **members,
    }
    return cast("documents.AdjustedJob", job)


def of_adjustments(whole: "documents.AdjustmentRequest") -> Iterator[Fault]:
    """What is wrong with requests for adjustments."""
    domains, links, jobs = whole["domains"], whole["links"], whole["jobs"]
    yield unknown("a share in an unknown domain", "/jobs/0/shares/0/domain")
    for what, order in (("an order", "/jobs/1/order"), ("a planned order", "/jobs/1/planned/1/order")):
        yield unknown(f"an unknown domain in {what}", f"{order}/1")
    last = f"/links/{len(links)}"
    for end in ("source", "target"):
        further = {"/links": [*links, {**links[0], end: NOWHERE}]}
        yield Fault(f"an unknown {end} of a link", UNKNOWN, f"{last}/{end}", False, further)
    more = {"/domains": [*domains, domains[0]]}
    yield Fault("a domain, twice", INVALID, f"/domains/{len(domains)}", True, more)
    yield Fault("a link, twice", INVALID, last, True, {"/links": [*links, links[0]]})
    loop = {**links[0], "target": links[0]["source"]}
    yield Fault("a link to its source", INVALID, last, True, {"/links": [*links, loop]})
    # the last way between domains of a job: either end of the contradiction may be named
    few = {"/links": [*links[:5], *links[6:]]}
    yield Fault("domains without a link", INVALID, "/links", True, few, instead="/jobs/2")
    yield repeated("a job, twice", "/jobs/1/id", whole, "/jobs/0/id")
    shares = jobs[2]["shares"]
    twice = {"/jobs/2/shares": [*shares, shares[0]]}
    yield Fault("a share, twice", INVALID, f"/jobs/2/shares/{len(shares)}", True, twice)
    yield from _of_policies(jobs[1]["order"], jobs[1]["planned"], beyond=domains[-1]["id"])


def _of_policies(order: list[str], planned: "list[documents.PolicyChange]", beyond: str) -> Iterator[Fault]:
    """What is wrong with the policy in force and the changes of the second job."""
    change = "/jobs/1/planned/1"
    for what, place in (("in force", "/jobs/1"), ("planned", change)):
        position = f"{place}/order"
        yield Fault(f"an order {what} that leaves one out", INVALID, position, True, {position: order[1:]})
        yield Fault(f"an order {what} that holds one twice", INVALID, position, True, {position: [order[0], order[0]]})
        yield Fault(f"an order {what} with one beyond", INVALID, position, True, {position: [*order, beyond]})
        for collective in ("ring", "hierarchical"):
            values = {f"{place}/collective": collective, f"{place}/period": 5}
            yield Fault(f"a period of 5 with {collective} {what}", INVALID, place, True, values)
    position, parts = f"{change}/parts", planned[1]["parts"]
    total = sum(parts)
    wrong = {
        "for a domain too few": [total],
        "for a domain too many": [*parts[1:], 1, parts[0] - 1],
        "of another sum": [parts[0], parts[1] + 1],
        "of nought": [total, 0],
    }
    for what, told in wrong.items():
        yield Fault(f"planned parts {what}", INVALID, change, True, {position: told})
    sooner = {f"{change}/after": planned[0]["after"] - 0.5}
    yield Fault("a change that is planned for sooner than the one before", INVALID, "/jobs/1/planned", True, sooner)


def backup(chance: Random) -> "documents.BackupRequest":
    """Two jobs in two of three domains, and a store beyond them, which is allowed."""
    draft = FailoverRequestBuilder(chance)
    elsewhere = name(chance)
    return {
        "revision": revision(chance),
        "interval": 10.0,
        "share": 0.25,
        "risk": 0.01,
        "domains": [
            {
                "id": entry,
                "nodes": 40,
                "free": 10,
                "time_between_failures": 1e6,
                "repair_time": 3600.0,
                "price": 2.5,
            }
            for entry in draft.domains
        ],
        "links": [*draft.links(), draft.link(draft.here, elsewhere)],
        "stores": [{"domain": row, "bandwidth": 1e11, "free": 1e13} for row in (draft.here, draft.near, elsewhere)],
        "jobs": [_backed_up(chance, item) for item in (draft.here, draft.near)],
    }


def _backed_up(chance: Random, domain: str) -> "documents.BackedUpJob":
    return {
        "id": name(chance),
        "priority": 0,
        "domain": domain,
        "replicas": 4,
        "least_replicas": 2,
        "nodes_each": 2,
        "state_size": 1e11,
        "pause": 5.0,
    }


def failover(chance: Random) -> "documents.FailoverRequest":
    """Two jobs that lack a node each.

    A node is held by a job that is not in the request, another one is free in a domain without a store, and a link
    leads there: all of this is allowed.
    """
    draft = FailoverRequestBuilder(chance)
    elsewhere = name(chance)
    jobs = [draft.job(2, 1, 2), draft.job(2, 1, 2)]
    nodes = [
        *draft.nodes_of(jobs[0], {(1, 1): FAILED}),
        *draft.nodes_of(jobs[1], {(0, 0): fenced(30.0)}),
        draft.node(draft.here, job=name(chance), replica=9),
        draft.node(elsewhere),
        *draft.free(draft.here, 2),
    ]
    return {
        "revision": revision(chance),
        "interval": 10.0,
        "links": [*draft.links(), draft.link(draft.here, elsewhere)],
        "stores": [{"domain": domain, "bandwidth": 1e11} for domain in draft.domains],
        "nodes": nodes,
        "jobs": jobs,
    }


def of_backups(whole: "documents.BackupRequest") -> Iterator[Fault]:
    """What is wrong with requests for backup plans."""
    yield unknown("a job in an unknown domain", "/jobs/1/domain")
    yield repeated("a domain, twice", "/domains/2/id", whole, "/domains/0/id")
    yield from _of_both(whole)


def of_failovers(whole: "documents.FailoverRequest") -> Iterator[Fault]:
    """What is wrong with requests for failover plans."""
    nodes, copies = whole["nodes"], whole["jobs"][1]["copies"]
    copy, last = "/jobs/1/copies/1/domain", len(nodes) - 1
    yield unknown("a copy in a domain without a store", copy)
    yield Fault("a copy, twice", INVALID, copy, True, {copy: copies[0]["domain"]})
    free, held = f"/nodes/{last}", nodes[6]
    yield repeated("a node, twice", f"{free}/id", whole, "/nodes/0/id")
    yield Fault("a replica without a job", INVALID, free, True, {f"{free}/replica": 0})
    alone = {member: value for member, value in held.items() if member != "replica"}
    yield Fault("a job without a replica", INVALID, "/nodes/6", True, {"/nodes/6": alone})
    yield Fault("a fit node that is fenced", INVALID, "/nodes/6", True, {"/nodes/6/fenced_in": 30.0})
    yield Fault("a failed node that is fenced", INVALID, "/nodes/3", True, {"/nodes/3/fenced_in": 30.0})
    yield Fault(
        "a replica beyond the last", INVALID, "/nodes/6", True, {"/nodes/6/replica": whole["jobs"][1]["replicas"]}
    )
    yield Fault(
        "a node in another domain than its job", INVALID, "/nodes/6", True, {"/nodes/6/domain": nodes[9]["domain"]}
    )
    more = {f"{free}/job": held["job"], f"{free}/replica": held["replica"]}
    yield Fault("a replica with more nodes than it needs", INVALID, "/nodes", True, more)
    yield from _of_both(whole)


def _of_both(whole: "documents.BackupRequest | documents.FailoverRequest") -> Iterator[Fault]:
    links, job = whole["links"], whole["jobs"][1]
    yield repeated("a job, twice", "/jobs/1/id", whole, "/jobs/0/id")
    yield repeated("a store, twice", "/stores/2/domain", whole, "/stores/0/domain")
    last = f"/links/{len(links)}"
    yield Fault("a link, twice", INVALID, last, True, {"/links": [*links, links[0]]})
    loop = {**links[0], "target": links[0]["source"]}
    yield Fault("a link to its source", INVALID, last, True, {"/links": [*links, loop]})
    few = {"/jobs/1/least_replicas": job["replicas"] + 1}
    yield Fault("a least number above the number of replicas", INVALID, "/jobs/1", True, few)


REQUIREMENT = "RES-013"
_SIZE = 1e8


def observe(episode: Episode) -> tuple[BadRequest, ...]:
    """Ask for everything as it should be, then with one thing wrong each time.

    Raises:
        SetUpFailure: What is right is not answered.
    """
    return bad_requests(episode, requests(episode.random), lambda path, whole: FAULTS[path](whole))


def requests(chance: Random) -> dict[str, Mapping[str, Any]]:
    """A small request for each operation, with a name in every place that may hold one."""
    names = [name(chance) for _ in range(5)]
    target, sources, elsewhere = names[0], names[1:4], names[4]
    streams = [_stream(chance, target, [*sources[:2], elsewhere]) for _ in range(2)]
    shards: documents.ShardPlanRequest = {
        "revision": revision(chance),
        "interval": 10.0,
        "horizon": 60.0,
        "links": [_link(chance, source, target) for source in sources],
        "rooms": [{"domain": domain, "size": 20 * _SIZE} for domain in (target, elsewhere)],
        "streams": streams,
    }
    collectives: documents.CollectiveRequest = {
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
    }
    return {
        SHARDS: shards,
        COLLECTIVES: collectives,
        BACKUPS: backup(chance),
        FAILOVERS: failover(chance),
        ADJUSTMENTS: adjustment(chance),
    }


def _link(chance: Random, source: str, target: str) -> "documents.MeasuredLink":
    bandwidths: list[float] = [round(chance.uniform(1e9, 9e9)) for _ in range(10)]
    return {"source": source, "target": target, "latency": 0.02, "bandwidths": bandwidths}


def _stream(chance: Random, target: str, sources: list[str]) -> "documents.DataStream":
    """Twenty steps, of which two are under way and one is there."""
    begin = 3 * _SIZE
    transfers: list[documents.DataTransfer] = [
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


def _of_shards(whole: "documents.ShardPlanRequest") -> Iterator[Fault]:
    stream, links = whole["streams"][1], whole["links"]
    place, gaps, moves = "/streams/1", stream["missing"], stream["transfers"]
    missing, transfers = f"{place}/missing", f"{place}/transfers"
    yield unknown("a transfer from an unknown domain", f"{transfers}/1/source")
    yield repeated("a stream, twice", f"{place}/id", whole, "/streams/0/id")
    yield repeated("a room, twice", "/rooms/1/domain", whole, "/rooms/0/domain")
    yield Fault("a link, twice", INVALID, "/links/2", True, {"/links/2/source": links[0]["source"]})
    yield Fault("a link to its source", INVALID, "/links/2", True, {"/links/2/target": links[2]["source"]})
    ranges: Sequence[documents.ByteRange]
    for what, list_, ranges in (("missing bytes", missing, gaps), ("transfers", transfers, moves)):
        end, nothing = f"{list_}/1/end", {f"{list_}/1/left": 0.0} if list_ == transfers else {}
        empty, turned = {**nothing, end: ranges[1]["begin"]}, {**nothing, end: 0.5 * ranges[1]["begin"]}
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


def _of_collectives(whole: "documents.CollectiveRequest") -> Iterator[Fault]:
    domains, links, order = whole["domains"], whole["links"], "/in_use/order"
    last = f"/links/{len(links)}"
    for end in ("source", "target"):
        further = {"/links": [*links, {**links[0], end: NOWHERE}]}
        yield Fault(f"an unknown {end} of a link", UNKNOWN, f"{last}/{end}", False, further)
    yield unknown("an unknown domain in use", f"{order}/1")
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


FAULTS: Mapping[str, Callable[[Any], Iterator[Fault]]] = {
    SHARDS: _of_shards,
    COLLECTIVES: _of_collectives,
    BACKUPS: of_backups,
    FAILOVERS: of_failovers,
    ADJUSTMENTS: of_adjustments,
}
"""What is wrong with requests, one thing each, by operation."""


def judge(observation: tuple[BadRequest, ...]) -> Iterable[Finding]:
    """Claims about refusals."""
    return refusals(REQUIREMENT, observation)


CHECK = Check("res_names", (REQUIREMENT,), observe, judge)
