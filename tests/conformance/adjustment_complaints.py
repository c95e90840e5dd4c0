"""What somebody who looks at names and numbers has to say of a request for adjustments."""

from collections.abc import Iterator
from itertools import pairwise

from kuayu_conformance.checks.kit.decisions import Json

Complaint = tuple[str, str]
"""Problem and place."""

_UNKNOWN, _INVALID = "unknown-reference", "invalid-body"


def of_adjustments(body: Json) -> Iterator[Complaint]:
    """All that is wrong, unknown names first."""
    known = {each["id"] for each in body["domains"]}
    named = [*_names(body)]
    yield from ((_UNKNOWN, place) for place, name in named if name not in known)
    if all(name in known for _, name in named):
        yield from ((_INVALID, place) for place in _contradictions(body))


def _names(body: Json) -> Iterator[tuple[str, str]]:
    """Places that name a domain, and what stands there."""
    for number, link in enumerate(body["links"]):
        yield from ((f"/links/{number}/{end}", link[end]) for end in ("source", "target"))
    for number, job in enumerate(body["jobs"]):
        at = f"/jobs/{number}"
        yield from ((f"{at}/shares/{place}/domain", each["domain"]) for place, each in enumerate(job["shares"]))
        yield from ((f"{at}/order/{place}", each) for place, each in enumerate(job["order"]))
        for which, change in enumerate(job.get("planned", ())):
            order = f"{at}/planned/{which}/order"
            yield from ((f"{order}/{place}", each) for place, each in enumerate(change["order"]))


def _contradictions(body: Json) -> Iterator[str]:
    ways = [(link["source"], link["target"]) for link in body["links"]]
    yield from _twice("/domains", "/id", [each["id"] for each in body["domains"]])
    yield from _twice("/links", "", ways)
    yield from (f"/links/{place}" for place, (one, other) in enumerate(ways) if one == other)
    yield from _twice("/jobs", "/id", [each["id"] for each in body["jobs"]])
    jobs = [[each["domain"] for each in job["shares"]] for job in body["jobs"]]
    if {(one, other) for its in jobs for one in its for other in its if one != other} - set(ways):
        yield "/links"
    for number, job in enumerate(body["jobs"]):
        at, domains = f"/jobs/{number}", jobs[number]
        yield from _twice(f"{at}/shares", "/domain", domains)
        yield from _of_policy(at, job, set(domains))
        yield from _of_plans(at, job, set(domains))


def _of_policy(at: str, told: Json, domains: set[str]) -> Iterator[str]:
    if set(told["order"]) != domains or len(told["order"]) != len(domains):
        yield f"{at}/order"
    if told["period"] != 1 and told["collective"] != "low_communication":
        yield f"{at}/period"


def _of_plans(at: str, job: Json, domains: set[str]) -> Iterator[str]:
    planned, total = job.get("planned", ()), sum(each["parts"] for each in job["shares"])
    for number, change in enumerate(planned):
        place = f"{at}/planned/{number}"
        yield from _of_policy(place, change, domains)
        if len(change["parts"]) != len(domains) or sum(change["parts"]) != total or min(change["parts"]) < 1:
            yield f"{place}/parts"
    for number, (one, other) in enumerate(pairwise(planned), 1):
        if other["after"] < one["after"]:
            yield f"{at}/planned/{number}/after"


def _twice(place: str, last: str, names: list[object]) -> Iterator[str]:
    yield from (f"{place}/{number}{last}" for number, name in enumerate(names) if name in names[:number])
