"""A small planner of recoveries that keeps to the text, for stories about their checks; it may be told to err.

Pools are Poisson; every job has a copy at home and one far away, whichever link has most left for it. Broken replicas
are replaced where nodes are free, and whole ones go on until then; what cannot go on is restored from the copy, and in
the domain, that bring it back soonest.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from conforming import FunctionSource
from conforming import episode as episode_of

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience.backups import fewest, mean_of, tail
from kuayu_conformance.checks.resilience.resilience_requests import BACKUPS
from kuayu_conformance.episode import Episode

METHOD = {"name": "conforming", "version": "1"}
TAKEN = 0.9
"""Part of what copies may take that they are planned for; links carry less at times."""
LEAST = 20.0
"""Pauses that a period has at least, so that checkpoints take no more than a twentieth of the time."""
Change = Callable[[str, Json, Json], Json | None]
"""What becomes of an answer: path, request, answer; None where there is to be none."""


def unchanged(path: str, body: Json, answer: Json) -> Json:
    """The conforming answer."""
    del path, body
    return answer


def backup(body: Json) -> Json:
    """A sound backup plan."""
    pools = []
    for domain in body["domains"]:
        spares = fewest(domain, body["risk"])
        risk, price = tail(spares, mean_of(domain)), spares * domain["price"]
        pools.append({"domain": domain["id"], "spares": spares, "risk": risk, "price": price})
    return {"revision": body["revision"], "method": METHOD, "pools": pools, "copies": _copies(body)}


def _copies(body: Json) -> list[Json]:
    """One at home and one far away, at rates by which all that share a store or a link get as much."""
    speeds = {(link["source"], link["target"]): fmean(link["bandwidths"]) for link in body["links"]}
    room = {store["domain"]: store.get("free", 0.0) for store in body["stores"]}
    chosen: list[tuple[Json, str]] = []
    sent: dict[tuple[str, str], float] = defaultdict(float)
    for far in (True, False):
        for job in sorted(body["jobs"], key=lambda each: -each["state_size"]):
            size, home = float(job["state_size"]), job["domain"]
            ways = [target for source, target in speeds if source == home] if far else [home]
            ways = [each for each in ways if room.get(each, 0.0) >= 2.0 * size]
            if ways:
                best = min(ways, key=lambda each: (sent[home, each] + size) / speeds.get((home, each), 1.0))
                room[best] -= 2.0 * size
                sent[home, best] += size
                chosen.append((job, best))
    written: dict[str, float] = defaultdict(float)
    for job, domain in chosen:
        written[domain] += job["state_size"]
    stores = {store["domain"]: store["bandwidth"] for store in body["stores"]}
    copies = []
    for job, domain in chosen:
        period = 8.0 * written[domain] / (TAKEN * body["share"] * stores[domain])
        if domain != job["domain"]:
            way = (job["domain"], domain)
            period = max(period, 8.0 * sent[way] / (TAKEN * body["share"] * speeds[way]))
        period = max(period, LEAST * job["pause"])
        copies.append({"job": job["id"], "domain": domain, "period": period})
    return copies


@dataclass
class Standings:
    """What a request says of nodes, and which are still free."""

    free: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    held: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))


def failover(body: Json) -> Json:
    """A sound failover plan; whoever comes first takes what is free."""
    stand = Standings()
    for node in body["nodes"]:
        if "job" in node:
            stand.held[node["job"]].append(node)
        elif node["condition"] == "fit":
            stand.free[node["domain"]].append(node["id"])
    told = {job["id"]: _way(body, job, stand) for job in sorted(body["jobs"], key=_important)}
    recoveries = [each for job in body["jobs"] if (each := told[job["id"]]) is not None]
    return {"revision": body["revision"], "method": METHOD, "recoveries": recoveries}


def _important(job: Json) -> tuple[int, int]:
    return -job["priority"], job["replicas"] * job["nodes_each"]


def _way(body: Json, job: Json, stand: Standings) -> Json | None:
    each, held = job["nodes_each"], stand.held[job["id"]]
    fit: list[list[str]] = [[] for _ in range(job["replicas"])]
    for node in held:
        if node["condition"] == "fit":
            fit[node["replica"]].append(node["id"])
    broken = [number for number, its in enumerate(fit) if len(its) < each]
    whole = job["replicas"] - len(broken)
    if not broken:
        return None
    own = [name for number in broken for name in fit[number]]
    free = stand.free[job["domain"]]
    count = min(len(broken), (len(own) + len(free)) // each) if whole else 0
    if count and whole + count >= job["least_replicas"]:
        given = [*own, *free][: count * each]
        del free[: max(0, len(given) - len(own))]
        copied = 8.0 * job["state_size"] * count / job["node_bandwidth"] + job["start_time"]
        resumes = job["regroup_time"] + (0.0 if whole >= job["least_replicas"] else copied)
        return _told(job, "replace", _placed(broken[:count], given, each), resumes)
    stays = whole >= job["least_replicas"]
    if stays and any(node["replica"] in broken for node in held):
        return _told(job, "go_on", [], job["regroup_time"])
    ways = list(_restores(body, job, held, [name for its in fit for name in its], stand, least=stays))
    if ways:
        _, given, target, chosen = min(ways, key=lambda way: way[0])
        stand.free[target] = [name for name in stand.free[target] if name not in given]
        return chosen
    return _told(job, "go_on" if stays else "wait", [], None)


def _restores(
    body: Json, job: Json, held: list[Json], own: list[str], stand: Standings, *, least: bool
) -> Iterator[tuple[tuple[Any, ...], set[str], str, Json]]:
    """Ways to restore it, with how good they are; only as a whole where it could go on."""
    unheard = [node for node in held if node["condition"] not in {"fit", "failed"}]
    if any("fenced_in" not in node for node in unheard):
        return
    after = max((node["fenced_in"] for node in unheard), default=0.0)
    ups = {(link["source"], link["target"]): link for link in body["links"] if link.get("up", True)}
    reads = {store["domain"]: store["bandwidth"] for store in body["stores"]}
    for copy in job["copies"]:
        for target in reads:
            nodes = [*(own if target == job["domain"] else []), *stand.free[target]]
            count = min(job["replicas"], len(nodes) // job["nodes_each"])
            link = ups.get((copy["domain"], target))
            if count < (job["replicas"] if least else job["least_replicas"]):
                continue
            if target != copy["domain"] and link is None:
                continue
            speed = reads[copy["domain"]]
            speed = speed if link is None else min(speed, link["bandwidths"][-1])
            lasts = after + 8.0 * job["state_size"] / max(speed, 1.0) + job["start_time"]
            resumes = lasts + copy["age"] * job["replicas"] / count
            given = nodes[: count * job["nodes_each"]]
            placed = _placed(list(range(count)), given, job["nodes_each"])
            told = {**_told(job, "restore", placed, resumes), "source": copy["domain"], "after": after}
            yield (-count, resumes + lasts, target, copy["domain"]), set(given), target, told


def _placed(replicas: list[int], nodes: list[str], each: int) -> list[Json]:
    return [{"replica": number, "nodes": nodes[at * each : (at + 1) * each]} for at, number in enumerate(replicas)]


def _told(job: Json, strategy: str, replicas: list[Json], resumes: float | None) -> Json:
    told = {"job": job["id"], "strategy": strategy, "replicas": replicas, "after": 0.0}
    return told if resumes is None else {**told, "resumes": resumes}


class Conforming:
    """The planner as the testbed asks it."""

    backup = staticmethod(backup)
    failover = staticmethod(failover)


def source(change: Change = unchanged) -> FunctionSource:
    """The planner, of whose answers something becomes."""
    return FunctionSource(lambda path, body: change(path, body, (backup if path == BACKUPS else failover)(body)))


def episode(name: str, change: Change = unchanged, *, full: bool = False, nonce: str = "stories") -> Episode:
    """An episode with the planner."""
    return episode_of(name, source(change), nonce=nonce, full=full)
