from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from forecast.asked import REVISION, load
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.forecast.peaks import Load, bound, least, shave
from kuayu.forecast.requests import Floats
from kuayu.refusals import Impossible, Refusal, RepeatedName
from kuayu_schemas.schema import is_valid


def asking(base: list[float], loads: list[dict[str, Any]]) -> dict[str, Any]:
    return {"revision": REVISION, "step": 3600.0, "base": [float(each) for each in base], "loads": loads}


def profile(request: dict[str, Any], plan: dict[str, Any]) -> Floats:
    there = np.array(request["base"])
    for each, moved in zip(request["loads"], plan["loads"], strict=True):
        there[moved["slots"]] += each["devices"]
    return there


def test_a_peak_that_can_be_halved_is_halved() -> None:
    plan = shave(asking([10, 0, 0, 0], [load("a", 10, 1, (0, 3), 0)]))
    assert (plan["peak_before"], plan["peak_after"]) == (20, 10)
    assert plan["loads"] == [{"load": "a", "slots": [1]}]


def test_a_load_that_may_pause_fills_the_valleys() -> None:
    plan = shave(asking([9, 1, 9, 1, 9], [load("a", 8, 2, (0, 4), 0, interruptible=True)]))
    assert (plan["loads"][0]["slots"], plan["peak_after"]) == ([1, 3], 9)


def test_a_load_that_may_not_pause_stays_together() -> None:
    plan = shave(asking([9, 1, 9, 1, 9], [load("a", 8, 2, (0, 4), 0)]))
    assert plan["peak_after"] == 17


def test_loads_make_room_for_each_other() -> None:
    # the wide one fits beside the base only if the others leave the middle to it
    loads = [load("a", 4, 2, (0, 5), 2), load("b", 4, 2, (0, 5), 2), load("c", 6, 2, (2, 3), 2)]
    plan = shave(asking([2, 2, 0, 0, 2, 2], loads))
    assert (plan["peak_before"], plan["peak_after"]) == (14, 6)


def test_what_cannot_be_moved_stays_where_it_is_planned() -> None:
    plan = shave(asking([0, 5], [load("a", 3, 1, (1, 1), 1)]))
    assert (plan["loads"][0]["slots"], plan["peak_before"], plan["peak_after"]) == ([1], 8, 8)


def test_nothing_to_move_is_a_plan_too() -> None:
    assert shave(asking([3, 4], []))["peak_after"] == 4


def test_the_least_place_of_a_load_is_the_nearest_to_its_plan_among_equals() -> None:
    there = np.array([5.0, 1.0, 1.0, 5.0, 1.0, 1.0, 5.0])
    assert least(Load(2, 2, 0, 6, 5, interruptible=False), there).tolist() == [4, 5]


def ways(one: dict[str, Any]) -> list[list[int]]:
    steps = range(one["earliest"], one["latest"] + 1)
    if one.get("interruptible"):
        return [list(each) for each in combinations(steps, one["slots"])]
    return [list(range(begin, begin + one["slots"])) for begin in steps if begin + one["slots"] - 1 <= one["latest"]]


@st.composite
def small(draw: st.DrawFn, steps: int = 6, most: int = 4) -> dict[str, Any]:
    loads = []
    for number in range(draw(st.integers(1, most))):
        slots = draw(st.integers(1, 3))
        first = draw(st.integers(0, steps - slots))
        last = draw(st.integers(first + slots - 1, steps - 1))
        planned = draw(st.integers(first, last - slots + 1))
        pauses = draw(st.booleans())
        loads.append(load(f"l{number}", draw(st.integers(1, 9)), slots, (first, last), planned, interruptible=pauses))
    return asking(draw(st.lists(st.integers(0, 9), min_size=steps, max_size=steps)), loads)


@settings(max_examples=40, deadline=None)
@given(small())
def test_small_plans_are_as_low_as_any(request: dict[str, Any]) -> None:
    plan = shave(request)
    lowest = np.inf
    for chosen in product(*(ways(one) for one in request["loads"])):
        made = {"loads": [{"slots": slots} for slots in chosen]}
        lowest = min(lowest, profile(request, made).max())
    assert plan["peak_after"] == lowest
    assert bound(np.array(request["base"]), [Load.of(each) for each in request["loads"]]) <= lowest


@settings(max_examples=40, deadline=None)
@given(small(steps=12, most=12))
def test_work_is_kept_windows_hold_and_nothing_gets_worse(request: dict[str, Any]) -> None:
    plan = shave(request)
    assert is_valid("PeakPlan", plan, reader=False)
    for one, moved in zip(request["loads"], plan["loads"], strict=True):
        slots = moved["slots"]
        assert moved["load"] == one["id"]
        assert len(set(slots)) == one["slots"] == len(slots)
        assert slots == sorted(slots)
        assert one["earliest"] <= slots[0]
        assert slots[-1] <= one["latest"]
        assert one["interruptible"] or slots[-1] - slots[0] == one["slots"] - 1
    assert plan["peak_after"] == profile(request, plan).max() <= plan["peak_before"]
    assert plan == shave(request)


@pytest.mark.parametrize(
    ("loads", "kind", "pointer"),
    [
        ([load("a", 1, 3, (0, 1), 0)], Impossible, "/loads/0/slots"),
        ([load("a", 1, 1, (0, 4), 0)], Impossible, "/loads/0/latest"),
        ([load("a", 1, 1, (2, 1), 2)], Impossible, "/loads/0/slots"),
        ([load("a", 1, 2, (0, 3), 3)], Impossible, "/loads/0/planned"),
        ([load("a", 1, 1, (0, 1), 0), load("a", 1, 1, (0, 1), 0)], RepeatedName, "/loads/1/id"),
    ],
)
def test_what_is_impossible_is_refused_where_it_stands(
    loads: list[dict[str, Any]], kind: type[Refusal], pointer: str
) -> None:
    with pytest.raises(kind) as raised:
        shave(asking([0, 0, 0, 0], loads))
    assert [each[0] for each in raised.value.pointers] == [pointer]
