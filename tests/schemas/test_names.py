"""Names in the code: retired words do not come back, and what is left of them only shrinks (``.ci/house --lower``)."""

import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def house() -> Any:
    loader = SourceFileLoader("house", str(ROOT / ".ci" / "house"))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_retired_words_are_as_many_as_is_allowed_in_each_part(house: Any) -> None:
    allowed = tomllib.loads(house.WORDS.read_text("utf-8"))["allowances"]
    counts = {part: dict(words) for part, words in house.count_retired(house.held(house.sources())).items() if words}
    more = {
        f"{word} in {part}: {n}, {allowed.get(part, {}).get(word, 0)} allowed"
        for part, words in counts.items()
        for word, n in words.items()
        if n > allowed.get(part, {}).get(word, 0)
    }
    assert not more, "say what .ci/retired-words.toml gives instead"
    fewer = [
        f"{word} in {part}: {counts.get(part, {}).get(word, 0)}, {n} allowed"
        for part, words in allowed.items()
        for word, n in words.items()
        if counts.get(part, {}).get(word, 0) < n
    ]
    assert not fewer, ".ci/house --lower"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("for each in rows: pass", ["each"]),
        ("[its for its in rows]", ["its"]),
        ("def f(told): return told", ["told"]),
        ("class _Told: pass", ["Told"]),
        ("MOST = 3", ["MOST"]),
        ("_LEAST: int = 3", ["LEAST"]),
        ("row.each = row.at('here')", []),
        ("MOST_ROWS = rows(each=3)", []),
        ("told_rows = [row for row in rows]", []),
    ],
)
def test_a_retired_word_is_found_where_it_names_something(house: Any, text: str, words: list[str]) -> None:
    table = tomllib.loads(house.WORDS.read_text("utf-8"))
    assert list(house.retired("kuayu.rows", house.ast.parse(text), table)) == words


def test_a_module_is_a_name_too(house: Any) -> None:
    table = tomllib.loads(house.WORDS.read_text("utf-8"))
    assert list(house.retired("kuayu.rows.judging", house.ast.parse(""), table)) == ["judging"]
