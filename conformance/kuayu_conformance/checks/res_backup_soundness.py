"""Whether a backup plan holds what it shall, given its request (RES-015).

Where the risk of a number of spares is within a billionth of what may be run, either number is right.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import Any

from kuayu_conformance.checks.res_fixtures import Json

_SAME = 1e-9
"""Relative: risks and prices that are equal."""

_STATED, _STATED_LEAST = 0.01, 1e-9
"""Relative and absolute: how far a stated risk may be off."""

_SLACK = 1e-3
"""Relative: by how much sums over copies may be above what there is."""

_NOTHING = 1e-300
"""Below this, a risk may come out as nought."""

Way = tuple[str, str]
"""Source and target of a link."""


def tail(spares: int, mean: float) -> float:
    """The chance that a Poisson variable of a mean is greater than so many."""
    from scipy.special import pdtrc

    return float(pdtrc(float(spares), mean))


def fewest(domain: Json, risk: float) -> int:
    """The fewest spares of a ``BackupDomain`` whose risk is no more than the risk, or all that are free."""
    low, high, mean = 0, int(domain["free"]), mean_of(domain)
    while low < high:
        middle = (low + high) // 2
        if tail(middle, mean) <= risk:
            high = middle
        else:
            low = middle + 1
    return low


def mean_of(domain: Json) -> float:
    """How many nodes of a ``BackupDomain`` fail on average within its repair time."""
    return float(domain["nodes"]) * float(domain["repair_time"]) / float(domain["time_between_failures"])


def backup_deviations(request: Json, plan: Json) -> list[str]:
    """All that deviates in a valid ``BackupPlan``, with expected and found.

    Args:
        request: Valid ``BackupRequest`` that does not contradict itself.
        plan: Its answer.
    """
    found = []
    if plan["revision"] != request["revision"]:
        found.append(f"revision {plan['revision']} where the request's is {request['revision']}")
    domains, told = [each["id"] for each in request["domains"]], [each["domain"] for each in plan["pools"]]
    if told != domains:
        found.append(f"pools of {told[:5]} where the request's domains are {domains[:5]}")
    else:
        pools = zip(request["domains"], plan["pools"], strict=True)
        found += chain.from_iterable(_of_pool(domain, request["risk"], pool) for domain, pool in pools)
    return [*found, *_of_copies(request, plan["copies"])]


def _of_pool(domain: Json, risk: float, pool: Json) -> Iterator[str]:
    where, spares, free, mean = f"pool of {domain['id']}", pool["spares"], domain["free"], mean_of(domain)
    if spares > free:
        yield f"{where}: {spares} spares where {free} nodes are free"
    elif (spares < free and _short(tail(spares, mean), risk)) or (
        spares > 0 and _enough(tail(spares - 1, mean), risk, mean)
    ):
        yield f"{where}: {spares} spares where {fewest(domain, risk)} are the fewest at a mean of {mean:.6g} failures"
    run = tail(spares, mean)
    if abs(pool["risk"] - run) > max(_STATED * run, _STATED_LEAST):
        yield f"{where}: risk {pool['risk']:.6g} where {spares} spares run {run:.6g}"
    price = spares * domain["price"]
    if abs(pool["price"] - price) > _SAME * price:
        yield f"{where}: price {pool['price']} where {spares} spares cost {price}"


def _short(run: float, risk: float) -> bool:
    """Whether a risk that is run is plainly above what may be run; nothing is above one."""
    return risk < 1.0 and run > max((1.0 + _SAME) * risk, _NOTHING)


def _enough(run: float, risk: float, mean: float) -> bool:
    """Whether a risk that is run is plainly no more than what may be run."""
    if risk >= 1.0 or mean == 0.0:
        return True
    return run <= (1.0 - _SAME) * risk and risk > _NOTHING


def _of_copies(request: Json, copies: Sequence[Json]) -> Iterator[str]:
    jobs = {job["id"]: job for job in request["jobs"]}
    stores = {store["domain"]: store for store in request["stores"]}
    links = {(link["source"], link["target"]): link for link in request["links"]}
    for (name, domain), times in Counter((copy["job"], copy["domain"]) for copy in copies).items():
        if times > 1:
            yield f"{times} copies of job {name} in {domain} where one at most is held"
    room: dict[str, float] = defaultdict(float)
    written: dict[str, float] = defaultdict(float)
    sent: dict[Way, float] = defaultdict(float)
    for copy in copies:
        job, domain = jobs.get(copy["job"]), copy["domain"]
        fault = _out_of_reach(job, domain, stores, links)
        if job is None or fault:
            yield f"copy of job {copy['job']} in {domain}: {fault}"
            continue
        size = float(job["state_size"])
        rate = 8.0 * size / float(copy["period"])
        room[domain] += 2.0 * size
        written[domain] += rate
        if domain != job["domain"]:
            sent[job["domain"], domain] += rate
    share = request["share"]
    yield from _above("bytes", "room", room, {each: stores[each].get("free", 0.0) for each in room})
    yield from _above("bit/s", "share", written, {each: share * stores[each]["bandwidth"] for each in written})
    yield from _above("bit/s", "share", sent, {way: share * fmean(links[way]["bandwidths"]) for way in sent})


def _out_of_reach(job: Json | None, domain: str, stores: Container[str], links: Mapping[Way, Json]) -> str:
    """Why no copy of a job can be held in a domain; empty where one can."""
    if job is None:
        return "there is no such job"
    if domain not in stores:
        return "there is no store"
    if domain == job["domain"]:
        return ""
    link = links.get((job["domain"], domain))
    if link is None:
        return f"no link leads there from {job['domain']}"
    if not link.get("up", True):
        return f"the link from {job['domain']} is out"
    return "" if link["bandwidths"] else f"nothing is known of the link from {job['domain']}"


def _above(unit: str, what: str, taken: Mapping[Any, float], most: Mapping[Any, float]) -> Iterator[str]:
    for place, amount in taken.items():
        if amount > (1.0 + _SLACK) * most[place]:
            where = place if isinstance(place, str) else " to ".join(place)
            yield f"copies in or to {where} take {amount:.6g} {unit} where the {what} is {most[place]:.6g} {unit}"
