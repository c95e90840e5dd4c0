"""Series: each point against the values that were reported, and what has no series (MET-020)."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import fsum, isclose
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, post, sample
from kuayu_conformance.episode import Episode, instant, seconds_of
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_schemas import registers

MINUTE, HOUR, DAY = 60, 3600, 86_400
STEPS = (MINUTE, 300, HOUR, DAY)
BACK = 5 * HOUR
"""Seconds ago that the first values are observed, unless the retention is too short for it."""

MAX_POINTS = 10_000
NEAR = 1e-9

UNSURE = 10.0
"""Seconds before its time is up that a value may seem too old to a target, whose clock is not quite the suite's."""


@dataclass(frozen=True)
class Subject:
    """What values are reported about, and of which measure."""

    kind: str
    name: str
    measure: str
    device: str = ""


@dataclass(frozen=True)
class SeriesQuery:
    """A series that was asked for: about what, from when to when in Unix seconds, its step, and the answer.

    Steps that begin before ``kept``, in Unix seconds, may hold what is no longer kept.
    """

    subject: Subject
    since: float
    until: float
    step: int
    answer: Answer
    retained_since: float


@dataclass(frozen=True)
class BadQuery:
    """A request that has no series: what it asks for, the parameter that is wrong, and the answer."""

    what: str
    parameter: str
    answer: Answer


@dataclass(frozen=True)
class SeriesAnswers:
    """What was reported (Unix milliseconds and values by subject), how it was taken, and what was answered."""

    reported: dict[Subject, dict[int, float]]
    taken: tuple[tuple[int, Answer], ...]
    queries: tuple[SeriesQuery, ...]
    refused: tuple[BadQuery, ...]


def observe(episode: Episode) -> SeriesAnswers:
    """Report values about four kinds of subject, then ask for their series in every step and over odd ranges."""
    site, other = domain(episode), domain(episode, "e")
    machine = node(episode, site, names=["0", "1"])
    link = episode.name_of("l")
    episode.set_up("PUT", f"/v1/links/{link}", {"id": link, "source": site, "destination": other})
    subjects = (
        Subject("node", machine, "power"),
        Subject("device", machine, "power", "0"),
        Subject("device", machine, "power", "1"),
        Subject("link", link, "round_trip_time"),
        Subject("domain", site, "queue_pressure"),
    )
    begin = _begin(episode)
    moments = _moments(episode, begin)
    reported = {subject: {moment: _drawn(episode) for moment in moments} for subject in subjects}
    taken = tuple(_report(episode, reported))
    series_queries = tuple(_queries(episode, reported, begin))
    return SeriesAnswers(reported, taken, series_queries, tuple(_refused(episode, subjects[0], begin)))


def _begin(episode: Episode) -> int:
    """An hour of the clock, some hours ago."""
    back = min(BACK, episode.settings.limits["retention"] / 2)
    return int((episode.now() - back) // HOUR + 1) * HOUR


def _moments(episode: Episode, begin: int) -> list[int]:
    """Unix milliseconds at which something is observed: borders of steps, and any; one hour has nothing at all.

    None of them lies before the retention or after the present, whatever the retention is.
    """
    now = episode.now()
    midnight = int(now // DAY * DAY)
    oldest = max(now - episode.settings.limits["retention"] + MINUTE, now - 2 * DAY)
    borders = [begin + offset for offset in (0, MINUTE, 300, HOUR, 3 * HOUR)] + [midnight]
    drawn = [begin + hour * HOUR + episode.random.random() * HOUR for hour in (0, 2, 3) for _ in range(40)]
    crowded = [begin + 200 + episode.random.random() * 50 for _ in range(20)]
    everything = [*borders, *(border - 0.001 for border in borders), *drawn, *crowded]
    return sorted({round(moment * 1000) for moment in everything if oldest <= moment < now - 1})


def _drawn(episode: Episode) -> float:
    """A reading in thousandths, or any number that a double can hold."""
    value = episode.random.uniform(0.001, 900.0)
    return round(value, 3) if episode.random.random() < 0.5 else value


def _report(episode: Episode, reported: dict[Subject, dict[int, float]]) -> Iterator[tuple[int, Answer]]:
    """Report all values but one in disorder, then that one late, then some again; a measure stands beside each."""
    for subject, values in reported.items():
        rows = [_sample(subject, moment, value) for moment, value in values.items()]
        late = rows.pop(len(rows) // 3)
        episode.random.shuffle(rows)
        yield len(rows), post(episode, rows)
        yield 1, post(episode, [late])
        again = [row | {subject.measure: row[subject.measure] + 1000.0} for row in (late, *rows[:3])]
        yield len(again), post(episode, again)


def _sample(subject: Subject, moment: int, value: float) -> dict[str, Any]:
    device = {"device": subject.device} if subject.device else {}
    other = {"jitter": 1.0} if subject.kind == "link" else {"allocatable_share": 0.5}
    body = sample(subject.name, instant(moment / 1000), kind=subject.kind, **device, **other)
    return {**body, subject.measure: value}


def _queries(episode: Episode, reported: dict[Subject, dict[int, float]], begin: int) -> Iterator[SeriesQuery]:
    end = episode.now()
    longest_ago = end - min(DAY, episode.settings.limits["retention"] - MINUTE)
    odd = begin + 17.25, begin + 3 * HOUR + 1234.567
    for subject in reported:
        for step in STEPS:
            yield _ask(episode, subject, begin, end, step)
        yield _ask(episode, subject, *odd, 300)
    one = next(iter(reported))
    for step in STEPS:
        yield _ask(episode, one, *odd, step)
        yield _ask(episode, one, longest_ago, end, step)
        yield _ask(episode, one, begin, begin + step, step)
    yield _ask(episode, one, begin, begin + MAX_POINTS * MINUTE, MINUTE)
    silent = replace(one, measure="queue_pressure")
    yield _ask(episode, silent, begin, end, HOUR)


def _ask(episode: Episode, subject: Subject, since: float, until: float, step: int) -> SeriesQuery:
    answer = episode.ask("GET", _path(subject, since, until, str(step)))
    retained_since = episode.now() - episode.settings.limits["retention"] + UNSURE
    return SeriesQuery(subject, since, until, step, answer, retained_since)


def _path(subject: Subject, since: float, until: float, step: str) -> str:
    device = f"&device={subject.device}" if subject.device else ""
    about = f"subject={subject.name}&subject_kind={subject.kind}{device}&measure={subject.measure}"
    return f"/v1/series?{about}&from={instant(since)}&to={instant(until)}&step={step}"


def _refused(episode: Episode, subject: Subject, begin: int) -> Iterator[BadQuery]:
    end = begin + HOUR
    for measure, what in (
        ("colour", "a measure that the register does not have"),
        ("health_state", "a measure that is a state"),
        ("sustained_matrix_throughput", "a measure with a number for each precision"),
    ):
        answer = episode.ask("GET", _path(replace(subject, measure=measure), begin, end, "60"))
        yield BadQuery(what, "measure", answer)
    for step in ("61", "0", "-60", "minute"):
        yield BadQuery(f"a step of {step}", "step", episode.ask("GET", _path(subject, begin, end, step)))
    for steps in (MAX_POINTS + 1, 100 * MAX_POINTS):
        path = _path(subject, begin, begin + steps * MINUTE, "60")
        yield BadQuery(f"a range of {steps} steps", "", episode.ask("GET", path))


def judge(o: SeriesAnswers) -> Iterator[Finding]:
    """Compute each series anew from what was reported."""
    for count, answer in o.taken:
        accepted = answer.at("accepted")
        yield holds("MET-020", accepted == count, f"{count} samples are taken", accepted, answer)
    for query in o.queries:
        yield from _judged(query, o.reported.get(query.subject, {}))
    for refused in o.refused:
        yield answered("MET-020", refused.answer, 400, f"{refused.what} is refused", problem="invalid-parameter")
        if refused.parameter:
            named = [place.get("parameter") for place in refused.answer.items("errors") if isinstance(place, dict)]
            expected = f"{refused.what} is refused for the parameter {refused.parameter}"
            yield holds("MET-020", refused.parameter in named, expected, named, refused.answer)


def _judged(query: SeriesQuery, values: dict[int, float]) -> Iterator[Finding]:
    subject, answer = query.subject, query.answer
    what = f"{subject.measure} of a {subject.kind} in steps of {query.step} s"
    yield answered("MET-020", answer, 200, f"{what} is given")
    about: dict[str, Any] = {"subject": subject.name, "subject_kind": subject.kind, "device": subject.device or None}
    about |= {"measure": subject.measure, "unit": _unit(subject.measure), "step": query.step}
    said = {name: answer.at(name) for name in about}
    yield holds("MET-020", said == about, f"the series says that it is {what}", said, answer)
    points = [_read(point) for point in answer.items("points")]
    starts = [point[0] for point in points]
    expected = [
        point for point in _expected(query, values) if point[0] >= query.retained_since * 1000 or point[0] in starts
    ]
    wanted = [point[0] for point in expected]
    because = f"{what}: a point for each step with values, in order, and none for the others"
    yield holds("MET-020", starts == wanted, because, f"{len(starts)} points where {len(wanted)} are due", answer)
    wrong = [(one, other) for one, other in zip(points, expected, strict=False) if not _agree(one, other)]
    because = f"{what}: count, mean, minimum and maximum of the values observed in each step"
    seen = f"{wrong[0][0]} where {wrong[0][1]} is due" if wrong else "as reported"
    yield holds("MET-020", not wrong, because, seen, answer)


Point = tuple[Any, Any, Any, Any, Any]
"""Start in Unix milliseconds, count, mean, minimum, maximum."""


def _expected(query: SeriesQuery, values: dict[int, float]) -> list[Point]:
    """Points by the clause: steps from multiples of their length, the range widened to whole ones.

    Those of which a part may no longer be kept are among them, although they may be left out.
    """
    step = query.step * 1000
    since, until = (round(moment * 1000) for moment in (query.since, query.until))
    first, last = since // step * step, -(-until // step) * step
    within: dict[int, list[float]] = defaultdict(list)
    for moment, value in values.items():
        if first <= moment < last:
            within[moment // step * step].append(value)
    return [(start, len(some), fsum(some) / len(some), min(some), max(some)) for start, some in sorted(within.items())]


def _read(point: Any) -> Point:
    if not isinstance(point, dict):
        return (None,) * 5
    seconds = seconds_of(point.get("start"))
    start = None if seconds is None else round(seconds * 1000)
    return start, point.get("count"), point.get("mean"), point.get("minimum"), point.get("maximum")


def _agree(observed: Point, expected: Point) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in observed[1:])
    try:
        near = numbers and all(isclose(a, b, rel_tol=NEAR) for a, b in zip(observed[2:], expected[2:], strict=True))
    except OverflowError:  # a whole number that no double can hold
        return False
    return near and observed[:2] == expected[:2]


def _unit(measure: str) -> str:
    measures = (row for indicator in registers.indicators().indicators for row in indicator.measures)
    return next(row.unit for row in measures if row.name == measure)


CHECK = Check("met_series", ("MET-020",), observe, judge)
