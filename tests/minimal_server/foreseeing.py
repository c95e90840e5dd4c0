"""Forecasts of series: the last value, what jobs are foreseen to do, and the errors that this made before."""

import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from statistics import NormalDist

from minimal_server.core import Answer, Json, Request
from minimal_server.premises import Premises

METHOD_OF_FORECASTS = {"name": "minimal server: last value, and structure of jobs", "version": "1"}
CASES = 60
REMEMBERED = 1500
"""Values of a series that are looked back over."""
LOOKED_AT = 300
"""Instants among them, at most, of which it is worked out what came after."""
COUNTED = {"demanded_devices", "held_devices"}
"""Quantities that follow from the structure of jobs."""
MOST_DEVICES = 2**53 - 1
"""More cannot be told."""
STEPS_OF_HORIZON = 12
"""Instants at which jobs are looked at within the horizon of a reservation."""

Paths = list[list[float]]
"""Devices of jobs, by case and instant."""


class Foreseeing(Premises):
    """What series will show, and what to reserve."""

    def forecast(self, request: Request) -> Answer:
        """A forecast of every series for every horizon."""
        body = self.body(request, "ForecastRequest")
        self.check_forecast(body)
        self.refuse_if("invalid-body", "horizons and levels must rise", self.unordered(body))
        laid = self.laid(body, [0.0, *body["horizons"]])
        forecasts = [{"series": series["id"], "points": self.points(body, series, laid)} for series in body["series"]]
        return Answer(200, {"revision": body["revision"], "method": METHOD_OF_FORECASTS, "forecasts": forecasts})

    def chance(self, body: Json) -> random.Random:
        """Random numbers that follow from the request, so that the same one gets the same answer."""
        return random.Random(f"{body['now']} {body['revision']}")

    def points(self, body: Json, series: Json, laid: Sequence[Paths]) -> list[Json]:
        """A forecast for each horizon."""
        ahead = self.ahead(body, series)
        paths = self.paths(body, series, laid)
        return [
            self.forecast_point(body, series, place, [path[place + 1] - path[0] for path in paths], paths, ahead[place])
            for place in range(len(body["horizons"]))
        ]

    def known_values(self, series: Json) -> list[float]:
        """Values up to the last that is known; one that is missing is as the one before it."""
        values: list[float] = []
        known = [place for place, value in enumerate(series["values"]) if value is not None]
        for value in series["values"][: known[-1] + 1]:
            values.append(value if value is not None else values[-1] if values else series["values"][known[0]])
        return values

    def ahead(self, body: Json, series: Json) -> list[int]:
        """How many values after the last one is shown at each horizon."""
        begin, last = self.seconds_until(series["begin"], body["now"]), len(self.known_values(series)) - 1
        return [max(0, math.floor((one - begin) / series["step"] + 1e-9) - last) for one in body["horizons"]]

    def forecast_point(
        self, body: Json, series: Json, place: int, changes: Sequence[float], paths: Paths, ahead: int
    ) -> Json:
        """The forecast for one horizon."""
        values = self.known_values(series)
        last = values[-1]
        share = min(1.0, paths[0][0] / last) if last > 0 and paths else 0.0
        errors = [(1 - share) * error for error in self.errors(values, ahead)]
        added = self.added(body, series, body["horizons"][place])
        cases = sorted(max(0.0, last + added + change + error) for change, error in self.paired(changes, errors))
        return {
            "horizon": body["horizons"][place],
            "expected": self.quantile_of(cases, 0.5),
            "quantiles": [{"level": level, "value": self.quantile_of(cases, level)} for level in body["levels"]],
            "structure_share": share,
        }

    def paired(self, changes: Sequence[float], errors: Sequence[float]) -> Iterator[tuple[float, float]]:
        """Every error with a change, in turn."""
        for number, error in enumerate(errors):
            yield (changes[number % len(changes)] if changes else 0.0), error

    def quantile_of(self, values: Sequence[float], level: float) -> float:
        """Quantile of sorted values, in between where it falls between two."""
        place = level * (len(values) - 1)
        low = math.floor(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (place - low) * (values[high] - values[low])

    def errors(self, values: Sequence[float], ahead: int) -> list[float]:
        """By how much the last value was exceeded so many values later, before now."""
        recent = values[-REMEMBERED:]
        known = min(ahead, len(recent) - 1)
        if not known:
            return [0.0]
        wider = math.sqrt(ahead / known)
        return [wider * (recent[place + known] - recent[place]) for place in self.looked_at(len(recent) - known)]

    def looked_at(self, count: int) -> range:
        """Places of some values, evenly spread among so many."""
        return range(0, count, math.ceil(count / LOOKED_AT))

    def added(self, body: Json, series: Json, horizon: float) -> float:
        """Devices that known events add by then and do not add yet."""
        sign = {"campaign": 1, "deadline": 1, "maintenance": -1 if series["quantity"] == "held_devices" else 0}
        total = 0.0
        for event in body.get("events", ()):
            if series["quantity"] in COUNTED and self.concerns(event, series):
                begin, end = (self.seconds_until(event[name], body["now"]) for name in ("begins_at", "ends_at"))
                change = (begin <= horizon < end) - (begin <= 0 < end)
                total += change * sign.get(event["kind"], 0) * event.get("devices", 0.0)
        return total

    def concerns(self, of: Json, series: Json) -> bool:
        """Whether an event is about a series: places and tenants that it leaves open are all of them."""
        return all(series.get(name) == of[name] for name in ("domain", "tenant") if name in of)

    def counts_job(self, series: Json, job: Json) -> bool:
        """Whether a series counts a job."""
        named = {"domain": "domain", "tenant": "tenant", "job": "id"}
        is_its = all(job.get(member) == series[name] for name, member in named.items() if name in series)
        return (
            series["quantity"] in COUNTED and is_its and (series["quantity"] != "held_devices" or "started_at" in job)
        )

    def paths(self, body: Json, series: Json, laid: Sequence[Paths]) -> Paths:
        """Devices of the jobs that a series counts, case by case; no case where there is no such job."""
        its = [paths for job, paths in zip(body.get("jobs", ()), laid, strict=True) if self.counts_job(series, job)]
        return [[sum(column) for column in zip(*case, strict=True)] for case in zip(*its, strict=True)]

    def laid(self, body: Json, ats: Sequence[float]) -> list[Paths]:
        """Devices of every job at instants, in as many cases."""
        jobs, chance = body.get("jobs", ()), self.chance(body)
        cases = max(20, min(CASES, 200_000 // max(1, sum(len(job["periods"]) for job in jobs))))
        return [self.job_paths(job, body["now"], ats, cases, chance) for job in jobs]

    def job_paths(self, job: Json, now: str, ats: Sequence[float], cases: int, chance: random.Random) -> Paths:
        """Devices of a job at instants; while it waits, it demands those of its first period."""
        begin, lengths = self.laid_from(job, now), self.lengths(job)
        since = begin if "started_at" in job else self.seconds_until(job["submitted_at"], now)
        levels = [lengths[0][2], *(devices for _, _, devices in lengths), 0]
        found = []
        for _ in range(cases):
            ends = self.ends(begin, lengths, ats[-1], chance)
            found.append([float(levels[bisect_right(ends, at)]) if at >= since else 0.0 for at in ats])
        return found

    def ends(
        self, begin: float, lengths: Sequence[tuple[float, float, int]], until: float, chance: random.Random
    ) -> list[float]:
        """When periods begin and end in one case, up to the first that ends after an instant."""
        ends = [begin]
        for length in lengths:
            if ends[-1] > until:
                break
            ends.append(ends[-1] + self.drawn(length, chance))
        return ends

    def laid_from(self, job: Json, now: str) -> float:
        """Seconds from now at which the first period of a job is laid."""
        if "started_at" in job:
            return self.seconds_until(job["started_at"], now)
        return max(0.0, self.seconds_until(job["submitted_at"], now))

    def lengths(self, job: Json) -> list[tuple[float, float, int]]:
        """Median seconds of each period, standard deviation of their logarithm, and devices."""
        return [
            (row["duration"]["expected"], self.deviation(row["duration"]), row["devices"]) for row in job["periods"]
        ]

    def deviation(self, estimate: Json) -> float:
        """Standard deviation of the logarithm by which an interval holds what it says."""
        if estimate["low"] <= 0 or estimate["high"] <= estimate["low"]:
            return 0.0
        reach = NormalDist().inv_cdf(0.5 + min(0.999, estimate["coverage"]) / 2)
        return math.log(estimate["high"] / estimate["low"]) / (2 * reach) if reach > 0 else 0.0

    def drawn(self, length: tuple[float, float, int], chance: random.Random) -> float:
        """Seconds of a period in one case."""
        middle, deviation, _ = length
        return middle * math.exp(deviation * chance.gauss(0.0, 1.0)) if deviation else middle

    def reserve(self, request: Request) -> Answer:
        """What to reserve for each series of a tenant that something was promised to."""
        body = self.body(request, "ReservationRequest")
        self.check_forecast(body)
        promised = {row["tenant"]: row["violations"] for row in body["qualities"]}
        ats = [body["horizon"] * number / STEPS_OF_HORIZON for number in range(STEPS_OF_HORIZON + 1)]
        laid = self.laid(body, ats)
        reservations = [
            self.reservation(body, series, promised[series["tenant"]], laid)
            for series in body["series"]
            if series.get("tenant") in promised
        ]
        return Answer(200, {"revision": body["revision"], "method": METHOD_OF_FORECASTS, "reservations": reservations})

    def reservation(self, body: Json, series: Json, violations: float, laid: Sequence[Paths]) -> Json:
        """What to reserve from a series."""
        values = self.known_values(series)
        horizon, last = body["horizon"], values[-1]
        paths = self.paths(body, series, laid)
        rises = [max(path[1:]) - path[0] for path in paths]
        share = min(1.0, paths[0][0] / last) if last > 0 and paths else 0.0
        most = self.highest(values, max(1, math.floor(horizon / series["step"])))
        errors = [(1 - share) * error for error in most]
        cases = sorted(max(0.0, last + change + error) for change, error in self.paired(rises, errors))
        return {
            "series": series["id"],
            "tenant": series["tenant"],
            **({"domain": series["domain"]} if "domain" in series else {}),
            "expected": self.quantile_of(cases, 0.5),
            "devices": self.reserved(cases, violations),
        }

    def reserved(self, cases: Sequence[float], violations: float) -> int:
        """Whole devices that are exceeded in a share of cases."""
        return min(MOST_DEVICES, math.ceil(self.quantile_of(cases, 1 - violations) - 1e-9))

    def highest(self, values: Sequence[float], ahead: int) -> list[float]:
        """By how much a value was exceeded at most within so many later ones, before now."""
        recent = values[-REMEMBERED:]
        known = min(ahead, len(recent) - 1)
        return [
            max(recent[place + 1 : place + 1 + known]) - recent[place] for place in self.looked_at(len(recent) - known)
        ]
