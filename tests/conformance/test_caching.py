"""What was computed once is found again, in the process or in a folder, unless what it follows from has changed."""

from pathlib import Path

import pytest

from kuayu_conformance import caching, statistics
from kuayu_conformance.caching import Cache, Memory, folder


class Lengths:
    """Lengths of words, found when they are not remembered."""

    def __init__(self, most: int) -> None:
        self._memory: Memory[int] = Memory(most)
        self.found: list[str] = []

    def of(self, word: str) -> int:
        """That of a word."""

        def found() -> int:
            self.found.append(word)
            return len(word)

        return self._memory.of(word, found)


def test_a_value_is_found_once_and_one_of_another_key_for_itself() -> None:
    lengths = Lengths(2)
    assert [lengths.of(word) for word in ("one", "three", "one")] == [3, 5, 3]
    assert lengths.found == ["one", "three"]


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    lengths = Lengths(2)
    for word in ("a", "b", "a", "c", "a", "b"):
        lengths.of(word)
    assert lengths.found == ["a", "b", "c", "b"]


def test_a_value_is_found_by_its_key_and_by_no_other(tmp_path: Path) -> None:
    Cache("kind", [statistics], tmp_path).put(["a", 1], {"x": [0.1, 2]})
    again = Cache("kind", [statistics], tmp_path)
    assert again.get(["a", 1]) == {"x": [0.1, 2]}
    assert again.get(["a", 2]) is None
    assert Cache("other", [statistics], tmp_path).get(["a", 1]) is None


def test_other_code_finds_nothing(tmp_path: Path) -> None:
    from kuayu_conformance import rendering

    Cache("kind", [statistics], tmp_path).put(["a"], 1)
    assert Cache("kind", [rendering], tmp_path).get(["a"]) is None


def test_a_file_that_is_cut_short_is_as_none(tmp_path: Path) -> None:
    cache = Cache("kind", [statistics], tmp_path)
    cache.put(["a"], 1)
    for file in tmp_path.rglob("*.json"):
        file.write_text('{"key": ["a"], "val', "utf-8")
    assert cache.get(["a"]) is None


def test_where_nothing_can_be_written_everything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    cache = Cache("kind", [statistics], tmp_path / "file")
    cache.put(["a"], 1)
    assert cache.get(["a"]) is None


def test_the_folder_is_the_one_that_is_named_or_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(caching.FOLDER, str(tmp_path))
    assert folder() == tmp_path
    monkeypatch.setenv(caching.FOLDER, "")
    assert folder() is None
    cache = Cache("kind", [statistics])
    cache.put(["a"], 1)
    assert cache.get(["a"]) is None
