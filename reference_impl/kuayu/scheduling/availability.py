"""What is free now, when more will be, and for whom it is reserved, while an epoch is being decided.

1. What domains report is believed as far as their jobs bear it out: their true speed, and when running jobs end.
2. Who waits first has a reservation, and nobody who comes before it delays it: D. Lifka, "The ANL/IBM SP scheduling
   system", JSSPP 1995.
3. Others that wait are booked where they would go, so that those behind them see how long the queue is; a booking keeps
   nobody away.
"""

from math import inf

import numpy as np

from kuayu.scheduling.pricing import UNLIMITED, PurchaseOptions
from kuayu.scheduling.state import Counts, Flags, Floats, Numbers, Snapshot
from kuayu.scheduling.throughput import fast, speed_inputs

SLOWEST = 0.05
"""Share of its speed on paper below which a job does not say anything of its domain."""
BELIEF = 0.25
"""Jobs that are as fast as on paper, before any was measured."""


def trusted(snapshot: Snapshot) -> Counts:
    """Free devices that may be counted upon, by pool.

    No more than work beside those that are known to be held, no more than the nodes have, none where nobody can be
    reached.
    """
    pools, holdings = snapshot.pools, snapshot.holdings
    taken = np.bincount(holdings.pool, holdings.devices, len(pools.devices)).astype(np.int64)
    free = np.minimum(pools.free, np.maximum(pools.devices - taken, 0))
    for number, nodes in enumerate(pools.nodes):
        if nodes is not None:
            free[number] = min(int(free[number]), int(nodes.free.sum()))
    return np.where(snapshot.reachable[pools.domain], free, 0)


def paces(snapshot: Snapshot) -> Floats:
    """Share of their speed on paper that jobs have in practice, by domain; one where nothing is known.

    It is that of the jobs that run there and were measured, among which a few that are as fast as on paper.
    """
    holdings, jobs = snapshot.holdings, snapshot.jobs
    place = holdings.holder - snapshot.waiting
    alone = np.bincount(place, minlength=len(jobs) - snapshot.waiting)[place] == 1
    known = np.flatnonzero(
        alone & jobs.measured[holdings.holder] & (holdings.rate[place] > 0.0) & (holdings.ready[place] == 0.0)
    )
    job, devices = holdings.holder[known], holdings.devices[known].astype(np.float64)
    paper = fast(
        devices, snapshot.job_index[job, snapshot.pools.accelerator[holdings.pool[known]]], speed_inputs(jobs, job)
    )
    ratio = np.divide(holdings.rate[place[known]], paper, out=np.ones(len(known)), where=paper > 0.0)
    domain = snapshot.pools.domain[holdings.pool[known]]
    sums = np.bincount(domain, np.clip(ratio, SLOWEST, 1.0 / SLOWEST), snapshot.domains)
    counts = np.bincount(domain, minlength=snapshot.domains)
    pace: Floats = (sums + BELIEF) / (counts + BELIEF)
    return pace


def ends(snapshot: Snapshot) -> Floats:
    """Seconds until each running job is expected to give its devices back; infinite for one that stands still."""
    holdings, jobs = snapshot.holdings, snapshot.jobs
    numbers = np.arange(snapshot.waiting, len(jobs))
    devices = np.bincount(holdings.holder - snapshot.waiting, holdings.devices, len(numbers))
    compute = snapshot.job_index[holdings.holder, snapshot.pools.accelerator[holdings.pool]] * holdings.devices
    rate = np.bincount(holdings.holder - snapshot.waiting, compute, len(numbers)) / np.maximum(devices, 1.0)
    rate = rate * np.minimum(devices, jobs.used[numbers] * jobs.requested[numbers])
    rate = np.where(np.isfinite(holdings.rate), holdings.rate, rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(rate > 0.0, jobs.left[numbers] / rate, inf)
    ready = np.where(np.isfinite(holdings.ready), holdings.ready, 0.0)
    until: Floats = np.where(holdings.saving, ready, ready + seconds)
    return until


EPOCH = 60.0
"""Seconds from one decision to the next: so long whoever does not start now waits at least."""
UNTOLD = 120.0
"""Seconds until devices come free whose job is being moved away; nothing says when."""


class Availability:
    """Devices of pools over time.

    Attributes:
        free: Devices of each pool that are left now.
        purchases: What is left of the offers.
        bought: How the shares of each job that starts are bought, by number of the job.

    Args:
        snapshot: What is held, and how long it will be.
        free: Devices of each pool that may be counted upon now.
        ends: Seconds until each running job is expected to give its devices back.
        purchases: What can be bought.
    """

    def __init__(self, snapshot: Snapshot, free: Counts, ends: Floats, purchases: PurchaseOptions) -> None:
        self._capacity = np.append(free, UNLIMITED)
        self.free, self.purchases = self._capacity[:-1], purchases
        pools, holdings = snapshot.pools, snapshot.holdings
        most = int(pools.devices.max(initial=1)) + 1
        self._when = np.full((len(free) + 1, most), inf)
        self._when[-1] = 0.0
        until = ends[holdings.holder - snapshot.waiting]
        order = np.lexsort((until, holdings.pool))
        pool, count, until = holdings.pool[order], holdings.devices[order], until[order]
        bounds = np.searchsorted(pool, np.arange(len(free) + 1))
        for number in range(len(free)):
            now = int(free[number])
            shares = slice(int(bounds[number]), int(bounds[number + 1]))
            later = np.repeat(until[shares], count[shares])[: max(int(pools.devices[number]) - now, 0)]
            self._when[number, :now] = 0.0
            self._when[number, now : now + len(later)] = later
        self._by_slot, self._slots = self._when.reshape(-1), most
        self._show(snapshot)
        self._reservations: dict[int, list[tuple[float, int]]] = {}
        self._columns: tuple[Floats, Counts] | None = None
        self._open: Counts | None = None
        self.bought: dict[int, list[int]] = {}

    def _show(self, snapshot: Snapshot) -> None:
        """Devices that are neither free nor held are held by jobs that are being moved away, if there are any."""
        pools, holdings = snapshot.pools, snapshot.holdings
        going = (holdings.ready[holdings.holder - snapshot.waiting] > 0.0) & (snapshot.jobs.done[holdings.holder] > 0.0)
        if not going.any():
            return
        taken = np.bincount(holdings.pool, holdings.devices, len(pools.devices)).astype(np.int64)
        hidden = np.minimum(pools.devices - pools.free - taken, int(holdings.devices[going].sum()))
        for pool in np.flatnonzero(hidden > 0).tolist():
            row = self._when[pool, : int(pools.devices[pool])]
            first = int(row.searchsorted(inf))
            row[first : first + int(hidden[pool])] = UNTOLD
            row.sort()

    def earliest(self, pools: Numbers, devices: Counts) -> Floats:
        """Seconds until so many devices are free, in all pools of a row; infinite if nothing says so.

        Here and below a row that has one pool may stand as a number, (rows,), which takes half of the time.
        """
        if pools.ndim == 1:
            only: Floats = self._by_slot.take(pools * self._slots + devices - 1)
            return only
        starts: Floats = self._when[pools, devices - 1].max(axis=1)
        return starts

    def waits(self, pools: Numbers, devices: Counts, now: Flags) -> Floats:
        """Seconds until devices are free, of which some can be taken now; who does not start now waits an epoch."""
        seconds = self.earliest(pools, devices)
        np.maximum(seconds, EPOCH, out=seconds)
        np.putmask(seconds, now, 0.0)
        return seconds

    def fits(self, pools: Numbers, devices: Counts) -> Flags:
        """Whether devices are free now, whoever waits for them."""
        fitting: Flags = devices <= self._limit.take(pools)
        if fitting.ndim == 1:
            return fitting
        fits: Flags = np.logical_and.reduce(fitting, axis=1)
        return fits

    @property
    def _limit(self) -> Counts:
        """Devices that can be had at once now, by pool, with an entry more at the end for no pool."""
        if self._open is None:
            self._open = np.minimum(self._capacity, self.purchases.largest)
        return self._open

    def distrust(self, pools: Numbers, devices: Counts) -> None:
        """Nothing is free in these pools, whatever is reported."""
        for pool, count in zip(pools.tolist(), devices.tolist(), strict=True):
            if count > 0:
                row = self._when[pool]
                row[: int(self.free[pool])] = inf
                row.sort()
                self.free[pool] = 0
                self._open = None

    def admits(self, pools: Numbers, devices: Counts, seconds: Floats, fits: Flags | None = None) -> Flags:
        """Whether devices are free now, and holding them for so many seconds delays no reservation.

        Args:
            pools: Numbers, (rows, shares) or (rows,).
            devices: Of each, likewise.
            seconds: By row.
            fits: Whether they are free now, if that is known.
        """
        admitted = self.fits(pools, devices) if fits is None else fits
        if not self._reservations or not admitted.any():
            return admitted
        start, extra = self._reserved
        if pools.ndim == 1:
            delays = (seconds > start.take(pools, axis=1)) & (devices > extra.take(pools, axis=1))
            admissible: Flags = np.greater(admitted, np.logical_or.reduce(delays, axis=0))
            return admissible
        over = (seconds[:, None] > start[:, pools]) & (devices > extra[:, pools])
        return admitted & ~over.any(axis=(0, 2))

    def leaves(self, pool: int, devices: int, seconds: float) -> bool:
        """The same of devices of one pool."""
        reservations = self._reservations.get(pool, ())
        return devices <= min(int(self.free[pool]), int(self.purchases.largest[pool])) and all(
            seconds <= start or devices <= extra for start, extra in reservations
        )

    @property
    def _reserved(self) -> tuple[Floats, Counts]:
        """When reservations begin, and what others may hold beside them, (reservations of a pool, pools and none)."""
        if self._columns is None:
            layers = max(map(len, self._reservations.values()))
            start, extra = (
                np.full((layers, len(self._capacity)), inf),
                np.zeros((layers, len(self._capacity)), dtype=np.int64),
            )
            for pool, reservations in self._reservations.items():
                for layer, (begins, beside) in enumerate(reservations):
                    start[layer, pool], extra[layer, pool] = begins, max(beside, 0)
            self._columns = start, extra
        return self._columns

    def take(self, job: int, pools: Numbers, devices: Counts, seconds: float) -> None:
        """A job starts now, buys its devices and holds them for so many seconds."""
        bought = self.bought[job] = []
        self._open = None
        for pool, count in zip(pools.tolist(), devices.tolist(), strict=True):
            if count > 0:
                bought.append(self.purchases.purchase(job, pool, count, seconds))
                self.free[pool] -= count
                _replace(self._when[pool], 0, count, seconds)
                if pool in self._reservations:
                    self._reservations[pool] = [
                        (start, extra - count if seconds > start else extra)
                        for start, extra in self._reservations[pool]
                    ]
                    self._columns = None

    def put_back(self, job: int, pools: Numbers, devices: Counts) -> None:
        """A job that was to start now does not; when more devices will be free is not computed anew."""
        self._open = None
        for pool, count in zip(pools.tolist(), devices.tolist(), strict=True):
            if count > 0:
                self.free[pool] += count
                option = self.bought[job].pop(0)
                self.purchases.put_back(pool, option, count)

    def release(self, pool: int, devices: int, until: float, then: float) -> None:
        """Devices that were to be held until an instant are given back at another."""
        row = self._when[pool]
        first = min(int(row.searchsorted(until)), len(row) - devices)
        _replace(row, first, first + devices, then)

    def book(self, pools: Numbers, devices: Counts, start: float, seconds: float) -> None:
        """A job is expected to hold devices from ``start`` on; it is given those that become free last before that."""
        for pool, count in zip(pools.tolist(), devices.tolist(), strict=True):
            if count > 0:
                row = self._when[pool]
                last = max(int(row.searchsorted(start, side="right")), count)
                _replace(row, last - count, last, start + seconds)

    def keep(self, pools: Numbers, devices: Counts, start: float) -> None:
        """A job waits for devices that will be free then: nobody is to delay it."""
        for pool, count in zip(pools.tolist(), devices.tolist(), strict=True):
            if count > 0:
                available = int(self._when[pool].searchsorted(start, side="right"))
                self._reservations.setdefault(pool, []).append((start, available - count))
                self._columns = None


def _replace(row: Floats, begin: int, end: int, value: float) -> None:
    """Put a value in the place of some of an ascending row, which stays ascending."""
    count = end - begin
    if begin and value < row[begin - 1]:
        first = int(row[:begin].searchsorted(value, side="right"))
        row[first + count : end] = row[first:begin]
        row[first : first + count] = value
    else:
        last = end + int(row[end:].searchsorted(value))
        row[begin : last - count] = row[end:last]
        row[last - count : last] = value
