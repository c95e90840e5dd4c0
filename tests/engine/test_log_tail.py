"""Lines that are added to logs come once each and in order, however a file is written, rotated or cut."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu.engine.log_tail import MAX_LINE_BYTES, MAX_RANKS, READ_BYTES, Pipe, StepFile, Tail
from kuayu_schemas.models import RankStep


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "node.log"


def add(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(text)


@pytest.fixture
def tail(log: Path) -> Iterator[Tail]:
    """The end of a log that has a line already."""
    add(log, "before\nbegun ")
    with closing(Tail(log)) as tail:
        yield tail


def test_lines_come_when_they_are_finished_and_those_of_before_never(log: Path, tail: Tail) -> None:
    assert tail.lines() == []
    add(log, "one\n\n  \nt")
    assert tail.lines() == ["one"]  # of a line that was begun before, what came after
    add(log, "wo\r\nthree\n")
    assert tail.lines() == ["two", "three"]
    assert tail.lines() == []


def test_a_rotated_log_is_read_to_its_end_and_the_new_one_from_its_beginning(log: Path, tail: Tail) -> None:
    add(log, "old\nlast of old")
    log.rename(log.with_suffix(".1"))
    assert tail.lines() == ["old"]
    assert tail.lines() == []  # nothing has come in its place yet
    add(log.with_suffix(".1"), "; more\n")
    add(log, "new\n")
    assert tail.lines() == ["last of old; more"]
    add(log.with_suffix(".1"), "cut off")
    assert [tail.lines(), tail.lines(), tail.lines(), tail.lines()] == [[], ["cut off"], ["new"], []]


def test_a_log_that_was_cut_is_read_from_its_beginning(log: Path, tail: Tail) -> None:
    add(log, "a line that is long\n")
    assert tail.lines() == ["a line that is long"]
    os.truncate(log, 0)
    add(log, "short\n")
    assert [tail.lines(), tail.lines()] == [[], ["short"]]


def test_a_log_that_comes_later_is_read_from_its_beginning(log: Path) -> None:
    folder = log.with_name("later")
    with closing(Tail(folder / "node.log")) as tail:
        assert tail.lines() == []
        folder.mkdir()
        add(folder / "node.log", "first\n")
        assert tail.lines() == ["first"]


def test_what_cannot_be_read_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        Tail(tmp_path)


def test_a_line_without_end_is_told_once_and_does_not_fill_memory(log: Path, tail: Tail) -> None:
    add(log, "x" * (MAX_LINE_BYTES + 5 * READ_BYTES) + "\nafter\n")
    found = [line for _ in range(9) for line in tail.lines()]
    assert [found[0][:3], *found[1:]] == ["xxx", "after"]
    assert MAX_LINE_BYTES < len(found[0]) <= MAX_LINE_BYTES + READ_BYTES


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=9)), st.integers(1, 7))
def test_lines_do_not_depend_on_how_they_come(lines: list[str], cut: int) -> None:
    written = "".join(f"{line}\n" for line in lines).encode()
    source, sink = os.pipe()
    with os.fdopen(source, "rb"), os.fdopen(sink, "wb", buffering=0) as file:
        pipe = Pipe(source)
        found: list[str] = []
        for at in range(0, len(written), cut):
            file.write(written[at : at + cut])
            found += pipe.lines()
        assert pipe.lines() == []  # it does not wait
    assert found == [line for line in lines if line.strip()]


def test_what_a_pipe_ends_with_is_a_line() -> None:
    source, sink = os.pipe()
    with os.fdopen(source, "rb"):
        with os.fdopen(sink, "wb") as file:
            file.write(b"one\ntwo")
        pipe = Pipe(source)
        assert [pipe.lines(), pipe.lines(), pipe.lines()] == [["one"], ["two"], []]


def step(job: str, rank: int, number: int, *, ended: bool | None = None) -> RankStep:
    return RankStep(job=job, rank=rank, step=number, ended=ended)


def test_the_last_step_of_each_rank_is_told_and_its_end_until_that_was_heard(log: Path) -> None:
    odd: list[str] = []
    add(log, "j 0 99\n")
    with closing(Tail(log)) as tail:
        steps = StepFile(tail, complain=odd.append)
        add(log, "j 0 4\nj 1 4\nj 0 5\nj 0\nj one 3\nj/k 0 3\nj 0 -3\nj 1 99999999999999999999\n")
        assert steps.steps() == [step("j", 1, 4), step("j", 0, 5)]
        assert odd == ["j 0"]
        steps.acknowledge(steps.steps())
        add(log, "j 0 ended\n")
        assert steps.steps() == [step("j", 1, 4), step("j", 0, 5, ended=True)]
        told = steps.steps()
        add(log, "j 0 1\n")  # begun anew before its end was heard
        assert steps.steps() == [step("j", 1, 4), step("j", 0, 1)]
        steps.acknowledge(told)
        assert step("j", 0, 1) in steps.steps()
        add(log, "j 0 ended\n")
        steps.acknowledge(steps.steps())
        assert steps.steps() == [step("j", 1, 4)]


def test_of_more_ranks_than_a_beat_holds_those_are_told_that_were_heard_of_last(log: Path) -> None:
    with closing(Tail(log)) as tail:
        steps = StepFile(tail)
        add(log, "".join(f"j {rank} 1\n" for rank in range(MAX_RANKS + 1)) + "j 1 2\n")
        assert {each.rank for each in steps.steps()} == set(range(1, MAX_RANKS + 1))
