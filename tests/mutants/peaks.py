"""Wrong in plans that lower peaks: work where it may not be done, or not at all, and peaks that are told wrong."""

from collections.abc import Sequence

from minimal_server.core import Answer, Json, Request
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks

Slots = list[list[int]]
"""Steps in which each load runs."""


@breaks("FCT-005")
class LoadsRunOutsideTheirWindows(MinimalServer):
    """A load without pauses runs where there is the most room, whatever its window is."""

    @override
    def best_run(self, level: Sequence[float], load: Json) -> list[int]:
        return super().best_run(level, {**load, "earliest": 0, "latest": len(level) - 1})


@breaks("FCT-005")
class LastStepsAreLost(MinimalServer):
    """A load of several steps runs for one step less."""

    @override
    def new_slots(self, base: Sequence[float], loads: Sequence[Json]) -> Slots:
        return [slots[:-1] or slots for slots in super().new_slots(base, loads)]


@breaks("FCT-005")
class AllLoadsAreInterrupted(MinimalServer):
    """Loads pause that may not."""

    @override
    def best_run(self, level: Sequence[float], load: Json) -> list[int]:
        return self.lowest_slots(level, load)


@breaks("FCT-005")
class LowStepsAreUsedTwice(MinimalServer):
    """A load that may pause does the work of all its steps in the two lowest of its window."""

    @override
    def lowest_slots(self, level: Sequence[float], load: Json) -> list[int]:
        lowest = super().lowest_slots(level, {**load, "slots": min(2, load["slots"])})
        return sorted(lowest[number % len(lowest)] for number in range(load["slots"]))


@breaks("FCT-005")
class EveryLoadStaysWhereItIs(MinimalServer):
    """Loads run as they were planned, and no peak is lowered."""

    @override
    def new_slots(self, base: Sequence[float], loads: Sequence[Json]) -> Slots:
        return [list(range(load["planned"], load["planned"] + load["slots"])) for load in loads]


@breaks("FCT-005")
class OnlyShortLoadsAreMoved(MinimalServer):
    """Loads of more than two steps run as they were planned, so that peaks fall by too little."""

    @override
    def new_slots(self, base: Sequence[float], loads: Sequence[Json]) -> Slots:
        moved = super().new_slots(base, loads)
        stays = [list(range(load["planned"], load["planned"] + load["slots"])) for load in loads]
        return [new if len(new) <= 2 else old for new, old in zip(moved, stays, strict=True)]


@breaks("FCT-005")
class PeaksAreRaised(MinimalServer):
    """Loads are moved to where the most is demanded, and nobody looks whether that was better before."""

    @override
    def best_run(self, level: Sequence[float], load: Json) -> list[int]:
        return super().best_run([-each for each in level], load)

    @override
    def lowest_slots(self, level: Sequence[float], load: Json) -> list[int]:
        return super().lowest_slots([-each for each in level], load)

    @override
    def is_allowed(self, load: Json, slots: Sequence[int]) -> bool:
        return False


class Telling(MinimalServer):
    """Tells plans otherwise."""

    @override
    def plan_peaks(self, request: Request) -> Answer:
        told = super().plan_peaks(request).body
        return Answer(200, {**told, **self.told_for(told, self.body(request, "PeakRequest"))})

    def told_for(self, told: Json, body: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("FCT-005")
class ThePeakBeforeIsThatOfTheBase(Telling):
    """What was planned of the loads is left out of the peak before."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"peak_before": max(body["base"])}


@breaks("FCT-005")
class ThePeakAfterIsToldLower(Telling):
    """The peak after is told one per cent lower than it is."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"peak_after": 0.99 * told["peak_after"]}


@breaks("FCT-005")
class TheLargestLoadStandsFirst(Telling):
    """The load with the most work is told first, whatever the order of the question is."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        work = {load["id"]: load["devices"] * load["slots"] for load in body["loads"]}
        return {"loads": sorted(told["loads"], key=lambda row: -work[row["load"]])}


@breaks("COM-028", "FCT-005")
class PlansAreOfTheNextRevision(Telling):
    """A plan tells the revision after that of the question."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"revision": {**told["revision"], "number": told["revision"]["number"] + 1}}
