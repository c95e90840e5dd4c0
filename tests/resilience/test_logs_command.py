"""``kuayu diagnose`` as people call it, in real processes."""

import json
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import commands
import pytest

LOG = (
    "Nov 22 09:58:33 gpu001 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=77, GPU has fallen off the bus.\n"
    "Nov 22 09:58:34 gpu001 python[7]: torch.OutOfMemoryError: CUDA out of memory.\n"
    "Nov 22 09:58:34 gpu001 python[7]: step 12 loss 3.4\n"
)
PATIENCE_S = 40.0


def run(*arguments: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return commands.run("diagnose", *arguments, text=text)


def test_a_log_is_told_as_a_table_and_as_json(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(LOG)
    table = run(log)
    assert table.returncode == 0
    assert "xid.79" in table.stdout
    assert "drain" in table.stdout
    assert "2 faults and oddities, 1 of them critical in 3 lines" in table.stdout
    made = json.loads(run(log, "--json").stdout)
    assert (made["lines"], made["bytes"]) == (3, len(LOG))
    rows = [(row["code"], row["follows"], row["node"], row["line"], row["count"]) for row in made["faults"]]
    assert rows == [("xid.79", "drain", "gpu001", 1, 1), ("job.memory", "restart", "gpu001", 2, 1)]
    assert made["faults"][0]["source"].startswith("https://docs.nvidia.com/")


def test_the_standard_input_and_an_empty_log_are_read() -> None:
    assert "xid.79" in run("-", text=LOG).stdout
    assert run("-").stdout == "no fault in 0 lines of 0 templates\n"


def test_templates_are_kept_and_begun_with(tmp_path: Path) -> None:
    kept = tmp_path / "templates.json"
    usual = "".join(f"python[7]: step {n} done\n" for n in range(3000))
    strange = "python[7]: CRITICAL heartbeat vanished while reticulating splines\n"
    assert "unusual" not in run("-", text=strange).stdout
    assert run("-", "--templates", kept, text=usual).returncode == 0
    assert len(json.loads(kept.read_text())["templates"]) == 1
    assert "unusual.line" in run("-", "--templates", kept, text=strange).stdout
    assert "unusual.line" not in run("-", "--templates", kept, "--no-unusual", text=strange).stdout
    assert [each.name for each in tmp_path.iterdir()] == ["templates.json"]


@pytest.mark.parametrize(
    ("arguments", "content", "cause", "hint"),
    [
        (("nowhere.log",), None, "cannot read nowhere.log: No such file", "give a file that can be read"),
        (("-", "--templates", "t.json"), "[]", "cannot read templates from t.json", "a file that is not there yet"),
        (("-", "--templates", "t.json"), "\x00", "it is no JSON", "a library that this command wrote"),
        (("-", "--templates", "no/t.json"), None, "cannot write templates to", "can be written"),
    ],
)
def test_what_cannot_be_read_is_said_with_a_hint(
    arguments: Sequence[str],
    content: str | None,
    cause: str,
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("t.json").write_text(content)
    made = run(*arguments)
    assert made.returncode in {1, 2}
    said = " ".join(made.stderr.split())
    assert cause in said
    assert hint in said
    assert "Traceback" not in made.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_log_is_followed_until_told_to_stop(number: signal.Signals, tmp_path: Path) -> None:
    log, kept = tmp_path / "kern.log", tmp_path / "templates.json"
    first, second, third = LOG.splitlines(keepends=True)
    log.write_text(third)
    with commands.running("diagnose", log, "--follow", "--json", "--templates", kept) as process:
        with log.open("a") as more:  # half a line, and the rest later
            more.write(first[:40])
            more.flush()
            time.sleep(0.5)
            more.write(first[40:])
        assert json.loads(process.stdout.readline())["code"] == "xid.79"
        log.rename(tmp_path / "kern.log.1")  # the log is replaced, as logrotate does
        log.write_text(second)
        found = json.loads(process.stdout.readline())
        assert (found["code"], found["line"]) == ("job.memory", 3)
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == ""
    assert sum(each["seen"] for each in json.loads(kept.read_text())["templates"]) == 3


def test_a_pipe_is_told_line_by_line() -> None:
    with commands.running("diagnose", "-", "--follow") as process:
        process.stdin.write(LOG.splitlines(keepends=True)[0])
        process.stdin.flush()
        assert process.stdout.readline().startswith(
            "1: drain xid.79 gpu001 0000:3b:00 the GPU has fallen off the bus |"
        )
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
