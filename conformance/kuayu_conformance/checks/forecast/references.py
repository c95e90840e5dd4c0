"""Requests for forecasts that name one thing twice, or ask for what cannot be (FCT-007)."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.forecast.forecast_requests import (
    FORECASTS,
    HOUR,
    PEAKS,
    PHASES,
    RESERVATIONS,
    WAVEFORMS,
    Draft,
    Json,
    ask,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds

REQUIREMENT = "FCT-007"
REPEATED = "invalid-body"


@dataclass(frozen=True)
class BadRequest:
    """A request with something wrong in it.

    Attributes:
        what: What is wrong.
        pointer: Place that is to be named.
        within: Whether a place within it may be named, too.
        answer: What came.
    """

    what: str
    pointer: str
    within: bool
    answer: Answer


def observe(episode: Episode) -> tuple[BadRequest, ...]:
    """Ask for everything as it should be, then with one thing wrong each time.

    Raises:
        SetUpFailed: What is right is not answered.
    """
    every = requests(Draft(episode.random, episode.naming))
    bodies = {path: body for path, body in every.items() if episode.settings.asks(f"POST {path}")}
    for path, body in bodies.items():
        ask(episode, path, body)
    found = []
    for path, whole in bodies.items():
        for what, source, pointer in TWICE[path]:
            body = changed(whole, pointer, _at(whole, source))
            found.append(BadRequest(f"{what}, twice ({path})", pointer, False, episode.ask("POST", path, body)))
        for what, pointer, members in _impossible(path, whole):
            body = whole
            for place, value in members.items():
                body = changed(body, place, value)
            found.append(BadRequest(f"{what} ({path})", pointer, True, episode.ask("POST", path, body)))
    return tuple(found)


def requests(draft: Draft) -> dict[str, Json]:
    """A small request for each operation, with two of everything that has a name."""
    tenants = [draft.name(), draft.name()]
    series = [draft.series(draft.walk(200), tenant=tenant, domain=draft.name()) for tenant in tenants]
    jobs = [draft.job(draft.periods(2, (0.5, 2.0)), -HOUR, -300.0), draft.job(draft.periods(2, (0.5, 2.0)), -60.0)]
    known = {"revision": draft.revision, "now": draft.at(0.0), "series": series, "jobs": jobs}
    load = {"devices": 8, "slots": 3, "earliest": 2, "latest": 9, "planned": 4}
    points = [{"step": 10 * (place + 1), "loss": 9.0 - place, "learning_rate": 1e-4} for place in range(5)]
    revision = {"revision": draft.revision}
    return {
        FORECASTS: {**known, "horizons": [600.0, HOUR], "levels": [0.1, 0.5, 0.9]},
        WAVEFORMS: {**revision, "now": draft.at(0.0), "period": HOUR, "step": 600.0, "jobs": jobs},
        PEAKS: {
            **revision,
            "step": 600.0,
            "base": draft.walk(12),
            "loads": [{"id": draft.name(), **load}, {"id": draft.name(), **load}],
        },
        RESERVATIONS: {
            **known,
            "horizon": HOUR,
            "qualities": [{"tenant": tenant, "violations": 0.1} for tenant in tenants],
        },
        PHASES: {**revision, "curves": [{"id": draft.name(), "points": points} for _ in range(2)]},
    }


_SERIES, _JOB = ("series", "/series/0/id", "/series/1/id"), ("job", "/jobs/0/id", "/jobs/1/id")
TWICE = {
    FORECASTS: (_SERIES, _JOB),
    WAVEFORMS: (_JOB,),
    PEAKS: (("load", "/loads/0/id", "/loads/1/id"),),
    RESERVATIONS: (_SERIES, _JOB, ("tenant of a promise", "/qualities/0/tenant", "/qualities/1/tenant")),
    PHASES: (("curve", "/curves/0/id", "/curves/1/id"),),
}
"""What may stand once, where it stands, and where it is put again, by operation."""


def _impossible(path: str, whole: Json) -> Iterator[tuple[str, str, Json]]:
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


def changed(whole: Json, pointer: str, value: object) -> Json:
    """A copy of a request with something else at a place."""
    # what stands in two places is one thing to a deep copy
    body: Json = json.loads(json.dumps(whole))
    place, _, last = pointer.rpartition("/")
    parent = _at(body, place)
    parent[int(last) if isinstance(parent, list) else last] = value
    return body


def _at(body: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        body = body[int(step) if isinstance(body, list) else step]
    return body


def judge(observation: tuple[BadRequest, ...]) -> Iterable[Finding]:
    """Claims about refusals."""
    for wrong in observation:
        yield answered(REQUIREMENT, wrong.answer, 422, wrong.what, problem=REPEATED)
        errors = wrong.answer.items("errors")
        pointers = [str(error.get("pointer")) for error in errors if isinstance(error, dict)]
        named = any(_names(wrong)(pointer) for pointer in pointers)
        where = f"{wrong.pointer} or a place within it" if wrong.within else wrong.pointer
        yield holds(REQUIREMENT, named, f"{wrong.what}: the place {where}", pointers, wrong.answer)


def _names(wrong: BadRequest) -> Callable[[str], bool]:
    """Whether a pointer names the place."""
    return lambda pointer: pointer == wrong.pointer or (wrong.within and pointer.startswith(f"{wrong.pointer}/"))


CHECK = Check("fct_names", (REQUIREMENT,), observe, judge)
