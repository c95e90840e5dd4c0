"""Annex B, first part: the operations of the interface, from the published OpenAPI document."""

import re
from collections.abc import Iterator

from document.manuscript import Manuscript
from document.markdown import code, lines, plain
from document.marks import STABILITY, mark_text
from document.schema import bounds_text, class_link, same_type, type_text
from document.sources import Row, Sources
from document.words import COMMA, TAGS, Words

INTRODUCTION = Words(
    "本条逐项给出 HTTP 接口的各操作，均位于 /v1 之下。要求令牌的服务，每个请求附头部 Authorization: Bearer TOKEN。"
    "请求体与响应的类见 {}，问题类型见 {}。公布的 OpenAPI 3.1 文档与本条同源。",
    "This subclause has each operation of the HTTP interface, all of them under /v1. Where tokens are asked for, each "
    "request carries the header Authorization: Bearer TOKEN. Classes of bodies are in {}, problem types in {}. "
    "The published OpenAPI 3.1 document is of the same source.",
)
HEADINGS = {"zh": ("项", "名称", "类型", "说明"), "en": ("Item", "Name", "Type", "Meaning")}
WIDTHS = (12, 24, 32, 42)
PARAMETER = {"query": Words("查询参数", "Query"), "path": Words("路径参数", "Path"), "header": Words("头部", "Header")}
BODY, ANSWER, PROBLEMS = Words("请求体", "Body"), Words("响应", "Answer"), Words("问题", "Problems")
REQUIRED, EVENT = Words("必备", "required"), Words("事件 {}：{}", "event {}: {}")
_PROBLEM = re.compile(r"(?P<name>[a-z][a-z-]*): .*")


def write(manuscript: Manuscript, sources: Sources, level: int) -> None:
    """Write the operations, a subclause for each group of them."""
    manuscript.say(INTRODUCTION, "annex-model", "com-07-errors")
    for tag, name in TAGS.items():
        manuscript.heading(level, name.in_(manuscript.language), f"operations-{tag}")
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
        [STABILITY.in_(manuscript.language), "", "", mark_text(sources, manuscript.language, "operations", signature)],
    ]
    manuscript.table(code(signature), HEADINGS[manuscript.language], rows, WIDTHS)


def _parameters(manuscript: Manuscript, sources: Sources, operation: Row) -> Iterator[list[str]]:
    language = manuscript.language
    for row in operation.get("parameters", ()):
        schema = same_type(sources, row["schema"])
        required = REQUIRED.in_(language) if row.get("required") else ""
        kind = lines((type_text(language, schema), bounds_text(language, schema), required))
        meaning = _said(manuscript, sources, "parameters", row.get("description", ""))
        yield [PARAMETER[row["in"]].in_(language), code(row["name"]), kind, plain(meaning)]


def _bodies(manuscript: Manuscript, sources: Sources, operation: Row) -> Iterator[list[str]]:
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield [BODY.in_(manuscript.language), code(media), *_content(manuscript, sources, content)]


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
        yield [ANSWER.in_(language), name, kind, plain(meaning)]
    if problems:
        yield [
            PROBLEMS.in_(language),
            code("application/problem+json"),
            class_link("Problem"),
            COMMA.in_(language).join(problems),
        ]


def _content(manuscript: Manuscript, sources: Sources, content: Row) -> tuple[str, str]:
    """Class and description of a body, or of the events of a stream."""
    language = manuscript.language
    if "x-item-schema" in content:
        event = content["x-item-schema"]["properties"]
        name = event["data"]["contentSchema"]["$ref"].rpartition("/")[2]
        return EVENT.in_(language).format(code(event["event"]["const"]), class_link(name)), ""
    schema = content.get("schema", {})  # binary forms have none
    if "$ref" in schema or "anyOf" in schema:
        return type_text(language, schema), ""
    return "", plain(_said(manuscript, sources, "bodies", schema.get("description", "")))
