"""Figures are shown in units and digits that people can compare."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.rendering.chart import Axis
from kuayu_conformance.rendering.figures import Unit, brief, count, length_of_time, unit_of

FIGURES = st.floats(allow_nan=False, allow_infinity=False)
RATIOS = st.just(0.0) | st.floats(1e-12, 1)


def plain(text: str) -> str:
    """Text with ordinary spaces."""
    return text.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("s", 0.0123, "12.3 ms"),
        ("s", 60.0, "60 s"),
        ("s", 300.0, "5 min"),
        ("s", 0.0, "0 s"),
        ("s", 2e-7, "200 ns"),
        ("By/s", 1.6e12, "1.6 TB/s"),
        ("By", 85899345920.0, "85.9 GB"),
        ("{domain}", 64.0, "64"),
        ("{sample}/s", 240000.0, "240 000 /s"),
        ("Cel", -3.25, "−3.25 Cel"),
        ("1", 1e300, "1.00 × 10^300"),
    ],
)
def test_units_are_scaled_for_display(code: str, value: float, shown: str) -> None:
    assert plain(unit_of(code, [value]).text(value)) == shown


def test_a_ratio_is_a_percentage_and_a_ratio_above_one_is_not() -> None:
    assert plain(unit_of("1", [0.98, 0.5]).text(0.5)) == "50 %"
    assert plain(unit_of("1", [0.98, 1.5]).text(1.5)) == "1.5"


def test_a_near_miss_never_looks_like_its_threshold() -> None:
    unit = unit_of("1", [0.98])
    assert plain(unit.text(0.97996, apart_from=[0.98])) == "97.996 %"
    assert plain(unit.text(0.999996)) == "99.9996 %"
    assert plain(unit.text(1.0, apart_from=[0.98])) == "100 %"


@given(FIGURES, FIGURES)
def test_figures_that_differ_look_different(one: float, other: float) -> None:
    unit = Unit("W")
    tellable = f"{one:.14e}" != f"{other:.14e}" and abs(one) > 1e-9
    if tellable:
        assert unit.text(one, apart_from=[other]) != unit.text(other, apart_from=[one])


def test_counts_and_times_read_well() -> None:
    assert plain(count(38400)) == "38 400"
    assert plain(count(4800)) == "4800"
    assert plain(length_of_time(134.343)) == "2 min 14 s"
    assert plain(length_of_time(3600)) == "1 h"
    assert plain(length_of_time(1.25)) == "1.25 s"


@given(st.lists(FIGURES, min_size=1, max_size=8))
def test_every_figure_has_a_place_on_its_axis_in_the_order_of_the_figures(figures: list[float]) -> None:
    axis = Axis.over(figures, unit_of("W", figures))
    if axis is None:
        assert any(figure != 0 and not 1e-100 < abs(figure) < 1e100 for figure in figures)
        return
    places = [axis.place(figure) for figure in sorted(figures)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert len(axis.ticks()) <= 12


@given(st.lists(RATIOS, min_size=1, max_size=8))
def test_the_axis_of_ratios_stays_between_nought_and_one_and_has_ticks(ratios: list[float]) -> None:
    axis = Axis.over(ratios, unit_of("1", ratios))
    assert axis is not None
    assert 0 <= axis.low < axis.high <= 1
    assert 1 <= len(axis.ticks()) <= 12


def test_ratios_near_one_are_zoomed_in_on() -> None:
    axis = Axis.over([0.98, 0.9994, 0.9991, 0.999], Unit("1", ratio=True))
    assert axis is not None
    assert 0.95 < axis.low < 0.98
    assert axis.high == 1
    assert plain(axis.ticks()[-1].label) == "100.0 %"


def test_figures_of_unlike_size_share_a_logarithmic_axis() -> None:
    axis = Axis.over([0.02, 30.0, 1.0], Unit("s"))
    assert axis is not None
    assert axis.logarithmic
    assert [plain(tick.label) for tick in axis.ticks()] == ["10 ms", "100 ms", "1 s", "10 s", "60 s"]


def test_the_axis_of_a_count_has_whole_ticks() -> None:
    axis = Axis.over([12.0, 12.0], unit_of("{indicator}", [12.0]))
    assert axis is not None
    assert [tick.label for tick in axis.ticks()] == ["11", "12", "13"]


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (0.0, "0"),
        (0.05, "0.05"),
        (3 * 0.1, "0.3"),
        (20000.0, "20 000"),
        (-1.5, "−1.5"),
        (1e6, "10⁶"),
        (999999.9, "10⁶"),
        (2e-7, "2·10⁻⁷"),
        (-1e98, "−10⁹⁸"),
    ],
)
def test_a_tick_takes_little_room(figure: float, shown: str) -> None:
    assert plain(brief(figure)) == shown


@pytest.mark.parametrize(
    ("low", "high", "round_figures"),
    [
        (0.04, 11.0, (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)),
        (0.8, 1.3, (0.8, 0.9, 1, 1.1, 1.2, 1.3)),
        (1e-6, 1e12, (1e-6, 1e-3, 1, 1e3, 1e6, 1e9, 1e12)),
    ],
)
def test_ratios_have_one_two_and_five_to_a_decade_while_there_is_room(
    low: float, high: float, round_figures: tuple[float, ...]
) -> None:
    axis = Axis(low, high, logarithmic=True, unit=Unit("1"))
    assert axis.round_figures() == pytest.approx(round_figures)


@given(st.floats(1e-99, 1e99), st.floats(1.5, 1e30))
def test_a_logarithmic_axis_has_some_round_figures_and_no_two_look_alike(low: float, ratio: float) -> None:
    high = min(low * ratio, 1.6e99)
    figures = Axis(low, high, logarithmic=True, unit=Unit("1")).round_figures()
    assert 2 <= len(figures) <= 12
    assert len({brief(figure, 6) for figure in figures}) == len(figures)
    assert all(low * (1 - 1e-6) <= figure <= high * (1 + 1e-6) for figure in figures)
