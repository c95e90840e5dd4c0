"""A state of scheduling as arrays: what decisions are computed on, without names.

Domains, accelerators, pools and jobs are numbered in the order of the request; jobs that wait come first, in the order
of the queue, those that hold devices after them. Times are seconds from now on, so that submissions are negative; work
is in seconds of a reference device. ``kuayu.scheduling.parse`` makes a snapshot of a request; training makes its own.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kuayu.scheduling.paths import Paths

if TYPE_CHECKING:
    from kuayu_schemas import documents

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

NONE, SYNCHRONOUS, PERIODIC, PIPELINE = range(4)
MODES: "tuple[documents.SplitMode, ...]" = ("none", "synchronous", "periodic", "pipeline")
"""Split modes by number."""

RESERVED, ON_DEMAND, SPOT = range(3)
PURCHASES: "tuple[documents.PurchaseOption, ...]" = ("reserved", "on_demand", "spot")
"""Ways of buying by number."""

ANYWHERE, ONE_NODE, ONE_SWITCH = range(3)
SCOPES = (None, "node", "switch")
"""How near to each other the devices of a job in a domain have to lie, by number."""

NOWHERE = -1
"""In place of the number of a domain, a profile or a switch that there is not."""


MAX_WEIGHT = 10.0
"""Times the median at which the work of a job counts at most in what devices are worth."""
MIN_VALUE = 0.05
"""What a device is worth at least over the mean of all."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Part of a pool that is bought in one way.

    Attributes:
        purchase: Number in ``PURCHASES``.
        devices: How many can be had so now.
        price: Money for a device and an hour.
        interruption: How often in an hour it is taken away.
    """

    purchase: int
    devices: int
    price: float
    interruption: float = 0.0


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of a pool, by node.

    Attributes:
        names: Their names.
        devices: Devices that work.
        free: Those of them that are free.
        switch: Number of the leaf switch within the domain; ``NOWHERE`` where none is told.
    """

    names: tuple[str, ...]
    devices: Counts
    free: Counts
    switch: Numbers


@dataclass(frozen=True, slots=True)
class Pools:
    """Pools of all domains, by pool.

    Attributes:
        domain: Number of the domain.
        accelerator: Number of the kind of accelerator.
        devices: Devices that work.
        free: Those of them that are free.
        per_node: Devices of a node.
        offers: How capacity is bought; empty where it costs nothing.
        nodes: Its nodes, or none where they are not told.
    """

    domain: Numbers
    accelerator: Numbers
    devices: Counts
    free: Counts
    per_node: Counts
    offers: tuple[tuple[Offer, ...], ...]
    nodes: tuple[Nodes | None, ...]


@dataclass(frozen=True, slots=True)
class Links:
    """Links between places, by link. Places are the domains, and after them exchanges that are none.

    Attributes:
        places: How many places there are.
        source: Number of the place where it begins.
        target: Number of the place where it ends.
        bandwidth: Bits a second that it offers to all flows together.
        available: Bits a second that one more flow may hope for.
        round_trip: Seconds.
        tariff: Money for a bit.
    """

    places: int
    source: Numbers
    target: Numbers
    bandwidth: Floats
    available: Floats
    round_trip: Floats
    tariff: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """What is asked for and how it stands, by job.

    Attributes:
        requested: Devices to which duration and step time refer.
        minimum: Fewer devices will not do.
        maximum: More are of no use.
        step: Numbers of devices are the minimum plus a multiple of this.
        memory: Bytes that each device must have.
        profile: Row of ``Snapshot.index``; ``NOWHERE`` for one that no accelerator has.
        kinds: Whether an accelerator is of a kind that will do, (jobs, accelerators).
        serial: Share of the work that more devices do not shorten.
        used: Share of the requested devices that it keeps busy; one before it is known.
        measured: Whether ``used`` is known.
        duration: Seconds that it says it takes on the requested devices of the reference kind.
        done: Work that it has done.
        submitted: Seconds from now, not positive.
        deadline: Seconds from now; infinite without one.
        priority: Higher goes first.
        home: Number of the domain where it was submitted, or ``NOWHERE``.
        modes: Whether it may be spread like that, (jobs, 4), by ``MODES``.
        period: Steps between reconciliations where the job prescribes them, else zero.
        step_time: Seconds of a step on the requested devices of the reference kind; zero where nothing is told.
        exchange: Bytes that replicas sum up.
        boundary: Bytes that cross a cut of a pipeline at a step, both ways together.
        checkpoint: Bytes of a checkpoint.
        saved: Number of the domain that holds its last checkpoint, or ``NOWHERE``.
        resumes: Whether it goes on from a checkpoint.
        least_bandwidth: Bits a second that links between its domains must offer.
        longest_round_trip: Seconds that they may take.
        per_node: Devices that it is given on each node; zero where it does not matter.
        within: Number in ``SCOPES``.
        reader: Number of the job, by artefact that is read; ascending.
        artefact: Number of the artefact, by artefact that is read: the same for all that read it.
        size: Bytes, by artefact that is read.
        pinned: Whether it may not leave its domains, by artefact that is read.
        has_copy: Whether a domain holds a copy, (artefacts that are read, domains).
    """

    requested: Counts
    minimum: Counts
    maximum: Counts
    step: Counts
    memory: Floats
    profile: Numbers
    kinds: Flags
    serial: Floats
    used: Floats
    measured: Flags
    duration: Floats
    done: Floats
    submitted: Floats
    deadline: Floats
    priority: Counts
    home: Numbers
    modes: Flags
    period: Counts
    step_time: Floats
    exchange: Floats
    boundary: Floats
    checkpoint: Floats
    saved: Numbers
    resumes: Flags
    least_bandwidth: Floats
    longest_round_trip: Floats
    per_node: Counts
    within: Numbers
    reader: Numbers
    artefact: Numbers
    size: Floats
    pinned: Flags
    has_copy: Flags

    def __len__(self) -> int:
        """How many jobs there are."""
        return len(self.requested)

    @property
    def particular(self) -> Flags:
        """Which jobs need something of nodes."""
        flags: Flags = (self.per_node > 0) | (self.within != ANYWHERE)
        return flags

    @property
    def stated(self) -> Floats:
        """Work that jobs say they are: their duration times the devices that they keep busy."""
        return self.duration * self.used * self.requested

    @property
    def left(self) -> Floats:
        """Work before them; what a job has stated is doubled as often as it has done all of that."""
        stated, done = self.stated, self.done
        _, doublings = np.frexp(np.divide(done, stated, out=np.zeros(len(done)), where=stated > 0.0))
        return np.ldexp(stated, np.maximum(doublings, 0)) - done


@dataclass(frozen=True, slots=True)
class NodeOccupancy:
    """Devices of nodes that running jobs hold, of nodes that are told.

    Attributes:
        share: Number of the share.
        node: Number of the node within its pool.
        devices: How many of it.
    """

    share: Numbers
    node: Numbers
    devices: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What jobs hold that run.

    Attributes:
        holder: Number of the job, by share; ascending, and of one job in the order of its placement.
        pool: Number of the pool, by share.
        devices: How many, by share.
        purchase: Number of the way of buying, by share; ``NOWHERE`` where it is not told.
        mode: Number of the split mode, by job that runs.
        period: Steps between reconciliations, one where there are none, by job that runs.
        rate: Work a second, by job that runs; not a number before its first step.
        ready: Seconds until its first step, by job that runs; zero for one that runs, not a number if not told.
        saving: Whether it only writes its checkpoint before it gives its devices back, by job that runs.
        undisturbed: Seconds since a decision interrupted it last, by job that runs; infinite where none did.
        nodes: On which nodes; None where nobody who waits needs anything of nodes.
    """

    holder: Numbers
    pool: Numbers
    devices: Counts
    purchase: Numbers
    mode: Numbers
    period: Counts
    rate: Floats
    ready: Floats
    saving: Flags
    undisturbed: Floats
    nodes: NodeOccupancy | None = None


@dataclass(frozen=True, slots=True)
class Accounts:
    """Accounts of jobs that wait, and what they have used.

    Attributes:
        number: Number of the account, by job that waits.
        used: Hours of reference devices, by account.
        weight: By account.
    """

    number: Numbers
    used: Floats
    weight: Floats


@dataclass(frozen=True, slots=True)
class Names:
    """Names by number; needed by answers alone, so that training may leave them empty."""

    accelerators: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """Everything that a decision rests on.

    Attributes:
        waiting: How many of the jobs wait: they are the first ones.
        memory: Bytes of a device, by accelerator.
        index: Reference devices that one is worth, (profiles, accelerators); zero where it has no index.
        reachable: Whether a domain can be reached, by domain.
        pools: Where devices are.
        links: What joins domains.
        jobs: All jobs.
        holdings: What those hold that run.
        names: Of all that has one.
        now: Seconds from 1970 to the present instant.
        denied: Numbers of the waiting jobs whose start was refused for want of room an epoch ago.
        accounts: Accounts that take turns; None where they do not matter.
    """

    waiting: int
    memory: Floats
    index: Floats
    reachable: Flags
    pools: Pools
    links: Links
    jobs: Jobs
    holdings: Holdings
    names: Names = field(default_factory=Names)
    now: float = 0.0
    denied: frozenset[int] = frozenset()
    accounts: Accounts | None = None

    @cached_property
    def domains(self) -> int:
        """How many domains there are."""
        return len(self.reachable)

    @cached_property
    def paths(self) -> Paths:
        """How data go from one domain to another."""
        links = self.links
        return Paths.over(
            self.domains, links.places, links.source, links.target, links.available, links.round_trip, links.tariff
        )

    @cached_property
    def job_index(self) -> Floats:
        """Index of each accelerator for each job, (jobs, accelerators); zero where the job cannot run on it."""
        jobs = self.jobs
        known = np.vstack([self.index, np.zeros((1, self.index.shape[1]))])[jobs.profile]
        able = jobs.kinds & (self.memory[None, :] >= jobs.memory[:, None])
        return np.where(able, known, 0.0)

    @cached_property
    def mean_index(self) -> Floats:
        """Mean index of all devices that a job can run on, by job; zero where there are none."""
        # many jobs are alike, so that each kind of job is looked at once; NumPy sums a single row in another order
        first, kind = _alike(self.job_index)
        if len(kind) > 1:
            first = np.append(first, first[:1])
        index = self.job_index[first][:, self.pools.accelerator]
        devices = self.pools.devices
        mean: Floats = (index * devices).sum(axis=1) / np.maximum(((index > 0.0) * devices).sum(axis=1), 1)
        return mean[kind]

    @cached_property
    def device_value(self) -> Floats:
        """What a device of each pool is worth over the mean of all, for the jobs here; about one, by pool."""
        accelerator, kinds = self.pools.accelerator, self.job_index.shape[1]
        if 1 < kinds < len(accelerator):  # pools of one kind are worth the same
            return self._value(np.arange(kinds), accelerator)
        return self._value(accelerator, np.arange(len(accelerator)))

    def _value(self, kinds: Numbers, kind: Numbers) -> Floats:
        """The same, from numbers of accelerators and which of these each pool has."""
        mean, index = self.mean_index[:, None], self.job_index[:, kinds]
        relative = np.divide(index, mean, out=np.zeros_like(index), where=mean > 0.0)
        some = relative[:, kind].any(axis=1)
        if not some.any():
            return np.ones(len(kind))
        work = self.jobs.left[some]
        weight = np.minimum(work, np.median(work) * MAX_WEIGHT) + MIN_VALUE
        value: Floats = np.maximum((relative[some] * weight[:, None]).sum(axis=0) / weight.sum(), MIN_VALUE)
        return value[kind]

    @cached_property
    def staging(self) -> tuple[Floats, Floats]:
        """Seconds and money until data and checkpoint of each job are in a domain, both (jobs, domains).

        Both are infinite where they cannot go. Data come from the copy whose path offers most, the checkpoint from
        where it is; what is moved by both takes its time one after the other, as nothing is known of shared links.
        """
        seconds, money = self.data_staging
        jobs = self.jobs
        migrations = np.flatnonzero(jobs.saved >= 0)
        if len(migrations):
            seconds, money = seconds.copy(), money.copy()
            bits, source = jobs.checkpoint[migrations, None] * 8.0, jobs.saved[migrations]
            seconds[migrations] += self.paths.seconds(bits, source)
            money[migrations] += self.paths.money(bits, source)
        return seconds, money

    @cached_property
    def data_staging(self) -> tuple[Floats, Floats]:
        """The same of data alone."""
        jobs = self.jobs
        seconds, money = np.zeros((2, len(jobs), self.domains))
        if len(jobs.reader):
            took, cost = self._fetching()
            if (self.holdings.ready > 0.0).any():
                coming = self._coming()
                arrives = np.isfinite(coming)
                took, cost = np.where(arrives, np.minimum(took, coming), took), np.where(arrives, 0.0, cost)
            first = np.ones(len(jobs.reader), dtype=np.bool_)
            first[1:] = jobs.reader[1:] != jobs.reader[:-1]
            seconds[jobs.reader[first]], money[jobs.reader[first]] = took[first], cost[first]
            if not first.all():
                np.add.at(seconds, jobs.reader[~first], took[~first])
                np.add.at(money, jobs.reader[~first], cost[~first])
        return seconds, money

    def _fetching(self) -> tuple[Floats, Floats]:
        """Seconds and money until artefacts are in domains, both (artefacts that are read, domains)."""
        jobs, paths = self.jobs, self.paths
        # where copies are, and whether they may leave: few patterns, of which each is looked at once
        packed = np.packbits(np.column_stack([jobs.has_copy, jobs.pinned]), axis=1)
        width = packed.shape[1]
        keys: NDArray[Any] = packed.view(np.dtype((np.void, width)))[:, 0]
        if width <= 8:  # noqa: PLR2004 - bytes of the widest whole number, which is sorted fastest
            keys = np.pad(packed, ((0, 0), (0, 8 - width))).view(np.uint64)[:, 0]
        _, first, pattern = np.unique(keys, return_index=True, return_inverse=True)
        copies, domain = jobs.has_copy[first], np.arange(self.domains)[None, :]
        best = np.array([paths.best_copy(np.flatnonzero(row)) for row in copies])
        able = (best >= 0) & (copies | ~jobs.pinned[first, None])
        offered = np.where(able, paths.available[best, domain], 0.0)
        tariff = np.where(able, paths.tariff[best, domain], inf)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bits = jobs.size[:, None] * 8.0
            took = bits / np.where(copies, inf, np.where(offered > 0.0, offered, 0.0))[pattern]
            cost = bits * np.where(copies, 0.0, tariff)[pattern]
        odd = np.flatnonzero((bits[:, 0] == 0.0) | ~np.isfinite(bits[:, 0]))
        if len(odd):  # nothing, and more than there is: neither can be divided
            patterns = pattern[odd]
            immediate = copies[patterns] | (bits[odd] == 0.0) & able[patterns]
            took[odd] = np.where(immediate, 0.0, inf)
            with np.errstate(invalid="ignore"):
                cost[odd] = np.where(immediate, 0.0, bits[odd] * tariff[patterns])
        return took, cost

    def _coming(self) -> Floats:
        """Seconds until artefacts arrive that jobs wait for already, (artefacts that are read, domains)."""
        jobs, holdings = self.jobs, self.holdings
        count = int(jobs.artefact.max(initial=-1)) + 1
        coming = np.full((count, self.domains), inf)
        ready = holdings.ready[holdings.holder - self.waiting]
        for share in np.flatnonzero(ready > 0.0).tolist():
            begin, end = np.searchsorted(jobs.reader, [holdings.holder[share], holdings.holder[share] + 1])
            place = self.pools.domain[holdings.pool[share]]
            for artefact in jobs.artefact[begin:end].tolist():
                coming[artefact, place] = min(coming[artefact, place], ready[share])
        return coming[jobs.artefact]


def _alike(rows: Floats) -> tuple[Numbers, Numbers]:
    """The first of each kind of rows, and the kind of each row; where a sum tells rows apart, that is quickest."""
    sums = rows @ np.sqrt(np.arange(2.0, rows.shape[1] + 2.0))
    _, first, kind = np.unique(sums, return_index=True, return_inverse=True)
    if (rows[first][kind] != rows).any():
        _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)
