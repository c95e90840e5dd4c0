"""Pages that misled services in the field, with what has to come of them; the sources are public reports of bugs."""

import time

import pytest
from service.conftest import JsonObject, Service, instant

DCGM = "dcgm-exporter"
NODE = "node-exporter"


def register(service: Service, node: str) -> None:
    device = {"id": "0", "kind": "gpu", "vendor": "NVIDIA", "model": "H100", "memory_capacity": 85e9}
    service.put("/v1/domains/field", {"id": "field"}).raise_for_status()
    body = {"id": node, "domain": "field", "devices": [device]}
    service.put(f"/v1/nodes/{node}", body).raise_for_status()


def sent(service: Service, node: str, page: str, exporter: str = DCGM, **query: str) -> JsonObject:
    answer: JsonObject = service.send_page(page, node=node, exporter=exporter, **query).raise_for_status().json()
    return answer


def problems(answer: JsonObject) -> dict[str, str]:
    """Detail of each refusal by the name of its problem."""
    return {item["problem"]["type"].rpartition(":")[2]: item["problem"]["detail"] for item in answer["rejected"]}


def warnings(answer: JsonObject) -> dict[str, str]:
    return {warning["kind"]: warning["detail"] for warning in answer.get("warnings", ())}


def test_a_blank_is_not_measured_and_the_registration_holds(shared: Service) -> None:
    """NVIDIA/gpu-monitoring-tools#97, guilbaults/slurm-job-exporter#30."""
    register(shared, "blank")
    answer = sent(
        shared,
        "blank",
        """# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia0"} 87
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",device="nvidia0"} 412.5
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",device="nvidia0"} 9223372036854775792
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",device="nvidia0"} 9223372036854775794
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-a",device="nvidia0"} 640
""",
    )
    assert answer["accepted"] == 1
    refused = " ".join(item["problem"]["detail"] for item in answer["rejected"])
    assert "accelerator_memory_used" in refused
    assert "accelerator_memory_capacity" in refused
    (sample,) = shared.samples("blank", "device")
    assert (sample["accelerator_utilisation"], sample["power"]) == (0.87, 412.5)
    assert "accelerator_memory_used" not in sample
    values = shared.client.get("/v1/nodes/blank/indicators").json()["values"]
    memory = [value for value in values if value["measure"].startswith("accelerator_memory_")]
    assert {value["measure"] for value in memory} == {"accelerator_memory_capacity"}
    assert {value["number"] for value in memory} == {85e9}


def test_a_bad_value_hides_no_fault(shared: Service) -> None:
    """NVIDIA/dcgm-exporter#418, NVIDIA/DCGM#199."""
    register(shared, "hidden")
    healthy = 'DCGM_EXP_GPU_HEALTH_STATUS{gpu="0",health_watch="PCIE"} 0\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 10\n'
    sent(shared, "hidden", healthy, observed_at=instant(-2))
    answer = sent(
        shared,
        "hidden",
        """DCGM_EXP_GPU_HEALTH_STATUS{gpu="0",health_watch="PCIE"} 20
DCGM_FI_DEV_XID_ERRORS{gpu="0"} 79
DCGM_FI_DEV_GPU_UTIL{gpu="0"} 4294967295
""",
    )
    assert answer["accepted"] == 1
    assert "DCGM_FI_DEV_GPU_UTIL" in problems(answer)["out-of-range"]
    sample = shared.samples("hidden", "device")[-1]
    assert (sample["health_state"], sample["faults"]) == ("faulty", 1.0)
    assert "accelerator_utilisation" not in sample


@pytest.mark.parametrize("pods", [2, 3])
def test_a_gpu_that_pods_share_is_not_added_up(shared: Service, pods: int) -> None:
    """NVIDIA/dcgm-exporter#582, #587 and pull request 432."""
    node = f"shared-{pods}"
    register(shared, node)
    fields = {"DCGM_FI_DEV_GPU_UTIL": 40, "DCGM_FI_DEV_POWER_USAGE": 300, "DCGM_FI_DEV_FB_USED": 60000}
    page = "".join(
        f'{field}{{gpu="0",UUID="GPU-a",vgpu="{n}",pod="w-{n}",namespace="d",container="main"}} {value}\n'
        for field, value in fields.items()
        for n in range(pods)
    )
    assert sent(shared, node, page)["rejected"] == []
    (sample,) = shared.samples(node, "device")
    assert (sample["accelerator_utilisation"], sample["power"]) == (0.4, 300.0)
    assert sample["accelerator_memory_used"] == 60000 * 1048576


def milliseconds(seconds: float) -> int:
    return round((time.time() + seconds) * 1000)


def test_a_counter_that_slips_back_is_not_reset(shared: Service) -> None:
    """prometheus/node_exporter#1686, #2568."""
    register(shared, "slips")
    values = ((-60, 5_000_000_000_000_000), (-45, 4_999_999_999_995_904), (-30, 5_000_000_000_100_000))
    for seconds, value in values:
        page = f'node_disk_read_bytes_total{{device="nvme0n1"}} {value} {milliseconds(seconds)}\n'
        sent(shared, "slips", page, NODE)
    flows = [sample["storage_read_flow"] for sample in shared.samples("slips")]
    assert flows == [pytest.approx(104096 / 15, rel=0.01)]


def test_a_page_of_another_exporter_is_told(shared: Service) -> None:
    register(shared, "wrong")
    answer = sent(shared, "wrong", 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 40\n', "npu-exporter")
    assert (answer["accepted"], answer["rejected"]) == (0, [])
    assert "dcgm-exporter" in warnings(answer)["nothing_used"]


def test_the_first_page_of_counters_is_used(shared: Service) -> None:
    register(shared, "first")
    answer = sent(shared, "first", 'node_disk_read_bytes_total{device="sda"} 5\n', NODE)
    assert answer["accepted"] == 0
    assert warnings(answer) == {}


def test_two_hosts_under_one_identifier_are_told(shared: Service) -> None:
    """coroot/coroot#145, netdata/netdata#21527."""
    register(shared, "cloned")
    told: list[dict[str, str]] = []
    for index, value in enumerate((5.0e12, 1.0e9, 5.001e12, 1.1e9, 5.002e12)):
        page = f'node_disk_read_bytes_total{{device="sda"}} {value:.0f} {milliseconds(15 * index - 75)}\n'
        told.append(warnings(sent(shared, "cloned", page, NODE)))
    assert "counter_returned" in told[2]
    assert "two sources report as 'cloned'" in told[3]["identity_conflict"]
    assert "identity_conflict" in told[4]
    assert all(sample["storage_read_flow"] < 1e8 for sample in shared.samples("cloned"))


def test_what_a_scraped_page_warns_of_stands_in_its_target(shared: Service) -> None:
    register(shared, "scraped-wrong")
    url = f"{shared.url}/metrics"
    body = {"id": "wrong", "node": "scraped-wrong", "exporter": DCGM, "url": url, "period": 0.2}
    assert shared.put("/v1/scrape-targets/wrong", body).status_code == 201
    deadline = time.monotonic() + 20
    record: JsonObject = {"state": "pending"}
    while record["state"] == "pending" and time.monotonic() < deadline:
        time.sleep(0.05)
        record = shared.client.get("/v1/scrape-targets/wrong").json()
    shared.client.delete("/v1/scrape-targets/wrong").raise_for_status()
    assert record["state"] == "succeeded"
    assert [warning["kind"] for warning in record["last_warnings"]] == ["nothing_used"]
