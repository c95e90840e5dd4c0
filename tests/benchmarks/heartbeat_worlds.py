"""Heartbeats of nodes as they arrive through weather, and faults among them; simulated time, all from one seed."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kuayu.resilience.detection import Beats

PERIOD, CHUNK, WARM_UP = 0.5, 300.0, 600.0
"""Seconds between beats, that are drawn at once, and before which nothing is judged."""


@dataclass(frozen=True)
class Weather:
    """What befalls the beats of one domain; rates are for each node, or for the domain where it says so.

    Attributes:
        delay: Median of the log-normal delay, s, and ``spread`` of its logarithm.
        far: Share of beats with a Pareto delay instead, of at least ``far_least`` s and exponent ``far_tail``.
        loss: Share of beats lost, each for itself.
        runs: Runs of loss an hour, of ``run_mean`` s (exponential), in which ``run_loss`` of the beats are lost.
        stalls: Stalls an hour, log-normal with median ``stall`` s and ``stall_spread``; in one half of them beats
            queue up and come at once (network card), in the other they are not made (collector).
        storms: An hour for the whole domain, of ``storm_mean`` s, in which ``storm_loss`` of all beats are lost.
    """

    delay: float = 0.002
    spread: float = 0.6
    far: float = 0.0
    far_least: float = 0.02
    far_tail: float = 1.8
    loss: float = 1e-5
    runs: float = 0.0
    run_mean: float = 0.6
    run_loss: float = 0.5
    stalls: float = 0.0
    stall: float = 0.2
    stall_spread: float = 0.5
    storms: float = 0.0
    storm_mean: float = 10.0
    storm_loss: float = 0.2


WEATHERS = {
    "clear": Weather(),
    "delayed": Weather(delay=0.02, spread=0.8, far=0.01),
    "lossy": Weather(loss=1e-3, runs=0.05),
    "bursty": Weather(loss=1e-4, stalls=2.0),
    "stormy": Weather(loss=3e-4, far=0.003, stalls=0.5, runs=0.02, storms=2.0),
}
"""Weathers of the domains that are printed, in turn."""

OTHER_WEATHERS = {
    "quiet": Weather(delay=0.005, spread=0.4, loss=3e-5),
    "wide": Weather(delay=0.04, spread=0.6, far=0.02, far_least=0.05, far_tail=2.2),
    "leaky": Weather(loss=4e-4, runs=0.1, run_mean=0.4, run_loss=0.7),
    "halting": Weather(loss=3e-5, stalls=5.0, stall=0.12, stall_spread=0.6),
    "rough": Weather(loss=5e-4, stalls=1.0, stall=0.15, storms=4.0, storm_mean=5.0, storm_loss=0.1),
}
"""Weathers on which parameters were chosen."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong with nodes from ``begins`` to ``ends``.

    ``kind`` is one of kill, rack, amid (a kill in a partition), partition, flap.
    """

    kind: str
    nodes: np.ndarray
    begins: float
    ends: float


@dataclass
class World:
    """Nodes of domains with their weathers, and faults; node n is of domain ``domain[n]``."""

    seed: int
    domain: np.ndarray
    weathers: list[Weather]
    faults: list[Fault] = field(default_factory=list)
    steps: float = 0.05
    """Steps of a sender's clock an hour."""

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        count = len(self.domain)
        self.phase = self.random.uniform(0, PERIOD, count)
        self.drift = self.random.normal(0, 3e-5, count)
        self.offset = self.random.normal(0, 0.5, count)
        self.base = np.zeros(count, np.int64)

    def play(self, seconds: float) -> Iterator[Beats]:
        """Beats in the order of their arrival, in chunks of ``CHUNK`` s; the last goes on past the end."""
        kept = None
        for chunk in range(int(np.ceil(seconds / CHUNK))):
            begins = chunk * CHUNK
            made = self._chunk(begins)
            if kept is not None:
                made = Beats(*(np.concatenate(pair) for pair in zip(_fields(kept), _fields(made), strict=True)))
            made = made[np.argsort(made.received, kind="stable")]
            now = int(np.searchsorted(made.received, begins + CHUNK))
            yield made[np.arange(now)]
            kept = made[np.arange(now, len(made.node))]

    def _chunk(self, begins: float) -> Beats:
        random = self.random
        of = {name: np.array([getattr(each, name) for each in self.weathers])[self.domain] for name in _NAMES}
        ticks = int(CHUNK / PERIOD)
        due = begins + self.phase[:, None] + PERIOD * np.arange(ticks)
        due = due + random.uniform(0, 0.004, due.shape)
        delay = of["delay"][:, None] * np.exp(of["spread"][:, None] * random.standard_normal(due.shape))
        far = random.random(due.shape) < of["far"][:, None]
        node_of_far = np.nonzero(far)[0]
        pareto = of["far_least"][node_of_far] * (1 - random.random(len(node_of_far))) ** (
            -1 / of["far_tail"][node_of_far]
        )
        delay[far] += np.minimum(pareto, 30.0)
        arrives = due + delay
        made = np.ones(due.shape, bool)
        lost = random.random(due.shape) < of["loss"][:, None]
        sends = due.copy()
        self._weather(begins, of, (due, sends, arrives), made, lost)
        self._clock_steps()
        restarts = []
        for fault in self.faults:
            if fault.begins < begins + CHUNK + PERIOD and fault.ends > begins:
                within = (due[fault.nodes] >= fault.begins) & (due[fault.nodes] < fault.ends)
                if fault.kind in {"partition", "flap"}:
                    lost[fault.nodes] |= within
                else:
                    made[fault.nodes] &= ~within
                    restarts.append(fault)
        sequence = self.base[:, None] + np.cumsum(made, axis=1)
        for fault in restarts:
            back = (due[fault.nodes] >= fault.ends) & (begins <= fault.ends)
            for node, after in zip(fault.nodes, back, strict=True):
                if after.any():
                    first = int(after.argmax())
                    sequence[node, first:] -= sequence[node, first] - 1
        self.base = sequence[:, -1].copy()
        sent = sends * (1 + self.drift[:, None]) + self.offset[:, None]
        node, tick = np.nonzero(made & ~lost)
        return Beats(node, sequence[node, tick], sent[node, tick], arrives[node, tick])

    def _weather(
        self,
        begins: float,
        of: dict[str, np.ndarray],
        times: tuple[np.ndarray, np.ndarray, np.ndarray],
        made: np.ndarray,
        lost: np.ndarray,
    ) -> None:
        """Stalls, runs of loss and storms; ``times`` are when beats are due, sent and heard."""
        random, (due, sends, arrives) = self.random, times
        hours = CHUNK / 3600
        for node in np.repeat(np.arange(len(self.domain)), random.poisson(of["stalls"] * hours)):
            at = begins + random.uniform(0, CHUNK)
            ends = at + of["stall"][node] * np.exp(of["stall_spread"][node] * random.standard_normal())
            within = np.flatnonzero((due[node] >= at) & (due[node] < ends))
            if len(within) and random.random() < 0.5:
                made[node, within[:-1]] = False
                arrives[node, within[-1]] += ends - due[node, within[-1]]
                sends[node, within[-1]] = ends
            else:
                arrives[node, within] = np.maximum(arrives[node, within], ends + random.uniform(0, 0.002, len(within)))
        for node in np.repeat(np.arange(len(self.domain)), random.poisson(of["runs"] * hours)):
            at = begins + random.uniform(0, CHUNK)
            ends = at + random.exponential(of["run_mean"][node])
            within = np.flatnonzero((due[node] >= at) & (due[node] < ends))
            lost[node, within] |= random.random(len(within)) < of["run_loss"][node]
        for domain, weather in enumerate(self.weathers):
            for _ in range(random.poisson(weather.storms * hours)):
                at = begins + random.uniform(0, CHUNK)
                ends = at + random.exponential(weather.storm_mean)
                here = np.flatnonzero(self.domain == domain)
                within = (due[here] >= at) & (due[here] < ends)
                lost[here] |= within & (random.random(within.shape) < weather.storm_loss)

    def _clock_steps(self) -> None:
        stepped = self.random.random(len(self.domain)) < self.steps * CHUNK / 3600
        self.offset[stepped] += self.random.normal(0, 20, stepped.sum())


_NAMES = tuple(Weather.__dataclass_fields__)


def _fields(beats: Beats) -> tuple[np.ndarray, ...]:
    return beats.node, beats.sequence, beats.sent, beats.received


Cuts = list[tuple[int, float, float]]
"""Partitions: first node of the domain, beginning and end."""


def troubles(seed: int, domain: np.ndarray, begins: float, seconds: float, rest: float) -> list[Fault]:
    """Kills, racks, partitions and flapping at random times; a node has no two faults within ``rest`` s.

    Kills come at the rate that uses up all nodes in ``rest`` s; racks of 4 to 8 % of a domain once in 600 s for each
    domain; partitions of 3 to 40 s once in 400 s for each domain, with one kill amid every second one; flapping for two
    minutes at one node in 300.
    """
    random = np.random.default_rng([seed, 7])
    free = np.full(len(domain), begins)
    ends = begins + seconds
    faults: list[Fault] = []
    cuts: Cuts = []
    for each in range(domain.max() + 1):
        here = np.flatnonzero(domain == each)
        faults += _partitions(random, here, begins, ends, cuts)
        for amid in (fault for fault in faults if fault.kind == "amid"):
            free[amid.nodes] = amid.ends + rest
        faults += _racks(random, here, begins, ends, cuts, free, rest)
    for node in random.choice(len(domain), max(1, len(domain) // 300), replace=False):
        if free[node] <= begins:
            faults += _flaps(random, int(node), begins + random.uniform(0, seconds - 200))
            free[node] = ends + rest
    at = begins
    while at < ends - 60:
        at += random.exponential(rest / len(domain))
        ready = np.flatnonzero(free <= at)
        if len(ready):
            node = random.choice(ready)
            if not _cut(cuts, int(np.flatnonzero(domain == domain[node])[0]), at):
                faults.append(Fault("kill", np.array([node]), at, at + random.uniform(20, 50)))
                free[node] = at + rest
    return sorted(faults, key=lambda each: each.begins)


def _partitions(random: np.random.Generator, here: np.ndarray, begins: float, ends: float, cuts: Cuts) -> list[Fault]:
    """Partitions of one domain, with a kill amid each second one."""
    faults = []
    at = begins + random.uniform(20, 400)
    while at < ends - 60:
        until = at + random.uniform(3, 40)
        cuts.append((int(here[0]), at, until))
        faults.append(Fault("partition", here, at, until))
        if random.random() < 0.5:
            dies = random.uniform(at, until)
            faults.append(Fault("amid", np.array([random.choice(here)]), dies, until + random.uniform(60, 90)))
        at = until + random.exponential(330) + 30
    return faults


def _racks(
    random: np.random.Generator, here: np.ndarray, begins: float, ends: float, cuts: Cuts, free: np.ndarray, rest: float
) -> list[Fault]:
    """Racks of one domain, of nodes that are all free."""
    faults = []
    at = begins + random.uniform(50, 600)
    while at < ends - 60:
        size = max(2, int(len(here) * random.uniform(0.04, 0.08)))
        rack = here[random.integers(0, len(here) - size) + np.arange(size)]
        if (free[rack] <= at).all() and not _cut(cuts, int(here[0]), at):
            faults.append(Fault("rack", rack, at, at + random.uniform(30, 60)))
            free[rack] = at + rest
        at += random.exponential(600)
    return faults


def _flaps(random: np.random.Generator, node: int, at: float) -> list[Fault]:
    """Two minutes of coming and going."""
    faults, until = [], at
    while until < at + 120:
        down = until + random.uniform(4, 10)
        until = down + random.uniform(3, 8)
        faults.append(Fault("flap", np.array([node]), down, until))
    return faults


def _cut(cuts: Cuts, first: int, at: float) -> bool:
    """Whether the domain with that first node is cut off around that time."""
    return any(each == first and begins - 30 < at < until + 15 for each, begins, until in cuts)
