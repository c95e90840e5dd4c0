"""Exchanges of gradients over links that change: their law, windows of them, and what is made of a window (RES-010).

1. **Law.** A message of ``m`` bits takes latency + ``m`` / bandwidth, a round as long as its slowest message. What
   rare exchanges over domains cost in steps is the penalty of :mod:`kuayu_conformance.testbed.scheduling.law`.
2. **Windows.** Links between domains have one value for each minute. Families:

   - *metro*: 100 to 400 Gbit/s and 1 to 3 ms between domains, ±30 %;
   - *national*: 2 to 10 Gbit/s, 10 to 40 ms, ±30 %;
   - *busy*: leased lines of 10 to 100 Gbit/s that are left to others for hours of the day: all links together move
     between all, 0.3 and 0.05 of it, for 20 minutes on average each;
   - *×0.3*: national, with episodes of each link, one in 15 minutes of 2 minutes on average.

3. **Play.** :func:`follow` asks somebody at each interval, carries out what is chosen, and counts the steps.
4. **Baselines.** Fixed choices, each in the order that was quickest by the first measurement, one of them the method
   that was quickest then; and one who always has the quickest method in its quickest order, for nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import normal, stream
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.scheduling.law import PUBLISHED, penalty

if TYPE_CHECKING:
    from kuayu_schemas import documents

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
RING: "documents.CollectiveKind" = "ring"
HIERARCHICAL: "documents.CollectiveKind" = "hierarchical"
LOW: "documents.CollectiveKind" = "low_communication"
FAMILIES = ("metro", "national", "busy", "×0.3")
INTERVAL, SWITCH = 60.0, 10.0
"""Seconds of an interval, and of a switch."""
PAST, COUNT = 30, 120
"""Intervals that were measured before the beginning, and those of a window of two hours."""
NOISE = 0.05
"""Standard deviation of the logarithm of what is measured, over what was carried."""
GIGABIT = 1e9
_RATES = {"metro": (100.0, 4.0), "national": (2.0, 5.0), "busy": (10.0, 10.0), "×0.3": (2.0, 5.0)}
"""Least of a family, and how many times as much the most is."""
_LATENCY = {"metro": (1e-3, 3e-3), "national": (10e-3, 40e-3), "busy": (5e-3, 20e-3), "×0.3": (10e-3, 40e-3)}
_BUSY = np.array((1.0, 0.3, 0.05))
_BUSY_STAYS = 1200.0
_SLOW, _SLOW_AFTER, _SLOW_STAYS = 0.3, 900.0, 120.0
_MEGABIT = 1e6
_STEEPEST = 8.0


@dataclass(frozen=True, slots=True)
class Method:
    """A method of exchange: the collective, and the steps from one exchange over domains to the next."""

    collective: "documents.CollectiveKind"
    period: int = 1

    @property
    def name(self) -> str:
        """In words."""
        return self.collective.replace("_", " ") + (f", {self.period}" if self.period > 1 else "")


METHODS = (Method(RING), Method(HIERARCHICAL), *(Method(LOW, period) for period in (5, 15, 50, 150, 500)))
"""Those that stand for all; services may choose others."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What is trained, and what does not change about where.

    Attributes:
        latency: Seconds of a message from domain to domain, ``(D, D)``; the diagonal does not count.
        nodes: In each domain.
        node_bandwidth: Bits a second from a node to another of its domain.
        node_latency: Seconds of a message there.
        exchange: Bytes that all replicas sum up.
        step_time: Seconds of a step without any exchange.
    """

    latency: Floats
    nodes: int
    node_bandwidth: float
    node_latency: float
    exchange: float
    step_time: float

    @property
    def domains(self) -> int:
        """How many there are."""
        return len(self.latency)

    def message(self, method: Method) -> float:
        """Bits that a domain sends to the next one in a round."""
        return 8.0 * self.exchange / (self.domains * (self.nodes if method.collective == RING else 1))


def rate(setting: Setting, bandwidth: Floats, method: Method, order: tuple[int, ...]) -> Floats:
    """Steps a second, less what rare exchanges cost in steps; zero where a link that is needed is out.

    Args:
        setting: What is trained.
        bandwidth: Bits a second from domain to domain, ``(T, D, D)``.
        method: How replicas exchange.
        order: Domains in the order of the ring.

    Returns:
        ``(T,)``
    """
    ring = np.array(order)
    slowest = _messages(setting, bandwidth, method)[:, ring, np.roll(ring, -1)].max(axis=1)
    return _steps(setting, method, slowest)


def best(setting: Setting, bandwidth: Floats, method: Method) -> tuple[Floats, Whole]:
    """Steps a second in the order that is quickest at each time, and that order; ``(T,)`` and ``(T, D)``."""
    orders = _orders(setting.domains)
    rounds = _messages(setting, bandwidth, method)[:, orders, np.roll(orders, -1, axis=1)].max(axis=2)
    chosen = rounds.argmin(axis=1)
    return _steps(setting, method, rounds[np.arange(len(rounds)), chosen]), orders[chosen]


@dataclass(frozen=True, eq=False)
class World:
    """A window.

    Attributes:
        family: Which links it has.
        setting: What is trained.
        domains: Names, which tell nothing.
        carried: Bits a second from domain to domain in each interval, ``(PAST + count, D, D)``; zero from a domain
            to itself.
        measured: What is told of them, whole megabits, likewise.
    """

    family: str
    setting: Setting
    domains: tuple[str, ...]
    carried: Floats
    measured: Floats

    @property
    def window(self) -> Floats:
        """What is carried in the window, ``(count, D, D)``."""
        return self.carried[PAST:]

    @property
    def count(self) -> int:
        """Intervals of the window."""
        return len(self.carried) - PAST

    def seen(self, row: int) -> Floats:
        """What was measured before an interval of the window, ``(PAST, D, D)``."""
        return self.measured[row : row + PAST]


def draw(family: str, seed: str, count: int = COUNT, naming: str = "") -> World:
    """A window of a family, of so many intervals; its names follow from ``naming`` where it is given."""
    chance = stream(seed, f"collectives {family}")
    domains, nodes = int(chance.integers(2, 7)), int(chance.choice([1, 2, 4, 8, 16, 32]))
    least, times = _RATES[family]
    shape = (domains, domains)
    level = GIGABIT * least * _powers(chance, times, shape)
    setting = Setting(
        latency=np.round(chance.uniform(*_LATENCY[family], shape), 6),
        nodes=nodes,
        node_bandwidth=GIGABIT * float(chance.choice([25.0, 100.0, 400.0])),
        node_latency=1e-5,
        exchange=float(np.round(0.2e9 * _powers(chance, 100.0, (1,))[0], -6)),
        step_time=round(float(chance.uniform(1.0, 20.0)), 3),
    )
    carried = level * _shares(family, chance, domains, PAST + count) * (1.0 - np.eye(domains))
    noise = normal(chance, carried.shape).astype(np.float64)
    measured = np.round(carried * exponential(NOISE * noise) / _MEGABIT) * _MEGABIT
    named = stream(naming, "names") if naming else chance
    names = tuple(f"{int(named.integers(1 << 56)):014x}" for _ in range(domains))
    return World(family, setting, names, carried, measured)


@dataclass(frozen=True)
class InUse:
    """What replicas use.

    Attributes:
        method: How they exchange.
        order: Domains in the order of the ring, as numbers.
        since: Interval of the window in which it came into use.
    """

    method: Method
    order: tuple[int, ...]
    since: int

    def is_like(self, method: Method, order: Sequence[int]) -> bool:
        """Whether that is no other method or order, wherever the ring begins."""
        return self.method == method and turned(self.order) == turned(order)


def turned(order: Sequence[int]) -> tuple[int, ...]:
    """The same ring, begun with its least domain."""
    first = order.index(min(order))
    return (*order[first:], *order[:first])


@dataclass(eq=False)
class Course:
    """What becomes of a window, interval by interval.

    Attributes:
        world: The window.
        in_use: What is in use; nothing before the first choice.
        rates: Steps a second in each interval that is over, without what switches cost.
        paused: Share of each of them that went to switches.
        switches: How many there were.
        changes: Those to another collective or period, not only to another order.
    """

    world: World
    in_use: InUse | None = None
    rates: list[float] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)
    switches: int = 0
    changes: int = 0
    _waits: float = 0.0

    @property
    def row(self) -> int:
        """Number of the interval that comes next."""
        return len(self.rates)

    @property
    def steps(self) -> float:
        """Steps that were made."""
        return INTERVAL * float(np.array(self.rates) @ (1.0 - np.array(self.paused)))

    def request(self, revision: "documents.Revision") -> "documents.CollectiveRequest":
        """What is asked before the next interval."""
        setting, names, past = self.world.setting, self.world.domains, self.world.seen(self.row)
        links: list[documents.MeasuredLink] = [
            {
                "source": names[one],
                "target": names[other],
                "latency": float(setting.latency[one, other]),
                "bandwidths": past[:, one, other].astype(np.int64).tolist(),
            }
            for one in range(len(names))
            for other in range(len(names))
            if one != other
        ]
        body: documents.CollectiveRequest = {
            "revision": revision,
            "interval": INTERVAL,
            "domains": list(names),
            "links": links,
            "nodes": setting.nodes,
            "node_bandwidth": setting.node_bandwidth,
            "node_latency": setting.node_latency,
            "exchange": setting.exchange,
            "step_time": setting.step_time,
            "switch_time": SWITCH,
        }
        return body if self.in_use is None else {**body, "in_use": self._in_use(self.in_use)}

    def _in_use(self, used: InUse) -> "documents.CollectiveInUse":
        order = [self.world.domains[place] for place in used.order]
        since = INTERVAL * (self.row - used.since)
        return {"collective": used.method.collective, "period": used.method.period, "order": order, "since": since}

    def go_on(self, method: Method | None, order: Sequence[int] = ()) -> None:
        """Let an interval pass, with what was chosen, or with what is in use where nothing was."""
        if method is not None and (self.in_use is None or not self.in_use.is_like(method, order)):
            if self.in_use is not None:
                self._waits += SWITCH
                self.switches += 1
                self.changes += method != self.in_use.method
            self.in_use = InUse(method, tuple(order), self.row)
        lost = min(INTERVAL, self._waits)
        self._waits -= lost
        self.paused.append(lost / INTERVAL)
        carried = self.world.window[self.row : self.row + 1]
        used = self.in_use
        self.rates.append(float(rate(self.world.setting, carried, used.method, used.order)[0]) if used else 0.0)


def follow(world: World, choose: "Callable[[documents.CollectiveRequest], documents.CollectiveChoice]") -> Course:
    """A window under somebody whose answers are whole."""
    course = Course(world)
    for row in range(world.count):
        answer = choose(course.request({"epoch": "window", "number": row}))
        order = [world.domains.index(name) for name in answer["order"]]
        course.go_on(Method(answer["collective"], answer["period"]), order)
    return course


@dataclass(frozen=True, eq=False)
class Baselines:
    """What others do in the same window.

    Attributes:
        fixed: Steps a second of each of the methods, ``(count, methods)``.
        quickest: Of one who always has the quickest, ``(count,)``.
        first: Place of the method that was quickest by the first measurement.
    """

    fixed: Floats
    quickest: Floats
    first: int

    @property
    def shares(self) -> Floats:
        """Steps of the fixed ones in parts of those of the quickest, ``(methods,)``."""
        shares: Floats = self.fixed.sum(axis=0) / self.quickest.sum()
        return shares

    @property
    def most(self) -> float:
        """Steps of the quickest."""
        return INTERVAL * float(self.quickest.sum())


def baselines(world: World) -> Baselines:
    """Play the others."""
    setting, measured = world.setting, world.seen(0)[-1:]
    begun = [best(setting, measured, method) for method in METHODS]
    orders = [tuple(order[0].tolist()) for _, order in begun]
    fixed = [rate(setting, world.window, method, order) for method, order in zip(METHODS, orders, strict=True)]
    quickest = np.max([best(setting, world.window, method)[0] for method in METHODS], axis=0)
    return Baselines(np.stack(fixed, axis=1), quickest, int(np.argmax([rates[0] for rates, _ in begun])))


def _messages(setting: Setting, bandwidth: Floats, method: Method) -> Floats:
    """Seconds of a message from domain to domain, ``(T, D, D)``; infinite where the link is out."""
    with np.errstate(divide="ignore"):
        seconds: Floats = setting.latency + setting.message(method) / bandwidth
    return seconds


def _steps(setting: Setting, method: Method, slowest: Floats) -> Floats:
    """Steps a second where the slowest message over domains takes so long, ``(T,)``."""
    domains, nodes, step = setting.domains, setting.nodes, setting.step_time
    hidden = PUBLISHED.overlap * step
    within = setting.node_latency + 8.0 * setting.exchange / nodes / setting.node_bandwidth
    over = slowest if domains > 1 else np.zeros_like(slowest)
    if method.collective == RING:
        together = domains * nodes
        if nodes > 1:
            over = np.maximum(over, setting.node_latency + 8.0 * setting.exchange / together / setting.node_bandwidth)
        return 1.0 / (step + np.maximum(0.0, 2 * (together - 1) * over - hidden))
    inside, across = 2 * (nodes - 1) * within, 2 * (domains - 1) * over
    if method.collective == HIERARCHICAL:
        return 1.0 / (step + np.maximum(0.0, inside + across - hidden))
    left = np.maximum(0.0, across - max(0.0, hidden - inside))
    lasts = method.period * (step + max(0.0, inside - hidden)) + left
    charged = penalty(domains, method.period) if domains > 1 else 1.0
    return method.period / (charged * lasts)


@cache
def _orders(count: int) -> Whole:
    """All rings that differ in more than where they begin, ``(orders, D)``."""
    return np.array([(0, *rest) for rest in permutations(range(1, count))], dtype=np.int64)


def _powers(chance: np.random.Generator, times: float, shape: tuple[int, ...]) -> Floats:
    """Numbers from one to so many, whose logarithms are spread evenly."""
    return exponential(chance.uniform(0.0, float(np.log(times)), shape))


def _shares(family: str, chance: np.random.Generator, domains: int, rows: int) -> Floats:
    """What links carry in parts of their level, ``(rows, D, D)``."""
    shares = _varied(chance, (rows, domains * domains))
    if family == "busy":
        first = int(chance.integers(len(_BUSY)))
        shares *= _BUSY[_regimes(chance, (rows, 1), (_BUSY_STAYS,) * len(_BUSY), first)]
    if family == "×0.3":
        slow = _regimes(chance, shares.shape, (_SLOW_AFTER, _SLOW_STAYS), 0) == 1
        shares = np.where(slow, _SLOW * shares, shares)
    return shares.reshape(-1, domains, domains)


def _varied(chance: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Shares spread evenly over 0.7 to 1.3 that forget within 20 s to 10 min, ``(rows, links)``."""
    forgets = 20.0 * float(_powers(chance, 30.0, (1,))[0])
    decay = exponential(-INTERVAL / forgets)
    gauss = normal(chance, shape).astype(np.float64)
    gauss[1:] *= np.sqrt(1.0 - decay**2)
    for row in range(1, len(gauss)):
        gauss[row] += decay * gauss[row - 1]
    return 0.7 + 0.6 * _below(gauss)


def _below(gauss: Floats) -> Floats:
    """Share of normal numbers below some, to 2e-4, alike on every processor.

    Source: S. R. Bowling et al., "A logistic approximation to the cumulative normal distribution", JIEM 2 (2009).
    """
    slope = np.clip(1.5976 * gauss + 0.07056 * gauss**3, -_STEEPEST, _STEEPEST)
    return 1.0 / (1.0 + exponential(-slope))


def _regimes(chance: np.random.Generator, shape: tuple[int, ...], stays: tuple[float, ...], first: int) -> Whole:
    """Chains that stay in each regime for so many seconds on average, then go to another, ``(rows, chains)``.

    Times to stay are exponential, and all other regimes as likely.
    """
    leaves = np.array([1.0 - exponential(-INTERVAL / stay) for stay in stays])
    draws, moves = chance.random(shape), chance.integers(1, len(stays), shape)
    regimes = np.empty(shape, dtype=np.int64)
    now = np.full(shape[1:], first)
    for row in range(len(regimes)):
        regimes[row] = now
        now = np.where(draws[row] < leaves[now], (now + moves[row]) % len(stays), now)
    return regimes
