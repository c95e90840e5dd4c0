"""Exporters' pages become samples by the collection map of the indicator register."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from minimal_server.core import Answer, Json, Refusal, Request, Tenant, wrong_body, wrong_parameter
from minimal_server.exposition import Line, read_page
from minimal_server.samples import AHEAD, Good, Samples

WORST = ("healthy", "degraded", "unknown", "faulty", "offline")
"""Health states from best to worst."""

SMALL, RESET = 100, 0.75
"""Counts below the first do not slip; a counter that falls below this share of its value was reset."""

Value = float | str
Part = tuple[str, int]
"""Device ("" for the node itself) and instant: what one sample of a page is about."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a series since the previous page: increase of its value, and seconds between."""

    increase: float
    seconds: float


@dataclass
class Counters:
    """Last value and instant of each series of one node and exporter, and the newest instant of all."""

    last: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[float, int]] = field(default_factory=dict)
    newest: int | None = None


class Conversion(Samples):
    """Pushed pages."""

    def post_exposition(self, request: Request) -> Answer:
        """Take a page."""
        query = request.query
        for name in ("node", "exporter"):
            if name not in query:
                raise wrong_parameter(name, f"{name} must be given")
        if query["node"] not in self.held(request.tenant, "nodes"):
            raise wrong_parameter("node", "no node of that name is registered", "unknown-reference")
        self.exporter(query["exporter"])
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "text/plain":
            raise Refusal("unsupported-media-type", "the media type must be text/plain")
        self.moment_of(request, "sent_at", 0)
        offset = self.clock_offset(query.get("sent_at"))
        observed = self.moment_of(request, "observed_at", self.moment - offset) + offset
        try:
            lines = self.lines(request.body)
        except ValueError as error:
            raise Refusal("malformed-exposition", f"the page is not in the text format: {error}") from error
        timed = self.timed(lines, observed, offset)
        return self.take_page(request.tenant, query["node"], query["exporter"], timed, offset)

    def exporter(self, name: str) -> Json:
        """The exporter's row in the register."""
        for row in self.indicators["exporters"]:
            if row["id"] == name:
                exporter: Json = row
                return exporter
        raise wrong_parameter("exporter", "the collection map does not name this exporter", "unknown-exporter")

    def lines(self, page: bytes) -> list[Line]:
        """The page's lines that hold a value; ValueError where one is not in the format."""
        return list(read_page(page))

    def timed(self, lines: Iterable[Line], observed: int, offset: int) -> list[tuple[Line, int]]:
        """Lines with the instant at which each was observed; values that are no number are absent."""
        numbers = (line for line in lines if not math.isnan(line.value))
        return self.distinct([(line, observed if line.at is None else line.at + offset) for line in numbers])

    def distinct(self, lines: list[tuple[Line, int]]) -> list[tuple[Line, int]]:
        """Each series and instant once; the first value counts."""
        first: dict[object, tuple[Line, int]] = {}
        for line, at in lines:
            first.setdefault((line.series, at), (line, at))
        return list(first.values())

    def take_page(self, tenant: Tenant, node: str, exporter: str, lines: list[tuple[Line, int]], offset: int) -> Answer:
        """Turn a page into one sample for each subject and instant, and take those."""
        changes = self.changes(tenant.counters.setdefault((node, exporter), Counters()), lines)
        made: dict[Part, Json] = {}
        strays: list[tuple[Part, Refusal]] = []
        for measure, entry in self.collection(exporter):
            for part, value in self.convert(entry, self.exporter(exporter), lines, changes):
                if not self.in_range(measure, value):
                    refusal = wrong_body("out-of-range", "", f"{measure['name']} would be {value}")
                    strays.append((part, refusal))
                    made.setdefault(part, {})
                else:
                    made.setdefault(part, {}).setdefault(measure["name"], value)
        order = sorted(made)
        bad = [(order.index(part), refusal) for part, refusal in strays]
        spoilt = {part for part, _ in strays}
        good = []
        for index, (device, at) in enumerate(order):
            rest = self.rest(made[device, at]) if (device, at) in spoilt else made[device, at]
            sample = Good("device" if device else "node", node, device, at, rest)
            try:
                self.check_subject(tenant, sample, "")
                self.check_moment(at, "")
            except Refusal as refusal:
                bad.append((index, Refusal(refusal.name, refusal.detail)))
            else:
                good += [sample] if sample.measures else []
        self.take(tenant, good)
        return self.result(len(good), sorted(bad, key=lambda row: row[0]), offset)

    def rest(self, measures: Json) -> Json:
        """What is taken of a sample of which a value was refused."""
        return measures

    def collection(self, exporter: str) -> Iterator[tuple[Json, Json]]:
        """Rows of the collection map for an exporter, each with its measure."""
        for indicator in self.indicators["indicators"]:
            for measure in indicator["measures"]:
                for entry in measure.get("collection", ()):
                    if entry["exporter"] == exporter:
                        yield measure, entry

    def changes(self, counters: Counters, lines: list[tuple[Line, int]]) -> dict[tuple[object, int], Change]:
        """What became of each series; pages older than the newest are not counted from, nor do they count."""
        found: dict[tuple[object, int], Change] = {}
        newest = counters.newest
        for line, at in sorted(lines, key=lambda row: row[1]):
            if not self.in_turn(at, newest) or at > self.moment + AHEAD:
                continue
            value, then = counters.last.get(line.series, (0.0, at))
            if then < at:
                found[line.series, at] = Change(self.increase(value, line.value), (at - then) / 1000)
            counters.last[line.series] = line.value, at
            counters.newest = max(at, counters.newest or at)
        return found

    def in_turn(self, at: int, newest: int | None) -> bool:
        """Whether a line is newer than the pages before."""
        return newest is None or at > newest

    def increase(self, before: float, now: float) -> float:
        """Increase of a counter; one that fell far was reset, and one that slipped gained nothing."""
        if now >= before:
            return now - before
        return 0.0 if before >= SMALL and now >= RESET * before else now

    def convert(
        self, entry: Json, exporter: Json, lines: list[tuple[Line, int]], changes: dict[tuple[object, int], Change]
    ) -> Iterator[tuple[Part, Value]]:
        """What one row of the collection map makes of a page."""
        found: dict[Part, dict[str, list[Value]]] = {}
        for line, at in lines:
            if line.field not in entry["fields"] or not self.matches(entry, line):
                continue
            device = line.label(exporter["device_label"]) if entry["subject"] == "device" else ""
            value = self.transformed(entry, line, changes.get((line.series, at)))
            if value is not None and (device or entry["subject"] == "node"):
                found.setdefault((device, at), {}).setdefault(line.field, []).append(value)
        for part, fields in found.items():
            if len(fields) == len(entry["fields"]):
                yield part, self.combined([value for values in fields.values() for value in values])

    def matches(self, entry: Json, line: Line) -> bool:
        """Whether the labels are those that the row asks for."""
        return all(line.label(match["label"]) == match["value"] for match in entry.get("match", ()))

    def transformed(self, entry: Json, line: Line, change: Change | None) -> Value | None:
        """Value of one series as the measure has it; None where it cannot be told."""
        factor = float(entry["factor"])
        match entry["transform"]:
            case "gauge":
                return self.gauge(entry, line.value, factor)
            case "rate":
                return None if change is None else self.rate(entry, change, factor)
            case "increase":
                return None if change is None else change.increase * factor
            case "state":
                return self.state(entry, line.value)
            case _:
                return float(line.value != 0)

    def gauge(self, _entry: Json, value: float, factor: float) -> float:
        """The field's value in the measure's unit."""
        return value * factor

    def rate(self, _entry: Json, change: Change, factor: float) -> float:
        """Increase in a second, in the measure's unit."""
        return change.increase * factor / change.seconds

    def state(self, entry: Json, value: float) -> str:
        """The state that the collection map gives for the value."""
        return next((match["state"] for match in entry.get("states", ()) if match["value"] == value), "unknown")

    def combined(self, values: list[Value]) -> Value:
        """Series of one subject together: the sum, or the worst state."""
        numbers = [value for value in values if not isinstance(value, str)]
        return sum(numbers) if numbers else max((str(value) for value in values), key=WORST.index)

    def in_range(self, measure: Json, value: Value) -> bool:
        """Whether a measure can have the value."""
        if isinstance(value, str):
            return True
        return math.isfinite(value) and measure.get("minimum", value) <= value <= measure.get("maximum", value)
