"""A planner of recoveries that does the first thing that the text allows, and what becomes of it when it slips.

A slip is a look at the request that sees something else than what is there, or a slip of the pen in the answer.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conformance.conforming_recovery import backup

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience.resilience_requests import BACKUPS, FAILOVERS, Standing, standings
from kuayu_conformance.episode import Episode, Request, Settings, describe

Nodes = list[Json]
Planner = Callable[[Json], Json | None]
"""What a request is answered with; None where there is to be no answer."""


def placed(replica: int, *nodes: str) -> Json:
    """A replica on its nodes."""
    return {"replica": replica, "nodes": list(nodes)}


def recovery(job: str, strategy: str, *replicas: Json, after: float = 0.0, **members: Any) -> Json:
    """How a job goes on."""
    return {"job": job, "strategy": strategy, "replicas": list(replicas), "after": after, **members}


def plan(body: Json) -> Json:
    """A sound plan: jobs in turn are replaced, go on, are restored, or wait, whichever is possible first."""
    left = [each for each in body["nodes"] if each["condition"] == "fit" and "job" not in each]
    recoveries = []
    for its in standings(body).values():
        made = _replaced(its, left) or _going_on(its) or _restored(its, left) or recovery(its.job["id"], "wait")
        taken = {name for each in made["replicas"] for name in each["nodes"]}
        left = [each for each in left if each["id"] not in taken]
        recoveries.append(made)
    return {"revision": body["revision"], "method": {"name": "first", "version": "0"}, "recoveries": recoveries}


def _replaced(its: Standing, left: Nodes) -> Json | None:
    domain, least = its.job["domain"], its.job["least_replicas"]
    groups = list(_groups(its, [*_own(its, its.broken), *left], domain))[: len(its.broken)]
    if not groups or not its.whole or its.whole + len(groups) < least:
        return None
    made = (placed(number, *names) for number, names in zip(its.broken, groups, strict=False))
    return recovery(its.job["id"], "replace", *made)


def _going_on(its: Standing) -> Json | None:
    return recovery(its.job["id"], "go_on") if its.whole >= its.job["least_replicas"] else None


def _restored(its: Standing, left: Nodes) -> Json | None:
    times = [each.get("fenced_in") for each in its.unheard]
    if None in times:
        return None
    nodes = [*_own(its, range(its.job["replicas"])), *left]
    for copy in its.job["copies"]:
        source = copy["domain"]
        for domain in dict.fromkeys(each["domain"] for each in nodes):
            groups = list(_groups(its, nodes, domain))[: its.job["replicas"]]
            reached = domain == source or (source, domain) in its.links_up
            if reached and len(groups) >= its.job["least_replicas"]:
                made = (placed(number, *names) for number, names in enumerate(groups))
                return recovery(its.job["id"], "restore", *made, after=max(times, default=0.0), source=source)
    return None


def _own(its: Standing, replicas: Sequence[int]) -> Nodes:
    held = (each for replica in replicas for each in its.nodes_by_replica.get(replica, ()))
    return [each for each in held if each["condition"] == "fit"]


def _groups(its: Standing, nodes: Nodes, domain: str) -> Iterator[list[str]]:
    names, each = [node["id"] for node in nodes if node["domain"] == domain], its.job["nodes_each"]
    yield from (names[at : at + each] for at in range(0, len(names) - each + 1, each))


Look = Callable[[Json], Json]


def _nodes(see: Callable[[Json], Json], *, which: Callable[[Json], bool] = lambda _: True) -> Look:
    """Nodes are seen otherwise."""
    return lambda body: {**body, "nodes": [see(each) if which(each) else each for each in body["nodes"]]}


def _jobs(**members: Any) -> Look:
    """Jobs are taken to have other members."""
    return lambda body: {**body, "jobs": [{**each, **members} for each in body["jobs"]]}


def _free(node: Json) -> bool:
    return "job" not in node


def _dropped(*names: str) -> Callable[[Json], Json]:
    return lambda each: {name: value for name, value in each.items() if name not in names}


def _fit(node: Json) -> Json:
    return {**_dropped("fenced_in")(node), "condition": "fit"}


def _links_up(body: Json) -> Json:
    return {**body, "links": [{**each, "up": True} for each in body["links"]]}


def _links_both_ways(body: Json) -> Json:
    back = [{**each, "source": each["target"], "target": each["source"]} for each in body["links"]]
    return {**body, "links": [*body["links"], *back]}


def _strangers_free(body: Json) -> Json:
    known = {each["id"] for each in body["jobs"]}
    return _nodes(_dropped("job", "replica"), which=lambda each: each.get("job") not in known)(body)


def _broken_free(body: Json) -> Json:
    broken = {(name, replica) for name, its in standings(body).items() for replica in its.broken}
    return _nodes(_dropped("job", "replica"), which=lambda each: (each.get("job"), each.get("replica")) in broken)(body)


def _one_domain(body: Json) -> Json:
    where = body["jobs"][0]["domain"]
    return _nodes(lambda each: {**each, "domain": where}, which=_free)(body)


def _copies_everywhere(body: Json) -> Json:
    return _jobs(copies=[{"domain": each["domain"], "age": 1.0} for each in body["stores"]])(body)


def _first_fence(body: Json) -> Json:
    first = min((each["fenced_in"] for each in body["nodes"] if "fenced_in" in each), default=0.0)
    return _nodes(lambda each: {**each, "fenced_in": first}, which=lambda each: "fenced_in" in each)(body)


def _unheard(node: Json) -> bool:
    return node["condition"] not in {"fit", "failed"}


LOOKS: dict[str, Look] = {
    "takes free nodes for fit": _nodes(_fit, which=_free),
    "takes what it does not know for fit": _nodes(_fit, which=lambda each: each["condition"] == "unknown"),
    "takes unreachable nodes for failed": _nodes(
        lambda each: {**_dropped("fenced_in")(each), "condition": "failed"}, which=_unheard
    ),
    "takes nodes for fenced": _nodes(lambda each: {"fenced_in": 0.0, **each}, which=_unheard),
    "waits for the first fence": _first_fence,
    "takes links for good": _links_up,
    "takes links for two-way": _links_both_ways,
    "takes nodes of strangers": _strangers_free,
    "takes nodes that others give up": _broken_free,
    "does not look at domains": _one_domain,
    "does not look at copies": _copies_everywhere,
    "does not look at the least number": _jobs(least_replicas=1),
}
"""What is seen instead of the request."""


def _alone(body: Json, told: Json) -> Json:
    """Each job is planned as if there were no other."""
    plans = [plan({**body, "jobs": [job]}) for job in body["jobs"]]
    return {**told, "recoveries": [each for one in plans for each in one["recoveries"]]}


def _each(change: Callable[[Json], Json]) -> Callable[[Json, Json], Json]:
    return lambda _, told: {**told, "recoveries": [change(each) for each in told["recoveries"]]}


def _always(strategy: str) -> Callable[[Json, Json], Json]:
    return _each(lambda each: recovery(each["job"], strategy))


def _only_where_nodes_fail(body: Json, told: Json) -> Json:
    hurt = {each.get("job") for each in body["nodes"] if each["condition"] != "fit"}
    return {**told, "recoveries": [each for each in told["recoveries"] if each["job"] in hurt]}


def _only_where_nodes_are(body: Json, told: Json) -> Json:
    holders = {each.get("job") for each in body["nodes"]}
    return {**told, "recoveries": [each for each in told["recoveries"] if each["job"] in holders]}


def _of_all(body: Json, told: Json) -> Json:
    made = {each["job"]: each for each in told["recoveries"]}
    jobs = [each["id"] for each in body["jobs"]]
    return {**told, "recoveries": [made.get(name, recovery(name, "go_on")) for name in jobs]}


def _by_priority(body: Json, told: Json) -> Json:
    height = {each["id"]: each["priority"] for each in body["jobs"]}
    return {**told, "recoveries": sorted(told["recoveries"], key=lambda each: -height[each["job"]])}


def _renumbered(first: int, strategy: str) -> Callable[[Json, Json], Json]:
    def change(each: Json) -> Json:
        if each["strategy"] != strategy:
            return each
        replicas = [{**one, "replica": number} for number, one in enumerate(each["replicas"], first)]
        return {**each, "replicas": replicas}

    return _each(change)


def _one_short(each: Json) -> Json:
    replicas = [{**one, "nodes": one["nodes"][:-1] or one["nodes"] * 2} for one in each["replicas"]]
    return {**each, "replicas": replicas}


def _in_place(body: Json, told: Json) -> Json:
    """Replicas get the nodes that they had, where none is missing."""
    stands = standings(body)

    def change(each: Json) -> Json:
        its = stands[each["job"]]
        had = {number: [node["id"] for node in nodes] for number, nodes in its.nodes_by_replica.items()}
        made = [(one, had.get(one["replica"], [])) for one in each["replicas"]]
        replicas = [{**one, "nodes": ids if len(ids) == len(one["nodes"]) else one["nodes"]} for one, ids in made]
        return {**each, "replicas": replicas}

    return _each(change)(body, told)


def _from_whole(body: Json, told: Json) -> Json:
    """Replicas are replaced on nodes of those that are whole."""
    stands = standings(body)

    def change(each: Json) -> Json:
        its = stands[each["job"]]
        whole = (nodes for number, nodes in its.nodes_by_replica.items() if number not in its.broken)
        if each["strategy"] != "replace":
            return each
        pairs = zip(each["replicas"], whole, strict=False)
        return {**each, "replicas": [{**one, "nodes": [node["id"] for node in nodes]} for one, nodes in pairs]}

    return _each(change)(body, told)


def _with_source(each: Json) -> Json:
    return {"source": "somewhere", **each}


PENS: dict[str, Callable[[Json, Json], Json]] = {
    "plans each job alone": _alone,
    "always goes on": _always("go_on"),
    "looks only at jobs whose nodes fail": _only_where_nodes_fail,
    "looks only at jobs that hold nodes": _only_where_nodes_are,
    "plans for whole jobs, too": _of_all,
    "answers by priority": _by_priority,
    "replaces the first replicas": _renumbered(0, "replace"),
    "restores from number one": _renumbered(1, "restore"),
    "leaves replicas where they were": _in_place,
    "replaces on nodes of whole replicas": _from_whole,
    "gives a node too few": _each(_one_short),
    "names a source always": _each(_with_source),
    "forgets the revision": lambda _, told: {**told, "revision": {"epoch": "e", "number": 0}},
}
"""What becomes of the answer."""

SLIPS = (*LOOKS, *PENS)
PLAIN = {"gives a node too few", "names a source always", "forgets the revision"}
"""Slips that show in nearly every answer."""


def erring(slip: str, body: Json) -> Json:
    """The plan of somebody who slips."""
    return PENS[slip](body, plan(body)) if slip in PENS else {**plan(LOOKS[slip](body)), "revision": body["revision"]}


class Served:
    """Answers an episode without a network."""

    def __init__(self, planners: Mapping[str, Planner]) -> None:
        self._planners, self._number = planners, -1

    def exchange(self, request: Request) -> Answer:
        """The plan, or a fault of the server."""
        self._number += 1
        told = self._planners[request.path](json.loads(request.body))
        status, content = (500, b"oops") if told is None else (200, json.dumps(told).encode())
        headers = {"content-type": "application/json"}
        return Answer(self._number, describe(request), status, headers, content, "", 0.0, 0.01)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"no check of plans asks for {name}")


def episode(name: str, failovers: Planner = plan, backups: Planner = backup) -> Episode:
    """An episode with planners."""
    settings = Settings("stories", "run", full=False, features=frozenset(), limits={}, other_tenant=False)
    return Episode(name, settings, Served({FAILOVERS: failovers, BACKUPS: backups}))
