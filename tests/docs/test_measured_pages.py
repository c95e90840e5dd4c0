"""The pages of what was measured say what their committed figures say, in both languages."""

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.parsed import parsed
from docs.published import report, results

from kuayu_schemas.models import RequirementResult

ROOT = Path(__file__).parents[2]
LANGUAGES = {"en": "", "zh": "zh/"}
RESULTS = ROOT / "docs/results"
PROFILES = {"DEM": "demand", "FCT": "forecast", "SCH": "scheduling"}


@pytest.fixture(scope="module")
def hooks() -> Iterator[None]:
    """The package of generated pages, importable as mkdocs imports it."""
    sys.path.insert(0, str(ROOT / "docs/hooks"))
    yield
    sys.path.remove(str(ROOT / "docs/hooks"))


def figures(name: str) -> Any:
    return json.loads((RESULTS / name).read_text("utf-8"))


def judged(profile: str) -> list[RequirementResult]:
    decisive = {name: report(row["run"]).results for name, row in results().items() if name.startswith(profile)}
    return [result for name, found in decisive.items() for result in found if result.requirement == name]


def per_cent(share: float, digits: int = 1, sign: str = "") -> str:
    return f"{100 * share:{sign}.{digits}f}\u202f%"


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_judged_requirement_stands_there_with_its_parts_tables_and_plots(
    site: Path, language: str, profile: str
) -> None:
    page = parsed(site / LANGUAGES[language] / f"results-{PROFILES[profile]}.html")
    missed = {"en": "aim missed", "zh": "未达目标"}[language]
    found = judged(profile)
    assert found
    for result in found:
        assert result.requirement in page.text
        if result.tables or result.plots or result.estimate is not None:
            assert result.requirement in page.ids
        assert {
            f"{result.requirement.lower()}:plot:{1 + place}" for place in range(len(result.plots or ()))
        } <= page.ids
        for table in result.tables or ():
            assert all(cell in page.text for row in table.rows for cell in row.cells if re.fullmatch(r"[\d.]+", cell))
    # A figure that something is required of says in a sentence that its aim was missed, others in a badge.
    assert page.text.count(missed) == sum(result.aim_met is False and not result.threshold for result in found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_errors_of_the_law_are_shown_beside_what_others_publish(site: Path, language: str) -> None:
    law = figures("demand/law.json")
    page = parsed(site / LANGUAGES[language] / "results-demand.html").text
    assert all(per_cent(each["mean"]) in page for kinds in law["time"].values() for each in kinds.values())
    assert per_cent(law["calculon"]["mean"]) in page
    assert f"{law['ranking']['tau']:.2f}" in page
    assert per_cent(law["memory"]["mean"]) in page
    assert "kuayu_training.demand" in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_inner_and_the_outer_loop_of_demand_stand_there_with_command_and_date(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "results-demand.html").text
    inner, looks = figures("demand/inner.json"), figures("demand/outer.json")
    for found in (inner, *looks):
        assert all(per_cent(kind["none"]["over sources"]) in page for kind in found["means"].values())
        assert all(row["source"] in page and per_cent(row["none"]) in page for row in found["sources"])
    assert "--json docs/results/demand/inner.json" in page
    assert all(look["command"] in page and look["date"] in page for look in looks)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["demand", "forecast"])
def test_what_is_known_to_the_developers_is_said_to_be(site: Path, language: str, name: str) -> None:
    known = {"en": "known to the developers", "zh": "开发者已知"}[language]
    assert known in parsed(site / LANGUAGES[language] / f"results-{name}.html").text


@pytest.mark.parametrize("language", LANGUAGES)
def test_durations_by_kind_of_task_stand_beside_the_papers(site: Path, language: str) -> None:
    kinds = figures("demand/sizing.json")["predictions"]
    page = parsed(site / LANGUAGES[language] / "results-demand.html").text
    assert all(each["seeds"] >= 20 for each in kinds)
    for each in kinds:
        assert each["kind"] in page
        assert all(f"{each[model]['mae'][0]:.3f}" in page for model in ("xgboost", "forest"))
        assert all(f"{mean:.3f}" in page for mean, _ in each["importance"].values())
        assert all(f"{mae:.2f} / " in page for mae in (each["published"] or ())[::2])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_source_and_horizon_of_the_traces_is_shown_with_its_skill(site: Path, language: str) -> None:
    rows = figures("forecast/traces.json")
    page = parsed(site / LANGUAGES[language] / "results-forecast.html").text
    for row in rows:
        skill = row["skill"]
        assert per_cent(skill["median"], sign="+") in page
        assert f"{100 * skill['low']:+.1f}\u202f…\u202f{100 * skill['high']:+.1f}" in page
        assert per_cent(row["wape"]["median"]) in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_loops_of_forecasts_stand_there_with_command_and_date(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "results-forecast.html").text
    log = (ROOT / "docs/results/forecast/outer-loop.tsv").read_text("utf-8").splitlines()
    looks = list(csv.DictReader(log, delimiter="\t"))
    inner = figures("forecast/inner-loop.json")
    assert looks[-1]["date"] in page
    assert all(command in page for command in (looks[-1]["command"], inner["command"]))
    assert {row["choice"] for row in looks} | {row["choice"] for row in inner["figures"]} <= inner["losses"].keys()
    assert all(f"{loss:.4f}" in page for loss in inner["losses"].values())
    for row in [row for row in looks if row["command"] == looks[-1]["command"]]:
        assert per_cent(float(row["skill"]), sign="+") in page
        assert f"{100 * float(row['low']):+.1f}\u202f…\u202f{100 * float(row['high']):+.1f}" in page
    assert all(per_cent(row["skill"], sign="+") in page for row in inner["figures"])


def test_what_is_said_plainly_of_the_traces_is_so() -> None:
    # The words of the page are fixed, so that figures which they do not fit must not get there.
    later = [row for row in figures("forecast/traces.json") if row["minutes"] == 60]
    skill = {(row["source"], row["method"]): row["skill"] for row in later}
    alone = [each["median"] for (_, method), each in skill.items() if method == "history"]
    boosted = [each["median"] for (_, method), each in skill.items() if method == "boosting"]
    assert max(alone) < 0.05
    assert max(boosted) < max(alone) + 0.01
    told = [
        skill["itp", f"jobs, {how}"]["median"] for how in ("σ 0.01", "σ 0.1", "as before", "σ 0.1, arrivals announced")
    ]
    assert told[0] > told[1] > 0.1 > told[2]
    assert told[3] > 2 * told[1]
    assert next(row for row in later if (row["source"], row["method"]) == ("itp", "history"))["twenty"] == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_real_curves_are_drawn_over_their_phases(site: Path, language: str) -> None:
    file = site / LANGUAGES[language] / "results-forecast.html"
    page = file.read_text("utf-8")
    curves = figures("forecast/phases.json")
    assert len(curves) >= 6
    assert page.count('class="loss"') == len(curves)
    never = {"en": "never stable", "zh": "始终未稳定"}[language]
    falling = [curve for curve in curves if curve["stable from"] is None and curve["fast from"] is not None]
    assert page.count(f"{never}") >= len(falling) > 0
    assert all(f"phase-{place}" in page for place in (1, 2, 3))


@pytest.mark.usefixtures("hooks")
def test_sections_without_figures_are_left_out(tmp_path: Path) -> None:
    from pages import demand_measured, forecast_measured, scheduling_measured  # type: ignore[import-not-found]

    for module in (demand_measured, forecast_measured, scheduling_measured):
        (page,) = module.pages("en", tmp_path)
        assert page.text.startswith("# ")
        assert "## " not in page.text.replace("# ", "", 1)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.usefixtures("hooks")
def test_titles_and_columns_of_checks_are_known_in_chinese(profile: str) -> None:
    from pages.translations import chinese  # type: ignore[import-not-found]

    said = [
        text
        for result in judged(profile)
        for each in (*(result.tables or ()), *(result.plots or ()))
        for text in (each.title, *getattr(each, "columns", ()), getattr(each, "x_label", ""))
    ]
    assert [
        text
        for text in said
        if re.search("[a-z]{3}", text) and not re.search("[\u4e00-\u9fff]", chinese(text, profile))
    ] == []
