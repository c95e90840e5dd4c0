"""Waveforms of demand: the periods of jobs laid one after the other, in many cases."""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import mul
from statistics import fmean

from minimal_server.core import Answer, Json, Request, milliseconds
from minimal_server.foreseeing import Foreseeing, Paths

METHOD_OF_WAVEFORMS = {"name": "minimal server: cases", "version": "1"}
CASES_OF_WAVEFORM, LEAST_CASES, DRAWS = 2000, 100, 400_000
COVERAGE = 0.9
DAY, HOUR = 86_400.0, 3600.0


class Waving(Foreseeing):
    """Demand over a coming period."""

    def waveform(self, request: Request) -> Answer:
        """Demand at every step of a period, with what it costs."""
        body = self.body(request, "WaveformRequest")
        self.check_forecast(body)
        coverage = body.get("coverage", COVERAGE)
        ats = [number * body["step"] for number in range(math.floor(body["period"] / body["step"] + 1e-9) + 1)]
        cases = self.cases(body["jobs"], body["now"], ats, self.chance(body))
        paid = self.step_prices(body, ats)
        report: Json = {
            "revision": body["revision"],
            "method": METHOD_OF_WAVEFORMS,
            "points": [{"at": at, **self.summary(column, coverage)} for at, column in self.columns(ats, cases)],
            "device_seconds": self.summed(cases, [body["step"]] * len(ats), coverage),
            **({"budget": self.summed(cases, paid, coverage)} if "prices" in body else {}),
        }
        return Answer(200, report)

    def columns(self, ats: Sequence[float], cases: Paths) -> list[tuple[float, list[float]]]:
        """Instants with the devices of all cases."""
        return [(at, [path[place] for path in cases]) for place, at in enumerate(ats)]

    def summary(self, values: Sequence[float], coverage: float) -> Json:
        """Mean of cases with an interval."""
        ordered = sorted(values)
        low, high = (self.quantile_of(ordered, level) for level in (0.5 - coverage / 2, 0.5 + coverage / 2))
        return {"expected": fmean(values), "low": low, "high": high}

    def summed(self, cases: Paths, weights: Sequence[float], coverage: float) -> Json:
        """What all points of a case sum up to, with an interval."""
        sums = [sum(map(mul, path, weights)) for path in cases]
        return {**self.summary(sums, coverage), "coverage": coverage}

    def cases(self, jobs: Sequence[Json], now: str, ats: Sequence[float], chance: random.Random) -> Paths:
        """Devices by case and instant."""
        laid = [(self.laid_from(job, now), self.lengths(job)) for job in jobs]
        periods = sum(len(lengths) for _, lengths in laid)
        count = max(LEAST_CASES, min(CASES_OF_WAVEFORM, DRAWS // max(1, periods))) if jobs else 1
        found = []
        for _ in range(count):
            changes = [0.0] * (len(ats) + 1)
            for begin, lengths in laid:
                ends = accumulate((self.drawn(length, chance) for length in lengths), initial=begin)
                for (since, until), (_, _, devices) in zip(pairwise(ends), lengths, strict=True):
                    changes[bisect_left(ats, since)] += devices
                    changes[bisect_left(ats, until)] -= devices
            found.append(list(accumulate(changes[:-1])))
        return found

    def step_prices(self, body: Json, ats: Sequence[float]) -> list[float]:
        """Money for a device at each point, for one step."""
        prices = body.get("prices") or [{"begin": 0.0, "price": 0.0}]
        begins, since = [row["begin"] for row in prices], milliseconds(body["now"]) / 1000
        return [self.price(prices, begins, (since + at) % DAY) * body["step"] / HOUR for at in ats]

    def price(self, prices: Sequence[Json], begins: Sequence[float], second: float) -> float:
        """Price of an hour at a second of the day."""
        return float(prices[max(0, bisect_right(begins, second) - 1)]["price"])
