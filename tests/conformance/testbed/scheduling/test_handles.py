"""Arrays of the compiled world: handles of them, longer ones in their place, and keys that are sorted in them."""

import copy
import gc
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError
from numba.typed import List

from kuayu_conformance.testbed.scheduling.core.handles import Handle
from kuayu_conformance.testbed.scheduling.core.layout import sort_by
from kuayu_conformance.testbed.scheduling.core.world import longer


class Swapped:
    """Where another tuple has the same name, and the same fields in another order."""

    class Shelf(NamedTuple):
        """Its first and last field have changed places."""

        names: Any
        grid: Any
        points: Any


POINT = np.dtype([("x", "f8"), ("hits", "i8")], align=True)


class Shelf(NamedTuple):
    """Arrays of several kinds."""

    points: Any
    grid: Any
    names: Any


def shelf() -> Shelf:
    """Three points, a grid of two by four, and five numbers."""
    return Shelf(np.zeros(3, dtype=POINT), np.arange(8.0).reshape(2, 4), np.arange(5))


@njit
def hit(handle: Any, place: int, x: float) -> tuple[float, int]:
    """Move a point; the sum of the grid's second row, and how many numbers there are."""
    handle.points[place].x = x
    handle.points[place].hits += 1
    total = 0.0
    for column in range(handle.grid.shape[1]):
        total += handle.grid[1, column]
    return total, handle.names.size


@njit
def all_hit(handles: Any) -> None:
    """Move the first point of each."""
    for handle in handles:
        handle.points[0].hits += 1


@njit
def asks_for_more(handle: Any) -> Any:
    """There is no such array."""
    return handle.shelves


def test_compiled_code_and_python_look_at_the_same_memory() -> None:
    arrays = shelf()
    handle = Handle(arrays)
    assert hit(handle, 1, 2.5) == (22.0, 5)
    assert arrays.points[1]["x"] == 2.5
    assert arrays.points[1]["hits"] == 1
    arrays.grid[1] = 1.0
    assert hit(handle, 2, 0.0) == (4.0, 5)


def test_a_handle_holds_its_arrays_and_compiled_code_holds_none_of_them() -> None:
    arrays = shelf()
    handle, points = Handle(arrays), weakref.ref(arrays.points)
    del arrays
    gc.collect()
    assert hit(handle, 0, 7.0) == (22.0, 5)
    assert handle.arrays.points[0]["x"] == 7.0
    del handle
    gc.collect()
    assert points() is None, "nobody else holds them"


def test_handles_of_tuples_of_one_kind_go_into_a_compiled_list() -> None:
    handles = [Handle(shelf()) for _ in range(3)]
    compiled = List(handles)
    all_hit(compiled)
    compiled[1] = handles[0]
    all_hit(compiled)
    assert [int(handle.arrays.points[0]["hits"]) for handle in handles] == [3, 1, 2]


def test_an_array_that_is_not_there_is_an_error_of_types() -> None:
    with pytest.raises(TypingError, match="shelves"):
        asks_for_more(Handle(shelf()))


def test_a_tuple_with_the_same_fields_in_another_order_is_of_another_type() -> None:
    numbers, grid = np.arange(5), np.arange(8.0).reshape(2, 4)
    one, other = Handle(Shelf(numbers, grid, numbers)), Handle(Swapped.Shelf(numbers, grid, numbers))
    assert str(one.kind) != str(other.kind)


def test_a_copy_of_a_handle_has_arrays_of_its_own() -> None:
    handle = Handle(shelf())
    other = copy.deepcopy(handle)
    hit(other, 0, 3.0)
    assert (handle.arrays.points[0]["hits"], other.arrays.points[0]["hits"]) == (0, 1)


def test_of_a_longer_array_only_what_was_used_is_copied() -> None:
    old = np.arange(1, 6)
    assert longer(old, 8, used=2).tolist() == [1, 2, 0, 0, 0, 0, 0, 0]
    assert longer(old, 8, -1).tolist() == [1, 2, 3, 4, 5, -1, -1, -1]
    assert longer(old, 5) is old


@pytest.mark.parametrize("count", [0, 1, 7, 48, 49, 500])
def test_keys_are_sorted_with_their_values_and_what_lies_behind_stays(count: int) -> None:
    keys = np.random.default_rng(count).permutation(600).astype(np.float64)
    values, expected, behind = (2 * keys).astype(np.int64), np.sort(keys[:count]), keys[count:].copy()
    sort_by(keys, values, count)
    assert keys[:count].tolist() == expected.tolist()
    assert keys[count:].tolist() == behind.tolist()
    assert values.tolist() == (2 * keys).astype(int).tolist()
