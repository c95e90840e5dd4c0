"""The site in a real browser, from a server and from a folder, without a network."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

expect.set_options(timeout=30_000)  # the index of the search takes a while to load where other tests run beside


DRAWINGS = "Array.from(document.querySelectorAll('.drawing'))"
"""Drawings of the page that is open, for its own script."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and keeps no log."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module", params=["server", "folder"])
def home(request: pytest.FixtureRequest, site: Path) -> Iterator[str]:
    """Where the site is: behind a small server, or in a folder."""
    if request.param == "folder":
        yield site.as_uri()
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class Opened:
    """A page with everything that the console complained of and everything that was asked of elsewhere."""

    def __init__(self, browser: Browser, home: str, path: str, *, width: int = 1280) -> None:
        """Open a page of the site."""
        self._context = browser.new_context(viewport={"width": width, "height": 900})
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda sent: self._note(sent.url, home))
        self._home = home
        self.go(path)

    def go(self, path: str) -> None:
        """Go to another page of the site, of which nothing has been complained yet."""
        self.complaints.clear()
        self.page.goto(f"{self._home}/{path}")

    def sought(self, word: str) -> list[str]:
        """Where what is found of a word leads, best first."""
        field, found = self.page.locator(".md-search__input"), self.page.locator(".md-search-result__link")
        for text in ("", word):
            field.fill(text)
            field.press("End")  # the page looks at what was typed when a key is let go
            if not text:
                expect(found).to_have_count(0)  # else what was found of the word before would be taken for this one's
        expect(found.first).to_be_visible()
        return [link.get_attribute("href") or "" for link in found.all()]

    def close(self) -> None:
        """Let go of what the browser holds of it."""
        self._context.close()

    def _note(self, url: str, home: str) -> None:
        if not url.startswith((home, "data:", "blob:")):
            self.complaints.append(f"asks for {url}")


@pytest.fixture(scope="module")
def telephone(browser: Browser, site: Path) -> Iterator[Opened]:
    """A narrow screen, on which one page after the other is looked at."""
    opened = Opened(browser, site.as_uri(), "index.html", width=390)
    yield opened
    opened.close()


def test_the_language_switch_leads_to_the_same_page_and_back(browser: Browser, home: str) -> None:
    opened = Opened(browser, home, "requirements/met.html")
    switch = opened.page.locator(".md-select")
    switch.hover()
    switch.get_by_text("中文").click()
    expect(opened.page.locator("h1")).to_contain_text("感知")
    assert opened.page.url.endswith("/zh/requirements/met.html")
    assert opened.page.evaluate("document.documentElement.lang") == "zh"
    switch.hover()
    switch.get_by_text("English").click()
    expect(opened.page.locator("h1")).to_contain_text("Metrics and perception")
    assert opened.complaints == []
    opened.close()


def test_chinese_words_are_found_and_the_clause_that_one_is_about_comes_first(browser: Browser, home: str) -> None:
    opened = Opened(browser, home, "zh/index.html")
    for word in ("域间调度", "调度"):  # sought whole, though one begins with what others hold
        pages = list(dict.fromkeys(link.partition("?")[0] for link in opened.sought(word)))
        assert any("sch-01-scheduling" in page for page in pages[:2])
        assert all("/zh/" in page for page in pages)
    assert any("zh/requirements/com.html" in link for link in opened.sought("幂等"))
    opened.page.locator(".md-search-result__link").first.click()
    expect(opened.page.locator("article")).to_contain_text("幂等")
    assert opened.complaints == []
    opened.close()


def test_an_identifier_is_found_and_an_english_word_leads_to_english_pages(browser: Browser, home: str) -> None:
    opened = Opened(browser, home, "guides/jobs.html")
    assert opened.sought("MET-003")
    expect(opened.page.locator(".md-search-result__link").first).to_contain_text("MET")
    assert not any("/zh/" in link for link in opened.sought("checkpoint"))
    assert opened.complaints == []
    opened.close()


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "zh/index.html",
        "zh/results.html",
        "reference/api/resources.html",
        "zh/guides/vendor.html",
        "index/h100-a100.html",
        "zh/index/chinese-accelerators.html",
        "index/probe-sets.html",
        "reference/scheduling-world.html",
        "zh/guides/scheduling.html",
    ],
)
def test_it_fits_a_telephone(telephone: Opened, path: str) -> None:
    telephone.go(path)
    assert telephone.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert (
        telephone.page.evaluate(f"{DRAWINGS}.filter(drawing => drawing.scrollWidth > drawing.clientWidth).length") == 0
    )
    assert telephone.page.evaluate(f"{DRAWINGS}.every(drawing => drawing.clientWidth > 300)")
    assert telephone.complaints == []
