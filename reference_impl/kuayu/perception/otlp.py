"""OTLP metrics → the series that an exporter's page with the same values has, node by node.

1. Of gauges and of cumulative sums each data point is a series with its instant; what the collection map does not take
   is left out here already, so that only points that could lead to a sample are ever counted. Delta sums, and points
   for which no value was recorded, are left out.
2. Names, units and attributes become names and labels of the Prometheus text format. That a gauge of unit 1 ends in
   ``_ratio`` is what prometheus/otlptranslator 1.0 does and what the collection map goes by.
3. How many parts a request has is counted before anything is made of them. A part takes two bytes as it is sent, fifty
   times as much once it is parsed and a thousand times as much work, so that the size of a body bounds nothing.

Sources: OpenTelemetry protocol (opentelemetry-proto 1.9), metrics.proto and metrics_service.proto; "OTLP/HTTP", binary
and JSON encoding; OpenTelemetry specification 1.60, "Prometheus and OpenMetrics Compatibility", sections *Metric
Metadata*, *Instrumentation Scope* and *Metric Attributes*, and "Common specification concepts", *AnyValue
representation for non-OTLP protocols*; Protocol Buffers, "Encoding" (a field is a tag, number and wire type in one
varint, and a value); the standard's clause on OpenTelemetry.
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    DataPointFlags,
    Metric,
    NumberDataPoint,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from typing_extensions import override

from kuayu.perception.collection import CollectionMap, Conversion
from kuayu.perception.counters import Counters
from kuayu.perception.exposition import Series
from kuayu.perception.plausibility import DeviceLimits
from kuayu_schemas.models import IndicatorRegister, SubjectKind

_UNIT_WORDS = {
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "By": "bytes",
    "KiBy": "kibibytes",
    "MiBy": "mebibytes",
    "GiBy": "gibibytes",
    "TiBy": "tebibytes",
    "kBy": "kilobytes",
    "MBy": "megabytes",
    "GBy": "gigabytes",
    "TBy": "terabytes",
    "m": "meters",
    "V": "volts",
    "A": "amperes",
    "J": "joules",
    "W": "watts",
    "g": "grams",
    "Cel": "celsius",
    "Hz": "hertz",
    "%": "percent",
}
"""Units that have a word of their own, in the code of UCUM."""

_WORDS_AFTER_PER = {"s": "second", "min": "minute", "h": "hour", "d": "day"}
"""Words after *per*."""

_IN_BRACES = re.compile(r"\{[^}]*\}")
_OTHER = re.compile(r"[^a-zA-Z0-9:]+")
_OTHER_IN_LABEL = re.compile(r"[^a-zA-Z0-9]+")

EXPORTER = "otel-hw"
"""Exporter of the collection map whose names the metrics get."""

PROTOBUF, JSON = "application/x-protobuf", "application/json"
"""Media types of the two forms."""

NODE_ATTRIBUTES = ("kuayu.node", "host.name")
"""Resource attributes that name the node; the first that is there counts."""

MAX_UNUSED_POINTS = 100
"""Points that are kept to tell why none is used."""

_NANOSECONDS = 1_000_000
"""In a millisecond."""


def exceeds(request: ExportMetricsServiceRequest, limit: int) -> bool:
    """Whether a request has more resources, scopes, metrics, points and attributes than ``limit`` in all."""
    return any(total > limit for total in accumulate(_part_counts(request)))


def wire_exceeds(body: bytes, limit: int) -> bool:  # noqa: C901 - one case for each wire type
    """Whether a request on the wire has more fields, in itself and in the messages in it, than ``limit``.

    No more than that are looked at, nothing is copied, and what is no message of the protocol is left to the parser.
    """
    if len(body) < 2 * limit:
        return False
    inside: list[tuple[int, int, Descriptor]] = [(0, len(body), ExportMetricsServiceRequest.DESCRIPTOR)]
    total = 0
    try:
        while inside:
            position, end, kind = inside.pop()
            fields = kind.fields_by_number
            while position < end:
                total += 1
                if total > limit:
                    return True
                tag, position = _varint(body, position)
                match tag & 7:
                    case 0:
                        _, position = _varint(body, position)
                    case 1:
                        position += 8
                    case 2:
                        length, position = _varint(body, position)
                        field = fields.get(tag >> 3)
                        if field is not None and field.message_type is not None:
                            inside.append((position, min(position + length, end), field.message_type))
                        position += length
                    case 5:
                        position += 4
                    case _:
                        return False
    except IndexError:
        return False
    return False


def _varint(body: bytes, position: int) -> tuple[int, int]:
    """A number of 64 bits at most, and where it ends."""
    value = shift = 0
    while True:
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 or shift > 63:  # noqa: PLR2004 - the bit that says that more follows; the widest number
            return value, position
        shift += 7


def json_exceeds(value: Any, limit: int) -> bool:
    """Whether a value of JSON has more members of objects and items of lists than ``limit`` in all."""
    inside = [value]
    total = 0
    while inside and total <= limit:
        item = inside.pop()
        if isinstance(item, dict | list):
            total += len(item)
            if total <= limit:
                inside += item.values() if isinstance(item, dict) else item
    return total > limit


def _part_counts(request: ExportMetricsServiceRequest) -> Iterator[int]:
    yield len(request.resource_metrics)
    for resource in request.resource_metrics:
        yield len(resource.resource.attributes) + len(resource.scope_metrics)
        for scope in resource.scope_metrics:
            yield len(scope.scope.attributes) + len(scope.metrics)
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                points = () if kind is None else getattr(metric, kind).data_points
                yield len(points)
                yield from (len(point.attributes) for point in points)


def metric_name(name: str, unit: str, *, monotonic: bool = False, gauge: bool = False) -> str:
    """Name of a metric as it stands on a page.

    Args:
        name: Name of the metric.
        unit: Its unit, in the code of UCUM.
        monotonic: Whether it is a monotonic sum.
        gauge: Whether it is a gauge.
    """
    whole = _OTHER.sub("_", name).strip("_")
    if monotonic:
        whole = whole.removesuffix("_total")
    word = "ratio" if gauge and unit == "1" else unit_word(unit)
    if word and whole != word and not whole.endswith(f"_{word}"):
        whole = f"{whole}_{word}"
    if monotonic:
        whole = f"{whole}_total"
    return f"_{whole}" if whole[:1].isdigit() else whole


def unit_word(unit: str) -> str:
    """What a unit adds to a name: ``By`` bytes, ``By/s`` bytes_per_second, ``1`` and ``{packet}`` nothing."""
    above, slash, below = _IN_BRACES.sub("", unit).partition("/")
    above, below = above.strip(), below.strip()
    words = "" if above == "1" else _UNIT_WORDS.get(above, above)
    if slash and below:
        words = f"{words}_per_{_WORDS_AFTER_PER.get(below, below)}"
    return _OTHER.sub("_", words).strip("_")


def label_name(key: str) -> str:
    """Name of an attribute as a label."""
    name = _OTHER_IN_LABEL.sub("_", key)
    return f"_{name}" if name[:1].isdigit() else name


def labels(attributes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Attributes as labels; values of attributes that get one name stand together, in order of their keys."""
    values_of: dict[str, list[str]] = {}
    for key, value in sorted(attributes):
        values_of.setdefault(label_name(key), []).append(value)
    return {name: ";".join(values) for name, values in values_of.items()}


def texts(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """Attributes by key, their values as text."""
    return {attribute.key: text_of(attribute.value) for attribute in attributes}


def text_of(value: AnyValue) -> str:
    """Value of an attribute as text: a string as it is, nothing as the empty string, all else as JSON."""
    plain = _plain_value(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _plain_value(value: AnyValue) -> Any:
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode("ascii")
        case "array_value":
            return [_plain_value(item) for item in value.array_value.values]
        case "kvlist_value":
            return {item.key: _plain_value(item.value) for item in value.kvlist_value.values}
    return None


class MalformedMetricsError(ValueError):
    """The body is no ExportMetricsServiceRequest; the message says why.

    Attributes:
        pointer: JSON Pointer to the place, where one is known.
    """

    def __init__(self, detail: str, pointer: str = "") -> None:
        super().__init__(detail)
        self.pointer = pointer


def from_protobuf(body: bytes) -> ExportMetricsServiceRequest:
    """Read the binary form.

    Raises:
        MalformedMetricsError: It is not the protocol's.
    """
    try:
        return ExportMetricsServiceRequest.FromString(body)
    except DecodeError as error:
        raise MalformedMetricsError(str(error)) from error


def from_json(value: Any) -> ExportMetricsServiceRequest:
    """Read the JSON form; members that the protocol does not know are ignored, as it asks for.

    Raises:
        MalformedMetricsError: It is not the protocol's.
    """
    request = ExportMetricsServiceRequest()
    # The library takes a text or a list for a message without members.
    for pointer in _no_messages(value, request.DESCRIPTOR):
        raise MalformedMetricsError("an object is expected here", pointer)
    try:
        return json_format.ParseDict(value, request, ignore_unknown_fields=True)
    except (json_format.ParseError, ArithmeticError, TypeError, ValueError) as error:
        raise MalformedMetricsError(str(error)) from error


def _no_messages(value: Any, expected: Descriptor, pointer: str = "") -> Iterator[str]:
    """Places where a message of the protocol should stand and something else does."""
    if not isinstance(value, dict):
        yield pointer
        return
    for field in expected.fields:
        if field.message_type is None:
            continue
        # The library takes either name of a field.
        for name in {field.json_name, field.name} & value.keys():
            member, place = value[name], f"{pointer}/{name}"
            if member is None:
                continue
            if not field.is_repeated:
                yield from _no_messages(member, field.message_type, place)
            elif isinstance(member, list):
                for index, item in enumerate(member):
                    yield from _no_messages(item, field.message_type, f"{place}/{index}")


def answer(media_type: str, refused: Mapping[str, int], left_out: int, warnings: Iterable[str] = ()) -> bytes:
    """The answer to a request that was understood, in the form of the request.

    Args:
        media_type: Which form.
        refused: Data points that could not be taken, by reason.
        left_out: Data points of delta sums, which only earn a word.
        warnings: What else is to be known; the protocol has a message without refused points for that.
    """
    response = ExportMetricsServiceResponse()
    words = [f"{count} × {reason}" for reason, count in Counter(refused).most_common(10)]
    words += warnings
    if left_out:
        words.append(f"{left_out} data points of sums that are not cumulative were left out")
    if words:
        response.partial_success.rejected_data_points = sum(refused.values())
        response.partial_success.error_message = "; ".join(words)
    if media_type == PROTOBUF:
        return response.SerializeToString()
    return json_format.MessageToJson(response, indent=None, ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a request says.

    Attributes:
        nodes: Series by node, in the order in which they stood; under "" those of resources that name no node.
        left_out: How many points of delta sums there were that the map names otherwise.
        unused: The first points that the map does not take.
    """

    nodes: Mapping[str, list[Series]]
    left_out: int
    unused: Sequence[Series]


class MetricsMap(CollectionMap):
    """The collection map as OTLP needs it: a request may hold several points of one series."""

    @classmethod
    def of_register(cls, register: IndicatorRegister) -> "MetricsMap":
        """Take the map of the OpenTelemetry conventions out of the register."""
        metrics_map = cls.of(register, EXPORTER)
        assert isinstance(metrics_map, cls)
        return metrics_map

    def subjects(self, series: Series) -> list[str | None]:
        """Whom a series says something of: devices by name, None for the node itself; nobody where it is not mapped."""
        device = series.labels.get(self.exporter.device_label or "")
        rows = (row for row in self._rows.get(series.name, ()) if row.applies(series))
        whom = [None if row.entry.subject is SubjectKind.node else device or "" for row in rows]
        return [name for name in whom if name != ""]

    def read(self, request: ExportMetricsServiceRequest) -> Metrics:
        """Sort the points of a request by node."""
        nodes: dict[str, list[Series]] = {}
        unused: list[Series] = []
        left_out = 0
        for resource in request.resource_metrics:
            mine = nodes.setdefault(_node(resource.resource), [])
            for scope in resource.scope_metrics:
                own = _scope_labels(scope.scope, scope.schema_url)
                for metric in scope.metrics:
                    name, points = _points(metric)
                    if name not in self._rows:
                        if len(unused) < MAX_UNUSED_POINTS and any(True for _ in points):
                            unused.append(Series(name, {}, 0.0, None))
                        continue
                    cumulative = metric.WhichOneof("data") == "sum"
                    read = _series(name, points, own, cumulative=cumulative)
                    matched = []
                    for series in read:
                        if self.subjects(series):
                            matched.append(series)
                        elif len(unused) < MAX_UNUSED_POINTS:
                            unused.append(series)
                    if _is_left_out(metric):
                        left_out += len(matched)
                    else:
                        mine += matched
        return Metrics({node: series for node, series in nodes.items() if series}, left_out, unused)

    @override
    def convert(
        self,
        page: Sequence[Series],
        instant_of: Callable[[Series], int],
        previous: Counters,
        limits: DeviceLimits | None = None,
    ) -> Conversion:
        """Convert as many pages one after the other as the points would have stood on."""
        whole = Conversion([], previous)
        for part in pages(page, instant_of):
            conversion = super().convert(part, instant_of, whole.counters, limits)
            whole = Conversion(
                whole.readings + conversion.readings,
                conversion.counters,
                whole.used + conversion.used,
                tuple(sorted({*whole.returned, *conversion.returned})),
                tuple(sorted({*whole.alternating, *conversion.alternating})),
                max(filter(None, (whole.conflicted, conversion.conflicted)), default=None),
            )
        return whole


def pages(points: Iterable[Series], instant_of: Callable[[Series], int]) -> Iterator[list[Series]]:
    """Lay points out on pages, in order of time, so that no series stands twice on one and no instant on two.

    Of points of one series and instant the first counts.
    """
    moments: dict[int, dict[object, Series]] = {}
    for series in points:
        moments.setdefault(instant_of(series), {}).setdefault((series.name, *sorted(series.labels.items())), series)
    page: dict[object, Series] = {}
    for _, points_then in sorted(moments.items()):
        if not page.keys().isdisjoint(points_then):
            yield list(page.values())
            page = {}
        page |= points_then
    if page:
        yield list(page.values())


def _node(resource: Resource) -> str:
    known = texts(resource.attributes)
    return next((known[name] for name in NODE_ATTRIBUTES if known.get(name)), "")


def _scope_labels(scope: InstrumentationScope, schema_url: str) -> dict[str, str]:
    """What tells two libraries apart that publish the same metric."""
    own = {"otel_scope_name": scope.name, "otel_scope_version": scope.version, "otel_scope_schema_url": schema_url}
    added = labels((f"otel_scope_{key}", value) for key, value in texts(scope.attributes).items())
    return added | {name: value for name, value in own.items() if value}


def _is_left_out(metric: Metric) -> bool:
    cumulative = AGGREGATION_TEMPORALITY_CUMULATIVE
    return metric.WhichOneof("data") == "sum" and metric.sum.aggregation_temporality != cumulative


def _points(metric: Metric) -> tuple[str, Iterable[NumberDataPoint]]:
    """Name on the page and points of a gauge or a sum; of other kinds there are none."""
    match metric.WhichOneof("data"):
        case "gauge":
            return metric_name(metric.name, metric.unit, gauge=True), metric.gauge.data_points
        case "sum":
            name = metric_name(metric.name, metric.unit, monotonic=metric.sum.is_monotonic)
            return name, metric.sum.data_points
    return "", ()


def _series(
    name: str, points: Iterable[NumberDataPoint], scope: dict[str, str], *, cumulative: bool
) -> Iterator[Series]:
    """Points for which a value was recorded; those of cumulative sums say since when they count."""
    for point in points:
        value = _value(point)
        if value is not None:
            instant = point.time_unix_nano // _NANOSECONDS if point.time_unix_nano else None
            began = point.start_time_unix_nano // _NANOSECONDS if cumulative and point.start_time_unix_nano else None
            yield Series(name, labels(texts(point.attributes).items()) | scope, value, instant, began)


def _value(point: NumberDataPoint) -> float | None:
    if point.flags & DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK:
        return None
    match point.WhichOneof("value"):
        case "as_int":
            return float(point.as_int)
        case "as_double":
            return point.as_double
    return None
