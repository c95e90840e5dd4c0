"""What clauses and registers list is what the reference has, too.

That the text agrees with itself, with the registers and with what is published is for its rules, which know nothing of
the reference (``spec/lint``, ``test_lint.py``).
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kuayu.perception.aggregation import FROM_BEST
from kuayu.perception.plausibility import TimeFault
from kuayu_schemas import registers
from kuayu_schemas.models import HealthState
from lint.clauses import CODE, LANGUAGES, Clause

ROOT = Path(__file__).parents[2]
TEXT, REFERENCE = ROOT / "spec" / "text", ROOT / "reference_impl" / "kuayu"

FIGURE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")
REGISTERED = re.compile(r"(get|list|delete)(Domain|Node|Link|ComputeIdentifier|ScrapeTarget)s?")
"""Operations that the architecture names by how their names are made."""

REFUSALS = ("ProblemException", "RefusalError")
"""What the reference makes of a problem; the first argument is the name of its type."""

INDIRECT = {
    "service/ingest.py": frozenset(TimeFault),
    "service/rate_limits.py": frozenset({"rate-limited"}),  # by a class of its own
    "engine/agent/forwarder.py": frozenset[str](),  # as the service named it
    "engine/runner.py": frozenset({"stale-revision", "no-capacity", "invalid-body"}),  # kept with the run
}
"""Names that no literal tells, by the module that raises them."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_states_of_the_clause_stand_in_the_order_by_which_the_reference_tells_the_worst(language: str) -> None:
    text = (TEXT / language / "met-03-queries.md").read_text("utf-8")
    line = next(line for line in text.splitlines() if "`healthy`" in line)
    assert CODE.findall(line) == list(FROM_BEST)
    assert sorted(FROM_BEST) == sorted(HealthState)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_architecture_names_every_operation_of_the_interface(language: str) -> None:
    document = json.loads((ROOT / "schemas/kuayu_schemas/published/openapi.json").read_text("utf-8"))
    operations = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
    text = (TEXT / language / "com-14-architecture.md").read_text("utf-8")
    cells = [cell for row in Clause(language, "com-14-architecture", text).rows for cell in row]
    listed = [name for cell in cells for name in CODE.findall(cell)]
    assert len(listed) == len(set(listed))
    assert set(listed) == {name for name in operations if not REGISTERED.fullmatch(name)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_figure_of_a_clause_is_of_its_language(language: str) -> None:
    texts = [path.read_text("utf-8") for path in (TEXT / language).glob("*.md")]
    named = [place for text in texts for place in FIGURE.findall(text)]
    assert named
    assert all(place.endswith(f"-{language}.svg") for place in named)


def test_figures_differ_between_languages_in_their_words_alone() -> None:
    shapes = re.compile(r"<(?:rect|path)[^>]*>")
    for english in (TEXT / "figures").glob("*-en.svg"):
        chinese = english.with_name(english.name.replace("-en.", "-zh."))
        assert shapes.findall(english.read_text("utf-8")) == shapes.findall(chinese.read_text("utf-8"))


def test_the_reference_raises_every_problem_of_the_register_and_no_other() -> None:
    raised = {name for path in sorted(REFERENCE.rglob("*.py")) for name in names_raised(path)}
    assert raised == {problem.name for problem in registers.problems().problems}


def names_raised(path: Path) -> Iterator[str]:
    """Names of problem types that a module of the reference raises."""
    yield from INDIRECT.get(str(path.relative_to(REFERENCE)), ())
    for call in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in REFUSALS:
            told = list(literals(call.args[0]))
            where = f"{path.relative_to(REFERENCE)}:{call.lineno}"
            assert told or str(path.relative_to(REFERENCE)) in INDIRECT, f"{where} names no problem that can be read"
            yield from told


def literals(argument: ast.expr) -> Iterator[str]:
    """The texts that an argument can be; none where it is told elsewhere."""
    match argument:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=other):
            yield from literals(body)
            yield from literals(other)
