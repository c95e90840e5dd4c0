"""Many schedules at once: when each job starts if jobs are taken in some order, and what comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from kuayu.scheduling.front_ways import Way
from kuayu.scheduling.scene import Counts, Flags, Floats, Numbers

FEW = 80
"""Jobs up to which many schedules are computed at once."""
_TOLERANCE = 1e-6
"""Of a slot, by which a job may end after it."""
_LONGEST = 2.0**50
"""Slots that a job lasts at most; whatever takes longer never ends."""
_NEVER = int(np.iinfo(np.int64).max) // 2


@dataclass(frozen=True, slots=True)
class Batch:
    """Schedules, by row.

    Attributes:
        ways: Number of the way of each job, (rows, jobs).
        orders: Jobs in the order of their starts, (rows, jobs).
        starts: Slot in which each job starts, (rows, jobs); one is the first.
        period: Mean seconds to the end.
        money: Of all jobs.
    """

    ways: Numbers
    orders: Numbers
    starts: Counts
    period: Floats
    money: Floats

    def of(self, rows: Numbers) -> "Batch":
        """Some of them."""
        return Batch(self.ways[rows], self.orders[rows], self.starts[rows], self.period[rows], self.money[rows])

    def and_also(self, other: "Batch") -> "Batch":
        """These and others."""
        return Batch(
            np.concatenate([self.ways, other.ways]),
            np.concatenate([self.orders, other.orders]),
            np.concatenate([self.starts, other.starts]),
            np.concatenate([self.period, other.period]),
            np.concatenate([self.money, other.money]),
        )


class Trial:
    """Schedules jobs one after the other: each at the first slot from which on its devices are free for as long.

    Args:
        options: Ways of each job, at least one of each.
        room: Devices, by pool; each way fits in.
        slot: Seconds.

    Attributes:
        jobs: How many.
        slot: Seconds.
        counts: How many ways each job has.
        seconds: Of each way, (jobs, most ways); infinite where there is none.
        money: The same.
        lasting: Slots that it holds its devices, the same; nought where there is none.
        part: Devices that it holds over those that there are, summed over pools; the same.
    """

    def __init__(self, options: Sequence[Sequence[Way]], room: Counts, slot: float) -> None:
        self.jobs, self.slot = len(options), slot
        self.counts = np.array([len(ways) for ways in options])
        shape = len(options), int(self.counts.max())
        width = max(len(way.holding) for ways in options for way in ways)
        self.seconds, self.money = np.full(shape, np.inf), np.full(shape, np.inf)
        self.lasting = np.zeros(shape, dtype=np.int64)
        # places that a holding does not use name a pool that is never full
        self._pool = np.full((*shape, width), len(room), dtype=np.intp)
        self._need = np.zeros((*shape, width), dtype=np.int64)
        self._room = np.append(room, 1)
        for job, ways in enumerate(options):
            for number, way in enumerate(ways):
                self.seconds[job, number], self.money[job, number] = way.seconds, way.money
                self.lasting[job, number] = max(1, ceil(min(way.seconds / slot, _LONGEST) - _TOLERANCE))
                for place, (pool, devices) in enumerate(way.holding):
                    self._pool[job, number, place], self._need[job, number, place] = pool, devices
        self.part = (self._need / np.maximum(self._room[self._pool], 1)).sum(axis=2)

    def run(self, ways: Numbers, orders: Numbers) -> Batch:
        """Schedules by the way of each job, (rows, jobs), and by an order of jobs, (rows, jobs)."""
        every = np.arange(self.jobs)
        if self.jobs <= FEW:
            starts = self._together(ways, orders)
        else:
            starts = np.array([self.single(way, order) for way, order in zip(ways, orders, strict=True)])
        ended = starts * self.slot + self.seconds[every, ways]
        begun = np.take_along_axis(starts, orders, axis=1)
        by_start = np.take_along_axis(orders, np.argsort(begun, axis=1, kind="stable"), axis=1)
        return Batch(ways, by_start, starts, ended.mean(axis=1), self.money[every, ways].sum(axis=1))

    def _together(self, ways: Numbers, orders: Numbers) -> Counts:
        """Starts of all rows, job by job."""
        rows = np.arange(len(ways))
        every = np.arange(self.jobs)
        starts = np.ones((len(ways), self.jobs), dtype=np.int64)
        pool, need = self._pool[every, ways], self._need[every, ways]
        lasting = self.lasting[every, ways]
        for place in range(1, self.jobs):
            job = orders[:, place]
            before = orders[:, :place]
            here = rows[:, None]
            begun = starts[here, before]
            ended = begun + lasting[here, before]
            # devices that each of those before takes of each pool that the job needs, (rows, those before, pools)
            wanted = pool[rows, job]
            taken = np.zeros((*before.shape, wanted.shape[1]), dtype=np.int64)
            others, given = pool[here, before], need[here, before]
            for share in range(others.shape[2]):
                taken += np.where(others[:, :, share, None] == wanted[:, None, :], given[:, :, share, None], 0)
            spare = self._room[wanted] - need[rows, job]
            # it can start in the first slot, or when another ends; what is in the way begins with another's start
            at = np.concatenate([np.ones((len(ways), 1), dtype=np.int64), ended], axis=1)
            full_at = self._full(at, begun, ended, taken, spare)
            full_then = self._full(begun, begun, ended, taken, spare)
            until = at + lasting[rows, job][:, None]
            later = (begun[:, None, :] > at[:, :, None]) & (begun[:, None, :] < until[:, :, None])
            blocked = full_at | (later & full_then[:, None, :]).any(axis=2)
            starts[rows, job] = np.where(blocked, _NEVER, at).min(axis=1)
        return starts

    def single(self, ways: Numbers, order: Numbers) -> Counts:
        """Starts of one row; what is free is kept from instant to instant, which pays where there are many jobs."""
        starts = np.ones(self.jobs, dtype=np.int64)
        instants = np.array([1, _NEVER])
        free = np.tile(self._room, (1, 1))
        for job in order.tolist():
            way, lasting = ways[job], int(self.lasting[job, ways[job]])
            pool, need = self._pool[job, way], self._need[job, way]
            full = np.flatnonzero((free[:, pool] < need).any(axis=1))
            # gaps between what is in the way
            begins = np.append(1, instants[full + 1])
            ends = np.append(instants[full], _NEVER)
            start = int(begins[np.argmax(ends - begins >= lasting)])
            for at in (start, start + lasting):
                place = int(np.searchsorted(instants, at))
                if instants[place] != at:
                    instants = np.insert(instants, place, at)
                    free = np.insert(free, place, free[place - 1], axis=0)
            first, last = np.searchsorted(instants, [start, start + lasting])
            for one, devices in zip(pool.tolist(), need.tolist(), strict=True):
                free[first:last, one] -= devices
            starts[job] = start
        return starts

    @staticmethod
    def _full(at: Counts, begun: Counts, ended: Counts, taken: Counts, spare: Counts) -> Flags:
        """Whether any pool has too little at some instants, (rows, instants)."""
        on = (begun[:, None, :] <= at[:, :, None]) & (at[:, :, None] < ended[:, None, :])
        used = np.matmul(on.astype(np.float32), taken.astype(np.float32))
        full: Flags = (used > spare[:, None, :]).any(axis=2)
        return full
