"""From what is known of a federation to the scheduling state that decisions rest on.

1. *Pools.* The nodes of a domain whose accelerators are of one kind are a pool. A node with several kinds is offered
   with the kind that it has most of, since a state names a node once.
2. *Out of service.* A node gives out nothing while a fault of it is open (``node_dead``, ``node_failing``), while it is
   fenced, or while it is recognised as offline or faulty; nor does a device that is reported as either.
3. *Free* is what works and no unfinished allocation holds or is being promised: of its present attempt, with the nodes
   that the domain named. Where an allocation names no nodes, the first nodes with room, by name, are taken for those.
   Nothing is ever free below zero: where allocations overlap, there is none.
4. *Reachable* is a domain whose controller has asked for actions lately and from whose nodes something is heard.
5. *Links* are as they were measured, else as they are estimated, else as they are registered. Where only one direction
   is registered, the other is taken to be alike: a connection needs both. What nobody states is :data:`USUAL_BANDWIDTH`
   and :data:`USUAL_ROUND_TRIP`, and noted.
6. *Money* stands in extensions: :data:`PRICE` of nodes or of their domain, :data:`TARIFF` of links; zero elsewhere.
7. *Accounts* stand in the state where jobs of several wait, so that whoever has the state can decide it again.
8. *Running* is everyone that holds devices, or is being given some: what starts is staging, what is being stopped or
   called off is interrupted and gives its devices back soon. Only who has a checkpoint may be interrupted by decisions:
   the share that it keeps busy, without which a state lets nobody be moved, is stated for these alone, and is one, as
   steps tell how fast a job is and not how many devices would have done.
9. *Making room.* Who was stopped so that another job can start stands in no state while that one waits in it, for
   :data:`MAKES_ROOM_SECONDS` at most. By its age, or as its account has used less, it could go first, and take back the
   devices that it was stopped for.

Everything is in order of name, so that the same snapshot gives the same state, byte for byte.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict

from kuayu.jobs.accelerators import PROFILE, kinds_of, main_kind, offered
from kuayu.jobs.fair_share import DEFAULT_WEIGHT, account_of
from kuayu.jobs.progress import (
    RUNNING,
    STARTING,
    done_running,
    done_waiting,
    instant_after,
    interrupted_at,
    rate_running,
    rests_until,
    seconds_of,
    was_refused,
)
from kuayu.jobs.replicas import ServingView
from kuayu.jobs.specification import contradiction, is_guessed, specifications

if TYPE_CHECKING:
    from kuayu_schemas import documents

PRICE = "org.kuayu/price"
"""Extension of a node or a domain: money for a device and an hour, a number."""

TARIFF = "org.kuayu/tariff"
"""Extension of a link: money for a bit, a number."""

USUAL_BANDWIDTH = 1e9
"""Bits a second of a link of which nobody states anything."""

USUAL_ROUND_TRIP = 0.05
"""Seconds of a link of which nobody states anything, about that of 3 000 km of fibre and its detours."""

STARTING_SECONDS = 30.0
"""Seconds until processes run and find each other (clause Speed and cost of a placed job)."""

GRACE_SECONDS = 10.0
"""Seconds that processes have to end where their job does not say."""

REFUSED_SECONDS = 60.0
"""Seconds for which it counts that domains had no room for a job: those from one decision to the next."""

MAKES_ROOM_SECONDS = 600.0
"""Seconds for which a job stands behind the one that it was stopped for: as long as others that make room with it may
take to write their checkpoints (``kuayu.scheduling.preemption.MAX_SAVING_SECONDS``)."""

MAX_NODES = 10_000
"""Nodes of a pool that a state can tell; of a larger pool none are told."""

BEYOND_SERVICE = frozenset({"node_dead", "node_failing"})
"""Kinds of faults whose node gives out nothing."""

UNHEARD = "domain_unreachable"
"""Kind of fault of a domain of whose nodes nothing is heard."""

NOT_WORKING = frozenset({"offline", "faulty"})
"""States of nodes and devices that give out nothing."""

Pool = tuple[str, str]
"""Domain and kind of accelerator."""


class HeldAllocation(TypedDict):
    """What an allocation that is not finished holds, or else tries to."""

    id: str
    job: str
    phase: str
    placement: "documents.JobPlacement"


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationSnapshot:
    """All that a pass rests on, of one tenant at one instant.

    Attributes:
        now: The present instant.
        revision: Of the jobs.
        domains: As they are registered, class Domain.
        nodes: As they are registered, class Node.
        links: As they are registered, class Link.
        reachable: Domains whose controller has asked for actions lately.
        faults: Open ones, class Fault.
        fenced: Nodes that a domain has been asked to fence and not yet said that they are released.
        states: Recognised state of nodes, class OperatingState, by name; nodes of which nothing is told are left out.
        broken: Devices that are reported as faulty or offline, by node.
        sustained: Measured sustained throughput in FLOP/s, by kind of accelerator and number format.
        quality: What links offer, by name: ``inter_domain_bandwidth`` in bit/s and ``round_trip_time`` in s, each where
            it was measured or estimated, and ``state``; class LinkVertex.
        allocations: Those that are not finished.
        waiting: Jobs that are queued and to be considered, class JobRecord, in any order.
        active: Jobs that hold something or are being given it: starting, running and restarting; class JobRecord.
        held: Jobs that are held for their budget, or since their account had used its quota, and to be looked at again;
            class JobRecord.
        accounts: What accounts of these jobs have used, class Account, of those that take turns or have a quota.
        makes_room: Job for which a decision has stopped one that waits, by the name of the latter.
        steps_per_second: How fast running jobs are, as their reports show, by name.
        copies: Domains that hold data which have moved, by artefact.
        serving: Serving jobs, with their load and their replicas.
    """

    now: str
    revision: "documents.Revision"
    domains: "Sequence[documents.Domain]" = ()
    nodes: "Sequence[documents.Node]" = ()
    links: "Sequence[documents.Link]" = ()
    reachable: Collection[str] = ()
    faults: "Sequence[documents.Fault]" = ()
    fenced: Collection[str] = ()
    states: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, Collection[str]] = field(default_factory=dict)
    sustained: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    quality: "Mapping[str, documents.LinkVertex]" = field(default_factory=dict)
    allocations: "Sequence[HeldAllocation]" = ()
    waiting: "Sequence[documents.JobRecord]" = ()
    active: "Sequence[documents.JobRecord]" = ()
    held: "Sequence[documents.JobRecord]" = ()
    accounts: "Sequence[documents.Account]" = ()
    makes_room: Mapping[str, str] = field(default_factory=dict)
    steps_per_second: Mapping[str, float] = field(default_factory=dict)
    copies: Mapping[str, Collection[str]] = field(default_factory=dict)
    serving: Sequence[ServingView] = ()

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values; sets in order."""
        document: dict[str, Any] = {member.name: getattr(self, member.name) for member in fields(self)}
        for name in ("reachable", "fenced"):
            document[name] = sorted(document[name])
        for name in ("broken", "copies"):
            document[name] = {key: sorted(values) for key, values in document[name].items()}
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """What :meth:`to_json` gave."""
        return cls(**document)


class FederationState(NamedTuple):
    """A scheduling state, and what it does not show.

    Attributes:
        document: Class SchedulingState; not a valid one where there is no domain, since nothing can be decided then.
        notes: What figures rest on that nobody stated, for people.
        apart: Why jobs that are queued stand in no state, in words, by name.
        records: Records of the jobs in the state, by name.
    """

    document: "documents.SchedulingState"
    notes: list[str]
    apart: dict[str, str]
    records: "dict[str, documents.JobRecord]"


def scheduling_state(snapshot: FederationSnapshot) -> FederationState:
    """The scheduling state of a snapshot, class SchedulingState.

    Jobs that wait stand in the order of the standard: those of higher priority first, and of these those that were
    submitted earlier.
    """
    notes: list[str] = []
    apart: dict[str, str] = {}
    kinds = kinds_of(snapshot.nodes)
    names = sorted(domain["id"] for domain in snapshot.domains)
    queued = [record for record in sorted(snapshot.waiting, key=_place) if _may_be_tried(record, snapshot.now, apart)]
    tried = set(map(_name, queued))
    waiting = [record for record in queued if not _stands_back(record, snapshot, tried, apart)]
    holding = _Holding(snapshot, notes)
    active = [record for record in sorted(snapshot.active, key=_name) if holding.share_of(record)]
    records = [*waiting, *active]
    specs = specifications(records, set(names))
    guessed = sum(map(is_guessed, records))
    if guessed:
        notes.append(f"{guessed} jobs say nothing of how long they take; a wide estimate stands for that")
    profiles = sorted({PROFILE, *(spec["task_profile"] for spec in specs)})
    accelerators, assumptions = offered(kinds, snapshot.sustained, profiles)
    notes += assumptions
    indices = {
        accelerator["id"]: {index["profile"]: index["value"] for index in accelerator["indices"]}
        for accelerator in accelerators
    }
    running = [
        _running(record, spec, holding.share_of(record), snapshot, indices)
        for record, spec in zip(active, specs[len(waiting) :], strict=True)
    ]
    unheard = {fault.get("domain") for fault in snapshot.faults if fault["kind"] == UNHEARD}
    reachable = set(snapshot.reachable) - unheard
    pools = holding.pools(running)
    document: documents.SchedulingState = {
        "revision": snapshot.revision,
        "now": snapshot.now,
        "accelerators": accelerators,
        "domains": [
            {"id": name, "pools": pools[name]}
            if name in reachable
            else {"id": name, "reachable": False, "pools": pools[name]}
            for name in names
        ],
        "links": _links(snapshot, set(names), notes),
        "waiting": [_waiting(record, spec) for record, spec in zip(waiting, specs[: len(waiting)], strict=True)],
        "running": running,
    }
    copies = _copies(snapshot, set(names))
    if copies:
        document["copies"] = copies
    refused: list[documents.RefusedDecision] = [
        {"job": record["id"], "verb": "start", "reason": "no_room"}
        for record in waiting
        if was_refused(record, snapshot.now, REFUSED_SECONDS)
    ]
    if refused:
        document["refused"] = refused
    accounts = _taking_turns(snapshot, waiting)
    if accounts:
        document["accounts"] = accounts
    return FederationState(document, list(dict.fromkeys(notes)), apart, {record["id"]: record for record in records})


def _taking_turns(
    snapshot: FederationSnapshot, waiting: "Sequence[documents.JobRecord]"
) -> "list[documents.AccountUse]":
    """What accounts of jobs that wait have used, in order of name; none where all jobs are of one."""
    names = {account_of(record) for record in waiting}
    if len(names) < 2:  # noqa: PLR2004 - who is alone takes no turns
        return []
    known = {account["id"]: account for account in snapshot.accounts}
    return [
        {"id": name, "used": known[name]["used"], "weight": known[name]["weight"]}
        if name in known
        else {"id": name, "used": 0.0, "weight": DEFAULT_WEIGHT}
        for name in sorted(names)
    ]


def out_of_service(snapshot: FederationSnapshot) -> dict[str, str]:
    """Nodes that give out nothing, each with why, in words."""
    reasons = {name: f"it is recognised as {state}" for name, state in snapshot.states.items() if state in NOT_WORKING}
    reasons |= dict.fromkeys(snapshot.fenced, "it is fenced")
    for fault in snapshot.faults:
        if fault["kind"] in BEYOND_SERVICE and "node" in fault:
            reasons[fault["node"]] = f"the fault {fault['id']} ({fault['kind']}) is open"
    return reasons


def price_of(body: "documents.Node | documents.Domain | None", otherwise: float = 0.0) -> float:
    """Money for a device and an hour, of a node or a domain; what stands there and is no amount counts nothing."""
    return otherwise if body is None else _amount(body.get("extensions", {}).get(PRICE), otherwise)


class _Holding:
    """Devices of nodes, and who holds them.

    Args:
        snapshot: What is known.
        notes: Gets what has to be assumed.
    """

    def __init__(self, snapshot: FederationSnapshot, notes: list[str]) -> None:
        self._snapshot, self._notes = snapshot, notes
        self._pool_of: dict[str, Pool] = {}
        self._size: dict[str, int] = {}
        self._nodes: dict[Pool, list[str]] = defaultdict(list)
        self._price: dict[Pool, float] = defaultdict(float)
        self._works = self._register()
        self._allocations = {allocation["id"]: allocation for allocation in snapshot.allocations}
        self._shares: dict[str, documents.JobPlacement | None] = {}
        self._taken: dict[str, int] = defaultdict(int)
        self._unplaced: dict[Pool, int] = defaultdict(int)
        self._take()

    def share_of(self, record: "documents.JobRecord") -> "documents.JobPlacement | None":
        """What a job holds or is being given, class JobPlacement in names of the state; None where it is nothing."""
        name = record["id"]
        if name not in self._shares:
            allocation = self._allocations.get(record.get("allocation", ""))
            placement = allocation["placement"] if allocation else record.get("placement")
            self._shares[name] = None if placement is None else self._named(record, placement)
        return self._shares[name]

    def pools(self, running: "Iterable[documents.RunningJob]") -> "dict[str, list[documents.ComputePool]]":
        """Pools by domain, class ComputePool; no smaller than what running jobs hold and what is free of them."""
        devices_of: dict[Pool, int] = defaultdict(int)
        for entry in running:
            for share in entry["placement"]["shares"]:
                devices_of[share["domain"], share["accelerator"]] += share["devices"]
        by_domain: dict[str, list[documents.ComputePool]] = {domain["id"]: [] for domain in self._snapshot.domains}
        for pool in sorted(self._nodes):
            if pool[0] in by_domain:
                by_domain[pool[0]].append(self._pool(pool, devices_of[pool]))
        return by_domain

    def _register(self) -> dict[str, int]:
        """Devices that work, by node, of the kind that the node is offered with."""
        out = out_of_service(self._snapshot)
        domains = {domain["id"]: domain for domain in self._snapshot.domains}
        works: dict[str, int] = {}
        for node in sorted(self._snapshot.nodes, key=_name):
            if not node.get("devices"):
                continue
            name = node["id"]
            kind, count, others = main_kind(node)
            if others:
                self._notes.append(f"{name}: {others} devices of other kinds are not offered, only those of {kind}")
            pool = (node["domain"], kind)
            self._pool_of[name], self._size[name] = pool, count
            self._nodes[pool].append(name)
            broken = min(len(set(self._snapshot.broken.get(name, ()))), count)
            works[name] = 0 if name in out else count - broken
            price = price_of(node, price_of(domains.get(node["domain"])))
            self._price[pool] = max(self._price[pool], price)  # so that nobody pays more than was expected
        return works

    def _take(self) -> None:
        """Count what allocations hold."""
        for allocation in self._snapshot.allocations:
            for share in allocation["placement"]["shares"]:
                rest = share["devices"]
                for node in share.get("nodes", ()):
                    if node["node"] in self._pool_of:
                        self._taken[node["node"]] += node["devices"]
                        rest -= node["devices"]
                if rest > 0 and (pool := self._pool_named(share)) is not None:
                    self._unplaced[pool] += rest
        for pool, rest in sorted(self._unplaced.items()):
            left = rest
            for name in self._nodes[pool]:
                given = min(left, max(self._works[name] - self._taken[name], 0))
                self._taken[name] += given
                left -= given
            self._notes.append(f"{pool[0]}: {rest} {pool[1]} are allocated without nodes; the first free ones count")

    def _pool(self, pool: Pool, devices_in_use: int) -> "documents.ComputePool":
        nodes: list[documents.PoolNode] = [
            {"id": name, "devices": self._works[name], "free": max(self._works[name] - self._taken[name], 0)}
            for name in self._nodes[pool]
        ]
        overlap = [name for name in self._nodes[pool] if self._taken[name] > self._size[name]]
        if overlap:
            self._notes.append(f"{', '.join(overlap)}: more devices are allocated than there are")
        free = sum(node["free"] for node in nodes)
        pool_document: documents.ComputePool = {
            "accelerator": pool[1],
            "devices": max(sum(node["devices"] for node in nodes), devices_in_use + free),
            "free": free,
            "devices_per_node": max(self._size[name] for name in self._nodes[pool]),
        }
        if len(nodes) <= MAX_NODES:
            pool_document["nodes"] = nodes
        else:
            self._notes.append(f"{pool[0]}: its {len(nodes)} nodes are too many to be told")
        if self._price[pool] > 0.0:
            pool_document["offers"] = [{"purchase": "on_demand", "devices": free, "price": self._price[pool]}]
        return pool_document

    def _pool_named(self, share: "documents.DomainShare") -> Pool | None:
        """Pool that a share is of: by its kind, else by its nodes, else the only one of its domain."""
        domain = share["domain"]
        named = (domain, share["accelerator"])
        if named in self._nodes:
            return named
        of_nodes = {self._pool_of[node["node"]] for node in share.get("nodes", ()) if node["node"] in self._pool_of}
        pools = of_nodes or {pool for pool in self._nodes if pool[0] == domain}
        return next(iter(pools)) if len(pools) == 1 and next(iter(pools))[0] == domain else None

    def _named(
        self, record: "documents.JobRecord", placement: "documents.JobPlacement"
    ) -> "documents.JobPlacement | None":
        """A placement in names of the state; None where it lies where nothing is registered any more."""
        shares: list[documents.DomainShare] = []
        for share in placement["shares"]:
            pool = self._pool_named(share)
            if pool is None:
                what = f"{share['devices']} {share['accelerator']} in {share['domain']}"
                self._notes.append(f"{record['id']}: it holds {what}, which is not registered, and is left out")
                return None
            named: documents.DomainShare = {**share, "accelerator": pool[1]}
            nodes = [node for node in named.pop("nodes", []) if self._pool_of.get(node["node"]) == pool]
            if nodes:
                named["nodes"] = nodes
            shares.append(named)
        return {**placement, "shares": shares}


def _place(record: "documents.JobRecord") -> tuple[int, float, str]:
    """Place of a job in the queue."""
    return -int(record.get("priority", 0)), seconds_of(record["submitted_at"]), str(record["id"])


def _name(body: "documents.JobRecord | documents.Node | documents.Link") -> str:
    return str(body["id"])


def _may_be_tried(record: "documents.JobRecord", now: str, apart: dict[str, str]) -> bool:
    """Whether a job that is queued belongs into the state; where it does not, why is noted."""
    why = contradiction(record)
    until = rests_until(record)
    if why is None and until is not None and seconds_of(until) > seconds_of(now):
        why = f"It was started again and again without running for long, the last time because: {record['reason']}"
        why = f"{why[:1900]} It is tried again from {until} on."
    if why is not None:
        apart[record["id"]] = why
    return why is None


def _stands_back(
    record: "documents.JobRecord", snapshot: FederationSnapshot, tried: Collection[str], apart: dict[str, str]
) -> bool:
    """Whether a job leaves its former devices to the one that it was stopped for; where it does, that is noted."""
    beneficiary = snapshot.makes_room.get(record["id"])
    if beneficiary not in tried:
        return False
    until = instant_after(record["transitions"][-1]["at"], MAKES_ROOM_SECONDS)
    if seconds_of(until) <= seconds_of(snapshot.now):
        return False
    why = f"It was stopped to make room for {beneficiary}, which goes first."
    apart[record["id"]] = f"{why} It is looked at again when that one has devices, at {until} in any case."
    return True


def _waiting(record: "documents.JobRecord", spec: "documents.JobSpec") -> "documents.WaitingJob":
    """Class WaitingJob."""
    done = done_waiting(record, spec)
    return {"spec": spec, "done": done} if done > 0.0 else {"spec": spec}


def _running(
    record: "documents.JobRecord",
    spec: "documents.JobSpec",
    placement: "documents.JobPlacement | None",
    snapshot: FederationSnapshot,
    indices: Mapping[str, Mapping[str, float]],
) -> "documents.RunningJob":
    """What a job that holds something tells of itself."""
    assert placement is not None
    profile = spec["task_profile"]
    paper = sum(share["devices"] * indices[share["accelerator"]][profile] for share in placement["shares"])
    running_job: documents.RunningJob = {
        "spec": spec,
        "placement": placement,
        "phase": _phase(record),
        "done": done_running(record, spec, snapshot.now, paper),
    }
    if running_job["phase"] == "running":
        rate = rate_running(record, spec, snapshot.steps_per_second.get(record["id"]), paper)
        if rate is not None:
            running_job["rate"] = rate
            if "checkpoint" in record:
                running_job["used"] = 1.0
    else:
        seconds = STARTING_SECONDS if running_job["phase"] == "staging" else record.get("grace", GRACE_SECONDS)
        running_job["ready_at"] = instant_after(snapshot.now, seconds)
    interrupted = interrupted_at(record)
    if interrupted is not None:
        running_job["interrupted_at"] = interrupted
    return running_job


def _phase(record: "documents.JobRecord") -> "documents.JobPhase":
    """What a job that holds something does."""
    if record["state"] not in {STARTING, RUNNING} or record.get("cancelling"):
        return "interrupted"
    return "staging" if record["state"] == STARTING else "running"


def _copies(snapshot: FederationSnapshot, domains: set[str]) -> "list[documents.ArtefactCopies]":
    """Copies of data, of those that lie in domains that there are."""
    copies = ((name, sorted(domains.intersection(domains_of))) for name, domains_of in sorted(snapshot.copies.items()))
    return [{"artefact": name, "domains": domains_of} for name, domains_of in copies if domains_of]


def _links(snapshot: FederationSnapshot, domains: set[str], notes: list[str]) -> "list[documents.PathLink]":
    """Links between domains, class PathLink, in both directions."""
    between = (
        link
        for link in sorted(snapshot.links, key=_name)
        if link["source"] in domains and link["destination"] in domains and link["source"] != link["destination"]
    )
    measured = [_link(link, snapshot.quality.get(link["id"]), notes) for link in between]
    ends = {(link["source"], link["target"]) for link in measured}
    return [*measured, *_ways_back(measured, ends, notes)]


def _ways_back(
    links: "Iterable[documents.PathLink]", ends: set[tuple[str, str]], notes: list[str]
) -> "Iterator[documents.PathLink]":
    for link in links:
        back = (link["target"], link["source"])
        if back not in ends:
            ends = ends | {back}
            notes.append(
                f"from {back[0]} to {back[1]} no link is registered; it is taken to be like the other direction"
            )
            yield {**link, "source": back[0], "target": back[1]}


def _link(link: "documents.Link", quality: "documents.LinkVertex | None", notes: list[str]) -> "documents.PathLink":
    """A registered link with what is known of its quality."""
    available = quality.get("inter_domain_bandwidth") if quality else None
    round_trip = quality.get("round_trip_time") if quality else None
    capacity = link.get("capacity", available)
    if capacity is None:
        capacity = USUAL_BANDWIDTH
        notes.append(f"{link['id']}: nobody states its bandwidth; {USUAL_BANDWIDTH:g} bit/s stands for it")
    if round_trip is None:
        round_trip = USUAL_ROUND_TRIP
        notes.append(f"{link['id']}: nobody states its round-trip time; {USUAL_ROUND_TRIP:g} s stands for it")
    down = quality is not None and quality.get("state") == "down"
    offers = 0.0 if down else capacity if available is None else available
    return {
        "source": link["source"],
        "target": link["destination"],
        "bandwidth": 0.0 if down else max(capacity, offers),
        "available": offers,
        "round_trip_time": round_trip,
        "tariff": _amount(link.get("extensions", {}).get(TARIFF), 0.0),
    }


def _amount(value: Any, otherwise: float) -> float:
    """A number that is not negative; another where there is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1e30 else otherwise  # noqa: PLR2004 - the most of the wire
