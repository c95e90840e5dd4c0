"""What tests of several parts share, and what each of their files costs (`pytest --processor-seconds 40`)."""

import contextlib
import gc
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import hypothesis
import psutil
import pytest
from _pytest.terminal import TerminalReporter

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from xdist.scheduler import Scheduling

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Tests fill the processors with processes: threads of linear algebra would wait for each other, and spin meanwhile.

It holds for the programs that tests start as well.
"""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell lets what it starts in the background ignore Ctrl-C, and so would all that is started from here."""

hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")
"""How long an example takes says what else the machine does, and what is made when it is first used."""

COMPILED = (
    "tests/scheduling/test_learning.py",
    "tests/scheduling/test_compiled_rule.py",
    "tests/scheduling/test_vector_env.py",
    "tests/conformance/testbed/scheduling/test_compiled_world.py",
)
"""Files of tests that run most of what the cores of ``kuayu_training`` and of the suite's test bed compile."""

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


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_open() -> Iterator[None]:
    """What a file of tests leaves unclosed fails its own last test, and no other one when garbage is next collected.

    What outlives a file is not looked through again: a worker comes to hold gigabytes.
    """
    before = gc.get_freeze_count()
    yield
    if gc.get_freeze_count() > before:  # a run of the suite has set aside what may be garbage by now
        gc.unfreeze()
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let files of tests be compared by what they cost: wall time says as much of what runs beside them."""
    explained = "show the N files that took most processor seconds, the processes that they started among them"
    parser.addoption("--processor-seconds", type=int, default=0, metavar="N", help=explained)


class Meter:
    """Processor seconds of this process and all below it, from one call to the next."""

    def __init__(self) -> None:
        self._before = 0.0

    def read(self) -> float:
        """What has been used since the call before, by processes that still run and by those that were waited for."""
        process = psutil.Process()
        now = 0.0
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                now += sum(each.cpu_times()[:4])
        spent, self._before = now - self._before, now
        return spent


METER = Meter()
SPENT = "processor seconds"


def pytest_collection_finish() -> None:
    """Begin to count, for what comes before is no test's; nor is it garbage.

    The collector looks at what is young less often than it would by itself, which takes a run of all tests much time.
    """
    METER.read()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """With the last test of a file, write down what the file took."""
    yield
    if item.config.getoption("--processor-seconds") and (nextitem is None or nextitem.path != item.path):
        item.user_properties.append((SPENT, METER.read()))


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """List the files that took most."""
    most = terminalreporter.config.getoption("--processor-seconds")
    if not most:
        return
    files: Counter[str] = Counter()
    for report in (each for reports in terminalreporter.stats.values() for each in reports):
        if getattr(report, "when", None) == "teardown":
            files[report.fspath] += dict(report.user_properties).get(SPENT, 0.0)
    terminalreporter.section(SPENT)
    for name, seconds in files.most_common(most):
        terminalreporter.write_line(f"{seconds:8.1f} {name}")
    terminalreporter.write_line(f"{files.total():8.1f} all files")


def pytest_configure(config: pytest.Config) -> None:
    """Keep pytest-xdist from beginning with the files of most tests: the longest hold one, and would come last."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "Scheduling | None":
    """Give a worker whole files, and one worker all that runs the same compiled code.

    Else workers would compile it beside each other, each for itself, which takes minutes of a processor every time.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Compiling(LoadFileScheduling):
        """Knows of files that go together."""

        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return COMPILED[0] if file in COMPILED else file

    return Compiling(config, log)


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
