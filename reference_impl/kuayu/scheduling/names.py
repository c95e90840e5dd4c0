"""Names of a request: what they point at, what is unknown, what stands twice."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kuayu.refusals import Complaint, RepeatedName, UnknownName, refuse, repeated
from kuayu.scheduling.reading_jobs import Read, read_of

Plain = Mapping[str, Any]


def check_state(
    state: Plain, others: Iterable[Complaint] = (), again: Iterable[Complaint] = (), read: Read | None = None
) -> None:
    """Check the names of a state that stands at ``/state``.

    Domains that only hold copies of data, the home of a job and the domain of its checkpoint are no part of what can be
    decided on unless they are among the domains; a request that names others there names something it does not hold.

    Args:
        state: A ``SchedulingState``.
        others: Domains that the request names beside its state: pointer and name.
        again: What else stands twice, as complaints.
        read: What has been read of its jobs, if it has.

    Raises:
        RepeatedName: Names stand twice.
        UnknownName: A name is not there.
    """
    read = read or read_of(state)
    refuse(RepeatedName, [*_repeated(state, read), *again])
    found = _unknown(state, read)
    known = {each["id"] for each in state["domains"]}
    found += [(pointer, f"{name} is no domain of the state") for pointer, name in others if name not in known]
    refuse(UnknownName, found)


def _repeated(state: Plain, read: Read) -> list[Complaint]:
    found = repeated("/state/accelerators", [each["id"] for each in state["accelerators"]])
    for position, each in enumerate(state["accelerators"]):
        profiles = [value["profile"] for value in each["indices"]]
        found += repeated(f"/state/accelerators/{position}/indices", profiles, "/profile")
    found += repeated("/state/domains", [each["id"] for each in state["domains"]])
    for position, each in enumerate(state["domains"]):
        found += _repeated_in(f"/state/domains/{position}/pools", each["pools"])
    copies = [each["artefact"] for each in state.get("copies") or ()]
    found += repeated("/state/copies", copies, "/artefact")
    waiting, running = read.names[: len(state["waiting"])], read.names[len(state["waiting"]) :]
    found += repeated("/state/waiting", waiting, "/spec/id")
    found += repeated("/state/running", running, "/spec/id")
    both = set(waiting) & set(running)
    if both:
        found += [
            (f"/state/running/{position}/spec/id", f"{name} stands twice")
            for position, name in enumerate(running)
            if name in both
        ]
    for position, each in enumerate(state["running"]):
        shares = each["placement"]["shares"]
        if len(shares) > 1:
            place = f"/state/running/{position}/placement/shares"
            found += repeated(place, [share["domain"] for share in shares], "/domain")
    return found


def _repeated_in(place: str, pools: Sequence[Plain]) -> list[Complaint]:
    found = repeated(place, [pool["accelerator"] for pool in pools], "/accelerator")
    names: list[str] = []
    places: list[str] = []
    for position, pool in enumerate(pools):
        for number, node in enumerate(pool.get("nodes") or ()):
            names.append(node["id"])
            places.append(f"{place}/{position}/nodes/{number}/id")
        offers = [offer["purchase"] for offer in pool.get("offers") or ()]
        found += repeated(f"{place}/{position}/offers", offers, "/purchase")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        for pointer, name in zip(places, names, strict=True):
            if name in seen:
                found.append((pointer, f"{name} stands twice"))
            seen.add(name)
    return found


def _unknown(state: Plain, read: Read) -> list[Complaint]:
    domains = {each["id"] for each in state["domains"]}
    accelerators = {each["id"] for each in state["accelerators"]}
    nodes = {each["id"]: _nodes(each["pools"]) for each in state["domains"]}
    found: list[Complaint] = []
    for position, each in enumerate(state["domains"]):
        for number, pool in enumerate(each["pools"]):
            if pool["accelerator"] not in accelerators:
                pointer = f"/state/domains/{position}/pools/{number}/accelerator"
                found.append((pointer, f"{pool['accelerator']} is no accelerator of the state"))
    for position, copy in enumerate(state.get("copies") or ()):
        if not domains.issuperset(copy["domains"]):
            found += _missing(f"/state/copies/{position}/domains", copy["domains"], domains)
    named = {*read.home, *read.saved}.union(*read.domains, *read.begun) - {None}
    # that a name is unknown is rare, and where it stands is looked for only then
    if not domains.issuperset(named):
        for which in ("waiting", "running"):
            for position, entry in enumerate(state[which]):
                found += _unknown_of(f"/state/{which}/{position}", entry, domains)
    return found + _unknown_placements(state["running"], nodes)


def _unknown_placements(
    running: Sequence[Plain], nodes: Mapping[str, Mapping[str, set[str] | None]]
) -> list[Complaint]:
    placed = [entry["placement"]["shares"] for entry in running]
    if _all_there([share for shares in placed for share in shares], nodes):
        return []
    places = (f"/state/running/{position}/placement/shares" for position in range(len(placed)))
    return [
        each for place, shares in zip(places, placed, strict=True) for each in _unknown_shares(place, shares, nodes)
    ]


def _all_there(shares: Sequence[Plain], nodes: Mapping[str, Mapping[str, set[str] | None]]) -> bool:
    """Whether pools and nodes of all shares are known, which is what they nearly always are."""
    pools = {(domain, accelerator) for domain, its in nodes.items() for accelerator in its}
    if not pools.issuperset((share["domain"], share["accelerator"]) for share in shares):
        return False
    told = (share for share in shares if share.get("nodes"))
    return all(
        known is None or known.issuperset(node["node"] for node in share["nodes"])
        for share in told
        for known in (nodes[share["domain"]][share["accelerator"]],)
    )


def _nodes(pools: Sequence[Plain]) -> dict[str, set[str] | None]:
    """Names of the nodes of each pool of a domain; none where they are not told."""
    return {
        pool["accelerator"]: None if pool.get("nodes") is None else {node["id"] for node in pool["nodes"]}
        for pool in pools
    }


def _unknown_of(place: str, entry: Plain, domains: set[str]) -> list[Complaint]:
    spec = entry["spec"]
    found: list[Complaint] = []
    home = spec.get("home_domain")
    if home is not None and home not in domains:
        found.append((f"{place}/spec/home_domain", f"{home} is no domain of the state"))
    for position, artefact in enumerate(spec.get("data") or ()):
        if not domains.issuperset(artefact["domains"]):
            found += _missing(f"{place}/spec/data/{position}/domains", artefact["domains"], domains)
    start = spec.get("checkpoint")
    if start is not None and not domains.issuperset(start["domains"]):
        found += _missing(f"{place}/spec/checkpoint/domains", start["domains"], domains)
    saved = entry.get("checkpoint_domain")
    if saved is not None and saved not in domains:
        found.append((f"{place}/checkpoint_domain", f"{saved} is no domain of the state"))
    return found


def _unknown_shares(
    place: str, shares: Sequence[Plain], nodes: Mapping[str, Mapping[str, set[str] | None]]
) -> list[Complaint]:
    found: list[Complaint] = []
    for position, share in enumerate(shares):
        pools = nodes.get(share["domain"])
        if pools is None:
            found.append((f"{place}/{position}/domain", f"{share['domain']} is no domain of the state"))
        elif share["accelerator"] not in pools:
            found.append(
                (f"{place}/{position}/accelerator", f"{share['domain']} has no pool of {share['accelerator']}")
            )
        elif share.get("nodes") and (known := pools[share["accelerator"]]) is not None:
            for number, node in enumerate(share["nodes"]):
                if node["node"] not in known:
                    pointer = f"{place}/{position}/nodes/{number}/node"
                    found.append((pointer, f"{node['node']} is no node of the pool"))
    return found


def _missing(place: str, names: Sequence[str], known: set[str]) -> list[Complaint]:
    return [
        (f"{place}/{position}", f"{name} is no domain of the state")
        for position, name in enumerate(names)
        if name not in known
    ]
