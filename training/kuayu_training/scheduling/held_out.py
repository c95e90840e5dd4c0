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

from kuayu.bench.reference import ReferencePolicy
from kuayu.scheduling.policy_network import PolicyNetwork, Small
from kuayu.scheduling.scoring import Scorer
from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion, Goodput
from kuayu_conformance.testbed.scheduling.engine.policy import Policy
from kuayu_conformance.testbed.scheduling.workload.traces import MissingTraces
from kuayu_training.scheduling.ledger import beside, gain, yardstick
from kuayu_training.scheduling.scenarios import LARGER, LEARNED, PHILLY, STRANGE, TRACE, Kind, drawn

KINDS = {kind.name: kind for kind in (LEARNED, LARGER, STRANGE, PHILLY, TRACE)}
Ratios = tuple[float, float, float]
"""Time that all jobs and that large ones were there, and money."""
RULE, NETWORK = "rule", "network"
SURE = 0.95


@dataclass(frozen=True, slots=True)
class Compared:
    """How policies did in scenarios of a kind, beside B3c.

    Attributes:
        kind: Its name.
        scenarios: How many.
        periods: By policy: time that jobs were there, over that under B3c; geometric mean.
        large: The same of large jobs.
        costs: Money for bandwidth likewise.
        objectives: By policy: the mean objective (``ledger``).
        lead: Mean objective of the network less that of the rule.
        allocator: The one-sided 95 % lower bound of that, Student's.
    """

    kind: str
    scenarios: int
    periods: Mapping[str, float]
    large: Mapping[str, float]
    costs: Mapping[str, float]
    objectives: Mapping[str, float]
    lead: float
    allocator: float


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


def played(weights: Mapping[str, Small], seed: int, name: str, number: int) -> Mapping[str, Ratios] | None:
    """What each policy did in a scenario, over B3c; None where the trace is not at hand."""
    kind: Kind = KINDS[name]
    try:
        its = drawn(f"held out {seed} {name}", number, kind=kind)
    except MissingTraces:
        return None
    other = yardstick(its)
    return {policy: beside(its, other, make()) for policy, make in _policies(PolicyNetwork.of(weights)).items()}


def _policies(network: Scorer) -> Mapping[str, Callable[[], Policy]]:
    return {"B3": EarliestCompletion, "B4": Goodput, RULE: ReferencePolicy, NETWORK: partial(ReferencePolicy, network)}


def compared(kind: str, found: Sequence[Mapping[str, Ratios]]) -> Compared:
    """What scenarios of a kind come to.

    Args:
        kind: Its name.
        found: What each policy did over B3c, by scenario; several.
    """
    names, count = list(found[0]), len(found)
    ratios = np.array([[each[name] for name in names] for each in found])
    means = np.exp(np.log(ratios).mean(axis=0))
    gains = gain(ratios[..., :2], ratios[..., 2])
    leads = gains[:, names.index(NETWORK)] - gains[:, names.index(RULE)]
    periods, large, costs = (_named(names, column) for column in means.T)
    lead, error = float(leads.mean()), float(leads.std(ddof=1)) / count**0.5
    return Compared(
        kind,
        count,
        periods,
        large,
        costs,
        _named(names, gains.mean(axis=0)),
        round(lead, 4),
        round(lead - float(student.ppf(SURE, count - 1)) * error, 4),
    )


def _named(names: Sequence[str], values: np.ndarray) -> dict[str, float]:
    return dict(zip(names, values.round(4).tolist(), strict=True))
