"""The page holds everything, needs nothing, and believes nobody."""

import hashlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conformance.rendering.plotted import DATA, agreement, graph, hostile_plots, lines, plotted, result
from conformance.rendering.samples import CHINESE, HOSTILE, LONG, TESTED, every_verdict, hostile, sample

from kuayu_conformance.rendering import page
from kuayu_conformance.rendering.words import visible
from kuayu_schemas.models import ConformanceReport
from kuayu_schemas.registers import requirements

VOID = {"meta", "link", "input"}


class Outline(HTMLParser):
    """Elements of a page with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        """Parse a page; elements must be closed in the order in which they were opened."""
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note text outside style sheet and script."""
        if self._open and self._open[-1] not in {"style", "script"}:
            self.text += data

    def values(self, attribute: str) -> list[str]:
        """Values of an attribute, wherever it stands."""
        return [
            value or "" for _, attributes in self.elements for name, value in attributes.items() if name == attribute
        ]


REPORTS = {
    "every verdict": every_verdict(),
    "all pass": sample(),
    "hostile": hostile(),
    "long": sample({"COM-008": "fail"}, words=LONG),
    "plots": plotted(data=DATA),
    "hostile plots": hostile_plots(),
    "no declaration": sample(declaration=None, results=[], summary=[], exit_code=3),
}


@pytest.fixture(params=REPORTS.values(), ids=REPORTS.keys())
def report(request: pytest.FixtureRequest) -> ConformanceReport:
    """Each of the sample reports in turn."""
    return ConformanceReport.model_validate(request.param)


def test_it_refers_to_nothing_outside(report: ConformanceReport) -> None:
    outline = Outline(page(report))
    links = outline.values("href") + outline.values("src")
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert "url(" not in page(report).partition("</style>")[0]
    assert "@import" not in page(report)


def test_every_link_leads_somewhere_and_every_name_is_given_once(report: ConformanceReport) -> None:
    outline = Outline(page(report))
    names = outline.values("id")
    assert len(names) == len(set(names))
    assert {link[1:] for link in outline.values("href") if link.startswith("#")} <= set(names)
    assert set(outline.values("aria-labelledby")) <= set(names)


def test_every_requirement_appears_with_its_sentence_in_both_languages() -> None:
    outline = Outline(page(every_verdict()))
    assert {row.id for row in requirements().requirements} <= set(outline.values("id"))
    for row in requirements().requirements:
        assert row.text_en in outline.text
        assert row.text_zh in outline.text
        assert (row.unchecked_because_zh or "") in outline.text


def test_no_escape_is_escaped_twice() -> None:
    assert "&" not in Outline(page(every_verdict())).text.replace("subject=k41f-node-3&subject_kind=device", "")


def test_a_failure_shows_what_was_asked_and_what_came_back() -> None:
    outline = Outline(page(every_verdict()))
    for found in every_verdict().results:
        assert found.requirement in outline.values("id")
        for evidence in found.evidence:
            shown = (evidence.expected, evidence.found, evidence.request, evidence.answer)
            assert all(text in outline.text for text in shown if text)
        assert (found.hint or "") in outline.text
    assert CHINESE in outline.text


def test_what_the_register_does_not_know_is_shown_all_the_same() -> None:
    known = sample()
    stranger = known.results[0].model_copy(update={"requirement": "NEW-001"})
    outline = Outline(page(known.model_copy(update={"results": [*known.results, stranger]})))
    assert "NEW-001" in outline.values("id")


@pytest.mark.parametrize("report", [hostile(), hostile_plots()])
def test_hostile_words_stay_words(report: ConformanceReport) -> None:
    outline = Outline(page(report))
    tags = [tag for tag, _ in outline.elements]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert visible(HOSTILE.replace("\x00", "")) in outline.text
    assert "{{ 7*7 }}" in outline.text
    for _, attributes in outline.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]


def test_the_policy_admits_only_what_this_package_wrote() -> None:
    html = page(hostile())
    policy = next(value for value in Outline(html).values("content") if "default-src" in value)
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; ")
    assert "unsafe" not in policy
    digests = re.findall(r"sha256-[^']+", policy)
    assert digests == re.findall(r"sha256-[^']+", Outline(page(sample())).values("content")[0])


def test_it_is_the_same_bytes_after_a_round_trip(report: ConformanceReport) -> None:
    assert page(ConformanceReport.model_validate_json(report.to_json())) == page(report)


def test_it_is_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(plotted(data=DATA).to_json())
    program = (
        "import hashlib, pathlib; from kuayu_conformance.rendering import badge, junit, page;"
        "from kuayu_schemas.models import ConformanceReport;"
        "report = ConformanceReport.model_validate_json(pathlib.Path('report.json').read_bytes());"
        "text = page(report) + junit(report) + badge(report);"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path), "TZ": zone},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Shanghai"))
    }
    assert len(digests) == 1
    assert re.fullmatch(r"[0-9a-f]{64}\n", digests.pop())


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("pass", f"kuayu meets all {TESTED} requirements tested."),
        ("fail", f"kuayu does not meet 1 of {TESTED} requirements tested."),
        ("inconclusive", f"kuayu fails nothing, but 1 of {TESTED} requirements stay undecided."),
        ("harness-error", "The suite itself failed, so kuayu is not judged."),
    ],
)
def test_the_headline_says_the_verdict(verdict: str, words: str) -> None:
    assert words in Outline(page(sample({"COM-008": verdict}))).text


def test_what_failed_is_said_beside_what_the_suite_could_not_judge() -> None:
    text = Outline(page(sample({"COM-008": "fail", "COM-006": "harness-error"}))).text
    assert f"kuayu does not meet 1 of {TESTED - 1} requirements tested; 1 more could not be judged since" in text
    assert f"在受测的 {TESTED - 1} 项要求中有 1 项未满足；另有 1 项因套件自身出错未作判定。" in text


def test_shape_and_colour_both_tell_the_verdicts_apart() -> None:
    html = page(every_verdict())
    drawings = re.findall(r'<symbol id="mark:[a-z-]+" viewBox="0 0 12 12">(.*?)</symbol>', html)
    assert len(drawings) == len({hashlib.sha256(drawing.encode()).digest() for drawing in drawings}) == 10


def test_plots_and_tables_stand_beside_the_figure_and_without_one_in_the_account() -> None:
    unjudged = result("IDX-005", estimate=None, bound=None, threshold=None, aim=None)
    outline = Outline(page(plotted(result(), unjudged)))
    for owner in ("IDX-001", "IDX-005"):
        for kind in ("plot", "table"):
            assert {f"{owner}:{kind}:1", f"{owner}:{kind}:2"} <= set(outline.values("id"))
    assert outline.values("class").count("further") == 1
    for body in (agreement(), lines(), graph()):
        words = ("title",) if body["kind"] == "graph" else ("title", "x_label", "y_label")  # a graph has no axes
        assert all(body[word] in outline.text for word in words)
        assert all(series["label"] in outline.text for series in body["series"])


def test_a_plot_has_a_name_and_a_description_for_those_who_do_not_see_it() -> None:
    outline = Outline(page(plotted()))
    pictures = [attributes for tag, attributes in outline.elements if tag == "svg" and attributes.get("role") == "img"]
    assert [picture["aria-labelledby"] for picture in pictures] == [f"IDX-001:plot:{n}" for n in (1, 2, 3)]
    assert {str(picture["aria-describedby"]) for picture in pictures} <= set(outline.values("id"))
    assert "from 24.1 at 0 to 8.43 at 6" in outline.text


def test_a_thousand_points_stay_a_small_file() -> None:
    many, few = (page(plotted(result(plots=[agreement(points)]))) for points in (1000, 10))
    assert len(many) - len(few) < 30_000


def test_data_beyond_the_suites_own_are_named_with_their_digests() -> None:
    text = Outline(page(plotted(data=DATA))).text
    assert all(table["name"] in text and table["digest"] in text for table in DATA)
    assert "外部数据表" in text
    assert "外部数据表" not in Outline(page(plotted())).text


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_symbols_stand_out_from_the_paper(scheme: int) -> None:
    """Contrast of at least 3 to 1, WCAG 2.2, 1.4.11."""
    style = page(sample()).partition("</style>")[0]
    paper = _luminance(re.findall(r"--paper: (#[0-9a-f]{6})", style)[scheme])
    for name in ("one", "two", "three", "four", "five", "six"):
        colour = _luminance(re.findall(rf"--{name}: (#[0-9a-f]{{6}})", style)[scheme])
        assert (max(colour, paper) + 0.05) / (min(colour, paper) + 0.05) >= 3


def _luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
