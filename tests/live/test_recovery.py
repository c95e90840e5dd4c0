"""A control plane that was killed goes on from its record, and workers that lost it tell it again what it missed."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from commands import killed_at_end
from hypothesis import given
from hypothesis import strategies as st
from live.world import World

from kuayu.live.controller import RETURN_SECONDS
from kuayu.live.plan import CONTROL_ABSENCE_SECONDS, SNAPSHOT, Record, Settings, follow
from kuayu.live.transport import frame, receive

FIRST, SECOND, THIRD, SPARE = "beijing-1", "yangtze-1", "bay-1", "chengyu-1"


def after(steps: int, checkpoint: int) -> World:
    """Three members and a spare, so many steps on."""
    world = World(Settings(domains=3))
    for number in range(1, steps + 1):
        world.step(number)
        if number == checkpoint:
            world.checkpoint(number)
    return world


def test_it_goes_on_under_the_same_plan_when_all_are_back() -> None:
    world = after(13, 10)
    before = world.plan
    world.restart()
    assert world.plan == before
    assert [each["kind"] for each in world.notes[-2:]] == ["recovered", "whole"]
    world.step(14)
    assert [each["step"] for each in world.noted("step")] == list(range(1, 15))


def test_who_is_not_back_in_time_is_replaced_at_the_checkpoint_that_is_on_record() -> None:
    world = after(13, 10)
    world.restart(SECOND)
    world.now += RETURN_SECONDS
    world.beat(FIRST, THIRD, SPARE)
    world.controller.look(world.now)
    assert world.plan.generation == 1, "there is time left"
    world.now += 0.01
    world.controller.look(world.now)
    assert world.plan.generation == 2
    assert [each.id for each in world.plan.members] == [FIRST, SPARE, THIRD]
    assert world.plan.restore is not None
    assert world.plan.restore.step == 10
    assert world.noted("plan")[-1]["again"] == 3


def test_where_most_are_not_back_nobody_is_given_up_before_workers_end_by_themselves() -> None:
    world = after(5, 5)
    world.restart(FIRST, SECOND)
    world.now += CONTROL_ABSENCE_SECONDS + RETURN_SECONDS - 0.1
    world.beat(THIRD, SPARE)
    world.controller.look(world.now)
    assert not world.noted("gone")
    world.now += 0.2
    world.controller.look(world.now)
    assert {each["worker"] for each in world.noted("gone")} == {FIRST, SECOND}


def test_who_has_not_heard_of_the_plan_is_told_and_who_was_replaced_has_to_end() -> None:
    world = after(13, 10)
    world.controller.gone(SECOND, world.now)
    world.told.clear()
    world.cut.clear()
    world.restart(*(FIRST, SECOND, THIRD, SPARE))
    for worker, generation in ((FIRST, 2), (THIRD, 1), (SECOND, 1)):
        world.join_again(worker, generation)
    kinds = [(worker, header["kind"]) for worker, header in world.told]
    assert kinds == [(FIRST, "until"), (THIRD, "plan"), (THIRD, "until"), (SECOND, "end")]
    assert world.cut == [SECOND]


def test_a_step_before_the_checkpoint_was_made_though_one_died_untold_of_it() -> None:
    world = after(9, 0)
    world.step(10, FIRST, THIRD)
    world.checkpoint(10)
    world.snapshot()
    world.restart(SECOND)
    world.now += RETURN_SECONDS + 0.01
    world.beat(FIRST, THIRD, SPARE)
    world.controller.look(world.now)
    assert world.plan.restore is not None
    assert world.plan.restore.step == 10
    assert world.noted("plan")[-1]["again"] == 0
    assert [each["step"] for each in world.noted("step")] == list(range(1, 11))


def test_a_report_that_is_sent_again_counts_once() -> None:
    world = after(3, 3)
    sent = [world.report(each, "step", 1, step=4, loss=1.0, seconds=0.01) for each in (FIRST, SECOND)]
    world.restart()
    for worker, header in zip((FIRST, SECOND), sent, strict=True):
        world.controller.take_report(worker, header, world.now)
    assert [each["step"] for each in world.noted("step")] == [1, 2, 3]
    world.step(4, THIRD)
    assert [each["step"] for each in world.noted("step")] == [1, 2, 3, 4]
    world.now = 7.0
    world.beat(FIRST)
    assert world.told[-1] == (FIRST, {"kind": "lease", "sent": 7.0, "taken": sent[0]["number"]})


ACTIONS = st.lists(
    st.sampled_from(["step", "half", "checkpoint", "snapshot", FIRST, SECOND, THIRD, SPARE]), max_size=12
)


@given(actions=ACTIONS, cut=st.floats(0, 1))
def test_wherever_it_ends_it_then_decides_as_one_that_never_ended(actions: list[str], cut: float) -> None:
    """The record is cut off behind any entry: what was on it counts, and what was not is told again."""
    calm, ended = World(Settings(domains=3)), World(Settings(domains=3))
    for world in (calm, ended):
        lost: set[str] = set()
        for action in actions:
            made = max((each["step"] for each in world.noted("step")), default=0)
            if action == "snapshot":
                world.snapshot()
            elif action == "step":
                world.step(1 + made)
            elif action == "half":
                world.step(1 + made, world.plan.members[0].id)
            elif action == "checkpoint":
                world.checkpoint(made)
            elif len(lost) == 0:
                lost.add(action)
                world.controller.gone(action, world.now)
    begun = next(place for place, each in enumerate(ended.notes) if each["kind"] == "plan") + 1
    ended.restart(entries=begun + round(cut * (len(ended.notes) - begun)))
    steps = [each["step"] for each in ended.noted("step")]
    assert steps == sorted(set(steps))
    assert set(steps) <= {each["step"] for each in calm.noted("step")}
    assert [each["generation"] for each in ended.noted("plan")] == list(range(1, ended.plan.generation + 1))
    taken = [(each["worker"], each["report"]["number"]) for each in ended.noted("taken")]
    assert len(taken) == len(set(taken))
    full = World(Settings(domains=3))
    full.notes[:] = calm.notes
    full.restart(*lost)
    assert full.plan == calm.plan
    assert full.noted("step") == calm.noted("step")
    assert full.noted("checkpoint") == calm.noted("checkpoint")
    for world in (full, calm):
        world.controller.gone(next(each for each in (FIRST, SECOND) if each not in lost), world.now)
    assert full.plan == calm.plan
    assert full.noted("plan")[-1]["again"] == calm.noted("plan")[-1]["again"]


def test_what_followed_from_the_last_report_is_noted_where_it_ended_in_between() -> None:
    world = after(3, 0)
    assert [each["kind"] for each in world.notes[-2:]] == ["taken", "step"]
    world.restart(entries=-1)
    assert [each["step"] for each in world.noted("step")] == [1, 2, 3]


def test_whoever_goes_on_reads_from_the_last_snapshot(tmp_path: Path) -> None:
    record = Record(tmp_path / "record")
    for number in range(3):
        record.write("taken", number=number)
        record.write(SNAPSHOT, number=number)
    record.write("taken", number='"kind":"snapshot"')
    assert record.since == 1
    assert [(each["kind"], each["number"]) for each in Record(tmp_path / "record").entries] == [
        (SNAPSHOT, 2),
        ("taken", '"kind":"snapshot"'),
    ]


def test_a_line_that_was_not_finished_is_dropped(tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.write_bytes(b'{"at":1.0,"kind":"joined"}\n{"at":2.0,"ki')
    record = Record(file)
    assert [each["kind"] for each in record.entries] == ["joined"]
    record.write("gone", worker="a")
    assert [each["kind"] for each in Record(file).entries] == ["joined", "gone"]


def test_what_was_written_outlives_the_writer_and_is_followed_while_it_grows(tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.touch()
    over = threading.Event()
    entries = follow(file, over)
    writer = """
import os, signal, sys
from pathlib import Path
from kuayu.live.plan import Record
record = Record(Path(sys.argv[1]))
for number in range(100):
    record.write("taken", lasting=number == 50, number=number)
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", writer, str(file)], check=False)
    assert [next(entries)["number"] for _ in range(100)] == list(range(100))
    over.set()
    assert list(entries) == []


WORKER = """
import sys, threading, time
from kuayu.live.transport import Reports
reports = Reports(int(sys.argv[1]), 9, lambda: {"kind": "hello", "id": "a"}, lambda header: header["kind"] != "end")
for number in range(1, 4):
    reports.report({"kind": "step", "step": number})
threading.Event().wait()
"""


def met(listener: socket.socket, reports: int) -> tuple[socket.socket, list[int]]:
    """The next connection of a worker, and the numbers of its reports; who it is comes first."""
    stream, _ = listener.accept()
    stream.settimeout(30)
    headers = [message[0] for _ in range(2 + reports) if (message := receive(stream)) is not None]
    assert [each.get("kind") for each in headers[:2]] == [None, "hello"], "for whom it is, and who it is"
    return stream, [each["number"] for each in headers[2:]]


def test_a_worker_tells_again_what_no_control_plane_had_on_record() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        command = [sys.executable, "-c", WORKER, str(listener.getsockname()[1])]
        with subprocess.Popen(command) as worker, killed_at_end(worker):
            stream, numbers = met(listener, 3)
            assert numbers == [1, 2, 3]
            stream.sendall(frame({"kind": "lease", "taken": 2}))
            stream.shutdown(socket.SHUT_WR)
            stream.close()
            stream, numbers = met(listener, 1)
            assert numbers == [3]
            stream.sendall(frame({"kind": "end"}))
            assert worker.wait(30) == 0
            stream.close()


@pytest.mark.slow
def test_a_worker_ends_where_there_is_no_control_plane() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    ended = subprocess.run([sys.executable, "-c", WORKER, str(port)], check=False, timeout=CONTROL_ABSENCE_SECONDS + 30)
    assert ended.returncode == 0
