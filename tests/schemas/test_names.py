"""Names in the code: retired words do not come back, and what is left of them only shrinks (``.ci/house --lower``)."""

import tomllib
from collections import Counter
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from kuayu_schemas import schema

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
    allowed = tomllib.loads(house.WORDS.read_text("utf-8")).get("allowances", {})
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


def test_no_class_is_newly_called_by_a_participle(house: Any) -> None:
    """Those that are there are listed in .ci/retired-words.toml, and only get fewer."""
    listed = tomllib.loads(house.WORDS.read_text("utf-8"))["participles"]
    classes = house.count_participles(house.held(house.sources()))
    new = {part: Counter(names) - Counter(listed.get(part, ())) for part, names in classes.items()}
    assert not {part: sorted(names) for part, names in new.items() if names}, "a class is a thing: give it a noun"
    gone = {part: Counter(names) - Counter(classes.get(part, ())) for part, names in listed.items()}
    assert not {part: sorted(names) for part, names in gone.items() if names}, ".ci/house --lower"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class _Sized: pass", ["Sized"]),
        ("class BatchDeferred(Exception): pass", ["BatchDeferred"]),
        ("class LinkSpeed: pass", []),
        ("class DeferredBatch: pass", []),
    ],
)
def test_a_participle_is_a_last_word_in_ed(house: Any, text: str, names: list[str]) -> None:
    assert list(house.participles(house.ast.parse(text))) == names


def test_a_member_or_parameter_may_be_called_by_the_contract_and_nothing_else_may(house: Any) -> None:
    table = tomllib.loads(house.WORDS.read_text("utf-8")) | {"contract": {"kuayu.rows": {"at": "member of Row"}}}
    text = "at = 0\nclass Row:\n    at: str\n    held: str\ndef rows(at): held = [at for at in rows]"
    assert list(house.retired("kuayu.rows", house.ast.parse(text), table)) == ["at", "held", "held", "at"]
    assert list(house.retired("kuayu.columns", house.ast.parse(text), table)).count("at") == 4


def test_words_of_the_contract_are_in_the_published_schema_and_still_used(house: Any) -> None:
    classes = schema.document()["$defs"].values()
    published = {name for each in classes for name in (*each.get("properties", ()), *each.get("enum", ()))}
    texts = house.sources()
    for module, words in tomllib.loads(house.WORDS.read_text("utf-8"))["contract"].items():
        assert words.keys() <= published
        public = {node.arg if hasattr(node, "arg") else node.id for node in house.members(house.parsed(texts[module]))}
        assert words.keys() <= public, f"{module} does not use them any more"


def test_english_pages_and_clauses_have_no_retired_words(house: Any) -> None:
    left = tomllib.loads(house.WORDS.read_text("utf-8"))["text_left"]
    assert house.text_words() == left, "say what .ci/retired-words.toml gives instead"


def test_a_function_is_dead_where_nothing_but_its_definition_names_it(house: Any) -> None:
    texts = {
        "kuayu.one": "def called_by_two(): pass\ndef nobody_names_this_one(): return 1\n",
        "kuayu.two": "from kuayu.one import called_by_two\nTABLE = 'kuayu.two:in_a_text'\ndef in_a_text(): pass",
    }
    assert house.dead(texts) == {"kuayu.one": ["nobody_names_this_one"], "kuayu.two": []}


def test_a_name_for_documents_of_anything_is_counted_and_a_typed_one_is_not(house: Any) -> None:
    text = "Json = dict[str, Any]\nPlain: TypeAlias = Mapping[str, Any]\nRows = list[Any]\nSizes = dict[str, int]"
    assert house.documents(house.ast.parse(text)) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("for each in rows: pass", ["each"]),
        ("[its for its in rows]", ["its"]),
        ("def f(told): return told", ["told"]),
        ("class Rows:\n    async def _held(self): pass", ["held"]),
        ("def at(instant): pass", []),
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
