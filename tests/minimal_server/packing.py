"""Which nodes a job is given: near each other for those that talk much, and what is left over for the others."""

from collections.abc import Sequence

from minimal_server.core import Json
from minimal_server.ways import Ways

Free = dict[str, int]
"""Free devices by node."""


class Packing(Ways):
    """Nodes of a pool."""

    def packed(
        self, nodes: Sequence[Json], free: Free, devices: int, *, near: bool = True, need: Json | None = None
    ) -> list[Json]:
        """Devices on nodes, taken off ``free``; near means on as few switches and nodes as possible."""
        if need:
            shares = self.seats_for(nodes, free, devices, need)
            for share in shares:
                free[share["node"]] -= share["devices"]
            return shares
        left, shares = devices, []
        order = self.nearest(nodes, free, devices) if near else self.scattered(nodes, free)
        for node in self.roomy(nodes, free, devices) or order:
            taken = min(left, free[node["id"]])
            if taken:
                free[node["id"]] -= taken
                left -= taken
                shares.append({"node": node["id"], "devices": taken})
        return shares

    def roomy(self, nodes: Sequence[Json], free: Free, devices: int) -> list[Json]:
        """The tightest node that has room for all, if there is one: no job is cut that fits on a node."""
        rooms = self.rooms(nodes, free)
        alone = [node for node in nodes if free[node["id"]] >= devices]
        return sorted(alone, key=lambda node: (free[node["id"]], rooms[self.switch(node)]))[:1]

    def seats_for(self, nodes: Sequence[Json], free: Free, devices: int, need: Json) -> list[Json]:
        """Devices on nodes as a job needs them; nothing where there is no such room."""
        for group in self.scopes(nodes, need.get("within")):
            left, shares = devices, []
            for node in sorted(group, key=lambda node: free[node["id"]]):
                taken = self.portion(left, free[node["id"]], need.get("devices_per_node"))
                left -= taken
                shares += [{"node": node["id"], "devices": taken}] if taken else []
            if not left:
                return shares
        return []

    def scopes(self, nodes: Sequence[Json], within: str | None) -> list[list[Json]]:
        """Nodes that a job may lie on together."""
        if within is None:
            return [list(nodes)]
        groups: dict[str, list[Json]] = {}
        for node in nodes:
            groups.setdefault(node["id"] if within == "node" else node.get("switch", node["id"]), []).append(node)
        return list(groups.values())

    def portion(self, left: int, free: int, each: int | None) -> int:
        """Devices of a node that a job is given which needs so many on each."""
        if each is None:
            return min(left, free)
        return each if min(left, free) >= each else 0

    def nearest(self, nodes: Sequence[Json], free: Free, devices: int) -> list[Json]:
        """Nodes of the tightest switch, the roomiest first."""
        rooms, first = self.rooms(nodes, free), self.first(nodes)

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
