"""Pictures of phases: what is drawn, and of which runs."""

import json
import re
from pathlib import Path

import numpy as np

from kuayu.forecast.phases import boundaries
from kuayu_training.forecast.phases import MEGATRON, Curve
from kuayu_training.forecast.phases_pictures import LINE, draw, drawing, longest, model


def curve(name: str, points: int = 2000, source: str = MEGATRON) -> Curve:
    """Falls by a power of its steps until it rests at its floor; the learning rate rises for a hundredth."""
    steps = np.arange(1, points + 1, dtype=np.float64)
    losses = 2 + 8 / (1 + (steps / 30) ** 1.5)
    return Curve(name, source, steps, losses, np.minimum(steps, points / 100) * 1e-5)


def boxes(svg: str) -> list[tuple[int, float, float, float]]:
    found = re.findall(r'class="phase-(\d)".*? x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', svg)
    return [(int(phase), float(x), float(y), float(width)) for phase, x, y, width in found]


def test_bands_begin_where_phases_do_and_touch_each_other() -> None:
    its = curve("gpt/gpt3_15b_release/dev/H100")
    begin, stable = boundaries(its.steps, its.losses, its.rates)
    svg = drawing(its, [])
    bands = boxes(svg)
    assert [phase for phase, *_ in bands] == [1, 2, 3]
    (_, left, _, first), (_, second, _, width), (_, third, _, last) = bands
    whole = third + last - left
    # Steps are logarithmic across.
    assert abs((second - left) / whole - np.log(its.steps[begin]) / np.log(its.steps[-1])) < 0.001
    assert abs((third - left) / whole - np.log(its.steps[stable]) / np.log(its.steps[-1])) < 0.001
    assert abs(left + first - second) < 0.11
    assert abs(second + width - third) < 0.11


def test_what_was_said_is_a_strip_of_its_own_in_which_equal_answers_are_one_box() -> None:
    its = curve("gpt/gpt3_15b_release/dev/H100")
    svg = drawing(its, [(0, 0), (9, 0), (99, 1), (499, 1), (1999, 2)])
    strip = [box for box in boxes(svg) if box[2] > boxes(svg)[0][2]]
    assert [phase for phase, *_ in strip] == [1, 2]


def test_a_line_is_thinned() -> None:
    svg = drawing(curve("t5/t5_release/dev/H100", points=50_000), [])
    (points,) = re.findall(r'points="([^"]*)"', svg)
    assert 50 < len(points.split()) <= LINE


def test_of_each_model_the_run_with_the_most_points_is_drawn() -> None:
    runs = [
        curve("gpt/gpt3_15b_release/dev/A100", 500),
        curve("gpt/gpt3_15b_release_sm/dev/H100", 900),
        curve("t5/t5_release/dev/H100", 300),
        curve("L8BN002", 400, "llama31_8b"),
        curve("L8BN001", 400, "llama31_8b"),
    ]
    assert {name: each.name for name, each in longest(runs).items()} == {
        "gpt3": "gpt/gpt3_15b_release_sm/dev/H100",
        "mlperf-llama31_8b": "L8BN001",
        "t5": "t5/t5_release/dev/H100",
    }
    assert {model(each) for each in runs} == set(longest(runs))


def test_drawings_and_what_they_are_of_are_written(tmp_path: Path) -> None:
    made = draw([curve("gpt/gpt3_15b_release/dev/A100", 400), curve("L8BN001", 300, "llama31_8b")], tmp_path)
    assert json.loads((tmp_path / "phases.json").read_text("utf-8")) == made
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["phases-gpt3.svg", "phases-mlperf-llama31_8b.svg"]
    assert all(0.5 < each["right"] <= 1 for each in made)
    assert [each["source"] for each in made] == ["training_curves", "mlperf_curves"]
