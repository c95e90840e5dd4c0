"""The chosen collective beside fixed ones, over links that change: two hours, asked every minute.

Windows are those of the suite's testbed (RES-010), played without HTTP. What a choice really does in a second follows
from the same law as its prediction, but from what links carry then, not from what was measured before, and switches are
paid. So this judges whether to follow the network, not the law.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from kuayu.resilience.collectives import collective
from kuayu.resilience.network import Floats
from kuayu_conformance.testbed.transfers.collectives import COUNT, FAMILIES, WAYS, baselines, draw, follow
from kuayu_training.resilience.shards_compare import SAMPLES

NAMES = tuple(candidate.name for candidate in WAYS)
KEPT = "first, kept"
"""The one that was quickest by the first measurement of each window."""

_GAINS = ("over_best_fixed", "over_first_kept", "over_best_of_each_window")


def played(family: str, seed: int, count: int = COUNT) -> dict[str, float]:
    """Steps in a window of so many minutes: chosen, of fixed ones, and of one who has the quickest for nothing."""
    world = draw(family, f"{seed}", count)
    course, others = follow(world, collective), baselines(world)
    fixed = dict(zip(NAMES, (others.shares * others.most).tolist(), strict=True))
    first_kept = fixed[NAMES[others.first]]
    return fixed | {
        KEPT: first_kept,
        "chosen": course.steps,
        "quickest": others.most,
        "switches": float(course.switches),
    }


def figures(seeds: Sequence[int], seed: int, step: Callable[[], None]) -> list[dict[str, Any]]:
    """A row for each family and one for all together, ready for JSON."""
    outcomes: dict[str, list[dict[str, float]]] = {family: [] for family in FAMILIES}
    for number in seeds:
        for family in FAMILIES:
            outcomes[family].append(played(family, number))
        step()
    outcomes["all"] = [outcome for windows in outcomes.values() for outcome in windows]
    return [_row(family, windows, seed) for family, windows in outcomes.items()]


def _row(family: str, windows: Sequence[Mapping[str, float]], seed: int) -> dict[str, Any]:
    quickest = np.array([window["quickest"] for window in windows])
    chosen = np.array([window["chosen"] for window in windows]) / quickest
    first_kept = np.array([window[KEPT] for window in windows]) / quickest
    fixed = np.array([[window[name] for name in NAMES] for window in windows]) / quickest[:, None]
    best = int(np.argmax(fixed.mean(axis=0)))
    shares = dict(zip(NAMES, fixed.mean(axis=0).tolist(), strict=True))
    return {
        "family": family,
        "windows": len(windows),
        "best_fixed": NAMES[best],
        "throughput": {"chosen": float(chosen.mean()), KEPT: float(first_kept.mean())} | shares,
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


def tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Throughput, in shares of what one has who always has the quickest and switches for nothing."""
    table = Table(title="throughput of collectives, % of one who always has the quickest for nothing")
    for name in (
        "links",
        "chosen",
        KEPT,
        *NAMES,
        "less best fixed",
        f"less {KEPT}",
        "less best of each window",
        "switches",
    ):
        table.add_column(name, justify="right")
    for row in rows:
        shares = [f"{100 * row['throughput'][name]:.1f}" for name in ("chosen", KEPT, *NAMES)]
        gains = [_shown(row[name]) for name in _GAINS]
        table.add_row(row["family"], *shares, *gains, f"{row['switches']:.1f}")
    yield table


def _shown(interval: Mapping[str, float]) -> str:
    return f"{100 * interval['value']:+.2f} ({100 * interval['low']:+.2f} … {100 * interval['high']:+.2f})"


def words(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Where following the network does not pay."""
    for row in rows:
        verdict = "not below zero" if row["over_best_fixed"]["low"] >= 0.0 else "may be below zero"
        gain = _shown(row["over_best_fixed"])
        yield f"{row['family']}: chosen less the best fixed ({row['best_fixed']}): {verdict}, {gain} points"
        if row["over_best_of_each_window"]["low"] < 0.0:
            interval = _shown(row["over_best_of_each_window"])
            yield f"{row['family']}: does not surely beat the best fixed one of each window in hindsight: {interval}"
