"""A federation of annex C as it goes: who holds which devices, what is under way between domains, and when jobs end.

Rules are those of annex C and of *Speed and cost of a placed job*, where nobody is stopped and no node fails:

- Flows on a link get max-min fair rates. A transfer takes what it gets; an exchange asks for no more than the bandwidth
  at which it is hidden. A policy counts upon what a link offers over one more than its flows.
- Data come whole before the first step, from where most is available, and are not sent twice to one domain at a time.
- A path is one link here: hubs are all joined, and no way over a third domain is shorter, which :func:`direct` says.
- What is left of a job when the scenario ends goes on at the pace of the devices that it was given last.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, log

from second_judge.drawn_jobs import DAY, Job, Network, Window

PERIOD = 50
KEPT = 7 * DAY
HIDING = 2 / 3
THROUGH = 1e-6
"""Seconds: a transfer that would take less is through."""
Holding = tuple[tuple[int, int], ...]
"""Domains and devices in them; a domain has one pool here."""
Link = tuple[int, int]


@dataclass(eq=False)
class Running:
    """A job that holds devices: expected to run from ``ready`` on, then at ``rate``, until it ``runs``."""

    job: Job
    holding: Holding
    ready: float
    rate: float
    runs: bool = False
    done: float = 0.0
    since: float = 0.0
    missing: int = 0
    flows: list["Flow"] = field(default_factory=list)
    version: int = 0

    def expected(self, now: float) -> float:
        """When it ends by what it states: who has done all that has twice as much."""
        stated = self.job.stated * self.job.devices
        if not self.runs:
            return max(self.ready, now) + stated / self.rate
        stated *= self.job.used
        done = self.done + self.rate * (now - self.since)
        while stated <= done:
            stated *= 2
        return now + (stated - done) / self.rate

    @property
    def work(self) -> float:
        """What it truly has to do."""
        return self.job.duration * self.job.devices * self.job.used


@dataclass(eq=False)
class Flow:
    """A transfer of so many bits that are left, or the exchange of a job, which has no end of its own."""

    link: Link
    wish: float = inf
    left: float = inf
    owner: Running | None = None
    rate: float = 0.0


@dataclass
class Copy:
    """A whole copy: how many use it, and until when it stays once nobody does."""

    users: int = 0
    until: float = 0.0


def fair(offered: float, wishes: Sequence[float]) -> list[float]:
    """Max-min fair rates of flows on one link, none beyond its wish."""
    rates, left = [0.0] * len(wishes), offered
    order = sorted(range(len(wishes)), key=lambda place: wishes[place])
    for passed, place in enumerate(order):
        rates[place] = min(wishes[place], left / (len(order) - passed))
        left -= rates[place]
    return rates


def direct(network: Network) -> bool:
    """Whether no way over a third domain has a shorter round trip than the link between two."""
    trip, places = network.round_trip, range(len(network.round_trip))
    return all(trip[a][b] <= trip[a][c] + trip[c][b] for a in places for b in places for c in places)


def gain(devices: float, serial: float) -> float:
    """Speed of so many devices over that of one."""
    return devices / (1 + serial * (devices - 1))


class Federation:
    """A window as it is played; ``ended`` says when jobs did, by their identity."""

    def __init__(self, window: Window) -> None:
        assert direct(window.network)
        self.window, self.now = window, 0.0
        self.free = [pool.devices for pool in window.pools]
        self.running: dict[int, Running] = {}
        self.ended: dict[int, float] = {}
        order, places = window.network.round_trip, range(len(window.pools))
        self.nearest = [
            sorted((other for other in places if other != home), key=lambda other: (order[home][other], other))
            for home in places
        ]
        self._links = [(a, b) for a in places for b in places if a != b]
        self._flows: dict[Link, list[Flow]] = {link: [] for link in self._links}
        self._settled, self._versions = dict.fromkeys(self._links, 0.0), dict.fromkeys(self._links, 0)
        self._touched: set[Link] = set()
        self._copies: dict[int, dict[int, Copy]] = {}
        self._under_way: dict[tuple[int, int], tuple[Flow, list[Running]]] = {}
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._count = 0
        self._available: tuple[float, dict[Link, float]] = (-inf, {})
        self._alone: dict[tuple[int, Holding, float], float] = {}

    def able(self, job: Job, domain: int) -> bool:
        """Whether its devices have the memory that the job needs."""
        return self.window.pools[domain].memory >= job.memory

    def available(self) -> dict[Link, float]:
        """Bits a second that one more flow may hope for, as it was when first asked at this instant."""
        if self._available[0] != self.now:
            offered = self.window.network.bandwidth
            hopes = {link: offered(*link, self.now) / (1 + len(self._flows[link])) for link in self._links}
            self._available = self.now, hopes
        return self._available[1]

    def alone(self, job: Job, holding: Holding, used: float) -> float:
        """Work a second on these devices with so much of them busy, were nothing exchanged between domains."""
        key = id(job), holding, used
        if key not in self._alone:
            self._alone[key] = self._unexchanged(job, holding, used)
        return self._alone[key]

    def least(self, job: Job, holding: Holding) -> float:
        """Seconds that the job is expected to hold these devices at least: with its data there and a free network."""
        return job.stated * job.devices / self.alone(job, holding, 1.0)

    def _unexchanged(self, job: Job, holding: Holding, used: float) -> float:
        pools = self.window.pools
        devices = sum(held for _, held in holding)
        index = sum(held * pools[domain].index[job.profile] for domain, held in holding) / devices
        maximum = 2 * job.devices if job.minimum < job.devices else job.devices
        held, busy = min(devices, maximum), used * job.devices
        return index * busy * gain(min(held, used * max(held, job.devices)), job.serial) / gain(busy, job.serial)

    def rate(self, job: Job, holding: Holding, used: float, granted: float | None = None) -> float:
        """The same with exchanges, where the slowest flow has so many bits a second, or what is available."""
        rate = self.alone(job, holding, used)
        if len(holding) == 1:
            return rate
        if granted is None:
            granted = min(self.available()[link] for link in _ring(holding))
        work, domains = used * job.devices * job.step, len(holding)
        step = work / rate
        lasts = PERIOD * step + max(0.0, _bits(job, domains) / granted + self._trip(holding) - HIDING * step)
        tokens = (1 + 0.0240 * (domains - 1) ** 0.818 * log(1 + PERIOD / 18.4)) ** (1 / 0.3658)
        return float(PERIOD * work / (tokens * lasts))

    def staging(self, job: Job, holding: Holding) -> float:
        """Seconds until its data are whole in each of its domains, with what is available."""
        lies, available = self._whole(job.data), self.available()
        return max(
            0.0 if domain in lies else 8 * job.size / max(available[at, domain] for at in lies) for domain, _ in holding
        )

    def seconds(self, job: Job, holding: Holding) -> float:
        """How long the job is expected to hold these devices if it were given them now."""
        return self.staging(job, holding) + job.stated * job.devices / self.rate(job, holding, 1.0)

    def start(self, job: Job, holding: Holding) -> None:
        """Give a job its devices, and have sent there what it needs."""
        ready, rate = self.now + self.staging(job, holding), self.rate(job, holding, 1.0)
        run = self.running[id(job)] = Running(job, holding, ready, rate)
        whole = self._whole(job.data)
        for domain, held in holding:
            self.free[domain] -= held
            if domain in whole:
                self._use(job, domain)
            else:
                self._fetch(run, domain, whole)
        if not run.missing:
            self._begin(run)

    def advance(self, until: float) -> None:
        """Let everything happen up to an instant."""
        self._share()
        while self._events and self._events[0][0] <= until:
            self.now, _, happen, what = heapq.heappop(self._events)
            happen(*what)
            if not (self._events and self._events[0][0] == self.now):
                self._share()
        self.now = until

    def left(self, job: Job) -> float:
        """Seconds that a job which holds devices goes on for at its pace."""
        run = self.running[id(job)]
        done = run.done + run.rate * (self.now - run.since) if run.runs else 0.0
        return (run.work - done) / (run.rate if run.runs else self.rate(job, run.holding, job.used))

    def _plan(self, instant: float, happen: Callable[..., None], *what: object) -> None:
        self._count += 1
        heapq.heappush(self._events, (instant, self._count, happen, what))

    def _whole(self, data: int) -> list[int]:
        """Domains that hold a whole copy, in order."""
        copies = self._copies.get(data, {})
        stay = {domain for domain, copy in copies.items() if copy.users or copy.until >= self.now}
        return sorted({self.window.lies[data], *stay})

    def _use(self, job: Job, domain: int) -> None:
        self._copies.setdefault(job.data, {}).setdefault(domain, Copy()).users += 1

    def _fetch(self, run: Running, domain: int, whole: Sequence[int]) -> None:
        job, available = run.job, self.available()
        run.missing += 1
        if (job.data, domain) not in self._under_way:
            source = max(whole, key=lambda at: (available[at, domain], -at))
            flow = Flow((source, domain), left=8 * job.size)
            self._under_way[job.data, domain] = flow, []
            self._open(flow)
        self._under_way[job.data, domain][1].append(run)

    def _arrived(self, flow: Flow) -> None:
        data, domain = next(key for key, (sent, _) in self._under_way.items() if sent is flow)
        _, waiting = self._under_way.pop((data, domain))
        self._close(flow)
        for run in waiting:
            self._use(run.job, domain)
            run.missing -= 1
            if not run.missing:
                self._begin(run)

    def _begin(self, run: Running) -> None:
        """The first step."""
        job, holding = run.job, run.holding
        run.runs, run.since = True, self.now
        if len(holding) == 1:
            self._pace(run, self.rate(job, holding, job.used))
            return
        run.rate = self.rate(job, holding, job.used, inf)
        step = job.used * job.devices * job.step / self.alone(job, holding, job.used)
        spare = HIDING * step - self._trip(holding)
        wish = _bits(job, len(holding)) / spare if spare > 0 else inf
        run.flows = [Flow(link, wish, owner=run) for link in _ring(holding)]
        for flow in run.flows:
            self._open(flow)

    def _trip(self, holding: Holding) -> float:
        """Seconds of an exchange beside what its bits take."""
        return (len(holding) - 1) * max(float(self.window.network.round_trip[a][b]) for a, b in _ring(holding))

    def _pace(self, run: Running, rate: float) -> None:
        """From now on a job goes on at this rate."""
        run.done += run.rate * (self.now - run.since)
        run.since, run.rate, run.version = self.now, rate, run.version + 1
        self._plan(self.now + max(run.work - run.done, 0.0) / rate, self._end, run, run.version)

    def _end(self, run: Running, version: int) -> None:
        if run.version != version:
            return
        for flow in run.flows:
            self._close(flow)
        for domain, held in run.holding:
            self.free[domain] += held
            copy = self._copies[run.job.data][domain]
            copy.users, copy.until = copy.users - 1, self.now + KEPT
        del self.running[id(run.job)]
        self.ended[id(run.job)] = self.now

    def _open(self, flow: Flow) -> None:
        self._settle(flow.link)
        self._flows[flow.link].append(flow)

    def _close(self, flow: Flow) -> None:
        self._settle(flow.link)
        self._flows[flow.link].remove(flow)

    def _settle(self, link: Link) -> None:
        """Account for what flows of a link have moved; it is shared anew at the end of this instant."""
        for flow in self._flows[link]:
            flow.left -= flow.rate * (self.now - self._settled[link])
        self._settled[link] = self.now
        self._touched.add(link)

    def _share(self) -> None:
        """Share anew the links of which something has changed."""
        repaced: dict[Running, None] = {}
        for link in sorted(self._touched):
            flows, self._versions[link] = self._flows[link], self._versions[link] + 1
            if not flows:
                continue
            network = self.window.network
            rates = fair(network.bandwidth(*link, self.now), [flow.wish for flow in flows])
            for flow, rate in zip(flows, rates, strict=True):
                if flow.owner and rate != flow.rate:
                    repaced[flow.owner] = None
                flow.rate = rate
            through = [self.now + flow.left / flow.rate for flow in flows if flow.owner is None]
            self._plan(min([network.changes(link[0], self.now), *through]), self._look, link, self._versions[link])
        self._touched.clear()
        for run in repaced:
            slowest = min(flow.rate for flow in run.flows)
            self._pace(run, self.rate(run.job, run.holding, run.job.used, slowest))

    def _look(self, link: Link, version: int) -> None:
        """A transfer is through, or the link offers something else."""
        if version != self._versions[link]:
            return
        self._settle(link)
        for flow in [flow for flow in self._flows[link] if flow.owner is None and flow.left <= THROUGH * flow.rate]:
            self._arrived(flow)


def _ring(holding: Holding) -> list[Link]:
    return [(holding[place][0], holding[(place + 1) % len(holding)][0]) for place in range(len(holding))]


def _bits(job: Job, domains: int) -> float:
    """What each domain sends to the next one for an exchange."""
    return 8 * 2 * (domains - 1) / domains * job.exchange
