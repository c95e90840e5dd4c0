"""How fast a job is by a policy, and windows of about ten minutes in which load and latency change while jobs run.

1. **Division.** The parts of a step are divided among domains so that the slowest domain takes least.
2. **Law.** The one of the clause: a domain of load ``l`` takes parts · part time / (1 - l) for its parts of a step, the
   slowest one counts, and exchanges are those of :mod:`kuayu_conformance.testbed.collectives`, whose formulas
   stand here once more because steps vary over time. More seconds for the parts never make a job faster, whatever the
   collective, so that the best division, the best order and the best collective are found one after the other.
3. **Levels.** The level of a load or a latency now is the median of its last values; :class:`Motion` says whether it
   has changed.
4. **Requests.** :func:`levels` and :func:`jobs` take from a valid request what the law needs.
5. **Events.** Loads rise and fall, latencies rise and fall back. Events are ``APART_S`` apart: long enough that a
   service which stages its changes over some windows is through with one before the next begins, and irregular, so that
   nobody can foresee them. What they change by is what the sentence names, and more: a load by 25 to 80 % of itself, a
   latency to 1.6 to 10 times of what it was. Loads stay within ``BOUNDS``: above 0.65, a load that is off by the tenth
   that counts as calm takes a tenth of the speed of a job of two domains, and more of one of several, and nobody may do
   anything about it then. An adjuster that divides parts by what was measured last, and not by a level that is still on
   its way, is not off by so much.
6. **Jobs.** They run over two domains or more, and load or latency is what counts for them. Sizes are assumptions of
   ours. Half of the jobs are anything: steps of 0.5 to 4 s, 1 to 8 nodes in each domain, and 0.2 to 20 GB to exchange,
   0.1 to 10 billion parameters at two bytes each. The other half exchange little over many nodes and make short steps,
   so that latency decides by which collective they are quick. A step has 64 to 256 parts, so that a division can be as
   fine as some per cent. That a part takes 20 to 80 ms to move and a switch 0.1 to 0.8 s makes all changes at once more
   than a tenth of a window now and then, and no single switch as much as that: whoever spreads them can keep the
   allowance.
7. **Windows.** Three to five domains have links to each other. Loads wander slowly by 2 % of themselves; what is
   measured of loads and latencies is the mean of an interval, off by 1.5 %, and now and then a spike of one interval
   that nothing stands behind. As all is drawn, half of the changes of load and a quarter of the rises of latency take
   more than a tenth of the speed of some job whose policy was the best before; who agrees but rarely feels little of
   latency.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property, lru_cache
from itertools import permutations
from math import ceil, log
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, normal, stream
from kuayu_conformance.testbed.collectives import HIERARCHICAL, METHODS, RING, Method, turned
from kuayu_conformance.testbed.elementary import exponential, wave
from kuayu_conformance.testbed.scheduling.law import PUBLISHED, penalty

if TYPE_CHECKING:
    from kuayu_schemas import documents

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
ALL_ORDERS = 7
"""Domains up to which all rings are tried; of more, those that go on to the nearest domain that is left."""
LOAD_CHANGED, LOAD_CALM = 0.2, 0.1
LATENCY_CHANGED, LATENCY_CALM = 0.5, 0.25
"""Of the stated level: from where it counts as a change, and below which it is calm."""
HAIR = 1e-9
"""Of a level: at the very edge, either is right."""

CELL_S = 0.5
"""Seconds for which load and latency stay as they are; everything that happens does so at the begin of such a cell."""
RISE, FALL, SLOW, QUICK = "load rises", "load falls", "latency rises", "latency falls back"
KINDS = (RISE, FALL, SLOW)
"""Those that are judged."""
JUDGED = 5
"""Judged events of a window."""
APART_S = (60.0, 120.0)
BEGINS, BOUNDS = (0.25, 0.6), (0.15, 0.65)
"""Loads at the beginning, and at any time."""
BY, RAMP_S = (0.25, 0.8), 10.0
"""Part of itself by which a load changes; the longest that takes, half of the time; else it takes none."""
SLOWED = (1.6, 10.0)
"""Times a latency, of the links from and to a domain."""
JOBS = (1, 2, 3, 4)
STEPS_S, SHORT_S = (0.5, 4.0), (0.5, 1.5)
"""Of a step without load, had all domains as many parts; of jobs for which latency counts."""
EXCHANGES, SMALL, SMALL_SHARE = (0.2e9, 20e9), (0.2e9, 1e9), 0.5
NODES, MANY = (1, 8), (4, 8)
PARTS = (64, 256)
NODE_BANDWIDTHS, NODE_LATENCY_S = (25e9, 100e9, 200e9), 1e-5
UNEVEN = 1.5
"""Times the time of a part in the quickest domain, in the slowest."""
MOVES_S, SWITCHES_S = (0.02, 0.08), (0.1, 0.8)
DOMAINS = (3, 4, 5)
INTERVAL_S, PATIENCE_S = 2.0, 10.0
PAST = 60
"""Intervals that are told of; so many were measured before the beginning, too."""
WINDOW_S, ALLOWANCE = 10.0, 0.1
BANDWIDTHS, LATENCIES_S = (1e9, 40e9), (0.002, 0.06)
"""Of links, bit/s and s; the logarithms of both are uniform."""
WANDERS, TURNS_S = (0.012, 0.008), (80.0, 400.0)
"""Waves whose sum a load wanders by, parts of itself; seconds of a turn."""
NOISE = 0.015
SPIKES_APART_S = 200.0
"""Seconds from one spike of a measured load or latency to the next, on average over each kind."""
LOAD_SPIKE, LATENCY_SPIKE = 1.6, 4.0
_LATENCY_SHARE, _BACK_SHARE, _RAMP_SHARE = 0.4, 0.5, 0.5
_CELLS = round(INTERVAL_S / CELL_S)


def divided(per_part: Floats, total: int) -> tuple[Whole, Floats]:
    """The division whose slowest domain takes least, and what that takes; ``(T, D)`` and ``(T,)``.

    One part more goes where it ends soonest, again and again; what fits into the time of an undivided optimum is there
    before the rest, so that no more than a part for each domain is left to be given one by one.

    Args:
        per_part: Seconds of a part in each domain, more than zero, ``(T, D)``; infinite where others take all.
        total: Parts, no fewer than domains; each domain gets one at least.
    """
    fastest = np.where(np.isfinite(per_part), 1.0 / per_part, 0.0)
    parts = np.ones(per_part.shape, dtype=np.int64)
    free = np.ones(per_part.shape, dtype=bool)  # domains that get more than the one part that each has to have
    for _ in range(per_part.shape[1]):
        left = total - (~free).sum(axis=1)
        speed = np.where(free, fastest, 0.0).sum(axis=1)
        share = np.divide(left, speed, out=np.zeros(len(left)), where=speed > 0.0)[:, None] * fastest
        free &= share > 1.0
        parts = np.where(free, np.floor(share).astype(np.int64), 1)
    rows = np.arange(len(parts))
    for _ in range(per_part.shape[1]):
        short = parts.sum(axis=1) < total
        soonest = ((parts + 1) * per_part).argmin(axis=1)
        parts[rows, soonest] += short
    parts[:, 0] += total - parts.sum(axis=1)  # where others take all of every domain, and no division is better
    return parts, (parts * per_part).max(axis=1)


@dataclass(frozen=True, slots=True)
class Policy:
    """How a job runs.

    Attributes:
        parts: Parts of a step that each of its domains computes, in the order of its shares.
        method: How replicas agree.
        order: Its domains in the order of the ring, as places among its shares.
    """

    parts: tuple[int, ...]
    method: Method
    order: tuple[int, ...]

    def moved(self, other: "Policy") -> int:
        """Parts that come to another domain on the way to another policy."""
        return sum(max(0, new - old) for old, new in zip(self.parts, other.parts, strict=True))

    def switches(self, other: "Policy") -> bool:
        """Whether that has another collective, period, or order, wherever the ring begins."""
        return self.method != other.method or turned(self.order) != turned(other.order)

    def is_like(self, other: "Policy") -> bool:
        """Whether to change from one to the other changes nothing."""
        return self.parts == other.parts and not self.switches(other)


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What does not change about a job while it runs; ``D`` is the number of its domains.

    Attributes:
        part_times: Seconds that each domain takes for a part while nobody else takes anything of it, ``(D,)``.
        nodes: In each domain.
        node_bandwidth: Bits a second from a node to another of its domain.
        node_latency: Seconds of a message there.
        exchange: Bytes that all replicas sum up.
        bandwidth: Bits a second from domain to domain, ``(D, D)``; the diagonal does not count.
        move_time: Seconds without a step for each part that moves.
        switch_time: Seconds without a step for another collective, period or order.
    """

    part_times: Floats
    nodes: int
    node_bandwidth: float
    node_latency: float
    exchange: float
    bandwidth: Floats
    move_time: float
    switch_time: float

    @property
    def domains(self) -> int:
        """How many it has."""
        return len(self.part_times)

    def pause(self, before: Policy, after: Policy) -> float:
        """Seconds without a step that it takes from one policy to another."""
        return before.moved(after) * self.move_time + before.switches(after) * self.switch_time


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """What is best at each of ``T`` instants.

    Attributes:
        rates: Steps a second, less what rare exchanges cost in steps, ``(T,)``.
        parts: The division, ``(T, D)``.
        methods: Places of ``METHODS``, ``(T,)``.
        orders: Places of domains, ``(T, D)``.
    """

    rates: Floats
    parts: Whole
    methods: Whole
    orders: Whole

    def policy(self, row: int) -> Policy:
        """That of an instant."""
        method, order = METHODS[int(self.methods[row])], tuple(self.orders[row].tolist())
        return Policy(tuple(self.parts[row].tolist()), method, order)


def rate(job: Job, loads: Floats, latency: Floats, policy: Policy) -> Floats:
    """Steps a second by a policy, less what rare exchanges cost in steps.

    Args:
        job: Which runs.
        loads: Share of each domain's compute that others take, ``(T, D)``; of one that takes all, no step is made.
        latency: Seconds of a message from domain to domain, ``(T, D, D)`` or ``(1, D, D)``.
        policy: By which it runs.

    Returns:
        ``(T,)``
    """
    order, next_one = list(policy.order), [*policy.order[1:], policy.order[0]]
    slowest = _messages(job, latency, policy.method)[:, order, next_one].max(axis=1)
    step = (np.array(policy.parts) * _per_part(job, loads)).max(axis=1)
    return _steps(job, policy.method, step, slowest)


def best(job: Job, loads: Floats, latency: Floats, total: int) -> Best:
    """The quickest policy at each instant.

    Among all divisions with a part for every domain at least, ``METHODS``, and rings as ``ALL_ORDERS`` says.

    Args:
        job: Which runs.
        loads: As of ``rate``.
        latency: Likewise.
        total: Parts of a step, no fewer than domains.
    """
    parts, step = divided(_per_part(job, loads), total)
    rings = {
        collective: _quickest_rings(_messages(job, latency, Method(collective))) for collective in (RING, HIERARCHICAL)
    }
    over = [rings[RING if method.collective == RING else HIERARCHICAL] for method in METHODS]
    rates = np.stack([_steps(job, method, step, slowest) for method, (slowest, _) in zip(METHODS, over, strict=True)])
    orders = np.stack([np.broadcast_to(order, parts.shape) for _, order in over])
    methods, rows = rates.argmax(axis=0), np.arange(len(parts))
    return Best(rates[methods, rows], parts, methods, orders[methods, rows])


class Motion(Enum):
    """How the level now stands to the one that the policy was chosen for."""

    CALM = "calm"
    BETWEEN = "between"
    CHANGED = "changed"


@lru_cache(64)
def looked_at(interval: float, patience: float) -> int:
    """How many of the last intervals make a level."""
    return max(1, ceil(patience / interval - HAIR))


def level(values: Sequence[float], interval: float, patience: float) -> float:
    """The level now: the median of the last values, oldest first, or of all where there are fewer."""
    return float(median(values[-looked_at(interval, patience) :]))


def load_motion(before: float, now: float) -> Motion:
    """Of a load, which counts in both directions."""
    return _motion(abs(now - before), abs(now - before), before, now, LOAD_CHANGED, LOAD_CALM)


def latency_motion(before: float, now: float) -> Motion:
    """Of a latency, whose rise alone counts; a fall is calm where it is small, and else between."""
    return _motion(now - before, abs(now - before), before, now, LATENCY_CHANGED, LATENCY_CALM)


@dataclass(frozen=True, slots=True)
class Level:
    """A load or a latency.

    Attributes:
        kind: Which of the two.
        domain: Whose load, or the source of the link.
        target: Of the link; None for a load.
        before: Level that the policy in force was chosen for.
        now: Level now.
        motion: How one stands to the other.
    """

    kind: "documents.TriggerKind"
    domain: str
    target: str | None
    before: float
    now: float
    motion: Motion

    @property
    def key(self) -> tuple[str, str, str | None]:
        """What it is the level of."""
        return self.kind, self.domain, self.target


@dataclass(frozen=True, eq=False)
class RequestedJob:
    """A job of a request.

    Attributes:
        id: Its name.
        domains: Names of its domains, in the order of its shares.
        law: What does not change about it.
        in_force: Its policy.
        planned: Policies of the changes that are planned, in their order.
        loads: Levels now of its domains, ``(1, D)``.
        latency: Levels now of its links, ``(1, D, D)``.
    """

    id: str
    domains: tuple[str, ...]
    law: Job
    in_force: Policy
    planned: tuple[Policy, ...]
    loads: Floats
    latency: Floats

    @property
    def total(self) -> int:
        """Parts of a step."""
        return sum(self.in_force.parts)

    @property
    def final_policy(self) -> Policy:
        """Policy once all that is planned is in force."""
        return (self.in_force, *self.planned)[-1]

    def rate(self, policy: Policy) -> float:
        """Steps a second by a policy at the levels now."""
        return float(rate(self.law, self.loads, self.latency, policy)[0])

    @property
    def best_rate(self) -> float:
        """Steps a second by the best policy at the levels now."""
        return float(self._best.rates[0])

    @property
    def best(self) -> Policy:
        """The best policy at the levels now."""
        return self._best.policy(0)

    @cached_property
    def _best(self) -> Best:
        return best(self.law, self.loads, self.latency, self.total)


def levels(request: "documents.AdjustmentRequest") -> Iterator[Level]:
    """All loads, then all latencies of a valid request, in its order."""
    over = float(request["interval"]), float(request["patience"])
    for entry in request["domains"]:
        before, now = float(entry["level"]), level(entry["loads"], *over)
        yield Level("load", entry["id"], None, before, now, load_motion(before, now))
    for link in request["links"]:
        before, now = float(link["level"]), level(link["latencies"], *over)
        yield Level("latency", link["source"], link["target"], before, now, latency_motion(before, now))


def jobs(request: "documents.AdjustmentRequest", current: Sequence[Level] | None = None) -> list[RequestedJob]:
    """All jobs of a valid request that does not contradict itself, in its order.

    Args:
        request: The request.
        current: Its levels, where they are at hand.
    """
    now = {measured.key: measured.now for measured in (levels(request) if current is None else current)}
    carried = {(link["source"], link["target"]): float(link["bandwidth"]) for link in request["links"]}
    return [_job(job, now, carried) for job in request["jobs"]]


def policy(
    domains: Sequence[str], parts: Sequence[int], body: "documents.AdjustedJob | documents.PolicyChange"
) -> Policy:
    """What a job or a change says of how the job runs.

    Args:
        domains: Of the job, in the order of its shares.
        parts: Of each of them.
        body: The job or the change; its order names domains of the job.
    """
    order = tuple(domains.index(name) for name in body["order"])
    return Policy(tuple(map(int, parts)), Method(body["collective"], int(body["period"])), order)


def _per_part(job: Job, loads: Floats) -> Floats:
    """Seconds of a part in each domain, ``(T, D)``; infinite where others take all."""
    with np.errstate(divide="ignore"):
        seconds: Floats = job.part_times / (1.0 - loads)
    return seconds


def _messages(job: Job, latency: Floats, method: Method) -> Floats:
    """Seconds of a message from domain to domain, ``(T, D, D)``; all methods but a ring send messages of one size."""
    bits = 8.0 * job.exchange / (job.domains * (job.nodes if method.collective == RING else 1))
    seconds: Floats = latency + bits / job.bandwidth
    return seconds


def _steps(job: Job, method: Method, step: Floats, slowest: Floats) -> Floats:
    """Steps a second where the parts take so long, and the slowest message over domains; ``(T,)``."""
    domains, nodes = job.domains, job.nodes
    hidden = PUBLISHED.overlap * step
    over = slowest if domains > 1 else np.zeros_like(slowest)
    with np.errstate(invalid="ignore"):  # of a domain that is taken wholly; its steps never end
        if method.collective == RING:
            together = domains * nodes
            if nodes > 1:
                over = np.maximum(over, job.node_latency + 8.0 * job.exchange / together / job.node_bandwidth)
            lasts = step + np.maximum(0.0, 2 * (together - 1) * over - hidden)
        else:
            inside = 2 * (nodes - 1) * (job.node_latency + 8.0 * job.exchange / nodes / job.node_bandwidth)
            across = 2 * (domains - 1) * over
            if method.collective == HIERARCHICAL:
                lasts = step + np.maximum(0.0, inside + across - hidden)
            else:
                left = np.maximum(0.0, across - np.maximum(0.0, hidden - inside))
                lasts = step + np.maximum(0.0, inside - hidden) + left / method.period
                lasts = lasts * (penalty(domains, method.period) if domains > 1 else 1.0)
    steps_a_second: Floats = np.where(np.isfinite(step), 1.0 / lasts, 0.0)
    return steps_a_second


def _quickest_rings(messages: Floats) -> tuple[Floats, Whole]:
    """Seconds of the slowest message in the ring where it is least, and that ring; ``(T,)`` and ``(T, D)``."""
    domains = messages.shape[1]
    if domains <= ALL_ORDERS:
        rings = _orders(domains)
    else:
        rings = np.unique([_nearest(seconds, first) for seconds in messages for first in range(domains)], axis=0)
    rounds = messages[:, rings, np.roll(rings, -1, axis=1)].max(axis=2)
    chosen = rounds.argmin(axis=1)
    return rounds[np.arange(len(rounds)), chosen], rings[chosen]


def _nearest(seconds: Floats, first: int) -> list[int]:
    """The ring that goes on to the nearest domain that is left."""
    ring, left = [first], set(range(len(seconds))) - {first}
    while left:
        ring.append(min(left, key=lambda domain: (float(seconds[ring[-1], domain]), domain)))
        left.remove(ring[-1])
    return ring


@cache
def _orders(count: int) -> Whole:
    """All rings that differ in more than where they begin, ``(orders, D)``."""
    return np.array([(0, *rest) for rest in permutations(range(1, count))], dtype=np.int64)


def _motion(counted: float, apart: float, before: float, now: float, changed: float, calm: float) -> Motion:
    hair = HAIR * max(before, now)
    if apart == 0.0 or apart < calm * before - hair:
        return Motion.CALM
    return Motion.CHANGED if counted >= changed * before + hair else Motion.BETWEEN


def _job(
    body: "documents.AdjustedJob",
    now: Mapping[tuple[str, str, str | None], float],
    carried: Mapping[tuple[str, str], float],
) -> RequestedJob:
    shares = body["shares"]
    names = tuple(share["domain"] for share in shares)
    latency, bandwidth = np.zeros((1, len(names), len(names))), np.ones((len(names), len(names)))
    for one, source in enumerate(names):
        for other, target in enumerate(names):
            if one != other:
                latency[0, one, other] = now["latency", source, target]
                bandwidth[one, other] = carried[source, target]
    law = Job(
        np.array([float(share["part_time"]) for share in shares]),
        int(body["nodes"]),
        float(body["node_bandwidth"]),
        float(body["node_latency"]),
        float(body["exchange"]),
        bandwidth,
        float(body["move_time"]),
        float(body["switch_time"]),
    )
    return RequestedJob(
        body["id"],
        names,
        law,
        policy(names, [share["parts"] for share in shares], body),
        tuple(policy(names, change["parts"], change) for change in body.get("planned", ())),
        np.array([[now["load", name, None] for name in names]]),
        latency,
    )


@dataclass(frozen=True, slots=True)
class Event:
    """Something changes.

    Attributes:
        instant: Seconds from the beginning of the window.
        kind: ``RISE``, ``FALL``, ``SLOW`` or ``QUICK``.
        domain: Whose load, or whose links, by number.
        times: What it is afterwards, over what it was.
        lasts_s: Seconds over which it changes.
    """

    instant: float
    kind: str
    domain: int
    times: float
    lasts_s: float = 0.0

    @property
    def judged(self) -> bool:
        """Whether the sentence names it; that latencies fall back is none of its matters."""
        return self.kind in KINDS


def draw_events(chance: Chance, loads: Sequence[float], domains: Sequence[int]) -> tuple[tuple[Event, ...], float]:
    """Events in the order of time, and when the window ends.

    Args:
        chance: What is drawn from.
        loads: At the beginning, by domain.
        domains: Those that may be disturbed.
    """
    now, slowed, events = list(loads), {}, []  # type: list[float], dict[int, float], list[Event]
    instant = _on_a_cell(chance.between(0.5 * APART_S[0], APART_S[0]))
    while sum(event.judged for event in events) < JUDGED:
        if slowed and chance.fraction() < _BACK_SHARE:
            domain, times = slowed.popitem()
            event = Event(instant, QUICK, domain, 1.0 / times)
        elif not slowed and chance.fraction() < _LATENCY_SHARE:
            domain, times = chance.pick(domains), chance.between(*SLOWED)
            slowed[domain] = times
            event = Event(instant, SLOW, domain, times)
        else:
            event = _of_load(chance, instant, chance.pick(domains), now)
        events.append(event)
        instant += _on_a_cell(chance.between(*APART_S))
    return tuple(events), instant


def over_time(begins: Floats, events: Sequence[Event], kinds: Sequence[str], cells: int) -> Floats:
    """What events of some kinds make of levels that stand by domain, ``(cells, domains)``."""
    values: Floats = np.tile(begins, (cells, 1))
    for event in events:
        if event.kind in kinds:
            first, lasts = round(event.instant / CELL_S), round(event.lasts_s / CELL_S)
            grown = np.minimum(1.0, np.arange(1, cells - first + 1) / max(1, lasts))
            values[first:, event.domain] *= 1.0 + (event.times - 1.0) * grown
    return values


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A job of a window.

    Attributes:
        id: Its name.
        domains: Where it runs, by number.
        law: What does not change about it.
        total: Parts of a step.
    """

    id: str
    domains: tuple[int, ...]
    law: Job
    total: int


def draw_jobs(names: Chance, chance: Chance, bandwidth: Floats) -> tuple[Running, ...]:
    """Jobs over some of the domains.

    Args:
        names: What names are drawn from.
        chance: What all else is drawn from.
        bandwidth: Bits a second from domain to domain, ``(domains, domains)``.
    """
    return tuple(_drawn_job(names, chance, bandwidth) for _ in range(chance.pick(JOBS)))


def power(chance: Chance, low: float, high: float) -> float:
    """Between two numbers, the logarithm uniform."""
    return low * exponential(chance.fraction() * log(high / low))


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A window.

    Attributes:
        seed: What all was drawn from.
        names: Of domains, which tell nothing.
        jobs: That run.
        bandwidth: Bits a second from domain to domain, ``(domains, domains)``.
        events: In the order of time.
        loads: Of domains in each cell from the beginning, ``(cells, domains)``.
        latency: Seconds of a message from domain to domain in each, ``(cells, domains, domains)``.
        measured_loads: Of each interval, ``PAST`` of them before the beginning, ``(intervals, domains)``.
        measured_latency: Likewise, ``(intervals, domains, domains)``.
    """

    seed: str
    names: tuple[str, ...]
    jobs: tuple[Running, ...]
    bandwidth: Floats
    events: tuple[Event, ...]
    loads: Floats
    latency: Floats
    measured_loads: Floats
    measured_latency: Floats

    @property
    def ends_s(self) -> float:
        """When the window does."""
        return CELL_S * len(self.loads)


def draw(seed: str, naming: str = "") -> World:
    """A window that follows from its seed alone, but for its names where another is given for these."""
    names, chance = Chance(naming or seed, "names"), Chance(seed, "adjustment")
    count = chance.pick(DOMAINS)
    bandwidth = np.array([[round(power(chance, *BANDWIDTHS), -6) for _ in range(count)] for _ in range(count)])
    quiet = np.array([[power(chance, *LATENCIES_S) for _ in range(count)] for _ in range(count)])
    begins = [chance.between(*BEGINS) for _ in range(count)]
    running = draw_jobs(names, chance, bandwidth)
    events, ends = draw_events(chance, begins, sorted({domain for job in running for domain in job.domains}))
    cells = _CELLS * int(ends / INTERVAL_S)
    before = PAST * _CELLS
    loads = over_time(np.array(begins), events, (RISE, FALL), cells)
    loads = np.concatenate([np.tile(begins, (before, 1)), loads])
    loads *= _wandering(chance, loads.shape)
    slowed = over_time(np.ones(count), events, (SLOW, QUICK), cells)
    latency = quiet * slowed[:, :, None] * slowed[:, None, :]
    seen = np.concatenate([np.tile(quiet, (before, 1, 1)), latency])
    measured_loads: Floats = np.minimum(1.0, _measured(seed, "load", loads, LOAD_SPIKE))
    return World(
        seed,
        tuple(f"{names.below(1 << 48):012x}" for _ in range(count)),
        running,
        bandwidth,
        events,
        loads[before:],
        latency,
        np.round(measured_loads, 5),
        np.round(_measured(seed, "latency", seen, LATENCY_SPIKE), 7),
    )


def _of_load(chance: Chance, instant: float, domain: int, now: list[float]) -> Event:
    """A load rises or falls, whichever its bounds allow."""
    reach = {RISE: BOUNDS[1] / now[domain] - 1.0, FALL: 1.0 - BOUNDS[0] / now[domain]}
    kind = chance.pick([kind for kind, most in reach.items() if most > BY[0]])
    by = chance.between(BY[0], min(BY[1], reach[kind]))
    times = 1.0 + by if kind == RISE else 1.0 - by
    now[domain] *= times
    lasts = _on_a_cell(chance.between(0.0, RAMP_S)) if chance.fraction() < _RAMP_SHARE else 0.0
    return Event(instant, kind, domain, times, lasts)


def _on_a_cell(seconds: float) -> float:
    return CELL_S * int(seconds / CELL_S)


def _drawn_job(names: Chance, chance: Chance, bandwidth: Floats) -> Running:
    all_of_them = range(len(bandwidth))
    count = 2 + chance.below(len(all_of_them) - 1)
    domains = tuple(chance.order([(domain, 1.0) for domain in all_of_them])[:count])
    small = chance.fraction() < SMALL_SHARE
    nodes = MANY if small else NODES
    total = PARTS[0] + chance.below(PARTS[1] - PARTS[0] + 1)
    step = chance.between(*(SHORT_S if small else STEPS_S))
    part_times = [round(step * count / total * chance.between(1.0, UNEVEN), 6) for _ in domains]
    law = Job(
        np.array(part_times),
        nodes[0] + chance.below(nodes[1] - nodes[0] + 1),
        chance.pick(NODE_BANDWIDTHS),
        NODE_LATENCY_S,
        round(power(chance, *(SMALL if small else EXCHANGES)), -6),
        bandwidth[np.ix_(domains, domains)],
        round(chance.between(*MOVES_S), 6),
        round(chance.between(*SWITCHES_S), 3),
    )
    return Running(f"{names.below(1 << 48):012x}", domains, law, total)


def _wandering(chance: Chance, shape: tuple[int, ...]) -> Floats:
    """What loads are, over their level, ``(cells, domains)``."""
    wandering = np.ones(shape)
    for domain in range(shape[1]):
        for depth in WANDERS:
            seconds: Floats = CELL_S * np.arange(shape[0], dtype=np.float64)
            phase = seconds / chance.between(*TURNS_S) + chance.fraction()
            wandering[:, domain] += depth * wave(phase)
    return wandering


def _measured(seed: str, what: str, true: Floats, spike: float) -> Floats:
    """What is measured of something that is told by cells, by intervals."""
    chance = stream(seed, f"measured {what}")
    means = true.reshape(-1, _CELLS, *true.shape[1:]).mean(axis=1)
    noise = normal(chance, means.shape).astype(np.float64)
    spiked = chance.random(len(means)) < INTERVAL_S / SPIKES_APART_S
    where = chance.integers(means[0].size, size=len(means))
    times = np.ones((len(means), means[0].size))
    times[np.flatnonzero(spiked), where[spiked]] = spike
    measured: Floats = means * (1.0 + NOISE * noise) * times.reshape(means.shape)
    return measured
