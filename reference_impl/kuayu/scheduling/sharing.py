"""Starts that keep to planned shares: each domain gives its part of the compute of what starts now.

Compute is devices times their index for the job. Large jobs go first, each to the domain that is furthest behind its
share, and small ones even out what is left (R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on
Applied Mathematics 17, 1969). Where a domain has no more room, the others stop at its level.
"""

from collections.abc import Mapping

import numpy as np

from kuayu.scheduling.buying import Shop
from kuayu.scheduling.deciding import Decided
from kuayu.scheduling.planning import Plan
from kuayu.scheduling.running import ends, trusted
from kuayu.scheduling.scene import NONE, Floats, Scene
from kuayu.scheduling.turns import Turn

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
