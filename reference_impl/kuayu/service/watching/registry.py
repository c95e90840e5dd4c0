"""Which nodes are registered, and what of them matters where they fail: kept in memory because every beat asks."""

from collections.abc import Mapping

from kuayu.service.kinds import NODE, Body
from kuayu.service.storage.catalogue import SubjectKey
from kuayu.service.storage.store import Store


class Registry:
    """Nodes of all tenants. The writer's thread changes single entries of dictionaries; any thread may read them."""

    def __init__(self, store: Store) -> None:
        self._domains: dict[str, dict[str, str]] = {}
        self._devices: dict[str, dict[str, int]] = {}
        for tenant, record in store.records(NODE):
            self.put(tenant, NODE.name, record.body, {})

    def domains(self, tenant: str) -> Mapping[str, str]:
        """Domain of each node of a tenant."""
        return self._domains.setdefault(tenant, {})

    def devices(self, tenant: str, node: str) -> int:
        """Devices that a node is registered with; at least 1, for a node without any is itself what there is."""
        return max(1, self._devices.get(tenant, {}).get(node, 1))

    def put(self, tenant: str, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:  # noqa: ARG002
        """A resource was registered or replaced."""
        if kind == NODE.name:
            self._devices.setdefault(tenant, {})[body["id"]] = len(body.get("devices", ()))
            self._domains.setdefault(tenant, {})[body["id"]] = body["domain"]

    def drop(self, tenant: str, kind: str, name: str) -> None:
        """A resource was taken away."""
        if kind == NODE.name:
            self._domains.get(tenant, {}).pop(name, None)
            self._devices.get(tenant, {}).pop(name, None)
