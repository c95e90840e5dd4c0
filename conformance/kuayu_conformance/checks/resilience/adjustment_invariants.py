"""Whether an adjustment states the rates that follow from the levels now, and can be carried out (RES-016).

1. Draws the parts of requests for adjustments. Times and bandwidths have no round numbers that would hide a slip.
2. Whether an adjustment names what has changed, and changes policies when it has to and not in calm (RES-007).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, permutations
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.checks.kit.decisions import name, revision, revision_faults
from kuayu_conformance.checks.resilience.resilience_requests import bandwidth
from kuayu_conformance.testbed.adjustment.law import AskedJob, Level, Motion, Policy, jobs, levels, policy
from kuayu_conformance.testbed.transfers.collectives import HIERARCHICAL, LOW, RING

if TYPE_CHECKING:
    from kuayu_schemas import documents

INTERVAL, PATIENCE, WINDOW, ALLOWANCE = 2.0, 10.0, 10.0, 0.1
RISE, FALL = 1.5, 0.5
"""Of a load: changes that a job with parts there does not do well with."""
MEASURED, LATEST = 12, 5
"""Intervals that are told, and those of them that patience spans."""
_NOISE = (-0.02, -0.01, 0.0, 0.01, 0.02)
"""Around the level that is meant, which is the median therefore."""

Way = tuple[str, str]


class AdjustmentRequestBuilder:
    """Draws the parts of a request.

    Attributes:
        chance: What is drawn from.
        domains: Their names; all are joined.
        loads: Stated level of each.
        delays: Stated level of the latency of each way between them, in seconds.
        bandwidths: What each way carries, in bits a second.
    """

    def __init__(self, chance: Random, count: int = 4) -> None:
        self.chance = chance
        self.domains = [name(chance) for _ in range(count)]
        self.loads = {entry: round(chance.uniform(0.35, 0.5), 6) for entry in self.domains}
        pairs = list(permutations(self.domains, 2))
        self.delays = {pair: round(chance.uniform(0.01, 0.03), 6) for pair in pairs}
        self.bandwidths = {pair: bandwidth(chance, 8.0, 16.0) for pair in pairs}
        self._slowness = {domain: chance.uniform(0.7, 1.4) for domain in self.domains}

    def job(
        self,
        domains: Sequence[str],
        *,
        step: float = 2.0,
        total: int = 96,
        collective: str = "hierarchical",
        parts: Sequence[int] = (),
        **members: Any,
    ) -> "documents.AdjustedJob":
        """A job over domains that computes much more than it exchanges.

        Args:
            domains: Where it runs.
            step: Seconds that a step takes at the stated loads where all domains end at once.
            total: Parts of a step.
            collective: By which replicas agree.
            parts: Of each domain; by default all end at once, but for what cannot be divided.
            members: What is otherwise.
        """
        speeds = [(1.0 - self.loads[domain]) / self._slowness[domain] for domain in domains]
        unit = step * sum(speeds) / total
        given = parts or divided(total, speeds)
        job = {
            "id": name(self.chance),
            "shares": [
                {"domain": entry, "parts": item, "part_time": round(unit * self._slowness[entry], 9)}
                for entry, item in zip(domains, given, strict=True)
            ],
            "nodes": 2,
            "node_bandwidth": bandwidth(self.chance, 80.0, 120.0),
            "node_latency": 1e-5,
            "exchange": float(self.chance.randrange(200_000_000, 500_000_000)),
            "collective": collective,
            "period": 1,
            "order": list(domains),
            "move_time": 0.01,
            "switch_time": 0.3,
            **members,
        }
        return cast("documents.AdjustedJob", job)

    def many_rounds(self, domains: Sequence[str], **members: Any) -> "documents.AdjustedJob":
        """A job in one ring of many nodes: what latency does to it is half of the time."""
        rounds = {"step": 1.0, "nodes": 8, "exchange": 1e8, "collective": "ring"}
        return self.job(domains, **{**rounds, **members})

    def planned(
        self, job: "documents.AdjustedJob", speeds: Sequence[float], *, after: float = 5.0, **members: Any
    ) -> "documents.PolicyChange":
        """A change of a job for other speeds of its domains, and otherwise as it runs."""
        parts = divided(sum(share["parts"] for share in job["shares"]), speeds)
        unchanged = {"collective": job["collective"], "period": job["period"], "order": job["order"]}
        return cast("documents.PolicyChange", {"after": after, "parts": parts, **unchanged, **members})

    def speeds(self, job: "documents.AdjustedJob", loads: Mapping[str, float]) -> list[float]:
        """Parts a second in each domain of a job, where some have other loads than the stated ones."""
        now = {**self.loads, **loads}
        return [(1.0 - now[share["domain"]]) / share["part_time"] for share in job["shares"]]

    def request(
        self,
        jobs: "list[documents.AdjustedJob]",
        *,
        loads: Mapping[str, float] | None = None,
        delays: Mapping[Way, float] | None = None,
        **members: Any,
    ) -> "documents.AdjustmentRequest":
        """A request where some loads and latencies are others now than the stated ones."""
        now, late = {**self.loads, **(loads or {})}, {**self.delays, **(delays or {})}
        request = {
            "revision": revision(self.chance),
            "interval": INTERVAL,
            "patience": PATIENCE,
            "window": WINDOW,
            "allowance": ALLOWANCE,
            "domains": [
                {"id": entry, "level": level, "loads": [min(1.0, one) for one in self.measured(level, now[entry])]}
                for entry, level in self.loads.items()
            ],
            "links": [
                {
                    "source": source,
                    "target": target,
                    "bandwidth": self.bandwidths[source, target],
                    "level": level,
                    "latencies": self.measured(level, late[source, target]),
                }
                for (source, target), level in self.delays.items()
            ],
            "jobs": jobs,
            **members,
        }
        return cast("documents.AdjustmentRequest", request)

    def measured(self, before: float, now: float) -> list[float]:
        """Intervals at a level, then those of patience at the present one."""
        noise = [*_NOISE]
        self.chance.shuffle(noise)
        past = [before * (1.0 + self.chance.uniform(-0.02, 0.02)) for _ in range(MEASURED - LATEST)]
        return [round(item, 9) for item in (*past, *(now * (1.0 + entry) for entry in noise))]


def divided(total: int, speeds: Sequence[float]) -> list[int]:
    """Parts in proportion to speeds, at least one to each; the last ones go where they end soonest."""
    parts = [max(1, int(total * speed / sum(speeds))) for speed in speeds]
    while sum(parts) > total:
        parts[parts.index(max(parts))] -= 1
    while sum(parts) < total:
        soonest = min(
            range(len(parts)), key=lambda entry: (parts[entry] + 1) / speeds[entry] if speeds[entry] else float("inf")
        )
        parts[soonest] += 1
    return parts


MIN_STEP_SHARE = 0.9
"""Share of the steps of the best policy with which a job may be left as it is when something has changed."""
STATED_LEVEL_SHARE = 1e-6
"""Levels are stated to within this share."""
_HAIR = 1e-9

Key = tuple[str, str, str | None]
"""Kind, domain or source, and target."""


def untimely(
    request: "documents.AdjustmentRequest",
    adjustment: "documents.Adjustment",
    stated_levels: Sequence[Level] | None = None,
) -> list[str]:
    """All that deviates in triggers, and in whether jobs have changes, of a valid answer.

    Args:
        request: It is valid and does not contradict itself.
        adjustment: Its answer.
        stated_levels: Levels of the request, where they are at hand.
    """
    stated_levels = list(levels(request)) if stated_levels is None else stated_levels
    return [*_triggers(stated_levels, adjustment["triggers"]), *_changes(request, stated_levels, adjustment["jobs"])]


def _triggers(levels: Sequence[Level], adjustment: "Sequence[documents.AdjustmentTrigger]") -> Iterator[str]:
    known = {entry.key: entry for entry in levels}
    times: Counter[Key] = Counter()
    for trigger in adjustment:
        key: Key = trigger["kind"], trigger["domain"], trigger.get("target")
        times[key] += 1
        level = known.get(key)
        if level is None:
            yield f"a trigger of {_words(key)}, which the request does not hold"
        elif level.motion == Motion.CALM:
            yield f"a trigger of {_words(key)}, which is calm: {_standing(level)}"
        elif not _is(trigger["before"], level.before) or not _is(trigger["now"], level.now):
            stated = f"from {trigger['before']:.9g} to {trigger['now']:.9g}"
            yield f"a trigger of {_words(key)}, {stated}, where it is {_standing(level)}"
    for named, count in times.items():
        if count > 1:
            yield f"{_words(named)} is named {count} times"
    for level in levels:
        if level.motion == Motion.CHANGED and level.key not in times:
            yield f"no trigger of {_words(level.key)}, which has changed: {_standing(level)}"


def _changes(
    request: "documents.AdjustmentRequest", levels: Sequence[Level], adjustment: "Sequence[documents.JobAdjustment]"
) -> Iterator[str]:
    motions = {entry.motion for entry in levels}
    changes = {item["job"]: item["changes"] for item in adjustment}
    if motions == {Motion.CALM}:
        for name, planned in changes.items():
            if planned:
                yield f"job {name}: {len(planned)} changes where all is calm"
    if Motion.CHANGED not in motions:
        return
    for job in jobs(request, levels):
        if not changes.get(job.id):
            rate, best = job.rate(job.outlook), job.best_rate
            if rate < (MIN_STEP_SHARE - _HAIR) * best:
                yield f"job {job.id}: no change where it would make {rate:.6g} steps a second of {best:.6g}"


def _is(stated: float, level: float) -> bool:
    return abs(stated - level) <= STATED_LEVEL_SHARE * level


def _words(key: Key) -> str:
    kind, domain, target = key
    return f"the {kind} of {domain}" + ("" if target is None else f" to {target}")


def _standing(level: Level) -> str:
    return f"from {level.before:.9g} to {level.now:.9g}"


STATED_RATE_SHARE = 0.01
"""Rates are stated to within this share."""
SHOWN = 5
"""Names and numbers that a sentence holds at most."""


def deviations(request: "documents.AdjustmentRequest", adjustment: "documents.Adjustment") -> list[str]:
    """All that deviates in rates and changes of a valid answer, with expected and found.

    Args:
        request: It is valid and does not contradict itself.
        adjustment: Its answer.
    """
    deviating = [*revision_faults(request, adjustment)]
    expected, named = [item["id"] for item in request["jobs"]], [entry["job"] for entry in adjustment["jobs"]]
    if named != expected:
        where = f"the request has {len(expected)}, {expected[:SHOWN]}, in this order"
        deviating.append(f"{len(named)} jobs, {named[:SHOWN]}, where {where}")
    return deviating + [
        f"job {job}: {fault}" for job, faults in unsound_jobs(request, adjustment).items() for fault in faults
    ]


def unsound_jobs(request: "documents.AdjustmentRequest", adjustment: "documents.Adjustment") -> dict[str, list[str]]:
    """What deviates in what is told of each job of a request, by job; those where nothing does are absent.

    Args:
        request: It is valid and does not contradict itself.
        adjustment: A valid answer.
    """
    faults_by_job = {}
    for job in jobs(request):
        selected = [item for item in adjustment["jobs"] if item["job"] == job.id]
        faults = [fault for entry in selected for fault in _of_job(job, entry)]
        if len(selected) != 1:
            faults.insert(0, f"told of {len(selected)} times where once is right")
        if faults:
            faults_by_job[job.id] = faults
    return faults_by_job


def _of_job(job: AskedJob, adjustment: "documents.JobAdjustment") -> Iterator[str]:
    yield from _of_rate("rate", adjustment["rate"], job.rate(job.in_force))
    last: Policy | None = job.outlook
    before: Policy | None = job.in_force
    takes_back = bool(job.planned) and len(adjustment["changes"]) == 1
    for number, change in enumerate(adjustment["changes"]):
        wrong = [*faults_of(job, change)]
        yield from (f"change {number}: {item}" for item in wrong)
        last = None if wrong else policy(job.domains, change["parts"], change)
        if before is not None and last is not None and last.is_like(before) and not takes_back:
            yield f"change {number}: it is like {f'change {number - 1}' if number else 'the policy in force'} before it"
        before = last
    yield from _of_times([entry["after"] for entry in adjustment["changes"]])
    # what follows from a policy that cannot be is nothing
    if last is not None:
        yield from _of_rate("expected rate", adjustment["expected_rate"], job.rate(last))


def faults_of(job: AskedJob, change: "documents.PolicyChange") -> Iterator[str]:
    """Why a change of a job, as an answer tells it, cannot be carried out."""
    parts, order = change["parts"], change["order"]
    if len(parts) != len(job.domains):
        yield f"parts for {len(parts)} domains where the job has {len(job.domains)}"
    elif min(parts) < 1:
        yield f"parts {parts[:SHOWN]}, not one at least for each domain"
    elif sum(parts) != job.total:
        yield f"{sum(parts)} parts in all where a step has {job.total}"
    if sorted(order) != sorted(job.domains):
        yield f"the order {order[:SHOWN]} where the job's domains are {sorted(job.domains)[:SHOWN]}, each once"
    collective, period = change["collective"], change["period"]
    if collective not in {RING, HIERARCHICAL, LOW}:
        yield f"the collective {collective}, which is none of {RING}, {HIERARCHICAL}, {LOW}"
    elif period != 1 and collective != LOW:
        yield f"a period of {period} with {collective} where it is one"


def _of_times(after: list[float]) -> Iterator[str]:
    for number, (one, other) in enumerate(pairwise(after), 1):
        if other < one:
            yield f"change {number} is planned after {other:.6g} s, sooner than the one before it, after {one:.6g} s"


def _of_rate(what: str, adjustment: float, true: float) -> Iterator[str]:
    if abs(adjustment - true) > (STATED_RATE_SHARE + _HAIR) * true:
        yield f"{what} {adjustment:.6g}/s where the levels now lead to {true:.6g}/s"
