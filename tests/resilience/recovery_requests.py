"""Requests for backup plans and failover plans as the wire has them, told as stories or drawn."""

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

REVISION = {"epoch": "recovery", "number": 7}
GIGABYTE, GIGABIT = 1e9, 1e9
STATE, START_S, REGROUP_S = 40 * GIGABYTE, 30.0, 5.0


def link(source: str, target: str, gigabits: float = 10.0, **changed: Any) -> Json:
    """A link that carries as much all the time."""
    usual = {"source": source, "target": target, "latency": 0.03, "bandwidths": [gigabits * GIGABIT] * 40}
    return usual | changed


def store(domain: str, gigabits: float = 80.0, **changed: Any) -> Json:
    return {"domain": domain, "bandwidth": gigabits * GIGABIT} | changed


def node(name: str, domain: str = "home", condition: str = "fit", **changed: Any) -> Json:
    return {"id": name, "domain": domain, "condition": condition} | changed


def held(job: str, replica: int, count: int, domain: str = "home", lost: int = 0, **changed: Any) -> list[Json]:
    """Nodes of one replica, the first of them in another condition."""
    lost_ones = {"condition": "failed"} | changed
    usual = {"job": job, "replica": replica}
    names = [f"{job}-{replica}-{number}" for number in range(count)]
    return [node(name, domain, **usual) | (lost_ones if at < lost else {}) for at, name in enumerate(names)]


def spare(domain: str, count: int) -> list[Json]:
    return [node(f"{domain}-spare-{number}", domain) for number in range(count)]


def job(name: str = "job", **changed: Any) -> Json:
    """Two replicas of two nodes, one of which is enough, with a young copy at home and an older one elsewhere."""
    usual = {
        "id": name,
        "priority": 0,
        "domain": "home",
        "replicas": 2,
        "least_replicas": 1,
        "nodes_each": 2,
        "state_size": STATE,
        "node_bandwidth": 50 * GIGABIT,
        "start_time": START_S,
        "regroup_time": REGROUP_S,
        "copies": [{"domain": "home", "age": 60.0}, {"domain": "away", "age": 200.0}],
    }
    return usual | changed


def failing(*nodes: Json, **changed: Any) -> Json:
    """One job in one of two domains that are linked both ways."""
    usual = {
        "revision": REVISION,
        "interval": 30.0,
        "links": [link("home", "away"), link("away", "home")],
        "stores": [store("home"), store("away")],
        "nodes": list(nodes),
        "jobs": [job()],
    }
    return usual | changed


def domain(name: str = "home", **changed: Any) -> Json:
    """32 nodes, each of which fails once in ten days and is repaired in two hours."""
    usual = {
        "id": name,
        "nodes": 32,
        "free": 12,
        "time_between_failures": 864_000.0,
        "repair_time": 7200.0,
        "price": 30,
    }
    return usual | changed


def protected(name: str = "job", **changed: Any) -> Json:
    usual = {
        "id": name,
        "priority": 0,
        "domain": "home",
        "replicas": 2,
        "least_replicas": 1,
        "nodes_each": 2,
        "state_size": STATE,
        "pause": 4.0,
    }
    return usual | changed


def backing(**changed: Any) -> Json:
    """One job and two domains with stores that have room."""
    usual = {
        "revision": REVISION,
        "interval": 30.0,
        "share": 0.5,
        "risk": 0.01,
        "domains": [domain(), domain("away")],
        "links": [link("home", "away"), link("away", "home")],
        "stores": [store("home", free=1e13), store("away", free=1e13)],
        "jobs": [protected()],
    }
    return usual | changed


NAMES = ("a", "b", "c", "d")
SIZES = st.sampled_from([1e-30, 1.0, 1e9, 4e10, 6e11, 1e30])
SPEEDS = st.sampled_from([1e-30, 1.0, 5e9, 2.5e10, 1e11, 1e30])
TIMES = st.sampled_from([0.0, 1e-9, 1.0, 30.0, 90.0, 3600.0, 1e30])
CARRIED = st.lists(st.sampled_from([0.0, 1e-30, 5e9, 2e10, 1e30]), max_size=12)


def many_broken(domains: int, jobs: int, lost: int, nodes_each: int = 2) -> Json:
    """Jobs of four replicas over domains that are linked all to all; the first of them have lost a node or more."""
    names = [f"d-{number}" for number in range(domains)]
    asked = failing(
        links=[link(one, other, 5.0 + at % 7) for at, one in enumerate(names) for other in names if one != other],
        stores=[store(name) for name in names],
        jobs=[
            job(f"j-{number}", domain=names[number % domains], replicas=4, nodes_each=nodes_each)
            | {"copies": [{"domain": names[(number + shift) % domains], "age": 60.0} for shift in (0, 1)]}
            for number in range(jobs)
        ],
    )
    for number, each in enumerate(asked["jobs"]):
        broken_ones = (4 if number % 2 else 1) if number < lost else 0
        for replica in range(4):
            asked["nodes"] += held(each["id"], replica, nodes_each, each["domain"], lost=replica < broken_ones)
    asked["nodes"] += [one for name in names for one in spare(name, 12)]
    return asked


def many_backed_up(domains: int, jobs: int) -> Json:
    """Jobs over domains that are linked all to all, with room for every copy."""
    names = [f"d-{number}" for number in range(domains)]
    return backing(
        domains=[domain(name) for name in names],
        links=[link(one, other, 5.0 + at % 7) for at, one in enumerate(names) for other in names if one != other],
        stores=[store(name, free=1e13) for name in names],
        jobs=[protected(f"j-{at}", domain=names[at % domains], priority=at % 5) for at in range(jobs)],
    )


@st.composite
def links(draw: st.DrawFn) -> list[Json]:
    """Any of those between four domains."""
    pairs = [(one, other) for one in NAMES for other in NAMES if one != other]
    return [
        {"source": one, "target": other, "latency": draw(TIMES), "bandwidths": draw(CARRIED)}
        | draw(st.sampled_from([{}, {"up": True}, {"up": False}]))
        for one, other in pairs
        if draw(st.integers(0, 3))
    ]


@st.composite
def failovers(draw: st.DrawFn) -> Json:
    """Anything that may be asked: nodes in any condition, replicas with some nodes or none, copies here and there."""
    where = [each for each in NAMES if draw(st.integers(0, 4))]
    jobs = [draw(_broken(f"job-{number}", where)) for number in range(draw(st.integers(0, 5)))]
    nodes: list[Json] = []
    for each in jobs:
        for replica in range(min(each["replicas"], 5)):
            for _ in range(draw(st.sampled_from([0, each["nodes_each"], each["nodes_each"]]))):
                nodes.append(
                    draw(_standing(f"n-{len(nodes)}", each["domain"])) | {"job": each["id"], "replica": replica}
                )
    for name in NAMES:
        for _ in range(draw(st.sampled_from([0, 1, 3, 9]))):
            nodes.append(draw(_standing(f"n-{len(nodes)}", name)) | draw(st.sampled_from([{}, {}, GONE])))
    return {
        "revision": REVISION,
        "interval": draw(st.sampled_from([1e-30, 1.0, 30.0, 1e30])),
        "links": draw(links()),
        "stores": [{"domain": each, "bandwidth": draw(SPEEDS)} for each in where],
        "nodes": draw(st.permutations(nodes)),
        "jobs": jobs,
    }


GONE = {"job": "another", "replica": 3}
"""Held by a job that nobody asks about."""


@st.composite
def _standing(draw: st.DrawFn, name: str, where: str) -> Json:
    condition = draw(st.sampled_from(["fit", "fit", "fit", "fit", "failed", "unreachable", "unknown"]))
    made = node(name, where, condition)
    if condition == "unreachable" and draw(st.booleans()):
        made["fenced_in"] = draw(TIMES)
    return made


@st.composite
def _broken(draw: st.DrawFn, name: str, where: list[str]) -> Json:
    replicas = draw(st.sampled_from([1, 2, 3, 5, 10_000]))
    return {
        "id": name,
        "priority": draw(st.integers(-2, 2)),
        "domain": draw(st.sampled_from(NAMES)),
        "replicas": replicas,
        "least_replicas": draw(st.integers(1, min(replicas, 6))),
        "nodes_each": draw(st.sampled_from([1, 1, 2, 3])),
        "state_size": draw(SIZES),
        "node_bandwidth": draw(SPEEDS),
        "start_time": draw(TIMES),
        "regroup_time": draw(TIMES),
        "copies": [{"domain": each, "age": draw(TIMES)} for each in where if draw(st.booleans())],
    }


@st.composite
def backups(draw: st.DrawFn) -> Json:
    """Anything that may be asked: failures often and never, rooms and links for all copies, some and none."""
    counts = st.sampled_from([0, 1, 7, 40, 2000, 9 * 10**15])
    times = st.sampled_from([1e-30, 1.0, 3600.0, 1e6, 1e30])
    domains = [
        {
            "id": each,
            "nodes": draw(counts),
            "free": draw(counts),
            "time_between_failures": draw(times),
            "repair_time": draw(TIMES),
            "price": draw(st.sampled_from([0.0, 2.5, 1e30, 1e308])),
        }
        for each in NAMES[:3]
    ]
    jobs = [
        {
            "id": f"job-{number}",
            "priority": draw(st.integers(-1, 1)),
            "domain": draw(st.sampled_from(NAMES[:3])),
            "replicas": 3,
            "least_replicas": draw(st.integers(1, 3)),
            "nodes_each": draw(st.sampled_from([1, 8, 10_000])),
            "state_size": draw(SIZES),
            "pause": draw(TIMES),
        }
        for number in range(draw(st.integers(0, 8)))
    ]
    return {
        "revision": REVISION,
        "interval": 30.0,
        "share": draw(st.sampled_from([0.0, 1e-30, 0.3, 1.0])),
        "risk": draw(st.sampled_from([0.0, 1e-30, 1e-5, 0.01, 0.5, 1.0])),
        "domains": domains,
        "links": draw(links()),
        "stores": [
            {"domain": each, "bandwidth": draw(SPEEDS)}
            | draw(st.sampled_from([{}, {"free": 0.0}, {"free": draw(SIZES)}]))
            for each in NAMES
            if draw(st.integers(0, 4))
        ],
        "jobs": jobs,
    }
