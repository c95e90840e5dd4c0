"""Tables, parts and plots that stand beside the accuracy of phases of trainings."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kuayu_conformance.checks.fct_phases_scores import (
    Recogniser,
    Training,
    accuracy,
    always_stable,
    confusion,
    delayed,
    f1,
    macro_f1,
    told,
)
from kuayu_conformance.findings import PartFigure
from kuayu_conformance.statistics import mean_lower_bound, quantile
from kuayu_conformance.testbed.curves.values import FAST, PHASES, STABLE
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

_NAMES = dict(zip(PHASES, ("warm-up", "fast convergence", "stable convergence"), strict=True))
_RECOGNISERS: tuple[tuple[str, Recogniser], ...] = (
    ("the target", told),
    ("the definition, applied to the past alone", delayed),
    ("always stable convergence", always_stable),
)
_CONFIDENCES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
_DRAWN = 300


def parts(trainings: Sequence[Training]) -> list[PartFigure]:
    """Accuracy by source of the curves and by phase."""
    made = []
    for source in dict.fromkeys(training.curve.source for training in trainings):
        mine = [training for training in trainings if training.curve.source == source]
        clusters = [training.right for training in mine]
        bound = mean_lower_bound(clusters, source) if len(mine) > 1 else None
        made.append(PartFigure(source, accuracy(mine), bound, sum(map(len, clusters))))
    for phase in PHASES:
        clusters = [its for training in trainings if (its := _right_in(training, phase))]
        if clusters:
            rights = [right for its in clusters for right in its]
            bound = mean_lower_bound(clusters, phase) if len(clusters) > 1 else None
            made.append(PartFigure(f"in {_NAMES[phase]}", sum(rights) / len(rights), bound, len(rights)))
    return made


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
    return _table("Phases told beside those of two simple recognisers", columns, rows)


def _confused(trainings: Sequence[Training]) -> ReportTable:
    counts = confusion(trainings)
    shown = (*PHASES, "unknown")
    rows = []
    for phase in PHASES:
        row = [counts.get((phase, other), 0) for other in shown]
        others = sum(count for (label, _), count in counts.items() if label == phase) - sum(row[:-1])
        rows.append([_NAMES[phase], *map(str, row[:-1]), str(others), f"{f1(counts, phase):.3f}"])
    columns = "|".join(("phase", *(_NAMES[phase] for phase in PHASES), "unknown", "F1"))
    return _table("Phases of the definition down, told across, in steps that are judged", columns, rows)


def _delays(trainings: Sequence[Training]) -> ReportTable:
    rows = []
    for phase in (FAST, STABLE):
        found = [training.delay(phase) for training in trainings if training.goes_through(phase)]
        delays = [delay for delay in found if delay is not None]
        shown = [f"{100 * quantile(delays, q):+.0f} %" if delays else "–" for q in (0.1, 0.5, 0.9)]
        rows.append([_NAMES[phase], str(len(found)), *shown, str(len(found) - len(delays))])
    columns = "into|switches|10th percentile|median|90th percentile|never, while asked"
    title = "Delay until a switch is told and stays, in parts of the step of the switch; negative where it is early"
    return _table(title, columns, rows)


def _confidences(trainings: Sequence[Training]) -> ReportTable:
    answers = [
        (answer.confidence, right)
        for training in trainings
        for answer, right in zip(training.spread, training.right, strict=True)
    ]
    rows = []
    for low, high in pairwise(_CONFIDENCES):
        its = [(stated, right) for stated, right in answers if low <= stated < high or stated == high == 1.0]
        if its:
            means = [sum(column) / len(its) for column in zip(*its, strict=True)]
            rows.append([f"{low:g}–{high:g}", str(len(its)), *(f"{mean:.3f}" for mean in means)])
    return _table("Confidence stated, and share that was right", "confidence|steps|mean of it|right", rows)


def _picture(how: str, training: Training) -> ReportPlot:
    """Loss, and phases as steps: 1, 2 and 3."""
    curve = training.curve
    until = training.answers[-1].place + 1
    every = -(-until // _DRAWN)
    at = curve.steps[:until:every].astype(float)
    labels = [training.truth.phase(answer.place) for answer in training.answers]
    phases = [answer.phase for answer in training.answers]
    steps = [training.step(answer.place) for answer in training.answers]
    return ReportPlot(
        title=f"{curve.name} ({curve.source}), {how}: {sum(training.right) / len(training.right):.0%} of steps right",
        kind=PlotKind.lines,
        x_label="step",
        y_label="loss; phases: 1 warm-up, 2 fast convergence, 3 stable convergence",
        series=[
            PlotSeries(label="loss", x=at.tolist(), y=curve.losses[:until:every].tolist()),
            _staircase("phase of the definition", steps, labels),
            _staircase("phase told", steps, phases),
        ],
    )


def _staircase(label: str, steps: Sequence[int], phases: Sequence[str]) -> PlotSeries:
    """Phases as numbers, with both ends of each switch; what is no phase is nought."""
    points = list(_corners(steps, [PHASES.index(phase) + 1 if phase in PHASES else 0 for phase in phases]))
    return PlotSeries(label=label, x=[x for x, _ in points], y=[y for _, y in points])


def _corners(steps: Sequence[int], levels: Sequence[int]) -> Iterator[tuple[float, float]]:
    yield float(steps[0]), float(levels[0])
    for (_, before), (step, level) in pairwise(zip(steps, levels, strict=True)):
        if level != before:
            yield float(step), float(before)
            yield float(step), float(level)
    yield float(steps[-1]), float(levels[-1])


def _table(title: str, columns: str, rows: Sequence[Sequence[str]]) -> ReportTable:
    return ReportTable(title=title, columns=columns.split("|"), rows=[TableRow(cells=list(cells)) for cells in rows])
