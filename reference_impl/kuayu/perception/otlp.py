"""OTLP metrics → the series that an exporter's page with the same readings has, node by node.

Of gauges and of cumulative sums each data point is a series with its instant; what the collection map does not take is
left out here already, so that only points that could lead to a sample are ever counted. Delta sums, and points for
which no value was recorded, are left out.

Source: OpenTelemetry protocol (opentelemetry-proto 1.9), metrics.proto and metrics_service.proto; "OTLP/HTTP", binary
and JSON encoding; the standard's clause on OpenTelemetry.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
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
from kuayu.perception.otel_names import labels, metric_name, texts
from kuayu.perception.plausibility import DeviceLimits
from kuayu_schemas.models import IndicatorRegister, SubjectKind

EXPORTER = "otel-hw"
"""Exporter of the collection map whose names the metrics get."""

PROTOBUF, JSON = "application/x-protobuf", "application/json"
"""Media types of the two forms."""

NODE_ATTRIBUTES = ("kuayu.node", "host.name")
"""Resource attributes that name the node; the first that is there counts."""

MOST_UNUSED = 100
"""Points that are kept to tell why none is used."""

_NANOSECONDS = 1_000_000
"""In a millisecond."""


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
                        if len(unused) < MOST_UNUSED and any(True for _ in points):
                            unused.append(Series(name, {}, 0.0, None))
                        continue
                    cumulative = metric.WhichOneof("data") == "sum"
                    read = _series(name, points, own, cumulative=cumulative)
                    matched = []
                    for series in read:
                        if self.subjects(series):
                            matched.append(series)
                        elif len(unused) < MOST_UNUSED:
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
