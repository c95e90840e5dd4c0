"""Explanations can be computed again, and what they say would happen does happen."""

from copy import deepcopy
from typing import Any

import pytest
from index.worlds import ask, without, world

from kuayu_schemas.models import ComputeIndex


def explained(corpus: dict[str, Any], **more: Any) -> dict[tuple[str, str], ComputeIndex]:
    return {(index.device, index.task): index for index in ask(corpus, explain=True, **more).indices}


@pytest.fixture(name="corpus")
def _corpus() -> dict[str, Any]:
    """Most devices measured, one probed once, one not at all, one with gaps in its data sheet."""
    corpus = without(world(), "device-2", "device-3", "device-6")
    corpus["measurements"].append(next(m for m in world()["measurements"] if m["device"] == "device-6"))
    del corpus["devices"][3]["accelerator_memory_bandwidth"]
    return corpus


def test_an_index_can_be_computed_from_its_explanation(corpus: dict[str, Any]) -> None:
    for index in explained(corpus).values():
        assert index.explanation is not None
        terms = index.explanation.terms
        parts = [term.weight / term.ratio for term in terms]
        assert sum(term.weight for term in terms) == pytest.approx(1, abs=1e-9)
        assert index.value == pytest.approx(index.explanation.residual / sum(parts), rel=1e-9)
        assert [term.share for term in terms] == pytest.approx([part / sum(parts) for part in parts], rel=1e-9)
        assert index.explanation.dominant == max(terms, key=lambda term: term.share).capability


def test_the_reference_explains_itself_by_ones(corpus: dict[str, Any]) -> None:
    own = explained(corpus)["device-0", "task-0"].explanation
    assert own is not None
    assert own.residual == pytest.approx(1)
    assert [term.ratio for term in own.terms] == pytest.approx([1.0] * 4)


def test_an_unmeasured_device_has_a_residual_for_its_task_alone(corpus: dict[str, Any]) -> None:
    found = explained(corpus)
    for task in ("task-0", "task-1"):
        one, other = found["device-2", task].explanation, found["device-3", task].explanation
        assert one is not None
        assert other is not None
        assert one.residual == pytest.approx(other.residual, rel=1e-9)


def test_a_task_in_binary32_alone_has_one_term_for_its_arithmetic(corpus: dict[str, Any]) -> None:
    found = explained(corpus)
    shown = {
        task: [term.capability for term in found["device-2", task].explanation.terms] for task in ("task-1", "task-5")
    }
    assert shown == {"task-1": ["matrix", "vector", "memory", "fixed"], "task-5": ["matrix", "memory", "fixed"]}


@pytest.mark.parametrize("name", ["device-2", "device-3"])
def test_levers_of_an_unmeasured_device_do_what_they_say(corpus: dict[str, Any], name: str) -> None:
    formats = {task["id"]: task["precisions"] for task in corpus["tasks"]}
    tried = 0
    for (device, task), index in explained(corpus, devices=[name]).items():
        for lever in index.explanation.levers if index.explanation else []:
            changed = deepcopy(corpus)
            sheet = next(d for d in changed["devices"] if d["id"] == device)
            pull(sheet, lever.capability, lever.factor, formats[task])
            assert explained(changed, devices=[name])[device, task].value == pytest.approx(lever.value, rel=1e-9)
            tried += 1
    assert tried == (17 if name == "device-2" else 11)


def pull(sheet: dict[str, Any], capability: str, factor: float, formats: list[str]) -> None:
    """Change a capability in a data sheet."""
    match capability:
        case "matrix":
            peaks = sheet["peak_matrix_throughput"]
            peaks.update({name: value * factor for name, value in peaks.items() if name in formats})
        case "vector":
            sheet["peak_matrix_throughput"]["fp32"] *= factor
        case "memory":
            sheet["accelerator_memory_bandwidth"] *= factor
        case "scale_out":
            sheet["scale_out_bandwidth"] *= factor


def test_every_stated_capability_has_a_lever_and_none_else(corpus: dict[str, Any]) -> None:
    found = explained(corpus)
    assert [lever.capability for lever in found["device-2", "task-0"].explanation.levers] == [
        "matrix",
        "vector",
        "memory",
    ]
    assert [lever.capability for lever in found["device-3", "task-0"].explanation.levers] == ["matrix", "vector"]


def test_a_task_that_only_several_devices_were_measured_on_depends_on_what_joins_them() -> None:
    corpus = without(world(), "device-2")
    for place, sheet in enumerate(corpus["devices"]):
        sheet["scale_out_bandwidth"] = 1e10 * (place + 1)
    for measurement in corpus["measurements"]:
        if measurement["task"] == "task-2":
            measurement["devices"] = 8
    index = explained(corpus)["device-2", "task-2"]
    assert [term.capability for term in index.explanation.terms][-1] == "scale_out"
    lever = next(lever for lever in index.explanation.levers if lever.capability == "scale_out")
    changed = deepcopy(corpus)
    changed["devices"][2]["scale_out_bandwidth"] *= lever.factor
    assert explained(changed)["device-2", "task-2"].value == pytest.approx(lever.value, rel=1e-9)
    assert lever.value > index.value


def test_work_and_memory_traffic_move_the_weights() -> None:
    heavy, light = without(world(measured=2), "device-1"), without(world(measured=2), "device-1")
    heavy["tasks"][0] |= {"work": 1e12, "memory_traffic": 1e8}
    light["tasks"][0] |= {"work": 1e9, "memory_traffic": 1e8}

    def weight(corpus: dict[str, Any]) -> float:
        own = explained(corpus)["device-1", "task-0"].explanation
        assert own is not None
        return next(term.weight for term in own.terms if term.capability == "matrix")

    assert weight(heavy) > weight(light) + 0.2
