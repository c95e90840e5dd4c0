"""Bulk requests whose items are judged one by one: a bad item keeps none of the others out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kuayu.service.problems import Place, ProblemException, invalid_body
from kuayu_schemas import schema

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
        """Items that break the schema. Only where the whole is not valid is each looked at by itself.

        Args:
            value: The body, as JSON of any shape.
            max_batch: Most items.

        Raises:
            ProblemException: invalid-body, for the request as a whole.
        """
        whole = schema.is_valid(self.class_name, value)
        if not whole:
            self._check_shell(value)
        items = value[self.member]
        if len(items) > max_batch:
            raise invalid_body(Place(f"{len(items)} items, where {max_batch} are the most", f"/{self.member}"))
        return {} if whole else self._broken(items)

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
        return {
            index: invalid_body(*(Place(error.detail, error.pointer) for error in schema.errors(self.item, item)))
            for index, item in enumerate(items)
            if not schema.is_valid(self.item, item)
        }


def rejected(rejections: Sequence[tuple[int, ProblemException]]) -> list[dict[str, Any]]:
    """Items that cannot be taken, each of class ItemRejection."""
    return [{"index": index, "problem": problem.to_wire()} for index, problem in rejections]
