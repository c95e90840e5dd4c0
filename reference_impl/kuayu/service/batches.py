"""Bulk requests whose items are judged one by one: a bad item keeps none of the others out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kuayu.service.problems import Place, ProblemException, invalid_body
from kuayu_schemas import schema

EXPLAINED = 100
"""Items of a batch of which it is said where they break the schema: to find that out takes a hundred times as long as
to find that they do."""

Rejections = Mapping[int, ProblemException]
"""Why items cannot be taken, by index."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a bulk request looks like.

    Attributes:
        class_name: Class of the body.
        member: Member that holds the items.
        item: Class of an item.
        example: A valid item with no more members than it needs.
    """

    class_name: str
    member: str
    item: str
    example: Mapping[str, Any]

    def judge(self, value: Any, max_batch: int) -> dict[int, ProblemException]:
        """Items that break the schema. How many there are is looked at before anything in them is.

        Args:
            value: The body, as JSON of any shape.
            max_batch: Most items.

        Raises:
            ProblemException: invalid-body, for the request as a whole.
        """
        self.check_length(value, max_batch)
        self._check_shell(value)
        return self._broken(value[self.member])

    def check_length(self, value: Any, max_batch: int) -> None:
        """Refuse a batch of too many items, whatever they are.

        Raises:
            ProblemException: invalid-body.
        """
        items: Any = value.get(self.member) if isinstance(value, dict) else None
        if isinstance(items, list) and len(items) > max_batch:
            raise invalid_body(Place(f"{len(items)} items, where {max_batch} are the most", f"/{self.member}"))

    def _check_shell(self, value: Any) -> None:
        """Hold all but the items against the schema.

        Raises:
            ProblemException: invalid-body.
        """
        items: Any = value.get(self.member) if isinstance(value, dict) else None
        shell = value | {self.member: [self.example]} if items and isinstance(items, list) else value
        errors = schema.errors(self.class_name, shell)
        if errors:
            raise invalid_body(*(Place(error.detail, error.pointer) for error in errors))

    def _broken(self, items: Sequence[Any]) -> dict[int, ProblemException]:
        # One by one, so that no call holds Python's lock for as long as a whole batch takes.
        broken = (index for index, item in enumerate(items) if not schema.is_valid(self.item, item))
        found: dict[int, ProblemException] = {}
        for index in broken:
            if len(found) < EXPLAINED:
                errors = schema.errors(self.item, items[index])
                found[index] = invalid_body(*(Place(error.detail, error.pointer) for error in errors))
            else:
                found[index] = invalid_body(
                    Place(f"it breaks the schema of {self.item}; the first {EXPLAINED} such items say where")
                )
        return found


def rejected(rejections: Sequence[tuple[int, ProblemException]]) -> list[dict[str, Any]]:
    """Items that cannot be taken, each of class ItemRejection."""
    return [{"index": index, "problem": problem.to_wire()} for index, problem in rejections]
