"""Tuning of the rule: what each choice of its constants leads to in whole windows, and which of them is taken."""

import json
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from kuayu.bench.reference import ReferencePolicy
from kuayu.scheduling.scoring import Rule
from kuayu_conformance.testbed.scheduling.baselines import WeighedCompletion
from kuayu_conformance.testbed.scheduling.engine.policy import Policy
from kuayu_conformance.testbed.scheduling.scenarios import Scenario
from kuayu_conformance.testbed.scheduling.timing import Timing
from kuayu_conformance.testbed.scheduling.values import JobKind
from kuayu_conformance.testbed.scheduling.windows import Cohort, cohort, play_window
from kuayu_training.scheduling.ledger import LARGE
from kuayu_training.scheduling.scenarios import HOUR, TUNED, drawn

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of it that is done."""

FILE = "tuning.json"
CHOICES = tuple(product((110.0, 220.0, 440.0, 880.0, 1760.0), (2.0, 3.0, 4.0)))
"""Seconds that a unit of money is worth, and what a second of waiting counts."""
TIMING = Timing(6 * HOUR, 8 * HOUR, 10 * HOUR)
"""Whole windows, as they are judged: what comes of a choice in the first hours is another thing than in the end."""
MOST = 0.8
"""Of B3c's money. It spends about half of what B1 does, so that less than this reaches about the aim of SCH-005."""

Choice = tuple[float, float]
Figures = tuple[float, float, float]
"""Mean period of jobs that train, that of the large ones of them, and money for bandwidth over work."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What a choice of constants led to.

    Attributes:
        money: Seconds that a unit of money for bandwidth is worth.
        doubt: What a second of waiting counts.
        period: Mean training period over that under B3c in the same window; geometric mean.
        large: The same of jobs of eight devices or more.
        cost: Money for bandwidth likewise.
    """

    money: float
    doubt: float
    period: float
    large: float
    cost: float


def tune(
    seed: int,
    output: Path,
    windows: int,
    processes: int,
    progress: Progress,
    choices: Sequence[Choice] = CHOICES,
    timing: Timing = TIMING,
) -> list[Path]:
    """Try every choice in the same windows, and write down what came of it; returns the path written.

    Taken is the choice with the shortest periods, all and large ones counting alike, of those that spend at most
    ``MOST`` of what B3c does.

    Args:
        seed: Which windows; no judge takes them.
        output: Folder that is written to.
        windows: How many.
        processes: Windows that are played at a time; of no effect on what comes out.
        progress: Told how far it is.
        choices: What is tried.
        timing: How long a window is.
    """
    found: list[list[Figures]] = [[] for _ in range(windows)]
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        asked = {pool.submit(played, f"tuning {seed}", number, choices, timing): number for number in range(windows)}
        for done, future in enumerate(as_completed(asked), start=1):
            found[asked[future]] = future.result()
            progress("choices", done / windows)
    means = np.exp(np.log(found).mean(axis=0)).round(4).tolist()
    tried = [Tried(*its, *row) for its, row in zip(choices, means, strict=True)]
    output.mkdir(parents=True, exist_ok=True)
    path = output / FILE
    path.write_text(_text({"seed": seed, "windows": windows}, tried), "utf-8")
    return [path]


def chosen(tried: Sequence[Tried]) -> Tried:
    """The one that is taken; the cheapest where none is cheap enough."""
    cheap = [each for each in tried if each.cost <= MOST] or [min(tried, key=lambda each: each.cost)]
    return min(cheap, key=lambda each: each.period + each.large)


def played(purpose: str, number: int, choices: Sequence[Choice], timing: Timing = TIMING) -> list[Figures]:
    """Figures of each choice in a window, over those of B3c."""
    its = drawn(purpose, number, timing, TUNED)
    members = cohort(its)
    other = np.array(_figures(its, members, WeighedCompletion()))
    ours = [_figures(its, members, ReferencePolicy(Rule(money=money, doubt=doubt))) for money, doubt in choices]
    return [tuple(np.array(each) / other) for each in ours]


def _figures(its: Scenario, members: Cohort, policy: Policy) -> Figures:
    found = play_window(its, policy, "", members)
    trained = [job for job in found.jobs if job.kind is not JobKind.SERVING]
    large = [job.period for job in trained if job.devices >= LARGE]
    period = float(np.mean([job.period for job in trained]))
    return period, float(np.mean(large)) if large else period, max(found.money, 1e-9) / max(found.work, 1.0)


def _text(settings: dict[str, Any], tried: Sequence[Tried]) -> str:
    """As JSON, a line for each choice."""
    rows = ",\n".join(f"  {json.dumps(asdict(each))}" for each in tried)
    head = {"command": "python -m kuayu_training rule", **settings, "chosen": asdict(chosen(tried))}
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    return "{\n" + ",\n".join([*lines, f' "tried": [\n{rows}\n ]']) + "\n}\n"
