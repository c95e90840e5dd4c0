"""Error, order, intervals and abstentions of the compute index (IDX-001 to IDX-004).

Measured throughputs, disguised, travel in the request. A device, then a family of models, is left out; the service
says which probes it would have, gets them, and is asked for the rest. Tables that come with the suite are judged, if
they are fit for it; those of whoever runs it stand beside, so that no verdict depends on what else is at hand.

What one fold holds back another sends, however disguised, so that a service that remembers requests can find most of
it. Therefore devices arrive one by one before anything else is asked: no request holds what is asked for later, and
IDX-001 is proven only where it is on these, too.

1. Tables and plots that stand beside the error of the compute index.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kuayu_conformance import corpora
from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import named_revision, percent, short
from kuayu_conformance.checks.kit.decisions import table as as_table
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure
from kuayu_conformance.holdout import (
    PEAK,
    ROOFLINE,
    SCALAR,
    Cell,
    Disguise,
    Fold,
    Pair,
    Simple,
    Summary,
    arrivals,
    by_device,
    folds,
    measured_alone,
    rank_correlations,
)
from kuayu_conformance.statistics import clustered_mean, mean_lower_bound, mean_upper_bound
from kuayu_schemas import schema
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

_LEFT_OUT = {"device": "device left out", "family": "family of models left out", "arrival": "devices as they arrive"}

Key = TypeVar("Key")


def exhibits(pairs: Sequence[Pair]) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Errors by table, split and number of probes, by device, and beside the simple indices; and drawn."""
    last = [pair for pair in pairs if pair.last]
    lines = _lines(pairs)
    tables = [_errors(pairs), _comparison(last), _by_device(last)]
    return tables, [_agreement(last), *([lines] if lines else [])]


def _gathered(pairs: Iterable[Pair], key: Callable[[Pair], Key]) -> dict[Key, list[Pair]]:
    """Pairs by a key; those that are judged first, otherwise in their order."""
    groups: dict[Key, list[Pair]] = {}
    for pair in sorted(pairs, key=lambda pair: (not pair.counts, pair.table)):
        groups.setdefault(key(pair), []).append(pair)
    return groups


def _by_probes(pairs: Iterable[Pair]) -> dict[tuple[str, str, int], list[Pair]]:
    groups = _gathered(pairs, lambda pair: (pair.table, pair.split, pair.probes))
    return dict(sorted(groups.items(), key=lambda item: (not item[1][0].counts, item[0])))


def _errors(pairs: Iterable[Pair]) -> ReportTable:
    columns = "table|left out|probes|pairs|mean|median|90th percentile|within 10 %|in interval|abstained|τ of these"
    rows = []
    for (table, split, probes), group in _by_probes(pairs).items():
        s = Summary.of(group)
        shares = [percent(share) for share in (s.mean, s.median, s.ninetieth, s.near, s.covered)]
        correlation = "–" if s.correlation is None else f"{s.correlation:.2f}"
        rows.append([_shown(table, group), split, str(probes), str(s.pairs), *shares, str(s.abstained), correlation])
    return as_table("Error of the index by table, by what is left out, and by number of probes", columns, rows)


def _comparison(pairs: Iterable[Pair]) -> ReportTable:
    columns = f"table|left out|pairs|the index|{PEAK}|{SCALAR}|{ROOFLINE}"
    rows = []
    for (table, split), group in _gathered(pairs, lambda pair: (pair.table, pair.split)).items():
        simple = [_simple_error(group, figure) for figure in ("peak", "scalar", "roofline")]
        rows.append([_shown(table, group), split, str(len(group)), percent(Summary.of(group).mean), *simple])
    return as_table("Mean error with four probes, beside that of three simple indices", columns, rows)


def _by_device(pairs: Iterable[Pair]) -> ReportTable:
    groups = _gathered(pairs, lambda pair: (pair.table, pair.split, pair.device))
    rows = [
        [_shown(table, group), split, device, str(len(group)), percent(Summary.of(group).mean)]
        for (table, split, device), group in groups.items()
    ]
    return as_table("Mean error with four probes by device", "table|left out|device|pairs|mean", rows)


def _simple_error(pairs: Sequence[Pair], figure: str) -> str:
    values = [(getattr(pair.simple, figure), pair.measured) for pair in pairs]
    errors = [abs(value / measured - 1) for value, measured in values if value is not None]
    return percent(sum(errors) / len(errors)) if len(errors) == len(pairs) else "–"


def _agreement(pairs: Sequence[Pair]) -> ReportPlot:
    series = _gathered(pairs, lambda pair: f"{_shown(pair.table, [pair])}, {_LEFT_OUT[pair.split]}")
    return ReportPlot(
        title="Predicted against measured, with four probes",
        kind=PlotKind.agreement,
        x_label="measured index",
        y_label="predicted index",
        series=[
            PlotSeries(
                label=label,
                x=[short(pair.measured) for pair in entry],
                y=[short(pair.value) for pair in entry],
            )
            for label, entry in series.items()
        ],
    )


def _lines(pairs: Iterable[Pair]) -> ReportPlot | None:
    """Mean error against the number of probes; None where only one number was tried."""
    series: dict[str, list[tuple[int, float]]] = {}
    for (table, split, probes), group in _by_probes(pairs).items():
        label = f"{_shown(table, group)}, {_LEFT_OUT[split]}"
        series.setdefault(label, []).append((probes, Summary.of(group).mean))
    drawn = {label: points for label, points in series.items() if len(points) > 2}
    if not drawn:
        return None
    return ReportPlot(
        title="Error against number of probes",
        kind=PlotKind.lines,
        x_label="probes",
        y_label="mean error, %",
        series=[
            PlotSeries(label=label, x=[float(k) for k, _ in points], y=[short(100 * error) for _, error in points])
            for label, points in drawn.items()
        ],
    )


def _shown(table: str, pairs: Sequence[Pair]) -> str:
    return table if pairs[0].counts else f"{table} (not judged)"


PROBES = 4
"""Probes that the requirement grants."""
FULL_SWEEP, QUICK_SWEEP = (0, 1, 2, 3, 4, 5, 6), (0, 4)
"""Numbers of probes that a run tries."""
COVERAGE, TOLERANCE = 0.9, 0.4

REQUIREMENTS = ("IDX-001", "IDX-002", "IDX-003", "IDX-004")


@dataclass(frozen=True)
class UnansweredIndex:
    """A question that was not answered as the standard says, and whether it is judged."""

    question: str
    answer: Answer
    counts: bool


@dataclass(frozen=True)
class HeldOutIndices:
    """What the service said of everything that it was asked for, and what it did not answer."""

    pairs: tuple[Pair, ...]
    refused: tuple[UnansweredIndex, ...]


def observe(episode: Episode) -> HeldOutIndices:
    """Ask for every fold of every table; a quick run leaves out tables and numbers of probes that are not judged."""
    pairs: list[Pair] = []
    refused: list[UnansweredIndex] = []
    for fold, sweep, counts in _due(episode):
        for outcome in _predictions(episode, fold, sweep, counts=counts):
            (pairs if isinstance(outcome, Pair) else refused).append(outcome)  # type: ignore[arg-type]
    return HeldOutIndices(tuple(pairs), tuple(refused))


def _due(episode: Episode) -> Iterator[tuple[Fold, Sequence[int], bool]]:
    """Folds with the numbers of probes to be tried, and whether they are judged; arrivals come before all others."""
    full, chance = episode.settings.full, episode.random
    own = {table.name for table in corpora.shipped()}
    judged = [table for table in episode.settings.tables if table.judged and table.name in own]
    for table in judged:
        yield from ((fold, (PROBES,), True) for fold in arrivals(table, chance) if fold.max_probes >= PROBES)
    for table in episode.settings.tables if full else judged:
        for fold in folds(table, chance):
            sweep = [k for k in (FULL_SWEEP if full else QUICK_SWEEP) if k <= fold.max_probes]
            if full or fold.max_probes >= PROBES:
                yield fold, sweep, table in judged


def _predictions(
    episode: Episode, fold: Fold, sweep: Sequence[int], *, counts: bool
) -> Iterator[Pair | UnansweredIndex]:
    """All that a fold is asked for: a plan once, indices for each number of probes."""
    disguise = Disguise(episode.random, fold.corpus)
    revision = named_revision(episode, "corpus")
    of = {"table": fold.table, "split": fold.split, "judged": counts, "revision": revision}
    episode.keep_truth(lambda: {**of, "names": disguise.names})
    cells = [disguise.cell(cell) for cell in fold.cells]
    plan: list[Cell] = []
    if most := sweep[-1]:
        body = {"revision": revision, "corpus": disguise.corpus(fold.corpus), "candidates": cells, "targets": cells}
        answer = episode.ask("POST", "/v1/probe-plans", {**body, "probes": most})
        planned = _planned(answer, disguise, fold)
        if planned is None:
            yield UnansweredIndex("a probe plan", answer, counts)
            return
        plan = planned[:most]
    for probes in sweep:
        probed = plan[:probes]
        if probes == PROBES and fold.split == "device":
            yield from (Pair.of_probe(fold, cell, counts=counts) for cell in probed)
        targets = [cell for cell in fold.cells if cell not in probed]
        corpus = fold.with_probes(probed)
        alone = measured_alone(corpus)
        for reference, batch in fold.referred(targets, episode.random):
            question = {
                "revision": revision,
                "corpus": disguise.corpus(corpus),
                "reference": disguise.device(reference),
                "devices": list(dict.fromkeys(disguise.device(cell.device) for cell in batch)),
                "tasks": list(dict.fromkeys(disguise.task(cell.task) for cell in batch)),
                "coverage": COVERAGE,
                "tolerance": TOLERANCE,
            }
            answer = episode.ask("POST", "/v1/compute-indices", question)
            said = _said(answer, disguise)
            if said is None or not set(batch) <= set(said):
                yield UnansweredIndex("compute indices", answer, counts and probes == PROBES)
                continue
            for cell in batch:
                unit = fold.truth[Cell(reference, cell.task)]
                yield Pair(
                    fold.table,
                    counts,
                    fold.split,
                    probes,
                    probes == PROBES,
                    cell.device,
                    cell.task,
                    fold.truth[cell] / unit,
                    unit,
                    *said[cell],
                    Simple.of(corpus, alone, cell, reference),
                )


def _planned(answer: Answer, disguise: Disguise, fold: Fold) -> list[Cell] | None:
    """Probes of a plan; None where it is no plan or names what is no candidate."""
    if answer.status != 200 or not schema.is_valid("ProbePlan", answer.json, reader=True):
        return None
    named = [disguise.revealed(probe) for probe in answer.json["probes"]]
    return [cell for cell in named if cell] if all(cell in fold.cells for cell in named) else None


def _said(answer: Answer, disguise: Disguise) -> dict[Cell, tuple[float, float, float, bool]] | None:
    """Value, interval and abstention of each pair; None where it is no report of indices."""
    if answer.status != 200 or not schema.is_valid("IndexReport", answer.json, reader=True):
        return None
    rows = ((disguise.revealed(row), row) for row in answer.json["indices"])
    return {cell: (row["value"], row["low"], row["high"], _open(row)) for cell, row in rows if cell}


def _open(row: Mapping[str, Any]) -> bool:
    """Whether an index is not to be relied on: it says so, or its interval is too wide whatever it says."""
    return bool(row["abstained"]) or row["high"] > (1 + TOLERANCE) ** 2 * row["low"]


def judge(observation: HeldOutIndices) -> Iterable[Finding]:
    """Figures over the pairs that count, with as many probes as the requirement grants."""
    judged = [refused for refused in observation.refused if refused.counts]
    for refused in judged[:1]:
        observed = f"{len(judged)} questions were not, the first: {refused.answer.brief}"
        for requirement in REQUIREMENTS:
            yield Claim(requirement, f"{refused.question}: every question is answered", False, observed, refused.answer)
    counted = [pair for pair in observation.pairs if pair.counts and pair.last]
    pairs = [pair for pair in counted if not pair.probed and pair.split != "arrival"]
    if not pairs:
        return
    tables, plots = exhibits([pair for pair in observation.pairs if not pair.probed])
    devices = "one-sided 95 % bootstrap bound over devices"
    errors = by_device(pairs, lambda pair: pair.error)
    fresh = by_device((pair for pair in counted if pair.split == "arrival"), lambda pair: pair.error)
    bounds = [mean_upper_bound(entry, "IDX-001") for entry in (errors, fresh) if entry]
    yield Figure(
        "IDX-001",
        clustered_mean(errors),
        max(bounds),
        len(pairs),
        f"mean absolute percentage error over all pairs of the judged tables; {devices}, or the same of devices as "
        "they arrive, of which nothing was sent before, whichever is greater",
        parts=[
            PartFigure(label, clustered_mean(item), mean_upper_bound(item, label) if len(item) > 1 else None, n)
            for label, item, n in _parts([pair for pair in counted if not pair.probed])
        ],
        tables=tables,
        plots=plots,
    )
    correlations = [
        [correlation] for correlation in rank_correlations(pair for pair in counted if pair.split == "device")
    ]
    if correlations:  # a target that stops answering may leave no task with devices to be put in order
        yield Figure(
            "IDX-002",
            clustered_mean(correlations),
            mean_lower_bound(correlations, "IDX-002"),
            len(correlations),
            "mean over tasks of Kendall's rank correlation; one-sided 95 % bootstrap bound over tasks",
        )
    covered = by_device(pairs, lambda pair: float(pair.covered))
    yield Figure(
        "IDX-003",
        clustered_mean(covered),
        mean_lower_bound(covered, "IDX-003"),
        len(pairs),
        f"share of pairs whose interval, stated with 90 %, holds the measured value; {devices}",
    )
    abstained = by_device(pairs, lambda pair: float(pair.abstained))
    yield Figure(
        "IDX-004",
        clustered_mean(abstained),
        mean_upper_bound(abstained, "IDX-004"),
        len(pairs),
        f"share of pairs that were abstained from; {devices}",
    )


def _parts(pairs: Sequence[Pair]) -> Iterator[tuple[str, list[list[float]], int]]:
    for table, split in dict.fromkeys((pair.table, pair.split) for pair in pairs):
        mine = [pair for pair in pairs if (pair.table, pair.split) == (table, split)]
        what = "devices as they arrive" if split == "arrival" else f"{split} left out"
        yield f"{table}, {what}", by_device(mine, lambda pair: pair.error), len(mine)


CHECK = Check("idx_error", REQUIREMENTS, observe, judge, measurements=True)
