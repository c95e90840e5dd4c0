"""A policy in a scenario, as the KPIs are measured: cohort by cohort, job by job; and pictures of what it did.

    window_cohort = cohort(scenario)
    played = {name: play_window(scenario, policy(), name, window_cohort) for name, policy in BASELINES.items()}

1. **Warm start.** Every policy decides from the beginning of the scenario: B1 would leave fast devices idle that are
   not at home, and whoever took over from it would do better at first than in the end.
2. **Cohort.** Jobs that are submitted in the window are its cohort, and each of them is scored. Two policies in the
   same scenario have the same cohort, in the same order.
3. **Drain.** Arrivals go on while the cohort drains, so that its last jobs have neighbours like its first, until all of
   it is finished or the scenario ends.
4. **Imputed.** What is then left of a job goes on at the pace of the devices that it was given last, or, if it was
   never given any, of the pool with room for it that is fastest for it under this policy (:meth:`World.pace`).
5. **Sums.** What no attribute of :class:`WindowResult` says otherwise of is about the time of the window.
6. **Trajectory.** How a run stands at instants, and who held what in the end, to be looked at.
7. **Pictures.** Who held which domain when, how much of it was held and did work, who waited, what links carried. Each
   is a plot of a report. A picture of who held what is a graph, whose lines are jobs: time runs across, and up stand
   the domains one above the other, each as high as jobs side by side need; a dot is where a job begins.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np

from kuayu_conformance.testbed.scheduling.baselines import (
    DominantResourceFairness,
    EarliestCompletion,
    FirstToAdmit,
    Goodput,
    HomeBackfill,
    HomeFifo,
    ShortestRemainingTime,
    WeighedCompletion,
)
from kuayu_conformance.testbed.scheduling.bounds import Needs, capacity, needs
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.state import Gauges, Outcome, Phase, Record
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import play
from kuayu_conformance.testbed.scheduling.scenarios import Scenario
from kuayu_conformance.testbed.scheduling.values import Job, JobKind, Site
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot

FLOOR = 600.0
"""Seconds that a job counts as taking at least when it is said how much it was slowed down."""
BASELINES: Mapping[str, Callable[[], Policy]] = MappingProxyType(
    {
        "B0": HomeFifo,
        "B1": HomeBackfill,
        "B2": FirstToAdmit,
        "B3": EarliestCompletion,
        "B3c": WeighedCompletion,
        "B4": Goodput,
    }
)
"""Policies that every other is compared with; a new one for each scenario."""
LITERATURE: Mapping[str, Callable[[], Policy]] = MappingProxyType(
    {"SRTF": ShortestRemainingTime, "DRF": DominantResourceFairness}
)
"""Policies that the literature compares with, for tables beside the baselines; no check plays them."""
_STEP = 3_600.0
"""Seconds after which it is seen whether the cohort is through."""
HOUR, DAY, GIGABIT = 3_600.0, 86_400.0, 1e9
Bar = tuple[float, float, int]
"""When devices were given to a job and when they were given back, hours, and the lane in which it is drawn."""
_LINKS = "links"
_GAP_LANES = 3
"""Lanes between two domains."""
_ASPECT = 1.0
"""Height of a picture of who held what, over its width."""


@dataclass(frozen=True, slots=True)
class JobScore:
    """What became of a job of the cohort.

    Attributes:
        kind: What it does.
        devices: Devices that were asked for.
        submitted: Seconds since the scenario began.
        period: Seconds from submission to end; with ``imputed`` if it is not finished.
        imputed: Seconds of it that nobody has seen: what is left takes so long at the pace that the policy gave it.
        finished: Whether it is.
        alone: Least seconds that it takes anywhere, alone and with its data at hand.
        work: What it truly takes, in device seconds of the reference device.
        done: What of that is done and not lost.
        money: For the bandwidth that it occupied, from submission on.
        larger: Whether it asks for more devices than any pool of its home has.
        spanning: Whether it ever held devices of several domains at once.
        lived_seconds: Seconds from its first step to its end, or that of the scenario.
        interrupted_seconds: Those of them in which it did not run: it was stopped or moved, or a node had failed.
    """

    kind: JobKind
    devices: int
    submitted: float
    period: float
    imputed: float
    finished: bool
    alone: float
    work: float
    done: float
    money: float
    larger: bool
    spanning: bool
    lived_seconds: float
    interrupted_seconds: float

    @property
    def slowdown(self) -> float:
        """Bounded slowdown: its period over what it takes alone, or over ten minutes if that is less; at least one.

        D. G. Feitelson, L. Rudolph, U. Schwiegelshohn, K. C. Sevcik, P. Wong, "Theory and practice in parallel job
        scheduling", JSSPP 1997.
        """
        return max(1.0, self.period / max(self.alone, FLOOR))


@dataclass(frozen=True, slots=True)
class WindowResult:
    """What a policy reached in a scenario. What no attribute says otherwise of is about the time of the window.

    Attributes:
        policy: Its name.
        jobs: The cohort, in the order of submission.
        seconds: Length of the window.
        money: For bandwidth that was occupied, by all jobs.
        money_of_spanning: That part of it which jobs occupied that had held devices of several domains at once.
        price: For devices that were held, at the list price on demand.
        bits: Integral of the occupied bandwidth over all links.
        work: Work that was done and not lost, in device seconds of the reference device.
        work_of_spanning: That part of it which these jobs did.
        capacity: Work that a linear programme says the domains could have done, of jobs in the mix that was offered in
            the window.
        queued_before: Work waiting at the beginning of the window, in days of that capacity.
        queued: The same at its end.
        migrations: How often a job was moved to other devices, or to more or fewer.
        forced_stops: How often a job was stopped, moves and failures of nodes aside.
        failures: How often a node failed under a job.
        job_hours: Hours that jobs held devices, summed up over jobs.
        decisions: Epochs at which the policy was asked, from the beginning of the window to the end of the scenario.
        refusals: Its orders that could not be carried out, likewise.
        bad_answers: Its answers that were none, likewise.
    """

    policy: str
    jobs: tuple[JobScore, ...]
    seconds: float
    money: float
    money_of_spanning: float
    price: float
    bits: float
    work: float
    work_of_spanning: float
    capacity: float
    queued_before: float
    queued: float
    migrations: int
    forced_stops: int
    failures: int
    job_hours: float
    decisions: int
    refusals: int
    bad_answers: int

    @property
    def unfinished(self) -> int:
        """Jobs of the cohort whose period is imputed in part."""
        return sum(not job.finished for job in self.jobs)

    @property
    def utilisation(self) -> float:
        """Work over capacity."""
        return self.work / self.capacity

    def as_json(self) -> dict[str, Any]:
        """The same as a JSON value; ``window_result_of`` reads it."""
        return asdict(self)


def window_result_of(value: Mapping[str, Any]) -> WindowResult:
    """What ``as_json`` has written.

    Raises:
        KeyError: A member is missing.
        TypeError: There is one that is not known.
    """
    jobs = tuple(JobScore(**{**job, "kind": JobKind(job["kind"])}) for job in value["jobs"])
    return WindowResult(**{**value, "jobs": jobs})


@dataclass(frozen=True, slots=True)
class Cohort:
    """Jobs that are scored, and what is known of them whatever the policy does.

    Attributes:
        jobs: Numbers of the first of them and of the one after the last, in the order of submission.
        shortest: Least seconds of each.
        shortest_requested: The same on what it asks for.
        offered: What all jobs need that would run in the window if each started at once on what it asks for, with the
            work that they would do in it; domains that are slow in practice are slow.
    """

    jobs: tuple[int, int]
    shortest: Floats
    shortest_requested: Floats
    offered: Needs


def cohort(scenario: Scenario) -> Cohort:
    """Jobs of a scenario that are submitted in its window.

    Raises:
        ValueError: There are none.
    """
    timing = scenario.timing
    submitted = [job.submitted for job in scenario.workload.jobs]
    first, beyond = (int(np.searchsorted(submitted, when)) for when in (timing.begin, timing.end))
    if first == beyond:
        raise ValueError("no job is submitted in the window")
    jobs, parts = scenario.workload.jobs[first:beyond], (scenario.topology, scenario.workload, scenario.law)
    shortest, requested = (needs(*parts, jobs, expanding=expanding).shortest for expanding in (True, False))
    return Cohort((first, beyond), shortest, requested, _offered(scenario, scenario.workload.jobs[:beyond]))


def play_window(scenario: Scenario, policy: Policy, name: str, window_cohort: Cohort | None = None) -> WindowResult:
    """Let a policy decide in a scenario, and score it.

    Args:
        scenario: Where.
        policy: A new one; how many answers were none is its attribute ``bad_answers``, if it has one.
        name: What it is called.
        window_cohort: The cohort, if it is at hand already.

    Raises:
        ValueError: No job is submitted in the window.
    """
    window_cohort = window_cohort or cohort(scenario)
    timing, world = scenario.timing, scenario.world()
    play(world, policy, timing.begin)
    before = world.outcome()
    play(world, policy, timing.end)
    after = world.outcome()
    while not world.finished(*window_cohort.jobs) and world.now < timing.horizon:
        first = timing.counted if world.now < timing.counted else timing.horizon
        play(world, policy, min(world.now + _STEP, first), timing.epoch(world.now))
    paces = {
        number: world.pace(number) for number in range(*window_cohort.jobs) if not world.finished(number, number + 1)
    }
    books = _Books(scenario, window_cohort, before, after, world.outcome(), paces)
    return books.closed(name, int(getattr(policy, "bad_answers", 0)))


def _offered(scenario: Scenario, jobs: Sequence[Job]) -> Needs:
    timing = scenario.timing
    seconds = [job.work / (job.requested * job.used) for job in jobs]
    inside = [
        min(job.submitted + lasts, timing.end) - max(job.submitted, timing.begin)
        for job, lasts in zip(jobs, seconds, strict=True)
    ]
    present = [number for number, lasts in enumerate(inside) if lasts > 0.0]
    present_needs = needs(scenario.topology, scenario.workload, scenario.law, [jobs[number] for number in present])
    work = np.array([inside[number] * jobs[number].requested * jobs[number].used for number in present])
    slow = np.array([scenario.disturbances.slow.get(name, 1.0) for name, _ in present_needs.places.pools])
    return Needs(
        present_needs.places, present_needs.submitted, work, present_needs.rates * slow, present_needs.shortest
    )


@dataclass(frozen=True, slots=True)
class _Books:
    """What had become of a scenario at the beginning of the window, at its end, and at the end of all.

    ``paces`` is work a second by the number of each job of the cohort that is not finished.
    """

    scenario: Scenario
    cohort: Cohort
    before: Outcome
    after: Outcome
    last: Outcome
    paces: Mapping[int, float]

    def closed(self, name: str, bad: int) -> WindowResult:
        """All sums."""
        before, after, timing = self.before, self.after, self.scenario.timing
        throughput = self._throughput()
        spanning = [_spanned(record) for record in after.jobs]
        money, done = self._grown("money"), self._grown("done")
        moves = self._grown("moves").sum()
        prices = np.array([pool.prices.get("on-demand", 0.0) for site in self._sites for pool in site.pools])
        return WindowResult(
            policy=name,
            jobs=tuple(self._score(number) for number in range(*self.cohort.jobs)),
            seconds=timing.window,
            money=float((after.money - before.money).sum()),
            money_of_spanning=float(money[spanning].sum()),
            price=float(((after.occupied - before.occupied) * prices).sum() / HOUR),
            bits=float((after.bits - before.bits).sum()),
            work=float((after.work - before.work).sum()),
            work_of_spanning=float(done[spanning].sum()),
            capacity=throughput * timing.window,
            queued_before=self._waiting(before) / (throughput * DAY),
            queued=self._waiting(after) / (throughput * DAY),
            migrations=int(moves),
            forced_stops=int(self._grown("stops").sum() - moves),
            failures=int(self._grown("failures").sum()),
            job_hours=sum(_held_seconds(record, timing.begin, timing.end) for record in after.jobs) / HOUR,
            decisions=self.last.decisions - before.decisions,
            refusals=self.last.refusals - before.refusals,
            bad_answers=bad,
        )

    @property
    def _sites(self) -> tuple[Site, ...]:
        return self.scenario.topology.sites

    def _throughput(self) -> float:
        """Work a second that a linear programme says is feasible with the devices that worked on average."""
        passed = self.after.instant - self.before.instant
        available = (self.after.available - self.before.available) / passed if passed > 0.0 else None
        return capacity(self.cohort.offered, available).throughput

    def _grown(self, what: str) -> Floats:
        """By how much a figure of each job has grown in the window."""
        grown = np.array([float(getattr(record, what)) for record in self.after.jobs])
        grown[: len(self.before.jobs)] -= [float(getattr(record, what)) for record in self.before.jobs]
        return grown

    def _waiting(self, outcome: Outcome) -> float:
        """Work that waits."""
        jobs = self.scenario.workload.jobs
        left = (
            job.work - record.done
            for job, record in zip(jobs, outcome.jobs, strict=False)
            if record.phase is Phase.PENDING
        )
        return sum(left)

    def _score(self, number: int) -> JobScore:
        job, record = self.scenario.workload.jobs[number], self.last.jobs[number]
        place, finished = number - self.cohort.jobs[0], record.finished < inf
        imputed = 0.0
        if not finished:
            left = job.work - record.done
            pace = self.paces[number]
            imputed = left / pace if pace > 0.0 else left / job.work * float(self.cohort.shortest[place])
        home = next(site for site in self._sites if site.name == job.home)
        lived, ran = _lived(record, self.last.instant)
        return JobScore(
            kind=job.kind,
            devices=job.requested,
            submitted=job.submitted,
            period=(record.finished if finished else self.last.instant + imputed) - job.submitted,
            imputed=imputed,
            finished=finished,
            alone=float(self.cohort.shortest_requested[place]),
            work=job.work,
            done=record.done,
            money=record.money,
            larger=job.requested > max(pool.devices for pool in home.pools),
            spanning=_spanned(record),
            lived_seconds=lived,
            interrupted_seconds=lived - ran,
        )


def _spanned(record: Record) -> bool:
    return any(len(period.placement.shares) > 1 for period in record.periods)


def _held_seconds(record: Record, since: float, until: float) -> float:
    """Seconds for which a job held devices between two instants."""
    return sum(max(0.0, min(period.end, until) - max(period.begin, since)) for period in record.periods)


def _lived(record: Record, until: float) -> tuple[float, float]:
    """Seconds from the first step of a job to its end, or to an instant, and those of them in which it ran."""
    ran = [(period.running, min(period.stopped, until)) for period in record.periods if period.running < inf]
    if not ran:
        return 0.0, 0.0
    return min(record.finished, until) - ran[0][0], sum(end - begin for begin, end in ran)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A run.

    Attributes:
        scenario: Where it was.
        policy: Who decided.
        frames: How it stood, from the beginning of the scenario on; at least two.
        outcome: What had become of it at the end.
    """

    scenario: Scenario
    policy: str
    frames: tuple[Gauges, ...]
    outcome: Outcome


def recorded(scenario: Scenario, policy: Policy, name: str, step: float = 600.0) -> Trajectory:
    """Let a policy decide up to the end of the window, and watch.

    Watching changes nothing.

    Args:
        scenario: Where.
        policy: A new one.
        name: What it is called.
        step: Seconds between frames, a whole number of minutes.
    """
    world, timing = scenario.world(), scenario.timing
    frames = [world.gauges()]
    while world.now < timing.end and not world.over:
        play(world, policy, min(world.now + step, timing.end))
        frames.append(world.gauges())
    return Trajectory(scenario, name, tuple(frames), world.outcome())


def pictures(trajectory: Trajectory) -> tuple[ReportPlot, ...]:
    """All of them."""
    return gantt(trajectory), utilisation(trajectory), queue(trajectory), traffic(trajectory)


def gantt(trajectory: Trajectory) -> ReportPlot:
    """Who held devices of which domain when."""
    hours = trajectory.outcome.instant / HOUR
    rows = bars(trajectory)
    lanes = sum(max((lane for _, _, lane in periods), default=0) + _GAP_LANES for periods in rows.values())
    height = _ASPECT * hours / max(lanes, 1)
    series, ends, base = [], list[tuple[float, float]](), 0
    for name, periods in rows.items():
        dots = [(begin, height * (base + lane)) for begin, _, lane in periods]
        for (begin, end, _), (_, up) in zip(periods, dots, strict=True):
            ends += [(begin, up), (end, up)]
        series.append(_series(name, dots))
        base += max((lane for _, _, lane in periods), default=0) + _GAP_LANES
    title = f"Jobs that held devices of each domain under {trajectory.policy}, over {hours:.0f} h"
    return _report_plot(PlotKind.graph, title, "Time", "Jobs by domain", [_series(_LINKS, ends), *series])


def bars(trajectory: Trajectory) -> Mapping[str, list[Bar]]:
    """The same as figures, by domain, in the order of begins; jobs that overlap are in different lanes."""
    intervals: dict[str, list[tuple[float, float]]] = {site.name: [] for site in trajectory.scenario.topology.sites}
    for record in trajectory.outcome.jobs:
        for period in record.periods:
            for share in period.placement.shares:
                intervals[share.site].append((period.begin / HOUR, min(period.end, trajectory.outcome.instant) / HOUR))
    return {name: _laned(sorted(periods)) for name, periods in intervals.items()}


def utilisation(trajectory: Trajectory) -> ReportPlot:
    """Share of the devices of each domain that was held, and work of all over time."""
    sites = trajectory.scenario.topology.sites
    series = []
    for site, pools in zip(sites, _pool_slices(sites), strict=True):
        shares = [
            (after.occupied[pools].sum() - before.occupied[pools].sum())
            / max(after.available[pools].sum() - before.available[pools].sum(), 1e-9)
            for before, after in pairwise(trajectory.frames)
        ]
        series.append(_series(site.name, zip(_middle_hours(trajectory), shares, strict=True)))
    title = f"Share of the devices of each domain that jobs held under {trajectory.policy}"
    return _report_plot(PlotKind.lines, title, "Time, h", "Share", series)


def queue(trajectory: Trajectory) -> ReportPlot:
    """How many jobs waited, and how many devices they asked for."""
    jobs = [(frame.instant / HOUR, frame.waiting) for frame in trajectory.frames]
    devices = [(frame.instant / HOUR, frame.devices) for frame in trajectory.frames]
    title = f"What waited under {trajectory.policy}"
    return _report_plot(
        PlotKind.lines, title, "Time, h", "Number", [_series("jobs", jobs), _series("devices", devices)]
    )


def traffic(trajectory: Trajectory) -> ReportPlot:
    """What each domain received from others on average between frames."""
    links = trajectory.scenario.topology.links
    series = []
    for site in trajectory.scenario.topology.sites:
        into = np.array([link.target == site.name for link in links], dtype=np.bool_)
        rates = [
            (after.bits[into].sum() - before.bits[into].sum()) / (after.instant - before.instant) / GIGABIT
            for before, after in pairwise(trajectory.frames)
        ]
        series.append(_series(site.name, zip(_middle_hours(trajectory), rates, strict=True)))
    title = f"Traffic on the links that lead to each domain under {trajectory.policy}"
    return _report_plot(PlotKind.lines, title, "Time, h", "Gbit/s", series)


def _laned(intervals: Iterable[tuple[float, float]]) -> list[Bar]:
    """A lane for each, the lowest that is free; in the order of begins."""
    free, busy, used = list[int](), list[tuple[float, int]](), 0
    laned = []
    for begin, end in intervals:
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            used += 1
            lane = used
        heapq.heappush(busy, (end, lane))
        laned.append((begin, end, lane))
    return laned


def _pool_slices(sites: Iterable[Site]) -> list[slice]:
    """Places of the pools of each domain among all."""
    ends = np.cumsum([0, *(len(site.pools) for site in sites)]).tolist()
    return [slice(begin, end) for begin, end in pairwise(ends)]


def _middle_hours(trajectory: Trajectory) -> list[float]:
    return [(before.instant + after.instant) / 2 / HOUR for before, after in pairwise(trajectory.frames)]


def _series(label: str, points: Iterable[tuple[float, float]]) -> PlotSeries:
    pairs = [(float(x), float(y)) for x, y in points if x < inf and y < inf]
    return PlotSeries(label=label, x=[x for x, _ in pairs], y=[y for _, y in pairs])


def _report_plot(kind: PlotKind, title: str, x_label: str, y_label: str, series: list[PlotSeries]) -> ReportPlot:
    return ReportPlot(title=title, kind=kind, x_label=x_label, y_label=y_label, series=series)
