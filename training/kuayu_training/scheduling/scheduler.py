"""Training of the scheduler's network: several seeds, each from the rule on; the best of them, if it beats the rule."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import numpy as np

from kuayu.scheduling.policy_network import FILE
from kuayu_training.scheduling import curves
from kuayu_training.scheduling.held_out import compare
from kuayu_training.scheduling.learning import Learned, learn
from kuayu_training.scheduling.scenarios import LEARNED

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done."""

TOLD = 500
"""Steps of which one is told."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is trained.

    Attributes:
        seeds: Networks that are trained, each from a seed of its own.
        steps: Steps that each learns from.
        looks: How often it is looked at how good each is.
        looking: Scenarios that are played for that.
        held: Scenarios of each kind in which the best is compared with the rule.
        processes: Networks that are trained at a time; of no effect on what comes out.
    """

    seeds: int = 5
    steps: int = 20_000
    looks: int = 3
    looking: int = 6
    held: int = 8
    processes: int = 2


def train(seed: int, output: Path, budget: Budget, progress: Progress) -> list[Path]:
    """Train, and write weights and curves; returns the paths written.

    A network is written only if it is better than the rule where neither was chosen by, by the lower bound; otherwise
    the reference goes by the rule.

    Args:
        seed: Everything follows from it: networks have seeds from it on.
        output: Folder that is written to.
        budget: How much is trained.
        progress: Told how far it is.
    """
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(budget.processes, mp_context=context) as pool:
        learned = _learned([seed + number for number in range(budget.seeds)], budget, pool, manager.Queue(), progress)
        best = max(learned, key=_objective)
        kinds = list(compare(best.weights, seed, budget.held, pool, partial(progress, "comparisons")))
    output.mkdir(parents=True, exist_ok=True)
    written = []
    if next(each for each in kinds if each.kind == LEARNED.name).allocator > 0.0:
        written.append(output / FILE)
        np.savez_compressed(written[0], allow_pickle=False, **best.weights)
    settings = {name: value for name, value in asdict(budget).items() if name != "processes"}
    told = curves.told(learned, best.seed, kinds, {"seed": seed, **settings})
    return written + curves.write(told, output)


def _objective(learned: Learned) -> float:
    """How good a network was where it was best."""
    return max(point.objective for point in learned.points)


def _learned(seeds: list[int], budget: Budget, pool: Executor, steps: Queue[Any], progress: Progress) -> list[Learned]:
    """What became of each seed, in their order."""
    asked = [pool.submit(_one, seed, steps, budget) for seed in seeds]
    done = dict.fromkeys(seeds, 0)
    while not all(each.done() for each in asked):
        try:
            seed, step = steps.get(timeout=1.0)
        except Empty:
            continue
        done[seed] = min(step, budget.steps)
        progress("networks", 0.999 * sum(done.values()) / (budget.steps * len(seeds)))
    progress("networks", 1.0)
    return [each.result() for each in asked]


def _one(seed: int, steps: Queue[Any], budget: Budget) -> Learned:
    """A seed; its steps are told now and then."""
    told = 0

    def tell(step: int) -> None:
        nonlocal told
        if step - told >= TOLD:
            told = step
            steps.put((seed, step))

    return learn(seed, budget.steps, budget.looks, budget.looking, tell)
