"""Which capacity to use over a horizon and how to buy it: an integer programme over pools, purchases and demands.

Demand is served before anything else counts. What is reserved is used first, since it is paid for in any case. Spot
capacity serves what may be interrupted, at a price that counts what is done again; what was forecast beyond the
expected is served by devices on demand, or by reserved ones. Among equals, all pools are used to the same degree, so
that shares can be kept to.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kuayu.scheduling.buying import BETWEEN, HOUR
from kuayu.scheduling.demands import Demands, demands, room
from kuayu.scheduling.names import check_state
from kuayu.scheduling.programme import Goods, solve
from kuayu.scheduling.reading import scene_of
from kuayu.scheduling.scene import ON_DEMAND, PURCHASES, RESERVED, SPOT, Floats, Offer, Scene
from kuayu.scheduling.speeds import STARTING

METHOD_NAME = "Integer programme over pools, purchases and demands"
METHOD_VERSION = "1.0.0"

MOST = 1e300
"""Larger sums of money are not stated: JSON knows no infinity."""
DEAR, LONG = 1e15, 1e12
"""Money for a device and an hour, and seconds, beyond which nothing is weighed."""

WEIGHTS: Mapping[str, float] = {"price": 1.0, "communication": 1.0, "utilisation": 0.1}
"""What counts where a request does not say."""


def plan(request: dict[str, Any]) -> dict[str, Any]:
    """Plan which capacity to use.

    A job that waits counts with the devices that it asks for, as long as it is expected to hold them within the
    horizon. Devices that running jobs hold are not planned for anybody else.

    Args:
        request: A valid ``AllocationPlanRequest``.

    Returns:
        An ``AllocationPlan``. The price of a use is devices × price × hours, for reserved devices as well.

    Raises:
        RepeatedName: Names of the state stand twice.
        UnknownName: The state names what it does not hold, or a forecast is for a domain that it does not hold.
    """
    state, horizon = request["state"], float(request["horizon"])
    forecast = request.get("forecast") or ()
    check_state(state, [(f"/forecast/{number}/domain", each["domain"]) for number, each in enumerate(forecast)])
    scene = scene_of(state)
    asked = demands(scene, state, forecast, min(horizon, LONG))
    goods = _goods(scene)
    weights = dict(request.get("weights") or WEIGHTS)
    bought, unmet, worth = solve(asked, goods, room(scene), _costs(asked, goods, weights, min(horizon, LONG)))
    uses = [
        {
            "domain": scene.names.domains[scene.pools.domain[pool]],
            "accelerator": scene.names.accelerators[scene.pools.accelerator[pool]],
            "purchase": PURCHASES[purchase],
            "devices": devices,
            "price": min(devices * price * horizon / HOUR, MOST),
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
        "shares": _shares(scene, goods, bought * worth),
        "unmet": unmet,
        "price": min(float(sum(use["price"] for use in uses)), MOST),
    }


def _goods(scene: Scene) -> Goods:
    """All offers; a pool without any is had on demand for nothing."""
    rows: list[tuple[int, Offer]] = []
    for pool, offers in enumerate(scene.pools.offers):
        free = int(scene.pools.free[pool])
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


def _costs(asked: Demands, goods: Goods, weights: Mapping[str, float], horizon: float) -> tuple[Floats, Floats]:
    """What a device that is bought weighs, by good, and what a reference device weighs, by demand and pool.

    Money counts as money, whatever for. The time that work takes, and devices that are not used for what they are best
    at, count in what devices cost on average, or as money where they cost nothing.
    """
    period, communication = weights.get("period") or 0.0, weights.get("communication") or 0.0
    utilisation, price = weights.get("utilisation") or 0.0, weights.get("price") or 0.0
    hours = horizon / HOUR
    usual = float(np.minimum(goods.price, DEAR).mean()) * hours if goods.price.any() else hours
    best = np.where(asked.pools, asked.index, 0.0).max(axis=0, initial=0.0)
    unsuited = asked.devices * np.where(asked.pools, best - asked.index, 0.0)
    served = communication * asked.money + usual * (period * asked.devices + utilisation * unsuited)
    return price * goods.effective * hours, served


def _shares(scene: Scene, goods: Goods, compute: Floats) -> list[dict[str, Any]]:
    by_domain = np.bincount(scene.pools.domain[goods.pool], weights=compute, minlength=scene.domains)
    total = float(by_domain.sum())
    return [
        {"domain": name, "share": min(share / total, 1.0)}
        for name, share in zip(scene.names.domains, by_domain.tolist(), strict=True)
        if share > 0.0
    ]
