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


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and keeps no log."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(params=["server", "folder"])
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
        self.page: Page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda sent: self._note(sent.url, home))
        self.page.goto(f"{home}/{path}")

    def _note(self, url: str, home: str) -> None:
        if not url.startswith((home, "data:", "blob:")):
            self.complaints.append(f"asks for {url}")


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


def test_a_chinese_word_is_found(browser: Browser, home: str) -> None:
    opened = Opened(browser, home, "zh/index.html")
    opened.page.locator(".md-search__input").fill("幂等")
    found = opened.page.locator(".md-search-result__link")
    expect(found.first).to_be_visible()
    assert any("zh/requirements/com.html" in (link.get_attribute("href") or "") for link in found.all())
    found.first.click()
    expect(opened.page.locator("article")).to_contain_text("幂等")
    assert opened.complaints == []


@pytest.mark.parametrize("word", ["域间调度", "调度"])
def test_a_word_is_sought_whole_and_the_clause_that_it_is_about_comes_first(
    browser: Browser, site: Path, word: str
) -> None:
    opened = Opened(browser, site.as_uri(), "zh/index.html")
    opened.page.locator(".md-search__input").fill(word)
    found = opened.page.locator(".md-search-result__link")
    expect(found.first).to_be_visible()
    pages = list(dict.fromkeys((link.get_attribute("href") or "").partition("?")[0] for link in found.all()))
    assert any("sch-01-scheduling" in page for page in pages[:2])
    assert all("/zh/" in page for page in pages)


def test_an_english_word_leads_to_english_pages(browser: Browser, site: Path) -> None:
    opened = Opened(browser, site.as_uri(), "guides/jobs.html")
    opened.page.locator(".md-search__input").fill("checkpoint")
    found = opened.page.locator(".md-search-result__link")
    expect(found.first).to_be_visible()
    assert not any("/zh/" in (link.get_attribute("href") or "") for link in found.all())


def test_an_identifier_is_found(browser: Browser, home: str) -> None:
    opened = Opened(browser, home, "index.html")
    opened.page.locator(".md-search__input").fill("MET-003")
    expect(opened.page.locator(".md-search-result__link").first).to_contain_text("MET")
    assert opened.complaints == []


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
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
def test_it_fits_a_telephone(browser: Browser, site: Path, path: str) -> None:
    opened = Opened(browser, site.as_uri(), path, width=390)
    assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert opened.complaints == []
