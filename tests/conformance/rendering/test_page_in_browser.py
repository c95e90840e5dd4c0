"""The page in a real browser: by mouse, by keyboard, on a wide screen and on a telephone."""

from pathlib import Path

import pytest
from conformance.rendering.plotted import hostile_plots, plotted
from conformance.rendering.samples import LONG, TESTED, every_verdict, hostile, sample
from playwright.sync_api import Browser, FloatRect, Locator, Page

from kuayu_conformance.rendering import page

pytestmark = pytest.mark.browser

REPORTS = {
    "every-verdict": every_verdict(),
    "hostile": hostile(),
    "plots": plotted(),
    "hostile-plots": hostile_plots(),
    "long": sample({"COM-008": "fail", "MET-003": "fail"}, words=LONG),
}
_SCROLLS = """box => new Promise(done => {
  const look = frames => box.scrollLeft > 0 || !frames ? done(frames) : requestAnimationFrame(() => look(frames - 1));
  look(600);
})"""
LANGUAGES = "input[name=language]"

BESIDE = "1 more could not be judged since the suite itself failed"
EN = f"kuayu does not meet 2 of {TESTED - 3} requirements tested; {BESIDE}."
ZH = f"“kuayu”在受测的 {TESTED - 3} 项要求中有 2 项未满足；另有 1 项因套件自身出错未作判定。"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample reports as files."""
    folder = tmp_path_factory.mktemp("pages")
    for name, report in REPORTS.items():
        (folder / f"{name}.html").write_text(page(report), encoding="utf-8")
    return folder


class Opened:
    """A page of one sample report, with everything that the console complained of."""

    def __init__(
        self,
        browser: Browser,
        path: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        locale: str = "en-GB",
        script: bool = True,
    ) -> None:
        """Open a file at a width, for a reader of a language, with or without script."""
        context = browser.new_context(
            viewport={"width": width, "height": 900}, locale=locale, java_script_enabled=script
        )
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(path.as_uri() + fragment)


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_it_fits_the_screen_and_nothing_complains(
    browser: Browser, folder: Path, name: str, width: int, locale: str
) -> None:
    opened = Opened(browser, folder / f"{name}.html", width=width, locale=locale)
    opened.page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert opened.complaints == []


def test_it_starts_in_the_readers_language_and_remembers_the_choice(browser: Browser, folder: Path) -> None:
    opened = Opened(browser, folder / "every-verdict.html", locale="zh-CN").page
    assert opened.inner_text("h1") == ZH
    assert opened.evaluate("document.documentElement.lang") == "zh-Hans"
    opened.get_by_text("English", exact=True).click()
    assert opened.inner_text("h1") == EN
    assert opened.url.endswith("#lang:en")
    opened.reload()
    assert opened.inner_text("h1") == EN


def test_a_tile_opens_its_requirement_and_the_address_can_be_passed_on(browser: Browser, folder: Path) -> None:
    opened = Opened(browser, folder / "every-verdict.html", "#lang:zh").page
    details = opened.locator("#COM-001 details")
    assert details.get_attribute("open") is None
    opened.locator("a.tile[href='#COM-001']").click()
    assert details.get_attribute("open") is not None
    assert opened.locator("#COM-001 blockquote").is_visible()
    assert opened.url.endswith("#COM-001&lang:zh")
    passed_on = Opened(browser, folder / "every-verdict.html", "#COM-001&lang:zh").page
    assert passed_on.locator("#COM-001 blockquote").is_visible()
    assert "不满足" not in passed_on.inner_text("#COM-001")


def test_it_works_by_keyboard(browser: Browser, folder: Path) -> None:
    opened = Opened(browser, folder / "every-verdict.html").page
    opened.keyboard.press("Tab")
    opened.keyboard.press("ArrowRight")
    assert opened.locator(LANGUAGES).nth(1).is_checked()
    opened.keyboard.press("Tab")
    opened.keyboard.press("Enter")
    assert opened.locator("#COM-001 details").get_attribute("open") is not None
    assert opened.evaluate("document.activeElement.closest('article').id") == "COM-001"


def test_without_script_it_is_english_and_the_toggle_still_works(browser: Browser, folder: Path) -> None:
    opened = Opened(browser, folder / "every-verdict.html", locale="zh-CN", script=False).page
    assert opened.inner_text("h1") == EN
    opened.get_by_text("中文", exact=True).click()
    assert opened.inner_text("h1") == ZH


def test_on_paper_every_requirement_is_unfolded(browser: Browser, folder: Path) -> None:
    opened = Opened(browser, folder / "every-verdict.html").page
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.locator("details:not([open])").count() == 0
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.locator("details:not([open])").count() > 0


def test_a_plot_is_a_picture_with_a_name_and_its_text_keeps_its_size(browser: Browser, folder: Path) -> None:
    heights, widths = set(), set()
    for width in (1280, 390):
        opened = Opened(browser, folder / "plots.html", width=width).page
        picture = opened.get_by_role("img", name="Predicted against measured, four probes")
        assert picture.is_visible()
        heights.add(round(_box(picture.locator("text").first)["height"]))
        widths.add(round(_box(picture)["width"]))
        assert _box(picture)["width"] == pytest.approx(_box(picture)["height"], abs=1)
    assert len(heights) == 1
    assert len(widths) == 2


def test_a_long_table_scrolls_in_its_own_box_by_keyboard(browser: Browser, folder: Path) -> None:
    opened = Opened(browser, folder / "plots.html", width=390).page
    box = opened.get_by_role("region", name="Errors by table, four probes")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    box.focus()
    opened.keyboard.press("ArrowRight")
    assert box.evaluate(_SCROLLS)


def test_plots_are_in_view_at_once_and_the_clause_a_click_away(browser: Browser, folder: Path) -> None:
    opened = Opened(browser, folder / "plots.html").page
    assert opened.locator("#IDX-001 .plot").count() == 3
    assert opened.locator("#IDX-001 .plot").first.is_visible()
    assert not opened.locator("#IDX-001 blockquote").is_visible()
    opened.locator("a.tile[href='#IDX-001']").click()
    assert opened.locator("#IDX-001 blockquote").is_visible()


def _box(element: Locator) -> FloatRect:
    """Where an element is on the screen."""
    box = element.bounding_box()
    assert box is not None
    return box
