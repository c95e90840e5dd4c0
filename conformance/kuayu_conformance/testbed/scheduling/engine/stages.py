"""What becomes of jobs that hold devices: staging, restart, running, saving, and the end of it.

1. **Clock.** Events come in the order of time, and of their making where they coincide.
2. **Staging.** Data and checkpoints are sent to where jobs were placed; a copy that is on its way already is not sent
   again.
3. **Stages.** The one who drives :class:`Stages` calls :meth:`Stages.share` after whatever has happened at an instant.
"""

import heapq
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Law
from kuayu_conformance.testbed.scheduling.engine.state import (
    SEVERAL,
    Copies,
    Counts,
    Holding,
    Holdings,
    Period,
    Phase,
    Places,
    Progress,
    Register,
    Run,
    Tally,
    beyond,
)
from kuayu_conformance.testbed.scheduling.engine.traffic import Traffic
from kuayu_conformance.testbed.scheduling.values import Job, Placement

Handler = Callable[..., None]
_BITS = 8.0


class Clock:
    """Events that are to come.

    Attributes:
        now: Seconds since the scenario began.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Handler, tuple[Any, ...]]] = []
        self._made = 0

    @property
    def next(self) -> float:
        """When the next event is, or infinite."""
        return self._events[0][0] if self._events else inf

    def at(self, instant: float, handler: Handler, *arguments: Any) -> None:
        """At an instant, not before now, something is called; never if the instant is infinite."""
        if instant < inf:
            self._made += 1
            heapq.heappush(self._events, (max(instant, self.now), self._made, handler, arguments))

    def pass_to(self, instant: float) -> None:
        """Make it that instant, and let everything happen that is due by then."""
        self.now = instant
        while self._events and self._events[0][0] <= instant:
            _, _, handler, arguments = heapq.heappop(self._events)
            handler(*arguments)


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
            sites: Numbers of its domains; links lead there.
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
        links = self._traffic.routes.paths[source, site]
        number = self._traffic.open(links, inf, size * _BITS, job, self._clock.now)
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


class Stages:
    """Jobs with devices. The one who drives it calls :meth:`share` after whatever has happened at an instant.

    Args:
        jobs: As they truly are.
        places: Pools by number.
        register: What is known of them.
        law: Speeds.
        clock: Events.
        traffic: Links.
        copies: Data.
        pending: Called with a job that has lost its devices before its end.
        speeds: Share of its speed on paper that a job has in practice, by domain.

    Attributes:
        runs: Jobs with devices.
        progress: How far all jobs are.
        holdings: Who holds what.
        checkpoint: Number of the domain where the checkpoint of a job is.
        tally: What became of them.
        changes: Counts what policies can see.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        places: Places,
        register: Register,
        law: Law,
        clock: Clock,
        traffic: Traffic,
        copies: Copies,
        pending: Callable[[int], None],
        speeds: Floats,
    ) -> None:
        self._jobs, self._places, self._register, self._law, self._clock = jobs, places, register, law, clock
        self._traffic, self._copies, self._pending, self._speeds = traffic, copies, pending, speeds
        self.runs: dict[int, Run] = {}
        self.progress, self.holdings = Progress(len(jobs)), Holdings(places)
        self.checkpoint: dict[int, int] = {}
        self.tally = Tally(len(jobs), len(places.pools))
        self.changes = 0
        self._staging = Staging(clock, traffic, copies, self._arrived)
        self._versions = [0] * len(jobs)
        self._fresh: dict[int, None] = {}

    def begin(self, job: int, placement: Placement, expected: tuple[float, float]) -> None:
        """A job takes devices that are free, and what it needs is sent there.

        Args:
            job: Its number.
            placement: Where.
            expected: Seconds until it runs and its rate then, as they are known.
        """
        holding = self._places.holding(placement.shares)
        self.holdings.take(job, holding, self._clock.now)
        self._settle_in(job, placement, holding, expected)

    def stop(self, job: int, then: Placement | None, expected: tuple[float, float] = (0.0, 0.0)) -> None:
        """A running job writes its checkpoint, and gives its devices back or goes on elsewhere.

        Devices that it will have in addition are taken at once; they are free.
        """
        run, now = self.runs[job], self._clock.now
        if then:
            more = beyond(self._places.holding(then.shares), run.holding)
            self.holdings.take(job, more, now)
        self._end_steps(job)
        run.then = then
        self.tally.stops[job] += 1
        self.tally.moves[job] += then is not None
        self.progress.phase[job] = Phase.SAVING
        self.progress.interrupted[job] = now
        seconds = self._law.saving(self._jobs[job], run.placement)
        self.progress.ready[job] = now + seconds
        self._clock.at(now + seconds, self._saved, job, self._versions[job], expected)
        self.changes += 1

    def lose(self, job: int) -> None:
        """A node fails under a job: its devices are free, and what no checkpoint holds is lost."""
        run, now = self.runs[job], self._clock.now
        self._end_steps(job)
        self._staging.forget(job)
        lost = self.progress.lose(job)
        self.tally.lost[job] += lost
        self.tally.failures[job] += 1
        for pool, devices in run.holding:
            self.tally.work[pool] -= lost * devices / run.devices
        if self.progress.saved[job] > 0.0 and run.running < inf:
            self.checkpoint[job] = int(self._places.site[run.holding[0][0]])
        if run.then:
            self.holdings.give_back(job, beyond(self._places.holding(run.then.shares), run.holding), now)
        self._leave(job)
        self._pending(job)

    def share(self) -> None:
        """Share the links anew after what has happened at this instant."""
        now = self._clock.now
        while True:
            changed, link_changes = self._traffic.rebalance(now)
            for link, until in link_changes:
                self._clock.at(until, self._traffic.touch, link)
            fresh, self._fresh = self._fresh, {}
            for number in changed:
                flow = self._traffic.flows[number]
                if flow.transfer:
                    self._staging.schedule(number)
                else:
                    fresh[flow.owner] = None
            if not fresh:
                return
            for job in fresh:
                self._pace(job)

    def pace(self, job: int) -> float:
        """Work a second of an unfinished job where it is or was last; else on the best pool, one with room if any."""
        run, earlier = self.runs.get(job), self.tally.periods.get(job)
        if run and self.progress.rate[job] > 0.0:
            return float(self.progress.rate[job])
        where = run.placement if run else earlier[-1].placement if earlier else None
        parts = self._law, self._places, self._traffic, self._copies
        return expected_pace(self._jobs[job], where, *parts, self.holdings.free, self._speeds, self._clock.now)

    def done_by(self, now: float) -> tuple[Floats, Floats]:
        """Device seconds of computing, and work, by pool; nothing changes by asking."""
        computing, work = self.tally.computing.copy(), self.tally.work.copy()
        for job, run in self.runs.items():
            passed = now - float(self.progress.since[job])
            run.credit(computing, work, passed, float(self.progress.rate[job]) * passed)
        return computing, work

    def _settle_in(self, job: int, placement: Placement, holding: Holding, expected: tuple[float, float]) -> None:
        now, truth = self._clock.now, self._jobs[job]
        devices = sum(count for _, count in holding)
        self.runs[job] = Run(placement, holding, now, devices)
        self.progress.pool[job] = holding[0][0] if len(holding) == 1 else SEVERAL
        self.progress.devices[job] = devices
        self.progress.phase[job] = Phase.STAGING
        self.progress.ready[job], self.progress.expected[job] = now + expected[0], expected[1]
        self.changes += 1
        sites = tuple(dict.fromkeys(int(self._places.site[pool]) for pool, _ in holding))
        saved = self.checkpoint.get(job)
        readers = len(placement.readers)
        self._staging.stage(job, truth.data, sites, readers, None if saved is None else (saved, truth.model.checkpoint))
        if not self._staging.waits(job):
            self._arrived(job)

    def _arrived(self, job: int) -> None:
        if job not in self.checkpoint:
            self._run(job, self._versions[job])
            return
        self.progress.phase[job] = Phase.RESTARTING
        seconds = self._law.restart(self._jobs[job], self.runs[job].placement)
        self._clock.at(self._clock.now + seconds, self._run, job, self._versions[job])

    def _run(self, job: int, version: int) -> None:
        if version != self._versions[job]:
            return
        run, truth, now = self.runs[job], self._jobs[job], self._clock.now
        self._staging.forget(job)
        run.running = now
        self.progress.run(job, self._law.interval(truth, run.placement), now)
        self._register.measure(job)
        flows = []
        for flow in self._law.flows(truth, run.placement) if len(run.placement.shares) > 1 else ():
            ends = self._places.site_number(flow.source), self._places.site_number(flow.target)
            flows.append(self._traffic.open(self._traffic.routes.paths[ends], flow.wish, inf, job, now))
        run.flows = tuple(flows)
        if flows:
            self._fresh[job] = None
        else:
            self._pace(job)
        self.changes += 1

    def _pace(self, job: int) -> None:
        """From now on a running job goes on as its flows allow."""
        run, truth, now = self.runs[job], self._jobs[job], self._clock.now
        self._account(job)
        granted = [self._traffic.flows[number].rate for number in run.flows]
        speed = self._law.speed(truth, run.placement, granted)
        for number, occupied in zip(run.flows, speed.occupied, strict=True):
            self._traffic.hold(number, occupied, now)
        rate = speed.rate * min(float(self._speeds[self._places.site[pool]]) for pool, _ in run.holding)
        run.computing = speed.computing
        self.progress.rate[job] = self.progress.expected[job] = rate
        self._versions[job] += 1
        if rate > 0.0:
            left = max(truth.work - float(self.progress.done[job]), 0.0)
            self._clock.at(now + left / rate, self._finish, job, self._versions[job])

    def _finish(self, job: int, version: int) -> None:
        if version != self._versions[job]:
            return
        self._end_steps(job)
        self.progress.done[job] = self.progress.saved[job] = self._jobs[job].work
        self.progress.phase[job] = Phase.FINISHED
        self.tally.finished[job] = self._clock.now
        self._leave(job)

    def _saved(self, job: int, version: int, expected: tuple[float, float]) -> None:
        if version != self._versions[job]:
            return
        self.progress.save(job)
        run, now = self.runs[job], self._clock.now
        self.checkpoint[job] = int(self._places.site[run.holding[0][0]])
        if run.then is None:
            self._leave(job)
            self._pending(job)
            return
        then = self._places.holding(run.then.shares)
        self.holdings.give_back(job, beyond(run.holding, then), now)
        self._write_period(job)
        self._settle_in(job, run.then, then, expected)

    def _end_steps(self, job: int) -> None:
        """A job takes no more steps where it is, whatever it was doing."""
        run, now = self.runs[job], self._clock.now
        self._account(job)
        self.progress.rate[job] = 0.0
        for number in run.flows:
            self._traffic.close(number, now)
        run.flows, run.computing = (), 0.0
        self._versions[job] += 1
        self._fresh.pop(job, None)
        if run.running < inf:
            run.stopped = min(run.stopped, now)
            for site in {int(self._places.site[pool]) for pool, _ in run.holding}:
                self._copies.use(self._jobs[job].data, site, now)

    def _leave(self, job: int) -> None:
        self.holdings.give_back(job, self.runs[job].holding, self._clock.now)
        self._write_period(job)
        del self.runs[job]
        self.changes += 1

    def _write_period(self, job: int) -> None:
        run = self.runs[job]
        period = Period(run.placement, run.begin, run.running, run.stopped, self._clock.now)
        self.tally.periods.setdefault(job, []).append(period)

    def _account(self, job: int) -> None:
        run, now = self.runs[job], self._clock.now
        passed = now - float(self.progress.since[job])
        done = self.progress.settle(job, now)
        if run.running < inf:
            run.credit(self.tally.computing, self.tally.work, passed, done)


def expected_pace(
    job: Job,
    where: Placement | None,
    law: Law,
    places: Places,
    traffic: Traffic,
    copies: Copies,
    free: Counts,
    speeds: Floats,
    now: float,
) -> float:
    """Work a second of a job in a placement; without one, in the best pool, one with room if any.

    Links give it what one more flow may hope for. Nought where no pool is large enough.

    Args:
        job: As it truly is.
        where: Its placement.
        law: Speeds.
        places: Pools by number.
        traffic: Links.
        copies: Data.
        free: Devices that nobody holds, by pool.
        speeds: Share of its speed on paper that a job has in practice, by domain.
        now: The instant.
    """

    def expected(placement: Placement) -> float:
        site, available = places.site_number, traffic.shares(now)
        flows = law.flows(job, placement) if len(placement.shares) > 1 else ()
        granted = [min(flow.wish, float(available[site(flow.source), site(flow.target)])) for flow in flows]
        slowest = min(float(speeds[site(share.site)]) for share in placement.shares)
        return law.speed(job, placement, granted).rate * slowest

    if where:
        return expected(where)
    bound = copies.always(job.data) if copies.datasets[job.data].pinned else range(len(places.sites))
    able = [
        pool
        for pool in range(len(places.pools))
        if places.memory[places.type[pool]] >= job.memory and places.site[pool] in bound
    ]
    for devices in (free, places.devices):
        sizes = {pool: min(int(devices[pool]), job.maximum) for pool in able}
        fits = [places.share(pool, size) for pool, size in sizes.items() if size >= job.minimum]
        if fits:
            return max(expected(Placement((share,))) for share in fits)
    return 0.0
