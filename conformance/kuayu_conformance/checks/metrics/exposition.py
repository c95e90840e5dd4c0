"""How telemetry comes in: pages of exporters, pushed and fetched, and OpenTelemetry (MET-008, MET-010, MET-021).

1. Pages are taken with their times, gaps, strangers and broken lines (MET-008).
2. The service fetches exporters' pages by itself (MET-010).
3. OpenTelemetry metrics give the samples that a page with the same readings gives (MET-021).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Any, NamedTuple

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.requests import domain, node, read_samples
from kuayu_conformance.episode import Episode, NotTestable, instant, seconds_of
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

EXPORTER = "dcgm-exporter"
COUNTING = "node-exporter"

SPOILT = "accelerator_utilisation"
"""The measure of which a page shows 250 %."""

SAME_INSTANT = 0.002
"""Seconds by which the instant of a line and that of its sample may differ: instants are in milliseconds."""


@dataclass(frozen=True)
class PageAnswers:
    """Answers to pages, named for what is particular about them, and what was held afterwards."""

    timed_at: float
    timed: Answer
    timed_held: Answer
    untimed_at: float
    untimed_held: Answer
    bare_at: float
    bare_held: Answer
    first: Answer
    second: Answer
    older: Answer
    rates: Answer
    counting_at: tuple[float, float, float]
    unmapped: Answer
    malformed: Answer
    after_malformed: Answer
    unknown_exporter: Answer
    unknown_node: Answer
    stranger: Answer
    out_of_range: Answer
    after_out_of_range: Answer
    rest: tuple[Cell, ...]


def observe(episode: Episode) -> PageAnswers:
    """Send pages with and without times, with strange devices, broken and out of range."""
    site = domain(episode)

    def push(machine: str, text: str, query: str = "", exporter: str = EXPORTER) -> Answer:
        path = f"/v1/expositions?node={machine}&exporter={exporter}{query}"
        return episode.ask("POST", path, content=text.encode(), media_type="text/plain")

    def machine(label: str) -> tuple[str, PlayedExporter]:
        played = PlayedExporter(EXPORTER, episode.random)
        return node(episode, site, label, names=played.devices), played

    now = episode.now()
    timed, played = machine("timed")
    timed_answer = push(timed, played.advance(now - 40).text, f"&observed_at={instant(now - 5)}")
    untimed, played = machine("untimed")
    push(untimed, played.advance(now - 30).untimed, f"&observed_at={instant(now - 30)}")
    bare, played = machine("bare")
    bare_at = episode.now()
    push(bare, played.advance(now).untimed)

    counter = PlayedExporter(COUNTING, episode.random)
    counting = node(episode, site, "counting", names=counter.devices)
    times = (now - 60, now - 40, now - 20)
    pages = [counter.advance(time).text for time in times]
    first = push(counting, pages[0], exporter=COUNTING)
    second = push(counting, pages[2], exporter=COUNTING)
    older = push(counting, pages[1], exporter=COUNTING)

    broken, played = machine("broken")
    good = played.advance(now - 10).text
    malformed = push(broken, good + 'DCGM_FI_DEV_GPU_UTIL{gpu="0" 5 oops\n')
    after_malformed = read_samples(episode, broken, kind="device")
    unmapped = push(broken, "# TYPE kuayu_unknown gauge\nkuayu_unknown 1\n")
    unknown_exporter = push(broken, good, exporter="no-such-exporter")
    unknown_node = push(episode.name_of("absent"), good)
    empty = node(episode, site, "empty")
    stranger = push(empty, good)
    ranged, played = machine("ranged")
    page = played.advance(now - 10)
    field = next(row for row in played.mapped if row.measure.name == SPOILT)
    series = field.series[played.devices[0]][0]
    excess = played.capture.render({**page.values, series: "250"}, round(page.instant * 1000))
    spoilt = {row.measure.name for row in played.mapped if series in row.series.get(played.devices[0], ())}
    rest = (cell for cell in page.gauges if cell.subject == played.devices[0] and cell.measure not in spoilt)
    return PageAnswers(
        now - 40,
        timed_answer,
        read_samples(episode, timed, kind="device"),
        now - 30,
        read_samples(episode, untimed, kind="device"),
        bare_at,
        read_samples(episode, bare, kind="device"),
        first,
        second,
        older,
        read_samples(episode, counting),
        times,
        unmapped,
        malformed,
        after_malformed,
        unknown_exporter,
        unknown_node,
        stranger,
        out_of_range=push(ranged, excess),
        after_out_of_range=read_samples(episode, ranged, kind="device"),
        rest=tuple(rest),
    )


def judge(o: PageAnswers) -> Iterator[Finding]:
    """Hold instants and refusals against the clause."""
    yield answered("MET-008", o.timed, 200, "a page is taken")
    for what, expected, within, answer in (
        ("a line's own time wins over observed_at", o.timed_at, SAME_INSTANT, o.timed_held),
        ("observed_at is the time of lines without one", o.untimed_at, SAME_INSTANT, o.untimed_held),
        ("without either, the time of receipt counts", o.bare_at, 5.0, o.bare_held),
    ):
        when = seconds_of(answer.at("items", 0, "observed_at"))
        met = when is not None and abs(when - expected) <= within
        yield holds("MET-008", met, f"{what}: {instant(expected)}", answer.at("items", 0, "observed_at"), answer)
    yield from _rates(o)
    yield answered("MET-008", o.unmapped, 200, "a page without a mapped field is taken")
    yield holds("MET-008", o.unmapped.at("accepted") == 0, "it gives no sample", o.unmapped.brief, o.unmapped)
    yield answered("MET-008", o.malformed, 422, "a page that is not in the format", problem="malformed-exposition")
    yield lacks("MET-008", o.after_malformed, o.after_malformed.items("items"), "nothing of it is taken")
    yield answered("MET-008", o.unknown_exporter, 422, "an exporter that no map names", problem="unknown-exporter")
    yield answered("MET-008", o.unknown_node, 422, "a node that is not registered", problem="unknown-reference")
    yield answered("MET-008", o.stranger, 200, "a page about a device that the node has not is refused item by item")
    kind = o.stranger.at("rejected", 0, "problem", "type")
    expected_kind = "urn:kuayu:problem:unknown-reference"
    yield holds("MET-008", kind == expected_kind, "the device is refused as unknown-reference", kind, o.stranger)
    kind = o.out_of_range.at("rejected", 0, "problem", "type")
    expected_kind = "urn:kuayu:problem:out-of-range"
    yield holds("MET-008", kind == expected_kind, "250 % utilisation is refused as out-of-range", kind, o.out_of_range)
    yield from judge_rest(o.after_out_of_range, o.rest)


def judge_rest(answer: Answer, rest: Sequence[Cell]) -> Iterator[Finding]:
    """Hold what is held after a value out of range against the rest of its sample."""
    items = [item for item in answer.items("items") if isinstance(item, dict)]
    spoilt_values = [item[SPOILT] for item in items if SPOILT in item]
    yield holds("MET-008", not spoilt_values, "the value out of range is not held", f"held {spoilt_values}", answer)
    missing = [cell.measure for cell in rest if not any(_is_held(cell, item) for item in items)]
    expected = "the other measures of the sample are held, with the values that the page shows"
    observed = f"missing or different: {', '.join(missing) or 'none'}"
    yield holds("MET-008", not missing, expected, observed, answer)


def _is_held(cell: Cell, item: Mapping[str, object]) -> bool:
    value, device = item.get(cell.measure), item.get("device")
    when = seconds_of(item.get("observed_at"))
    if device != cell.subject or when is None or abs(when - cell.instant) > SAME_INSTANT:
        return False
    if isinstance(cell.truth, float) and isinstance(value, int | float):
        return abs(value - cell.truth) <= cell.tolerance
    return value == cell.truth


def _rates(o: PageAnswers) -> Iterator[Finding]:
    for answer, what in ((o.first, "first"), (o.second, "second"), (o.older, "older")):
        yield answered("MET-008", answer, 200, f"the {what} page of a counting exporter is taken")
    counted = {
        round((seconds_of(item.get("observed_at")) or 0) - o.counting_at[0]): item.get("storage_read_flow")
        for item in o.rates.items("items")
        if isinstance(item, dict)
    }
    for offset, remote, what in (
        (0, False, "the first page gives no rate"),
        (20, False, "a page older than the newest taken gives no rate"),
        (40, True, "the second page gives a rate"),
    ):
        value = counted.get(offset)
        yield holds("MET-008", (value is not None) == remote, what, value, o.rates)


CHECK = Check(
    "met_exposition",
    ("MET-008",),
    observe,
    judge,
    summary="How pages of exporters are taken: times, gaps, strangers, broken pages (MET-008).",
)


PERIOD, WAIT = 1.0, 4.5
"""Seconds between scrapes that are asked for; seconds that are waited."""

FORBIDDEN = ("http://192.0.2.7:9400/metrics", "http://169.254.169.254/latest/meta-data/", "file:///etc/hostname")
"""Targets that no allow-list should hold: documentation addresses (RFC 5737), link-local, and files."""


@dataclass(frozen=True)
class ScrapeOutcomes:
    """What became of a target that answers, of one that does not, and of targets that are not allowed."""

    created: Answer
    listed: Answer
    target: str
    fetched: tuple[float, ...]
    state: Answer
    stored: Answer
    cells: tuple[Cell, ...]
    failing: Answer
    forbidden: tuple[tuple[str, Answer], ...]
    orphan: Answer
    removed: Answer
    after_removal: int


def observe_scrape(episode: Episode) -> ScrapeOutcomes:
    """Play an exporter for a few seconds, point another target at nothing, and try targets that must be refused.

    Raises:
        NotTestable: The target may not fetch from the suite's address.
    """
    site = domain(episode)
    played = PlayedExporter(EXPORTER, episode.random)
    machine = node(episode, site, names=played.devices)
    page = played.advance(episode.now())
    url = episode.publish("page", page.untimed)
    name = episode.name_of("t")
    target = {"id": name, "node": machine, "exporter": EXPORTER, "url": url, "period": PERIOD}
    created = episode.ask("PUT", f"/v1/scrape-targets/{name}", target)
    if created.problem == "target-not-allowed":
        raise NotTestable(
            "the target's allow-list does not hold the suite's address",
            f"let the target fetch from {url.rpartition('/')[0]} while the suite runs",
        )
    broken = episode.name_of("broken")
    failing_target = {**target, "id": broken, "url": url.rpartition("/")[0] + "/nothing-here"}
    episode.set_up("PUT", f"/v1/scrape-targets/{broken}", failing_target)
    episode.sleep(WAIT)
    fetched = episode.scrapes("page")
    state = episode.ask("GET", f"/v1/scrape-targets/{name}")
    forbidden = []
    for i, address in enumerate(FORBIDDEN):
        other = episode.name_of(f"forbidden-{i}")
        body = {**target, "id": other, "url": address}
        forbidden.append((address, episode.ask("PUT", f"/v1/scrape-targets/{other}", body)))
    orphan = {**target, "id": episode.name_of("orphan"), "node": episode.name_of("absent")}
    observed = ScrapeOutcomes(
        created,
        episode.ask("GET", "/v1/scrape-targets"),
        name,
        fetched,
        state,
        read_samples(episode, machine, kind="device"),
        page.gauges,
        episode.ask("GET", f"/v1/scrape-targets/{broken}"),
        tuple(forbidden),
        episode.ask("PUT", f"/v1/scrape-targets/{orphan['id']}", orphan),
        episode.ask("DELETE", f"/v1/scrape-targets/{name}"),
        after_removal=0,
    )
    before = len(episode.scrapes("page"))
    episode.sleep(2 * PERIOD)
    return replace(observed, after_removal=len(episode.scrapes("page")) - before)


def judge_scrape(o: ScrapeOutcomes) -> Iterator[Finding]:
    """Targets are fetched as asked for, fail in the open, and stay within the allow-list."""
    yield answered("MET-010", o.created, 201, "a target within the allow-list is taken")
    listed = [item.get("id") for item in o.listed.items("items") if isinstance(item, dict)]
    yield holds("MET-010", o.target in listed, "it is listed", listed, o.listed)
    count = len(o.fetched)
    least = int(WAIT / PERIOD) - 1
    yield holds(
        "MET-010", count >= least, f"it is fetched at once and every {PERIOD:.0f} s: {least} times or more", count
    )
    yield holds("MET-010", o.state.at("state") == "succeeded", "its state shows success", o.state.brief, o.state)
    names = {name for item in o.stored.items("items") if isinstance(item, dict) for name in item}
    missing = sorted({cell.measure for cell in o.cells} - names)
    yield holds(
        "MET-010", not missing, "each measure that the page shows by itself is held", f"missing {missing}", o.stored
    )
    yield holds("MET-010", o.failing.at("state") == "failed", "a failing target says so", o.failing.brief, o.failing)
    problem = o.failing.at("last_problem", "type")
    why = problem == "urn:kuayu:problem:scrape-failed"
    yield holds("MET-010", why, "and says why: scrape-failed", problem, o.failing)
    for address, answer in o.forbidden:
        yield answered("MET-010", answer, 422, f"{address} is refused", problem="target-not-allowed")
    yield answered("MET-010", o.orphan, 422, "a target for a node that is not there", problem="unknown-reference")
    yield answered("MET-010", o.removed, 204, "a target is deleted")
    yield holds("MET-010", o.after_removal <= 1, "it is not fetched any more", f"{o.after_removal} fetches")


SCRAPE_CHECK = Check(
    "met_scrape",
    ("MET-010",),
    observe_scrape,
    judge_scrape,
    recorded_times=True,
    summary="The service fetches exporters' pages by itself (MET-010).",
)


OTEL_EXPORTER = "otel-hw"
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


def observe_otlp(episode: Episode) -> ExportAnswers:
    """Send the same readings as metrics and as pages, then what should be left out, refused or called a problem."""
    site = domain(episode)
    played = PlayedExporter(OTEL_EXPORTER, episode.random)
    machines = {
        label: node(episode, site, label, names=played.devices)
        for label in ("sent", "pushed", "batched", "ordered", "quiet", "strange")
    }
    absent = episode.name_of("absent")
    sender = _Sender(episode)

    def push(label: str, page: Page) -> None:
        path = f"/v1/expositions?node={machines[label]}&exporter={OTEL_EXPORTER}&observed_at={instant(page.instant)}"
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


def judge_otlp(o: ExportAnswers) -> Iterator[Finding]:
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


OTLP_CHECK = Check(
    "met_otlp",
    ("MET-021",),
    observe_otlp,
    judge_otlp,
    summary="OpenTelemetry metrics give the samples that a page with the same readings gives (MET-021).",
)
