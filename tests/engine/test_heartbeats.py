"""`kuayu beat` before a service that dies, hangs, and knows some of the nodes: beats go on, and lines are not lost."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import TYPED, Started, prefork_server, run
from engine.agent_process import AgentProcess
from engine.recording_service import RecordingService, problem

BEATS, LINES = "/v1/heartbeats", "/v1/log-lines"
PATIENCE_S = 30.0
JsonObject = dict[str, Any]


class Beating:
    """The command in a process of its own.

    Attributes:
        errors: File with what it complained.
    """

    def __init__(self, folder: Path, *options: str, given: int | None = None) -> None:
        self.errors = folder / "errors"
        with self.errors.open("wb") as errors, Path(os.devnull).open("r+b") as nothing:
            streams = [nothing if given is None else given, nothing, errors]
            self.process: Started = prefork_server(TYPED).start(["beat", *options], streams)

    def said(self) -> str:
        """What it complained until now."""
        return self.errors.read_text("utf-8")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


Start = Callable[..., Beating]


@pytest.fixture
def beat(service: RecordingService, tmp_path: Path) -> Iterator[Start]:
    """Starts the command for the node a, ten times a second; it ends with the test."""
    service.resources["/v1/nodes/a"] = {}
    started: list[Beating] = []

    def start(*options: str, url: str = service.url, given: int | None = None) -> Beating:
        started.append(Beating(tmp_path, "--url", url, "--node", "a", "--every", "0.1", *options, given=given))
        return started[-1]

    yield start
    for each in started:
        each.stop(signal.SIGKILL)


def until(met: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def heard(service: RecordingService, node: str = "a") -> list[JsonObject]:
    return [each for each in service.heard[BEATS] if each["node"] == node]


def texts(service: RecordingService) -> list[str]:
    return [each["text"] for each in service.heard[LINES]]


def add(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as opened:
        opened.write(text)


def test_whoever_goes_on_counts_on_and_beats_are_counted_anew_where_the_node_was_started_anew(
    service: RecordingService, beat: Start
) -> None:
    first = beat()
    until(lambda: len(heard(service)) >= 4)
    assert first.stop(signal.SIGINT) == 0
    numbers = [each["number"] for each in heard(service)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert f"kuayu beat for a at {service.url}, every 0.1 s" in first.said()
    assert f"{len(numbers)} beats were taken" in first.said()
    second = beat()
    until(lambda: len(heard(service)) > len(numbers))
    assert heard(service)[len(numbers)]["number"] > numbers[-1]
    assert second.stop() == 0
    before = len(heard(service))
    beat("--anew")
    until(lambda: len(heard(service)) > before)
    assert heard(service)[before]["number"] == 1


def test_beats_that_a_dead_service_missed_are_not_sent_again_and_that_is_said_once(
    service: RecordingService, beat: Start
) -> None:
    beating = beat()
    until(lambda: heard(service))
    service.die()
    until(lambda: "no answer from" in beating.said())
    before = len(heard(service))
    time.sleep(0.5)
    service.start()
    until(lambda: len(heard(service)) >= before + 3)
    numbers = [each["number"] for each in heard(service)]
    assert numbers[before] >= numbers[before - 1] + 4
    assert numbers[before:] == list(range(numbers[before], numbers[before] + len(numbers) - before))
    until(lambda: "the service answers again after" in beating.said())
    assert beating.said().count("no answer from") == beating.said().count("hint") == 1
    assert beating.stop() == 0


def test_whoever_was_known_beats_on_though_the_token_was_taken_out(
    service: RecordingService, beat: Start, tmp_path: Path
) -> None:
    log, answer = tmp_path / "log", service.answer
    beating = beat("--log", str(log))
    until(lambda: heard(service))
    add(log, "one\n")
    until(lambda: texts(service) == ["one"])
    service.answer = lambda *_: (401, problem("unauthorised"))  # type: ignore[method-assign]
    add(log, "two\n")
    until(lambda: "beats go on" in beating.said())
    before = len(heard(service))
    service.answer = answer  # type: ignore[method-assign]
    until(lambda: len(heard(service)) > before and texts(service) == ["one", "two"])
    assert beating.stop() == 0


def test_a_service_that_answers_no_log_lines_does_not_hold_up_beats(
    service: RecordingService, beat: Start, tmp_path: Path
) -> None:
    released = _hold_up(service, LINES)
    log = tmp_path / "log"
    beat("--log", str(log))
    until(lambda: heard(service))
    add(log, "one\n")
    until(lambda: any(path == LINES for _, path, _ in service.requests))
    before = len(heard(service))
    until(lambda: len(heard(service)) >= before + 5)
    assert texts(service) == []
    released.set()
    until(lambda: texts(service) == ["one"])


def _hold_up(service: RecordingService, path: str) -> threading.Event:
    """Have no request to a path answered until that is released."""
    released, answer = threading.Event(), service.answer

    def slowly(method: str, asked: str, key: str, body: bytes) -> tuple[int, bytes]:
        if asked == path:
            released.wait(PATIENCE_S)
        return answer(method, asked, key, body)

    service.answer = slowly  # type: ignore[method-assign]
    return released


def test_lines_written_while_the_service_is_away_are_sent_when_it_is_back(
    service: RecordingService, beat: Start, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    add(log, "of yesterday\n")
    beating = beat("--log", str(log))
    until(lambda: heard(service))
    add(log, "one\n")
    until(lambda: texts(service) == ["one"])
    service.die()
    add(log, "two\n" + "x" * 5000 + "\n")
    until(lambda: "no answer from" in beating.said())
    log.rename(tmp_path / "log.1")
    add(log, "four\0\n" + "five\n" * 2500)
    service.start()
    until(lambda: len(texts(service)) == 2504)
    assert texts(service) == ["one", "two", "x" * 2048, "four\ufffd", *["five"] * 2500]
    batches = [json.loads(body)["lines"] for _, path, body in service.requests if path == LINES]
    assert max(map(len, batches)) <= service.max_batch


def test_the_standard_input_is_a_log_too(service: RecordingService, beat: Start, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    with _pipe(fifo) as given:
        beating = beat("--log", "-", given=given)
        until(lambda: heard(service))
        with fifo.open("w") as file:
            file.write("from the kernel\nwithout end")
    until(lambda: texts(service) == ["from the kernel", "without end"])
    before = len(heard(service))
    until(lambda: len(heard(service)) >= before + 2)  # though its input has ended
    assert beating.stop() == 0


@contextmanager
def _pipe(fifo: Path) -> Iterator[int]:
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield reading
    finally:
        os.close(reading)


def test_steps_of_training_jobs_travel_with_the_beats_of_their_node(
    service: RecordingService, beat: Start, tmp_path: Path
) -> None:
    service.resources["/v1/nodes/b"] = {}
    steps = tmp_path / "steps"
    beating = beat("--node", "b", "--steps", f"a={steps}")
    until(lambda: heard(service))
    assert "steps" not in heard(service)[-1]
    add(steps, "j 0 7\nj 1 7\nnonsense\n")
    both = [{"job": "j", "rank": rank, "step": 7} for rank in (0, 1)]
    until(lambda: heard(service)[-1].get("steps") == both)
    add(steps, "j 0 8\nj 1 ended\n")
    until(lambda: heard(service)[-1].get("steps") == [{"job": "j", "rank": 0, "step": 8}])
    ended = [
        each for each in heard(service) if {"job": "j", "rank": 1, "step": 7, "ended": True} in each.get("steps", ())
    ]
    assert ended
    assert not any("steps" in each for each in heard(service, "b"))
    assert "has lines that tell of no step, such as 'nonsense'" in beating.said()


def test_a_node_that_is_not_registered_is_told_and_taken_once_it_is(service: RecordingService, beat: Start) -> None:
    beating = beat("--node", "b")
    until(lambda: len(heard(service)) >= 3)
    assert beating.said().count("b is not registered with the service") == 1
    assert "register it with PUT /v1/nodes/b" in beating.said()
    service.resources["/v1/nodes/b"] = {}
    until(lambda: heard(service, "b"))
    until(lambda: "beats of b are taken now" in beating.said())


def test_lines_of_a_node_that_is_not_registered_are_told_once(
    service: RecordingService, beat: Start, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    beating = beat("--node", "b", "--log", f"b={log}")
    until(lambda: heard(service))
    for _ in range(2):
        sent = len(service.requests)
        add(log, "line\n")
        until(lambda sent=sent: any(path == LINES for _, path, _ in service.requests[sent:]))
    until(lambda: "log lines of b were refused" in beating.said())
    assert beating.said().count("log lines of b were refused") == 1


def test_a_token_that_is_unknown_ends_it(service: RecordingService, beat: Start) -> None:
    service.canned += [(401, {}, problem("unauthorised"))]
    beating = beat()
    assert beating.process.wait(PATIENCE_S) == 1
    assert "hint" in beating.said()


def test_a_service_without_log_lines_is_told_and_beats_go_on(
    service: RecordingService, beat: Start, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    beating = beat("--log", str(log))
    until(lambda: heard(service))
    answer = service.answer
    service.answer = lambda method, path, key, body: (  # type: ignore[method-assign]
        (404, problem("not-found")) if path == LINES else answer(method, path, key, body)
    )
    add(log, "one\n")
    until(lambda: "no log lines are sent any more" in beating.said())
    before = len(heard(service))
    until(lambda: len(heard(service)) >= before + 3)
    assert beating.stop() == 0


def test_beats_pass_through_an_aggregator_and_are_dropped_where_the_service_is_away(
    service: RecordingService, beat: Start, tmp_path: Path
) -> None:
    agent = AgentProcess(service.url, tmp_path / "spool.db")
    agent.start()
    try:
        beating = beat(url=agent.url)
        until(lambda: len(heard(service)) >= 2)
        service.die()
        until(lambda: "the service does not answer" in beating.said())
        before = len(heard(service))
        time.sleep(0.5)
        service.start()
        until(lambda: len(heard(service)) >= before + 2)
        numbers = [each["number"] for each in heard(service)]
        assert numbers[before] >= numbers[before - 1] + 3
        assert agent.figures()["spooled_samples"] == 0
    finally:
        agent.close()


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (("--node", "a/b"), "is not a valid identifier"),
        (("--node", "a", "--url", "127.0.0.1:1"), "is not an http or https URL"),
        (("--node", "a", "--node", "b", "--log", "x"), "--log x does not say of which node it is"),
        (("--node", "a", "--node", "b", "--steps", "c=x"), "--steps c=x does not say of which node it is"),
        (("--node", "a", "--steps", "x", "--steps", "y"), "--steps: a has two files"),
        (("--node", "a", "--log", "/"), "cannot read /"),
    ],
)
def test_options_that_are_wrong_are_told(options: tuple[str, ...], cause: str) -> None:
    done = run("beat", *options, COLUMNS="160")
    assert done.returncode == 2
    assert cause in done.stderr
    assert "hint" in done.stderr
