"""The operations of the interface, from the published OpenAPI document."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from kuayu_conformance.rendering.words import Language, Words, named

from .made import Made
from .markdown import code, heading, page, plain, table
from .model import class_link, named_type, type_words
from .problems import problem_link
from .schemas import MANY, REQUIRED, bounds_words
from .terms import ENGLISH_ONLY, TAGS

INTRODUCTION = Words(
    "Version {version} of the interface, all under <code>/v1</code>. The OpenAPI 3.1 document is part of the "
    "installation: <code>kuayu_schemas/published/openapi.json</code>. Where tokens are asked for, each request carries "
    "<code>Authorization: Bearer TOKEN</code>.",
    "接口 {version} 版，均位于 <code>/v1</code> 之下。OpenAPI 3.1 文档随安装提供："
    "<code>kuayu_schemas/published/openapi.json</code>。服务要求令牌时，每个请求附 "
    "<code>Authorization: Bearer TOKEN</code>。",
)
OVERVIEW = {"en": ("Operation", "What it does"), "zh": ("操作", "作用")}
PARAMETERS = {"en": ("Parameter", "In", "Type", "Meaning"), "zh": ("参数", "位置", "类型", "含义")}
ANSWERS = {"en": ("Status", "Body", "When"), "zh": ("状态码", "内容", "情形")}
BODY = Words("Body: {}", "请求体：{}")
PROBLEM = re.compile(r"(?P<name>[a-z][a-z-]*): (?P<when>.*)")

Operation = Mapping[str, Any]


def pages(language: Language) -> Iterator[Made]:
    """The one page of the interface."""
    document = _document()
    rows = []
    blocks = []
    for tag, operations in _by_tag(document).items():
        blocks.append(heading(2, named(TAGS, tag).in_(language), tag))
        for method, path, operation in operations:
            rows.append((f"[{_signature(method, path)}](#{operation['operationId']})", plain(operation["summary"])))
            blocks.append(_operation(language, method, path, operation))
    title = {"en": "# The interface", "zh": "# 接口"}[language]
    introduction = INTRODUCTION.in_(language).format(version=document["info"]["version"])
    overview = table(OVERVIEW[language], rows)
    yield Made("reference/api.md", page(title, introduction, ENGLISH_ONLY.in_(language), overview, *blocks))


@cache
def _document() -> Mapping[str, Any]:
    text = files("kuayu_schemas").joinpath("published/openapi.json").read_text("utf-8")
    document: Mapping[str, Any] = json.loads(text)
    return document


def _by_tag(document: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Operation]]]:
    found: dict[str, list[tuple[str, str, Operation]]] = {tag: [] for tag in TAGS}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            found.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return {tag: operations for tag, operations in found.items() if operations}


def _signature(method: str, path: str) -> str:
    return code(f"{method} {path}")


def _operation(language: Language, method: str, path: str, operation: Operation) -> str:
    parameters = [_parameter(language, row) for row in operation.get("parameters", ())]
    answers = [_answer(status, answer) for status, answer in operation["responses"].items()]
    return page(
        heading(3, _signature(method, path), operation["operationId"]),
        f"**{plain(operation['summary'])}.** {plain(operation.get('description', ''))}",
        table(PARAMETERS[language], parameters) if parameters else "",
        _body(language, operation),
        table(ANSWERS[language], answers),
    )


def _parameter(language: Language, row: Mapping[str, Any]) -> tuple[str, ...]:
    of_type = named_type(row["schema"])
    kind = [type_words(of_type, MANY.in_(language)), bounds_words(language, of_type)]
    kind += [f"**{REQUIRED.in_(language)}**"] if row.get("required") else []
    return code(row["name"]), row["in"], "<br>".join(filter(None, kind)), plain(row.get("description", ""))


def _body(language: Language, operation: Operation) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    shown = [f"{code(name)}, {_content(media)}" for name, media in content.items()]
    return BODY.in_(language).format(", ".join(shown)) if shown else ""


def _content(media: Mapping[str, Any]) -> str:
    if "x-item-schema" in media:
        event = media["x-item-schema"]["properties"]
        return f"{code(event['event']['const'])}: {class_link(_class_of(event['data']['contentSchema']))}"
    of_type = media.get("schema", {})  # binary forms have none
    parts = of_type.get("anyOf", [of_type])
    if all("$ref" in part for part in parts):
        return " / ".join(class_link(_class_of(part)) for part in parts)
    return plain(of_type.get("description", ""))


def _class_of(schema: Mapping[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _answer(status: str, answer: Mapping[str, Any]) -> tuple[str, str, str]:
    bodies = [_content(media) for media in answer.get("content", {}).values()]
    problems = [PROBLEM.fullmatch(part) for part in answer["description"].split("; ")]
    if all(problems):
        when = "<br>".join(f"{problem_link(found['name'])} {plain(found['when'])}" for found in problems if found)
    else:
        when = plain(answer["description"])
    return code(status), ", ".join(filter(None, bodies)), when
