"""How many parts a request of OTLP has, before anything is made of them.

A part takes two bytes on the wire, fifty times as much once it is parsed and a thousand times as much work, so that
the size of a body bounds nothing.

Source: Protocol Buffers, "Encoding": a field is a tag, number and wire type in one varint, and a value.
"""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


def exceeds(request: ExportMetricsServiceRequest, most: int) -> bool:
    """Whether a request has more resources, scopes, metrics, points and attributes than ``most`` in all."""
    return any(total > most for total in accumulate(_sizes(request)))


def wire_exceeds(body: bytes, most: int) -> bool:  # noqa: C901 - one case for each wire type
    """Whether a request on the wire has more fields, in itself and in the messages in it, than ``most``.

    No more than that are looked at, nothing is copied, and what is no message of the protocol is left to the parser.
    """
    if len(body) < 2 * most:
        return False
    inside: list[tuple[int, int, Descriptor]] = [(0, len(body), ExportMetricsServiceRequest.DESCRIPTOR)]
    total = 0
    try:
        while inside:
            position, end, kind = inside.pop()
            fields = kind.fields_by_number
            while position < end:
                total += 1
                if total > most:
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


def json_exceeds(value: Any, most: int) -> bool:
    """Whether a value of JSON has more members of objects and items of lists than ``most`` in all."""
    inside = [value]
    total = 0
    while inside and total <= most:
        item = inside.pop()
        if isinstance(item, dict | list):
            total += len(item)
            if total <= most:
                inside += item.values() if isinstance(item, dict) else item
    return total > most


def _sizes(request: ExportMetricsServiceRequest) -> Iterator[int]:
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
