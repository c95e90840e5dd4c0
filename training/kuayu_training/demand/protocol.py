"""How a choice about the demand law is made and judged: ``python -m kuayu_training.demand.protocol [--outer FILE]``.

1. Whole sources are left out, never single runs.
2. Inner loop: of each set of sources but one, the candidates below (constants and forms that publications leave open)
   are compared by their mean error over the sources, with what the others teach and without; the best one predicts the
   source that was left out. What is printed as *nested* is these errors.
3. Outer loop: sources that were entered after a law was made (``kuayu_conformance.corpora.training.added``). It is
   looked at once a release, with ``--outer``, which writes date, command and figures to a file that is kept
   (``docs/results/demand/outer.json``). Without it nothing of these sources is read. What was looked at is known and
   belongs to the inner loop of the next release.
4. All tables of the inner loop, and those of the runs of ``own_runs.py``, are known to the developers.

Figures: mean absolute percentage error of the step time, as the mean over runs and as the mean over sources; memory
likewise. *None*: the law alone. *Others*: with the runs of all other sources. *Own 1, own 3*: with so many runs of the
source itself besides, drawn SEED, mean of DRAWS draws. Nothing is written but FILE.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from kuayu.demand.demand_report import ideal_terms
from kuayu.demand.experience import learn
from kuayu.demand.memory import memory
from kuayu.demand.parse import Training, hardware_of, strategy_of, structure_of, training_of
from kuayu.demand.step_time import PRIOR, Efficiency, Terms, selected, times
from kuayu.demand.strategy import Floats, Layouts, Whole
from kuayu_conformance.corpora import training as corpora
from kuayu_conformance.corpora.training import Corpus, Run
from kuayu_training.demand.runs import TABLE, folder

SEED, DRAWS = 20261127, 10

CANDIDATES: Mapping[str, Efficiency] = {
    "as shipped": PRIOR,
    "quick host": replace(PRIOR, launch=1e-5),
    "slow products": replace(PRIOR, products=0.8),
    "quick products": replace(PRIOR, products=0.9),
    "slow experts": replace(PRIOR, experts=0.4),
    "quick experts": replace(PRIOR, experts=0.6),
    "slow network": replace(PRIOR, domain=0.5),
    "slow memory": replace(PRIOR, memory=0.65),
    "little overlap": replace(PRIOR, exposed=0.4),
}
"""Numbers that publications leave open within these bounds."""

KINDS = ("dense", "moe")


@dataclass(frozen=True)
class Data:
    """N runs with a time, and what the law needs to know of them.

    Attributes:
        runs: The runs.
        trainings: The same in the law's terms.
        needed: Ideal times.
        measured: Seconds of a step, N.
        sources: Where each is from, N.
        kinds: ``dense`` where the structure is stated, ``guessed`` where it is not, or ``moe``, N.
    """

    runs: Sequence[Run]
    trainings: Sequence[Training]
    needed: Terms
    measured: Floats
    sources: np.ndarray
    kinds: np.ndarray

    @classmethod
    def of(cls, corpus: Corpus) -> "Data":
        """Timed runs of a corpus."""
        runs = [run for run in corpus.runs if run.step_time is not None]
        trainings = trainings_of(corpus, runs)
        return cls(
            runs,
            trainings,
            ideal_terms(trainings),
            np.array([run.step_time for run in runs], dtype=float),
            np.array([run.source for run in runs]),
            np.array([run.kind if run.stated or run.kind == "moe" else "guessed" for run in runs]),
        )

    def predicted(self, rows: Whole, known: Whole, efficiency: Efficiency = PRIOR) -> Floats:
        """Seconds of some runs, by the law with what the known ones teach."""
        base = times(selected(self.needed, rows), efficiency).step
        if not len(known):
            return base
        # what others are slower by is counted from the candidate's own prediction
        drift = times(selected(self.needed, known), PRIOR).step / times(selected(self.needed, known), efficiency).step
        experience = learn(
            [self.trainings[row] for row in known],
            selected(self.needed, known),
            self.measured[known] * drift,
            self.sources[known].tolist(),
        )
        return base * experience.slower([self.trainings[row] for row in rows])


def trainings_of(corpus: Corpus, runs: Sequence[Run]) -> list[Training]:
    """Runs of a corpus in the law's own terms."""
    kinds = {name: hardware_of(entry) for name, entry in corpus.hardware.items()}
    return [training_of(structure_of(run.model), strategy_of(run.strategy), kinds[run.hardware]) for run in runs]


def known_corpus(data: Path) -> Corpus:
    """All runs that the developers know: those of the suite, and those of papers in a data folder."""
    shipped = corpora.shipped()
    if not (data / TABLE).is_file():
        return shipped
    papers = corpora.further(data)
    return Corpus(
        {**shipped.sources, **papers.sources},
        {**papers.hardware, **shipped.hardware},
        (*shipped.runs, *papers.runs),
    )


def merged(first: Corpus, second: Corpus) -> Corpus:
    """The runs of both."""
    return Corpus(
        {**first.sources, **second.sources}, {**second.hardware, **first.hardware}, (*first.runs, *second.runs)
    )


def errors(predicted: Floats, measured: Floats) -> Floats:
    """Relative errors, without sign."""
    return np.abs(predicted / measured - 1)


def inner(data: Data, out: str | None = None) -> str:
    """The candidate with the least mean error over kinds and sources, each predicted from the others but `out`."""
    left = {name: _inner_error(data, efficiency, out) for name, efficiency in CANDIDATES.items()}
    return min(left, key=lambda name: left[name])


def _inner_error(data: Data, efficiency: Efficiency, out: str | None) -> float:
    misses: dict[str, list[float]] = {}
    for source in dict.fromkeys(data.sources.tolist()):
        if source == out:
            continue
        rows = np.flatnonzero(data.sources == source)
        known = np.flatnonzero((data.sources != source) & (data.sources != out))
        missed = errors(data.predicted(rows, known, efficiency), data.measured[rows])
        for kind in KINDS:
            mine = missed[data.kinds[rows] == kind]
            if len(mine):
                misses.setdefault(kind, []).append(float(mine.mean()))
    return float(np.mean([np.mean(values) for values in misses.values()]))


def judged(data: Data, sources: Sequence[str], *, nested: bool) -> list[dict[str, Any]]:
    """Errors of each source and kind: law alone, with others, with own runs, and nested where asked for."""
    chance = np.random.default_rng(SEED)
    figures = []
    for source in sources:
        rows, known = np.flatnonzero(data.sources == source), np.flatnonzero(data.sources != source)
        none = np.array([], dtype=np.int64)
        predictions = {"none": data.predicted(rows, none), "others": data.predicted(rows, known)}
        picked = ""
        if nested:
            picked = inner(data, source)
            predictions["nested"] = data.predicted(rows, known, CANDIDATES[picked])
        missed = {knowledge: errors(predicted, data.measured[rows]) for knowledge, predicted in predictions.items()}
        for kind in dict.fromkeys(data.kinds[rows].tolist()):
            mine = data.kinds[rows] == kind
            row: dict[str, Any] = {"source": source, "kind": kind, "runs": int(mine.sum()), "chosen": picked}
            row |= {
                knowledge: round(float(errors_of_rows[mine].mean()), 4) for knowledge, errors_of_rows in missed.items()
            }
            bias = np.log(predictions["none"] / data.measured[rows])[mine]
            row |= {"bias": round(float(np.exp(bias.mean()) - 1), 4), "scatter": round(float(bias.std()), 4)}
            for count in (1, 3):
                if mine.sum() > count:
                    row[f"own {count}"] = round(_own(data, rows[mine], known, count, chance), 4)
            figures.append(row)
    return figures


def _own(data: Data, rows: Whole, known: Whole, count: int, chance: np.random.Generator) -> float:
    """Mean error of the other runs of a source where so many of it are given besides those of others."""
    means = []
    for _ in range(DRAWS):
        given = chance.choice(rows, count, replace=False)
        rest = np.setdiff1d(rows, given)
        means.append(errors(data.predicted(rest, np.concatenate([known, given])), data.measured[rest]).mean())
    return float(np.mean(means))


def summed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over runs and over sources by kind."""
    sums: dict[str, Any] = {}
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        weights = [row["runs"] for row in mine]
        sums[kind] = {"runs": sum(weights), "sources": len(mine)}
        for knowledge in ("none", "others", "nested"):
            if all(knowledge in row for row in mine):
                values = [row[knowledge] for row in mine]
                sums[kind][knowledge] = {
                    "over runs": round(float(np.average(values, weights=weights)), 4),
                    "over sources": round(float(np.mean(values)), 4),
                }
    return sums


def remembered(corpus: Corpus) -> dict[str, Any]:
    """Memory, predicted against reported, by source; nothing of the law of memory is fitted."""
    runs = [run for run in corpus.runs if run.memory is not None]
    misses: dict[str, list[float]] = {}
    for run, training in zip(runs, trainings_of(corpus, runs), strict=True):
        needed = float(memory(training.structure, Layouts.of([training.strategy])).total[0])
        misses.setdefault(run.source, []).append(abs(needed / float(run.memory or 1.0) - 1))
    every = [error for values in misses.values() for error in values]
    return {
        "runs": len(every),
        "over runs": round(float(np.mean(every)), 4) if every else None,
        "by source": {name: [len(values), round(float(np.mean(values)), 4)] for name, values in misses.items()},
    }


def tables(title: str, rows: Sequence[Mapping[str, Any]], means: Mapping[str, Any]) -> Iterator[Table]:
    """Figures as tables."""
    columns = ("none", "others", "nested", "own 1", "own 3", "bias", "scatter")
    whole = Table("source", "kind", "runs", *(f"{name} %" for name in columns), "chosen", title=title)
    for row in rows:
        figures = (f"{100 * row[name]:.1f}" if name in row else "" for name in columns)
        whole.add_row(row["source"], row["kind"], str(row["runs"]), *figures, row["chosen"])
    yield whole
    short = Table("kind", "runs", "sources", "way", "over runs %", "over sources %", title=f"{title}: means")
    for kind, mean in means.items():
        for knowledge in ("none", "others", "nested"):
            if knowledge in mean:
                pair = (f"{100 * mean[knowledge][name]:.1f}" for name in ("over runs", "over sources"))
                short.add_row(kind, str(mean["runs"]), str(mean["sources"]), knowledge, *pair)
    yield short


def main() -> int:
    """Print the inner loop, and look at the outer one where asked to; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.demand.protocol", description=__doc__)
    parser.add_argument("--data", type=Path, default=folder(), help="folder with llm_training_runs in it")
    parser.add_argument("--json", type=Path, help="file to write the inner figures to")
    parser.add_argument("--outer", type=Path, metavar="FILE", help="look at the outer loop, and add a line to this log")
    arguments = parser.parse_args()
    corpus, console = known_corpus(arguments.data), Console(width=150)
    data = Data.of(corpus)
    rows = judged(data, list(dict.fromkeys(data.sources.tolist())), nested=True)
    figures: dict[str, Any] = {"known to the developers": True, "seed": SEED, "sources": rows, "means": summed(rows)}
    figures |= {"chosen on all": inner(data), "memory": remembered(corpus)}
    for table in tables("Inner loop (known to the developers)", rows, figures["means"]):
        console.print(table)
    console.print(f"chosen on all sources: {figures['chosen on all']}; memory: {figures['memory']}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    if arguments.outer:
        console.print(_looked(corpus, arguments.outer, console))
    return 0


def _looked(corpus: Corpus, log: Path, console: Console) -> str:
    """Predict the outer sources from all known ones, and log it."""
    added = corpora.added()
    both = merged(corpus, added)
    data = Data.of(both)
    rows = []
    for source in added.sources:
        # other outer sources teach nothing: each stands for a stranger
        keep = [run for run in both.runs if run.source == source or run.source not in added.sources]
        rows += judged(Data.of(Corpus(both.sources, both.hardware, tuple(keep))), [source], nested=False)
    means = summed(rows)
    for table in tables("Outer loop (first seen when this ran)", rows, means):
        console.print(table)
    entry = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": "python -m kuayu_training.demand.protocol --outer docs/results/demand/outer.json",
        "seed": SEED,
        "runs": len(data.runs) - sum(run.source not in added.sources for run in data.runs),
        "sources": rows,
        "means": means,
    }
    entries = json.loads(log.read_text("utf-8")) if log.is_file() else []
    log.write_text(json.dumps([*entries, entry], indent=1) + "\n", "utf-8")
    return f"look {len(entries) + 1} was logged in {log}"


if __name__ == "__main__":
    sys.exit(main())
