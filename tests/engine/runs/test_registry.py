"""Engines are found by name, and the command line says what one lacks."""

import json
import sys
from pathlib import Path

import pytest
from commands import run

from kuayu.engine.runs import registry
from kuayu.engine.runs.local import LocalEngine
from kuayu.engine.runs.protocol import EngineError


def test_an_engine_is_found_by_its_name(tmp_path: Path) -> None:
    assert set(registry.names()) >= {"local", "slurm", "ray", "kubernetes"}
    engine = registry.find("local", tmp_path, nodes={"n1": 2})
    assert isinstance(engine, LocalEngine)
    assert engine.name == "local"


def test_what_is_not_there_is_said_with_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="no engine lokal") as caught:
        registry.find("lokal", tmp_path)
    assert "local" in caught.value.hint
    with pytest.raises(EngineError, match="no option node") as caught:
        registry.find("local", tmp_path, node=1)
    assert "nodes" in caught.value.hint
    monkeypatch.setitem(sys.modules, "kuayu.engine.runs.ray", None)  # as where a library that it imports is missing
    with pytest.raises(EngineError) as caught:
        registry.find("ray", tmp_path)
    assert caught.value.hint == "pip install 'kuayu[reference]'"  # there is an extra of that name


def test_the_command_line_says_what_is_there(tmp_path: Path) -> None:
    ended = run(
        "engine", "check", "local", "--directory", tmp_path / "runs", "--option", 'nodes={"n1": 2}', COLUMNS="200"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [line.split()[0] for line in ended.stdout.splitlines()] == ["what", "host", "directory", "devices", "code"]
    assert "2 of n1" in ended.stdout
    assert not (tmp_path / "runs").exists()


def test_the_command_line_ends_with_one_where_something_is_missing(tmp_path: Path) -> None:
    """A host without Slurm's commands, whatever this one has."""
    ended = run("engine", "check", "slurm", "--directory", tmp_path, "--json", PATH=str(tmp_path))
    assert ended.returncode == 1
    [finding] = json.loads(ended.stdout)["findings"]
    assert not finding["present"]
    assert "sbatch" in finding["detail"]
    assert "install" in finding["hint"]
    shown = run("engine", "check", "slurm", "--directory", tmp_path, PATH=str(tmp_path), COLUMNS="200")
    assert shown.returncode == 1
    assert "hint" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "cause", "hint"),
    [
        (["lokal"], "there is no engine lokal", "engines are local"),
        (["local", "--option", "node=1"], "has no option node", 'its options are nodes={"NAME": NUMBER}'),
        (["local", "--option", "nodes"], "is not of the form KEY=VALUE", "partition=gpu"),
        (["local", "--option", "nodes=7"], "cannot take these options", 'its options are nodes={"NAME": NUMBER}'),
        (["slurm", "--option", "gpus=8"], "has no option gpus", 'cpus_per_process=NUMBER, arguments=["TEXT"]'),
    ],
)
def test_the_command_line_says_what_was_typed_wrongly(arguments: list[str], cause: str, hint: str) -> None:
    ended = run("engine", "check", *arguments, COLUMNS="300")
    assert ended.returncode == 2
    said, _, advice = " ".join(ended.stderr.split()).partition("hint")
    assert cause in said
    assert hint in advice
