"""Requests for forecasts that name one thing twice, or ask for what cannot be (FCT-007)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kuayu_conformance.check import Check
from kuayu_conformance.checks.forecast.forecast_requests import (
    FORECASTS,
    HOUR,
    PEAKS,
    PHASES,
    RESERVATIONS,
    WAVEFORMS,
    ForecastRequestBuilder,
)
from kuayu_conformance.checks.kit.decisions import INVALID, BadRequest, Fault, bad_requests, refusals, repeated
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding

if TYPE_CHECKING:
    from kuayu_schemas import documents

REQUIREMENT = "FCT-007"


def observe(episode: Episode) -> tuple[BadRequest, ...]:
    """Ask for everything as it should be, then with one thing wrong each time.

    Raises:
        SetUpFailure: What is right is not answered.
    """
    return bad_requests(episode, requests(ForecastRequestBuilder(episode.random, episode.naming)), _faults)


def requests(draft: ForecastRequestBuilder) -> dict[str, Mapping[str, Any]]:
    """A small request for each operation, with two of everything that has a name."""
    tenants = [draft.name(), draft.name()]
    series = [draft.series(draft.walk(200), tenant=tenant, domain=draft.name()) for tenant in tenants]
    jobs = [draft.job(draft.periods(2, (0.5, 2.0)), -HOUR, -300.0), draft.job(draft.periods(2, (0.5, 2.0)), -60.0)]
    now, revision = draft.at(0.0), draft.revision
    points: list[documents.CurvePoint] = [
        {"step": 10 * (place + 1), "loss": 9.0 - place, "learning_rate": 1e-4} for place in range(5)
    ]
    forecast: documents.ForecastRequest = {
        "revision": revision,
        "now": now,
        "series": series,
        "jobs": jobs,
        "horizons": [600.0, HOUR],
        "levels": [0.1, 0.5, 0.9],
    }
    waveform: documents.WaveformRequest = {
        "revision": revision,
        "now": now,
        "period": HOUR,
        "step": 600.0,
        "jobs": jobs,
    }
    peaks: documents.PeakRequest = {
        "revision": revision,
        "step": 600.0,
        "base": draft.walk(12),
        "loads": [
            {"id": draft.name(), "devices": 8, "slots": 3, "earliest": 2, "latest": 9, "planned": 4} for _ in range(2)
        ],
    }
    reservation: documents.ReservationRequest = {
        "revision": revision,
        "now": now,
        "series": series,
        "jobs": jobs,
        "horizon": HOUR,
        "qualities": [{"tenant": tenant, "violations": 0.1} for tenant in tenants],
    }
    phases: documents.PhaseRequest = {
        "revision": revision,
        "curves": [{"id": draft.name(), "points": points} for _ in range(2)],
    }
    return {FORECASTS: forecast, WAVEFORMS: waveform, PEAKS: peaks, RESERVATIONS: reservation, PHASES: phases}


_SERIES, _JOB = ("series", "/series/0/id", "/series/1/id"), ("job", "/jobs/0/id", "/jobs/1/id")
TWICE = {
    FORECASTS: (_SERIES, _JOB),
    WAVEFORMS: (_JOB,),
    PEAKS: (("load", "/loads/0/id", "/loads/1/id"),),
    RESERVATIONS: (_SERIES, _JOB, ("tenant of a promise", "/qualities/0/tenant", "/qualities/1/tenant")),
    PHASES: (("curve", "/curves/0/id", "/curves/1/id"),),
}
"""What may stand once, where it stands, and where it is put again, by operation."""


def _faults(path: str, whole: Mapping[str, Any]) -> Iterator[Fault]:
    """What can be wrong with the request of an operation."""
    for what, source, pointer in TWICE[path]:
        yield repeated(f"{what}, twice", pointer, whole, source)
    for what, pointer, values in _impossible(path, whole):
        yield Fault(what, INVALID, pointer, True, values)


def _impossible(path: str, whole: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, object]]]:
    """What cannot be: in words, the place, and what is put where."""
    if path == FORECASTS:
        yield "horizons that do not rise", "/horizons", {"/horizons": [HOUR, 600.0]}
        yield "a horizon that stands twice", "/horizons", {"/horizons": [600.0, 600.0]}
        yield "levels that do not rise", "/levels", {"/levels": [0.1, 0.9, 0.5]}
        yield "a level that stands twice", "/levels", {"/levels": [0.5, 0.5]}
        yield "a level of nought", "/levels", {"/levels": [0.0, 0.5]}
        yield "a level of one", "/levels", {"/levels": [0.5, 1.0]}
    if path in {FORECASTS, RESERVATIONS}:
        beyond = [*whole["series"][1]["values"], 1.0, 2.0]
        yield "a series that reaches beyond now", "/series/1", {"/series/1/values": beyond}
    if path in {FORECASTS, RESERVATIONS, WAVEFORMS}:
        yield "a job without periods", "/jobs/1", {"/jobs/1/periods": []}
    if path == PEAKS:
        yield "a load whose window is too short", "/loads/1", {"/loads/1/earliest": 8, "/loads/1/planned": 8}
    if path == PHASES:
        steps = [point["step"] for point in whole["curves"][1]["points"]]
        place = "/curves/1/points/2/step"
        yield "steps of a curve that fall", "/curves/1", {place: steps[0]}
        yield "a step of a curve that stands twice", "/curves/1", {place: steps[1]}


def judge(observation: tuple[BadRequest, ...]) -> Iterable[Finding]:
    """Claims about refusals."""
    return refusals(REQUIREMENT, observation)


CHECK = Check("fct_names", (REQUIREMENT,), observe, judge)
