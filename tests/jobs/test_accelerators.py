"""Kinds of accelerators: their names, and what one is worth beside the others."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs.federations import A100, ASCEND, DOUBLE, H100, PEAK, Json, node

from kuayu.jobs.accelerators import (
    REFERENCE_PEAK,
    REFERENCE_SHARE,
    accelerator_name,
    kinds_of,
    main_kind,
    offered,
    profile_of,
    sustained_of,
)
from kuayu_schemas import schema

IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def index(offer: list[Json], name: str, profile: str = "training") -> float:
    """Compute index of an accelerator."""
    [found] = [each for each in offer if each["id"] == name]
    values: dict[str, float] = {each["profile"]: each["value"] for each in found["indices"]}
    return values[profile]


def test_a_name_is_what_people_would_write_and_says_the_vendor_once() -> None:
    assert accelerator_name("NVIDIA", "NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"
    assert accelerator_name("NVIDIA", "H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"
    assert accelerator_name("nvidia ", "h100-80GB  HBM3") == "nvidia-h100-80gb-hbm3"


def test_names_in_other_scripts_stay_apart() -> None:
    one, other = accelerator_name("华为", "昇腾 910B"), accelerator_name("华为", "鲲鹏 910B")
    assert one.startswith("910b-")
    assert one != other


@given(st.text(max_size=300), st.text(max_size=300))
def test_every_vendor_and_model_make_an_identifier(vendor: str, model: str) -> None:
    name = accelerator_name(vendor, model)
    assert IDENTIFIER.fullmatch(name)
    assert name == accelerator_name(vendor, model)


def test_devices_of_one_kind_are_counted_together_and_the_least_of_their_memories_counts() -> None:
    small = A100 | {"memory_capacity": 42e9}
    kinds = kinds_of([node("a", "d"), node("b", "d", 4, small)])
    assert list(kinds) == ["nvidia-a100-sxm4-80gb"]
    assert kinds["nvidia-a100-sxm4-80gb"].devices == 12
    offer, notes = offered(kinds, {}, ["training"])
    assert offer[0]["memory"] == 42e9
    assert any("memories differ" in note for note in notes)


def test_a_node_of_two_kinds_counts_as_the_one_of_which_it_has_most() -> None:
    mixed = node("a", "d", 2)
    mixed["devices"] += [{"id": f"h{n}", **H100} for n in range(3)]
    assert main_kind(mixed) == ("nvidia-h100-80gb-hbm3", 3, 2)


def test_registered_peaks_are_compared_with_the_reference() -> None:
    offer, notes = offered(kinds_of([node("a", "d"), node("b", "d", 8, H100 | DOUBLE)]), {}, ["training"])
    assert index(offer, "nvidia-a100-sxm4-80gb") == 1.0
    assert index(offer, "nvidia-h100-80gb-hbm3") == 2.0
    assert notes == []
    assert all(schema.is_valid("OfferedAccelerator", each) for each in offer)


def test_what_was_measured_counts_once_it_was_measured_on_all_kinds() -> None:
    """One kind alone that was measured says nothing of how it stands to the others."""
    nodes = [node("a", "d", 2), node("b", "d", 2, H100 | DOUBLE)]
    slow = {("a", "0"): {"bf16": 200e12}, ("a", "1"): {"bf16": 220e12}}
    quick = {("b", "0"): {"bf16": 500e12}}
    kinds = kinds_of(nodes)
    offer, _ = offered(kinds, sustained_of(nodes, slow), ["training"])
    assert index(offer, "nvidia-a100-sxm4-80gb") == 1.0
    offer, notes = offered(kinds, sustained_of(nodes, slow | quick), ["training"])
    reference = REFERENCE_PEAK["bf16"] * REFERENCE_SHARE
    assert index(offer, "nvidia-a100-sxm4-80gb") == pytest.approx(210e12 / reference, rel=1e-3)
    assert index(offer, "nvidia-h100-80gb-hbm3") == pytest.approx(500e12 / reference, rel=1e-3)
    assert notes == []


def test_without_a_registered_peak_the_data_sheet_stands_and_that_is_said() -> None:
    offer, notes = offered(kinds_of([node("a", "d", 8, H100), node("b", "d", 8, ASCEND)]), {}, ["training"])
    assert index(offer, "nvidia-h100-80gb-hbm3") == pytest.approx(989 / 312, rel=1e-3)
    assert index(offer, "huawei-ascend-910b") == pytest.approx(376 / 312, rel=1e-3)
    assert [note.split(":")[0] for note in notes] == ["huawei-ascend-910b", "nvidia-h100-80gb-hbm3"]


def test_a_kind_of_which_nothing_is_known_counts_as_one_reference_device_and_that_is_said() -> None:
    offer, notes = offered(
        kinds_of([node("a", "d", 1, {"kind": "gpu", "vendor": "X", "model": "Y"})]), {}, ["training"]
    )
    assert index(offer, "x-y") == 1.0
    assert any("nothing is known" in note for note in notes)
    assert any("nobody states its memory" in note for note in notes)
    assert schema.is_valid("OfferedAccelerator", offer[0])


def test_a_job_in_eight_bits_has_a_profile_of_its_own_in_which_devices_without_them_count_by_sixteen() -> None:
    request = {"training": {"model": {}, "strategy": {"precision": "fp8"}, "steps": 1}}
    assert profile_of(request) == "training-fp8"
    assert profile_of({}) == profile_of({"training": {"strategy": {"precision": "fp16"}}}) == "training"
    eight = H100 | {"peak_matrix_throughput": {"bf16": 312e12, "fp8": 624e12}}
    offer, _ = offered(kinds_of([node("a", "d", 8, A100 | PEAK), node("b", "d", 8, eight)]), {}, ["training-fp8"])
    assert index(offer, "nvidia-a100-sxm4-80gb", "training-fp8") == 1.0
    assert index(offer, "nvidia-h100-80gb-hbm3", "training-fp8") == 2.0
