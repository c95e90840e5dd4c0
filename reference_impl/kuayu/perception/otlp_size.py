"""How many parts a request of OTLP has, before anything is made of them.

A part takes two bytes on the wire and a thousand times as much work, so that the size of a body bounds nothing.
"""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


def exceeds(request: ExportMetricsServiceRequest, most: int) -> bool:
    """Whether a request has more resources, scopes, metrics, points and attributes than ``most`` in all."""
    return any(total > most for total in accumulate(_sizes(request)))


def json_exceeds(value: Any, most: int) -> bool:
    """Whether a value of JSON has more members of objects and items of lists than ``most`` in all."""
    inside = [value]
    total = 0
    while inside and total <= most:
        found = inside.pop()
        if isinstance(found, dict | list):
            total += len(found)
            if total <= most:
                inside += found.values() if isinstance(found, dict) else found
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
