"""What nodes do over time: step loops of all jobs, loads of servers, and what the plan says, as arrays.

1. **Step loops.** They run at once, in ticks of a twentieth of a second: which phase each node was in for how long. A
   step of a group: each member waits for its host's next batch (``gap``), its kernels compute, and it waits, busily,
   until the slowest has done so too; then all communicate together, save a checkpoint or evaluate where it is time, and
   begin the next step. Nothing else is said about who waits for whom: a slow member slows the others by the barrier
   alone. What is left of a tick when a part of a step ends is given to the next part, so that steps take as long as
   they should.
2. **History.** Which run a node has at a sample, which trouble, and since when.
3. **Servers.** At servers of inference requests queue up and are worked off; load comes in bursts and moves about its
   mean.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, normal
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.telemetry import jobs
from kuayu_conformance.testbed.telemetry.jobs import FIELDS, Run
from kuayu_conformance.testbed.telemetry.ledger import Affliction, Change, Ledger, Order, Tenure, Trouble
from kuayu_conformance.testbed.telemetry.population import Population
from kuayu_conformance.testbed.telemetry.values import BUSY, IDLE, TICKS

Floats = NDArray[np.float32]
_TICK = 1.0 / TICKS
_VARIATIONS = 64  # steps after which the variation of step times repeats
_MAX_DEVIATIONS = 2.5  # standard deviations beyond which variation is cut off
_UNDISTURBED = 12.0  # seconds after an onset in which no checkpoint or evaluation begins
_STOPPED_HUNG, _STOPPED_STUCK, _STOPPED_DEAD = 1, 2, 3
_BETWEEN_FAULTS = (1.0, 3.0)  # seconds
_MOST_FAULTS = 3  # counted of one fatal event
_SINGLE_FAULTS = 0.0008  # chance of a fault that is mended and does not come again, by node and second
_APART = 20 * TICKS  # from any change of the node
_SENT_AGAIN = (0.2, 0.5)  # share of what a degraded network card sends that it sends a second time
_KEPT = 0.85  # share of a deviation from the mean that is left a second later
_SPREAD = 0.12  # standard deviation of the logarithm of the load, by second
_BURSTS = 0.02  # chance by second that a burst begins
_BURST_SECONDS = 8.0  # mean length
_MIN_LOAD, _MAX_LOAD = 0.08, 0.95
_MOST_QUEUED = 2.0  # seconds of work; those who wait longer have gone


class Phase(IntEnum):
    """What a node is doing; the first five belong to a step of its own pace, others to the whole group."""

    NONE = 0
    DATA = auto()
    COMPUTE = auto()
    THROTTLED = auto()
    STALLING = auto()
    WAIT = auto()
    COMMUNICATE = auto()
    LOAD = auto()
    SAVE = auto()
    EVALUATE = auto()
    HUNG = auto()


_SHOWN = np.array([Phase.NONE, Phase.HUNG, Phase.WAIT, Phase.NONE])
_STEP = int(Phase.WAIT)  # phase of a group whose members are each at their own part of the step


class StepLoops:
    """The state of all nodes (rows) and groups between two ticks."""

    def __init__(self, population: Population, runs: Sequence[Run], chance: np.random.Generator) -> None:
        rows, groups = population.nodes, len(population.groups)
        self._runs = runs
        self._group = population.group
        self._firsts = np.array([group.first for group in population.groups])
        self._own = chance.standard_normal((_VARIATIONS, rows))
        self._common = np.clip(chance.standard_normal((_VARIATIONS, groups)), -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        self._even = 1.0 + jobs.WORKER_SPREAD * np.clip(chance.standard_normal(rows), -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        self._active = np.zeros(rows, dtype=bool)
        self._stopped = np.zeros(rows, dtype=np.int64)
        self._data, self._work = np.zeros(rows), np.zeros(rows)
        self._clock, self._slow = np.ones(rows), np.full(rows, int(Phase.COMPUTE))
        self._starved = np.zeros(rows)
        self._phase = np.zeros(groups, dtype=np.int64)
        self._timer, self._congested = np.zeros(groups), np.zeros(groups)
        self._steps = np.zeros(groups, dtype=np.int64)
        self._next_save, self._next_evaluation = np.zeros(groups), np.zeros(groups)
        self._slowed = np.zeros(groups, dtype=bool)
        self._of_run = {name: np.zeros(groups) for name in FIELDS}
        self._now = 0.0
        self._handlers: dict[str, Callable[[Order], None]] = {
            "start": self._start,
            "running": self._running,
            "stop": self._stop,
            "resume": self._resume,
            "hang": lambda order: self._halt(order, _STOPPED_HUNG),
            "stick": lambda order: self._halt(order, _STOPPED_STUCK),
            "die": lambda order: self._halt(order, _STOPPED_DEAD),
            "clear": self._clear,
            "mend": self._mend,
        }

    def play(self, orders: Sequence[Order], seconds: int, offset: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Ticks spent in each phase before each sample.

        Args:
            orders: In the order of their ticks.
            seconds: How long.
            offset: For each row, how many ticks after a full second it is sampled, 1 … 20.

        Returns:
            Array of phases × rows × seconds; a sample of second k is taken ``offset`` ticks after it.
        """
        rows = len(offset)
        counts = np.zeros((len(Phase), seconds, rows), dtype=np.uint8)
        since = np.zeros((len(Phase), rows), dtype=np.uint8)
        flat, every = since.reshape(-1), np.arange(rows)
        sampled = [np.flatnonzero(offset == place + 1) for place in range(TICKS)]
        place = 0
        for tick in range(seconds * TICKS):
            self._now = tick * _TICK
            while place < len(orders) and orders[place].tick <= tick:
                self._obey(orders[place])
                place += 1
            flat[self._advance() * rows + every] += 1
            due = sampled[tick % TICKS]
            counts[:, tick // TICKS, due] = since[:, due]
            since[:, due] = 0
        return np.ascontiguousarray(counts.transpose(0, 2, 1))

    def _advance(self) -> NDArray[np.int64]:
        """One tick; the phase of each row in it."""
        group = self._group
        own = (self._phase == _STEP)[group] & self._active & (self._stopped == 0)
        loading = own & (self._data > 0)
        self._data[loading] -= _TICK
        over = loading & (self._data <= 0)
        self._work[over] += self._data[over]
        computing = own & ~loading & (self._work > 0)
        self._work[computing] -= _TICK * self._clock[computing]
        shown = np.where(self._active, self._phase[group], 0)
        shown[loading] = Phase.DATA
        shown[computing] = self._slow[computing]
        stopped = self._stopped > 0
        shown[stopped] = _SHOWN[self._stopped[stopped]]
        held = np.logical_or.reduceat(self._active & (stopped | (self._data > 0) | (self._work > 0)), self._firsts)
        stepping = self._phase == _STEP
        ready = stepping & ~held
        self._phase[ready] = Phase.COMMUNICATE
        last = np.maximum.reduceat(np.where(self._active, self._work, -_TICK), self._firsts)
        self._timer[ready] = (self._of_run["exposed"] + self._congested + last)[ready]
        self._timer[(self._phase > _STEP) & ~stepping] -= _TICK
        self._follow((self._phase > _STEP) & (self._timer <= 0))
        return shown

    def _follow(self, over: NDArray[np.bool_]) -> None:
        """What comes after communication, a checkpoint, an evaluation or the start, for groups where it is over."""
        after_step = over & (self._phase == Phase.COMMUNICATE)
        save = after_step & (self._now >= self._next_save)
        evaluate = after_step & ~save & (self._now >= self._next_evaluation) & ~self._slowed
        of_run = self._of_run
        self._phase[save], self._timer[save] = Phase.SAVE, of_run["saving"][save]
        self._next_save[save] = self._now + of_run["checkpoint"][save]
        self._phase[evaluate], self._timer[evaluate] = Phase.EVALUATE, of_run["evaluating"][evaluate]
        self._next_evaluation[evaluate] = self._now + of_run["evaluation"][evaluate]
        self._step(np.flatnonzero(over & ~save & ~evaluate))

    def _step(self, numbers: NDArray[np.intp]) -> None:
        """The next step of some groups begins; what their last phase overran is taken from it."""
        of_run, turn = self._of_run, self._steps[numbers] % _VARIATIONS
        whole = np.ones(len(self._phase))
        whole[numbers] += of_run["common"][numbers] * self._common[turn, numbers]
        begins = np.zeros(len(self._phase), dtype=bool)
        begins[numbers] = True
        rows = np.flatnonzero(begins[self._group])
        group = self._group[rows]
        overrun = np.maximum(self._timer[group], -_TICK)
        data = of_run["gap"][group] * whole[group] + self._starved[rows] + overrun
        uneven = 1.0 + of_run["own"][group] * self._own[self._steps[group] % _VARIATIONS, rows]
        self._data[rows] = data
        self._work[rows] = of_run["compute"][group] * whole[group] * self._even[rows] * uneven + np.minimum(data, 0.0)
        self._steps[numbers] += 1
        self._phase[numbers], self._timer[numbers] = _STEP, 0.0

    def _rows(self, number: int) -> slice:
        last = self._firsts[number + 1] if number + 1 < len(self._firsts) else len(self._group)
        return slice(int(self._firsts[number]), int(last))

    def _obey(self, order: Order) -> None:
        if order.name.startswith("slow "):
            self._slow_down(order, order.name.removeprefix("slow "))
        else:
            self._handlers[order.name](order)

    def _start(self, order: Order) -> None:
        run = self._runs[int(order.figure)]
        for name, values in self._of_run.items():
            values[order.group] = getattr(run, name)
        self._active[self._rows(order.group)] = False
        self._active[list(order.rows)] = True
        self._phase[order.group], self._timer[order.group] = Phase.LOAD, run.load
        self._next_save[order.group] = self._now + run.checkpoint
        self._next_evaluation[order.group] = self._now + run.evaluation

    def _running(self, order: Order) -> None:
        """It has run since before the world began."""
        self._start(order)
        run = self._runs[int(order.figure)]
        self._next_save[order.group] = run.checkpoint * run.phase
        self._next_evaluation[order.group] = run.evaluation * run.phase + run.saving
        self._steps[order.group] = int(run.phase * _VARIATIONS)
        self._timer[order.group] = 0.0
        self._step(np.array([order.group]))

    def _stop(self, order: Order) -> None:
        self._active[self._rows(order.group)] = False
        self._phase[order.group] = Phase.NONE

    def _resume(self, order: Order) -> None:
        """The others go on without the one that they waited for, from their last checkpoint."""
        self._active[self._rows(order.group)] = False
        self._active[list(order.rows)] = True
        self._phase[order.group], self._timer[order.group] = Phase.LOAD, self._of_run["load"][order.group]
        self._undisturbed(order.group)

    def _halt(self, order: Order, how: int) -> None:
        """A row stops for good; the others come to the barrier and wait there."""
        self._stopped[order.rows[0]] = how
        self._undisturbed(order.group)
        if self._phase[order.group] > _STEP:
            self._phase[order.group] = _STEP
            self._data[self._rows(order.group)] = 0.0
            self._work[self._rows(order.group)] = 0.0

    def _clear(self, order: Order) -> None:
        self._stopped[order.rows[0]] = 0

    def _slow_down(self, order: Order, cause: str) -> None:
        """A row becomes slow at once: its part of a step, by its network card all of it, takes 1 / speed as long."""
        row, number = order.rows[0], order.group
        self._undisturbed(number)
        self._slowed[number] = True
        own = self._of_run["compute"][number] + self._of_run["gap"][number]
        longer = 1.0 / order.figure - 1.0
        if cause == "HOST":
            self._starved[row] = longer * own
            self._data[row] += longer * own
        elif cause == "NETWORK":
            self._congested[number] = longer * (own + self._of_run["exposed"][number])
            if self._phase[number] == Phase.COMMUNICATE:
                self._timer[number] += self._congested[number]
        else:
            self._clock[row] = order.figure
            self._slow[row] = Phase.THROTTLED if cause == "CLOCK" else Phase.STALLING

    def _mend(self, order: Order) -> None:
        row = order.rows[0]
        self._undisturbed(order.group)
        self._data[row] = max(0.0, self._data[row] - self._starved[row])
        self._clock[row], self._slow[row], self._starved[row] = 1.0, Phase.COMPUTE, 0.0
        self._timer[order.group] = max(0.0, self._timer[order.group] - self._congested[order.group])
        self._congested[order.group] = 0.0
        self._slowed[order.group] = False

    def _undisturbed(self, number: int) -> None:
        """No checkpoint and no evaluation hides what begins now."""
        self._next_save[number] = max(self._next_save[number], self._now + _UNDISTURBED)
        self._next_evaluation[number] = max(self._next_evaluation[number], self._now + _UNDISTURBED)
        if self._phase[number] in {Phase.SAVE, Phase.EVALUATE}:
            self._timer[number] = 0.0


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


def duties(history: History, table: dict[str, Floats], chance: np.random.Generator) -> Floats:
    """Share of time in which the devices that are left work, rows × samples; means something for servers only."""
    rows, seconds = history.run.shape
    usual, factor = table["duty"], table["burst"]
    duty = np.zeros((rows, seconds), dtype=np.float32)
    aside = np.zeros(rows, dtype=np.float32)
    queue = np.zeros(rows, dtype=np.float32)
    bursting = np.zeros(rows, dtype=bool)
    for second in range(seconds):
        noise = normal(chance, rows)
        draws = chance.random(rows, dtype=np.float32)
        aside = np.float32(_KEPT) * aside + np.float32(_SPREAD) * noise
        bursting = np.where(bursting, draws > 1.0 / _BURST_SECONDS, draws < _BURSTS)
        run = history.run[:, second]
        mood = exponential(np.clip(aside, -0.6, 0.6).astype(np.float64)).astype(np.float32)
        load = usual[run] * mood * np.where(bursting, factor[run], np.float32(1.0))
        came = np.where(run >= 0, np.clip(load, _MIN_LOAD, _MAX_LOAD), np.float32(0.0)) * history.serving[:, second]
        room = history.serving[:, second] * (1 - history.lost[:, second])
        queue = np.where(history.serving[:, second] > 0, queue + came, np.float32(0.0))
        done = np.minimum(queue, room)
        queue = np.minimum(queue - done, np.float32(_MOST_QUEUED))
        duty[:, second] = done / np.maximum(1 - history.lost[:, second], np.float32(1e-6))
    return duty


def _silence(timing: Timing, row: int, trouble: Affliction) -> slice:
    """Samples that would be taken from the first tick on, and before the last."""
    part = timing.within(row, trouble.since - 1, trouble.until - 1)
    return slice(part.start, max(part.start, part.stop))
