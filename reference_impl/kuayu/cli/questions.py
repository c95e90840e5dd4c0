"""Questions in files: which one a file asks, and the answer, computed here or by a service."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from kuayu.cli.answers import answered
from kuayu.cli.documents import content_of, read_document
from kuayu.cli.probe import USAGE, fail
from kuayu_schemas.base import KuayuModel

if TYPE_CHECKING:
    from kuayu.client import Client


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
    content = content_of(file, " or ".join(each.called for each in questions))
    question = _which(content, questions)
    request = read_document(file, content, question.request, question.called)

    def here() -> KuayuModel:
        module, name = question.algorithm
        report = getattr(importlib.import_module(module), name)(request.to_wire())
        return question.report.model_validate_json(orjson.dumps(report))

    hint = "give each name once, use only names that the request holds, and values that go together"
    return answered(here, lambda client: question.ask(client, request), url, token, called="request", hint=hint)


def _which(content: bytes, questions: Sequence[Question]) -> Question:
    """The kind of question that has a member of the file's; the first one where the file is no object at all."""
    try:
        value = orjson.loads(content)
    except ValueError:
        return questions[0]  # reading it as such says what is wrong
    for each in questions:
        if isinstance(value, dict) and each.member in value:
            return each
    kinds = [f"{each.request.__name__} (with {each.member})" for each in questions]
    cause = f"the file is no {', no '.join(each.called for each in questions)}"
    raise fail(cause, f"give a JSON file of the class {', '.join(kinds[:-1])} or {kinds[-1]}", USAGE)
