"""The suite on trial: what it says of every mutant is what the mutant declares, no more and no less."""

import pytest

from kuayu_schemas import registers
from mutants import MUTANTS
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


@pytest.mark.slow
def test_the_kill_matrix_equals_the_declarations() -> None:
    declared = {mutant.name: mutant.breaks for mutant in MUTANTS} | {MINIATURE: frozenset()}
    rows = list(matrix(MUTANTS))
    assert {row.name for row in rows} == set(declared)
    assert [line for row in rows for line in differences(row, declared[row.name])] == []
