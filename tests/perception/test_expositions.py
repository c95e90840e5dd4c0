"""Pages as exporters really write them: values that cannot be, repetitions, parts, and pages of another exporter."""

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.perception import exposition
from kuayu.perception.collection import CollectionMap, Conversion, Reading, why_unused
from kuayu.perception.counters import Counters
from kuayu.perception.exposition import MalformedExpositionError
from kuayu.perception.plausibility import Limits
from kuayu_conformance.exporters.player import PlayedExporter
from kuayu_schemas import registers

H100 = {"0": Limits(memory_capacity=85e9, power_limit=700.0)}
MIB = 1048576


@cache
def collection(exporter: str) -> CollectionMap:
    return CollectionMap.of(registers.indicators(), exporter)


def convert(
    page: str,
    exporter: str = "dcgm-exporter",
    at: int = 0,
    previous: Counters | None = None,
    limits: dict[str, Limits] = H100,
) -> Conversion:
    return collection(exporter).convert(exposition.parse(page), lambda _: at, previous or {}, limits)


def only(page: str, exporter: str = "dcgm-exporter", limits: dict[str, Limits] = H100) -> Reading:
    (reading,) = convert(page, exporter, limits=limits).readings
    return reading


def refused(reading: Reading) -> set[str]:
    return {refusal.measure for refusal in reading.refused}


@pytest.mark.parametrize(
    "blank",
    [
        "9223372036854775807",
        "9223372036854775794",
        "9.223372036854776e+18",
        "18446744073709551615",
        "4294967295",
        "2147483647",
        "2147483632",
        "140737488355328",
        "1.7976931348623157e+308",
        "3.4028234663852886e+38",
        "-2147483648",
        "808334905",
        "+Inf",
        "-1",
    ],
)
@pytest.mark.parametrize(
    ("field", "measure"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", "accelerator_utilisation"),
        ("DCGM_FI_DEV_POWER_USAGE", "power"),
        ("DCGM_FI_DEV_FB_USED", "accelerator_memory_used"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_itself(field: str, measure: str, blank: str) -> None:
    reading = only(
        'DCGM_EXP_GPU_HEALTH_STATUS{gpu="0",health_watch="PCIE"} 20\n'
        'DCGM_FI_DEV_XID_ERRORS{gpu="0"} 79\n'
        f'{field}{{gpu="0"}} {blank}\n'
    )
    assert reading.measures == {"health_state": "faulty", "faults": 1.0}
    assert refused(reading) == {measure}
    assert field in reading.refused[0].reason


@pytest.mark.parametrize("blank", ["2147483632", "4294967295", "9223372036854775792"])
def test_a_blank_is_no_fault(blank: str) -> None:
    reading = only(f'DCGM_FI_DEV_XID_ERRORS{{gpu="0"}} {blank}\nDCGM_FI_DEV_GPU_UTIL{{gpu="0"}} 5\n')
    assert reading.measures == {"accelerator_utilisation": 0.05}
    assert refused(reading) == {"faults"}


AMD_SILENT = (
    'gpu_power_usage{gpu_id="0",gpu_partition_id="0"} 65535\n'
    'gpu_gfx_activity{gpu_id="0",gpu_partition_id="0"} 65535\n'
    'gpu_used_vram{gpu_id="0",gpu_partition_id="0"} 17592186044415\n'
    'gpu_health{gpu_id="0",gpu_partition_id="0"} 0\n'
)
NPU_SILENT = (
    'npu_chip_info_power{id="0"} -1\nnpu_chip_info_utilization{id="0"} -1\n'
    'npu_chip_info_hbm_used_memory{id="0"} -1\nnpu_chip_info_health_status{id="0"} 0\n'
)


@pytest.mark.parametrize(("exporter", "page"), [("amd-metrics-exporter", AMD_SILENT), ("npu-exporter", NPU_SILENT)])
def test_what_other_libraries_fill_in_hides_no_fault(exporter: str, page: str) -> None:
    """amdsmi: the largest number of 16 bits, and of 64 bits in MiB; DCMI: −1. Health stands beside them."""
    reading = only(page, exporter, {})
    assert reading.measures == {"health_state": "faulty"}
    assert refused(reading) == {"power", "accelerator_utilisation", "accelerator_memory_used"}


def test_a_counter_below_zero_is_refused_and_nothing_is_compared_with_it() -> None:
    first = convert(disk(-2147483000), "node-exporter")
    assert refused(first.readings[0]) == {"storage_read_flow"}
    then = convert(disk(5e9), "node-exporter", 15_000, first.counters)
    assert then.readings == []
    (reading,) = convert(disk(5.0003e9), "node-exporter", 30_000, then.counters).readings
    assert reading.measures == {"storage_read_flow": pytest.approx(20_000)}


def test_no_device_has_more_than_it_was_registered_with() -> None:
    page = 'DCGM_FI_DEV_FB_USED{{gpu="0"}} {}\nDCGM_FI_DEV_POWER_USAGE{{gpu="0"}} {}\n'
    assert refused(only(page.format(180_000, 1500))) == {"accelerator_memory_used", "power"}
    taken = only(page.format(81_559, 720))  # data sheets say GB where drivers count GiB; limits are passed for moments
    assert taken.measures == {"accelerator_memory_used": 81_559 * MIB, "power": 720.0}
    assert only(page.format(180_000, 1500), limits={}).refused == ()


@pytest.mark.parametrize("digits", ["４２", "٤٢", "1_000", "0x2a", "४२", "42 ١٧٠٠", "4２"])
def test_only_ascii_digits_are_numbers(digits: str) -> None:
    with pytest.raises(MalformedExpositionError, match="line 2"):
        exposition.parse(f'DCGM_FI_DEV_POWER_USAGE{{gpu="0"}} 300\nDCGM_FI_DEV_GPU_UTIL{{gpu="0"}} {digits}\n')


@pytest.mark.parametrize("number", ["1", "+1.5", ".5", "5.", "1e3", "NaN", "+Inf", "-Inf", "1 1700000000000", "1 -5"])
def test_numbers_of_the_format_are_read(number: str) -> None:
    assert len(exposition.parse(f"a {number}\n")) == 1


def shared_by(label: str, values: tuple[str, str], field: str, *shown: float, exporter_label: str = "gpu") -> str:
    pairs = zip(values, shown, strict=True)
    return "".join(f'{field}{{{exporter_label}="0",{label}="{who}"}} {value}\n' for who, value in pairs)


@pytest.mark.parametrize(
    ("exporter", "label", "device", "field", "measure", "factor"),
    [
        ("dcgm-exporter", "pod", "gpu", "DCGM_FI_DEV_POWER_USAGE", "power", 1),
        ("dcgm-exporter", "vgpu", "gpu", "DCGM_FI_DEV_FB_USED", "accelerator_memory_used", MIB),
        ("dcgm-exporter", "exported_pod", "gpu", "DCGM_FI_PROF_DRAM_ACTIVE", "memory_bandwidth_utilisation", 1),
        ("npu-exporter", "container_name", "id", "npu_chip_info_power", "power", 1),
        ("amd-metrics-exporter", "job_id", "gpu_id", "gpu_used_vram", "accelerator_memory_used", MIB),
        ("mlu-exporter", "pod", "mlu", "mlu_memory_used", "accelerator_memory_used", 1),
        ("dcu-exporter", "dcu_pod_name", "minor_number", "dcu_power_usage", "power", 1),
        ("ix-exporter", "pod", "gpu", "ix_power_usage", "power", 1),
        ("gcu-exporter", "pod_name", "minor_number", "enflame_gcu_power_consumption", "power", 1),
    ],
)
def test_what_pods_share_counts_once(
    exporter: str, label: str, device: str, field: str, measure: str, factor: float
) -> None:
    page = shared_by(label, ("a", "b"), field, 0.75, 0.75, exporter_label=device)
    assert only(page, exporter).measures == {measure: 0.75 * factor}


def test_labels_that_pods_bring_along_do_not_tell_readings_apart() -> None:
    page = (
        'DCGM_FI_DEV_POWER_USAGE{gpu="0",pod="a",label_app="train",team="x"} 300\n'
        'DCGM_FI_DEV_POWER_USAGE{gpu="0",pod="b",label_app="serve"} 300.2\n'
    )
    assert only(page).measures == {"power": 300.0}


def test_repetitions_that_contradict_each_other_are_refused() -> None:
    reading = only(
        shared_by("pod", ("a", "b"), "DCGM_FI_DEV_POWER_USAGE", 300, 120) + 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 5'
    )
    assert reading.measures == {"accelerator_utilisation": 0.05}
    (refusal,) = reading.refused
    assert refusal.contradictory
    assert "300, 120" in refusal.reason


@pytest.mark.parametrize("shown", [("4294967295", "40"), ("40", "4294967295"), ("2147483632", "40")])
def test_a_repetition_without_a_value_hides_no_other(shown: tuple[str, str]) -> None:
    """NVIDIA/dcgm-exporter#418: a blank now and then, here of one pod of two that share the device."""
    page = "".join(
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",pod="{pod}"}} {value}\n' for pod, value in zip("ab", shown, strict=True)
    )
    page += "".join(
        f'DCGM_FI_DEV_XID_ERRORS{{gpu="0",pod="{pod}"}} {xid}\n'
        for pod, xid in zip("ab", (2147483632, 79), strict=True)
    )
    assert only(page).measures == {"accelerator_utilisation": 0.4, "faults": 1.0}


def test_a_line_that_stands_twice_counts_once_even_for_a_counter() -> None:
    line = 'node_disk_read_bytes_total{device="sda"} '
    first = convert(f"{line}1000\n{line}1000\n", "node-exporter")
    (reading,) = convert(f"{line}6000\n{line}6000\n", "node-exporter", 10_000, first.counters).readings
    assert reading.measures == {"storage_read_flow": 500.0}
    assert only('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 60\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 60\n').measures == {
        "accelerator_utilisation": 0.6
    }


HOSTS = (("gy-1:9400", "gy-2:9400"), ("10.0.0.7:9400", "10.0.0.8:9400"), ("gy-1.pool.example", "gy-2.pool.example"))


@pytest.mark.parametrize("hosts", HOSTS)
@pytest.mark.parametrize("label", ["instance", "exported_instance", "Hostname"])
def test_what_a_page_shows_of_several_hosts_is_not_taken_for_one(label: str, hosts: tuple[str, str]) -> None:
    """A page of /federate, of nodes that each have a GPU 0; other labels differ too, so that series do not repeat."""
    page = "".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",{label}="{host}",rack="{number}"}} {watts}\n'
        f'DCGM_FI_DEV_XID_ERRORS{{gpu="0",{label}="{host}",rack="{number}"}} {79 * number}\n'
        for number, (host, watts) in enumerate(zip(hosts, (300, 300.4), strict=True))
    )
    conversion = convert(page + 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 5\n')
    (reading,) = conversion.readings
    assert reading.measures == {"accelerator_utilisation": 0.05}
    assert refused(reading) == {"power", "faults"}
    assert all(refusal.contradictory and "of several hosts" in refusal.reason for refusal in reading.refused)
    assert len(conversion.alternating) == 1
    assert "both" in conversion.alternating[0]


def test_counters_of_several_hosts_on_one_page_are_not_added_up() -> None:
    def page(read: float) -> str:
        return "".join(
            f'node_disk_read_bytes_total{{device="sda",instance="{host}:9100",job="nodes-{host}"}} {read:.0f}\n'
            for host in ("gy-1", "gy-2")
        )

    first = convert(page(1e9), "node-exporter")
    second = convert(page(2e9), "node-exporter", 10_000, first.counters)
    assert [reading.measures for reading in second.readings] == [{}]
    assert second.alternating == ("the host (both 'gy-1' and 'gy-2')",)
    assert second.conflicted == 10_000


def test_the_name_of_a_host_counts_before_where_its_page_was_fetched() -> None:
    """Behind a gateway all hosts are fetched from one place, or one host from several."""
    page = 'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="{}",exported_instance="{}"}} {}\n'
    several = convert(page.format("gy-1", "localhost:9400", 300) + page.format("gy-2", "localhost:9400", 310))
    assert refused(several.readings[0]) == {"power"}
    one = convert(page.format("gy-1", "0", 300) + page.format("gy-1", "1", 300))
    assert one.readings[0].measures == {"power": 300.0}


@pytest.mark.parametrize("names", [("gy-1:9400", "gy-1.pool.example:9400"), ("gy-1:9400", "gy-1:9401")])
def test_two_names_of_one_host_on_a_page_are_of_one(names: tuple[str, str]) -> None:
    page = "".join(f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",instance="{name}"}} 300\n' for name in names)
    conversion = convert(page)
    assert conversion.readings[0].measures == {"power": 300.0}
    assert conversion.alternating == ()


def test_a_state_of_one_watch_is_not_hidden_by_another_pod() -> None:
    page = (
        'DCGM_EXP_GPU_HEALTH_STATUS{gpu="0",health_watch="PCIE",pod="a"} 0\n'
        'DCGM_EXP_GPU_HEALTH_STATUS{gpu="0",health_watch="MEM",pod="a"} 20\n'
        'DCGM_EXP_GPU_HEALTH_STATUS{gpu="0",health_watch="PCIE",pod="b"} 0\n'
    )
    assert only(page).measures == {"health_state": "faulty"}


def test_a_counter_goes_on_when_its_pod_has_changed() -> None:
    def errors(pod: str, count: int) -> str:
        return f'gpu_ecc_uncorrect_total{{gpu_id="0",gpu_partition_id="0",pod="{pod}"}} {count}\n'

    first = convert(errors("a", 3), "amd-metrics-exporter")
    (reading,) = convert(errors("b", 5), "amd-metrics-exporter", 10_000, first.counters).readings
    assert reading.measures == {"faults": 2.0}


def test_partitions_of_amd_add_up_in_memory_and_the_first_shows_power() -> None:
    page = "".join(
        f'gpu_total_vram{{gpu_id="0",gpu_partition_id="{part}",gpu_compute_partition_type="cpx",pod="p{part}"}} 24576\n'
        f'gpu_power_usage{{gpu_id="0",gpu_partition_id="{part}"}} {600 if part == 0 else 0}\n'
        for part in range(8)
    )
    reading = only(page, "amd-metrics-exporter", {})
    assert reading.measures == {"accelerator_memory_capacity": 8 * 24576 * MIB, "power": 600.0}


def mig(field: str, *shown: float, pod: bool = False) -> str:
    lines = []
    for index, value in enumerate(shown):
        who = f',pod="p{index}"' if pod else ""
        lines.append(f'{field}{{gpu="0",UUID="GPU-a",GPU_I_PROFILE="1g.10gb",GPU_I_ID="{7 + index}"{who}}} {value}\n')
    return "".join(lines)


@pytest.mark.parametrize("pod", [False, True])
def test_instances_of_a_divided_gpu_add_up_where_the_page_does_not_show_the_whole(pod: bool) -> None:
    instances = mig("DCGM_FI_DEV_FB_USED", 9000, 4000, pod=pod) + mig("DCGM_FI_DEV_POWER_USAGE", 310, 310, pod=pod)
    instances += mig("DCGM_FI_DEV_XID_ERRORS", 0, 43, pod=pod) + mig("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.9, 0.1)
    assert only(instances).measures == {"accelerator_memory_used": 13000 * MIB, "power": 310.0, "faults": 1.0}
    whole = 'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a"} 13500\nDCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a"} 312\n'
    assert only(instances + whole).measures["accelerator_memory_used"] == 13500 * MIB
    assert only(instances + whole).measures["power"] == 312.0


def disk(value: float) -> str:
    return f'node_disk_read_bytes_total{{device="nvme0n1"}} {value:.0f}\n'


def test_no_disk_reads_faster_than_its_bus() -> None:
    first = convert(disk(1e15), "node-exporter")
    leap = convert(disk(1e15 + 2e12), "node-exporter", 15_000, first.counters)
    assert refused(leap.readings[0]) == {"storage_read_flow"}
    assert leap.readings[0].measures == {}


def test_no_rate_is_taken_over_forty_milliseconds() -> None:
    first = convert(disk(1e9), "node-exporter")
    moment = convert(disk(2e9), "node-exporter", 40, first.counters)
    assert moment.readings == []
    (reading,) = convert(disk(3e9), "node-exporter", 10_000, moment.counters).readings
    assert reading.measures == {"storage_read_flow": 2e8}


def test_another_piece_of_hardware_to_and_fro_is_told() -> None:
    found = Conversion([], {})
    for index, piece in enumerate("abab"):
        page = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-{piece}"}} 5\n'
        found = convert(page, at=index * 15_000, previous=found.counters)
    assert found.alternating == ("the hardware behind device 0 (now 'GPU-b')",)
    both = convert('DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="a"} 5\nDCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="b"} 90\n')
    assert both.alternating == ("the hardware behind device 0 (both 'a' and 'b')",)
    assert both.readings[0].measures == {}


def hint(page: str, exporter: str) -> str:
    assert convert(page, exporter).used == 0
    return why_unused(exposition.parse(page), collection(exporter), registers.indicators())


@pytest.mark.parametrize(
    ("page", "exporter", "words"),
    [
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 1\n', "npu-exporter", "those of dcgm-exporter: name it"),
        ('npu_chip_info_power{id="0"} 1\n', "dcgm-exporter", "those of npu-exporter: name it"),
        ('gpu_power_usage{gpu_id="0",gpu_partition_id="0"} 1\n', "dcgm-exporter", "those of amd-metrics-exporter"),
        ('node_disk_read_bytes_total{device="a"} 1\n', "dcgm-exporter", "those of node-exporter"),
        ('amd_gpu_power_usage{gpu_id="0",gpu_partition_id="0"} 1\n', "amd-metrics-exporter", "with the prefix 'amd_'"),
        ('power_usage{mlu="0"} 1\n', "mlu-exporter", "without the prefix 'mlu_'"),
        ('dcgm_fi_dev_gpu_util{gpu="0"} 1\n', "dcgm-exporter", "in another case"),
        ('gpu_dcgm_utilization_ratio{gpu_number="0"} 1\n', "dcgm-exporter", "dcgmreceiver"),
        ('nvidia_smi_power_draw_watts{uuid="a"} 1\n', "dcgm-exporter", "nvidia_gpu_exporter"),
        ('xpum_power_watts{dev="0"} 1\n', "dcgm-exporter", "Intel XPU Manager"),
        ('amd_gpu_power{gpu_power="0"} 1\n', "amd-metrics-exporter", "amd_smi_exporter"),
        ('vnpu_pod_aicore_utilization{id="0"} 1\n', "npu-exporter", "virtual NPUs"),
        ('container_npu_utilization{id="0"} 1\n', "npu-exporter", "npu-exporter's containers"),
        ('instance:DCGM_FI_DEV_GPU_UTIL:avg5m{gpu="0"} 1\n', "dcgm-exporter", "after a recording rule"),
        ('DCGM_FI_DEV_GPU_UTIL_avg{gpu="0"} 1\n', "dcgm-exporter", "with '_avg' behind them"),
        ('node_cpu_seconds_total{cpu="0"} 1\n', "dcgm-exporter", "begin as those of node-exporter"),
        ('DCGM_FI_DEV_GPU_TEMP{gpu="0"} 30\n', "dcgm-exporter", "of which the map takes others"),
        ("go_goroutines 5\n", "dcgm-exporter", "no series of the page is in the map of dcgm-exporter"),
        ('DCGM_FI_DEV_GPU_UTIL{minor="0"} 1\n', "dcgm-exporter", "no label 'gpu'"),
        ('gpu_power_usage{gpu_id="0",gpu_partition_id="NA"} 1\n', "amd-metrics-exporter", "gpu_partition_id='0'"),
        ("", "dcgm-exporter", "the page has no series"),
    ],
)
def test_a_page_of_which_nothing_is_used_says_why(page: str, exporter: str, words: str) -> None:
    assert words in hint(page, exporter)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("<!DOCTYPE html>\n<html><head><title>Node Exporter</title></head></html>\n", "a page of HTML"),
        ('{"error": "unauthorized"}\n', "JSON"),
        ('HTTP/1.1 200 OK\nContent-Type: text/plain\n\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 1\n', "answer of HTTP"),
    ],
)
def test_what_is_no_page_of_metrics_at_all_is_told(sent: str, words: str) -> None:
    """The landing page of an exporter, the answer of a gateway, and what ``curl -i`` prints."""
    with pytest.raises(MalformedExpositionError, match=words):
        exposition.parse(sent)


def test_a_byte_order_mark_and_line_ends_of_windows_hide_nothing() -> None:
    page = '\ufeffDCGM_FI_DEV_GPU_UTIL{gpu="0"} 50\r\nDCGM_FI_DEV_POWER_USAGE{gpu="0"} 300\r\n'
    assert only(page).measures == {"accelerator_utilisation": 0.5, "power": 300.0}


def test_openmetrics_is_read() -> None:
    page = (
        "# TYPE target info\n# HELP target Target metadata\n"
        'target_info{service_name="dcgm"} 1\n'
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n# UNIT DCGM_FI_DEV_GPU_UTIL percent\n"
        'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 50 1700000000.25\n'
        "# TYPE errors unknown\n"
        'errors_total{a="b"} 17 1700000000 # {trace_id="KOO5S4vxi0o"} 0.67 1700000000.5\n'
        "# EOF\n"
    )
    (used,) = [series for series in exposition.parse(page) if series.name == "DCGM_FI_DEV_GPU_UTIL"]
    assert (used.value, used.instant) == (50.0, 1_700_000_000_250)
    assert len(exposition.parse(page)) == 3
    plain = exposition.parse("# TYPE build info\nbuild_info 1 1700000000250\n")
    assert plain[0].instant == 1_700_000_000_250


NAMES = st.sampled_from(["a", "A_b:c", "__x", "le", "a_total", "9", "é", ""])
BLANKS = st.sampled_from(["", " ", "\t", "  ", "\u00a0", "\r", "\v"])
VALUES = st.sampled_from(['"', "", "b", "x=y,z", "{c}", "\\\\", '\\"', "\\n", " # ", "\u2028", "#", "'"])
NUMBERS = st.sampled_from(["1", "-2.5e3", "+Inf", "NaN", "1" * 400, "1" * 5000, "1700000000250", ".5", "0x1", "1_0"])


@given(
    name=NAMES,
    labels=st.lists(st.tuples(NAMES, BLANKS, VALUES), max_size=3),
    between=st.sampled_from([",", ", ", ",,", ""]),
    last=st.sampled_from(["", ",", " "]),
    braces=st.booleans(),
    blanks=st.tuples(BLANKS, BLANKS, BLANKS),
    numbers=st.lists(NUMBERS, min_size=1, max_size=2),
    ends=st.sampled_from(["", "# EOF\n"]),
)
def test_lines_in_the_usual_form_are_read_as_the_parser_reads_them(
    name: str,
    labels: list[tuple[str, str, str]],
    between: str,
    last: str,
    braces: bool,
    blanks: tuple[str, str, str],
    numbers: list[str],
    ends: str,
) -> None:
    inside = between.join(f'{label}={blank}"{value}"' for label, blank, value in labels) + last
    line = name + blanks[0] + (f"{{{inside}}}" if braces else "") + blanks[1] + (blanks[2] or " ").join(numbers)

    def read() -> object:
        try:
            return [(entry, repr(entry.value)) for entry in exposition.parse(f"{line}\n{ends}")]
        except MalformedExpositionError:
            return "malformed"

    found = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exposition, "_plain", lambda *_: [])
        by_the_parser = read()
    if "nan" not in repr(found):
        assert found == by_the_parser
    assert repr(found) == repr(by_the_parser)


def test_pages_of_exporters_are_in_the_usual_form() -> None:
    page = PlayedExporter("dcgm-exporter", random.Random("usual")).advance(1_700_000_000.0).text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exposition, "_any", lambda *_: [])
        read = exposition.parse(page)
    assert read == exposition.parse(page) != []
