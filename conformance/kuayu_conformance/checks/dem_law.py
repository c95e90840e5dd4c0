"""Error of the demand law on published runs (DEM-001).

Measured runs, disguised, travel in the request. One source is left out at a time, and the service is asked for the
runs of that source.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.dem_disguise import Disguise
from kuayu_conformance.checks.dem_fixtures import DEMANDS, Document, report, revision
from kuayu_conformance.checks.dem_law_report import exhibits
from kuayu_conformance.checks.dem_told import Told, by_source, usual_shares
from kuayu_conformance.corpora import training
from kuayu_conformance.corpora.training import Corpus, Run
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure
from kuayu_conformance.statistics import mean_upper_bound

COVERAGE = 0.9


@dataclass(frozen=True)
class Refused:
    """A question that was not answered as the standard says, and what it was for."""

    source: str
    answer: Answer


@dataclass(frozen=True)
class Observation:
    """What the service said of every run, and what it did not answer.

    Attributes:
        told: Runs whose source was left out.
        refused: Questions about them.
        apart: Runs of which all sources of the same team were left out; reported only.
    """

    told: tuple[Told, ...]
    refused: tuple[Refused, ...]
    apart: tuple[Told, ...] = ()


def observe(episode: Episode) -> Observation:
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
    told: list[Told] = []
    refused: list[Refused] = []
    for number, (known, source, out) in enumerate(folds):
        rest = [run for run in known.runs if run.source != source]
        found = _asked(episode, known.hardware, rest, out, counts=source in corpus.sources)
        if isinstance(found, Answer):
            refused.append(Refused(source, found))
        else:
            told += found
        episode.passed(number + 1, len(folds))
    return Observation(tuple(told), tuple(refused), tuple(_apart(episode, corpus)) if episode.settings.full else ())


def _apart(episode: Episode, corpus: Corpus) -> Iterator[Told]:
    """Runs of teams with several sources, all of them left out at once."""
    teams: dict[str, set[str]] = {}
    for source in corpus.sources.values():
        teams.setdefault(source.team or source.name, set()).add(source.name)
    for sources in teams.values():
        if len(sources) > 1:
            rest = [run for run in corpus.runs if run.source not in sources]
            out = [run for run in corpus.runs if run.source in sources]
            found = _asked(episode, corpus.hardware, rest, out, counts=True)
            yield from () if isinstance(found, Answer) else found


def _asked(
    episode: Episode, hardware: Mapping[str, Document], rest: Sequence[Run], out: Sequence[Run], *, counts: bool
) -> list[Told] | Answer:
    """What a service that knows the rest says of what was left out; its answer where that says it not."""
    chance = episode.random
    used = {run.hardware for run in [*rest, *out]}
    machines = {name: entry for name, entry in hardware.items() if name in used}
    disguise = Disguise(chance, machines, dict.fromkeys(run.source for run in rest))
    asked_for = chance.sample(out, len(out))
    cases = disguise.cases(asked_for)
    body = {
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
    told = report(answer, "TrainingDemandReport")
    if told is None or [row["case"] for row in told["demands"]] != [case["id"] for case in cases]:
        return answer
    shares = usual_shares(rest, hardware)
    return [
        Told.of(run, row, disguise.pace, shares, hardware[run.hardware], counts=counts)
        for run, row in zip(asked_for, told["demands"], strict=True)
    ]


def judge(observation: Observation) -> Iterable[Finding]:
    """The figure over dense models whose structure is stated; everything else stands beside it."""
    for refused in observation.refused[:1]:
        found = f"{len(observation.refused)} questions were not, the first: {refused.answer.brief}"
        yield Claim("DEM-001", "every question for demands is answered, case by case", False, found, refused.answer)
    judged = [each for each in observation.told if each.judged]
    if not judged:
        return
    errors = by_source(judged, lambda each: each.error)
    tables, plots = exhibits(observation.told, observation.apart)
    yield Figure(
        "DEM-001",
        _mean(errors),
        mean_upper_bound(errors, "DEM-001"),
        len(judged),
        "mean absolute percentage error of the step time over published runs of dense models whose structure is "
        "stated, each source left out in turn; one-sided 95 % bootstrap bound over sources",
        parts=[
            PartFigure(
                label, _mean(each), mean_upper_bound(each, label) if len(each) > 1 else None, sum(map(len, each))
            )
            for label, each in _parts(observation.told)
        ],
        tables=tables,
        plots=plots,
    )


def _parts(told: Sequence[Told]) -> Iterable[tuple[str, list[list[float]]]]:
    kinds: dict[str, list[Told]] = {}
    for each in told:
        if each.counts and each.measured is not None:
            kinds.setdefault(each.stratum, []).append(each)
    for stratum, its in sorted(kinds.items()):
        yield stratum, by_source(its, lambda each: each.error)


def _mean(clusters: Sequence[Sequence[float]]) -> float:
    values = [value for cluster in clusters for value in cluster]
    return sum(values) / len(values)


CHECK = Check("dem_law", ("DEM-001",), observe, judge, traces=tuple(training.FILES))
