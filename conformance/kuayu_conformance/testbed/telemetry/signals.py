"""What a node's devices, ports and disks do in each second, and what exporters show of it.

1. **Signals.** Arrays are rows × samples, in SI units, for whole nodes, before anybody reads a meter. Ratios are means
   over the devices that are left.
2. **Meters.** Exporters show signals by subject (a node, or a device of one), with noise, drift and resolution.
3. **Devices.** Where devices are reported, it is drawn which of a node are lost, and which shows the node's faults.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import normal
from kuayu_conformance.testbed.elementary import exponential, wave
from kuayu_conformance.testbed.telemetry import jobs
from kuayu_conformance.testbed.telemetry.history import Floats, History, Phase, Timing
from kuayu_conformance.testbed.telemetry.population import MEASURES, RATIOS, SERVING, Kind, Population
from kuayu_conformance.testbed.telemetry.values import TICKS

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
        figures = ("limit", "idle", "held", "network", "devices", "memory")
        by_domain = np.array([[getattr(kind, name) for name in figures] for kind in population.kinds], dtype=np.float32)
        by_row = (column[:, np.newaxis] for column in by_domain[population.domain].T)
        self._limit, self._idle, self._held, self._network, self._devices, self._memory = by_row

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
        share, full = self._share, self._limit - self._held
        training = self._of_run["intensity"] * full
        waiting = self._idle + jobs.WAITING_POWER * (self._limit - self._idle)
        held = self._held * np.minimum(1.0, self._history.run + 1).astype(np.float32)
        base = np.maximum(held, self._idle)  # an open context, wherever a run holds the node
        speed = self._history.speed
        throttled = jobs.power_at_speed(speed) * (base + training) - base
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
        noise = 1 + np.float32(jobs.NOISE_OF_POWER) * self._normal(shape)
        factor: Floats = (silicon * drift * noise).astype(np.float32)
        return factor


@dataclass(frozen=True)
class Parts:
    """Devices in the order in which they are lost, drawn by node, and the one that fails by itself.

    Attributes:
        subjects: What samples are about.
        turn: Place of each subject in that order among the subjects of its node; the last is never lost.
        prone: The turn of the device that shows faults while it is there, by subject.
    """

    subjects: Subjects
    turn: NDArray[np.int64]
    prone: NDArray[np.int64]

    @classmethod
    def drawn(cls, subjects: Subjects, chance: np.random.Generator) -> "Parts":
        """An order for each node, and a device that does not follow from it."""
        rows = len(subjects.row)
        order = np.lexsort((chance.random(rows), subjects.row))
        firsts = np.searchsorted(subjects.row, subjects.row)
        turn = np.empty(rows, dtype=np.int64)
        turn[order] = np.arange(rows) - firsts
        prone = (chance.random(int(subjects.row[-1]) + 1)[subjects.row] * subjects.parts).astype(np.int64)
        return cls(subjects, turn, prone)

    def there(self, lost: Floats) -> NDArray[np.bool_]:
        """Which subjects could be read, subjects × samples, from the share of devices that are lost, by row."""
        of_devices = self.subjects.device >= 0
        return ~(of_devices[:, np.newaxis] & (self.turn[:, np.newaxis] < self._gone(lost)))

    def faults(self, faults: Floats, lost: Floats) -> Floats:
        """Faults by subject, from those by row: of one device that is there; of the node where it is the subject."""
        last = (self.subjects.parts - 1)[:, np.newaxis]
        prone = self.prone[:, np.newaxis]
        shows = np.where(prone < self._gone(lost), last, prone)
        shown: Floats = faults[self.subjects.row] * (self.turn[:, np.newaxis] == shows)
        return shown

    def _gone(self, lost: Floats) -> Floats:
        """How many devices are lost; of a node that is one subject what it says means nothing."""
        gone: Floats = np.rint(lost[self.subjects.row] * self.subjects.parts[:, np.newaxis])
        return gone


def _lagging(target: Floats) -> Floats:
    """Mean over each second of a power that follows its target with a first-order lag."""
    left = exponential(-1.0 / jobs.LAG_OF_POWER)
    mean = np.float32(jobs.LAG_OF_POWER * (1.0 - left))
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
