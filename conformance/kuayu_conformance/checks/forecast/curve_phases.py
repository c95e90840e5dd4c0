"""Phases of trainings, recognised step by step (FCT-003).

Curves are asked about as they stood at chosen steps, each time under another name, with nothing of what came after.
Every request holds a training once at most, and shorter stretches of it are asked about before longer ones, so that
the target has never been told the future of what it is asked. Labels are those of the definition, which knows it.

1. How well phases of trainings are recognised: accuracy, F1, and delay.
2. Tables, parts and plots that stand beside the accuracy of phases of trainings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import named_revision, table
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure
from kuayu_conformance.statistics import mean_lower_bound, quantile
from kuayu_conformance.testbed.curves import (
    FAST,
    PHASES,
    REAL_FILES,
    STABLE,
    STRETCH,
    Curve,
    DelayedRecogniser,
    Switches,
    real_curves,
    settled,
    switches,
)
from kuayu_conformance.testbed.curves import curve as generated
from kuayu_schemas import schema
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

Recogniser = Callable[["Training"], list[str]]
"""Phases that somebody says a training is in at the steps that are spread evenly, in order of steps."""

Confusion = Mapping[tuple[str, str], int]
"""Steps by the phase of the definition and by the one that was told."""


@dataclass(frozen=True)
class Recognition:
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
    answers: tuple[Recognition, ...]

    @property
    def spread(self) -> list[Recognition]:
        """Answers that are judged."""
        return [answer for answer in self.answers if answer.spread]

    @property
    def labels(self) -> list[str]:
        """Phases of the definition at the steps that are judged."""
        return [self.truth.phase(answer.place) for answer in self.spread]

    @property
    def right(self) -> list[float]:
        """One for each step that is judged where the phase is right, else zero."""
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

        Less than zero where that was too early; None where it never is.
        """
        begin = self.truth.fast if phase == FAST else self.truth.stable
        if begin is None:
            raise ValueError(f"{self.curve.name} is never in {phase}")
        early = [answer for answer in self.answers if answer.phase not in PHASES[PHASES.index(phase) :]]
        behind = [entry for entry in self.answers if not early or entry.place > early[-1].place]
        return self.step(behind[0].place) / self.step(begin) - 1.0 if behind else None

    def goes_through(self, phase: str) -> bool:
        """Whether a phase begins behind the first point, and before the last step that is asked about."""
        begin = self.truth.fast if phase == FAST else self.truth.stable
        return bool(begin) and bool(self.answers) and begin <= self.answers[-1].place  # type: ignore[operator]


def recognised_phases(training: Training) -> list[str]:
    """Phases that the target told."""
    return [answer.phase for answer in training.spread]


def delayed(training: Training) -> list[str]:
    """Phases by the definition, applied to the past alone."""
    recogniser = DelayedRecogniser.of(training.curve, training.truth)
    return [recogniser.phase(answer.place) for answer in training.spread]


def always_stable(training: Training) -> list[str]:
    """The phase in which most steps are."""
    return [STABLE for _ in training.spread]


def accuracy(trainings: Iterable[Training], recogniser: Recogniser = recognised_phases, *, far: bool = False) -> float:
    """Share of judged steps that are right; of those away from switches where ``far``. Zero where there are none."""
    rows = [
        label == phase
        for training in trainings
        for label, phase, away in zip(training.labels, recogniser(training), training.far, strict=True)
        if away or not far
    ]
    return sum(rows) / max(1, len(rows))


def confusion(trainings: Iterable[Training], recogniser: Recogniser = recognised_phases) -> Confusion:
    """Judged steps by label and phase told."""
    counts: dict[tuple[str, str], int] = {}
    for training in trainings:
        for pair in zip(training.labels, recogniser(training), strict=True):
            counts[pair] = counts.get(pair, 0) + 1
    return counts


def f1(counts: Confusion, phase: str) -> float:
    """2 TP/(2 TP + FP + FN) of a phase; zero where it neither is nor is told."""
    of = sum(count for (label, _), count in counts.items() if label == phase)
    said = sum(count for (_, other), count in counts.items() if other == phase)
    return 2 * counts.get((phase, phase), 0) / max(1, of + said)


def macro_f1(counts: Confusion) -> float:
    """Mean over the phases that there are."""
    present: Sequence[str] = [phase for phase in PHASES if any(label == phase for label, _ in counts)]
    return sum(f1(counts, phase) for phase in present) / max(1, len(present))


_NAMES = dict(zip(PHASES, ("warm-up", "fast convergence", "stable convergence"), strict=True))
_RECOGNISERS: tuple[tuple[str, Recogniser], ...] = (
    ("the target", recognised_phases),
    ("the definition, applied to the past alone", delayed),
    ("always stable convergence", always_stable),
)
_CONFIDENCES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
_DRAWN = 300


def parts(trainings: Sequence[Training]) -> list[PartFigure]:
    """Accuracy by source of the curves and by phase."""
    figures = []
    for source in dict.fromkeys(training.curve.source for training in trainings):
        mine = [training for training in trainings if training.curve.source == source]
        clusters = [training.right for training in mine]
        bound = mean_lower_bound(clusters, source) if len(mine) > 1 else None
        figures.append(PartFigure(source, accuracy(mine), bound, sum(map(len, clusters))))
    for phase in PHASES:
        clusters = [in_phase for training in trainings if (in_phase := _right_in(training, phase))]
        if clusters:
            rights = [right for cluster in clusters for right in cluster]
            bound = mean_lower_bound(clusters, phase) if len(clusters) > 1 else None
            figures.append(PartFigure(f"in {_NAMES[phase]}", sum(rights) / len(rights), bound, len(rights)))
    return figures


def _right_in(training: Training, phase: str) -> list[float]:
    return [right for right, label in zip(training.right, training.labels, strict=True) if label == phase]


def exhibits(trainings: Sequence[Training]) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed and not judged."""
    tables = [_beside(trainings), _confused(trainings), _delays(trainings), _confidences(trainings)]
    ordered = sorted(trainings, key=lambda training: sum(training.right) / len(training.right))
    worst, middle = ordered[0], ordered[len(ordered) // 2]
    pictures = [_picture("recognised worst", worst)]
    return tables, pictures if middle is worst else [_picture("recognised as well as most", middle), *pictures]


def _beside(trainings: Sequence[Training]) -> ReportTable:
    rows = []
    for name, recogniser in _RECOGNISERS:
        shares = [
            accuracy(trainings, recogniser),
            macro_f1(confusion(trainings, recogniser)),
            accuracy(trainings, recogniser, far=True),
        ]
        rows.append([name, *(f"{share:.3f}" for share in shares)])
    columns = "recogniser|accuracy|macro-F1|accuracy 1.25 times away from every switch"
    return table("Phases told beside those of two simple recognisers", columns, rows)


def _confused(trainings: Sequence[Training]) -> ReportTable:
    counts = confusion(trainings)
    shown = (*PHASES, "unknown")
    rows = []
    for phase in PHASES:
        row = [counts.get((phase, other), 0) for other in shown]
        others = sum(count for (label, _), count in counts.items() if label == phase) - sum(row[:-1])
        rows.append([_NAMES[phase], *map(str, row[:-1]), str(others), f"{f1(counts, phase):.3f}"])
    columns = "|".join(("phase", *(_NAMES[phase] for phase in PHASES), "unknown", "F1"))
    return table("Phases of the definition down, told across, in steps that are judged", columns, rows)


def _delays(trainings: Sequence[Training]) -> ReportTable:
    rows = []
    for phase in (FAST, STABLE):
        all_delays = [training.delay(phase) for training in trainings if training.goes_through(phase)]
        delays = [delay for delay in all_delays if delay is not None]
        shown = [f"{100 * quantile(delays, q):+.0f} %" if delays else "–" for q in (0.1, 0.5, 0.9)]
        rows.append([_NAMES[phase], str(len(all_delays)), *shown, str(len(all_delays) - len(delays))])
    columns = "into|switches|10th percentile|median|90th percentile|never, while asked"
    title = "Delay until a switch is told and stays, in parts of the step of the switch; negative where it is early"
    return table(title, columns, rows)


def _confidences(trainings: Sequence[Training]) -> ReportTable:
    answers = [
        (answer.confidence, right)
        for training in trainings
        for answer, right in zip(training.spread, training.right, strict=True)
    ]
    rows = []
    for low, high in pairwise(_CONFIDENCES):
        selected = [(stated, right) for stated, right in answers if low <= stated < high or stated == high == 1.0]
        if selected:
            means = [sum(column) / len(selected) for column in zip(*selected, strict=True)]
            rows.append([f"{low:g}–{high:g}", str(len(selected)), *(f"{mean:.3f}" for mean in means)])
    return table("Confidence stated, and share that was right", "confidence|steps|mean of it|right", rows)


def _picture(how: str, training: Training) -> ReportPlot:
    """Loss, and phases as steps: 1, 2 and 3."""
    curve = training.curve
    until = training.answers[-1].place + 1
    every = -(-until // _DRAWN)
    position = curve.steps[:until:every].astype(float)
    labels = [training.truth.phase(answer.place) for answer in training.answers]
    phases = [answer.phase for answer in training.answers]
    steps = [training.step(answer.place) for answer in training.answers]
    return ReportPlot(
        title=f"{curve.name} ({curve.source}), {how}: {sum(training.right) / len(training.right):.0%} of steps right",
        kind=PlotKind.lines,
        x_label="step",
        y_label="loss; phases: 1 warm-up, 2 fast convergence, 3 stable convergence",
        series=[
            PlotSeries(label="loss", x=position.tolist(), y=curve.losses[:until:every].tolist()),
            _staircase("phase of the definition", steps, labels),
            _staircase("phase told", steps, phases),
        ],
    )


def _staircase(label: str, steps: Sequence[int], phases: Sequence[str]) -> PlotSeries:
    """Phases as numbers, with both ends of each switch; what is no phase is zero."""
    points = list(_corners(steps, [PHASES.index(phase) + 1 if phase in PHASES else 0 for phase in phases]))
    return PlotSeries(label=label, x=[x for x, _ in points], y=[y for _, y in points])


def _corners(steps: Sequence[int], levels: Sequence[int]) -> Iterator[tuple[float, float]]:
    yield float(steps[0]), float(levels[0])
    for (_, before), (step, level) in pairwise(zip(steps, levels, strict=True)):
        if level != before:
            yield float(step), float(before)
            yield float(step), float(level)
    yield float(steps[-1]), float(levels[-1])


REQUIREMENT = "FCT-003"


@dataclass(frozen=True)
class Extent:
    """How much is asked.

    Attributes:
        curves: Made-up curves.
        spread: Steps of each that are asked about, spread evenly.
        around: Steps about each switch, as powers of 1.25 times that of the switch; the next point is asked about too.
    """

    curves: int
    spread: int
    around: tuple[float, ...]


QUICK = Extent(96, 25, (-1.0, 0.0, 1.0, 2.0))
FULL = Extent(300, 60, (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0))

CROWD = 200
"""Curves that a request holds at most."""
ROOM = 0.9
"""Share of the longest body that is used."""
POINT, ENTRY = 72, 128
"""Bytes that a point of a curve takes at most, and what is about the points."""


@dataclass(frozen=True)
class PhaseForecasts:
    """What the target said of every training.

    Attributes:
        trainings: With all answers that there were.
        refused: The first request that was not answered as the standard says; None where all were.
        unanswered: How many were not.
    """

    trainings: tuple[Training, ...]
    refused: Answer | None = None
    unanswered: int = 0


@dataclass(frozen=True)
class _Question:
    """A training as it stood at a point of it."""

    number: int
    place: int
    spread: bool


def observe(episode: Episode) -> PhaseForecasts:
    """Ask about made-up curves, and in a full run about real ones where they are at hand."""
    extent = FULL if episode.settings.full else QUICK
    seed = f"{episode.random.random()}"
    curves = [generated(seed, number) for number in range(extent.curves)]
    curves += _real(episode.settings.traces)
    truths = [switches(curve) for curve in curves]
    rounds = _rounds([list(_questions(number, curve, truths[number], extent)) for number, curve in enumerate(curves)])
    recognitions: list[list[Recognition]] = [[] for _ in curves]
    numbers: dict[str, int] = {}
    refused, unanswered = None, 0
    for done, questions in enumerate(rounds):
        episode.passed(done, len(rounds))
        for batch in _batches(episode, questions):
            names = _names(episode, len(batch))
            numbers |= {name: question.number for name, question in zip(names, batch, strict=True)}
            answer = episode.ask("POST", "/v1/training-phases", _body(episode, curves, batch, names))
            said = _said(answer, names)
            if said is None:
                refused, unanswered = refused or answer, unanswered + 1
                continue
            for question, row in zip(batch, said, strict=True):
                recognition = Recognition(
                    question.place, question.spread, row["phase"], row["since"], row["confidence"]
                )
                recognitions[question.number].append(recognition)
    episode.keep_truth(lambda: {"trainings": [_whole(curve) for curve in curves], "asked": numbers})
    trainings = zip(curves, truths, recognitions, strict=True)
    return PhaseForecasts(
        tuple(Training(curve, truth, tuple(entry)) for curve, truth, entry in trainings), refused, unanswered
    )


def _real(traces: Mapping[str, Path]) -> tuple[Curve, ...]:
    """Real curves, where every file of them is at hand."""
    return real_curves(traces[next(iter(REAL_FILES))]) if REAL_FILES.keys() <= traces.keys() else ()


def _questions(number: int, curve: Curve, truth: Switches, extent: Extent) -> Iterator[_Question]:
    """Points of a curve that are asked about; none so late that the end of the run plays a part in its label."""
    end = settled(curve.steps)
    if not end:
        return
    until = float(curve.steps[end - 1])
    spread = [until * (place + 0.5) / extent.spread for place in range(extent.spread)]
    switched = [place for place in (truth.fast, truth.stable) if place and place < end]
    around = [float(curve.steps[place]) * STRETCH**power for place in switched for power in extent.around]
    around += [float(curve.steps[place + 1]) for place in switched]
    evenly = [_place(curve, step) for step in spread]
    yield from (_Question(number, place, spread=True) for place in evenly)
    beside = {_place(curve, step) for step in around if step <= until}.difference(evenly)
    yield from (_Question(number, place, spread=False) for place in beside)


def _place(curve: Curve, step: float) -> int:
    """Place of the last point that is known at a step, or of the first there is."""
    return max(0, int(np.searchsorted(curve.steps, step, side="right")) - 1)


def _rounds(questions_by_training: Sequence[Sequence[_Question]]) -> list[list[_Question]]:
    """Questions in the order in which they may be put: of each training one a round, the shortest stretch first."""
    ordered = [sorted(questions, key=lambda one: (one.place, not one.spread)) for questions in questions_by_training]
    return [
        [questions[round_number] for questions in ordered if round_number < len(questions)]
        for round_number in range(max(map(len, ordered)))
    ]


def _batches(episode: Episode, questions: Sequence[_Question]) -> Iterator[list[_Question]]:
    """Questions of a round in an order of chance, as many in a request as have room."""
    max_bytes = ROOM * episode.settings.limits.get("max_body", 1e6)
    batch: list[_Question] = []
    used = 0.0
    for question in episode.random.sample(list(questions), len(questions)):
        size = POINT * (question.place + 1) + ENTRY
        if batch and (used + size > max_bytes or len(batch) == CROWD):
            yield batch
            batch, used = [], 0.0
        batch.append(question)
        used += size
    yield batch


def _names(episode: Episode, count: int) -> list[str]:
    """So many names that say nothing, and that nothing had before."""
    return [episode.name_of(f"{episode.random.getrandbits(64):016x}") for _ in range(count)]


def _body(
    episode: Episode, curves: Sequence[Curve], batch: Sequence[_Question], names: Sequence[str]
) -> dict[str, Any]:
    return {
        "revision": named_revision(episode, "curves"),
        "curves": [
            {"id": name, "points": _points(curves[question.number], question.place)}
            for name, question in zip(names, batch, strict=True)
        ],
    }


def _points(curve: Curve, place: int) -> list[dict[str, float]]:
    """A curve as it stood at a point of it."""
    columns = (values[: place + 1].tolist() for values in (curve.steps, curve.losses, curve.rates))
    return [{"step": step, "loss": loss, "learning_rate": rate} for step, loss, rate in zip(*columns, strict=True)]


def _whole(curve: Curve) -> dict[str, Any]:
    """A training with its future, from which its phases follow by the definition."""
    columns = {"steps": curve.steps, "losses": curve.losses, "rates": curve.rates}
    return {"source": curve.source, **{name: values.tolist() for name, values in columns.items()}}


def _said(answer: Answer, names: Sequence[str]) -> list[dict[str, Any]] | None:
    """Rows of a report, one for each curve in their order; None where it is no such report."""
    if answer.status != 200 or not schema.is_valid("PhaseReport", answer.json, reader=True):
        return None
    rows: list[dict[str, Any]] = answer.json["phases"]
    return rows if [row["curve"] for row in rows] == list(names) else None


def judge(observation: PhaseForecasts) -> Iterable[Finding]:
    """Share of steps at which the phase is the right one."""
    if observation.refused is not None:
        observed = f"{observation.unanswered} requests were not, the first: {observation.refused.brief}"
        expected = "every request is answered by a phase for each of its curves, in their order"
        yield Claim(REQUIREMENT, expected, False, observed, observation.refused)
    trainings = [training for training in observation.trainings if training.spread]
    if not trainings:
        return
    clusters = [training.right for training in trainings]
    steps = sum(map(len, clusters))
    tables, plots = exhibits(trainings)
    yield Figure(
        REQUIREMENT,
        accuracy(trainings),
        mean_lower_bound(clusters, REQUIREMENT),
        steps,
        f"share of {steps} steps, spread evenly over {len(trainings)} trainings, at which the phase told is that of "
        "the definition; one-sided 95 % bootstrap bound over trainings",
        parts(trainings),
        tables=tables,
        plots=plots,
    )


CHECK = Check("fct_phases", (REQUIREMENT,), observe, judge, traces=tuple(REAL_FILES), heavy=True)
