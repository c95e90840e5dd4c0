"""What a request about recovery must hold to before it can be answered: names, members that agree, and how much."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated

Plain = Mapping[str, Any]

MOST_WAYS = 200_000
"""Most ways of restoring that are looked at: copies of broken jobs × domains that their stores have links to."""

MOST_PLACES = 200_000
"""Most places of copies that are looked at: jobs × links from their domains."""


def check_failover(request: Plain) -> None:
    """Check a request for a failover plan.

    Raises:
        RepeatedName: Nodes, jobs, stores, links or a job's copies share a name.
        UnknownName: A copy is in a domain without a store.
        Impossible: Members contradict each other.
    """
    nodes, jobs = request["nodes"], request["jobs"]
    found = _repeated_ways(request) + repeated("/nodes", [each["id"] for each in nodes])
    for at, job in enumerate(jobs):
        found += repeated(f"/jobs/{at}/copies", [each["domain"] for each in job["copies"]], "/domain")
    refuse(RepeatedName, found)
    stores = {each["domain"] for each in request["stores"]}
    unknown = [
        (f"/jobs/{at}/copies/{place}/domain", f"there is no store in {copy['domain']}")
        for at, job in enumerate(jobs)
        for place, copy in enumerate(job["copies"])
        if copy["domain"] not in stores
    ]
    refuse(UnknownName, unknown)
    refuse(Impossible, [*_links(request["links"]), *_least(jobs), *_nodes(nodes, {each["id"]: each for each in jobs})])


def check_ways(links: Sequence[Plain], sources: Sequence[str]) -> None:
    """Check that restoring from these copies can be looked at in the time that anybody waits for an answer.

    Args:
        links: Of the request.
        sources: Domain of each copy of each job with a broken replica.

    Raises:
        Impossible: It cannot.
    """
    leave = Counter(link["source"] for link in links)
    ways = sum(1 + leave[source] for source in sources)
    if ways > MOST_WAYS:
        detail = f"{ways} ways of restoring, where {MOST_WAYS} are the most; ask for fewer jobs at once"
        raise Impossible([("/jobs", detail)])


def check_backup(request: Plain) -> None:
    """Check a request for a backup plan.

    Raises:
        RepeatedName: Domains, jobs, stores or links share a name.
        UnknownName: A job runs in no domain of the request.
        Impossible: Members contradict each other, or there is more than can be planned at once.
    """
    domains, jobs, links = request["domains"], request["jobs"], request["links"]
    refuse(RepeatedName, _repeated_ways(request) + repeated("/domains", [each["id"] for each in domains]))
    known = {each["id"] for each in domains}
    unknown = [
        (f"/jobs/{at}/domain", f"{job['domain']} is not among the domains")
        for at, job in enumerate(jobs)
        if job["domain"] not in known
    ]
    refuse(UnknownName, unknown)
    found = [*_links(links), *_least(jobs)]
    leave = Counter(link["source"] for link in links)
    places = sum(1 + leave[job["domain"]] for job in jobs)
    if places > MOST_PLACES:
        hint = "ask for fewer jobs at once"
        found.append(("/jobs", f"{places} places of copies to be looked at, where {MOST_PLACES} are the most; {hint}"))
    refuse(Impossible, found)


def _repeated_ways(request: Plain) -> list[Complaint]:
    found = repeated("/links", [f"{each['source']} to {each['target']}" for each in request["links"]], "/target")
    found += repeated("/stores", [each["domain"] for each in request["stores"]], "/domain")
    return found + repeated("/jobs", [each["id"] for each in request["jobs"]])


def _links(links: Sequence[Plain]) -> Iterator[Complaint]:
    for at, link in enumerate(links):
        if link["source"] == link["target"]:
            yield f"/links/{at}/target", "a link leads from one domain to another"


def _least(jobs: Sequence[Plain]) -> Iterator[Complaint]:
    for at, job in enumerate(jobs):
        if job["least_replicas"] > job["replicas"]:
            yield f"/jobs/{at}/least_replicas", f"more than its {job['replicas']} replicas"


def _nodes(nodes: Sequence[Plain], jobs: Mapping[str, Plain]) -> Iterator[Complaint]:
    """Nodes that contradict themselves or their job; jobs that the request does not list are not its concern."""
    held: Counter[tuple[str, int]] = Counter()
    for at, node in enumerate(nodes):
        name, replica = node.get("job"), node.get("replica")
        if node.get("fenced_in") is not None and node["condition"] != "unreachable":
            yield f"/nodes/{at}/fenced_in", "only unreachable nodes are fenced"
        if name is None and replica is not None:
            yield f"/nodes/{at}/replica", "a node that no job holds is of no replica"
        if name is not None and replica is None:
            yield f"/nodes/{at}/job", "a node that a job holds is of one of its replicas"
        job = jobs.get(name) if name is not None else None
        if job is None or name is None or replica is None:
            continue
        if replica >= job["replicas"]:
            yield f"/nodes/{at}/replica", f"{name} has {job['replicas']} replicas, counted from nought"
        if node["domain"] != job["domain"]:
            yield f"/nodes/{at}/domain", f"{name} runs in {job['domain']}, and so do its nodes"
        held[name, replica] += 1
        if held[name, replica] == job["nodes_each"] + 1:
            yield f"/nodes/{at}/replica", f"a replica of {name} has no more than {job['nodes_each']} nodes"
