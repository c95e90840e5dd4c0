from pathlib import Path

import pytest

from kuayu.engine.runs.line_archive import LineArchive
from kuayu.engine.runs.protocol import MAX_LINE_CHARACTERS
from kuayu.engine.runs.store import RunStore
from kuayu.engine.runs.supervisor import LOG_FILE


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path)


def texts(archive: LineArchive, after: int = 0, limit: int = 1000) -> list[str]:
    return [line.text for line in archive.read(after, limit)]


def test_lines_keep_their_numbers_whoever_adds_more(store: RunStore) -> None:
    """More than an index entry of the log holds, by two archives of the same run."""
    first, second = LineArchive(store, "job.1"), LineArchive(store, "job.1")
    with first.lock():
        first.append([(0, 1.5, f"line {number}") for number in range(1, 301)], {"pod": [1, 1]})
    with second.lock():
        second.append([(3, 2.5, "x" * 5000)], {"other": 7})
    assert [line.number for line in first.read(298, 10)] == [299, 300, 301]
    assert first.read(299, 1)[0].text == "line 300"
    last = first.read(300, 10)[0]
    assert (last.rank, last.read_at, last.text) == (3, 2.5, "x" * MAX_LINE_CHARACTERS)
    assert first.marks() == {"pod": [1, 1], "other": 7}
    assert first.count() == 301


def test_what_a_writer_left_that_was_killed_is_neither_shown_nor_kept(store: RunStore, tmp_path: Path) -> None:
    """It had written lines, and not yet where to go on."""
    archive = LineArchive(store, "job.1")
    with archive.lock():
        archive.append([(0, 1.0, "one")], {})
        with (tmp_path / "runs" / "job.1" / LOG_FILE).open("a") as log:
            log.write('[0,2.0,"two"]\n[0,3.0,"thr')
        assert texts(archive) == ["one"]
        archive.append([(0, 2.0, "zwei")], {})
    assert texts(archive) == ["one", "zwei"]


def test_one_at_a_time_adds_lines_and_whoever_need_not_wait_goes_on(store: RunStore) -> None:
    first, second = LineArchive(store, "job.1"), LineArchive(store, "job.1")
    with first.lock() as ours:
        assert ours
        with second.lock(wait=False) as theirs:
            assert not theirs
    with second.lock(wait=False) as theirs:
        assert theirs


def test_an_archive_that_was_removed_begins_anew(store: RunStore) -> None:
    archive = LineArchive(store, "job.1")
    with archive.lock():
        archive.append([(0, 1.0, "one")], {"pod": 1})
    archive.remove()
    assert (texts(archive), archive.marks(), archive.count()) == ([], {}, 0)
