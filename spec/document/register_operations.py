"""Annex B, first part: the operations of the interface, from the published OpenAPI document."""

import re
from collections.abc import Iterator

from document.manuscript import Manuscript
from document.markdown import code, lines, plain
from document.marks import mark_text
from document.schema import bounds_text, class_link, same_type, type_text
from document.sources import Row, Sources
from document.words import phrases, said

WIDTHS = (12, 24, 32, 42)
_PROBLEM = re.compile(r"(?P<name>[a-z][a-z-]*): .*")


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the operations, a subclause for each group of them."""
    manuscript.say("operations.introduction", "annex-model", "com-07-errors")
    for tag, name in phrases("terms.tags", manuscript.language).items():
        manuscript.heading(level, name, f"operations-{tag}")
        for path, methods in sources.openapi["paths"].items():
            for method, operation in methods.items():
                if operation["tags"][0] == tag:
                    _operation(manuscript, sources, level, f"{method.upper()} {path}", operation)


def _operation(manuscript: Manuscript, sources: Sources, level: int, signature: str, operation: Row) -> None:
    manuscript.heading(level + 1, code(signature), f"operation-{operation['operationId']}")
    chinese = manuscript.language == "zh"
    summary = f"{sources.summaries[signature]}。" if chinese else f"{operation['summary']}. "
    manuscript.add(plain(summary + _said(manuscript, sources, "operations", operation.get("description", ""))))
    rows = [
        *_parameters(manuscript, sources, operation),
        *_bodies(manuscript, sources, operation),
        *_answers(manuscript, sources, operation),
        [
            said("marks.stability", manuscript.language),
            "",
            "",
            mark_text(sources, manuscript.language, "operations", signature),
        ],
    ]
    manuscript.table(code(signature), phrases("operations.headings", manuscript.language), rows, WIDTHS)


def _parameters(manuscript: Manuscript, sources: Sources, operation: Row) -> Iterator[list[str]]:
    language = manuscript.language
    for row in operation.get("parameters", ()):
        schema = same_type(sources, row["schema"])
        required = said("operations.required", language) if row.get("required") else ""
        kind = lines((type_text(language, schema), bounds_text(language, schema), required))
        meaning = _said(manuscript, sources, "parameters", row.get("description", ""))
        yield [phrases("operations.parameter", language)[row["in"]], code(row["name"]), kind, plain(meaning)]


def _bodies(manuscript: Manuscript, sources: Sources, operation: Row) -> Iterator[list[str]]:
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield [said("operations.body", manuscript.language), code(media), *_content(manuscript, sources, content)]


def _said(manuscript: Manuscript, sources: Sources, what: str, text: str) -> str:
    """A sentence of the published interface in the language of the document."""
    return sources.chinese[what][text] if text and manuscript.language == "zh" else text


def _answers(manuscript: Manuscript, sources: Sources, operation: Row) -> Iterator[list[str]]:
    """One row for each success, and one that names all problems with their statuses."""
    language = manuscript.language
    problems = []
    for status, answer in operation["responses"].items():
        named = [_PROBLEM.fullmatch(part) for part in re.split(r"; (?=[a-z-]+: )", answer["description"])]
        if int(status) >= 400 and all(named):  # noqa: PLR2004 - where statuses of errors begin
            problems += [f"{code(found['name'])} ({status})" for found in named if found]
            continue
        media = answer.get("content", {})
        kinds = [_content(manuscript, sources, content) for content in media.values()]
        kind = lines(kind for kind, _ in kinds)
        name = lines((status, *(code(name) for name in media)))
        meaning = _said(manuscript, sources, "answers", answer["description"])
        yield [said("operations.answer", language), name, kind, plain(meaning)]
    if problems:
        yield [
            said("operations.problems", language),
            code("application/problem+json"),
            class_link("Problem"),
            said("document.comma", language).join(problems),
        ]


def _content(manuscript: Manuscript, sources: Sources, content: Row) -> tuple[str, str]:
    """Class and description of a body, or of the events of a stream."""
    language = manuscript.language
    if "x-item-schema" in content:
        event = content["x-item-schema"]["properties"]
        name = event["data"]["contentSchema"]["$ref"].rpartition("/")[2]
        return said("operations.event", language).format(code(event["event"]["const"]), class_link(name)), ""
    schema = content.get("schema", {})  # binary forms have none
    if "$ref" in schema or "anyOf" in schema:
        return type_text(language, schema), ""
    return "", plain(_said(manuscript, sources, "bodies", schema.get("description", "")))
