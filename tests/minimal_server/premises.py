"""What requests for forecasts take for granted: names that stand once, and instants and numbers that can be."""

import math
from collections.abc import Iterator
from itertools import pairwise

from minimal_server.core import Json, milliseconds
from minimal_server.naming import Wrong
from minimal_server.phasing import Phasing

MOST = 1e15
"""Devices and prices beyond it are nobody's, and may not add up to a number."""
LEAST_KNOWN = 2
"""Values of a series, fewer than which say nothing."""
MOST_POINTS = 100_000


class Premises(Phasing):
    """Requests that contradict themselves are refused."""

    def check_forecast(self, body: Json) -> None:
        """A request names nothing twice, and nothing in it contradicts itself."""
        wrong = [*self.twice("/series", body.get("series", ()), "id"), *self.twice("/jobs", body.get("jobs", ()), "id")]
        wrong += self.twice("/qualities", body.get("qualities", ()), "tenant")
        self.refuse_if("invalid-body", "names are given twice", wrong)
        self.refuse_if("invalid-body", "what cannot be", [*self.beyond_now(body), *self.endless(body)])

    def beyond_now(self, body: Json) -> Iterator[Wrong]:
        """Series that reach beyond the present instant."""
        for number, series in enumerate(body.get("series", ())):
            if self.seconds_until(series["begin"], body["now"]) + (len(series["values"]) - 1) * series["step"] > 1e-6:
                yield f"/series/{number}/values", "the last value is later than now"

    def endless(self, body: Json) -> Iterator[Wrong]:
        """Numbers and waveforms that are too large to be worked with."""
        for number, series in enumerate(body.get("series", ())):
            known = [value for value in series["values"] if value is not None]
            if len(known) < LEAST_KNOWN:
                yield f"/series/{number}/values", "too little of it is known"
            elif max(known) > MOST:
                yield f"/series/{number}/values", "more devices than there are"
        for number, row in enumerate(body.get("prices", ())):
            if row["price"] > MOST:
                yield f"/prices/{number}/price", "more than anybody pays"
        if "period" in body and body["period"] / body["step"] > MOST_POINTS:
            yield "/step", f"a waveform has at most {MOST_POINTS} points"

    def unordered(self, body: Json) -> Iterator[Wrong]:
        """Horizons and levels that do not rise, or lie where they cannot."""
        for member, most in (("horizons", math.inf), ("levels", 1.0)):
            for place, (one, other) in enumerate(pairwise([0.0, *body[member]])):
                if not one < other < most:
                    yield f"/{member}/{place}", "must be more than the one before, and within its bounds"

    def seconds_until(self, instant: str, now: str) -> float:
        """Seconds from now until an instant."""
        return (milliseconds(instant) - milliseconds(now)) / 1000
