"""Sizes of tasks: what their kind put to use of what it asked for."""

import math
from collections.abc import Iterator, Sequence
from operator import mul
from statistics import fmean, median

from minimal_server.core import Answer, Json, Request
from minimal_server.layouts import Layouts

METHOD_OF_SIZES = {"name": "minimal server: quantile of use by kind", "version": "1"}
RESOURCES = ("devices", "cores", "memory")
SLOW_DOWN = 0.05
HEADROOM = {"devices": 1.1, "cores": 1.1, "memory": 1.05}
"""What is needed over what is used: on average of devices and cores, at most of memory."""
PEAK = 1.6
"""Peak of memory over its average, where no peak is told."""
LEAST = 10
"""Records of a kind below which it gets what it asks for."""
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
HELD_BACK = 4
"""Every so manieth record is held back to judge what is said of the others."""
TINY = 1e-9


class Sizing(Layouts):
    """What tasks should be given."""

    def size_tasks(self, request: Request) -> Answer:
        """A size for each task, and what the time of each kind depends on."""
        body = self.body(request, "SizingRequest")
        self.check_tasks(body)
        allowed = body.get("slow_down", SLOW_DOWN)
        kinds: dict[str, list[Json]] = {}
        for record in body["history"]:
            kinds.setdefault(record["kind"], []).append(record)
        rules = {
            kind: {**self.rule(records, allowed), "duration": self.lasting(records)}
            for kind, records in kinds.items()
            if len(records) >= LEAST
        }
        return Answer(
            200,
            {
                "revision": body["revision"],
                "method": METHOD_OF_SIZES,
                "tasks": [self.sized(task, rules) for task in body["tasks"]],
                "importance": [self.importance(kind, kinds[kind]) for kind in sorted(kinds)],
            },
        )

    def check_tasks(self, body: Json) -> None:
        """A request names no task twice."""
        self.refuse_if("invalid-body", "names are given twice", self.twice("/tasks", body["tasks"], "id"))

    def rule(self, records: Sequence[Json], allowed: float) -> Json:
        """Shares of what is asked for that a kind is given, and by how much that slows it."""
        shares = {name: sorted(self.needed_share(record, name) for record in records) for name in RESOURCES}
        for level in LEVELS:
            given = {name: self.quantile(shares[name], self.level(name, level)) for name in RESOURCES}
            slower = fmean(self.slower(record, given) for record in records)
            if slower <= allowed:
                return {"given": given, "slow_down": slower}
        return {"given": dict.fromkeys(RESOURCES, 1.0), "slow_down": 0.0}

    def level(self, name: str, level: float) -> float:
        """Share of records that are to have enough: of memory all, since who has too little dies."""
        return 1.0 if name == "memory" else level

    def needed_share(self, record: Json, name: str) -> float:
        """What a task needed of a resource, in parts of what it asked for."""
        asked, used = record["requested"][name], record["used"][name]
        if name == "memory":
            used = record["peak"][name] if "peak" in record else PEAK * used
        return float(min(1.0, HEADROOM[name] * used / asked)) if asked > 0 else 1.0

    def slower(self, record: Json, given: Json) -> float:
        """By how much a task would have run longer, if all of its time followed from the scarcest resource."""
        scarcest: float = max(self.needed_share(record, name) / max(given[name], TINY) for name in RESOURCES)
        return scarcest - 1.0

    def quantile(self, values: Sequence[float], level: float) -> float:
        """The least value that a share of the sorted values do not exceed."""
        return float(values[max(1, math.ceil(level * len(values))) - 1])

    def sized(self, task: Json, rules: dict[str, Json]) -> Json:
        """What a task should be given."""
        asked, rule = task["requested"], rules.get(task["kind"])
        if rule is None:
            return {
                "task": task["id"],
                "recommended": dict(asked),
                "slow_down": 0.0,
                "reason": "too few tasks of its kind ran before",
            }
        given = {name: asked[name] * max(rule["given"][name], TINY) for name in RESOURCES}
        return {
            "task": task["id"],
            "recommended": given,
            "duration": rule["duration"],
            "slow_down": rule["slow_down"],
            "reason": "tasks of its kind used no more",
        }

    def lasting(self, records: Sequence[Json]) -> Json:
        """How long tasks of a kind ran."""
        seconds = sorted(record["duration"] for record in records)
        low, high = self.quantile(seconds, 0.05), self.quantile(seconds, 0.95)
        return {"expected": median(seconds), "low": low, "high": high, "coverage": 0.9}

    def importance(self, kind: str, records: Sequence[Json]) -> Json:
        """How much worse durations are predicted where a resource is taken from another task."""
        train = [record for number, record in enumerate(records) if number % HELD_BACK]
        test = list(records[::HELD_BACK])
        weights = self.fitted_durations(train or test)
        error = self.error(test, [self.duration(weights, self.features(record)) for record in test])
        of_mean = self.error(test, [fmean(record["duration"] for record in train or test)] * len(test)) or 1.0
        row: Json = {"kind": kind, "error": error, "records": len(records)}
        for place, name in enumerate(RESOURCES):
            told = [self.duration(weights, mixed) for mixed in self.mixed(test, place)]
            row[name] = (self.error(test, told) - error) / of_mean
        return row

    def mixed(self, records: Sequence[Json], place: int) -> Iterator[list[float]]:
        """Features of records, with those of one resource from the record half the list away."""
        rows = [self.features(record) for record in records]
        for number, row in enumerate(rows):
            other = rows[(number + len(rows) // 2) % len(rows)]
            yield [other[i] if i in (1 + place, 4 + place) else value for i, value in enumerate(row)]

    def features(self, record: Json) -> list[float]:
        """One, and logarithms of what a task used and of what it was given."""
        parts = (record["used"], record["requested"])
        return [1.0, *(math.log(part[name] + TINY) for part in parts for name in RESOURCES)]

    def duration(self, weights: Sequence[float], features: Sequence[float]) -> float:
        """Seconds that features lead to."""
        return math.exp(max(-50.0, min(50.0, sum(map(mul, weights, features)))))

    def error(self, records: Sequence[Json], told: Sequence[float]) -> float:
        """Sum of the errors over the sum of durations."""
        away = sum(abs(record["duration"] - each) for record, each in zip(records, told, strict=True))
        return float(away / sum(record["duration"] for record in records))

    def fitted_durations(self, records: Sequence[Json]) -> list[float]:
        """Weights of features by which logarithms of durations are nearest; small ones where that is open."""
        rows = [self.features(record) for record in records]
        size = len(rows[0])
        matrix = [[sum(row[i] * row[j] for row in rows) + (i == j) * 1e-3 for j in range(size)] for i in range(size)]
        right = [
            sum(row[i] * math.log(one["duration"]) for row, one in zip(rows, records, strict=True)) for i in range(size)
        ]
        return solved(matrix, right)


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solution of a positive definite system, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for place, row in enumerate(rows):
        for below in rows[place + 1 :]:
            factor = below[place] / row[place]
            for column in range(place, len(row)):
                below[column] -= factor * row[column]
    found: list[float] = []
    for place, row in reversed(list(enumerate(rows))):
        known = sum(value * row[place + 1 + number] for number, value in enumerate(found))
        found.insert(0, (row[-1] - known) / row[place])
    return found
