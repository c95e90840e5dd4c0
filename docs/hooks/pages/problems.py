"""The registry of problem types."""

from collections.abc import Iterator

from kuayu_conformance.rendering.words import Language
from kuayu_schemas import registers
from kuayu_schemas.models import ProblemType

from .made import Made
from .markdown import code, facts, heading, link, page, plain
from .text import phrases

NAME = "problems"


def pages(language: Language) -> Iterator[Made]:
    """The one page of the registry."""
    say = phrases(NAME, language)
    problem = link("Problem", "/reference/schemas/common.md#Problem")
    blocks = [_problem(language, each) for each in registers.problems().problems]
    yield Made("reference/problems.md", page(f"# {say['title']}", say["introduction"].format(problem=problem), *blocks))


def problem_link(name: str) -> str:
    """A link to a problem type."""
    return link(code(name), f"/reference/problems.md#{name}")


def _problem(language: Language, row: ProblemType) -> str:
    say = phrases(NAME, language)
    chinese = language == "zh"
    rows = [
        ("URI", code(row.type)),
        (say["status"], str(row.status)),
        (say["retryable"], say["may" if row.retryable else "may_not"]),
        (say["remedy"], plain(row.remedy_zh if chinese else row.remedy_en)),
    ]
    return page(heading(2, plain(row.name), row.name), plain(row.title_zh if chinese else row.title_en), facts(rows))
