"""Wrong in shard plans: what is fetched, from where and in which slots."""

from collections.abc import Sequence
from itertools import count

from minimal_server.core import Answer, Json, Request
from minimal_server.service import MinimalServer
from minimal_server.sharding import Pair
from typing_extensions import override

from mutants.declaration import breaks


class Retelling(MinimalServer):
    """Tells plans otherwise."""

    @override
    def plan_shards(self, request: Request) -> Answer:
        told = super().plan_shards(request).body
        return Answer(200, {**told, **self.told_for(told, self.body(request, "ShardPlanRequest"))})

    def told_for(self, told: Json, body: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("COM-028", "RES-012")
class RevisionsOfTheFirstQuestionAreKept(Retelling):
    """Shard plans tell the revision of the first question that was ever asked."""

    kept: Json | None = None

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        self.kept = self.kept or told["revision"]
        return {"revision": self.kept}


@breaks("COM-029")
class PlansAreNumbered(Retelling):
    """The version of the method is the number of the question, so that no plan is the same again."""

    numbers = count(1)

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"method": {**told["method"], "version": f"{next(self.numbers)}"}}


@breaks("RES-005", "RES-006", "RES-012")
class TheLastStreamIsForgotten(Retelling):
    """Nothing is said of the last of several streams."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"streams": told["streams"][:-1] or told["streams"]}


@breaks("RES-012")
class FirstShardsComeTwice(Retelling):
    """The first shard of a plan stands in it once more, at the end."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"shards": told["shards"] + told["shards"][:1]}


@breaks("RES-012")
class LastShardsBeginTooSoon(Retelling):
    """The last shard of a plan begins a hundredth of its bytes too soon, and so brings some that another one brings."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        if not told["shards"]:
            return {}
        *others, last = told["shards"]
        begin = max(0.0, last["begin"] - 0.01 * (last["end"] - last["begin"]))
        return {"shards": [*others, {**last, "begin": begin}]}


@breaks("RES-012")
class EmptyShardsAreAsked(Retelling):
    """Behind every shard stands one of no bytes."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"shards": [each for row in told["shards"] for each in (row, {**row, "begin": row["end"]})]}


@breaks("RES-012")
class SlotsAreCountedByShards(Retelling):
    """Every shard is taken to be a step of its stream."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        counts = {stream["id"]: count() for stream in body["streams"]}
        return {"shards": [{**row, "slot": next(counts[row["stream"]])} for row in told["shards"]]}


@breaks("RES-012")
class GapsAreOne(MinimalServer):
    """All from the first byte that is missing to the last one is fetched."""

    @override
    def gaps(self, stream: Json) -> Sequence[Json]:
        gaps = super().gaps(stream)
        return [{"begin": gaps[0]["begin"], "end": gaps[-1]["end"]}] if gaps else []


@breaks("RES-012")
class WhatIsUnderWayIsFetchedAgain(MinimalServer):
    """Transfers under way are fetched once more, and are not abandoned."""

    @override
    def gaps(self, stream: Json) -> Sequence[Json]:
        return sorted([*super().gaps(stream), *stream.get("transfers", ())], key=lambda gap: float(gap["begin"]))


@breaks("RES-012")
class AStepTooManyIsFetched(MinimalServer):
    """A step beyond the last one that takes data from afar is fetched."""

    @override
    def gaps(self, stream: Json) -> Sequence[Json]:
        end = stream["remote_steps"] * stream["step_size"]
        return [*super().gaps(stream), {"begin": end, "end": end + stream["step_size"]}]


@breaks("RES-005", "RES-012")
class CopiesAreEverywhere(MinimalServer):
    """Every domain with a link is taken to hold a copy."""

    @override
    def ways_to(self, body: Json, stream: Json) -> list[Json]:
        return super().ways_to(body, {**stream, "sources": [link["source"] for link in body["links"]]})


@breaks("RES-012")
class LinksAreNeverOut(MinimalServer):
    """Links that are out are taken to carry what they carried last."""

    @override
    def shards(self, body: Json) -> list[Json]:
        links = [{name: value for name, value in link.items() if name != "up"} for link in body["links"]]
        return super().shards({**body, "links": links})


@breaks("RES-012")
class LinksLeadBothWays(MinimalServer):
    """Data come over the link from where they are needed to where they lie, against its sense."""

    @override
    def ways_to(self, body: Json, stream: Json) -> list[Json]:
        rows = [{**link, "source": link["target"], "target": link["source"]} for link in body["links"]]
        return super().ways_to({**body, "links": rows}, stream) or super().ways_to(body, stream)

    @override
    def free_from(self, body: Json) -> dict[Pair, float]:
        free = super().free_from(body)
        return {(target, source): 0.0 for source, target in free} | free


@breaks("RES-012")
class ShardsAreLargerThanTheRoom(MinimalServer):
    """A shard is a step, even where there is no room for one."""

    @override
    def shard_size(self, body: Json, stream: Json) -> float:
        return float(stream["step_size"])


@breaks("RES-012")
class TheFirstRoomIsEverybodys(MinimalServer):
    """Every domain is taken to have the room that stands first."""

    @override
    def room(self, body: Json, stream: Json) -> float:
        return float(body["rooms"][0]["size"]) if body["rooms"] else 0.0


class FirstSlots(MinimalServer):
    """Takes local data in the first slots."""

    @override
    def local_slots(self, stream: Json) -> list[int]:
        return list(range(min(3, stream.get("local_steps", 0))))


@breaks("RES-012")
class LocalSlotsAreNotPassedOver(FirstSlots):
    """Slots of shards are counted as if no slot took local data, which the first ones do."""

    @override
    def slot_of(self, stream: Json, step: int) -> int:
        return step


@breaks("RES-012")
class LocalSlotsFall(FirstSlots):
    """Slots that take local data stand from the last one to the first."""

    @override
    def local_slots(self, stream: Json) -> list[int]:
        return super().local_slots(stream)[::-1]


@breaks("RES-012")
class LocalSlotsNeedNoLocalData(MinimalServer):
    """The next slot takes local data where there are none."""

    @override
    def local_slots(self, stream: Json) -> list[int]:
        return [] if stream.get("local_steps", 0) else [0]


@breaks("RES-012")
class ThereAreMoreLocalSlotsThanLocalData(MinimalServer):
    """One slot more takes local data than there are local steps."""

    @override
    def local_slots(self, stream: Json) -> list[int]:
        local = stream.get("local_steps", 0)
        return list(range(local + 1)) if local else []


@breaks("RES-012")
class WhatIsNotUnderWayIsAbandoned(MinimalServer):
    """A transfer of the first byte is abandoned where none is under way."""

    @override
    def abandoned(self, stream: Json) -> list[Json]:
        return [] if stream.get("transfers") else [{"source": stream["sources"][0], "begin": 0.0}]
