"""Readings of a page of ``otel-hw`` as the OpenTelemetry metrics that the page was made of, in both forms of OTLP.

Only the few messages that are needed are written, so that the suite needs no protobuf library.

Source: names, units and instruments of the semantic conventions for hardware, docs/hardware @e10a930 (v1.44.0); field
numbers of opentelemetry-proto 1.9, metrics.proto, common.proto, resource.proto and metrics_service.proto; wire format
of Protocol Buffers, "Encoding".
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.exporters.captures import LABEL, LINE

JSON, PROTOBUF = "application/json", "application/x-protobuf"
"""Media types of the two forms."""

GAUGE, COUNTER, UP_DOWN_COUNTER = "gauge", "counter", "updowncounter"
"""Instruments."""

DELTA, CUMULATIVE = 1, 2
"""Temporalities of a sum."""

NO_RECORDED_VALUE = 1
"""Flag of a point."""

METRICS: Mapping[str, tuple[str, str, str]] = {
    "hw_energy_joules_total": ("hw.energy", "J", COUNTER),
    "hw_errors_total": ("hw.errors", "{error}", COUNTER),
    "hw_gpu_io_bytes_total": ("hw.gpu.io", "By", COUNTER),
    "hw_gpu_memory_limit_bytes": ("hw.gpu.memory.limit", "By", UP_DOWN_COUNTER),
    "hw_gpu_memory_usage_bytes": ("hw.gpu.memory.usage", "By", UP_DOWN_COUNTER),
    "hw_gpu_memory_utilization_ratio": ("hw.gpu.memory.utilization", "1", GAUGE),
    "hw_gpu_utilization_ratio": ("hw.gpu.utilization", "1", GAUGE),
    "hw_host_power_watts": ("hw.host.power", "W", GAUGE),
    "hw_network_io_bytes_total": ("hw.network.io", "By", COUNTER),
    "hw_network_up": ("hw.network.up", "1", UP_DOWN_COUNTER),
    "hw_power_watts": ("hw.power", "W", GAUGE),
    "hw_status": ("hw.status", "1", UP_DOWN_COUNTER),
    "hw_temperature_celsius": ("hw.temperature", "Cel", GAUGE),
}
"""Name, unit and instrument of the metric behind each field of the page."""

ATTRIBUTES = {
    label: label.replace("_", ".")
    for label in ("hw_id", "hw_name", "hw_parent", "hw_state", "hw_type", "hw_vendor", "hw_model", "error_type")
} | {
    "hw_gpu_task": "hw.gpu.task",
    "hw_sensor_location": "hw.sensor_location",
    "network_io_direction": "network.io.direction",
}
"""The attribute behind each label of the page."""


@dataclass(frozen=True)
class Point:
    """One data point.

    Attributes:
        name: Name of the metric.
        unit: Its unit, in the code of UCUM.
        instrument: What made it.
        attributes: Attributes of the point.
        value: What was read.
        nanoseconds: When, in milliseconds since 1970.
        temporality: Of a sum.
        flags: Of the point.
    """

    name: str
    unit: str
    instrument: str
    attributes: Mapping[str, str]
    value: float
    nanoseconds: int
    temporality: int = CUMULATIVE
    flags: int = 0


Resource = tuple[Mapping[str, str], Sequence[Point]]
"""Attributes of a resource, and the points of its metrics."""


def points_of(page: str) -> list[Point]:
    """Points behind the lines of a page, each of which has its time."""
    points: list[Point] = []
    for text in page.splitlines():
        line = LINE.match(text)
        if line is None or line["field"] not in METRICS:
            continue
        labels = dict(LABEL.findall(line["labels"] or ""))
        attributes = {ATTRIBUTES[label]: value for label, value in labels.items() if label in ATTRIBUTES}
        points.append(Point(*METRICS[line["field"]], attributes, float(line["value"]), int(line["time"])))
    return points


def request(form: str, *resources: Resource) -> bytes:
    """An ExportMetricsServiceRequest in the form of a media type."""
    message = {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes(attributes)},
                "scopeMetrics": [{"scope": {"name": "hw"}, "metrics": list(_metrics(points))}],
            }
            for attributes, points in resources
        ]
    }
    return json.dumps(message).encode() if form == JSON else encoded("Request", message)


def _metrics(points: Sequence[Point]) -> Iterator[dict[str, Any]]:
    """Points that belong to one metric stand together."""
    metrics: dict[tuple[str, str, str, int], list[Point]] = {}
    for point in points:
        metrics.setdefault((point.name, point.unit, point.instrument, point.temporality), []).append(point)
    for (name, unit, instrument, temporality), metric_points in metrics.items():
        data: dict[str, Any] = {"dataPoints": [_point(point) for point in metric_points]}
        if instrument != GAUGE:
            data |= {"aggregationTemporality": temporality, "isMonotonic": instrument == COUNTER}
        yield {"name": name, "unit": unit, "gauge" if instrument == GAUGE else "sum": data}


def _point(point: Point) -> dict[str, Any]:
    """Whole numbers are written as such; like all of 64 bits they are text in JSON."""
    whole = float(point.value).is_integer() and abs(point.value) < 1 << 53
    value = {"asInt": str(round(point.value))} if whole else {"asDouble": point.value}
    flags = {"flags": point.flags} if point.flags else {}
    position = str(point.nanoseconds * 1_000_000)
    return {"attributes": _attributes(point.attributes), "timeUnixNano": position, **value, **flags}


def _attributes(attributes: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]


FIELDS: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Request": {"resourceMetrics": (1, "ResourceMetrics")},
    "ResourceMetrics": {"resource": (1, "Resource"), "scopeMetrics": (2, "ScopeMetrics")},
    "Resource": {"attributes": (1, "KeyValue")},
    "ScopeMetrics": {"scope": (1, "Scope"), "metrics": (2, "Metric")},
    "Scope": {"name": (1, "string")},
    "Metric": {"name": (1, "string"), "unit": (3, "string"), "gauge": (5, "Data"), "sum": (7, "Data")},
    "Data": {"dataPoints": (1, "Point"), "aggregationTemporality": (2, "varint"), "isMonotonic": (3, "varint")},
    "Point": {
        "timeUnixNano": (3, "fixed"),
        "asDouble": (4, "double"),
        "asInt": (6, "fixed"),
        "attributes": (7, "KeyValue"),
        "flags": (8, "varint"),
    },
    "KeyValue": {"key": (1, "string"), "value": (2, "Value")},
    "Value": {"stringValue": (1, "string")},
}
"""Members of the messages in their JSON form: number of the field, and its kind or message."""


def encoded(name: str, message: Mapping[str, Any]) -> bytes:
    """A message in the binary form, from its JSON form."""
    fields = FIELDS[name]
    return b"".join(
        _field(*fields[member], item)
        for member, value in message.items()
        for item in (value if isinstance(value, list) else [value])
    )


def _field(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "varint":
            return _varint(number << 3) + _varint(int(value))
        case "fixed":
            return _varint(number << 3 | 1) + struct.pack("<q", int(value))
        case "double":
            return _varint(number << 3 | 1) + struct.pack("<d", value)
        case "string":
            content: bytes = value.encode()
        case _:
            content = encoded(kind, value)
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


@dataclass(frozen=True)
class Response:
    """What an ExportMetricsServiceResponse says: how many points were refused, and why."""

    refused: int
    why: str


def response(form: str, body: bytes) -> Response | None:
    """Read an ExportMetricsServiceResponse; None where the body is none in that form."""
    try:
        return _from_json(json.loads(body)) if form == JSON else _from_protobuf(body)
    except (ValueError, IndexError, AttributeError, TypeError, RecursionError):
        return None


def _from_json(message: Any) -> Response:
    partial = message.get("partialSuccess") or {}
    return Response(int(partial.get("rejectedDataPoints", 0)), str(partial.get("errorMessage", "")))


def _from_protobuf(body: bytes) -> Response:
    partial = b"".join(value for number, value in _fields(body) if number == 1 and isinstance(value, bytes))
    fields = dict(_fields(partial))
    refused, why = fields.get(1, 0), fields.get(2, b"")
    if not isinstance(refused, int) or not isinstance(why, bytes):
        raise TypeError("fields of other types")
    return Response(refused, why.decode())


def _fields(body: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a message with their numbers; only what an answer may hold is understood."""
    position = 0
    while position < len(body):
        key, position = _read_varint(body, position)
        value, position = _read_varint(body, position)
        if key & 7 == 2:  # noqa: PLR2004 - what is preceded by its length
            if position + value > len(body):
                raise ValueError("a field goes on beyond its message")
            yield key >> 3, body[position : position + value]
            position += value
        elif key & 7 == 0:
            yield key >> 3, value
        else:
            raise ValueError("a field of an unknown kind")


def _read_varint(body: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (body[offset] & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if body[offset - 1] <= 0x7F:  # noqa: PLR2004 - seven bits
            return value, offset
