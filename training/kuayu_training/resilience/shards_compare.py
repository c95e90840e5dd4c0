"""All policies in the same windows, and by how much the reference's plan waits and blocks less, with intervals.

The reference's rolling plan is carried out with the order of steps free (:func:`planned`), and with it fixed
(:class:`InOrder`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kuayu.resilience.network import Floats
from kuayu.resilience.shard_planner import shard_plan
from kuayu_conformance.testbed.transfers.shard_policies import (
    EVENLY,
    ON_DEMAND,
    ONE_AHEAD,
    Executor,
    Schedule,
    Static,
    best,
    clairvoyant,
    grid,
    local_slots,
)
from kuayu_conformance.testbed.transfers.shard_simulation import Outcome, Run, State, Window, draw

if TYPE_CHECKING:
    from kuayu_schemas import documents

DEMAND, AHEAD, STATIC, PULLED = "fixed, on demand", "fixed, one ahead", "best static", "best static, idle links pull"
ORDERED, PLAN, SEER = "plan, fixed order", "plan", "clairvoyant"
BASELINES = (DEMAND, AHEAD, STATIC, PULLED)
MEASURES = ("waiting", "blocked", "blocked_bytes")
SAMPLES = 10_000


@dataclass(slots=True)
class FamilyOutcomes:
    """Outcomes of a family, window by window, by policy; and of every schedule of the grid."""

    family: str
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    schedules: dict[Schedule, list[Outcome]] = field(default_factory=dict)


def played(family: str, seeds: Sequence[str], step: Callable[[], None]) -> FamilyOutcomes:
    """Play windows of a family under everybody; ``step`` is called after each."""
    results = FamilyOutcomes(family)
    for seed in seeds:
        window = draw(family, seed)
        for name, outcome in _named(window).items():
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


def figures(results: FamilyOutcomes, seed: int) -> list[dict[str, Any]]:
    """A row for each measure, ready for JSON."""
    return [_row(results, measure, seed) for measure in MEASURES]


def _row(results: FamilyOutcomes, measure: str, seed: int) -> dict[str, Any]:
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
        "held": {name: mean(runs, "held") for name, runs in outcomes.items() if name != SEER},
        "schedules": {name: str(schedule) for name, schedule in chosen.items()},
        "reductions": {name: reduction(values[PLAN], values[name], seed) for name in BASELINES},
        "fixed_order_reductions": {name: reduction(values[ORDERED], values[name], seed) for name in BASELINES},
    }
