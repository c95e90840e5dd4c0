"""OpenTelemetry metrics become lines of a page of otel-hw, and then samples like any page."""

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from minimal_server import protobuf
from minimal_server.conversion import Conversion, Part
from minimal_server.core import LIMITS, Answer, Json, Refusal, Request, Tenant, wrong_body
from minimal_server.exposition import Line
from minimal_server.samples import Good

EXPORTER = "otel-hw"
JSON, PROTOBUF = "application/json", "application/x-protobuf"
CUMULATIVE, NO_RECORDED_VALUE = 2, 1
UNITS = {"By": "bytes", "s": "seconds", "J": "joules", "W": "watts", "Hz": "hertz", "Cel": "celsius", "%": "percent"}
"""Words for the units of the conventions for hardware."""

Timed = tuple[Line, int]


class Otlp(Conversion):
    """Pushed metrics."""

    def post_metrics(self, request: Request) -> Answer:
        """Take metrics."""
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if form not in {JSON, PROTOBUF}:
            raise Refusal("unsupported-media-type", f"the media type must be {JSON} or {PROTOBUF}")
        message = self.message(form, self.unpacked(request))
        nodes: dict[str, list[Line]] = {}
        for resource in _list(message, "resourceMetrics"):
            node = self.node_of(_attributes(_member(resource, "resource")))
            nodes.setdefault(node, []).extend(self.lines_of(resource))
        refused: Counter[str] = Counter()
        for node, lines in nodes.items():
            if node in self.held(request.tenant, "nodes"):
                refused += self.take_points(request.tenant, node, lines)
            elif lines:
                refused[f"no node {node[:200]!r} is registered"] += len(lines)
        return self.metrics_answer(form, refused)

    def unpacked(self, request: Request) -> bytes:
        """The body, uncompressed."""
        encoding = request.headers.get("content-encoding", "identity").lower()
        if encoding == "identity":
            return request.body
        if encoding != "gzip":
            raise Refusal("unsupported-media-type", "the body must be sent as it is, or with gzip")
        packer = zlib.decompressobj(31)
        try:
            body = packer.decompress(request.body, self.largest() + 1)
        except zlib.error as error:
            raise wrong_body("invalid-body", "", f"the body is not gzip: {error}") from error
        if len(body) > self.largest():
            raise Refusal("payload-too-large", f"a body may have {LIMITS['max_body']} bytes when it is unpacked")
        if not packer.eof:
            raise wrong_body("invalid-body", "", "the body ends too early")
        return body

    def largest(self) -> int:
        """Bytes that a body may have when it is unpacked."""
        return LIMITS["max_body"]

    def message(self, form: str, body: bytes) -> Json:
        """The request in its JSON form."""
        if form == PROTOBUF:
            try:
                return protobuf.read("Request", body)
            except ValueError as error:
                raise wrong_body("invalid-body", "", f"the body is no request: {error}") from error
        try:
            return _object(self.parse(body))
        except ValueError as error:
            raise Refusal("malformed-json", f"the body is not well-formed: {error}") from error

    def node_of(self, attributes: dict[str, str]) -> str:
        """The node that a resource is."""
        return attributes.get("kuayu.node") or attributes.get("host.name", "")

    def lines_of(self, resource: Json) -> Iterator[Line]:
        """Lines that the page of a resource would have, as far as the collection map takes them."""
        for scope in _list(resource, "scopeMetrics"):
            name = str(_member(scope, "scope").get("name", ""))
            for metric in _list(scope, "metrics"):
                for line in self.lines_of_metric(metric, name):
                    if next(self.takers(line), None) is not None:
                        yield line

    def lines_of_metric(self, metric: Json, scope: str) -> Iterator[Line]:
        """Lines of a gauge or a sum."""
        gauge = "gauge" in metric
        data = _member(metric, "gauge" if gauge else "sum")
        if not self.is_taken(data, gauge=gauge):
            return
        name = self.metric_name(metric, gauge=gauge, monotonic=bool(data.get("isMonotonic")))
        for point in _list(data, "dataPoints"):
            value = self.point_value(point)
            if value is None:
                continue
            labels = {re.sub(r"[^a-zA-Z0-9]+", "_", key): text for key, text in _attributes(point).items()}
            labels |= {"otel_scope_name": scope} if scope else {}
            yield Line(name, tuple(sorted(labels.items())), value, self.instant_of(point))

    def is_taken(self, data: Json, *, gauge: bool) -> bool:
        """Whether points of this kind are taken: sums must be cumulative."""
        return gauge or data.get("aggregationTemporality") == CUMULATIVE

    def metric_name(self, metric: Json, *, gauge: bool, monotonic: bool) -> str:
        """The metric's name on a page."""
        name = re.sub(r"[^a-zA-Z0-9:]+", "_", str(metric.get("name", ""))).strip("_")
        unit = re.sub(r"\{[^}]*\}", "", str(metric.get("unit", "")))
        word = UNITS.get(unit, "") if unit != "1" else "ratio" if gauge else ""
        if word and not name.endswith(f"_{word}"):
            name += f"_{word}"
        return f"{name.removesuffix('_total')}_total" if monotonic else name

    def instant_of(self, point: Json) -> int | None:
        """When a point was observed, in milliseconds."""
        return int(_number(point, "timeUnixNano") // 1_000_000) or None

    def point_value(self, point: Json) -> float | None:
        """What was read; None where nothing was."""
        if int(_number(point, "flags")) & NO_RECORDED_VALUE:
            return None
        member = next((name for name in ("asInt", "asDouble") if name in point), None)
        return None if member is None else float(_number(point, member))

    def takers(self, line: Line) -> Iterator[tuple[Json, Json, str]]:
        """Rows of the collection map that take a line, each with its measure and the device that the line is of."""
        label = self.exporter(EXPORTER)["device_label"]
        for measure, entry in self.collection(EXPORTER):
            device = line.label(label) if entry["subject"] == "device" else ""
            if line.field in entry["fields"] and self.matches(entry, line) and (device or entry["subject"] == "node"):
                yield measure, entry, device

    def take_points(self, tenant: Tenant, node: str, lines: list[Line]) -> Counter[str]:
        """Take lines, those of each instant as a page; returns how many points could not be taken, by reason."""
        timed = self.distinct([(line, self.moment if line.at is None else line.at) for line in lines])
        bad = self.bad_parts(tenant, node, timed)
        for moment in self.in_order([at for _, at in timed]):
            self.take_page(tenant, node, EXPORTER, [(line, at) for line, at in timed if at == moment], 0)
        return Counter(
            bad[device, at] for line, at in timed for _, _, device in self.takers(line) if (device, at) in bad
        )

    def in_order(self, moments: list[int]) -> list[int]:
        """The instants in the order of their pages."""
        return sorted(set(moments))

    def bad_parts(self, tenant: Tenant, node: str, timed: list[Timed]) -> dict[Part, str]:
        """Devices and instants of which nothing can be taken, with the reason."""
        bad: dict[Part, str] = {}
        for device, at in {(device, at) for line, at in timed for _, _, device in self.takers(line)}:
            try:
                self.check_subject(tenant, Good("device" if device else "node", node, device, at, {}), "")
                self.check_moment(at, "")
            except Refusal as refusal:
                bad[device, at] = refusal.detail
        for measure, entry in self.collection(EXPORTER):
            for part, value in self.convert(entry, self.exporter(EXPORTER), timed, {}):
                if not self.in_range(measure, value):
                    bad.setdefault(part, f"{measure['name']} would be {value}")
        return bad

    def metrics_answer(self, form: str, refused: Counter[str]) -> Answer:
        """What became of the points, in the form of the request."""
        count, why = refused.total(), "; ".join(f"{count} points: {reason}" for reason, count in refused.items())
        if form == PROTOBUF:
            return Answer(200, protobuf.partial_success(count, why[:2000]), {"Content-Type": PROTOBUF})
        partial = {"partialSuccess": {"rejectedDataPoints": str(count), "errorMessage": why[:2000]}}
        return Answer(200, partial if count else {})


def _object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise wrong_body("invalid-body", "", "an object of the protocol is expected here")
    return value


def _member(message: Json, name: str) -> Json:
    value = message.get(name)
    return {} if value is None else _object(value)


def _list(message: Json, name: str) -> list[Json]:
    value = message.get(name) or []
    if not isinstance(value, list):
        raise wrong_body("invalid-body", "", f"{name} must be an array")
    return [_object(item) for item in value]


def _attributes(message: Json) -> dict[str, str]:
    return {str(pair.get("key", "")): _text(_member(pair, "value")) for pair in _list(message, "attributes")}


def _text(value: Json) -> str:
    if "boolValue" in value:
        return "true" if value["boolValue"] else "false"
    return str(value.get("stringValue", value.get("intValue", value.get("doubleValue", ""))))


def _number(message: Json, name: str) -> Any:
    """A number, which stands as text where it has 64 bits."""
    value = message.get(name) or 0
    try:
        return int(value) if name != "asDouble" else float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong_body("invalid-body", "", f"{name} must be a number") from error
