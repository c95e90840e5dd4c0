"""What a request about recovery must hold to before it can be answered.

1. Names: nodes, jobs, stores, links and the copies of a job are each named once, and what is named is there.
2. Members agree: a replica has no more nodes than it may, only unreachable nodes are fenced, a job goes on with no more
   replicas than it has.
3. Size: what would take longer than anybody waits for is refused, with what is too much.
4. Figures are bounded before anything is computed from them, so that no estimate overflows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kuayu.refusals import Complaint, Impossible, RepeatedName, UnknownName, refuse, repeated

if TYPE_CHECKING:
    from kuayu_schemas import documents

MIN_FIGURE, MAX_FIGURE = 1e-6, 1e12
"""Seconds that estimates reckon with, and bytes or bytes a second too: what lies beyond is as good as the bound."""

MAX_OPTIONS = 200_000
"""Most ways of restoring that are looked at: copies of broken jobs × domains that their stores have links to."""

MAX_COPY_PLACES = 200_000
"""Most places of copies that are looked at: jobs × links from their domains."""


def check_failover(request: "documents.FailoverRequest") -> None:
    """Check a request for a failover plan.

    Raises:
        RepeatedName: Nodes, jobs, stores, links or a job's copies share a name.
        UnknownName: A copy is in a domain without a store.
        Impossible: Members contradict each other.
    """
    nodes, jobs = request["nodes"], request["jobs"]
    complaints = _repeated_names(request) + repeated("/nodes", [node["id"] for node in nodes])
    for index, job in enumerate(jobs):
        complaints += repeated(f"/jobs/{index}/copies", [copy["domain"] for copy in job["copies"]], "/domain")
    refuse(RepeatedName, complaints)
    stores = {store["domain"] for store in request["stores"]}
    unknown = [
        (f"/jobs/{index}/copies/{place}/domain", f"there is no store in {copy['domain']}")
        for index, job in enumerate(jobs)
        for place, copy in enumerate(job["copies"])
        if copy["domain"] not in stores
    ]
    refuse(UnknownName, unknown)
    refuse(Impossible, [*_links(request["links"]), *_least(jobs), *_nodes(nodes, {job["id"]: job for job in jobs})])


def check_options(links: "Sequence[documents.MeasuredLink]", sources: Sequence[str]) -> None:
    """Check that restoring from these copies can be looked at in the time that anybody waits for an answer.

    Args:
        links: Of the request.
        sources: Domain of each copy of each job with a broken replica.

    Raises:
        Impossible: It cannot.
    """
    leave = Counter(link["source"] for link in links)
    options = sum(1 + leave[source] for source in sources)
    if options > MAX_OPTIONS:
        detail = f"{options} ways of restoring, where {MAX_OPTIONS} are the most; ask for fewer jobs at once"
        raise Impossible([("/jobs", detail)])


def check_backup(request: "documents.BackupRequest") -> None:
    """Check a request for a backup plan.

    Raises:
        RepeatedName: Domains, jobs, stores or links share a name.
        UnknownName: A job runs in no domain of the request.
        Impossible: Members contradict each other, or there is more than can be planned at once.
    """
    domains, jobs, links = request["domains"], request["jobs"], request["links"]
    refuse(RepeatedName, _repeated_names(request) + repeated("/domains", [domain["id"] for domain in domains]))
    known = {domain["id"] for domain in domains}
    unknown = [
        (f"/jobs/{index}/domain", f"{job['domain']} is not among the domains")
        for index, job in enumerate(jobs)
        if job["domain"] not in known
    ]
    refuse(UnknownName, unknown)
    complaints = [*_links(links), *_least(jobs)]
    leave = Counter(link["source"] for link in links)
    places = sum(1 + leave[job["domain"]] for job in jobs)
    if places > MAX_COPY_PLACES:
        hint = "ask for fewer jobs at once"
        complaints.append(
            ("/jobs", f"{places} places of copies to be looked at, where {MAX_COPY_PLACES} are the most; {hint}")
        )
    refuse(Impossible, complaints)


def bounded(value: float) -> float:
    """A positive figure as estimates take it, so that none of them overflows."""
    return min(max(value, MIN_FIGURE), MAX_FIGURE)


def _repeated_names(request: "documents.FailoverRequest | documents.BackupRequest") -> list[Complaint]:
    complaints = repeated("/links", [f"{link['source']} to {link['target']}" for link in request["links"]], "/target")
    complaints += repeated("/stores", [store["domain"] for store in request["stores"]], "/domain")
    return complaints + repeated("/jobs", [job["id"] for job in request["jobs"]])


def _links(links: "Sequence[documents.MeasuredLink]") -> Iterator[Complaint]:
    for index, link in enumerate(links):
        if link["source"] == link["target"]:
            yield f"/links/{index}/target", "a link leads from one domain to another"


def _least(jobs: "Sequence[documents.ProtectedJob] | Sequence[documents.BackedUpJob]") -> Iterator[Complaint]:
    for index, job in enumerate(jobs):
        if job["least_replicas"] > job["replicas"]:
            yield f"/jobs/{index}/least_replicas", f"more than its {job['replicas']} replicas"


def _nodes(
    nodes: "Sequence[documents.StandingNode]", jobs: "Mapping[str, documents.ProtectedJob]"
) -> Iterator[Complaint]:
    """Nodes that contradict themselves or their job; jobs that the request does not list are not its concern."""
    counts: Counter[tuple[str, int]] = Counter()
    for index, node in enumerate(nodes):
        name, replica = node.get("job"), node.get("replica")
        if node.get("fenced_in") is not None and node["condition"] != "unreachable":
            yield f"/nodes/{index}/fenced_in", "only unreachable nodes are fenced"
        if name is None and replica is not None:
            yield f"/nodes/{index}/replica", "a node that no job holds is of no replica"
        if name is not None and replica is None:
            yield f"/nodes/{index}/job", "a node that a job holds is of one of its replicas"
        job = jobs.get(name) if name is not None else None
        if job is None or name is None or replica is None:
            continue
        if replica >= job["replicas"]:
            yield f"/nodes/{index}/replica", f"{name} has {job['replicas']} replicas, counted from nought"
        if node["domain"] != job["domain"]:
            yield f"/nodes/{index}/domain", f"{name} runs in {job['domain']}, and so do its nodes"
        counts[name, replica] += 1
        if counts[name, replica] == job["nodes_each"] + 1:
            yield f"/nodes/{index}/replica", f"a replica of {name} has no more than {job['nodes_each']} nodes"
