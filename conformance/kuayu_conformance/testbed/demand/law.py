"""What a large training is expected to need: its periods, with the devices and the seconds of each.

Time is work over speed: 6 operations for a parameter and a token (J. Kaplan et al., arXiv:2001.08361), at 989 TFLOP/s
of a device (NVIDIA H100 data sheet, dense bf16) and about 40 % of these (Llama 3 reached 38-43 %; Grattafiori et al.,
arXiv:2407.21783, table 4). Jobs are stages of adaptation with some billions of tokens, as they come to a shared
platform; pre-training from nought would not change within days.

Batches are ramped up: BLOOM began with 9 % of its batch and came to all of it within 4 % of its samples (BigScience,
tr11-176B), DeepSeek-V3 with 20 % and within 3 % of its tokens (arXiv:2412.19437). Where the batch is smaller, fewer
replicas have anything to do. Every few hours training pauses until its checkpoint is evaluated on a part of the
devices; intervals and lengths of these pauses are assumptions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.elementary import exponential

if TYPE_CHECKING:
    from kuayu_schemas import documents

COVERAGE = 0.9
"""Share of cases that estimates say of themselves to hold."""

_REACH = 1.6448536269514722
"""Standard deviations within which a normal number lies in that share of cases; written out, as libraries differ."""

SPREAD, SPREAD_OF_PAUSE = 0.05, 0.2
"""Standard deviation of the logarithm of a period's seconds, as stated; an assumption. With ``courses.MISJUDGED`` it is
7 % for what trains, which is within the 10 % that laws of demand aim at (DEM-001)."""

_PEAK, _EFFICIENCY = 989e12, 0.4
_MIN_PARAMETERS, _MAX_PARAMETERS = 50e9, 500e9
_TOKENS, _TOKENS_SPREAD = 6e9, 0.5
_RAMP = ((0.25, 0.01, 0.03), (0.5, 0.02, 0.05))
"""Share of the batch, and the least and the most of the tokens that it is used for."""
_FAST = 0.3
"""Share of the tokens after which the loss falls slowly; an assumption, it does not change the devices."""
_PAUSE_EVERY, _PAUSE_LASTS, _PAUSE_SHARE = (5_400.0, 14_400.0), (600.0, 1_500.0), 8
_GRAIN = 64
_MIN_DEVICES, _MAX_DEVICES = 128, 768


@dataclass(frozen=True, slots=True)
class Period:
    """Part of a course in which the demand is the same.

    Attributes:
        phase: Phase of the training, as on the wire.
        devices: Devices that it needs.
        expected: Median of its seconds.
        spread: Standard deviation of their logarithm; nought where they are known.
        pause: Whether the training waits in it for an evaluation.
    """

    phase: "documents.TrainingPhase"
    devices: int
    expected: float
    spread: float
    pause: bool = False

    @property
    def interval(self) -> tuple[float, float]:
        """Seconds between which it lies with probability ``COVERAGE``."""
        away = exponential(_REACH * self.spread)
        return self.expected / away, self.expected * away


@dataclass(frozen=True, slots=True)
class Training:
    """What is expected of a large training.

    Attributes:
        parameters: Of its model.
        tokens: Of its data.
        devices: Most that it needs at once.
        checkpoints: Seconds between its checkpoints.
        periods: Its course.
    """

    parameters: float
    tokens: float
    devices: int
    checkpoints: float
    periods: tuple[Period, ...]

    @property
    def seconds(self) -> float:
        """Of all periods, as expected."""
        return sum(period.expected for period in self.periods)


def training(chance: Chance) -> Training:
    """A training drawn: its model and tokens, then by the law all else."""
    parameters = _MIN_PARAMETERS * (_MAX_PARAMETERS / _MIN_PARAMETERS) ** chance.fraction()
    wanted = parameters / 1e9 * chance.between(1.0, 2.5)
    devices = int(min(_MAX_DEVICES, max(_MIN_DEVICES, _GRAIN * round(wanted / _GRAIN))))
    tokens = _TOKENS * exponential(_TOKENS_SPREAD * gauss(chance))
    every = chance.between(*_PAUSE_EVERY)
    lasts = chance.between(*_PAUSE_LASTS)
    shares = [(part, chance.between(low, high)) for part, low, high in _RAMP]
    checkpoints = float(round(chance.between(1_200.0, 3_600.0)))
    periods = tuple(_periods(work_seconds(parameters, tokens, devices), devices, shares, every, lasts))
    return Training(parameters, tokens, devices, checkpoints, periods)


def work_seconds(parameters: float, tokens: float, devices: int) -> float:
    """Seconds of training on so many devices."""
    return 6.0 * parameters * tokens / (devices * _PEAK * _EFFICIENCY)


def gauss(chance: Chance) -> float:
    """A normal number. What C libraries disagree about is lost when seconds are rounded."""
    return NormalDist().inv_cdf(0.5 / 2**32 + chance.fraction() * (1.0 - 1.0 / 2**32))


def _periods(
    seconds: float, devices: int, ramp: list[tuple[float, float]], every: float, lasts: float
) -> Iterator[Period]:
    """Ramp, then stretches of training with pauses between them; ``seconds`` are those of all tokens on all devices."""
    for part, tokens in ramp:
        yield Period("warm_up", max(1, int(devices * part)), float(round(seconds * tokens / part)), SPREAD)
    done = sum(tokens for _, tokens in ramp) * seconds
    stretches = max(1, round((seconds - done) / every))
    length = (seconds - done) / stretches
    for number in range(stretches):
        phase: documents.TrainingPhase = (
            "fast_convergence" if done + length * number < _FAST * seconds else "stable_convergence"
        )
        yield Period(phase, devices, float(round(length)), SPREAD)
        if number < stretches - 1:
            yield Period(phase, devices // _PAUSE_SHARE, float(round(lasts)), SPREAD_OF_PAUSE, pause=True)
