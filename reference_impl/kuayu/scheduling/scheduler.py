"""Who starts, and where: jobs in the order of their priority, each by the least score.

1. *Order.* By priority, then who has waited too long, then by what a job holds: small ones first makes the mean period
   short (W. E. Smith, "Various optimizers for single-stage production", Naval Research Logistics Quarterly 3, 1956);
   whoever has waited several times its own length goes before, so that large jobs come to their turn.
2. *Attempts.* Each job takes its best candidate; where it has to wait for that, it reserves or books it, unless running
   jobs are preempted for it.
3. *Shares.* Where an allocation plan says so, each domain gives its part of the compute of what starts now. Compute is
   devices times their index for the job. Large jobs go first, each to the domain that is furthest behind its share, and
   small ones even out what is left (R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied
   Mathematics 17, 1969). Where a domain has no more room, the others stop at its level.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from kuayu.scheduling.attempts import Decided, Turn
from kuayu.scheduling.availability import EPOCH, Plan, ends, trusted
from kuayu.scheduling.candidates import Catalogue, Outlook, Ways, advantage, worthiness
from kuayu.scheduling.preemption import Yielding
from kuayu.scheduling.pricing import Shop
from kuayu.scheduling.scoring import (
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
    Judge,
    Rule,
    Scorer,
    Weights,
)
from kuayu.scheduling.state import NONE, Flags, Floats, Numbers, Scene


@dataclass(frozen=True, slots=True)
class Manners:
    """How jobs take turns.

    Attributes:
        area: Exponent of the devices in what a job is ordered by; that of its seconds is one.
        patience: A job that has waited so many times its own length goes before others.
        least: Seconds that its length counts at least.
        kept: Jobs that wait whose devices nobody else may hold when they come free.
        eager: Part of the running jobs that count as if they waited: as many will come.
        gang: Exponent of the devices by which less is made of those whom a large job delays: it delays many wherever it
            goes, and would go where devices are slow for ever.
    """

    area: float = 0.25
    patience: float = 4.0
    least: float = 600.0
    kept: int = 8
    eager: float = 0.05
    gang: float = 0.5


def ordered(scene: Scene, manners: Manners) -> Numbers:
    """Numbers of the waiting jobs in the order in which they take turns."""
    jobs, waiting = scene.jobs, np.arange(scene.waiting)
    best = np.maximum(scene.worth[waiting].max(axis=1, initial=0.0), 1e-9)
    asked = jobs.requested[waiting].astype(np.float64)
    # work is told in seconds of busy devices, whose number is not known before they were measured
    seconds = jobs.left[waiting] / np.maximum(asked * jobs.used[waiting], 1e-9) / best
    overdue = -jobs.submitted[waiting] > manners.patience * np.maximum(seconds, manners.least)
    key = np.where(overdue, jobs.submitted[waiting], np.maximum(seconds, 1.0) * asked**manners.area)
    return np.lexsort((waiting, key, ~overdue, -jobs.priority[waiting]))


LOOKED_AT = 400
"""Jobs that may start in an epoch: the first in order."""
BOOKED = 50
"""Jobs without room that are looked at all the same, since those behind them see where they wait."""


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


CLOSE = 0.005
"""Relative error of shares that is left alone."""


def planned(scene: Scene, decided: Decided, shares: Mapping[str, float]) -> Decided:
    """The same jobs, of which others start and elsewhere: so that domains keep to their shares.

    Args:
        scene: What is decided on.
        decided: What would be decided without a plan.
        shares: Part of the compute by name of the domain; domains that are not named give none.
    """
    share = np.array([shares.get(name, 0.0) for name in scene.names.domains])
    plan = Plan(scene, trusted(scene), ends(scene), Shop(scene))
    again = Decided(decided.ways, decided.outlook, plan, decided.judge, [], decided.simpler)
    given = np.zeros(scene.domains)
    level = _level(scene, plan, share)
    size = {turn.job: _size(decided, turn) for turn in decided.turns}
    for turn in sorted(decided.turns, key=lambda each: -size[each.job]):
        again.turns.append(_turn(scene, again, turn, share, given, level))
    _even_out(scene, again, share, given)
    return again


def compute(scene: Scene, decided: Decided, row: int) -> Floats:
    """Compute that a way takes of each domain."""
    ways = decided.ways
    there = ways.pools[row] >= 0
    pools = ways.pools[row][there]
    worth = scene.worth[ways.job[row], scene.pools.accelerator[pools]]
    found: Floats = np.bincount(scene.pools.domain[pools], worth * ways.devices[row][there], scene.domains).astype(
        np.float64
    )
    return found


def _size(decided: Decided, turn: Turn) -> float:
    return float((decided.outlook.worth[turn.rows] * decided.outlook.devices[turn.rows]).max(initial=0.0))


def _level(scene: Scene, plan: Plan, share: Floats) -> float:
    """Compute that can start at most if all domains with a share keep to it."""
    waiting = scene.worth[: scene.waiting]
    mean = waiting.sum(axis=0) / np.maximum((waiting > 0.0).sum(axis=0), 1)
    room = np.bincount(scene.pools.domain, plan.free * mean[scene.pools.accelerator], scene.domains)
    named = share > 0.0
    return float((room[named] / share[named]).min()) if named.any() else 0.0


def _turn(scene: Scene, again: Decided, turn: Turn, share: Floats, given: Floats, level: float) -> Turn:
    """A job starts inside the domain that is furthest behind, if its share has room for it."""
    ways, plan = again.ways, again.plan
    its = Turn(turn.job, turn.rows, turn.features, turn.now, turn.scores, turn.chosen)
    rows = turn.rows
    if not len(rows):
        return its
    seconds = again.outlook.begins[rows] + again.outlook.runs[rows]
    now = plan.admits(ways.pools[rows], ways.devices[rows], seconds) & np.isfinite(turn.scores)
    asked = scene.jobs.requested[turn.job]
    best, least = None, np.inf
    for place in np.flatnonzero(now & (ways.mode[rows] == NONE)).tolist():
        row = int(rows[place])
        domain = int(scene.pools.domain[ways.pools[row, 0]])
        if share[domain] <= 0.0:
            continue
        reached = float(given[domain] + compute(scene, again, row)[domain]) / share[domain]
        # among sizes of a job in a domain, what it asked for
        rank = reached + (0.0 if ways.devices[row].sum() == asked else level)
        if reached <= level * (1.0 + CLOSE) and rank < least:
            best, least = place, rank
    if best is not None:
        its.chosen, its.starts = best, True
        row = int(rows[best])
        plan.take(turn.job, ways.pools[row], ways.devices[row], float(seconds[best]))
        given += compute(scene, again, row)
    return its


def _even_out(scene: Scene, again: Decided, share: Floats, given: Floats) -> None:
    """Those that make shares uneven do not start after all, one by one, as long as that brings them nearer."""
    starts = [turn for turn in again.turns if turn.starts]
    takes = {turn.job: compute(scene, again, turn.row) for turn in starts}
    while starts and _error(given, share) > CLOSE:
        errors = [_error(given - takes[turn.job], share) for turn in starts]
        place = int(np.argmin(errors))
        if errors[place] >= _error(given, share):
            return
        turn = starts.pop(place)
        given -= takes[turn.job]
        turn.starts = False
        again.plan.put_back(turn.job, again.ways.pools[turn.row], again.ways.devices[turn.row])


def _error(given: Floats, share: Floats) -> float:
    """Largest relative error of a share; one where nothing is given."""
    total = given.sum()
    if total <= 0.0:
        return 1.0
    named = share > 0.0
    return float((np.abs(given[named] / total - share[named]) / share[named]).max(initial=0.0))
