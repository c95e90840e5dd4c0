"""Types of documents from the model, as one Python module: what a reader of JSON returns for a valid text.

Algorithms work on plain documents, since a model class for each of thousands of jobs takes longer than deciding about
them. A type checker holds what they read to the model by these types; nothing is checked when a program runs, and
nothing need be imported then. What values have to be beyond their types says ``models.py``.
"""

from collections.abc import Container

from linkml_runtime.linkml_model.meta import ClassDefinition, EnumDefinition

from generator.model import Member, Model
from generator.pydantic_models import docstring, formatted, text

PYTHON_TYPES = {"string": "str", "datetime": "str", "integer": "int", "float": "float", "boolean": "bool"}

HEADER = '''"""{title}, version {version}: types of JSON documents, for type checkers.

Generated from spec/model by `make schemas`; do not edit. Import it under ``TYPE_CHECKING``. The members of a class are
described in ``models.py``, under the same name.
"""

from typing import Any, Literal, NotRequired, TypedDict, final
'''


def module(model: Model) -> str:
    """Text of the module, formatted."""
    bases = {class_.is_a for class_ in model.classes.values()}
    parts = [
        HEADER.format(title=model.view.schema.title, version=model.version),
        *(_enum(enum) for enum in model.view.all_enums().values()),
        *(_class(model, class_, bases) for class_ in model.classes.values() if not model.is_any(class_.name)),
    ]
    return formatted("\n\n".join(parts))


def _enum(enum: EnumDefinition) -> str:
    values = ", ".join(text(value) for value in enum.permissible_values)
    return f"{enum.name} = Literal[{values}]\n{docstring(enum.description)}"


def _class(model: Model, class_: ClassDefinition, bases: Container[str | None]) -> str:
    # Of classes that nothing is derived from a type checker knows that members which tell one from another do so.
    lines = [] if class_.name in bases else ["@final"]
    lines += [f"class {class_.name}({class_.is_a or 'TypedDict'}):", docstring(class_.description, indent=4), ""]
    lines += [f"    {member.name}: {_member(model, member)}" for member in model.own_members(class_)]
    return "\n".join(lines)


def _member(model: Model, member: Member) -> str:
    found = _range(model, member.range)
    if member.many:
        found = f"list[{found} | None]" if member.gaps else f"list[{found}]"
    return found if member.required else f"NotRequired[{found}]"


def _range(model: Model, name: str) -> str:
    if name in model.scalars:
        return PYTHON_TYPES[model.scalars[name].base]
    if name in model.classes and model.is_any(name):
        return "Any" if name == "Json" else "dict[str, Any]"
    return name
