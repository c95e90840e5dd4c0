"""Error of the demand law on published runs (DEM-001).

Measured runs, disguised, travel in the request. One source is left out at a time, and the service is asked for the
runs of that source.

1. Published runs with other names, in another order, on a clock of another pace.

   All times are multiplied by one factor and all rates divided by it, so that every quotient of physics stays as it
   was; memory stays. The factor is near one, since fixed times that a law may know (a kernel, a message) are not in
   the request. Structures and layouts cannot be disguised: who has learnt the runs by heart is not found out by this.
2. How far off a predicted run was: one run, and many of them summed up.
3. Tables and plots that stand beside the error of the demand law.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from random import Random
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand.demand_requests import DEMANDS, counted, names, report, revision
from kuayu_conformance.checks.kit.decisions import short, table
from kuayu_conformance.corpora import training
from kuayu_conformance.corpora.training import Corpus, Run
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure
from kuayu_conformance.statistics import clustered_mean, mean_upper_bound
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

if TYPE_CHECKING:
    from kuayu_schemas import documents

SLOWEST, FASTEST = 1.25, 0.8
_RATES = (
    "accelerator_memory_bandwidth",
    "node_bandwidth",
    "domain_bandwidth",
    "federation_bandwidth",
)
_THROUGHPUTS = ("peak_matrix_throughput", "sustained_matrix_throughput")


class Disguise:
    """Names and pace of one question.

    Attributes:
        pace: What times are multiplied by.
    """

    def __init__(
        self, chance: Random, hardware: "Mapping[str, documents.TrainingHardware]", sources: Iterable[str]
    ) -> None:
        """Draw them."""
        self._chance = chance
        self.pace = chance.uniform(FASTEST, SLOWEST)
        self._hardware = dict(zip(hardware, names(chance, "h", len(hardware)), strict=True))
        listed = list(sources)
        self._sources = dict(zip(listed, names(chance, "s", len(listed)), strict=True))

    def machine(self, of: "documents.TrainingHardware") -> "documents.TrainingHardware":
        """Hardware under another name, its rates slower by the pace."""
        members: Mapping[str, Any] = of
        slower = {name: members[name] / self.pace for name in _RATES if name in members}
        peaks = {
            name: {precision: value / self.pace for precision, value in members[name].items()}
            for name in _THROUGHPUTS
            if name in members
        }
        disguised = {**members, **slower, **peaks, "id": self._hardware[of["id"]]}
        return cast("documents.TrainingHardware", disguised)

    def measured(self, run: Run) -> "documents.MeasuredRun":
        """A run as it travels in a request; it has a time, or memory, or both."""
        entry: documents.MeasuredRun = {
            "source": self._sources[run.source],
            "model": run.model,
            "strategy": run.strategy,
            "hardware": self._hardware[run.hardware],
        }
        if run.step_time is not None:
            entry["step_time"] = run.step_time * self.pace
        if run.memory is not None:
            entry["memory"] = run.memory
        return entry

    def cases(self, runs: Sequence[Run]) -> "list[documents.TrainingCase]":
        """Runs as cases, in their order."""
        return [
            {"id": name, "model": run.model, "strategy": run.strategy, "hardware": self._hardware[run.hardware]}
            for name, run in zip(names(self._chance, "c", len(runs)), runs, strict=True)
        ]


DENSE, GUESSED, EXPERTS = "dense, structure stated", "dense, structure guessed", "experts"
ALIKE = 0.02
"""Times that differ by less are one time: such is the noise of a single iteration."""
MIN_RANKED_LAYOUTS = 3
"""Layouts that a ranking needs."""


@dataclass(frozen=True)
class RunPrediction:
    """What a service said of a run that it did not know, and what was measured.

    Attributes:
        run: The run.
        counts: Whether its source is among those that come with the suite.
        predicted: Seconds of a step, on the clock of the source.
        low: Lower end of its interval.
        high: Upper end of its interval.
        memory: Bytes of the fullest accelerator.
        fits: Whether the service says that it can run.
        baseline: Seconds of 6 FLOP for each active parameter and token at the constant utilisation of other sources.
    """

    run: Run
    counts: bool
    predicted: float
    low: float
    high: float
    memory: float
    fits: bool
    baseline: float

    @classmethod
    def of(
        cls,
        run: Run,
        row: "documents.TrainingDemand",
        pace: float,
        share: float,
        machine: "documents.TrainingHardware",
        *,
        counts: bool,
    ) -> "RunPrediction":
        """A row of an answer whose clock ran at a pace; the share is the usual utilisation."""
        time = row["step_time"]
        expected, low, high = (seconds / pace for seconds in (time["expected"], time["low"], time["high"]))
        return cls(run, counts, expected, low, high, row["memory"], row["fits"], ideal(run, machine) / share)

    @property
    def measured(self) -> float | None:
        """Seconds of a step; None where the source tells none."""
        return self.run.step_time

    @property
    def stratum(self) -> str:
        """Kind of its model."""
        if self.run.kind == "moe":
            return EXPERTS
        return DENSE if self.run.stated else GUESSED

    @property
    def judged(self) -> bool:
        """Whether the figure rests on it."""
        return self.counts and self.measured is not None and self.stratum == DENSE

    @property
    def error(self) -> float:
        """Absolute relative error of the time; only where one was measured."""
        return abs(self.predicted / (self.measured or 1.0) - 1)

    @property
    def covered(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low <= (self.measured or 0.0) <= self.high


def ideal(run: Run, machine: "documents.TrainingHardware") -> float:
    """Seconds of 6 FLOP for each active parameter and token at the peak of the run's number format."""
    peaks: Mapping[str, Any] = machine["peak_matrix_throughput"]
    peak = peaks[run.strategy.get("precision", "bf16")]
    return float(6.0 * counted(run.model).active * run.tokens / (peak * run.devices))


def usual_shares(runs: Iterable[Run], hardware: "Mapping[str, documents.TrainingHardware]") -> float:
    """Utilisation of some runs: the median over sources of each one's median."""
    shares: dict[str, list[float]] = {}
    for run in runs:
        if run.step_time is not None:
            shares.setdefault(run.source, []).append(ideal(run, hardware[run.hardware]) / run.step_time)
    return median(median(share) for share in shares.values())


def by_source(predictions: Iterable[RunPrediction], figure: Callable[[RunPrediction], float]) -> list[list[float]]:
    """A figure of each run, gathered by source; sources are what a bootstrap draws."""
    gathered: dict[str, list[float]] = {}
    for entry in predictions:
        gathered.setdefault(entry.run.source, []).append(figure(entry))
    return list(gathered.values())


@dataclass(frozen=True)
class Summary:
    """Errors of many runs; each figure as the report prints it."""

    runs: int
    sources: int
    mean: float
    median: float
    ninetieth: float
    bias: float
    covered: float
    baseline_error: float

    @classmethod
    def of(cls, predictions: Sequence[RunPrediction]) -> "Summary":
        """Figures of at least one run with a time."""
        errors = sorted(item.error for item in predictions)
        return cls(
            len(predictions),
            len({row.run.source for row in predictions}),
            fmean(errors),
            median(errors),
            errors[ceil(0.9 * len(errors)) - 1],
            fmean(prediction.predicted / (prediction.measured or 1.0) - 1 for prediction in predictions),
            fmean(entry.covered for entry in predictions),
            fmean(abs(prediction.baseline / (prediction.measured or 1.0) - 1) for prediction in predictions),
        )


@dataclass(frozen=True)
class Ranking:
    """How layouts of one model on one machine were ranked: Kendall's τ-a over the pairs that differ clearly."""

    source: str
    model: str
    devices: int
    layouts: int
    tau: float


def rankings(predictions: Iterable[RunPrediction]) -> list[Ranking]:
    """Rankings by time for a token of every model × machine × session with enough layouts.

    A layout that was run several times counts once, with its median. Source: M. G. Kendall, Biometrika 30 (1938) 81-93.
    """
    groups: dict[str, list[RunPrediction]] = {}
    for row in predictions:
        run = row.run
        if run.step_time is not None:
            key = (run.source, run.session, sorted(run.model.items(), key=str), run.hardware, run.devices)
            groups.setdefault(str((*key, run.strategy.get("precision"))), []).append(row)
    ranked = []
    for group in groups.values():
        layouts: dict[str, list[RunPrediction]] = {}
        for item in group:
            layouts.setdefault(str(sorted(item.run.strategy.items())), []).append(item)
        places = [
            (
                median((entry.measured or 0.0) / entry.run.tokens for entry in alike),
                alike[0].predicted / alike[0].run.tokens,
            )
            for alike in layouts.values()
        ]
        signs = [
            _sign(a[0] - b[0]) * _sign(a[1] - b[1]) for a, b in combinations(places, 2) if abs(a[0] / b[0] - 1) > ALIKE
        ]
        if len(places) >= MIN_RANKED_LAYOUTS and signs:
            run = group[0].run
            ranked.append(Ranking(run.source, run.name, run.devices, len(places), fmean(signs)))
    return ranked


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


CALCULON, SAME_RUNS = 0.037, "korthikanti-2205.05198-table5"
"""Error that M. Isaev et al., "Calculon" (SC 2023), table 2, publish, and the source of the runs that it is of."""
NEAR = 0.1

STRATA = (DENSE, GUESSED, EXPERTS)

Key = TypeVar("Key")


def exhibits(
    predictions: Sequence[RunPrediction], apart: Sequence[RunPrediction] = ()
) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Errors by kind of model and by source, memory, order of layouts; and drawn.

    Where whole teams were left out, a table of those runs is added.
    """
    timed, teams = ([entry for entry in some if entry.measured is not None] for some in (predictions, apart))
    tables = [_kinds(timed), _sources(timed), _memory(predictions), _layouts(timed)]
    if teams:
        tables.append(
            _sources(teams, "Error of the step time, every source of the same team on the same machine left out")
        )
    return tables, [_agreement(timed)]


_COLUMNS = "runs|mean|median|90th percentile|bias|in 90 % interval|6·P·tokens"


def _cells(predictions: Sequence[RunPrediction]) -> list[str]:
    s = Summary.of(predictions)
    shares = (s.mean, s.median, s.ninetieth, s.bias, s.covered, s.baseline_error)
    return [str(s.runs), *map(_percent, shares)]


def _kinds(timed: Sequence[RunPrediction]) -> ReportTable:
    own = [entry for entry in timed if entry.counts]
    rows = []
    for stratum in STRATA:
        selected = [item for item in own if item.stratum == stratum]
        if selected:
            rows.append([stratum, str(Summary.of(selected).sources), *_cells(selected)])
    same = [row for row in own if row.run.source == SAME_RUNS]
    if same:
        rows.append(["the runs that Calculon publishes", "1", *_cells(same)])
    rows.append(["Calculon itself, its efficiencies measured there", "1", "8", _percent(CALCULON), *5 * ["–"]])
    return table("Error of the step time, its source left out", f"models|sources|{_COLUMNS}", rows)


def _sources(timed: Sequence[RunPrediction], title: str = "Error of the step time by source") -> ReportTable:
    groups = _gathered(timed, lambda entry: (not entry.counts, entry.run.source, entry.stratum))
    rows = [
        [source + (" (not judged)" if apart else ""), stratum, *_cells(item)]
        for (apart, source, stratum), item in sorted(groups.items())
    ]
    return table(title, f"source|models|{_COLUMNS}", rows)


def _memory(predictions: Sequence[RunPrediction]) -> ReportTable:
    rows = []
    for source, group in _gathered(predictions, lambda entry: entry.run.source).items():
        quotients = [row.memory / row.run.memory for row in group if row.run.memory]
        errors = [abs(quotient - 1) for quotient in quotients]
        figures = (
            [_percent(fmean(errors)), _percent(fmean(quotients) - 1), _percent(fmean(e <= NEAR for e in errors))]
            if errors
            else 3 * ["–"]
        )
        failed, ran = ([item for item in group if item.run.failed is flag] for flag in (True, False))
        foreseen = f"{sum(not prediction.fits for prediction in failed)} of {len(failed)}" if failed else "–"
        rows.append(
            [
                source,
                str(len(errors)),
                *figures,
                foreseen,
                f"{sum(prediction.fits for prediction in ran)} of {len(ran)}",
            ]
        )
    columns = "source|runs that tell it|mean|bias|within 10 %|ran out of memory, and that was told|ran, and fits"
    return table("Memory of the fullest accelerator against what was reported", columns, rows)


def _layouts(timed: Sequence[RunPrediction]) -> ReportTable:
    groups: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for ranking in rankings(timed):
        groups.setdefault((ranking.source, ranking.model), []).append((ranking.layouts, ranking.tau))
    rows = [
        [
            source,
            model,
            str(len(item)),
            str(sum(layouts for layouts, _ in item)),
            f"{fmean(tau for _, tau in item):.2f}",
        ]
        for (source, model), item in sorted(groups.items())
    ]
    taus = [tau for group in groups.values() for _, tau in group]
    if taus:
        layouts = sum(layouts for entry in groups.values() for layouts, _ in entry)
        rows.append(["all", "all", str(len(taus)), str(layouts), f"{fmean(taus):.2f}"])
    title = "Order of layouts of one model on one machine: mean of Kendall's τ over pairs that differ by more than 2 %"
    return table(title, "source|model|groups|layouts|τ", rows)


def _agreement(timed: Sequence[RunPrediction]) -> ReportPlot:
    series = _gathered(timed, lambda entry: entry.stratum)
    return ReportPlot(
        title="Predicted against measured step time, its source left out",
        kind=PlotKind.agreement,
        x_label="measured, s",
        y_label="predicted, s",
        series=[
            PlotSeries(
                label=label,
                x=[short(prediction.measured or 0.0) for prediction in group],
                y=[short(row.predicted) for row in group],
            )
            for label, group in sorted(series.items(), key=lambda item: STRATA.index(item[0]))
        ],
    )


def _gathered(
    predictions: Iterable[RunPrediction], key: Callable[[RunPrediction], Key]
) -> dict[Key, list[RunPrediction]]:
    groups: dict[Key, list[RunPrediction]] = {}
    for entry in predictions:
        groups.setdefault(key(entry), []).append(entry)
    return groups


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


COVERAGE = 0.9


@dataclass(frozen=True)
class UnansweredRun:
    """A question that was not answered as the standard says, and what it was for."""

    source: str
    answer: Answer


@dataclass(frozen=True)
class RunDemands:
    """What the service said of every run, and what it did not answer.

    Attributes:
        predictions: Runs whose source was left out.
        refused: Questions about them.
        apart: Runs of which all sources of the same team were left out; reported only.
    """

    predictions: tuple[RunPrediction, ...]
    refused: tuple[UnansweredRun, ...]
    apart: tuple[RunPrediction, ...] = ()


def observe(episode: Episode) -> RunDemands:
    """Leave out each source of the shipped runs; a full run also whole teams.

    Runs known from papers alone are asked for too where a data folder holds them.
    """
    corpus = training.shipped()
    folds = [(corpus, source, tuple(run for run in corpus.runs if run.source == source)) for source in corpus.sources]
    for name in training.FILES.keys() & episode.settings.traces.keys():
        papers = training.further(episode.settings.traces[name])
        both = Corpus({}, {**papers.hardware, **corpus.hardware}, corpus.runs)
        folds += [
            (both, source, tuple(run for run in papers.runs if run.source == source)) for source in papers.sources
        ]
    predictions: list[RunPrediction] = []
    refused: list[UnansweredRun] = []
    for number, (known, source, out) in enumerate(folds):
        rest = [run for run in known.runs if run.source != source]
        outcome = _predictions_of(episode, known.hardware, rest, out, counts=source in corpus.sources)
        if isinstance(outcome, Answer):
            refused.append(UnansweredRun(source, outcome))
        else:
            predictions += outcome
        episode.passed(number + 1, len(folds))
    return RunDemands(
        tuple(predictions), tuple(refused), tuple(_apart(episode, corpus)) if episode.settings.full else ()
    )


def _apart(episode: Episode, corpus: Corpus) -> Iterator[RunPrediction]:
    """Runs of teams with several sources, all of them left out at once."""
    teams: dict[str, set[str]] = {}
    for source in corpus.sources.values():
        teams.setdefault(source.team or source.name, set()).add(source.name)
    for sources in teams.values():
        if len(sources) > 1:
            rest = [run for run in corpus.runs if run.source not in sources]
            out = [run for run in corpus.runs if run.source in sources]
            outcome = _predictions_of(episode, corpus.hardware, rest, out, counts=True)
            yield from () if isinstance(outcome, Answer) else outcome


def _predictions_of(
    episode: Episode,
    hardware: "Mapping[str, documents.TrainingHardware]",
    rest: Sequence[Run],
    out: Sequence[Run],
    *,
    counts: bool,
) -> list[RunPrediction] | Answer:
    """What a service that knows the rest says of what was left out; its answer where that says it not."""
    chance = episode.random
    used = {run.hardware for run in [*rest, *out]}
    machines = {name: entry for name, entry in hardware.items() if name in used}
    disguise = Disguise(chance, machines, dict.fromkeys(run.source for run in rest))
    asked_for = chance.sample(out, len(out))
    cases = disguise.cases(asked_for)
    body: documents.TrainingDemandRequest = {
        "revision": revision(episode),
        "hardware": [disguise.machine(machines[name]) for name in chance.sample(list(machines), len(machines))],
        "runs": [
            disguise.measured(run)
            for run in chance.sample(rest, len(rest))
            if not (run.step_time is None and run.memory is None)
        ],
        "cases": cases,
        "coverage": COVERAGE,
    }
    answer = episode.ask_patiently("POST", DEMANDS, body)
    document = report(answer, "TrainingDemandReport")
    if document is None or [row["case"] for row in document["demands"]] != [case["id"] for case in cases]:
        return answer
    shares = usual_shares(rest, hardware)
    return [
        RunPrediction.of(run, row, disguise.pace, shares, hardware[run.hardware], counts=counts)
        for run, row in zip(asked_for, document["demands"], strict=True)
    ]


def judge(observation: RunDemands) -> Iterable[Finding]:
    """The figure over dense models whose structure is stated; everything else stands beside it."""
    for refused in observation.refused[:1]:
        observed = f"{len(observation.refused)} questions were not, the first: {refused.answer.brief}"
        yield Claim("DEM-001", "every question for demands is answered, case by case", False, observed, refused.answer)
    judged = [item for item in observation.predictions if item.judged]
    if not judged:
        return
    errors = by_source(judged, lambda entry: entry.error)
    tables, plots = exhibits(observation.predictions, observation.apart)
    yield Figure(
        "DEM-001",
        clustered_mean(errors),
        mean_upper_bound(errors, "DEM-001"),
        len(judged),
        "mean absolute percentage error of the step time over published runs of dense models whose structure is "
        "stated, each source left out in turn; one-sided 95 % bootstrap bound over sources",
        parts=[
            PartFigure(
                label, clustered_mean(row), mean_upper_bound(row, label) if len(row) > 1 else None, sum(map(len, row))
            )
            for label, row in _parts(observation.predictions)
        ],
        tables=tables,
        plots=plots,
    )


def _parts(predictions: Sequence[RunPrediction]) -> Iterable[tuple[str, list[list[float]]]]:
    kinds: dict[str, list[RunPrediction]] = {}
    for row in predictions:
        if row.counts and row.measured is not None:
            kinds.setdefault(row.stratum, []).append(row)
    for stratum, item in sorted(kinds.items()):
        yield stratum, by_source(item, lambda entry: entry.error)


CHECK = Check("dem_law", ("DEM-001",), observe, judge, traces=tuple(training.FILES))
