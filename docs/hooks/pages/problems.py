"""The registry of problem types."""

from collections.abc import Iterator

from kuayu_conformance.rendering.words import Language, Words
from kuayu_schemas import registers
from kuayu_schemas.models import ProblemType

from .made import Made
from .markdown import code, facts, heading, link, page, plain

INTRODUCTION = Words(
    "What an answer with a status of 400 or above says: media type <code>application/problem+json</code> (RFC 9457), "
    "class {problem}. The same register is answered at <code>GET /v1/problems</code>.",
    "状态码为 400 及以上的响应所述内容：媒体类型 <code>application/problem+json</code>（RFC 9457），类 {problem}。"
    "<code>GET /v1/problems</code> 给出同一注册表。",
)
STATUS, RETRYABLE, REMEDY = Words("Status", "状态码"), Words("Same request again", "重试"), Words("Remedy", "处理方法")
MAY, MAY_NOT = Words("may succeed later", "稍后可能成功"), Words("will fail again", "仍将失败")


def pages(language: Language) -> Iterator[Made]:
    """The one page of the registry."""
    problem = link("Problem", "/reference/schemas/common.md#Problem")
    title = {"en": "# Problem types", "zh": "# 问题类型"}[language]
    blocks = [_problem(language, each) for each in registers.problems().problems]
    yield Made("reference/problems.md", page(title, INTRODUCTION.in_(language).format(problem=problem), *blocks))


def problem_link(name: str) -> str:
    """A link to a problem type."""
    return link(code(name), f"/reference/problems.md#{name}")


def _problem(language: Language, row: ProblemType) -> str:
    chinese = language == "zh"
    rows = [
        ("URI", code(row.type)),
        (STATUS.in_(language), str(row.status)),
        (RETRYABLE.in_(language), (MAY if row.retryable else MAY_NOT).in_(language)),
        (REMEDY.in_(language), plain(row.remedy_zh if chinese else row.remedy_en)),
    ]
    return page(heading(2, plain(row.name), row.name), plain(row.title_zh if chinese else row.title_en), facts(rows))
