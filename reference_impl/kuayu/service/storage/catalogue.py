"""Which subjects samples may be about, kept in memory because every sample asks.

Only what is registered stands here. The writer changes it after a commit and before anyone is told of the commit;
requests read it. Both replace or look up single entries of dictionaries, which needs no lock.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, insert, select

from kuayu.service.kinds import DOMAIN, LINK, NODE, Body, Kind
from kuayu.service.storage.tables import subject

SubjectKey = tuple[str, str, str | None]
"""Kind of subject, identifier, device; the device is None unless the kind is device."""

DEVICE = "device"


class Catalogue:
    """Numbers of the registered subjects, tenant by tenant."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[SubjectKey, int]] = {}

    def of(self, tenant: str) -> Mapping[SubjectKey, int]:
        """Numbers of a tenant's subjects."""
        return self._numbers.setdefault(tenant, {})

    def devices(self, tenant: str, node: str) -> list[str]:
        """Devices of a node, in order."""
        numbers = self.of(tenant)
        return sorted(device for kind, name, device in list(numbers) if kind == DEVICE and name == node and device)

    def replace(self, tenant: str, gone: Iterable[SubjectKey], come: Mapping[SubjectKey, int]) -> None:
        """Take subjects out and put others in."""
        numbers = self._numbers.setdefault(tenant, {})
        for key in gone:
            if key not in come:
                numbers.pop(key, None)
        numbers.update(come)


def subjects_of(kind: Kind, name: str, body: Body) -> list[SubjectKey]:
    """What samples may be about once a resource is registered: itself, and the devices of a node."""
    if kind not in (DOMAIN, NODE, LINK):
        return []
    devices = [(DEVICE, name, str(device["id"])) for device in body.get("devices", ())]
    return [(kind.name, name, None), *devices]


def allocate(connection: Connection, tenant: str, keys: Iterable[SubjectKey]) -> dict[SubjectKey, int]:
    """Numbers of subjects; those that were never seen get new ones."""
    wanted = list(keys)
    kinds, names = {kind for kind, _, _ in wanted}, {name for _, name, _ in wanted}
    held = select(subject).where(subject.c.tenant == tenant, subject.c.kind.in_(kinds), subject.c.id.in_(names))
    numbers = {(row.kind, row.id, row.device or None): row.no for row in connection.execute(held)}
    new = [key for key in dict.fromkeys(wanted) if key not in numbers]
    if new:
        rows = [{"tenant": tenant, "kind": kind, "id": name, "device": device or ""} for kind, name, device in new]
        made = insert(subject).returning(subject.c.no, subject.c.kind, subject.c.id, subject.c.device)
        for row in connection.execute(made, rows):
            numbers[row.kind, row.id, row.device or None] = row.no
    return {key: numbers[key] for key in wanted}
