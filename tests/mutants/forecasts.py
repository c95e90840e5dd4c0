"""Wrong in forecasts: what is left out, and what contradicts itself."""

from collections.abc import Sequence
from random import Random

from minimal_server.core import Answer, Json, Request
from minimal_server.foreseeing import Paths
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("FCT-004", "FCT-006")
class SeriesOfJobsAreLeftOut(MinimalServer):
    """Series of single jobs are not forecast."""

    @override
    def forecast(self, request: Request) -> Answer:
        told = super().forecast(request).body
        single = {series["id"] for series in self.body(request, "ForecastRequest")["series"] if "job" in series}
        return Answer(200, {**told, "forecasts": [row for row in told["forecasts"] if row["series"] not in single]})


@breaks("FCT-004", "FCT-006")
class SeriesStandTheOtherWayRound(MinimalServer):
    """The last series is forecast first."""

    @override
    def forecast(self, request: Request) -> Answer:
        told = super().forecast(request).body
        return Answer(200, {**told, "forecasts": told["forecasts"][::-1]})


@breaks("FCT-004", "FCT-006")
class OneHorizonIsEnough(MinimalServer):
    """Series are forecast for the first horizon only."""

    @override
    def points(self, body: Json, series: Json, laid: Sequence[Paths]) -> list[Json]:
        return super().points(body, series, laid)[:1]


class Point(MinimalServer):
    """Forecasts for a horizon, of which something is told otherwise."""

    @override
    def forecast_point(
        self, body: Json, series: Json, place: int, changes: Sequence[float], paths: Paths, ahead: int
    ) -> Json:
        told = super().forecast_point(body, series, place, changes, paths, ahead)
        return {**told, **self.told_for(told)}

    def told_for(self, told: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("FCT-004", "FCT-006")
class TheHighestLevelIsMissing(Point):
    """The highest level gets no quantile, unless it is the only one."""

    @override
    def told_for(self, told: Json) -> Json:
        return {"quantiles": told["quantiles"][:-1] or told["quantiles"]}


@breaks("FCT-006")
class QuantilesFallWithTheirLevel(Point):
    """The value of the highest quantile is told for the lowest level."""

    @override
    def told_for(self, told: Json) -> Json:
        values = [row["value"] for row in told["quantiles"]]
        turned = zip(told["quantiles"], reversed(values), strict=True)
        return {"quantiles": [{**row, "value": value} for row, value in turned]}


@breaks("FCT-006")
class NeighbouringQuantilesCross(Point):
    """Each level is estimated by itself: the value of the second is a device above that of the third."""

    @override
    def told_for(self, told: Json) -> Json:
        rows = told["quantiles"]
        if len(rows) < 3:
            return {}
        return {"quantiles": [rows[0], {**rows[1], "value": rows[2]["value"] + 1.0}, *rows[2:]]}


@breaks("FCT-006")
class MoreIsExpectedThanTheHighestQuantile(Point):
    """What is expected lies above all quantiles."""

    @override
    def told_for(self, told: Json) -> Json:
        return {"expected": told["quantiles"][-1]["value"] + 1.0}


@breaks("FCT-006")
class LessIsExpectedThanTheLowestQuantile(Point):
    """What is expected lies below all quantiles, where there is room."""

    @override
    def told_for(self, told: Json) -> Json:
        return {"expected": 0.9 * told["quantiles"][0]["value"]}


@breaks("FCT-006")
class TheMeanIsExpected(Point):
    """What is expected is the middle of the outermost quantiles, which is not the median."""

    @override
    def told_for(self, told: Json) -> Json:
        return {"expected": 0.5 * (told["quantiles"][0]["value"] + told["quantiles"][-1]["value"])}


@breaks("COM-028", "COM-029")
class RevisionsAreOfTheLastQuestion(MinimalServer):
    """A forecast tells the revision of the question before it."""

    asked_before: Json | None = None

    @override
    def forecast(self, request: Request) -> Answer:
        told = super().forecast(request).body
        before, self.asked_before = self.asked_before, told["revision"]
        return Answer(200, {**told, "revision": before or told["revision"]})


@breaks("FCT-006")
class ChanceGoesOn(MinimalServer):
    """Cases are drawn anew each time, so that the same question gets another answer."""

    times_drawn = 0

    @override
    def job_paths(self, job: Json, now: str, ats: Sequence[float], cases: int, chance: Random) -> Paths:
        self.times_drawn += 1
        return super().job_paths(job, now, ats, cases, Random(self.times_drawn))
