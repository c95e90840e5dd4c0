"""What is unusual: of lines, of sessions, and as the reader tells it."""

import math
import random

import pytest

from kuayu.resilience.logs.reader import MAX_UNUSUAL, MIN_LEARNED, LogReader, Rarity, Sessions, is_calm
from kuayu.resilience.logs.recogniser import Confidence, Follows, Severity

WORK = [(1, 2, 2, 3), (1, 2, 3), (1, 2, 2, 2, 3)]


def learned(count: int = 2 * MIN_LEARNED, faulty: int = 0) -> Sessions:
    chance, usual = random.Random(3), Sessions()
    usual.learn([*chance.choices(WORK, (6, 3, 1), k=count), *[(1, 9)] * faulty])
    return usual


def test_surprise_of_a_session_worked_by_hand() -> None:
    usual = Sessions()
    usual.learn([(1,), (1,), (1, 1)])
    # Of three sessions two have item 1 once; the steps into it and out of it are in all three.
    assert usual.surprise((1,)) == pytest.approx(-math.log2(2.5 / 4) - math.log2(3.5 / 4))
    # Item 5 was never there, so nought of it was in all; the steps (None, 5) and (5, None) were never seen.
    assert usual.surprise((5,)) == pytest.approx(-2 * math.log2(0.5 / 4) - 1 * math.log2(0.5 / 4))


def test_a_usual_session_is_not_told_and_a_strange_one_is() -> None:
    usual = learned()
    assert all(usual.surprise(session) < usual.limit for session in WORK)
    assert usual.surprise((1, 2, 4)) > usual.limit  # a template never seen
    assert usual.surprise((1,) + (2,) * 9 + (3,)) > usual.limit  # far too often
    assert usual.surprise((3, 2, 1)) > usual.limit  # all there, the order turned round


def test_a_few_faulty_sessions_among_what_was_learned_do_not_hide_their_like() -> None:
    usual = learned(faulty=MIN_LEARNED // 20)
    assert usual.surprise((1, 9)) > usual.limit
    assert all(usual.surprise(session) < usual.limit for session in WORK)


def test_nothing_is_called_unusual_before_enough_was_learned() -> None:
    assert learned(MIN_LEARNED - 1).limit == math.inf
    assert not Rarity.of({1: (("a",), MIN_LEARNED - 1)}).judges
    assert Rarity.of({1: (("a",), MIN_LEARNED)}).judges
    # Every fifth line new: whatever comes next, it is no surprise that it is new.
    assert not Rarity.of({0: (("a",), 800), **dict.fromkeys(range(1, 201), (("b",), 1))}).judges


def test_a_line_with_new_words_is_more_surprising_than_a_new_order_of_old_ones() -> None:
    rarity = Rarity.of({1: (("step", "done"), 900), 2: (("data", "loaded"), 90), 3: (("step", "late"), 10)})
    old, strange = rarity.of_line(7, ("step", "loaded")), rarity.of_line(8, ("meltdown", "imminent"))
    assert rarity.of_line(1, ("step", "done")) < rarity.of_line(3, ("step", "late")) < rarity.limit
    assert old < strange
    assert strange > rarity.limit


def test_a_line_that_calls_itself_information_is_calm() -> None:
    assert is_calm(("[INFO]", "all", "is", "well"))
    assert is_calm(("app", "DEBUG:", "x"))
    assert not is_calm(("ERROR", "no", "information"))


def usual_log(count: int) -> bytes:
    chance = random.Random(9)
    forms = ("python[7]: step {} done loss {}", "python[7]: batch {} loaded in {} s", "sshd[9]: session {} opened {}")
    return "".join(f"{chance.choice(forms).format(n, chance.random())}\n" for n in range(count)).encode()


STRANGE = b"python[7]: CRITICAL heartbeat vanished while reticulating splines 77\n"


def test_a_strange_line_is_told_once_and_only_watched() -> None:
    reader = LogReader()
    assert reader.take(usual_log(3 * MIN_LEARNED)) == []
    found = reader.take(usual_log(100) + 5 * STRANGE + usual_log(100))
    assert [each.code for each in found] == ["unusual.line"]
    (told,) = found
    assert (told.follows, told.severity, told.confidence) == (Follows.WATCH, Severity.INFO, Confidence.POSSIBLE)
    assert told.evidence.line == 3 * MIN_LEARNED + 101
    assert "reticulating" in told.evidence.text
    assert reader.take(STRANGE) == []


def test_a_strange_line_of_information_is_not_told_and_a_known_fault_is_told_as_itself() -> None:
    reader = LogReader()
    reader.take(usual_log(3 * MIN_LEARNED))
    assert reader.take(STRANGE.replace(b"CRITICAL", b"INFO")) == []
    found = reader.take(b"kernel: NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n")
    assert [each.code for each in found] == ["xid.79"]
    assert found[0].evidence.template == "NVRM: Xid (PCI:<num>): <num>, GPU has fallen off the bus."


def test_a_flood_of_strange_lines_is_told_in_part_and_counted() -> None:
    reader = LogReader()
    reader.take(usual_log(3 * MIN_LEARNED))
    chance = random.Random(4)
    flood = "".join("".join(chance.choices("abcdefgh", k=9)) + " fell apart\n" for _ in range(60))
    found = reader.take(flood.encode())
    assert len(found) == MAX_UNUSUAL
    assert reader.untold == 60 - MAX_UNUSUAL


def test_without_a_past_nothing_is_unusual() -> None:
    assert LogReader().take(STRANGE) == []
    assert LogReader(unusual=False).take(usual_log(3 * MIN_LEARNED) + STRANGE) == []
