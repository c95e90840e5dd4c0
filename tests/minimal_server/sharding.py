"""Shard plans: data are fetched in the order in which they are needed, as early as the room allows."""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from minimal_server.core import Answer, Json, Request
from minimal_server.doubting import SLACK, Doubting

METHOD_OF_SHARDS = {"name": "minimal server: in order, as early as there is room", "version": "1"}
MOST_PIECES = 10_000
"""Shards that a plan has at most."""
RECENT = 3
"""Measurements of a link whose mean is expected to last."""
LEAST = 1.0
"""Bit/s of a link that is up and has not carried anything: any other one is tried first."""

Pair = tuple[str, str]
"""Domain that sends, and domain that receives."""


@dataclass(frozen=True)
class Piece:
    """Bytes of one step of a stream that nobody has fetched.

    Attributes:
        stream: Which stream.
        step: Which of its steps from afar, counted from the next one.
        begin: The first byte.
        end: The byte after the last.
        due: Seconds from now at which the step is due.
        after: Seconds from now at which there is room for it.
    """

    stream: Json
    step: int
    begin: float
    end: float
    due: float
    after: float


class Sharding(Doubting):
    """What to fetch, from where, and when."""

    def plan_shards(self, request: Request) -> Answer:
        """Shards of all streams, in the order in which their steps are due."""
        body = self.body(request, "ShardPlanRequest")
        self.check_shards(body)
        return Answer(
            200,
            {
                "revision": body["revision"],
                "method": METHOD_OF_SHARDS,
                "streams": [self.stream_plan(body, stream) for stream in body["streams"]],
                "shards": self.shards(body),
            },
        )

    def stream_plan(self, body: Json, stream: Json) -> Json:
        """What becomes of a stream."""
        return {
            "stream": stream["id"],
            "steps_ahead": self.steps_ahead(body, stream),
            "shard_size": self.shard_size(body, stream),
            "local_slots": self.local_slots(stream),
            "local_when_late": stream.get("local_steps", 0) > 0,
            "abandoned": self.abandoned(stream),
        }

    def local_slots(self, _stream: Json) -> list[int]:
        """Slots that take local data whatever happens: none, they are kept for when data are late."""
        return []

    def abandoned(self, _stream: Json) -> list[Json]:
        """Transfers to be stopped: none, what has come of them would be lost."""
        return []

    def room(self, body: Json, stream: Json) -> float:
        """Bytes that the target of a stream has room for."""
        return float(next((room["size"] for room in body["rooms"] if room["domain"] == stream["target"]), 0.0))

    def steps_ahead(self, body: Json, stream: Json) -> int:
        """Steps that there is room for, of every stream of the target; at least the next one."""
        wanted: float = sum(each["step_size"] for each in body["streams"] if each["target"] == stream["target"])
        return int(min(max(1.0, self.room(body, stream) / wanted), MOST_PIECES))

    def shard_size(self, body: Json, stream: Json) -> float:
        """Bytes of a shard: a step, or what there is room for."""
        return float(min(stream["step_size"], self.room(body, stream)))

    def slot_of(self, stream: Json, step: int) -> int:
        """Slot of a step from afar: those that take local data are passed over."""
        slot = step
        for local in sorted(self.local_slots(stream)):
            slot += local <= slot
        return slot

    def gaps(self, stream: Json) -> Sequence[Json]:
        """What is to be fetched of a stream."""
        rows: Sequence[Json] = stream["missing"]
        return rows

    def pieces(self, body: Json, stream: Json) -> Iterator[Piece]:
        """What is missing of a stream, in order: cut where steps begin, and as far as is to be planned."""
        size, most = stream["step_size"], self.shard_size(body, stream)
        for gap in self.gaps(stream):
            begin = gap["begin"]
            while begin < gap["end"]:
                step = math.floor(begin / size + SLACK)
                end = min(gap["end"], (step + 1) * size, begin + most)
                after = self.room_from(body, stream, step)
                if after > body["horizon"] or end <= begin:
                    return
                yield Piece(stream, step, begin, end, self.due_at(stream, step), max(0.0, after))
                begin = end

    def due_at(self, stream: Json, step: int) -> float:
        """Seconds from now at which a step from afar is due, if no step is late and none takes local data."""
        return float(stream["due"] + step * stream["step_time"])

    def room_from(self, body: Json, stream: Json, step: int) -> float:
        """Seconds from now at which there is room for a step: when the one begins whose place it takes."""
        return self.due_at(stream, step - self.steps_ahead(body, stream))

    def pieces_in_order(self, body: Json) -> Iterator[Piece]:
        """Pieces of all streams, the one that is due first in front."""
        return heapq.merge(*(self.pieces(body, stream) for stream in body["streams"]), key=lambda piece: piece.due)

    def shards(self, body: Json) -> list[Json]:
        """Shards, each from where it is expected first when those before it have come."""
        free = self.free_from(body)
        found = []
        for piece in islice(self.pieces_in_order(body), MOST_PIECES):
            ends = [(self.finish(link, piece, free), link) for link in self.ways_to(body, piece.stream)]
            if ends:
                end, link = min(ends, key=lambda row: row[0])
                free[link["source"], link["target"]] = end
                found.append(self.shard(piece, link["source"]))
        return found

    def shard(self, piece: Piece, source: str) -> Json:
        """A piece as it is told."""
        return {
            "stream": piece.stream["id"],
            "source": source,
            "begin": piece.begin,
            "end": piece.end,
            "after": piece.after,
            "slot": self.slot_of(piece.stream, piece.step),
        }

    def ways_to(self, body: Json, stream: Json) -> list[Json]:
        """Links that are up, from domains with a copy to where it is needed."""
        return [
            link
            for link in body["links"]
            if link["target"] == stream["target"] and link["source"] in stream["sources"] and link.get("up", True)
        ]

    def free_from(self, body: Json) -> dict[Pair, float]:
        """Seconds from now at which each link has carried what is under way on it."""
        free = {}
        for link in body["links"]:
            pair = link["source"], link["target"]
            left = sum(
                row["left"]
                for stream in body["streams"]
                if stream["target"] == link["target"]
                for row in stream.get("transfers", ())
                if row["source"] == link["source"]
            )
            free[pair] = self.seconds_to_carry(link, left) if left else 0.0
        return free

    def finish(self, link: Json, piece: Piece, free: dict[Pair, float]) -> float:
        """Seconds from now at which a link is expected to have carried a piece."""
        begin = max(free[link["source"], link["target"]], piece.after)
        return float(begin + link["latency"] + self.seconds_to_carry(link, piece.end - piece.begin))

    def seconds_to_carry(self, link: Json, size: float) -> float:
        """Seconds in which a link is expected to carry bytes; endless where it is out."""
        speed = self.carried(link)
        return 8 * size / speed if speed else math.inf

    def carried(self, link: Json) -> float:
        """Bit/s that a link is expected to carry: the mean of the last measurements, nought where it is out."""
        recent = link["bandwidths"][-RECENT:]
        if not link.get("up", True):
            return 0.0
        return float(max(LEAST, sum(recent) / len(recent))) if recent else LEAST
