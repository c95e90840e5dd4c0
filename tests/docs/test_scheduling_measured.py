"""The page of what scheduling gained says what the committed reports say, and all of it in both languages."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.scheduling_scores import score, windows
from docs.parsed import parsed
from docs.published import report_on, results

from kuayu_conformance.checks.scheduling.cells import Plan, plan
from kuayu_conformance.checks.scheduling.gains import CHECK, GainWindows, judge
from kuayu_conformance.checks.scheduling.scores import Score
from kuayu_conformance.run.judgement import conclude
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, PlotKind, Replay, RequirementResult, RunLevel, Verdict

ROOT = Path(__file__).parents[2]
LANGUAGES = {"en": "", "zh": "zh/"}
FOLDER = "docs/results/scheduling"
REPORTS = {name: report_on(name) for name in ("SCH-003", "SCH-001")}
"""That of the gains, and that of all else; they may be one."""
REGISTER = {each.id: each for each in registers.requirements().requirements}
GAINS = frozenset(CHECK.requirements)
"""Requirements for which whole windows are played beside baselines."""

NAMES = re.compile(r"Gbit/s|Holm|HTTP|Kendall|Philly|Student|（[a-z-]+）")
"""What stays as it is in Chinese: units, people, protocols, traces, and identifiers in brackets."""
PLACE_FOR_WORDS = "docs/hooks/text/judged_scheduling_zh.yaml"


@pytest.fixture(scope="module")
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def text_of(report: ConformanceReport, language: str, folder: Path) -> str:
    """The page that is made of a report of gains, as Markdown."""
    from pages import runs, scheduling_measured  # type: ignore[import-not-found]

    runs.runs.cache_clear()
    runs.standing.cache_clear()
    (folder / runs.FOLDER / "gains").mkdir(parents=True, exist_ok=True)
    (folder / runs.FOLDER / "gains/report.json").write_text(report.model_dump_json(), encoding="utf-8")
    (page,) = scheduling_measured.pages(language, folder)
    return str(page.text)


def words_of(result: RequirementResult) -> Iterator[str]:
    """What the page prints of a result in the check's own words."""
    yield result.estimator or ""
    yield from (part.label for part in result.parts)
    for table in result.tables or ():
        yield from (table.title, *table.columns, *(cell for row in table.rows for cell in row.cells))
    for plot in result.plots or ():
        # A graph knows its lines by the name of their series, which the page says in its own words.
        labels = [each.label for each in plot.series if plot.kind is not PlotKind.graph or each.label != "links"]
        yield from (plot.title, plot.x_label, plot.y_label, *labels)
    if result.reason and "expectations were not met" in result.reason:
        for each in result.evidence[: int(result.reason.split()[0])]:
            yield from (each.expected, each.found)


def unknown(results: list[RequirementResult]) -> list[str]:
    """Words that the Chinese page would print in English, with the requirement that says them."""
    from pages.translations import chinese

    said = [(result.requirement, text) for result in results for text in words_of(result)]
    return [
        f"{requirement}: {text}"
        for requirement, text in dict.fromkeys(said)
        if re.search("[a-z]{3}", NAMES.sub("", chinese(text, "SCH")))
    ]


def full_run(its: Plan, service: Score, *, giant: Score | None = None, **others: Score) -> list[RequirementResult]:
    """What a full run would report of the gains if every window were alike, but for those of a family."""
    cells = {cell: windows(service, count=number, **others) for cell, number in its.due().items()}
    if giant is not None:
        cells[its.of_family("giant")] = windows(giant, count=its.family_windows, **others)
    grid = {load: windows(service, count=its.load_windows, **others) for load in its.loads}
    return judged(GainWindows(its, cells, grid, 1000, 0, None))


def judged(observation: GainWindows) -> list[RequirementResult]:
    findings = list(judge(observation))
    return [
        conclude(
            REGISTER[name],
            [each for each in findings if each.requirement == name],
            CHECK.name,
            Replay.deterministic,
            None,
        )
        for name in CHECK.requirements
    ]


def reported(results: list[RequirementResult]) -> ConformanceReport:
    """A report of gains, with the committed one's facts about its run."""
    return REPORTS["SCH-003"].model_copy(update={"results": results, "selection": [*CHECK.requirements]})


@pytest.mark.usefixtures("hooks")
def test_every_word_of_the_report_is_known_in_chinese() -> None:
    results = [result for report in REPORTS.values() for result in report.results]
    left = unknown([result for result in results if result.requirement.startswith("SCH")])
    assert not left, f"say in {PLACE_FOR_WORDS} what these are in Chinese:\n" + "\n".join(left)


@pytest.mark.usefixtures("hooks")
def test_words_of_any_full_run_are_known_in_chinese() -> None:
    its = plan(full=True, traces=("itp",))
    runs = [
        full_run(its, score(period=700.0, money=0.6)),
        full_run(its, score(period=990.0), giant=score(period=1200.0), B1=score(served=0.0), B3=score(served=0.96)),
        full_run(its, score(period=950.0, imputed=0.2)),
        judged(GainWindows(its, {}, {}, 1000, 1000, None)),
    ]
    left = [each for results in runs for each in unknown(results)]
    assert not left, f"say in {PLACE_FOR_WORDS} what these are in Chinese:\n" + "\n".join(left)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.usefixtures("hooks")
def test_gains_of_all_policies_stand_beside_each_other(tmp_path: Path, language: str) -> None:
    results = full_run(plan(full=True), score(period=700.0, money=0.6), B3=score(period=800.0))
    page = text_of(reported(results), language, tmp_path)
    period = next(result for result in results if result.requirement == "SCH-003")
    shown = [table for table in period.tables or () if table.title.startswith("Training periods")]
    assert shown
    for table in shown:
        places = [place for place, column in enumerate(table.columns) if column == "less than B1"]
        for row in table.rows:
            if row.cells[0] in {"B1", "B5 bound"}:
                continue
            gains = [row.cells[place].replace(" %", "\u202f%") for place in places]
            assert all(gain.startswith("−") or gain == "–" or f"+{gain}" in page for gain in gains)
            assert all(gain in page for gain in gains)


@pytest.mark.parametrize(("language", "words"), [("en", "asked for in the run below"), ("zh", "下列运行未请求")])
@pytest.mark.usefixtures("hooks")
def test_where_there_is_no_run_of_gains_the_page_says_so(tmp_path: Path, language: str, words: str) -> None:
    from pages import scheduling_measured

    (page,) = scheduling_measured.pages(language, tmp_path)
    assert words in page.text
    asked = full_run(plan(full=True), score(period=700.0))
    assert words not in text_of(reported(asked), language, tmp_path)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_figure_stands_beside_its_verdict(site: Path, language: str) -> None:
    page = (site / LANGUAGES[language] / "results-scheduling.html").read_text("utf-8")
    for name, row in results().items():
        if name.startswith("SCH") and "estimate" in row:
            section = page[page.index(f'id="{name}"') :]
            assert re.search(r'class="badge ([a-z-]+)"', section)[1] == row["verdict"]  # type: ignore[index]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_command_and_its_seed_stand_there(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "results-scheduling.html").text
    for report in REPORTS.values():
        assert report.nonce in page
    assert {results()[name]["command"] in page for name in REPORTS} == {True}


@pytest.mark.parametrize(("language", "words"), [("en", "Not met:"), ("zh", "未满足：")])
@pytest.mark.usefixtures("hooks")
def test_a_family_with_longer_periods_is_named_where_the_figure_fails(
    tmp_path: Path, language: str, words: str
) -> None:
    its = plan(full=True)
    results = full_run(its, score(period=700.0, money=0.6), giant=score(period=1200.0))
    assert results[0].verdict is Verdict.fail
    page = text_of(reported(results), language, tmp_path)
    assert "giant" in page[page.index(words) :].split("\n")[0]


@pytest.mark.parametrize(("language", "wins"), [("en", "shorter in 3 of them; in 2 more"), ("zh", "其中 3 处")])
@pytest.mark.usefixtures("hooks")
def test_where_a_plain_policy_wins_or_comes_close_is_counted(tmp_path: Path, language: str, wins: str) -> None:
    its = plan(full=True)
    # The linear programme gains 2 points less than the service, but 5 more where one job asks for most devices.
    others = {"B4": score(period=720.0, large=900.0)}
    cells = {cell: windows(score(period=700.0), count=number, **others) for cell, number in its.due().items()}
    cells[its.reference("fitted-philly")] = windows(score(period=740.0, large=950.0), count=20, **others)
    cells[its.of_family("giant")] = windows(score(period=770.0), count=its.family_windows, **others)
    for family in its.families:
        if family not in {"giant", "faulty"}:
            cells[its.of_family(family)] = windows(score(period=500.0), count=its.family_windows, **others)
    grid = {load: windows(score(period=700.0), count=its.load_windows, **others) for load in its.loads}
    page = text_of(reported(judged(GainWindows(its, cells, grid, 1000, 0, None))), language, tmp_path)
    assert wins in page


def test_what_is_published_are_full_runs_of_the_gains_and_of_all_else() -> None:
    whole = {row.id for row in REGISTER.values() if row.id.startswith("SCH") and row.check}
    decided = {name for name, row in results().items() if name in whole and row["level"] == RunLevel.full}
    assert GAINS <= decided == whole
