"""Handles of tuples of arrays: what compiled functions are called with in their place.

1. A tuple of ninety arrays takes fifty microseconds to be handed over; a handle is the address of a block of memory in
   which data, shapes and strides of all of them stand, and takes one.
2. In compiled functions ``handle.jobs`` is the array that Python has as ``arrays.jobs``, over the same memory.
3. Nobody counts who uses a handle or its arrays: counting would take a third of the time where loops are short. Whoever
   has a handle in Python holds its arrays by it; whoever keeps compiled lists of them has to hold the handles too.
4. What a handle says of its arrays never changes, so that it is read once for a whole loop; where an array gives way to
   a longer one, a new handle is made.

Sources: https://numba.readthedocs.io/en/stable/extending/low-level.html; ``invariant.load`` in
https://llvm.org/docs/LangRef.html#load-instruction.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import typeof
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numpy.typing import NDArray


class HandleType(types.Type):
    """Type of a handle.

    Args:
        arrays: Type of its tuple.
    """

    def __init__(self, arrays: Any) -> None:
        self.arrays = arrays
        # compiled functions are named after their types, of which those of records would fill pages; numba's own type
        # of a tuple does not know the names of its fields
        digest = hashlib.sha256(f"{arrays.fields} {arrays}".encode()).hexdigest()[:12]
        super().__init__(f"Handle({arrays.instance_class.__name__}, {digest})")


class Handle:
    """A handle of a tuple of arrays.

    Args:
        arrays: The tuple; a class of its own, since its fields name the arrays.

    Attributes:
        arrays: The tuple, which lives as long as the handle.
        kind: Its type in compiled functions.
        address: Of the memory in which they find the arrays.
    """

    __slots__ = ("_block", "address", "arrays", "kind")

    def __init__(self, arrays: NamedTuple) -> None:
        self.arrays, self.kind = arrays, HandleType(typeof(arrays))
        self._block = np.array([word for array in arrays for word in _words(array)], dtype=np.int64)
        self.address = self._block.ctypes.data

    def __reduce__(self) -> tuple[Any, ...]:
        return Handle, (self.arrays,)  # a copy has an address of its own


def _words(array: NDArray[Any]) -> tuple[int, ...]:
    """An array as it stands in memory in compiled code: no counter, no object; size, address, shape and strides."""
    return 0, 0, array.size, array.itemsize, array.ctypes.data, *array.shape, *array.strides


@register_model(HandleType)
class _HandleModel(models.PrimitiveModel):
    """An address."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager.lookup(types.int64).get_value_type())


@typeof_impl.register(Handle)
def _type_of(handle: Handle, _context: Any) -> HandleType:
    return handle.kind


@unbox(HandleType)
def _unbox(_kind: Any, handle: Any, context: Any) -> NativeValue:
    address = context.pyapi.object_getattr_string(handle, "address")
    value = context.pyapi.long_as_longlong(address)
    context.pyapi.decref(address)
    return NativeValue(value)


@infer_getattr
class _Attributes(AttributeTemplate):
    """Arrays by their names."""

    key = HandleType

    def generic_resolve(self, kind: HandleType, name: str) -> Any:  # type: ignore[override]  # as numba calls it
        fields = kind.arrays.fields
        return kind.arrays[fields.index(name)] if name in fields else None


_OWNERS = 2
"""The first words of an array, which stand for its owners: what counts its users, and its object in Python."""


def _load(context: Any, builder: Any, kind: HandleType, value: Any, name: str) -> Any:
    place = kind.arrays.fields.index(name)
    block = builder.inttoptr(value, context.get_data_type(kind.arrays).as_pointer())
    never_changes = builder.module.add_metadata([])
    # owners are not read but null, so that numba sees that there is nobody to count for
    array = cgutils.get_null_value(context.get_value_type(kind.arrays[place]))
    for number in range(_OWNERS, len(array.type.elements)):
        # one by one, since LLVM takes a whole structure for one value
        part = builder.load(cgutils.gep_inbounds(builder, block, 0, place, number))
        part.set_metadata("invariant.load", never_changes)
        array = builder.insert_value(array, part, number)
    return array


_lower: Callable[[Any], Any] = lower_getattr_generic(HandleType)
_lower(_load)
