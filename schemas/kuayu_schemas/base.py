"""Runtime base of the generated models: what a JSON value has to be before it becomes a Python value.

The models accept exactly what the published JSON Schema accepts. Pydantic alone is laxer in places (``"3"`` for a
number, ``true`` for a float, ``null`` for an absent member) and stricter in one (``3.0`` for an integer); the types
below take the schema's side. All but :data:`Json` are checked by pydantic-core, without a call into Python.
"""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import is_
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")


class KuayuModel(BaseModel):
    """Base of every model class: closed, so a member that the model does not know is an error.

    Absent members are ``None`` in Python and are left out of JSON. A value that was built in Python may be given
    ``None`` for them; a JSON text may not (``null`` is not absence).

    What checks a class is built when it is first used, for there are hundreds and most programs use few
    (:func:`build_models`).
    """

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), defer_build=True)

    def to_json(self) -> bytes:
        """Write the object as UTF-8 JSON without white space, absent members left out."""
        return self.model_dump_json().encode()

    def to_wire(self) -> dict[str, Any]:
        """Return the object as JSON values (dictionaries, lists, strings, numbers), absent members left out."""
        return self.model_dump(mode="json")


def build_models(base: type[KuayuModel] = KuayuModel) -> None:
    """Build now what checks each class that was derived from a model, where no first use should have to wait for it."""
    for model in base.__subclasses__():
        model.model_rebuild()
        build_models(model)


class _NotNull:
    """Refuses ``null`` in JSON while ``None`` stays what an absent member is in Python."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        nullable = handler(source)
        if nullable["type"] != "nullable":
            raise TypeError(f"{source!r} cannot be absent; write `Maybe[...]` around a type without None")
        return core_schema.json_or_python_schema(
            json_schema=nullable["schema"], python_schema=nullable, serialization=nullable.get("serialization")
        )


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """Takes ``3.0`` for an integer, as JSON Schema does, but neither ``3.5`` nor ``"3"`` nor ``true``."""

    minimum: int
    maximum: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check that it is a finite number, then that it is whole and within the bounds, both of them included."""
        number = core_schema.float_schema(strict=True, allow_inf_nan=False)
        return core_schema.chain_schema([number, core_schema.int_schema(ge=self.minimum, le=self.maximum)])

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the whole number, not the steps by which it is checked."""
        return handler(core_schema.int_schema(ge=self.minimum, le=self.maximum))


@dataclass(frozen=True, slots=True)
class InstantText:
    """Reads an instant from text of the form that ``pattern`` gives and writes it with three fractional digits.

    In Python an aware ``datetime`` of any zone will do; it is turned to UTC and cut to the millisecond, so that a
    value equals what is read back from its JSON.
    """

    pattern: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        moment = core_schema.datetime_schema(tz_constraint="aware")
        text = core_schema.chain_schema([core_schema.str_schema(strict=True, pattern=self.pattern), moment])
        aware = core_schema.no_info_after_validator_function(
            _to_millisecond, core_schema.datetime_schema(strict=True, tz_constraint="aware")
        )
        return core_schema.json_or_python_schema(
            json_schema=text,
            python_schema=core_schema.union_schema([aware, text]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                write_instant, return_schema=core_schema.str_schema(), when_used="json"
            ),
        )


def _to_millisecond(moment: datetime) -> datetime:
    moment = moment.astimezone(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def write_instant(moment: datetime) -> str:
    """Write an aware ``datetime`` as RFC 3339 in UTC with three fractional digits; what is finer is cut off."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _check_json(value: Any) -> Any:
    """Refuse what JSON cannot hold: NaN, numbers beyond a double, keys that are not strings, Python's other types."""
    match value:
        case None | bool() | str():
            pass
        case int() | float():
            if not -sys.float_info.max <= value <= sys.float_info.max:
                raise ValueError("Input should be a finite number that a double can hold")
        case list():
            for item in value:
                _check_json(item)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ValueError("Names of members should be strings")  # noqa: TRY004 - Pydantic reports ValueError
                _check_json(item)
        case _:
            raise ValueError("Input should be a JSON value")
    return value


@dataclass(frozen=True, slots=True)
class Absent:
    """Stands for an absent member where ``None`` is a value of its own."""


def _is_absent(value: Any) -> bool:
    return isinstance(value, Absent)


Boolean = Annotated[bool, Strict()]
"""``true`` or ``false``."""

Real = Annotated[float, Strict(), AllowInfNan(allow_inf_nan=False)]
"""Finite number."""

Json = Annotated[Any, AfterValidator(_check_json)]
"""Any JSON value."""

Maybe = Annotated[T | None, _NotNull(), Field(exclude_if=partial(is_, None))]
"""Type of a member that may be absent."""

OmissibleJson = Annotated[Json, Field(exclude_if=_is_absent)]
"""Type of a member that may be any JSON value, ``null`` among them, or absent (:class:`Absent`)."""
