"""A plot shows what can be drawn, where it belongs, and says what it leaves out."""

import math
import re
from typing import Any

import pytest
from conformance.rendering.plotted import agreement, graph, lines
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.rendering.plot import Plot, plots, symbol
from kuayu_schemas.models import ReportPlot

FIGURES = st.floats(allow_nan=False, allow_infinity=False)
SERIES = st.builds(
    lambda label, x, y: {"label": label, "x": x, "y": y},
    st.text("ab", max_size=2),
    st.lists(FIGURES, max_size=5),
    st.lists(FIGURES, max_size=5),
)


def drawn(*bodies: dict[str, Any]) -> tuple[Plot, ...]:
    """Plots of JSON bodies."""
    return plots([ReportPlot.model_validate(body) for body in bodies])


def places(path: str) -> list[tuple[int, int]]:
    """Points that a path goes to."""
    return [(int(x), int(y)) for x, y in re.findall(r"[ML](\d+) (\d+)", path)]


def scatter(*points: tuple[float, float]) -> Plot:
    """An agreement of one series."""
    series = {"label": "a", "x": [x for x, _ in points], "y": [y for _, y in points]}
    return drawn(agreement(series=[series]))[0]


def test_equal_figures_lie_on_the_diagonal_and_a_point_above_it_is_too_high() -> None:
    on, high = places(scatter((1.0, 1.0), (10.0, 20.0)).series[0].dots)
    assert on[0] + on[1] == 2000
    assert high[0] + high[1] < 2000


def test_the_band_ends_at_a_tenth_on_either_side() -> None:
    shown = scatter((1.0, 1.0), (10.0, 10.0))
    assert shown.field is not None
    numbers = list(map(int, re.findall(r"\d+", shown.field.band)))
    above, below = 2000 - numbers[2], numbers[6]
    decade = 2000 / math.log10(10 * 1.25**2)
    assert above == pytest.approx(decade * math.log10(1.1), abs=1)
    assert below == pytest.approx(-decade * math.log10(0.9), abs=1)


def test_it_counts_what_lies_within_a_tenth() -> None:
    said = scatter((1.0, 1.09), (1.0, 0.91), (1.0, 1.2), (0.0, 1.0)).said
    assert said is not None
    assert said.en.startswith("2 of 3 points")
    assert said.zh.startswith("3 个点中有 2 个")


def test_nought_and_less_have_no_logarithm_and_are_counted() -> None:
    shown = scatter((1.0, 1.0), (0.0, 1.0), (1.0, -1.0))
    assert shown.series[0].n == 1
    assert [note.words.en for note in shown.notes] == [
        "2 points left out: logarithmic axes have no place for nought or less."
    ]


def test_coordinates_that_do_not_pair_up_are_left_out_by_name() -> None:
    uneven, empty = {"label": "uneven", "x": [1.0], "y": []}, {"label": "empty", "x": [], "y": []}
    shown = drawn(lines(series=[uneven, empty, {"label": "even", "x": [1.0], "y": [2.0]}]))[0]
    assert [series.label for series in shown.series] == ["even"]
    assert [(note.label, note.words.en) for note in shown.notes] == [
        ("uneven", "left out, with 1 across but 0 up"),
        ("empty", "no points"),
    ]


def test_lines_begin_at_nought_and_ticks_of_a_count_are_whole() -> None:
    shown = drawn(lines())[0]
    assert shown.field is not None
    assert [tick.label for tick in shown.field.x_ticks] == ["0", "1", "2", "3", "4", "5", "6"]
    assert shown.field.y_ticks[0].label == "0"
    assert shown.field.y_ticks[0].place == 100
    assert [place[0] for place in places(shown.series[0].line)] == [round(2000 * probes / 6) for probes in range(7)]


def test_figures_below_nought_have_their_place_on_a_linear_axis() -> None:
    shown = drawn(lines(series=[{"label": "a", "x": [0.0, 1.0], "y": [-2.0, 2.0]}]))[0]
    assert places(shown.series[0].line)[0] == (0, 1500)
    assert shown.notes == ()


def test_a_label_looks_the_same_in_every_plot_of_a_requirement() -> None:
    series = [{"label": label, "x": [1.0], "y": [1.0]} for label in "abc"]
    first, second, third = drawn(agreement(series=series), lines(series=series[1:]), lines())
    looks = {one.label: one.symbol for one in first.series}
    assert [one.symbol for one in second.series] == [looks["b"], looks["c"]]
    assert third.series[0].symbol == looks["a"]


def test_a_graph_has_lines_between_every_two_ends_no_axes_and_one_scale() -> None:
    shown = drawn(graph())[0]
    assert shown.field is not None
    assert not shown.field.x_ticks
    assert not shown.field.y_ticks
    links, busy, offline = shown.series
    assert (links.n, links.line.count("M"), links.line.count("L"), links.dots) == (3, 3, 3, "")
    assert (busy.n, offline.n) == (4, 1)
    (ax, ay), (bx, by), *_ = places(busy.dots)
    assert bx - ax == pytest.approx(ay - by, abs=1)  # a tenth across is as long as a tenth up


def test_six_symbols_differ_in_shape_and_in_colour_and_thirty_six_in_either() -> None:
    symbols = [symbol(number) for number in range(36)]
    assert len({look.shape for look in symbols[:6]}) == len({look.colour for look in symbols[:6]}) == 6
    assert len(set(symbols)) == 36


@given(st.lists(SERIES, max_size=4), st.sampled_from([agreement, lines, graph]))
def test_whatever_the_figures_every_point_is_drawn_inside_or_noted(series: list[dict[str, Any]], kind: Any) -> None:
    shown = drawn(kind(series=series))[0]
    paired = sum(len(one["x"]) for one in series if len(one["x"]) == len(one["y"]))
    counted = [int(note.words.en.split()[0]) for note in shown.notes if note.words.en[0].isdigit()]
    assert sum(one.n for one in shown.series) + sum(counted) == paired
    faulty = sum(len(one["x"]) != len(one["y"]) or not one["x"] for one in series)
    assert len(shown.notes) - len(counted) == faulty
    height = 1500 if kind is lines else 2000
    for one in shown.series:
        assert all(0 <= x <= 2000 and 0 <= y <= height for x, y in places(one.dots + one.line))
    assert (shown.field is None) == (not shown.series)
    if shown.field:
        ticks = (*shown.field.x_ticks, *shown.field.y_ticks)
        assert all(0 <= tick.place <= 100 and len(tick.label) < 12 for tick in ticks)
