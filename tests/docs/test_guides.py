"""What the guides tell people to type works as it stands."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import commands
import httpx
import pytest
from docs.typed import CODE, GUIDES, WRITTEN_FOR, blocks

PAGES = sorted(page.name for page in (GUIDES / "en/guides").glob("*.md"))
KUAYU = (sys.executable, "-c", "from kuayu.cli import main; main()")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The reference, served as the guide says but on a port of its own."""
    folder = tmp_path_factory.mktemp("service")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*KUAYU, "serve", "--port", str(port)]
    command += ["--database", f"sqlite:///{folder / 'kuayu.db'}", "--scrape-allow", "127.0.0.1"]
    url = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            transport = httpx.HTTPTransport(retries=10)
            with httpx.Client(transport=transport, trust_env=False) as client:
                assert client.get(f"{url}/v1/health").is_success
            yield url
        finally:
            process.terminate()


def run(command: list[str], folder: Path) -> str:
    """What a command prints; it has to succeed."""
    environment = {**os.environ, "no_proxy": "127.0.0.1", "COLUMNS": "200"}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def answers(service: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the service answers to all requests of the integrator's guide, in order."""
    shell = shutil.which("sh")
    if shell is None or shutil.which("curl") is None:
        pytest.skip("no shell or no curl on this machine")
    requests = "\n".join(text for kind, text in blocks("integrator.md") if kind == "sh" and "curl" in text)
    script = 'set -eu\ncurl() { command curl -sS --fail-with-body "$@"; echo; }\n' + requests
    return run([shell, "-c", script.replace(WRITTEN_FOR, service)], tmp_path_factory.mktemp("typed"))


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_show_the_same_commands(page: str) -> None:
    assert blocks(page, "en") == blocks(page, "zh")


def test_the_integrators_requests_are_all_answered_with_success(answers: str) -> None:
    assert answers.count('"accepted":1,"rejected":[]') == 2
    assert '"measure":"accelerator_utilisation","unit":"1","number":0.87' in answers


@pytest.mark.usefixtures("answers")
def test_the_integrators_program_runs(service: str, tmp_path: Path) -> None:
    program = "\n".join(text for kind, text in blocks("integrator.md") if kind == "python")
    printed = run([sys.executable, "-c", program.replace(WRITTEN_FOR, service)], tmp_path)
    assert printed.startswith("1\n")
    assert "storage_read_flow None 1200000000.0 By/s" in printed


@dataclass
class Performed:
    """A block of the guide to the index that was carried out.

    Attributes:
        kind: Its language.
        printed: What it printed.
        shown: What the guide says that it prints; empty where it does not say.
    """

    kind: str
    printed: str
    shown: str = ""


@pytest.fixture(scope="module")
def performed(service: str, tmp_path_factory: pytest.TempPathFactory) -> list[Performed]:
    """Every block of the guide to the index, carried out in order in one folder."""
    shell = shutil.which("sh")
    if shell is None or shutil.which("curl") is None:
        pytest.skip("no shell or no curl on this machine")
    folder = tmp_path_factory.mktemp("index")
    functions = ['curl() { command curl -sS --fail-with-body "$@"; }', f'kuayu() {{ {shlex.join(KUAYU)} "$@"; }}']
    before = "\n".join(["set -eu", f"U={service}", *functions, ""])
    interpreters = {"sh": [shell, "-c"], "python": [sys.executable, "-c"]}
    done: list[Performed] = []
    for kind, text in blocks("compute-index.md"):
        if kind == "text":
            done[-1].shown = text
        else:
            typed = (before if kind == "sh" else "") + text.replace(WRITTEN_FOR, service)
            done.append(Performed(kind, run([*interpreters[kind], typed], folder)))
    return done


def test_the_guide_to_the_index_shows_what_its_commands_print(performed: list[Performed]) -> None:
    shown = [each for each in performed if each.shown]
    assert len(shown) >= 4
    for each in shown:
        assert each.shown.split() == each.printed.split()


def test_the_requests_of_the_guide_to_the_index_are_answered(performed: list[Performed]) -> None:
    index, plan, groups = (json.loads(each.printed) for each in performed if each.printed.startswith("{"))
    assert [(each["device"], each["task"]) for each in index["indices"]] == [("h100-sxm", "bert")]
    assert {probe["task"] for probe in plan["probes"]} <= {"resnet", "ssd"}
    assert [(each["group"], each["devices"]) for each in groups["groups"]] == [("node", 8), ("domain", 192)]


def test_the_program_of_the_guide_to_the_index_runs(performed: list[Performed]) -> None:
    (printed,) = (each.printed for each in performed if each.kind == "python")
    assert [line.split()[0] for line in printed.splitlines()] == ["bert", "resnet", "rnnt", "ssd"]
    assert printed.count(" measured ") == printed.count(" probed ") == 2


@pytest.fixture(scope="module")
def known_options() -> set[str]:
    """Every option that the command line tells of."""
    parts = [[part] for part in ("serve", "collect", "agent", "graph", "probe", "index", "place", "hold")]
    parts += [
        ["demand"],
        ["forecast"],
        ["transfers"],
        ["recovery"],
        ["adjust"],
        ["live"],
        ["logs"],
        ["diagnose"],
        ["up"],
        ["submit"],
        ["jobs"],
        ["why"],
        ["load"],
        ["cancel"],
        ["beat"],
        ["faults"],
    ]
    parts += [["bench", "policy"], ["engine", "check"]]
    parts += [["kueue", part] for part in ("objects", "manifests", "check", "dispatch")]
    parts += [["domain", part] for part in ("add", "list", "remove", "run")]
    parts += [["conformance", part] for part in ("run", "doctor", "list", "verify", "publish", "check-submission")]
    told = [commands.run(*part, "--help", COLUMNS="200") for part in parts]
    assert [each.stderr for each in told if each.returncode != 0] == []
    pages = [each.stdout for each in told]
    for command in ("rule", "scheduler"):
        typed = [sys.executable, "-m", "kuayu_training", command, "--help"]
        wide = {**os.environ, "COLUMNS": "200"}
        pages.append(subprocess.run(typed, env=wide, capture_output=True, text=True, check=True).stdout)
    return {option for page in pages for option in OPTION.findall(page)}


@pytest.mark.parametrize("page", PAGES)
def test_every_option_that_a_guide_names_exists(known_options: set[str], page: str) -> None:
    text = (GUIDES / "en/guides" / page).read_text(encoding="utf-8")
    prose = CODE.sub("", text) + "\n".join(line for line in text.splitlines() if line.startswith("kuayu "))
    assert set(OPTION.findall(prose)) <= known_options
