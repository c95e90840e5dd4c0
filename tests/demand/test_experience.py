"""What runs teach: where the expectation goes, and how wide intervals are."""

from typing import Any

import numpy as np
import pytest
from demand.requests import HARDWARE, MODEL, REVISION, STRATEGY, case, request

from kuayu.demand.demand_report import demand
from kuayu.demand.experience import MIN_SOURCES

SIZES = [MODEL | {"layers": layers, "hidden": hidden} for layers in (8, 16, 24) for hidden in (1024, 2048, 4096)]


def runs_of(sources: int, slower: float, apart: float = 0.0, each: int = 9) -> list[dict[str, Any]]:
    """Runs of so many sources, all so much slower than expected without runs, and apart from one another at random."""
    chance = np.random.default_rng(7)
    cases = [case(f"c-{number}", model=model) for number, model in enumerate(SIZES[:each])]
    expected = [told["step_time"]["expected"] for told in demand(request(*cases))["demands"]]
    habits = chance.normal(0.0, apart, sources)
    return [
        {
            "source": f"s-{source}",
            "model": SIZES[number],
            "strategy": STRATEGY,
            "hardware": "a",
            "step_time": step * slower * float(np.exp(habits[source])),
        }
        for source in range(sources)
        for number, step in enumerate(expected)
    ]


def told(runs: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    report = demand(request(case(model=SIZES[4]), runs=runs, **changes))
    assert report["method"]["runs"] == len([run for run in runs if "step_time" in run])
    step: dict[str, Any] = report["demands"][0]["step_time"]
    return step


def width(step: dict[str, Any]) -> float:
    return float(step["high"] / step["low"])


def test_runs_that_are_slower_make_the_expectation_slower_but_not_all_the_way() -> None:
    before, after = told([])["expected"], told(runs_of(6, slower=1.3))["expected"]
    assert 1.1 < after / before < 1.3


def test_own_runs_pull_as_far_as_they_agree() -> None:
    before = told([])["expected"]
    agreeing = told(runs_of(1, slower=1.3, each=3))["expected"] / before
    single = told(runs_of(1, slower=1.3, each=1))["expected"] / before
    scattered = [
        run | {"step_time": run["step_time"] * by}
        for run, by in zip(runs_of(1, slower=1.3, each=3), (0.4, 1.0, 2.5), strict=True)
    ]
    assert 1.2 < single < agreeing < 1.3
    assert abs(told(scattered)["expected"] / before - 1) < (agreeing - 1) / 2


def test_one_own_run_brings_its_like_within_six_per_cent() -> None:
    """However fast or slow a source is between three quarters of the pace expected and four thirds."""
    for slower in (0.75, 0.9, 1.1, 4 / 3):
        runs = runs_of(1, slower=slower)
        expected = told(runs[:1])["expected"]
        assert expected == pytest.approx(runs[4]["step_time"], rel=0.06)


def test_sources_that_do_not_agree_pull_less_than_one_that_does() -> None:
    before = told([])["expected"]
    one, apart = told(runs_of(1, slower=1.3))["expected"], told(runs_of(2, slower=1.3, apart=0.5))["expected"]
    mean = np.exp(np.random.default_rng(7).normal(0.0, 0.5, 2).mean()) * 1.3
    assert abs(np.log(apart / before)) < abs(np.log(mean)) * np.log(one / before) / np.log(1.3)


def test_runs_of_other_hardware_or_other_software_change_no_expectation() -> None:
    runs = runs_of(3, slower=1.4)
    other = [run | {"strategy": run["strategy"] | {"fused_attention": False}} for run in runs]
    assert told(other)["expected"] == told([])["expected"]
    assert told([run | {"hardware": "b"} for run in runs], hardware=[HARDWARE, HARDWARE | {"id": "b"}])[
        "expected"
    ] == pytest.approx(told([])["expected"])


def test_a_wider_coverage_is_a_wider_interval_around_the_same_expectation() -> None:
    narrow, usual, wide = (told([], **changes) for changes in ({"coverage": 0.5}, {}, {"coverage": 0.99}))
    assert narrow["expected"] == usual["expected"] == wide["expected"]
    assert (narrow["coverage"], usual["coverage"], wide["coverage"]) == (0.5, 0.9, 0.99)
    assert 1 < width(narrow) < width(usual) < width(wide)


def test_sources_that_agree_make_intervals_narrower_and_those_that_do_not_wider() -> None:
    alike, apart = (told(runs_of(8, slower=1.0, apart=apart)) for apart in (0.0, 0.4))
    assert width(alike) < width(told([])) < width(apart)


def test_own_runs_that_agree_make_intervals_narrower() -> None:
    few = told(runs_of(MIN_SOURCES - 1, slower=1.0))
    assert width(told(runs_of(1, slower=1.0))) < width(few) < width(told([]))


def test_intervals_hold_their_share_of_sources_that_nobody_has_seen() -> None:
    """New sources drawn as those in the request were: about four of five steps lie in intervals of 80 %, not all."""
    chance, inside = np.random.default_rng(11), []
    runs, expected = runs_of(6, slower=1.0), told([])["expected"]
    for _ in range(60):
        habits = np.exp(chance.normal(0, 0.15, 7))
        known = [run | {"step_time": run["step_time"] * habits[int(run["source"][2:])]} for run in runs]
        step = told(known, coverage=0.8)
        inside.append(step["low"] <= expected * habits[6] <= step["high"])
    assert 0.65 < np.mean(inside) < 0.97


def test_a_run_without_a_time_teaches_nothing() -> None:
    silent = {"source": "s", "model": MODEL, "strategy": STRATEGY, "hardware": "a", "memory": 1e10}
    assert told([silent]) == told([])


def test_names_tell_nothing() -> None:
    runs = runs_of(4, slower=1.2, apart=0.1)
    renamed = [run | {"source": f"x-{run['source']}", "hardware": "b"} for run in runs]
    asked = {
        "revision": REVISION,
        "hardware": [HARDWARE | {"id": "b"}],
        "runs": renamed,
        "cases": [case(model=SIZES[4], hardware="b")],
    }
    assert demand(asked)["demands"][0]["step_time"] == told(runs)
