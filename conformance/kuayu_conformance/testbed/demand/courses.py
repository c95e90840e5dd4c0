"""What becomes of a large training: how long its periods take, failures, and that it may be given up.

Failures come at Llama 3's rate: 419 in 54 days on 16 384 accelerators (Grattafiori et al., arXiv:2407.21783, 3.3.4).
The work since the last checkpoint is done again, after a restart in which the job waits for its devices.
"""

from dataclasses import dataclass
from math import inf, log

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.demand.law import Period, Training, gauss
from kuayu_conformance.testbed.elementary import exponential

MISJUDGED = 0.05
"""Standard deviation of the logarithm of the factor by which all periods of a job are longer than expected. No estimate
tells of it; periods that are over do."""

FAILURES = 419 / (54 * 86_400.0 * 16_384)
"""Failures for a device and a second."""

RESTART = (600.0, 1_200.0)
"""Seconds of a restart; an assumption."""

GIVEN_UP = 0.1
"""Share of trainings that are given up somewhere; an assumption. In Acme's two clusters it is more, by number of jobs
(Q. Hu et al., "Characterization of large language model development in the datacenter", NSDI 2024)."""


@dataclass(frozen=True, slots=True)
class Part:
    """Seconds of a course in which nothing changes.

    Attributes:
        period: Number of the period that it belongs to.
        begin: Seconds since the job began to run.
        end: Likewise.
        devices: Devices that it needs.
        held: Whether it has them; it waits for them in a restart.
    """

    period: int
    begin: float
    end: float
    devices: int
    held: bool


@dataclass(frozen=True, slots=True)
class Course:
    """What becomes of a training.

    Attributes:
        parts: In order, without gaps.
    """

    parts: tuple[Part, ...]

    @property
    def seconds(self) -> float:
        """Until it is over."""
        return self.parts[-1].end


def course(training: Training, chance: Chance) -> Course:
    """The true course of a training."""
    factor = exponential(MISJUDGED * gauss(chance))
    parts: list[Part] = []
    now = 0.0
    for number, period in enumerate(training.periods):
        lasts = max(1.0, float(round(period.expected * factor * exponential(period.spread * gauss(chance)))))
        parts += _carried_out(number, period, now, lasts, training.checkpoints, chance)
        now = parts[-1].end
    if chance.fraction() < GIVEN_UP:
        return Course(cut(parts, float(round(now * chance.between(0.05, 1.0)))))
    return Course(tuple(parts))


def cut(parts: list[Part], until: float) -> tuple[Part, ...]:
    """Parts up to an instant, the last of them shorter; at least a second of the first."""
    until = max(1.0, until)
    kept = [part for part in parts if part.begin < until]
    last = kept.pop()
    return (*kept, Part(last.period, last.begin, min(last.end, until), last.devices, last.held))


def _carried_out(
    number: int, period: Period, begin: float, lasts: float, checkpoints: float, chance: Chance
) -> list[Part]:
    """A period with its failures, each of which costs a restart and the work since the last checkpoint."""
    parts: list[Part] = []
    left, now = lasts, begin
    while True:
        runs = _until_failure(period.devices, chance)
        if runs >= left:
            return [*parts, Part(number, now, now + left, period.devices, held=True)]
        lost = min(runs, float(round(chance.between(0.0, checkpoints))))
        waits = float(round(chance.between(*RESTART)))
        parts.append(Part(number, now, now + runs, period.devices, held=True))
        parts.append(Part(number, now + runs, now + runs + waits, period.devices, held=False))
        now += runs + waits
        left += lost - runs


def _until_failure(devices: int, chance: Chance) -> float:
    """Seconds until one of the devices fails, at least one."""
    fraction = chance.fraction()
    return max(1.0, float(round(-log(1.0 - fraction) / (FAILURES * devices)))) if devices else inf
