"""Wrong in sizes of tasks, and in what is said of the time of their kinds."""

from collections.abc import Iterator, Sequence
from math import floor

from minimal_server.core import Answer, Json, Refusal, Request
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


class Resized(MinimalServer):
    """Gives tasks something else than it found."""

    @override
    def sized(self, task: Json, rules: dict[str, Json]) -> Json:
        told = super().sized(task, rules)
        return {**told, **self.instead(task, told)}

    def instead(self, task: Json, told: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("DEM-007")
class CoresAreRounded(Resized):
    """Sizes have whole cores, and one at least."""

    @override
    def instead(self, task: Json, told: Json) -> Json:
        given = told["recommended"]
        return {"recommended": {**given, "cores": float(floor(given["cores"]) + 1)}}


@breaks("DEM-007")
class PartsOfDevicesAreNone(Resized):
    """Sizes have whole devices, and none where they would have a part of one."""

    @override
    def instead(self, task: Json, told: Json) -> Json:
        given = told["recommended"]
        return {"recommended": {**given, "devices": float(floor(given["devices"]))}}


@breaks("DEM-007")
class MemoryHasRoomToSpare(Resized):
    """Sizes have a fifth more memory than was asked for, so that nobody runs out of it."""

    @override
    def instead(self, task: Json, told: Json) -> Json:
        return {"recommended": {**told["recommended"], "memory": 1.2 * task["requested"]["memory"]}}


@breaks("DEM-007")
class SlowDownsAreInPerCent(Resized):
    """How much slower a task becomes is told in per cent."""

    @override
    def instead(self, task: Json, told: Json) -> Json:
        return {"slow_down": 100 * told["slow_down"]}


class Reported(MinimalServer):
    """Tells something else of tasks or kinds than it found."""

    @override
    def size_tasks(self, request: Request) -> Answer:
        told = super().size_tasks(request).body
        return Answer(200, {**told, **self.otherwise(told)})

    def otherwise(self, told: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("DEM-007")
class LastTaskIsForgotten(Reported):
    """The last task has no size."""

    @override
    def otherwise(self, told: Json) -> Json:
        return {"tasks": told["tasks"][:-1]}


@breaks("DEM-007")
class TasksStandTheOtherWayRound(Reported):
    """Sizes begin with that of the last task."""

    @override
    def otherwise(self, told: Json) -> Json:
        return {"tasks": told["tasks"][::-1]}


@breaks("DEM-007")
class RareKindsAreNotExplained(Reported):
    """Of kinds with fewer than two hundred records nothing is said."""

    @override
    def otherwise(self, told: Json) -> Json:
        return {"importance": [row for row in told["importance"] if row["records"] >= 200]}


@breaks("DEM-007")
class KindsStandTheOtherWayRound(Reported):
    """Kinds stand from the last name to the first."""

    @override
    def otherwise(self, told: Json) -> Json:
        return {"importance": told["importance"][::-1]}


@breaks("DEM-007")
class ImportanceIsTheNexts(MinimalServer):
    """What is told to depend on a resource depends on the next one."""

    @override
    def mixed(self, records: Sequence[Json], place: int) -> Iterator[list[float]]:
        return super().mixed(records, (place + 1) % 3)


@breaks("DEM-007")
class NothingIsSizedWithoutHistory(MinimalServer):
    """Where no tasks ran before, the request is refused."""

    @override
    def size_tasks(self, request: Request) -> Answer:
        if not self.body(request, "SizingRequest")["history"]:
            raise Refusal("invalid-body", "no tasks ran before")
        return super().size_tasks(request)
