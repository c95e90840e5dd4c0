"""Checks of demand against a service that keeps to the text, and against the same with one thing wrong."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from conformance.conforming_demand import episode

from kuayu_conformance.check import Check
from kuayu_conformance.checks import CHECKS
from kuayu_conformance.checks.demand.demand_requests import DEMANDS, LAYOUTS
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.findings import Claim, Finding

Wrong = Callable[[Json, Json], Any]


def check_of(name: str) -> Check[Any]:
    return next(check for check in CHECKS if check.name == name).load()


def findings(name: str, path: str = "", wrong: Wrong | None = None) -> list[Finding]:
    """What a check finds where right answers of one operation are changed in place."""

    def change(of: str, body: Json, answer: Json) -> Json:
        if wrong and of == path and "type" not in answer:
            wrong(body, answer)
        return answer

    check = check_of(name)
    return list(check.judge(check.observe(episode(name, change))))


def unmet(found: Iterable[Finding]) -> list[str]:
    return [f"{each.expected} | {each.found}" for each in found if isinstance(each, Claim) and not each.met]


@pytest.mark.parametrize("name", ["dem_whole", "dem_phases", "dem_layouts"])
def test_a_service_that_keeps_to_the_text_is_found_to(name: str) -> None:
    found = findings(name)
    assert unmet(found) == []
    assert {each.requirement for each in found} == set(check_of(name).requirements)


def of_rows(change: Callable[[Json, Json], Any]) -> Wrong:
    """A change of every demand, which sees its case too."""

    def wrong(body: Json, answer: Json) -> None:
        for case, row in zip(body["cases"], answer["demands"], strict=True):
            change(case, row)

    return wrong


def scaled(name: str, factor: float) -> Wrong:
    """One figure of every demand, multiplied."""
    return of_rows(lambda _, row: row.update({name: row[name] * factor}))


def part_scaled(name: str, factor: Callable[[Json], float]) -> Wrong:
    """One part of memory, multiplied by what its case says, and the whole with it."""

    def change(case: Json, row: Json) -> None:
        for each in row["memory_parts"]:
            if each["part"] == name:
                each["size"] *= factor(case)
        row["memory"] = sum(each["size"] for each in row["memory_parts"])

    return of_rows(change)


def causal(case: Json, row: Json) -> None:
    """Half of the scores only, in work and executed work."""
    model, tokens = case["model"], case["strategy"]["global_batch"] * case["model"]["sequence"]
    head = model.get("head_width", model["hidden"] // model["heads"])
    row["work"] -= 3 * tokens * 2 * model["layers"] * model["heads"] * head * model["sequence"]


def holed(_: Json, row: Json) -> None:
    for segment in row.get("segments", [])[1:]:
        segment["begin"] *= 1.02


def short(_: Json, row: Json) -> None:
    for segment in row.get("segments", [])[1:]:
        segment["duration"] *= 0.8


def busier(_: Json, row: Json) -> None:
    for segment in row.get("segments", []):
        for flow in segment["traffic"]:
            flow["flow"] *= 1.06


def silent(_: Json, row: Json) -> None:
    for segment in row.get("segments", []):
        segment["traffic"] = []


def doubled(_: Json, row: Json) -> None:
    row["memory_parts"].append(dict(row["memory_parts"][0]))
    row["memory"] = sum(each["size"] for each in row["memory_parts"])


def optimistic(_: Json, row: Json) -> None:
    row.update(fits=True, obstacles=[])


def mute(_: Json, row: Json) -> None:
    row["obstacles"] = []


def tensor_copies(case: Json) -> float:
    return float(case["strategy"]["tensor"])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (scaled("parameters", 1.011), "parameters of"),
        (scaled("active_parameters", 0.989), "active_parameters of"),
        (scaled("work", 1.011), "work of"),
        (of_rows(causal), "work of"),
        (scaled("executed_work", 0.9), "executed work of"),
        (scaled("utilisation", 1.011), "utilisation"),
        (scaled("memory", 1.011), "sum of memory parts"),
        (scaled("devices", 2), "accelerators"),
        (of_rows(doubled), "each part of memory once"),
        (of_rows(lambda _, row: row["step_time"].update(coverage=0.5)), "an interval of 0.9"),
        (of_rows(lambda _, row: row["step_time"].update(low=2 * row["step_time"]["expected"])), "an interval of"),
        (of_rows(lambda _, row: row["traffic"].clear()), "several members"),
        (
            of_rows(lambda _, row: row["traffic"].append({"dimension": "expert", "link": "node", "size": 1.0})),
            "has one member",
        ),
        (of_rows(lambda _, row: row.pop("segments", None)), "the inside of a step"),
        (of_rows(holed), "one after the other"),
        (of_rows(short), "end of the last segment"),
        (of_rows(busier), "segments carry traffic"),
        (of_rows(silent), "segments carry traffic"),
        (part_scaled("parameters", lambda case: tensor_copies(case) ** 1.1), "never raises memory of parameters"),
        (part_scaled("parameters", tensor_copies), "less than half the memory of one"),
        (
            part_scaled("optimizer", lambda case: 1.02 if case["strategy"].get("sharding", 0) else 1.0),
            "divides memory of the optimiser",
        ),
        (
            part_scaled("gradients", lambda case: 8.0 if case["strategy"].get("sharding", 0) > 1 else 1.0),
            "memory of gradients falls",
        ),
        (
            part_scaled("activations", lambda case: 90.0 if case["strategy"].get("recomputation") == "full" else 1.0),
            "memory of activations falls",
        ),
        (of_rows(optimistic), "fits exactly where"),
        (of_rows(optimistic), "more stages than layers: told"),
        (of_rows(mute), "obstacles where it cannot run"),
        (lambda _, answer: answer["demands"].reverse(), "in their order"),
    ],
)
def test_parts_that_make_no_whole_are_seen(wrong: Wrong, said: str) -> None:
    assert any(said in each for each in unmet(findings("dem_whole", DEMANDS, wrong)))


def test_counts_that_are_off_by_less_than_a_hundredth_are_right() -> None:
    for name in ("parameters", "active_parameters", "memory"):
        assert not unmet(
            each for each in findings("dem_whole", DEMANDS, scaled(name, 1.002)) if f"{name} of" in str(each)
        )


def test_executed_work_may_hold_the_scores_that_fused_attention_computes_once_more() -> None:
    from kuayu_conformance.checks.demand.demand_requests import counted

    def more(case: Json, row: Json) -> None:
        if case["strategy"].get("fused_attention", True):
            tokens = case["strategy"]["global_batch"] * case["model"]["sequence"]
            row["executed_work"] += tokens * counted(case["model"]).score_work

    assert unmet(findings("dem_whole", DEMANDS, of_rows(more))) == []


def of_phases(change: Callable[[Json, Json], Any]) -> Wrong:
    """A change of every phase, which sees its case too."""

    def each(case: Json, row: Json) -> None:
        for phase in row.get("phases", []):
            change(case, phase)

    return of_rows(each)


def all_devices(case: Json, phase: Json) -> None:
    spread = case["strategy"]
    phase["devices"] = spread["data"] * spread["tensor"] * spread["pipeline"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (of_phases(all_devices), "at most a tenth"),
        (of_phases(all_devices), "accelerators"),
        (of_phases(lambda _, phase: phase.update(devices=phase["devices"] + 1)), "accelerators"),
        (of_phases(lambda _, phase: phase.update(work=phase["work"] * 1.011)), "FLOP"),
        (of_phases(lambda _, phase: phase.update(duration=phase["duration"] * 1.011)), "lasts"),
        (of_phases(lambda _, phase: phase.update(duration=phase["duration"] * 1.5)), "at most a tenth"),
        (
            of_phases(
                lambda _, phase: phase.update(step_time=phase["step_time"] * 1.02, duration=phase["duration"] * 1.02)
            ),
            "step_time as on its own",
        ),
        (of_phases(lambda _, phase: phase.update(memory=phase["memory"] * 0.98)), "memory as on its own"),
        (of_phases(lambda _, phase: phase.update(traffic=phase["traffic"] * 1.1)), "traffic of a step"),
        (of_rows(lambda _, row: row.pop("phases", None)), "phases ["),
        (of_rows(lambda _, row: row.get("phases", []).reverse()), "phases ["),
    ],
)
def test_phases_that_are_told_wrong_are_seen(wrong: Wrong, said: str) -> None:
    assert any(said in each for each in unmet(findings("dem_phases", DEMANDS, wrong)))


def of_layouts(change: Callable[[Json], Any]) -> Wrong:
    """A change of every layout."""
    return lambda _, answer: [change(row) for row in answer["layouts"]]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda _, answer: answer["layouts"].reverse(), "by rising expected time"),
        (lambda _, answer: answer.update(layouts=answer["layouts"][:1] * 2), "no strategy twice"),
        (lambda _, answer: answer.update(layouts=answer["layouts"] * 4), "at most 10 layouts"),
        (lambda _, answer: answer.update(layouts=[], feasible=0), "since there is room"),
        (lambda _, answer: answer.update(considered=0), "no more than were considered"),
        (lambda _, answer: answer.update(feasible=0), "no more than were considered"),
        (lambda _, answer: answer.update(feasible=1), "no layout of a model that has no room"),
        (of_layouts(lambda row: row["strategy"].update(data=2 * row["strategy"]["data"])), "makes up that number"),
        (of_layouts(lambda row: row["strategy"].update(micro_batch=7)), "in whole micro-batches"),
        (of_layouts(lambda row: row["strategy"].update(global_batch=8)), "in whole micro-batches"),
        (of_layouts(lambda row: row["strategy"].update(precision="fp8")), "in bf16"),
        (of_layouts(lambda row: row["strategy"].update(sharding=0)), "memory as for a case"),
        (of_layouts(lambda row: row.update(memory=1e12)), "at most"),
        (of_layouts(lambda row: row.update(memory=row["memory"] * 0.98)), "memory as for a case"),
        (
            of_layouts(lambda row: row["step_time"].update(expected=row["step_time"]["expected"] * 1.02)),
            "step time as for a case",
        ),
        (of_layouts(lambda row: row.update(utilisation=0.9)), "utilisation"),
    ],
)
def test_layouts_that_are_told_wrong_are_seen(wrong: Wrong, said: str) -> None:
    assert any(said in each for each in unmet(findings("dem_layouts", LAYOUTS, wrong)))


def test_a_demand_that_does_not_fit_where_its_layout_was_recommended_is_seen() -> None:
    wrong = of_rows(lambda _, row: row.update(fits=False, obstacles=["none"]))
    assert any("fits as a case too" in each for each in unmet(findings("dem_layouts", DEMANDS, wrong)))
