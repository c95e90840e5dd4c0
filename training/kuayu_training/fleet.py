"""Nodes of the training generator: hardware and exporters, jobs that load them, and what befalls them.

1. Parameters are drawn from a region; a region beside it is one that no training sees (``TRAINING``, ``HELD_OUT``).
2. Hardware and exporters: what a node's sensors make of what it does, and what arrives.
3. Jobs: families and single nodes that work in phases, each with a load of its own.
4. What befalls nodes: for how long, and what state that is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.values import SIGNALS, Flags, Instants, Places, Population

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


Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Region:
    """Ranges from which the parameters of hardware, jobs and faults are drawn, uniformly.

    Attributes:
        noise: Relative noise of a sample.
        idle_power: Power of an idle accelerator over its highest.
        waiting_power: Power drawn above idle while an accelerator waits busily, over that at work.
        slowness: Speed of a slow node over its usual.
        exponent: By which power above idle follows the clock.
        coupling: Share of a step in which the others wait for a slow member.
        busy_waiting: Share of its waiting time in which an accelerator shows as utilised.
        pipe: Activity of the matrix pipe at work.
        utilisation: Utilisation at work.
        drift: Amplitude of slow changes of load.
        variation: Standard deviation between members of one family, lasting and passing.
        family: Members of a family.
        dwell: Seconds for which a fault lasts.
    """

    noise: Range = (0.008, 0.06)
    idle_power: Range = (0.08, 0.32)
    waiting_power: Range = (0.1, 0.65)
    slowness: Range = (0.33, 0.87)
    exponent: Range = (0.8, 2.4)
    coupling: Range = (0.75, 1.0)
    busy_waiting: Range = (0.85, 1.0)
    pipe: Range = (0.12, 0.85)
    utilisation: Range = (0.6, 1.0)
    drift: Range = (0.0, 0.1)
    variation: Range = (0.0, 0.08)
    family: tuple[int, int] = (2, 33)
    dwell: Range = (9.0, 90.0)


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

    def drawn(low: float, high: float) -> Instants:
        return random.uniform(low, high, domains)[of]

    def some(share: float) -> Flags:
        return (random.random(domains) < share)[of]

    devices = random.choice([1, 2, 4, 8, 8, 8, 16], domains)[of]
    highest = devices * drawn(120, 900)
    idle = highest * drawn(*region.idle_power) * random.uniform(0.93, 1.07, nodes)
    working = (highest - idle) * random.uniform(0.95, 1.05, nodes)
    periods = random.choice(PERIODS, domains)[of] if period is None else np.full(nodes, period)
    late = random.random(nodes) < drawn(0.0, 0.08)
    return Fleet(
        domain=of,
        domains=domains,
        devices=devices,
        idle_power=idle,
        working_power=working,
        waiting_power=working * drawn(*region.waiting_power),
        capacity=devices * drawn(16e9, 192e9),
        noise=drawn(*region.noise) * random.uniform(0.8, 1.25, nodes),
        utilisation_noise=drawn(0.0, 0.03),
        utilisation_step=random.choice(UTILISATION_STEPS, domains)[of],
        power_step=random.choice(POWER_STEPS, domains)[of],
        pipe_step=random.choice(PIPE_STEPS, domains)[of],
        band=np.where(some(STILL), drawn(0.03, 0.25), 0.0),
        cap=np.where(some(CAPPED), drawn(0.3, 0.9), np.inf),
        renewed=random.choice(RENEWED, domains)[of] if period is None else np.ones(nodes, np.intp),
        frozen=some(0.3),
        shown=_shown(random, domains)[:, of],
        share_of_fit=some(0.5),
        by_device=some(0.6),
        standing=some(0.5),
        period=periods.astype(np.intp),
        phase=random.integers(0, 1 << 16, nodes),
        gaps=np.where(some(0.7), drawn(0.0, 0.02), 0.0),
        delay=np.where(late, random.integers(1, LATEST - 1, nodes), 0) + some(0.2),
    )


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
        fleet = self._fleet
        slot = second % (LATEST + 1)
        begins = self._random.random(len(fleet.gaps)) < fleet.gaps / fleet.period
        ends = second + fleet.period * self._random.integers(1, 4, len(fleet.gaps))
        self._lost_until = np.where(begins & (second >= self._lost_until), ends, self._lost_until)
        sampled = ((second + fleet.phase) % fleet.period == 0) & answers & (second >= self._lost_until)
        late = np.where(fleet.delay > 1, self._random.integers(0, fleet.delay + 1), fleet.delay)
        self._values[slot], self._state[slot] = values, state
        self._due[slot] = np.where(sampled, second + late, np.inf)
        fresh = np.zeros(len(sampled), bool)
        for age in range(min(LATEST, second), -1, -1):
            sent = (second - age) % (LATEST + 1)
            due = self._due[sent] <= second
            self._due[sent][due] = np.inf
            self.arrived[due] = second
            newer = due & ~(self.observed >= second - age)
            self.values[newer], self.state[newer] = self._values[sent][newer], self._state[sent][newer]
            self.observed[newer] = second - age
            fresh |= newer
        return fresh


SYNCHRONOUS, INDEPENDENT, SERVING = range(3)
"""Kinds of a group: its members wait for each other, do not, or serve requests."""

PHASES = (
    (1.0, 1.0, 1.0, 1.0, 0.0, 0.0),
    (0.97, 1.15, 1.0, 0.15, 3.0, 60.0),
    (0.85, 0.7, 0.8, 0.3, 5.0, 60.0),
    (0.25, 0.03, 0.06, 0.05, 2.0, 25.0),
    (0.98, 0.03, 0.05, 0.05, 2.0, 15.0),
    (0.45, 0.4, 0.45, 0.4, 3.0, 40.0),
    (0.9, 0.75, 0.75, 0.75, 5.0, 90.0),
    (1.0, 0.9, 0.9, 1.6, 5.0, 90.0),
    (1.0, 0.55, 0.55, 0.55, 8.0, 90.0),
)
"""Factors of utilisation, pipe, memory bandwidth and flow, and shortest and longest seconds: work, evaluation with and
without much data, checkpoint with the accelerators idle or waiting busily, data stall, shorter and longer steps, and
all waiting busily for a part of each step for what none of them can help, such as a congested network or store."""

OF_ONE = (1, 1, 3, 7, 7, 7)
"""Phases of a node alone, as often as they are drawn: those that do not look like slowness, which nobody could tell
from it."""

KEEPS = (0.1, 0.02)
"""Share of the nodes alone, and of the families, that keep their memory while they have nothing to do: notebooks, and
servers of which nobody asks anything."""

SHORT = 6.0
"""Seconds that the phase of a node alone lasts at most in which its accelerators stand still."""


@dataclass(slots=True)
class Jobs:
    """What each group does; one value for each group unless said otherwise."""

    kind: Places
    alone: Flags
    keeps: Flags
    coupling: Instants
    busy_waiting: Instants
    elastic: Flags
    restless: Flags
    bursty: Flags
    working: Flags
    until: Instants
    phase: Places
    phase_until: Instants
    depth: Instants
    utilisation: Instants
    pipe: Instants
    memory_pipe: Instants
    power: Instants
    flow: Instants
    answers: Instants
    storage: Instants
    memory: Instants
    swing: Instants
    swing_period: Instants
    load: Instants
    factor: Instants
    patience: Instants
    saturated: Flags
    ready: Instants
    loading: Instants

    @classmethod
    def draw(cls, random: np.random.Generator, region: Region, sizes: Places) -> "Jobs":
        """Groups of these sizes, the most of them at work."""
        count = len(sizes)
        kind = np.where(
            sizes > 1,
            random.choice([SYNCHRONOUS, INDEPENDENT, SERVING], count, p=[0.84, 0.06, 0.1]),
            random.choice([INDEPENDENT, SERVING], count, p=[0.5, 0.5]),
        )
        blocking = random.random(count) < 0.12
        zeros = np.zeros(count)
        jobs = cls(
            kind=kind,
            alone=sizes == 1,
            keeps=random.random(count) < np.where(sizes == 1, *KEEPS),
            coupling=np.where(kind == SYNCHRONOUS, random.uniform(*region.coupling, count), 0.0),
            busy_waiting=np.where(
                blocking, random.uniform(0.0, 0.5, count), random.uniform(*region.busy_waiting, count)
            ),
            elastic=random.random(count) < 0.25,
            restless=random.random(count) < 0.5,
            bursty=random.random(count) < 0.3,
            working=random.random(count) < 0.85,
            until=random.uniform(30, 300, count),
            phase=np.zeros(count, np.intp),
            phase_until=random.uniform(10, 120, count),
            depth=np.ones(count),
            **{
                name: zeros.copy()
                for name in ("utilisation", "pipe", "memory_pipe", "power", "flow", "answers", "storage", "memory")
            },
            swing=zeros.copy(),
            swing_period=np.ones(count),
            load=random.uniform(0.4, 0.9, count),
            factor=np.ones(count),
            patience=np.select(
                [random.random(count) < 0.4, random.random(count) < 0.6],
                [random.uniform(0, 3, count), random.uniform(3, 60, count)],
                np.inf,
            ),
            saturated=random.random(count) < 0.35,
            ready=zeros.copy(),
            loading=zeros.copy(),
        )
        jobs._change(random, region, np.ones(count, bool))
        return jobs

    def begin(self, random: np.random.Generator, region: Region, second: int, which: Flags) -> None:
        """Let some groups load what they work on before they work; some of them another job than before."""
        count = len(self.kind)
        lasts = np.where(random.random(count) < 0.3, 0.0, np.exp(random.uniform(np.log(2), np.log(40), count)))
        self.ready = np.where(which, second + np.where(self.keeps, 0.0, lasts), self.ready)
        self.loading = np.where(which, random.uniform(0.0, 0.3, count), self.loading)
        self._change(random, region, which & ~self.keeps & (random.random(count) < 0.5))

    def give_up(self, random: np.random.Generator, second: int, which: Flags, until: Instants) -> None:
        """End the work of groups of which a member failed; they begin again some time after it is mended."""
        ends = which & self.working
        self.working &= ~ends
        self.until = np.where(ends, np.maximum(second, until) + random.uniform(2, 40, len(ends)), self.until)

    def _change(self, random: np.random.Generator, region: Region, which: Flags) -> None:
        """New jobs for some groups."""
        count = int(which.sum())

        def drawn(low: float, high: float) -> Instants:
            return random.uniform(low, high, count)

        self.utilisation[which] = drawn(*region.utilisation)
        self.pipe[which] = drawn(*region.pipe)
        self.memory_pipe[which] = drawn(0.1, 0.8)
        self.power[which] = drawn(0.35, 1.0)
        serves, alone = (self.kind == SERVING)[which], self.alone[which]
        exchanges = random.random(count) < np.where(alone & ~serves, 0.15, 0.9)
        self.flow[which] = np.where(exchanges, 10 ** np.where(serves, drawn(5.0, 9.0), drawn(7.5, 10.7)), 0.0)
        self.answers[which] = np.where(serves, 10 ** drawn(-1, 1), 1.0)
        self.storage[which] = 10 ** np.where(serves, drawn(3.0, 7.0), drawn(5.5, 9.5))
        self.memory[which] = drawn(0.15, 0.97)
        self.swing[which] = drawn(*region.drift)
        self.swing_period[which] = drawn(90, 900)

    def step(self, random: np.random.Generator, region: Region, second: int) -> Instants:
        """Let a second pass; returns the factors of utilisation, pipe, memory bandwidth and flow, (4, groups)."""
        count = len(self.kind)
        switches = second >= self.until
        self.working ^= switches
        self.begin(random, region, second, switches & self.working)
        lasts = np.where(self.working, random.uniform(40, 400, count), random.uniform(10, 60, count))
        spell = np.exp(random.uniform(np.log(4), np.log(80), count))
        lasts = np.where(self.keeps & self.alone, spell, lasts)
        self.until = np.where(switches, second + lasts, self.until)
        change = second >= self.phase_until
        other = np.where(self.alone, random.choice(OF_ONE, count), random.integers(1, len(PHASES), count))
        other = np.where(self.phase == 0, other, 0)
        self.phase = np.where(change, other, self.phase)
        table = np.array(PHASES)[self.phase]
        lasts = np.where(
            self.phase == 0, random.uniform(15, 240, count), random.uniform(table[:, 4], table[:, 5] + 0.1)
        )
        lasts = np.where(self.alone & (self.phase != 0) & (table[:, 0] < 0.5), np.minimum(lasts, SHORT), lasts)
        quiet = ~self.restless & (self.phase == 0)
        self.phase_until = np.where(change, second + np.where(quiet, 1e9, lasts), self.phase_until)
        self.depth = np.where(change, random.uniform(0.4, 1.25, count), self.depth)
        dip = np.where(self.bursty & (random.random(count) < 0.02), random.uniform(0.3, 0.9, count), 1.0)
        swing = 1 + self.swing * np.sin(2 * np.pi * (second / self.swing_period + self.flow % 1))
        self.factor = 0.6 * self.factor + 0.4 * random.normal(1, 0.02, count)
        factors = np.clip(1 + (table[:, :4] - 1) * self.depth[:, None], 0.02, 1.6).T * dip * self.factor
        factors[1:] *= swing
        loads = (second < self.ready)[None]
        still = self.loading * random.uniform(0.2, 1.0, count)
        factors = np.where(loads, np.stack([still, 0.02 * still, 0.1 * still, 0.01 * still]), factors)
        jump = random.random(count) < np.where(self.bursty, 0.06, 0.01)
        target = np.where(jump, random.uniform(0.12, 1.0, count), self.load)
        self.load = np.clip(target + random.normal(0, 0.02, count), 0.1, 1.0)
        return factors


NONE, SLOW_CLOCK, SLOW_HOST, SLOW_MEMORY, SLOW_DEVICE, SLOW_LINK, FAULTS, PART_LOST, DEAD, STUCK, AWAY, LEFT = range(12)
"""Causes: clock, host or memory slower, one device or the network card slow, faults mended, devices missing; hung with
nothing, or with an odd utilisation that stands still; silent; and a member that is no longer needed, which is no
fault."""

CAUSES = (
    "none",
    "slow clock",
    "slow host",
    "slow memory",
    "one slow device",
    "slow link",
    "mended faults",
    "devices missing",
    "hung",
    "stuck",
    "away",
    "left its job",
)

CHANCES = np.array([0.0, 0.2, 0.14, 0.09, 0.03, 0.05, 0.08, 0.1, 0.14, 0.12, 0.08, 0.04])
WHILE_IDLE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.12, 0.5, 0.0, 0.08, 0.3, 0.0])

IDLE_CHANCE = 0.004
"""Chance by second that something befalls a node that does not work; idle nodes have nothing to do with each other."""

WORSE = 0.3
"""Share of the faults that end in a worse one."""

STUCK_BUSY = 0.6
"""Share of the kernels that never end which keep all accelerators of the node busy, as their utilisation shows."""

CALM = 30
"""Seconds at the beginning of a world in which nothing befalls anyone."""

SLOW = (SLOW_CLOCK, SLOW_HOST, SLOW_MEMORY, SLOW_DEVICE, SLOW_LINK)
STOPPED = (DEAD, STUCK)

SETTLING = 12
"""Seconds of work before which slowness cannot be told, since nothing is usual yet."""

TELLING = np.array([0.0, 0.1, 0.1, 0.7, 0.3, 0.4, 1.0, 0.1, 0.0, 0.0, 0.0, 0.0])
"""Share of the faults of each cause that show mended faults while they last, such as errors of memory or links."""


@dataclass(slots=True)
class InjectedFaults:
    """What befalls each node now; one value for each node."""

    cause: Places
    since: Instants
    until: Instants
    speed: Instants
    power: Instants
    odd: Instants
    rate: Instants
    burst: Instants
    lost: Instants
    tells: Flags
    holds: Flags
    withheld: Instants

    @classmethod
    def none(cls, nodes: int) -> "InjectedFaults":
        """No fault anywhere."""
        names = ("since", "until", "speed", "power", "odd", "rate", "burst", "lost", "withheld")
        return cls(
            cause=np.zeros(nodes, np.intp),
            tells=np.zeros(nodes, bool),
            holds=np.zeros(nodes, bool),
            **{name: np.zeros(nodes) for name in names},
        )

    def step(
        self,
        random: np.random.Generator,
        region: Region,
        second: int,
        group: Places,
        jobs: Jobs,
        works: Flags,
        visible: Flags,
    ) -> None:
        """End what is over, and let new faults befall nodes: of those that work together mostly one at a time.

        Args:
            random: Source of chance.
            region: Where parameters are drawn from.
            second: Seconds since the world began.
            group: Group of each node.
            jobs: What the groups do.
            works: Whether each node takes part in it.
            visible: Whether faults, missing devices, and what is sent again can be seen of a node, and whether faults
                show for as long as they stand, (4, nodes).
        """
        over = (second >= self.until) & (self.cause != NONE)
        self._worsen(random, over & works, second, region)
        over &= second >= self.until
        again = np.zeros(len(jobs.kind), bool)
        again[group[over & stops(self.cause)]] = True
        jobs.begin(random, region, second, again & jobs.alone & jobs.working & (random.random(len(again)) < 0.7))
        self.cause[over] = NONE
        size = np.bincount(group, minlength=len(jobs.kind))
        having = np.bincount(group[(self.cause != NONE) & works], minlength=len(size))
        chance = (
            0.0
            if second < CALM
            else np.minimum(0.012 * size, 0.12) * np.select([having == 0, having < 0.3 * size], [1, 0.2], 0)
        )
        alone = 0.0 if second < CALM else IDLE_CHANCE
        picked = random.random(len(group)) < np.where(works, (chance / size)[group], alone)
        rows = np.flatnonzero(picked & (self.cause == NONE))
        if not len(rows):
            return
        count = len(rows)
        working = works[rows]
        drawn = random.choice(len(CAUSES), count, p=CHANCES / CHANCES.sum())
        drawn_idle = random.choice(len(CAUSES), count, p=WHILE_IDLE / WHILE_IDLE.sum())
        drawn = np.where(working, drawn, drawn_idle)
        hidden = ((drawn == FAULTS) & ~visible[0, rows]) | ((drawn == PART_LOST) & ~visible[1, rows])
        lone = (jobs.kind != SYNCHRONOUS)[group[rows]] | ~(visible[0, rows] | visible[2, rows])
        hidden |= (drawn == SLOW_LINK) & lone
        slowed = np.bincount(group[np.isin(self.cause, SLOW)], minlength=len(size)) > 0
        early = second < (jobs.ready + SETTLING)
        hidden |= np.isin(drawn, SLOW) & (slowed | early)[group[rows]]
        self.cause[rows] = np.where(hidden, NONE, drawn)
        self.since[rows] = second
        lasts = random.uniform(*region.dwell, count) * np.where(random.random(count) < 0.15, 4, 1)
        self.until[rows] = second + lasts
        self.speed[rows] = random.uniform(*region.slowness, count)
        self.power[rows] = random.uniform(*region.exponent, count)
        full = random.random(count) < np.where(self.cause[rows] == STUCK, STUCK_BUSY, 0.1)
        self.odd[rows] = np.where(full, 1.0, random.uniform(0.05, 1.0, count))
        self.rate[rows] = np.where(visible[3, rows], 1e3, np.exp(random.uniform(np.log(0.25), np.log(1.5), count)))
        self.burst[rows] = np.where(random.random(count) < 0.6, random.integers(1, 20, count), 0)
        self.lost[rows] = np.where(random.random(count) < 0.5, 0.06, random.uniform(0.05, 0.8, count))
        silent_link = (self.cause[rows] == SLOW_LINK) & ~visible[2, rows]
        self.tells[rows] = (random.random(count) < TELLING[self.cause[rows]]) | silent_link
        reported = visible[0, rows] & (self.burst[rows] > 0)
        freed = (reported | (self.cause[rows] == STUCK)) & (random.random(count) < 0.15)
        self.holds[rows] = working & ~freed
        self.withheld[rows] = np.where(random.random(count) < 0.4, random.uniform(0, 15, count), np.inf)

    def _worsen(self, random: np.random.Generator, over: Flags, second: int, region: Region) -> None:
        """Let some faults of work end in a worse one: what is mended again and again is not mended in the end."""
        worse = over & np.isin(self.cause, (*SLOW, FAULTS, PART_LOST)) & (random.random(len(over)) < WORSE)
        count = int(worse.sum())
        self.cause[worse] = random.choice((DEAD, STUCK, AWAY), count, p=(0.5, 0.3, 0.2))
        self.since[worse] = second
        self.until[worse] = second + random.uniform(*region.dwell, count)
        self.odd[worse] = np.where(random.random(count) < STUCK_BUSY, 1.0, random.uniform(0.05, 1.0, count))
        self.burst[worse] = np.where(random.random(count) < 0.6, random.integers(1, 20, count), 0)
        self.tells[worse] = False
        self.holds[worse] = True
        self.withheld[worse] = np.inf

    def end_jobs(self, random: np.random.Generator, second: int, group: Places, jobs: Jobs) -> None:
        """Let jobs that miss a member end once their patience does; a lost device ends some at once."""
        failed = stops(self.cause) | ((self.cause == PART_LOST) & (self.odd > 0.5))
        gone = failed & (jobs.kind == SYNCHRONOUS)[group] & (second - self.since >= jobs.patience[group])
        which, until = np.zeros(len(jobs.kind), bool), np.zeros(len(jobs.kind))
        which[group[gone & ~jobs.elastic[group]]] = True
        np.maximum.at(until, group[gone], self.until[gone])
        jobs.give_up(random, second, which, until)

    def stop_of_idle(self, works: Flags) -> None:
        """What slows or stops work ends with the work, as what leaves it does."""
        of_work = np.isin(self.cause, (*SLOW, LEFT))
        self.cause[of_work & ~works] = NONE

    def faults(self, random: np.random.Generator, second: int) -> Instants:
        """Faults that are seen in this second."""
        count = len(self.cause)
        seen = (random.random(count) < 2e-4).astype(float)
        age = second - self.since
        stopped = np.isin(self.cause, STOPPED)
        onset = stopped & (age < 2) & (self.burst > 0)
        seen += np.where(onset, random.poisson(self.burst), 0)
        seen = np.where(stopped & (self.rate > 100) & (self.burst > 0), np.maximum(seen, 1), seen)
        mended = self.tells & (self.cause != NONE)
        again = random.random(count) < np.minimum(self.rate, 0.9)
        return seen + np.where(mended & (again | (age < 1)), random.integers(1, 4, count), 0)

    def states(self, group: Places, jobs: Jobs, works: Flags, hung: Flags) -> NDArray[np.int8]:
        """The truth, as the clause has it; in a group that hangs nobody waits for one who is only slow.

        Who hangs alone with nothing that counts it shows what a rest with its memory held shows, and is idle.
        """
        works = works & (self.cause != LEFT)
        state = np.where(works, states.BUSY, states.IDLE)
        waited_for = (jobs.kind == SYNCHRONOUS)[group]
        slow = np.isin(self.cause, SLOW) & ~(hung[group] & waited_for)
        state = np.where(slow & works, np.where(waited_for, states.STRAGGLING, states.DEGRADED), state)
        state = np.where(np.isin(self.cause, (FAULTS, PART_LOST)), states.DEGRADED, state)
        state = np.where(np.isin(self.cause, STOPPED), states.FAULTY, state)
        state = np.where((self.cause == DEAD) & (self.burst == 0) & ~waited_for, states.IDLE, state)
        return np.where(self.cause == AWAY, states.OFFLINE, state).astype(np.int8)

    def missing_share(self, devices: Places) -> Instants:
        """Share of the accelerators that are there."""
        lost = np.clip(np.round(self.lost * devices), 1, np.maximum(devices - 1, 1)) / devices
        present = np.where(self.cause == PART_LOST, 1 - np.where(devices > 1, lost, 0.0), 1.0)
        return np.where((self.cause == DEAD) & (self.odd < 0.15), 1 - np.minimum(lost, 0.5), present)


def stops(cause: Places) -> Flags:
    """Whether the others of a synchronous family hang."""
    return np.isin(cause, (*STOPPED, AWAY))


TRAINING = Region()

HELD_OUT = Region(
    noise=(0.02, 0.05),
    idle_power=(0.32, 0.38),
    waiting_power=(0.65, 0.72),
    slowness=(0.4, 0.8),
    exponent=(0.6, 0.8),
    coupling=(0.95, 1.0),
    busy_waiting=(0.97, 1.0),
    pipe=(0.08, 0.12),
    utilisation=(0.9, 1.0),
    drift=(0.05, 0.13),
    variation=(0.04, 0.09),
    family=(4, 48),
    dwell=(12.0, 60.0),
)
"""Beyond the training region in power at idle and while waiting, in its exponent, in the pipe, in drift and variation
and in the size of families; within it elsewhere."""


def _shown(random: np.random.Generator, domains: int) -> Flags:
    """Which signals the exporters of each domain give, (signals, domains).

    Most give utilisation, power or both; those of sparse domains any signals of which one is of work.
    """
    shown = random.random((len(SIGNALS), domains)) < 0.8
    few = random.random(domains) < 0.15
    shown[:, few] = False
    always = [PLACE[name] for name in ("accelerator_utilisation", "power", "accelerator_memory_used")]
    shown[np.ix_(np.array(always), few)] = True
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
