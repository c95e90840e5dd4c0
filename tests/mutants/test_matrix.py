"""The suite on trial: what it says of every mutant is what the mutant declares, no more and no less."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from miniature.conversion import Conversion
from miniature.graph import Graphs
from miniature.indices import Indices
from miniature.otlp import Otlp
from miniature.scraping import Scraping
from miniature.series import Stepped

from kuayu_schemas import registers
from kuayu_schemas.models import Profile
from mutants import MUTANTS
from mutants.declaration import CHECKED, PLAYED, SLICES
from mutants.matrix import MINIATURE, differences, matrix

TESTABLE = {requirement.id for requirement in registers.requirements().requirements if requirement.check}
FIGURES = {row.id for row in registers.requirements().requirements if row.check and row.threshold}


def test_every_check_is_broken_by_a_mutant() -> None:
    assert TESTABLE - {name for mutant in MUTANTS for name in mutant.breaks} == set()


def test_every_figure_has_a_near_miss_and_a_control() -> None:
    """Where the figure is a count of all, the unchanged server is the control: one less is the near-miss."""
    assert {mutant.near_miss_of for mutant in MUTANTS} - {""} == FIGURES
    assert {mutant.control_for for mutant in MUTANTS} - {""} == FIGURES - {"MET-001"}
    assert all(not mutant.breaks for mutant in MUTANTS if mutant.control_for)


@pytest.mark.parametrize(
    ("kind", "signs"),
    [
        (Scraping, ("/v1/scrape-targets",)),
        (Conversion, ("/v1/scrape-targets", "/v1/expositions", "/v1/metrics")),
        (Otlp, ("/v1/metrics",)),
        (Stepped, ("/v1/series",)),
        (Graphs, ("/v1/graph", "checks.graphs")),
        (Indices, ("/v1/compute-indices", "/v1/probe-plans")),
    ],
)
def test_what_answers_an_operation_is_held_against_every_check_that_calls_it(
    kind: type, signs: tuple[str, ...]
) -> None:
    held = next(requirements for kinds, requirements in SLICES if kind in kinds)
    calling = {
        row.id for row in CHECKED if row.profile is not Profile.COM and any(sign in source(row.check) for sign in signs)
    }
    assert calling
    assert calling - PLAYED <= held


def source(module: str | None) -> str:
    spec = find_spec(module or "")
    assert spec
    assert spec.origin
    return Path(spec.origin).read_text("utf-8")


@pytest.mark.slow
def test_the_kill_matrix_equals_the_declarations() -> None:
    declared = {mutant.name: mutant.breaks for mutant in MUTANTS} | {MINIATURE: frozenset()}
    rows = list(matrix(MUTANTS))
    assert {row.name for row in rows} == set(declared)
    assert [line for row in rows for line in differences(row, declared[row.name])] == []
