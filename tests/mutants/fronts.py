"""Wrong in Pareto fronts: compromises that are missing, and ends that do not follow from their schedules."""

from collections.abc import Sequence
from dataclasses import replace

from minimal_server.core import Answer, Json, Request
from minimal_server.fronts import Placed, Search
from minimal_server.scene import Scene
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss

Points = list[tuple[float, float]]
"""Ends of schedules, from the quickest to the cheapest."""


@near_miss("SCH-001")
class EveryFourthCompromiseIsMissing(MinimalServer):
    """Of each four schedules of a front one is left out."""

    @override
    def thinned(self, points: Sequence[tuple[float, float]], most: int) -> Points:
        return [point for number, point in enumerate(super().thinned(points, most)) if number % 4 != 1]


@control("SCH-001")
class EveryTwelfthCompromiseIsMissing(MinimalServer):
    """Of each twelve schedules of a front one is left out."""

    @override
    def thinned(self, points: Sequence[tuple[float, float]], most: int) -> Points:
        return [point for number, point in enumerate(super().thinned(points, most)) if number % 12 != 6]


@breaks("SCH-001")
class OnlySumsAreMinimised(MinimalServer):
    """Fronts are what weighted sums of period and money lead to."""

    @override
    def branch(self, search: Search, placed: tuple[Placed, ...], left: frozenset[int]) -> None:
        if not search.options:
            super().branch(search, placed, left)


class Roomier(Search):
    """Pools hold twice as much as they do."""

    def __init__(self, search: Search) -> None:
        """The same otherwise."""
        super().__init__(
            search.options,
            [2 * devices for devices in search.capacity],
            search.slot,
            search.found,
            until=search.until,
        )


@breaks("SCH-001", "SCH-014", "SCH-040")
class PoolsHoldTwiceAsMuch(MinimalServer):
    """Schedules hold more devices of a pool than it has."""

    @override
    def lean(self, search: Search, leaning: float) -> None:
        super().lean(Roomier(search), leaning)

    @override
    def branch(self, search: Search, placed: tuple[Placed, ...], left: frozenset[int]) -> None:
        super().branch(search if placed else Roomier(search), placed, left)


@breaks("SCH-014", "SCH-040")
class PeriodsAreTwoPerCentShort(MinimalServer):
    """Mean periods are stated two per cent shorter than they are."""

    @override
    def solution(self, scene: Scene, search: Search, placed: Sequence[Placed]) -> Json:
        told = super().solution(scene, search, placed)
        return {**told, "mean_period": 0.98 * told["mean_period"]}


@breaks("SCH-014", "SCH-040")
class MoneyIsForOneJob(MinimalServer):
    """Money is stated as the mean over the jobs, as the period is."""

    @override
    def solution(self, scene: Scene, search: Search, placed: Sequence[Placed]) -> Json:
        told = super().solution(scene, search, placed)
        return {**told, "communication_cost": told["communication_cost"] / max(1, len(placed))}


@breaks("SCH-014")
class FrontsStandTheOtherWayRound(MinimalServer):
    """Schedules are told from the cheapest to the quickest."""

    @override
    def thinned(self, points: Sequence[tuple[float, float]], most: int) -> Points:
        return super().thinned(points, most)[::-1]


@breaks("SCH-040")
class LimitedFrontsAreEmpty(MinimalServer):
    """A front with a time limit holds nothing, as its search has not come to an end."""

    @override
    def front(self, request: Request) -> Answer:
        answer = super().front(request)
        limited = "time_limit" in self.body(request, "ParetoRequest")
        return replace(answer, body={**answer.body, "solutions": [], "partial": True}) if limited else answer


@breaks("SCH-040")
class PartialFrontsAreNotMarked(MinimalServer):
    """Of a front with a time limit the quickest schedule is answered, without a mark."""

    @override
    def front(self, request: Request) -> Answer:
        answer = super().front(request)
        limited = "time_limit" in self.body(request, "ParetoRequest")
        whole = {name: value for name, value in answer.body.items() if name != "partial"}
        return replace(answer, body={**whole, "solutions": whole["solutions"][:1]}) if limited else answer
