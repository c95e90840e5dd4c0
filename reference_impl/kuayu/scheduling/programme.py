"""The integer programme of allocation plans: the least cost at which demands are served by devices that are bought."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array

from kuayu.scheduling.demands import Demands
from kuayu.scheduling.scene import ON_DEMAND, RESERVED, SPOT, Counts, Flags, Floats, Numbers

NODES = 200
"""Branches that the solver may look at, rather than seconds, so that the answer is always the same."""
GAP = 1e-4
"""Share of the cost by which the solver may be off."""
UNMET = 100.0
"""What a reference device that is not served weighs, in that of the dearest one that could be."""
EVEN = 1e-4
"""What the fullest pool weighs, in the cost of serving everything at the dearest."""
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


def solve(asked: Demands, goods: Goods, room: Counts, costs: tuple[Floats, Floats]) -> tuple[Counts, float, Floats]:
    """Serve as much as can be served, at the least cost.

    Args:
        asked: Demands.
        goods: What can be bought.
        room: Devices by pool, in whatever way they are bought.
        costs: Of a device that is bought, by good; and of a reference device that is served, (demands, pools).

    Returns:
        Devices by good; reference devices that are not served; and mean compute index for what is served, by good.
    """
    group, good = np.nonzero(_serves(asked, goods))
    pool = goods.pool[good]
    each, weight = asked.devices[group, pool], costs[1][group, pool]
    with np.errstate(over="ignore", invalid="ignore"):
        sane = (each < BEYOND) & (costs[0][good] * each + weight < BEYOND)
    group, good, pool, each, weight = group[sane], good[sane], pool[sane], each[sane], weight[sane]
    goods_count, groups, served = len(goods.pool), len(asked.amount), len(group)
    nothing = np.zeros(goods_count, dtype=np.int64), float(asked.amount.sum()), np.zeros(goods_count)
    if not served:
        return nothing
    # what all devices together cannot serve is left out, so that figures stay of one size
    most = np.divide(room, asked.devices, out=np.zeros(asked.devices.shape), where=asked.pools).sum(axis=1)
    amount = np.minimum(asked.amount, most)
    beyond = float((asked.amount - amount).sum())
    dearest = float((costs[0][good] * each + weight).max()) or 1.0
    total = float(amount.sum()) or 1.0
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
    held = _matrix(
        [each, -np.ones(goods_count)], [good, np.arange(goods_count)], [columns, bought], (goods_count, width)
    )
    pools = np.arange(len(room))
    within = _matrix(
        [np.ones(goods_count), -room.astype(np.float64)], [goods.pool, pools], [bought, np.full(len(room), width - 1)],
        (len(room), width),
    )  # fmt: skip
    upper = np.concatenate([np.full(served, np.inf), amount, np.minimum(goods.devices, room[goods.pool]), [1.0]])
    whole = np.zeros(width)
    whole[bought] = 1.0
    constraints = [
        LinearConstraint(met, amount, amount),
        LinearConstraint(held, -np.inf, 0.0),
        LinearConstraint(within, -np.inf, 0.0),
    ]
    limits = {"node_limit": NODES, "mip_rel_gap": GAP}
    solved = milp(cost, integrality=whole, bounds=Bounds(0.0, upper), constraints=constraints, options=limits)
    if solved.x is None:  # no whole numbers were found; without them there is always an answer
        solved = milp(cost, bounds=Bounds(0.0, upper), constraints=constraints)
    if solved.x is None:  # figures lie so far apart that the solver cannot tell them
        return nothing
    serving, unmet = np.maximum(solved.x[:served], 0.0), float(solved.x[served : served + groups].sum())
    busy: Floats = np.bincount(good, weights=serving * each, minlength=goods_count).astype(np.float64)
    compute = np.bincount(good, weights=serving * each * asked.index[group, pool], minlength=goods_count)
    index = np.divide(compute, busy, out=np.zeros(goods_count), where=busy > 0.0)
    return _whole(busy, goods, room), beyond + (unmet if unmet > _HAIR * total else 0.0), index


def _serves(asked: Demands, goods: Goods) -> Flags:
    """Whether a good may serve a demand, (demands, goods)."""
    able = asked.pools[:, goods.pool] & (goods.devices > 0)
    calm = (goods.purchase != SPOT) | asked.interruptible[:, None]
    there = np.isin(goods.purchase, (RESERVED, ON_DEMAND)) | ~asked.headroom[:, None]
    serves: Flags = able & calm & there
    return serves


def _whole(busy: Floats, goods: Goods, room: Counts) -> Counts:
    """Whole devices, no more than serve somebody, and of no pool more than there are."""
    devices = np.maximum(np.ceil(busy - _HAIR), 0.0).astype(np.int64)
    over = np.bincount(goods.pool, weights=devices, minlength=len(room)).astype(np.int64) - room
    for pool in np.flatnonzero(over > 0):
        own = np.flatnonzero(goods.pool == pool)
        # those of which least is used were rounded up most
        least = own[np.argsort(busy[own] - devices[own], kind="stable")][: over[pool]]
        devices[least] -= 1
    return devices


def _matrix(values: list[Floats], rows: list[Numbers], columns: list[Numbers], shape: tuple[int, int]) -> csr_array:
    return csr_array(coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape))
