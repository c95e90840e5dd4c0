"""Which nodes a job is given: near each other for those that talk much, and what is left over for the others."""

from collections.abc import Sequence

from miniature.core import Json
from miniature.ways import Ways

Free = dict[str, int]
"""Free devices by node."""


class Packing(Ways):
    """Nodes of a pool."""

    def packed(self, nodes: Sequence[Json], free: Free, devices: int, *, near: bool = True) -> list[Json]:
        """Devices on nodes, taken off ``free``; near means on as few switches and nodes as possible."""
        left, shares = devices, []
        for node in self.nearest(nodes, free, devices) if near else self.scattered(nodes, free):
            taken = min(left, free[node["id"]])
            if taken:
                free[node["id"]] -= taken
                left -= taken
                shares.append({"node": node["id"], "devices": taken})
        return shares

    def nearest(self, nodes: Sequence[Json], free: Free, devices: int) -> list[Json]:
        """The tightest node that has room for all, else nodes of the tightest switch, the roomiest first."""
        rooms, first = self.rooms(nodes, free), self.first(nodes)
        alone = [node for node in nodes if free[node["id"]] >= devices]
        if alone:
            return [min(alone, key=lambda node: (free[node["id"]], rooms[self.switch(node)]))]

        def rank(node: Json) -> tuple[bool, int, int, int]:
            room = rooms[self.switch(node)]
            enough = room >= devices
            return not enough, room if enough else -room, first[self.switch(node)], -free[node["id"]]

        return sorted(nodes, key=rank)

    def scattered(self, nodes: Sequence[Json], free: Free) -> list[Json]:
        """What is left over first: nodes of the fullest switches, the fullest first."""
        rooms = self.rooms(nodes, free)
        return sorted(nodes, key=lambda node: (rooms[self.switch(node)], free[node["id"]]))

    def switch(self, node: Json) -> str:
        """Switch that a node hangs on; all that name none are taken to hang on one."""
        return str(node.get("switch", ""))

    def first(self, nodes: Sequence[Json]) -> dict[str, int]:
        """Where each switch is named first: of two that are alike, that one goes first."""
        return {self.switch(node): number for number, node in reversed(list(enumerate(nodes)))}

    def rooms(self, nodes: Sequence[Json], free: Free) -> dict[str, int]:
        """Free devices by switch."""
        rooms: dict[str, int] = {}
        for node in nodes:
            rooms[self.switch(node)] = rooms.get(self.switch(node), 0) + free[node["id"]]
        return rooms
