"""A cover set breaks everything, and what a change touches is found in the history of a checkout."""

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kuayu_schemas import registers
from mutants import MUTANTS
from mutants.cover import (
    BASE,
    CHECKS_FOLDER,
    FOLDERS,
    ROOT,
    Base,
    Reason,
    Selection,
    base_of,
    cover_set,
    select,
    touched,
)
from mutants.declaration import DECLARED, EDGES, JUDGED_BY_THEMSELVES, Mutant
from mutants.matrix import cost, expected_seconds, trials_of

MAX_SECONDS = 440
"""Seconds that the cover set may take on two processors, by costs measured on the slowest machine that is known."""

AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@example.org")

MUTANT = "tests/mutants/figures.py"
"""A module of which one mutant is changed: how often that scrapes is its whole difference to another one."""
SLOW, LESS_SLOW = "sampled-every-sixty-six-seconds", "sampled-every-fifty-five-seconds"

Edit = Callable[[str, str, str], None]


@cache
def cover() -> list[Mutant]:
    """The cover set; not when this file is imported, for every worker imports every file."""
    return cover_set(MUTANTS, cost)


def git(root: Path, *arguments: str) -> str:
    command = ["git", *AUTHOR, *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def commit(root: Path) -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "a change")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with what this one has in the folders that are compared, in one commit."""
    monkeypatch.delenv(BASE, raising=False)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):  # these are set where git runs the tests
        monkeypatch.delenv(name, raising=False)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    commit(tmp_path)
    return tmp_path


@pytest.fixture
def edit(checkout: Path) -> Edit:
    """Replace a text in a file of the checkout, where it stands first."""

    def replace(file: str, old: str, new: str) -> None:
        text = (checkout / file).read_text("utf-8")
        assert old in text
        (checkout / file).write_text(text.replace(old, new, 1), "utf-8")

    return replace


def breaking(*requirements: str) -> set[str]:
    """Names of mutants that are about a requirement."""
    return {mutant.name for mutant in MUTANTS if {*mutant.breaks, mutant.control_for} & {*requirements}}


def test_the_cover_set_breaks_every_requirement_that_has_a_check() -> None:
    testable = {row.id for row in registers.requirements().requirements if row.check}
    broken = {requirement for mutant in cover() for requirement in mutant.breaks}
    assert broken == testable - JUDGED_BY_THEMSELVES.keys()
    assert expected_seconds(trials_of(cover(), nearest=cover()), 2) <= MAX_SECONDS


def test_no_mutant_of_the_cover_set_is_needless() -> None:
    for mutant in cover():
        others = {requirement for other in cover() if other is not mutant for requirement in other.breaks}
        assert not mutant.breaks <= others


def test_the_cover_set_hangs_on_the_declarations_alone() -> None:
    assert cover_set(MUTANTS, cost) == cover()
    assert cover_set(MUTANTS[::-1], cost) == cover()[::-1]


def test_mutants_of_the_cover_set_are_held_against_the_profiles_of_what_they_break() -> None:
    for mutant in cover():
        (nearest, everything) = (trials_of([mutant], nearest=group) for group in ([mutant], []))
        held = {name for trial in nearest if trial.name == mutant.name for name in trial.requirements}
        assert mutant.breaks <= held
        assert held == {
            name
            for trial in everything
            if trial.name == mutant.name
            for name in trial.requirements
            if name == "COM-003" or any(name[:4] == broken[:4] for broken in mutant.breaks)
        }


def test_near_misses_are_preferred_and_cheap_ones_too() -> None:
    near = [mutant for mutant in MUTANTS if mutant.near_miss_of == "SCH-007"]
    others = [mutant for mutant in MUTANTS if "SCH-007" in mutant.breaks and not mutant.near_miss_of]
    alike = [mutant for mutant in (*others, *near) if mutant.breaks == near[0].breaks]
    assert cover_set(alike, lambda _: 1.0) == near
    assert cover_set(alike, lambda mutant: 2.0 if mutant in near else 1.0) == [
        min((mutant for mutant in alike if mutant not in near), key=lambda mutant: mutant.name)
    ]


def test_a_mutant_whose_class_changed_is_touched_and_its_neighbour_is_not(checkout: Path, edit: Edit) -> None:
    edit(MUTANT, 'target.get("period", 66)', 'target.get("period", 67)')
    assert touched(MUTANTS, "HEAD", checkout) == {SLOW: Reason.CLASS}
    base = git(checkout, "rev-parse", "HEAD")
    commit(checkout)
    assert touched(MUTANTS, base, checkout) == {SLOW: Reason.CLASS}
    assert touched(MUTANTS, "HEAD", checkout) == {}


def test_comments_and_docstrings_change_no_mutant(checkout: Path, edit: Edit) -> None:
    edit(MUTANT, "it is scraped every 66 s.", "it is scraped every sixty-six seconds.")
    edit(MUTANT, 'return float(target.get("period", 66))', 'return float(target.get("period", 66))  # too seldom')
    assert touched(MUTANTS, "HEAD", checkout) == {}


def test_what_mutants_of_a_module_share_changes_all_of_them(checkout: Path, edit: Edit) -> None:
    edit("tests/mutants/states.py", "crc32(record", "1 + crc32(record")
    assert touched(MUTANTS, "HEAD", checkout) == dict.fromkeys(
        ("a-third-is-forgotten", "a-fifth-is-forgotten"), Reason.CLASS
    )


def test_a_mutant_that_the_base_does_not_have_is_new(checkout: Path, edit: Edit) -> None:
    text = (ROOT / MUTANT).read_text("utf-8")
    start = text.index('@control("MET-002")')
    one = text[start : text.index("\n\n\n", start)]
    edit(MUTANT, one, "")
    base = commit(checkout)
    edit("tests/mutants/figures.py", "\n\n\n\n\n", f"\n\n\n{one}\n\n\n")
    assert touched(MUTANTS, base, checkout) == {LESS_SLOW: Reason.NEW}


def test_a_module_that_git_does_not_know_yet_counts(checkout: Path) -> None:
    file = checkout / "tests/mutants/paging.py"
    text = file.read_text("utf-8")
    file.unlink()
    commit(checkout)
    file.write_text(text, "utf-8")
    names = {mutant.name for mutant in MUTANTS if mutant.defined.__module__ == "mutants.paging"}
    assert touched(MUTANTS, "HEAD", checkout) == dict.fromkeys(names, Reason.NEW)


def test_a_check_that_changed_touches_mutants_that_are_about_its_requirement(checkout: Path, edit: Edit) -> None:
    edit(f"{CHECKS_FOLDER}/metrics/sampling.py", "SECONDS = 60.0", "SECONDS = 61.0")
    assert touched(MUTANTS, "HEAD", checkout) == dict.fromkeys(breaking("MET-002"), Reason.CHECK)
    assert LESS_SLOW in breaking("MET-002")


def test_what_another_check_of_its_module_alone_consists_of_changes_no_check(checkout: Path, edit: Edit) -> None:
    edit(f"{CHECKS_FOLDER}/interface/writes.py", "def judge_bulk(", "def judge_bulks(")
    edit(f"{CHECKS_FOLDER}/interface/writes.py", "    judge_bulk,", "    judge_bulks,")
    names = breaking("COM-013", "COM-014", "COM-015")
    assert touched(MUTANTS, "HEAD", checkout) == dict.fromkeys(names, Reason.CHECK)


def test_what_a_check_rests_on_touches_them_too(checkout: Path, edit: Edit) -> None:
    edit(f"{CHECKS_FOLDER}/index/index_requests.py", "2026-03-01", "2026-03-02")
    names = breaking("COM-028", "COM-029", *(f"IDX-{number:03}" for number in range(5, 16)))
    assert touched(MUTANTS, "HEAD", checkout) == dict.fromkeys(names, Reason.HELPER)


def test_what_replaces_a_part_of_the_minimal_server_that_changed_is_touched(checkout: Path, edit: Edit) -> None:
    edit("tests/minimal_server/scraping.py", "def period(", "def period_of(")
    reasons = touched(MUTANTS, "HEAD", checkout)
    assert set(reasons.values()) == {Reason.MINIMAL_SERVER}
    assert {SLOW, LESS_SLOW} <= reasons.keys()
    assert "pages-are-not-pinned" not in reasons


def test_what_is_over_budget_is_named(checkout: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(f"{CHECKS_FOLDER}/demand/layouts.py", "QUICK, FULL = 5, 24", "QUICK, FULL = 6, 24")
    edit(MUTANT, 'target.get("period", 55)', 'target.get("period", 56)')
    monkeypatch.setenv(BASE, "HEAD")
    everything = select(MUTANTS, cost, 1e6, checkout)
    assert set(everything.reasons) >= {LESS_SLOW}
    assert not everything.beyond_budget
    some = select(MUTANTS, cost, cost(DECLARED[LESS_SLOW]) + 10, checkout)
    assert next(iter(some.reasons)) == LESS_SLOW  # a control is dearer than others here, and comes first
    assert some.reasons.keys() | {mutant.name for mutant in some.beyond_budget} == everything.reasons.keys()
    left = len(some.beyond_budget)
    assert left
    assert some.lines[-1].startswith(f"{left} more that `make mutants` holds: ")
    assert all(mutant.name in some.lines[-1] for mutant in some.beyond_budget)
    selected = {mutant.name for mutant in some.mutants(MUTANTS)}
    assert selected == {mutant.name for mutant in cover()} | EDGES | some.reasons.keys()


def test_the_base_is_what_is_named_else_where_the_branch_began_else_the_commit_before(checkout: Path) -> None:
    first = git(checkout, "rev-parse", "HEAD")
    assert base_of(checkout) == Base("", "git knows no commit before this one, so what the change touches is unknown")
    second = commit(checkout)
    assert base_of(checkout).commit == first
    git(checkout, "update-ref", "refs/remotes/origin/main", second)
    assert base_of(checkout).commit == first
    commit(checkout)
    commit(checkout)
    assert base_of(checkout).commit == second
    assert base_of(checkout, "HEAD~3") == Base(first, "since HEAD~3")
    assert base_of(checkout, "0" * 40) == Base("", f"{BASE}={'0' * 40} is no commit that git knows here")


def test_without_a_history_the_cover_set_is_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for path in ("/nowhere", None):
        if path:
            monkeypatch.setenv("PATH", path)
        selection = select(MUTANTS, cost, 1e6, tmp_path)
        assert {mutant.name for mutant in selection.cover} == {mutant.name for mutant in cover()} | EDGES
        assert selection == Selection(selection.cover, {}, (), base_of(tmp_path))
        assert "git knows no history here" in selection.lines[1]


def test_a_run_takes_as_long_as_processors_need_and_as_the_longest_trial() -> None:
    assert expected_seconds(trials_of([]), 100) == max(trial.seconds for trial in trials_of([]))
    assert expected_seconds(trials_of(cover()), 1) == pytest.approx(
        sum(trial.processor_seconds for trial in trials_of(cover()))
    )
