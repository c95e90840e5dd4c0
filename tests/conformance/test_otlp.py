"""Metrics as the suite writes them: what an OpenTelemetry library reads of them, and the packing of bodies."""

import gzip
import random
from dataclasses import replace

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from kuayu.perception.exposition import Series, parse
from kuayu.perception.otlp import MetricsMap
from kuayu_conformance.exporters.gzip_codec import packed
from kuayu_conformance.exporters.otlp import (
    COUNTER,
    DELTA,
    GAUGE,
    JSON,
    PROTOBUF,
    UP_DOWN_COUNTER,
    Point,
    Response,
    points_of,
    request,
    response,
)
from kuayu_conformance.exporters.player import PlayedExporter
from kuayu_schemas import registers

WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
POINTS = st.builds(
    Point,
    WORDS,
    WORDS,
    st.sampled_from([GAUGE, COUNTER, UP_DOWN_COUNTER]),
    st.dictionaries(WORDS, WORDS, max_size=3),
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**15), 10**15).map(float),
    st.integers(0, 9 * 10**12),
    st.sampled_from([DELTA, 2]),
    st.integers(0, 1),
)


@given(st.lists(st.tuples(st.dictionaries(WORDS, WORDS, max_size=3), st.lists(POINTS, max_size=5)), max_size=3))
def test_both_forms_are_the_same_request_to_a_library(resources: list[tuple[dict[str, str], list[Point]]]) -> None:
    binary = ExportMetricsServiceRequest.FromString(request(PROTOBUF, *resources))
    text = json_format.Parse(request(JSON, *resources), ExportMetricsServiceRequest())
    assert binary == text
    written = sum(len(points) for _, points in resources)
    metrics = [m for r in text.resource_metrics for s in r.scope_metrics for m in s.metrics]
    assert sum(len(m.sum.data_points) + len(m.gauge.data_points) for m in metrics) == written


def test_the_metrics_of_a_page_lead_back_to_the_lines_of_the_page() -> None:
    """As far as the collection map takes them."""
    page = PlayedExporter("otel-hw", random.Random(1)).advance(1_700_000_000.0).text
    chart = MetricsMap.of_register(registers.indicators())
    message = ExportMetricsServiceRequest.FromString(request(PROTOBUF, ({"host.name": "n"}, points_of(page))))

    def told(found: list[Series]) -> set[tuple[str, frozenset[tuple[str, str]], float, int | None]]:
        return {(s.name, frozenset(s.labels.items()), s.value, s.instant) for s in found if chart.subjects(s)}

    assert told(chart.read(message).nodes["n"]) == told(parse(page)) != set()


@given(st.integers(0, 2**40), WORDS)
def test_answers_are_read_in_both_forms(count: int, why: str) -> None:
    partial = ExportMetricsPartialSuccess(rejected_data_points=count, error_message=why)
    message = ExportMetricsServiceResponse(partial_success=partial)
    assert response(PROTOBUF, message.SerializeToString()) == Response(count, why)
    assert response(JSON, json_format.MessageToJson(message).encode()) == Response(count, why)


@pytest.mark.parametrize(
    "body", [b"{}", b"\x0a\x05ab", b"\x0a", b"\xff\xff", b"\x0d\x00\x00\x00\x00", b"\x0a\x02\x12\x09"]
)
def test_what_is_no_answer_is_not_taken_for_one(body: bytes) -> None:
    assert response(PROTOBUF, body) is None
    assert response(JSON, body[1:] + b"[") is None


def test_no_answer_is_one_without_refusals() -> None:
    assert response(PROTOBUF, b"") == response(JSON, b"{}") == Response(0, "")


@given(st.binary() | st.tuples(st.binary(max_size=3), st.integers(0, 2000)).map(lambda found: found[0] * found[1]))
def test_what_is_packed_is_unpacked_to_the_same(body: bytes) -> None:
    assert gzip.decompress(packed(body)) == body


def test_what_repeats_becomes_small() -> None:
    assert len(packed(b" " * 1_000_000)) < 10_000


def test_a_whole_number_is_written_as_one() -> None:
    point = Point("a", "", GAUGE, {}, 5.0, 0)
    assert b'"asInt": "5"' in request(JSON, ({}, [point]))
    assert b'"asDouble": 5.5' in request(JSON, ({}, [replace(point, value=5.5)]))
