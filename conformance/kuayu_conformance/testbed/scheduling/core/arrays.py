"""A scenario as arrays: what the compiled world begins with, and longer arrays where they became too short."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kuayu_conformance.testbed.scheduling.core.layout import (
    ACTIVE,
    BUNDLE,
    CLOCK,
    FLOW,
    HOLDER,
    INCIDENCE,
    INF,
    JOB,
    LINK,
    NONE,
    POOL,
    SITE,
    WAIT,
    Floats,
    Records,
    State,
)
from kuayu_conformance.testbed.scheduling.engine.disturbances import Disturbances
from kuayu_conformance.testbed.scheduling.engine.state import Places
from kuayu_conformance.testbed.scheduling.engine.traffic import Routes
from kuayu_conformance.testbed.scheduling.law.terms import PUBLISHED
from kuayu_conformance.testbed.scheduling.topology.link_variation import HOUR, TARIFF
from kuayu_conformance.testbed.scheduling.values import Job, Split

LISTS = {
    "runs": "free_run",
    "holders": "free_holder",
    "flows": "free_flow",
    "bundles": "free_bundle",
    "waits": "free_wait",
}
"""Arrays that records are taken from and put back to, with the head of the free ones."""

MOST_FLOWS = 1 << 20
"""Flows for which there is room at most."""


def clock(kept: float) -> Records:
    """The instant nought, with nothing under way; copies stay for so many seconds after their last use."""
    made = np.zeros(1, dtype=CLOCK)
    for name in ("first", "last", *LISTS.values()):
        made[name] = NONE
    made["factored_at"], made["shares_at"], made["kept"] = -1.0, -1.0, kept
    for name in ("overlap", "micro_batches", "storage", "starting", "between_faults"):
        made[name] = getattr(PUBLISHED, name)
    lengths, factors = tariff()
    made["whole_day"] = sum(length * factor for length, factor in zip(lengths.tolist(), factors.tolist(), strict=True))
    return made


def tariff() -> Floats:
    """Seconds of a day that each factor of the tariff lasts, and the factors."""
    ends = (*(hour for hour, _ in TARIFF[1:]), 24.0)
    lengths = [(end - since) * HOUR for (since, _), end in zip(TARIFF, ends, strict=True)]
    return np.array([lengths, [factor for _, factor in TARIFF]])


def pools_of(places: Places) -> Records:
    """Pools, with all devices free."""
    pools = np.zeros(len(places.pools), dtype=POOL)
    pools["site"], pools["type"], pools["per_node"] = places.site, places.type, places.per_node
    pools["devices"] = pools["working"] = pools["free"] = places.devices
    pools["first"] = pools["last"] = NONE
    return pools


def sites_of(places: Places, disturbances: Disturbances) -> Records:
    """Domains, as fast as they are in practice."""
    sites = np.zeros(len(places.sites), dtype=SITE)
    sites["speed"] = [disturbances.slow.get(name, 1.0) for name in places.sites]
    sites["claim"] = 1.0
    return sites


def links_of(places: Places, wires: Sequence[Any]) -> Records:
    """Links without traffic."""
    links = np.zeros(len(wires), dtype=LINK)
    numbers = {name: number for number, name in enumerate(places.sites)}
    links["capacity"], links["tariff"] = [wire.capacity for wire in wires], [wire.tariff for wire in wires]
    links["source"] = [numbers.get(wire.source, NONE) for wire in wires]
    links["target"] = [numbers.get(wire.target, NONE) for wire in wires]
    links["until"], links["first"] = -1.0, NONE
    return links


def routed(routes: Routes, sites: int) -> dict[str, Any]:
    """Routes, one after the other."""
    begin, count = np.zeros((2, sites, sites), dtype=np.int64)
    links: list[int] = []
    for (source, target), path in routes.paths.items():
        begin[source, target], count[source, target] = len(links), len(path)
        links.extend(path)
    return {"route_begin": begin, "route_count": count, "route_links": np.array(links, dtype=np.int64)}


def jobs_of(jobs: Sequence[Job], places: Places, profiles: Sequence[str], datasets: Mapping[str, int]) -> Records:
    """Jobs, none of which is submitted yet."""
    rows = np.zeros(len(jobs), dtype=JOB)
    for name in (
        "submitted",
        "priority",
        "requested",
        "minimum",
        "maximum",
        "memory",
        "serial",
        "used",
        "work",
        "stated",
    ):
        rows[name] = [getattr(job, name) for job in jobs]
    for name in ("gradient", "boundary", "checkpoint", "step"):
        rows[name] = [getattr(job.model, name) for job in jobs]
    rows["home"] = [places.site_number(job.home) for job in jobs]
    rows["profile"] = [profiles.index(job.profile) for job in jobs]
    rows["data"] = [datasets[job.data] for job in jobs]
    rows["periodic"] = [Split.PERIODIC in job.splits for job in jobs]
    rows["finished"], rows["interval"], rows["interrupted"] = INF, INF, -INF
    rows["checkpoint_at"] = rows["run"] = rows["waits"] = rows["pool"] = NONE
    return rows


def longer(old: Any, length: int, filling: int = 0) -> Any:
    """An array with more rows, the new ones of a filling."""
    made = (
        np.full((length, *old.shape[1:]), filling, dtype=old.dtype)
        if filling
        else np.zeros((length, *old.shape[1:]), old.dtype)
    )
    made[: len(old)] = old
    return made


def room(runs: int, sites: int, pools: int, routes: Routes, links: int, state: State | None = None) -> dict[str, Any]:
    """Arrays for so many runs, with what they held before."""
    longest = max((len(path) for path in routes.paths.values()), default=1)
    flows = min(2 * sites * runs, MOST_FLOWS)
    size = max(flows, links, runs) + 16
    blank: dict[str, Any] = {
        "runs": np.zeros(0, dtype=ACTIVE),
        "run_pools": np.zeros((0, sites), dtype=np.int64),
        "run_devices": np.zeros((0, sites), dtype=np.int64),
        "then_pools": np.zeros((0, sites), dtype=np.int64),
        "then_devices": np.zeros((0, sites), dtype=np.int64),
        "run_flows": np.zeros((0, 2 * sites), dtype=np.int64),
        "run_holders": np.zeros((0, pools), dtype=np.int64),
        "holders": np.zeros(0, dtype=HOLDER),
        "flows": np.zeros(0, dtype=FLOW),
        "bundles": np.zeros(0, dtype=BUNDLE),
        "incidence": np.zeros(0, dtype=INCIDENCE),
        "waits": np.zeros(0, dtype=WAIT),
    }
    old = {name: getattr(state, name) for name in blank} if state else blank
    lengths = {"holders": flows, "flows": flows, "bundles": flows, "waits": flows, "incidence": flows * longest}
    made = {
        name: longer(array, lengths.get(name, runs), NONE if name == "run_holders" else 0)
        for name, array in old.items()
    }
    made["scratch"] = np.zeros((5, size), dtype=np.int64)
    made["levels"] = np.zeros((2, size))
    return made
