"""Commands that answer a file, as typed: on files, with and without a service, wrongly."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import run
from service.conftest import Service
from service.test_adjustments import ANSWERS as ADJUSTMENT_ANSWERS
from service.test_adjustments import FILES as ADJUSTMENT_FILES
from service.test_demands import ANSWERS as DEMAND_ANSWERS
from service.test_demands import EXAMPLES
from service.test_demands import FILES as DEMAND_FILES
from service.test_forecasts import ANSWERS as FORECAST_ANSWERS
from service.test_forecasts import FILES as FORECAST_FILES
from service.test_recovery import ANSWERS as RECOVERY_ANSWERS
from service.test_recovery import FILES as RECOVERY_FILES
from service.test_transfers import ANSWERS as TRANSFER_ANSWERS
from service.test_transfers import FILES as TRANSFER_FILES

from kuayu_schemas import schema

QUESTIONS = [
    *(("demand", EXAMPLES / file, DEMAND_ANSWERS[path]) for path, file in DEMAND_FILES.items()),
    *(("forecast", EXAMPLES / file, FORECAST_ANSWERS[path]) for path, file in FORECAST_FILES.items()),
    *(("transfers", EXAMPLES / file, TRANSFER_ANSWERS[path]) for path, file in TRANSFER_FILES.items()),
    *(("recovery", EXAMPLES / file, RECOVERY_ANSWERS[path]) for path, file in RECOVERY_FILES.items()),
    *(("adjust", EXAMPLES / file, ADJUSTMENT_ANSWERS[path]) for path, file in ADJUSTMENT_FILES.items()),
]

Change = Callable[[dict[str, Any]], object]


def typed(*arguments: str | Path, stdin: str = "", columns: int = 160) -> subprocess.CompletedProcess[str]:
    return run(*arguments, text=stdin, COLUMNS=str(columns), no_proxy="127.0.0.1")


@pytest.mark.parametrize(("command", "file", "report"), QUESTIONS, ids=[report for _, _, report in QUESTIONS])
def test_a_service_gives_the_same_answer_as_this_host(shared: Service, command: str, file: Path, report: str) -> None:
    here, there = typed(command, file, "--json"), typed(command, file, "--json", "--url", shared.url)
    assert here.returncode == 0, here.stderr
    assert json.loads(here.stdout) == json.loads(there.stdout)
    assert schema.errors(report, json.loads(here.stdout)) == []


WORDS = {
    "TrainingDemandReport": ("case", "c-1", "stable_convergence", "steady", "GB", "1 measured run."),
    "LayoutReport": ("strategy", "d64", "strategies that were looked at can run", "t tensor"),
    "SizingReport": ("task", "t-1", "64 GB", "As asked", "records"),
    "ForecastReport": ("series", "s-1", "10 min", "1 h", "0.9"),
    "PhaseReport": ("training", "c-1", "_convergence"),
    "Waveform": ("devices", "1.5 h", "█", "device-hours", "money"),
    "PeakPlan": ("load", "l-1", "104 →", "lower"),
    "ReservationReport": ("tenant", "t-1", "d-east", "reserve"),
    "ShardPlan": ("stream", "j-1", "steps ahead", "from", "d-east", "those whose data are late", "GB", "are left out"),
    "BackupPlan": ("domain", "spares", "d-east", "money an hour", "copy in", "j-1", "3.33 min", "all there are"),
    "FailoverPlan": ("goes on by", "j-1", "replace", "restore", "n-8, n-9", "42.5 s", "Whole replicas"),
    "Adjustment": ("what has changed", "d-east", "60.0%", "j-1", "38 62", "Parts that move: 10 of 100"),
    "CollectiveChoice": ("→", "low communication", "steps a second", "d-east", "a switch takes"),
}


@pytest.mark.parametrize(("command", "file", "report"), QUESTIONS, ids=[report for _, _, report in QUESTIONS])
def test_an_answer_makes_tables(command: str, file: Path, report: str) -> None:
    ended = typed(command, file)
    assert ended.returncode == 0, ended.stderr
    for word in WORDS[report]:
        assert word in ended.stdout, word
    assert "[bold]" not in ended.stdout


@pytest.mark.parametrize(
    ("command", "given", "cause", "hint"),
    [
        ("demand", "{", "is not JSON", "TrainingDemandRequest"),
        ("demand", "[]", "the file is no request for demands", "LayoutRequest (with kind)"),
        ("forecast", '{"cases": []}', "the file is no request for forecasts", "PeakRequest (with base)"),
        ("transfers", '{"base": []}', "the file is no request for a shard plan", "CollectiveRequest (with exchange)"),
        ("recovery", '{"base": []}', "the file is no request for a backup plan", "FailoverRequest (with nodes)"),
        ("adjust", "[]", "is no request to adjust jobs", "the class AdjustmentRequest"),
        ("demand", '{"cases": []}', '"revision" is a required property', "the class TrainingDemandRequest"),
    ],
)
def test_what_is_no_question_is_told(command: str, given: str, cause: str, hint: str) -> None:
    assert_told(typed(command, "-", stdin=given), cause, hint)


@pytest.mark.parametrize(
    ("number", "change", "cause"),
    [
        (0, lambda request: request["cases"][0].update(hardware="h-2"), "/cases/0/hardware: h-2 is no hardware"),
        (0, lambda request: request["cases"].append(request["cases"][0]), "/cases/1/id: c-1 stands twice"),
        (1, lambda request: request["model"].update(experts_per_token=2), "/model/experts_per_token: "),
        (6, lambda request: request["loads"].append(request["loads"][0]), "/loads/2/id: l-1 stands twice"),
        (8, lambda request: request["rooms"].append(request["rooms"][0]), "/rooms/1/domain: "),
        (9, lambda request: request["domains"].append("d-east"), "/domains/3: d-east stands twice"),
        (10, lambda request: request["jobs"][0].update(domain="d-none"), "/jobs/0/domain: d-none is not among"),
        (11, lambda request: request["stores"].pop(0), "/jobs/0/copies/0/domain: there is no store in d-east"),
        (12, lambda request: request["jobs"][0].update(id="j-2"), "/jobs/1/id: j-2 stands twice"),
    ],
)
@pytest.mark.parametrize("served", [False, True])
def test_a_faulty_request_is_told_where(
    shared: Service, number: int, change: Change, cause: str, *, served: bool
) -> None:
    command, file, _ = QUESTIONS[number]
    request = json.loads(file.read_text("utf-8"))
    change(request)
    where = ["--url", shared.url] if served else []
    ended = typed(command, "-", *where, stdin=json.dumps(request))
    assert ended.returncode != 0
    assert cause in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr


def test_a_file_that_is_not_there_and_a_url_that_is_none_are_told(tmp_path: Path) -> None:
    assert_told(typed("demand", tmp_path / "none.json"), "cannot read", "give a JSON file")
    assert_told(
        typed("forecast", QUESTIONS[3][1], "--url", "nowhere"), "is not an http or https URL", "http://HOST:PORT"
    )
    ended = typed("forecast", QUESTIONS[3][1], "--url", "http://127.0.0.1:9")
    assert ended.returncode == 1
    assert "no answer from" in ended.stderr


def assert_told(ended: subprocess.CompletedProcess[str], cause: str, hint: str) -> None:
    assert ended.returncode == 2
    told = " ".join(ended.stderr.split())
    assert cause in told
    assert hint in told
    assert "Traceback" not in ended.stderr
