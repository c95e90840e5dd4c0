"""Decisions that commands ask for, here or of a service: requests from files, and the answers.

1. Files that commands read: objects of the model in JSON, held against the published schema.
2. Answers that commands get here or, where a URL is named, from a service.
3. Questions in files: which one a file asks, and the answer, computed here or by a service.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from kuayu.cli.terminal import USAGE, fail
from kuayu_schemas.base import KuayuModel

if TYPE_CHECKING:
    from kuayu.client import Client

SHOWN = 5
"""How many faults or names are told at most."""

Read = TypeVar("Read", bound=KuayuModel)


def content_of(source: str, called: str, form: str = "JSON") -> bytes:
    """Bytes of a file, or of the standard input where it is called ``-``.

    Raises:
        typer.Exit: It cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        article = "an" if called[0] in "aeiou" else "a"
        hint = f"give a {form} file that holds {article} {called}, or - for the standard input"
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
        faults = ["".join(f"/{step}" for step in entry["loc"]) + f": {entry['msg']}" for entry in error.errors()]
    hint = f"the class {model.__name__} of the published schema says what a {called} holds"
    raise fail(listed(f"{name} is no {called}", faults), hint, USAGE)


def listed(cause: str, faults: Sequence[str]) -> str:
    """A cause and its faults, a line each; not all where there are many."""
    more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
    return "\n      ".join([cause, *faults[:SHOWN], *more])


ANSWER_TIMEOUT_SECONDS = 60.0
"""Time that a service may take for one answer; a large request takes a second or two."""

ReportT = TypeVar("ReportT")


def check_url(url: str | None) -> None:
    """Hold the URL of a service, where one is named, to its form.

    Raises:
        typer.Exit: It is none.
    """
    if url and not url.startswith(("http://", "https://")):
        raise fail(f"--url: {url!r} is not an http or https URL", "write it as http://HOST:PORT", USAGE)


def answered(
    local: Callable[[], ReportT],
    remote: Callable[["Client"], ReportT],
    url: str | None,
    token: str | None,
    *,
    called: str,
    hint: str,
    within: str = "",
) -> ReportT:
    """The answer, computed here or by a service.

    Args:
        local: Computes it.
        remote: Asks a client for it.
        url: Where the service is; computed here where it is None.
        token: For the service.
        called: What people call what the file holds.
        hint: What to do where that does not hold together.
        within: Where in the request the content of the file stands; left out of what is told.

    Raises:
        typer.Exit: There is none.
    """
    from kuayu.client import Client, ClientError
    from kuayu.refusals import Refusal

    try:
        if url is None:
            return local()
        with Client(url, token=token, timeout_s=ANSWER_TIMEOUT_SECONDS) as client:
            return remote(client)
    except Refusal as error:
        faults = [f"{pointer.removeprefix(within)}: {detail}" for pointer, detail in error.pointers]
        raise fail(listed(f"the {called} does not hold together", faults), hint, USAGE) from error
    except ClientError as error:
        raise fail(error.cause, error.hint) from error


@dataclass(frozen=True)
class Question:
    """A kind of question.

    Attributes:
        member: Member that only requests of this kind have.
        request: Their class.
        report: Class of the answer.
        algorithm: Module and function that answer it, from and to plain dicts; loaded when it is needed.
        ask: Method of a client that has a service answer it.
        called: What people call such a request.
    """

    member: str
    request: type[KuayuModel]
    report: type[KuayuModel]
    algorithm: tuple[str, str]
    ask: Callable[["Client", Any], KuayuModel]
    called: str


def answer(file: str, questions: Sequence[Question], url: str | None, token: str | None) -> KuayuModel:
    """The answer to what a file asks.

    Args:
        file: Name of the file, or - for the standard input.
        questions: Kinds of questions that it may hold.
        url: Service to ask; the answer is computed here where it is None.
        token: For the service.

    Raises:
        typer.Exit: There is none.
    """
    content = content_of(file, " or ".join(entry.called for entry in questions))
    question = _which(content, questions)
    request = read_document(file, content, question.request, question.called)

    def local() -> KuayuModel:
        module, name = question.algorithm
        report = getattr(importlib.import_module(module), name)(request.to_wire())
        return question.report.model_validate_json(orjson.dumps(report))

    hint = "give each name once, use only names that the request holds, and values that go together"
    return answered(local, lambda client: question.ask(client, request), url, token, called="request", hint=hint)


def _which(content: bytes, questions: Sequence[Question]) -> Question:
    """The kind of question that has a member of the file's; the first one where the file is no object at all."""
    try:
        value = orjson.loads(content)
    except ValueError:
        return questions[0]  # reading it as such says what is wrong
    for question in questions:
        if isinstance(value, dict) and question.member in value:
            return question
    kinds = [f"{question.request.__name__} (with {question.member})" for question in questions]
    cause = f"the file is no {', no '.join(question.called for question in questions)}"
    raise fail(cause, f"give a JSON file of the class {', '.join(kinds[:-1])} or {kinds[-1]}", USAGE)
