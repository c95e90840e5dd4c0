"""Wrong in waveforms of demand: when jobs run, how far that is open, and what it costs."""

import random
from collections.abc import Sequence
from statistics import median

from minimal_server.core import Answer, Json, Request
from minimal_server.foreseeing import Paths
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


class Rewriting(MinimalServer):
    """Tells waveforms otherwise."""

    @override
    def waveform(self, request: Request) -> Answer:
        told = super().waveform(request).body
        return Answer(200, {**told, **self.told_for(told, self.body(request, "WaveformRequest"))})

    def told_for(self, told: Json, body: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("FCT-005")
class TheEndOfThePeriodIsMissing(Rewriting):
    """There is no point at the end of the period."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"points": told["points"][:-1]}


@breaks("COM-028", "FCT-005")
class WaveformsAreOfTheNextRevision(Rewriting):
    """A waveform tells the revision after that of the question."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"revision": {**told["revision"], "number": told["revision"]["number"] + 1}}


@breaks("FCT-005")
class EndsOfSumsAreSumsOfEnds(Rewriting):
    """Device seconds lie between the sums of the ends of all points, as if all were low or high at once."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        ends = {end: body["step"] * sum(point[end] for point in told["points"]) for end in ("low", "high")}
        return {"device_seconds": {**told["device_seconds"], **ends}}


@breaks("FCT-005")
class DeviceSecondsAreDeviceHours(Rewriting):
    """Device seconds are told in hours."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        seconds = told["device_seconds"]
        return {
            "device_seconds": {**seconds, **{name: seconds[name] / 3600 for name in ("expected", "low", "high")}},
        }


@breaks("FCT-005")
class BudgetsAreMissing(MinimalServer):
    """What a waveform costs is not told, whatever the prices are."""

    @override
    def waveform(self, request: Request) -> Answer:
        told = super().waveform(request).body
        return Answer(200, {name: value for name, value in told.items() if name != "budget"})


@breaks("FCT-005")
class HoursArePaidInFull(MinimalServer):
    """Each point costs what its devices cost in an hour, however short its step is."""

    @override
    def step_prices(self, body: Json, ats: Sequence[float]) -> list[float]:
        return super().step_prices({**body, "step": 3600.0}, ats)


@breaks("FCT-005")
class PricesAreThoseOfNow(MinimalServer):
    """The whole period costs what an hour costs now."""

    @override
    def step_prices(self, body: Json, ats: Sequence[float]) -> list[float]:
        return super().step_prices(body, [0.0 for _ in ats])


@breaks("FCT-005")
class PricesBeginWithThePeriod(MinimalServer):
    """Prices of the hours of a day are those of the hours of the period."""

    @override
    def step_prices(self, body: Json, ats: Sequence[float]) -> list[float]:
        return super().step_prices({**body, "now": "2026-01-01T00:00:00.000Z"}, ats)


@breaks("FCT-005")
class OneCaseIsEnough(MinimalServer):
    """A waveform is that of a single case."""

    @override
    def cases(self, jobs: Sequence[Json], now: str, ats: Sequence[float], chance: random.Random) -> Paths:
        return super().cases(jobs, now, ats, chance)[:1]


@breaks("FCT-005")
class WhatWasAnnouncedRunsAtOnce(MinimalServer):
    """Jobs that will be submitted are laid from now on."""

    @override
    def cases(self, jobs: Sequence[Json], now: str, ats: Sequence[float], chance: random.Random) -> Paths:
        return super().cases([{**job, "submitted_at": now} for job in jobs], now, ats, chance)


@breaks("FCT-005")
class WhatRunsBeginsAnew(MinimalServer):
    """Jobs that run are laid from now on, as if they had done nothing yet."""

    @override
    def cases(self, jobs: Sequence[Json], now: str, ats: Sequence[float], chance: random.Random) -> Paths:
        anew = [{**job, "started_at": now} if "started_at" in job else job for job in jobs]
        return super().cases(anew, now, ats, chance)


@breaks("FCT-005")
class TheMedianIsExpected(MinimalServer):
    """What is expected of a waveform is the median of the cases, not their mean."""

    @override
    def summary(self, values: Sequence[float], coverage: float) -> Json:
        return {**super().summary(values, coverage), "expected": median(values)}


@breaks("FCT-005")
class IntervalsHoldTooFewCases(MinimalServer):
    """Intervals of waveforms hold three quarters of the cases that they should."""

    @override
    def summary(self, values: Sequence[float], coverage: float) -> Json:
        return super().summary(values, 0.75 * coverage)


@breaks("FCT-005")
class IntervalsHoldAllCases(MinimalServer):
    """Intervals of waveforms reach from the least to the most."""

    @override
    def summary(self, values: Sequence[float], coverage: float) -> Json:
        return super().summary(values, 1.0)


@breaks("FCT-005")
class LowEndsAreHighEnds(MinimalServer):
    """Ends of intervals stand the other way round."""

    @override
    def summary(self, values: Sequence[float], coverage: float) -> Json:
        told = super().summary(values, coverage)
        return {**told, "low": told["high"], "high": told["low"]}
