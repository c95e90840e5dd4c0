"""What nodes do over time, what their devices, ports and disks do in each second, and what exporters show of it.

1. **Step loops.** They run at once, in ticks of a twentieth of a second: which phase each node was in for how long. A
   step of a group: each member waits for its host's next batch (``gap``), its kernels compute, and it waits, busily,
   until the slowest has done so too; then all communicate together, save a checkpoint or evaluate where it is time, and
   begin the next step. Nothing else is said about who waits for whom: a slow member slows the others by the barrier
   alone. What is left of a tick when a part of a step ends is given to the next part, so that steps take as long as
   they should.
2. **History.** Which run a node has at a sample, which fault, and since when.
3. **Servers.** At servers of inference requests queue up and are worked off; load comes in bursts and moves about its
   mean.
4. **Signals.** Arrays are rows × samples, in SI units, for whole nodes, before anybody reads a meter. Ratios are means
   over the devices that are left.
5. **Meters.** Exporters show signals by subject (a node, or a device of one), with noise, drift and resolution.
6. **Devices.** Where devices are reported, it is drawn which of a node are lost, and which shows the node's faults.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, normal
from kuayu_conformance.testbed.elementary import exponential, wave
from kuayu_conformance.testbed.telemetry.fault_plan import Affliction, Change, InjectedFault, Ledger, Order, Tenure
from kuayu_conformance.testbed.telemetry.population import (
    BUSY,
    FIELDS,
    IDLE,
    LAG_OF_POWER,
    MEASURES,
    NOISE_OF_POWER,
    RATIOS,
    SERVING,
    TICKS,
    WAITING_POWER,
    WORKER_SPREAD,
    Kind,
    Population,
    Run,
    power_at_speed,
)

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

_LOADING = 0.05  # utilisation while memory is filled, and while a checkpoint is saved
_EVALUATING = 0.85  # of what training uses of pipes and memory
_MOVING = 0.12  # power of communication above waiting, as a share of the way from idle to full
_STALLED = 0.3  # share of the power above an open context that a stalled kernel still draws at no speed
_READ_AT_START, _WRITTEN_AT_SAVE = 4e9, 3e9  # By/s
_SERVED = 0.45  # power above an open context of a server at full duty, as a share of training's
_REQUESTS, _ANSWERS = 5e6, 2e7  # By/s at full duty
_DRIVER = 4 << 20  # By on a device that nothing uses
_USED = frozenset({"pipe", "bandwidth", "intensity", "memory", "bus", "overlapped", "exposed", "reading"})
_NOISE_OF_RATIOS = 0.02  # relative, of pipes and memory bandwidth; of utilisation a fifth of it, absolute
_NOISE_OF_FLOWS = 0.02
_NOISE_OF_READING = 0.1
_BACKGROUND = 5e4  # By/s that ports and disks carry without a job
_SILICON = 0.03  # spread of power between devices of a kind, which holds for as long as they live
_DRIFT, _DRIFT_PERIODS = 0.03, (90.0, 300.0)  # share of power; seconds
_MOST_STEPS = 10.0**5  # beyond which only so many are told apart: what is finer is noise, here as with real meters
_TENS = np.array([float(10**digits) for digits in range(12)])


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
        self._even = 1.0 + WORKER_SPREAD * np.clip(chance.standard_normal(rows), -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
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
        held_up = np.logical_or.reduceat(self._active & (stopped | (self._data > 0) | (self._work > 0)), self._firsts)
        stepping = self._phase == _STEP
        ready = stepping & ~held_up
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
        of_run, variation = self._of_run, self._steps[numbers] % _VARIATIONS
        whole = np.ones(len(self._phase))
        whole[numbers] += of_run["common"][numbers] * self._common[variation, numbers]
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
        self, affliction: Affliction, population: Population, runs: list[Run], timing: Timing, chance: Chance
    ) -> None:
        row = affliction.row
        part = timing.span(row, affliction.since, affliction.until)
        after = timing.within(row, affliction.since, affliction.until)
        kind = population.kind(row)
        if affliction.fault is InjectedFault.SILENT:
            self.silent[row, _silence(timing, row, affliction)] = True
        elif affliction.fault is InjectedFault.LOST:
            self.lost[row, after] = affliction.strength / kind.devices
        elif affliction.fault is InjectedFault.NETWORK:
            group = population.groups[population.group[row]]
            run = runs[int(self.run[row, part.start])]
            longer = (1.0 / affliction.strength - 1.0) * run.step
            for member in range(group.first, group.last):
                samples = timing.span(member, affliction.since, affliction.until)
                self.congestion[member, samples] = run.exposed / (run.exposed + longer)
            self.again[row, part] = 1.0 + chance.between(*_SENT_AGAIN)
        elif affliction.fault in {InjectedFault.CLOCK, InjectedFault.MEMORY}:
            self.speed[row, part] = affliction.strength
        elif affliction.fault in {InjectedFault.HUNG, InjectedFault.STUCK}:
            now = timing.instants(row, part)
            ticks = np.minimum(now, affliction.until) - np.maximum(now - TICKS, affliction.since)
            stopped = np.clip(ticks / TICKS, 0.0, 1.0)
            self.serving[row, part] = np.maximum(self.serving[row, part] - stopped, 0.0)
            self.stuck[row, part] = stopped if affliction.fault is InjectedFault.STUCK else 0.0
        if affliction.fault in {InjectedFault.FAULTS, InjectedFault.FATAL, InjectedFault.MEMORY}:
            self._count(affliction, after, timing, chance, standing=kind.standing)

    def _count(self, affliction: Affliction, after: slice, timing: Timing, chance: Chance, *, standing: bool) -> None:
        """One while a fault stands; else each event in the sample that comes next, of a fatal fault the first only."""
        row, tick = affliction.row, float(affliction.since)
        if standing:
            self.faults[row, after] = 1.0
            return
        while tick < min(affliction.until, timing.seconds * TICKS):
            place = timing.within(row, int(tick), int(tick) + TICKS)
            self.faults[row, place] += 1 + chance.below(_MOST_FAULTS if affliction.fault is InjectedFault.FATAL else 2)
            if affliction.fault is InjectedFault.FATAL:
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
        capacity = history.serving[:, second] * (1 - history.lost[:, second])
        queue = np.where(history.serving[:, second] > 0, queue + came, np.float32(0.0))
        done = np.minimum(queue, capacity)
        queue = np.minimum(queue - done, np.float32(_MOST_QUEUED))
        duty[:, second] = done / np.maximum(1 - history.lost[:, second], np.float32(1e-6))
    return duty


def _silence(timing: Timing, row: int, affliction: Affliction) -> slice:
    """Samples that would be taken from the first tick on, and before the last."""
    part = timing.within(row, affliction.since - 1, affliction.until - 1)
    return slice(part.start, max(part.start, part.stop))


class Signals:
    """Levels of everything, from phases and history."""

    def __init__(
        self,
        population: Population,
        history: History,
        table: dict[str, Floats],
        counts: NDArray[np.uint8],
        duty: Floats,
        timing: Timing,
    ) -> None:
        self._population = population
        self._history = history
        self._of_run: dict[str, Floats] = {name: values[history.run] for name, values in table.items() if name in _USED}
        ticks = np.full(duty.shape, TICKS, dtype=np.float32)
        ticks[:, 0] = timing.offset
        self._share: dict[Phase, Floats] = {phase: counts[phase] / ticks for phase in Phase}
        server = np.array([group.kind == SERVING for group in population.groups])[population.group]
        self._server: Floats = server.astype(np.float32)[:, np.newaxis]
        self._duty: Floats = duty * self._server
        self._stuck: Floats = history.stuck * self._server  # others show it as a wait
        figures = ("limit", "idle", "context", "network", "devices", "memory")
        by_domain = np.array([[getattr(kind, name) for name in figures] for kind in population.kinds], dtype=np.float32)
        by_row = (column[:, np.newaxis] for column in by_domain[population.domain].T)
        self._limit, self._idle, self._context, self._network, self._devices, self._memory = by_row

    def _worked(self) -> Floats:
        """Share of a second's usual work of kernels that is done."""
        slow = self._share[Phase.THROTTLED] + self._share[Phase.STALLING]
        return self._share[Phase.COMPUTE] + slow * self._history.speed

    def utilisation(self) -> Floats:
        """Time with a kernel, waiting ones included."""
        share = self._share
        kernels = share[Phase.COMPUTE] + share[Phase.THROTTLED] + share[Phase.STALLING]
        kernels += share[Phase.WAIT] + share[Phase.COMMUNICATE] + share[Phase.EVALUATE]
        kernels += _LOADING * (share[Phase.LOAD] + share[Phase.SAVE])
        utilisation: Floats = kernels + self._duty + self._stuck
        return utilisation

    def pipe(self) -> Floats:
        """Matrix pipe activity: a share of clock cycles, so that a lower clock alone does not show in it."""
        share = self._share
        cycles = share[Phase.COMPUTE] + share[Phase.THROTTLED] + share[Phase.STALLING] * self._history.speed
        pipe: Floats = self._of_run["pipe"] * (cycles + _EVALUATING * share[Phase.EVALUATE] + 0.7 * self._duty)
        return pipe

    def bandwidth(self) -> Floats:
        """Memory bandwidth utilisation."""
        share = self._share
        moved = self._worked() + _EVALUATING * share[Phase.EVALUATE] + 0.1 * share[Phase.COMMUNICATE]
        bandwidth: Floats = self._of_run["bandwidth"] * (moved + self._duty)
        return bandwidth

    def power(self) -> Floats:
        """Watts of the node's devices, with their lag."""
        share, full = self._share, self._limit - self._context
        training = self._of_run["intensity"] * full
        waiting = self._idle + WAITING_POWER * (self._limit - self._idle)
        active_power = self._context * np.minimum(1.0, self._history.run + 1).astype(np.float32)
        base = np.maximum(active_power, self._idle)  # an open context, wherever a run holds the node
        speed = self._history.speed
        throttled = power_at_speed(speed) * (base + training) - base
        stalled = training * (_STALLED + (1 - _STALLED) * speed)
        above = share[Phase.COMPUTE] * training + share[Phase.THROTTLED] * throttled
        above += share[Phase.STALLING] * stalled + _EVALUATING * share[Phase.EVALUATE] * training
        above += (share[Phase.WAIT] + share[Phase.COMMUNICATE] + self._stuck) * (waiting - base)
        above += share[Phase.COMMUNICATE] * _MOVING * (self._limit - self._idle)
        above += self._duty * _SERVED * training
        power: Floats = _lagging(base + above) * self._devices * (1 - self._history.lost)
        return power

    def memory(self) -> Floats:
        """Bytes in use."""
        used = self._of_run["memory"] * self._history.memory * self._memory + _DRIVER
        memory: Floats = used * self._devices * (1 - self._history.lost)
        return memory

    def flow(self) -> Floats:
        """Bytes a second that arrive from other nodes; nearly as many are sent, see :meth:`sent`."""
        together = (self._of_run["exposed"] > 0) * (1 - self._server)
        exposed = self._of_run["bus"] * self._share[Phase.COMMUNICATE] * self._history.congestion
        training = together * self._network * (exposed + self._of_run["overlapped"] * self._worked())
        flow: Floats = training + _REQUESTS * self._duty
        return flow

    def sent(self, arrived: Floats) -> Floats:
        """Bytes a second that leave: what arrives elsewhere, and what has to be sent again."""
        sent: Floats = arrived * self._history.again + (_ANSWERS - _REQUESTS) * self._duty
        return sent

    def read(self) -> Floats:
        """Bytes a second read from the store."""
        share = self._share
        batches = self._of_run["reading"] * (self._worked() + share[Phase.EVALUATE])
        starting = self._server * (self._history.memory > 0) * (self._history.memory < 1)
        read: Floats = batches * (1 - self._server) + _READ_AT_START * (share[Phase.LOAD] + starting)
        return read

    def written(self) -> Floats:
        """Bytes a second written to it."""
        written: Floats = _WRITTEN_AT_SAVE * self._share[Phase.SAVE]
        return written


@dataclass(frozen=True)
class Subjects:
    """What samples are about.

    Attributes:
        row: Row of each subject's node.
        device: Number of its device, -1 where it is the node.
        parts: How many subjects its node has, over which sums are divided.
    """

    row: NDArray[np.int64]
    device: NDArray[np.int64]
    parts: NDArray[np.int64]

    @classmethod
    def of(cls, population: Population) -> "Subjects":
        """Subjects in the order of rows and devices."""
        rows, devices, parts = [], [], []
        for row, domain in enumerate(population.domain.tolist()):
            kind = population.kinds[domain]
            mine = range(kind.devices) if kind.by_device else (-1,)
            rows += [row] * len(mine)
            devices += list(mine)
            parts += [len(mine)] * len(mine)
        return cls(np.array(rows), np.array(devices), np.array(parts))


class Meters:
    """Everything that could be read, subjects × samples."""

    def __init__(self, subjects: Subjects, signals: Signals, chance: np.random.Generator) -> None:
        self._row = subjects.row
        self._chance = chance
        part = (1.0 / subjects.parts.astype(np.float32))[:, np.newaxis]
        shape = (len(self._row), signals.memory().shape[1])
        arrived = signals.flow()
        utilisation = self._spread(signals.utilisation())
        unsure = (utilisation > 0.0) & (utilisation < 1.0)
        utilisation += 0.2 * _NOISE_OF_RATIOS * self._normal(shape) * unsure
        power = self._spread(signals.power()) * part * self._moods(shape)
        self._read: dict[str, Floats] = {
            "accelerator_utilisation": np.clip(utilisation, 0.0, 1.0),
            "matrix_pipe_activity": self._ratio(signals.pipe(), shape),
            "memory_bandwidth_utilisation": self._ratio(signals.bandwidth(), shape),
            "power": power,
            "accelerator_memory_used": self._spread(signals.memory()) * part,
            "scale_out_transmit_flow": self._flow(signals.sent(arrived), part, shape, _NOISE_OF_FLOWS),
            "scale_out_receive_flow": self._flow(arrived, part, shape, _NOISE_OF_FLOWS),
            "storage_read_flow": self._flow(signals.read(), part, shape, _NOISE_OF_READING),
            "storage_write_flow": self._flow(signals.written(), part, shape, _NOISE_OF_READING),
        }

    def add(self, measure: str, values: Floats) -> None:
        """Something that is counted or known rather than metered, subjects × samples."""
        self._read[measure] = values

    def show(self, kind: Kind, subjects: NDArray[np.intp], samples: NDArray[np.intp]) -> list[list[float]]:
        """Values of some samples as the exporters of a kind of domain show them, by measure."""
        return [
            _resolved(self._read[measure][subjects, samples], measure, kind).tolist()
            for measure in MEASURES
            if measure in kind.resolutions
        ]

    def values(self, measure: str) -> Floats:
        """All values of a measure, finer than anybody shows them."""
        return self._read[measure]

    def _spread(self, signal: Floats) -> Floats:
        return signal[self._row]

    def _normal(self, shape: tuple[int, ...]) -> Floats:
        return normal(self._chance, shape)

    def _ratio(self, signal: Floats, shape: tuple[int, int]) -> Floats:
        noisy = self._spread(signal) * (1 + _NOISE_OF_RATIOS * self._normal(shape))
        return np.clip(noisy, 0.0, 1.0)

    def _flow(self, signal: Floats, part: Floats, shape: tuple[int, int], noise: float) -> Floats:
        noisy = np.maximum(self._spread(signal) * part * (1 + noise * self._normal(shape)), 0.0)
        shown: Floats = noisy + np.float32(_BACKGROUND) * np.abs(self._normal(shape)) * part
        return shown

    def _moods(self, shape: tuple[int, int]) -> Floats:
        """Factor on power: what the silicon is like, how warm it is, and the meter's noise."""
        subjects = (shape[0], 1)
        silicon = 1 + _SILICON * np.clip(self._normal(subjects), -2, 2)
        low, high = _DRIFT_PERIODS
        period = low + (high - low) * self._chance.random(subjects, dtype=np.float32)
        begin = self._chance.random(subjects, dtype=np.float32)
        drift = 1 + _DRIFT * wave(np.arange(shape[1]) / period + begin)
        noise = 1 + np.float32(NOISE_OF_POWER) * self._normal(shape)
        factor: Floats = (silicon * drift * noise).astype(np.float32)
        return factor


@dataclass(frozen=True)
class Parts:
    """Devices in the order in which they are lost, drawn by node, and the one that fails by itself.

    Attributes:
        subjects: What samples are about.
        rank: Place of each subject in that order among the subjects of its node; the last is never lost.
        prone: The rank of the device that shows faults while it is there, by subject.
    """

    subjects: Subjects
    rank: NDArray[np.int64]
    prone: NDArray[np.int64]

    @classmethod
    def drawn(cls, subjects: Subjects, chance: np.random.Generator) -> "Parts":
        """An order for each node, and a device that does not follow from it."""
        rows = len(subjects.row)
        order = np.lexsort((chance.random(rows), subjects.row))
        firsts = np.searchsorted(subjects.row, subjects.row)
        rank = np.empty(rows, dtype=np.int64)
        rank[order] = np.arange(rows) - firsts
        prone = (chance.random(int(subjects.row[-1]) + 1)[subjects.row] * subjects.parts).astype(np.int64)
        return cls(subjects, rank, prone)

    def are_readable(self, lost: Floats) -> NDArray[np.bool_]:
        """Which subjects could be read, subjects × samples, from the share of devices that are lost, by row."""
        of_devices = self.subjects.device >= 0
        return ~(of_devices[:, np.newaxis] & (self.rank[:, np.newaxis] < self._gone(lost)))

    def faults(self, faults: Floats, lost: Floats) -> Floats:
        """Faults by subject, from those by row: of one device that is there; of the node where it is the subject."""
        last = (self.subjects.parts - 1)[:, np.newaxis]
        prone = self.prone[:, np.newaxis]
        shows = np.where(prone < self._gone(lost), last, prone)
        shown: Floats = faults[self.subjects.row] * (self.rank[:, np.newaxis] == shows)
        return shown

    def _gone(self, lost: Floats) -> Floats:
        """How many devices are lost; of a node that is one subject what it says means nothing."""
        gone: Floats = np.rint(lost[self.subjects.row] * self.subjects.parts[:, np.newaxis])
        return gone


def _lagging(target: Floats) -> Floats:
    """Mean over each second of a power that follows its target with a first-order lag."""
    left = exponential(-1.0 / LAG_OF_POWER)
    mean = np.float32(LAG_OF_POWER * (1.0 - left))
    shown = np.empty_like(target)
    power = target[:, 0].copy()
    for second in range(target.shape[1]):
        behind = power - target[:, second]
        shown[:, second] = target[:, second] + behind * mean
        power = target[:, second] + behind * np.float32(left)
    return shown


def _resolved(values: Floats, measure: str, kind: Kind) -> NDArray[np.float64]:
    """Values in whole steps of what a node's exporter shows; of a mean over devices the steps are as much finer.

    Of many steps five digits are kept, so that the last digit of single precision never shows.
    """
    step = kind.resolutions[measure]
    exact = values.astype(np.float64)
    if step == 0.0:
        return exact
    if step >= 1.0:
        return _shortened(exact / step) * step
    steps = round(1.0 / step)
    steps *= 1 if kind.by_device or measure not in RATIOS else kind.devices
    return _shortened(exact * steps) / steps


def _shortened(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole numbers, of large ones five digits."""
    tens = _TENS[np.searchsorted(_MOST_STEPS * _TENS, steps, side="right")]
    shortened: NDArray[np.float64] = np.rint(steps / tens) * tens
    return shortened
