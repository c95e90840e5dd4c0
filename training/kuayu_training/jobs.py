"""Jobs of the training generator: families and single nodes that work in phases, each with a load of its own."""

from dataclasses import dataclass

import numpy as np

from kuayu.perception.recognition.values import Flags, Instants, Places
from kuayu_training.region import Region

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
        made = cls(
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
        made._change(random, region, np.ones(count, bool))
        return made

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
        turn = second >= self.until
        self.working ^= turn
        self.begin(random, region, second, turn & self.working)
        lasts = np.where(self.working, random.uniform(40, 400, count), random.uniform(10, 60, count))
        spell = np.exp(random.uniform(np.log(4), np.log(80), count))
        lasts = np.where(self.keeps & self.alone, spell, lasts)
        self.until = np.where(turn, second + lasts, self.until)
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
