"""`kuayu bench policy` as researchers type it: on a class of their own, and with mistakes."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from kuayu.cli.bench import app

Run = Callable[..., Result]

POLICIES = """
from kuayu_conformance.testbed.scheduling.baselines import HomeBackfill


class Traditional(HomeBackfill):
    pass


class Idle:
    def decide(self, view):
        return ()


class Faulty:
    def decide(self, view):
        return view.nothing_of_that_name


class Mistaken:
    def decide(self, view):
        return ["start job 1"]


class Needy:
    def __init__(self, more):
        self.more = more

    def decide(self, view):
        return ()


class Silent:
    pass
"""
SMALL = ("--seeds", "1", "--nodes", "4", "--warm", "1", "--window", "1", "--drain", "1")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in a folder with a module of policies."""
    (tmp_path / "policies_of_mine.py").write_text(POLICIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def called(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["policy", *arguments])

    return called


def test_b1_by_another_name_does_as_b1(run: Run) -> None:
    answer = run("policies_of_mine:Traditional", *SMALL, "--against", "B1", "--against", "B3", "--json")
    assert answer.exit_code == 0, answer.output
    ours, b1, b3 = json.loads(answer.stdout)["results"]
    assert (ours["policy"], b1["policy"], b3["policy"]) == ("yours", "B1", "B3")
    same = ("family", "seed", "period", "money", "slowdown", "utilisation", "unfinished", "decisions")
    assert [ours[name] for name in same] == [b1[name] for name in same]


def test_the_table_has_a_row_for_each_policy(run: Run) -> None:
    answer = run("policies_of_mine:Idle", *SMALL)
    assert answer.exit_code == 0, answer.output
    assert [line.split()[0] for line in answer.stdout.splitlines()[2:9]] == [
        "yours",
        "B0",
        "B1",
        "B2",
        "B3",
        "B3c",
        "B4",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("policies_of_mine",), 2, "MODULE:CLASS"),
        (("nothing_there:Policy",), 2, "there is no module nothing_there"),
        (("policies_of_mine:Policy",), 2, "has no Policy"),
        (("policies_of_mine:Silent",), 2, "is not a class with a method decide"),
        (("policies_of_mine:Needy", *SMALL), 1, "Needy() raised TypeError"),
        (("policies_of_mine:Faulty", *SMALL), 1, "policies_of_mine.py line 16"),
        (("policies_of_mine:Mistaken", *SMALL), 1, "which is not an order"),
        (("policies_of_mine:Idle", "--family", "reverence"), 2, "there is no family 'reverence'"),
        (("policies_of_mine:Idle", "--source", "guessed"), 2, "there is no source 'guessed'"),
        (("policies_of_mine:Idle", "--against", "B9"), 2, "there is no baseline 'B9'"),
    ],
)
def test_a_mistake_is_told_with_its_cause(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    answer = run(*arguments)
    assert answer.exit_code == code
    assert said in " ".join(answer.stderr.split())
    assert "Traceback" not in answer.output
