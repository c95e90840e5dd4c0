"""What clauses and registers list is what the reference has, too.

That the text agrees with itself, with the registers and with what is published is for its rules, which know nothing of
the reference (``spec/lint``, ``test_lint.py``).
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kuayu.perception.clock import TimeFault
from kuayu.perception.states import FROM_BEST
from kuayu_schemas import registers
from kuayu_schemas.models import HealthState
from lint.clauses import CODE, LANGUAGES

ROOT = Path(__file__).parents[2]
TEXT, REFERENCE = ROOT / "spec" / "text", ROOT / "reference_impl" / "kuayu"

REFUSALS = ("ProblemException", "RefusalError")
"""What the reference makes of a problem; the first argument is the name of its type."""

INDIRECT = {
    "service/ingest.py": frozenset(TimeFault),
    "engine/agent/upstream.py": frozenset[str](),  # as the service named it
}
"""Names that no literal tells, by the module that raises them."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_states_of_the_clause_stand_in_the_order_by_which_the_reference_tells_the_worst(language: str) -> None:
    text = (TEXT / language / "met-03-queries.md").read_text("utf-8")
    line = next(line for line in text.splitlines() if "`healthy`" in line)
    assert CODE.findall(line) == list(FROM_BEST)
    assert sorted(FROM_BEST) == sorted(HealthState)


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
