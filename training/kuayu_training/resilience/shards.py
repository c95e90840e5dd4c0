"""Compare shard plans and collectives.

``python -m kuayu_training.resilience.shards [--windows N] [--seed N] [--families NAME ...] [--json FILE]``

1. Windows are those of the suite's testbed, drawn from the seed and their number.
2. Every window of shards is played under fixed shards, every static schedule of a grid (the best is chosen in
   hindsight, for each family and measure anew), the reference's plan, and one who knows the bandwidths. The reference's
   rolling plan is carried out with the order of steps free (:func:`planned`), and with it fixed (:class:`InOrder`).
3. The chosen collective stands beside fixed ones, over links that change: two hours, asked every minute (RES-010,
   without HTTP). What a choice really does in a second follows from the same law as its prediction, but from what links
   carry then, not from what was measured before, and switches are paid. So this judges whether to follow the network,
   not the law.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kuayu.resilience.collectives import collective
from kuayu.resilience.network import Floats
from kuayu.resilience.shard_planner import shard_plan
from kuayu_conformance.testbed.collectives import COUNT, METHODS, baselines, follow
from kuayu_conformance.testbed.collectives import FAMILIES as COLLECTIVE_FAMILIES
from kuayu_conformance.testbed.collectives import draw as draw_collectives
from kuayu_conformance.testbed.shards import (
    EVENLY,
    FAMILIES,
    ON_DEMAND,
    ONE_AHEAD,
    Executor,
    Outcome,
    Run,
    Schedule,
    State,
    Static,
    Window,
    best,
    clairvoyant,
    draw,
    grid,
    local_slots,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

DEMAND, AHEAD, STATIC, PULLED = "fixed, on demand", "fixed, one ahead", "best static", "best static, idle links pull"
ORDERED, PLAN, SEER = "plan, fixed order", "plan", "clairvoyant"
BASELINES = (DEMAND, AHEAD, STATIC, PULLED)
MEASURES = ("waiting", "blocked", "blocked_bytes")
SAMPLES = 10_000

TITLES = {
    "waiting": "share of time in which compute waits for data, %",
    "blocked": "share of blocked transfers: not ended when a slot is due that is to take them, or abandoned, %",
    "blocked_bytes": "the same by bytes, %",
}
REQUIRED = {"waiting": (0.4, 0.6), "blocked": (0.35, 0.5)}
"""Least reduction at ±30 % against fixed shards, and the aim."""
MILD = "±30 %"
COLUMNS = (DEMAND, AHEAD, STATIC, PULLED, ORDERED, PLAN, SEER)

COLLECTIVE_NAMES = tuple(candidate.name for candidate in METHODS)
FIRST_UNCHANGED = "first, kept"
"""The one that was quickest by the first measurement of each window."""

_GAINS = ("over_best_fixed", "over_first_kept", "over_best_of_each_window")

COLLECTIVES = "collectives"
"""The comparison beside those of shards."""


@dataclass(slots=True)
class FamilyOutcomes:
    """Outcomes of a family, window by window, by policy; and of every schedule of the grid."""

    family: str
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    schedules: dict[Schedule, list[Outcome]] = field(default_factory=dict)


def play_shards(family: str, seeds: Sequence[str], step: Callable[[], None]) -> FamilyOutcomes:
    """Play windows of a family under everybody; ``step`` is called after each."""
    results = FamilyOutcomes(family)
    for seed in seeds:
        window = draw(family, seed)
        for name, outcome in _outcomes_of(window).items():
            results.outcomes.setdefault(name, []).append(outcome)
        for schedule in grid():
            results.schedules.setdefault(schedule, []).append(Run(window, Static(window, schedule)).play())
        step()
    return results


def planned(window: Window) -> Executor:
    """The reference's plan, asked anew every few steps; it sees noisy means of past intervals and what is up."""
    return Executor(window, shard_plan)


class InOrder(Executor):
    """The same plan with the order of steps fixed, local data evenly among them, so that its part can be told."""

    def __init__(self, window: Window) -> None:
        super().__init__(window, shard_plan)
        self._fixed = local_slots(window, EVENLY)
        self._slots = [slot for slot, local in enumerate(self._fixed) if not local]

    def request(self, state: State) -> "documents.ShardPlanRequest":
        """As if there were no local data."""
        request = super().request(state)
        return {**request, "streams": [{**stream, "local_steps": 0} for stream in request["streams"]]}

    def slot(self, stream: int, step: int, state: State) -> int:  # noqa: ARG002 - the order is fixed
        """By the order."""
        return self._slots[step]

    def takes_local(self, stream: int, state: State, *, ready: bool) -> bool:  # noqa: ARG002 - the order is fixed
        """As the order says."""
        return self._fixed[state.jobs[stream].slot]


def _outcomes_of(window: Window) -> dict[str, Outcome]:
    return {
        DEMAND: Run(window, Static(window, ON_DEMAND)).play(),
        AHEAD: Run(window, Static(window, ONE_AHEAD)).play(),
        ORDERED: Run(window, InOrder(window)).play(),
        PLAN: Run(window, planned(window)).play(),
        SEER: clairvoyant(window),
    }


def mean(outcomes: Sequence[Outcome], measure: str) -> float:
    """Of a measure over windows."""
    return float(np.mean([getattr(outcome, measure) for outcome in outcomes]))


def reduction(ours: Floats, theirs: Floats, seed: int) -> dict[str, float | None] | None:
    """1 - mean(ours) / mean(theirs) with its two-sided 90 % percentile interval over windows; none if theirs is zero.

    The lower end is the one-sided 95 % bound; none where theirs may be zero, so that there is none (B. Efron,
    "Bootstrap methods: another look at the jackknife", 1979).
    """
    if theirs.mean() <= 0.0:
        return None
    rows = np.random.default_rng([seed, 13]).integers(0, len(ours), (SAMPLES, len(ours)))
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = 1.0 - ours[rows].mean(axis=1) / theirs[rows].mean(axis=1)
    drawn = np.where(np.isnan(drawn), 0.0, drawn)  # neither waits: no reduction
    low, high = np.quantile(drawn, [0.05, 0.95], method="inverted_cdf")
    ends = {name: float(end) if np.isfinite(end) else None for name, end in (("low", low), ("high", high))}
    return {"value": float(1.0 - ours.mean() / theirs.mean()), **ends}


def shard_figures(results: FamilyOutcomes, seed: int) -> list[dict[str, Any]]:
    """A row for each measure, ready for JSON."""
    return [_shard_row(results, measure, seed) for measure in MEASURES]


def _shard_row(results: FamilyOutcomes, measure: str, seed: int) -> dict[str, Any]:
    chosen = {
        STATIC: best(results.schedules, measure, pulling=False),
        PULLED: best(results.schedules, measure, pulling=True),
    }
    outcomes: dict[str, Sequence[Outcome]] = dict(results.outcomes)
    outcomes |= {name: results.schedules[schedule] for name, schedule in chosen.items()}
    values = {name: np.array([getattr(outcome, measure) for outcome in runs]) for name, runs in outcomes.items()}
    return {
        "family": results.family,
        "measure": measure,
        "windows": len(values[PLAN]),
        "mean": {name: float(series.mean()) for name, series in values.items()},
        "held": {name: mean(runs, "occupancy") for name, runs in outcomes.items() if name != SEER},
        "schedules": {name: str(schedule) for name, schedule in chosen.items()},
        "reductions": {name: reduction(values[PLAN], values[name], seed) for name in BASELINES},
        "fixed_order_reductions": {name: reduction(values[ORDERED], values[name], seed) for name in BASELINES},
    }


def shard_tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Means and reductions, measure by measure."""
    for measure, title in TITLES.items():
        mine = [row for row in rows if row["measure"] == measure]
        shown = Table(title=title)
        shown.add_column("links")
        for name in COLUMNS:
            shown.add_column(name, justify="right")
        for row in mine:
            shown.add_row(row["family"], *(f"{100 * row['mean'][name]:.3f}" for name in COLUMNS))
        yield shown
        for key, who in (("reductions", "the plan"), ("fixed_order_reductions", "the plan with the order fixed")):
            less = Table(title=f"by how much less of it under {who}, %, with 90 % interval over windows")
            less.add_column("links")
            for name in BASELINES:
                less.add_column(name, justify="right")
            for row in mine:
                less.add_row(row["family"], *(_percentages(row[key][name]) for name in BASELINES))
            yield less
    occupancy = Table(title="mean share of the room that is taken, %; schedules are those that wait least")
    occupancy.add_column("links")
    for name in COLUMNS[:-1]:
        occupancy.add_column(name, justify="right")
    for row in rows:
        if row["measure"] == "waiting":
            occupancy.add_row(row["family"], *(f"{100 * row['held'][name]:.0f}" for name in COLUMNS[:-1]))
    yield occupancy


def _percentages(interval: Mapping[str, float | None] | None) -> str:
    if interval is None:
        return "nothing to reduce"
    value, low, high = (interval[name] for name in ("value", "low", "high"))
    return f"{_percent(value)} ({_percent(low)} … {_percent(high)})"


def _percent(value: float | None) -> str:
    return "-∞" if value is None else f"{100 * value:.1f}"


def shard_words(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was asked for and found, and where the plan does not win."""
    for row in rows:
        measure, family = row["measure"], row["family"]
        if family == MILD and measure in REQUIRED:
            required, aim = REQUIRED[measure]
            for name in (DEMAND, AHEAD):
                interval = row["reductions"][name]
                low = interval["low"] if interval and interval["low"] is not None else float("-inf")
                verdict = "met" if low >= required else "missed"
                verdict += ", aim met" if low >= aim else ", aim missed"
                yield (
                    f"{measure} at {MILD} against {name}: {_percentages(interval)} %; required {100 * required:.0f} %,"
                    f" aim {100 * aim:.0f} %, by the lower bound: {verdict}"
                )
        for key, who in (("reductions", PLAN), ("fixed_order_reductions", ORDERED)):
            for name in (STATIC, PULLED):
                interval = row[key][name]
                if interval is None or interval["low"] is None or interval["low"] <= 0.0:
                    schedule = row["schedules"][name]
                    less = _percentages(interval)
                    yield f"{family}, {measure}: {who} does not surely beat {name} ({schedule}): {less}"


def play_collectives(family: str, seed: int, count: int = COUNT) -> dict[str, float]:
    """Steps in a window of so many minutes: chosen, of fixed ones, and of one who has the quickest for nothing."""
    world = draw_collectives(family, f"{seed}", count)
    course, others = follow(world, collective), baselines(world)
    fixed = dict(zip(COLLECTIVE_NAMES, (others.shares * others.most).tolist(), strict=True))
    first_kept = fixed[COLLECTIVE_NAMES[others.first]]
    return fixed | {
        FIRST_UNCHANGED: first_kept,
        "chosen": course.steps,
        "quickest": others.most,
        "switches": float(course.switches),
    }


def collective_figures(seeds: Sequence[int], seed: int, step: Callable[[], None]) -> list[dict[str, Any]]:
    """A row for each family and one for all together, ready for JSON."""
    outcomes: dict[str, list[dict[str, float]]] = {family: [] for family in COLLECTIVE_FAMILIES}
    for number in seeds:
        for family in COLLECTIVE_FAMILIES:
            outcomes[family].append(play_collectives(family, number))
        step()
    outcomes["all"] = [outcome for windows in outcomes.values() for outcome in windows]
    return [_collective_row(family, windows, seed) for family, windows in outcomes.items()]


def _collective_row(family: str, windows: Sequence[Mapping[str, float]], seed: int) -> dict[str, Any]:
    quickest = np.array([window["quickest"] for window in windows])
    chosen = np.array([window["chosen"] for window in windows]) / quickest
    first_kept = np.array([window[FIRST_UNCHANGED] for window in windows]) / quickest
    fixed = np.array([[window[name] for name in COLLECTIVE_NAMES] for window in windows]) / quickest[:, None]
    best = int(np.argmax(fixed.mean(axis=0)))
    shares = dict(zip(COLLECTIVE_NAMES, fixed.mean(axis=0).tolist(), strict=True))
    return {
        "family": family,
        "windows": len(windows),
        "best_fixed": COLLECTIVE_NAMES[best],
        "throughput": {"chosen": float(chosen.mean()), FIRST_UNCHANGED: float(first_kept.mean())} | shares,
        "over_best_fixed": _interval(chosen - fixed[:, best], seed),
        "over_first_kept": _interval(chosen - first_kept, seed),
        "over_best_of_each_window": _interval(chosen - fixed.max(axis=1), seed),
        "switches": float(np.mean([window["switches"] for window in windows])),
    }


def _interval(values: Floats, seed: int) -> dict[str, float]:
    """Mean with its two-sided 90 % percentile interval over windows."""
    rows = np.random.default_rng([seed, 14]).integers(0, len(values), (SAMPLES, len(values)))
    low, high = np.quantile(values[rows].mean(axis=1), [0.05, 0.95])
    return {"value": float(values.mean()), "low": float(low), "high": float(high)}


def collective_tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Throughput, in shares of what one has who always has the quickest and switches for nothing."""
    table = Table(title="throughput of collectives, % of one who always has the quickest for nothing")
    for name in (
        "links",
        "chosen",
        FIRST_UNCHANGED,
        *COLLECTIVE_NAMES,
        "less best fixed",
        f"less {FIRST_UNCHANGED}",
        "less best of each window",
        "switches",
    ):
        table.add_column(name, justify="right")
    for row in rows:
        shares = [f"{100 * row['throughput'][name]:.1f}" for name in ("chosen", FIRST_UNCHANGED, *COLLECTIVE_NAMES)]
        gains = [_gain_words(row[name]) for name in _GAINS]
        table.add_row(row["family"], *shares, *gains, f"{row['switches']:.1f}")
    yield table


def _gain_words(interval: Mapping[str, float]) -> str:
    return f"{100 * interval['value']:+.2f} ({100 * interval['low']:+.2f} … {100 * interval['high']:+.2f})"


def collective_words(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Where following the network does not pay."""
    for row in rows:
        verdict = "not below zero" if row["over_best_fixed"]["low"] >= 0.0 else "may be below zero"
        gain = _gain_words(row["over_best_fixed"])
        yield f"{row['family']}: chosen less the best fixed ({row['best_fixed']}): {verdict}, {gain} points"
        if row["over_best_of_each_window"]["low"] < 0.0:
            interval = _gain_words(row["over_best_of_each_window"])
            yield f"{row['family']}: does not surely beat the best fixed one of each window in hindsight: {interval}"


def main() -> int:
    """Play, print, and write; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.resilience.shards", description=__doc__)
    parser.add_argument("--windows", type=int, default=24, help="windows of each family")
    parser.add_argument("--seed", type=int, default=1, help="what windows are drawn from")
    choices = (*FAMILIES, COLLECTIVES)
    parser.add_argument("--families", nargs="+", choices=choices, default=choices, help="which comparisons; all")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    if arguments.windows < 1 or arguments.seed < 1:
        sys.stderr.write("--windows and --seed must be at least 1\n")
        return 2
    try:
        rows, collectives = _play(arguments.windows, arguments.seed, arguments.families)
    except KeyboardInterrupt:
        sys.stderr.write("stopped; nothing was written\n")
        return 130
    console = Console(width=170)
    for table in shard_tables(rows) if rows else ():
        console.print(table)
    for line in shard_words(rows):
        console.print(line)
    for table in collective_tables(collectives) if collectives else ():
        console.print(table)
    for line in collective_words(collectives):
        console.print(line)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        document = {"seed": arguments.seed, "shards": rows, "collectives": collectives}
        arguments.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


def _play(windows: int, seed: int, wanted: Sequence[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    seeds = [100_000 * seed + number for number in range(windows)]
    rows: list[dict[str, Any]] = []
    collectives: list[dict[str, Any]] = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("windows", total=windows * len(wanted))
        for family in wanted:
            if family == COLLECTIVES:
                collectives = collective_figures(seeds, seed, lambda: progress.advance(task))
            else:
                names = [f"comparison/{number}" for number in seeds]
                results = play_shards(family, names, lambda: progress.advance(task))
                rows += shard_figures(results, seed)
    return rows, collectives


if __name__ == "__main__":
    raise SystemExit(main())
