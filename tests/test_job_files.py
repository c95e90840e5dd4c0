"""Job files: what people write becomes the job that they mean, or they are told in which line they slipped."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kuayu.cli.job_file import KEYS, JobFileError, Surroundings, read_job_file, request_of
from kuayu.cli.terminal import read_size, read_span
from kuayu_schemas import schema

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)
WHERE = Surroundings("train.yaml", Path("/jobs"), {"TOKEN": "swordfish"}, NOW)
LEAST = "command: python train.py\ndevices: 1\n"


def read(text: str, *settings: str, surroundings: Surroundings = WHERE) -> dict[str, Any]:
    return read_job_file(text.encode(), settings, surroundings)


def faults(text: str, *settings: str) -> list[str]:
    with pytest.raises(JobFileError) as refused:
        read(text, *settings)
    return list(refused.value.faults)


def test_the_least_that_a_job_can_be() -> None:
    assert read(LEAST) == {
        "workload": {"command": ["python", "train.py"]},
        "devices": {"minimum": 1, "maximum": 1},
    }


WHOLE = """
name: base-13b
label: The base model
kind: pretraining
image: pytorch/pytorch:2.9
command: [python, -u, train.py, --lr, 3e-4]
environment:
  SEED: 007
  DEBUG: no
  TOKEN:
working_directory: work
code: git+https://example.com/training@main
processes_per_node: 8
devices:
  least: 8
  most: 64
  want: 32
  step: 8
  kind: [gpu, npu]
  memory: 40GiB
  per_node: 8
data:
  - place: guiyang
    size: 1.5 TB
  - name: tokens
    place: [guiyang, horinger]
    size: 20GB
    pinned: true
checkpoint: checkpoints/base
model: {layers: 40, hidden: 5120, heads: 40, sequence: 4096, vocabulary: 32000}
strategy: {micro_batch: 1, global_batch: 1024}
steps: 250000
split_modes: [none, periodic]
sync_period: 500
communication: {step_time: 2s, exchange: 26GB, boundary: 0, checkpoint_size: 156GB}
links: {bandwidth: 1000000000, round_trip_time: 30ms}
account: language
priority: 10
deadline: 3d 12h
budget: 12000
retries: 5
grace: 2min
domains: [guiyang, horinger]
"""


def test_all_that_a_job_can_say() -> None:
    request = read(WHOLE)
    assert schema.errors("JobRequest", request) == []
    assert request["id"] == "base-13b"
    assert request["workload"] == {
        "command": ["python", "-u", "train.py", "--lr", "3e-4"],
        "image": "pytorch/pytorch:2.9",
        "environment": [
            {"name": "SEED", "value": "007"},  # as it is written, and no number
            {"name": "DEBUG", "value": "no"},
            {"name": "TOKEN", "value": "swordfish"},  # of whoever submits
        ],
        "working_directory": "/jobs/work",
        "code": "git+https://example.com/training@main",
        "processes_per_node": 8,
    }
    assert request["devices"] == {"minimum": 8, "maximum": 64, "requested": 32, "step": 8}
    assert (request["device_kinds"], request["memory_per_device"]) == (["gpu", "npu"], 40 * 2**30)
    assert request["nodes"] == {"devices_per_node": 8}
    assert request["data"] == [
        {"id": "data-1", "size": 1.5e12, "domains": ["guiyang"]},
        {"id": "tokens", "size": 20e9, "domains": ["guiyang", "horinger"], "pinned": True},
    ]
    assert request["checkpoint"] == "file:///jobs/checkpoints/base"
    assert request["training"]["strategy"] == {
        "data": 32, "tensor": 1, "pipeline": 1, "micro_batch": 1, "global_batch": 1024
    }  # fmt: skip
    assert (request["training"]["steps"], request["split_modes"]) == (250000, ["none", "periodic"])
    assert request["communication"]["checkpoint_size"] == 156e9
    assert request["links"]["round_trip_time"] == 0.03
    assert request["deadline"] == "2027-01-05T00:00:00.000Z"
    assert request["account"] == "language"
    assert (request["grace"], request["budget"], request["retries"]) == (120.0, 12000.0, 5)
    assert request_of(request).to_wire()["domains"] == ["guiyang", "horinger"]
    written = {line.split(":")[0] for line in WHOLE.splitlines() if line and line[0].isalpha()}
    assert KEYS.keys() - written == {"duration", "serving"}  # in place of steps, and of a job that ends


SERVING = f"""{LEAST}
name: chat
kind: serving
serving: {{least: 1, most: 4, rate: 20, latency: 500ms, startup: 30s, cool_down: 5min}}
"""


def test_a_serving_job_says_how_many_replicas_it_has_and_what_one_of_them_answers() -> None:
    request = read(SERVING)
    assert schema.errors("JobRequest", request) == []
    assert request["serving"] == {
        "minimum": 1, "maximum": 4, "rate": 20.0, "latency": 0.5, "startup": 30.0, "cool_down": 300.0
    }  # fmt: skip
    for one_limit in ("least", "most"):
        need = read(LEAST + f"serving: {{{one_limit}: 2, rate: 5}}\n")["serving"]
        assert need == {"minimum": 2, "maximum": 2, "rate": 5.0}
    place = f"train.yaml:{1 + LEAST.count(chr(10))}: serving"
    assert faults(LEAST + "serving: 3\n") == [f"{place}: write it as least: 1, most: 4 and rate: 20"]
    assert faults(LEAST + "serving: {least: 1}\n") == [f"{place}: it does not say rate"]
    assert faults(LEAST + "serving: {rate: 1}\n") == [f"{place}: it does not say least or most"]


def test_json_is_read_like_yaml_with_tabs_too() -> None:
    assert read(json.dumps({"command": "python train.py", "devices": {"most": 4}}, indent="\t")) == {
        "workload": {"command": ["python", "train.py"]},
        "devices": {"minimum": 4, "maximum": 4},
    }


def test_a_job_as_the_standard_has_it_is_taken_as_it_is() -> None:
    request = read(LEAST) | {"id": "job-1", "priority": 3}
    assert read(json.dumps(request)) == request
    assert faults(json.dumps(request | {"priority": "high"}, indent=1)) == [
        'train.yaml:13: priority: "high" is not of type "integer"'
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("devices: 1\ncomand: x", ["train.yaml:2: comand is no key; did you mean command?"]),
        (LEAST + "retrys: 3", ["train.yaml:3: retrys is no key; did you mean retries?"]),
        (LEAST + "sync-period: 9", ["train.yaml:3: sync-period is no key; did you mean sync_period?"]),
        (LEAST + "colour: red", ["train.yaml:3: colour is no key"]),
        ("command: x\ndevices:\n  lest: 1\n  most: 2", ["train.yaml:3: devices.lest is no key; did you mean least?"]),
        ("command: x\ndevices: {least: 4, most: 2}", ["train.yaml:2: devices: least is 4, and most is 2"]),
        ("command: x\ndevices: two", ["train.yaml:2: devices: 'two' is no whole number"]),
        ("command: x\ndevices: {kind: gpu}", ["train.yaml:2: devices: say how many: least, most, or both"]),
        (
            "command: x\ndevices: {least: 1, kind: gpus}",
            ["train.yaml:2: devices.kind: 'gpus' is none of gpu, npu, dcu, mlu, tpu, cpu; did you mean gpu?"],
        ),
        (
            "command: x\ndevices: {least: 1, memory: 40G}",
            [
                "train.yaml:2: devices.memory: '40G': G is no unit: write 40GB (powers of 1000) or 40GiB (of 1024)",
            ],
        ),
        (LEAST + "grace: 5m", ["train.yaml:3: grace: '5m': 'm' is no unit of time: units are ms, s, min, h, d"]),
        (
            LEAST + "deadline: 2027-02-01T00:00:00",
            [
                (
                    "train.yaml:3: deadline: '2027-02-01T00:00:00' does not say in which time zone;"
                    " did you mean 2027-02-01T00:00:00Z?"
                )
            ],
        ),
        (
            LEAST + "name: my job",
            ["train.yaml:3: name: 'my job' is no name: letters, digits and ._- only; did you mean my-job?"],
        ),
        (LEAST + "priority: 5000", ["train.yaml:3: priority: 5000 is greater than the maximum of 1000"]),
        (LEAST + "command: y", ["train.yaml:3: command stands there twice"]),
        (LEAST + "model: {layers: 2}", ["train.yaml:3: model: what is trained needs steps too"]),
        ("devices: 1", ["train.yaml:1: it does not say what to run: command: python train.py"]),
        ("command: x", ["train.yaml:1: it does not say how many devices it asks for: devices: 1"]),
        ("command: [x\ndevices: 1", ["train.yaml:2: expected ',' or ']', but got ':'"]),
        ("- a\n- b", ["train.yaml: it has to hold keys and values, such as command: python train.py"]),
        ("", ["train.yaml: it is empty"]),
    ],
)  # fmt: skip
def test_who_slips_is_told_where_and_what_was_probably_meant(text: str, expected: list[str]) -> None:
    found = faults(text)
    assert set(expected) <= set(found)


def test_all_slips_are_told_at_once() -> None:
    assert len(faults("comand: x\ndevice: 1\npriority: high")) == 5


@pytest.mark.parametrize("command", ["python a.py && python b.py", "python a.py > out", "a | b", "a; b"])
def test_what_only_a_shell_understands_is_no_command_by_itself(command: str) -> None:
    [told] = faults(f"command: '{command}'\ndevices: 1")
    assert "[sh, -c" in told


def test_several_lines_are_for_a_shell_but_one_may_be_broken() -> None:
    [told] = faults("command: |\n  python a.py\n  python b.py\ndevices: 1")
    assert "several lines" in told
    folded = read("command: |\n  python a.py \\\n    --lr 1\ndevices: 1")
    assert folded["workload"]["command"] == ["python", "a.py", "--lr", "1"]
    shell = read('command: [sh, -c, "a && b"]\ndevices: 1')
    assert shell["workload"]["command"] == ["sh", "-c", "a && b"]


@pytest.mark.parametrize(
    "text",
    [
        "command: swordfish |\ndevices: 1",
        "command: {a: swordfish}\ndevices: 1",
        LEAST + "environment: {KEY: {a: swordfish}}",
        LEAST + "environment: ['swordfish is here']",
        LEAST + "environment: swordfish",
        LEAST + "environment: {'1KEY': swordfish}",
        LEAST + 'environment: {KEY: "swordfish\\0"}',
        'command: "swordfish\\0"\ndevices: 1',
        json.dumps({"id": "a", "workload": {"command": "swordfish"}, "devices": {"minimum": 1, "maximum": 1}}),
        json.dumps({"id": "a", "workload": {"command": ["x"], "environment": [{"name": "A", "value": ["swordfish"]}]}}),
    ],
)
def test_what_may_be_secret_is_never_told_again(text: str) -> None:
    assert "swordfish" not in "".join(faults(text))


def test_a_variable_without_a_value_has_to_have_one_of_whoever_submits() -> None:
    assert faults(LEAST + "environment: {HF_TOKEN: }") == [
        "train.yaml:3: environment: HF_TOKEN has no value, here or in this environment"
    ]
    listed = read(LEAST + "environment: [TOKEN, 'A=b=c']")
    assert listed["workload"]["environment"] == [
        {"name": "TOKEN", "value": "swordfish"},
        {"name": "A", "value": "b=c"},
    ]


def test_settings_prevail_over_the_file() -> None:
    made = read(WHOLE, "name=other", "devices.least=16", "environment.SEED=8", "retries=0", "domains=[shanghai]")
    assert made["id"] == "other"
    assert made["devices"]["minimum"] == 16
    assert made["workload"]["environment"][0] == {"name": "SEED", "value": "8"}
    assert (made["retries"], made["domains"]) == (0, ["shanghai"])
    assert faults(LEAST, "priorty=3") == ["train.yaml: priorty is no key; did you mean priority?"]
    assert faults(LEAST, "priority")[0].startswith("--set priority: write it as")
    assert read(LEAST, "devices.most=4")["devices"] == {"minimum": 4, "maximum": 4}


def test_a_length_of_time_alone_is_taken_to_be_uncertain() -> None:
    told = {"expected": 7200.0, "low": 3600.0, "high": 14400.0, "coverage": 0.8}
    assert read(LEAST + "duration: 2h")["duration"] == told
    own = read(LEAST + "duration: {expected: 2h, low: 1h, high: 3h, coverage: 0.9}")["duration"]
    assert own == {"expected": 7200.0, "low": 3600.0, "high": 10800.0, "coverage": 0.9}


def test_a_file_that_blows_up_is_refused() -> None:
    pairs = zip("abcdefgh", "bcdefghi", strict=True)
    doubled = [f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairs]
    bomb = "".join(["a: &a [x,x,x,x,x,x,x,x,x]\n", *doubled])
    assert "values" in faults(bomb)[0]


@pytest.mark.parametrize(
    ("text", "size"), [("40GiB", 40 * 2**30), ("1.5 TB", 1.5e12), ("1000", 1000.0), ("0.5kB", 500.0), ("7 B", 7.0)]
)
def test_sizes(text: str, size: float) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "40 Gb", "40gb", "-1GB", "1e9", "1.GB", "4 apples"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="unit"):
        read_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("1h 30min", 5400.0), ("1h30min", 5400.0), ("2d", 172800.0), ("45", 45.0)]
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert read_span(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "5m", "1h 30", "soon", "-1h"])
def test_no_lengths_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="unit"):
        read_span(text)
