"""The chosen network beside the rule and plain policies, in scenarios by which none of them was chosen.

Some are like those that were learned in; others have more domains, families that nobody learned in, jobs fitted to
another trace, and, where its folder is given, jobs of a real trace.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import t as student

from kuayu.scheduling.choosing import Scorer
from kuayu.scheduling.network import Network, Small
from kuayu.training.scheduling.desk import Deciding
from kuayu.training.scheduling.ledger import Ledger, gain, yardstick
from kuayu.training.scheduling.scenarios import LARGER, LEARNED, PHILLY, STRANGE, TRACE, Kind, drawn, taken_over
from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion, Goodput
from kuayu_conformance.testbed.scheduling.engine.episode import play
from kuayu_conformance.testbed.scheduling.engine.policy import Policy
from kuayu_conformance.testbed.scheduling.workload.traces import MissingTraces

KINDS = {kind.name: kind for kind in (LEARNED, LARGER, STRANGE, PHILLY, TRACE)}
RULE, NETWORK = "rule", "network"
SURE = 0.95


@dataclass(frozen=True, slots=True)
class Compared:
    """How policies did in scenarios of a kind, beside B3c.

    Attributes:
        kind: Its name.
        scenarios: How many.
        periods: By policy: time that jobs were there, over that under B3c; geometric mean.
        costs: Money for bandwidth likewise.
        objectives: By policy: the mean objective (``ledger``).
        lead: Mean objective of the network less that of the rule.
        floor: The one-sided 95 % lower bound of that, Student's.
    """

    kind: str
    scenarios: int
    periods: Mapping[str, float]
    costs: Mapping[str, float]
    objectives: Mapping[str, float]
    lead: float
    floor: float


def compare(
    weights: Mapping[str, Small], seed: int, scenarios: int, pool: Executor, progress: Callable[[float], None]
) -> Iterator[Compared]:
    """Compare in scenarios of each kind; a kind whose trace is not at hand is left out.

    Args:
        weights: Of the network.
        seed: Which scenarios.
        scenarios: How many of each kind.
        pool: Plays them.
        progress: Told which share is through.
    """
    numbers = range(scenarios)
    asked = {name: [pool.submit(played, weights, seed, name, number) for number in numbers] for name in KINDS}
    for through, (name, futures) in enumerate(asked.items(), start=1):
        found = [each.result() for each in futures]
        progress(through / len(asked))
        if None not in found:
            yield compared(name, [each for each in found if each is not None])


def played(weights: Mapping[str, Small], seed: int, name: str, number: int) -> Mapping[str, tuple[float, float]] | None:
    """Period and money of each policy in a scenario, over those of B3c; None where the trace is not at hand."""
    kind: Kind = KINDS[name]
    try:
        its = drawn(f"held out {seed} {name}", number, kind=kind)
    except MissingTraces:
        return None
    other, found = yardstick(its), {}
    for policy, make in _policies(Network.of(weights)).items():
        world = taken_over(its)
        ledger = Ledger(world, other)
        play(world, make(), its.timing.horizon)
        period, money = ledger.totals(world, its.timing.horizon)
        found[policy] = period / other.period, max(money, 1e-9) / other.money
    return found


def _policies(network: Scorer) -> Mapping[str, Callable[[], Policy]]:
    return {"B3": EarliestCompletion, "B4": Goodput, RULE: Deciding, NETWORK: partial(Deciding, network)}


def compared(kind: str, found: Sequence[Mapping[str, tuple[float, float]]]) -> Compared:
    """What scenarios of a kind come to.

    Args:
        kind: Its name.
        found: Period and money of each policy over those of B3c, by scenario; several.
    """
    names, count = list(found[0]), len(found)
    ratios = np.array([[each[name] for name in names] for each in found])
    means = np.exp(np.log(ratios).mean(axis=0))
    gains = gain(ratios[..., 0], ratios[..., 1])
    leads = gains[:, names.index(NETWORK)] - gains[:, names.index(RULE)]
    lead, error = float(leads.mean()), float(leads.std(ddof=1)) / count**0.5
    return Compared(
        kind,
        count,
        _named(names, means[:, 0]),
        _named(names, means[:, 1]),
        _named(names, gains.mean(axis=0)),
        round(lead, 4),
        round(lead - float(student.ppf(SURE, count - 1)) * error, 4),
    )


def _named(names: Sequence[str], values: np.ndarray) -> dict[str, float]:
    return dict(zip(names, values.round(4).tolist(), strict=True))
