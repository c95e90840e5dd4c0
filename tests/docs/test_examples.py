"""The examples for continuous integration do what they say, and the container file copies what is there."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest
import yaml
from mutants.serve import PUBLISHED

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples/ci"
NAMES = ("github-actions.yml", "gitlab-ci.yml")
PLACEHOLDERS = {"START-YOUR-SERVICE", "ADDRESS-OF-KUAYU", "COMMIT", "TOKEN", "TARGET"}

SERVICE = """
import dataclasses, json, sys
from minimal_server.__main__ import serve
from mutants.oracle import Oracle


class Service(Oracle):
    def declaration(self, request):
        answer = super().declaration(request)
        return dataclasses.replace(answer, body={**answer.body, "profiles": ["COM", "IDX"]})


serve(Service, sys.argv[1:])
"""
"""The minimal server as that of a vendor who implements one profile, with which a smoke run takes seconds."""


@dataclass(frozen=True)
class Workflow:
    """What a workflow says, whoever's format it is in.

    Attributes:
        variables: Of its environment.
        install: Commands that install the suite.
        scripts: Commands that start the service and run the suite, in order, each a script of its own.
        kept: Files and folders that it keeps.
        junit: Where JUnit is expected; empty where nothing reads it.
    """

    variables: Mapping[str, str]
    install: list[str]
    scripts: list[str]
    kept: list[str]
    junit: str = ""


def workflow(name: str) -> Workflow:
    """A workflow, read from its YAML."""
    read: dict[Any, Any] = yaml.safe_load((EXAMPLES / name).read_text("utf-8"))
    (job,) = read["jobs"].values() if "jobs" in read else [read["conformance"]]
    if "steps" in job:
        install, *scripts = [step["run"] for step in job["steps"] if "run" in step]
        (kept,) = [step["with"]["path"] for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
        assert all(step.get("if") == "always()" for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
        return Workflow(job["env"], [install], scripts, kept.split())
    artifacts = job["artifacts"]
    assert artifacts["when"] == "always", "a run that fails is the one whose report is wanted"
    junit = artifacts["reports"]["junit"]
    return Workflow(job["variables"], job["before_script"], ["\n".join(job["script"])], artifacts["paths"], junit)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextlib.contextmanager
def programs(folder: Path, port: int) -> Iterator[dict[str, str]]:
    """Environment in which ``kuayu`` is ours and START-YOUR-SERVICE serves the minimal server on a port."""
    (folder / "service.py").write_text(SERVICE, "utf-8")
    served = [sys.executable, str(folder / "service.py"), "--port", str(port), "--schemas", str(PUBLISHED)]
    served += ["--token", "own=own"]
    scripts = {
        "kuayu": shlex.join([sys.executable, "-c", "from kuayu.cli import main; main()"]) + ' "$@"',
        "START-YOUR-SERVICE": f"echo $$ > {shlex.quote(str(folder / 'pid'))}; exec {shlex.join(served)}",
    }
    for name, line in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        (folder / name).chmod(0o755)
    path = os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        yield {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path, "TOKEN": "own"}
    finally:
        with contextlib.suppress(OSError):
            os.kill(int((folder / "pid").read_text()), signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_a_workflow_test_a_service_and_leave_what_it_keeps(name: str, tmp_path: Path) -> None:
    shell = shutil.which("bash")
    if shell is None or shutil.which("curl") is None:
        pytest.skip("no bash or no curl on this machine")
    read = workflow(name)
    (tmp_path / "bin").mkdir()
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    port = free_port()
    with programs(tmp_path / "bin", port) as environment:
        environment |= {"TARGET": f"http://127.0.0.1:{port}", "no_proxy": "127.0.0.1"}
        for script in read.scripts:
            ended = subprocess.run(
                [shell, "-e", "-c", script],
                cwd=checkout,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=500,
            )
            assert ended.returncode == 0, ended.stdout + ended.stderr
        assert httpx.get(f"http://127.0.0.1:{port}/v1/health", trust_env=False).is_success, "the service was ours"
    for path in read.kept:
        assert (checkout / path).exists(), path
    report = json.loads((checkout / "report/report.json").read_text("utf-8"))
    assert report["run_level"] == "smoke"
    assert report["declaration"]["profiles"] == ["COM", "IDX"]
    cases = ET.parse(checkout / (read.junit or "report/junit.xml")).getroot().iter("testcase")  # noqa: S314 - our own
    assert len(list(cases)) >= sum(row["verdict"] == "pass" for row in report["results"]) > 10


@pytest.mark.parametrize("name", NAMES)
def test_a_workflow_installs_the_suite_and_names_nothing_else_to_be_changed(name: str) -> None:
    read = workflow(name)
    (install,) = read.install
    program, verb, source = shlex.split(install)
    assert (program, verb, source.partition(" @ ")[0]) == ("pip", "install", "kuayu[simulation]")
    commands = "\n".join([install, *read.scripts])
    assert set(re.findall(r"\b[A-Z][A-Z-]{4,}\b", commands)) <= PLACEHOLDERS
    assert "TARGET" in read.variables


def test_both_workflows_run_the_suite_by_the_same_command() -> None:
    commands = [
        [line for script in workflow(name).scripts for line in script.splitlines() if line.startswith("kuayu ")]
        for name in NAMES
    ]
    assert commands[0] == commands[1]
    assert len(commands[0]) == 1


def test_the_container_file_copies_what_is_there_and_what_is_not_left_out_of_its_context() -> None:
    text = (ROOT / "conformance/Containerfile").read_text("utf-8")
    taken = set((ROOT / ".dockerignore").read_text("utf-8").split())
    copied = [name for line in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE) for name in line.split()[:-1]]
    assert {"requirements.lock", "pyproject.toml", "conformance", "schemas", "reference_impl"} <= set(copied)
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in taken
    images = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert len(set(images)) == 1
    assert re.fullmatch(r"docker\.io/library/python:\d+\.\d+\.\d+-\S+", images[0]), "a tag that does not move on"
    user, entry = re.search(r"^USER (\S+)", text, re.MULTILINE), re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    assert user
    assert user[1] != "root"
    assert entry
    assert json.loads(entry[1]) == ["kuayu", "conformance"]


def test_the_versions_that_the_container_file_takes_from_the_lock_are_all_of_it() -> None:
    text = (ROOT / "conformance/Containerfile").read_text("utf-8")
    found = re.search(r"RUN (sed .*) requirements\.lock >", text)
    assert found
    lock = ROOT / "requirements.lock"
    taken = subprocess.run([*shlex.split(found[1]), str(lock)], capture_output=True, text=True, check=True)
    pinned = re.findall(r"^[A-Za-z0-9._-]+==[^ ]+", lock.read_text("utf-8"), re.MULTILINE)
    assert [line.split(" ")[0] for line in taken.stdout.splitlines()] == pinned
    assert not re.search(r"--hash|\\", taken.stdout)
