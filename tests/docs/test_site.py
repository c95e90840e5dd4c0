"""Everything that the site says leads somewhere, in both languages, without a network."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from docs.parsed import is_lost, parsed
from docs.published import ROOT, RUNS, SUBMISSIONS, report, results

from kuayu_conformance.corpora import flagperf_gaps, load
from kuayu_conformance.testbed.scheduling.topology import ASSUMPTIONS
from kuayu_conformance.testbed.scheduling.windows import BASELINES, LITERATURE
from kuayu_conformance.testbed.scheduling.workload import FAMILIES
from kuayu_schemas import registers

LANGUAGES = {"en": "", "zh": "zh/"}
INGEST_AIM = 0.6
PROBE_SETS = Path(__file__).parents[2] / "docs/results/index/probe_sets.json"
CHINESE_VENDORS = ["华为昇腾", "寒武纪", "海光", "天数智芯", "昆仑芯", "沐曦", "摩尔线程"]
INGEST = ROOT / "docs/results/reference/ingest.json"
LATENCY = ROOT / "docs/results/reference/latency.json"
EXPOSURE = [ROOT / f"docs/results/reference/{name}.json" for name in ("siege", "crashes", "crashes_jobs")]
LATENCY_AIMS = {"5 domains, whole": 50, "5 domains, as a patch": 20, "64 domains, whole": 300}
"""Milliseconds at p99, by decision 39."""


def pages(site: Path) -> list[Path]:
    return [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]


def test_every_internal_link_leads_to_a_place_that_is_there(site: Path) -> None:
    lost = [
        f"{page.relative_to(site)}: {link}"
        for page in pages(site)
        for link in parsed(page).links
        if is_lost(page, link)
    ]
    assert lost == []


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = {link for page in pages(site) for link in parsed(page).fetched}
    assert [link for link in fetched if urlsplit(link).scheme not in {"", "data"} or link.startswith("//")] == []


def test_every_page_is_there_in_both_languages(site: Path) -> None:
    chinese = {page.relative_to(site / "zh") for page in pages(site / "zh")}
    reported = [*RUNS.iterdir(), *SUBMISSIONS.iterdir()]
    shared = {folder.relative_to(ROOT / "docs") / "report.html" for folder in reported}
    english = {page.relative_to(site) for page in pages(site) if page.relative_to(site).parts[0] != "zh"}
    assert english - shared == chinese


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_requirement_has_its_place_and_so_has_its_sentence(site: Path, language: str) -> None:
    folder = site / LANGUAGES[language]
    for row in registers.requirements().requirements:
        page = parsed(folder / f"requirements/{row.profile.lower()}.html")
        sentence = row.text_zh if language == "zh" else row.text_en
        assert row.id in page.ids
        assert re.sub("[*`]", "", sentence) in page.text  # words of the interface are set in italics, or as code
        assert row.id in parsed(folder / f"standard/{row.clause}.html").ids


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_requirement_shows_its_check_or_says_why_there_is_none(site: Path, language: str) -> None:
    for row in registers.requirements().requirements:
        text = parsed(site / LANGUAGES[language] / f"requirements/{row.profile.lower()}.html").text
        because = row.unchecked_because_zh if language == "zh" else row.unchecked_because_en
        assert (row.check or because or "nothing is said") in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_registers_are_shown_whole(site: Path, language: str) -> None:
    folder = site / LANGUAGES[language] / "reference"
    indicators = registers.indicators()
    shown = parsed(folder / "indicators.html").ids
    assert {each.id for each in indicators.indicators} <= shown
    assert {measure.name for each in indicators.indicators for measure in each.measures} <= shown
    assert {each.id for each in indicators.exporters} <= parsed(folder / "exporters.html").ids
    assert {each.name for each in registers.problems().problems} <= parsed(folder / "problems.html").ids


@pytest.mark.parametrize(("language", "words"), [("en", "aim missed"), ("zh", "未达目标")])
def test_a_missed_aim_is_printed_as_missed(site: Path, language: str, words: str) -> None:
    page = parsed(site / LANGUAGES[language] / "results.html")
    ingest = json.loads(INGEST.read_text("utf-8"))
    databases = (ingest["results"], ingest["postgresql"]["results"])
    best = [max(row["of_limit"] for row in rows if row["way"].startswith("HTTP")) for rows in databases]
    latency = json.loads(LATENCY.read_text("utf-8"))["ms"]
    missed = (
        sum(row.get("aim_met") is False for row in results().values())
        + sum(share < INGEST_AIM for share in best)
        + sum(latency[f"{kind}, this"]["p99"] > aim for kind, aim in LATENCY_AIMS.items())
        + sum(row["missed"] for row in json.loads(EXPOSURE[0].read_text("utf-8"))["attacks"])
    )
    assert page.text.count(words) == missed


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_results_show_what_others_notice_of_attacks_and_what_is_lost_in_crashes(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "results.html").text
    siege, writes, jobs = (json.loads(file.read_text("utf-8")) for file in EXPOSURE)
    for row in siege["attacks"][1:]:
        assert re.search(rf"{row['attack']}\s+{1000 * row['wait']:.0f}\s+{1000 * row['median']:.0f}\s", page)
    for played in writes["rounds"].values():
        acknowledged, lost = (sum(each[name] for each in played) for name in ("acknowledged", "lost"))
        assert re.search(rf"\s{len(played)}\s+{acknowledged:,}\s+{lost}\s", page)
    for outcome in jobs["jobs"].values():
        lost = len({*outcome["lost"], *outcome["unfinished"]})
        assert re.search(rf"\s{outcome['crashes']}\s+{outcome['jobs']}\s+{lost}\s+{len(outcome['wrong'])}\s", page)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_chinese_vendor_is_named_and_so_is_the_lack_of_a_speed(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "index/chinese-accelerators.html").text
    silent = {"en": "no speed published", "zh": "未公布速度"}[language]
    gaps = flagperf_gaps()
    names = {"en": [gap.name for gap in gaps], "zh": CHINESE_VENDORS}[language]
    assert len(names) == len(gaps)
    assert [name for name in names if name not in page] == []
    assert page.count(silent) == sum(not gap.speeds for gap in gaps) > 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_worked_page_shows_every_measured_ratio(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "index/h100-a100.html").text
    speeds = {(row["device"], row["task"]): row["throughput"] for row in load("mlperf", None).corpus["measurements"]}
    ratios = [speed / speeds["A100-SXM-80GB", task] for (device, task), speed in speeds.items() if device == "H100-SXM"]
    assert len(ratios) >= 7
    assert all(f"{ratio:.2f}" in page for ratio in ratios)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_probe_sets_of_every_table_are_shown(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "index/probe-sets.html").text
    figures = json.loads(PROBE_SETS.read_text("utf-8"))
    assert figures["command"] in page
    assert figures["tables"]
    assert all(f"{100 * row['planned']:.1f}" in page for each in figures["tables"] for row in each["rows"][1:])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_world_of_schedulers_is_told_whole(site: Path, language: str) -> None:
    page = parsed(site / LANGUAGES[language] / "reference/scheduling-world.html").text
    assert all(name in page for name in (*FAMILIES, *BASELINES, *LITERATURE, *ASSUMPTIONS))
    assert all(f"{one.low:g} – {one.high:g}" in page for one in ASSUMPTIONS.values())


@pytest.mark.parametrize("name", sorted(folder.name for folder in RUNS.iterdir()))
def test_a_report_lies_beside_its_page_and_its_transcript_stays_in_the_repository(site: Path, name: str) -> None:
    folder = site / "results/runs" / name
    assert (folder / "report.json").read_bytes() == (RUNS / name / "report.json").read_bytes()
    assert not list(folder.glob("transcript*"))
    assert report(name).nonce in parsed(site / f"results/runs/{name}/report.html").text
