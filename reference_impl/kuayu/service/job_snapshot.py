"""The snapshot that a pass of the control loop decides on: active jobs, and the federation around them.

1. Jobs of a tenant that have not ended, in memory: a pass does not read tens of thousands of them each time. They are
   brought up to date by what has changed since. Of those that wait, a pass is given the *front* of the queue:

   1. The queue is in the order of the standard: higher priority first, then who was submitted earlier.
   2. A scheduler starts no more than :data:`MAX_FRONT_JOBS` jobs at a time, so that a state with more shows nothing
      more.
   3. Jobs that ask for the same are alike: where the fiftieth of them does not start, neither does the fifty-first.
      So only the first :data:`MAX_ALIKE_JOBS` of a kind are in the front as long as there are others, and jobs for
      which there is no room do not hide those behind them for which there is. Among jobs that ask for the same, the
      order stays.
   4. Who had no way at all when it was looked at last is left out until something has changed that may give it one.
   5. Where jobs of several accounts wait, these take turns (:mod:`kuayu.jobs.fair_share`).
2. What a pass rests on, read at one instant: one transaction of the database, and what is in memory. The registry is
   most of it and changes seldom: it is read and written as JSON once for each of its revisions, and a worker reads it
   once. What devices measure is read every :data:`MEASURED_SECONDS` at most, and more seldom where that takes long.
"""

import time
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import Connection, select

from kuayu.jobs.accelerators import sustained_of
from kuayu.jobs.fair_share import Place, account_of, expected_hours, has_used_quota, in_turn, is_quota
from kuayu.jobs.federation import NOT_WORKING
from kuayu.jobs.replicas import is_serving
from kuayu.perception.graph import LINK as LINK_VERTEX
from kuayu.perception.graph import NODE as NODE_VERTEX
from kuayu.service import account_store, instants
from kuayu.service.account_store import NO_RULE, AccountFile, account_to_wire
from kuayu.service.allocation_rules import FINISHED, placements
from kuayu.service.allocation_store import ALLOCATIONS
from kuayu.service.fault_store import FAULTS
from kuayu.service.job_commands import serving_load, serving_memory
from kuayu.service.job_rules import ENDED
from kuayu.service.job_store import JOBS, JobRecord, record_of, versions
from kuayu.service.storage.database import Database
from kuayu.service.storage.queries import ObservedValue, Store
from kuayu.service.storage.resources import DEVICE, DOMAIN, LINK, NODE, Catalogue, Revision
from kuayu.service.storage.tables import allocation, fault, job, resource, response, tenant
from kuayu.service.tenant_graphs import Graphs
from kuayu_schemas.models import ActionKind, HealthState, JobState

if TYPE_CHECKING:
    from kuayu_schemas import documents

MAX_FRONT_JOBS = 400
"""Jobs of the front: as many as :data:`kuayu.scheduling.scheduler.LOOKED_AT` may start."""

MAX_ALIKE_JOBS = 50
"""Jobs of the front that ask for the same, as long as others wait as well."""

DEVICE_REQUEST_MEMBERS = ("devices", "device_kinds", "memory_per_device", "nodes", "links", "domains", "split_modes")
"""Members of a request by which jobs ask for the same devices."""

Json = dict[str, Any]

PACE_SECONDS = 120.0
"""Seconds over which the pace of a job is measured, and"""

MIN_PACE_SECONDS = 2.0
"""seconds that have to lie between two reports of steps so that they tell a pace."""


class ActiveJobs:
    """Jobs of one tenant that have not ended. One thread uses it at a time.

    Attributes:
        number: Change of jobs up to which it is; None before it was read.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._records: dict[str, JobRecord] = {}
        self._active: dict[str, JobRecord] = {}
        self._held: dict[str, JobRecord] = {}
        self._queue: list[Place] = []
        self._queues: dict[str, list[Place]] = {}
        self._alike: dict[str, bytes] = {}
        self._steps: dict[str, deque[tuple[int, int]]] = {}
        self._no_way: dict[str, object] = {}
        self._undecided: dict[str, None] = {}
        self._wires: dict[str, orjson.Fragment] = {}
        self._serving: dict[str, JobRecord] = {}
        self._replicas: dict[str, dict[str, JobRecord]] = {}
        self._replica_ended: dict[str, int] = {}

    def update(self, connection: Connection, owner: str) -> None:
        """Bring it up to date, in the caller's transaction."""
        number = JOBS.number(connection, owner)
        if number == self.number:
            return
        query = versions().where(job.c.tenant == owner, JOBS.valid())
        since = job.c.ended.is_(None) if self.number is None else job.c.valid_from > self.number
        for row in connection.execute(query.where(since)).mappings():
            self.put(record_of(row))
        self.number = number

    def put(self, record: JobRecord) -> None:
        """A job stands as it stands now."""
        name, standing = record.name, record.standing
        before = self._records.pop(name, None)
        waited = before is not None and before.standing.state is JobState.queued and not is_serving(standing.spec)
        decided = waited and name not in self._undecided
        if before is not None and waited:
            self._leave_queue(before)
        self._active.pop(name, None)
        self._held.pop(name, None)
        self._wires.pop(name, None)
        if is_serving(standing.spec):
            self._put_serving(record)
            return
        self._note_replica(record)
        if standing.state in ENDED:
            for known in (self._alike, self._steps, self._no_way):
                known.pop(name, None)
            return
        self._records[name] = record
        if standing.state is JobState.queued:
            insort(self._queue, _key(record))
            insort(self._queues.setdefault(account_of(standing.spec), []), _key(record))
            self._alike.setdefault(name, _device_request(standing.spec))
            if not decided:
                self._undecided[name] = None
        else:
            (self._held if standing.state is JobState.held else self._active)[name] = record
        self._note_step(record)

    def _put_serving(self, record: JobRecord) -> None:
        """A serving job stands as it stands now; it is neither placed nor run itself."""
        if record.standing.state in ENDED:
            for known in (self._serving, self._replicas, self._replica_ended):
                known.pop(record.name, None)
        else:
            self._serving[record.name] = self._records[record.name] = record

    def _note_replica(self, record: JobRecord) -> None:
        """Note a replica with the serving job that it is of."""
        standing = record.standing
        serving = standing.spec.get("replica_of")
        if serving is None:
            return
        replicas = self._replicas.setdefault(serving, {})
        if standing.state not in ENDED:
            replicas[record.name] = record
            return
        replicas.pop(record.name, None)
        if standing.state is not JobState.cancelled and standing.ended is not None:
            self._replica_ended[serving] = standing.ended

    def serving(self, connection: Connection, owner: str, now: int) -> list[Json]:
        """Serving jobs with their load and their replicas, class ServingView, in order of name."""
        return [self._serving_view(connection, owner, record, now) for _, record in sorted(self._serving.items())]

    def _serving_view(self, connection: Connection, owner: str, record: JobRecord, now: int) -> Json:
        history, last = serving_load(connection, owner, record.standing.spec, now)
        memory, ended = serving_memory(record.standing), self._replica_ended.get(record.name)
        return {
            "job": self.encoded(record),
            "loads": history,
            "last": last,
            "announced": memory["announced"],
            "replicas": [
                {
                    "id": name,
                    "state": replica.standing.state.value,
                    "added_at": instants.to_text(replica.standing.submitted),
                    "leaving": replica.standing.cancelling,
                }
                for name, replica in sorted(self._replicas.get(record.name, {}).items())
            ],
            "ended_at": None if ended is None else ended / 1000,
            "serial": memory["serial"],
        }

    def front(self, shape: object, accounts: "Mapping[str, documents.Account] | None" = None) -> list[JobRecord]:
        """Jobs that are queued and to be decided on, in the order of the queue.

        Args:
            shape: What whether a job has a way depends on, apart from what is free: whoever had none when it was the
                same is left out.
            accounts: What accounts have used.
        """
        chosen: list[Place] = []
        others: list[Place] = []
        alike: Counter[bytes] = Counter()
        for name in self._in_turn(accounts or {}):
            if len(chosen) == MAX_FRONT_JOBS:
                break
            if self._no_way.get(name) == shape:
                continue
            kind, key = self._alike[name], _key(self._records[name])
            alike[kind] += 1
            if alike[kind] <= MAX_ALIKE_JOBS:
                chosen.append(key)
            elif len(others) < MAX_FRONT_JOBS:
                others.append(key)
        chosen = sorted([*chosen, *others[: MAX_FRONT_JOBS - len(chosen)]])
        return [self._records[name] for _, _, name in chosen]

    def _in_turn(self, accounts: "Mapping[str, documents.Account]") -> Iterable[str]:
        """Names of jobs that are queued; accounts take turns where there are several."""
        if len(self._queues) < 2:  # noqa: PLR2004 - who is alone takes no turns
            return (name for _, _, name in self._queue)
        return in_turn(self._queues, accounts, lambda name: expected_hours(self._records[name].standing.spec))

    def accounts(self) -> set[str]:
        """Accounts of jobs that are queued or held."""
        return {*self._queues, *(account_of(record.standing.spec) for record in self._held.values())}

    def note_ways(self, shape: object, candidates: Mapping[str, bool]) -> None:
        """Note whether jobs had a way, when they were decided on last."""
        for name, has_way in candidates.items():
            if has_way:
                self._no_way.pop(name, None)
            elif name in self._records:
                self._no_way[name] = shape

    def encoded(self, record: JobRecord) -> orjson.Fragment:
        """A job that has not ended as class JobRecord has it, as JSON; written once for each of its versions."""
        known = self._wires.get(record.name)
        if known is None:
            known = self._wires[record.name] = orjson.Fragment(orjson.dumps(record.to_wire()))
        return known

    def active(self) -> list[JobRecord]:
        """Jobs of which an attempt is under way."""
        return list(self._active.values())

    def held_jobs(self) -> list[JobRecord]:
        """Jobs that are held."""
        return list(self._held.values())

    def record(self, name: str) -> JobRecord | None:
        """A job that has not ended, or None."""
        return self._records.get(name)

    def place(self, name: str) -> int:
        """How many jobs stand before one that is queued."""
        return bisect_left(self._queue, _key(self._records[name]))

    def undecided(self, limit: int) -> list[str]:
        """Jobs that are queued and of which no decision was kept since they came into the queue, so many at most."""
        return list(islice(self._undecided, limit))

    def note_decided(self, name: str) -> None:
        """A decision on a job was kept."""
        self._undecided.pop(name, None)

    @property
    def waiting(self) -> int:
        """How many jobs are queued."""
        return len(self._queue)

    def __len__(self) -> int:
        return len(self._records)

    def steps_per_second(self) -> dict[str, float]:
        """How fast jobs that run are, by the steps that they have reported, of those that have reported several."""
        result = {}
        for name, steps in self._steps.items():
            (first, before), (last, after) = steps[0], steps[-1]
            if last - first >= MIN_PACE_SECONDS * 1000 and after > before:
                result[name] = (after - before) / ((last - first) / 1000)
        return result

    def _leave_queue(self, record: JobRecord) -> None:
        account = account_of(record.standing.spec)
        for queue in (self._queue, self._queues[account]):
            place = bisect_left(queue, _key(record))
            assert queue[place][2] == record.name
            del queue[place]
        if not self._queues[account]:
            del self._queues[account]
        self._undecided.pop(record.name, None)

    def _note_step(self, record: JobRecord) -> None:
        """Note the last step of a job that runs; its pace begins anew with each attempt."""
        name, standing = record.name, record.standing
        if standing.state is not JobState.running or standing.step is None:
            self._steps.pop(name, None)
            return
        steps = self._steps.setdefault(name, deque())
        if steps and standing.step < steps[-1][1]:
            steps.clear()
        if not steps or standing.step > steps[-1][1]:
            steps.append((record.updated, standing.step))
        while len(steps) > 2 and steps[-1][0] - steps[1][0] >= PACE_SECONDS * 1000:  # noqa: PLR2004 - a pace has two ends
            steps.popleft()


def _key(record: JobRecord) -> Place:
    return -int(record.standing.spec.get("priority", 0)), record.standing.submitted, record.name


def _device_request(spec: Mapping[str, Any]) -> bytes:
    """What a job asks for, as far as devices are concerned."""
    return orjson.dumps(
        {name: spec[name] for name in DEVICE_REQUEST_MEMBERS if name in spec}, option=orjson.OPT_SORT_KEYS
    )


MEASURED_SECONDS = 30.0
"""Seconds between two looks at what devices measure."""

MEASURING_SHARE = 0.02
"""Share of the time that they may take."""

RECHECK_MILLISECONDS = 60_000
"""Milliseconds after which it is looked again whether a job has a way that had none, as links change all the time."""

FENCES = (ActionKind.fence.value, ActionKind.release.value)
"""Kinds of actions because of faults that keep a node out of service until they are answered."""


@dataclass(frozen=True, slots=True)
class PassInput:
    """A snapshot of the federation in two parts, as JSON.

    Attributes:
        registry: Members ``domains``, ``nodes`` and ``links`` of the snapshot.
        others: Its other members.
        shape: What whether a job has a way depends on, apart from what is free.
        jobs: How many jobs are to be decided on or are under way.
    """

    registry: bytes
    others: bytes
    shape: object
    jobs: int


@dataclass(frozen=True, slots=True)
class _DeviceMeasures:
    """What a device measured.

    Attributes:
        throughput: What it sustains, by number format; None where that was not measured.
        broken: Whether it does not work.
    """

    throughput: dict[str, float] | None
    broken: bool


@dataclass(slots=True)
class _Registry:
    """What is registered, and what its devices measure.

    Attributes:
        number: Revision of the resources; none before they were read.
        written: Domains, nodes and links, as JSON.
        devices: Numbers of the devices in the catalogue, with node and device.
        nodes: The nodes.
        measured: What devices measured when they were looked at last: how much they sustain, and whether they work.
        sustained: Measured throughput by kind of accelerator.
        broken: Devices that do not work, by node.
        measured_at: From when on devices are to be looked at again, on a steady clock.
    """

    number: int = -1
    written: bytes = b"{}"
    devices: dict[int, tuple[str, str]] = field(default_factory=dict)
    nodes: "list[documents.Node]" = field(default_factory=list)
    measured: "dict[int, _DeviceMeasures]" = field(default_factory=dict)
    sustained: dict[str, dict[str, float]] = field(default_factory=dict)
    broken: dict[str, list[str]] = field(default_factory=dict)
    measured_at: float = float("-inf")


class SnapshotReader:
    """Gathers what is known of a tenant's federation. Blocking: one thread at a time for each tenant.

    Args:
        database: Where registrations, allocations, faults and jobs are.
        store: Where newest values are.
        catalogue: Numbers of registered subjects.
        graphs: What is recognised of nodes and links.
        rules: What the operator says of accounts.
    """

    def __init__(
        self,
        database: Database,
        store: Store,
        catalogue: Catalogue,
        graphs: Graphs,
        rules: AccountFile | None = None,
    ) -> None:
        self._database = database
        self._store = store
        self._catalogue = catalogue
        self._graphs = graphs
        self._rules = rules
        self._registries: dict[str, _Registry] = {}

    def gather(self, owner: str, book: ActiveJobs, reachable: Collection[str], *, budgets: bool) -> PassInput:
        """What a pass rests on.

        Args:
            owner: The tenant.
            book: Its jobs, which are brought up to date.
            reachable: Domains that ask for actions.
            budgets: Whether jobs that are held are looked at again.
        """
        registry = self._registries.setdefault(owner, _Registry())
        with self._database.reading() as connection:
            now = instants.now()
            changed = self._read_registry(connection, owner, registry)
            allocations = list(_allocations(connection, owner))
            faults = _faults(connection, owner, self._database.epoch)
            fenced = _fenced(connection, owner)
            book.update(connection, owner)
            accounts = self._accounts(connection, owner, book, now)
            serving = book.serving(connection, owner, now)
        due = time.monotonic() >= registry.measured_at
        if changed or due:
            self._measure(registry, now, anew=due)
        states, quality = self._recognised(owner)
        shape = (
            registry.number,
            tuple(sorted(reachable)),
            tuple(sorted(entry["id"] for entry in faults)),
            tuple(sorted(fenced)),
            tuple(sorted(states)),
            tuple(sorted(registry.broken)),
            now // RECHECK_MILLISECONDS,
        )
        front, active = book.front(shape, accounts), book.active()
        others = {
            "now": instants.to_text(now),
            "revision": Revision(self._database.epoch, book.number or 0).to_wire(),
            "reachable": sorted(reachable),
            "faults": faults,
            "fenced": sorted(fenced),
            "states": states,
            "broken": registry.broken,
            "sustained": registry.sustained,
            "quality": quality,
            "allocations": allocations,
            "waiting": [book.encoded(record) for record in front],
            "active": [book.encoded(record) for record in active],
            "held": [record.to_wire() for record in _held_to_look_at(book, accounts, budgets=budgets)],
            "accounts": list(accounts.values()),
            "makes_room": {
                record.name: beneficiary for record in front if (beneficiary := record.standing.beneficiary) is not None
            },
            "steps_per_second": book.steps_per_second(),
            "serving": serving,
        }
        return PassInput(registry.written, orjson.dumps(others), shape, len(front) + len(active) + len(serving))

    def _accounts(
        self, connection: Connection, owner: str, book: ActiveJobs, now: int
    ) -> "dict[str, documents.Account]":
        """What accounts of jobs that wait have used, of those that take turns or have a quota; class Account."""
        names, rules = book.accounts(), {} if self._rules is None else self._rules.of(owner)
        if len(names) < 2 and not any(rules[name].quota is not None for name in names if name in rules):  # noqa: PLR2004
            return {}
        active = (record.standing for record in book.active())
        used = account_store.used_hours(connection, owner, active, now)
        return {name: account_to_wire(name, used.get(name, 0.0), rules.get(name, NO_RULE)) for name in sorted(names)}

    def _read_registry(self, connection: Connection, owner: str, registry: _Registry) -> bool:
        """Read what is registered, where that has changed; tells whether it has."""
        number = connection.execute(select(tenant.c.number).where(tenant.c.name == owner)).scalar() or 0
        if number == registry.number:
            return False
        result: dict[str, list[Any]] = {DOMAIN.name: [], NODE.name: [], LINK.name: []}
        query = select(resource.c.kind, resource.c.body).where(
            resource.c.tenant == owner, resource.c.kind.in_(result), resource.c.valid_to.is_(None)
        )
        for row in connection.execute(query.order_by(resource.c.kind, resource.c.id)):
            result[row.kind].append(orjson.loads(row.body))
        nodes = result[NODE.name]
        registry.written = orjson.dumps({"domains": result[DOMAIN.name], "nodes": nodes, "links": result[LINK.name]})
        numbers = self._catalogue.of(owner)
        registry.nodes = nodes
        registry.devices = {
            numbers[key]: (node["id"], device["id"])
            for node in nodes
            for device in node.get("devices", ())
            if (key := (DEVICE, node["id"], device["id"])) in numbers
        }
        registry.number = number
        return True

    def _measure(self, registry: _Registry, now: int, *, anew: bool) -> None:
        """Read what devices measure: those that have come since the last look, or ``anew`` all of them.

        While a federation is registered, its passes would else read thousands of devices for each one that comes.
        """
        began = time.monotonic()
        known = {} if anew else registry.measured
        wanted = [number for number in registry.devices if number not in known]
        newest = self._store.newest(wanted, now) if wanted else {}
        registry.measured = {
            number: known[number] if number in known else _measured(newest.get(number, {}))
            for number in registry.devices
        }
        throughput: dict[tuple[str, str], dict[str, float]] = {}
        broken: dict[str, list[str]] = {}
        for number, (node, device) in registry.devices.items():
            measured = registry.measured[number]
            if measured.throughput is not None:
                throughput[node, device] = measured.throughput
            if measured.broken:
                broken.setdefault(node, []).append(device)
        registry.sustained = sustained_of(registry.nodes, throughput)
        registry.broken = broken
        if anew:
            took = time.monotonic() - began
            registry.measured_at = began + max(MEASURED_SECONDS, took / MEASURING_SHARE)

    def _recognised(self, owner: str) -> tuple[dict[str, str], dict[str, Json]]:
        """Nodes that are recognised not to work, and what is known of links."""
        shown = self._graphs.of(owner).shown
        nodes = ((vertex["id"], vertex["state"]) for vertex in shown.vertices(NODE_VERTEX))
        states = {name: state for name, state in nodes if state in NOT_WORKING}
        members = ("inter_domain_bandwidth", "round_trip_time", "state")
        quality = {
            vertex["id"]: {name: vertex[name] for name in members if name in vertex}
            for vertex in shown.vertices(LINK_VERTEX)
        }
        return states, quality


def _held_to_look_at(
    book: ActiveJobs, accounts: "Mapping[str, documents.Account]", *, budgets: bool
) -> list[JobRecord]:
    """Jobs that are held for their budget, where these are looked at, and those whose quota holds them no longer."""
    for_budget: list[JobRecord] = []
    freed: list[JobRecord] = []
    for record in book.held_jobs():
        if not is_quota(record.standing.reason):
            for_budget.append(record)
        elif not has_used_quota(accounts.get(account_of(record.standing.spec))):
            freed.append(record)
    return [*(for_budget if budgets else []), *freed[:MAX_FRONT_JOBS]]


def _measured(values: Mapping[str, ObservedValue]) -> _DeviceMeasures:
    """What of a device's newest values decisions rest on."""
    throughput, state = (values.get(name) for name in ("sustained_matrix_throughput", "health_state"))
    return _DeviceMeasures(
        None if throughput is None else throughput.quantity,
        state is not None and state.quantity in {HealthState.faulty.value, HealthState.offline.value},
    )


def _allocations(connection: Connection, owner: str) -> Iterator[Json]:
    """Allocations that are not finished, each with what is held or else is being tried."""
    columns = (allocation.c.id, allocation.c.job, allocation.c.phase, allocation.c.attempt)
    finished = [phase.value for phase in FINISHED]
    query = select(*columns, allocation.c.body, allocation.c.held).where(
        allocation.c.tenant == owner, ALLOCATIONS.valid(), allocation.c.phase.not_in(finished)
    )
    for row in connection.execute(query.order_by(allocation.c.id)):
        placement = placements(orjson.loads(row.body))[row.attempt] if row.held is None else orjson.loads(row.held)
        yield {"id": row.id, "job": row.job, "phase": row.phase, "placement": placement}


def _faults(connection: Connection, owner: str, epoch: str) -> list[Json]:
    """Faults that are open, class Fault."""
    query = select(fault.c.body, fault.c.valid_from).where(
        fault.c.tenant == owner, fault.c.cleared.is_(None), FAULTS.valid()
    )
    rows = connection.execute(query.order_by(fault.c.id))
    return [orjson.loads(row.body) | {"revision": Revision(epoch, row.valid_from).to_wire()} for row in rows]


def _fenced(connection: Connection, owner: str) -> set[str]:
    """Nodes that a domain was asked to fence, or to release, and has not answered that."""
    query = select(response.c.body).where(response.c.tenant == owner, response.c.open_since.is_not(None))
    bodies = map(orjson.loads, connection.execute(query).scalars())
    return {node["node"] for body in bodies if body["kind"] in FENCES for node in body.get("nodes", ())}
