"""Wrong in when shards are fetched, and near-misses and controls of what compute waits for and what is blocked."""

from collections.abc import Iterator

from minimal_server.core import Json
from minimal_server.service import MinimalServer
from minimal_server.sharding import Piece
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss


@breaks("RES-005", "RES-006")
class NothingIsFetched(MinimalServer):
    """Plans are whole, and empty."""

    @override
    def shards(self, body: Json) -> list[Json]:
        return []


@breaks("RES-005", "RES-006")
class StepsAreFetchedWhenTheyAreDue(MinimalServer):
    """A step is fetched when its slot is due, and no sooner."""

    @override
    def room_from(self, body: Json, stream: Json, step: int) -> float:
        return self.due_at(stream, step)


@breaks("RES-005")
class TheLastStepsAreFetchedFirst(MinimalServer):
    """Of the steps that there is room for the last one is fetched first."""

    @override
    def pieces_in_order(self, body: Json) -> Iterator[Piece]:
        return iter(sorted(super().pieces_in_order(body), key=lambda piece: (piece.after, -piece.due)))


class SomeStepsWait(MinimalServer):
    """Of so many steps, some are fetched so many seconds after they are due, whatever room there is."""

    some, of, seconds = 0, 1, 0.0

    @override
    def room_from(self, body: Json, stream: Json, step: int) -> float:
        # steps are counted from the last one, so that every plan has the same ones wait
        if (stream["remote_steps"] - step) % self.of < self.some:
            return self.due_at(stream, step) + self.seconds
        return super().room_from(body, stream, step)


@near_miss("RES-005")
class AFifthOfStepsIsFetchedSixSecondsLate(SomeStepsWait):
    """One step in five is fetched six seconds after it was due, so that compute waits less by 37 %, not by 40 %."""

    some, of, seconds = 1, 5, 6.0


@control("RES-005")
class AFifthOfStepsIsFetchedFourAndAHalfSecondsLate(SomeStepsWait):
    """One step in five is fetched four and a half seconds after it was due: compute waits less by about a half."""

    some, of, seconds = 1, 5, 4.5


@near_miss("RES-006")
class TwelveStepsInTwentyAreFetchedWhenDue(SomeStepsWait):
    """Twelve steps in twenty are fetched when they are due, so that less is blocked by 33 %, not by 35 %."""

    some, of = 12, 20


@control("RES-006")
class EightStepsInTwentyAreFetchedWhenDue(SomeStepsWait):
    """Eight steps in twenty are fetched when they are due: less is blocked by nearly a half."""

    some, of = 8, 20
