"""What follows from its key alone is found once, and not more of it is remembered than there is room for."""

from kuayu_conformance.caching import Memory


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
