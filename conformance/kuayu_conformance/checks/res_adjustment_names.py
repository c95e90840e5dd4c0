"""A small request for adjustments, and what can be wrong with it (RES-013)."""

from collections.abc import Iterator
from random import Random

from kuayu_conformance.checks.res_faults import INVALID, NOWHERE, UNKNOWN, Fault
from kuayu_conformance.checks.res_fixtures import Json, name, revision


def adjustment(chance: Random) -> Json:
    """Three jobs, in one, two and three of four domains, the second with two changes planned for the same instant.

    No job is in the fourth domain, and a link leads there but none back: this is allowed.
    """
    one, two, three, aside = (name(chance) for _ in range(4))
    ways = [(source, target) for source in (one, two, three) for target in (one, two, three) if source != target]
    changes = [("hierarchical", 1, [two, one]), ("low_communication", 50, [one, two])]
    planned = [
        {"after": 5.0, "parts": [9 + number, 7 - number], "collective": kind, "period": period, "order": order}
        for number, (kind, period, order) in enumerate(changes)
    ]
    return {
        "revision": revision(chance),
        "interval": 2.0,
        "patience": 10.0,
        "window": 10.0,
        "allowance": 0.1,
        "domains": [{"id": each, "level": 0.4, "loads": [0.39, 0.41]} for each in (one, two, three, aside)],
        "links": [_link(*way) for way in [*ways, (one, aside)]],
        "jobs": [
            _job(chance, [one], collective="ring"),
            _job(chance, [one, two], collective="ring", changed=0.0, planned=planned),
            _job(chance, [one, two, three], collective="low_communication", period=15, changed=40.0),
        ],
    }


def _link(source: str, target: str) -> Json:
    return {"source": source, "target": target, "bandwidth": 1e10, "level": 0.02, "latencies": [0.021, 0.019, 0.02]}


def _job(chance: Random, domains: list[str], **members: object) -> Json:
    return {
        "id": name(chance),
        "shares": [{"domain": each, "parts": 8, "part_time": 0.1} for each in domains],
        "nodes": 4,
        "node_bandwidth": 1e11,
        "node_latency": 1e-5,
        "exchange": 1e9,
        "period": 1,
        "order": domains[::-1],
        "move_time": 0.01,
        "switch_time": 0.3,
        **members,
    }


def of_adjustments(whole: Json) -> Iterator[Fault]:
    """What is wrong with requests for adjustments."""
    domains, links, jobs = whole["domains"], whole["links"], whole["jobs"]
    share = "/jobs/0/shares/0/domain"
    yield Fault("a share in an unknown domain", UNKNOWN, share, False, {share: NOWHERE})
    for what, order in (("an order", "/jobs/1/order"), ("a planned order", "/jobs/1/planned/1/order")):
        yield Fault(f"an unknown domain in {what}", UNKNOWN, f"{order}/1", False, {f"{order}/1": NOWHERE})
    last = f"/links/{len(links)}"
    for end in ("source", "target"):
        further = {"/links": [*links, {**links[0], end: NOWHERE}]}
        yield Fault(f"an unknown {end} of a link", UNKNOWN, f"{last}/{end}", False, further)
    more = {"/domains": [*domains, domains[0]]}
    yield Fault("a domain, twice", INVALID, f"/domains/{len(domains)}", True, more)
    yield Fault("a link, twice", INVALID, last, True, {"/links": [*links, links[0]]})
    loop = {**links[0], "target": links[0]["source"]}
    yield Fault("a link to its source", INVALID, last, True, {"/links": [*links, loop]})
    # the last way between domains of a job: either end of the contradiction may be named
    few = {"/links": [*links[:5], *links[6:]]}
    yield Fault("domains without a link", INVALID, "/links", True, few, instead="/jobs/2")
    yield Fault("a job, twice", INVALID, "/jobs/1/id", False, {"/jobs/1/id": jobs[0]["id"]})
    shares = jobs[2]["shares"]
    twice = {"/jobs/2/shares": [*shares, shares[0]]}
    yield Fault("a share, twice", INVALID, f"/jobs/2/shares/{len(shares)}", True, twice)
    yield from _of_policies(jobs[1]["order"], jobs[1]["planned"], beyond=domains[-1]["id"])


def _of_policies(order: list[str], planned: list[Json], beyond: str) -> Iterator[Fault]:
    """What is wrong with the policy in force and the changes of the second job."""
    change = "/jobs/1/planned/1"
    for what, place in (("in force", "/jobs/1"), ("planned", change)):
        at = f"{place}/order"
        yield Fault(f"an order {what} that leaves one out", INVALID, at, True, {at: order[1:]})
        yield Fault(f"an order {what} that holds one twice", INVALID, at, True, {at: [order[0], order[0]]})
        yield Fault(f"an order {what} with one beyond", INVALID, at, True, {at: [*order, beyond]})
        for collective in ("ring", "hierarchical"):
            values = {f"{place}/collective": collective, f"{place}/period": 5}
            yield Fault(f"a period of 5 with {collective} {what}", INVALID, place, True, values)
    at, parts = f"{change}/parts", planned[1]["parts"]
    total = sum(parts)
    wrong = {
        "for a domain too few": [total],
        "for a domain too many": [*parts[1:], 1, parts[0] - 1],
        "of another sum": [parts[0], parts[1] + 1],
        "of nought": [total, 0],
    }
    for what, told in wrong.items():
        yield Fault(f"planned parts {what}", INVALID, change, True, {at: told})
    sooner = {f"{change}/after": planned[0]["after"] - 0.5}
    yield Fault("a change that is planned for sooner than the one before", INVALID, "/jobs/1/planned", True, sooner)
