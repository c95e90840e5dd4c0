"""The reference as a policy of the suite's world, without a service between.

What decides is :func:`kuayu.scheduling.scheduler.decide`, as it does behind ``POST /v1/placements``; here it is given
snapshots made of views, and its attempts become orders. So ``kuayu bench policy`` plays the reference like any other
policy, as ``kuayu.bench.reference:ReferencePolicy``.
"""

import numpy as np

from kuayu.bench.snapshots import Snapshots
from kuayu.scheduling.attempts import EpochResult, Migration
from kuayu.scheduling.candidates import Candidates
from kuayu.scheduling.policy_network import PolicyNetwork, shipped
from kuayu.scheduling.preemption import migrations, scale_downs
from kuayu.scheduling.scheduler import QueuePolicy, decide
from kuayu.scheduling.scoring import OWN, Rule, Scorer
from kuayu.scheduling.state import MODES, Numbers, Snapshot
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import Placement, Split

AGAIN = 600.0
"""Seconds after which an epoch is decided although nothing has changed since the last one."""


class ReferencePolicy:
    """The reference's policy for the suite's world.

    Args:
        scorer: The rule unless another is given.
        network: Sets the rule's constants, if there is one; no other scorer is heard then.
    """

    def __init__(self, scorer: Scorer | None = None, network: PolicyNetwork | None = None) -> None:
        self._scorer, self._network, self._snapshots = scorer or Rule(), network, Snapshots()
        self._idle: tuple[int, float] = (-1, 0.0)

    def decide(self, view: View) -> list[Order]:
        """Start whoever should start."""
        revision, until = self._idle
        if view.revision == revision and view.now < until:
            return []
        snapshot, numbers = self._snapshots.of(view)
        rule = self._network.constants(snapshot) if self._network else (self._scorer, QueuePolicy())
        new_orders = orders(view, snapshot, numbers, decide(snapshot, rule[0], OWN, rule[1]))
        if not new_orders:
            self._idle = view.revision, view.now + AGAIN
        return new_orders


class PpoPolicy(ReferencePolicy):
    """The reference's policy with constants that the network sets which comes with the package."""

    def __init__(self) -> None:
        super().__init__(network=shipped())


def orders(view: View, snapshot: Snapshot, numbers: Numbers, result: EpochResult) -> list[Order]:
    """What was decided, and what follows from it for jobs that run, as the suite's world is told."""
    starts = [
        Start(view.job(int(numbers[attempt.job])).name, placement(view, result.candidates, attempt.row))
        for attempt in result.attempts
        if attempt.starts
    ]
    given_back = scale_downs(snapshot, result)
    resizes: list[Order] = [Resize(view.job(int(numbers[resize.job])).name, resize.devices) for resize in given_back]
    for resize in migrations(snapshot, result, frozenset(resize.job for resize in given_back)):
        name = view.job(int(numbers[resize.job])).name
        resizes.append(_change(view, name, resize))
    return [*starts, *resizes]


def _change(view: View, name: str, migration: Migration) -> Order:
    if not migration.devices:
        return Stop(name)
    if migration.stays:
        return Resize(name, migration.devices)
    return Move(name, Placement((view.places.share(migration.pool, migration.devices),)))


def placement(view: View, candidates: Candidates, row: int) -> Placement:
    """A candidate as a placement."""
    pools = np.flatnonzero(candidates.devices[row])
    pairs = zip(candidates.pools[row, pools].tolist(), candidates.devices[row, pools].tolist(), strict=True)
    shares = tuple(view.places.share(pool, devices) for pool, devices in pairs)
    return Placement(shares, Split(MODES[int(candidates.mode[row])]), int(candidates.period[row]))
