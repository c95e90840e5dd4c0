"""How pages of exporters are taken: times, gaps, strangers, broken pages (MET-008)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, read_samples
from kuayu_conformance.episode import Episode, instant, seconds_of
from kuayu_conformance.exporters.player import Cell, PlayedExporter
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


CHECK = Check("met_exposition", ("MET-008",), observe, judge)
