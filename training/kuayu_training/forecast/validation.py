"""Choose how structure and history are put together, by nested validation.

``python -m kuayu_training.forecast.validation [--outer]``

1. Whole sources are left out in the outer loop: what is said of ITP was chosen on Philly and openb alone, and so on.
2. Constants and forms (CHOICES) are chosen in the inner loop, by the least pinball loss over all other sources and all
   that may be told of jobs, in units of the mean error of the last value.
3. ``--outer`` shows the outer loop too. It is looked at once per release, and each look adds its figures, with date and
   command, to the committed log ``docs/results/forecast/outer-loop.tsv``. ``--json`` writes down the inner loop.

Both halves of these traces are known to the developers, and the network of histories was fitted to their first halves:
the outer loop says how a choice carries over to another cluster, and not how the whole does on data that nobody saw.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, astuple, dataclass, fields
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from kuayu.forecast.forecasting import Question, answer, forecast_by_history
from kuayu.forecast.hybrid import SHIPPED, Choice
from kuayu.forecast.requests import Floats, Whole, seconds
from kuayu_training.forecast.judgement import (
    ANNOUNCED,
    LEVELS,
    MIDDLE,
    SEEN,
    Backtest,
    covered,
    request_at,
    skills,
)
from kuayu_training.forecast.sources import (
    AHEAD,
    MINUTE,
    TRACES,
    Jobs,
    Source,
    Teller,
    as_before,
    folder,
    missing_by,
    read_jobs,
    sources,
)

SEED = 20_261_225
"""Of the inner loop, where no other is given; a look at the outer one has a seed that was written down before."""

MIN_ORIGINS = 8
"""Instants of a source at least: at fewer, the last value may be right everywhere, and leaves nothing to compare."""

MIN_SOURCES = 2

LOG = Path("docs/results/forecast/outer-loop.tsv")

ENDED = 14 * 3600.0
"""Seconds for which jobs that have ended are told: half an hour more than an hour's replay looks back."""

CHOICES = (
    Choice(0.5, 1.0, replay=False),
    Choice(0.8, 0.5, replay=False),
    Choice(0.5, 1.0),
    Choice(0.8, 0.5),
)
"""What competes; the first two have nothing but sharpness to go by, and the first is what was shipped until 1.1.0."""


@dataclass(frozen=True)
class JobKnowledge:
    """What is known of the jobs of a source.

    Attributes:
        name: As it is printed.
        teller: Of durations.
        announced: Seconds for which arrivals are known beforehand.
    """

    name: str
    teller: Teller
    announced: float = 0.0


@dataclass(frozen=True)
class Figure:
    """How one choice did on one source with one kind of knowledge at one horizon."""

    source: str
    knowledge: str
    minutes: int
    choice: int
    skill: float
    low: float
    high: float
    worst: float
    coverage: float
    pinball: float


def knowledge(source: Source, jobs: Jobs, seed: int = SEED) -> list[JobKnowledge]:
    """What may be known of durations: as roughly as before, to a factor of e, to a tenth, and arrivals too."""
    tenth = missing_by(jobs, 0.1, seed)
    half = source.offset + MINUTE * source.values.shape[1] / 2
    return [
        JobKnowledge("as before", as_before(jobs, half)),
        JobKnowledge("σ = 1", missing_by(jobs, 1.0, seed)),
        JobKnowledge("10 %", tenth),
        JobKnowledge("10 %, announced", tenth, ANNOUNCED),
    ]


def origins(source: Source, count: int, seed: int = SEED) -> Whole:
    """Instants, in minutes, one drawn in each of so many equal spans after the first SEEN values."""
    edges = np.linspace(SEEN, source.values.shape[1] - 1 - max(AHEAD), count + 1)
    drawn = np.random.default_rng([seed, count]).uniform(edges[:-1], edges[1:])
    return drawn.astype(np.int64)


def figures(
    source: Source, jobs: Jobs, count: int, choices: Sequence[int], processes: int = 1, seed: int = SEED
) -> Iterator[Figure]:
    """Figures of some choices on one source."""
    tried = origins(source, count, seed)
    known = knowledge(source, jobs, seed)
    at_minute = partial(_answers, source, jobs, known, choices)
    if processes > 1:
        with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
            values = np.stack(list(pool.map(at_minute, tried.tolist())), axis=2)
    else:
        values = np.stack([at_minute(minute) for minute in tried.tolist()], axis=2)
    for row, item in enumerate(known):
        for column, choice in enumerate(choices):
            yield from _figures(source, item.name, choice, tried, values[row, column])


def _answers(source: Source, jobs: Jobs, known: Sequence[JobKnowledge], choices: Sequence[int], minute: int) -> Floats:
    """Quantiles at one instant: what is known × choices × D × T × Q."""
    past, values = None, []
    for item in known:
        request = request_at(source, minute, jobs, item.teller, item.announced, ENDED)
        question = Question(seconds(request["now"]), np.array(request["horizons"]), LEVELS)
        past = forecast_by_history(request["series"], question) if past is None else past
        by_choice = [answer(request, question, past, CHOICES[choice]) for choice in choices]
        values.append([[one.values for one in answers] for answers in by_choice])
    return np.array(values)


def _figures(source: Source, known: str, choice: int, tried: Whole, values: Floats) -> Iterator[Figure]:
    real = np.stack([source.values[:, tried + minutes].T for minutes in AHEAD], axis=2)
    last = np.repeat(source.values[:, tried].T[:, :, None], len(AHEAD), axis=2)
    judged = Backtest(source.name, known, tried, values[..., MIDDLE], real, last, values)
    for place, minutes in enumerate(AHEAD):
        by_domain, skill, low, high = skills(judged, place)
        both = covered(judged, place)
        worst = float(by_domain.min())
        yield Figure(source.name, known, minutes, choice, skill, low, high, worst, both["coverage"], both["pinball"])


def chosen(rows: Sequence[Figure], left_out: str | None) -> int:
    """The choice with the least mean loss over all sources but one."""
    losses: dict[int, list[float]] = {}
    for figure in rows:
        if figure.source != left_out:
            losses.setdefault(figure.choice, []).append(figure.pinball)
    return min(losses, key=lambda choice: float(np.mean(losses[choice])))


def _name(choice: Choice) -> str:
    return ", ".join(f"{field.name} {value}" for field, value in zip(fields(choice), astuple(choice), strict=True))


def inner_table(rows: Sequence[Figure]) -> Table:
    """Mean loss of each choice by source, and over all others than each."""
    names = sorted({figure.source for figure in rows})
    table = Table(title="Inner loop: mean pinball loss, in mean errors of the last value")
    for column in ("choice", *names, *(f"without {name}" for name in names), "all"):
        table.add_column(column)
    for number in sorted({figure.choice for figure in rows}):
        own = {
            name: float(np.mean([one.pinball for one in rows if (one.source, one.choice) == (name, number)]))
            for name in names
        }
        others = [float(np.mean([own[other] for other in names if other != name] or [np.nan])) for name in names]
        cells = [*own.values(), *others, float(np.mean([*own.values()]))]
        table.add_row(_name(CHOICES[number]), *(f"{cell:.4f}" for cell in cells))
    return table


def figure_table(rows: Sequence[Figure], picked: Mapping[str, int], title: str) -> Table:
    """Figures of the choice that was picked for each source."""
    table = Table(title=title)
    for column in (
        "source",
        "jobs known",
        "ahead",
        "choice",
        "skill %, with 90 % interval",
        "worst",
        "coverage",
        "loss",
    ):
        table.add_column(column)
    for one in rows:
        if picked[one.source] == one.choice:
            skill = f"{100 * one.skill:+.1f} ({100 * one.low:+.1f} … {100 * one.high:+.1f})"
            cells = (f"{100 * one.worst:+.1f}", f"{100 * one.coverage:.1f} %", f"{one.pinball:.4f}")
            table.add_row(one.source, one.knowledge, f"{one.minutes} min", str(one.choice), skill, *cells)
    return table


def log(rows: Sequence[Figure], picked: Mapping[str, int], file: Path, command: str, seed: int = SEED) -> None:
    """Add what the outer loop showed to the log."""
    names = [field.name for field in fields(Figure)]
    new = not file.exists()
    with file.open("a", encoding="utf-8") as text:
        if new:
            text.write("\t".join(["date", "command", "seed", *names]) + "\n")
        for one in rows:
            if picked[one.source] == one.choice:
                cells = [f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in astuple(one)]
                cells[names.index("choice")] = _name(CHOICES[one.choice])
                text.write("\t".join([f"{datetime.now(UTC):%Y-%m-%d}", command, str(seed), *cells]) + "\n")


def _inner(rows: Sequence[Figure], picked: Mapping[str, int], command: str) -> dict[str, object]:
    """What the inner loop showed: the mean loss of each choice, and figures of the one that is best over all."""
    losses = {
        _name(CHOICES[number]): float(np.mean([one.pinball for one in rows if one.choice == number]))
        for number in sorted({one.choice for one in rows})
    }
    best = [asdict(one) | {"choice": _name(CHOICES[one.choice])} for one in rows if picked[one.source] == one.choice]
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "command": command, "losses": losses, "figures": best}


def _cached(data: Path, source: Source, given: argparse.Namespace) -> list[Figure]:
    """Figures of a source, from the folder where they are there."""
    parts = (source.name, given.seed, given.origins, *given.choices)
    file = given.kept / f"{'-'.join(map(str, parts))}.json" if given.kept else None
    if file and file.exists():
        return [Figure(**row) for row in json.loads(file.read_text("utf-8"))]
    jobs = read_jobs(data, source.name, source.domains)
    rows = list(figures(source, jobs, given.origins, given.choices, given.processes, given.seed))
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([asdict(one) for one in rows]), "utf-8")
    return rows


def main() -> int:
    """Print the loops; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.forecast.validation", description=__doc__)
    parser.add_argument("--data", type=Path, default=folder(), help="folder with demand_series and job_traces in it")
    parser.add_argument("--origins", type=int, default=24, help="instants of each source")
    parser.add_argument(
        "--sources", nargs="+", default=list(TRACES), choices=list(TRACES), help="sources that take part"
    )
    parser.add_argument("--choices", nargs="+", type=int, default=list(range(len(CHOICES))), help="numbers of choices")
    parser.add_argument("--kept", type=Path, help="folder for figures of each source, which are then not made again")
    parser.add_argument("--processes", type=int, default=1, help="so many at once")
    parser.add_argument("--seed", type=int, default=SEED, help="of instants and of what is known of durations")
    parser.add_argument("--json", type=Path, help="file to write the inner figures to")
    parser.add_argument("--outer", action="store_true", help="look at the outer loop too, and log it")
    given = parser.parse_args()
    if given.origins < MIN_ORIGINS:
        parser.error(f"--origins {given.origins}: {MIN_ORIGINS} instants of each source at least")
    if given.outer and len(given.sources) < MIN_SOURCES:
        parser.error("--outer: what is said of a source is chosen on the others; name at least two")
    began, rows = process_time(), []
    for source in sources(given.data, given.sources):
        rows += _cached(given.data, source, given)
        sys.stderr.write(f"{source.name}: {process_time() - began:.0f} s of processor time so far\n")
    console = Console(width=int(os.environ.get("COLUMNS", "170")))
    console.print(inner_table(rows))
    picked = dict.fromkeys(given.sources, chosen(rows, None))
    console.print(figure_table(rows, picked, "Inner figures: what is best over all sources, on each"))
    if CHOICES[picked[given.sources[0]]] != SHIPPED:
        console.print(f"best over all: {_name(CHOICES[picked[given.sources[0]]])}; shipped: {_name(SHIPPED)}")
    command = f"validation --sources {' '.join(given.sources)} --seed {given.seed} --origins {given.origins}"
    if given.json:
        given.json.write_text(json.dumps(_inner(rows, picked, command), indent=1) + "\n", "utf-8")
    if given.outer:
        picked = {name: chosen(rows, name) for name in given.sources}
        console.print(figure_table(rows, picked, "Outer figures: what was chosen without the source, on it"))
        log(rows, picked, LOG, f"{command} --outer", given.seed)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
