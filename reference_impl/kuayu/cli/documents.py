"""Files that commands read: objects of the model in JSON, held against the published schema."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from kuayu.cli.probe import USAGE, fail
from kuayu_schemas.base import KuayuModel

SHOWN = 5
"""How many faults or names are told at most."""

Read = TypeVar("Read", bound=KuayuModel)


def content_of(source: str, called: str) -> bytes:
    """Bytes of a file, or of the standard input where it is called ``-``.

    Raises:
        typer.Exit: It cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        hint = f"give a JSON file that holds a {called}, or - for the standard input"
        raise fail(f"cannot read {source}: {error.strerror}", hint, USAGE) from error


def read_document(source: str, content: bytes, model: type[Read], called: str) -> Read:
    """The object that a file holds.

    Args:
        source: Name of the file.
        content: What is in it.
        model: Class of the object.
        called: What people call such an object.

    Raises:
        typer.Exit: It is something else.
    """
    from pydantic import ValidationError
    from pydantic_core import from_json

    from kuayu_schemas import schema

    name = "the standard input" if source == "-" else source
    try:
        value = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise fail(f"{name} is not JSON: {error}", f"give a JSON file of the class {model.__name__}", USAGE) from error
    faults = [f"{fault.pointer or '/'}: {fault.detail}" for fault in schema.errors(model.__name__, value)]
    try:
        if not faults:
            return model.model_validate_json(content)
    except ValidationError as error:  # the form of an instant is right but there is no such day
        faults = ["".join(f"/{step}" for step in each["loc"]) + f": {each['msg']}" for each in error.errors()]
    hint = f"the class {model.__name__} of the published schema says what a {called} holds"
    raise fail(listed(f"{name} is no {called}", faults), hint, USAGE)


def listed(cause: str, faults: Sequence[str]) -> str:
    """A cause and its faults, a line each; not all where there are many."""
    more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
    return "\n      ".join([cause, *faults[:SHOWN], *more])
