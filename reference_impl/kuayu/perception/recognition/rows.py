"""Memories with one column for each node, which keep what they hold when nodes come and go.

A memory is a dataclass of arrays, each annotated with the column that it begins as.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.values import Floats, Places

Rows = TypeVar("Rows")


@dataclass(frozen=True, slots=True)
class Column:
    """An array of shape (nodes,), or (height, nodes), that begins as ``fill``."""

    fill: float
    dtype: type = np.float32
    height: int = 0

    def empty(self, nodes: int) -> Any:
        """The array for so many nodes."""
        shape = (self.height, nodes) if self.height else (nodes,)
        return np.full(shape, self.fill, self.dtype)


def blank(kind: type[Rows], nodes: int) -> Rows:
    """A memory of so many nodes of which nothing is known."""
    hints = get_type_hints(kind, include_extras=True)
    return kind(**{name: hint.__metadata__[0].empty(nodes) for name, hint in hints.items()})


def rearranged(rows: Rows, origin: Places) -> Rows:
    """The memory of new rows; row i was row ``origin[i]`` before, or is new where that is −1."""
    new_rows = blank(type(rows), len(origin))
    old = origin >= 0
    for name in get_type_hints(type(rows)):
        getattr(new_rows, name)[..., old] = getattr(rows, name)[..., origin[old]]
    return new_rows


def put_together(out: Floats, rows: Sequence[NDArray[Any]]) -> Floats:
    """Put rows and blocks of rows one below the other; memory that is used again costs far less than new one."""
    return np.concatenate([np.atleast_2d(row) for row in rows], out=out)
