"""What sizes come to in a window: gains, deaths, slow-downs; over windows, with bounds by bootstrap.

Bounds: B. Efron, The Annals of Statistics 7 (1979) 1-26; windows are drawn, each mix for itself.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, fsum, inf

from kuayu_conformance.statistics.bootstrap import RESAMPLES
from kuayu_conformance.statistics.proportions import CONFIDENCE
from kuayu_conformance.testbed.tasks import cluster
from kuayu_conformance.testbed.tasks.cluster import Outcome
from kuayu_conformance.testbed.tasks.drawing import Tasks
from kuayu_conformance.testbed.tasks.kinds import DEVICES, MEMORY
from kuayu_conformance.testbed.tasks.law import Numbers

REQUIRED = (0.253, 0.152, 0.072, 0.08)
"""Gains that the requirement names, each relative to the original requests."""
QUANTITIES = ("deployed", "completed", "devices", "memory")

Four = tuple[float, float, float, float]


@dataclass(frozen=True)
class Played:
    """A window under a policy with some sizes.

    Attributes:
        four: Deployed tasks, completion rate, mean shares of devices and memory that were put to use.
        held: Mean shares of devices, cores and memory that were given away.
        arrived: Tasks that came.
        died: Runs that memory ended.
        lost: Seconds of them.
    """

    four: Four
    held: tuple[float, ...]
    arrived: int
    died: int
    lost: float


@dataclass(frozen=True)
class Window:
    """A window with the original sizes and with others.

    Attributes:
        number: Which.
        before, after: What came of it, by policy.
        dying: Share of the tasks that would run out of memory.
        slower: Mean over tasks of the time on what they are given ÷ that on what they ask for - 1; lost runs are not in
            it.
        cut: Part of the cores that were asked for that is not given.
    """

    number: int
    before: Mapping[str, Played]
    after: Mapping[str, Played]
    dying: float
    slower: float
    cut: float


def score(number: int, tasks: Tasks, given: Numbers, policies: Iterable[str], before: Mapping[str, Played]) -> Window:
    """Play a window with sizes; ``before`` is the same with what was asked for."""
    after = {policy: played(cluster.play(tasks, given, policy)) for policy in policies}
    slower = tasks.slowed(given) / tasks.slowed(tasks.requested) - 1.0
    return Window(
        number,
        before,
        after,
        float(tasks.dies(given).mean()),
        float(slower.mean()),
        1.0 - float(given[:, 1].sum() / tasks.requested[:, 1].sum()),
    )


def originals(tasks: Tasks, policies: Iterable[str]) -> dict[str, Played]:
    """A window with what was asked for."""
    return {policy: played(cluster.play(tasks, tasks.requested, policy)) for policy in policies}


def played(outcome: Outcome) -> Played:
    """The figures of an outcome that are judged and printed."""
    four = (float(outcome.deployed), outcome.completion, outcome.used[DEVICES], outcome.used[MEMORY])
    return Played(four, outcome.held, outcome.arrived, outcome.died, outcome.lost)


def gains(windows: Sequence[Window], policy: str) -> Four:
    """Total after ÷ total before - 1 of the four, over windows."""
    return _gains([(window.before[policy].four, window.after[policy].four) for window in windows])


def points(windows: Sequence[Window], policy: str) -> Four:
    """The same as differences: of tasks relative to those that came, of shares in parts of one."""
    came = fsum(window.before[policy].arrived for window in windows) / len(windows) or 1.0
    each = [
        fsum(w.after[policy].four[k] - w.before[policy].four[k] for w in windows) / len(windows)
        for k in range(len(REQUIRED))
    ]
    return each[0] / came, each[1], each[2], each[3]


def least(four: Four) -> float:
    """The least of gain ÷ required gain."""
    return min(gain / required for gain, required in zip(four, REQUIRED, strict=True))


def worst(mixes: Mapping[str, Sequence[Window]], policy: str, seed: str) -> tuple[float, float, float]:
    """The least quotient of the worst mix, and its one-sided lower and upper bounds."""
    pairs = {
        mix: [(window.before[policy].four, window.after[policy].four) for window in its] for mix, its in mixes.items()
    }
    estimate = min(least(_gains(its)) for its in pairs.values())
    chance = random.Random(seed)  # noqa: S311 - reproducible by design, not secret
    drawn = sorted(
        min(least(_gains([its[int(chance.random() * len(its))] for _ in its])) for its in pairs.values())
        for _ in range(RESAMPLES)
    )
    rank = ceil(CONFIDENCE * RESAMPLES)
    return estimate, drawn[RESAMPLES - rank], drawn[rank - 1]


def _gains(pairs: Sequence[tuple[Four, Four]]) -> Four:
    before, after = [0.0] * len(REQUIRED), [0.0] * len(REQUIRED)
    for was, became in pairs:
        for k in range(len(REQUIRED)):
            before[k] += was[k]
            after[k] += became[k]
    each = [(b / a - 1.0) if a else (inf if b else 0.0) for a, b in zip(before, after, strict=True)]
    return each[0], each[1], each[2], each[3]
