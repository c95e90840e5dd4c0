"""All policies in the same windows, and by how much the reference's plan waits and blocks less, with intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kuayu.resilience.transfers.network import Floats
from kuayu_conformance.testbed.transfers.shard_policies import (
    ON_DEMAND,
    ONE_AHEAD,
    Schedule,
    Static,
    best,
    clairvoyant,
    grid,
)
from kuayu_conformance.testbed.transfers.shard_simulation import Outcome, Run, Window, draw
from kuayu_training.resilience.shards_policies import InOrder, planned

DEMAND, AHEAD, STATIC, PULLED = "fixed, on demand", "fixed, one ahead", "best static", "best static, idle links pull"
ORDERED, PLAN, SEER = "plan, fixed order", "plan", "clairvoyant"
RIVALS = (DEMAND, AHEAD, STATIC, PULLED)
MEASURES = ("waiting", "blocked", "blocked_bytes")
SAMPLES = 10_000


@dataclass(slots=True)
class Played:
    """Outcomes of a family, window by window, by policy; and of every schedule of the grid."""

    family: str
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    schedules: dict[Schedule, list[Outcome]] = field(default_factory=dict)


def played(family: str, seeds: Sequence[str], step: Callable[[], None]) -> Played:
    """Play windows of a family under everybody; ``step`` is called after each."""
    made = Played(family)
    for seed in seeds:
        window = draw(family, seed)
        for name, outcome in _named(window).items():
            made.outcomes.setdefault(name, []).append(outcome)
        for schedule in grid():
            made.schedules.setdefault(schedule, []).append(Run(window, Static(window, schedule)).play())
        step()
    return made


def _named(window: Window) -> dict[str, Outcome]:
    return {
        DEMAND: Run(window, Static(window, ON_DEMAND)).play(),
        AHEAD: Run(window, Static(window, ONE_AHEAD)).play(),
        ORDERED: Run(window, InOrder(window)).play(),
        PLAN: Run(window, planned(window)).play(),
        SEER: clairvoyant(window),
    }


def mean(outcomes: Sequence[Outcome], measure: str) -> float:
    """Of a measure over windows."""
    return float(np.mean([getattr(each, measure) for each in outcomes]))


def reduction(ours: Floats, theirs: Floats, seed: int) -> dict[str, float | None] | None:
    """1 - mean(ours) / mean(theirs) with its two-sided 90 % percentile interval over windows; none if theirs is nought.

    The lower end is the one-sided 95 % bound; none where theirs may be nought, so that there is none (B. Efron,
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


def figures(made: Played, seed: int) -> list[dict[str, Any]]:
    """A row for each measure, ready for JSON."""
    return [_row(made, measure, seed) for measure in MEASURES]


def _row(made: Played, measure: str, seed: int) -> dict[str, Any]:
    chosen = {
        STATIC: best(made.schedules, measure, pulling=False),
        PULLED: best(made.schedules, measure, pulling=True),
    }
    outcomes: dict[str, Sequence[Outcome]] = dict(made.outcomes)
    outcomes |= {name: made.schedules[schedule] for name, schedule in chosen.items()}
    values = {name: np.array([getattr(each, measure) for each in found]) for name, found in outcomes.items()}
    return {
        "family": made.family,
        "measure": measure,
        "windows": len(values[PLAN]),
        "mean": {name: float(each.mean()) for name, each in values.items()},
        "held": {name: mean(each, "held") for name, each in outcomes.items() if name != SEER},
        "schedules": {name: str(schedule) for name, schedule in chosen.items()},
        "reductions": {name: reduction(values[PLAN], values[name], seed) for name in RIVALS},
        "fixed_order_reductions": {name: reduction(values[ORDERED], values[name], seed) for name in RIVALS},
    }
