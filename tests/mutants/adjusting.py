"""Wrong in what counts as a change and what follows from it, and near-misses and controls of what adjusting costs."""

from collections.abc import Iterator

from minimal_server.adjusting import Levels, Policy
from minimal_server.core import Json
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss


@breaks("RES-007")
class LoadsCountFromAQuarter(MinimalServer):
    """A load has changed where it differs by a quarter."""

    @override
    def has_load_changed(self, before: float, now: float) -> bool:
        return super().has_load_changed(before, now) and abs(now - before) >= 0.25 * before


@breaks("RES-007", "RES-016")
class SpikesAreTriggers(MinimalServer):
    """The last interval alone says what has changed."""

    @override
    def load_triggers(self, body: Json, levels: Levels) -> Iterator[Json]:
        return super().load_triggers(body, self.last_levels(body))

    @override
    def latency_triggers(self, body: Json, levels: Levels) -> Iterator[Json]:
        return super().latency_triggers(body, self.last_levels(body))

    def last_levels(self, body: Json) -> Levels:
        """Those of the last interval."""
        return self.levels_now({**body, "patience": body["interval"]})


@breaks("RES-007", "RES-009", "RES-016")
class NothingIsEverAdjusted(MinimalServer):
    """What has changed is told, and every policy kept."""

    @override
    def policies_to(self, body: Json, levels: Levels, job: Json) -> list[Policy]:
        return []


@breaks("RES-007", "RES-016")
class LongCalmIsPutToUse(MinimalServer):
    """Policies are bettered in calm too, where none was changed for a minute."""

    @override
    def is_calm(self, body: Json, levels: Levels) -> bool:
        return super().is_calm(body, levels) and any(job.get("changed", 60.0) < 60.0 for job in body["jobs"])


class Spending(MinimalServer):
    """Lets every change take as much of a window as this, whatever may be lost."""

    share = 0.0

    @override
    def bearable(self, body: Json) -> float:
        return float(self.share * body["window"])


@near_miss("RES-008")
class ChangesTakeElevenHundredths(Spending):
    """Where much is to be moved, a window loses eleven hundredths or so."""

    share = 0.115


@control("RES-008")
class ChangesTakeNineHundredths(Spending):
    """Where much is to be moved, a window loses nine hundredths or so."""

    share = 0.092


class Pausing(MinimalServer):
    """Begins no change until so many seconds after the last one, though that was for a load on its way."""

    seconds = 0.0

    @override
    def next_begin(self, body: Json, job: Json) -> float:
        return max(0.0, self.seconds - float(job.get("changed", self.seconds)))


@near_miss("RES-009")
class SecondChangesWaitTooLong(Pausing):
    """What a first change was too little for waits until 22 s after it."""

    seconds = 22.0


@control("RES-009")
class SecondChangesWait(Pausing):
    """What a first change was too little for waits until 16 s after it."""

    seconds = 16.0
