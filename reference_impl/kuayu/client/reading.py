"""Answers, read as the standard asks of readers."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import ValidationError

from kuayu_schemas.base import KuayuModel

Model = TypeVar("Model", bound=KuayuModel)


def read(model: type[Model], content: bytes) -> Model:
    """Read an answer as the standard asks of readers.

    Members that the model does not know are passed over; values of extensible enumerations that it does not know become
    ``unknown``.

    Raises:
        ValueError: It is no JSON, or no instance of the class all the same.
    """
    try:
        return model.model_validate_json(content, extra="ignore")
    except ValidationError as error:
        if any(each["type"] == "json_invalid" for each in error.errors()):
            raise
        document: Any = json.loads(content)
        for each in error.errors():
            if each["type"] == "enum" and "'unknown'" in each["ctx"]["expected"]:
                _put_at(document, each["loc"], "unknown")
        return model.model_validate_json(json.dumps(document), extra="ignore")


def read_one(models: Sequence[type[Model]], content: bytes) -> Model:
    """Read an answer that may be of several classes: as the first that it is an instance of.

    Raises:
        ValueError: It is an instance of none.
    """
    *former, last = models
    for model in former:
        with suppress(ValueError):
            return read(model, content)
    return read(last, content)


def _put_at(document: Any, place: Sequence[str | int], value: str) -> None:
    for step in place[:-1]:
        document = document[step]
    document[place[-1]] = value
