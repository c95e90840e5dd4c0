"""Arrays, instants and plain JSON, as this package uses them.

What a request must hold to before it can be answered: names, order, and time.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kuayu.refusals import Complaint, Impossible, RepeatedName, refuse, repeated

if TYPE_CHECKING:
    from kuayu_schemas import documents

    SeriesRequest = documents.ForecastRequest | documents.ReservationRequest
    JobsRequest = SeriesRequest | documents.WaveformRequest

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(instant: str) -> float:
    """Seconds since 1970 of an instant of the wire."""
    return (datetime.fromisoformat(instant) - _EPOCH).total_seconds()


def rounded(value: float) -> float:
    """A figure to nine digits, so that the order of sums does not show."""
    return float(f"{value:.9g}")


SLACK = 1e-6
"""Seconds that sums of instants may be off."""

DAY = 86_400

MAX_SECONDS = 1e12
"""Seconds beyond which nobody foresees anything."""

MAX_VALUE = 2.0**53
"""Greatest amount; beyond it, doubles do not tell whole numbers apart."""

TOO_LONG = "longer than anybody can foresee"
TOO_MUCH = "more than a double tells apart"

KNOWN = 2
"""Least values of a series that are known."""

POINTS = 1_000_000
"""Most points of a waveform."""


def check_forecast(request: "documents.ForecastRequest") -> None:
    """Check a request for forecasts.

    Raises:
        RepeatedName: Series or jobs share a name.
        Impossible: Series reach beyond now, horizons or levels do not rise, or events end before they begin.
    """
    refuse(RepeatedName, [*_names(request, "series"), *_names(request, "jobs")])
    complaints = [*_late(request), *_events(request), *_periods(request)]
    horizons, levels = request["horizons"], request["levels"]
    complaints += [("/horizons/0", "a horizon is more than nought")] if horizons[0] <= 0 else []
    complaints += _rising("/horizons", horizons, "horizons rise")
    complaints += [(f"/horizons/{index}", TOO_LONG) for index, one in enumerate(horizons) if one > MAX_SECONDS]
    outside = [index for index, one in enumerate(levels) if one in {0, 1}]
    complaints += [(f"/levels/{index}", "a level lies between nought and one") for index in outside]
    refuse(Impossible, [*complaints, *_rising("/levels", levels, "levels rise")])


def check_reservations(request: "documents.ReservationRequest") -> None:
    """Check a request for reservations.

    Raises:
        RepeatedName: Series, jobs or tenants share a name.
        Impossible: Series reach beyond now, events end before they begin, or less than all or nothing is promised.
    """
    tenants = [quality["tenant"] for quality in request["qualities"]]
    named = [*_names(request, "series"), *_names(request, "jobs"), *repeated("/qualities", tenants, "/tenant")]
    refuse(RepeatedName, named)
    complaints = [*_late(request), *_events(request), *_periods(request)]
    complaints += [("/horizon", TOO_LONG)] if request["horizon"] > MAX_SECONDS else []
    refuse(Impossible, complaints)


def check_waveform(request: "documents.WaveformRequest") -> None:
    """Check a request for a waveform.

    Raises:
        RepeatedName: Jobs share a name.
        Impossible: Prices do not begin at midnight or do not rise.
    """
    refuse(RepeatedName, _names(request, "jobs"))
    begins = [price["begin"] for price in request.get("prices") or ()]
    complaints = list(_periods(request))
    complaints += [("/period", TOO_LONG)] if request["period"] > MAX_SECONDS else []
    if request["step"] <= MAX_SECONDS and request["period"] / request["step"] >= POINTS:
        complaints.append(("/step", f"more than {POINTS} points"))
    complaints += [("/step", TOO_LONG)] if request["step"] > MAX_SECONDS else []
    prices = request.get("prices") or ()
    complaints += [
        (f"/prices/{index}/price", TOO_MUCH) for index, price in enumerate(prices) if price["price"] > MAX_VALUE
    ]
    complaints += [("/prices/0/begin", "the first price holds from midnight")] if begins and begins[0] else []
    complaints += [
        (f"/prices/{index}/begin", "a day ends before this") for index, begin in enumerate(begins) if begin >= DAY
    ]
    refuse(Impossible, [*complaints, *_rising("/prices", begins, "prices follow each other", "/begin")])


def check_peak(request: "documents.PeakRequest") -> None:
    """Check a request for a peak plan.

    Raises:
        RepeatedName: Loads share a name.
        Impossible: A load does not fit into its window or into the base, or was not planned within its window.
    """
    refuse(RepeatedName, _names(request, "loads"))
    length = len(request["base"])
    complaints: list[Complaint] = [
        (f"/base/{index}", TOO_MUCH) for index, one in enumerate(request["base"]) if one > MAX_VALUE
    ]
    for index, load in enumerate(request["loads"]):
        first, last, slots = load["earliest"], load["latest"], load["slots"]
        if last >= length:
            complaints.append((f"/loads/{index}/latest", f"the base has {length} steps, counted from nought"))
        elif last - first + 1 < slots:
            complaints.append((f"/loads/{index}/slots", "the window is shorter than the load"))
        elif not first <= load["planned"] <= last - slots + 1:
            complaints.append((f"/loads/{index}/planned", "from here the load does not end within its window"))
    refuse(Impossible, complaints)


def _names(request: Mapping[str, Any], place: str) -> list[Complaint]:
    return repeated(f"/{place}", [entry["id"] for entry in request.get(place) or ()])


def _rising(place: str, values: Sequence[float], detail: str, last: str = "") -> list[Complaint]:
    return [
        (f"{place}/{number}{last}", detail) for number in range(1, len(values)) if values[number] <= values[number - 1]
    ]


def _late(request: "SeriesRequest") -> Iterable[Complaint]:
    """Series whose last step begins after now, or of which too little is known."""
    now = seconds(request["now"])
    for index, series in enumerate(request["series"]):
        values = np.array(series["values"], dtype=float)
        with np.errstate(invalid="ignore"):
            yield from (
                (f"/series/{index}/values/{place}", TOO_MUCH) for place in np.flatnonzero(values > MAX_VALUE).tolist()
            )
        if seconds(series["begin"]) + (len(values) - 1) * series["step"] > now + SLACK:
            yield f"/series/{index}/values", "they reach beyond now"
        if np.count_nonzero(~np.isnan(values)) < KNOWN:
            yield (
                f"/series/{index}/values",
                f"fewer than {KNOWN} values are known; leave out a series of which nothing is",
            )


def _events(request: "SeriesRequest") -> Iterable[Complaint]:
    for index, event in enumerate(request.get("events") or ()):
        if seconds(event["ends_at"]) < seconds(event["begins_at"]):
            yield f"/events/{index}/ends_at", "it ends before it begins"
        if event.get("devices", 0) > MAX_VALUE:
            yield f"/events/{index}/devices", TOO_MUCH


def _periods(request: "JobsRequest") -> Iterable[Complaint]:
    """Estimates whose ends lie on one side of the median, and jobs that end before they begin or after now."""
    for index, job in enumerate(request.get("jobs") or ()):
        if "ended_at" in job:
            ended = seconds(job["ended_at"])
            if ended < max(seconds(job["submitted_at"]), seconds(job.get("started_at", job["submitted_at"]))):
                yield f"/jobs/{index}/ended_at", "it ends before it begins"
            elif ended > seconds(request["now"]) + SLACK:
                yield f"/jobs/{index}/ended_at", "it has not ended yet"
        for number, period in enumerate(job["periods"]):
            duration = period["duration"]
            if not duration["low"] <= duration["expected"] <= duration["high"]:
                yield f"/jobs/{index}/periods/{number}/duration", "the median lies between both ends"
            if duration["expected"] > MAX_SECONDS:
                yield f"/jobs/{index}/periods/{number}/duration/expected", TOO_LONG
