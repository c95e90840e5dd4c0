"""Handles: what compiled functions are called with, so that a call takes a microsecond and not fifty.

A handle holds the arrays of a tuple by their names; compiled code reads ``handle.jobs`` where Python has
``state.jobs``, over the same memory.
"""

from typing import Any

from numba import njit
from numba.core import types
from numba.experimental import structref

from kuayu_conformance.testbed.scheduling.core.layout import Desk, State


@structref.register
class StateType(types.StructRef):
    """Type of a handle of a world."""


@structref.register
class DeskType(types.StructRef):
    """Type of a handle of what a baseline works with."""


class StateHandle(structref.StructRefProxy):
    """A handle of a world."""


class DeskHandle(structref.StructRefProxy):
    """A handle of what a baseline works with."""


for made, kind, fields in ((StateHandle, StateType, State._fields), (DeskHandle, DeskType, Desk._fields)):
    structref.define_boxing(kind, made)
    structref.define_constructor(made, kind, list(fields))
    structref.define_attributes(kind)


@njit(cache=True)
def state_handle(state: State) -> Any:
    """A handle of a world."""
    return StateHandle(*state)


@njit(cache=True)
def desk_handle(desk: Desk) -> Any:
    """A handle of what a baseline works with."""
    return DeskHandle(*desk)
