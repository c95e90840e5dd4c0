"""What stands of episodes that did not end, and what they may have left at the target."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.episode import Episode
from kuayu_conformance.run.plan import Plan
from kuayu_conformance.run.replay import ReplaySource
from kuayu_conformance.run.resumed_source import alike
from kuayu_conformance.segments import Said
from kuayu_conformance.transcript import Event, Request


def standing(check: Check[Any], events: Sequence[Event]) -> int:
    """How many events stand of an episode that did not end.

    Of one that is taken up in the middle these are all, but the last where no answer came: what broke the run off may
    have kept it away.
    """
    return count_answered(events) if decided_alone(check, events) else 0


def decided_alone(check: Check[Any], events: Sequence[Event]) -> bool:
    """Whether an episode, as far as it came, asked for nothing but what follows from the request alone."""
    if check.recorded_times or check.background:
        return False
    return all(event["kind"] == "exchange" and alike(event["method"], event["path"]) for event in events)


def count_answered(exchanges: Sequence[Event]) -> int:
    """How many of some exchanges there are up to the last that was answered."""
    stand = len(exchanges)
    while stand and not exchanges[stand - 1]["status"]:
        stand -= 1
    return stand


def has_ended(events: Iterable[Event]) -> bool:
    """Whether an episode with these events ended."""
    return any(event["kind"] == "end" for event in events)


def made(events: Iterable[Event]) -> Iterator[tuple[str, str]]:
    """Paths of what these exchanges made at the target, in order, with the tenant that made it."""
    for event in events:
        if event["kind"] == "exchange" and event["method"] == "PUT" and event["status"] < 300:  # noqa: PLR2004
            yield event["path"], event["tenant"]


class _LastRequest(ReplaySource):
    """Replays an episode that was broken off, and notes the request that it was broken off at."""

    request: Request | None = None

    def exchange(self, request: Request) -> Answer:
        """The recorded answer to the same request."""
        self.request = request
        answer = super().exchange(request)
        self.request = None
        return answer

    def repeat(self, said: Sequence[Said]) -> list[Answer] | None:  # noqa: ARG002 - all is to be asked one by one
        """Nothing is passed over."""
        return None


def broken_off_at(check: Check[Any], plan: Plan, events: Sequence[Event]) -> Request | None:
    """The request that an episode was to send next when it was broken off; the target may have carried it out."""
    source = _LastRequest(check.name, events)
    with contextlib.suppress(Exception):  # it ends as the transcript ends, in whatever the check makes of that
        check.observe(Episode(check.name, plan.settings_of(check), source))
    return source.request
