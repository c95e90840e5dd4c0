"""Judging measures column by column.

The schema judges a sample member by member. Where measures are numbers between bounds, or one of few words, a whole
column is held against the bounds that the schema states, which costs a third. The schema judges tables itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any

from kuayu.service.storage.blocks import LEADING, Block
from kuayu.service.storage.tables import MEASURES, PRECISION_MEASURES, STATE_MEASURES
from kuayu_schemas import schema

_JUDGING = {"type", "minimum", "maximum"}
"""Keywords that this module knows how to judge by."""

_NUMBERS: AbstractSet[type] = {int, float}

_TELLING = {"title", "description"}
"""Keywords that judge nothing; nor do those of the model's own, which begin with x-."""


def are_valid(block: Block) -> bool:
    """Whether the schema takes all measures of a block that are not tables."""
    numbers_only = set(map(type, block.values)) <= _NUMBERS
    for place, name in enumerate(block.measures, LEADING):
        column = block.values[place :: block.width]
        if name in PRECISION_MEASURES or not column:
            continue
        types = _NUMBERS if numbers_only else set(map(type, column))
        valid = _are_states(column, types, name) if name in STATE_MEASURES else _are_numbers(column, types, name)
        if not valid:
            return False
    return True


def _are_states(column: Sequence[Any], types: AbstractSet[type], measure: str) -> bool:
    return types == {str} and all(schema.is_valid(_class(measure), word) for word in set(column))


def _are_numbers(column: Sequence[Any], types: AbstractSet[type], measure: str) -> bool:
    low, high = _bounds()[measure]
    return types <= _NUMBERS and (low is None or min(column) >= low) and (high is None or max(column) <= high)


@cache
def _bounds() -> Mapping[str, tuple[float | None, float | None]]:
    """Lowest and highest value of each measure that is a number, None where it has none."""
    return {
        name: (judging.get("minimum"), judging.get("maximum"))
        for name, judging in _definitions()
        if name not in PRECISION_MEASURES | STATE_MEASURES
    }


def _definitions() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each measure that is a number, with the keywords that judge it.

    Raises:
        LookupError: The schema has come to judge a measure by something that this module does not know.
    """
    for name in MEASURES:
        if name in PRECISION_MEASURES | STATE_MEASURES:
            continue
        judging = _judging(schema.document()["$defs"][_class(name)])
        if not (judging["type"] == "number" and judging.keys() <= _JUDGING):
            raise LookupError(f"{name} is judged by {', '.join(judging)}")
        yield name, judging


def _class(measure: str) -> str:
    """Class of a measure in the schema."""
    member = _judging(schema.document()["$defs"]["Sample"]["properties"][measure])
    (reference,) = member.values()
    return str(reference).rpartition("/")[2]


def _judging(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {word: value for word, value in definition.items() if word not in _TELLING and not word.startswith("x-")}
