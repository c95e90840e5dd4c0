"""Who starts, and where: jobs in turn, each by the least score, nobody delaying those who have waited too long."""

from dataclasses import dataclass, field
from math import inf

import numpy as np

from kuayu.scheduling.buying import Shop
from kuayu.scheduling.candidates import Catalogue
from kuayu.scheduling.choosing import (
    AGE,
    BEGINS,
    CROWD,
    DEVICES,
    EXCHANGING,
    FEATURES,
    LOST,
    MOVING,
    OWN,
    PRICE,
    RUNS,
    SIZE,
    WAITS,
    Rule,
    Scorer,
    Weights,
)
from kuayu.scheduling.judging import Judge
from kuayu.scheduling.ordering import Manners, ordered
from kuayu.scheduling.planning import EPOCH, Plan
from kuayu.scheduling.room import Moved
from kuayu.scheduling.running import ends, trusted
from kuayu.scheduling.scene import Flags, Floats, Numbers, Scene
from kuayu.scheduling.turns import Turn
from kuayu.scheduling.ways import Outlook, Ways
from kuayu.scheduling.worth import advantage, worthiness
from kuayu.scheduling.yielding import Yielding

LOOKED_AT = 400
"""Jobs that may start in an epoch: the first in order."""
BOOKED = 50
"""Jobs without room that are looked at all the same, since those behind them see where they wait."""


@dataclass(slots=True)
class Decided:
    """What was decided in an epoch.

    Attributes:
        ways: All that were looked at.
        outlook: What they lead to.
        plan: What is left.
        judge: Scored them.
        turns: Jobs in the order in which they were looked at.
        simpler: Whether the scorer failed and the rule answered in its place.
        yielding: Running jobs that make room for others.
    """

    ways: Ways
    outlook: Outlook
    plan: Plan
    judge: Judge
    turns: list[Turn] = field(default_factory=list)
    simpler: bool = False
    yielding: list[Moved] = field(default_factory=list)


def decide(
    scene: Scene,
    scorer: Scorer | None = None,
    weights: Weights = OWN,
    manners: Manners | None = None,
    *,
    everyone: bool = False,
    room: bool = True,
) -> Decided:
    """Decide which of the waiting jobs start, and where.

    Args:
        scene: What is decided on.
        scorer: Makes scores of ways; the rule unless it is given.
        weights: What counts.
        manners: How jobs take turns.
        everyone: Whether jobs are looked at of which it is clear that they will not start.
        room: Whether running jobs may have to make room.
    """
    scorer, manners = scorer or Rule(), manners or Manners()
    free = trusted(scene)
    plan = Plan(scene, free.copy(), ends(scene), Shop(scene))
    order = ordered(scene, manners)
    if not everyone:
        order = order[: LOOKED_AT if free.any() else BOOKED]
    catalogue = Catalogue(scene, free)
    ways, outlook, first = gathered(catalogue, order)
    columns = features_of(scene, ways, outlook, plan)
    delay = crowding(scene, order, manners)
    columns[:, CROWD] *= np.repeat(delay, np.diff(first))
    yielding = Yielding(scene, plan)
    judge = Judge(scorer, weights, columns)
    decided = Decided(ways, outlook, plan, judge, yielding=yielding.moved)
    seconds = outlook.begins + outlook.runs
    hopeful = _any(plan.fits(ways.pools, ways.devices), first).tolist()
    bounds = first.tolist()
    kept = waiting = 0
    for place, job in enumerate(order.tolist()):
        its = slice(bounds[place], bounds[place + 1])
        pools, devices = ways.pools[its], ways.devices[its]
        idle = waiting >= BOOKED and not (hopeful[place] and plan.fits(pools, devices).any())
        idle |= place >= LOOKED_AT
        if its.start == its.stop or (idle and not everyone):
            continue
        if job in scene.denied and not idle:
            _distrust(plan, ways.of(np.arange(its.start, its.stop)), seconds[its])
        now = plan.admits(pools, devices, seconds[its])
        now &= not idle
        columns[its, WAITS] = np.where(now, 0.0, np.maximum(plan.earliest(pools, devices), EPOCH))
        turn = Turn(job, np.arange(its.start, its.stop), columns[its], now, judge.scores(its), counts=not idle)
        decided.turns.append(turn)
        turn.chosen = judge.choice(turn.features, turn.scores)
        if room and not idle and (better := yielding.better(turn, ways, judge, float(delay[place]))) is not None:
            turn.chosen = better
        if turn.chosen is None:
            continue
        row, turn.starts = its.start + turn.chosen, bool(now[turn.chosen])
        if turn.starts:
            plan.take(job, ways.pools[row], ways.devices[row], float(seconds[row]))
            waiting += 0 if plan.free.any() else BOOKED
        elif not idle:
            waiting += 1
            start = float(columns[row, WAITS])
            if kept < manners.kept and start < inf:
                plan.keep(ways.pools[row], ways.devices[row], start)
                kept += 1
            plan.book(ways.pools[row], ways.devices[row], start, float(seconds[row]))
    decided.simpler = judge.simpler
    return decided


def _distrust(plan: Plan, ways: Ways, seconds: Floats) -> None:
    """A job was refused for want of room: most likely where it ends first, as that is where it was sent."""
    there = plan.fits(ways.pools, ways.devices)
    if there.any():
        row = int(np.where(there, seconds, inf).argmin())
        plan.distrust(ways.pools[row], ways.devices[row])


def gathered(catalogue: Catalogue, order: Numbers) -> tuple[Ways, Outlook, Numbers]:
    """Ways of jobs in their order, what they lead to, and the first row of each job, with the end of the last."""
    parts = [catalogue.alone(order), *(catalogue.together(job) for job in catalogue.outgrown(order).tolist())]
    width = max(part.pools.shape[1] for part in parts)
    ways = Ways(
        np.concatenate([part.job for part in parts]),
        np.concatenate([_padded(part.pools, width, -1) for part in parts]),
        np.concatenate([_padded(part.devices, width, 0) for part in parts]),
        np.concatenate([part.mode for part in parts]),
        np.concatenate([part.period for part in parts]),
    )
    place = np.full(int(order.max(initial=-1)) + 1, len(order))
    place[order] = np.arange(len(order))
    if len(parts) > 1:
        ways = ways.of(np.argsort(place[ways.job], kind="stable"))
    first = np.searchsorted(place[ways.job], np.arange(len(order) + 1))
    return ways, catalogue.outlook(ways), first


def features_of(scene: Scene, ways: Ways, outlook: Outlook, plan: Plan) -> Floats:
    """Features of all ways, (ways, features); how long each waits comes later, and how many it delays."""
    columns = np.zeros((len(ways), len(FEATURES)))
    seconds = outlook.begins + outlook.runs
    value = np.append(worthiness(scene), 0.0)
    rated = (value[ways.pools] * ways.devices).sum(axis=1)
    columns[:, BEGINS], columns[:, RUNS] = outlook.begins, outlook.runs
    columns[:, MOVING], columns[:, EXCHANGING] = outlook.moving, outlook.exchanging
    columns[:, PRICE] = plan.shop.prices(ways.job, ways.pools, ways.devices, seconds)
    columns[:, DEVICES] = outlook.devices
    columns[:, CROWD] = rated * seconds
    columns[:, LOST] = (1.0 - advantage(scene, ways, outlook, rated)) * outlook.devices * seconds
    columns[:, SIZE] = scene.jobs.requested[ways.job]
    columns[:, AGE] = -scene.jobs.submitted[ways.job]
    return columns


def crowding(scene: Scene, order: Numbers, manners: Manners) -> Floats:
    """Jobs that a device second delays, over all devices; by place in the order: those behind, and some to come."""
    total = max(int(scene.pools.devices[scene.reachable[scene.pools.domain]].sum()), 1)
    behind = scene.waiting - 1.0 - np.arange(len(order))
    to_come = manners.eager * (len(scene.jobs) - scene.waiting)
    found: Floats = (behind + to_come) / total / scene.jobs.requested[order] ** manners.gang
    return found


def _any(flags: Flags, first: Numbers) -> Flags:
    """Whether any row of a job is true, by place in the order."""
    counts = np.concatenate([[0], np.cumsum(flags)])
    found: Flags = counts[first[1:]] > counts[first[:-1]]
    return found


def _padded(values: Numbers, width: int, filling: int) -> Numbers:
    """Columns up to a width."""
    return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=filling)
