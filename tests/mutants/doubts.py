"""Wrong in what is refused of requests about transfers: names that stand twice, and what contradicts itself."""

from collections.abc import Iterator, Sequence
from itertools import permutations

from minimal_server.core import Json, Refusal
from minimal_server.naming import Wrong
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-042")
class StreamsMayHaveOneName(MinimalServer):
    """Of two streams of one name both are planned."""

    @override
    def check_shards(self, body: Json) -> None:
        rows = [{**row, "id": f"{number}"} for number, row in enumerate(body["streams"])]
        super().check_shards({**body, "streams": rows})


@breaks("COM-042")
class RoomsMayStandTwice(MinimalServer):
    """Of two rooms of one domain the first one counts."""

    @override
    def check_shards(self, body: Json) -> None:
        super().check_shards({**body, "rooms": []})


@breaks("COM-042")
class LinksMayStandTwice(MinimalServer):
    """Two links may lead from one domain to the same other one."""

    @override
    def links_twice(self, links: Sequence[Json]) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class LinksMayLeadBack(MinimalServer):
    """A link may lead where it begins."""

    @override
    def links_to_themselves(self, links: Sequence[Json]) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class TransfersComeFromNowhere(MinimalServer):
    """Transfers may be under way over links that are not there."""

    @override
    def from_nowhere(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class RangesMayBeEmpty(MinimalServer):
    """Ranges of bytes that end before they begin are taken for nothing."""

    @override
    def empty_ranges(self, place: str, stream: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class TransfersMayBeEmpty(MinimalServer):
    """Transfers that end before they begin are taken for nothing."""

    @override
    def empty_ranges(self, place: str, stream: Json) -> Iterator[Wrong]:
        return super().empty_ranges(place, {**stream, "transfers": []})


@breaks("COM-042")
class GapsMayFall(MinimalServer):
    """What is missing may stand in any order, and twice."""

    @override
    def falling_gaps(self, place: str, stream: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class WhatIsUnderWayMayBeMissing(MinimalServer):
    """Bytes under way may be missing too, or under way twice."""

    @override
    def crossed(self, place: str, stream: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class TransfersMayOverlap(MinimalServer):
    """Bytes may be under way twice."""

    @override
    def crossed(self, place: str, stream: Json) -> Iterator[Wrong]:
        rows = stream.get("transfers", ())
        for number, row in enumerate(rows):
            if any(gap["begin"] < row["end"] and row["begin"] < gap["end"] for gap in stream["missing"]):
                yield f"{place}/transfers/{number}/begin", "what is under way is not missing"


@breaks("COM-042")
class OnlyGapsHaveAnEnd(MinimalServer):
    """Bytes behind those of the last step may be under way."""

    @override
    def beyond_the_end(self, place: str, stream: Json) -> Iterator[Wrong]:
        return super().beyond_the_end(place, {**stream, "transfers": []})


@breaks("COM-042")
class MoreMayBeLeftThanThereWas(MinimalServer):
    """Of a transfer more bytes may be to come than it has."""

    @override
    def more_left(self, place: str, stream: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class FirstStreamsAreBlamed(MinimalServer):
    """Whichever stream contradicts itself, the first one is named."""

    @override
    def ranges(self, place: str, stream: Json) -> list[tuple[str, Json]]:
        return super().ranges("/streams/0", stream)


@breaks("COM-042")
class LinksMayEndAnywhere(MinimalServer):
    """Links from and to domains where no replicas are do not matter."""

    @override
    def unknown_ends(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class UnknownDomainsSpoilTheOrder(MinimalServer):
    """An unknown domain in the order in use makes it no order of the domains, and the body invalid."""

    @override
    def unknown_in_order(self, body: Json, used: Json) -> Iterator[Wrong]:
        return iter(())


class Mending(MinimalServer):
    """Takes what is wrong out of a request before it looks."""

    @override
    def check_collective(self, body: Json) -> None:
        self.mend(body)
        super().check_collective(body)

    def mend(self, body: Json) -> None:
        """Put something else where it is wrong."""
        raise NotImplementedError


@breaks("COM-042")
class DomainsMayStandTwice(Mending):
    """A domain that stands twice is taken for one."""

    @override
    def mend(self, body: Json) -> None:
        body["domains"] = list(dict.fromkeys(body["domains"]))


@breaks("COM-042")
class DomainsNeedNoLinks(Mending):
    """Between domains without a link there is one that is out."""

    @override
    def mend(self, body: Json) -> None:
        held = {(link["source"], link["target"]) for link in body["links"]}
        lacking = [pair for pair in permutations(body["domains"], 2) if len({*pair}) > 1 and pair not in held]
        out = {"latency": 0.0, "up": False, "bandwidths": []}
        body["links"] += [{"source": one, "target": other, **out} for one, other in lacking]


@breaks("COM-042")
class OrdersInUseAreMended(Mending):
    """Where the order in use is none of all domains, a domain is put where another one stands twice or is missing."""

    @override
    def mend(self, body: Json) -> None:
        used = body.get("in_use", {"order": []})
        known = [name for name in used["order"] if name in body["domains"]]
        if len(known) == len(used["order"]):
            used["order"] = list(dict.fromkeys([*known, *body["domains"]]))


@breaks("COM-042")
class RingsInUseMayHaveAPeriod(MinimalServer):
    """The period of a collective that exchanges at every step does not matter."""

    @override
    def idle_period(self, used: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class ContradictionsAreUnknownNames(MinimalServer):
    """What contradicts itself in a request for a shard plan is answered with unknown-reference."""

    @override
    def check_shards(self, body: Json) -> None:
        try:
            super().check_shards(body)
        except Refusal as refusal:
            raise Refusal("unknown-reference", refusal.detail, refusal.errors) from refusal
