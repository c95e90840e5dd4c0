"""Layouts over the wire: what is told is the quickest that can run, and what its case would be told."""

from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest
from demand.requests import EXPERTS, HARDWARE, MODEL, REVISION, layouts

from kuayu.demand.demand_report import demand
from kuayu.demand.parse import hardware_of, structure_of
from kuayu.demand.search import rank, rank_feasible, search
from kuayu.demand.strategy import Strategy
from kuayu.refusals import Impossible, RepeatedName, UnknownName
from kuayu_schemas import schema


def ranking(**changes: Any) -> dict[str, Any]:
    asked = layouts(**changes)
    assert schema.errors("LayoutRequest", asked) == []
    report = rank(asked)
    assert schema.errors("LayoutReport", report) == []
    return report


@pytest.mark.parametrize("model", [MODEL, EXPERTS])
def test_layouts_come_by_their_time_and_have_that_of_their_case(model: dict[str, Any]) -> None:
    report = ranking(model=model, layouts=20)
    found = report["layouts"]
    assert len(found) == 20
    assert all(first["step_time"]["expected"] <= second["step_time"]["expected"] for first, second in pairwise(found))
    cases = [
        {"id": f"c-{number}", "model": model, "strategy": each["strategy"], "hardware": "a"}
        for number, each in enumerate(found)
    ]
    told = demand({"revision": REVISION, "hardware": [HARDWARE], "cases": cases})["demands"]
    for each, same in zip(found, told, strict=True):
        strategy = each["strategy"]
        assert strategy["data"] * strategy["tensor"] * strategy["pipeline"] * strategy["context"] == 16
        assert strategy["global_batch"] % (strategy["data"] * strategy["micro_batch"]) == 0
        assert same["fits"]
        assert same["step_time"] == pytest.approx(each["step_time"])
        assert (same["memory"], same["utilisation"]) == (each["memory"], each["utilisation"])


@pytest.mark.parametrize("model", [MODEL, EXPERTS])
def test_the_quick_search_finds_what_the_whole_one_finds(model: dict[str, Any]) -> None:
    structure, hardware = structure_of(model), hardware_of(HARDWARE).of(16)
    common = Strategy(global_batch=64, sequence_parallel=True)
    quick, whole = rank_feasible(structure, hardware, common), search(structure, hardware, common)
    assert len(quick.order) == len(whole.order)
    assert [quick.demand.layouts.row(int(row)) for row in quick.order[:30]] == whole.best(30)
    assert len(quick.order) <= quick.considered < len(whole.demand.layouts)


def test_where_nothing_fits_there_are_none() -> None:
    report = ranking(model=MODEL | {"layers": 100, "hidden": 32768, "heads": 256}, devices=2)
    assert (report["feasible"], report["layouts"]) == (0, [])
    assert report["considered"] > 0
    assert ranking(precision="fp8")["layouts"] == []


def test_no_more_are_told_than_asked_for_and_ten_where_nothing_is_said() -> None:
    assert len(ranking(layouts=3)["layouts"]) == 3
    assert len(ranking()["layouts"]) == 10
    assert len(ranking(devices=1, global_batch=1, layouts=1000)["layouts"]) < 1000


def test_more_layouts_than_are_looked_at_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("kuayu.demand.search"), "MAX_LAYOUTS", 50)
    report = ranking()
    assert 0 < report["considered"] <= 50


def test_what_does_not_hold_together_is_refused() -> None:
    with pytest.raises(UnknownName, match="/kind: "):
        rank(layouts(kind="b"))
    with pytest.raises(RepeatedName, match="/hardware/1/id"):
        rank(layouts(hardware=[HARDWARE, HARDWARE]))
    with pytest.raises(Impossible, match="/model/experts_per_token"):
        rank(layouts(model=MODEL | {"experts_per_token": 3}))
    with pytest.raises(Impossible, match="/precision"):
        rank(layouts(precision="unknown"))
