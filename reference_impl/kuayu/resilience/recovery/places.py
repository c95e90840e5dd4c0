"""Where copies go: one to the job's own domain, where it is read soonest, and one to where it outlives that domain."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from kuayu.resilience.recovery.needs import Need
from kuayu.resilience.recovery.scene import BITS, LONGEST

Plain = Mapping[str, Any]
Link = tuple[str, str]

FASTEST = 1e18
"""Bits a second; no more is reckoned with."""

STEADY = 0.25
"""Share of measurements that a link carried less than what copies are planned for, where that is less than its mean: a
copy that takes longer than its period makes the next one be skipped. A link that is out so often is taken at its mean,
as no level makes up for that."""

SPREAD = 1.5
"""Periods that have gone by since a copy was taken, on average: half a period, and one on the way."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that has a place.

    Attributes:
        need: Of which job.
        domain: Where.
        link: That it travels over; None in the job's own domain.
        bits: That it has.
    """

    need: Need
    domain: str
    link: Link | None
    bits: float


@dataclass(slots=True)
class Places:
    """Room and bandwidth for copies, and what is taken of them.

    Attributes:
        stores: Bits a second of each store that copies may take.
        links: Bits a second of each link that copies may take, of those that carry.
        ways: Domains that those links lead to, by the domain that they leave.
        room: Bytes that are left in each store.
        spares: Spare nodes of each domain.
        taken: Bits of all copies that use a store or link.
        promised: Nodes that jobs of a first domain will look for in a second one.
        without: Names of jobs that got none, by where they should have been.
        cramped: Names of jobs with a copy in another domain that has not enough spares for them.
    """

    stores: dict[str, float]
    links: dict[Link, float]
    ways: Mapping[str, Sequence[str]]
    room: dict[str, float]
    spares: Mapping[str, int]
    taken: defaultdict[str | Link, float] = field(default_factory=lambda: defaultdict(float))
    promised: defaultdict[Link, int] = field(default_factory=lambda: defaultdict(int))
    without: dict[str, list[str]] = field(default_factory=lambda: {"own": [], "other": []})
    cramped: list[str] = field(default_factory=list)


def placed(request: Plain, needs: Sequence[Need], spares: Mapping[str, int]) -> tuple[list[Copy], Places]:
    """Places of copies, those of a higher priority first, and of one priority first those in own domains."""
    places = _places(request, spares)
    made: list[Copy] = []
    for _, group in groupby(needs, key=lambda need: need.rank):
        peers = list(group)
        made.extend(_own(peers, places))
        made.extend(_others(peers, places))
    return made, places


def _places(request: Plain, spares: Mapping[str, int]) -> Places:
    share = request["share"]
    stores = {store["domain"]: share * min(store["bandwidth"], FASTEST) for store in request["stores"]}
    room = {store["domain"]: store.get("free") or 0.0 for store in request["stores"]}
    links: dict[Link, float] = {}
    ways: dict[str, list[str]] = defaultdict(list)
    for link in request["links"]:
        if link.get("up", True) and link["bandwidths"]:
            carried = np.minimum(np.array(link["bandwidths"], dtype=np.float64), FASTEST)
            mean, steady = float(carried.mean()), float(np.sort(carried)[int(STEADY * len(carried))])
            links[link["source"], link["target"]] = share * min(mean, steady or mean)
            ways[link["source"]].append(link["target"])
    return Places(stores, links, ways, room, spares)


def _own(needs: Sequence[Need], places: Places) -> Iterator[Copy]:
    for need in needs:
        home = need.job["domain"]
        if _fits(need, home, None, places):
            yield _take(need, home, None, places)
        else:
            places.without["own"].append(need.job["id"])


def _others(needs: Sequence[Need], places: Places) -> Iterator[Copy]:
    """Those with most to carry choose first, as the narrowest links suit them least."""
    for need in sorted(needs, key=lambda each: -each.job["state_size"]):
        home = need.job["domain"]
        able = [target for target in places.ways.get(home, ()) if _fits(need, target, (home, target), places)]
        if able:
            roomy = _with_nodes(need, places)
            target = min(able, key=lambda each: _lost_s(need, each, roomy, places))
            places.promised[home, target] += need.least_nodes
            if target not in roomy:
                places.cramped.append(need.job["id"])
            yield _take(need, target, (home, target), places)
        else:
            places.without["other"].append(need.job["id"])


def _fits(need: Need, domain: str, link: Link | None, places: Places) -> bool:
    bits, narrow = _bits(need), places.stores.get(domain, 0.0)
    if link is not None:
        narrow = min(narrow, places.links[link])
    return 2.0 * need.job["state_size"] <= places.room.get(domain, 0.0) and narrow > 0.0 and bits <= LONGEST * narrow


def _take(need: Need, domain: str, link: Link | None, places: Places) -> Copy:
    copy = Copy(need, domain, link, _bits(need))
    places.room[domain] -= 2.0 * need.job["state_size"]
    places.taken[domain] += copy.bits
    if link is not None:
        places.taken[link] += copy.bits
    return copy


def _with_nodes(need: Need, places: Places) -> set[str]:
    """Other domains with enough spares for a job, beside what is promised to others that would come with it."""
    home, least = need.job["domain"], need.least_nodes
    return {
        domain
        for domain, spares in places.spares.items()
        if domain != home and spares - places.promised.get((home, domain), 0) >= least
    }


def _lost_s(need: Need, target: str, roomy: Collection[str], places: Places) -> float:
    """Seconds that are lost when the job's domain is, with a copy in this one: its age, and until it is read."""
    home, bits = need.job["domain"], _bits(need)
    period_s = max(
        need.period_s,
        (bits + places.taken.get((home, target), 0.0)) / places.links[home, target],
        (bits + places.taken.get(target, 0.0)) / places.stores[target],
    )
    return SPREAD * period_s + _read_s(bits, target, roomy, places)


def _read_s(bits: float, target: str, roomy: Collection[str], places: Places) -> float:
    """Seconds until the copy is read where there are enough spares for it: in its own domain, or over a link."""
    if target in roomy:
        return bits / places.stores[target]
    rate = max((places.links.get((target, other), 0.0) for other in roomy), default=0.0)
    return min(bits / rate, LONGEST) if rate > bits / LONGEST else LONGEST


def _bits(need: Need) -> float:
    size: float = BITS * need.job["state_size"]
    return size
