"""Indicators: of each kind of subject, of wholes by their parts, and over time (MET-001, MET-009, MET-020).

1. The twelve indicators come from each exporter and for each kind of subject (MET-001).
2. They are aggregated from devices to nodes to domains by the rules of the register (MET-009).
3. Each point of a series is held against the values that were reported, and what has no series says so (MET-020).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isclose
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.requests import domain, node, post, sample
from kuayu_conformance.episode import Episode, instant, seconds_of
from kuayu_conformance.exporters.player import PlayedExporter, played_exporters
from kuayu_conformance.findings import Claim, Figure, Finding, answered, holds, lacks
from kuayu_schemas import registers
from kuayu_schemas.models import Aggregation, Constancy, Indicator, Measure, SubjectKind, ValueKind

VALUES: dict[ValueKind, Any] = {
    ValueKind.number: 0.5,
    ValueKind.by_precision: {"bf16": 1e14, "fp32": 2e13},
    ValueKind.state: "degraded",
}
"""A value that every measure of the kind can have."""


@dataclass(frozen=True)
class ExpectedValue:
    """A value that an answer must hold: which measure of which device (None for the subject itself), from where."""

    origin: str
    measure: str
    device: str | None
    answer: Answer


@dataclass(frozen=True)
class IndicatorReports:
    """The register that the target publishes, and what was reported of each measure."""

    register: Answer
    wanted: tuple[ExpectedValue, ...]


def observe(episode: Episode) -> IndicatorReports:
    """Play each exporter, report by hand what no exporter yields, and query node, domain and link."""
    register = episode.ask("GET", "/v1/indicators")
    site, peer = domain(episode), domain(episode, "peer")
    wanted = [row for name in played_exporters() for row in _played(episode, site, name)]
    return IndicatorReports(register, (*wanted, *_reported(episode, site, peer)))


def _played(episode: Episode, site: str, name: str) -> Iterator[ExpectedValue]:
    played = PlayedExporter(name, episode.random)
    machine = node(episode, site, name, names=played.devices)
    now = episode.now()
    for place in (now - 20, now - 5):
        page = played.advance(place).text.encode()
        query = f"/v1/expositions?node={machine}&exporter={name}"
        episode.ask("POST", query, content=page, media_type="text/plain")
    answer = episode.ask("GET", f"/v1/nodes/{machine}/indicators")
    for row in played.mapped:
        for subject in row.series:
            yield ExpectedValue(name, row.measure.name, subject or None, answer)


def _reported(episode: Episode, site: str, peer: str) -> Iterator[ExpectedValue]:
    machine = node(episode, site, "by-hand", names=["0"])
    link = episode.name_of("l")
    episode.set_up("PUT", f"/v1/links/{link}", {"id": link, "source": site, "destination": peer})
    subjects = {
        SubjectKind.device: machine,
        SubjectKind.node: machine,
        SubjectKind.domain: site,
        SubjectKind.link: link,
    }
    now = instant(episode.now() - 1)
    bodies = []
    rows: list[tuple[SubjectKind, Measure]] = []
    for kind, subject in subjects.items():
        measures = [m for i in registers.indicators().indicators for m in i.measures if kind in m.subjects]
        rows += [(kind, measure) for measure in measures]
        body = sample(subject, now, kind=kind.value, **{m.name: VALUES[m.kind] for m in measures})
        bodies.append(body | ({"device": "0"} if kind is SubjectKind.device else {}))
    post(episode, bodies)
    queried = {
        SubjectKind.node: episode.ask("GET", f"/v1/nodes/{machine}/indicators"),
        SubjectKind.domain: episode.ask("GET", f"/v1/domains/{site}/indicators"),
        SubjectKind.link: episode.ask("GET", f"/v1/links/{link}/indicators"),
    }
    queried[SubjectKind.device] = queried[SubjectKind.node]
    for kind, measure in rows:
        yield ExpectedValue(
            f"{kind.value} sample", measure.name, "0" if kind is SubjectKind.device else None, queried[kind]
        )


def judge(o: IndicatorReports) -> Iterator[Finding]:
    """An indicator counts when each of its measures comes back, with its unit, from every origin that yields it."""
    published = {row.get("id") for row in o.register.items("indicators") if isinstance(row, dict)}
    complete = 0
    misses = []
    for indicator in registers.indicators().indicators:
        claims = list(_claims(indicator, o.wanted))
        unmet = [claim for claim in claims if not claim.met]
        if indicator.id not in published:
            unmet.append(holds("MET-001", False, f"GET /v1/indicators lists {indicator.id}", published, o.register))
        complete += not unmet
        misses += unmet
    yield Figure(
        "MET-001",
        complete,
        complete,
        len(o.wanted),
        f"indicators of which every measure is answered, with its unit, from each of {len(played_exporters())} "
        "exporters that yields it and as a sample of each kind of subject; a count of all, not a sample",
        misses=misses,
    )


def _claims(indicator: Indicator, wanted: tuple[ExpectedValue, ...]) -> Iterator[Claim]:
    measures = {measure.name: measure for measure in indicator.measures}
    for row in wanted:
        if row.measure in measures:
            measure = measures[row.measure]
            value = _value(row)
            member = {ValueKind.number: "number", ValueKind.state: "state"}.get(measure.kind, "by_precision")
            remote = (
                value is not None
                and value.get(member) is not None
                and value.get("unit") == measure.unit
                and value.get("indicator") == indicator.id
            )
            subject = f"device {row.device}" if row.device else "the subject"
            expected = f"{row.origin}: {row.measure} of {subject}, unit {measure.unit}, indicator {indicator.id}"
            yield holds("MET-001", remote, expected, value or "absent", row.answer)


def _value(row: ExpectedValue) -> dict[str, Any] | None:
    for value in row.answer.items("values"):
        if isinstance(value, dict) and value.get("measure") == row.measure and value.get("device") == row.device:
            return value
    return None


CHECK = Check(
    "met_indicators",
    ("MET-001",),
    observe,
    judge,
    summary="The twelve indicators, from each exporter and for each kind of subject (MET-001).",
)


Value = float | str | dict[str, float]

STATES = ("healthy", "degraded", "unknown", "faulty", "offline")
"""Health states from best to worst, as the clause orders them."""


@dataclass(frozen=True)
class AggregateAnswers:
    """What was reported of each device, and what is answered for nodes and the domain."""

    devices: Mapping[tuple[str, str], Mapping[str, Value]]
    nodes: Mapping[str, Answer]
    whole: Answer
    overruled: Answer
    earlier: Answer
    registered: Answer
    stale: str


def observe_aggregation(episode: Episode) -> AggregateAnswers:
    """Report two nodes with two devices each, one node that has been silent, and ask at each height."""
    site = domain(episode)
    now = episode.now()
    devices: dict[tuple[str, str], dict[str, Value]] = {}
    names = [node(episode, site, label, names=["0", "1"]) for label in ("a", "b")]
    silent = node(episode, site, "silent", names=["0"])
    batch = []
    for machine in names:
        for device in ("0", "1"):
            values = {measure.name: _drawn_value(episode, measure) for measure in device_measures()}
            devices[machine, device] = values
            batch.append(sample(machine, instant(now - 5), kind="device", device=device, **values))
    old = {m.name: _drawn_value(episode, m) for m in device_measures() if m.constancy is Constancy.dynamic}
    batch.append(sample(silent, instant(now - 1800), kind="device", device="0", **old))
    post(episode, batch)
    nodes = {machine: episode.ask("GET", f"/v1/nodes/{machine}/indicators") for machine in names}
    whole = episode.ask("GET", f"/v1/domains/{site}/indicators")
    stated = {"id": "0", "kind": "gpu", "vendor": "conformance", "model": "probe", "memory_capacity": 6.4e10}
    stated["peak_matrix_throughput"] = {"bf16": 3e14}
    paper = episode.name_of("paper")
    elsewhere = domain(episode, "elsewhere")
    episode.set_up("PUT", f"/v1/nodes/{paper}", {"id": paper, "domain": elsewhere, "devices": [stated]})
    post(episode, [sample(site, instant(now - 4), kind="domain", accelerator_utilisation=0.125)])
    return AggregateAnswers(
        devices,
        nodes,
        whole,
        overruled=episode.ask("GET", f"/v1/domains/{site}/indicators"),
        earlier=episode.ask("GET", f"/v1/nodes/{names[0]}/indicators?at={instant(now - 3600)}"),
        registered=episode.ask("GET", f"/v1/domains/{elsewhere}/indicators"),
        stale=silent,
    )


def device_measures() -> list[Measure]:
    """Measures that devices report and that are aggregated."""
    measures = [m for i in registers.indicators().indicators for m in i.measures]
    return [m for m in measures if SubjectKind.device in m.subjects and m.aggregation is not Aggregation.none]


def _drawn_value(episode: Episode, measure: Measure) -> Value:
    draw = episode.random
    match measure.kind:
        case ValueKind.state:
            return draw.choice(STATES)
        case ValueKind.by_precision:
            both = {"bf16": round(draw.uniform(1e13, 1e15)), "fp32": round(draw.uniform(1e12, 1e14))}
            return {"bf16": both["bf16"]} if draw.random() < 0.5 else {name: float(v) for name, v in both.items()}
        case _:
            top = 1.0 if measure.maximum == 1 else 1e9
            return round(draw.uniform(0.01, 1.0) * top, 6)


def combined(measure: Measure, parts: Sequence[Mapping[str, Value]]) -> Value | None:
    """The value of a whole by the register's rule; None where no part has one."""
    values = [part[measure.name] for part in parts if measure.name in part]
    if measure.aggregation is Aggregation.ratio_of_sums:
        over, under = str(measure.numerator), str(measure.denominator)
        pairs = [(part.get(over), part.get(under)) for part in parts]
        both = [(a, b) for a, b in pairs if isinstance(a, int | float) and isinstance(b, int | float)]
        below = sum(b for _, b in both)
        return sum(a for a, _ in both) / below if below else None
    if not values:
        return None
    if measure.kind is ValueKind.state:
        return max((str(v) for v in values), key=STATES.index)
    if measure.kind is ValueKind.by_precision:
        columns: dict[str, list[float]] = {}
        for value in values:
            assert isinstance(value, dict)
            for precision, number in value.items():
                columns.setdefault(precision, []).append(number)
        return {precision: _number(measure.aggregation, numbers) for precision, numbers in columns.items()}
    return _number(measure.aggregation, [float(v) for v in values])  # type: ignore[arg-type]


def _number(rule: Aggregation, numbers: Sequence[float]) -> float:
    match rule:
        case Aggregation.sum:
            return sum(numbers)
        case Aggregation.mean:
            return sum(numbers) / len(numbers)
        case Aggregation.minimum:
            return min(numbers)
        case _:
            return max(numbers)


def judge_aggregation(o: AggregateAnswers) -> Iterator[Finding]:
    """Compute each whole from its parts and compare."""
    wholes: list[Mapping[str, Value]] = []
    for machine, answer in o.nodes.items():
        yield answered("MET-009", answer, 200, "the indicators of a node are answered")
        parts = [values for (owner, _), values in o.devices.items() if owner == machine]
        whole = {m.name: v for m in device_measures() if (v := combined(m, parts)) is not None}
        wholes.append(whole)
        yield from _compared(answer, whole, SubjectKind.node)
        for (owner, device), values in o.devices.items():
            if owner == machine:
                yield from _compared(answer, values, SubjectKind.device, device)
    yield answered("MET-009", o.whole, 200, "the indicators of a domain are answered")
    expected = {m.name: v for m in device_measures() if (v := combined(m, wholes)) is not None}
    yield from _compared(o.whole, expected, SubjectKind.domain)
    devices = [v.get("device") for v in o.whole.items("values") if isinstance(v, dict) and v.get("device")]
    yield holds("MET-009", not devices, "a domain's report holds no values of devices", devices, o.whole)
    own = _reported_value(o.overruled, "accelerator_utilisation", None)
    yield holds("MET-009", _same(own, 0.125), "a value reported for the domain itself wins", own, o.overruled)
    early = o.earlier.items("values")
    dynamic = [v for v in early if isinstance(v, dict) and v.get("provenance") != "registered"]
    yield lacks("MET-009", o.earlier, dynamic, "an hour earlier nothing had been observed")
    capacity = _reported_value(o.registered, "accelerator_memory_capacity", None)
    yield holds(
        "MET-009", _same(capacity, 6.4e10), "what nobody measured comes from the registration", capacity, o.registered
    )


def _compared(
    answer: Answer, expected: Mapping[str, Value], kind: SubjectKind, device: str | None = None
) -> Iterator[Finding]:
    by_name = {measure.name: measure for measure in device_measures()}
    for name, value in expected.items():
        measure = by_name[name]
        if kind not in measure.subjects:
            continue
        observed = _reported_value(answer, name, device)
        what = f"{name} of {kind.value}{f' {device}' if device else ''} ({measure.aggregation.value}) is {value}"
        yield holds("MET-009", _same(observed, value), what, observed, answer)


def _reported_value(answer: Answer, measure: str, device: str | None) -> Any:
    for value in answer.items("values"):
        if isinstance(value, dict) and value.get("measure") == measure and value.get("device") == device:
            return next((value[k] for k in ("number", "by_precision", "state") if value.get(k) is not None), None)
    return None


def _same(observed: Any, expected: Value) -> bool:
    if isinstance(expected, dict):
        return (
            isinstance(observed, dict)
            and observed.keys() == expected.keys()
            and all(_same(observed[name], number) for name, number in expected.items())
        )
    if isinstance(expected, str):
        return bool(observed == expected)
    number = isinstance(observed, int | float) and not isinstance(observed, bool)
    return number and abs(observed - expected) <= 1e-9 * max(1.0, abs(expected))


AGGREGATION_CHECK = Check(
    "met_aggregation",
    ("MET-009",),
    observe_aggregation,
    judge_aggregation,
    summary="From devices to nodes to domains, by the rules of the register (MET-009).",
)


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


def observe_series(episode: Episode) -> SeriesAnswers:
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
    reported = {subject: {moment: _drawn_reading(episode) for moment in moments} for subject in subjects}
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


def _drawn_reading(episode: Episode) -> float:
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


def judge_series(o: SeriesAnswers) -> Iterator[Finding]:
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


SERIES_CHECK = Check(
    "met_series",
    ("MET-020",),
    observe_series,
    judge_series,
    summary="Series: each point against the values that were reported, and what has no series (MET-020).",
)
