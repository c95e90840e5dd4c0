import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from engine.runs.laws import FOREVER, PATIENCE_S, EngineLaws, EngineReference, end_of, until
from engine.runs.slurm_cluster import NODES, SlurmCluster, skip_without_slurm

from kuayu.engine.runs.protocol import Engine, EngineError, Placement, RunState

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    skip_without_slurm()
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as directory:
        cluster = SlurmCluster(Path(directory))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


class TestSlurm(EngineLaws):
    """Jobs of a real Slurm with three nodes on this host, without accounting and without cgroups."""

    NODES = NODES

    @pytest.fixture
    def reference(self, cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineReference:
        monkeypatch.setenv("PATH", cluster.environment["PATH"])
        return EngineReference("slurm", tmp_path / "engine's $(runs)", {"conf": str(cluster.conf)})

    def test_nodes_with_unlike_numbers_of_devices_are_one_job_in_the_order_of_the_placements(
        self, engine: Engine
    ) -> None:
        """Three nodes, two of them with one device, not in the order in which Slurm has them."""
        placements = [Placement("n3", 1), Placement("n1", 2), Placement("n2", 1)]
        program = (
            "import os\n"
            "names = ('SLURMD_NODENAME', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'WORLD_SIZE', 'CUDA_VISIBLE_DEVICES')\n"
            "print(*(os.environ[name] for name in names))\n"
        )
        run = self.run_of(program, placements=placements)
        self.begin(engine, run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        lines = {line.rank: line.text for line in engine.logs(run.name)}
        assert {rank: text.rsplit(" ", 1)[0] for rank, text in lines.items()} == {
            0: "n3 0 1 4",
            1: "n1 0 2 4",
            2: "n1 1 2 4",
            3: "n2 0 1 4",
        }
        assert lines[1].endswith("0,1")

    def test_processes_get_the_processors_that_the_engine_is_told(self, reference: EngineReference) -> None:
        engine = replace(reference, options={**reference.options, "cpus_per_process": 2}).find()
        run = self.run_of("import os; print(os.environ['SLURM_CPUS_PER_TASK'])", placements=[Placement("n1", 2)])
        self.begin(engine, run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert self.texts(engine.logs(run.name)) == ["2", "2"]

    def test_what_waits_says_why_and_can_be_stopped(self, engine: Engine) -> None:
        first = self.run_of(FOREVER, name="first.1", placements=[Placement("n1", 2)])
        second = self.run_of("pass", name="second.1")
        self.begin(engine, first)
        until(lambda: engine.status(first.name).state is RunState.RUNNING, "the first one does not begin")
        self.begin(engine, second)
        until(lambda: "Resources" in engine.status(second.name).reason, "nobody says why it waits")
        assert engine.status(second.name).state is RunState.STARTING
        engine.stop(second.name)
        assert engine.status(second.name).state is RunState.STOPPED

    def test_what_somebody_cancels_in_slurm_was_stopped(self, engine: Engine, cluster: SlurmCluster) -> None:
        run = self.run_of(FOREVER)
        self.begin(engine, run)
        until(lambda: engine.status(run.name).state is RunState.RUNNING, "it does not begin")
        cluster.call("scancel", f"--name={run.name}")
        status = end_of(engine, run.name)
        assert status.state is RunState.STOPPED
        assert "cancelled" in status.reason

    def test_a_time_limit_is_the_reason(self, cluster: SlurmCluster, reference: EngineReference) -> None:
        """The time limit of a running job is lowered to what has passed, as an operator can."""
        engine = reference.find()
        run = self.run_of(FOREVER)
        self.begin(engine, run)
        until(lambda: engine.status(run.name).state is RunState.RUNNING, "it does not begin")
        job = cluster.call("squeue", "--noheader", f"--name={run.name}", "--format=%i").strip()
        cluster.call("scontrol", "update", f"JobId={job}", "TimeLimit=0:01")
        status = end_of(engine, run.name, 3 * PATIENCE_S)
        assert status.state is RunState.FAILED
        assert "time limit" in status.reason

    def test_a_caller_that_is_killed_while_it_submits_leaves_one_job(
        self, engine: Engine, cluster: SlurmCluster, reference: EngineReference, tmp_path: Path
    ) -> None:
        """The controller hangs, so that sbatch outlives its caller; the next caller waits for it and takes its job."""
        run = self.run_of("import sys; open(sys.argv[1], 'a').write('x')", tmp_path / "count", name="hanging.1")
        engine.prepare(run)
        program = (
            f"{reference.program}import subprocess, threading, time\nrun = {run!r}\n"
            "submit = engine._sbatch\n"
            "def hang(*arguments):\n"
            f"    os.kill({cluster.daemons['slurmctld'].pid}, signal.SIGSTOP)\n"
            "    print('submitting', flush=True)\n"
            "    return submit(*arguments)\n"
            "engine._sbatch = hang\n"
            "engine.start(run)\n"
        )
        caller = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=dict(os.environ))
        try:
            assert caller.stdout is not None
            assert caller.stdout.readline() == b"submitting\n"
            until(lambda: bool(_children(caller.pid)), "sbatch does not begin")
            caller.kill()
            caller.wait()
            caller.stdout.close()
        finally:
            cluster.send("slurmctld", signal.SIGCONT)
        engine.start(run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert cluster.jobs().count(run.name) == 1
        assert (tmp_path / "count").read_text() == "x"

    def test_of_two_jobs_of_a_run_one_alone_runs(self, engine: Engine, cluster: SlurmCluster, tmp_path: Path) -> None:
        """Somebody submits the batch script of a run once more, as a submission does of which no answer came."""
        program = (
            "import sys, time\n"
            "from pathlib import Path\n"
            "open(sys.argv[1], 'a').write('x')\n"
            "while not Path(sys.argv[2]).exists(): time.sleep(0.02)\n"
        )
        run = self.run_of(program, tmp_path / "count", tmp_path / "release")
        self.begin(engine, run)
        until((tmp_path / "count").exists, "it does not begin")
        [script] = (tmp_path / "engine's $(runs)").glob(f"runs/{run.name}/batch.sh")
        with pytest.raises(subprocess.CalledProcessError):
            cluster.call("sbatch", "--wait", "--nodelist=n2", f"--output={tmp_path}/twin", str(script))
        assert "begun before" in (tmp_path / "twin").read_text()
        assert engine.status(run.name).state is RunState.RUNNING
        (tmp_path / "release").touch()
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert (tmp_path / "count").read_text() == "x"

    def test_while_the_controller_is_away_nothing_is_claimed_and_nothing_is_lost(
        self, engine: Engine, cluster: SlurmCluster, tmp_path: Path
    ) -> None:
        """It is ended while a run goes on, and started again."""
        program = "import sys, time\nfrom pathlib import Path\nwhile not Path(sys.argv[1]).exists(): time.sleep(0.02)"
        run = self.run_of(program, tmp_path / "release")
        later = self.run_of("pass", name="later.1")
        self.begin(engine, run)
        engine.prepare(later)
        until(lambda: engine.status(run.name).state is RunState.RUNNING, "it does not begin")
        cluster.send("slurmctld", signal.SIGTERM)
        try:
            until(lambda: engine.status(run.name).state is RunState.UNKNOWN, "who could tell that?")
            with pytest.raises(EngineError) as caught:
                engine.start(later)
            assert caught.value.transient
        finally:
            cluster.start_controller()
        until(lambda: engine.status(run.name).state is RunState.RUNNING, "the run was lost")
        (tmp_path / "release").touch()
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        engine.start(later)
        assert end_of(engine, later.name).state is RunState.SUCCEEDED

    def test_what_slurm_cannot_run_is_refused_with_what_to_do(self, engine: Engine) -> None:
        run = self.run_of("pass")
        refusals = {
            "containers": replace(run, image="registry/image:1"),
            "n9": replace(run, placements=[Placement("n9", 1)]),
            "no name of a node": replace(run, placements=[Placement("n[1-3]", 1)]),
        }
        for cause, refused in refusals.items():
            with pytest.raises(EngineError, match=cause) as caught:
                engine.prepare(refused)
            assert caught.value.hint
        too_many = self.run_of("pass", name="many.1", placements=[Placement("n1", 3)])
        engine.prepare(too_many)
        with pytest.raises(EngineError) as caught:
            engine.start(too_many)
        assert not caught.value.transient
        assert engine.status(too_many.name).state is RunState.PREPARED


def _children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()
