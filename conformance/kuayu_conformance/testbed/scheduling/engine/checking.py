"""Whether an order can be carried out."""

from kuayu_conformance.testbed.scheduling.engine.orders import Refusal
from kuayu_conformance.testbed.scheduling.engine.places import Counts, Holding, Places
from kuayu_conformance.testbed.scheduling.engine.runs import beyond
from kuayu_conformance.testbed.scheduling.engine.view import Parts
from kuayu_conformance.testbed.scheduling.values import Job, Placement, Share, Split


def holding_of(places: Places, shares: tuple[Share, ...]) -> Holding | Refusal:
    """Shares by number, or why there are none."""
    try:
        holding = places.holding(shares)
    except KeyError:
        return Refusal.UNKNOWN_POOL
    if not shares or len({share.site for share in shares}) < len(shares):
        return Refusal.TWICE if shares else Refusal.SIZE
    return holding


def unfit(parts: Parts, number: int, placement: Placement, cut: frozenset[int]) -> Refusal | None:
    """Why a job could not run there even if all devices were free."""
    job = parts.register.known(number)
    holding = holding_of(parts.places, placement.shares)
    if isinstance(holding, Refusal):
        return holding
    if min(devices for _, devices in holding) < 1:
        return Refusal.SIZE
    if not job.minimum <= sum(devices for _, devices in holding) <= job.maximum:
        return Refusal.SIZE
    if any(parts.places.memory[parts.places.type[pool]] < job.memory for pool, _ in holding):
        return Refusal.MEMORY
    sites = [int(parts.places.site[pool]) for pool, _ in holding]
    if cut.intersection(sites):
        return Refusal.CUT_OFF
    return _unspreadable(job, placement) or _unreachable(parts, number, sites)


def room(free: Counts, holding: Holding, present: Holding = ()) -> bool:
    """Whether devices are free for a job, in addition to those that it has."""
    return all(devices <= int(free[pool]) for pool, devices in beyond(holding, present))


def _unspreadable(job: Job, placement: Placement) -> Refusal | None:
    alone = len(placement.shares) == 1
    if alone != (placement.split == Split.NONE) or (not alone and placement.split not in job.splits):
        return Refusal.SPLIT
    periodic = placement.split == Split.PERIODIC
    return None if placement.period >= 1 and (periodic or placement.period == 1) else Refusal.SPLIT


def _unreachable(parts: Parts, number: int, sites: list[int]) -> Refusal | None:
    """Data, checkpoint and gradients need a way."""
    data = parts.copies.datasets[parts.register.known(number).data]
    paths = parts.traffic.routes.paths
    always = parts.copies.always(data.name)
    saved = parts.checkpoint.get(number)
    for site in sites:
        if data.pinned and site not in always:
            return Refusal.DATA
        if site not in always and not any((source, site) in paths for source in always):
            return Refusal.NO_WAY
        if any(other != site and (other, site) not in paths for other in sites):
            return Refusal.NO_WAY
        if saved is not None and saved != site and (saved, site) not in paths:
            return Refusal.NO_WAY
    return None
