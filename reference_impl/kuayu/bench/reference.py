"""The reference as a policy of the suite's world, without a service between.

What decides is :func:`kuayu.scheduling.scheduler.decide`, as it does behind ``POST /v1/placements``; here it is given
snapshots made of views, and its attempts become orders. So ``kuayu bench policy`` plays the reference like any other
policy, as ``kuayu.bench.reference:ReferencePolicy``.
"""

import numpy as np

from kuayu.bench.snapshots import Snapshots
from kuayu.scheduling.attempts import EpochResult
from kuayu.scheduling.candidates import Candidates
from kuayu.scheduling.preemption import migrations, scale_downs
from kuayu.scheduling.scheduler import decide
from kuayu.scheduling.scoring import OWN, Rule, Scorer
from kuayu.scheduling.state import MODES, Numbers, Snapshot
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Resize, Start
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import Placement, Split

AGAIN = 600.0
"""Seconds after which an epoch is decided although nothing has changed since the last one."""


class ReferencePolicy:
    """The reference's policy for the suite's world.

    Args:
        scorer: The rule unless another is given.
    """

    def __init__(self, scorer: Scorer | None = None) -> None:
        self._scorer, self._snapshots = scorer or Rule(), Snapshots()
        self._idle: tuple[int, float] = (-1, 0.0)

    def decide(self, view: View) -> list[Order]:
        """Start whoever should start."""
        revision, until = self._idle
        if view.revision == revision and view.now < until:
            return []
        snapshot, numbers = self._snapshots.of(view)
        found = orders(view, snapshot, numbers, decide(snapshot, self._scorer, OWN))
        if not found:
            self._idle = view.revision, view.now + AGAIN
        return found


def orders(view: View, snapshot: Snapshot, numbers: Numbers, result: EpochResult) -> list[Order]:
    """What was decided, and what follows from it for jobs that run, as the suite's world is told."""
    starts = [
        Start(view.job(int(numbers[attempt.job])).name, placement(view, result.candidates, attempt.row))
        for attempt in result.attempts
        if attempt.starts
    ]
    given_back = scale_downs(snapshot, result)
    resizes: list[Order] = [Resize(view.job(int(numbers[each.job])).name, each.devices) for each in given_back]
    for each in migrations(snapshot, result, frozenset(its.job for its in given_back)):
        name = view.job(int(numbers[each.job])).name
        goes = Placement((view.places.share(each.pool, each.devices),))
        resizes.append(Resize(name, each.devices) if each.stays else Move(name, goes))
    return [*starts, *resizes]


def placement(view: View, candidates: Candidates, row: int) -> Placement:
    """A candidate as a placement."""
    there = np.flatnonzero(candidates.devices[row])
    pairs = zip(candidates.pools[row, there].tolist(), candidates.devices[row, there].tolist(), strict=True)
    shares = tuple(view.places.share(pool, devices) for pool, devices in pairs)
    return Placement(shares, Split(MODES[int(candidates.mode[row])]), int(candidates.period[row]))
