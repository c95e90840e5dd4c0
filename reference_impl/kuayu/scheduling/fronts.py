"""Pareto front of schedules: the best compromises between the mean period of waiting jobs and communication money."""

from typing import Any

import numpy as np

from kuayu.scheduling.front_search import search
from kuayu.scheduling.front_seats import by_job, seated
from kuayu.scheduling.front_ways import Options
from kuayu.scheduling.names import check_state
from kuayu.scheduling.reading import scene_of
from kuayu.scheduling.scene import Counts, Scene

METHOD_NAME = "Pareto local search over ways and orders of jobs"
METHOD_VERSION = "1.0.0"

LEAST_SLOT = 1e-3
"""Seconds of a slot at least."""
SOLUTIONS = 100
"""How many at most, where the request does not say."""


def front(request: dict[str, Any]) -> dict[str, Any]:
    """Look for the best compromises.

    Args:
        request: A valid ``ParetoRequest``.

    Returns:
        A ``ParetoFront``; without solutions where nothing waits, or where something waits that can run nowhere.

    Raises:
        RepeatedName: Names of the state stand twice.
        UnknownName: The state names what it does not hold.
    """
    state = request["state"]
    check_state(state)
    scene = scene_of(state)
    room = _room(scene)
    options = [Options(scene, room).of(job) for job in range(scene.waiting)]
    keep = int(request.get("solutions", SOLUTIONS))
    slot = max(float(request["slot"]), LEAST_SLOT)
    found = search(options, room, slot, keep) if options and all(options) else ()
    return {
        "revision": state["revision"],
        "method": {"name": METHOD_NAME, "version": METHOD_VERSION},
        "solutions": [
            {
                "mean_period": each.period,
                "communication_cost": each.money,
                "jobs": seated(scene, by_job(options, each), each, slot),
            }
            for each in found
        ],
    }


def _room(scene: Scene) -> Counts:
    """Devices by pool that schedules count upon: what is free on nodes, as far as it can be bought in one way."""
    bought = [max((offer.devices for offer in offers), default=None) for offers in scene.pools.offers]
    named = [None if nodes is None else int(np.minimum(nodes.free, nodes.devices).sum()) for nodes in scene.pools.nodes]
    free = np.minimum(scene.pools.free, scene.pools.devices).tolist()
    rows = zip(free, bought, named, strict=True)
    return np.array([min(limit for limit in row if limit is not None) for row in rows], dtype=np.int64)
