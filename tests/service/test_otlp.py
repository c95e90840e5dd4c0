"""OpenTelemetry metrics: what an OpenTelemetry library writes, posted to the service."""

import gzip
import time
from collections.abc import Iterable
from pathlib import Path

import httpx
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint, ResourceMetrics
from service.conftest import Service, StartService, problem

from kuayu.perception.otlp import JSON, PROTOBUF

CUMULATIVE, DELTA = 2, 1
SECOND = 1_000_000_000


def moment(seconds: float) -> int:
    """So many seconds from now, in nanoseconds, at a whole millisecond."""
    return round((time.time() + seconds) * 1000) * 1_000_000


def zipped(body: bytes) -> bytes:
    """A body without the time at which it was compressed, so that it is the same in every process that collects."""
    return gzip.compress(body, mtime=0)


def points(values: Iterable[tuple[int, float]], **attributes: str) -> list[NumberDataPoint]:
    """Points of one series."""
    made = [NumberDataPoint(time_unix_nano=at, as_double=value) for at, value in values]
    for point in made:
        for key, value in attributes.items():
            point.attributes.add(key=key.replace("_", ".")).value.string_value = value
    return made


def gauge(name: str, unit: str, found: Iterable[NumberDataPoint]) -> Metric:
    metric = Metric(name=name, unit=unit)
    metric.gauge.data_points.extend(found)
    return metric


def total(name: str, unit: str, found: Iterable[NumberDataPoint], temporality: int = CUMULATIVE) -> Metric:
    metric = Metric(name=name, unit=unit)
    metric.sum.data_points.extend(found)
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = temporality  # type: ignore[assignment]  # an enumeration's value
    return metric


def of_node(node: str, *metrics: Metric, attribute: str = "kuayu.node") -> ResourceMetrics:
    resource = ResourceMetrics()
    resource.resource.attributes.add(key=attribute).value.string_value = node
    resource.scope_metrics.add(metrics=metrics).scope.name = "hw"
    return resource


def send(service: Service, *resources: ResourceMetrics, form: str = PROTOBUF, **headers: str) -> httpx.Response:
    request = ExportMetricsServiceRequest(resource_metrics=resources)
    body = request.SerializeToString() if form == PROTOBUF else json_format.MessageToJson(request).encode()
    return post(service.client, body, form, **headers)


def post(client: httpx.Client, body: bytes, form: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/v1/metrics", content=body, headers={"Content-Type": form, **named})


def answer(response: httpx.Response) -> ExportMetricsServiceResponse:
    """The answer, which has to be of the form that its media type says."""
    assert response.status_code == 200, response.text
    found = ExportMetricsServiceResponse()
    if response.headers["content-type"] == JSON:
        return json_format.Parse(response.content, found)
    assert response.headers["content-type"] == PROTOBUF
    return ExportMetricsServiceResponse.FromString(response.content)


def power(node: str, at: int, value: float = 300.5, device: str = "0") -> ResourceMetrics:
    return of_node(node, gauge("hw.power", "W", points([(at, value)], hw_id=device, hw_type="gpu")))


@pytest.mark.parametrize("form", [JSON, PROTOBUF])
@pytest.mark.parametrize("packed", [False, True])
def test_a_gauge_becomes_a_sample_in_every_form(shared: Service, form: str, packed: bool) -> None:
    name = f"form-{form[-4:]}-{packed}"
    shared.register(node=name, devices=1)
    request = ExportMetricsServiceRequest(resource_metrics=[power(name, moment(-5))])
    body = request.SerializeToString() if form == PROTOBUF else json_format.MessageToJson(request).encode()
    sent = post(shared.client, gzip.compress(body), form, Content_Encoding="gzip") if packed else None
    told = answer(sent or post(shared.client, body, form))
    assert not told.HasField("partial_success")
    (sample,) = shared.samples(name, "device")
    assert (sample["device"], sample["power"]) == ("0", 300.5)


def test_rates_follow_from_sums_and_whole_requests_may_come_at_once(shared: Service) -> None:
    for name in ("one-by-one", "at-once"):
        shared.register(node=name)
    at = moment(-60)
    readings = [(at, 1e6), (at + 10 * SECOND, 3e6), (at + 20 * SECOND, 1e6)]

    def transmitted(chosen: Iterable[tuple[int, float]]) -> Metric:
        ports = [point for port in ("a", "b") for point in points(chosen, hw_id=port, network_io_direction="transmit")]
        return total("hw.network.io", "By", ports)

    for reading in readings:
        answer(send(shared, of_node("one-by-one", transmitted([reading]))))
    answer(send(shared, of_node("at-once", transmitted(readings[::-1]))))
    for name in ("one-by-one", "at-once"):
        flows = [sample["scale_out_transmit_flow"] for sample in shared.samples(name)]
        assert flows == pytest.approx([4e5, 2e5]), name  # the counter was reset before the third


def test_an_infinite_value_is_refused_and_blocks_nothing(shared: Service) -> None:
    shared.register(node="endless", devices=1)
    at = moment(-60)
    for form in (JSON, PROTOBUF):
        assert answer(send(shared, power("endless", at, float("inf")), form=form)).partial_success.rejected_data_points
    assert not answer(send(shared, power("endless", at + SECOND, 90.0))).HasField("partial_success")
    (sample,) = shared.samples("endless", "device")
    assert sample["power"] == 90.0


def test_small_bodies_of_many_parts_are_too_large(shared: Service) -> None:
    request = ExportMetricsServiceRequest(resource_metrics=[ResourceMetrics() for _ in range(110_000)])
    assert problem(post(shared.client, request.SerializeToString(), PROTOBUF)) == "payload-too-large"
    body = b'{"resourceMetrics":[' + b"{}," * 310_000 + b"{}]}"
    assert problem(post(shared.client, body, JSON)) == "payload-too-large"


def test_the_same_request_again_changes_nothing(shared: Service) -> None:
    shared.register(node="again", devices=1)
    at = moment(-30)
    for step in (0, 10, 10, 0):
        answer(send(shared, power("again", at + step * SECOND, 100.0 + step)))
    assert [sample["power"] for sample in shared.samples("again", "device")] == [100.0, 110.0]


def test_delta_sums_and_points_without_a_value_are_left_out_and_the_former_are_spoken_of(shared: Service) -> None:
    shared.register(node="left-out", devices=1)
    at = moment(-30)
    for step in (0, 10):
        found = points([(at + step * SECOND, 5e6)], hw_id="a", network_io_direction="receive")
        delta = answer(send(shared, of_node("left-out", total("hw.network.io", "By", found, DELTA))))
        assert delta.partial_success.rejected_data_points == 0
        assert "not cumulative" in delta.partial_success.error_message
    blank = points([(at, 0.0)], hw_id="0", hw_type="gpu")
    blank[0].flags = 1
    nothing = [NumberDataPoint(time_unix_nano=at, attributes=blank[0].attributes)]
    told = answer(send(shared, of_node("left-out", gauge("hw.power", "W", [*blank, *nothing]))))
    assert not told.HasField("partial_success")
    assert shared.samples("left-out") == shared.samples("left-out", "device") == []


def test_several_nodes_stand_in_one_request_and_strangers_are_counted(shared: Service) -> None:
    shared.register(node="left", devices=1)
    shared.register(node="right", devices=1)
    at = moment(-5)
    nameless = ResourceMetrics()
    nameless.CopyFrom(power("", at))
    del nameless.resource.attributes[:]
    host = power("right", at, 200.0)
    host.resource.attributes[0].key = "host.name"
    told = answer(
        send(
            shared,
            power("left", at, 100.0),
            host,
            power("nobody", at),
            nameless,
            power("left", at, device="7"),
            of_node("left", gauge("hw.gpu.utilization", "1", points([(at, 1.5)], hw_id="0", hw_gpu_task="encoder"))),
            of_node("right", gauge("hw.gpu.utilization", "1", points([(at, 9)], hw_id="0", hw_gpu_task="general"))),
            form=JSON,
        )
    ).partial_success
    assert [sample["power"] for sample in shared.samples("left", "device")] == [100.0]
    (right,) = shared.samples("right", "device")  # one of its values is out of range, and goes by itself
    assert right["power"] == 200.0
    assert "accelerator_utilisation" not in right
    assert told.rejected_data_points == 4
    for words in ("no node 'nobody' is registered", "kuayu.node or host.name", "no device '7'", "is above 1"):
        assert words in told.error_message


def test_instants_count_and_where_there_is_none_the_receipt_does(shared: Service) -> None:
    shared.register(node="timed", devices=1)
    told = answer(send(shared, power("timed", moment(7200)), power("timed", moment(-40 * 86400)), power("timed", 0)))
    assert told.partial_success.rejected_data_points == 2
    (sample,) = shared.samples("timed", "device")
    assert sample["observed_at"] == sample["received_at"]


@pytest.mark.parametrize("form", [JSON, PROTOBUF])
def test_the_start_time_tells_that_a_counter_began_anew(shared: Service, form: str) -> None:
    node = f"anew-{form[-4:]}"
    shared.register(node=node, devices=1)
    for began, at, value in ((-1000, -20, 3), (-10, -1, 5)):
        (found,) = points([(moment(at), value)], error_type="uncorrected", hw_type="gpu", hw_id="0")
        found.start_time_unix_nano = moment(began)
        answer(send(shared, of_node(node, total("hw.errors", "{error}", [found])), form=form))
    (sample,) = shared.samples(node, "device")
    assert sample["faults"] == 5.0


def test_metrics_of_which_nothing_is_used_earn_a_word(shared: Service) -> None:
    shared.register(node="receiver", devices=1)
    found = points([(moment(-1), 0.5)], gpu_number="0")
    told = answer(send(shared, of_node("receiver", gauge("gpu.dcgm.utilization", "1", found)))).partial_success
    assert told.rejected_data_points == 0
    assert "dcgmreceiver" in told.error_message


@pytest.mark.parametrize(
    ("body", "form", "encoding", "name"),
    [
        (b'{"resourceMetrics": [', JSON, "", "malformed-json"),
        (b'{"resourceMetrics": [], "resourceMetrics": []}', JSON, "", "malformed-json"),
        (b'{"resourceMetrics":' + b"[" * 200 + b"]" * 200 + b"}", JSON, "", "malformed-json"),
        (b"", JSON, "", "malformed-json"),
        (b"[]", JSON, "", "invalid-body"),
        (b'{"resourceMetrics": ["x"]}', JSON, "", "invalid-body"),
        (b'{"resourceMetrics": [{"resource": "x"}]}', JSON, "", "invalid-body"),
        (b'{"resource_metrics": ["x"]}', JSON, "", "invalid-body"),
        (b"\x0a\xff\x01abc", PROTOBUF, "", "invalid-body"),
        (b'{"resourceMetrics": []}', PROTOBUF, "", "invalid-body"),
        (b"{}", "text/plain", "", "unsupported-media-type"),
        (b"{}", "", "", "unsupported-media-type"),
        (b"{}", JSON, "br", "unsupported-media-type"),
        (b"{}", JSON, "gzip, gzip", "unsupported-media-type"),
        (b"{}", JSON, "gzip", "invalid-body"),
        (b"", JSON, "gzip", "invalid-body"),
        (zipped(b"{}" * 1000)[:-4], JSON, "gzip", "invalid-body"),
        (zipped(b"{}") + b"more", JSON, "gzip", "invalid-body"),
        (zipped(b" " * (16 << 20) + b"{}"), JSON, "gzip", "payload-too-large"),
        (b" " * (16 << 20) + b"{}", JSON, "", "payload-too-large"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value[:20]),
)
def test_what_is_no_request_is_a_problem(shared: Service, body: bytes, form: str, encoding: str, name: str) -> None:
    headers = {"Content_Encoding": encoding} if encoding else {}
    assert problem(post(shared.client, body, form, **headers)) == name


@pytest.mark.parametrize("body", [b"{}", b'{"resourceMetrics": null}', b'{"fromTheFuture": {"a": [1]}}'])
def test_a_request_without_metrics_is_fine(shared: Service, body: bytes) -> None:
    assert post(shared.client, body, JSON).json() == {}
    assert post(shared.client, gzip.compress(b""), PROTOBUF, Content_Encoding="gzip").content == b""


def test_an_idempotency_key_gets_the_first_answer_again_in_its_form(shared: Service) -> None:
    shared.register(node="key", devices=1)
    at = moment(-5)
    first = send(shared, power("key", at, device="9"), Idempotency_Key="k")
    again = send(shared, power("key", at, device="9"), Idempotency_Key="k")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert answer(first) == answer(again)
    assert answer(again).partial_success.rejected_data_points == 1
    assert problem(send(shared, power("key", at), Idempotency_Key="k")) == "idempotency-mismatch"


def test_a_tenant_sends_metrics_of_its_own_nodes_only(start_service: StartService, tmp_path: Path) -> None:
    service = start_service("--token", "blue=b", "--token", "red=r", database=f"sqlite:///{tmp_path / 'tenants.db'}")
    body = ExportMetricsServiceRequest(resource_metrics=[power("n", moment(-5))]).SerializeToString()
    assert problem(post(service.client, body, PROTOBUF)) == "unauthorised"
    with service.as_tenant("b") as blue, service.as_tenant("r") as red:
        blue.put("/v1/domains/d", json={"id": "d"}).raise_for_status()
        device = {"id": "0", "kind": "gpu", "vendor": "Example", "model": "Example"}
        blue.put("/v1/nodes/n", json={"id": "n", "domain": "d", "devices": [device]}).raise_for_status()
        assert answer(post(red, body, PROTOBUF)).partial_success.rejected_data_points == 1
        assert not answer(post(blue, body, PROTOBUF)).HasField("partial_success")
