"""OpenTelemetry metrics as series: names, labels, forms, and the pages that points are laid out on."""

import math
import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint

from kuayu.perception import otlp
from kuayu.perception.collection import Conversion
from kuayu.perception.exposition import Series
from kuayu.perception.otlp import MetricsMap, label_name, labels, metric_name, texts, unit_word
from kuayu_schemas import registers

MAP = MetricsMap.of_register(registers.indicators())


@pytest.mark.parametrize(
    ("name", "unit", "kind", "expected"),
    [
        ("hw.network.io", "By", "sum", "hw_network_io_bytes_total"),
        ("hw.errors", "{error}", "sum", "hw_errors_total"),
        ("hw.gpu.utilization", "1", "gauge", "hw_gpu_utilization_ratio"),
        ("hw.status", "1", "", "hw_status"),
        ("hw.temperature", "Cel", "gauge", "hw_temperature_celsius"),
        ("hw.energy", "J", "sum", "hw_energy_joules_total"),
        ("a.bytes", "By", "gauge", "a_bytes"),
        ("a.total", "By", "sum", "a_bytes_total"),
        ("a.megabytes", "By", "gauge", "a_megabytes_bytes"),
        ("seconds", "s", "gauge", "seconds"),
        ("a--b..c_", "", "gauge", "a_b_c"),
        ("2nd", "", "gauge", "_2nd"),
        ("rate", "By/s", "gauge", "rate_bytes_per_second"),
        ("frames", "{frame}/s", "gauge", "frames_per_second"),
        ("odd", "furlong", "gauge", "odd_furlong"),
    ],
)
def test_names_are_those_of_the_compatibility_specification(name: str, unit: str, kind: str, expected: str) -> None:
    assert metric_name(name, unit, monotonic=kind == "sum", gauge=kind == "gauge") == expected


def test_attributes_become_labels_whatever_their_type() -> None:
    point = NumberDataPoint()
    for key, value in {"a.b": "x", "a-b": "y", "1st": "z"}.items():
        point.attributes.add(key=key).value.string_value = value
    point.attributes.add(key="whole").value.int_value = -5
    point.attributes.add(key="yes").value.bool_value = True
    point.attributes.add(key="half").value.double_value = 0.5
    point.attributes.add(key="bytes").value.bytes_value = b"\x01"
    point.attributes.add(key="none")
    point.attributes.add(key="list").value.array_value.values.add().string_value = "é"
    point.attributes.add(key="map").value.kvlist_value.values.add(key="k").value.int_value = 1
    assert labels(texts(point.attributes).items()) == {
        "a_b": "y;x",
        "_1st": "z",
        "whole": "-5",
        "yes": "true",
        "half": "0.5",
        "bytes": "AQ==",
        "none": "",
        "list": '["é"]',
        "map": '{"k":1}',
    }


@given(st.text(), st.text())
def test_any_name_becomes_one_that_the_text_format_can_have(name: str, unit: str) -> None:
    made = metric_name(name, unit, gauge=True)
    assert not made or (made[0].isascii() and not made[0].isdigit() and made.replace(":", "_").isascii())
    assert all(letter.isascii() and (letter.isalnum() or letter in ":_") for letter in made + unit_word(unit))
    assert all(letter.isascii() and (letter.isalnum() or letter == "_") for letter in label_name(name))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["resourceMetrics", "resource", "attributes", "scopeMetrics", "metrics", "gauge", "sum", "key"]
            )
            | st.sampled_from(
                ["dataPoints", "value", "asInt", "asDouble", "timeUnixNano", "name", "unit", "stringValue"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)


@given(VALUES)
def test_json_is_the_protocols_or_it_is_malformed_and_nothing_else(value: Any) -> None:
    try:
        message = otlp.from_json(value)
    except otlp.MalformedMetricsError:
        return
    MAP.read(message)


@given(st.binary(max_size=200))
def test_bytes_are_the_protocols_or_they_are_malformed_and_nothing_else(body: bytes) -> None:
    try:
        message = otlp.from_protobuf(body)
    except otlp.MalformedMetricsError:
        return
    MAP.read(message)


SERIES = st.builds(
    lambda port, at, value: Series(
        "hw_network_io_bytes_total", {"hw_id": port, "network_io_direction": "transmit"}, value, at
    ),
    st.sampled_from("abc"),
    st.integers(1, 8).map(lambda step: step * 1000),
    st.integers(0, 100).map(float),
)


@given(st.lists(SERIES, max_size=30), st.randoms(use_true_random=False))
def test_points_in_any_order_and_any_number_of_requests_give_the_same(
    found: list[Series], order: random.Random
) -> None:
    """As long as a request holds whole instants and none is older than those of the requests before."""
    first = {(series.labels["hw_id"], series.instant): series for series in reversed(found)}
    known = list(first.values())

    def converted(batch: Iterable[Series], before: Conversion) -> Conversion:
        made = MAP.convert(batch, lambda series: series.instant or 0, before.counters)
        return Conversion(before.readings + made.readings, made.counters)

    at_once = converted(found, Conversion([], {}))
    order.shuffle(known)
    shuffled = converted(known, Conversion([], {}))
    by_instant = Conversion([], {})
    for at in sorted({series.instant for series in known}, key=lambda at: at or 0):
        by_instant = converted((series for series in known if series.instant == at), by_instant)
    for other in (shuffled, by_instant):
        assert other.counters == at_once.counters
        assert [(reading.observed, reading.device) for reading in other.readings] == [
            (reading.observed, reading.device) for reading in at_once.readings
        ]
        for one, two in zip(other.readings, at_once.readings, strict=True):
            for measure, value in one.measures.items():
                assert isinstance(value, float)
                assert math.isclose(value, float(two.measures[measure]))
