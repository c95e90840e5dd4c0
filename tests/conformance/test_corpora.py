"""Tables of measured throughput: that they can be sent, that they are what the originals say, and what they are for."""

import os
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.corpora import Table, UnknownTable, available, flagperf_gaps, load, shipped, sources
from kuayu_conformance.corpora.sources import shipped_files
from kuayu_conformance.corpora.table import identifier, rows, sheets
from kuayu_schemas.schema import errors, is_valid

PACKAGE = Path(sources.__file__).parent
FACTS = {
    "a100-pcie-40gb": "A100 PCIe",
    "a100-pcie-80gb": "A100 PCIe",
    "a100-sxm-40gb": "A100 SXM",
    "a100-sxm-80gb": "A100 SXM",
    "gaudi2": "Gaudi2",
    "h100-pcie-80gb": "H100 PCIe",
    "h100-sxm-80gb": "H100 SXM",
    "l40s": "L40S",
}
"""Name of a data sheet's chip in the collected facts."""


BESIDE = Path(__file__).parents[2].parent / "shared" / "data"
"""Where the public originals are looked for unless KUAYU_DATA names their folder."""


@pytest.fixture(scope="module")
def data() -> Path:
    """Folder of the public originals."""
    folder = Path(os.environ.get("KUAYU_DATA") or BESIDE)
    if not (folder / sources.GAVEL_FILE).is_file():
        pytest.skip(f"no public originals in {folder} (KUAYU_DATA names another folder), so that no table is compared")
    return folder


def throughput(table: Table, device: str, task: str, devices: int = 1) -> float:
    """The only measurement of a combination."""
    (found,) = (
        measurement["throughput"]
        for measurement in table.corpus["measurements"]
        if (measurement["device"], measurement["task"], measurement.get("devices", 1)) == (device, task, devices)
    )
    return float(found)


def is_whole(table: Table) -> None:
    """Every demand on a table, whether it is shipped or made."""
    assert errors("Corpus", table.corpus) == []
    devices = [device["id"] for device in table.corpus["devices"]]
    tasks = [task["id"] for task in table.corpus["tasks"]]
    cells = [(cell["device"], cell["task"], cell.get("devices", 1)) for cell in table.corpus["measurements"]]
    assert len(set(devices)) == len(devices) == len(table.device_names)
    assert len(set(tasks)) == len(tasks) == len(table.task_names)
    assert len(set(cells)) == len(cells)
    assert {device for device, _, _ in cells} == set(devices) == set(table.device_names)
    assert {task for _, task, _ in cells} == set(tasks) == set(table.task_names)
    assert all(cell["throughput"] > 0 for cell in table.corpus["measurements"])
    assert all(len(group) > 1 and group <= set(devices) for group in table.alike)
    assert all("family" in task for task in table.corpus["tasks"])
    assert table.title
    assert table.source
    assert table.licence


@pytest.mark.parametrize("table", shipped(), ids=lambda table: table.name)
def test_a_shipped_table_can_be_sent_and_names_nothing_that_it_does_not_hold(table: Table) -> None:
    is_whole(table)


@pytest.mark.parametrize("table", shipped(), ids=lambda table: table.name)
def test_a_shipped_table_has_a_licence_that_lets_it_be_shipped(table: Table) -> None:
    assert table.licence in {"MIT", "Apache-2.0"}


@pytest.mark.parametrize("table", shipped(), ids=lambda table: table.name)
def test_a_table_is_the_same_after_it_was_written(table: Table) -> None:
    assert Table.from_json(table.to_json()) == table
    assert Table.from_json(table.to_json()).digest == table.digest


def test_shipped_files_are_what_the_originals_lead_to(data: Path) -> None:
    made = shipped_files(data)
    assert {name: (PACKAGE / name).read_text("utf-8") for name in made} == dict(made)
    assert {f"tables/{table.name}.json" for table in shipped()} == {name for name in made if name.startswith("tables/")}


def test_only_what_one_party_measured_on_six_kinds_of_devices_is_judged() -> None:
    assert {table.name for table in shipped() if table.judged} == {"neusight", "mlperf"}
    table = load("neusight", None)
    assert len(table.device_names) == 8
    assert table.kinds == 7


def test_without_a_data_folder_there_is_what_was_shipped(tmp_path: Path) -> None:
    assert available(None) == shipped()
    assert available(tmp_path) == shipped()


def test_an_unknown_table_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UnknownTable, match="gavel, neusight, mlperf, mlperf-time, zeus, flagperf"):
        load("mlperf-inference", None)


def test_a_table_that_needs_a_data_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownTable, match=r"set KUAYU_DATA to a folder that holds accelerator_benchmarks/lambda"):
        load("lambda", tmp_path)


def test_lambda_is_made_where_its_original_lies(data: Path) -> None:
    table = load("lambda", data)
    is_whole(table)
    assert table.judged
    assert not (PACKAGE / "tables" / "lambda.json").exists()
    assert throughput(table, "A10", "ssd.fp16") == 174
    assert throughput(table, "H100-PCIe-80GB", "bert_base_squad.fp16") == (558 + 567) / 2


def test_lambda_leaves_out_hosts_of_the_later_version(data: Path) -> None:
    """The earlier host's figure for NCF stands alone; with the later hosts' the median would be a third higher."""
    (earlier,) = (
        float(row["throughput"])
        for row in rows(data / "accelerator_benchmarks/lambda_training_throughput.csv")
        if (row["name_gpu"], row["workload"], row["precision"]) == ("H100 80GB SXM5", "ncf", "fp16")
        and row["series"] == "v1"
    )
    assert throughput(load("lambda", data), "H100-SXM-80GB", "ncf.fp16") == pytest.approx(earlier, rel=1e-5)


def test_lambda_believes_no_devices_that_do_far_more_together_than_alone(data: Path) -> None:
    table = load("lambda", data)
    assert any(cell.get("devices", 1) == 8 for cell in table.corpus["measurements"])
    for cell in table.corpus["measurements"]:
        count = cell.get("devices", 1)
        assert cell["throughput"] <= 1.2501 * count * throughput(table, cell["device"], cell["task"])


def test_figures_are_those_that_people_read_in_the_originals() -> None:
    assert throughput(load("gavel", None), "V100", "ResNet-50-batch-size-64") == 4.52576
    assert throughput(load("neusight", None), "Tesla-T4", "bert_large.inf.512x8") == pytest.approx(
        1000 / 694.46454, 1e-5
    )
    assert throughput(load("mlperf", None), "A40", "resnet") == pytest.approx(11323.8 / 8, rel=1e-4)
    assert throughput(load("flagperf", None), "BI-V100", "transformer-pytorch", 8) == 52343
    (power,) = (
        cell["power"]
        for cell in load("zeus", None).corpus["measurements"]
        if (cell["device"], cell["task"]) == ("V100", "shufflenetv2.cifar100.adadelta.1024")
    )
    assert power == pytest.approx(187.7, rel=1e-3)


def test_gavels_steps_of_several_gpus_are_of_all_of_them_together() -> None:
    """Eight K80 do between one and eight times what one does; were their steps in common, it would be up to 64."""
    gavel_table = load("gavel", None)
    several = {cell["task"] for cell in gavel_table.corpus["measurements"] if cell.get("devices") == 8}
    assert len(several) == 10
    for task in several:
        assert 1 < throughput(gavel_table, "K80", task, 8) / throughput(gavel_table, "K80", task) < 8


def test_an_h100_trains_one_and_a_half_to_three_times_as_fast_as_an_a100_in_one_round() -> None:
    table = load("mlperf-time", None)
    tasks = ("bert", "dlrm_dcnv2", "maskrcnn", "resnet", "rnnt", "ssd", "unet3d")
    ratios = {
        task: throughput(table, "H100-SXM.v3.0", task) / throughput(table, "A100-SXM-80GB.v3.0", task) for task in tasks
    }
    assert 1.5 < min(ratios.values()) < max(ratios.values()) < 2.95
    assert ratios["bert"] == pytest.approx(15.752 / 5.3892, rel=0.01)


def test_mlperf_is_told_with_trademark_round_division_and_submitters() -> None:
    for name in ("mlperf", "mlperf-time"):
        source = load(name, None).source
        for word in ("trademark of MLCommons", "v3.0 and v3.1", "closed division", "submitters ASUSTeK, Azure, Dell"):
            assert word in source


def test_rounds_of_mlperf_time_are_devices_of_their_own_that_are_left_out_together() -> None:
    table = load("mlperf-time", None)
    assert frozenset({"H100-SXM.v3.0", "H100-SXM.v3.1"}) in table.alike
    stacks = {device["id"]: device["stack"] for device in table.corpus["devices"]}
    assert stacks["H100-SXM.v3.0"] != stacks["H100-SXM.v3.1"]


def test_bandwidth_between_devices_is_told_where_throughput_depends_on_it() -> None:
    for table in shipped():
        told = {device["id"] for device in table.corpus["devices"] if "scale_out_bandwidth" in device}
        assert told == (set(table.device_names) if table.name.startswith("mlperf") else set())


def test_every_fact_of_a_data_sheet_names_its_source() -> None:
    for sheet in sheets().values():
        assert is_valid("IndexedDevice", {"id": sheet.key, "stack": ""} | sheet.members(scale_out=True))
        assert all(len(fact.source) > 10 for fact in sheet.facts)
        assert len({fact.member for fact in sheet.facts}) == len(sheet.facts)
        assert sheet.facts or sheet.note


def test_there_is_a_data_sheet_for_each_device_of_a_table_and_no_other() -> None:
    by_name = (
        sources.GAVEL_SHEETS,
        sources.LAMBDA_SHEETS,
        sources.MLPERF_SHEETS,
        sources.NEUSIGHT_SHEETS,
        sources.ZEUS_SHEETS,
    )
    used = {sheet for named in by_name for sheet in named.values()}
    assert used | {maker.sheet for maker in sources.FLAGPERF_DEVICES.values()} == set(sheets())


def test_data_sheets_agree_with_facts_that_others_collected(data: Path) -> None:
    collected = {
        (row["chip"], row["metric"]): float(row["value"]) * 1e12
        for row in rows(data / "accelerator_facts/accelerator_facts.csv")
        if row["kind"] == "spec" and row["metric"].startswith("peak_")
    }
    compared = 0
    for key, chip in FACTS.items():
        for fact in sheets()[key].facts:
            _, _, precision = fact.member.partition(".")
            if (chip, f"peak_{precision}") in collected:
                assert fact.value == pytest.approx(collected[chip, f"peak_{precision}"], rel=0.002)
                compared += 1
    assert compared >= 40


def test_memory_bandwidth_agrees_with_what_neusight_lists(data: Path) -> None:
    listed = {row["Device"]: float(row["Mem_Bw"]) * 1e9 for row in _single(data)}
    table = load("neusight", data)
    for device in table.corpus["devices"]:
        name = device["id"].replace("-", " ")
        (expected,) = (value for key, value in listed.items() if key.replace("-", " ") == name)
        assert device["accelerator_memory_bandwidth"] == pytest.approx(expected, rel=0.03)


def _single(data: Path) -> Iterator[dict[str, str]]:
    """Rows of single devices; one row is of two devices seen as one."""
    return (row for row in rows(data / "accelerator_benchmarks/neusight_devices.csv") if row["Dev_Mem"] != "160")


def test_the_gaps_of_chinese_accelerators_are_told_plainly() -> None:
    gaps = {gap.vendor: gap for gap in flagperf_gaps()}
    assert set(gaps) == {"ascend", "cambricon", "dcu", "iluvatar", "kunlunxin", "metax", "mthreads"}
    assert gaps["cambricon"].cells == 0
    assert {vendor for vendor, gap in gaps.items() if gap.speeds} == {"ascend", "iluvatar"}
    assert gaps["metax"].cases_with_utilisation_only == 5
    assert sum(gap.compared for gap in gaps.values()) == 12


def test_an_a100_on_a_page_of_ascend_is_not_an_ascend() -> None:
    """The page bert_hf of Ascend holds eight figures, all of an A100; none of its speeds is taken."""
    assert {gap.vendor: gap.others for gap in flagperf_gaps()}["ascend"] == 8
    taken = [cell for cell in load("flagperf", None).corpus["measurements"] if cell["device"] == "Atlas-800T-A2"]
    assert sorted(cell["throughput"] for cell in taken) == [17456, 27584, 28695.2]


@given(st.text(max_size=200), st.sampled_from(string.ascii_letters + string.digits), st.text(max_size=200))
def test_any_name_with_a_letter_becomes_an_identifier(before: str, letter: str, after: str) -> None:
    cell = {"device": identifier(before + letter + after), "task": "task"}
    assert is_valid("CorpusCell", cell)
