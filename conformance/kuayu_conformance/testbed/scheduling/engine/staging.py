"""Data and checkpoints on their way to where jobs were placed."""

from collections.abc import Callable
from math import inf

from kuayu_conformance.testbed.scheduling.engine.clock import Clock
from kuayu_conformance.testbed.scheduling.engine.copies import Copies
from kuayu_conformance.testbed.scheduling.engine.traffic import Traffic

_BITS = 8.0


class Staging:
    """Transfers that jobs wait for. A copy that is on its way already is not sent again.

    Args:
        clock: Tells the time.
        traffic: Carries them.
        copies: Where data are.
        arrived: Called with a job when all that it waits for is there.
    """

    def __init__(self, clock: Clock, traffic: Traffic, copies: Copies, arrived: Callable[[int], None]) -> None:
        self._clock, self._traffic, self._copies, self._arrived = clock, traffic, copies, arrived
        self._waiting: dict[int, dict[int, None]] = {}
        self._copy: dict[int, tuple[str, int]] = {}
        self._under_way: dict[tuple[str, int], int] = {}
        self._missing: dict[int, set[int]] = {}
        self._looked_at: dict[int, float] = {}

    def stage(
        self, job: int, data: str, sites: tuple[int, ...], readers: int, checkpoint: tuple[int, float] | None
    ) -> None:
        """A job waits for a copy of its data in each domain that reads, and of its checkpoint, if it has one, in all.

        Replicas have whole copies everywhere: which of them reads what changes from epoch to epoch of the training.

        Args:
            job: Its number.
            data: Name of its data set.
            sites: Numbers of its domains; wires lead there.
            readers: How many of them read, from the first on.
            checkpoint: Number of the domain where its checkpoint is, and bytes.
        """
        now = self._clock.now
        self._missing[job] = set()
        for place, site in enumerate(sites):
            holders = self._copies.at(data, now)
            if site in holders:
                self._copies.use(data, site, now)
            elif place < readers:
                self._fetch(job, data, site, holders)
            if checkpoint and checkpoint[0] != site and checkpoint[1] > 0.0:
                self._send(job, checkpoint[0], site, checkpoint[1])

    def waits(self, job: int) -> bool:
        """Whether something is still on its way."""
        return bool(self._missing.get(job))

    def forget(self, job: int) -> None:
        """A job waits no longer; what nobody else waits for is given up."""
        for number in sorted(self._missing.pop(job, ())):
            del self._waiting[number][job]
            if not self._waiting[number]:
                self._end(number)

    def schedule(self, number: int) -> None:
        """A transfer goes on at another rate.

        One that has become slower is looked at when it would have been through, and then scheduled again: a crowd of
        transfers that slow each other down makes no events.
        """
        ends = self._traffic.flows[number].ends(self._clock.now)
        if ends < self._looked_at.get(number, inf):
            self._looked_at[number] = ends
            self._clock.at(ends, self._check, number, ends)

    def _fetch(self, job: int, data: str, site: int, holders: tuple[int, ...]) -> None:
        number = self._under_way.get((data, site))
        if number is None:
            shares = self._traffic.shares(self._clock.now)
            source = max(holders, key=lambda holder: (shares[holder, site], -holder))
            number = self._send(job, source, site, self._copies.datasets[data].size)
            self._copy[number] = (data, site)
            self._under_way[data, site] = number
        self._waiting[number][job] = None
        self._missing[job].add(number)

    def _send(self, job: int, source: int, site: int, size: float) -> int:
        wires = self._traffic.routes.paths[source, site]
        number = self._traffic.open(wires, inf, size * _BITS, job, self._clock.now)
        self._waiting[number] = {job: None}
        self._missing[job].add(number)
        return number

    def _check(self, number: int, due: float) -> None:
        if self._looked_at.get(number) != due:
            return
        del self._looked_at[number]
        if not self._traffic.through(number, self._clock.now):
            self.schedule(number)
            return
        if number in self._copy:
            data, site = self._copy[number]
            self._copies.use(data, site, self._clock.now)
        jobs = self._waiting[number]
        self._end(number)
        for job in jobs:
            self._missing[job].discard(number)
            if not self._missing[job]:
                self._arrived(job)

    def _end(self, number: int) -> None:
        self._traffic.close(number, self._clock.now)
        del self._waiting[number]
        self._looked_at.pop(number, None)
        copy = self._copy.pop(number, None)
        if copy:
            del self._under_way[copy]
