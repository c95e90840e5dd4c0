"""A planner of spares and copies that keeps to the text, and what becomes of it when it slips.

It holds every copy for which there is room, as often as an even part of links and stores allows.
"""

from collections.abc import Callable, Iterator
from math import ceil
from statistics import fmean
from typing import Any

from scipy.special import gammainc

from kuayu_conformance.checks.kit.decisions import Json


def plan(body: Json) -> Json:
    """A sound plan."""
    method = {"name": "even", "version": "0"}
    pools = [_pool(domain, body["risk"]) for domain in body["domains"]]
    return {"revision": body["revision"], "method": method, "pools": pools, "copies": list(_copies(body))}


def _pool(domain: Json, risk: float) -> Json:
    low, high = 0, domain["free"]
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _risk(domain, middle) <= risk else (middle + 1, high)
    return pool(domain, low)


def _risk(domain: Json, spares: int) -> float:
    """The chance of more failures, as an integral; nought where nothing fails."""
    return float(gammainc(spares + 1.0, domain["nodes"] * domain["repair_time"] / domain["time_between_failures"]))


def pool(domain: Json, spares: int) -> Json:
    """So many spares, with their risk and price."""
    price = spares * domain["price"]
    return {"domain": domain["id"], "spares": spares, "risk": _risk(domain, spares), "price": price}


def _copies(body: Json) -> Iterator[Json]:
    links = {(each["source"], each["target"]): each for each in body["links"] if each.get("up", True)}
    part = body["share"] / max(len(body["jobs"]), 1)
    room = {each["domain"]: each.get("free", 0.0) for each in body["stores"]}
    for job in body["jobs"]:
        for store in body["stores"]:
            domain, rates = store["domain"], [part * store["bandwidth"]]
            if domain != job["domain"]:
                carried = links.get((job["domain"], domain), {"bandwidths": []})["bandwidths"]
                rates.append(part * fmean(carried) if carried else 0.0)
            if min(rates) > 0.0 and 2.0 * job["state_size"] <= room[domain]:
                room[domain] -= 2.0 * job["state_size"]
                yield {"job": job["id"], "domain": domain, "period": 8.0 * job["state_size"] / min(rates)}


Look = Callable[[Json], Json]


def _each(list_: str, **change: Callable[[Json], Any]) -> Look:
    """Members of all that is in a list are seen otherwise."""
    return lambda body: {
        **body,
        list_: [{**each, **{name: see(each) for name, see in change.items()}} for each in body[list_]],
    }


def _stores_everywhere(body: Json) -> Json:
    known = {each["domain"] for each in body["stores"]}
    more = [{"domain": each["id"], "bandwidth": 1e11, "free": 1e14} for each in body["domains"]]
    return {**body, "stores": [*body["stores"], *(each for each in more if each["domain"] not in known)]}


def _links_everywhere(body: Json) -> Json:
    known = {(each["source"], each["target"]): each for each in body["links"]}
    names = [each["id"] for each in body["domains"]]
    ways = [(one, other) for one in names for other in names if one != other]
    made = {"latency": 0.0, "bandwidths": [1e10]}
    return {**body, "links": [known.get(way, {"source": way[0], "target": way[1], **made}) for way in ways]}


LOOKS: dict[str, Look] = {
    "does not look at rooms": _each("stores", free=lambda _: 1e15),
    "forgets the old copy": _each("stores", free=lambda each: 2.0 * each.get("free", 0.0)),
    "takes room that is not stated for endless": _each("stores", free=lambda each: each.get("free", 1e15)),
    "takes stores for fast": _each("stores", bandwidth=lambda _: 1e15),
    "takes links for fast": _each("links", bandwidths=lambda _: [1e15]),
    "takes links for as fast as they are now": _each("links", bandwidths=lambda each: each["bandwidths"][-1:]),
    "takes links that were not measured for fast": _each("links", bandwidths=lambda each: each["bandwidths"] or [1e10]),
    "takes links for good": _each("links", up=lambda _: True),
    "takes bits for bytes": lambda body: {**body, "share": 8.0 * body["share"]},
    "does not look at the share": lambda body: {**body, "share": 1.0},
    "takes stores to be everywhere": _stores_everywhere,
    "takes links to be everywhere": _links_everywhere,
    "does not look at free nodes": _each("domains", free=lambda each: each["free"] + 50),
    "sees one failure more": _each("domains", nodes=lambda each: each["nodes"] + 1),
    "takes repair for slow": _each("domains", repair_time=lambda each: max(each["repair_time"], 60.0)),
    "runs half the risk": lambda body: {**body, "risk": 0.5 * body["risk"]},
    "runs a little more": lambda body: {**body, "risk": 1.0000005 * body["risk"] + 1e-6},
}
"""What is seen instead of the request."""


def _pools(count: Callable[[Json, Json], int]) -> Callable[[Json, Json], Json]:
    """Pools of other sizes, honestly told."""

    def change(body: Json, told: Json) -> Json:
        pairs = zip(body["domains"], told["pools"], strict=True)
        return {**told, "pools": [pool(domain, min(count(domain, its), domain["free"])) for domain, its in pairs]}

    return change


def _told(**change: Callable[[Json], float]) -> Callable[[Json, Json], Json]:
    """Pools of which something else is told."""

    def say(_: Json, told: Json) -> Json:
        pools = [{**each, **{name: see(each) for name, see in change.items()}} for each in told["pools"]]
        return {**told, "pools": pools}

    return say


def _mean(domain: Json) -> float:
    return float(domain["nodes"] * domain["repair_time"] / domain["time_between_failures"])


PENS: dict[str, Callable[[Json, Json], Json]] = {
    "keeps one more": _pools(lambda _, its: its["spares"] + 1),
    "keeps one less": _pools(lambda _, its: max(0, its["spares"] - 1)),
    "keeps all": _pools(lambda domain, _: domain["free"]),
    "keeps none": _pools(lambda _domain, _its: 0),
    "keeps the mean": _pools(lambda domain, _: ceil(_mean(domain))),
    "keeps what a normal law wants": _pools(lambda domain, _: ceil(_mean(domain) + 2.3 * _mean(domain) ** 0.5)),
    "tells no risk": _told(risk=lambda _: 0.0),
    "tells the price of one": _told(price=lambda each: each["price"] / max(each["spares"], 1)),
    "tells pools in another order": lambda _, told: {**told, "pools": told["pools"][::-1]},
    "copies twice": lambda _, told: {**told, "copies": [*told["copies"], *told["copies"][:1]]},
    "copies as often as can be": lambda _, told: {
        **told,
        "copies": [{**each, "period": 1.0} for each in told["copies"]],
    },
    "forgets the revision": lambda _, told: {**told, "revision": {"epoch": "e", "number": 0}},
}
"""What becomes of the answer."""

SLIPS = (*LOOKS, *PENS)
PLAIN = {"tells no risk", "tells pools in another order", "forgets the revision"}
"""Slips that show in nearly every answer."""


def erring(slip: str, body: Json) -> Json:
    """The plan of somebody who slips."""
    return PENS[slip](body, plan(body)) if slip in PENS else plan(LOOKS[slip](body))
