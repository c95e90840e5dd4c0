"""Probes give figures of this host; nothing is asserted of how large they are."""

import json
import math
import multiprocessing
import os
import signal
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from kuayu.engine.host import Host
from kuayu.engine.probes import PROBES, ProbeFailedError, ProbeResult, ProbeUnavailableError, host_probes, probe_all
from kuayu.engine.probes.all_reduce import probe_all_reduce
from kuayu.engine.probes.harness import MIN_REPETITIONS, repeat
from kuayu.engine.probes.host_probes import last_level_cache, probe_matmul, probe_memory, probe_storage
from kuayu_schemas import schema

BUDGET_S = 0.2


def ignore(_share: float) -> None:
    """Progress that nobody watches."""


def assert_sound(result: ProbeResult) -> None:
    assert math.isfinite(result.value)
    assert result.value > 0
    assert math.isfinite(result.spread)
    assert result.spread >= 0
    assert result.n >= MIN_REPETITIONS
    assert result.seconds > 0
    assert result.stack


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    """A directory on a store, not in memory."""
    try:
        host_probes.file_bytes(tmp_path)
    except ProbeUnavailableError as problem:
        pytest.skip(f"no store to measure: {problem}")
    return tmp_path


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_matmul_gives_a_figure_for_each_precision(precision: str) -> None:
    result = probe_matmul(precision, BUDGET_S, ignore, device="cpu")
    assert_sound(result)
    assert (result.measure, result.precision, result.device) == ("sustained_matrix_throughput", precision, "cpu")
    assert result.per_joule is None, "no energy counter was given"


def test_matmul_with_an_energy_counter_gives_operations_for_each_joule() -> None:
    joules = iter([100.0, 120.0])
    result = probe_matmul("fp32", BUDGET_S, ignore, device="cpu", joules=lambda: next(joules))
    assert result.per_joule is not None
    assert result.per_joule > 0


def test_memory_gives_a_figure() -> None:
    assert_sound(probe_memory(BUDGET_S, ignore, device="cpu"))


def test_caches_that_cores_share_count_once(tmp_path: Path) -> None:
    for cpu, shared in (("cpu0", "0-1"), ("cpu1", "0-1"), ("cpu2", "2-3"), ("cpu3", "2-3")):
        for index, level, size in (("index0", 1, "32K"), ("index3", 3, "32768K")):
            cache = tmp_path / cpu / "cache" / index
            cache.mkdir(parents=True)
            (cache / "level").write_text(str(level))
            (cache / "size").write_text(size)
            (cache / "shared_cpu_list").write_text(shared if level == 3 else cpu[3:])
    assert last_level_cache(tmp_path) == 2 * 32 << 20


def test_storage_gives_the_slower_of_writing_and_reading_and_leaves_nothing_behind(on_disk: Path) -> None:
    result = probe_storage(BUDGET_S, ignore, path=on_disk)
    assert_sound(result)
    assert result.value == min(result.detail["write"], result.detail["read"])
    assert list(on_disk.iterdir()) == []


def test_storage_leaves_nothing_behind_when_it_is_interrupted(on_disk: Path) -> None:
    seen: list[list[Path]] = []

    def interrupt(_share: float) -> None:
        seen.append(list(on_disk.iterdir()))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        probe_storage(BUDGET_S, interrupt, path=on_disk)
    assert seen == [[]], "the file has no name even while it is written"
    assert list(on_disk.iterdir()) == []


def test_storage_refuses_a_disk_that_is_nearly_full(on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_probes, "MIN_FILE_BYTES", 1 << 60)
    with pytest.raises(ProbeUnavailableError, match="free"):
        probe_storage(BUDGET_S, ignore, path=on_disk)


def test_storage_refuses_memory_and_what_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(ProbeUnavailableError, match="no directory"):
        probe_storage(BUDGET_S, ignore, path=tmp_path / "absent")
    shared = Path("/dev/shm")  # noqa: S108 - nothing is written there
    if shared.is_dir():
        with pytest.raises(ProbeUnavailableError, match="lies in memory"):
            probe_storage(BUDGET_S, ignore, path=shared)


@pytest.mark.parametrize("ranks", [2, 3])
def test_all_reduce_over_processes_sums_rightly_and_gives_a_figure(ranks: int) -> None:
    assert_sound(probe_all_reduce(BUDGET_S, ignore, ranks=ranks, message=1 << 20))
    assert multiprocessing.active_children() == []


def test_all_reduce_says_when_a_process_was_lost() -> None:
    def kill_one(_share: float) -> None:
        victims = multiprocessing.active_children()
        if victims and victims[0].pid:
            os.kill(victims[0].pid, signal.SIGKILL)

    with pytest.raises(ProbeFailedError, match="was lost"):
        probe_all_reduce(30.0, kill_one, ranks=2, message=1 << 20)
    assert multiprocessing.active_children() == []


def test_repetitions_have_quartiles_whatever_the_budget() -> None:
    shares: list[float] = []
    assert repeat(lambda: 0.001, 0.0, shares.append).n == MIN_REPETITIONS
    assert shares[-1] == 1.0


def test_repetitions_of_unsteady_work_end_with_the_budget() -> None:
    durations = iter([0.001, 0.1] * 10_000)

    def unsteady() -> float:
        time.sleep(0.002)
        return next(durations)

    assert MIN_REPETITIONS < repeat(unsteady, 0.1, ignore).n < 10_000


def test_all_probes_together_make_samples_of_the_host(on_disk: Path) -> None:
    shares: list[float] = []
    report = probe_all(
        Host(nvidia=None),
        1.0,
        lambda _name, share: shares.append(share),
        only=["matmul", "storage"],
        storage_path=on_disk,
    )
    assert {result.probe for result in report.results} == {"matmul", "storage"}
    for result in report.results:
        assert_sound(result)
    assert all(later > earlier - 1e-9 for earlier, later in pairwise(shares)), "progress never goes back"
    assert shares[-1] == 1.0
    samples = {sample.subject_kind.value: sample for sample in report.samples("n-1")}
    for sample in samples.values():
        assert schema.errors("Sample", json.loads(sample.to_json())) == []
    throughput = samples["device"].sustained_matrix_throughput
    assert throughput is not None
    assert throughput.fp64
    assert throughput.fp32
    assert throughput.fp16 is None, "processors only emulate it"
    assert samples["node"].storage_throughput == next(each.value for each in report.results if each.probe == "storage")


def test_what_cannot_be_measured_is_named_with_its_cause_and_a_hint(tmp_path: Path) -> None:
    report = probe_all(Host(nvidia=None), BUDGET_S, only=["storage"], storage_path=tmp_path / "absent")
    assert report.results == ()
    assert report.samples("n-1") == []
    (skipped,) = report.skipped
    assert skipped.name == "storage"
    assert "no directory" in skipped.cause
    assert "--storage-path" in skipped.hint


def test_only_probes_that_exist_can_be_asked_for() -> None:
    for names in ([], ["matmull"]):
        with pytest.raises(ValueError, match=", ".join(PROBES)):
            probe_all(Host(nvidia=None), BUDGET_S, only=names)


def test_probes_leave_no_thread_behind() -> None:
    probe_memory(BUDGET_S, ignore, device="cpu")
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]
