"""Where windows are played is of no effect on what comes out: processes of this machine, or tasks of a Ray cluster."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from engine.runs.ray_cluster import RayCluster

from kuayu_training.workers import INSTALL, WorkersError, executor

pytest.importorskip("sb3_contrib", reason="training needs the extra 'training'")

ROOT = Path(__file__).parents[2]
POLICIES = ("tests/benchmarks/policies.py", "--windows", "2", "--family", "balanced", "--policy", "B1")
NO_RAY = importlib.util.find_spec("ray") is None
needs_ray = pytest.mark.skipif(NO_RAY, reason="Ray is not installed: pip install 'ray>=2.49'")

TASKS = (
    "import os, sys\n"
    "from pathlib import Path\n"
    "from kuayu_training.workers import executor, queue\n"
    "def second_time(marker, reports):\n"
    "    if not marker.exists():\n"
    "        marker.touch()\n"
    "        os._exit(1)\n"
    "    import kuayu, kuayu_training\n"
    "    reports.put('ran')\n"
    "    return kuayu.__file__, kuayu_training.__file__\n"
    "def fails():\n"
    "    raise KeyError('nothing')\n"
    "with executor(sys.argv[1]) as pool, queue(pool) as reports:\n"
    "    found = pool.submit(second_time, Path(sys.argv[2]), reports)\n"
    "    assert isinstance(pool.submit(fails).exception(), KeyError)\n"
    "    print(*found.result(), reports.get(timeout=1.0))\n"
)
"""A task whose worker is lost the first time, and one that fails."""


@pytest.fixture
def home() -> Iterator[Path]:
    """Where Ray leaves what it writes; paths of sockets are short."""
    folder = Path(tempfile.mkdtemp(prefix="ray"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def run(arguments: Sequence[str], home: Path, mode: str = "token") -> "subprocess.CompletedProcess[str]":
    """Have a program run that may become a driver of Ray: one that loses its cluster ends its process."""
    environment = {name: value for name, value in os.environ.items() if name not in {"RAY_ADDRESS", "KUAYU_DATA"}}
    environment |= {"HOME": str(home), "RAY_TMPDIR": str(home), "RAY_AUTH_MODE": mode}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@needs_ray
def test_windows_are_the_same_bit_for_bit_over_processes_and_over_ray(home: Path, tmp_path: Path) -> None:
    """Two windows of a family under one policy, by the benchmark's own command."""
    tables = []
    for workers in ("2", "ray"):
        out = tmp_path / f"{workers}.json"
        done = run([*POLICIES, "--workers", workers, "--out", str(out)], home)
        assert done.returncode == 0, done.stderr
        tables.append(json.loads(out.read_text("utf-8")))
        assert tables[-1].pop("date")
    assert tables[0] == tables[1]
    assert [cell["windows"] for cell in tables[0]["cells"]] == [2]


@pytest.mark.slow
@needs_ray
def test_to_a_cluster_go_our_packages_and_a_task_whose_worker_is_lost_runs_again(home: Path, tmp_path: Path) -> None:
    cluster = RayCluster({})
    try:
        done = run(["-c", TASKS, cluster.address, str(tmp_path / "marker")], home, "disabled")
    finally:
        cluster.close()
    assert done.returncode == 0, done.stderr
    *files, report = done.stdout.splitlines()[-1].split()  # Ray itself prints that a worker was lost
    assert report == "ran"
    assert len(files) == 2
    assert all("runtime_resources" in file for file in files), "they are those that came with the task"


@pytest.mark.parametrize("command", [POLICIES, ("-m", "kuayu_training", "rule", "--seed", "1", "--output", "unused")])
def test_where_there_is_no_cluster_a_command_says_what_to_do(command: Sequence[str], home: Path) -> None:
    done = run([*command, "--workers", "127.0.0.1:9"], home)
    assert done.returncode == 1
    assert done.stderr.startswith("error ")
    assert ("pip install" if NO_RAY else "ray start --head") in done.stderr.partition("\nhint  ")[2]


def test_what_workers_lack_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(WorkersError, match="has no Ray") as missing:
        executor("ray")
    assert missing.value.hint == INSTALL
    for workers in ("0", "-1", "cluster", ""):
        with pytest.raises(WorkersError, match="names no workers"):
            executor(workers)
