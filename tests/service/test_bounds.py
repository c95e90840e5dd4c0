"""Bodies and pages that are small on the wire and large in memory or work: bounded before anything is made of them."""

import gzip

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from kuayu.perception import exposition, otlp
from kuayu.service import requests
from kuayu.service.fault_store import BEATS
from kuayu.service.ingest import SAMPLES
from kuayu.service.problems import ProblemException
from kuayu.service.requests import EXPLAINED

MIB = 1 << 20


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"{}," * 5_000_000 + b"{}]",
        b"[" + b"0," * 7_000_000 + b"0]",
        b"[" * 15_000_000,
        b'{"a":"\\"' + b"," * 10 + b'","b":[' + b"[]," * 4_000_000 + b"[]]}",
    ],
)
def test_values_are_counted_before_they_are_made(body: bytes) -> None:
    with pytest.raises(requests.TooManyValuesError):
        requests.load_strictly(body)


def test_what_stands_in_strings_is_no_value() -> None:
    text = '\\",[{' * 2_000_000
    assert requests.load_strictly(b'["' + text.encode() + b'"]') == ['",[{' * 2_000_000]
    numbers = b"[" + b"12345678," * 1_000_000 + b"1]"
    assert len(requests.load_strictly(numbers)) == 1_000_001


@pytest.mark.parametrize(("form", "most"), [(SAMPLES, 10_000), (BEATS, 10_000)])
def test_a_batch_is_as_long_as_was_declared_before_its_items_are_looked_at(form: object, most: int) -> None:
    assert isinstance(form, type(SAMPLES))
    with pytest.raises(ProblemException, match="invalid-body: 10001 items"):
        form.judge({form.member: [{}] * (most + 1)}, most)


def test_every_bad_item_is_named_and_the_first_are_explained() -> None:
    broken = SAMPLES.judge({"mode": "per_item", "samples": [dict(SAMPLES.example), *[{}] * 9_999]}, 10_000)
    assert sorted(broken) == list(range(1, 10_000))
    assert {problem.name for problem in broken.values()} == {"invalid-body"}
    assert len(broken[EXPLAINED].places) > 1
    assert "the first 100" in broken[EXPLAINED + 1].detail


def test_gzip_is_undone_as_far_as_agreed() -> None:
    assert requests.unpack(gzip.compress(b"page") * 3, 12) == b"page" * 3
    with pytest.raises(requests.TooLargeError):
        requests.unpack(gzip.compress(b"\0" * 100 * MIB), MIB)
    with pytest.raises(requests.UnpackingError, match="members"):
        requests.unpack(gzip.compress(b"") * 1_000, MIB)
    with pytest.raises(requests.UnpackingError, match="end is missing"):
        requests.unpack(gzip.compress(b"page")[:-1], MIB)
    for encoding in ("gzip, gzip", "deflate", "br", "gzip,identity"):
        with pytest.raises(requests.UnpackingError, match="content encoding"):
            requests.Page(encoding, MIB)


def test_a_page_that_is_packed_comes_in_pieces() -> None:
    packed = gzip.compress(b"power 1\n" * 100) + gzip.compress(b"power 2\n")
    page = requests.Page("GZIP", MIB)
    for at in range(0, len(packed), 7):
        page.add(packed[at : at + 7])
    assert page.whole() == b"power 1\n" * 100 + b"power 2\n"
    plain = requests.Page("", 4)
    plain.add(b"1234")
    with pytest.raises(requests.TooLargeError):
        plain.add(b"5")


def test_parts_of_otlp_are_counted_on_the_wire() -> None:
    message = ExportMetricsServiceRequest()
    for _ in range(100):
        point = message.resource_metrics.add().scope_metrics.add().metrics.add().gauge.data_points.add()
        point.as_double = 1.0
        point.attributes.add().key = "k"
    body = message.SerializeToString()
    # Each resource holds a scope, that a metric, that a gauge, that a point with a number and an attribute with a key.
    assert not otlp.wire_exceeds(body, 800)
    assert otlp.wire_exceeds(body, 799)
    assert otlp.wire_exceeds(b"\x0a\x00" * 1_000_000, 10_000)
    assert not otlp.wire_exceeds(b"\xff" * 100_000, 10_000)  # no protobuf, which the parser says


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("x{" + ",".join(f'l{number}="v"' for number in range(200)) + "} 1\n", "line 1: more than 128 labels"),
        ('x{a="' + "v" * 20_000 + '"} 1\n', "line 1: longer than 16384 characters"),
        ('x{a="' + '\\"' * 10_000 + '"} 1\n', "line 1: longer than 16384 characters"),
        ("x 1\n" * 200_001, "line 200001: more than 200000 series"),
    ],
)
def test_lines_of_a_page_are_bounded(page: str, why: str) -> None:
    with pytest.raises(exposition.MalformedExpositionError, match=why):
        exposition.parse(page)


def test_lines_as_long_as_any_exporter_writes_them_are_read() -> None:
    labels = {f"label_{number}": "v" * 100 for number in range(100)}
    line = "x{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "} 1"
    [series] = exposition.parse(line)
    assert series.labels == labels
