"""A real training over processes: nodes and the control plane die, and the job goes on as if nothing were."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from commands import killed_at_end
from live.processes import eventually, processes_of

from kuayu.live.findings import TOLERANCE, Account, Incident, Timeline, diaries
from kuayu.live.plan import Settings
from kuayu.live.run import Run
from kuayu.live.supervisor import Kind, ProcessLostError, ProcessSupervisor

pytestmark = [pytest.mark.slow, pytest.mark.alone]

SETTINGS = Settings(seed=3, domains=3, parts=6, every=5)
KINDS = (Kind.kill, Kind.hang, Kind.control, Kind.cut, Kind.amid)
Ran = tuple[Timeline, Account, Path]


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Three domains and a spare; some are killed, one hangs, one is cut off, and the control plane is killed twice."""
    folder = tmp_path_factory.mktemp("disturbed")
    run = Run(SETTINGS, folder, KINDS, lambda _: None)
    return run.timeline, run.go(), folder


@pytest.fixture(scope="module")
def calm(disturbed: Ran, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The same training for as many steps, and nothing happens."""
    folder = tmp_path_factory.mktemp("calm")
    run = Run(SETTINGS, folder, (), lambda _: None, steps=max(disturbed[0].losses))
    return run.timeline, run.go(), folder


def by_kind(timeline: Timeline) -> dict[Kind, Incident]:
    return {each.kind: each for each in timeline.incidents}


def test_the_job_recovers_from_each_fault(disturbed: Ran) -> None:
    incidents = by_kind(disturbed[0])
    assert list(incidents) == list(KINDS)
    for each in incidents.values():
        assert each.detected is not None
        assert each.decided is not None
        assert each.first is not None
        assert each.progress is not None
        assert each.injected_at < each.detected <= each.decided < each.first <= each.progress
        assert each.world == SETTINGS.domains
        assert 0 <= each.again <= SETTINGS.every + 1
    assert incidents[Kind.kill].fault == "ended"
    assert incidents[Kind.amid].fault in {"ended", "severed", "unreachable"}, "by whom it is told hangs on the moment"
    assert incidents[Kind.control].fault == "restarted"
    assert incidents[Kind.control].again == 0
    assert incidents[Kind.hang].fault == incidents[Kind.cut].fault == "unreachable"
    assert not disturbed[0].false_alarms


def test_the_curve_goes_on_as_if_nothing_had_happened(disturbed: Ran, calm: Ran) -> None:
    losses, undisturbed = disturbed[0].losses, calm[0].losses
    assert sorted(losses) == list(range(1, max(losses) + 1))
    assert sorted(undisturbed) == sorted(losses)
    assert max(abs(losses[step] - undisturbed[step]) for step in losses) <= TOLERANCE
    assert not disturbed[0].differing
    assert losses[max(losses)] < losses[1] / 2


def test_nothing_runs_twice(disturbed: Ran) -> None:
    account = disturbed[1]
    assert account.entries > len(disturbed[0].losses) * SETTINGS.domains
    assert account.clean


def test_whoever_was_replaced_does_not_come_back(disturbed: Ran) -> None:
    timeline, _, folder = disturbed
    for kind in (Kind.hang, Kind.cut):
        incident = by_kind(timeline)[kind]
        assert incident.left is not None, "it had to be ended from outside"
        assert incident.decided is not None
        written = [each.written_at for each in diaries(folder) if each.worker == incident.worker]
        assert max(written) < incident.decided
        assert all(
            incident.worker not in timeline.plans[each] for each in timeline.plans if each >= incident.generation
        )


def test_calm_raises_no_alarm(calm: Ran) -> None:
    timeline, account, _ = calm
    assert not timeline.false_alarms
    assert timeline.generation == 1
    assert account.clean


def test_no_process_is_left(disturbed: Ran, calm: Ran) -> None:
    assert not processes_of(disturbed[2])
    assert not processes_of(calm[2])


def test_the_control_plane_goes_on_from_its_record(disturbed: Ran) -> None:
    entries = [json.loads(line) for line in (disturbed[2] / "record").read_text("utf-8").splitlines()]
    times = Counter(each["kind"] for each in entries)
    assert times["recovered"] == times["whole"] == 2
    assert times["listening"] == 3
    steps = [each["step"] for each in entries if each["kind"] == "step"]
    assert set(steps) == set(range(1, max(steps) + 1))
    generations = [each["generation"] for each in entries if each["kind"] == "plan"]
    assert generations == list(range(1, len(generations) + 1)), "none twice"


def test_a_control_plane_that_cannot_go_on_is_said_to_be_lost(tmp_path: Path) -> None:
    (tmp_path / "record").write_text('{"kind": "plan"}\n')
    with pytest.raises(ProcessLostError, match="KeyError"), ProcessSupervisor(Settings(domains=3, spares=0), tmp_path):
        pass
    assert not processes_of(tmp_path)


def test_a_stopped_worker_ends_with_the_command(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from kuayu.live.supervisor import Kind, Strike
from kuayu.live.supervisor import ProcessSupervisor
from kuayu.live.plan import Settings
with ProcessSupervisor(Settings(domains=3, spares=0), Path(sys.argv[1])) as supervisor:
    while not any(event["kind"] == "joined" for event in supervisor.events(0.05)):
        pass
    for worker in supervisor.domains:
        Strike(supervisor, Kind.hang, worker)
    print("stopped", flush=True)
    time.sleep(600)
"""
    watched = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(watched, stdout=subprocess.PIPE) as command, killed_at_end(command):
        assert command.stdout is not None
        assert command.stdout.readline() == b"stopped\n"
        assert len(processes_of(tmp_path)) > 1
        os.kill(command.pid, signal.SIGKILL)
    assert eventually(lambda: not processes_of(tmp_path))


def test_ctrl_c_ends_everything(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    command = [str(Path(sys.executable).with_name("kuayu")), "live", "--incidents", "none", "-o", str(tmp_path / "out")]
    environment = {**os.environ, "TMPDIR": str(work)}
    with (
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process,
        killed_at_end(process),
    ):
        assert eventually(lambda: len(processes_of(work)) > 1)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "all processes have ended" in said
    assert not processes_of(work)
    assert not list(work.iterdir())
