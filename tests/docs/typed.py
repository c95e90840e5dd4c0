"""A guide's commands, carried out in order in one shell and one folder, as its reader types them."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs"
WRITTEN_FOR = "http://127.0.0.1:8080"
CODE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = "text"
"""Language of a block that shows what the one before it prints."""
ELSEWHERE = frozenset({"console", "toml", "yaml"})
"""Languages of blocks that show what is typed elsewhere, or stands in a file there."""
MARK = "-- end of a block --"
PATIENCE_S = 240.0
COLUMNS = "90"


def blocks(page: str, language: str = "en") -> list[tuple[str, str]]:
    """Blocks of code of a guide, each with the language that it is in."""
    return CODE.findall((GUIDES / language / "guides" / page).read_text(encoding="utf-8"))


@dataclass
class Performed:
    """A block of a guide that was carried out.

    Attributes:
        kind: Its language.
        typed: What the guide says.
        printed: What it printed.
        shown: What the guide says that it prints; None where it does not say.
    """

    kind: str
    typed: str
    printed: str
    shown: str | None = None


def perform(
    page: str, folder: Path, port: int, patience_s: float = PATIENCE_S, kuayu: str | None = None
) -> list[Performed]:
    """Carry out a guide; a service that it starts listens on the port, and is looked for there.

    Whatever the guide leaves running is stopped. The test is skipped where there is no shell or no curl. ``kuayu`` is a
    program in place of one that begins with nothing imported.
    """
    done: list[Performed] = []
    for kind, text in blocks(page):
        if kind == SHOWN and done:  # before the first command it is a picture
            done[-1].shown = text
        elif kind not in ELSEWHERE | {SHOWN}:
            done.append(Performed(kind, text, ""))
    parts = _run([_script(each) for each in done], folder, port, patience_s, kuayu)
    for each, printed in zip(done, parts, strict=True):
        each.printed = printed
    return done


def _script(block: Performed) -> str:
    return f"python <<'PROGRAM'\n{block.typed}PROGRAM\n" if block.kind == "python" else block.typed


def _run(scripts: list[str], folder: Path, port: int, patience_s: float, kuayu: str | None) -> list[str]:
    """What each of some scripts prints, one after the other in the same shell."""
    shell = shutil.which("sh")
    curl = shutil.which("curl")
    if shell is None or curl is None:
        pytest.skip("no shell or no curl on this machine")
    url = f"http://127.0.0.1:{port}"
    lines = ["set -eu", f"U={url}"]
    for text in scripts:
        served = re.sub(r"^kuayu (serve|up)\b", rf"kuayu \1 --port {port}", text, flags=re.MULTILINE)
        lines += [served.replace(WRITTEN_FOR, url), f"printf '\\n%s\\n' '{MARK}'"]
    tools = {
        "kuayu": kuayu or f"#!/bin/sh\nexec {sys.executable} -c 'from kuayu.cli import main; main()' \"$@\"\n",
        "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
        "curl": f'#!/bin/sh\nexec {curl} -sS --fail-with-body "$@"\n',
    }
    path = os.pathsep.join([_made(tools, folder / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": COLUMNS, "no_proxy": "127.0.0.1"}
    options = {"cwd": folder, "env": environment, "text": True, "start_new_session": True}
    # into a file: what is left running holds its output open, and nobody should wait for that
    with (folder / "printed").open("w+") as output:
        started = subprocess.Popen([shell, "-c", "\n".join(lines)], stdout=output, stderr=subprocess.STDOUT, **options)  # type: ignore[call-overload]
        try:
            ended: int | None = started.wait(patience_s)
        except subprocess.TimeoutExpired:
            ended = None
        finally:
            _stop(started.pid)
        output.seek(0)
        printed = output.read()
    if ended != 0:
        logs = [f"{file.name}:\n{file.read_text('utf-8', 'replace')[-4000:]}" for file in sorted(folder.glob("*.log"))]
        raise AssertionError("\n".join([f"it ended with {ended}", printed, *logs]))
    return printed.replace(url, WRITTEN_FOR).split(f"\n{MARK}\n")[: len(scripts)]


def _made(tools: dict[str, str], folder: Path) -> str:
    """A folder of programs, each with its text."""
    folder.mkdir()
    for name, text in tools.items():
        command = folder / name
        command.write_text(text)
        command.chmod(0o755)
    return str(folder)


def _stop(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def words(text: str) -> list[str]:
    """What is compared of an output: its words, whatever time it was and whatever the lines were broken at."""
    return re.sub(r"\b[0-9a-f]{24}\b", "…", re.sub(r"20\d\d-\d\d-\d\dT[\d:.]+Z", "…", text)).split()


def pages_shown(performed: list[Performed]) -> Iterator[Performed]:
    """Those of which the guide shows what they print."""
    return (each for each in performed if each.shown is not None)
