"""Small requests for backup and failover plans, and what can be wrong with them (RES-013)."""

from collections.abc import Iterator
from random import Random

from kuayu_conformance.checks.res_faults import INVALID, NOWHERE, UNKNOWN, Fault
from kuayu_conformance.checks.res_fixtures import Json, name, revision
from kuayu_conformance.checks.res_recovery_draft import FAILED, Draft, fenced


def backup(chance: Random) -> Json:
    """Two jobs in two of three domains, and a store beyond them, which is allowed."""
    draft = Draft(chance)
    elsewhere = name(chance)
    domain = {"nodes": 40, "free": 10, "time_between_failures": 1e6, "repair_time": 3600.0, "price": 2.5}
    return {
        "revision": revision(chance),
        "interval": 10.0,
        "share": 0.25,
        "risk": 0.01,
        "domains": [{"id": each, **domain} for each in draft.domains],
        "links": [*draft.links(), draft.link(draft.here, elsewhere)],
        "stores": [{"domain": each, "bandwidth": 1e11, "free": 1e13} for each in (draft.here, draft.near, elsewhere)],
        "jobs": [_backed_up(chance, each) for each in (draft.here, draft.near)],
    }


def _backed_up(chance: Random, domain: str) -> Json:
    sizes = {"replicas": 4, "least_replicas": 2, "nodes_each": 2, "state_size": 1e11, "pause": 5.0}
    return {"id": name(chance), "priority": 0, "domain": domain, **sizes}


def failover(chance: Random) -> Json:
    """Two jobs that lack a node each.

    A node is held by a job that is not in the request, another one is free in a domain without a store, and a link
    leads there: all of this is allowed.
    """
    draft = Draft(chance)
    elsewhere = name(chance)
    jobs = [draft.job(2, 1, 2), draft.job(2, 1, 2)]
    nodes = [
        *draft.held(jobs[0], {(1, 1): FAILED}),
        *draft.held(jobs[1], {(0, 0): fenced(30.0)}),
        draft.node(draft.here, job=name(chance), replica=9),
        draft.node(elsewhere),
        *draft.free(draft.here, 2),
    ]
    return {
        "revision": revision(chance),
        "interval": 10.0,
        "links": [*draft.links(), draft.link(draft.here, elsewhere)],
        "stores": [{"domain": each, "bandwidth": 1e11} for each in draft.domains],
        "nodes": nodes,
        "jobs": jobs,
    }


def of_backups(whole: Json) -> Iterator[Fault]:
    """What is wrong with requests for backup plans."""
    domain = "/jobs/1/domain"
    yield Fault("a job in an unknown domain", UNKNOWN, domain, False, {domain: NOWHERE})
    third = "/domains/2/id"
    yield Fault("a domain, twice", INVALID, third, False, {third: whole["domains"][0]["id"]})
    yield from _of_both(whole)


def of_failovers(whole: Json) -> Iterator[Fault]:
    """What is wrong with requests for failover plans."""
    nodes, copies = whole["nodes"], whole["jobs"][1]["copies"]
    copy, last = "/jobs/1/copies/1/domain", len(nodes) - 1
    yield Fault("a copy in a domain without a store", UNKNOWN, copy, False, {copy: NOWHERE})
    yield Fault("a copy, twice", INVALID, copy, True, {copy: copies[0]["domain"]})
    free, held = f"/nodes/{last}", nodes[6]
    yield Fault("a node, twice", INVALID, f"{free}/id", False, {f"{free}/id": nodes[0]["id"]})
    yield Fault("a replica without a job", INVALID, free, True, {f"{free}/replica": 0})
    alone = {member: value for member, value in held.items() if member != "replica"}
    yield Fault("a job without a replica", INVALID, "/nodes/6", True, {"/nodes/6": alone})
    yield Fault("a fit node that is fenced", INVALID, "/nodes/6", True, {"/nodes/6/fenced_in": 30.0})
    yield Fault("a failed node that is fenced", INVALID, "/nodes/3", True, {"/nodes/3/fenced_in": 30.0})
    yield Fault(
        "a replica beyond the last", INVALID, "/nodes/6", True, {"/nodes/6/replica": whole["jobs"][1]["replicas"]}
    )
    yield Fault(
        "a node in another domain than its job", INVALID, "/nodes/6", True, {"/nodes/6/domain": nodes[9]["domain"]}
    )
    more = {f"{free}/job": held["job"], f"{free}/replica": held["replica"]}
    yield Fault("a replica with more nodes than it needs", INVALID, "/nodes", True, more)
    yield from _of_both(whole)


def _of_both(whole: Json) -> Iterator[Fault]:
    links, stores, job = whole["links"], whole["stores"], whole["jobs"][1]
    yield Fault("a job, twice", INVALID, "/jobs/1/id", False, {"/jobs/1/id": whole["jobs"][0]["id"]})
    store = "/stores/2/domain"
    yield Fault("a store, twice", INVALID, store, False, {store: stores[0]["domain"]})
    last = f"/links/{len(links)}"
    yield Fault("a link, twice", INVALID, last, True, {"/links": [*links, links[0]]})
    loop = {**links[0], "target": links[0]["source"]}
    yield Fault("a link to its source", INVALID, last, True, {"/links": [*links, loop]})
    few = {"/jobs/1/least_replicas": job["replicas"] + 1}
    yield Fault("a least number above the number of replicas", INVALID, "/jobs/1", True, few)
