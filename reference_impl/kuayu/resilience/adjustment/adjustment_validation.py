"""What a request to adjust jobs must hold to before it can be answered: names, policies that fit, and how much.

1. What a request to adjust jobs must hold to before it can be answered: names, policies that fit, and how much.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated
from kuayu.resilience.transfers.collectives import LOW_COMMUNICATION
from kuayu.resilience.transfers.transfer_validation import (
    MAX_BANDWIDTH,
    MAX_BYTES,
    MAX_SPAN_S,
    MIN_BANDWIDTH,
    MIN_BYTES,
    MIN_SPAN_S,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents


QUICKEST = 1e-9
"""Seconds of a part below which nobody computes one."""

MAX_PAIRS = 450_000
"""Most pairs of a job's domains that are looked at, over all jobs."""

_TOO_LONG = "longer than anybody can foresee"
_TOO_SHORT = "shorter than anybody can tell"
_TOO_MUCH = "more than a double tells apart"


def check_adjustment(request: "documents.AdjustmentRequest") -> None:
    """Check a request to adjust jobs.

    Raises:
        RepeatedName: Domains, links, jobs or the shares of a job share a name.
        UnknownName: A share, an order or a link names a domain that is not there.
        Impossible: Members contradict each other, or there is more than can be looked at at once.
    """
    domains, links, jobs = request["domains"], request["links"], request["jobs"]
    found = repeated("/domains", [entry["id"] for entry in domains])
    found += repeated("/links", [f"{entry['source']} to {entry['target']}" for entry in links], "/target")
    found += repeated("/jobs", [entry["id"] for entry in jobs])
    for index, job in enumerate(jobs):
        found += repeated(f"/jobs/{index}/shares", [entry["domain"] for entry in job["shares"]], "/domain")
    refuse(RepeatedName, found)
    refuse(UnknownName, _unknown(request, {entry["id"] for entry in domains}))
    joined = {(link["source"], link["target"]) for link in links}
    wrong = [*_spans(request, "", ("interval", "patience", "window")), *_links(links)]
    for index, job in enumerate(jobs):
        wrong += _job(job, f"/jobs/{index}", joined)
    refuse(Impossible, wrong)
    pairs = sum(len(job["shares"]) ** 2 for job in jobs)
    if pairs > MAX_PAIRS:
        hint = "ask for fewer jobs at once"
        raise Impossible([("/jobs", f"{pairs} pairs of domains of jobs, where {MAX_PAIRS} are the most; {hint}")])


def _unknown(request: "documents.AdjustmentRequest", known: set[str]) -> Iterator[Complaint]:
    for index, link in enumerate(request["links"]):
        yield from _among([link["source"]], known, [f"/links/{index}/source"])
        yield from _among([link["target"]], known, [f"/links/{index}/target"])
    for index, job in enumerate(request["jobs"]):
        place, names = f"/jobs/{index}", [share["domain"] for share in job["shares"]]
        yield from _among(names, known, [f"{place}/shares/{number}/domain" for number in range(len(names))])
        for where, policy in _policies(job, place):
            order = policy["order"]
            yield from _among(order, known, [f"{where}/order/{number}" for number in range(len(order))])


def _among(names: Sequence[str], known: set[str], places: Sequence[str]) -> Iterator[Complaint]:
    for name, place in zip(names, places, strict=True):
        if name not in known:
            yield place, f"{name} is not among the domains"


def _policies(
    job: "documents.AdjustedJob", place: str
) -> "Iterator[tuple[str, documents.AdjustedJob | documents.PolicyChange]]":
    """The policy in force and those that are planned, each with its place."""
    yield place, job
    yield from ((f"{place}/planned/{number}", policy) for number, policy in enumerate(job.get("planned") or ()))


def _links(links: "Sequence[documents.DelayedLink]") -> Iterator[Complaint]:
    for index, link in enumerate(links):
        if link["source"] == link["target"]:
            yield f"/links/{index}/target", "a link leads from one domain to another"
        if link["bandwidth"] > MAX_BANDWIDTH:
            yield f"/links/{index}/bandwidth", _TOO_MUCH
        if link["level"] > MAX_SPAN_S:
            yield f"/links/{index}/level", _TOO_LONG
        if max(link["latencies"]) > MAX_SPAN_S:
            far = [number for number, latency in enumerate(link["latencies"]) if latency > MAX_SPAN_S]
            yield from ((f"/links/{index}/latencies/{number}", _TOO_LONG) for number in far)


def _job(job: "documents.AdjustedJob", place: str, joined: set[tuple[str, str]]) -> Iterator[Complaint]:
    names = [share["domain"] for share in job["shares"]]
    bare = next(((one, other) for one in names for other in names if one != other and (one, other) not in joined), None)
    if bare is not None:
        yield f"{place}/shares/{names.index(bare[1])}/domain", f"there is no link from {bare[0]} to {bare[1]}"
    yield from _sizes(job, place)
    for where, policy in _policies(job, place):
        if sorted(policy["order"]) != sorted(names):
            yield f"{where}/order", "it does not hold every domain once"
        if policy["period"] != 1 and policy["collective"] != LOW_COMMUNICATION:
            yield f"{where}/period", "only where communication is low, steps lie between exchanges over domains"
    yield from _planned(job, place)


def _sizes(job: "documents.AdjustedJob", place: str) -> Iterator[Complaint]:
    for number, share in enumerate(job["shares"]):
        if not QUICKEST <= share["part_time"] <= MAX_SPAN_S:
            yield f"{place}/shares/{number}/part_time", _TOO_SHORT if share["part_time"] < QUICKEST else _TOO_LONG
    if not MIN_BYTES <= job["exchange"] <= MAX_BYTES:
        yield f"{place}/exchange", "less than a byte" if job["exchange"] < MIN_BYTES else _TOO_MUCH
    if not MIN_BANDWIDTH <= job["node_bandwidth"] <= MAX_BANDWIDTH:
        yield (
            f"{place}/node_bandwidth",
            "less than a bit a second" if job["node_bandwidth"] < MIN_BANDWIDTH else _TOO_MUCH,
        )
    times = {"node_latency": job["node_latency"], "move_time": job["move_time"], "switch_time": job["switch_time"]}
    for name, time in times.items():
        if time > MAX_SPAN_S:
            yield f"{place}/{name}", _TOO_LONG


def _planned(job: "documents.AdjustedJob", place: str) -> Iterator[Complaint]:
    """Changes that are planned: of the same parts, and one after the other."""
    total, before = sum(policy["parts"] for policy in job["shares"]), 0.0
    for number, policy in enumerate(job.get("planned") or ()):
        where, parts = f"{place}/planned/{number}", policy["parts"]
        if len(parts) != len(job["shares"]):
            yield f"{where}/parts", f"{len(parts)} numbers, where the job has {len(job['shares'])} shares"
        elif min(parts) < 1:
            yield f"{where}/parts/{parts.index(min(parts))}", "each domain computes a part at least"
        elif sum(parts) != total:
            yield f"{where}/parts", f"{sum(parts)} parts, where a step has {total}"
        if policy["after"] < before:
            yield f"{where}/after", "sooner than the change before it"
        before = policy["after"]


def _spans(whole: Mapping[str, Any], place: str, names: Sequence[str]) -> Iterator[Complaint]:
    for name in names:
        if not MIN_SPAN_S <= whole[name] <= MAX_SPAN_S:
            yield f"{place}/{name}", _TOO_SHORT if whole[name] < MIN_SPAN_S else _TOO_LONG
