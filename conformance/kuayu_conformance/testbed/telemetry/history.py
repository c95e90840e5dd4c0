"""What the plan says, as arrays of rows × samples: which run, which trouble, since when."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.telemetry.jobs import Run
from kuayu_conformance.testbed.telemetry.ledger import Affliction, Change, Ledger, Tenure, Trouble
from kuayu_conformance.testbed.telemetry.population import Population
from kuayu_conformance.testbed.telemetry.values import BUSY, IDLE, TICKS

Floats = NDArray[np.float32]

_BETWEEN_FAULTS = (1.0, 3.0)  # seconds
_MOST_FAULTS = 3  # counted of one fatal event
_SINGLE_FAULTS = 0.0008  # chance of a fault that is mended and does not come again, by node and second
_APART = 20 * TICKS  # from any change of the node
_SENT_AGAIN = (0.2, 0.5)  # share of what a degraded network card sends that it sends a second time


@dataclass(frozen=True)
class Timing:
    """When rows are sampled: sample k of a row at ``k`` seconds and ``offset`` ticks."""

    offset: NDArray[np.int64]
    seconds: int

    def span(self, row: int, since: int, until: int) -> slice:
        """Samples of a row whose second before them has something of these ticks."""
        first = (since - int(self.offset[row])) // TICKS + 1
        last = -(-(until - int(self.offset[row])) // TICKS) + 1
        return slice(max(0, first), max(0, min(last, self.seconds)))

    def within(self, row: int, since: int, until: int) -> slice:
        """Samples of a row that are taken after the first tick, and not after the last."""
        first = (since - int(self.offset[row])) // TICKS + 1
        last = (until - int(self.offset[row])) // TICKS + 1
        return slice(max(0, first), max(0, min(last, self.seconds)))

    def instants(self, row: int, part: slice) -> NDArray[np.float64]:
        """Ticks of some samples of a row."""
        return np.arange(part.start, max(part.start, part.stop)) * float(TICKS) + float(self.offset[row])


@dataclass(frozen=True)
class History:
    """Arrays of rows × samples.

    Attributes:
        run: Number of the run that holds the node, -1 without one.
        memory: How much of the run's memory is filled, 0 … 1.
        serving: Share of the sample's second in which a server of inference could work.
        speed: Speed of the node's own part.
        congestion: Factor on the rate of communication of its group.
        again: Factor on what it sends.
        lost: Share of its devices that are lost.
        faults: Faults counted, or 1 where one stands.
        stuck: Share of the sample's second in which a kernel never ends.
        silent: Whether the node sends nothing.
    """

    run: NDArray[np.int32]
    memory: Floats
    serving: Floats
    speed: Floats
    congestion: Floats
    again: Floats
    lost: Floats
    faults: Floats
    stuck: Floats
    silent: NDArray[np.bool_]

    @classmethod
    def of(cls, ledger: Ledger, runs: list[Run], timing: Timing, chance: Chance) -> Self:
        """The history of a plan."""
        shape = (len(timing.offset), timing.seconds)
        history = cls(
            run=np.full(shape, -1, dtype=np.int32),
            memory=np.zeros(shape, dtype=np.float32),
            serving=np.zeros(shape, dtype=np.float32),
            speed=np.ones(shape, dtype=np.float32),
            congestion=np.ones(shape, dtype=np.float32),
            again=np.ones(shape, dtype=np.float32),
            lost=np.zeros(shape, dtype=np.float32),
            faults=np.zeros(shape, dtype=np.float32),
            stuck=np.zeros(shape, dtype=np.float32),
            silent=np.zeros(shape, dtype=np.bool_),
        )
        for tenure in ledger.tenures:
            history._hold(tenure, runs[tenure.run], timing)
        for affliction in ledger.afflictions:
            history._suffer(affliction, ledger.population, runs, timing, chance)
        history._single_faults(ledger, timing, chance)
        return history

    def _hold(self, tenure: Tenure, run: Run, timing: Timing) -> None:
        row = tenure.row
        self.run[row, timing.span(row, tenure.since, tenure.until)] = tenure.run
        part = timing.within(row, tenure.since, tenure.until)
        filled = (timing.instants(row, part) - tenure.since) / (run.load * TICKS)
        self.memory[row, part] = np.minimum(filled, 1.0)
        begin = tenure.since + run.load * TICKS
        part = timing.span(row, tenure.since, tenure.until)
        now = timing.instants(row, part)
        worked = np.minimum(now, tenure.until) - np.maximum(now - TICKS, begin)
        self.serving[row, part] = np.clip(worked / TICKS, 0.0, 1.0)

    def _suffer(
        self, trouble: Affliction, population: Population, runs: list[Run], timing: Timing, chance: Chance
    ) -> None:
        row = trouble.row
        part = timing.span(row, trouble.since, trouble.until)
        after = timing.within(row, trouble.since, trouble.until)
        kind = population.kind(row)
        if trouble.trouble is Trouble.SILENT:
            self.silent[row, _silence(timing, row, trouble)] = True
        elif trouble.trouble is Trouble.LOST:
            self.lost[row, after] = trouble.strength / kind.devices
        elif trouble.trouble is Trouble.NETWORK:
            group = population.groups[population.group[row]]
            run = runs[int(self.run[row, part.start])]
            longer = (1.0 / trouble.strength - 1.0) * run.step
            for member in range(group.first, group.last):
                samples = timing.span(member, trouble.since, trouble.until)
                self.congestion[member, samples] = run.exposed / (run.exposed + longer)
            self.again[row, part] = 1.0 + chance.between(*_SENT_AGAIN)
        elif trouble.trouble in {Trouble.CLOCK, Trouble.MEMORY}:
            self.speed[row, part] = trouble.strength
        elif trouble.trouble in {Trouble.HUNG, Trouble.STUCK}:
            now = timing.instants(row, part)
            ticks = np.minimum(now, trouble.until) - np.maximum(now - TICKS, trouble.since)
            stopped = np.clip(ticks / TICKS, 0.0, 1.0)
            self.serving[row, part] = np.maximum(self.serving[row, part] - stopped, 0.0)
            self.stuck[row, part] = stopped if trouble.trouble is Trouble.STUCK else 0.0
        if trouble.trouble in {Trouble.FAULTS, Trouble.FATAL, Trouble.MEMORY}:
            self._count(trouble, after, timing, chance, standing=kind.standing)

    def _count(self, trouble: Affliction, after: slice, timing: Timing, chance: Chance, *, standing: bool) -> None:
        """One while a fault stands; else each event in the sample that comes next, of a fatal fault the first only."""
        row, tick = trouble.row, float(trouble.since)
        if standing:
            self.faults[row, after] = 1.0
            return
        while tick < min(trouble.until, timing.seconds * TICKS):
            place = timing.within(row, int(tick), int(tick) + TICKS)
            self.faults[row, place] += 1 + chance.below(_MOST_FAULTS if trouble.trouble is Trouble.FATAL else 2)
            if trouble.trouble is Trouble.FATAL:
                return
            tick += chance.between(*_BETWEEN_FAULTS) * TICKS

    def _single_faults(self, ledger: Ledger, timing: Timing, chance: Chance) -> None:
        """Faults that were mended and do not come again change no state; where faults stand they could not be told."""
        changes: dict[int, list[Change]] = {}
        for change in ledger.changes:
            changes.setdefault(change.row, []).append(change)
        for row in range(ledger.population.nodes):
            if ledger.population.kind(row).standing or chance.fraction() >= _SINGLE_FAULTS * timing.seconds:
                continue
            tick = chance.below(timing.seconds * TICKS)
            own_changes = changes.get(row, [])
            state = next(
                (c.after for c in reversed(own_changes) if c.tick <= tick),
                own_changes[0].before if own_changes else IDLE,
            )
            if state in {IDLE, BUSY} and all(abs(change.tick - tick) > _APART for change in own_changes):
                self.faults[row, timing.within(row, tick, tick + TICKS)] += 1


def _silence(timing: Timing, row: int, trouble: Affliction) -> slice:
    """Samples that would be taken from the first tick on, and before the last."""
    part = timing.within(row, trouble.since - 1, trouble.until - 1)
    return slice(part.start, max(part.start, part.stop))
