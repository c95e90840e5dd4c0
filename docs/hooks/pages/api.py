"""The operations of the interface, from the published OpenAPI document."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from kuayu_conformance.rendering.words import Language
from kuayu_schemas import registers

from .made import Made
from .markdown import code, heading, link, page, plain, table
from .model import class_link, named_type, type_words
from .problems import problem_link
from .schemas import bounds_words
from .stability import mark_badge, stability_word
from .text import phrases, term, terms

NAME = "api"
UP = {"en": "", "zh": "../../reference/"}
"""From a page of the language to the folder of the document, beside ``..``."""

FILE = '<a href="../{up}openapi.json" download>openapi.json</a>'
FOLDER, SECTION = "reference/api", "API"
NAMES = {"index": "compute-index"}
"""What pages are named where a tag has the name of the first page of a folder."""
OPENAPI = "reference/openapi.json"
"""Where the published document is, below the folder of the site."""
INTERFACE = Path(__file__).parents[3] / "spec/document/interface-zh.yaml"
"""What the document says of operations, parameters and answers, in Chinese."""
SUMMARIES = Path(__file__).parents[3] / "spec/document/summaries-zh.yaml"
"""What each operation is for, in Chinese."""
PROBLEM = re.compile(r"(?P<name>[a-z][a-z-]*): (?P<when>.*)")
NEXT_PROBLEM = re.compile(r"; (?=[a-z-]+: )")

Operation = Mapping[str, Any]
"""An operation of the OpenAPI document."""


def pages(language: Language) -> Iterator[Made]:
    """A list of all operations, and a page of the operations of each tag."""
    say = phrases(NAME, language)
    document = _document()
    rows = []
    for tag, operations in _by_tag(document).items():
        name, path = term(language, "tags", tag), f"{FOLDER}/{NAMES.get(tag, tag)}.md"
        blocks = [_operation(language, *signed) for signed in operations]
        yield Made(path, page(f"# {name}", *blocks), SECTION)
        rows.append((f"**{link(name, f'/{path}')}**", "", ""))
        for method, address, operation in operations:
            place = link(_signature(method, address), f"/{path}#{operation['operationId']}")
            mark = mark_badge(language, "operations", f"{method} {address}")
            rows.append((place, plain(_summary(language, method, address, operation)), mark))
    title = f"# {say['title']}"
    file = FILE.format(up=UP[language])
    introduction = say["introduction"].format(version=document["info"]["version"], file=file)
    overview = table(say["overview"], rows)
    yield Made(f"{FOLDER}/index.md", page(title, introduction, overview))


def shared() -> Iterator[Made]:
    """The OpenAPI document, to be downloaded."""
    yield Made(OPENAPI, _published())


@cache
def _published() -> str:
    return files("kuayu_schemas").joinpath("published/openapi.json").read_text("utf-8")


@cache
def _document() -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(_published())
    return document


def _by_tag(document: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Operation]]]:
    found: dict[str, list[tuple[str, str, Operation]]] = {tag: [] for tag in terms("en")["tags"]}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            found.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return {tag: operations for tag, operations in found.items() if operations}


def _signature(method: str, path: str) -> str:
    return code(f"{method} {path}")


@cache
def _chinese() -> Mapping[str, str]:
    found: Mapping[str, str] = yaml.safe_load(SUMMARIES.read_text("utf-8"))
    return found


@cache
def _phrases() -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = yaml.safe_load(INTERFACE.read_text("utf-8"))
    return found


def _said(language: Language, what: str, text: str) -> str:
    """A sentence of the document in the language of the page."""
    return _phrases()[what][text] if text and language == "zh" else text


def _summary(language: Language, method: str, path: str, operation: Operation) -> str:
    """What an operation is for."""
    return _chinese()[f"{method} {path}"] if language == "zh" else str(operation["summary"])


def _operation(language: Language, method: str, path: str, operation: Operation) -> str:
    say = phrases(NAME, language)
    parameters = [_parameter(language, row) for row in operation.get("parameters", ())]
    answers = [_answer(language, status, answer) for status, answer in operation["responses"].items()]
    return page(
        heading(2, _signature(method, path), operation["operationId"]),
        f"**{plain(_summary(language, method, path, operation))}{say['stop']}** "
        f"{plain(_said(language, 'operations', operation.get('description', '')))}",
        f"{stability_word(language)}{say['colon']}{mark_badge(language, 'operations', f'{method} {path}')}",
        table(say["parameters"], parameters) if parameters else "",
        _body(language, operation),
        table(say["answers"], answers),
    )


def _parameter(language: Language, row: Mapping[str, Any]) -> tuple[str, ...]:
    say, of_model = phrases(NAME, language), phrases("schemas", language)
    of_type = named_type(row["schema"])
    kind = [type_words(of_type, of_model["many"]), bounds_words(language, of_type)]
    kind += [f"**{of_model['required']}**"] if row.get("required") else []
    meaning = plain(_said(language, "parameters", row.get("description", "")))
    return code(row["name"]), say["places"][row["in"]], "<br>".join(filter(None, kind)), meaning


def _body(language: Language, operation: Operation) -> str:
    say = phrases(NAME, language)
    content = operation.get("requestBody", {}).get("content", {})
    shown = [f"{code(name)}, {_content(language, media)}" for name, media in content.items()]
    return say["body"].format(", ".join(shown)) if shown else ""


def _content(language: Language, media: Mapping[str, Any]) -> str:
    if "x-item-schema" in media:
        event = media["x-item-schema"]["properties"]
        return f"{code(event['event']['const'])}: {class_link(_class_of(event['data']['contentSchema']))}"
    of_type = media.get("schema", {})  # binary forms have none
    parts = of_type.get("anyOf", [of_type])
    if all("$ref" in part for part in parts):
        return " / ".join(class_link(_class_of(part)) for part in parts)
    return plain(_said(language, "bodies", of_type.get("description", "")))


def _class_of(schema: Mapping[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _answer(language: Language, status: str, answer: Mapping[str, Any]) -> tuple[str, str, str]:
    bodies = [_content(language, media) for media in answer.get("content", {}).values()]
    problems = [PROBLEM.fullmatch(part) for part in NEXT_PROBLEM.split(answer["description"])]
    if all(problems):
        named = [(found["name"], _why(language, found)) for found in problems if found]
        when = "<br>".join(f"{problem_link(name)} {plain(why)}" for name, why in named)
    else:
        when = plain(_said(language, "answers", answer["description"]))
    return code(status), ", ".join(filter(None, bodies)), when


def _why(language: Language, found: re.Match[str]) -> str:
    """When a problem is answered; in Chinese by the title of its type."""
    if language == "en":
        return found["when"]
    return next(row.title_zh for row in registers.problems().problems if row.name == found["name"])
