"""Commands of guides that go on until they are stopped, typed as printed: what they print, and stopping them.

1. A command runs in a shell of its own, in a folder, as a group of processes that is ended as Ctrl-C ends it.
2. Programs are those of the tests; addresses and folders that a guide names are replaced by the test's own.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PATIENCE_S = 120.0
_TOOLS = """set -eu
curl() { command curl -sS --fail-with-body "$@"; echo; }
kuayu() { "$PYTHON" -c 'from kuayu.cli import main; main()' "$@"; }
python() { "$PYTHON" "$@"; }
"""


class Watched:
    """A command that runs.

    Args:
        process: The shell that runs it.
        file: What it prints to.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", file: Path) -> None:
        self._process = process
        self._file = file

    @property
    def printed(self) -> str:
        """What it has printed so far."""
        return self._file.read_text("utf-8", errors="replace")

    def until(self, text: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until it has printed a text.

        Raises:
            AssertionError: It ended without, or takes longer than that.
        """
        deadline = time.monotonic() + patience_s
        while text not in self.printed:
            assert self._process.poll() is None, self.printed
            assert time.monotonic() < deadline, self.printed
            time.sleep(0.1)

    def interrupt(self) -> int:
        """End it as Ctrl-C does; its exit status."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(PATIENCE_S)

    def end(self, patience_s: float = PATIENCE_S) -> int:
        """Wait until it ends by itself; its exit status."""
        return self._process.wait(patience_s)


class Terminal:
    """Where the commands of a guide are typed.

    Args:
        folder: The folder that they run in.
        replaced: What is put in place of what the guide names.
    """

    def __init__(self, folder: Path, replaced: Mapping[str, str]) -> None:
        self._shell = shutil.which("sh")
        if self._shell is None or shutil.which("curl") is None:
            pytest.skip("no shell or no curl on this machine")
        self._folder = folder
        self._replaced = replaced
        self._typed = 0

    @contextmanager
    def watch(self, text: str) -> Iterator[Watched]:
        """Type a text, and go on while it runs; whatever is left of it at the end is killed."""
        for named, own in self._replaced.items():
            text = text.replace(named, own)
        self._typed += 1
        file = self._folder / f"printed-{self._typed}"
        environment = {**os.environ, "PYTHON": sys.executable, "COLUMNS": "200", "no_proxy": "127.0.0.1"}
        environment["PYTHONUNBUFFERED"] = "1"
        command = [self._shell or "sh", "-c", _TOOLS + text]
        with file.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        try:
            yield Watched(process, file)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def type(self, text: str, patience_s: float = PATIENCE_S) -> str:
        """Type a text that ends with success; what it prints.

        Raises:
            AssertionError: It fails.
        """
        with self.watch(text) as watched:
            ended = watched.end(patience_s)
            assert ended == 0, watched.printed
            return watched.printed
