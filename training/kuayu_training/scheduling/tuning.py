"""Tuning of the rule: CMA-ES over its constants, in whole windows as SCH-003 plays them.

1. What is sought are doublings and halvings of the constants named in ``TUNED_CONSTANTS``; zero is what ships. Those
   that the standard bounds (the budget of interruptions) and those that only save time are left alone.
2. The objective is ``ledger.gain`` over what ships in the same windows, of mean periods of all jobs that train and of
   the large ones of them, and of money for work; its mean over the sources of jobs. Ratios are of sums over windows, as
   in SCH-003. While it searches, windows drain for a week at most: those that go on longer cost most and tell least.
3. Every generation plays windows of its own, so that nothing is fitted to a set of them; within a generation all
   candidates play the same ones. Real traces are not among them, nor are families that are left to the judge.
4. What is found, the mean of the last distribution, is compared with what ships in windows that nothing was chosen by;
   bounds are of the jackknife over windows. Constants that make no difference there are better left as they were, which
   :func:`apart` shows group by group; what then ships is compared with what shipped.

Source: N. Hansen, A. Ostermeier, "Completely derandomized self-adaptation in evolution strategies", Evolutionary
Computation 9 (2), 2001.
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cmaes import CMA

from kuayu_conformance.testbed.scheduling.baselines import HomeBackfill
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_training.scheduling.comparison import RULE, PolicyComparison, compared
from kuayu_training.scheduling.core.layout import PARAMETERS
from kuayu_training.scheduling.core.player import CompiledRule, constants
from kuayu_training.scheduling.ledger import gain
from kuayu_training.scheduling.scenarios import TUNED, TUNED_PHILLY, Kind
from kuayu_training.scheduling.windows import DAY, WHOLE, Figures, window
from kuayu_training.workers import executor

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done."""

FILE, APART = "tuning.json", "tuning-apart.json"
KINDS = (TUNED, TUNED_PHILLY)
TUNED_CONSTANTS = (
    *("money", "lost", "doubt", "area", "ageing", "patience", "eager", "gang", "mode_money"),
    *("max_pause_share", "min_remaining_ratio", "pause_weight", "interruption_seconds"),
    *("max_migration_pause_share", "min_gain_share", "min_gain_per_pause", "gain_horizon_seconds"),
)
SHORTER = replace(WHOLE, drain=7 * DAY)
"""Parts of windows while it searches."""
GROUPS = {
    "scores": ("money", "lost", "doubt", "mode_money", "eager", "gang"),
    "order": ("area", "ageing", "patience"),
    "interruptions": TUNED_CONSTANTS[9:],
}
"""Constants by what they are about."""
FOUND, SHIPPED = "found", "ships"
STEP = 0.5
"""Doublings: the standard deviation of the first generation."""
FARTHEST = 4.0
"""Doublings beyond which nothing is tried."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What came of a generation.

    Attributes:
        number: Which, from zero on.
        best: Greatest gain of its candidates over what ships (``ledger.gain``).
        mean: Mean gain of them.
        step: Standard deviation of the distribution afterwards, doublings.
    """

    number: int
    best: float
    mean: float
    step: float


def tune(
    seed: int,
    output: Path,
    generations: int,
    windows: int,
    count: int,
    workers: str,
    progress: Progress,
) -> list[Path]:
    """Search, compare what was found with what ships, and write it down; returns the path written.

    Args:
        seed: Everything follows from it; no judge takes these windows.
        output: Folder that is written to.
        generations: How many.
        windows: Windows of each source that a generation plays.
        count: Windows of each source in which what was found is compared in the end.
        workers: Where windows are played (:mod:`kuayu_training.workers`); of no effect on what comes out.
        progress: Told how far it is.
    """
    size, width = len(TUNED_CONSTANTS), np.full(len(TUNED_CONSTANTS), FARTHEST)
    search = CMA(mean=np.zeros(size), sigma=STEP, bounds=np.stack([-width, width], axis=1), seed=seed)
    course: list[Generation] = []
    with executor(workers) as pool:
        for number in range(generations):
            candidates = [search.ask() for _ in range(search.population_size)]
            said = partial(progress, f"generation {number + 1} of {generations}")
            numbers = range(number * windows, (number + 1) * windows)
            values = objectives(pool, f"tuning {seed}", numbers, [changed(candidate) for candidate in candidates], said)
            search.tell(list(zip(candidates, values.tolist(), strict=True)))
            course.append(Generation(number, -float(values.min()), -float(values.mean()), float(search._sigma)))  # noqa: SLF001 - there is no other door
            _write(output, seed, generations, windows, course, search.mean, ())
        tried = {RULE: {}, FOUND: changed(search.mean)}
        rows = _compared(pool, f"tuned {seed}", count, tried, partial(progress, "comparing"))
    return [_write(output, seed, generations, windows, course, search.mean, rows)]


def changed(doublings: Floats) -> dict[str, float]:
    """Constants so many doublings away from those that ship, in the order of ``TUNED_CONSTANTS``."""
    return {name: PARAMETERS[name] * 2.0**by for name, by in zip(TUNED_CONSTANTS, doublings.tolist(), strict=True)}


def objectives(
    pool: Executor,
    purpose: str,
    numbers: Sequence[int],
    candidates: Sequence[dict[str, float]],
    progress: Callable[[float], None],
) -> Floats:
    """What each candidate loses against what ships, (candidates,); less is better.

    Args:
        pool: Plays windows.
        purpose: Whose windows, and which of each source.
        numbers: See there.
        candidates: Constants of each.
        progress: Told the share of the windows that are through.
    """
    tried = [constants(), *map(constants, candidates)]
    futures = {
        pool.submit(played, purpose, number, kind, tried): (kind.name, number) for kind in KINDS for number in numbers
    }
    results: dict[tuple[str, int], list[Figures]] = {}
    for done, future in enumerate(as_completed(futures), start=1):
        results[futures[future]] = future.result()
        progress(done / len(futures))
    sums = np.zeros(len(candidates))
    for kind in KINDS:
        windows = [results[kind.name, number] for number in numbers]
        ships, *others = (Figures.total([window[place] for window in windows]) for place in range(len(tried)))
        sums -= [float(gain(over[:2], over[2])) for over in (other.over(ships) for other in others)]
    return sums / len(KINDS)


def played(purpose: str, number: int, kind: Kind, tried: Sequence[Floats]) -> list[Figures]:
    """What the rule reaches in a window with each choice of constants."""
    episode = window(purpose, number, kind, SHORTER)
    return [episode.play(CompiledRule(parameters)) for parameters in tried]


def apart(seed: int, output: Path, count: int, workers: str, progress: Progress) -> list[Path]:
    """What each group of the constants that were found does alone, and what ships now; returns the path written.

    Args:
        seed: Which windows.
        output: Folder in which ``tuning.json`` lies; it is written to.
        count: Windows of each source.
        workers: Where windows are played (:mod:`kuayu_training.workers`); of no effect on what comes out.
        progress: Told how far it is.

    Raises:
        FileNotFoundError: Nothing was tuned there.
    """
    tuned = json.loads((output / FILE).read_text("utf-8"))
    before, tuned_values = tuned["ships"], tuned["found"]
    tried = {
        RULE: before,
        FOUND: tuned_values,
        **{name: before | {constant: tuned_values[constant] for constant in group} for name, group in GROUPS.items()},
        SHIPPED: {},
    }
    purpose = f"apart {seed}"
    with executor(workers) as pool:
        rows = _compared(pool, purpose, count, tried, partial(progress, "comparing"))
    header = {"command": "python -m kuayu_training rule --apart", "date": f"{datetime.now(UTC):%Y-%m-%d}", "seed": seed}
    path = output / APART
    path.write_text(_lines(header, {"compared": [asdict(row) for row in rows]}), "utf-8")
    return [path]


def _compared(
    pool: Executor, purpose: str, count: int, tried: dict[str, dict[str, float]], progress: Callable[[float], None]
) -> list[PolicyComparison]:
    """Choices of constants beside each other and B1, for each source."""
    submitted = {kind: [pool.submit(beside, purpose, number, kind, tried) for number in range(count)] for kind in KINDS}
    rows = []
    for through, (kind, futures) in enumerate(submitted.items(), start=1):
        rows.append(compared(kind.name, [future.result() for future in futures]))
        progress(through / len(submitted))
    return rows


def beside(purpose: str, number: int, kind: Kind, tried: dict[str, dict[str, float]]) -> dict[str, Figures]:
    """What B1 and the rule with each choice of constants reach in a window."""
    episode = window(purpose, number, kind)
    return {
        "B1": episode.play(HomeBackfill()),
        **{name: episode.play(CompiledRule(constants(changed))) for name, changed in tried.items()},
    }


def _write(
    output: Path,
    seed: int,
    generations: int,
    windows: int,
    course: Sequence[Generation],
    mean: Floats,
    rows: Sequence[PolicyComparison],
) -> Path:
    """As JSON, a line for each generation."""
    output.mkdir(parents=True, exist_ok=True)
    header: dict[str, Any] = {
        "command": "python -m kuayu_training rule",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seed": seed,
        "generations": generations,
        "windows": windows,
        "found": {name: float(f"{value:.3g}") for name, value in changed(mean).items()},
        "ships": {name: PARAMETERS[name] for name in TUNED_CONSTANTS},
    }
    path = output / FILE
    lists = {"course": [asdict(generation) for generation in course], "held": [asdict(row) for row in rows]}
    path.write_text(_lines(header, lists), "utf-8")
    return path


def _lines(header: dict[str, Any], lists: dict[str, list[dict[str, Any]]]) -> str:
    """As JSON, a line for each figure and for each row of a list."""
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in header.items()]
    for name, rows in lists.items():
        inside = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        lines.append(f' "{name}": [\n{inside}\n ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"
