"""Templates: what varies is masked, what is kept is bounded, and a library brings it back."""

import json
import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.resilience.logs.headers import message
from kuayu.resilience.logs.reader import (
    MAX_LINE_BYTES,
    MAX_NEW,
    MAX_TOKENS,
    NOT_MINED,
    LibraryError,
    Miner,
    coarse,
    decode_library,
    encode_library,
    masked,
    plain,
)
from kuayu_training.resilience.logs import accuracy


def mined(*lines: str, miner: Miner | None = None) -> list[int]:
    return (miner or Miner()).take("".join(f"{line}\n" for line in lines).encode())


def shown(line: str) -> str:
    return masked(message(plain(coarse(line.encode()))))


def strange(chance: random.Random, words: int = 8) -> str:
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=8)) for _ in range(words))


@pytest.mark.parametrize(
    ("line", "template"),
    [
        ("blk_-1608999687919862906 of size 91178", "blk_<num> of size <num>"),
        ("from 10.250.19.102:54106 at -3.5e", "from <num> at <num>e"),
        ("addr 0xDEADbeef1 id 550e8400-e29b-41d4-a716-446655440000", "addr <hex> id <uuid>"),
        ("Nov 22 09:58:33 gpu001 kernel: [ 123.456] usb 1-2: new", "usb <num>: new"),
        ("2026-11-22T09:58:33.123456Z loss 1", "loss <num>"),
        ("2026-11-22 09:58:33,123 INFO done", "INFO done"),
        ("I1122 09:58:33.123456   77 kubelet.go:12] Sync", "Sync"),
        ("a\x00b\tc\r", "a b c"),
    ],
)
def test_numbers_addresses_and_headers_are_masked(line: str, template: str) -> None:
    assert shown(line) == template


def test_lines_that_differ_in_a_word_become_one_template_with_a_gap() -> None:
    miner = Miner()
    numbers = mined(*(f"job {name} started on node {n}" for n, name in enumerate(("ada", "bob", "cyd"))), miner=miner)
    assert len(set(numbers)) == 1
    (template,) = miner.templates()
    assert (template.text, template.seen) == ("job <*> started on node <num>", 3)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["up 1", "up 22", "down at 3.5", "lost peer x", "lost peer y", ""]), max_size=40))
def test_the_cache_changes_nothing(lines: list[str]) -> None:
    together = mined(*lines)
    miner = Miner()
    apart = [number for line in lines for number in mined(line, miner=miner)]
    assert apart == together


def test_a_flood_of_different_lines_takes_no_memory_without_bound_and_drops_nothing_in_use() -> None:
    chance, miner, busy = random.Random(5), Miner(most=64), "checkpoint 12 written to store 3"
    (number,) = mined(busy, miner=miner)
    for _ in range(40):
        found = mined(*(strange(chance) for _ in range(100)), busy, miner=miner)
        assert len(found) == 101
        assert found[-1] == number
        assert len(miner.templates()) <= 2 * 64 + MAX_NEW
    assert miner.forgotten > 3000
    assert miner.template(number) is not None


def test_too_many_new_templates_of_one_block_leave_lines_unmined_and_say_so() -> None:
    chance, miner = random.Random(6), Miner()
    known = "checkpoint 12 written"
    mined(known, miner=miner)
    found = mined(*(strange(chance) for _ in range(3 * MAX_NEW)), known, miner=miner)
    assert found.count(NOT_MINED) == miner.unmined == 2 * MAX_NEW
    assert found[-1] != NOT_MINED
    assert miner.lines + miner.unmined == 3 * MAX_NEW + 2


def test_a_line_of_a_megabyte_makes_a_template_of_its_beginning() -> None:
    miner = Miner()
    mined("word " * 200_000, "w" * 1_000_000, miner=miner)
    assert sorted(len(each.words) for each in miner.templates()) == [1, MAX_TOKENS]
    assert max(len(each.text) for each in miner.templates()) <= MAX_LINE_BYTES


LOG = [f"{verb} shard {n} of {name}" for n in range(30) for verb in ("read", "wrote") for name in ("a", "b", "c7")]


def test_a_library_brings_all_templates_back() -> None:
    first = Miner()
    before = mined(*LOG, "", miner=first)
    second = decode_library(encode_library(first))
    assert second.templates() == first.templates()
    assert mined(*LOG, "", miner=second) == before
    assert second.lines == 2 * first.lines
    new = mined("something that was never there", miner=second)
    assert new[0] > max(before)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "version 1"),
        ('{"version": 2, "templates": []}', "version 1"),
        ('{"version": 1, "templates": [3]}', "no object"),
        ('{"version": 1, "templates": [{"number": -1, "words": ["a"], "seen": 1, "last": 1}]}', "not negative"),
        ('{"version": 1, "templates": [{"number": true, "words": ["a"], "seen": 1, "last": 1}]}', "whole"),
        ('{"version": 1, "templates": [{"number": 1, "words": [4], "seen": 1, "last": 1}]}', "characters"),
        ('{"version": 1, "templates": [{"number": 1, "words": "ab", "seen": 1, "last": 1}]}', "words"),
    ],
)
def test_what_is_no_library_is_refused_with_its_cause(text: str, cause: str) -> None:
    with pytest.raises(LibraryError, match=cause):
        decode_library(text)


def test_two_templates_of_one_number_and_too_many_are_refused() -> None:
    row = {"number": 1, "words": ["a"], "seen": 1, "last": 1}
    with pytest.raises(LibraryError, match="two templates have the number 1"):
        decode_library(json.dumps({"version": 1, "templates": [row, row]}))
    with pytest.raises(LibraryError, match="more than 4"):
        decode_library(json.dumps({"version": 1, "templates": [row | {"number": n} for n in range(1, 7)]}), most=2)


def test_grouping_accuracy_worked_by_hand() -> None:
    # Lines 0 and 1 are grouped as they should be; of the true group {2, 3, 4} one was split off.
    assert accuracy([7, 7, 8, 8, 9], ["a", "a", "b", "b", "b"]) == pytest.approx(2 / 5)
    assert accuracy([1, 2, 3], ["x", "y", "z"]) == 1.0
    assert accuracy([1, 1], ["x", "y"]) == 0.0
