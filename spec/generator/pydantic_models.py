"""Pydantic models from the model, as one Python module.

The module is written for people to read: types, enumerations and classes with their descriptions, each after what it
needs. What JSON Schema means by a type is in ``kuayu_schemas/base.py``; here is only what the model says.
"""

import keyword
import subprocess
import sys
from collections.abc import Iterator
from textwrap import wrap

from linkml_runtime.linkml_model.meta import ClassDefinition, EnumDefinition

from generator.model import Condition, Member, Model, ModelError, Rule, Scalar, annotation

LINE_LENGTH = 120
PYTHON_TYPES = {"string": "str", "float": "Real", "boolean": "Boolean"}
NAMES_FROM_BASE = (
    "Absent",
    "Boolean",
    "InstantText",
    "Json",
    "KuayuModel",
    "Maybe",
    "OmissibleJson",
    "Real",
    "WholeNumber",
)

HEADER = '''"""{title}, version {version}.

Generated from spec/model by `make schemas`; do not edit.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from kuayu_schemas.base import {names}

SPEC_VERSION = {version_literal}
"""Version of the standard that these models are of."""
'''


def module(model: Model) -> str:
    """Text of the module, formatted."""
    parts = [
        HEADER.format(
            title=model.view.schema.title,
            version=model.version,
            version_literal=text(model.version),
            names=", ".join(NAMES_FROM_BASE),
        ),
        *(_type(model, name) for name in model.types),
        *(_enum(enum) for enum in model.view.all_enums().values()),
        *(_class(model, class_) for class_ in model.classes.values()),
    ]
    return formatted("\n\n".join(parts))


def formatted(code: str) -> str:
    """Code as the project writes it."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        "--line-length",
        str(LINE_LENGTH),
        "--target-version",
        "py311",
        "-",
    ]
    made = subprocess.run(  # noqa: S603 - a fixed program
        command, input=code, capture_output=True, check=True, encoding="utf-8"
    )
    return made.stdout


def _type(model: Model, name: str) -> str:
    scalar = model.scalars[name]
    return f"{name} = {_scalar(scalar, scalar.minimum, scalar.maximum)}\n{docstring(model.types[name].description)}"


def _enum(enum: EnumDefinition) -> str:
    lines = [f"class {enum.name}(StrEnum):", docstring(enum.description, indent=4)]
    for value, meaning in enum.permissible_values.items():
        # A member named like a method of str hides it; nothing calls that method on a value of the model.
        hides = "  # type: ignore[assignment]" if hasattr(str, value) else ""
        lines += ["", f"    {member_name(value)} = {text(value)}{hides}", docstring(meaning.description, indent=4)]
    return "\n".join(lines)


def member_name(value: str) -> str:
    """Python name of a permissible value: ``not-applicable`` is ``not_applicable`` and ``pass`` is ``pass_``."""
    name = value.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def _class(model: Model, class_: ClassDefinition) -> str:
    if model.is_any(class_.name):
        return _any_json(class_)
    lines = [f"class {class_.name}({class_.is_a or 'KuayuModel'}):", docstring(class_.description, indent=4), ""]
    lines += [f"    {_member(model, member)}" for member in model.own_members(class_)]
    ranges = {member.name: member.range for member in model.all_members(class_.name)}
    for rule in model.rules(class_):
        lines += ["", *_rule(model, rule, ranges)]
    return "\n".join(lines)


def _any_json(class_: ClassDefinition) -> str:
    pattern, limit = annotation(class_, "key_pattern"), annotation(class_, "max_members")
    if pattern is None or limit is None:
        return ""  # the class Json itself, which base.py has
    key = f"Annotated[str, Field(pattern={_raw(pattern)})]"
    return f"{class_.name} = Annotated[dict[{key}, Json], Field(max_length={limit})]\n{docstring(class_.description)}"


def _member(model: Model, member: Member) -> str:
    annotation_ = _range(model, member)
    if member.many:
        bounds = _arguments(min_length=member.min_items, max_length=member.max_items)
        annotation_ = f"list[{annotation_} | None]" if member.gaps else f"list[{annotation_}]"
        annotation_ = f"Annotated[{annotation_}, Field({bounds})]" if bounds else annotation_
    default = "default=None, "
    if member.required:
        default = ""
    elif member.range == "Json":
        annotation_, default = "OmissibleJson", "default_factory=Absent, "
    else:
        annotation_ = f"Maybe[{annotation_}]"
    unit = "" if member.unit is None else f', json_schema_extra={{"x-unit": {text(member.unit)}}}'
    return f"{member.name}: {annotation_} = Field({default}description={_long_text(member.description)}{unit})"


def _range(model: Model, member: Member) -> str:
    scalar = model.scalars.get(member.range)
    narrowed = member.minimum is not None or member.maximum is not None
    if scalar is None or (scalar.name in model.types and not narrowed):
        return member.range
    minimum = scalar.minimum if member.minimum is None else member.minimum
    maximum = scalar.maximum if member.maximum is None else member.maximum
    return _scalar(scalar, minimum, maximum)


def _scalar(scalar: Scalar, minimum: float | None, maximum: float | None) -> str:
    if scalar.base == "datetime":
        return f"Annotated[datetime, InstantText({_raw(scalar.pattern or '')})]"
    if scalar.base == "integer":
        return f"Annotated[int, WholeNumber({minimum}, {maximum})]"
    limits = _arguments(
        pattern=None if scalar.pattern is None else _raw(scalar.pattern),
        max_length=scalar.max_length,
        ge=minimum,
        le=maximum,
    )
    plain = PYTHON_TYPES[scalar.base]
    return f"Annotated[{plain}, Field({limits})]" if limits else plain


def _rule(model: Model, rule: Rule, ranges: dict[str, str]) -> Iterator[str]:
    tests = [_test(model, condition, ranges, holds=True) for condition in rule.when]
    broken = " or ".join(_test(model, condition, ranges, holds=False) for condition in rule.then)
    tests.append(f"({broken})" if len(rule.then) > 1 else broken)
    yield '    @model_validator(mode="after")'
    yield f"    def {rule.name}(self) -> Self:"
    yield docstring(rule.description, indent=8)
    yield f"        if {' and '.join(tests)}:"
    yield f"            raise ValueError({text(rule.description)})"
    yield "        return self"


def _test(model: Model, condition: Condition, ranges: dict[str, str], *, holds: bool) -> str:
    """Python for whether the condition holds, or for whether it does not."""
    slot = f"self.{condition.slot}"
    if isinstance(condition.value, bool):
        return f"{slot} is not None" if condition.value is holds else f"{slot} is None"
    range_ = ranges[condition.slot]
    if range_ not in model.view.all_enums():
        return f"{slot} {'==' if holds else '!='} {text(condition.value)}"
    if condition.value not in model.view.get_enum(range_).permissible_values:
        raise ModelError(f"condition on slot {condition.slot}: {range_} has no value {condition.value}")
    return f"{slot} {'is' if holds else 'is not'} {range_}.{member_name(condition.value)}"


def _arguments(**values: object) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def text(value: str) -> str:
    """Python for a text."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _raw(value: str) -> str:
    if '"' in value:
        raise ModelError(f"pattern {value}: a quotation mark cannot stand in it")
    return f'r"{value}"'


def _long_text(value: str) -> str:
    """Text in pieces that fit the line, which Python puts together."""
    pieces = wrap(value, LINE_LENGTH - 20, drop_whitespace=False, break_long_words=False)
    return text(value) if len(pieces) <= 1 else "(" + " ".join(text(piece) for piece in pieces) + ")"


def docstring(value: str, *, indent: int = 0) -> str:
    """Python for a docstring, wrapped."""
    space = " " * indent
    lines = wrap(value, LINE_LENGTH - indent - 6)
    if len(lines) == 1:
        return f'{space}"""{lines[0]}"""'
    return f'{space}"""' + f"\n{space}".join(lines) + f'\n{space}"""'
