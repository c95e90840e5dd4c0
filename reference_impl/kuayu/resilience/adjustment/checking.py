"""What a request to adjust jobs must hold to before it can be answered: names, policies that fit, and how much."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated
from kuayu.resilience.transfers.checking import FASTEST, LEAST, LONGEST, MOST, SHORTEST, SLOWEST
from kuayu.resilience.transfers.collectives import LOW

Plain = Mapping[str, Any]

QUICKEST = 1e-9
"""Seconds of a part below which nobody computes one."""

MOST_PAIRS = 450_000
"""Most pairs of a job's domains that are looked at, over all jobs."""

_LATE = "longer than anybody can foresee"
_SHORT = "shorter than anybody can tell"
_MUCH = "more than a double tells apart"


def check_adjustment(request: Plain) -> None:
    """Check a request to adjust jobs.

    Raises:
        RepeatedName: Domains, links, jobs or the shares of a job share a name.
        UnknownName: A share, an order or a link names a domain that is not there.
        Impossible: Members contradict each other, or there is more than can be looked at at once.
    """
    domains, links, jobs = request["domains"], request["links"], request["jobs"]
    found = repeated("/domains", [each["id"] for each in domains])
    found += repeated("/links", [f"{each['source']} to {each['target']}" for each in links], "/target")
    found += repeated("/jobs", [each["id"] for each in jobs])
    for at, job in enumerate(jobs):
        found += repeated(f"/jobs/{at}/shares", [each["domain"] for each in job["shares"]], "/domain")
    refuse(RepeatedName, found)
    refuse(UnknownName, _unknown(request, {each["id"] for each in domains}))
    joined = {(link["source"], link["target"]) for link in links}
    wrong = [*_spans(request, "", ("interval", "patience", "window")), *_links(links)]
    for at, job in enumerate(jobs):
        wrong += _job(job, f"/jobs/{at}", joined)
    refuse(Impossible, wrong)
    pairs = sum(len(job["shares"]) ** 2 for job in jobs)
    if pairs > MOST_PAIRS:
        hint = "ask for fewer jobs at once"
        raise Impossible([("/jobs", f"{pairs} pairs of domains of jobs, where {MOST_PAIRS} are the most; {hint}")])


def _unknown(request: Plain, known: set[str]) -> Iterator[Complaint]:
    for at, link in enumerate(request["links"]):
        yield from _among([link["source"]], known, [f"/links/{at}/source"])
        yield from _among([link["target"]], known, [f"/links/{at}/target"])
    for at, job in enumerate(request["jobs"]):
        place, names = f"/jobs/{at}", [each["domain"] for each in job["shares"]]
        yield from _among(names, known, [f"{place}/shares/{number}/domain" for number in range(len(names))])
        for where, policy in _policies(job, place):
            order = policy["order"]
            yield from _among(order, known, [f"{where}/order/{number}" for number in range(len(order))])


def _among(names: Sequence[str], known: set[str], places: Sequence[str]) -> Iterator[Complaint]:
    for name, place in zip(names, places, strict=True):
        if name not in known:
            yield place, f"{name} is not among the domains"


def _policies(job: Plain, place: str) -> Iterator[tuple[str, Plain]]:
    """The policy in force and those that are planned, each with its place."""
    yield place, job
    yield from ((f"{place}/planned/{number}", each) for number, each in enumerate(job.get("planned") or ()))


def _links(links: Sequence[Plain]) -> Iterator[Complaint]:
    for at, link in enumerate(links):
        if link["source"] == link["target"]:
            yield f"/links/{at}/target", "a link leads from one domain to another"
        if link["bandwidth"] > FASTEST:
            yield f"/links/{at}/bandwidth", _MUCH
        if link["level"] > LONGEST:
            yield f"/links/{at}/level", _LATE
        if max(link["latencies"]) > LONGEST:
            far = [number for number, each in enumerate(link["latencies"]) if each > LONGEST]
            yield from ((f"/links/{at}/latencies/{number}", _LATE) for number in far)


def _job(job: Plain, place: str, joined: set[tuple[str, str]]) -> Iterator[Complaint]:
    names = [each["domain"] for each in job["shares"]]
    bare = next(((one, other) for one in names for other in names if one != other and (one, other) not in joined), None)
    if bare is not None:
        yield f"{place}/shares/{names.index(bare[1])}/domain", f"there is no link from {bare[0]} to {bare[1]}"
    yield from _sizes(job, place)
    for where, policy in _policies(job, place):
        if sorted(policy["order"]) != sorted(names):
            yield f"{where}/order", "it does not hold every domain once"
        if policy["period"] != 1 and policy["collective"] != LOW:
            yield f"{where}/period", "only where communication is low, steps lie between exchanges over domains"
    yield from _planned(job, place)


def _sizes(job: Plain, place: str) -> Iterator[Complaint]:
    for number, each in enumerate(job["shares"]):
        if not QUICKEST <= each["part_time"] <= LONGEST:
            yield f"{place}/shares/{number}/part_time", _SHORT if each["part_time"] < QUICKEST else _LATE
    if not LEAST <= job["exchange"] <= MOST:
        yield f"{place}/exchange", "less than a byte" if job["exchange"] < LEAST else _MUCH
    if not SLOWEST <= job["node_bandwidth"] <= FASTEST:
        yield f"{place}/node_bandwidth", "less than a bit a second" if job["node_bandwidth"] < SLOWEST else _MUCH
    for name in ("node_latency", "move_time", "switch_time"):
        if job[name] > LONGEST:
            yield f"{place}/{name}", _LATE


def _planned(job: Plain, place: str) -> Iterator[Complaint]:
    """Changes that are planned: of the same parts, and one after the other."""
    total, before = sum(each["parts"] for each in job["shares"]), 0.0
    for number, each in enumerate(job.get("planned") or ()):
        where, parts = f"{place}/planned/{number}", each["parts"]
        if len(parts) != len(job["shares"]):
            yield f"{where}/parts", f"{len(parts)} numbers, where the job has {len(job['shares'])} shares"
        elif min(parts) < 1:
            yield f"{where}/parts/{parts.index(min(parts))}", "each domain computes a part at least"
        elif sum(parts) != total:
            yield f"{where}/parts", f"{sum(parts)} parts, where a step has {total}"
        if each["after"] < before:
            yield f"{where}/after", "sooner than the change before it"
        before = each["after"]


def _spans(whole: Plain, place: str, names: Sequence[str]) -> Iterator[Complaint]:
    for name in names:
        if not SHORTEST <= whole[name] <= LONGEST:
            yield f"{place}/{name}", _SHORT if whole[name] < SHORTEST else _LATE
