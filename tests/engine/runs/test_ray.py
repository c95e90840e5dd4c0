import importlib.util
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from engine.runs.laws import EngineLaws, EngineReference, alive, end_of, until
from engine.runs.ray_cluster import RayCluster

from kuayu.engine.runs.protocol import Engine, EngineError, Placement, RunState
from kuayu.engine.runs.ray import RayEngine

NO_RAY = importlib.util.find_spec("ray") is None

STEPS = (
    "import os, sys, time\n"
    "from pathlib import Path\n"
    "folder, last = Path(sys.argv[1]), int(sys.argv[2])\n"
    "rank, attempt = os.environ['RANK'], os.environ['KUAYU_ATTEMPT']\n"
    "(folder / f'new-{attempt}-{rank}').write_text(str(os.getpid()))\n"
    "(folder / f'new-{attempt}-{rank}').rename(folder / f'pid-{attempt}-{rank}')\n"
    "for step in range(int(os.environ['KUAYU_STEP']), last):\n"
    "    if rank == '0':\n"
    "        (folder / 'written').write_text(str(step))\n"
    "        (folder / 'written').rename(folder / 'checkpoint')\n"
    "    print('step', step, flush=True)\n"
    "    time.sleep(0.05)\n"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """A head and three nodes with two devices each."""
    cluster = RayCluster({"n1": 2, "n2": 2, "n3": 2})
    yield cluster
    cluster.close()


@pytest.mark.slow
@pytest.mark.skipif(NO_RAY, reason="Ray is not installed: pip install 'ray>=2.49'")
class TestRay(EngineLaws):
    """Actors of a Ray cluster."""

    @pytest.fixture
    def reference(self, cluster: RayCluster, tmp_path: Path) -> EngineReference:
        options = {"address": cluster.address, "root": str(tmp_path / "nodes"), "namespace": uuid.uuid4().hex}
        return EngineReference("ray", tmp_path / "engine", options)

    def test_a_node_that_is_killed_fails_the_run_and_it_goes_on_elsewhere(
        self, engine: Engine, cluster: RayCluster, tmp_path: Path
    ) -> None:
        """From the step that its last checkpoint says; of the first attempt nothing is left, on either node."""
        first = self.run_of(STEPS, tmp_path, "100000", grace_seconds=1.0)
        first = replace(first, placements=[Placement("n1", 1), Placement("n3", 1)])
        self.begin(engine, first)
        files = [tmp_path / f"pid-1-{rank}" for rank in (0, 1)]
        until(lambda: all(file.exists() for file in files), "not all ranks begin")
        cluster.kill("n3")
        until(lambda: "n3" in engine.unavailable_nodes(["n1", "n2", "n3"]), "nobody misses the node")
        status = end_of(engine, first.name)
        assert status.state is RunState.FAILED
        assert "node n3 was lost" in status.reason
        until(lambda: not any(alive(int(file.read_text())) for file in files), "a rank outlives its run")
        step = int((tmp_path / "checkpoint").read_text())
        second = replace(first, name="job-1.2", attempt=2, step=step, placements=[Placement("n2", 2)])
        second = replace(second, command=[*second.command[:-1], str(step + 3)])
        self.begin(engine, second)
        assert end_of(engine, second.name).state is RunState.SUCCEEDED
        texts = {line.text for line in engine.logs(second.name) if line.rank == 1}
        assert texts == {f"step {number}" for number in range(step, step + 3)}
        cluster.start("n3")

    def test_a_run_waits_for_devices_that_another_has_and_gets_all_of_them_at_once(self, engine: Engine) -> None:
        """Meanwhile it holds none: a third run gets those on the node that is free."""
        holder = self.run_of("import time; time.sleep(600)", name="holder.1", placements=[Placement("n1", 2)])
        both = self.run_of("pass", name="both.1", placements=[Placement("n1", 1), Placement("n2", 1)])
        other = self.run_of("pass", name="other.1", placements=[Placement("n2", 2)])
        self.begin(engine, holder)
        until(lambda: engine.status(holder.name).state is RunState.RUNNING, "it does not run")
        self.begin(engine, both)
        until(lambda: "waits for devices" in engine.status(both.name).reason, "it does not say what it waits for")
        self.begin(engine, other)
        assert end_of(engine, other.name).state is RunState.SUCCEEDED
        assert engine.status(both.name).state is RunState.STARTING
        engine.stop(holder.name, 0.0)
        assert end_of(engine, both.name).state is RunState.SUCCEEDED

    def test_code_goes_with_a_run_to_its_nodes(
        self, engine: Engine, reference: EngineReference, tmp_path: Path
    ) -> None:
        """They need not see the place that it is from; what they have of it goes when the run is forgotten."""
        (tmp_path / "code").mkdir()
        (tmp_path / "code" / "answer.py").write_text("print(6 * 7)\n")
        run = self.run_of("", command=["python3", "answer.py"], code=f"file:{tmp_path / 'code'}")
        engine.prepare(run)
        (tmp_path / "code" / "answer.py").unlink()
        engine.start(run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert self.texts(engine.logs(run.name)) == ["42"]
        assert list(Path(reference.options["root"]).glob("*/share-0/work/answer.py"))
        engine.forget(run.name)
        assert not list(Path(reference.options["root"]).iterdir())

    def test_what_cannot_run_is_refused(self, engine: Engine) -> None:
        for placements, image, cause in [
            ([Placement("n9", 1)], None, "no node n9"),
            ([Placement("n1", 3)], None, "has 2 GPU, not 3"),
            ([Placement("n1", 1)], "python:3", "no containers"),
        ]:
            with pytest.raises(EngineError, match=cause) as refused:
                engine.prepare(self.run_of("pass", placements=placements, image=image))
            assert refused.value.hint
        assert engine.runs() == []

    def test_a_driver_that_ends_is_started_again(self, reference: EngineReference) -> None:
        """As when it loses its cluster, which kills the process that it is in."""
        engine = reference.find()
        assert isinstance(engine, RayEngine)
        engine.check()
        process = engine._driver._process  # noqa: SLF001
        assert process is not None
        process.kill()
        process.wait()
        assert all(finding.present for finding in engine.check())
        engine.close()


@pytest.mark.skipif(NO_RAY, reason="Ray is not installed: pip install 'ray>=2.49'")
def test_where_there_is_no_cluster_it_says_how_to_start_one(tmp_path: Path) -> None:
    [finding] = RayEngine(tmp_path, address="127.0.0.1:9").check()
    assert not finding.present
    assert "ray start --head" in finding.hint


def test_a_python_without_ray_is_told_what_to_install(tmp_path: Path) -> None:
    """One that sees nothing of what is installed here."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec {os.path.realpath("/proc/self/exe")} -I -S "$@"\n')
    python.chmod(0o755)
    [finding] = RayEngine(tmp_path / "engine", python=str(python)).check()
    assert not finding.present
    assert finding.detail.endswith("has no ray")
    assert "pip install" in finding.hint
