"""Hardware and exporters of the training generator: what a node's sensors make of what it does, and what arrives."""

from dataclasses import dataclass

import numpy as np

from kuayu.perception.recognition.values import SIGNALS, Flags, Instants, Places, Population
from kuayu_training.region import Region

PLACE = {name: place for place, name in enumerate(SIGNALS)}

LATEST = 6
"""Seconds by which a sample may come late, and samples that are kept on their way."""

OF_WORK = tuple(
    PLACE[name] for name in ("accelerator_utilisation", "matrix_pipe_activity", "power", "memory_bandwidth_utilisation")
)
"""Signals that tell whether anything works."""

PERIODS = (1, 1, 1, 1, 1, 1, 2, 5, 10, 15, 30)
"""Seconds between samples, drawn for each domain."""

RENEWED = (1, 1, 1, 1, 1, 1, 1, 4, 7, 20)
"""Seconds for which an exporter shows the same page, however often it is read; drawn for each domain."""

UTILISATION_STEPS = (0.0, 0.0, 0.0, 0.01, 0.01, 0.01, 0.04, 0.1)
POWER_STEPS = (0.0, 0.0, 0.0, 1.0, 1.0, 8.0)
PIPE_STEPS = (0.0, 0.0, 0.0, 0.01, 0.03)
"""Least steps of what is shown, and watts; drawn for each domain."""

SPARSE = 0.3
"""Share of the domains whose exporters give any signals at all, be they as few as one."""

STILL = 0.12
"""Share of the domains whose exporters show another value only once it differs by more than a band."""

CAPPED = 0.12
"""Share of the domains whose accelerators run into a limit of power before they run at their full clock."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes with what does not change while a world is played; one value for each node unless said otherwise."""

    domain: Places
    domains: int
    devices: Places
    idle_power: Instants
    working_power: Instants
    waiting_power: Instants
    capacity: Instants
    noise: Instants
    utilisation_noise: Instants
    utilisation_step: Instants
    power_step: Instants
    pipe_step: Instants
    band: Instants
    cap: Instants
    renewed: Places
    frozen: Flags
    shown: Flags
    share_of_fit: Flags
    by_device: Flags
    standing: Flags
    period: Places
    phase: Places
    gaps: Instants
    delay: Places

    def population(self, member: Places, family: Places) -> Population:
        """The fleet as a recogniser is told of it."""
        families = int(family.max()) + 1 if len(family) else 0
        return Population(self.domain, self.domains, member, family, families, self.devices)


def fleet(random: np.random.Generator, region: Region, sizes: list[int], period: int | None = None) -> Fleet:
    """Draw domains of these sizes; hardware and exporters are alike within a domain.

    Args:
        random: Source of chance.
        region: Where parameters are drawn from.
        sizes: Nodes of each domain.
        period: Seconds between samples; drawn for each domain where None.
    """
    domains, nodes = len(sizes), sum(sizes)
    of = np.repeat(np.arange(domains), sizes)

    def each(low: float, high: float) -> Instants:
        return random.uniform(low, high, domains)[of]

    def some(share: float) -> Flags:
        return (random.random(domains) < share)[of]

    devices = random.choice([1, 2, 4, 8, 8, 8, 16], domains)[of]
    highest = devices * each(120, 900)
    idle = highest * each(*region.idle_power) * random.uniform(0.93, 1.07, nodes)
    working = (highest - idle) * random.uniform(0.95, 1.05, nodes)
    periods = random.choice(PERIODS, domains)[of] if period is None else np.full(nodes, period)
    late = random.random(nodes) < each(0.0, 0.08)
    return Fleet(
        domain=of,
        domains=domains,
        devices=devices,
        idle_power=idle,
        working_power=working,
        waiting_power=working * each(*region.waiting_power),
        capacity=devices * each(16e9, 192e9),
        noise=each(*region.noise) * random.uniform(0.8, 1.25, nodes),
        utilisation_noise=each(0.0, 0.03),
        utilisation_step=random.choice(UTILISATION_STEPS, domains)[of],
        power_step=random.choice(POWER_STEPS, domains)[of],
        pipe_step=random.choice(PIPE_STEPS, domains)[of],
        band=np.where(some(STILL), each(0.03, 0.25), 0.0),
        cap=np.where(some(CAPPED), each(0.3, 0.9), np.inf),
        renewed=random.choice(RENEWED, domains)[of] if period is None else np.ones(nodes, np.intp),
        frozen=some(0.3),
        shown=_shown(random, domains)[:, of],
        share_of_fit=some(0.5),
        by_device=some(0.6),
        standing=some(0.5),
        period=periods.astype(np.intp),
        phase=random.integers(0, 1 << 16, nodes),
        gaps=np.where(some(0.7), each(0.0, 0.02), 0.0),
        delay=np.where(late, random.integers(1, LATEST - 1, nodes), 0) + some(0.2),
    )


def _shown(random: np.random.Generator, domains: int) -> Flags:
    """Which signals the exporters of each domain give, (signals, domains).

    Most give utilisation, power or both; those of sparse domains any signals of which one is of work.
    """
    shown = random.random((len(SIGNALS), domains)) < 0.8
    few = random.random(domains) < 0.15
    shown[:, few] = False
    kept = [PLACE[name] for name in ("accelerator_utilisation", "power", "accelerator_memory_used")]
    shown[np.ix_(np.array(kept), few)] = True
    full = random.random(domains) < 0.4
    shown[:, full] = True
    shown[PLACE["accelerator_utilisation"]] |= random.random(domains) < 0.85
    shown[PLACE["power"]] |= ~shown[PLACE["accelerator_utilisation"]]
    shown[PLACE["faults"]] |= random.random(domains) < 0.5
    shown[PLACE["allocatable_share"]] &= random.random(domains) < 0.5
    sparse = random.random(domains) < SPARSE
    any_of_all = random.random(shown.shape) < random.uniform(0.05, 0.6, domains)
    any_of_all[random.choice(OF_WORK, domains), np.arange(domains)] = True
    shown = np.where(sparse, any_of_all, shown)
    shown[PLACE["health_state"]] = False
    return shown


class Post:
    """Samples on their way: some are lost, some come late; what counts is the newest one that has arrived."""

    def __init__(self, fleet: Fleet, random: np.random.Generator) -> None:
        nodes = len(fleet.domain)
        self._fleet, self._random = fleet, random
        self._values = np.full((LATEST + 1, nodes, len(SIGNALS)), np.nan)
        self._due = np.full((LATEST + 1, nodes), np.inf)
        self._state = np.zeros((LATEST + 1, nodes), np.int8)
        self._lost_until = np.zeros(nodes)
        self.values = np.full((nodes, len(SIGNALS)), np.nan)
        self.observed = np.full(nodes, np.nan)
        self.arrived = np.full(nodes, np.nan)
        self.state = np.zeros(nodes, np.int8)

    def step(
        self, second: int, values: Instants, state: "np.ndarray[tuple[int], np.dtype[np.int8]]", answers: Flags
    ) -> Flags:
        """Send this second's samples with the truth of the moment; returns which nodes have a newer sample."""
        made = self._fleet
        slot = second % (LATEST + 1)
        begins = self._random.random(len(made.gaps)) < made.gaps / made.period
        ends = second + made.period * self._random.integers(1, 4, len(made.gaps))
        self._lost_until = np.where(begins & (second >= self._lost_until), ends, self._lost_until)
        sampled = ((second + made.phase) % made.period == 0) & answers & (second >= self._lost_until)
        late = np.where(made.delay > 1, self._random.integers(0, made.delay + 1), made.delay)
        self._values[slot], self._state[slot] = values, state
        self._due[slot] = np.where(sampled, second + late, np.inf)
        fresh = np.zeros(len(sampled), bool)
        for age in range(min(LATEST, second), -1, -1):
            at = (second - age) % (LATEST + 1)
            here = self._due[at] <= second
            self._due[at][here] = np.inf
            self.arrived[here] = second
            newer = here & ~(self.observed >= second - age)
            self.values[newer], self.state[newer] = self._values[at][newer], self._state[at][newer]
            self.observed[newer] = second - age
            fresh |= newer
        return fresh
