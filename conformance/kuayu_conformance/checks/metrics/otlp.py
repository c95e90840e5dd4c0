"""OpenTelemetry metrics give the samples that a page with the same readings gives (MET-021)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose
from typing import Any, NamedTuple

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, read_samples
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.exporters.gzip_codec import packed
from kuayu_conformance.exporters.otlp import (
    COUNTER,
    DELTA,
    GAUGE,
    JSON,
    NO_RECORDED_VALUE,
    PROTOBUF,
    Point,
    Resource,
    points_of,
    request,
    response,
)
from kuayu_conformance.exporters.player import Cell, Page, PlayedExporter
from kuayu_conformance.findings import Finding, answered, holds, lacks

EXPORTER = "otel-hw"
ENVELOPE = {"subject", "subject_kind", "device", "observed_at", "received_at"}
"""Members of a sample's record that are no measures."""

STRAY, STRAY_SHARE = 2, 0.02
"""Single values of a comparison that may differ, whichever is more: how many are wrong is what MET-003 counts."""

MAX_LIMIT_BYTES = 20_000_000
"""Bytes up to which a declared limit is tried."""


class Place(NamedTuple):
    """What a value is of; the device is "" for the node itself."""

    device: str
    observed_at: str
    measure: str


Samples = tuple[Answer, Answer]
"""What is held of a node and of its devices."""


@dataclass(frozen=True)
class GoodExport:
    """A request that a service should take: what it is, its form, how many of its points it should refuse, the answer.

    What should not be taken, and not be counted either, has no number of points.
    """

    what: str
    form: str
    refused: int | None
    answer: Answer


@dataclass(frozen=True)
class Twins:
    """What is held after the same readings, of a node that sent metrics and of one that sent pages."""

    what: str
    metrics: Samples
    pages: Samples
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class BadExport:
    """A body that should not be taken: what is wrong, the answer, statuses and problem that it calls for, if one."""

    what: str
    answer: Answer
    statuses: tuple[int, ...]
    problem: str = ""


@dataclass(frozen=True)
class ExportAnswers:
    """Answers to requests, good and bad, and what was held afterwards."""

    sent: tuple[GoodExport, ...]
    twins: tuple[Twins, ...]
    quiet: Samples
    strange: Samples
    wrong: tuple[BadExport, ...]


class _Sender:
    """Sends metrics and keeps the answers."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.sent: list[GoodExport] = []

    def post(self, body: bytes, form: str, encoding: str = "") -> Answer:
        headers = {"content-encoding": encoding} if encoding else {}
        return self.episode.ask("POST", "/v1/metrics", content=body, media_type=form, headers=headers)

    def send(
        self, what: str, form: str, *resources: Resource, compressed: bool = False, refused: int | None = 0
    ) -> None:
        body = request(form, *resources)
        body = packed(body) if compressed else body
        self.sent.append(GoodExport(what, form, refused, self.post(body, form, "gzip" if compressed else "")))


def observe(episode: Episode) -> ExportAnswers:
    """Send the same readings as metrics and as pages, then what should be left out, refused or called a problem."""
    site = domain(episode)
    played = PlayedExporter(EXPORTER, episode.random)
    machines = {
        label: node(episode, site, label, names=played.devices)
        for label in ("sent", "pushed", "batched", "ordered", "quiet", "strange")
    }
    absent = episode.name_of("absent")
    sender = _Sender(episode)

    def push(label: str, page: Page) -> None:
        path = f"/v1/expositions?node={machines[label]}&exporter={EXPORTER}&observed_at={instant(page.instant)}"
        episode.ask("POST", path, content=page.untimed.encode(), media_type="text/plain")

    def read(label: str) -> Samples:
        return read_samples(episode, machines[label]), read_samples(episode, machines[label], kind="device")

    start = round(episode.now()) - 60.0
    pages = [played.advance(start + 10 * step) for step in range(4)]
    named = {"host.name": absent, "kuayu.node": machines["sent"]}
    first, second, third, last = (points_of(page.text) for page in pages)
    sender.send("metrics in JSON", JSON, (named, first))
    sender.send("metrics in protobuf", PROTOBUF, (named, second))
    sender.send("compressed metrics in protobuf", PROTOBUF, (named, last), compressed=True)
    sender.send("compressed metrics in JSON that are late", JSON, (named, third), compressed=True)
    sender.send("metrics that are held already", JSON, (named, first))
    for step in (0, 1, 3, 2, 0):
        push("pushed", pages[step])

    gpu_power = [point for point in second if point.name == "hw.power" and point.attributes["hw.type"] == "gpu"]
    several = {"host.name": machines["batched"]}
    sender.send(
        "readings of several instants, and a resource that is not registered",
        PROTOBUF,
        ({"host.name": absent}, gpu_power),
        (several, [*last, *first, *third, *second]),
        refused=len(gpu_power),
    )
    sender.send("a resource that names no node", JSON, ({"service.name": absent}, gpu_power), refused=len(gpu_power))
    for page in pages:
        push("ordered", page)

    quiet = {"kuayu.node": machines["quiet"]}
    unmapped = Point("kuayu.unknown", "{thing}", COUNTER, {}, 5, first[0].nanoseconds)
    blank = [replace(point, flags=NO_RECORDED_VALUE, value=0.0) for point in gpu_power]
    others = [point for point in first if point.name in {"hw.energy", "hw.temperature"}]
    sender.send("metrics without a map, and points without a value", JSON, (quiet, [unmapped, *others, *blank]))
    for readings, form in ((first, JSON), (second, PROTOBUF)):
        delta = [replace(point, temporality=DELTA) for point in readings if point.instrument == COUNTER]
        sender.send("delta sums", form, (quiet, delta), refused=None)

    good, other = gpu_power[0], gpu_power[1]
    position = {"hw.id": other.attributes["hw.id"], "hw.gpu.task": "general"}
    odd = [
        replace(good, attributes={"hw.id": absent, "hw.type": "gpu"}),
        Point("hw.gpu.utilization", "1", GAUGE, position, 2.5, good.nanoseconds),
    ]
    strange = {"kuayu.node": machines["strange"]}
    sender.send("a device that is not there, and 250 %", JSON, (strange, [good, *odd]), refused=2)
    return ExportAnswers(
        tuple(sender.sent),
        (
            Twins("in all forms", read("sent"), read("pushed"), pages[0].cells + pages[1].cells),
            Twins("of several instants in one request", read("batched"), read("ordered"), pages[3].cells),
        ),
        read("quiet"),
        read("strange"),
        tuple(_wrong(sender, request(JSON, (quiet, first)), request(PROTOBUF, (quiet, first)))),
    )


def _wrong(sender: _Sender, text: bytes, binary: bytes) -> Iterator[BadExport]:
    post = sender.post
    yield BadExport("JSON that is cut off", post(text[:-40], JSON), (400,), "malformed-json")
    yield BadExport("an array", post(b"[]", JSON), (422,), "invalid-body")
    yield BadExport("a member of the wrong type", post(b'{"resourceMetrics": 5}', JSON), (422,), "invalid-body")
    yield BadExport("protobuf that is cut off", post(binary[:-5], PROTOBUF), (400, 422))
    yield BadExport("a page", post(b"hw_power_watts 1\n", "text/plain"), (415,), "unsupported-media-type")
    yield BadExport("what only says that it is compressed", post(binary, PROTOBUF, "gzip"), (400, 415, 422))
    limit = sender.episode.settings.limits["max_body"]
    if limit <= MAX_LIMIT_BYTES:
        bomb = packed(b'{"resourceMetrics": []' + b" " * int(limit) + b"}")
        yield BadExport(
            "a small body that unpacks to a large one", post(bomb, JSON, "gzip"), (413,), "payload-too-large"
        )


def judge(o: ExportAnswers) -> Iterator[Finding]:
    """Hold answers against the clause, and samples of metrics against those of pages."""
    for sent in o.sent:
        yield from _answer(sent)
    for twins in o.twins:
        yield from _alike(twins)
    for answer in o.quiet:
        yield lacks("MET-021", answer, answer.items("items"), "what is left out gives no sample")
    devices = [item.get("device") for item in o.strange[1].items("items") if isinstance(item, dict)]
    expected = "of points that cannot be taken none is held, of the others each"
    yield holds("MET-021", len(devices) == 1, expected, f"samples of {devices}", o.strange[1])
    for wrong in o.wrong:
        yield answered("MET-021", wrong.answer, wrong.statuses, wrong.what, problem=wrong.problem)
        yield holds("MET-021", bool(wrong.answer.problem), "a registered problem", wrong.answer.brief, wrong.answer)


def _answer(sent: GoodExport) -> Iterator[Finding]:
    answer = sent.answer
    yield answered("MET-021", answer, 200, sent.what)
    form = answer.media_type
    yield holds("MET-021", form == sent.form, f"{sent.what}: the answer is {sent.form}", form, answer)
    read = response(sent.form, answer.body)
    expected = f"{sent.what}: the answer is an ExportMetricsServiceResponse"
    yield holds("MET-021", read is not None, expected, answer.brief, answer)
    if read is not None and sent.refused is not None:
        expected = f"{sent.what}: {sent.refused} points are refused"
        met = read.refused == sent.refused and (read.refused == 0 or bool(read.why))
        yield holds("MET-021", met, expected + (", with the reason" if sent.refused else ""), read, answer)


def _alike(twins: Twins) -> Iterator[Finding]:
    metrics, pages = _values(twins.metrics), _values(twins.pages)
    missing = {cell.measure for cell in twins.cells if cell.truth is not None} - {place.measure for place in metrics}
    expected = f"readings {twins.what}: every measure that follows from the readings is held"
    yield holds("MET-021", not missing, expected, f"not there: {', '.join(sorted(missing))}", twins.metrics[1])
    odd = [f"{place}: {metrics.get(place)}, not {pages.get(place)}" for place in sorted(metrics.keys() ^ pages.keys())]
    expected = f"readings {twins.what}: metrics give values of the same subjects, instants and measures as pages"
    yield holds("MET-021", not odd, expected, "; ".join(odd[:3]) or "the same", twins.metrics[1])
    both = sorted(metrics.keys() & pages.keys())
    wrong = {place for place in both if not _same(metrics[place], pages[place])}
    most = max(STRAY, int(STRAY_SHARE * len(both)))
    expected = f"readings {twins.what}: the values are those of the pages, but for {most} of {len(both)} at most"
    first = "; ".join(f"{place}: {metrics[place]}, not {pages[place]}" for place in sorted(wrong)[:3])
    yield holds("MET-021", len(wrong) <= most, expected, f"{len(wrong)} others: {first or 'none'}", twins.metrics[1])
    # Few values may be all that there are of a device, an instant or a measure, and still be no accident.
    groups: dict[str, list[bool]] = {}
    for place in both:
        for group in (f"measure {place.measure}", f"instant {place.observed_at}", f"device {place.device or 'none'}"):
            groups.setdefault(group, []).append(place in wrong)
    spoilt = sorted(group for group, flags in groups.items() if len(flags) > 1 and all(flags))
    expected = f"readings {twins.what}: no measure, no instant and no device is wrong throughout"
    yield holds("MET-021", not spoilt, expected, f"wrong for {', '.join(spoilt) or 'none'}", twins.metrics[1])


def _values(samples: Samples) -> Mapping[Place, Any]:
    return {
        Place(str(item.get("device", "")), str(item.get("observed_at")), measure): value
        for answer in samples
        for item in answer.items("items")
        if isinstance(item, dict)
        for measure, value in item.items()
        if measure not in ENVELOPE
    }


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same, but for the order in which numbers were added."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        try:
            return isclose(one, other, rel_tol=1e-9)
        except OverflowError:  # a whole number that no double can hold
            return one == other
    return bool(one == other)


CHECK = Check("met_otlp", ("MET-021",), observe, judge)
