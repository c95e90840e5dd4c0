"""What exporters show of the signals: by subject (a node, or a device of one), with noise, drift and resolution."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import normal
from kuayu_conformance.testbed.elementary import wave
from kuayu_conformance.testbed.telemetry import facts
from kuayu_conformance.testbed.telemetry.accelerators import MEASURES, RATIOS, Kind
from kuayu_conformance.testbed.telemetry.history import Floats
from kuayu_conformance.testbed.telemetry.population import Population
from kuayu_conformance.testbed.telemetry.signals import Signals

_NOISE_OF_RATIOS = 0.02  # relative, of pipes and memory bandwidth; of utilisation a fifth of it, absolute
_NOISE_OF_FLOWS = 0.02
_NOISE_OF_READING = 0.1
_BACKGROUND = 5e4  # By/s that ports and disks carry without a job
_SILICON = 0.03  # spread of power between devices of a kind, which holds for as long as they live
_DRIFT, _DRIFT_PERIODS = 0.03, (90.0, 300.0)  # share of power; seconds
_MOST_STEPS = 10.0**5  # beyond which only so many are told apart: what is finer is noise, here as with real meters
_TENS = np.array([float(10**digits) for digits in range(12)])


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
        noise = 1 + np.float32(facts.NOISE_OF_POWER) * self._normal(shape)
        factor: Floats = (silicon * drift * noise).astype(np.float32)
        return factor


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
