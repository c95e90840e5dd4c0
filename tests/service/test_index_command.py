"""`kuayu index` as integrators type it: on a file, with or without a service, and with mistakes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import run
from service.conftest import Service

from kuayu_schemas import schema

CORPUS: dict[str, Any] = {
    "devices": [
        {
            "id": name,
            "stack": "CUDA 12",
            "peak_matrix_throughput": {"fp16": matrix, "fp32": matrix / 8},
            "accelerator_memory_bandwidth": memory,
        }
        for name, matrix, memory in (("A100", 3e14, 2e12), ("H100", 1e15, 3.3e12), ("L4", 1.2e14, 3e11))
    ],
    "tasks": [{"id": name, "precisions": ["fp16"]} for name in ("resnet", "bert", "dlrm")],
    "measurements": [
        {"device": device, "task": task, "throughput": throughput}
        for device, task, throughput in (
            ("A100", "resnet", 100.0),
            ("A100", "bert", 50.0),
            ("A100", "dlrm", 10.0),
            ("H100", "resnet", 250.0),
            ("H100", "bert", 150.0),
            ("H100", "dlrm", 16.5),
            ("L4", "resnet", 30.0),
        )
    ],
}

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "corpus.json"
    file.write_text(json.dumps(CORPUS), encoding="utf-8")
    return file


def typed(*arguments: str | Path, stdin: str = "", columns: int = 120) -> subprocess.CompletedProcess[str]:
    return run("index", *arguments, text=stdin, COLUMNS=str(columns), no_proxy="127.0.0.1")


def lines(ended: subprocess.CompletedProcess[str]) -> list[list[str]]:
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [line.split() for line in ended.stdout.splitlines()]


def test_devices_and_tasks_make_a_table_with_its_signs_explained(corpus: Path) -> None:
    ended = typed(corpus, "--reference", "A100")
    rows = lines(ended)
    assert rows[0] == ["device", "resnet", "bert", "dlrm"]
    assert ["H100", "2.5", "3", "1.65"] in rows
    [inferred] = [row for row in rows if row[:1] == ["L4"]]
    assert inferred[1] == "0.3"
    assert "p" in inferred[2:]
    assert "–" in ended.stdout
    assert "p inferred from measurements of other tasks" in ended.stdout
    assert "s by the data sheet" not in ended.stdout
    assert "A100 one device is worth" in " ".join(ended.stdout.split())


def test_a_narrow_terminal_gets_several_tables(corpus: Path) -> None:
    heads = [row for row in lines(typed(corpus, "--reference", "A100", columns=60)) if row[:1] == ["device"]]
    assert heads == [["device", "resnet", "bert"], ["device", "dlrm"]]


def test_what_is_not_relied_on_is_marked(corpus: Path) -> None:
    options = ("--reference", "A100", "--device", "L4", "--task", "dlrm", "--tolerance", "1e-6")
    ended = typed(corpus, *options)
    assert any(row[:1] == ["L4"] and row[1].startswith("~") for row in lines(ended))
    assert "~ interval wider than the tolerance: not to be relied on" in ended.stdout


def test_one_index_is_explained_term_by_term(corpus: Path) -> None:
    ended = typed(corpus, "--reference", "A100", "--device", "L4", "--task", "dlrm", "--explain")
    assert "share of time on reference" in ended.stdout
    told = json.loads(
        typed(corpus, "--reference", "A100", "--device", "L4", "--task", "dlrm", "--explain", "--json").stdout
    )
    explanation = told["indices"][0]["explanation"]
    for term in explanation["terms"]:
        assert any(row[:2] == [term["capability"], f"{term['weight']:.1%}"] for row in lines(ended))
    assert f"× {explanation['residual']:.3g}" in ended.stdout


def test_a_plan_says_what_to_measure_next(corpus: Path) -> None:
    rows = lines(typed(corpus, "--plan", "L4", "--probes", "2"))
    assert {row[1] for row in rows if row[:1] in (["1"], ["2"])} <= {"bert", "dlrm"}
    assert rows[1][:3] == ["as", "things", "stand"]
    plan = json.loads(typed(corpus, "--plan", "L4", "--probes", "1", "--json").stdout)
    assert schema.errors("ProbePlan", plan) == []


def rounded(value: Any) -> Any:
    """JSON with numbers to nine digits: a service computes on one thread, and sums differ in the last bit."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def test_a_service_gives_the_same_answer_as_this_host(corpus: Path, shared: Service) -> None:
    for options in (("--reference", "A100", "--explain", "--json"), ("--plan", "L4", "--json")):
        here, there = typed(corpus, *options), typed(corpus, *options, "--url", shared.url)
        assert here.returncode == 0, here.stderr
        assert rounded(json.loads(here.stdout)) == rounded(json.loads(there.stdout))
    assert schema.errors("IndexReport", json.loads(typed(corpus, "--reference", "A100", "--json").stdout)) == []


def test_a_corpus_may_come_through_a_pipe(corpus: Path) -> None:
    program = [sys.executable, "-c", "from kuayu.cli import main; main()", "index", "-", "--reference", "H100"]
    environment = {**os.environ, "COLUMNS": "120"}
    given = corpus.read_text("utf-8")
    piped = subprocess.run(program, input=given, env=environment, capture_output=True, text=True, check=False)
    assert piped.returncode == 0
    assert piped.stdout == typed(corpus, "--reference", "H100").stdout


@pytest.mark.parametrize(
    ("options", "cause", "hint"),
    [
        ((), "nothing to compare with", "--reference ID"),
        (("--reference", "A10"), "has no device 'A10'", "did you mean A100?"),
        (("--reference", "a100", "--task", "zzz"), "has no task 'zzz'", "tasks are resnet, bert, dlrm"),
        (("--reference", "A100", "--device", "h100"), "has no device 'h100'", "did you mean H100"),
        (("--plan", "A100"), "were measured on A100 already", "another device"),
        (("--plan", "L4", "--reference", "A100"), "asks another question", "leave out"),
        (("--plan", "L4", "--url", "localhost:80"), "is not an http or https URL", "http://HOST:PORT"),
        (("--plan", "L4", "--url", "http://127.0.0.1:9"), "no answer from", "check that the service runs"),
    ],
)
def test_a_mistake_is_told_with_cause_and_hint(corpus: Path, options: tuple[str, ...], cause: str, hint: str) -> None:
    assert_told(typed(corpus, *options), cause, hint)


@pytest.mark.parametrize(
    ("change", "cause", "hint"),
    [
        (lambda made: made["devices"][1].pop("stack"), "/devices/1: ", "the class Corpus"),
        (lambda made: made["tasks"][0].update(flops=1), "/tasks/0/flops: ", "the class Corpus"),
        (lambda made: made["devices"][0].update(measured_at="2025-02-30T00:00:00Z"), "/devices/0/measured_at: ", "the"),
        (lambda made: made["measurements"][2].update(task="gpt"), "/measurements/2/task: ", "one entry"),
        (lambda made: made["tasks"].append(made["tasks"][0]), " /tasks/3", "one entry"),
    ],
)
def test_a_faulty_corpus_is_told_where(corpus: Path, change: Change, cause: str, hint: str) -> None:
    made = json.loads(corpus.read_text("utf-8"))
    change(made)
    assert_told(typed("-", "--reference", "A100", stdin=json.dumps(made)), cause, hint)


@pytest.mark.parametrize(
    ("content", "cause"), [("{", "not JSON"), ("[NaN]", "not JSON"), ("[]", "no corpus"), ("", "not JSON")]
)
def test_what_is_no_corpus_at_all_is_told(content: str, cause: str) -> None:
    assert_told(typed("-", "--reference", "A100", stdin=content), f"the standard input is {cause}", "class Corpus")


@pytest.mark.parametrize("width", ["1e31", "inf", "nan", "0"])
def test_a_tolerance_that_the_model_does_not_have_is_told(corpus: Path, width: str) -> None:
    ended = typed(corpus, "--reference", "A100", "--tolerance", width)
    assert ended.returncode == 2
    assert "Invalid value for '--tolerance'" in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert_told(typed(tmp_path / "none.json", "--plan", "x"), "No such file", "- for the standard input")


def assert_told(ended: subprocess.CompletedProcess[str], cause: str, hint: str) -> None:
    assert ended.returncode in {1, 2}
    words = " ".join(ended.stderr.split())
    assert cause in words
    assert hint in words.partition("hint ")[2]
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
