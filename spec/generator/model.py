"""The LinkML model, read once and reduced to what the emitters need.

LinkML allows far more than the model uses. What an emitter would not understand is refused here with
:class:`ModelError`, so that nothing of the model is lost on the way to what is published.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from linkml_runtime.linkml_model.meta import (
    AnonymousClassExpression,
    ClassDefinition,
    Element,
    SlotDefinition,
    TypeDefinition,
)
from linkml_runtime.utils.schemaview import SchemaView

ANY = "linkml:Any"
SCALARS = frozenset({"string", "integer", "float", "boolean", "datetime"})
LARGEST_EXACT_INTEGER = 2**53 - 1


class ModelError(Exception):
    """The model holds something that the generator cannot carry over into what is published."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """Named or built-in type with everything that it inherits from the types that it is made of."""

    name: str
    base: str
    pattern: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    max_length: int | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """Slot of a class."""

    name: str
    description: str
    range: str
    required: bool
    many: bool
    minimum: float | None
    maximum: float | None
    min_items: int | None
    max_items: int | None
    unit: str | None
    gaps: bool = False
    """Whether an item may be null: its place in a list is kept, its value is missing (annotation `gaps`)."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What one slot has to be: present (``True``), absent (``False``), or equal to a text."""

    slot: str
    value: str | bool


@dataclass(frozen=True, slots=True)
class Rule:
    """Where all of ``when`` hold, all of ``then`` have to."""

    name: str
    description: str
    when: tuple[Condition, ...]
    then: tuple[Condition, ...]


def annotation(element: Element, name: str) -> str | None:
    """Value of an annotation of the model, None where it has none of that name."""
    annotations = element.annotations
    return str(annotations[name].value) if name in annotations else None


class Model:
    """The information model: its types, enumerations and classes by name."""

    def __init__(self, entry: Path) -> None:
        """Read the schema ``entry`` and all that it imports.

        Raises:
            ModelError: A name stands in two of them; LinkML would take one of the two.
        """
        self.entry = entry
        self.view = SchemaView(str(entry))
        stands: dict[str, str] = {}
        for part in self.view.imports_closure():
            schema = self.view.schema_map[part]
            for name in (*schema.classes, *schema.enums, *schema.types):
                if stands.setdefault(str(name), part) != part:
                    raise ModelError(f"{name} stands in {stands[str(name)]} and in {part}; give one another name")

    @property
    def version(self) -> str:
        """Version of the standard."""
        return str(self.view.schema.version)

    @cached_property
    def types(self) -> dict[str, TypeDefinition]:
        """The model's own types; LinkML's built-in ones are left out."""
        return {
            name: type_ for name, type_ in self.view.all_types().items() if type_.from_schema.startswith("urn:kuayu")
        }

    @cached_property
    def scalars(self) -> dict[str, Scalar]:
        """The model's own types, resolved, and the built-in ones that slots may name."""
        own = {name: self._resolve(type_) for name, type_ in self.types.items()}
        return {name: Scalar(name, name) for name in SCALARS} | own

    def _resolve(self, type_: TypeDefinition) -> Scalar:
        if type_.typeof not in SCALARS:
            raise ModelError(f"type {type_.name} is made of {type_.typeof}; only {', '.join(sorted(SCALARS))} will do")
        length = annotation(type_, "max_length")
        return Scalar(
            name=type_.name,
            base=type_.typeof,
            pattern=type_.pattern,
            minimum=_number(type_.minimum_value),
            maximum=_number(type_.maximum_value),
            max_length=None if length is None else int(length),
            unit=annotation(type_, "ucum"),
        )

    @cached_property
    def classes(self) -> dict[str, ClassDefinition]:
        """The classes in the model's order, but each after those that it inherits from or refers to."""
        classes = self.view.all_classes()
        placed: dict[str, ClassDefinition] = {}

        def place(name: str, within: tuple[str, ...]) -> None:
            if name in within:
                raise ModelError(f"class {name} holds itself, by way of {', '.join(within)}; use an identifier instead")
            if name not in placed:
                for need in _needs(classes[name], classes):
                    place(need, (*within, name))
                placed[name] = classes[name]

        for name in classes:
            place(str(name), ())
        return placed

    def is_any(self, name: str) -> bool:
        """Whether the class ``name`` stands for any JSON value, possibly with limits given in its annotations."""
        return str(self.view.get_class(name).class_uri) == ANY

    def own_members(self, class_: ClassDefinition) -> list[Member]:
        """Slots that the class itself adds, in the model's order."""
        return [self._member(slot) for slot in class_.attributes.values()]

    def all_members(self, class_name: str) -> list[Member]:
        """Slots of the class and of all that it inherits from."""
        return [self._member(slot) for slot in self.view.class_induced_slots(class_name)]

    def _member(self, slot: SlotDefinition) -> Member:
        range_ = slot.range or self.view.schema.default_range
        scalar = self.scalars.get(range_)
        member = Member(
            name=str(slot.name),
            description=slot.description or "",
            range=str(range_),
            required=bool(slot.required),
            many=bool(slot.multivalued),
            minimum=_number(slot.minimum_value),
            maximum=_number(slot.maximum_value),
            min_items=slot.minimum_cardinality,
            max_items=slot.maximum_cardinality,
            unit=_unit(slot, scalar),
            gaps=annotation(slot, "gaps") == "true",
        )
        self._check(member, scalar)
        return member

    def _check(self, member: Member, scalar: Scalar | None) -> None:
        bounded = member.minimum is not None or member.maximum is not None
        if bounded and (member.many or scalar is None):
            raise ModelError(f"slot {member.name}: bounds are for a single number; put them on a type instead")
        if member.gaps and not (member.many and scalar):
            raise ModelError(f"slot {member.name}: gaps are for lists of plain values")
        if scalar and scalar.base == "integer":
            ends = [_either(member.minimum, scalar.minimum), _either(member.maximum, scalar.maximum)]
            if any(end is None or abs(end) > LARGEST_EXACT_INTEGER for end in ends):
                raise ModelError(
                    f"slot {member.name}: an integer needs bounds within ±(2^53 − 1), such as the type Count has"
                )

    def rules(self, class_: ClassDefinition) -> list[Rule]:
        """Rules that the class itself adds."""
        return [
            Rule(
                name=rule.title.replace("-", "_"),
                description=rule.description,
                when=tuple(_conditions(rule.preconditions)),
                then=tuple(_conditions(rule.postconditions)),
            )
            for rule in class_.rules
        ]


def _needs(class_: ClassDefinition, classes: dict[str, ClassDefinition]) -> Iterator[str]:
    """Names of the classes that the class inherits from or refers to."""
    if class_.is_a:
        yield str(class_.is_a)
    yield from (str(slot.range) for slot in class_.attributes.values() if slot.range in classes)


def _conditions(expression: AnonymousClassExpression) -> Iterator[Condition]:
    for name, condition in expression.slot_conditions.items():
        if condition.equals_string is not None:
            yield Condition(name, str(condition.equals_string))
        elif condition.required or str(condition.value_presence) == "PRESENT":
            yield Condition(name, value=True)
        elif str(condition.value_presence) == "ABSENT":
            yield Condition(name, value=False)
        else:
            raise ModelError(
                f"condition on slot {name}: only equals_string, required and value_presence are understood"
            )


def _unit(slot: SlotDefinition, scalar: Scalar | None) -> str | None:
    """UCUM unit of the slot, or else of its type."""
    if slot.unit is not None:
        return str(slot.unit.ucum_code)
    return scalar.unit if scalar else None


EXACT = 2.0**53
"""Whole numbers below this are the same as an int and as a double."""


def _number(value: Any) -> float | None:
    """Bound as an int where it is whole, so that it is published without a fraction."""
    if value is None:
        return None
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < EXACT else number


def _either(first: float | None, second: float | None) -> float | None:
    return second if first is None else first
