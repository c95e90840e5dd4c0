"""What tests of several parts share."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Tests fill the processors with processes: threads of linear algebra would wait for each other, and spin meanwhile.

It holds for the programs that tests start as well.
"""

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""A browser that asks nothing of any network."""


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Chromium, as the system has it; for one module, since its event loop would be in the way of others."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium on this machine; .ci/chromium installs one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


def pytest_configure(config: pytest.Config) -> None:
    """Keep pytest-xdist from beginning with the files of most tests: the longest hold one, and would come last."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell every test from every other, and begin with the slow.

    Files that have slow tests come first: spread over processors, none then waits for a straggler.

    Raises:
        pytest.UsageError: Tests share an identifier; pytest-xdist would run the first of them and leave out the others.
    """
    shared = [name for name, times in Counter(item.nodeid for item in items).items() if times > 1]
    if shared:
        raise pytest.UsageError(f"tests share an identifier, so that all but one would be left out: {shared}")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
