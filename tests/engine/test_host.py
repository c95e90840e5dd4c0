"""What this host is and how it stands, in the words of the standard."""

import json
import time
from pathlib import Path

import pytest

from kuayu.engine.host import Host, NvidiaAccelerators, Processor, ProcessorEnergy, health
from kuayu_schemas import schema
from kuayu_schemas.models import HealthState


def test_this_host_registers_as_a_node_with_devices() -> None:
    node = Host.local().node("n-1", "d-1").to_wire()
    assert schema.errors("Node", node) == []
    assert len({device["id"] for device in node["devices"]}) == len(node["devices"]) > 0


def test_a_host_without_accelerators_shows_its_processors_and_main_memory() -> None:
    (device,) = Host(nvidia=None).devices()
    assert device.kind == "cpu"
    assert device.memory_capacity is not None
    assert device.memory_capacity > 2**26
    assert device.peak_matrix_throughput is None, "no data sheet is at hand"


def test_processors_can_count_as_several_devices_that_share_them() -> None:
    host, whole = Host(nvidia=None, parts=4), Host(nvidia=None)
    devices, (one,) = host.devices(), whole.devices()
    assert [device.id for device in devices] == ["cpu-0", "cpu-1", "cpu-2", "cpu-3"]
    assert one.memory_capacity is not None
    assert {device.memory_capacity for device in devices} == {one.memory_capacity / 4}
    assert {(device.vendor, device.model) for device in devices} == {(one.vendor, one.model)}
    samples = [sample for sample in host.samples("n-1") if sample.device is not None]
    assert [sample.device for sample in samples] == [device.id for device in devices]
    used = [sample.accelerator_memory_used or 0.0 for sample in samples]
    assert 0 < sum(used) <= one.memory_capacity
    assert sum(sample.faults is not None for sample in samples) <= 1  # each fault is told once


def test_samples_are_what_the_schema_says() -> None:
    host = Host.local()
    for _ in range(2):
        for sample in host.samples("n-1"):
            assert schema.errors("Sample", json.loads(sample.to_json())) == []


def test_what_follows_from_counters_is_absent_at_first_and_there_the_second_time() -> None:
    host = Host(nvidia=None)
    node, device = host.samples("n-1")
    assert node.storage_read_flow is node.scale_out_transmit_flow is device.accelerator_utilisation is None
    time.sleep(0.1)
    node, device = host.samples("n-1")
    assert node.scale_out_transmit_flow is not None
    assert device.accelerator_utilisation is not None
    assert 0 <= device.accelerator_utilisation <= 1


def test_memory_in_use_is_part_of_the_memory_that_is_there() -> None:
    host = Host(nvidia=None)
    _, sample = host.samples("n-1")
    capacity = host.devices()[0].memory_capacity
    assert capacity is not None
    assert sample.accelerator_memory_used is not None
    assert 0 < sample.accelerator_memory_used < capacity


def test_without_a_driver_there_are_no_accelerators() -> None:
    found = NvidiaAccelerators.find()
    assert found is None or found.describe()


def test_silence_is_not_health() -> None:
    assert health({HealthState.faulty: None, HealthState.degraded: None}) == {"health_state": HealthState.unknown}


@pytest.mark.parametrize(
    ("faulty_passed", "degraded_passed", "state", "score"),
    [
        (True, True, HealthState.healthy, 1.0),
        (True, False, HealthState.degraded, 0.5),
        (False, True, HealthState.faulty, 0.5),
        (False, False, HealthState.faulty, 0.0),
        (None, False, HealthState.degraded, 0.0),
        (True, None, HealthState.healthy, 1.0),
    ],
)
def test_health_is_the_worst_of_the_checks_that_could_be_made(
    *, faulty_passed: bool | None, degraded_passed: bool | None, state: HealthState, score: float
) -> None:
    checks = {HealthState.faulty: faulty_passed, HealthState.degraded: degraded_passed}
    assert health(checks) == {"health_state": state, "health_score": score}


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n", encoding="ascii")
    return root


def test_memory_errors_that_the_kernel_counts_become_faults(tmp_path: Path) -> None:
    processor = Processor(edac=_write(tmp_path, {"mc0/ue_count": "0", "mc0/ce_count": "0"}))
    first = processor.read(0.0)
    assert first["health_state"] == HealthState.healthy
    assert "faults" not in first
    _write(tmp_path, {"mc0/ce_count": "3"})
    second = processor.read(1.0)
    assert second["health_state"] == HealthState.degraded
    assert second["faults"] == 0
    _write(tmp_path, {"mc0/ue_count": "2"})
    last = processor.read(2.0)
    assert last["health_state"] == HealthState.faulty
    assert last["faults"] == 2


def test_energy_is_that_of_packages_and_memory_and_nothing_else(tmp_path: Path) -> None:
    zones = {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:0:1": "dram", "intel-rapl:1": "psys"}
    for zone, name in zones.items():
        _write(tmp_path / zone, {"name": name, "energy_uj": "2500000", "max_energy_range_uj": "262143000000"})
    energy = ProcessorEnergy(tmp_path)
    assert energy.read() == {"intel-rapl:0": 2.5, "intel-rapl:0:1": 2.5}
    assert energy.spans == {"intel-rapl:0": 262143.0, "intel-rapl:0:1": 262143.0}


def test_energy_that_cannot_be_read_is_not_made_up(tmp_path: Path) -> None:
    _write(tmp_path / "intel-rapl:0", {"name": "package-0", "energy_uj": "", "max_energy_range_uj": "1000"})
    assert ProcessorEnergy(tmp_path).read() == {}
