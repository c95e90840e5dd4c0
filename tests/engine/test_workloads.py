"""Reference workloads train, count what they state, and end in a corpus; nothing is asserted of how fast they are.

All of it runs on processors. Where an accelerator matters, PyTorch is made to claim that it has one; what one then
does is not tested.
"""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import commands
import pynvml
import pytest
import torch
from torch import Tensor, nn

from kuayu.engine.host import Host
from kuayu.engine.probes import ProbeFailedError, ProbeUnavailableError, harness
from kuayu.engine.probes.harness import MIN_REPETITIONS
from kuayu.engine.workloads import (
    GROUP,
    WORKLOADS,
    CorpusFileError,
    fragment,
    measurement,
    merged,
    networks,
    read,
    run_workloads,
    write,
)
from kuayu.engine.workloads.counting import count
from kuayu.engine.workloads.measurement import Training, measure
from kuayu.engine.workloads.workload import Arithmetic, TorchDevice, Workload, load, torch_devices
from kuayu_schemas import schema
from kuayu_schemas.models import Corpus

BUDGET_S = 0.1


class _Line(nn.Module):
    """The smallest model that learns."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Distance of the line's values to one."""
        return (self.line(x).float() - 1).square().mean()


SMALL = Workload(
    name="line-1",
    counterpart="nothing",
    family="line",
    arithmetic=Arithmetic.single,
    batch=8,
    smallest=1,
    work=3 * 2 * 4,
    memory_traffic=100,
    parameters=5,
    model=_Line,
    data=lambda samples, generator: (torch.randn(samples, 4, generator=generator),),
    optimiser=lambda parameters: torch.optim.SGD(parameters, lr=0.01),
)
HERE = TorchDevice("cpu", "Some Processor, 2 processors", "torch 0", 1e9, "cpu", lambda: None)

FEW = 16
"""Samples of a whole batch that are one sample here."""
SHORT = {
    "transformer": (slice(None), slice(16)),
    "waveform": (..., slice(64)),
    "convolution": (..., slice(64), slice(64)),
}
"""What is kept of each sample, by family, where the model takes samples of any size."""


def ignore(_share: float) -> None:
    """Progress that nobody watches."""


def largest_part(workload: Workload, budget_s: float = math.inf) -> int:
    """Samples that are computed at once."""
    return measurement._sized(Training(workload, "cpu"), workload, "cpu", budget_s)[0]  # noqa: SLF001 - the choice itself


def brief(workload: Workload) -> Workload:
    """The same model with few and small samples: processors without bfloat16 take seconds for one as stated."""
    part = SHORT.get(workload.family)

    def data(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        made = workload.data(samples, generator)
        return made if part is None else tuple(each[part] if each.dim() > 1 else each for each in made)

    return replace(workload, data=data, smallest=max(1, workload.smallest // FEW))


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_does_the_work_that_it_states(name: str) -> None:
    workload = load(name)
    counted = count(workload)
    assert workload.work == pytest.approx(counted.work, rel=0.03), "attention is not counted on processors"
    assert workload.memory_traffic == pytest.approx(counted.memory_traffic, rel=0.05)
    assert sum(each.numel() for each in workload.model().parameters()) == workload.parameters
    parts = workload.batch / workload.smallest
    assert math.log2(parts).is_integer()
    assert schema.errors("IndexedTask", workload.task().to_wire()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name != "transformer-half"])
def test_a_workload_learns_and_learns_the_same_each_time(name: str) -> None:
    """The one left out has the model of another."""
    workload, losses = brief(load(name)), list[list[float]]()
    for _ in range(2):
        learner = Training(workload, "cpu")
        learner.feed(workload.smallest)
        losses.append([])
        for _ in range(2):
            learner.step()
            losses[-1].append(float(learner.loss))
    assert losses[0] == losses[1]
    assert losses[0][1] < losses[0][0]


@pytest.mark.slow
def test_workloads_of_this_host_make_a_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """With short samples: the command's test takes them whole."""
    for constant in ("TRANSFORMER_SINGLE", "WAVEFORM"):
        monkeypatch.setattr(networks, constant, brief(getattr(networks, constant)))
    shares: list[float] = []
    wanted = ["transformer-single", "waveform"]
    report = run_workloads(Host(nvidia=None), BUDGET_S, lambda _name, share: shares.append(share), only=wanted)
    assert report.skipped == ()
    assert {each.workload for each in report.results} == {load(name).name for name in wanted}
    assert all(later >= earlier for earlier, later in pairwise(shares)), "progress never goes back"
    assert shares[-1] == 1.0
    for result in report.results:
        assert result.value > 0
        assert result.spread >= 0
        assert result.n >= MIN_REPETITIONS
        assert result.format in {"fp32", "bf16"}, "processors only emulate binary16"
    corpus = fragment(report, {"cpu": 2e10})
    assert corpus is not None
    assert schema.errors("Corpus", corpus.to_wire()) == []
    (device,) = corpus.devices
    assert device.accelerator_memory_bandwidth == 2e10
    assert device.measured_at is not None
    assert abs(device.measured_at - report.finished_at) < timedelta(milliseconds=1)
    assert torch.__version__ in device.stack
    assert device.peak_matrix_throughput is None, "no data sheet is known here"
    assert {each.throughput for each in corpus.measurements} == {each.value for each in report.results}


def test_workloads_leave_random_numbers_and_settings_of_others_alone() -> None:
    torch.manual_seed(7)
    before, precision = torch.get_rng_state(), torch.get_float32_matmul_precision()
    measure(SMALL, HERE, BUDGET_S, ignore)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_float32_matmul_precision() == precision


def test_a_step_is_whole_where_time_and_memory_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert largest_part(SMALL) == SMALL.batch
    monkeypatch.setattr(measurement.psutil, "virtual_memory", lambda: SimpleNamespace(available=1000))
    assert largest_part(SMALL) == 4, "800 bytes and the weights are more than half of what is free"
    result = measure(SMALL, HERE, BUDGET_S, ignore)
    assert result.part <= 4
    assert result.batch == 8
    assert result.value > 0


def test_a_step_that_takes_too_long_is_timed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "_tried", lambda _training, samples: samples * 10.0)
    assert [largest_part(SMALL, budget) for budget in (10.0, 110.0, 10_000.0)] == [1, 2, 8]


def test_a_step_in_parts_takes_as_long_as_all_of_them_and_one_update(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Slow:
        """Takes two seconds for a part and one for the optimiser."""

        def differentiate(self) -> None:
            nonlocal now
            now += 2

        def update(self, *, keep: bool) -> None:
            nonlocal now
            assert keep, "gradients are added up"
            now += 1

        def wait(self) -> None:
            pass

    monkeypatch.setattr(measurement, "time", SimpleNamespace(perf_counter=lambda: now))
    slow: Any = Slow()
    assert set(measurement._repeated(slow, 4, 3.0, 0.0, ignore).durations) == {4 * 2 + 1}  # noqa: SLF001 - the law itself


def test_an_accelerator_computes_the_whole_step_unless_memory_or_time_forbids(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def largest(budget_s: float, most: int = 8) -> int:
        def step(_training: Training, samples: int) -> float:
            tried.append(samples)
            if samples > most:
                raise torch.OutOfMemoryError("out of memory")
            return samples * 1.0

        monkeypatch.setattr(measurement, "_tried", step)
        return measurement._sized(Training(SMALL, "cpu"), SMALL, "cuda:0", budget_s)[0]  # noqa: SLF001 - the choice itself

    assert largest(1000.0) == 8
    assert tried == [8], "nothing is prepared that is not measured"
    assert largest(1000.0, most=2) == 2
    assert largest(1.0) == 1, "a step takes eight seconds, whatever its parts"
    with pytest.raises(torch.OutOfMemoryError):
        largest(1000.0, most=0)


def test_a_device_without_memory_for_the_smallest_part_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Training.feed

    def refuse(self: Training, samples: int) -> None:
        if samples > 2:
            raise torch.OutOfMemoryError("out of memory")
        feed(self, samples)

    monkeypatch.setattr(Training, "feed", refuse)
    with pytest.raises(ProbeUnavailableError, match="out of memory"):
        measure(replace(SMALL, smallest=4), HERE, BUDGET_S, ignore)


def test_power_is_the_energy_over_the_time_of_the_repetitions() -> None:
    joules = iter([100.0, 120.0])
    result = measure(SMALL, replace(HERE, joules=lambda: next(joules)), BUDGET_S, ignore)
    assert result.power is not None
    assert result.power > 20.0 / result.seconds
    assert measure(SMALL, HERE, BUDGET_S, ignore).power is None


def test_a_loss_that_is_no_number_is_no_training() -> None:
    wild = replace(SMALL, data=lambda samples, generator: (torch.full((samples, 4), torch.inf),))  # noqa: ARG005
    with pytest.raises(ProbeFailedError, match="loss"):
        measure(wild, HERE, BUDGET_S, ignore)


def test_binary16_trains_with_scaled_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "_half", lambda _device: torch.float16)
    learner = Training(replace(SMALL, arithmetic=Arithmetic.half), "cpu")
    learner.feed(8)
    assert learner.format == "fp16"
    learner.step()
    before = float(learner.loss)
    for _ in range(20):
        learner.step()
    assert float(learner.loss) < before


def test_one_accelerator_of_each_kind_is_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [SimpleNamespace(name=name, total_memory=80 << 30, uuid=f"u-{i}") for i, name in enumerate("AAB")]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(kinds))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: kinds[index])
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(pynvml, "nvmlSystemGetDriverVersion", lambda: "580.1")
    nvidia: Any = SimpleNamespace(uuids={"0": "GPU-u-2", "1": "GPU-u-0"}, joules=float)
    found = torch_devices(Host(nvidia=nvidia))
    assert [(each.device, each.model, each.host_device) for each in found[1:]] == [
        ("cuda:0", "A", "1"),
        ("cuda:2", "B", "0"),
    ]
    assert found[1].joules() == 1.0, "the driver counts otherwise than PyTorch"
    for part in (torch.__version__, "CUDA 13.0", "driver 580.1", "Python 3"):
        assert part in found[1].stack
    assert len({each.id for each in found}) == 3


def test_the_same_silicon_with_other_software_is_another_device() -> None:
    updated = replace(HERE, stack="torch 1")
    assert updated.id != HERE.id
    assert replace(HERE, capacity=1.0).id == HERE.id
    strange = replace(HERE, model="寒武纪 " + "x" * 200)
    assert schema.errors("IndexedDevice", {"id": strange.id, "stack": "s"}) == []


def test_an_accelerator_that_pytorch_cannot_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(networks, "TRANSFORMER_SINGLE", SMALL)
    nvidia: Any = SimpleNamespace(uuids={"0": "GPU-u"})
    report = run_workloads(Host(nvidia=nvidia), BUDGET_S, only=["transformer-single"])
    assert [each.name for each in report.skipped] == [f"{GROUP} 0"]
    assert [each.workload for each in report.results] == [SMALL.name]


def test_only_workloads_that_exist_can_be_asked_for() -> None:
    for names in ([], ["recurent"]):
        with pytest.raises(ValueError, match="recurrent"):
            run_workloads(Host(nvidia=None), BUDGET_S, only=names)


def test_without_pytorch_the_workloads_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "has_pytorch", lambda: False)
    report = run_workloads(Host(nvidia=None), BUDGET_S)
    assert fragment(report) is None
    (skipped,) = report.skipped
    assert skipped.hint == "pip install 'kuayu[training]'"


def corpus_of(*, device: str, stack: str = "s", throughput: float = 1.0, task: str = "t", **more: Any) -> Corpus:
    """A corpus of one measurement."""
    return Corpus.model_validate_json(
        json.dumps(
            {
                "devices": [{"id": device, "stack": stack, **more}],
                "tasks": [{"id": task, "precisions": ["fp32"]}],
                "measurements": [{"device": device, "task": task, "throughput": throughput}],
            }
        )
    )


def test_merging_keeps_what_was_there_and_replaces_what_was_measured_anew() -> None:
    old = corpus_of(device="other", throughput=9.0).to_wire()
    for each in (
        corpus_of(device="d", task="t", power=300.0, peak_matrix_throughput={"bf16": 1e15}),
        corpus_of(device="d", task="t2", power=300.0),
    ):
        old = merged(old, each)
    whole = merged(old, corpus_of(device="d", throughput=2.0, power=250.0))
    assert [each["id"] for each in whole["devices"]] == ["other", "d"]
    assert whole["devices"][1]["power"] == 250.0
    assert whole["devices"][1]["peak_matrix_throughput"] == {"bf16": 1e15}, "only the file knew it"
    assert {(each["device"], each["task"], each["throughput"]) for each in whole["measurements"]} == {
        ("other", "t", 9.0),
        ("d", "t2", 1.0),
        ("d", "t", 2.0),
    }
    assert merged(whole, corpus_of(device="d", throughput=2.0, power=250.0)) == whole


def test_merging_keeps_what_several_devices_did_together() -> None:
    rows: list[dict[str, Any]] = [
        {"device": "d", "task": "t", "throughput": 7.0, "devices": 8},
        {"device": "d", "task": "t", "throughput": 1.0, "devices": 1},
    ]
    old = corpus_of(device="d").to_wire() | {"measurements": rows}
    whole = merged(old, corpus_of(device="d", throughput=2.0))
    assert whole["measurements"] == [rows[0], {"device": "d", "task": "t", "throughput": 2.0}]


def test_merging_refuses_a_device_whose_stack_differs() -> None:
    with pytest.raises(CorpusFileError, match="another stack"):
        merged(corpus_of(device="d").to_wire(), corpus_of(device="d", stack="newer"))


def test_a_corpus_file_is_written_as_a_whole_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "corpus.json"
    assert read(path) is None
    corpus = corpus_of(device="寒武纪".encode().hex(), stack="软件").to_wire()
    write(path, corpus)
    assert read(path) == corpus
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[]", b'{"devices": [], "tasks": [], "measurements": []}'])
def test_a_file_that_is_no_corpus_is_refused_before_anything_is_measured(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "corpus.json"
    path.write_bytes(text)
    answer = commands.run("probe", "--only", "workloads", "--corpus", path)
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    assert "hint" in answer.stderr
    assert path.read_bytes() == text


def test_the_command_says_what_does_not_go_together(tmp_path: Path) -> None:
    for arguments, words in (
        (("--only", "memory", "--corpus", str(tmp_path / "c.json")), "--no-workloads"),
        (("--only", "workloads", "--upload", "http://h:1", "--domain", "d", "--node", "n"), "--corpus"),
        (("--only", "workloads", "--no-workloads"), "leaves no probe"),
        (("--only", "workloads", "--corpus", str(tmp_path / "absent" / "c.json")), "no folder"),
    ):
        answer = commands.run("probe", *arguments)
        assert answer.returncode != 0
        assert "Traceback" not in answer.stderr
        assert words in answer.stderr


def test_the_command_adds_to_a_corpus_and_prints_what_it_added(tmp_path: Path) -> None:
    path = tmp_path / "corpus.json"
    write(path, corpus_of(device="other").to_wire())
    answer = probe("--only", "transformer-single", "--budget", str(BUDGET_S), "--json", "--corpus", str(path))
    assert answer.returncode == 0, answer.stderr
    corpus = read(path)
    assert corpus is not None
    added = json.loads(answer.stdout)["workloads"]["corpus"]
    assert corpus["devices"] == [*corpus_of(device="other").to_wire()["devices"], *added["devices"]]
    assert [each["task"] for each in added["measurements"]] == [load("transformer-single").name], "the one asked for"


def test_the_command_without_a_pytorch_that_loads_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.13 is missing')")
    answer = probe("--only", "workloads", "--budget", "1", PYTHONPATH=str(tmp_path))
    assert answer.returncode == 1
    said = " ".join(answer.stdout.split())
    assert "not measured workloads: PyTorch cannot be loaded (libcudart.so.13 is missing)" in said
    assert "pip install 'kuayu[training]'" in said


def test_help_and_the_service_load_nothing_that_takes_long_and_is_seldom_used() -> None:
    code = "import sys; from kuayu.cli import main\ntry: main(['probe', '--help'])\nexcept SystemExit: pass\n"
    code += "import kuayu.service.app, kuayu.engine.workloads\n"
    code += "print([name for name in ('torch', 'scipy', 'psycopg', 'httpx') if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip().endswith("[]"), answer.stdout


def probe(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``kuayu probe`` with these arguments, in a process that imports PyTorch, or fails to, by itself."""
    code = "from kuayu.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "probe", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
