"""B1 and B3 of annex C in its federations: how long jobs take under either, by the annex's text.

A policy is asked at every epoch at which a job waits, and knows what a scheduling state tells then: what is free, when
jobs end by what they state, where data are, and what links have available. It does not see what itself has just begun.
"""

from bisect import insort
from collections.abc import Iterator, Sequence
from math import ceil, inf

from second_judge.drawn_jobs import DAY, HOUR, Job, Window
from second_judge.federation import Federation, Holding


class Schedule:
    """EASY: what is free now and by stated ends, and who has reserved."""

    def __init__(self, federation: Federation) -> None:
        self.now, self.free = federation.now, list(federation.free)
        self.releases: list[list[tuple[float, int]]] = [[] for _ in self.free]
        for each in federation.running.values():
            ends = each.expected(federation.now)
            for domain, held in each.holding:
                self.releases[domain].append((ends, held))
        for row in self.releases:
            row.sort()
        self.reserved: list[list[list[float]]] = [[] for _ in self.free]

    def admits(self, holding: Holding, ends: float) -> bool:
        """Whether these devices are free, and held until then delay no reservation."""
        return all(held <= self.free[domain] and not self.delays(domain, held, ends) for domain, held in holding)

    def delays(self, domain: int, held: int, ends: float) -> bool:
        """Whether so many devices of a domain that are held until then delay a reservation."""
        return any(ends > start and held > extra for start, extra in self.reserved[domain])

    def taken(self, holding: Holding, ends: float) -> None:
        """A job was started."""
        for domain, held in holding:
            self.free[domain] -= held
            insort(self.releases[domain], (ends, held))
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
        self.least: dict[int, tuple[int, float]] = {}
        """Devices that a job takes of the domain where it queues, and seconds that it holds them at least."""

    def decide(self, its: Federation, waiting: Sequence[Job]) -> Iterator[tuple[Job, Holding]]:
        """Jobs to start now, with what they are given."""
        schedule = Schedule(its)
        behind: dict[int, list[Job]] = {}
        for job in waiting:
            seat, ways = self.seats.get(id(job)) or self._seat(its, job)
            if seat in behind:
                behind[seat].append(job)
                continue
            chosen = self._fitting(its, schedule, job, ways)
            if chosen:
                yield job, chosen
            elif ways:
                behind[seat] = []
                schedule.reserve(min(ways, key=lambda way: schedule.earliest(way) + its.seconds(job, way)))
        for seat, jobs in behind.items():
            for job in jobs:
                if not schedule.free[seat]:
                    break
                held, least = self.least[id(job)]
                if held > schedule.free[seat] or schedule.delays(seat, held, its.now + least):
                    continue
                chosen = self._fitting(its, schedule, job, self.seats[id(job)][1])
                if chosen:
                    yield job, chosen

    def _fitting(self, its: Federation, schedule: Schedule, job: Job, ways: Sequence[Holding]) -> Holding | None:
        able = [way for way in ways if schedule.admits(way, its.now + its.least(job, way))]
        for seconds, way in sorted((its.seconds(job, way), way) for way in able):
            if schedule.admits(way, its.now + seconds):
                schedule.taken(way, its.now + seconds)
                return way
        return None

    def _seat(self, its: Federation, job: Job) -> tuple[int, tuple[Holding, ...]]:
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
        (way,) = self.seats[id(job)][1] or (((seat, own + 1),),)
        self.least[id(job)] = way[0][1], its.least(job, way)
        return self.seats[id(job)]


class B3:
    """One queue over all domains; each job goes where it ends first."""

    def __init__(self) -> None:
        self.ways: dict[int, tuple[list[Holding], int]] = {}
        """Placements of a job, and the largest share of the one where that is least."""

    def decide(self, its: Federation, waiting: Sequence[Job]) -> Iterator[tuple[Job, Holding]]:
        """Jobs to start now, with what they are given."""
        schedule = Schedule(its)
        reserved = False
        for job in waiting:
            if id(job) not in self.ways:
                ways = self._ways(its, job)
                self.ways[id(job)] = ways, min((max(held for _, held in way) for way in ways), default=0)
            ways, least = self.ways[id(job)]
            if reserved:
                if least > max(schedule.free):
                    continue
                ways = [way for way in ways if schedule.admits(way, its.now + its.least(job, way))]
            lasts = {way: its.seconds(job, way) for way in ways}
            now = [way for way in ways if schedule.admits(way, its.now + lasts[way])]
            best = min(now, key=lambda way: lasts[way], default=None)
            if not reserved and ways:
                awaited = min(ways, key=lambda way: schedule.earliest(way) + lasts[way])
                ends = schedule.earliest(awaited) + lasts[awaited]
                if ends < (inf if best is None else its.now + lasts[best]):
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
    its, jobs = Federation(window), window.jobs
    cohort = [job for job in jobs if begin <= job.submitted < end]
    waiting: list[tuple[int, int]] = []
    queue: list[Job] = []
    came = 0
    while its.now < horizon and not all(id(job) in its.ended for job in cohort):
        its.advance(min(its.now + (60.0 if its.now < DAY else 600.0), horizon))
        while came < len(jobs) and jobs[came].submitted <= its.now:
            insort(waiting, (-jobs[came].priority, came))
            came += 1
            queue = []
        queue = queue or [jobs[number] for _, number in waiting]
        started = list(policy.decide(its, queue)) if queue else []
        for job, holding in started:
            its.start(job, holding)
        if started:
            waiting = [each for each in waiting if id(jobs[each[1]]) not in its.running]
            queue = []
    return [(_end(its, job, horizon) - job.submitted, job.devices) for job in cohort if not job.serving]


def _end(its: Federation, job: Job, horizon: float) -> float:
    """When a job ended, or would at the pace of what it holds; else of the quickest pool."""
    if id(job) in its.ended:
        return its.ended[id(job)]
    if id(job) in its.running:
        return horizon + its.left(job)
    return horizon + job.duration / max(pool.index[job.profile] for pool in its.window.pools)


def cohort_periods(
    window: Window, policy: B1 | B3, warm: float = 6 * HOUR, length: float = 8 * HOUR, drain: float = 28 * DAY
) -> list[tuple[float, int]]:
    """The same in the parts of a window at level full."""
    return periods(window, policy, warm, warm + length, warm + length + drain)
