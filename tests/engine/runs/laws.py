"""What every engine has to do, whatever it runs on: one class of tests, which the tests of each engine make theirs.

An engine's tests derive a class from :class:`EngineLaws` and say with the fixture ``reference`` how to find the engine.
Ranks are real processes, which leave files in a directory that all nodes of the engine reach.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kuayu.engine.runs import registry
from kuayu.engine.runs.protocol import (
    ENDED,
    MAX_LINE_CHARACTERS,
    Engine,
    EngineError,
    LogLine,
    Placement,
    Run,
    RunState,
    RunStatus,
)
from kuayu.engine.runs.supervisor import started

PATIENCE_S = 120.0
"""How long a busy machine may take; nothing waits so long that goes well."""

PYTHON = (sys.executable, "-S", "-E", "-c")
"""A Python that begins quickly: it has its standard library alone."""

FOREVER = "import time; time.sleep(600)"


@dataclass(frozen=True)
class EngineReference:
    """How to find an engine, in this process or in another.

    Attributes:
        name: Of the engine.
        directory: Where it keeps its runs.
        options: What else it takes, as JSON can say it.
    """

    name: str
    directory: Path
    options: Mapping[str, Any] = field(default_factory=dict)

    def find(self) -> Engine:
        """The engine, anew."""
        return registry.find(self.name, self.directory, **self.options)

    @property
    def program(self) -> str:
        """The beginning of a program that has found it as ``engine``."""
        arguments = json.dumps([self.name, str(self.directory), self.options])
        return (
            "import json, os, signal, sys\nfrom pathlib import Path\nfrom kuayu.engine.runs import registry\n"
            f"from kuayu.engine.runs.protocol import *\nname, directory, options = json.loads({arguments!r})\n"
            "engine = registry.find(name, Path(directory), **options)\n"
        )


def until(reached: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for something, looking now and then."""
    deadline = time.monotonic() + patience_s
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def end_of(engine: Engine, name: str, patience_s: float = PATIENCE_S) -> RunStatus:
    """How a run has ended, once it has."""
    until(lambda: engine.status(name).state in ENDED, f"{engine.status(name)}; {engine.logs(name)}", patience_s)
    return engine.status(name)


def alive(pid: int) -> bool:
    """Whether a process lives; one that waits to be reaped does not."""
    return started(pid) is not None


class EngineLaws:
    """The laws of :mod:`kuayu.engine.runs.protocol`. Derived classes define the fixture ``reference``."""

    NODES: ClassVar[Sequence[str]] = ("n1", "n2")
    """Nodes of the engine, with two devices each at least."""

    NAMES_DEVICES: ClassVar[bool] = True
    """Whether the engine chooses the devices, and names them in KUAYU_DEVICES."""

    SEES_NODES: ClassVar[bool] = True
    """Whether the engine can tell which nodes take runs."""

    @pytest.fixture
    def engine(self, reference: EngineReference) -> Iterator[Engine]:
        """The engine; what it still runs is ended with the test."""
        engine = reference.find()
        yield engine
        for name in engine.runs():
            engine.stop(name, 0.0)

    def run_of(self, program: str, *arguments: Path | str, name: str = "job-1.1", **changes: Any) -> Run:
        """A run of a Python program on one device of the first node."""
        job, _, attempt = name.rpartition(".")
        command = [*PYTHON, program, *map(str, arguments)]
        placements = [Placement(self.NODES[0], 1)]
        run = Run(name=name, job=job, attempt=int(attempt), command=command, placements=placements, grace_seconds=5.0)
        return replace(run, **changes)

    def begin(self, engine: Engine, run: Run) -> None:
        """Prepare and start a run."""
        engine.prepare(run)
        engine.start(run)

    def texts(self, lines: Sequence[LogLine]) -> list[str]:
        """What the lines say."""
        return [line.text for line in lines]

    def test_what_it_needs_is_there_and_looking_starts_nothing(self, engine: Engine) -> None:
        findings = engine.check()
        assert findings
        assert all(finding.present for finding in findings), findings
        assert engine.runs() == []

    def test_nodes_that_it_has_not_are_told_and_no_others(self, engine: Engine) -> None:
        unavailable = engine.unavailable_nodes([*self.NODES, "n99"])
        assert unavailable.keys() == ({"n99"} if self.SEES_NODES else set())
        assert all(unavailable.values())

    def test_a_run_that_is_prepared_and_started_twice_runs_once(
        self, engine: Engine, reference: EngineReference, tmp_path: Path
    ) -> None:
        """Twice by the same caller, once by another one, and once more when it has ended."""
        count = tmp_path / "count"
        run = self.run_of("import sys; open(sys.argv[1], 'a').write('x')", count)
        self.begin(engine, run)
        self.begin(engine, run)
        self.begin(reference.find(), run)
        assert end_of(engine, run.name) == RunStatus(RunState.SUCCEEDED, "", 0)
        self.begin(engine, run)
        assert engine.status(run.name) == RunStatus(RunState.SUCCEEDED, "", 0)
        assert count.read_text() == "x"
        assert engine.runs() == [run.name]

    @pytest.mark.parametrize(
        ("program", "code"),
        [("raise SystemExit(7)", 7), ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV)],
        ids=["exit", "signal"],
    )
    def test_how_a_process_has_failed_is_told(self, engine: Engine, program: str, code: int) -> None:
        run = self.run_of(program)
        self.begin(engine, run)
        status = end_of(engine, run.name)
        assert (status.state, status.exit_code) == (RunState.FAILED, code)
        assert status.reason

    def test_when_one_rank_fails_the_others_are_ended(self, engine: Engine, tmp_path: Path) -> None:
        """Rank one, on another node, fails once it sees that rank zero is there, which would wait for ten minutes."""
        program = (
            "import os, sys, time\n"
            "from pathlib import Path\n"
            "folder = Path(sys.argv[1])\n"
            "if os.environ['RANK'] == '0':\n"
            "    (folder / 'new').write_text(str(os.getpid()))\n"
            "    (folder / 'new').rename(folder / 'pid')\n"
            "    time.sleep(600)\n"
            "while not (folder / 'pid').exists():\n"
            "    time.sleep(0.02)\n"
            "raise SystemExit(3)\n"
        )
        run = self.run_of(program, tmp_path, placements=[Placement(node, 1) for node in self.NODES[:2]])
        self.begin(engine, run)
        status = end_of(engine, run.name)
        assert (status.state, status.exit_code) == (RunState.FAILED, 3)
        assert "1" in status.reason
        assert not alive(int((tmp_path / "pid").read_text()))

    def test_who_is_asked_to_end_may_save_and_what_does_not_end_is_killed(self, engine: Engine, tmp_path: Path) -> None:
        """The rank saves and ends; what it has started, in a session of its own and as nobody's child, will not."""
        program = (
            "import os, signal, sys, time\n"
            "from pathlib import Path\n"
            "folder = Path(sys.argv[1])\n"
            "def save(*_):\n"
            "    print('saved', flush=True)\n"
            "    os._exit(0)\n"
            "signal.signal(signal.SIGTERM, save)\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "    if os.fork():\n"
            "        os._exit(0)\n"
            "    (folder / 'new').write_text(str(os.getpid()))\n"
            "    (folder / 'new').rename(folder / 'pid')\n"
            "time.sleep(600)\n"
        )
        run = self.run_of(program, tmp_path, grace_seconds=60.0)
        self.begin(engine, run)
        until((tmp_path / "pid").exists, "the grandchild does not begin")
        grandchild = int((tmp_path / "pid").read_text())
        assert engine.status(run.name).state is RunState.RUNNING
        assert alive(grandchild)
        engine.stop(run.name, 2.0)
        assert not alive(grandchild)
        assert engine.status(run.name).state is RunState.STOPPED
        assert "saved" in self.texts(engine.logs(run.name))
        engine.stop(run.name)
        engine.start(run)
        assert engine.status(run.name).state is RunState.STOPPED

    def test_a_run_that_is_stopped_before_its_start_is_never_started(self, engine: Engine, tmp_path: Path) -> None:
        run = self.run_of("import sys; open(sys.argv[1], 'w')", tmp_path / "ran")
        engine.prepare(run)
        assert engine.status(run.name).state is RunState.PREPARED
        engine.stop(run.name)
        engine.start(run)
        assert engine.status(run.name).state is RunState.STOPPED
        engine.forget(run.name)
        assert not (tmp_path / "ran").exists()

    def test_lines_are_numbered_without_gaps_and_read_on_from_any_of_them(self, engine: Engine) -> None:
        program = "for number in range(700): print(number)\nprint('长' * 5000)\nprint('end', end='')"
        run = self.run_of(program)
        self.begin(engine, run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        lines: list[LogLine] = []
        while page := engine.logs(run.name, after=len(lines), limit=300):
            assert len(page) <= 300
            lines += page
        assert [line.number for line in lines] == list(range(1, 703))
        assert self.texts(lines[:700]) == [str(number) for number in range(700)]
        assert len(lines[700].text) == MAX_LINE_CHARACTERS
        assert lines[700].text.startswith("长长长")
        assert lines[701].text == "end"
        assert {line.rank for line in lines} == {0}
        assert engine.logs(run.name, after=600, limit=2) == lines[600:602]

    def test_ranks_know_their_place_in_the_job(self, engine: Engine) -> None:
        """Two nodes with two devices each; what a run says of itself does not hide what the engine says."""
        names = ("OWN", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        names += ("KUAYU_JOB", "KUAYU_ATTEMPT", "KUAYU_RUN", "KUAYU_STEP", "KUAYU_CHECKPOINT", "KUAYU_SYNC_PERIOD")
        run = self.run_of(
            "import json, os, sys; print(json.dumps({name: os.environ[name] for name in sys.argv[1:]}))",
            *names,
            placements=[Placement(node, 2) for node in self.NODES[:2]],
            environment={"OWN": "a 'quoted' \"text\" $HOME `x` \\ ; 中文", "RANK": "99"},
            checkpoint="/store/job-1",
            step=40,
            sync_period=16,
        )
        self.begin(engine, run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        ranks = {line.rank: json.loads(line.text) for line in engine.logs(run.name)}
        assert sorted(ranks) == [0, 1, 2, 3]
        for rank, variables in ranks.items():
            assert variables["RANK"] == str(rank)
            assert variables["LOCAL_RANK"] == str(rank % 2)
            assert (variables["WORLD_SIZE"], variables["LOCAL_WORLD_SIZE"]) == ("4", "2")
            assert variables["OWN"] == run.environment["OWN"]
            assert (variables["KUAYU_JOB"], variables["KUAYU_ATTEMPT"]) == ("job-1", "1")
            assert (variables["KUAYU_RUN"], variables["KUAYU_STEP"]) == (run.name, "40")
            assert (variables["KUAYU_CHECKPOINT"], variables["KUAYU_SYNC_PERIOD"]) == ("/store/job-1", "16")
        meetings = {(variables["MASTER_ADDR"], variables["MASTER_PORT"]) for variables in ranks.values()}
        assert len(meetings) == 1
        assert 0 < int(meetings.pop()[1]) < 65536

    def test_runs_beside_each_other_share_no_device(self, engine: Engine) -> None:
        if not self.NAMES_DEVICES:
            pytest.skip("this engine leaves the choice of devices to what it runs on")
        runs = [
            self.run_of(f"import os; print(os.environ['KUAYU_DEVICES'], flush=True); {FOREVER}", name=f"{job}.1")
            for job in ("left", "right")
        ]
        for run in runs:
            self.begin(engine, run)
        devices = []
        for run in runs:
            until(lambda name=run.name: bool(engine.logs(name)), f"{run.name} prints nothing")  # type: ignore[misc]
            devices += engine.logs(run.name)[0].text.split(",")
        assert len(devices) == len(set(devices)) == 2

    def test_a_run_outlives_who_started_it_and_is_found_by_the_next(
        self, engine: Engine, reference: EngineReference, tmp_path: Path
    ) -> None:
        """The caller is killed right after the start, and the next one starts the same run once more."""
        program = (
            "import sys, time\n"
            "from pathlib import Path\n"
            "with open(sys.argv[1], 'a') as file: file.write('x')\n"
            "while not Path(sys.argv[2]).exists(): time.sleep(0.02)\n"
            "print('done')\n"
        )
        count, release = tmp_path / "count", tmp_path / "release"
        run = self.run_of(program, count, release)
        caller = f"{reference.program}run = {run!r}\nengine.prepare(run)\nengine.start(run)\nos.kill(os.getpid(), 9)\n"
        ended = subprocess.run([sys.executable, "-c", caller], env=dict(os.environ), timeout=PATIENCE_S, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert engine.runs() == [run.name]
        self.begin(engine, run)
        until(lambda: engine.status(run.name).state is RunState.RUNNING, "it does not run")
        release.touch()
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert self.texts(engine.logs(run.name)) == ["done"]
        assert count.read_text() == "x"

    def test_a_name_is_never_given_to_another_run(self, engine: Engine, tmp_path: Path) -> None:
        run = self.run_of("pass")
        other = self.run_of("import sys; open(sys.argv[1], 'w')", tmp_path / "ran")
        engine.prepare(run)
        for call in (engine.prepare, engine.start):
            with pytest.raises(EngineError, match=r"job-1\.1"):
                call(other)
        engine.start(run)
        assert end_of(engine, run.name).state is RunState.SUCCEEDED
        assert not (tmp_path / "ran").exists()

    def test_what_has_ended_can_be_forgotten_and_what_runs_cannot(self, engine: Engine) -> None:
        run = self.run_of(FOREVER)
        self.begin(engine, run)
        with pytest.raises(EngineError, match=r"job-1\.1"):
            engine.forget(run.name)
        engine.stop(run.name, 0.0)
        engine.forget(run.name)
        engine.forget(run.name)
        assert engine.runs() == []
        assert engine.logs(run.name) == []
        assert engine.status(run.name).state is RunState.UNKNOWN

    def test_of_a_run_that_nobody_prepared_nothing_is_known(self, engine: Engine) -> None:
        status = engine.status("job-9.1")
        assert status.state is RunState.UNKNOWN
        assert status.reason
        assert engine.logs("job-9.1") == []
        engine.stop("job-9.1")
        engine.forget("job-9.1")
        with pytest.raises(EngineError):
            engine.start(self.run_of("pass", name="job-9.1"))
