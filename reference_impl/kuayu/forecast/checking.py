"""What a request must hold to before it can be answered: names, order, and time."""

from collections.abc import Iterable, Sequence

from kuayu.forecast.values import Plain, seconds
from kuayu.refusals import Complaint, Impossible, RepeatedName, refuse, repeated

SLACK = 1e-6
"""Seconds that sums of instants may be off."""

DAY = 86_400

LONGEST = 1e12
"""Seconds beyond which nobody foresees anything."""

MOST = 2.0**53
"""Greatest amount; beyond it, doubles do not tell whole numbers apart."""

TOO_LONG = "longer than anybody can foresee"
TOO_MUCH = "more than a double tells apart"

KNOWN = 2
"""Least values of a series that are known."""

POINTS = 1_000_000
"""Most points of a waveform."""


def check_forecast(request: Plain) -> None:
    """Check a request for forecasts.

    Raises:
        RepeatedName: Series or jobs share a name.
        Impossible: Series reach beyond now, horizons or levels do not rise, or events end before they begin.
    """
    refuse(RepeatedName, [*_names(request, "series"), *_names(request, "jobs")])
    found = [*_late(request), *_events(request), *_periods(request)]
    horizons, levels = request["horizons"], request["levels"]
    found += [("/horizons/0", "a horizon is more than nought")] if horizons[0] <= 0 else []
    found += _rising("/horizons", horizons, "horizons rise")
    found += [(f"/horizons/{at}", TOO_LONG) for at, one in enumerate(horizons) if one > LONGEST]
    outside = [at for at, one in enumerate(levels) if one in {0, 1}]
    found += [(f"/levels/{at}", "a level lies between nought and one") for at in outside]
    refuse(Impossible, [*found, *_rising("/levels", levels, "levels rise")])


def check_reservations(request: Plain) -> None:
    """Check a request for reservations.

    Raises:
        RepeatedName: Series, jobs or tenants share a name.
        Impossible: Series reach beyond now, events end before they begin, or less than all or nothing is promised.
    """
    tenants = [each["tenant"] for each in request["qualities"]]
    named = [*_names(request, "series"), *_names(request, "jobs"), *repeated("/qualities", tenants, "/tenant")]
    refuse(RepeatedName, named)
    found = [*_late(request), *_events(request), *_periods(request)]
    found += [("/horizon", TOO_LONG)] if request["horizon"] > LONGEST else []
    refuse(Impossible, found)


def check_waveform(request: Plain) -> None:
    """Check a request for a waveform.

    Raises:
        RepeatedName: Jobs share a name.
        Impossible: Prices do not begin at midnight or do not rise.
    """
    refuse(RepeatedName, _names(request, "jobs"))
    begins = [each["begin"] for each in request.get("prices") or ()]
    found = list(_periods(request))
    found += [("/period", TOO_LONG)] if request["period"] > LONGEST else []
    if request["step"] <= LONGEST and request["period"] / request["step"] >= POINTS:
        found.append(("/step", f"more than {POINTS} points"))
    found += [("/step", TOO_LONG)] if request["step"] > LONGEST else []
    prices = request.get("prices") or ()
    found += [(f"/prices/{at}/price", TOO_MUCH) for at, each in enumerate(prices) if each["price"] > MOST]
    found += [("/prices/0/begin", "the first price holds from midnight")] if begins and begins[0] else []
    found += [(f"/prices/{at}/begin", "a day ends before this") for at, begin in enumerate(begins) if begin >= DAY]
    refuse(Impossible, [*found, *_rising("/prices", begins, "prices follow each other", "/begin")])


def check_peak(request: Plain) -> None:
    """Check a request for a peak plan.

    Raises:
        RepeatedName: Loads share a name.
        Impossible: A load does not fit into its window or into the base, or was not planned within its window.
    """
    refuse(RepeatedName, _names(request, "loads"))
    length = len(request["base"])
    found: list[Complaint] = [(f"/base/{at}", TOO_MUCH) for at, one in enumerate(request["base"]) if one > MOST]
    for at, load in enumerate(request["loads"]):
        first, last, slots = load["earliest"], load["latest"], load["slots"]
        if last >= length:
            found.append((f"/loads/{at}/latest", f"the base has {length} steps, counted from nought"))
        elif last - first + 1 < slots:
            found.append((f"/loads/{at}/slots", "the window is shorter than the load"))
        elif not first <= load["planned"] <= last - slots + 1:
            found.append((f"/loads/{at}/planned", "from here the load does not end within its window"))
    refuse(Impossible, found)


def _above(values: Sequence[float | None]) -> list[int]:
    return [at for at, one in enumerate(values) if one is not None and one > MOST]


def _names(request: Plain, place: str) -> list[Complaint]:
    return repeated(f"/{place}", [each["id"] for each in request.get(place) or ()])


def _rising(place: str, values: Sequence[float], detail: str, last: str = "") -> list[Complaint]:
    return [(f"{place}/{at}{last}", detail) for at in range(1, len(values)) if values[at] <= values[at - 1]]


def _late(request: Plain) -> Iterable[Complaint]:
    """Series whose last step begins after now, or of which too little is known."""
    now = seconds(request["now"])
    for at, series in enumerate(request["series"]):
        yield from ((f"/series/{at}/values/{place}", TOO_MUCH) for place in _above(series["values"]))
        if seconds(series["begin"]) + (len(series["values"]) - 1) * series["step"] > now + SLACK:
            yield f"/series/{at}/values", "they reach beyond now"
        if sum(one is not None for one in series["values"]) < KNOWN:
            yield f"/series/{at}/values", f"fewer than {KNOWN} values are known; leave out a series of which nothing is"


def _events(request: Plain) -> Iterable[Complaint]:
    for at, event in enumerate(request.get("events") or ()):
        if seconds(event["ends_at"]) < seconds(event["begins_at"]):
            yield f"/events/{at}/ends_at", "it ends before it begins"
        if event.get("devices", 0) > MOST:
            yield f"/events/{at}/devices", TOO_MUCH


def _periods(request: Plain) -> Iterable[Complaint]:
    """Estimates whose ends lie on one side of the median."""
    for at, job in enumerate(request.get("jobs") or ()):
        for number, period in enumerate(job["periods"]):
            duration = period["duration"]
            if not duration["low"] <= duration["expected"] <= duration["high"]:
                yield f"/jobs/{at}/periods/{number}/duration", "the median lies between both ends"
            if duration["expected"] > LONGEST:
                yield f"/jobs/{at}/periods/{number}/duration/expected", TOO_LONG
