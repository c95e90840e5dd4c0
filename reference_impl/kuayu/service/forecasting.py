"""Forecasts, phases, waveforms, peaks and reservations, from the bytes of a request to those of its answer.

Workers run this. What the schema has judged stays what JSON made of it, and no objects are made.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import orjson

from kuayu.service import bodies
from kuayu.service.computing import Decided, check, check_instants, or_problem
from kuayu_schemas import schema

Json = dict[str, Any]

MOST_POINTS = 100_000
"""Most series × horizons of a forecast; each is told with its quantiles."""

MOST_QUANTILES = 1_000_000
"""Most series × horizons × levels of a forecast."""

MOST_PERIODS = 200_000
"""Most periods of jobs; when each begins and ends is uncertain."""

MOST_WAVES = 100_000
"""Most points of a waveform."""

MOST_AT_WORK = 100_000_000
"""Most points of a waveform × periods of jobs; each adds to each."""

MOST_SLOTS = 1_000_000
"""Most steps that loads run, over all loads; each is told."""

MOST_SHIFTS = 50_000_000
"""Most loads × steps of the base; that often it is asked where a load could begin."""

REQUESTS = ("ForecastRequest", "PhaseRequest", "WaveformRequest", "PeakRequest", "ReservationRequest")

INSTANTS: Mapping[str, Sequence[str]] = {
    "series": ("begin",),
    "jobs": ("submitted_at", "started_at"),
    "events": ("begins_at", "ends_at"),
}
"""Members of the entries of a request's lists that are instants."""


def warm() -> None:
    """Load what the first request will need: the algorithms and the validators."""
    for part in ("forecasting", "peaks", "phases", "reservations", "waveforms"):
        import_module(f"kuayu.forecast.{part}")

    for name in REQUESTS:
        schema.is_valid(name, {})


def forecast(body: bytes) -> Decided:
    """Answer a request for forecasts, class ForecastRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.forecast.forecasting import forecast as made

        points = len(asked["series"]) * len(asked["horizons"])
        check(points, MOST_POINTS, "series × horizons", "series or horizons")
        check(points * len(asked["levels"]), MOST_QUANTILES, "series × horizons × levels", "series, horizons or levels")
        return made(asked)

    return _answered(body, "ForecastRequest", answer)


def recognise_phases(body: bytes) -> Decided:
    """Answer a request for phases of trainings, class PhaseRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.forecast.phases import recognise

        return recognise(asked)

    def count(report: Json) -> Counter[tuple[str, ...]]:
        return Counter((each["phase"],) for each in report["phases"])

    return _answered(body, "PhaseRequest", answer, count)


def make_waveform(body: bytes) -> Decided:
    """Answer a request for a waveform, class WaveformRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.forecast.waveforms import waveform

        points = 1 + int(asked["period"] // asked["step"])
        check(points, MOST_WAVES, "points of the waveform", "steps")
        check(points * _periods(asked), MOST_AT_WORK, "points × periods of jobs", "steps or jobs")
        return waveform(asked)

    return _answered(body, "WaveformRequest", answer)


def plan_peaks(body: bytes) -> Decided:
    """Answer a request for a plan that lowers peaks, class PeakRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.forecast.peaks import shave

        slots = sum(load["slots"] for load in asked["loads"])
        check(slots, MOST_SLOTS, "steps of loads", "loads or steps")
        check(len(asked["loads"]) * len(asked["base"]), MOST_SHIFTS, "loads × steps of the base", "loads or steps")
        return shave(asked)

    return _answered(body, "PeakRequest", answer)


def reserve(body: bytes) -> Decided:
    """Answer a request for reservations, class ReservationRequest."""

    def answer(asked: Json) -> Json:
        from kuayu.forecast.reservations import reserve as made

        return made(asked)

    return _answered(body, "ReservationRequest", answer)


def _answered(
    body: bytes,
    class_name: str,
    answer: Callable[[Json], Json],
    count: Callable[[Json], Counter[tuple[str, ...]]] = lambda _: Counter(),
) -> Decided:
    def decide() -> Decided:
        asked: Json = bodies.parse(body, class_name)
        check_instants(_instants(asked))
        check(_periods(asked), MOST_PERIODS, "periods of jobs", "jobs or periods")
        report = answer(asked)
        return Decided(200, orjson.dumps(report), count(report))

    return or_problem(decide)


def _periods(asked: Json) -> int:
    return sum(len(job["periods"]) for job in asked.get("jobs", ()))


def _instants(asked: Json) -> Iterator[tuple[str, str]]:
    """Pointer and text of all instants of a request."""
    if "now" in asked:
        yield "/now", asked["now"]
    for where, members in INSTANTS.items():
        for position, each in enumerate(asked.get(where, ())):
            for member in members:
                if member in each:
                    yield f"/{where}/{position}/{member}", each[member]
