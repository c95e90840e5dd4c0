"""Odd batches of heartbeats and log lines: RES-021."""

from collections.abc import Iterator, Mapping
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.fixtures import GRAVE, beat, line
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, answered, holds

NAMED = "d0"
"""Node that odd batches are about. It beats once; a line amid bad ones tells that it fails."""

_MIXED, _ALL_BAD, _GOOD = "some bad", "all bad", "good"
_EXPECTED: Mapping[str, tuple[int, tuple[tuple[int, str], ...]]] = {
    _GOOD: (1, ()),
    _MIXED: (2, ((0, "unknown-reference"), (2, "invalid-body"), (4, "invalid-body"))),
    _ALL_BAD: (0, ((0, "invalid-body"), (1, "unknown-reference"), (2, "invalid-body"))),
}
"""How many items are taken, and the index and problem of the others."""


def odd_batches(episode: Episode, subject: str) -> dict[str, Answer]:
    """Send them; the answers by the operation's name and what is odd."""
    now, absent = instant(episode.now()), episode.name_of("absent")
    beats: dict[str, Any] = {
        _GOOD: {"beats": [beat(subject, 1, now)]},
        _MIXED: {
            "beats": [
                beat(absent, 1, now),
                beat(subject, 2, now),
                {"node": subject, "number": "3", "sent_at": now},
                beat(subject, 3, now),
                {"node": subject, "number": 4},
            ]
        },
        _ALL_BAD: {"beats": [{}, beat(absent, 1, now), "beat"]},
        "none": {"beats": []},
        "no batch": {"lines": [line(subject, now, "all is well")]},
    }
    lines: dict[str, Any] = {
        _GOOD: {"lines": [line(subject, now, "all is well")]},
        _MIXED: {
            "lines": [
                line(absent, now, GRAVE),
                line(subject, now, "all is well"),
                {"node": subject, "logged_at": "yesterday", "text": GRAVE},
                line(subject, now, GRAVE),
                {"node": subject, "logged_at": now},
            ]
        },
        _ALL_BAD: {"lines": [{}, line(absent, now, GRAVE), 7]},
        "none": {"lines": []},
        "no batch": {"beats": [beat(subject, 5, now)]},
    }
    found = {f"heartbeats, {what}": episode.ask("POST", "/v1/heartbeats", body) for what, body in beats.items()}
    return found | {f"log lines, {what}": episode.ask("POST", "/v1/log-lines", body) for what, body in lines.items()}


def judge_batches(batches: Mapping[str, Answer], *, failing: bool) -> Iterator[Finding]:
    """What was taken and what was named; ``failing`` says whether the node was told to fail."""
    for named, answer in batches.items():
        what = named.partition(", ")[2]
        if what not in _EXPECTED:
            yield answered("RES-021", answer, 422, f"{named}: it is refused as a whole", problem="invalid-body")
            continue
        yield answered("RES-021", answer, 200, f"{named}: every good item is taken")
        accepted, rejected = _EXPECTED[what]
        found = (answer.at("accepted"), tuple(_rejections(answer)))
        expected = f"{named}: {accepted} accepted, and rejected {_told(rejected)}"
        yield holds("RES-021", found == (accepted, rejected), expected, f"{found[0]} and {_told(found[1])}", answer)
    expected = "a good line amid bad ones is taken: what it tells of its node is told"
    shown = "told" if failing else "not told"
    yield holds("RES-021", failing, expected, shown, batches[f"log lines, {_MIXED}"])


def _rejections(answer: Answer) -> Iterator[tuple[int, str]]:
    for each in answer.items("rejected"):
        row = each if isinstance(each, dict) else {}
        problem = row.get("problem")
        kind = problem.get("type") if isinstance(problem, dict) else None
        yield row.get("index", -1), str(kind).removeprefix("urn:kuayu:problem:")


def _told(rejected: tuple[tuple[int, str], ...]) -> str:
    return ", ".join(f"{index} with {problem}" for index, problem in rejected) or "none"
