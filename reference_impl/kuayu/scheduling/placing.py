"""What to do with the jobs of a state: a placement request in, a placement report out, both as plain dicts."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from kuayu.refusals import repeated
from kuayu.scheduling.choosing import FEATURES, OWN, Scorer, Weights
from kuayu.scheduling.deciding import Decided, decide
from kuayu.scheduling.explaining import Account
from kuayu.scheduling.moving import moved
from kuayu.scheduling.names import check_state
from kuayu.scheduling.packing import Floor, Gang, traffic
from kuayu.scheduling.reading import scene_of
from kuayu.scheduling.reading_jobs import read_of
from kuayu.scheduling.reclaiming import Resized, reclaimed
from kuayu.scheduling.room import Moved
from kuayu.scheduling.scene import NOWHERE, Scene
from kuayu.scheduling.sharing import planned
from kuayu.scheduling.turns import Turn

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
