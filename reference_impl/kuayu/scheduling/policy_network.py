"""A network that sets the rule's constants by how things stand; trained by PPO, evaluated by NumPy.

1. What is seen are ten figures of a state (``SEEN``), none of which depends on how many domains or jobs there are.
2. What is set are five constants of the rule (``SET``): by how many doublings each differs from what ships, ``SPAN`` at
   most. The rule does the rest: candidates, reservations, preemption, the safety check and explanations are its own.
3. The order in which jobs are tried, and how long they may be overtaken, are as the rule says: they are promised.

J. Schulman, F. Wolski, P. Dhariwal, A. Radford, O. Klimov, "Proximal policy optimization algorithms", arXiv:1707.06347,
2017; ``python -m kuayu_training scheduler`` trains it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu.scheduling.scheduler import QueuePolicy, lengths, overtaken_until
from kuayu.scheduling.scoring import Rule
from kuayu.scheduling.state import Floats, Snapshot

Small = NDArray[np.float32]

FILE = "network.npz"
LARGE = 8
"""Devices from which on a job is large (SCH-003)."""
SEEN = (
    *("waiting", "running", "asked for", "asked for by large jobs", "held by large jobs", "free"),
    *("overdue", "length", "reached", "tariff"),
)
"""What is seen, in order: logarithms of the jobs that wait and run; devices that waiting jobs ask for, all and large
ones, that running large jobs asked for, and that are free, over those that can be reached; shares of waiting jobs that
nobody may overtake any longer, and of domains that are reached; the mean logarithm of hours that waiting jobs take; the
logarithm of what a terabyte costs between domains on average."""
SET = ("money", "lost", "doubt", "eager", "gang")
"""What is set: constants of ``scoring.Rule`` and ``scheduler.QueuePolicy`` by name."""
SPAN = 2.0
"""Doublings or halvings of a constant at most."""
BOUND = 10.0
"""Nothing that is seen is farther from zero than this."""
HIDDEN = 24
"""Width of both hidden layers."""
LAYERS = ("enter", "meet", "leave")
TERABYTE = 8e12
"""Bits."""


def seen(snapshot: Snapshot) -> Floats:
    """How things stand, (10,), as ``SEEN`` says."""
    pools, jobs, waiting = snapshot.pools, snapshot.jobs, snapshot.waiting
    reachable = snapshot.reachable[pools.domain]
    total = max(int(pools.devices[reachable].sum()), 1)
    requested = jobs.requested.astype(np.float64)
    large = np.where(requested >= LARGE, requested, 0.0)
    count = max(waiting, 1)
    tariff = snapshot.paths.tariff[~np.eye(snapshot.domains, dtype=np.bool_)]
    tariff = tariff[np.isfinite(tariff)]
    features = (
        log1p(waiting) / 2.0,
        log1p(len(jobs) - waiting) / 2.0,
        requested[:waiting].sum() / total,
        large[:waiting].sum() / total,
        large[waiting:].sum() / total,
        pools.free[reachable].sum() / total,
        (overtaken_until(snapshot, QueuePolicy()) < 0.0).sum() / count,
        np.log1p(lengths(snapshot) / 3600.0).sum() / count,
        snapshot.reachable.mean(),
        log1p(TERABYTE * float(tariff.mean())) / 2.0 if len(tariff) else 0.0,
    )
    return np.minimum(np.array(features, dtype=np.float64), BOUND)


@dataclass(frozen=True, slots=True)
class PolicyNetwork:
    """Layers, each a matrix from columns to rows and a bias; the hyperbolic tangent after each.

    Attributes:
        enter: From what is seen to the first hidden layer.
        meet: From that to the second.
        leave: From that to what is set.
    """

    enter: tuple[Floats, Floats]
    meet: tuple[Floats, Floats]
    leave: tuple[Floats, Floats]

    @classmethod
    def of(cls, weights: Mapping[str, NDArray[Any]]) -> "PolicyNetwork":
        """Layers from arrays by name, as training writes them.

        Raises:
            KeyError: One is missing.
        """
        return cls(*((_exact(weights[f"{name}.weight"]), _exact(weights[f"{name}.bias"])) for name in LAYERS))

    def doublings(self, conditions: Floats) -> Floats:
        """By how many doublings each constant of ``SET`` differs from what ships, (5,), for what is seen, (10,)."""
        hidden = conditions
        for weight, bias in (self.enter, self.meet, self.leave):
            hidden = np.tanh(weight @ hidden + bias)
        return SPAN * hidden

    def constants(self, snapshot: Snapshot) -> tuple[Rule, QueuePolicy]:
        """The rule and the order of jobs that go with a state."""
        factors = dict(zip(SET, (2.0 ** self.doublings(seen(snapshot))).tolist(), strict=True))
        rule, queue = Rule(), QueuePolicy()
        return (
            replace(
                rule,
                money=rule.money * factors["money"],
                lost=rule.lost * factors["lost"],
                doubt=rule.doubt * factors["doubt"],
            ),
            replace(queue, eager=queue.eager * factors["eager"], gang=queue.gang * factors["gang"]),
        )


def _exact(weights: NDArray[Any]) -> Floats:
    return np.asarray(weights, dtype=np.float64)


@cache
def shipped() -> PolicyNetwork | None:
    """The network that comes with the package, if one does."""
    path = files("kuayu.scheduling") / FILE
    if not path.is_file():
        return None
    with path.open("rb") as file, np.load(file) as arrays:
        return PolicyNetwork.of({name: arrays[name] for name in arrays.files})
