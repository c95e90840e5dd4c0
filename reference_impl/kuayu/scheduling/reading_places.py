"""Domains, pools and accelerators of a state as arrays, in an order that does not follow from their names."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kuayu.scheduling.scene import NOWHERE, PURCHASES, Floats, Nodes, Offer, Pools

Plain = Mapping[str, Any]

_PURCHASE = {name: number for number, name in enumerate(PURCHASES)}


def alike(state: Plain) -> list[Plain]:
    """Domains with their pools in an order that follows from what they are, so that no decision depends on names.

    Those that are alike in everything stay in the order of the request.
    """
    kinds = {each["id"]: _kind(each) for each in state["accelerators"]}
    links: dict[str, list[tuple[float, ...]]] = {}
    for each in state["links"]:
        figures = (each["round_trip_time"], each["tariff"], each["bandwidth"], each["available"])
        links.setdefault(each["source"], []).append((0.0, *figures))
        links.setdefault(each["target"], []).append((1.0, *figures))
    jobs: dict[str, int] = {}
    for entry in state["waiting"]:
        for artefact in entry["spec"].get("data") or ():
            for name in artefact["domains"]:
                jobs[name] = jobs.get(name, 0) + 1

    def pool_key(pool: Plain) -> tuple[Any, ...]:
        return (kinds[pool["accelerator"]], pool["devices"], pool["free"], pool["devices_per_node"])

    def key(domain: Plain) -> tuple[Any, ...]:
        pools = sorted(pool_key(pool) for pool in domain["pools"])
        return (pools, sorted(links.get(domain["id"], ())), jobs.get(domain["id"], 0))

    domains = [{**each, "pools": sorted(each["pools"], key=pool_key)} for each in state["domains"]]
    return sorted(domains, key=key)


def _kind(accelerator: Plain) -> tuple[Any, ...]:
    return (sorted(each["value"] for each in accelerator["indices"]), accelerator["memory"])


def pools_of(domains: Sequence[Plain], accelerators: Mapping[str, int]) -> tuple[Pools, dict[tuple[int, int], int]]:
    """Pools of domains by number, and the number of each by those of its domain and its accelerator."""
    rows = [(number, pool) for number, each in enumerate(domains) for pool in each["pools"]]
    domain = np.array([number for number, _ in rows], dtype=np.intp)
    accelerator = np.array([accelerators[pool["accelerator"]] for _, pool in rows], dtype=np.intp)
    switches: list[dict[str, int]] = [{} for _ in domains]
    pools = Pools(
        domain,
        accelerator,
        np.array([pool["devices"] for _, pool in rows], dtype=np.int64),
        np.array([pool["free"] for _, pool in rows], dtype=np.int64),
        np.array([pool["devices_per_node"] for _, pool in rows], dtype=np.int64),
        tuple(tuple(_offer(offer) for offer in pool.get("offers") or ()) for _, pool in rows),
        tuple(_nodes(pool.get("nodes"), switches[number]) for number, pool in rows),
    )
    numbers = {key: number for number, key in enumerate(zip(domain.tolist(), accelerator.tolist(), strict=True))}
    return pools, numbers


def _offer(offer: Plain) -> Offer:
    """A way of buying that this version does not know is taken for one on demand."""
    purchase = _PURCHASE.get(offer["purchase"], _PURCHASE["on_demand"])
    return Offer(purchase, offer["devices"], float(offer["price"]), float(offer.get("interruption_rate") or 0.0))


def _nodes(nodes: Sequence[Plain] | None, switches: dict[str, int]) -> Nodes | None:
    if nodes is None:
        return None
    named = [node.get("switch") for node in nodes]
    return Nodes(
        tuple(node["id"] for node in nodes),
        np.array([node["devices"] for node in nodes], dtype=np.int64),
        np.array([node["free"] for node in nodes], dtype=np.int64),
        np.array([NOWHERE if n is None else switches.setdefault(n, len(switches)) for n in named], dtype=np.intp),
    )


def index_of(accelerators: Sequence[Plain]) -> tuple[dict[str, int], Floats]:
    """Row of each profile, and the index, (profiles, accelerators); nought where an accelerator has none."""
    profiles: dict[str, int] = {}
    for each in accelerators:
        for value in each["indices"]:
            profiles.setdefault(value["profile"], len(profiles))
    index = np.zeros((len(profiles), len(accelerators)))
    for number, each in enumerate(accelerators):
        for value in each["indices"]:
            index[profiles[value["profile"]], number] = value["value"]
    return profiles, index
