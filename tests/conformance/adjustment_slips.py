"""An adjuster that goes straight to the best policy, and what becomes of it when it slips.

A slip is a look at the request that sees something else than what is there, or a slip of the pen in the answer.
"""

import json
from collections.abc import Callable, Sequence
from math import floor
from statistics import fmean, median
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.resilience.adjustment_gain import divided
from kuayu_conformance.episode import Episode, Request, Settings, describe
from kuayu_conformance.testbed.adjustment.world import Level, Motion, Policy, RequestedJob, jobs, levels, looked_at
from kuayu_conformance.testbed.collectives import METHODS
from kuayu_conformance.testbed.scheduling.law import penalty

Adjuster = Callable[[Json], Json | None]
"""What a request is answered with; None where there is to be no answer."""

LEAST = 0.9
"""Part of the best from which a policy is left as it is."""


def plan(body: Json) -> Json:
    """A sound adjustment: where something has changed and a job is badly off, it goes to the best policy."""
    its = list(levels(body))
    changed = any(each.motion == Motion.CHANGED for each in its)
    told = [_adjusted(job, changed and job.rate(job.final_policy) < LEAST * job.best_rate) for job in jobs(body, its)]
    triggers = [trigger(each) for each in its if each.motion == Motion.CHANGED]
    return {
        "revision": body["revision"],
        "method": {"name": "best", "version": "0"},
        "triggers": triggers,
        "jobs": told,
    }


def trigger(level: Level) -> Json:
    """What is said of a level."""
    target = {} if level.target is None else {"target": level.target}
    return {"kind": level.kind, "domain": level.domain, **target, "before": level.before, "now": level.now}


def change(job: RequestedJob, its: Policy, after: float = 0.0) -> Json:
    """What is said of a policy that a job gets."""
    method = {"collective": its.method.collective, "period": its.method.period}
    return {"after": after, "parts": list(its.parts), **method, "order": [job.domains[at] for at in its.order]}


def _adjusted(job: RequestedJob, moves: bool) -> Json:
    its = _stages(job) if moves else []
    changes = [change(job, each, 7.0 * number) for number, each in enumerate(its)]
    last = (job.final_policy, *its)[-1]
    return {"job": job.id, "rate": job.rate(job.in_force), "expected_rate": job.rate(last), "changes": changes}


def _stages(job: RequestedJob) -> list[Policy]:
    """To the best policy, in two moves where that is far; to another one where it is in force, but not to stay."""
    first, last = job.in_force, job.best
    if last.is_like(first):
        others = (Policy(last.parts, method, last.order) for method in METHODS if method != first.method)
        return [max(others, key=job.rate)]
    middle = [one + (other - one) // 2 for one, other in zip(first.parts, last.parts, strict=True)]
    middle[middle.index(max(middle))] += job.total - sum(middle)
    half = Policy(tuple(middle), last.method, last.order)
    return [half, last] if first.moved(last) > 2 and not half.is_like(last) else [last]


Look = Callable[[Json], Json]


def _measured(see: Callable[[list[float], float, int], list[float]], *, which: str = "loads latencies") -> Look:
    """Loads or latencies are seen otherwise: what was measured, the stated level, how many count."""

    def look(body: Json) -> Json:
        count = looked_at(body["interval"], body["patience"])
        made = {**body}
        for place, member in (("domains", "loads"), ("links", "latencies")):
            if member in which:
                made[place] = [{**each, member: see(each[member], each["level"], count)} for each in body[place]]
        return made

    return look


def _jobs(see: Callable[[Json], Json]) -> Look:
    """Jobs are seen otherwise."""
    return lambda body: {**body, "jobs": [see(each) for each in body["jobs"]]}


def _two_way(body: Json) -> Json:
    seen: dict[frozenset[str], Json] = {}
    for each in body["links"]:
        seen.setdefault(frozenset((each["source"], each["target"])), each)
    alike = ((each, seen[frozenset((each["source"], each["target"]))]) for each in body["links"])
    return {**body, "links": [{**other, "source": each["source"], "target": each["target"]} for each, other in alike]}


def _shorter(body: Json) -> Json:
    return {**body, "patience": body["interval"] * max(1, floor(body["patience"] / body["interval"]))}


def _alike(body: Json) -> Json:
    return {**body, "links": [{**each, "bandwidth": 1e10} for each in body["links"]]}


def _by_shares(job: Json) -> Json:
    order = [each["domain"] for each in job["shares"]]
    planned = [{**each, "order": order} for each in job.get("planned", ())]
    return {**job, "order": order, "planned": planned}


def _already_there(job: Json) -> Json:
    if not job.get("planned"):
        return job
    last = job["planned"][-1]
    shares = [{**each, "parts": its} for each, its in zip(job["shares"], last["parts"], strict=True)]
    return {**job, "shares": shares, **{member: last[member] for member in ("collective", "period", "order")}}


def _lows(see: Callable[[Json], Json]) -> Look:
    return _jobs(lambda job: see(job) if job["collective"] == "low_communication" else job)


LOOKS: dict[str, Look] = {
    "takes the last interval alone": _measured(lambda values, _, __: values[-1:]),
    "takes the mean": _measured(lambda values, _, count: [fmean(values[-count:])]),
    "takes all that was measured": _measured(lambda values, _, __: [median(values)]),
    "takes the lower of two in the middle": _measured(lambda v, _, n: [sorted(v[-n:])[(len(v[-n:]) - 1) // 2]]),
    "takes an interval too few": _shorter,
    "waits for more": _measured(lambda values, level, count: values if len(values) >= count else [level]),
    "does not see loads fall": _measured(lambda v, level, n: [max(level, median(v[-n:]))], which="loads"),
    "does not look at latencies": _measured(lambda _, level, __: [level], which="latencies"),
    "does not look at loads": _measured(lambda _, level, __: [level], which="loads"),
    "sees nothing where there was nothing": _measured(lambda values, level, _: values if level else [level]),
    "takes no load for more than nine tenths": _measured(lambda v, _, __: [min(0.9, one) for one in v], which="loads"),
    "takes links for two-way": _two_way,
    "takes links for alike": _alike,
    "does not look at plans": _jobs(lambda job: {**job, "planned": []}),
    "takes plans for carried out": _jobs(_already_there),
    "looks at what is planned next": _jobs(lambda job: {**job, "planned": job.get("planned", [])[:1]}),
    "takes shares for the order": _jobs(_by_shares),
    "takes a node for each domain": _jobs(lambda job: {**job, "nodes": 1}),
    "takes nodes for well joined": _jobs(lambda job: {**job, "node_bandwidth": 1e12}),
    "takes periods for one": _lows(lambda job: {**job, "period": 1}),
    "takes low communication for none": _lows(lambda job: {**job, "period": 100_000}),
    "takes bits for bytes": _jobs(lambda job: {**job, "exchange": job["exchange"] / 8.0}),
}
"""What is seen instead of the request."""

Pen = Callable[[Json, Json], Json]


def _each(change: Callable[[Json], Json]) -> Pen:
    return lambda _, told: {**told, "jobs": [change(each) for each in told["jobs"]]}


def _changing(change: Callable[[Json], Json]) -> Pen:
    return _each(lambda job: {**job, "changes": [change(each) for each in job["changes"]]})


def _triggers(change: Callable[[Json], Json], *, which: str = "load latency") -> Pen:
    return lambda _, told: {**told, "triggers": [change(o) if o["kind"] in which else o for o in told["triggers"]]}


def _all_named(which: Callable[[Level], bool]) -> Pen:
    return lambda body, told: {**told, "triggers": [trigger(each) for each in levels(body) if which(each)]}


def _with_jobs(change: Callable[[RequestedJob, Json], Json]) -> Pen:
    def pen(body: Json, told: Json) -> Json:
        pairs = zip(jobs(body), told["jobs"], strict=True)
        return {**told, "jobs": [change(job, each) for job, each in pairs]}

    return pen


def _always(job: RequestedJob, told: Json) -> Json:
    if told["changes"] or job.best.is_like(job.in_force):
        return told
    return {**told, "changes": [change(job, job.best)], "expected_rate": job.best_rate}


def _as_it_is(job: RequestedJob, told: Json) -> Json:
    its = job.in_force
    stays = {**told, "changes": [change(job, its)], "expected_rate": told["rate"]}
    return told if told["changes"] else stays


def _turned(job: RequestedJob, told: Json) -> Json:
    its = job.in_force
    turned = Policy(its.parts, its.method, (*its.order[1:], its.order[0]))
    return told if told["changes"] else {**told, "changes": [change(job, turned)], "expected_rate": told["rate"]}


def _never(job: RequestedJob, told: Json) -> Json:
    return {**told, "changes": [], "expected_rate": job.rate(job.final_policy)}


def _in_force_alone(job: RequestedJob, told: Json) -> Json:
    return _never(job, told) if job.rate(job.in_force) >= LEAST * job.best_rate else told


def _only_parts(job: RequestedJob, told: Json) -> Json:
    """Parts are divided anew, and replicas agree as before; said to be as good as it gets."""
    kept = (Policy(tuple(each["parts"]), job.in_force.method, job.in_force.order) for each in told["changes"])
    return {**told, "changes": [change(job, its, 7.0 * number) for number, its in enumerate(kept)]}


def _evenly(job: RequestedJob, told: Json) -> Json:
    """In the end every domain computes as much, and the rate is said to be that of the best."""
    parts = divided(job.total, [1.0] * len(job.domains))
    return {**told, "changes": [*told["changes"][:-1], *({**last, "parts": parts} for last in told["changes"][-1:])]}


def _raw(job: RequestedJob, told: Json) -> Json:
    """Steps are counted that rare exchanges make worth less."""
    method = job.in_force.method
    charged = penalty(len(job.domains), method.period) if method.collective == "low_communication" else 1.0
    return {**told, "rate": told["rate"] * charged}


def _backwards(changes: Sequence[Json]) -> list[Json]:
    after = [each["after"] for each in changes]
    return [{**each, "after": its} for each, its in zip(changes, reversed(after), strict=True)]


def _one_more(each: Json) -> Json:
    return {**each, "parts": [each["parts"][0] + 1, *each["parts"][1:]]}


def _none_there(each: Json) -> Json:
    parts = each["parts"]
    return {**each, "parts": [sum(parts), *(0 for _ in parts[1:])]} if len(parts) > 1 else each


PENS: dict[str, Pen] = {
    "names nothing": lambda _, told: {**told, "triggers": []},
    "names all": _all_named(lambda _: True),
    "names twice": lambda _, told: {**told, "triggers": told["triggers"] * 2},
    "names what is calm and moves": _all_named(lambda each: each.before != each.now),
    "names no rises from nought": _all_named(lambda each: each.motion == Motion.CHANGED and each.before > 0.0),
    "names links by their sources": _triggers(lambda each: {**each, "target": each["domain"]}, which="latency"),
    "names links the other way": _triggers(
        lambda each: {**each, "domain": each["target"], "target": each["domain"]}, which="latency"
    ),
    "leaves targets out": _triggers(lambda each: {key: its for key, its in each.items() if key != "target"}),
    "gives loads a target": _triggers(lambda each: {"target": each["domain"], **each}, which="load"),
    "turns before and now round": _triggers(lambda each: {**each, "before": each["now"], "now": each["before"]}),
    "rounds levels": _triggers(lambda each: {**each, "now": round(each["now"], 3)}),
    "is never calm": _with_jobs(_always),
    "changes to what is": _with_jobs(_as_it_is),
    "turns rings round": _with_jobs(_turned),
    "never changes": _with_jobs(_never),
    "leaves what runs well and is planned otherwise": _with_jobs(_in_force_alone),
    "keeps collectives": _with_jobs(_only_parts),
    "divides evenly": _with_jobs(_evenly),
    "gives a part too many": _changing(_one_more),
    "gives all to one": _changing(_none_there),
    "gives nobody's parts": _changing(lambda each: {**each, "parts": [*each["parts"], 1]}),
    "leaves one out of the order": _changing(lambda each: {**each, "order": each["order"][1:] or ["nobody"]}),
    "orders one twice": _changing(lambda each: {**each, "order": [*each["order"], each["order"][0]]}),
    "exchanges rarely by any way": _changing(lambda each: {**each, "period": each["period"] + 1}),
    "knows another collective": _changing(lambda each: {**each, "collective": "unknown"}),
    "plans backwards": _each(lambda job: {**job, "changes": _backwards(job["changes"])}),
    "expects what is": _each(lambda job: {**job, "expected_rate": job["rate"]}),
    "expects the best": _with_jobs(lambda job, told: {**told, "expected_rate": job.best_rate}),
    "tells the best": _with_jobs(lambda job, told: {**told, "rate": job.best_rate}),
    "tells the rate once planned": _with_jobs(lambda job, told: {**told, "rate": job.rate(job.final_policy)}),
    "tells seconds": _each(lambda job: {**job, "rate": 1.0 / job["rate"] if job["rate"] else 0.0}),
    "tells two hundredths too many": _each(lambda job: {**job, "rate": 1.02 * job["rate"]}),
    "counts all steps alike": _with_jobs(_raw),
    "tells of the first job alone": lambda _, told: {**told, "jobs": told["jobs"][:1]},
    "tells of jobs backwards": lambda _, told: {**told, "jobs": told["jobs"][::-1]},
    "tells of jobs twice": lambda _, told: {**told, "jobs": told["jobs"] * 2},
    "forgets the revision": lambda _, told: {**told, "revision": {"epoch": "e", "number": 0}},
}
"""What becomes of the answer."""

SLIPS = (*LOOKS, *PENS)
PLAIN = {
    "names all",
    "forgets the revision",
    "tells seconds",
    "tells two hundredths too many",
    "names what is calm and moves",
}
"""Slips that show in nearly every answer."""


def erring(slip: str, body: Json) -> Json:
    """The adjustment of somebody who slips."""
    return PENS[slip](body, plan(body)) if slip in PENS else {**plan(LOOKS[slip](body)), "revision": body["revision"]}


class Served:
    """Answers an episode without a network."""

    def __init__(self, adjuster: Adjuster) -> None:
        self._adjuster, self._number = adjuster, -1

    def exchange(self, request: Request) -> Answer:
        """The adjustment, or a fault of the server."""
        self._number += 1
        told = self._adjuster(json.loads(request.body))
        status, content = (500, b"oops") if told is None else (200, json.dumps(told).encode())
        headers = {"content-type": "application/json"}
        return Answer(self._number, describe(request), status, headers, content, "", 0.0, 0.01)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"no check of adjustments asks for {name}")


def episode(name: str, adjuster: Adjuster = plan) -> Episode:
    """An episode with an adjuster."""
    settings = Settings("stories", "run", full=False, features=frozenset(), limits={}, other_tenant=False)
    return Episode(name, settings, Served(adjuster))
