"""How well phases of trainings are recognised: accuracy, F1, and delay."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kuayu_conformance.testbed.curves.causal import Delayed
from kuayu_conformance.testbed.curves.labels import Switches
from kuayu_conformance.testbed.curves.values import FAST, PHASES, STABLE, STRETCH, Curve

Recogniser = Callable[["Training"], list[str]]
"""Phases that somebody says a training is in at the steps that are spread evenly, in order of steps."""

Confusion = Mapping[tuple[str, str], int]
"""Steps by the phase of the definition and by the one that was told."""


@dataclass(frozen=True)
class Recognised:
    """What was said of a training as it stood at a point.

    Attributes:
        place: Place of the point.
        spread: Whether it is one of those that are spread evenly over the steps, which alone are judged.
        phase: Phase that was told.
        since: Step at which it was said to have begun.
        confidence: Share of such answers that were said to be right.
    """

    place: int
    spread: bool
    phase: str
    since: int
    confidence: float


@dataclass(frozen=True)
class Training:
    """A training, its true phases, and what was said of it, by rising point."""

    curve: Curve
    truth: Switches
    answers: tuple[Recognised, ...]

    @property
    def spread(self) -> list[Recognised]:
        """Answers that are judged."""
        return [answer for answer in self.answers if answer.spread]

    @property
    def labels(self) -> list[str]:
        """Phases of the definition at the steps that are judged."""
        return [self.truth.phase(answer.place) for answer in self.spread]

    @property
    def right(self) -> list[float]:
        """One for each step that is judged where the phase is right, else nought."""
        return [float(answer.phase == label) for answer, label in zip(self.spread, self.labels, strict=True)]

    @property
    def far(self) -> list[bool]:
        """Whether each step that is judged is 1.25 times away from every switch, or more, before it or behind it."""
        switched = [self.step(place) for place in (self.truth.fast, self.truth.stable) if place]
        return [
            all(not 1 / STRETCH < self.step(answer.place) / step < STRETCH for step in switched)
            for answer in self.spread
        ]

    def step(self, place: int) -> int:
        """Step of a point."""
        return int(self.curve.steps[place])

    def delay(self, phase: str) -> float | None:
        """Steps from the true begin of a phase until it, or a later one, is told and stays, over those of the begin.

        Less than nought where that was too early; None where it never is.
        """
        begin = self.truth.fast if phase == FAST else self.truth.stable
        if begin is None:
            raise ValueError(f"{self.curve.name} is never in {phase}")
        early = [each for each in self.answers if each.phase not in PHASES[PHASES.index(phase) :]]
        behind = [each for each in self.answers if not early or each.place > early[-1].place]
        return self.step(behind[0].place) / self.step(begin) - 1.0 if behind else None

    def goes_through(self, phase: str) -> bool:
        """Whether a phase begins behind the first point, and before the last step that is asked about."""
        begin = self.truth.fast if phase == FAST else self.truth.stable
        return bool(begin) and bool(self.answers) and begin <= self.answers[-1].place  # type: ignore[operator]


def told(training: Training) -> list[str]:
    """Phases that the target told."""
    return [answer.phase for answer in training.spread]


def delayed(training: Training) -> list[str]:
    """Phases by the definition, applied to the past alone."""
    recogniser = Delayed.of(training.curve, training.truth)
    return [recogniser.phase(answer.place) for answer in training.spread]


def always_stable(training: Training) -> list[str]:
    """The phase in which most steps are."""
    return [STABLE for _ in training.spread]


def accuracy(trainings: Iterable[Training], recogniser: Recogniser = told, *, far: bool = False) -> float:
    """Share of judged steps that are right; of those away from switches where ``far``. Nought where there are none."""
    rows = [
        label == phase
        for training in trainings
        for label, phase, away in zip(training.labels, recogniser(training), training.far, strict=True)
        if away or not far
    ]
    return sum(rows) / max(1, len(rows))


def confusion(trainings: Iterable[Training], recogniser: Recogniser = told) -> Confusion:
    """Judged steps by label and phase told."""
    counts: dict[tuple[str, str], int] = {}
    for training in trainings:
        for pair in zip(training.labels, recogniser(training), strict=True):
            counts[pair] = counts.get(pair, 0) + 1
    return counts


def f1(counts: Confusion, phase: str) -> float:
    """2 TP/(2 TP + FP + FN) of a phase; nought where it neither is nor is told."""
    of = sum(count for (label, _), count in counts.items() if label == phase)
    said = sum(count for (_, other), count in counts.items() if other == phase)
    return 2 * counts.get((phase, phase), 0) / max(1, of + said)


def macro_f1(counts: Confusion) -> float:
    """Mean over the phases that there are."""
    there: Sequence[str] = [phase for phase in PHASES if any(label == phase for label, _ in counts)]
    return sum(f1(counts, phase) for phase in there) / max(1, len(there))
