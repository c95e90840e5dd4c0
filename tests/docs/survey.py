"""What the site is like as a whole: ``PYTHONPATH=tests python -m docs.survey [--site FOLDER] [--visit N]``.

Builds the site strictly and says how long that took, how many pages it has and how large it is, which links lead
nowhere, and what a browser complains of: the console, scripts, and requests to elsewhere, in N pages of each language
(0: all of them), at 1280 and 390 points of width, light and dark, where nothing may stand over the edge either. The
exit code is 1 where anything is found. The browser is the Chromium of the system, which ``make test`` installs.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from docs.conftest import build
from docs.parsed import is_lost, parsed
from playwright.sync_api import Browser, BrowserContext, sync_playwright

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
LANGUAGES = {"en": "", "zh": "zh/"}


def pages(site: Path) -> list[Path]:
    """All pages but the one for what is not there."""
    return [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]


def broken(site: Path) -> Iterator[str]:
    """Links inside the site that lead nowhere."""
    site = site.absolute()
    for page in pages(site):
        yield from (f"{page.relative_to(site)}: {link}" for link in parsed(page).links if is_lost(page, link))


def complaints(browser: Browser, site: Path, visited: list[str]) -> Iterator[str]:
    """What a browser has to say of some pages."""
    for width, scheme in product(WIDTHS, SCHEMES):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        for path in visited:
            yield from (f"{path}, {width}, {scheme}: {complaint}" for complaint in _opened(context, site / path))
        context.close()


def _opened(context: BrowserContext, file: Path) -> list[str]:
    found: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: found.append(message.text))
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("request", lambda sent: found.append(f"asks for {sent.url}") if _elsewhere(sent.url) else None)
    page.goto(file.as_uri())
    over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    page.close()
    return [*found, f"{over} points wider than the window"] if over > 0 else found


def _elsewhere(url: str) -> bool:
    return urlsplit(url).scheme not in {"file", "data", "blob"}


def chosen(site: Path, language: str, count: int) -> list[str]:
    """Pages of a language, spread evenly over all of them, the first page among them."""
    zh = language == "zh"
    paths = [str(page.relative_to(site)) for page in pages(site)]
    own = [path for path in paths if path.startswith("zh/") is zh and not path.startswith("results/")]
    step = max(1, len(own) // count) if count else 1
    return sorted({f"{LANGUAGES[language]}index.html", *own[::step]})


def main() -> int:
    """Say it, and whether anything was found."""
    parser = argparse.ArgumentParser(prog="python -m docs.survey")
    parser.add_argument("--site", type=Path, help="a site that is built already")
    parser.add_argument("--visit", type=int, default=20)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        site = asked.site or Path(folder) / "site"
        if asked.site is None:
            begin = time.perf_counter()
            build(site)
            sys.stdout.write(f"built in {time.perf_counter() - begin:.1f} s\n")
        files = [file for file in site.rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files) / 1e6
        sys.stdout.write(f"{len(pages(site))} pages, {len(files)} files, {size:.1f} MB\n")
        lost = list(broken(site))
        links = sum(len(parsed(page).links) for page in pages(site))
        sys.stdout.write(f"{links} links, {len(lost)} of them broken\n")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=which("chromium"), args=FLAGS)
            said = []
            for language in LANGUAGES:
                visited = chosen(site, language, asked.visit)
                found = list(complaints(browser, site, visited))
                sys.stdout.write(f"{language}: {len(visited)} pages visited in four ways, {len(found)} complaints\n")
                said += found
            browser.close()
    sys.stdout.writelines(f"  {line}\n" for line in [*lost, *said])
    return 1 if lost or said else 0


if __name__ == "__main__":
    sys.exit(main())
