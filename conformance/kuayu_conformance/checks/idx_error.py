"""Error, order, intervals and abstentions of the compute index (IDX-001 to IDX-004).

Measured throughputs, disguised, travel in the request. A device, then a family of models, is left out; the service
says which probes it would have, gets them, and is asked for the rest. Tables that come with the suite are judged, if
they are fit for it; those of whoever runs it stand beside, so that no verdict depends on what else is at hand.

What one fold holds back another sends, however disguised, so that a service that remembers requests can find most of
it. Therefore devices arrive one by one before anything else is asked: no request holds what is asked for later, and
IDX-001 is proven only where it is on these, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kuayu_conformance import corpora
from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.idx_report import exhibits
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure
from kuayu_conformance.holdout.disguise import Disguise
from kuayu_conformance.holdout.folds import Cell, Fold, arrivals, folds, measured_alone
from kuayu_conformance.holdout.pairs import Pair, by_device, rank_correlations
from kuayu_conformance.holdout.simple import Simple
from kuayu_conformance.statistics import mean_lower_bound, mean_upper_bound
from kuayu_schemas import schema

PROBES = 4
"""Probes that the requirement grants."""
FULL_SWEEP, QUICK_SWEEP = (0, 1, 2, 3, 4, 5, 6), (0, 4)
"""Numbers of probes that a run tries."""
COVERAGE, TOLERANCE = 0.9, 0.4

REQUIREMENTS = ("IDX-001", "IDX-002", "IDX-003", "IDX-004")


@dataclass(frozen=True)
class Refused:
    """A question that was not answered as the standard says, and whether it is judged."""

    question: str
    answer: Answer
    counts: bool


@dataclass(frozen=True)
class Observation:
    """What the service said of everything that it was asked for, and what it did not answer."""

    pairs: tuple[Pair, ...]
    refused: tuple[Refused, ...]


def observe(episode: Episode) -> Observation:
    """Ask for every fold of every table; a quick run leaves out tables and numbers of probes that are not judged."""
    pairs: list[Pair] = []
    refused: list[Refused] = []
    for fold, sweep, counts in _due(episode):
        for found in _asked(episode, fold, sweep, counts=counts):
            (pairs if isinstance(found, Pair) else refused).append(found)  # type: ignore[arg-type]
    return Observation(tuple(pairs), tuple(refused))


def _due(episode: Episode) -> Iterator[tuple[Fold, Sequence[int], bool]]:
    """Folds with the numbers of probes to be tried, and whether they are judged; arrivals come before all others."""
    full, chance = episode.settings.full, episode.random
    own = {table.name for table in corpora.shipped()}
    judged = [table for table in episode.settings.tables if table.judged and table.name in own]
    for table in judged:
        yield from ((fold, (PROBES,), True) for fold in arrivals(table, chance) if fold.room >= PROBES)
    for table in episode.settings.tables if full else judged:
        for fold in folds(table, chance):
            sweep = [k for k in (FULL_SWEEP if full else QUICK_SWEEP) if k <= fold.room]
            if full or fold.room >= PROBES:
                yield fold, sweep, table in judged


def _asked(episode: Episode, fold: Fold, sweep: Sequence[int], *, counts: bool) -> Iterator[Pair | Refused]:
    """All that a fold is asked for: a plan once, indices for each number of probes."""
    disguise = Disguise(episode.random, fold.corpus)
    revision = {"epoch": episode.name_of("corpus"), "number": episode.random.randrange(1_000_000)}
    of = {"table": fold.table, "split": fold.split, "judged": counts, "revision": revision}
    episode.keep_truth(lambda: {**of, "names": disguise.names})
    cells = [disguise.cell(cell) for cell in fold.cells]
    plan: list[Cell] = []
    if most := sweep[-1]:
        body = {"revision": revision, "corpus": disguise.corpus(fold.corpus), "candidates": cells, "targets": cells}
        answer = episode.ask("POST", "/v1/probe-plans", {**body, "probes": most})
        planned = _planned(answer, disguise, fold)
        if planned is None:
            yield Refused("a probe plan", answer, counts)
            return
        plan = planned[:most]
    for probes in sweep:
        made = plan[:probes]
        if probes == PROBES and fold.split == "device":
            yield from (Pair.of_probe(fold, cell, counts=counts) for cell in made)
        targets = [cell for cell in fold.cells if cell not in made]
        corpus = fold.with_probes(made)
        alone = measured_alone(corpus)
        for reference, told in fold.referred(targets, episode.random):
            question = {
                "revision": revision,
                "corpus": disguise.corpus(corpus),
                "reference": disguise.device(reference),
                "devices": list(dict.fromkeys(disguise.device(cell.device) for cell in told)),
                "tasks": list(dict.fromkeys(disguise.task(cell.task) for cell in told)),
                "coverage": COVERAGE,
                "tolerance": TOLERANCE,
            }
            answer = episode.ask("POST", "/v1/compute-indices", question)
            said = _said(answer, disguise)
            if said is None or not set(told) <= set(said):
                yield Refused("compute indices", answer, counts and probes == PROBES)
                continue
            for cell in told:
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


def judge(observation: Observation) -> Iterable[Finding]:
    """Figures over the pairs that count, with as many probes as the requirement grants."""
    judged = [refused for refused in observation.refused if refused.counts]
    for refused in judged[:1]:
        found = f"{len(judged)} questions were not, the first: {refused.answer.brief}"
        for requirement in REQUIREMENTS:
            yield Claim(requirement, f"{refused.question}: every question is answered", False, found, refused.answer)
    told = [pair for pair in observation.pairs if pair.counts and pair.last]
    pairs = [pair for pair in told if not pair.probed and pair.split != "arrival"]
    if not pairs:
        return
    tables, plots = exhibits([pair for pair in observation.pairs if not pair.probed])
    devices = "one-sided 95 % bootstrap bound over devices"
    errors = by_device(pairs, lambda pair: pair.error)
    fresh = by_device((pair for pair in told if pair.split == "arrival"), lambda pair: pair.error)
    bounds = [mean_upper_bound(each, "IDX-001") for each in (errors, fresh) if each]
    yield Figure(
        "IDX-001",
        _mean(errors),
        max(bounds),
        len(pairs),
        f"mean absolute percentage error over all pairs of the judged tables; {devices}, or the same of devices as "
        "they arrive, of which nothing was sent before, whichever is greater",
        parts=[
            PartFigure(label, _mean(each), mean_upper_bound(each, label) if len(each) > 1 else None, n)
            for label, each, n in _parts([pair for pair in told if not pair.probed])
        ],
        tables=tables,
        plots=plots,
    )
    correlations = [[each] for each in rank_correlations(pair for pair in told if pair.split == "device")]
    yield Figure(
        "IDX-002",
        _mean(correlations),
        mean_lower_bound(correlations, "IDX-002"),
        len(correlations),
        "mean over tasks of Kendall's rank correlation; one-sided 95 % bootstrap bound over tasks",
    )
    held = by_device(pairs, lambda pair: float(pair.held))
    yield Figure(
        "IDX-003",
        _mean(held),
        mean_lower_bound(held, "IDX-003"),
        len(pairs),
        f"share of pairs whose interval, stated with 90 %, holds the measured value; {devices}",
    )
    abstained = by_device(pairs, lambda pair: float(pair.abstained))
    yield Figure(
        "IDX-004",
        _mean(abstained),
        mean_upper_bound(abstained, "IDX-004"),
        len(pairs),
        f"share of pairs that were abstained from; {devices}",
    )


def _parts(pairs: Sequence[Pair]) -> Iterator[tuple[str, list[list[float]], int]]:
    for table, split in dict.fromkeys((pair.table, pair.split) for pair in pairs):
        mine = [pair for pair in pairs if (pair.table, pair.split) == (table, split)]
        what = "devices as they arrive" if split == "arrival" else f"{split} left out"
        yield f"{table}, {what}", by_device(mine, lambda pair: pair.error), len(mine)


def _mean(clusters: Sequence[Sequence[float]]) -> float:
    values = [value for cluster in clusters for value in cluster]
    return sum(values) / len(values)


CHECK = Check("idx_error", REQUIREMENTS, observe, judge, measurements=True)
