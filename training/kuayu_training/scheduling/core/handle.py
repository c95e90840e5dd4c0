"""Handles of tables, as ``core.layout`` of the suite has them of worlds; and how everything here is compiled."""

from typing import Any

from numba import njit
from numba.core import types
from numba.experimental import structref

from kuayu_training.scheduling.core.layout import Tables

compiled = njit(cache=True, error_model="numpy")
"""As NumPy does, a division by zero yields an infinite number or none."""


@structref.register
class TablesType(types.StructRef):
    """Type of a handle of tables."""


class TablesHandle(structref.StructRefProxy):
    """A handle of tables."""


structref.define_boxing(TablesType, TablesHandle)
structref.define_constructor(TablesHandle, TablesType, list(Tables._fields))
structref.define_attributes(TablesType)


@njit(cache=True)
def tables_handle(tables: Tables) -> Any:
    """A handle of tables."""
    return TablesHandle(*tables)
