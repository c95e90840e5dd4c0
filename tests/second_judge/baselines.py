"""B1 and B3 of annex C in its federations: how long jobs take under either, by the annex's text.

A job that was started goes on undisturbed (none of the two stops anybody), so that its end follows when it starts.
Traffic is simpler than in the suite's world: who fetches data has the path to itself. That is the one simplification.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf, log

from second_judge.drawn_jobs import DAY, HOUR, Job, Window

PERIOD = 50
KEPT = 7 * DAY
Holding = tuple[tuple[int, int], ...]
"""Domains and devices in them; a domain has one pool here."""


@dataclass
class Running:
    """A job that holds devices; ``stated`` are the seconds that it states to run for there."""

    job: Job
    holding: Holding
    ready: float
    stated: float
    ends: float

    def expected(self, now: float) -> float:
        """When it ends by what it states: who has done all that has as much again."""
        ends = self.ready + self.stated
        while ends <= now:
            ends += ends - self.ready
        return ends


@dataclass
class Federation:
    """A window as it is played."""

    window: Window
    now: float = 0.0
    running: list[Running] = field(default_factory=list)
    copies: dict[int, dict[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = [pool.devices for pool in self.window.pools]
        order = self.window.network.round_trip
        self.nearest = [
            sorted(
                (other for other in range(len(order)) if other != home), key=lambda other: (order[home][other], other)
            )
            for home in range(len(order))
        ]

    def able(self, job: Job, domain: int) -> bool:
        """Whether its devices have the memory that the job needs."""
        return self.window.pools[domain].memory >= job.memory

    def rate(self, job: Job, holding: Holding, used: float) -> float:
        """Work a second on these devices, with so much of them busy."""
        pools = self.window.pools
        devices = sum(held for _, held in holding)
        index = sum(held * pools[domain].index[job.profile] for domain, held in holding) / devices
        maximum = 2 * job.devices if job.minimum < job.devices else job.devices
        held = min(devices, maximum)
        busy = used * job.devices
        rate = index * busy * _gain(min(held, used * max(held, job.devices)), job.serial) / _gain(busy, job.serial)
        if len(holding) == 1:
            return rate
        work = busy * job.step
        step, domains = work / rate, len(holding)
        bits = 8 * 2 * (domains - 1) / domains * job.exchange
        ring = [(holding[place][0], holding[(place + 1) % domains][0]) for place in range(domains)]
        slowest = min(self.window.network.bandwidth(a, b, self.now) for a, b in ring)
        trip = max(self.window.network.round_trip[a][b] for a, b in ring)
        lasts = PERIOD * step + max(0.0, bits / slowest + (domains - 1) * trip - 2 / 3 * step)
        tokens = (1 + 0.0240 * (domains - 1) ** 0.818 * log(1 + PERIOD / 18.4)) ** (1 / 0.3658)
        return float(PERIOD * work / (tokens * lasts))

    def staging(self, job: Job, holding: Holding) -> float:
        """Seconds until its data are whole in each of its domains."""
        lies = [
            self.window.lies[job.data],
            *(at for at, until in self.copies.get(job.data, {}).items() if until > self.now),
        ]
        offered = self.window.network.bandwidth
        return max(
            0.0 if domain in lies else 8 * job.size / max(offered(at, domain, self.now) for at in lies)
            for domain, _ in holding
        )

    def seconds(self, job: Job, holding: Holding) -> float:
        """How long the job is expected to hold these devices if it were given them now."""
        return self.staging(job, holding) + job.stated * job.devices / self.rate(job, holding, 1.0)

    def start(self, job: Job, holding: Holding) -> float:
        """Give a job its devices; the answer is when it ends."""
        for domain, held in holding:
            self.free[domain] -= held
        ready = self.now + self.staging(job, holding)
        work = job.duration * job.devices * job.used
        ends = ready + work / self.rate(job, holding, job.used)
        stated = job.stated * job.devices * job.used / self.rate(job, holding, job.used)
        self.running.append(Running(job, holding, ready, stated, ends))
        kept = self.copies.setdefault(job.data, {})
        for domain, _ in holding:
            kept[domain] = max(kept.get(domain, 0.0), ends + KEPT)
        return ends

    def release(self) -> bool:
        """Take devices back from those that have ended; whether there were any."""
        over = [each for each in self.running if each.ends <= self.now]
        self.running = [each for each in self.running if each.ends > self.now]
        for each in over:
            for domain, held in each.holding:
                self.free[domain] += held
        return bool(over)


def _gain(devices: float, serial: float) -> float:
    return devices / (1 + serial * (devices - 1))


class Schedule:
    """EASY: what is free now and by stated ends, and who has reserved."""

    def __init__(self, federation: Federation) -> None:
        self.now, self.free = federation.now, federation.free
        self.releases: list[list[tuple[float, int]]] = [[] for _ in self.free]
        for each in federation.running:
            ends = each.expected(federation.now)
            for domain, held in each.holding:
                self.releases[domain].append((ends, held))
        for row in self.releases:
            row.sort()
        self.reserved: list[list[list[float]]] = [[] for _ in self.free]

    def admits(self, holding: Holding, ends: float) -> bool:
        """Whether these devices are free, and held until then delay no reservation."""
        return all(
            held <= self.free[domain] and all(ends <= start or held <= extra for start, extra in self.reserved[domain])
            for domain, held in holding
        )

    def taken(self, holding: Holding, ends: float) -> None:
        """A job was started."""
        for domain, held in holding:
            self.releases[domain].append((ends, held))
            self.releases[domain].sort()
            for reservation in self.reserved[domain]:
                if ends > reservation[0]:
                    reservation[1] -= held

    def earliest(self, holding: Holding) -> float:
        """When enough devices are free, by stated ends."""
        return max(self._when(domain, held) for domain, held in holding)

    def _when(self, domain: int, wanted: int) -> float:
        free = self.free[domain]
        if wanted <= free:
            return self.now
        for ends, held in self.releases[domain]:
            free += held
            if free >= wanted:
                return ends
        return inf

    def reserve(self, holding: Holding) -> None:
        """A job waits for these devices."""
        start = self.earliest(holding)
        if start < inf:
            for domain, held in holding:
                free = self.free[domain] + sum(given for ends, given in self.releases[domain] if ends <= start)
                self.reserved[domain].append([start, free - held])


class B1:
    """Each domain for itself, first come first served with EASY."""

    def __init__(self) -> None:
        self.seats: dict[int, tuple[int, tuple[Holding, ...]]] = {}

    def decide(self, its: Federation, waiting: Sequence[Job]) -> Iterator[tuple[Job, Holding]]:
        """Jobs to start now, with what they are given."""
        schedule = Schedule(its)
        behind: dict[int, list[Job]] = {}
        for job in waiting:
            seat, ways = self._seat(its, job)
            if seat in behind:
                behind[seat].append(job)
                continue
            chosen = self._fitting(its, schedule, job, ways)
            if chosen:
                yield job, chosen
            elif ways:
                behind[seat] = []
                schedule.reserve(min(ways, key=lambda way: schedule.earliest(way) + its.seconds(job, way)))
        for jobs in behind.values():
            for job in jobs:
                chosen = self._fitting(its, schedule, job, self._seat(its, job)[1])
                if chosen:
                    yield job, chosen

    def _fitting(self, its: Federation, schedule: Schedule, job: Job, ways: Sequence[Holding]) -> Holding | None:
        fit = [way for way in ways if all(held <= its.free[domain] for domain, held in way)]
        for seconds, way in sorted((its.seconds(job, way), way) for way in fit):
            if schedule.admits(way, its.now + seconds):
                schedule.taken(way, its.now + seconds)
                return way
        return None

    def _seat(self, its: Federation, job: Job) -> tuple[int, tuple[Holding, ...]]:
        if id(job) not in self.seats:
            seat = next((domain for domain in (job.home, *its.nearest[job.home]) if its.able(job, domain)), job.home)
            own = its.window.pools[seat].devices
            if own >= job.devices:
                self.seats[id(job)] = seat, (((seat, job.devices),),)
            else:
                others = [domain for domain in its.nearest[seat] if its.able(job, domain)]
                enough = [domain for domain in others if own + its.window.pools[domain].devices >= job.devices]
                ways = [_shrunk(its, job, seat)]
                ways += [_split(its, job, (seat, domain)) for domain in (enough or others)[:1]]
                able = [way for way in ways if way]
                self.seats[id(job)] = seat, (min(able, key=lambda way: its.seconds(job, way)),) if able else ()
        return self.seats[id(job)]


class B3:
    """One queue over all domains; each job goes where it ends first."""

    def decide(self, its: Federation, waiting: Sequence[Job]) -> Iterator[tuple[Job, Holding]]:
        """Jobs to start now, with what they are given."""
        schedule = Schedule(its)
        reserved = False
        for job in waiting:
            if reserved and not any(free >= job.devices for free in its.free) and sum(its.free) < job.minimum:
                continue
            ways = self._ways(its, job)
            lasts = {way: its.seconds(job, way) for way in ways}
            now = [way for way in ways if schedule.admits(way, its.now + lasts[way])]
            best = min(now, key=lambda way: lasts[way], default=None)
            if not reserved and ways:
                awaited = min(ways, key=lambda way: schedule.earliest(way) + lasts[way])
                ends = schedule.earliest(awaited) + lasts[awaited]
                if best is None or ends < its.now + lasts[best]:
                    schedule.reserve(awaited)
                    reserved = True
                    continue
            if best is not None:
                schedule.taken(best, its.now + lasts[best])
                yield job, best

    def _ways(self, its: Federation, job: Job) -> list[Holding]:
        pools = its.window.pools
        able = [domain for domain in range(len(pools)) if its.able(job, domain)]
        whole = [((domain, job.devices),) for domain in able if pools[domain].devices >= job.devices]
        if whole:
            return list(whole)
        ways = [_shrunk(its, job, domain) for domain in able]
        for domain in able:
            chosen = [domain]
            for other in its.nearest[domain]:
                if sum(pools[each].devices for each in chosen) >= job.devices:
                    break
                if other in able:
                    chosen.append(other)
            ways.append(_split(its, job, tuple(chosen)))
        return [way for way in ways if way]


def _shrunk(its: Federation, job: Job, domain: int) -> Holding | None:
    held = int(0.75 * its.window.pools[domain].devices)
    return ((domain, held),) if held >= job.minimum else None


def _split(its: Federation, job: Job, domains: tuple[int, ...]) -> Holding | None:
    sizes = [its.window.pools[domain].devices for domain in domains]
    wanted = min(job.devices, sum(sizes))
    if job.serving or wanted < job.minimum or len(domains) == 1:
        return None
    held = [min(size, ceil(wanted * size / sum(sizes))) for size in sizes[1:]]
    held.insert(0, wanted - sum(held))
    return tuple(zip(domains, held, strict=True)) if min(held) > 0 else None


def periods(window: Window, policy: B1 | B3, begin: float, end: float, horizon: float) -> list[tuple[float, int]]:
    """Seconds from submission to end, and devices, of the training jobs of the cohort, those that never ended too."""
    its = Federation(window)
    cohort = {id(job) for job in window.jobs if begin <= job.submitted < end}
    found: dict[int, float] = {}
    waiting: list[tuple[int, float, int]] = []
    jobs, next_ = window.jobs, 0
    while len(found) < len(cohort) and its.now < horizon:
        its.now += 60.0 if its.now < DAY else 600.0
        changed = its.release()
        while next_ < len(jobs) and jobs[next_].submitted <= its.now:
            heapq.heappush(waiting, (-jobs[next_].priority, jobs[next_].submitted, next_))
            next_ += 1
            changed = True
        if not (waiting and changed):
            continue
        started = set()
        for job, holding in policy.decide(its, [jobs[number] for _, _, number in sorted(waiting)]):
            ends = its.start(job, holding)
            started.add(id(job))
            if id(job) in cohort:
                found[id(job)] = ends
        waiting = [each for each in waiting if id(jobs[each[2]]) not in started]
        heapq.heapify(waiting)
    for job in jobs:
        if id(job) in cohort and id(job) not in found:
            best = max(pool.index[job.profile] for pool in window.pools)
            found[id(job)] = horizon + job.duration / best
    return [(found[id(job)] - job.submitted, job.devices) for job in jobs if id(job) in cohort and not job.serving]


def cohort_periods(
    window: Window, policy: B1 | B3, warm: float = 6 * HOUR, length: float = 8 * HOUR, drain: float = 28 * DAY
) -> list[tuple[float, int]]:
    """The same in the parts of a window at level full."""
    return periods(window, policy, warm, warm + length, warm + length + drain)
