"""What the clauses list is what the registers, the model and the reference hold, in both languages.

Whoever implements the standard from its text alone has to find every name in it. Lists are compared word by word, so
that neither a text nor a register nor the code can grow by itself.
"""

import ast
import json
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from kuayu.perception.clock import TimeFault
from kuayu.perception.states import FROM_BEST
from kuayu_schemas import registers
from kuayu_schemas.models import FaultKind, Feature, HealthState, OperatingState, Profile, Verdict

ROOT = Path(__file__).parents[2]
TEXT, REFERENCE = ROOT / "spec" / "text", ROOT / "reference_impl" / "kuayu"
LANGUAGES = ("en", "zh")
CLAUSES = sorted(path.stem for path in (TEXT / "zh").glob("*.md"))

CODE = re.compile(r"`([^`]+)`")
ROW = re.compile(r"^\|(.+)\|$", re.MULTILINE)
REQUIREMENT = re.compile(r"\[([A-Z]{3}-\d{3})\]")
FIGURE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")
REGISTERED = re.compile(r"(get|list|delete)(Domain|Node|Link|ComputeIdentifier|ScrapeTarget)s?")
"""Operations that the architecture names by how their names are made."""
SUMMARIES = ("front-01-foreword", "front-02-introduction", "com-14-architecture", "com-15-security")
"""What brings together what stands elsewhere, and requires nothing."""
INFORMATIVE = [name for name in CLAUSES if "（资料性）" in (TEXT / "zh" / f"{name}.md").read_text("utf-8")]
"""Annexes that say so in their titles."""
KEYWORDS = {"en": re.compile(r"\b(?:shall|should|must)\b"), "zh": re.compile("(?<![响相])应|(?<!便)宜|须")}

REFUSALS = ("ProblemException", "RefusalError")
"""What the reference makes of a problem; the first argument is the name of its type."""

INDIRECT = {
    "service/ingest.py": frozenset(TimeFault),
    "engine/agent/upstream.py": frozenset[str](),  # as the service named it
}
"""Names that no literal tells, by the module that raises them."""


def clause(language: str, name: str) -> str:
    return (TEXT / language / f"{name}.md").read_text("utf-8")


def rows(language: str, name: str) -> list[list[str]]:
    """Cells of all rows of a clause's tables."""
    return [[cell.strip() for cell in row.split("|")] for row in ROW.findall(clause(language, name))]


def first_names(language: str, name: str) -> list[str]:
    """What stands as code at the beginning of each row of a clause's tables."""
    return [found[1] for row in rows(language, name) if (found := CODE.match(row[0]))]


def known(names: type[StrEnum]) -> list[str]:
    """Values of an open enumeration that this version defines."""
    return [value for value in names if value != "unknown"]


@pytest.mark.parametrize("name", CLAUSES)
def test_both_languages_have_the_same_words_of_the_wire_and_the_same_requirements(name: str) -> None:
    english, chinese = clause("en", name), clause("zh", name)
    assert set(CODE.findall(english)) == set(CODE.findall(chinese))
    assert REQUIREMENT.findall(english) == REQUIREMENT.findall(chinese)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", [*SUMMARIES, *INFORMATIVE])
def test_what_is_informative_or_sums_up_requires_nothing(name: str, language: str) -> None:
    assert KEYWORDS[language].findall(clause(language, name)) == []
    assert REQUIREMENT.findall(clause(language, name)) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_requirement_that_is_referred_to_is_there(language: str) -> None:
    there = {requirement.id for requirement in registers.requirements().requirements}
    for name in CLAUSES:
        assert set(re.findall(r"\b(?:COM|MET|IDX|DEM|FCT|SCH|RES)-\d{3}\b", clause(language, name))) <= there, name


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_rfc_that_a_clause_names_is_a_reference(language: str) -> None:
    named = {rfc for name in CLAUSES for rfc in re.findall(r"RFC \d+", clause(language, name))}
    assert named == set(re.findall(r"RFC \d+", clause(language, "com-02-references")))


def test_every_term_that_is_defined_is_used() -> None:
    used = "".join(clause("zh", name) for name in CLAUSES if name != "com-03-terms")
    terms = [row[0] for row in rows("zh", "com-03-terms")[2:]]
    assert [term for term in terms if term not in used] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_architecture_names_every_operation_of_the_interface(language: str) -> None:
    document = json.loads((ROOT / "schemas/kuayu_schemas/published/openapi.json").read_text("utf-8"))
    operations = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
    listed = [name for row in rows(language, "com-14-architecture") for cell in row for name in CODE.findall(cell)]
    assert len(listed) == len(set(listed))
    assert set(listed) == {name for name in operations if not REGISTERED.fullmatch(name)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_figure_of_a_clause_is_there_in_its_language(language: str) -> None:
    named = [place for name in CLAUSES for place in FIGURE.findall(clause(language, name))]
    assert named
    assert all(place.endswith(f"-{language}.svg") and (TEXT / language / place).is_file() for place in named)


def test_figures_differ_between_languages_in_their_words_alone() -> None:
    shapes = re.compile(r"<(?:rect|path)[^>]*>")
    for english in (TEXT / "figures").glob("*-en.svg"):
        chinese = english.with_name(english.name.replace("-en.", "-zh."))
        assert shapes.findall(english.read_text("utf-8")) == shapes.findall(chinese.read_text("utf-8"))


def test_every_clause_is_there_in_both_languages() -> None:
    assert sorted(path.stem for path in (TEXT / "en").glob("*.md")) == CLAUSES


def test_every_requirement_stands_in_its_clause_word_for_word() -> None:
    english = {name: " ".join(clause("en", name).split()) for name in CLAUSES}
    chinese = {name: clause("zh", name) for name in CLAUSES}
    for requirement in registers.requirements().requirements:
        assert f"{requirement.text_en} [{requirement.id}]" in english[requirement.clause], requirement.id
        assert f"{requirement.text_zh}[{requirement.id}]" in chinese[requirement.clause], requirement.id
    numbers = [found for text in chinese.values() for found in REQUIREMENT.findall(text)]
    assert sorted(numbers) == sorted(requirement.id for requirement in registers.requirements().requirements)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_features_of_the_clause_are_those_of_the_model_and_of_the_register(language: str) -> None:
    sentence = {"en": r"Features are(.+?); a feature", "zh": r"特性有(.+?)；声明的特性"}[language]
    found = re.search(sentence, clause(language, "com-05-conformance"), re.DOTALL)
    assert found is not None
    listed = re.findall(r"`([a-z-]+)`|\b([A-Z]{3})\b", found[1])
    named: dict[str, str] = {}
    waiting: list[str] = []
    for feature, profile in listed:  # the profile stands behind the features that are of it
        if profile:
            named |= dict.fromkeys(waiting, profile)
            waiting = []
        else:
            waiting.append(feature)
    register = registers.requirements()
    assert named == {feature: definition.profile for definition in register.profiles for feature in definition.features}
    assert sorted(named) == sorted(known(Feature))


def test_every_feature_has_a_requirement_of_its_own() -> None:
    """One that asked for nothing would be no obligation; the clause would have to call it so."""
    register = registers.requirements()
    used = {(row.profile, row.feature) for row in register.requirements if row.feature is not None}
    assert used == {
        (definition.profile, feature) for definition in register.profiles for feature in definition.features
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_profiles_of_the_clause_are_those_of_the_register(language: str) -> None:
    listed = [row[0] for row in rows(language, "com-05-conformance") if re.fullmatch("[A-Z]{3}", row[0])]
    assert listed == [definition.profile for definition in registers.requirements().profiles] == list(known(Profile))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("com-05-conformance", Verdict),
        ("met-06-graph", OperatingState),
        ("res-05-faults", FaultKind),
    ],
)
def test_a_table_of_names_is_an_enumeration_of_the_model(language: str, name: str, names: type[StrEnum]) -> None:
    listed = first_names(language, name)
    assert listed == [value for value in names if value != "unknown" or "unknown" in listed]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_states_of_the_clause_stand_in_the_order_by_which_the_reference_tells_the_worst(language: str) -> None:
    line = next(line for line in clause(language, "met-03-queries").splitlines() if "`healthy`" in line)
    assert CODE.findall(line) == list(FROM_BEST)
    assert sorted(FROM_BEST) == sorted(HealthState)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_problems_of_the_clause_are_those_of_the_register_with_their_statuses(language: str) -> None:
    listed = [(found[1], row[1]) for row in rows(language, "com-07-errors") if (found := CODE.match(row[0]))]
    assert listed == [(problem.name, str(problem.status)) for problem in registers.problems().problems]


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


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_indicators_of_the_clause_stand_in_the_order_of_the_register(language: str) -> None:
    listed = [
        cell.split()[0] for row in rows(language, "met-01-indicators") for cell in row if re.match("[A-Z]{3}-", cell)
    ]
    assert listed == [indicator.id for indicator in registers.indicators().indicators]
