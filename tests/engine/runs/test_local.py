import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from engine.runs.laws import FOREVER, EngineLaws, EngineReference, alive, end_of, until

from kuayu.engine.runs import local, supervisor
from kuayu.engine.runs.devices import visibility
from kuayu.engine.runs.local import LocalEngine
from kuayu.engine.runs.protocol import Engine, EngineError, Placement, Rendezvous, RunState, RunStatus

WITH_GRANDCHILD = (
    "import os, sys, time\n"
    "from pathlib import Path\n"
    "folder = Path(sys.argv[1])\n"
    "(folder / 'rank').write_text(str(os.getpid()))\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork():\n"
    "        os._exit(0)\n"
    "    (folder / 'new').write_text(str(os.getpid()))\n"
    "    (folder / 'new').rename(folder / 'grandchild')\n"
    "time.sleep(600)\n"
)


class TestLocal(EngineLaws):
    """Processes on this host."""

    SEES_NODES = False

    @pytest.fixture
    def reference(self, tmp_path: Path) -> EngineReference:
        return EngineReference("local", tmp_path / "engine", {"nodes": {"n1": 2, "n2": 2}})

    def state(self, reference: EngineReference, name: str = "job-1.1") -> Path:
        return reference.directory / "runs" / name / "state.json"

    def supervisors(self, reference: EngineReference) -> list[int]:
        """Guard and supervisor of the run."""
        return [pid for pid, _ in json.loads(self.state(reference).read_text())["processes"]]

    @pytest.mark.parametrize("killed", [[1], [0], [0, 1]], ids=["supervisor", "guard", "both at once"])
    def test_when_its_supervisors_are_killed_all_of_the_run_dies_and_it_has_failed(
        self, engine: Engine, reference: EngineReference, tmp_path: Path, killed: list[int]
    ) -> None:
        """The rank has left a process in a session of its own, which nobody but its supervisors would find."""
        run = self.run_of(WITH_GRANDCHILD, tmp_path, grace_seconds=0.5)
        self.begin(engine, run)
        until((tmp_path / "grandchild").exists, "the grandchild does not begin")
        pids = [int((tmp_path / name).read_text()) for name in ("rank", "grandchild")]
        supervisors = self.supervisors(reference)
        for index in killed:
            os.kill(supervisors[index], signal.SIGKILL)
        status = end_of(engine, run.name)
        assert status.state is RunState.FAILED
        assert "supervisor" in status.reason or "guard" in status.reason
        assert not any(map(alive, pids))
        engine.start(run)
        assert engine.status(run.name) == status
        engine.prepare(next_run := self.run_of("pass", name="job-1.2", placements=[Placement("n1", 2)]))
        engine.start(next_run)  # the devices are free again
        assert end_of(engine, next_run.name).state is RunState.SUCCEEDED

    def test_what_is_tied_ends_with_whoever_started_it_and_all_else_goes_on(self, engine: LocalEngine) -> None:
        with engine.tied():
            self.begin(engine, tied := self.run_of(FOREVER, name="tied.1"))
        self.begin(engine, free := self.run_of(FOREVER, name="free.1"))
        assert end_of(engine, tied.name) == RunStatus(RunState.STOPPED, "whom it was tied to has ended")
        assert engine.status(free.name).state is RunState.RUNNING

    def test_a_supervisor_that_does_not_answer_is_done_without(
        self, engine: Engine, reference: EngineReference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(local, "SUPERVISOR_SECONDS", 0.2)
        run = self.run_of(WITH_GRANDCHILD, tmp_path)
        self.begin(engine, run)
        until((tmp_path / "grandchild").exists, "the grandchild does not begin")
        for pid in self.supervisors(reference):
            os.kill(pid, signal.SIGSTOP)
        engine.stop(run.name, 0.0)
        assert not any(alive(int((tmp_path / name).read_text())) for name in ("rank", "grandchild"))
        assert engine.status(run.name).state is RunState.STOPPED

    def test_a_run_of_before_a_restart_of_the_host_has_failed(self, engine: Engine, reference: EngineReference) -> None:
        """What a restart leaves: a state that says running, of another boot, and nobody who holds the lock."""
        run = self.run_of("pass")
        engine.prepare(run)
        state = json.loads(self.state(reference).read_text())
        state |= {"state": "running", "boot": "another", "processes": [[1, 0], [1, 0]]}
        self.state(reference).write_text(json.dumps(state))
        assert engine.status(run.name) == RunStatus(RunState.FAILED, "the host was restarted")
        engine.start(run)
        assert engine.status(run.name).state is RunState.FAILED

    def test_a_start_that_is_killed_half_way_starts_nothing_or_all(self, engine: Engine, tmp_path: Path) -> None:
        """The launcher reads an order that breaks off; the lock is free again, and the next start is the first."""
        run = self.run_of("import sys; open(sys.argv[1], 'a').write('x')", tmp_path / "count")
        engine.prepare(run)
        launcher = [sys.executable, "-I", "-S", supervisor.__file__]
        broken = subprocess.run(launcher, input='{"directory": "/', text=True, capture_output=True, check=False)
        assert broken.returncode
        assert engine.status(run.name).state is RunState.PREPARED
        engine.start(run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert (tmp_path / "count").read_text() == "x"

    def test_a_program_that_cannot_be_started_is_said_and_leaves_nothing_running(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        """It is executable when the run is prepared, and no more when it is started."""
        program = tmp_path / "program"
        program.write_text("#!/nowhere/interpreter\n")
        program.chmod(0o755)
        run = self.run_of("", command=[str(program)], placements=[Placement("n1", 2)])
        engine.prepare(run)
        with pytest.raises(EngineError, match="rank 0 could not be started"):
            engine.start(run)
        assert engine.status(run.name).state is RunState.FAILED
        self.begin(engine, self.run_of("pass", name="job-2.1", placements=[Placement("n1", 2)]))
        assert end_of(engine, "job-2.1").state is RunState.SUCCEEDED

    def test_what_cannot_be_run_here_is_refused_with_what_to_do(self, engine: Engine, tmp_path: Path) -> None:
        run = self.run_of("pass")
        refusals = {
            "containers": replace(run, image="registry/image:1"),
            "no node n9": replace(run, placements=[Placement("n9", 1)]),
            "has 2": replace(run, placements=[Placement("n1", 3)]),
            "no directory": replace(run, working_directory=str(tmp_path / "missing")),
            "no program": replace(run, command=["no-such-program"]),
            "no name of a run": replace(run, name="../job"),
            "no known port": replace(run, rendezvous=Rendezvous(world_size=8)),
            "ftp": replace(run, code="ftp://host/code.tar"),
        }
        for cause, refused in refusals.items():
            with pytest.raises(EngineError, match=cause) as caught:
                engine.prepare(refused)
            assert caught.value.hint
            assert not caught.value.transient

    def test_a_run_waits_for_devices_and_gets_those_that_are_free(self, engine: Engine) -> None:
        first = self.run_of(FOREVER, name="first.1")
        both = self.run_of("import os; print(os.environ['KUAYU_DEVICES'])", name="both.1")
        both = replace(both, placements=[Placement("n1", 2)], processes_per_node=1)
        self.begin(engine, first)
        engine.prepare(both)
        with pytest.raises(EngineError, match="1 of 2 devices free") as caught:
            engine.start(both)
        assert caught.value.transient
        assert engine.status(both.name).state is RunState.PREPARED
        engine.stop(first.name, 0.0)
        engine.start(both)
        assert end_of(engine, both.name).state is RunState.SUCCEEDED
        assert self.texts(engine.logs(both.name)) == ["0,1"]

    def test_secrets_of_the_engine_are_not_in_the_environment_of_jobs(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUAYU_TOKEN", "secret")
        monkeypatch.setenv("PGPASSWORD", "secret")
        monkeypatch.setenv("LC_ALL", "C.UTF-8")
        self.begin(engine, self.run_of("import os; print(sorted(os.environ))"))
        assert end_of(engine, "job-1.1").state is RunState.SUCCEEDED
        printed = engine.logs("job-1.1")[0].text
        assert "LC_ALL" in printed
        assert "PATH" in printed
        assert "KUAYU_TOKEN" not in printed
        assert "PGPASSWORD" not in printed

    def test_the_end_of_a_log_that_is_full_is_kept(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(local, "MAX_LOG_BYTES", 10_000)
        self.begin(engine, self.run_of("for number in range(3000): print(number)"))
        assert end_of(engine, "job-1.1").state is RunState.SUCCEEDED
        lines = engine.logs("job-1.1", limit=5000)
        texts = self.texts(lines)
        assert [line.number for line in lines] == list(range(1, len(lines) + 1))
        notes = [position for position, text in enumerate(texts) if text.startswith("kuayu: ")]
        kept, tail = [int(text) for text in texts[: notes[0]]], [int(text) for text in texts[notes[1] + 1 :]]
        assert kept == list(range(len(kept)))
        assert kept
        assert tail == list(range(2000, 3000))
        assert texts[notes[1]] == f"kuayu: {2000 - len(kept)} lines were left out here"

    def test_a_progress_bar_leaves_what_a_terminal_would_show_last(self, engine: Engine) -> None:
        program = "for step in range(5000): print(f'\\r{step} of 5000', end='')\nprint('\\rdone')\nprint('a\\rb\\r')"
        self.begin(engine, self.run_of(program))
        assert end_of(engine, "job-1.1").state is RunState.SUCCEEDED
        assert self.texts(engine.logs("job-1.1")) == ["done", "b"]

    def test_code_is_copied_from_a_directory_into_the_run(self, engine: Engine, tmp_path: Path) -> None:
        code = tmp_path / "code"
        code.mkdir()
        (code / "train.py").write_text("import helper\nprint(helper.SAID)\n")
        (code / "helper.py").write_text("SAID = 'from the bundle'\n")
        run = self.run_of("", command=[sys.executable, "-S", "train.py"], code=code.as_uri())
        self.begin(engine, run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert self.texts(engine.logs(run.name)) == ["from the bundle"]

    def test_many_callers_at_once_start_a_run_once(
        self, engine: Engine, reference: EngineReference, tmp_path: Path
    ) -> None:
        """Three processes prepare and start it at the same time."""
        run = self.run_of("import sys; open(sys.argv[1], 'a').write('x')", tmp_path / "count")
        program = f"{reference.program}run = {run!r}\nengine.prepare(run)\nengine.start(run)\n"
        callers = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
        assert [caller.wait(120) for caller in callers] == [0, 0, 0]
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert (tmp_path / "count").read_text() == "x"


def test_whoever_is_restricted_gives_out_no_more_than_it_has() -> None:
    """An engine that may use two of eight devices, by the variable that CUDA reads."""
    variables = visibility([0, 1, 2], {"CUDA_VISIBLE_DEVICES": "4,6"})
    assert variables["CUDA_VISIBLE_DEVICES"] == "4,6"
    assert variables["ASCEND_RT_VISIBLE_DEVICES"] == "0,1,2"
    assert variables["KUAYU_DEVICES"] == "0,1,2"


def test_this_host_by_whatever_name_without_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no nodes are named and no accelerator is there, nothing is counted, and no program is restricted."""
    monkeypatch.setattr("kuayu.engine.runs.devices.accelerators", lambda: 0)
    engine = LocalEngine(tmp_path / "engine")
    run = EngineLaws().run_of("import os; print('KUAYU_DEVICES' in os.environ)", placements=[Placement("here", 64)])
    run = replace(run, processes_per_node=1)
    engine.prepare(run)
    engine.start(run)
    assert end_of(engine, run.name).state is RunState.SUCCEEDED
    assert [line.text for line in engine.logs(run.name)] == ["False"]
