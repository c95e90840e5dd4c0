"""What a state of scheduling has to be beyond its schema: names that point at something, and numbers that agree.

1. Names are looked at first: what stands twice, then what is named and not there; then whether numbers contradict each
   other. Whatever was decided on such a state would be wrong, and the reason given for it too.
2. That all is well is seen from columns of jobs (:func:`is_sound`). Only where it is not, what is wrong is looked for
   entry by entry, and where: that is rare and takes longer.

Sources: requirements COM-042 (unknown names) and SCH-020 (a state that contradicts itself); clause com-06-data, by
which an identifier is unique for its kind; RFC 6901 for pointers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated
from kuayu.scheduling.parse import ParsedHoldings, ParsedJobs, parse_jobs
from kuayu.scheduling.state import MODES, NONE, NOWHERE, Numbers

if TYPE_CHECKING:
    from kuayu_schemas import documents

_UNDIVIDED = MODES[NONE]


def check_state(
    state: "documents.SchedulingState",
    others: Iterable[Complaint] = (),
    again: Iterable[Complaint] = (),
    parsed: ParsedJobs | None = None,
) -> None:
    """Check a state that stands at ``/state``: its names, then its numbers.

    Domains that only hold copies of data, the home of a job and the domain of its checkpoint are no part of what can be
    decided on unless they are among the domains; a request that names others there names something it does not hold.

    Args:
        state: The whole of it.
        others: Domains that the request names beside its state: pointer and name.
        again: What else stands twice, as complaints.
        parsed: What has been read of its jobs, if it has.

    Raises:
        RepeatedName: Names stand twice.
        UnknownName: A name is not there.
        Impossible: Numbers contradict each other.
    """
    parsed = parsed or parse_jobs(state)
    others, again = list(others), list(again)
    if not again and is_sound(state, parsed, [name for _, name in others]):
        return
    refuse(RepeatedName, [*_repeated(state, parsed), *again])
    complaints = _unknown(state, parsed)
    known = {domain["id"] for domain in state["domains"]}
    complaints += [(pointer, f"{name} is no domain of the state") for pointer, name in others if name not in known]
    refuse(UnknownName, complaints)
    refuse(Impossible, [*_beyond_pools(state), *_beyond(state, parsed), *_beyond_placements(state["running"])])


def is_sound(state: "documents.SchedulingState", parsed: ParsedJobs, others: Iterable[str] = ()) -> bool:
    """Whether there is nothing to complain of; what there is, and where, :func:`check_state` looks for only then.

    Args:
        state: Its jobs are not looked at.
        parsed: What has been read of its jobs.
        others: Domains that the request names beside its state.
    """
    holdings = parsed.holdings
    pools = [(domain["id"], pool) for domain in state["domains"] for pool in domain["pools"]]
    numbers = {(name, pool["accelerator"]): number for number, (name, pool) in enumerate(pools)}
    domains = {domain["id"] for domain in state["domains"]}
    named = {*parsed.specs.numbered["home"].used(), *parsed.saved}.union(*parsed.domains, *parsed.begun) - {None}
    shares = [numbers.get(pair, NOWHERE) for pair in zip(holdings.domains, holdings.accelerators, strict=True)]
    if (
        len(set(parsed.names)) < len(parsed.names)
        or not domains.issuperset(named)
        or not domains.issuperset(others)
        or NOWHERE in shares
        or _repeated_parts(state)
        or _unknown_parts(state, domains)
        or len(_beyond_elasticity(parsed))
        or len(_beyond_estimates(parsed))
    ):
        return False
    if len(holdings.lengths) < len(shares):
        holders = np.repeat(np.arange(len(holdings.lengths)), holdings.lengths).tolist()
        if len(set(zip(holders, holdings.domains, strict=True))) < len(shares):
            return False
    taken = (
        np.bincount(np.array(shares, dtype=np.intp), holdings.devices, len(pools)) if shares else np.zeros(len(pools))
    )
    devices = np.array([pool["devices"] for _, pool in pools], dtype=np.float64)
    free = np.array([pool["free"] for _, pool in pools], dtype=np.float64)
    if (taken + free > devices).any():
        return False
    known = [(number, pool["nodes"]) for number, (_, pool) in enumerate(pools) if pool.get("nodes") is not None]
    if any(node["free"] > node["devices"] for _, nodes in known for node in nodes):
        return False
    if any(_beyond_nodes(pools[number][1], nodes) for number, nodes in known) or not _are_tenable(holdings):
        return False
    share_numbers, names = holdings.nodes
    existing = {(number, node["id"]) for number, nodes in known for node in nodes}
    silent = {number for number, (_, pool) in enumerate(pools) if pool.get("nodes") is None}
    places = map(shares.__getitem__, share_numbers)
    return existing.issuperset(pair for pair in zip(places, names, strict=True) if pair[0] not in silent)


def _beyond_pools(state: "documents.SchedulingState") -> list[Complaint]:
    """More devices that are free, or held by running jobs, than work; of pools, and of nodes."""
    in_use: Counter[tuple[str, str]] = Counter()
    for entry in state["running"]:
        for share in entry["placement"]["shares"]:
            in_use[share["domain"], share["accelerator"]] += share["devices"]
    complaints: list[Complaint] = []
    for position, domain in enumerate(state["domains"]):
        for number, pool in enumerate(domain["pools"]):
            place, devices = f"/state/domains/{position}/pools/{number}", pool["devices"]
            if pool["free"] > devices:
                complaints.append((f"{place}/free", f"{pool['free']} devices are free, of {devices} that work"))
            taken = in_use[domain["id"], pool["accelerator"]]
            if taken > devices:
                complaints.append((f"{place}/devices", f"running jobs hold {taken} devices, of {devices} that work"))
            elif taken + pool["free"] > devices >= pool["free"]:
                what = f"{pool['free']} devices are free, of {devices} that work, and running jobs hold {taken}"
                complaints.append((f"{place}/free", what))
            complaints += [
                (f"{place}/nodes/{row}/free", f"{node['free']} devices are free, of {node['devices']} that work")
                for row, node in enumerate(pool.get("nodes") or ())
                if node["free"] > node["devices"]
            ]
            nodes = pool.get("nodes")
            complaints += [
                (f"{place}/{where}", what) for where, what in _beyond_nodes(pool, nodes or ()) if nodes is not None
            ]
    return complaints


def _beyond_nodes(pool: "documents.ComputePool", nodes: "Sequence[documents.PoolNode]") -> list[Complaint]:
    """Where a pool has fewer devices than its nodes, or more of them are free; within the pool."""
    works, free = sum(node["devices"] for node in nodes), sum(node["free"] for node in nodes)
    complaints: list[Complaint] = []
    if works > pool["devices"]:
        complaints.append(("devices", f"{pool['devices']} devices work, and {works} on its nodes"))
    if free < pool["free"]:
        complaints.append(("free", f"{pool['free']} devices are free, and {free} on its nodes"))
    return complaints


def _are_tenable(holdings: ParsedHoldings) -> bool:
    """Whether nothing is to be said of placements (:func:`_beyond_placements`)."""
    split = zip(holdings.lengths, holdings.modes, strict=True)
    if any(mode == _UNDIVIDED for length, mode in split if length > 1):
        return False
    share_numbers, names = holdings.nodes
    if not names:
        return True
    named = np.bincount(share_numbers, holdings.node_devices, len(holdings.devices))
    return bool((named <= holdings.devices).all()) and len(set(zip(share_numbers, names, strict=True))) == len(names)


def _beyond_placements(running: "Sequence[documents.RunningJob]") -> list[Complaint]:
    """Placements that nobody can hold: in one domain and in several, or with more devices on nodes than there are."""
    complaints: list[Complaint] = []
    for position, entry in enumerate(running):
        placement = entry["placement"]
        shares, place = placement["shares"], f"/state/running/{position}/placement"
        if len(shares) > 1 and placement["split_mode"] == _UNDIVIDED:
            complaints.append((f"{place}/split_mode", f"it is not split, and holds devices of {len(shares)} domains"))
        for number, share in enumerate(shares):
            if nodes := share.get("nodes"):
                named = sum(node["devices"] for node in nodes)
                if named > share["devices"]:
                    what = f"{named} devices on its nodes are more than the {share['devices']} of the share"
                    complaints.append((f"{place}/shares/{number}/nodes", what))
                if len({node["node"] for node in nodes}) < len(nodes):
                    complaints.append((f"{place}/shares/{number}/nodes", "a node stands twice"))
    return complaints


def _beyond_elasticity(parsed: ParsedJobs) -> Numbers:
    """Jobs that work with fewer devices at most than at least, ask for a number that is neither, or for none."""
    least, most, requested = (parsed.figures[name] for name in ("minimum", "maximum", "requested"))
    none = (most < 1) | (requested < 1)
    return np.flatnonzero(none | (least > most) | (requested < least) | (requested > most))


def _beyond_estimates(parsed: ParsedJobs) -> Numbers:
    """Jobs whose expected duration lies outside of its interval."""
    expected, shortest, longest = (parsed.figures[name] for name in ("duration", "shortest", "longest"))
    return np.flatnonzero((shortest > expected) | (expected > longest))


def _beyond(state: "documents.SchedulingState", parsed: ParsedJobs) -> list[Complaint]:
    least, most, requested = (parsed.figures[name] for name in ("minimum", "maximum", "requested"))
    waiting = len(state["waiting"])

    def place_of(job: int) -> str:
        return f"/state/waiting/{job}" if job < waiting else f"/state/running/{job - waiting}"

    detail = "what is expected lies between both ends"
    complaints = [(f"{place_of(job)}/spec/duration", detail) for job in _beyond_estimates(parsed).tolist()]
    for job in _beyond_elasticity(parsed).tolist():
        what = f"{requested[job]:.0f} devices, where {least[job]:.0f} to {most[job]:.0f} will do"
        if least[job] > most[job]:
            what = f"at least {least[job]:.0f} devices, and at most {most[job]:.0f}"
        elif most[job] < 1 or requested[job] < 1:
            what = "no device at all"
        complaints.append((f"{place_of(job)}/spec/devices", f"it asks for {what}"))
    return complaints


def _repeated_parts(state: "documents.SchedulingState") -> list[Complaint]:
    """What stands twice outside of jobs."""
    complaints = repeated("/state/accelerators", [accelerator["id"] for accelerator in state["accelerators"]])
    for position, accelerator in enumerate(state["accelerators"]):
        profiles = [value["profile"] for value in accelerator["indices"]]
        complaints += repeated(f"/state/accelerators/{position}/indices", profiles, "/profile")
    complaints += repeated("/state/domains", [domain["id"] for domain in state["domains"]])
    for position, domain in enumerate(state["domains"]):
        complaints += _repeated_in(f"/state/domains/{position}/pools", domain["pools"])
    copies = [copy["artefact"] for copy in state.get("copies") or ()]
    complaints += repeated("/state/copies", copies, "/artefact")
    complaints += repeated("/state/accounts", [account["id"] for account in state.get("accounts") or ()])
    return complaints


def _repeated(state: "documents.SchedulingState", parsed: ParsedJobs) -> list[Complaint]:
    complaints = _repeated_parts(state)
    waiting, running = parsed.names[: len(state["waiting"])], parsed.names[len(state["waiting"]) :]
    complaints += repeated("/state/waiting", waiting, "/spec/id")
    complaints += repeated("/state/running", running, "/spec/id")
    both = set(waiting) & set(running)
    if both:
        complaints += [
            (f"/state/running/{position}/spec/id", f"{name} stands twice")
            for position, name in enumerate(running)
            if name in both
        ]
    for position, entry in enumerate(state["running"]):
        shares = entry["placement"]["shares"]
        if len(shares) > 1:
            place = f"/state/running/{position}/placement/shares"
            complaints += repeated(place, [share["domain"] for share in shares], "/domain")
    return complaints


def _repeated_in(place: str, pools: "Sequence[documents.ComputePool]") -> list[Complaint]:
    complaints = repeated(place, [pool["accelerator"] for pool in pools], "/accelerator")
    names = [node["id"] for pool in pools for node in pool.get("nodes") or ()]
    for position, pool in enumerate(pools):
        offers = [offer["purchase"] for offer in pool.get("offers") or ()]
        complaints += repeated(f"{place}/{position}/offers", offers, "/purchase")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        places = [
            f"{place}/{position}/nodes/{number}/id"
            for position, pool in enumerate(pools)
            for number in range(len(pool.get("nodes") or ()))
        ]
        for pointer, name in zip(places, names, strict=True):
            if name in seen:
                complaints.append((pointer, f"{name} stands twice"))
            seen.add(name)
    return complaints


def _unknown_parts(state: "documents.SchedulingState", domains: set[str]) -> list[Complaint]:
    """What is named and not there outside of jobs."""
    accelerators = {accelerator["id"] for accelerator in state["accelerators"]}
    complaints: list[Complaint] = []
    for position, domain in enumerate(state["domains"]):
        for number, pool in enumerate(domain["pools"]):
            if pool["accelerator"] not in accelerators:
                pointer = f"/state/domains/{position}/pools/{number}/accelerator"
                complaints.append((pointer, f"{pool['accelerator']} is no accelerator of the state"))
    for position, copy in enumerate(state.get("copies") or ()):
        if not domains.issuperset(copy["domains"]):
            complaints += _missing(f"/state/copies/{position}/domains", copy["domains"], domains)
    return complaints


def _unknown(state: "documents.SchedulingState", parsed: ParsedJobs) -> list[Complaint]:
    domains = {domain["id"] for domain in state["domains"]}
    nodes = {domain["id"]: _nodes_by_pool(domain["pools"]) for domain in state["domains"]}
    complaints = _unknown_parts(state, domains)
    named = {*parsed.specs.numbered["home"].used(), *parsed.saved}.union(*parsed.domains, *parsed.begun) - {None}
    # that a name is unknown is rare, and where it stands is looked for only then
    if not domains.issuperset(named):
        queues: dict[str, Sequence[documents.WaitingJob | documents.RunningJob]]
        queues = {"waiting": state["waiting"], "running": state["running"]}
        for which, entries in queues.items():
            for position, entry in enumerate(entries):
                complaints += _unknown_of(f"/state/{which}/{position}", entry, domains)
    return complaints + _unknown_placements(state["running"], nodes)


def _unknown_placements(
    running: "Sequence[documents.RunningJob]", nodes: Mapping[str, Mapping[str, set[str] | None]]
) -> list[Complaint]:
    placed = [entry["placement"]["shares"] for entry in running]
    places = (f"/state/running/{position}/placement/shares" for position in range(len(placed)))
    return [
        complaint
        for place, shares in zip(places, placed, strict=True)
        for complaint in _unknown_shares(place, shares, nodes)
    ]


def _nodes_by_pool(pools: "Sequence[documents.ComputePool]") -> dict[str, set[str] | None]:
    """Names of the nodes of each pool of a domain; none where they are not told."""
    return {
        pool["accelerator"]: None if pool.get("nodes") is None else {node["id"] for node in pool["nodes"]}
        for pool in pools
    }


def _unknown_of(place: str, entry: "documents.WaitingJob | documents.RunningJob", domains: set[str]) -> list[Complaint]:
    spec = entry["spec"]
    complaints: list[Complaint] = []
    home = spec.get("home_domain")
    if home is not None and home not in domains:
        complaints.append((f"{place}/spec/home_domain", f"{home} is no domain of the state"))
    for position, artefact in enumerate(spec.get("data") or ()):
        if not domains.issuperset(artefact["domains"]):
            complaints += _missing(f"{place}/spec/data/{position}/domains", artefact["domains"], domains)
    start = spec.get("checkpoint")
    if start is not None and not domains.issuperset(start["domains"]):
        complaints += _missing(f"{place}/spec/checkpoint/domains", start["domains"], domains)
    saved = entry.get("checkpoint_domain")
    if saved is not None and saved not in domains:
        complaints.append((f"{place}/checkpoint_domain", f"{saved} is no domain of the state"))
    return complaints


def _unknown_shares(
    place: str, shares: "Sequence[documents.DomainShare]", nodes: Mapping[str, Mapping[str, set[str] | None]]
) -> list[Complaint]:
    complaints: list[Complaint] = []
    for position, share in enumerate(shares):
        pools = nodes.get(share["domain"])
        if pools is None:
            complaints.append((f"{place}/{position}/domain", f"{share['domain']} is no domain of the state"))
        elif share["accelerator"] not in pools:
            complaints.append(
                (f"{place}/{position}/accelerator", f"{share['domain']} has no pool of {share['accelerator']}")
            )
        elif share.get("nodes") and (known := pools[share["accelerator"]]) is not None:
            for number, node in enumerate(share["nodes"]):
                if node["node"] not in known:
                    pointer = f"{place}/{position}/nodes/{number}/node"
                    complaints.append((pointer, f"{node['node']} is no node of the pool"))
    return complaints


def _missing(place: str, names: Sequence[str], known: set[str]) -> list[Complaint]:
    return [
        (f"{place}/{position}", f"{name} is no domain of the state")
        for position, name in enumerate(names)
        if name not in known
    ]
