"""What requests about transfers take for granted: names that stand once, and ranges and orders that can be."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from minimal_server.core import Json
from minimal_server.naming import Wrong
from minimal_server.shaving import Shaving

SLACK = 1e-6
"""Part of a step by which sums of bytes may be off."""


class Doubting(Shaving):
    """Requests for shard plans and collectives that cannot be are refused."""

    def check_shards(self, body: Json) -> None:
        """A request names nothing twice, nothing that it does not hold, and does not contradict itself."""
        streams, links = body["streams"], body["links"]
        twice = [*self.twice("/streams", streams, "id"), *self.twice("/rooms", body["rooms"], "domain")]
        self.refuse_if("invalid-body", "names are given twice", [*twice, *self.links_twice(links)])
        self.refuse_if("unknown-reference", "transfers come over no link", self.from_nowhere(body))
        wrong = [*self.links_to_themselves(links)]
        for number, stream in enumerate(streams):
            place = f"/streams/{number}"
            wrong += [*self.empty_ranges(place, stream), *self.falling_gaps(place, stream)]
            wrong += [*self.crossed(place, stream), *self.beyond_the_end(place, stream)]
            wrong += self.more_left(place, stream)
        self.refuse_if("invalid-body", "what cannot be", wrong)

    def links_twice(self, links: Sequence[Json]) -> Iterator[Wrong]:
        """Links whose ends are those of an earlier one."""
        return self.repetitions(
            (f"/links/{number}", f"{link['source']} to {link['target']}") for number, link in enumerate(links)
        )

    def links_to_themselves(self, links: Sequence[Json]) -> Iterator[Wrong]:
        """Links that lead where they begin."""
        for number, link in enumerate(links):
            if link["source"] == link["target"]:
                yield f"/links/{number}/target", "a link leads to another domain"

    def from_nowhere(self, body: Json) -> Iterator[Wrong]:
        """Transfers under way that come over no link."""
        held = {(link["source"], link["target"]) for link in body["links"]}
        for number, stream in enumerate(body["streams"]):
            for position, row in enumerate(stream.get("transfers", ())):
                if (row["source"], stream["target"]) not in held:
                    place = f"/streams/{number}/transfers/{position}/source"
                    yield place, f"there is no link from {row['source']} to {stream['target']}"

    def ranges(self, place: str, stream: Json) -> list[tuple[str, Json]]:
        """What is missing and what is under way, each with its place."""
        members = ("missing", "transfers")
        return [
            (f"{place}/{name}/{number}", row) for name in members for number, row in enumerate(stream.get(name, ()))
        ]

    def empty_ranges(self, place: str, stream: Json) -> Iterator[Wrong]:
        """Ranges that end where they begin, or before."""
        for pointer, row in self.ranges(place, stream):
            if row["end"] <= row["begin"]:
                yield f"{pointer}/end", "must lie behind the begin"

    def falling_gaps(self, place: str, stream: Json) -> Iterator[Wrong]:
        """Gaps that begin before the one in front of them ends."""
        for number, (one, other) in enumerate(pairwise(stream["missing"])):
            if other["begin"] < one["end"] - SLACK * stream["step_size"]:
                yield f"{place}/missing/{number + 1}/begin", "gaps must rise and be apart"

    def crossed(self, place: str, stream: Json) -> Iterator[Wrong]:
        """Transfers with bytes that are missing, or that come with another one."""
        rows = sorted(self.ranges(place, stream), key=lambda row: row[1]["begin"])
        for (pointer, one), (next_pointer, other) in pairwise(rows):
            if other["begin"] < one["end"] - SLACK * stream["step_size"] and ("source" in one or "source" in other):
                where = next_pointer if "source" in other else pointer
                yield f"{where}/begin", "what is under way is neither missing nor under way twice"

    def beyond_the_end(self, place: str, stream: Json) -> Iterator[Wrong]:
        """Ranges of bytes that no step takes."""
        end = (stream["remote_steps"] + SLACK) * stream["step_size"]
        for pointer, row in self.ranges(place, stream):
            if row["end"] > end:
                yield f"{pointer}/end", "no step takes that much from afar"

    def more_left(self, place: str, stream: Json) -> Iterator[Wrong]:
        """Transfers of which more is to come than they have."""
        for number, row in enumerate(stream.get("transfers", ())):
            if row["left"] > row["end"] - row["begin"] + SLACK * stream["step_size"]:
                yield f"{place}/transfers/{number}/left", "more is left than there was"

    def check_collective(self, body: Json) -> None:
        """A request names nothing twice, nothing that it does not hold, and does not contradict itself."""
        used = body.get("in_use")
        twice = self.repetitions((f"/domains/{number}", name) for number, name in enumerate(body["domains"]))
        self.refuse_if("invalid-body", "names are given twice", [*twice, *self.links_twice(body["links"])])
        unknown = [*self.unknown_ends(body), *(self.unknown_in_order(body, used) if used else ())]
        self.refuse_if("unknown-reference", "domains are not in the request", unknown)
        wrong = [*self.links_to_themselves(body["links"]), *self.unlinked(body)]
        wrong += [*self.wrong_order(body, used), *self.idle_period(used)] if used else []
        self.refuse_if("invalid-body", "what cannot be", wrong)

    def unknown_ends(self, body: Json) -> Iterator[Wrong]:
        """Ends of links that are not among the domains."""
        held = set(body["domains"])
        for number, link in enumerate(body["links"]):
            for end in ("source", "target"):
                yield from self.unknown(f"/links/{number}/{end}", link[end], held)

    def unknown_in_order(self, body: Json, used: Json) -> Iterator[Wrong]:
        """Domains of the order in use that are not among the domains."""
        for number, name in enumerate(used["order"]):
            yield from self.unknown(f"/in_use/order/{number}", name, set(body["domains"]))

    def unlinked(self, body: Json) -> Iterator[Wrong]:
        """Domains from which no link leads to each other one."""
        held = {(link["source"], link["target"]) for link in body["links"]}
        for one in body["domains"]:
            missing = [other for other in body["domains"] if other != one and (one, other) not in held]
            if missing:
                yield "/links", f"there is no link from {one} to {', '.join(missing)}"

    def wrong_order(self, body: Json, used: Json) -> Iterator[Wrong]:
        """An order in use in which a domain stands twice, or not at all."""
        if sorted(used["order"]) != sorted(body["domains"]):
            yield "/in_use/order", "every domain must stand in it once"

    def idle_period(self, used: Json) -> Iterator[Wrong]:
        """A period in use of what exchanges at every step."""
        if used["collective"] in {"ring", "hierarchical"} and used["period"] != 1:
            yield "/in_use/period", "only communication that is low has a period other than one"
