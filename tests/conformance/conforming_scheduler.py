"""A small scheduler that keeps to the text, for stories about the checks of scheduling; it may be told to err.

It looks at every way alone, takes the best that has room, and knows no hurry.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from math import inf
from typing import Any

from conforming import FunctionSource
from conforming import episode as episode_of

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.cluster import ClusterState
from kuayu_conformance.checks.scheduling.invariants import LEFT_ALONE
from kuayu_conformance.checks.scheduling.placement_requests import BITS, FRONTS, PLACEMENTS, PLANS, ROUTES, Roads, take
from kuayu_conformance.episode import Episode, instant, seconds_of
from kuayu_conformance.testbed.scheduling.bounds import front, instance

METHOD = {"name": "conforming", "version": "1"}
Change = Callable[[str, Json, Json], Json]
"""What becomes of an answer: operation, request, answer."""


def unchanged(path: str, body: Json, answer: Json) -> Json:
    """The conforming answer."""
    del path, body
    return answer


def source(change: Change = unchanged, *, decide: bool = True) -> FunctionSource:
    """The scheduler, of whose answers something becomes; there need be none to begin with."""

    def answer(path: str, body: Json) -> Json:
        return _problem(body) or change(path, body, DECIDES[path](body) if decide else {})

    return FunctionSource(answer)


def episode(name: str, change: Change = unchanged, *, decide: bool = True) -> Episode:
    """An episode with the scheduler."""
    return episode_of(name, source(change, decide=decide))


def place(body: Json) -> Json:
    """Each job where it is best of all that has room, the heaviest traffic first where nodes are told."""
    state = json.loads(json.dumps(body["state"]))
    scene, now = ClusterState(state), seconds_of(state["now"]) or 0.0
    planned = {each["domain"]: each["share"] for each in body.get("shares", [])}
    given = dict.fromkeys(planned, 0.0)
    decisions = []
    account = Account(state)  # sees what is taken out of the pools
    blocked = False  # nobody starts who would keep one waiting that was overtaken long enough
    for entry in sorted(state["waiting"], key=_size if planned else _turn(now)):
        ways = [] if blocked else list(_ways(state, entry, account))
        courses = [(placement, scene.course(entry, placement)) for placement in ways]
        scored = [(_score(scene, entry, each, course, body.get("weights")), each, course) for each, course in courses]
        scored = sorted((each for each in scored if each[2].seconds < inf), key=lambda each: each[0])
        if planned:
            total = sum(given.values()) or 1.0
            scored.sort(key=lambda each: given.get(each[1]["shares"][0]["domain"], inf) / total
                        - planned.get(each[1]["shares"][0]["domain"], 0.0))  # fmt: skip
        decision: Json = {"job": entry["spec"]["id"], "verb": "start" if scored else "wait"}
        if body.get("explain"):
            decision["explanation"] = _explanation(scored, now)
            if not scored:
                decision["explanation"]["overtaken_until"] = instant(_overtaken_until(entry["spec"]))
        if scored:
            decision["placement"] = scored[0][1]
            for share in scored[0][1]["shares"]:
                take(scene.pool(share), share)
            for domain, compute in scene.compute(entry["spec"], scored[0][1]).items():
                given[domain] = given.get(domain, 0.0) + compute
        decisions.append(decision)
        blocked |= not scored and _overtaken_until(entry["spec"]) < now
    decisions += _room(state, {decision["job"] for decision in decisions if decision["verb"] == "start"})
    return {"revision": state["revision"], "method": METHOD, "decisions": decisions}


def _overtaken_until(spec: Json) -> float:
    """Two days after it was submitted."""
    return (seconds_of(spec["submitted_at"]) or 0.0) + 172_800.0


def _turn(now: float) -> Callable[[Json], tuple[float, ...]]:
    """Whoever was overtaken long enough goes first, in the order of submission."""

    def turn(entry: Json) -> tuple[float, ...]:
        late = _overtaken_until(entry["spec"]) < now
        return (0.0, seconds_of(entry["spec"]["submitted_at"]) or 0.0) if late else (1.0, *_eagerness(entry))

    return turn


def _room(state: Json, started: set[str]) -> list[Json]:
    """Jobs of lower priority give devices up for each that does not start: exactly as many, or stop."""
    made: list[Json] = []
    for entry in state["waiting"]:
        spec = entry["spec"]
        lower = [
            job
            for job in state["running"]
            if job["spec"].get("priority", 0) < spec.get("priority", 0)
            and (seconds_of(state["now"]) or 0.0) - (seconds_of(job.get("interrupted_at")) or 0.0) >= LEFT_ALONE
        ]
        missing = spec["devices"]["minimum"]
        for job in lower if spec["id"] not in started else ():
            share = job["placement"]["shares"][0]
            least, devices = job["spec"]["devices"]["minimum"], share["devices"]
            if devices - missing >= least and "nodes" not in share:
                placement = {"shares": [{**share, "devices": devices - missing}], "split_mode": "none"}
                made.append({"job": job["spec"]["id"], "verb": "resize", "placement": placement})
            elif devices == missing:
                made.append({"job": job["spec"]["id"], "verb": "stop"})
            else:
                continue
            break
    return made


def _eagerness(entry: Json) -> tuple[int, float]:
    talk = entry["spec"].get("communication", {"exchange": 0.0, "step_time": 1.0})
    return -entry["spec"].get("priority", 0), -talk["exchange"] / talk["step_time"]


def _size(entry: Json) -> int:
    return -int(entry["spec"]["devices"]["maximum"])


def _ways(state: Json, entry: Json, account: Account) -> Iterator[Json]:
    spec = entry["spec"]
    devices = spec["devices"]
    sizes = {devices["minimum"], devices.get("requested", devices["maximum"])}
    pools = [(domain["id"], pool) for domain in state["domains"] for pool in domain["pools"]]
    splits = [split for split in spec["split_modes"] if split != "none"]
    for size in sorted(sizes, reverse=True):
        found: list[Json] = [
            {"shares": [_share(name, pool, size, spec.get("nodes"))], "split_mode": "none"} for name, pool in pools
        ]
        roomy = any(pool["free"] >= size for _, pool in pools)
        for (one, first), (other, second) in permutations(pools, 2) if splits and not roomy else ():
            half = size // 2
            if one != other and 0 < half <= second["free"] and 0 < size - half <= first["free"]:
                shares = [_share(one, first, size - half), _share(other, second, half)]
                found += [{"shares": shares, "split_mode": split, **_period(spec, split)} for split in splits]
        for placement in found:
            if not account.alone([{"job": spec["id"], "verb": "start", "placement": placement}]):
                yield placement


def _period(spec: Json, split: str) -> Json:
    return {"sync_period": spec.get("sync_period", 50)} if split == "periodic" else {}


def _share(domain: str, pool: Json, devices: int, need: Json | None = None) -> Json:
    share: Json = {"domain": domain, "accelerator": pool["accelerator"], "devices": devices}
    if "nodes" in pool:
        rooms: dict[str, int] = {}
        for node in pool["nodes"]:
            rooms[node["switch"]] = rooms.get(node["switch"], 0) + node["free"]
        ordered = sorted(pool["nodes"], key=lambda node: (-node["free"], -rooms[node["switch"]], node["switch"]))
        each, within = (need or {}).get("devices_per_node"), (need or {}).get("within", "domain")
        scopes = {"domain": lambda _: 0, "node": lambda node: node["id"], "switch": lambda node: node["switch"]}
        for scope in dict.fromkeys(map(scopes[within], ordered)):
            left, share["nodes"] = devices, []
            for node in ordered:
                taken = min(left, node["free"], each or left)
                if scopes[within](node) == scope and taken and taken == (each or taken):
                    share["nodes"].append({"node": node["id"], "devices": taken})
                    left -= taken
            if not left:
                break
    if "offers" in pool:
        able = [offer for offer in pool["offers"] if offer["devices"] >= devices] or pool["offers"]
        share["purchase"] = min(able, key=lambda offer: offer["price"])["purchase"]
    return share


def _score(scene: ClusterState, entry: Json, placement: Json, course: Any, weights: Json | None) -> float:
    counts = weights or {"period": 1.0, "communication": 0.1, "price": 0.01, "utilisation": 0.1}
    best = sum(share["devices"] * max(scene.devices[share["accelerator"]].index.values())
               for share in placement["shares"])  # fmt: skip
    fit = sum(scene.compute(entry["spec"], placement).values()) / best
    return float(
        counts.get("period", 0.0) * course.seconds / 60.0
        + counts.get("communication", 0.0) * course.communication
        + counts.get("price", 0.0) * course.price
        - counts.get("utilisation", 0.0) * fit
    )


def _explanation(scored: Sequence[tuple[float, Json, Any]], now: float) -> Json:
    told = [
        {
            "run_at": instant(now + course.staging),
            "finish_at": instant(now + course.seconds),
            "communication_cost": course.communication,
            "price": course.price,
            "efficiency": course.efficiency,
            "score": score,
        }
        for score, _, course in scored
    ]
    if not told:
        return {"alternatives": [], "reason": "Nothing that it could run on is free."}
    waits = {**told[0], "score": told[-1]["score"] + 1.0}
    others = [
        {"verb": "start", "placement": placement, "outcome": outcome}
        for (_, placement, _), outcome in list(zip(scored, told, strict=True))[1:3]
    ]
    return {
        "outcome": told[0],
        "alternatives": [*others, {"verb": "wait", "outcome": waits}],
        "reason": "It is the best of all that are free.",
    }


def find_front(body: Json) -> Json:
    """The exact front."""
    scene = ClusterState(body["state"])
    found = front(instance(scene.map, scene.load, scene.law, body["slot"]))
    jobs = [entry["spec"]["id"] for entry in body["state"]["waiting"]]
    return {
        "revision": body["state"]["revision"],
        "method": METHOD,
        "solutions": [
            {
                "mean_period": point.period,
                "communication_cost": point.money,
                "jobs": [
                    {"job": job, "start": start, "placement": _told(option.placement)}
                    for job, start, option in zip(jobs, point.starts, point.options, strict=True)
                ],
            }
            for point in found
        ],
    }


def _told(placement: Any) -> Json:
    shares = [{"domain": each.site, "accelerator": each.device, "devices": each.devices} for each in placement.shares]
    periodic = {"sync_period": placement.period} if placement.split == "periodic" else {}
    return {"shares": shares, "split_mode": str(placement.split), **periodic}


def plan(body: Json) -> Json:
    """The cheapest devices for a reference device first, all alike where they cost nothing.

    What may not be interrupted is never bought spot.
    """
    state = body["state"]
    profile = next((each["profile"] for each in body.get("forecast", [])), "")
    demand = sum(each["expected"] for each in body.get("forecast", []))
    interruptible = any(each["interruptible"] for each in body.get("forecast", []))
    for entry in state["waiting"]:
        profile = profile or entry["spec"]["task_profile"]
        demand += entry["spec"]["devices"]["maximum"]
    index = {each["id"]: _index(each, profile) for each in state["accelerators"]}
    rows = [
        (offer["price"] / index[pool["accelerator"]], domain["id"], pool, offer)
        for domain in state["domains"]
        for pool in domain["pools"]
        for offer in pool.get("offers", [{"purchase": "on_demand", "devices": pool["free"], "price": 0.0}])
        if offer["purchase"] != "spot" or interruptible
    ]
    asked = demand
    uses, taken = [], dict[tuple[str, str], int]()
    for _, domain, pool, offer in sorted(rows, key=lambda row: (row[0], row[1], row[2]["accelerator"])):
        at, worth = (domain, pool["accelerator"]), index[pool["accelerator"]]
        even = len(rows) if "offers" not in pool else 1  # what costs nothing is used everywhere alike
        wanted = int(-(-asked // (worth * even)))
        devices = min(offer["devices"], pool["free"] - taken.get(at, 0), wanted, max(0, int(-(-demand // worth))))
        if devices > 0:
            taken[at] = taken.get(at, 0) + devices
            demand -= devices * worth
            price = devices * offer["price"] * body["horizon"] / 3600.0
            uses.append({"domain": domain, "accelerator": at[1], "purchase": offer["purchase"], "devices": devices,
                         "price": price})  # fmt: skip
    compute: dict[str, float] = {}
    for use in uses:
        compute[use["domain"]] = compute.get(use["domain"], 0.0) + use["devices"] * index[use["accelerator"]]
    return {
        "revision": state["revision"],
        "method": METHOD,
        "uses": uses,
        "shares": [{"domain": name, "share": each / sum(compute.values())} for name, each in compute.items()],
        "unmet": max(0.0, demand),
        "price": sum(use["price"] for use in uses),
    }


def _index(accelerator: Json, profile: str) -> float:
    return next((float(row["value"]) for row in accelerator["indices"] if row["profile"] == profile), 1e-9)


def route(body: Json) -> Json:
    """Each demand the widest path, or the cheapest where money alone counts, and all that is left of it."""
    routes: list[Json] = []
    unserved = []
    money = body.get("weights") == {"communication": 1.0}
    for demand in body["demands"]:
        whole, left = Roads(body["links"]), Roads(body["links"], routes)
        path = (left.cheapest if money else left.widest)(demand)
        room = min(left.bandwidth_left(path), demand.get("bandwidth", inf)) if path else 0.0
        late = path and whole.seconds(path) > demand.get("round_trip_time", inf)
        if not path or room <= 0.0 or late:
            unserved.append(demand["id"])
            continue
        bits = demand["size"] * BITS if len(path) > 1 else 0.0
        routes.append(
            {
                "demand": demand["id"],
                "path": path,
                "bandwidth": room if room < inf else 0.0,
                "duration": bits / room,
                "communication_cost": bits * whole.tariff(path),
            }
        )
    return {"revision": body["revision"], "method": METHOD, "routes": routes, "unserved": unserved}


DECIDES: dict[str, Callable[[Json], Json]] = {PLACEMENTS: place, FRONTS: find_front, PLANS: plan, ROUTES: route}


def _problem(body: Json) -> Json | None:
    """The problem of a request whose state contradicts itself."""
    return next((_refusal("invalid-body", pointer) for pointer in _contradictions(body.get("state"))), None)


def _contradictions(state: Json | None) -> Iterator[str]:
    """Places where more is free or held than there is, or no number of devices would do."""
    if state is None:
        return
    held: Counter[tuple[str, str]] = Counter()
    for job in state["running"]:
        for share in job["placement"]["shares"]:
            held[share["domain"], share["accelerator"]] += share["devices"]
    for number, domain in enumerate(state["domains"]):
        for position, pool in enumerate(domain["pools"]):
            rooms = [pool, *pool.get("nodes", ())]
            full = held[domain["id"], pool["accelerator"]] > pool["devices"]
            if full or any(room["free"] > room["devices"] for room in rooms):
                yield f"/state/domains/{number}/pools/{position}"
    for member in ("waiting", "running"):
        for number, job in enumerate(state[member]):
            devices = job["spec"]["devices"]
            if not devices["minimum"] <= devices.get("requested", devices["maximum"]) <= devices["maximum"]:
                yield f"/state/{member}/{number}/spec/devices"


def _refusal(problem: str, pointer: str) -> Json:
    return {"type": f"urn:kuayu:problem:{problem}", "title": problem, "status": 422, "retryable": False,
            "errors": [{"pointer": pointer, "detail": "wrong"}]}  # fmt: skip
