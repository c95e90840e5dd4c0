"""Training of the scheduler's network: several seeds, each from the rule on, and whether the best of them ships.

1. The best network, by windows that nobody learned from, is compared with the rule in whole windows that nothing was
   chosen by (``compare``): like those that were learned in, with more domains, of families that nobody learned in, with
   jobs fitted to another trace, and, where its folder is given, with jobs of a real trace.
2. It ships as the default if, in the windows of all kinds together, mean periods of all and of large jobs are no longer
   than the rule's (upper bound of 1 % more) and money is at least 15 % less; or if both periods are at least 3 %
   shorter (upper bound below the rule's) at no more money. It is written in any case: whoever wants it can choose it.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import numpy as np

from kuayu.scheduling import policy_network
from kuayu.scheduling.policy_network import Small
from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion, HomeBackfill
from kuayu_conformance.testbed.scheduling.workload.traces import MissingTraces
from kuayu_training.scheduling import curves
from kuayu_training.scheduling.comparison import RULE, PolicyComparison, compared
from kuayu_training.scheduling.core.network import flat
from kuayu_training.scheduling.core.player import CompiledRule
from kuayu_training.scheduling.learning import TrainingRun, learn
from kuayu_training.scheduling.scenarios import LARGER, LEARNED, PHILLY, STRANGE, TRACE, Kind
from kuayu_training.scheduling.windows import Figures, window
from kuayu_training.workers import executor, queue

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done."""

FILE = policy_network.FILE
FILE_NAMES = {"held_out": "held"}
"""Settings that the file of curves calls otherwise, for the site reads files of before."""
TOLD = 1_000
"""Steps of which one is told."""
NETWORK = "network"
KINDS = (LEARNED, LARGER, STRANGE, PHILLY, TRACE)
"""Windows to compare in."""
TOGETHER = "together"
MAX_BOUND, MAX_MONEY, MAX_PERIOD = 1.01, 0.85, 0.97
"""Ratios over the rule that decide whether it ships: upper bounds of mean periods, and money, where it is money that it
saves; mean periods where it is time."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is trained.

    Attributes:
        seeds: Networks that are trained, each from a seed of its own.
        steps: Steps that each learns from: half hours.
        looks: How often it is looked at how good each is.
        looking: Windows of each source that are played for that.
        held_out: Windows of each kind in which the best is compared with the rule.
        workers: Where networks are trained (:mod:`kuayu_training.workers`); of no effect on what comes out.
    """

    seeds: int = 5
    steps: int = 160_000
    looks: int = 6
    looking: int = 12
    held_out: int = 24
    workers: str = "2"


def train(seed: int, output: Path, budget: Budget, progress: Progress) -> list[Path]:
    """Train, compare, and write weights and curves; returns the paths written.

    Args:
        seed: Everything follows from it: networks have seeds from it on.
        output: Folder that is written to.
        budget: How much is trained.
        progress: Told how far it is.
    """
    with executor(budget.workers) as pool, queue(pool) as steps:
        learned = _learned([seed + number for number in range(budget.seeds)], budget, pool, steps, progress)
        best = max(learned, key=_objective)
        kinds = compare(best.weights, seed, budget.held_out, pool, partial(progress, "comparisons"))
    output.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(output / FILE, allow_pickle=False, **best.weights)
    settings = {FILE_NAMES.get(name, name): value for name, value in asdict(budget).items() if name != "workers"}
    document = curves.document(learned, best.seed, kinds, {"seed": seed, **settings}, ships=ships(kinds))
    return [output / FILE, *curves.write(document, output)]


def ships(kinds: Sequence[PolicyComparison]) -> bool:
    """Whether the network ships as the default, by what was found in the windows of all kinds together."""
    comparison = next(row for row in kinds if row.kind == TOGETHER)
    over, most = comparison.over[NETWORK], comparison.most[NETWORK]
    cheaper = max(most[:2]) <= MAX_BOUND and over[2] <= MAX_MONEY
    return cheaper or (max(over[:2]) <= MAX_PERIOD and max(most[:2]) < 1.0 and over[2] <= 1.0)


def compare(
    weights: Mapping[str, Small], seed: int, count: int, pool: Executor, progress: Callable[[float], None]
) -> list[PolicyComparison]:
    """Beside the rule in windows of each kind, and of all together; a kind whose trace is not at hand is left out.

    Args:
        weights: Of the network.
        seed: Which windows.
        count: How many of each kind.
        pool: Plays them.
        progress: Told which share is through.
    """
    submitted = {
        kind: [pool.submit(beside, f"held out {seed} {kind.name}", number, kind, weights) for number in range(count)]
        for kind in KINDS
    }
    rows, together = [], []
    for through, (kind, futures) in enumerate(submitted.items(), start=1):
        results = [future.result() for future in futures]
        progress(through / len(submitted))
        windows = [figures for figures in results if figures is not None]
        if windows:
            rows.append(compared(kind.name, windows))
            together += windows
    return [*rows, compared(TOGETHER, together)]


def beside(purpose: str, number: int, kind: Kind, weights: Mapping[str, Small]) -> dict[str, Figures] | None:
    """What B1, B3, the rule and the network reach in a window; None where its trace is not at hand."""
    try:
        episode = window(purpose, number, kind)
    except MissingTraces:
        return None
    return {
        "B1": episode.play(HomeBackfill()),
        "B3": episode.play(EarliestCompletion()),
        RULE: episode.play(CompiledRule()),
        NETWORK: episode.play(CompiledRule(network=flat(weights))),
    }


def _objective(learned: TrainingRun) -> float:
    """How good a network was where it was best."""
    return max(point.objective for point in learned.points)


def _learned(
    seeds: list[int], budget: Budget, pool: Executor, steps: Queue[Any], progress: Progress
) -> list[TrainingRun]:
    """What became of each seed, in their order."""
    futures = [pool.submit(_one, seed, steps, budget) for seed in seeds]
    done = dict.fromkeys(seeds, 0)
    while not all(future.done() for future in futures):
        try:
            seed, step = steps.get(timeout=1.0)
        except Empty:
            continue
        done[seed] = min(step, budget.steps)
        progress("networks", 0.999 * sum(done.values()) / (budget.steps * len(seeds)))
    progress("networks", 1.0)
    return [future.result() for future in futures]


def _one(seed: int, steps: Queue[Any], budget: Budget) -> TrainingRun:
    """A seed; its steps are told now and then."""
    reported = 0

    def tell(step: int) -> None:
        nonlocal reported
        if step - reported >= TOLD:
            reported = step
            steps.put((seed, step))

    return learn(seed, budget.steps, budget.looks, budget.looking, tell)
