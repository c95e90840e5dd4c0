"""Who gives way to replicas of serving jobs, and who takes back what they need no longer (clause Jobs, serving jobs).

1. A replica that waits and was not started *lacks* devices where a pool that it may use has fewer free ones than it
   needs, with those counted that come free anyway: of jobs that are being stopped or resized.
2. *Who gives way*: jobs of a lower priority than the replica that run undisturbed in one domain and have reported a
   checkpoint. Replicas never do. Jobs that can work with fewer devices shrink first, by as many as are lacking and no
   more than their step asks for; only where that does not do are jobs stopped. Of each kind those of the lowest
   priority go first, and of these those that were submitted last.
3. Nobody gives way in vain: where all of them together would not do, nothing happens.
4. Devices are counted by pool, not by node. Where enough are free and the replica waits all the same, as where no
   node has room for it, nobody gives way.
5. Nobody gives way in a pool that a job which is no replica could run in and that stands before the replica in the
   queue: it would take the devices. A job that waits for other pools, or for more than there is, keeps nobody.
6. Here it does not count when a job was interrupted last, as the load of a serving job cannot wait for half an hour;
   how often its replicas come and go is bounded by its cool-down (:mod:`kuayu.jobs.replicas`).
7. *Taking back*: who gave way, and has fewer devices than it asked for, grows again as soon as devices are free in
   its pool, nobody waits who could run there, and no replica comes or goes: it is interrupted once for all that is
   given back. Who was stopped is queued and started like any other.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kuayu.jobs.progress import GAVE_WAY, RESTARTING, RUNNING, last_interruption
from kuayu.jobs.specification import INSIDE

if TYPE_CHECKING:
    from kuayu_schemas import documents

Pool = tuple[str, str]
"""Domain and accelerator."""


@dataclass(frozen=True, slots=True)
class SizeChange:
    """A running job that goes on with another number of devices, or is stopped.

    Attributes:
        job: Which.
        pool: Where it runs.
        devices: How many it goes on with; nought where it is stopped.
        before: How many it holds.
        beneficiary: Replica that it makes room for; None where it grows.
        serving: Serving job of that; None where it grows.
    """

    job: str
    pool: Pool
    devices: int
    before: int
    beneficiary: str | None = None
    serving: str | None = None


@dataclass(frozen=True, slots=True)
class _Holder:
    """A job that may be stopped or resized.

    Attributes:
        record: Class JobRecord.
        pool: Where it runs.
        devices: Those that it holds.
    """

    record: "documents.JobRecord"
    pool: Pool
    devices: int

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.record["id"]

    def within(self, most: int) -> int:
        """The most of so many devices that the job can work with; nought where they are too few."""
        devices = self.record["devices"]
        least, step = devices["minimum"], devices.get("step", 1)
        return least + (min(most, devices["maximum"]) - least) // step * step if most >= least else 0


@dataclass(slots=True)
class _Pools:
    """Devices of pools in the course of a pass.

    Attributes:
        free: Those that are free, or will be, and not promised to a replica.
        devices: All of them.
        accelerators: Class OfferedAccelerator, by name.
    """

    free: dict[Pool, int] = field(default_factory=dict)
    devices: dict[Pool, int] = field(default_factory=dict)
    accelerators: "Mapping[str, documents.OfferedAccelerator]" = field(default_factory=dict)


def make_room(
    document: "documents.SchedulingState",
    records: "Mapping[str, documents.JobRecord]",
    starting: "Sequence[documents.JobPlacement]",
    changing: Collection[str],
    waiting: Sequence[str],
) -> list[SizeChange]:
    """Have jobs give way to the replicas that wait.

    Args:
        document: What was decided on.
        records: Records of its jobs, by name.
        starting: What is given out by what was decided.
        changing: Jobs of which something else becomes by that.
        waiting: Jobs that go on waiting, in the order of the queue.
    """
    pools = _pools(document, records, starting, changing)
    victims = _victims(_holders(document, records, changing))
    taken: dict[str, SizeChange] = {}
    claimed: set[Pool] = set()
    for name in waiting:
        record = records[name]
        if "replica_of" not in record:
            claimed |= _could_run_in(record, pools)
            continue
        needed = record["devices"]["minimum"]
        usable = [pool for pool in sorted(pools.free.keys() - claimed) if _may_use(record, pool, pools)]
        usable.sort(key=lambda pool: -pools.free[pool])
        if any(pools.free[pool] >= needed for pool in usable):
            pools.free[next(pool for pool in usable if pools.free[pool] >= needed)] -= needed
            continue
        for pool in usable:
            changes = _give_up(record, needed - pools.free[pool], victims.get(pool, ()), taken)
            if changes is not None:
                freed = sum(
                    (taken[change.job].devices if change.job in taken else change.before) - change.devices
                    for change in changes
                )
                taken |= {change.job: change for change in changes}
                pools.free[pool] += freed - needed
                break
    return list(taken.values())


def take_back(
    document: "documents.SchedulingState",
    records: "Mapping[str, documents.JobRecord]",
    starting: "Sequence[documents.JobPlacement]",
    changing: Collection[str],
    waiting: "Iterable[documents.JobRecord]",
) -> list[SizeChange]:
    """Have jobs grow again that gave way, where nobody waits who could run there.

    Args:
        document: What was decided on.
        records: Records of its jobs, by name.
        starting: What is given out by what was decided.
        changing: Jobs of which something else becomes by that.
        waiting: Jobs that go on waiting.
    """
    free, pools = _free(document, starting), _pools(document, records, starting, changing)
    claimed = set[Pool]().union(*(_could_run_in(record, pools) for record in waiting))
    changes = []
    for holder in _holders(document, records, changing):
        if holder.pool in claimed or not last_interruption(holder.record).startswith(GAVE_WAY):
            continue
        devices = holder.record["devices"]
        wanted = devices.get("requested", devices["maximum"])
        size = holder.within(min(wanted, holder.devices + free.get(holder.pool, 0)))
        if size > holder.devices:
            free[holder.pool] -= size - holder.devices
            changes.append(SizeChange(holder.name, holder.pool, size, holder.devices))
    return changes


def _free(document: "documents.SchedulingState", starting: "Sequence[documents.JobPlacement]") -> dict[Pool, int]:
    """Devices that are free in pools that can be reached, without those that are given out now."""
    free = {
        (domain["id"], row["accelerator"]): row["free"]
        for domain in document["domains"]
        if domain.get("reachable", True)
        for row in domain["pools"]
    }
    for placement in starting:
        for share in placement["shares"]:
            free[share["domain"], share["accelerator"]] -= share["devices"]
    return free


def _pools(
    document: "documents.SchedulingState",
    records: "Mapping[str, documents.JobRecord]",
    starting: "Sequence[documents.JobPlacement]",
    changing: Collection[str],
) -> _Pools:
    """Devices of all pools that are free, or will be by what was decided before and now."""
    accelerators = {accelerator["id"]: accelerator for accelerator in document["accelerators"]}
    devices = {
        (domain["id"], row["accelerator"]): row["devices"] for domain in document["domains"] for row in domain["pools"]
    }
    pools = _Pools(_free(document, starting), devices, accelerators)
    for entry in document["running"]:
        record = records[entry["spec"]["id"]]
        if record["state"] != RESTARTING and record["id"] not in changing and not record.get("cancelling"):
            continue
        # Who is resized takes its new size again; who is stopped by a decision waits behind the replica.
        remaining = record["resize"]["devices"] if "resize" in record else 0
        for share in entry["placement"]["shares"]:
            pool = (share["domain"], share["accelerator"])
            if pool in pools.free:
                pools.free[pool] += max(share["devices"] - remaining, 0)
    return pools


def _holders(
    document: "documents.SchedulingState", records: "Mapping[str, documents.JobRecord]", changing: Collection[str]
) -> Iterator[_Holder]:
    """Jobs that run in one domain, on devices of one kind, have a checkpoint, and of which nothing else becomes."""
    for entry in document["running"]:
        name, shares = entry["spec"]["id"], entry["placement"]["shares"]
        record = records[name]
        runs = record["state"] == RUNNING and not record.get("cancelling") and name not in changing
        resumes = "checkpoint" in record and "checkpoint_step" in record and "replica_of" not in record
        if runs and resumes and len(shares) == 1:
            yield _Holder(record, (shares[0]["domain"], shares[0]["accelerator"]), shares[0]["devices"])


def _victims(holders: Iterable[_Holder]) -> dict[Pool, list[_Holder]]:
    """Jobs that may give way, by the pool that they are in, those that go first at the beginning."""
    victims: dict[Pool, list[_Holder]] = defaultdict(list)
    for holder in holders:
        victims[holder.pool].append(holder)
    for entries in victims.values():
        entries.sort(key=lambda holder: holder.record["submitted_at"], reverse=True)
        entries.sort(key=lambda holder: holder.record.get("priority", 0))
    return victims


def _give_up(
    replica: "documents.JobRecord", lacking: int, victims: Sequence[_Holder], taken: Mapping[str, SizeChange]
) -> list[SizeChange] | None:
    """What jobs of a pool have to give up so that a replica has room, or None where they cannot."""
    lower = [holder for holder in victims if holder.record.get("priority", 0) < replica.get("priority", 0)]
    present = {holder.name: taken[holder.name].devices if holder.name in taken else holder.devices for holder in lower}
    sizes = dict(present)
    for holder in lower:
        if lacking > 0 and sizes[holder.name]:
            least = min(holder.record["devices"]["minimum"], sizes[holder.name])
            size = holder.within(sizes[holder.name] - lacking) or least
            lacking -= sizes[holder.name] - size
            sizes[holder.name] = size
    for holder in lower:
        if lacking > 0:
            lacking -= sizes[holder.name]
            sizes[holder.name] = 0
    if lacking > 0:
        return None
    for name in reversed(sizes):  # who is stopped may give up enough without the others
        if sizes[name] and lacking + present[name] - sizes[name] <= 0:
            lacking += present[name] - sizes[name]
            sizes[name] = present[name]
    return [
        SizeChange(
            holder.name, holder.pool, sizes[holder.name], holder.devices, *_for_whom(holder.name, replica, taken)
        )
        for holder in lower
        if sizes[holder.name] < present[holder.name]
    ]


def _for_whom(
    job: str, replica: "documents.JobRecord", taken: Mapping[str, SizeChange]
) -> tuple[str | None, str | None]:
    """Replica and serving job that a job gives way to, the first where there are several."""
    before = taken.get(job)
    return (replica["id"], replica["replica_of"]) if before is None else (before.beneficiary, before.serving)


def _could_run_in(record: "documents.JobRecord", pools: _Pools) -> set[Pool]:
    """Pools in which a job could run if all of their devices were free; all that it may use where it may be spread."""
    needed, usable = record["devices"]["minimum"], {pool for pool in pools.free if _may_use(record, pool, pools)}
    if any(mode != INSIDE for mode in record.get("split_modes", ())):
        return usable if sum(pools.devices[pool] for pool in usable) >= needed else set()
    return {pool for pool in usable if pools.devices[pool] >= needed}


def _may_use(record: "documents.JobRecord", pool: Pool, pools: _Pools) -> bool:
    """Whether a job may run in a pool, as far as it says."""
    domain, accelerator = pool[0], pools.accelerators[pool[1]]
    domains, kinds = record.get("domains"), record.get("device_kinds")
    pinned = (artefact["domains"] for artefact in record.get("data", ()) if artefact.get("pinned"))
    return (
        (not domains or domain in domains)
        and (not kinds or accelerator.get("kind") in kinds)
        and record.get("memory_per_device", 0.0) <= accelerator["memory"]
        and all(domain in allowed for allowed in pinned)
    )
