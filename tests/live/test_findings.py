"""What a run has shown: what is wrong is told, the picture shows the incidents, and bad input is answered in words."""

import dataclasses
import json
import math
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from kuayu.cli import app
from kuayu.live.findings import Account, Entry, Findings, Timeline
from kuayu.live.plan import Settings
from kuayu.live.supervisor import Kind
from kuayu.live.view import picture, spark

CLEAN = Account(40, (), (), ())


def run(steps: int = 20, *, struck: bool = False) -> Timeline:
    """A run of a step each second; a worker may be killed after ten, and two seconds are lost."""
    line = Timeline()
    line.take({"at": 0.0, "kind": "plan", "generation": 1, "members": ["a", "b"], "removed": [], "again": 0})
    for step in range(1, steps + 1):
        at = step + (2.0 if struck and step > 10 else 0.0)
        line.take({"at": at, "kind": "step", "step": step, "loss": 3.0 / step, "generation": line.generation})
        if struck and step == 10:
            line.struck(Kind.kill, "b", 10.5)
            line.take({"at": 11.0, "kind": "verdict", "worker": "b", "fault": "ended"})
            line.take({"at": 11.0, "kind": "plan", "generation": 2, "members": ["a"], "removed": ["b"], "again": 0})
            line.incidents[-1].lifted, line.incidents[-1].left = 14.0, 14.1
    return line


def findings() -> Findings:
    return Findings(Settings(), run(struck=True), CLEAN, run(), CLEAN, 0.5, (22.0, 20.0))


def test_nothing_is_wrong_with_a_run_that_went_as_it_should() -> None:
    found = findings()
    assert found.wrong == []
    assert found.difference == 0.0
    told = json.loads(json.dumps(found.to_json()))
    assert told["incidents"][0]["interruption"] == 3.0
    assert told["percentile_95_and_bound"] == {"RES-003": [2.5, None], "RES-004": [3.0, None]}
    assert told["spread"]["kill"]["detected"] == {"median": 0.5, "most": 0.5}


def test_each_thing_that_is_wrong_is_told() -> None:
    late = Entry("b", 12.0, 1, 11, 0.1)
    found = findings()
    found.timeline.losses[15] += 1e-3
    del found.timeline.losses[17]
    found.timeline.struck(Kind.hang, "a", 21.0)
    found.timeline.incidents[0].left = None
    found.timeline.false_alarms.append({"worker": "a"})
    found = dataclasses.replace(found, account=Account(40, (), (late,), ()))
    words = (
        "1 incidents were not recovered from",
        "the curve has no loss for 1 steps, such as 17",
        "the curve is off the undisturbed one by 0.001",
        "in the disturbed run the job was in two places, or a step had two results",
        "1 replaced workers did not end by themselves",
        "1 false alarms",
    )
    assert found.wrong == list(words)
    assert found.judged("RES-003") == (math.inf, None)


def test_the_picture_shows_both_curves_and_each_incident() -> None:
    root = ET.fromstring(picture(findings()))  # noqa: S314 - our own
    svg = "{http://www.w3.org/2000/svg}"
    assert len([each for each in root.iter(f"{svg}path") if each.get("class") == "line"]) == 3
    texts = [each.text for each in root.iter(f"{svg}text")]
    assert "kill (1)" in texts
    assert "same seed, undisturbed" in texts
    ET.fromstring(picture(dataclasses.replace(findings(), timeline=Timeline(), calm=None)))  # noqa: S314 - ours


def test_a_falling_curve_falls_in_bars_too() -> None:
    bars = spark({step: 3.0 / step for step in range(1, 200)})
    assert bars == "".join(sorted(bars, reverse=True))
    assert len(bars) <= 60
    assert spark({}) == ""


@pytest.mark.parametrize("told", ["killl", "kill=some", "kill=2,,hang"])
def test_what_is_no_fault_is_answered_in_words(told: str, tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["live", "--incidents", told, "-o", str(tmp_path)])
    assert answer.exit_code == 2
    assert "is not a kind of fault" in answer.output
    assert "kill, hang, slow, cut, partial" in answer.output
