"""Which capacity to use over a horizon and how to buy it: an integer programme over pools, purchases and demands.

1. Demand is parts of a forecast and jobs that wait, in groups that can be served alike. It is served before anything
   else counts.
2. What is reserved is used first, since it is paid for in any case. Spot capacity serves what may be interrupted, at a
   price that counts what is done again; what was forecast beyond the expected is served by devices on demand, or by
   reserved ones.
3. Among equals, all pools are used to the same degree, so that shares can be kept to.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array

from kuayu.scheduling.parse import snapshot_of
from kuayu.scheduling.pricing import BETWEEN, HOUR
from kuayu.scheduling.state import (
    NONE,
    NOWHERE,
    ON_DEMAND,
    PURCHASES,
    RESERVED,
    SPOT,
    Counts,
    Flags,
    Floats,
    Numbers,
    Offer,
    Snapshot,
)
from kuayu.scheduling.throughput import STARTING
from kuayu.scheduling.validation import check_state

if TYPE_CHECKING:
    from kuayu_schemas import documents

BITS_A_SECOND = 1e7
"""Data that follow a reference device of forecast work elsewhere, in bit/s: some twenty gigabytes for five hours."""
MAX_DEVICES = 1e12
"""Reference devices beyond which a forecast is not counted."""
MAX_GROUPED = 5_000
"""Groups times pools beyond which it is not looked at where demand comes from that may be served in several places."""


@dataclass(frozen=True, slots=True)
class Demands:
    """Groups of demand, by row.

    Attributes:
        amount: Reference devices that are asked for, on average over the horizon.
        pools: Whether a pool can serve it, (groups, pools).
        devices: Devices of a pool that serve one reference device, (groups, pools); zero where it cannot.
        index: Compute index of a pool for it, (groups, pools); zero where it cannot.
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
        groups = _grouped(rows, apart=True)
        if len(groups) * pools > MAX_GROUPED:
            groups = _grouped(rows, apart=False)

        def mean(name: str) -> Floats:
            means = [
                sum(row.amount * getattr(row, name) for row in rows) / sum(row.amount for row in rows)
                for rows in groups
            ]
            return np.array(means, dtype=np.float64).reshape(len(groups), pools)

        devices = mean("devices")
        return cls(
            np.array([sum(row.amount for row in rows) for rows in groups], dtype=np.float64),
            devices > 0.0,
            devices,
            mean("index"),
            mean("money"),
            np.array([rows[0].interruptible for rows in groups], dtype=np.bool_),
            np.array([rows[0].headroom for rows in groups], dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True)
class Demand:
    """A piece of demand; arrays are by pool, and zero where the pool cannot serve it.

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


def demands(
    snapshot: Snapshot,
    state: "documents.SchedulingState",
    forecast: "Sequence[documents.DemandForecast]",
    horizon: float,
) -> Demands:
    """All that is to be served.

    Args:
        snapshot: What there is.
        state: The same as it stands in the request.
        forecast: Of domains that are known.
        horizon: Seconds.
    """
    rows = [*_waiting(snapshot, state["waiting"], horizon), *_expected(snapshot, state, forecast, horizon)]
    return Demands.of(rows, len(snapshot.pools.free))


def _waiting(snapshot: Snapshot, entries: "Sequence[documents.WaitingJob]", horizon: float) -> Iterable[Demand]:
    """Jobs hold the devices that they ask for until they end, which is the sooner the faster these are.

    Services that answer requests, and jobs that have a deadline or no checkpoint, are not to be interrupted.
    """
    jobs, pools = snapshot.jobs, snapshot.pools
    alone = _reachable(snapshot) & (pools.free > 0)
    for job, entry in enumerate(entries):
        requested = int(jobs.requested[job])
        enough = pools.free >= (jobs.minimum[job] if jobs.modes[job, NONE] and not jobs.modes[job, 1:].any() else 1)
        staged = np.isfinite(snapshot.staging[0][job, pools.domain])
        index = np.where(alone & enough & staged, snapshot.job_index[job, pools.accelerator], 0.0)
        busy = requested * float(jobs.used[job])
        seconds = float(jobs.left[job]) / busy if busy > 0.0 else 0.0
        part = min(1.0, seconds / horizon)
        if part <= 0.0:
            continue
        with np.errstate(divide="ignore"):
            devices = np.where(
                index > 0.0, np.minimum(1.0, seconds / np.where(index > 0.0, index, 1.0) / horizon) / part, 0.0
            )
        money = np.where(staged, snapshot.staging[1][job, pools.domain], 0.0) / (requested * part)
        spec = entry["spec"]
        may = bool(jobs.checkpoint[job] > 0.0) and "deadline" not in spec and spec.get("kind") != "serving"
        local = (snapshot.staging[1][job] <= 0.0).tobytes()
        yield Demand(
            requested * part, devices, index, money, may, headroom=False, profile=int(jobs.profile[job]), place=local
        )


def _expected(
    snapshot: Snapshot,
    state: "documents.SchedulingState",
    forecast: "Sequence[documents.DemandForecast]",
    horizon: float,
) -> Iterable[Demand]:
    """Forecast work in its parts: what may move or not, be interrupted or not, and what comes beyond the expected."""
    numbers = {name: number for number, name in enumerate(snapshot.names.domains)}
    profiles = _profiles(state)
    for entry in forecast:
        home = numbers[entry["domain"]]
        index, money = _of_profile(snapshot, profiles.get(entry["profile"], NOWHERE), home, horizon)
        stays = snapshot.pools.domain == home
        expected, high = min(entry["expected"], MAX_DEVICES), min(entry["high"], MAX_DEVICES)
        for amount, headroom in ((expected, False), (max(high - expected, 0.0), True)):
            for part, moves in ((entry["movable"], True), (1.0 - entry["movable"], False)):
                able = index if moves else np.where(stays, index, 0.0)
                devices = np.where(able > 0.0, 1.0 / np.where(able > 0.0, able, 1.0), 0.0)
                for share, may in ((entry["interruptible"], True), (1.0 - entry["interruptible"], False)):
                    # what is beyond the expected has to be there when it comes, so that none of it is bought spot
                    calm = may and not headroom
                    yield Demand(amount * part * share, devices, able, money, calm, headroom, entry["profile"], home)


def _of_profile(snapshot: Snapshot, profile: int, home: int, horizon: float) -> tuple[Floats, Floats]:
    """Index of each pool for a profile, and money for a reference device whose data come from home."""
    pools = snapshot.pools
    if profile == NOWHERE:
        return np.zeros(len(pools.free)), np.zeros(len(pools.free))
    money = snapshot.paths.tariff[home, pools.domain] * BITS_A_SECOND * horizon
    able = _reachable(snapshot) & np.isfinite(money)
    return np.where(able, snapshot.index[profile, pools.accelerator], 0.0), np.where(able, money, 0.0)


def _reachable(snapshot: Snapshot) -> Flags:
    return snapshot.reachable[snapshot.pools.domain]


def _profiles(state: "documents.SchedulingState") -> dict[str, int]:
    """Rows of the index by name of the profile, in the order in which accelerators name them."""
    numbers: dict[str, int] = {}
    for accelerator in state["accelerators"]:
        for value in accelerator["indices"]:
            numbers.setdefault(value["profile"], len(numbers))
    return numbers


def pool_capacity(snapshot: Snapshot) -> Counts:
    """Devices by pool that can be had at all."""
    free: Counts = np.where(_reachable(snapshot), np.minimum(snapshot.pools.free, snapshot.pools.devices), 0)
    return free


NODES = 200
"""Branches that the solver may look at, rather than seconds, so that the answer is always the same."""
GAP = 1e-4
"""Share of the cost by which the solver may be off."""
UNMET = 100.0
"""What a reference device that is not served weighs, in that of the dearest one that could be."""
EVEN = 1e-4
"""What the fullest pool weighs, in the cost of serving everything at the dearest."""
MIN_AMOUNT = 1e-9
"""Reference devices; by fewer nothing is divided, as the quotient might be more than a float holds."""
BEYOND = 1e15
"""Devices for a reference device, or money for one, beyond which nothing is served."""
_HAIR = 1e-5


@dataclass(frozen=True, slots=True)
class Goods:
    """What can be bought, by row.

    Attributes:
        pool: Number of the pool.
        purchase: Number of the way of buying.
        devices: How many at most.
        price: Money for a device and an hour.
        effective: The same as it decides.
    """

    pool: Numbers
    purchase: Numbers
    devices: Counts
    price: Floats
    effective: Floats


def solve(
    demand: Demands, goods: Goods, capacity: Counts, costs: tuple[Floats, Floats]
) -> tuple[Counts, float, Floats]:
    """Serve as much as can be served, at the least cost.

    Args:
        demand: What is to be served.
        goods: What can be bought.
        capacity: Devices by pool, in whatever way they are bought.
        costs: Of a device that is bought, by good; and of a reference device that is served, (demands, pools).

    Returns:
        Devices by good; reference devices that are not served; and mean compute index for what is served, by good.
    """
    group, good = np.nonzero(_serves(demand, goods))
    pool = goods.pool[good]
    devices, weight = demand.devices[group, pool], costs[1][group, pool]
    with np.errstate(over="ignore", invalid="ignore"):
        sane = (devices < BEYOND) & (costs[0][good] * devices + weight < BEYOND)
    group, good, pool, devices, weight = group[sane], good[sane], pool[sane], devices[sane], weight[sane]
    goods_count, groups, served = len(goods.pool), len(demand.amount), len(group)
    nothing = np.zeros(goods_count, dtype=np.int64), float(demand.amount.sum()), np.zeros(goods_count)
    if not served:
        return nothing
    # what all devices together cannot serve is left out, so that figures stay of one size
    most = np.divide(capacity, demand.devices, out=np.zeros(demand.devices.shape), where=demand.pools).sum(axis=1)
    amount = np.minimum(demand.amount, most)
    beyond = float((demand.amount - amount).sum())
    dearest = float((costs[0][good] * devices + weight).max()) or 1.0
    total = float(amount.sum())
    total = total if total > MIN_AMOUNT else 1.0
    # columns: what serves whom, what is unmet, devices bought, how full the fullest pool is
    cost = np.concatenate([
        weight / dearest,
        np.full(groups, UNMET),
        np.minimum(costs[0], BEYOND) / dearest + _HAIR * EVEN,
        [EVEN * total],
    ]) / total  # fmt: skip
    columns = np.arange(served)
    bought = served + groups + np.arange(goods_count)
    width = served + groups + goods_count + 1
    met = _matrix(
        [np.ones(served), np.ones(groups)], [group, np.arange(groups)], [columns, served + np.arange(groups)],
        (groups, width),
    )  # fmt: skip
    covered = _matrix(
        [devices, -np.ones(goods_count)], [good, np.arange(goods_count)], [columns, bought], (goods_count, width)
    )
    pools = np.arange(len(capacity))
    within = _matrix(
        [np.ones(goods_count), -capacity.astype(np.float64)], [goods.pool, pools],
        [bought, np.full(len(capacity), width - 1)], (len(capacity), width),
    )  # fmt: skip
    upper = np.concatenate([np.full(served, np.inf), amount, np.minimum(goods.devices, capacity[goods.pool]), [1.0]])
    whole = np.zeros(width)
    whole[bought] = 1.0
    constraints = [
        LinearConstraint(met, amount, amount),
        LinearConstraint(covered, -np.inf, 0.0),
        LinearConstraint(within, -np.inf, 0.0),
    ]
    limits = {"node_limit": NODES, "mip_rel_gap": GAP}
    solved = milp(cost, integrality=whole, bounds=Bounds(0.0, upper), constraints=constraints, options=limits)
    if solved.x is None:  # no whole numbers were found; without them there is always an answer
        solved = milp(cost, bounds=Bounds(0.0, upper), constraints=constraints)
    if solved.x is None:  # figures lie so far apart that the solver cannot tell them
        return nothing
    serving, unmet = np.maximum(solved.x[:served], 0.0), float(solved.x[served : served + groups].sum())
    busy: Floats = np.bincount(good, weights=serving * devices, minlength=goods_count).astype(np.float64)
    compute = np.bincount(good, weights=serving * devices * demand.index[group, pool], minlength=goods_count)
    index = np.divide(compute, busy, out=np.zeros(goods_count), where=busy > 0.0)
    return _whole(busy, goods, capacity), beyond + (unmet if unmet > _HAIR * total else 0.0), index


def _serves(demand: Demands, goods: Goods) -> Flags:
    """Whether a good may serve a demand, (demands, goods)."""
    able = demand.pools[:, goods.pool] & (goods.devices > 0)
    calm = (goods.purchase != SPOT) | demand.interruptible[:, None]
    allowed = np.isin(goods.purchase, (RESERVED, ON_DEMAND)) | ~demand.headroom[:, None]
    serves: Flags = able & calm & allowed
    return serves


def _whole(busy: Floats, goods: Goods, capacity: Counts) -> Counts:
    """Whole devices, no more than serve somebody, and of no pool more than there are."""
    devices = np.maximum(np.ceil(busy - _HAIR), 0.0).astype(np.int64)
    over = np.bincount(goods.pool, weights=devices, minlength=len(capacity)).astype(np.int64) - capacity
    for pool in np.flatnonzero(over > 0):
        own = np.flatnonzero(goods.pool == pool)
        # those of which least is used were rounded up most
        least = own[np.argsort(busy[own] - devices[own], kind="stable")][: over[pool]]
        devices[least] -= 1
    return devices


def _matrix(values: list[Floats], rows: list[Numbers], columns: list[Numbers], shape: tuple[int, int]) -> csr_array:
    return csr_array(coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape))


METHOD_NAME = "Integer programme over pools, purchases and demands"
METHOD_VERSION = "1.0.0"

MAX_PRICE = 1e300
"""Larger sums of money are not stated: JSON knows no infinity."""
DEAR, LONG = 1e15, 1e12
"""Money for a device and an hour, and seconds, beyond which nothing is weighed."""

WEIGHTS: "documents.ObjectiveWeights" = {"price": 1.0, "communication": 1.0, "utilisation": 0.1}
"""What counts where a request does not say."""


def plan(request: "documents.AllocationPlanRequest") -> "documents.AllocationPlan":
    """Plan which capacity to use.

    A job that waits counts with the devices that it asks for, as long as it is expected to hold them within the
    horizon. Devices that running jobs hold are not planned for anybody else.

    Returns:
        A plan that follows from the request and from nothing else. The price of a use is devices × price × hours, for
        reserved devices as well.

    Raises:
        RepeatedName: Names of the state stand twice.
        UnknownName: The state names what it does not hold, or a forecast is for a domain that it does not hold.
    """
    state, horizon = request["state"], float(request["horizon"])
    forecast = request.get("forecast") or ()
    check_state(state, [(f"/forecast/{number}/domain", entry["domain"]) for number, entry in enumerate(forecast)])
    snapshot = snapshot_of(state)
    demand = demands(snapshot, state, forecast, min(horizon, LONG))
    goods = _goods(snapshot)
    weights: documents.ObjectiveWeights = {**(request.get("weights") or WEIGHTS)}
    bought, unmet, index = solve(
        demand, goods, pool_capacity(snapshot), _costs(demand, goods, weights, min(horizon, LONG))
    )
    uses: list[documents.CapacityUse] = [
        {
            "domain": snapshot.names.domains[snapshot.pools.domain[pool]],
            "accelerator": snapshot.names.accelerators[snapshot.pools.accelerator[pool]],
            "purchase": PURCHASES[purchase],
            "devices": devices,
            "price": min(devices * price * horizon / HOUR, MAX_PRICE),
        }
        for pool, purchase, price, devices in zip(
            goods.pool.tolist(), goods.purchase.tolist(), goods.price.tolist(), bought.tolist(), strict=True
        )
        if devices
    ]
    return {
        "revision": state["revision"],
        "method": {"name": METHOD_NAME, "version": METHOD_VERSION, "weights": weights},
        "uses": uses,
        "shares": _shares(snapshot, goods, bought * index),
        "unmet": unmet,
        "price": min(float(sum(use["price"] for use in uses)), MAX_PRICE),
    }


def _goods(snapshot: Snapshot) -> Goods:
    """All offers; a pool without any is had on demand for nothing."""
    rows: list[tuple[int, Offer]] = []
    for pool, offers in enumerate(snapshot.pools.offers):
        free = int(snapshot.pools.free[pool])
        rows.extend((pool, offer) for offer in offers or (Offer(ON_DEMAND, free, 0.0),))
    again = (STARTING + BETWEEN / 2.0) / HOUR
    return Goods(
        np.array([pool for pool, _ in rows], dtype=np.intp),
        np.array([offer.purchase for _, offer in rows], dtype=np.intp),
        np.array([offer.devices for _, offer in rows], dtype=np.int64),
        np.array([offer.price for _, offer in rows], dtype=np.float64),
        np.array([_effective(offer, again) for _, offer in rows], dtype=np.float64),
    )


def _effective(offer: Offer, again: float) -> float:
    """Money for a device and an hour that decides: none for what is paid for in any case, more where work is lost."""
    if offer.purchase == RESERVED:
        return 0.0
    price = min(offer.price, DEAR)
    return min(price * (1.0 + offer.interruption * again), DEAR) if offer.purchase == SPOT else price


def _costs(
    demand: Demands, goods: Goods, weights: "documents.ObjectiveWeights", horizon: float
) -> tuple[Floats, Floats]:
    """What a device that is bought weighs, by good, and what a reference device weighs, by demand and pool.

    Money counts as money, whatever for. The time that work takes, and devices that are not used for what they are best
    at, count in what devices cost on average, or as money where they cost nothing.
    """
    period, communication = weights.get("period") or 0.0, weights.get("communication") or 0.0
    utilisation, price = weights.get("utilisation") or 0.0, weights.get("price") or 0.0
    hours = horizon / HOUR
    usual = float(np.minimum(goods.price, DEAR).mean()) * hours if goods.price.any() else hours
    best = np.where(demand.pools, demand.index, 0.0).max(axis=0, initial=0.0)
    unsuited = demand.devices * np.where(demand.pools, best - demand.index, 0.0)
    served = communication * demand.money + usual * (period * demand.devices + utilisation * unsuited)
    return price * goods.effective * hours, served


def _shares(snapshot: Snapshot, goods: Goods, compute: Floats) -> "list[documents.PlannedShare]":
    by_domain = np.bincount(snapshot.pools.domain[goods.pool], weights=compute, minlength=snapshot.domains)
    total = float(by_domain.sum())
    return [
        {"domain": name, "share": min(share / total, 1.0)}
        for name, share in zip(snapshot.names.domains, by_domain.tolist(), strict=True)
        if share > 0.0
    ]
