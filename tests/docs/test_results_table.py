"""One truth about results: the table follows from the reports, and README, badge and pages from the table."""

import re
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from docs.parsed import parsed
from docs.published import ROOT, RUNS, report, results

from kuayu_schemas import registers
from kuayu_schemas.models import RunLevel, Verdict

LANGUAGES = {"en": "", "zh": "zh/"}
NAMES = sorted(folder.name for folder in RUNS.iterdir())
LEVELS = ["smoke", "quick", "full"]
LINES = re.compile(r"<!-- results:begin -->\n(.*?)<!-- results:end -->", re.DOTALL)


@pytest.fixture
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def test_the_table_says_of_each_requirement_what_the_deciding_report_says() -> None:
    """Worked out here once more: a run by today's method that could test it, of these the most thorough and last.

    Runs from before have requirements that were withdrawn since; the table has not.
    """
    revised = {row.id: row.revised for row in registers.requirements().requirements if row.revised}
    asked = {
        name: {
            r.requirement: r
            for r in report(name).results
            if r.verdict not in {"not-applicable", "not-supported"} and "the run ended before" not in (r.reason or "")
        }
        for name in NAMES
    }
    judged = {requirement for found in asked.values() for requirement in found}
    assert results().keys() == judged - registers.withdrawn().keys()
    for requirement, row in results().items():
        runs = [name for name in NAMES if requirement in asked[name]]

        def counts(name: str, requirement: str = requirement) -> tuple[bool, bool, int, datetime]:
            ended = report(name).finished_at
            by_this_method = requirement not in revised or ended >= revised[requirement]
            tested = asked[name][requirement].verdict != "not-testable"
            return by_this_method, tested, LEVELS.index(report(name).run_level), ended

        decides = max(runs, key=counts)
        result, made_by = asked[decides][requirement], report(decides)
        assert row["run"] == decides
        assert row["verdict"] == result.verdict
        assert (row.get("estimate"), row.get("bound")) == (result.estimate, result.bound)
        assert (row["level"], row["date"]) == (made_by.run_level, f"{made_by.finished_at:%Y-%m-%d}")
        assert row["seed"] == made_by.nonce.removeprefix("seed-")
        assert row["command"]


@pytest.mark.usefixtures("hooks")
def test_what_is_committed_follows_from_the_runs() -> None:
    from pages import runs  # type: ignore[import-not-found]

    differing = [str(file) for file, text in runs.committed() if file.read_text("utf-8") != text]
    assert differing == [], "make results"


@pytest.mark.parametrize("place", ["README.md", "docs/en/index.md", "docs/zh/index.md"])
def test_lines_of_results_show_misses_as_misses(place: str) -> None:
    found = LINES.search((ROOT / place).read_text("utf-8"))
    assert found
    lines = [line for line in found[1].splitlines() if re.match(r"\| [A-Z]{3}-\d{3} ", line)]
    assert len(lines) == 10
    for line in lines:
        row = results()[line.split()[1]]
        assert row["date"] in line
        assert ("**" in line) == (row["verdict"] != "pass")
    deciding = len({row["run"] for row in results().values()})
    assert re.search(rf"\b{deciding} (runs of|次运行)", found[1])
    met = sum(row["verdict"] == "pass" for row in results().values())
    assert f"**{met} of {len(results())}**" in found[1] or f"**{met}**" in found[1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_requirement_that_was_judged_shows_its_verdict_and_by_which_run(site: Path, language: str) -> None:
    for requirement, row in results().items():
        page = (site / LANGUAGES[language] / f"requirements/{requirement[:3].lower()}.html").read_text("utf-8")
        section = page[page.index(f'id="{requirement}"') :].split("<h2", 1)[0]
        assert f'class="badge {row["verdict"]}"' in section
        assert row["date"] in section
        assert f"--requirement {requirement}" in section


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_of_results_says_of_what_runs_it_is_made(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "results.html")
    assert results().keys() <= page.ids
    for name in NAMES:
        assert f"run-{name}" in page.ids
        assert report(name).nonce in page.text
        assert (site / f"results/runs/{name}/report.html").is_file()


def test_every_requirement_with_a_check_was_judged() -> None:
    assert results().keys() == {row.id for row in registers.requirements().requirements if row.check}
    assert {row["verdict"] for row in results().values()} <= {verdict.value for verdict in Verdict}


def test_every_place_that_readme_and_contributing_name_is_there() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text("utf-8")
        links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
        assert [link for link in links if link and not (ROOT / link).exists()] == []


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


@pytest.mark.usefixtures("hooks")
def test_a_run_that_ended_early_is_not_kept_as_the_confirmatory_one(tmp_path: Path) -> None:
    from pages import runs

    early = report(NAMES[0]).model_copy(update={"called_off": "it was called off"})
    (tmp_path / "report.json").write_text(early.model_dump_json(), "utf-8")
    (tmp_path / "transcript.jsonl").write_bytes(b"{}\n")
    with pytest.raises(ValueError, match="ended early"):
        runs.keep(tmp_path, runs.CONFIRMATORY, tmp_path)
    assert (runs.keep(tmp_path, "other", tmp_path) / "transcript.jsonl.xz").is_file()


@pytest.mark.usefixtures("hooks")
def test_a_verdict_by_an_earlier_method_is_shown_as_one_until_there_is_a_later(tmp_path: Path) -> None:
    """A quick run by the present method decides before a full one by that before; elsewhere the full one does."""
    from pages import runs

    revised = next(row.revised for row in registers.requirements().requirements if row.id == "SCH-003")
    assert revised is not None
    before = report(runs.CONFIRMATORY).model_copy(update={"finished_at": revised - timedelta(days=1)})
    latest = max(row.revised for row in registers.requirements().requirements if row.revised is not None)
    after = before.model_copy(update={"finished_at": latest + timedelta(days=1), "run_level": RunLevel.quick})
    for name, its in (("before", before), ("after", after)):
        (tmp_path / runs.FOLDER / name).mkdir(parents=True)
        (tmp_path / runs.FOLDER / name / "report.json").write_text(its.model_dump_json(), "utf-8")
        if name == "before":
            row = runs.standing(tmp_path)["SCH-003"]
            assert row.outdated
            assert row.entry()["earlier_method"]
            assert "(earlier method)" in runs.lines("en", tmp_path)
            runs.runs.cache_clear()
            runs.standing.cache_clear()
    assert {name: runs.run_of(name, tmp_path).name for name in ("SCH-003", "SCH-002")} == {
        "SCH-003": "after",
        "SCH-002": "before",
    }
    assert "(earlier method)" not in runs.lines("en", tmp_path)
