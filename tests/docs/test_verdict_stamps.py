"""A verdict stands as long as nothing that it depends on is another, and is judged again as soon as something is."""

import json
import lzma
import shutil
import sys
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kuayu_conformance.checks import CHECKS
from kuayu_conformance.transcript import PACKED_NAME

ROOT = Path(__file__).parents[2]
HOOKS = str(ROOT / "docs" / "hooks")

sys.path.insert(0, HOOKS)  # importable as mkdocs imports them
runs: Any = import_module("pages.runs")
verdict_stamps: Any = import_module("pages.verdict_stamps")
sys.path.remove(HOOKS)

DAYS, WHOLE_RUN = verdict_stamps.DAYS_OF_SAMPLING, verdict_stamps.WHOLE_RUN

SMALL, CHECK = "sampling", "met_sampling"
"""A run that takes a second to judge, and its only check."""
SUITE = Path("conformance", "kuayu_conformance")

FILES = {
    SUITE / "__init__.py": "",
    SUITE / "check.py": "def judge():\n    from kuayu_conformance.kit import figures\n\n    return figures.LIMIT\n",
    SUITE / "kit" / "__init__.py": "from kuayu_conformance.kit.units import UNIT\n",
    SUITE / "kit" / "figures.py": "'''Figures.'''\n\nLIMIT = 5  # of seconds\n",
    SUITE / "kit" / "units.py": "UNIT = Field(1, description='seconds')\n",
    SUITE / "other.py": "OTHER = 1\n",
    SUITE / "table.json": '{"limit": 5, "title_en": "a limit", "description": {"unit": "s"}}',
    SUITE / "rendering" / "templates" / "page.css": "p {}",
    Path("schemas", "kuayu_schemas", "__init__.py"): "",
    Path("requirements.lock"): "numpy==2.0\n",
}
"""A small suite: its check imports figures when it judges, and with them the package that they lie in."""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def digest(root: Path) -> str:
    digest: str = verdict_stamps.JudgingCode(root).digest(["kuayu_conformance.check"])
    return digest


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            SUITE / "check.py",
            "def judge():\n    from kuayu_conformance.kit import figures\n\n    return -figures.LIMIT\n",
        ),
        (SUITE / "kit" / "figures.py", "LIMIT = 6\n"),
        (SUITE / "kit" / "units.py", "UNIT = Field(2, description='seconds')\n"),
        (SUITE / "table.json", '{"limit": 6, "title_en": "a limit", "description": {"unit": "s"}}'),
        (SUITE / "table.json", '{"limit": 5, "title_en": "a limit", "description": {"unit": "ms"}}'),
        (SUITE / "added.csv", "1,2\n"),
        (Path("requirements.lock"), "numpy==2.1\n"),
    ],
)
def test_what_a_verdict_depends_on_changes_its_digest(suite: Path, name: Path, text: str) -> None:
    before = digest(suite)
    (suite / name).write_text(text, "utf-8")
    assert digest(suite) != before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (SUITE / "kit" / "figures.py", "'''How long.'''\n\n# In seconds.\nLIMIT = 5\n'''At most.'''\n"),
        (SUITE / "kit" / "units.py", "UNIT = Field(1, description='in seconds')\n"),
        (SUITE / "other.py", "OTHER = 2\n"),
        (SUITE / "table.json", '{"title_en": "The limit", "description": {"unit": "s"}, "limit": 5}'),
        (SUITE / "rendering" / "templates" / "page.css", "p { color: red }"),
    ],
)
def test_words_and_what_is_not_imported_do_not(suite: Path, name: Path, text: str) -> None:
    before = digest(suite)
    (suite / name).write_text(text, "utf-8")
    assert digest(suite) == before


def test_a_module_that_is_not_there_has_no_digest(suite: Path) -> None:
    with pytest.raises(FileNotFoundError):
        verdict_stamps.JudgingCode(suite).digest(["kuayu_conformance.nowhere"])


def test_every_check_is_drawn_on_one_day_of_a_fortnight() -> None:
    begin = date(2026, 11, 29)
    days = [begin + timedelta(days=number) for number in range(DAYS)]
    for listed in CHECKS:
        assert sum(verdict_stamps.drawn("confirmatory", listed.name, day) for day in days) == 1


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one small run, and the code as it is here."""
    for name in ("conformance", "schemas", "requirements.lock"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / runs.FOLDER / SMALL, tmp_path / runs.FOLDER / SMALL)
    return tmp_path


def digests(checkout: Path) -> dict[str, str]:
    (run,) = runs.runs(checkout)
    code = verdict_stamps.JudgingCode(checkout)
    current: dict[str, str] = verdict_stamps.current(checkout / runs.FOLDER / SMALL, run.report, code)
    return current


def spoil(checkout: Path) -> None:
    """Take from the run all pages of samples but the first ones."""
    packed = checkout / runs.FOLDER / SMALL / PACKED_NAME
    lines = lzma.decompress(packed.read_bytes()).decode().splitlines()
    packed.write_bytes(lzma.compress("\n".join(line for line in lines if "&cursor=" not in line).encode()))


def test_what_was_judged_and_agrees_is_not_judged_again_until_something_changes(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs.verify_runs(None, root=checkout, remember=True) == 0
    assert capsys.readouterr().out.startswith(f"{SMALL}: judged again")
    stamps = verdict_stamps.read(checkout)
    assert stamps == {SMALL: digests(checkout)}
    assert stamps[SMALL].keys() == {CHECK, WHOLE_RUN}

    assert runs.verify_runs(None, root=checkout, remember=True) == 0
    assert capsys.readouterr().out.startswith(f"{SMALL}: 1 of 1 checks stand as they were judged")
    assert runs.verify_runs(None, root=checkout, everything=True) == 0
    assert capsys.readouterr().out.startswith(f"{SMALL}: judged again")

    spoil(checkout)
    assert digests(checkout).items().isdisjoint(stamps[SMALL].items())
    assert runs.verify_runs(None, root=checkout, remember=True) == 1
    assert "differs" in capsys.readouterr().out
    assert verdict_stamps.read(checkout) == {SMALL: {}}, "nothing is remembered of what does not agree"


def test_a_stamp_that_was_written_by_hand_says_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict_stamps.write(checkout, {SMALL: {CHECK: "0" * 64, WHOLE_RUN: digests(checkout)[WHOLE_RUN]}})
    assert runs.verify_runs(None, root=checkout) == 0
    assert capsys.readouterr().out.startswith(f"{SMALL}: judged again")


def test_a_check_of_the_sample_is_judged_though_it_stands(checkout: Path) -> None:
    current = digests(checkout)
    stamps = {SMALL: current}
    days = [date(2026, 11, 29) + timedelta(days=number) for number in range(DAYS)]
    standing = [verdict_stamps.standing_verdicts(SMALL, stamps, current, day) for day in days]
    assert sum(CHECK not in names for names in standing) == 1
    assert verdict_stamps.standing_verdicts(SMALL, stamps, current, None) == current.keys()


def test_committed_stamps_are_of_committed_runs_and_of_their_checks() -> None:
    known = {listed.name for listed in CHECKS} | {WHOLE_RUN}
    committed = {run.name for run in runs.runs()}
    for name, written in verdict_stamps.read(ROOT).items():
        assert name in committed
        assert written.keys() <= known
        assert all(len(bytes.fromhex(digest)) == 32 for digest in written.values())


def test_stamps_are_json_of_digests_by_run_and_check(tmp_path: Path) -> None:
    (tmp_path / verdict_stamps.FILE).parent.mkdir(parents=True)
    verdict_stamps.write(tmp_path, {"one": {"check": "ab"}})
    assert json.loads((tmp_path / verdict_stamps.FILE).read_text("utf-8")) == verdict_stamps.read(tmp_path)
