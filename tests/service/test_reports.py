"""Indicators of nodes, domains and links, as they follow from samples and registrations."""

from typing import Any

import pytest
from service.conftest import Service, instant, problem

from kuayu_schemas import registers

DEVICE = {"kind": "gpu", "vendor": "Example", "model": "Example"}


def values(service: Service, path: str, **query: str) -> dict[tuple[str, str | None], dict[str, Any]]:
    report = service.client.get(f"{path}/indicators", params=query).raise_for_status().json()
    return {(value["measure"], value.get("device")): value for value in report["values"]}


def device_sample(node: str, device: str, seconds: float = 0, **measures: Any) -> dict[str, Any]:
    sample = {"subject": node, "subject_kind": "device", "device": device, "observed_at": instant(seconds)}
    return sample | measures


def test_values_stand_in_the_order_of_the_register_and_then_of_devices(shared: Service) -> None:
    names = ["9", "10", "b", "A"]
    shared.put("/v1/domains/order", {"id": "order"}).raise_for_status()
    node = {
        "id": "ordered",
        "domain": "order",
        "devices": [DEVICE | {"id": name, "memory_capacity": 8e10} for name in names],
    }
    shared.put("/v1/nodes/ordered", node).raise_for_status()
    for name in names:
        shared.send(device_sample("ordered", name, -1, faults=0, health_state="healthy", power=1, jitter=0))
    found = shared.client.get("/v1/nodes/ordered/indicators").json()["values"]
    measures = ["power", "accelerator_memory_capacity", "jitter", "health_state", "faults"]
    register = [measure.name for each in registers.indicators().indicators for measure in each.measures]
    assert sorted(measures, key=register.index) == measures
    expected = [(measure, device) for measure in measures for device in (None, "10", "9", "A", "b")]
    assert [(value["measure"], value.get("device")) for value in found if value["measure"] != "jitter"] == [
        place for place in expected if place[0] != "jitter"
    ]


def test_the_register_is_given_in_its_own_order(shared: Service) -> None:
    given = shared.client.get("/v1/indicators").json()["indicators"]
    assert [each["id"] for each in given] == [each.id for each in registers.indicators().indicators]


def test_devices_make_a_node_and_nodes_make_a_domain(shared: Service) -> None:
    for name in ("n1", "n2"):
        shared.register(node=name, domain="report")
        shared.send(
            device_sample(name, "0", -2, power=100, accelerator_utilisation=0.2, health_state="healthy"),
            device_sample(name, "1", -1, power=300, accelerator_utilisation=0.6, health_state="unknown"),
            device_sample(name, "1", -9, faults=2),
        )
    node = values(shared, "/v1/nodes/n1")
    assert (node["power", None]["number"], node["power", None]["parts"]) == (400, 2)
    assert node["power", None]["provenance"] == "aggregated"
    assert node["power", None]["observed_at"] == node["power", "0"]["observed_at"]
    assert node["accelerator_utilisation", None]["number"] == pytest.approx(0.4)
    assert node["health_state", None]["state"] == "unknown"
    assert (node["faults", None]["number"], node["faults", None]["parts"]) == (2, 1)
    domain = values(shared, "/v1/domains/report")
    assert (domain["power", None]["number"], domain["power", None]["parts"]) == (800, 2)
    assert all(device is None for _, device in domain)


def test_what_is_reported_for_the_whole_wins(shared: Service) -> None:
    shared.register(node="own", domain="owner")
    whole = {"subject_kind": "node", "subject": "own", "observed_at": instant(), "power": 1000}
    shared.send(device_sample("own", "0", power=100), whole)
    node = values(shared, "/v1/nodes/own")
    assert (node["power", None]["number"], node["power", None]["provenance"]) == (1000, "measured")
    shared.send({"subject_kind": "domain", "subject": "owner", "observed_at": instant(), "power": 5})
    assert values(shared, "/v1/domains/owner")["power", None]["number"] == 5


def test_a_registration_stands_in_for_what_was_not_measured(shared: Service) -> None:
    devices = [
        DEVICE | {"id": "0", "memory_capacity": 80e9, "peak_matrix_throughput": {"bf16": 1e15, "fp64": 3e13}},
        DEVICE | {"id": "1", "memory_capacity": 80e9, "peak_matrix_throughput": {"bf16": 1e15}},
    ]
    shared.put("/v1/domains/static", {"id": "static"})
    shared.put("/v1/nodes/static", {"id": "static", "domain": "static", "devices": devices}).raise_for_status()
    node = values(shared, "/v1/nodes/static")
    assert node["accelerator_memory_capacity", "0"]["provenance"] == "registered"
    assert node["accelerator_memory_capacity", None]["number"] == 160e9
    assert node["peak_matrix_throughput", None]["by_precision"] == {"bf16": 2e15, "fp64": 3e13}
    shared.send(device_sample("static", "0", accelerator_memory_capacity=79e9))
    node = values(shared, "/v1/nodes/static")
    assert node["accelerator_memory_capacity", "0"]["provenance"] == "measured"
    assert node["accelerator_memory_capacity", None]["number"] == 159e9


def test_stale_values_are_left_out_and_lasting_ones_are_not(shared: Service) -> None:
    shared.register(node="old", devices=1)
    shared.send(device_sample("old", "0", -301, power=1, sustained_matrix_throughput={"bf16": 1}))
    shared.send(device_sample("old", "0", -290, jitter=1))
    present = values(shared, "/v1/nodes/old")
    assert ("power", "0") not in present
    assert ("sustained_matrix_throughput", "0") in present
    assert ("jitter", "0") in present
    assert values(shared, "/v1/nodes/old", at=instant(-200))["power", "0"]["number"] == 1
    assert values(shared, "/v1/nodes/old", at=instant(-400)) == {}


def test_a_link_has_values_of_its_own(shared: Service) -> None:
    shared.put("/v1/domains/here", {"id": "here"})
    shared.put("/v1/links/loop", {"id": "loop", "source": "here", "destination": "here"}).raise_for_status()
    shared.send({"subject": "loop", "subject_kind": "link", "observed_at": instant(), "round_trip_time": 0.02})
    assert values(shared, "/v1/links/loop")["round_trip_time", None]["unit"] == "s"


def test_sums_beyond_all_numbers_are_left_out(shared: Service) -> None:
    shared.register(node="huge")
    shared.send(*(device_sample("huge", device, power=1.7e308) for device in "01"))
    node = values(shared, "/v1/nodes/huge")
    assert ("power", None) not in node
    assert ("power", "1") in node


def test_of_what_is_not_there_there_is_no_report(shared: Service) -> None:
    assert problem(shared.client.get("/v1/nodes/nobody/indicators")) == "not-found"
    assert problem(shared.client.get("/v1/nodes/nobody/indicators", params={"at": "now"})) == "invalid-parameter"
