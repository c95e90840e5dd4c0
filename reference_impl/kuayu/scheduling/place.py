"""A placement request in, a placement report out, both as plain dicts: what becomes of the jobs of a state, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from kuayu.refusals import repeated
from kuayu.scheduling.attempts import Decided, Moved, Turn
from kuayu.scheduling.packing import Floor, Gang, Seats, traffic
from kuayu.scheduling.parse import check_state, read_of, scene_of
from kuayu.scheduling.preemption import Elsewhere, Resized, moved, reclaimed
from kuayu.scheduling.scheduler import decide, planned
from kuayu.scheduling.scoring import (
    BEGINS,
    DEVICES,
    EXCHANGING,
    FEATURES,
    MOVING,
    OWN,
    PRICE,
    RUNS,
    WAITS,
    Scorer,
    Weights,
)
from kuayu.scheduling.state import MODES, NOWHERE, PERIODIC, PURCHASES, Scene

LAST = 253_402_300_799.0
"""Seconds from 1970 to the end of the year 9999: no instant is later."""
FIRST = -30_610_224_000.0
"""Those to the year 1000: none is earlier."""
LITTLE = 0.5
"""Seconds, or money, that are not worth a word."""


def instant(seconds: float) -> str:
    """An instant as it is written in answers, to the millisecond."""
    at = datetime.fromtimestamp(min(max(round(seconds, 3), FIRST), LAST), UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Account:
    """Speaks of what was decided.

    Args:
        scene: What was decided on.
        decided: What was decided.
        floor: Nodes, of which those that start have theirs.
    """

    def __init__(self, scene: Scene, decided: Decided, floor: Floor) -> None:
        self._scene, self._decided, self._floor = scene, decided, floor

    def gangs(self, job: int, row: int) -> list[Gang]:
        """Devices of a way, pool by pool."""
        ways, bytes_a_second = self._decided.ways, traffic(self._scene, job)
        pairs = zip(ways.pools[row].tolist(), ways.devices[row].tolist(), strict=True)
        return [Gang(pool, devices, bytes_a_second) for pool, devices in pairs if devices > 0]

    def placement(
        self, gangs: Sequence[Gang], row: int, bought: Sequence[int], seats: Sequence[Seats]
    ) -> dict[str, Any]:
        """A way as a ``JobPlacement``, with its nodes and purchases."""
        mode = int(self._decided.ways.mode[row])
        shares = [self.share(*each) for each in zip(gangs, bought, seats, strict=True)]
        made: dict[str, Any] = {"shares": shares, "split_mode": MODES[mode]}
        if mode == PERIODIC:
            made["sync_period"] = int(self._decided.ways.period[row])
        return made

    def share(self, gang: Gang, bought: int, seats: Seats) -> dict[str, Any]:
        """Devices of a pool as a ``DomainShare``."""
        names, pools = self._scene.names, self._scene.pools
        share: dict[str, Any] = {
            "domain": names.domains[pools.domain[gang.pool]],
            "accelerator": names.accelerators[pools.accelerator[gang.pool]],
            "devices": gang.devices,
        }
        if bought != NOWHERE:
            share["purchase"] = PURCHASES[bought]
        if self._floor.told(gang.pool):
            share["nodes"] = self._floor.wire(gang.pool, seats)
        return share

    def of(self, turn: Turn, most: int) -> dict[str, Any]:
        """Explanation of what becomes of a waiting job."""
        others = self._others(turn, most)
        told: dict[str, Any] = {"alternatives": others, "reason": self._reason(turn, others)}
        if turn.chosen is not None and np.isfinite(turn.features[turn.chosen, WAITS]):
            told["outcome"] = self._outcome(turn, turn.chosen)
        return told

    def change(self, job: int, pool: int, devices: int, reason: str) -> dict[str, Any]:
        """Explanation of what becomes of a running job that goes on elsewhere, or on other devices."""
        row = np.flatnonzero(self._running.job == job)
        change = self._running.change(row, np.array([pool]), np.array([devices]))
        features = np.zeros((1, len(FEATURES)))
        features[:, BEGINS], features[:, MOVING] = change.pause, change.money
        features[:, RUNS], features[:, DEVICES] = self._running.left[row] / change.speed, devices
        begins, ends = float(change.pause[0]), float(change.pause[0] + features[0, RUNS])
        held = np.array([[pool]]), np.array([[devices]]), np.array([ends])
        features[:, PRICE] = self._decided.plan.shop.prices(np.array([job]), *held)
        rate = float(self._scene.held.rate[job - self._scene.waiting] * change.speed[0])
        outcome = {
            "run_at": instant(self._scene.now + begins),
            "finish_at": instant(self._scene.now + ends),
            "communication_cost": float(features[0, MOVING]),
            "price": float(features[0, PRICE]),
            "efficiency": rate / devices,
            "score": float(self._decided.judge.anew(features)[0]),
        }
        return {"alternatives": [], "reason": reason, "outcome": outcome}

    @cached_property
    def _running(self) -> Elsewhere:
        return Elsewhere(self._scene)

    def _others(self, turn: Turn, most: int) -> list[dict[str, Any]]:
        """The next-best that could be carried out beside everything else that was decided."""
        if not most:
            return []
        ways, plan = self._decided.ways, self._decided.plan
        free = np.append(plan.free, np.iinfo(np.int64).max)
        left = plan.shop.largest.copy()
        if turn.starts:
            for pool, devices in zip(ways.pools[turn.row].tolist(), ways.devices[turn.row].tolist(), strict=True):
                free[pool] += devices or 0
        room = np.minimum(free, left)
        fits = (ways.devices[turn.rows] <= room[ways.pools[turn.rows]]).all(axis=1) & np.isfinite(turn.scores)
        found: list[dict[str, Any]] = []
        for place in np.argsort(turn.scores, kind="stable").tolist():
            if len(found) == most:
                break
            if not fits[place] or (turn.starts and place == turn.chosen):
                continue
            row = int(turn.rows[place])
            gangs = self.gangs(turn.job, row)
            seats = self._floor.pack(gangs)
            if all(its is not None for its in seats):
                seconds = float(turn.features[place, BEGINS] + turn.features[place, RUNS])
                bought = [plan.shop.cheapest(turn.job, gang.pool, gang.devices, seconds) for gang in gangs]
                placement = self.placement(gangs, row, bought, [its or () for its in seats])
                outcome = self._outcome(turn, place, now=True)
                found.append({"verb": "start", "placement": placement, "outcome": outcome})
            for gang, its in zip(gangs, seats, strict=True):
                if its and self._floor.told(gang.pool):
                    self._floor.give_back(gang.pool, its)
        return found

    def _outcome(self, turn: Turn, place: int, *, now: bool = False) -> dict[str, Any]:
        """What is expected of a way."""
        features, outlook, row = turn.features[place], self._decided.outlook, turn.rows[place]
        begins = float(features[BEGINS]) + (0.0 if now else float(features[WAITS]))
        return {
            "run_at": instant(self._scene.now + begins),
            "finish_at": instant(self._scene.now + begins + float(features[RUNS])),
            "communication_cost": float(features[MOVING] + features[EXCHANGING]),
            "price": float(features[PRICE]),
            "efficiency": float(outlook.rate[row] / outlook.devices[row]),
            "score": float(turn.scores[place]),
        }

    def _reason(self, turn: Turn, others: Sequence[dict[str, Any]]) -> str:
        """Why, in words."""
        if turn.chosen is None:
            return "No pool that can be reached has devices that it can run on, with its data at hand."
        features = turn.features[turn.chosen]
        where = self._where(turn.row)
        if not turn.starts:
            waits = float(features[WAITS])
            if not np.isfinite(waits):
                return f"It would run best on {where}; nothing says when these will be free."
            what = "and what else could be had now costs more than the wait" if others else "and nothing else is free"
            return f"It waits about {waits:.0f} s for {where}, {what}."
        parts = [f"It starts on {where} and is expected to end in {float(features[BEGINS] + features[RUNS]):.0f} s"]
        if features[BEGINS] > LITTLE:
            parts.append(f"{float(features[BEGINS]):.0f} s of them until its first step")
        money = float(features[MOVING] + features[EXCHANGING])
        if money > 0.0:
            parts.append(f"bandwidth costs {money:.2f}")
        return ", ".join(parts) + ("; the next-best has a higher score." if others else "; nothing else is free.")

    def _where(self, row: int) -> str:
        ways, pools, names = self._decided.ways, self._scene.pools, self._scene.names
        return " and ".join(
            f"{devices} {names.accelerators[pools.accelerator[pool]]} in {names.domains[pools.domain[pool]]}"
            for pool, devices in zip(ways.pools[row].tolist(), ways.devices[row].tolist(), strict=True)
            if devices > 0
        )


METHOD_NAME = "Least weighed completion with reservations"
METHOD_VERSION = "1.2.0"
ALTERNATIVES = 3
"""How many of the next-best are told where a request does not say."""

CHANGES = {
    "resize": "It keeps fewer devices busy than it holds, and others wait for them; it goes on with those it uses.",
    "expand": "Nobody who waits takes these devices; it ends clearly sooner with more of them.",
    "migrate": "Nobody who waits takes these devices; it ends clearly sooner there, its interruption included.",
    "yield": "It makes room: somebody who waits ends sooner on its devices by more than it loses.",
}
"""Why a running job is interrupted."""

Json = dict[str, Any]
Reasons = dict[str, tuple[Moved | Resized, str]]
"""What becomes of running jobs, and why, by name."""


def place(request: Mapping[str, Any], scorer: Scorer | None = None) -> Json:
    """Decide what the jobs of a state do.

    Args:
        request: A valid ``PlacementRequest``.
        scorer: Makes scores of ways; the rule unless it is given.

    Returns:
        A ``PlacementReport``.

    Raises:
        RepeatedName: Names stand twice.
        UnknownName: A name is not there.
    """
    state, shares = request["state"], request.get("shares") or ()
    named = [each["domain"] for each in shares]
    read = read_of(state)
    check_state(
        state,
        [(f"/shares/{position}/domain", name) for position, name in enumerate(named)],
        repeated("/shares", named, "/domain"),
        read,
    )
    scene = scene_of(state, read)
    weights = weights_of(request.get("weights"))
    explained = bool(request.get("explain"))
    decided = decide(scene, scorer, weights, everyone=explained or bool(shares), room=not shares)
    if shares:
        decided = planned(scene, decided, {each["domain"]: float(each["share"]) for each in shares})
    floor = Floor(scene.pools.nodes)
    account = Account(scene, decided, floor)
    decisions, reasons = _starts(scene, decided, floor, account), Reasons()
    if not shares:
        decisions += _changes(scene, decided, state["running"], floor, account, reasons)
    if explained:
        most = request.get("alternatives")
        _explain(scene, decided, decisions, account, reasons, ALTERNATIVES if most is None else int(most))
    return {
        "revision": dict(state["revision"]),
        "method": {
            "name": METHOD_NAME,
            "version": METHOD_VERSION,
            "weights": asdict(weights),
            "fallback": decided.simpler,
        },
        "decisions": decisions,
    }


def weights_of(told: Mapping[str, float] | None) -> Weights:
    """Weights of a request, or the reference's own; they are too where all of them are nought."""
    if not told or not any(told.values()):
        return OWN
    return Weights(*(float(told.get(name) or 0.0) for name in ("period", "communication", "utilisation", "price")))


def _starts(scene: Scene, decided: Decided, floor: Floor, account: Account) -> list[Json]:
    """Decisions for the jobs that start, in the order in which they were made; none that nodes have no room for."""
    turns = [turn for turn in decided.turns if turn.starts]
    gangs = [account.gangs(turn.job, turn.row) for turn in turns]
    seats = iter(floor.pack([gang for its in gangs for gang in its]))
    made = []
    for turn, its in zip(turns, gangs, strict=True):
        given = [next(seats) for _ in its]
        if any(each is None for each in given):
            turn.starts = False
            continue
        bought = decided.plan.bought[turn.job]
        placement = account.placement(its, turn.row, bought, [each or () for each in given])
        made.append({"job": scene.names.jobs[turn.job], "verb": "start", "placement": placement})
    return made


def _changes(
    scene: Scene, decided: Decided, running: list[Json], floor: Floor, account: Account, reasons: Reasons
) -> list[Json]:
    """Decisions for running jobs that give devices back, or go on elsewhere or with more; reasons are added by job."""
    made, resized = [], reclaimed(scene, decided)
    for each in resized:
        its = running[each.job - scene.waiting]["placement"]["shares"][0]
        if (share := _resized(scene, each.job, each.pool, each.devices, its, floor, account)) is not None:
            made.append(_change(scene, each.job, "resize", share))
            reasons[scene.names.jobs[each.job]] = each, CHANGES["resize"]
    for mover in moved(scene, decided, frozenset(each.job for each in resized)):
        its = running[mover.job - scene.waiting]["placement"]["shares"][0]
        if mover.stays:
            share = _resized(scene, mover.job, mover.pool, mover.devices, its, floor, account)
            verb, why = "resize", "expand"
        else:
            gang = Gang(mover.pool, mover.devices, traffic(scene, mover.job))
            (seats,) = floor.pack([gang])
            share = None if seats is None else account.share(gang, mover.bought, seats)
            verb = why = "migrate"
        why = "yield" if mover in decided.yielding else why
        if share is not None:
            made.append(_change(scene, mover.job, verb, share))
            reasons[scene.names.jobs[mover.job]] = mover, CHANGES[why]
    return made


def _resized(
    scene: Scene, job: int, pool: int, devices: int, share: Json, floor: Floor, account: Account
) -> Json | None:
    """The share of a running job with other devices of its pool; none where nodes have no room for it."""
    gang = Gang(pool, devices, traffic(scene, job))
    held = floor.seats(pool, share.get("nodes") or ()) if floor.told(pool) else ()
    seats = floor.resize(gang, held) if held else ()
    if seats is None or (floor.told(pool) and not seats):
        return None
    return account.share(gang, NOWHERE, seats) | {key: share[key] for key in ("purchase",) if key in share}


def _change(scene: Scene, job: int, verb: str, share: Json) -> Json:
    return {"job": scene.names.jobs[job], "verb": verb, "placement": {"shares": [share], "split_mode": "none"}}


def _explain(
    scene: Scene, decided: Decided, decisions: list[Json], account: Account, reasons: Reasons, most: int
) -> None:
    """Say why, of all decisions; all jobs that wait are named."""
    by_job = {decision["job"]: decision for decision in decisions}
    turns = {turn.job: turn for turn in decided.turns}
    for job in range(scene.waiting):
        name = scene.names.jobs[job]
        decision = by_job.get(name)
        if decision is None:
            decision = {"job": name, "verb": "wait"}
            decisions.append(decision)
        turn = turns.get(job) or _nothing(job)
        decision["explanation"] = account.of(turn, most)
    for name, (each, reason) in reasons.items():
        by_job[name]["explanation"] = account.change(each.job, each.pool, each.devices, reason)


def _nothing(job: int) -> Turn:
    """A job that has no way at all."""
    empty = np.zeros(0)
    return Turn(job, empty.astype(np.intp), np.zeros((0, len(FEATURES))), empty.astype(np.bool_), empty)
