"""Peak plans: the largest load first, each where it makes the least peak."""

from collections.abc import Iterator, Sequence

from minimal_server.core import Answer, Json, Request
from minimal_server.naming import Wrong
from minimal_server.waving import Waving

METHOD_OF_PEAKS = {"name": "minimal server: largest load first", "version": "1"}


class Shaving(Waving):
    """Movable work is done when there is room."""

    def plan_peaks(self, request: Request) -> Answer:
        """When loads are to run."""
        body = self.body(request, "PeakRequest")
        loads, base = body["loads"], body["base"]
        self.refuse_if("invalid-body", "names are given twice", self.twice("/loads", loads, "id"))
        self.refuse_if("invalid-body", "loads cannot be done", self.cramped(loads, len(base)))
        planned = [list(range(load["planned"], load["planned"] + load["slots"])) for load in loads]
        before = self.highest_level(base, loads, planned)
        moved = self.new_slots(base, loads)
        after = self.highest_level(base, loads, moved)
        if after > before and all(self.is_allowed(load, slots) for load, slots in zip(loads, planned, strict=True)):
            moved, after = planned, before
        return Answer(
            200,
            {
                "revision": body["revision"],
                "method": METHOD_OF_PEAKS,
                "loads": [{"load": load["id"], "slots": slots} for load, slots in zip(loads, moved, strict=True)],
                "peak_before": before,
                "peak_after": after,
            },
        )

    def cramped(self, loads: Sequence[Json], steps: int) -> Iterator[Wrong]:
        """Loads for which there is no time."""
        for number, load in enumerate(loads):
            if load["earliest"] + load["slots"] - 1 > load["latest"]:
                yield f"/loads/{number}/slots", "the load is longer than its window"
            elif load["latest"] >= steps:
                yield f"/loads/{number}/latest", "the base ends earlier"
            elif load["planned"] + load["slots"] > steps:
                yield f"/loads/{number}/planned", "the base ends before the load does"

    def is_allowed(self, load: Json, slots: Sequence[int]) -> bool:
        """Whether steps lie in the window of a load."""
        return bool(load["earliest"] <= slots[0] and slots[-1] <= load["latest"])

    def highest_level(self, base: Sequence[float], loads: Sequence[Json], where: Sequence[Sequence[int]]) -> float:
        """Most devices at once."""
        level = list(base)
        for load, slots in zip(loads, where, strict=True):
            for slot in slots:
                level[slot] += load["devices"]
        return max(level)

    def new_slots(self, base: Sequence[float], loads: Sequence[Json]) -> list[list[int]]:
        """Steps of each load."""
        level = list(base)
        where: list[list[int]] = [[] for _ in loads]
        for number in sorted(range(len(loads)), key=lambda one: -self.weight(loads[one])):
            load = loads[number]
            where[number] = self.lowest_slots(level, load) if load.get("interruptible") else self.best_run(level, load)
            for slot in where[number]:
                level[slot] += load["devices"]
        return where

    def weight(self, load: Json) -> float:
        """What is placed first: most work."""
        return float(load["devices"] * load["slots"])

    def lowest_slots(self, level: Sequence[float], load: Json) -> list[int]:
        """The lowest steps of the window."""
        window = range(load["earliest"], load["latest"] + 1)
        return sorted(sorted(window, key=lambda slot: level[slot])[: load["slots"]])

    def best_run(self, level: Sequence[float], load: Json) -> list[int]:
        """Steps in a row that make the least peak."""
        slots = load["slots"]
        begins = range(load["earliest"], load["latest"] - slots + 2)
        begin = min(begins, key=lambda one: max(level[one : one + slots]))
        return list(range(begin, begin + slots))
