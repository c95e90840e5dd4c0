"""Why a decision is as it is: what is expected of it and of the next-best, and in words."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from kuayu.scheduling.choosing import BEGINS, DEVICES, EXCHANGING, FEATURES, MOVING, PRICE, RUNS, WAITS
from kuayu.scheduling.deciding import Decided
from kuayu.scheduling.elsewhere import Elsewhere
from kuayu.scheduling.packing import Floor, Gang, traffic
from kuayu.scheduling.scene import MODES, NOWHERE, PERIODIC, PURCHASES, Scene
from kuayu.scheduling.seating import Seats
from kuayu.scheduling.turns import Turn

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
