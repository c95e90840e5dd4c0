"""Adjustments: parts go where there is time for them, a few at once, and replicas agree as is quickest now."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from minimal_server.agreeing import Network, Way
from minimal_server.core import Answer, Json, Request
from minimal_server.questioning import Questioning

METHOD_OF_ADJUSTMENTS = {"name": "minimal server: the quickest policy, in steps that cost little", "version": "1"}
LOAD_CHANGED, LATENCY_CHANGED = 0.2, 0.5
"""Parts of a level by which a load changes, and a latency rises."""
LOAD_CALM, LATENCY_CALM = 0.1, 0.25
"""Parts of a level by which a load and a latency differ and are calm."""
LATELY = 3
"""Intervals that show where a level is going."""
ENOUGH = 0.95
"""Part of the steps of the best policy with which a policy is left as it is."""
SIMILAR = 0.98
"""Part of the steps of the best policy for which replicas do not agree in another way."""
SPENT = 0.8
"""Part of what a job may lose in a window that a change takes."""
MOST_STAGES = 20
"""Changes of an answer for a job at most; the last one moves all that is left."""


@dataclass(frozen=True)
class Levels:
    """What there is now.

    Attributes:
        loads: Share of its compute that others take, by domain.
        network: Latency and bit/s, by link.
    """

    loads: dict[str, float]
    network: Network


@dataclass(frozen=True)
class Policy:
    """How a job runs.

    Attributes:
        parts: Of a step, by domain, in the order of its shares.
        way: How replicas agree.
    """

    parts: tuple[int, ...]
    way: Way


class Adjusting(Questioning):
    """How the policy of running jobs is adjusted."""

    def plan_adjustments(self, request: Request) -> Answer:
        """What has changed, and what becomes of each job."""
        body = self.body(request, "AdjustmentRequest")
        self.check_adjustment(body)
        levels = self.levels_now(body)
        return Answer(
            200,
            {
                "revision": body["revision"],
                "method": METHOD_OF_ADJUSTMENTS,
                "triggers": [*self.load_triggers(body, levels), *self.latency_triggers(body, levels)],
                "jobs": [self.adjusted(body, levels, job) for job in body["jobs"]],
            },
        )

    def levels_now(self, body: Json) -> Levels:
        """The levels of all loads and latencies."""
        loads = {row["id"]: self.level_now(body, row["loads"]) for row in body["domains"]}
        network = {
            (link["source"], link["target"]): (self.level_now(body, link["latencies"]), link["bandwidth"])
            for link in body["links"]
        }
        return Levels(loads, network)

    def level_now(self, body: Json, values: Sequence[float]) -> float:
        """The middle of the last values."""
        return float(median(self.within_patience(body, values)))

    def within_patience(self, body: Json, values: Sequence[float]) -> Sequence[float]:
        """The last values, as many as patience spans."""
        wanted = body["patience"] / body["interval"]
        return values if wanted >= len(values) else values[-max(1, math.ceil(wanted - 1e-9)) :]

    def levels_lately(self, body: Json) -> Levels:
        """Where levels are going."""
        return self.levels_now({**body, "patience": min(body["patience"], LATELY * body["interval"])})

    def has_load_changed(self, before: float, now: float) -> bool:
        """Whether a load differs by so much that it counts."""
        return now != before and abs(now - before) >= LOAD_CHANGED * before

    def has_latency_changed(self, before: float, now: float) -> bool:
        """Whether a latency has risen by so much that it counts."""
        return now != before and now >= (1 + LATENCY_CHANGED) * before

    def load_triggers(self, body: Json, levels: Levels) -> Iterator[Json]:
        """Loads that have changed."""
        for row in body["domains"]:
            before, now = row["level"], levels.loads[row["id"]]
            if self.has_load_changed(before, now):
                yield {"kind": "load", "domain": row["id"], "before": before, "now": now}

    def latency_triggers(self, body: Json, levels: Levels) -> Iterator[Json]:
        """Latencies that have changed."""
        for link in body["links"]:
            ends = link["source"], link["target"]
            before, now = link["level"], levels.network[ends][0]
            if self.has_latency_changed(before, now):
                yield {"kind": "latency", "domain": ends[0], "target": ends[1], "before": before, "now": now}

    def is_calm(self, body: Json, levels: Levels) -> bool:
        """Whether all loads and latencies are about what the policies in force were chosen for."""
        loads = [(row["level"], levels.loads[row["id"]], LOAD_CALM) for row in body["domains"]]
        ends = [(link["level"], (link["source"], link["target"])) for link in body["links"]]
        latencies = [(before, levels.network[pair][0], LATENCY_CALM) for before, pair in ends]
        rows = [*loads, *latencies]
        return all(now == before or abs(now - before) < part * before for before, now, part in rows)

    def adjusted(self, body: Json, levels: Levels, job: Json) -> Json:
        """What becomes of a job."""
        used = self.in_force(job)
        changes = [] if self.is_calm(body, levels) else self.policies_to(body, levels, job)
        last = changes[-1] if changes else self.with_planned(job)
        return {
            "job": job["id"],
            "rate": self.pace(levels, job, used),
            "expected_rate": self.pace(levels, job, last),
            "changes": self.told_changes(body, job, changes),
        }

    def told_changes(self, body: Json, job: Json, changes: Sequence[Policy]) -> list[Json]:
        """Changes as they are told, each a window after the one before it."""
        begins = self.next_begin(body, job)
        return [
            {
                "after": min(begins + number * body["window"], 1e300),
                "parts": list(policy.parts),
                "collective": policy.way.kind,
                "period": policy.way.period,
                "order": list(policy.way.order),
            }
            for number, policy in enumerate(changes)
        ]

    def next_begin(self, body: Json, job: Json) -> float:
        """Seconds from now at which a window has passed since the last change."""
        return max(0.0, float(body["window"] - job["changed"])) if "changed" in job else 0.0

    def in_force(self, job: Json) -> Policy:
        """The policy in force."""
        return self.policy_of(job, [share["parts"] for share in job["shares"]])

    def with_planned(self, job: Json) -> Policy:
        """The policy after all that is planned."""
        planned = job.get("planned", ())
        return self.policy_of(planned[-1], planned[-1]["parts"]) if planned else self.in_force(job)

    def policy_of(self, row: Json, parts: Sequence[int]) -> Policy:
        """The policy that a row tells of."""
        return Policy(tuple(parts), Way(row["collective"], row["period"], tuple(row["order"])))

    def part_times(self, levels: Levels, job: Json) -> list[float]:
        """Seconds of a part in each domain; endless where others take everything."""
        left = [1 - levels.loads[name] for name in self.home(job)]
        shares = zip(job["shares"], left, strict=True)
        return [share["part_time"] / free if free > 0 else math.inf for share, free in shares]

    def as_collective(self, levels: Levels, job: Json, parts: Sequence[int]) -> Json:
        """What would be asked to choose a collective for the job."""
        times = zip(parts, self.part_times(levels, job), strict=True)
        return {**job, "domains": self.home(job), "step_time": max(number * time for number, time in times)}

    def pace(self, levels: Levels, job: Json, policy: Policy) -> float:
        """Steps a second by a policy."""
        return self.steps_a_second(self.as_collective(levels, job, policy.parts), levels.network, policy.way)

    def policies_to(self, body: Json, levels: Levels, job: Json) -> list[Policy]:
        """Policies that come one after the other; none where what is planned, or in force, is good enough."""
        lately = self.levels_lately(body)
        if self.is_enough_for(levels, job) and self.is_enough_for(lately, job):
            return []
        return self.stages(body, lately, job, self.target(lately, job))

    def is_enough_for(self, levels: Levels, job: Json) -> bool:
        """Whether a job makes about as many steps with what is planned, or in force, as it can at some levels."""
        best = max(self.pace(levels, job, policy) for policy in self.best_policies(levels, job))
        return self.pace(levels, job, self.with_planned(job)) >= ENOUGH * best

    def best_policies(self, levels: Levels, job: Json) -> list[Policy]:
        """The best division with the way in force, then with all others."""
        parts = self.best_parts(levels, job)
        ways = self.tried(self.as_collective(levels, job, parts), levels.network)
        return [Policy(parts, way) for way in (self.in_force(job).way, *ways)]

    def target(self, levels: Levels, job: Json) -> Policy:
        """The first of policies that is about as good as the best of them, but for the one in force."""
        used, best = self.in_force(job), self.best_policies(levels, job)
        near = replace(best[0], parts=self.with_one_moved(best[0].parts))
        others = [policy for policy in (*best, near) if self.differs_from(used, policy)]
        paces = [self.pace(levels, job, policy) for policy in others]
        return next(policy for policy, pace in zip(others, paces, strict=True) if pace >= SIMILAR * max(paces))

    def differs_from(self, one: Policy, other: Policy) -> bool:
        """Whether one policy is another one."""
        return one.parts != other.parts or self.is_other(one.way, other.way)

    def with_one_moved(self, parts: tuple[int, ...]) -> tuple[int, ...]:
        """A division with one part of the domain that has most in that which has least."""
        moved = [*parts]
        most, least = (parts.index(extreme(parts)) for extreme in (max, min))
        if parts[most] > 1:
            moved[most], moved[least] = moved[most] - 1, moved[least] + 1
        return tuple(moved)

    def best_parts(self, levels: Levels, job: Json) -> tuple[int, ...]:
        """The division whose slowest domain is the quickest: by speed, then part by part."""
        times, used = self.part_times(levels, job), self.in_force(job).parts
        if math.isinf(min(times)):
            return used
        speeds = [min(times) / time for time in times]
        parts = [max(1, math.floor(sum(used) * speed / sum(speeds))) for speed in speeds]
        places = range(len(parts))
        while sum(parts) < sum(used):
            parts[min(places, key=lambda place: (parts[place] + 1) * times[place])] += 1
        while sum(parts) > sum(used):
            several = (place for place in places if parts[place] > 1)
            parts[max(several, key=lambda place: parts[place] * times[place])] -= 1
        return tuple(parts)

    def stages(self, body: Json, levels: Levels, job: Json, target: Policy) -> list[Policy]:
        """Policies on the way to one: the other way of agreeing first, and as many parts as a window can bear."""
        used, stages = self.in_force(job), list[Policy]()
        parts, switch = used.parts, self.is_other(used.way, target.way)
        while not stages or parts != target.parts:
            first = switch and not stages
            number = self.movable(self.bearable(body) - (job["switch_time"] if first else 0), job)
            number = sum(parts) if len(stages) == MOST_STAGES - 1 else max(0 if first else 1, number)
            parts = self.with_moved(parts, target.parts, number, self.part_times(levels, job))
            stages.append(Policy(parts, target.way))
        return stages

    def bearable(self, body: Json) -> float:
        """Seconds without steps that a change may take."""
        return float(SPENT * body["allowance"] * body["window"])

    def movable(self, room: float, job: Json) -> int:
        """Parts that are moved in so many seconds."""
        whole = sum(self.in_force(job).parts)
        return whole if whole * job["move_time"] <= room else max(0, math.floor(room / job["move_time"]))

    def with_moved(
        self, parts: Sequence[int], wanted: Sequence[int], number: int, times: Sequence[float]
    ) -> tuple[int, ...]:
        """A division with so many parts where they are wanted, from the slowest domain to the quickest first."""
        moved = [*parts]
        places = sorted(range(len(moved)), key=lambda place: -moved[place] * times[place])
        for giver in places:
            for taker in reversed(places):
                several = max(0, min(number, moved[giver] - wanted[giver], wanted[taker] - moved[taker]))
                moved[giver], moved[taker] = moved[giver] - several, moved[taker] + several
                number -= several
        return tuple(moved)
