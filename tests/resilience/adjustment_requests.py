"""Requests to adjust running jobs as the wire has them, told as stories or drawn, and what follows from them."""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from statistics import median
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

REVISION = {"epoch": "adjustment", "number": 7}
GIGABYTE, GIGABIT = 1e9, 1e9
INTERVAL_S, PATIENCE_S, WINDOW_S, ALLOWANCE = 2.0, 10.0, 10.0, 0.1
PERIODS = (5, 15, 50, 150, 500)
A, B, C = "a", "b", "c"


def loaded(name: str, before: float = 0.4, now: float | None = None, **changed: Any) -> Json:
    """A domain whose load has been ``now`` for longer than the patience, and was ``before`` for long."""
    loads = [before] * 24 + [before if now is None else now] * 6
    return {"id": name, "level": before, "loads": loads} | changed


def linked(source: str, target: str, before: float = 0.01, now: float | None = None, **changed: Any) -> Json:
    latencies = [before] * 24 + [before if now is None else now] * 6
    usual = {"source": source, "target": target, "bandwidth": 20 * GIGABIT, "level": before, "latencies": latencies}
    return usual | changed


def all_linked(names: Sequence[str], **changed: Any) -> list[Json]:
    return [linked(one, other, **changed) for one in names for other in names if one != other]


def shares(**parts: int) -> list[Json]:
    return [{"domain": name, "parts": number, "part_time": 0.02} for name, number in parts.items()]


def job(name: str = "job", **changed: Any) -> Json:
    """Two domains compute half of a step each; a little is exchanged."""
    usual = {
        "id": name,
        "shares": shares(a=50, b=50),
        "nodes": 4,
        "node_bandwidth": 100 * GIGABIT,
        "node_latency": 1e-5,
        "exchange": 0.2 * GIGABYTE,
        "collective": "hierarchical",
        "period": 1,
        "move_time": 0.01,
        "switch_time": 0.4,
    }
    usual |= changed
    return {"order": [each["domain"] for each in usual["shares"]]} | usual


def change(parts: Sequence[int], after: float = 0.0, **changed: Any) -> Json:
    usual = {"after": after, "parts": list(parts), "collective": "hierarchical", "period": 1, "order": [A, B]}
    return usual | changed


def adjusting(*domains: Json, jobs: Sequence[Json] | None = None, **changed: Any) -> Json:
    """Jobs over domains that are linked all to all."""
    held = list(domains) or [loaded(A), loaded(B)]
    usual = {
        "revision": REVISION,
        "interval": INTERVAL_S,
        "patience": PATIENCE_S,
        "window": WINDOW_S,
        "allowance": ALLOWANCE,
        "domains": held,
        "links": all_linked([each["id"] for each in held]),
        "jobs": [job()] if jobs is None else list(jobs),
    }
    return usual | changed


def in_force(told: Json) -> Json:
    """The policy in force of a job, as a change would say it."""
    parts = [each["parts"] for each in told["shares"]]
    return {"parts": parts, **{name: told[name] for name in ("collective", "period", "order")}}


def levels(asked: Json) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """Levels now of loads and latencies, by the clause."""
    many = max(1, math.ceil(asked["patience"] / asked["interval"] - 1e-9))
    loads = {each["id"]: median(each["loads"][-many:]) for each in asked["domains"]}
    return loads, {(each["source"], each["target"]): median(each["latencies"][-many:]) for each in asked["links"]}


def law(asked: Json, told: Json, policy: Json) -> float:
    """Steps a second of a job by a policy at the levels now, by the clause alone."""
    loads, latencies = levels(asked)
    bandwidths = {(each["source"], each["target"]): each["bandwidth"] for each in asked["links"]}
    step = 0.0
    for share, parts in zip(told["shares"], policy["parts"], strict=True):
        left = 1.0 - loads[share["domain"]]
        if left <= 0.0:
            return 0.0
        step = max(step, parts * share["part_time"] / left)
    order, nodes, bits = policy["order"], told["nodes"], 8 * told["exchange"]
    domains = len(order)
    ring = list(zip(order, [*order[1:], order[0]], strict=True)) if domains > 1 else []

    def over(size: float) -> float:
        return max((latencies[pair] + size / bandwidths[pair] for pair in ring), default=0.0)

    def within(size: float) -> float:
        return float(told["node_latency"] + size / told["node_bandwidth"])

    hidden = 2 / 3 * step
    if policy["collective"] == "ring":
        together = domains * nodes
        slowest = max(over(bits / together), within(bits / together) if nodes > 1 else 0.0)
        return 1 / (step + max(0.0, 2 * (together - 1) * slowest - hidden))
    inside, across = 2 * (nodes - 1) * within(bits / nodes), 2 * (domains - 1) * over(bits / domains)
    if policy["collective"] == "hierarchical":
        return 1 / (step + max(0.0, inside + across - hidden))
    period = policy["period"]
    lasts = period * (step + max(0.0, inside - hidden)) + max(0.0, across - max(0.0, hidden - inside))
    charge = 1.0
    if domains > 1:
        charge = (1 + 0.0240 * (domains - 1) ** 0.818 * math.log(1 + period / 18.4)) ** (1 / 0.3658)
    return period / lasts / charge


def divisions(total: int, domains: int) -> Iterator[list[int]]:
    """All ways to divide parts, one at least to each."""
    if domains == 1:
        yield [total]
        return
    for first in range(1, total - domains + 2):
        yield from ([first, *rest] for rest in divisions(total - first, domains - 1))


def best_rate(asked: Json, told: Json) -> float:
    """Steps a second of the best policy: any division, any ring, and the collectives with usual periods."""
    names = [each["domain"] for each in told["shares"]]
    ways = [("ring", 1), ("hierarchical", 1), *(("low_communication", period) for period in PERIODS)]
    rings = [[names[0], *rest] for rest in permutations(names[1:])]
    return max(
        law(asked, told, {"parts": parts, "collective": kind, "period": period, "order": order})
        for parts in divisions(sum(each["parts"] for each in told["shares"]), len(names))
        for kind, period in ways
        for order in rings
    )


def is_same_ring(one: Sequence[str], other: Sequence[str]) -> bool:
    turned = list(one)
    return any([*turned[at:], *turned[:at]] == list(other) for at in range(len(turned)))


def pause(told: Json, before: Json, after: Json) -> float:
    """Seconds without a step from one policy to the next, by the clause."""
    moved = sum(max(0, new - old) for old, new in zip(before["parts"], after["parts"], strict=True))
    same = all(before[name] == after[name] for name in ("collective", "period"))
    same = same and is_same_ring(before["order"], after["order"])
    return float(moved * told["move_time"] + (0.0 if same else told["switch_time"]))


def greatest_loss(asked: Json, told: Json, changes: Sequence[Json]) -> float:
    """Share of the steps of a window that a job loses at worst where its changes are carried out, at the levels now."""
    window, kept = asked["window"], law(asked, told, in_force(told))
    pieces: list[tuple[float, float, float]] = []
    at, rate, before = 0.0, kept, in_force(told)
    for each in changes:
        begin = max(at, each["after"])
        lasts = pause(told, before, each)
        pieces += [(at, begin, rate), (begin, begin + lasts, 0.0)]
        at, rate, before = begin + lasts, law(asked, told, each), each
    pieces = [(-math.inf, 0.0, kept), *pieces, (at, math.inf, rate)]

    def made(low: float) -> float:
        return sum(
            rate * max(0.0, min(end, low + window) - max(begin, low)) for begin, end, rate in pieces if end > begin
        )

    edges = [edge for begin, end, _ in pieces for edge in (begin, end) if math.isfinite(edge)]
    return max(1.0 - made(low) / (kept * window) for edge in edges for low in (edge, edge - window))


LOADS = st.floats(0.0, 0.9)
TIMES = st.sampled_from([1e-5, 0.002, 0.02, 0.06, 0.5])


@st.composite
def adjustments(draw: st.DrawFn, *, most_parts: int = 24) -> Json:
    """Jobs of few parts over one to three domains, at any levels, some of them with changes planned."""
    names = [A, B, C]
    domains = [
        loaded(name, draw(LOADS), draw(st.one_of(st.none(), LOADS)), level=draw(st.sampled_from([0.0, 0.3, 0.5])))
        for name in names
    ]
    links = [
        linked(one, other, draw(TIMES), draw(st.one_of(st.none(), TIMES)))
        | {"bandwidth": draw(st.sampled_from([1e8, 1e9, 2e10, 1e11]))}
        for one in names
        for other in names
        if one != other
    ]
    jobs = [draw(_job(f"job-{number}", names, most_parts)) for number in range(draw(st.integers(0, 2)))]
    allowance = draw(st.sampled_from([0.0, 0.02, 0.1, 0.4, 1.0]))
    return adjusting(*domains, jobs=jobs, links=links, allowance=allowance)


@st.composite
def _job(draw: st.DrawFn, name: str, names: Sequence[str], most_parts: int) -> Json:
    where = draw(st.permutations(names))[: draw(st.integers(1, 3))]
    each = st.integers(1, most_parts // 3)
    times = st.sampled_from([1e-3, 0.02, 0.05])
    held = [{"domain": at, "parts": draw(each), "part_time": draw(times)} for at in where]
    total = sum(share["parts"] for share in held)
    made = job(
        name,
        shares=held,
        nodes=draw(st.sampled_from([1, 2, 8])),
        exchange=draw(st.sampled_from([1e6, 2e8, 5e9])),
        move_time=draw(st.sampled_from([0.0, 0.01, 0.08, 3.0])),
        switch_time=draw(st.sampled_from([0.0, 0.3, 0.8, 20.0])),
        **draw(_way(where)),
    )
    if draw(st.booleans()):
        made["changed"] = draw(st.sampled_from([0.0, 3.0, 9.9, 200.0]))
    planned = []
    for number in range(draw(st.sampled_from([0, 0, 1, 2]))):
        first = draw(st.integers(1, total - len(where) + 1)) if len(where) > 1 else total
        parts = [first, *_rest(total - first, len(where) - 1)]
        planned.append(change(parts, after=3.0 * number) | draw(_way(where)))
    return made | ({"planned": planned} if planned else {})


def _rest(total: int, domains: int) -> list[int]:
    return [total - (domains - 1), *[1] * (domains - 1)] if domains else []


@st.composite
def _way(draw: st.DrawFn, where: Sequence[str]) -> Json:
    kind = draw(st.sampled_from(["ring", "hierarchical", "low_communication"]))
    period = draw(st.sampled_from([1, 5, 40, 500])) if kind == "low_communication" else 1
    return {"collective": kind, "period": period, "order": draw(st.permutations(where))}


def many_loaded(domains: int, jobs: int, measured: int = 60) -> Json:
    """Jobs of up to five domains each, over domains linked all to all, of which every fourth has become busier."""
    names = [f"d-{number}" for number in range(domains)]
    held = []
    for at, name in enumerate(names):
        before = 0.25 + 0.3 * (at % 7) / 7
        now = before * (1.4 if at % 4 == 0 else 1.0)
        held.append({"id": name, "level": before, "loads": [before] * (measured - 6) + [now] * 6})
    links = [
        linked(one, other, 0.005 + 0.001 * (at % 40)) | {"bandwidth": (2 + at % 30) * GIGABIT}
        for at, one in enumerate(names)
        for other in names
        if one != other
    ]
    for link in links:
        link["latencies"] = [link["level"]] * measured
    made = []
    for number in range(jobs):
        where = [names[(number * 5 + step) % domains] for step in range(min(domains, 2 + number % 4))]
        held_by = [{"domain": name, "parts": 40, "part_time": 0.02 * (1 + 0.1 * at)} for at, name in enumerate(where)]
        made.append(job(f"j-{number}", shares=held_by, exchange=0.5 * GIGABYTE * (1 + number % 8)))
    return adjusting(*held, jobs=made, links=links)
