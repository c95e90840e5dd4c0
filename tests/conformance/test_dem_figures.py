"""Verdicts on the demand law from runs made by hand, and what it is asked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conformance.conforming_demand import episode, source

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.demand.demand_requests import counted
from kuayu_conformance.checks.demand.law import (
    DENSE,
    EXPERTS,
    GUESSED,
    Disguise,
    RunDemands,
    RunPrediction,
    UnansweredRun,
    ideal,
    judge,
    observe,
    rankings,
    usual_shares,
)
from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.corpora import training
from kuayu_conformance.corpora.training import Corpus, Run
from kuayu_conformance.episode import Episode, Settings
from kuayu_conformance.findings import Claim, Figure
from kuayu_schemas.models import PlotKind

MODEL: Json = {"layers": 8, "hidden": 1024, "heads": 8, "sequence": 2048, "vocabulary": 32768}
SPREAD: Json = {"data": 4, "tensor": 2, "pipeline": 1, "micro_batch": 1, "global_batch": 64}
RUN = Run(1, "a", "GPT", "", True, MODEL, SPREAD, "machine", 10.0, None, False)
MACHINE: Json = {
    "id": "machine",
    "peak_matrix_throughput": {"bf16": 1e14},
    "accelerator_memory_capacity": 8e10,
    "accelerator_memory_bandwidth": 2e12,
    "devices_per_node": 8,
    "node_bandwidth": 3e11,
    "domain_bandwidth": 2.5e10,
}


def told(error: float, source: str = "a", **members: Any) -> RunPrediction:
    """A run that was told too long, or too short, by a share."""
    run = replace(RUN, source=source, **members)
    predicted = 10.0 * (1 + error)
    return RunPrediction(run, True, predicted, 0.8 * predicted, 1.2 * predicted, 4e10, True, 12.0)


def figure(found: Sequence[RunPrediction], refused: Sequence[UnansweredRun] = ()) -> Figure:
    (only,) = (each for each in judge(RunDemands(tuple(found), tuple(refused))) if isinstance(each, Figure))
    return only


def test_the_figure_is_the_mean_error_whatever_its_sign() -> None:
    found = figure([told(error, source) for source in "abcd" for error in (0.09, -0.09)])
    assert found.estimate == pytest.approx(0.09)
    assert found.bound == pytest.approx(0.09)
    assert found.n == 8


def test_a_law_that_is_just_worse_or_just_better_than_a_tenth() -> None:
    for error, better in ((0.101, False), (0.099, True)):
        found = figure([told(error, source) for source in "abcd"])
        assert (found.bound <= 0.1) is better
        assert (found.estimate <= 0.1) is better


def test_the_bound_is_one_over_sources_and_not_over_runs() -> None:
    """One source in four is far off: a hundred runs of each do not make that surer."""
    few = figure([told(0.4 if source == "a" else 0.05, source) for source in "abcd"])
    many = figure([told(0.4 if source == "a" else 0.05, source) for source in "abcd" for _ in range(100)])
    assert few.bound == pytest.approx(many.bound)
    assert many.bound > many.estimate + 0.05


def test_only_dense_models_count_whose_structure_is_stated_and_whose_source_ships() -> None:
    others = [
        told(5.0, stated=False),
        told(5.0, model={**MODEL, "experts": 8}),
        replace(told(5.0), counts=False),
        told(5.0, step_time=None, memory=4e10),
    ]
    found = figure([told(0.05), *others])
    assert found.estimate == pytest.approx(0.05)
    assert {part.label for part in found.parts} == {DENSE, GUESSED, EXPERTS}
    assert [part.n for part in found.parts] == [1, 1, 1]


def test_a_question_that_is_not_answered_fails() -> None:
    refused = UnansweredRun("a", Answer(0, "POST /v1/training-demands", 422))
    claims = [each for each in judge(RunDemands((), (refused,))) if isinstance(each, Claim)]
    assert [claim.met for claim in claims] == [False]


def test_what_stands_beside_the_figure() -> None:
    found = figure([told(0.05), told(0.2, stated=False), told(0.1, step_time=None, memory=5e10)])
    kinds, sources, memory, layouts = found.tables
    assert [row.cells[0] for row in kinds.rows] == [DENSE, GUESSED, "Calculon itself, its efficiencies measured there"]
    assert "3.7 %" in kinds.rows[-1].cells
    assert kinds.rows[0].cells[-1] == "20.0 %"
    assert len(sources.rows) == 2
    assert memory.rows[0].cells[1:4] == ["1", "20.0 %", "-20.0 %"]
    assert layouts.rows == []
    (plot,) = found.plots
    assert plot.kind is PlotKind.agreement
    assert plot.series[0].x == [10.0]
    assert plot.series[0].y == [10.5]


def test_the_yardstick_is_six_flop_at_the_utilisation_of_others_each_source_counting_once() -> None:
    perfect = 6 * counted(MODEL).active * 64 * 2048 / (1e14 * 8)
    assert ideal(RUN, MACHINE) == pytest.approx(perfect)
    others = [
        replace(RUN, source=source, step_time=perfect / share)
        for source, share in zip("aaab", (0.2, 0.2, 0.2, 0.6), strict=True)
    ]
    assert usual_shares(others, {"machine": MACHINE}) == pytest.approx(0.4)


def test_layouts_are_ranked_by_time_for_a_token_within_one_session() -> None:
    def layout(tensor: int, measured: float, predicted: float, session: str = "") -> RunPrediction:
        spread = {**SPREAD, "tensor": tensor, "data": 8 // tensor}
        return replace(told(0.0, strategy=spread, step_time=measured, session=session), predicted=predicted)

    right = [layout(1, 10, 1), layout(2, 20, 2), layout(4, 30, 3)]
    (found,) = rankings(right)
    assert (found.layouts, found.tau) == (3, 1.0)
    (found,) = rankings([layout(1, 10, 3), layout(2, 20, 2), layout(4, 30, 1)])
    assert found.tau == -1.0
    (found,) = rankings([layout(1, 10, 1), layout(2, 20, 1), layout(4, 30, 1)])
    assert found.tau == 0.0
    assert rankings([*right[:2], layout(4, 30, 3, "another day")]) == []
    (found,) = rankings([*right[:2], layout(4, 20.1, 1.5)])  # two layouts are as fast as each other
    assert found.tau == 1.0


def test_the_disguise_leaves_every_quotient_of_physics_as_it_was() -> None:
    for seed in range(20):
        disguise = Disguise(Random(seed), {"machine": MACHINE}, ["a"])
        slow, run = disguise.machine(MACHINE), disguise.measured(replace(RUN, memory=4e10))
        assert 0.8 <= disguise.pace <= 1.25
        for name in ("accelerator_memory_bandwidth", "node_bandwidth", "domain_bandwidth"):
            assert slow[name] * run["step_time"] == pytest.approx(MACHINE[name] * 10.0)
        assert slow["peak_matrix_throughput"]["bf16"] * run["step_time"] == pytest.approx(1e15)
        assert slow["accelerator_memory_capacity"] == MACHINE["accelerator_memory_capacity"]
        assert run["memory"] == 4e10
        assert {"machine", "a"}.isdisjoint({slow["id"], run["source"], run["hardware"]})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """Three sources, each at its own share of the peak."""
    runs = [
        replace(
            RUN,
            row=row,
            source=source,
            step_time=ideal(RUN, MACHINE) / share,
            strategy={**SPREAD, "tensor": tensor, "data": 8 // tensor},
        )
        for row, (source, share, tensor) in enumerate(
            (source, share, tensor) for source, share in (("a", 0.4), ("b", 0.44), ("c", 0.36)) for tensor in (1, 2, 4)
        )
    ]
    runs.append(replace(RUN, row=99, source="a", step_time=None, memory=None, failed=True))
    corpus = Corpus(
        dict.fromkeys("abc", training.shipped().sources["llm-foundry-bench"]), {"machine": MACHINE}, tuple(runs)
    )
    monkeypatch.setattr("kuayu_conformance.corpora.training.shipped", lambda: corpus)
    return corpus


def test_a_source_is_asked_for_without_any_of_its_runs(small: Corpus) -> None:
    settings = Settings("stories", "run", full=False, features=frozenset(), limits={}, other_tenant=False)
    served = source()
    found = observe(Episode("dem_law", settings, served))
    assert len(found.predictions) == len(small.runs)
    assert [len(body["cases"]) for body in served.bodies] == [4, 3, 3]
    assert [len(body["runs"]) for body in served.bodies] == [6, 6, 6]
    for body in served.bodies:
        assert len({run["source"] for run in body["runs"]}) == 2
        names = {"machine", "a", "b", "c", "GPT"}
        assert names.isdisjoint({run["source"] for run in body["runs"]} | {each["id"] for each in body["hardware"]})
        assert names.isdisjoint(case["id"] for case in body["cases"])
    assert all(
        each.run.step_time is None or each.predicted == pytest.approx(each.run.step_time, rel=0.5)
        for each in found.predictions
    )


@pytest.mark.usefixtures("small")
def test_a_service_is_told_its_error_on_the_clock_of_the_source() -> None:
    """Half as long as before is an error of a half more, whatever the pace."""
    conforming = figure(observe(episode("dem_law")).predictions)

    def halved(path: str, body: Json, answer: Json) -> Json:
        del path, body
        for row in answer["demands"]:
            row["step_time"] = {
                name: value / 2 if name != "coverage" else value for name, value in row["step_time"].items()
            }
        return answer

    assert conforming.n == 9
    assert conforming.estimate < 0.3
    assert figure(observe(episode("dem_law", halved)).predictions).estimate > 0.35


def test_a_full_run_leaves_whole_teams_out_too(small: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        name: replace(source, name=name, team="" if name == "c" else "both") for name, source in small.sources.items()
    }
    corpus = replace(small, sources=sources)
    monkeypatch.setattr("kuayu_conformance.corpora.training.shipped", lambda: corpus)
    settings = Settings("stories", "run", full=True, features=frozenset(), limits={}, other_tenant=False)
    served = source()
    found = observe(Episode("dem_law", settings, served))
    assert [len(body["runs"]) for body in served.bodies] == [6, 6, 6, 3]
    assert {each.run.source for each in found.apart} == {"a", "b"}
    (only,) = (each for each in judge(found) if isinstance(each, Figure))
    assert only.n == 9
    assert "every source of the same team" in only.tables[-1].title


@pytest.mark.usefixtures("small")
def test_papers_of_a_data_folder_are_asked_for_and_never_sent_nor_judged(tmp_path: Path) -> None:
    columns = {
        "source": "opt-2205.01068", "model": "OPT-175B", "params_b": "175", "layers": "96", "hidden": "12288",
        "heads": "96", "seq_len": "2048", "global_batch": "1024", "accelerator": "A100-SXM-80GB", "n_accel": "992",
        "tp": "8", "pp": "1", "dp": "124", "other_parallel": "fsdp;recompute=full", "measured_tflops_per_accel": "147",
        "step_time_s": "", "tokens_per_s": "", "notes": "PAPER-RECALLED",
    }  # fmt: skip
    table = tmp_path / training.FILES["training-runs"]
    table.parent.mkdir()
    table.write_text(f"{','.join(columns)}\n{','.join(columns.values())}\n", "utf-8")
    traces = {"training-runs": tmp_path}
    settings = Settings(
        "stories", "run", full=False, features=frozenset(), limits={}, other_tenant=False, traces=traces
    )
    served = source()
    found = observe(Episode("dem_law", settings, served))
    assert [len(body["runs"]) for body in served.bodies] == [6, 6, 6, 9]
    assert [each.run.name for each in found.predictions if not each.counts] == ["OPT-175B"]
    assert figure(found.predictions).n == 9


@pytest.mark.usefixtures("small")
def test_demands_in_another_order_or_of_other_cases_are_refused() -> None:
    def reversed_rows(path: str, body: Json, answer: Json) -> Json:
        del path, body
        answer["demands"].reverse()
        return answer

    found = observe(episode("dem_law", reversed_rows))
    assert [refused.source for refused in found.refused] == ["a", "b", "c"]
    assert not found.predictions
