"""A segment of an episode is not played again where the record holds the very same, and is wherever it does not."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from conformance import (
    conforming_adjuster,
    conforming_collectives,
    conforming_recovery,
    conforming_scheduler,
    conforming_shards,
)
from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.resilience import adjustment_gain as res_adjusting
from kuayu_conformance.checks.resilience import collectives as res_collectives
from kuayu_conformance.checks.resilience import failover, shards
from kuayu_conformance.checks.scheduling import latency as sch_latency
from kuayu_conformance.checks.scheduling import stability as sch_stability
from kuayu_conformance.checks.scheduling.cells import plan
from kuayu_conformance.checks.scheduling.placement_requests import Scale
from kuayu_conformance.episode import Episode, Known, Request, Said, SegmentStore, Settings, describe
from kuayu_conformance.run.replay import ReplaySource
from kuayu_conformance.transcript import Event, TranscriptError, pack, request_digest

NAME = "res_adjusting"


class Recorder:
    """Hands questions on and writes down what comes back, as a live run does."""

    def __init__(self, exchange: Any) -> None:
        self._exchange = exchange
        self.events: list[dict[str, Any]] = []

    def exchange(self, request: Request) -> Answer:
        """As the other source answers."""
        answer: Answer = self._exchange(request)
        number = len(self.events)
        self.events.append(
            {
                "kind": "exchange",
                "number": number,
                "method": request.method,
                "path": request.path,
                "tenant": request.tenant,
                "request": request_digest(request.method, request.path, request.headers, request.body),
                "status": answer.status,
                "headers": dict(answer.headers),
                **pack(answer.body),
                "failure": answer.failure,
                "started": answer.started,
                "seconds": answer.seconds,
            }
        )
        return Answer(number, describe(request), answer.status, answer.headers, answer.body, answer.failure)


def doubled(request: Request) -> Answer:
    """Twice the number that was sent."""
    return Answer(0, "", 200, {"content-type": "application/json"}, json.dumps(2 * json.loads(request.body)).encode())


class Sums:
    """Asks three numbers and sums the answers; it counts how often it really does."""

    def __init__(self) -> None:
        self.played = 0

    def of(self, episode: Episode, *, keep: bool = True, times: int = 1) -> tuple[int, float]:
        """The sum, and a random number that is drawn behind it."""
        found = episode.again("sum")
        if found is None:
            self.played += 1
            with episode.segment("sum") as segment:
                drawn = [times * episode.random.randrange(100) for _ in range(3)]
                found = sum(episode.ask("POST", "/v1/double", number).json for number in drawn)
                if keep:
                    segment.keep(found)
        return found, episode.random.random()


def episode(source: Any, run: str, name: str = NAME) -> Episode:
    """An episode of a run."""
    return Episode(
        name, Settings("stories", run, full=False, features=frozenset(), limits={}, other_tenant=False), source
    )


def recorded(sums: Sums, run: str, **how: Any) -> tuple[tuple[int, float], list[dict[str, Any]], Episode]:
    """What came of a live episode, its events, and the episode."""
    recorder = Recorder(doubled)
    live = episode(recorder, run)
    return sums.of(live, **how), recorder.events, live


def replayed(events: Sequence[Event], run: str, name: str = NAME) -> Episode:
    """The same episode from its record."""
    return episode(ReplaySource(name, events), run, name)


def test_what_came_of_a_segment_comes_of_its_record_without_playing_it_and_all_else_goes_on_as_before() -> None:
    sums, run = Sums(), uuid4().hex
    found, events, live = recorded(sums, run)
    again = replayed(events, run)
    assert sums.of(again) == found
    assert sums.played == 1
    assert again.exchanges == live.exchanges
    with pytest.raises(TranscriptError, match="ends before"):
        again.ask("GET", "/v1/health")


@pytest.mark.parametrize(
    "change",
    [
        {"body": "7"},
        {"status": 201},
        {"headers": {"content-type": "application/json", "etag": "x"}},
        {"failure": "gone"},
    ],
    ids=lambda one: next(iter(one)),
)
def test_where_one_answer_is_another_it_is_played(change: Mapping[str, Any]) -> None:
    sums, run = Sums(), uuid4().hex
    found, events, _ = recorded(sums, run)
    events[1] |= change
    assert (sums.of(replayed(events, run)) != found) == ("body" in change)
    assert sums.played == 2


def test_questions_that_do_not_fit_the_record_are_still_found_out() -> None:
    sums, run = Sums(), uuid4().hex
    _, events, _ = recorded(sums, run)
    events[2]["request"] = "sha256:0"
    with pytest.raises(TranscriptError, match="is not the one that was recorded"):
        sums.of(replayed(events, run))


def test_a_record_that_is_cut_short_is_still_found_out() -> None:
    sums, run = Sums(), uuid4().hex
    _, events, _ = recorded(sums, run)
    with pytest.raises(TranscriptError, match="ends before"):
        sums.of(replayed(events[:2], run))


def test_other_runs_and_what_was_not_to_be_kept_are_played() -> None:
    sums, run = Sums(), uuid4().hex
    found, events, _ = recorded(sums, run, keep=False)
    assert sums.of(replayed(events, run)) == found
    assert sums.played == 2
    _, events, _ = recorded(sums, run)
    sums.of(replayed(events, uuid4().hex))
    assert sums.played == 4


def test_a_live_episode_is_always_played() -> None:
    sums, run = Sums(), uuid4().hex
    assert recorded(sums, run)[0] == recorded(sums, run)[0]
    assert sums.played == 2


def test_the_oldest_segments_make_room_for_new_ones() -> None:
    def segment(exchanges: int) -> Known:
        return Known((Said(Request("GET", "/", {}, b"", "own"), "", "", ""),) * exchanges, (), (), 1)

    segments = SegmentStore(most=5)
    for key, exchanges in (("a", 2), ("b", 2), ("c", 3)):
        segments.put(key, segment(exchanges))
    assert [segments.get(key) is not None for key in "abc"] == [False, True, True]
    segments.put("b", segment(1))
    segments.put("d", segment(1))
    assert [segments.get(key) is not None for key in "bcd"] == [True, True, True]


class Unrepeated:
    """The record, read by one who has not seen it happen."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._record = ReplaySource("record", events)

    def exchange(self, request: Request) -> Answer:
        """What was recorded."""
        return self._record.exchange(request)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few windows, and short ones."""
    usual = plan(full=False)
    monkeypatch.setattr(res_adjusting, "QUICK", 2)
    monkeypatch.setattr(res_collectives, "QUICK", res_collectives.Extent(1, 5))
    monkeypatch.setattr(failover, "QUICK", failover.Extent(1, beside=False))
    monkeypatch.setattr(shards, "QUICK", shards.Extent(60, {shards.MILD: 2}, beside=False))
    monkeypatch.setattr(sch_latency, "DECISIONS_QUICK", 3)
    monkeypatch.setattr(sch_latency, "JUDGED", Scale(domains=2, nodes=4, running=10, waiting=10))
    monkeypatch.setattr(sch_stability, "plan", lambda **_: replace(usual, swings=usual.swings[:1]))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("check", "served"),
    [
        (res_adjusting.CHECK, conforming_adjuster.source),
        (res_collectives.CHECK, conforming_collectives.source),
        (failover.CHECK, conforming_recovery.source),
        (shards.CHECK, conforming_shards.source),
        (sch_latency.CHECK, conforming_scheduler.source),
        (sch_stability.CHECK, conforming_scheduler.source),
    ],
    ids=lambda one: one.name if isinstance(one, Check) else "",
)
def test_what_is_judged_is_the_same_whether_the_record_is_played_or_was_just_seen(
    check: Check[Any], served: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, recorder = uuid4().hex, Recorder(served().exchange)
    check.observe(episode(recorder, run, check.name))
    played = check.observe(episode(Unrepeated(recorder.events), run, check.name))
    record = ReplaySource(check.name, recorder.events)
    monkeypatch.setattr(record, "exchange", None)  # nothing is asked again
    seen = check.observe(episode(record, run, check.name))
    assert repr(list(check.judge(seen))) == repr(list(check.judge(played)))


@pytest.mark.usefixtures("short")
def test_who_adjusts_well_is_judged_by_what_stands_in_the_record() -> None:
    run, recorder = uuid4().hex, Recorder(conforming_adjuster.source().exchange)
    res_adjusting.observe(episode(recorder, run))
    told = next(event for event in recorder.events if json.loads(event["body"])["triggers"])
    told["body"] = json.dumps({**json.loads(told["body"]), "triggers": []})
    assert res_adjusting.observe(replayed(recorder.events, run)).untimely.count == 1
