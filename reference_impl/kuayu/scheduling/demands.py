"""What an allocation plan has to serve: parts of a forecast and jobs that wait, in groups that can be served alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kuayu.scheduling.scene import NONE, NOWHERE, Counts, Flags, Floats, Scene

BITS_A_SECOND = 1e7
"""Data that follow a reference device of forecast work elsewhere, in bit/s: some twenty gigabytes for five hours."""
MOST = 1e12
"""Reference devices beyond which a forecast is not counted."""
MANY = 5_000
"""Groups times pools beyond which it is not looked at where demand comes from that may be served in several places."""


@dataclass(frozen=True, slots=True)
class Demands:
    """Groups of demand, by row.

    Attributes:
        amount: Reference devices that are asked for, on average over the horizon.
        pools: Whether a pool can serve it, (groups, pools).
        devices: Devices of a pool that serve one reference device, (groups, pools); nought where it cannot.
        index: Compute index of a pool for it, (groups, pools); nought where it cannot.
        money: For communication, of a reference device that is served by a pool, (groups, pools).
        interruptible: Whether it may be taken off at any time.
        headroom: Whether it is what comes in one case of ten beyond what is expected.
    """

    amount: Floats
    pools: Flags
    devices: Floats
    index: Floats
    money: Floats
    interruptible: Flags
    headroom: Flags

    @classmethod
    def of(cls, rows: Sequence["Demand"], pools: int) -> "Demands":
        """Rows that can be served alike put together."""
        each = _grouped(rows, apart=True)
        if len(each) * pools > MANY:
            each = _grouped(rows, apart=False)

        def mean(name: str) -> Floats:
            found = [
                sum(row.amount * getattr(row, name) for row in rows) / sum(row.amount for row in rows) for rows in each
            ]
            return np.array(found, dtype=np.float64).reshape(len(each), pools)

        devices = mean("devices")
        return cls(
            np.array([sum(row.amount for row in rows) for rows in each], dtype=np.float64),
            devices > 0.0,
            devices,
            mean("index"),
            mean("money"),
            np.array([rows[0].interruptible for rows in each], dtype=np.bool_),
            np.array([rows[0].headroom for rows in each], dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True)
class Demand:
    """A piece of demand; arrays are by pool, and nought where the pool cannot serve it.

    Attributes:
        amount: Reference devices that are asked for.
        devices: Devices that serve one of them.
        index: Compute index.
        money: For communication, of a reference device that is served there.
        interruptible: Whether it may be taken off at any time.
        headroom: Whether it goes beyond what is expected.
        profile: What index it goes by.
        place: Where its data are, in whatever way that is told.
    """

    amount: float
    devices: Floats
    index: Floats
    money: Floats
    interruptible: bool
    headroom: bool
    profile: object
    place: object


def _grouped(rows: Sequence[Demand], *, apart: bool) -> list[list[Demand]]:
    """Rows that can be served alike and, where they are to be kept apart, have their data at the same place."""
    groups: dict[object, list[Demand]] = {}
    for row in rows:
        if row.amount > 0.0:
            able = (row.devices > 0.0).tobytes()
            key = (able, row.interruptible, row.headroom, row.profile, row.place if apart else None)
            groups.setdefault(key, []).append(row)
    return list(groups.values())


def demands(scene: Scene, state: Mapping[str, Any], forecast: Sequence[Mapping[str, Any]], horizon: float) -> Demands:
    """All that is to be served.

    Args:
        scene: What there is.
        state: The same as it stands in the request.
        forecast: A list of ``DemandForecast``, whose domains are known.
        horizon: Seconds.
    """
    rows = [*_waiting(scene, state["waiting"], horizon), *_expected(scene, state, forecast, horizon)]
    return Demands.of(rows, len(scene.pools.free))


def _waiting(scene: Scene, entries: Sequence[Mapping[str, Any]], horizon: float) -> Iterable[Demand]:
    """Jobs hold the devices that they ask for until they end, which is the sooner the faster these are.

    Services that answer requests, and jobs that have a deadline or no checkpoint, are not to be interrupted.
    """
    jobs, pools = scene.jobs, scene.pools
    alone = _reachable(scene) & (pools.free > 0)
    for job, entry in enumerate(entries):
        asked = int(jobs.requested[job])
        enough = pools.free >= (jobs.minimum[job] if jobs.modes[job, NONE] and not jobs.modes[job, 1:].any() else 1)
        staged = np.isfinite(scene.staging[0][job, pools.domain])
        index = np.where(alone & enough & staged, scene.worth[job, pools.accelerator], 0.0)
        busy = asked * float(jobs.used[job])
        seconds = float(jobs.left[job]) / busy if busy > 0.0 else 0.0
        part = min(1.0, seconds / horizon)
        if part <= 0.0:
            continue
        with np.errstate(divide="ignore"):
            held = np.where(
                index > 0.0, np.minimum(1.0, seconds / np.where(index > 0.0, index, 1.0) / horizon) / part, 0.0
            )
        money = np.where(staged, scene.staging[1][job, pools.domain], 0.0) / (asked * part)
        spec = entry["spec"]
        may = bool(jobs.checkpoint[job] > 0.0) and "deadline" not in spec and spec.get("kind") != "serving"
        here = (scene.staging[1][job] <= 0.0).tobytes()
        yield Demand(asked * part, held, index, money, may, headroom=False, profile=int(jobs.profile[job]), place=here)


def _expected(
    scene: Scene, state: Mapping[str, Any], forecast: Sequence[Mapping[str, Any]], horizon: float
) -> Iterable[Demand]:
    """Forecast work in its parts: what may move or not, be interrupted or not, and what comes beyond the expected."""
    numbers = {name: number for number, name in enumerate(scene.names.domains)}
    profiles = _profiles(state)
    for each in forecast:
        home = numbers[each["domain"]]
        index, money = _of_profile(scene, profiles.get(each["profile"], NOWHERE), home, horizon)
        stays = scene.pools.domain == home
        expected, high = min(each["expected"], MOST), min(each["high"], MOST)
        for amount, headroom in ((expected, False), (max(high - expected, 0.0), True)):
            for part, moves in ((each["movable"], True), (1.0 - each["movable"], False)):
                able = index if moves else np.where(stays, index, 0.0)
                devices = np.where(able > 0.0, 1.0 / np.where(able > 0.0, able, 1.0), 0.0)
                for share, may in ((each["interruptible"], True), (1.0 - each["interruptible"], False)):
                    # what is beyond the expected has to be there when it comes, so that none of it is bought spot
                    calm = may and not headroom
                    yield Demand(amount * part * share, devices, able, money, calm, headroom, each["profile"], home)


def _of_profile(scene: Scene, profile: int, home: int, horizon: float) -> tuple[Floats, Floats]:
    """Index of each pool for a profile, and money for a reference device whose data come from home."""
    pools = scene.pools
    if profile == NOWHERE:
        return np.zeros(len(pools.free)), np.zeros(len(pools.free))
    money = scene.paths.tariff[home, pools.domain] * BITS_A_SECOND * horizon
    able = _reachable(scene) & np.isfinite(money)
    return np.where(able, scene.index[profile, pools.accelerator], 0.0), np.where(able, money, 0.0)


def _reachable(scene: Scene) -> Flags:
    return scene.reachable[scene.pools.domain]


def _profiles(state: Mapping[str, Any]) -> dict[str, int]:
    """Rows of the index by name of the profile, in the order in which accelerators name them."""
    found: dict[str, int] = {}
    for each in state["accelerators"]:
        for value in each["indices"]:
            found.setdefault(value["profile"], len(found))
    return found


def room(scene: Scene) -> Counts:
    """Devices by pool that can be had at all."""
    free: Counts = np.where(_reachable(scene), np.minimum(scene.pools.free, scene.pools.devices), 0)
    return free
