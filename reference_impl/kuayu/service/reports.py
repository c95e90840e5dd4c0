"""Indicator reports: what was sampled and what was registered, put together by the rules of the register."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kuayu.perception.aggregation import Quantity, Value, Values, is_stale, whole
from kuayu.service import instants
from kuayu.service.kinds import DOMAIN, NODE, Kind
from kuayu.service.storage.queries import ObservedValue, Store
from kuayu.service.storage.resources import DEVICE, Catalogue, ResourceRecord
from kuayu_schemas import registers
from kuayu_schemas.models import Measure, Provenance

REGISTERED = {
    "peak_matrix_throughput": "peak_matrix_throughput",
    "accelerator_memory_capacity": "memory_capacity",
}
"""Static measures, and the member of a registered device that states each."""


@dataclass(frozen=True, slots=True)
class NodeValues:
    """Values of a node and of its devices."""

    node: Values
    devices: Mapping[str, Values]


class Reporter:
    """Makes reports for one tenant at one instant. Blocking: use it in a worker thread."""

    def __init__(self, store: Store, catalogue: Catalogue, tenant: str, instant: int) -> None:
        self._store = store
        self._catalogue = catalogue
        self._tenant = tenant
        self._at = instant
        self._measures = {measure.name: measure for measure in _measures()}

    def report(self, kind: Kind, record: ResourceRecord) -> dict[str, Any]:
        """Report on a registered resource, class IndicatorReport."""
        name = str(record.body["id"])
        revision = self._store.revision(self._tenant)
        devices: Mapping[str, Values] = {}
        if kind is NODE:
            result = self._nodes([record])[0]
            own, devices = result.node, result.devices
        elif kind is DOMAIN:
            nodes = self._nodes(self._store.members_of(self._tenant, name))
            own = whole(self._measures.values(), self._reported([(kind.name, name, None)])[0], [n.node for n in nodes])
        else:
            own = self._reported([(kind.name, name, None)])[0]
        return {
            "subject": name,
            "subject_kind": kind.name,
            "at": instants.to_text(self._at),
            "values": list(_lines(own, devices)),
            "revision": revision.to_wire(),
        }

    def _nodes(self, records: Sequence[ResourceRecord]) -> list[NodeValues]:
        """Values of nodes, each from what was reported for it and from its devices."""
        keys: list[tuple[str, str, str | None]] = []
        for record in records:
            name = record.body["id"]
            keys.append((NODE.name, name, None))
            keys.extend((DEVICE, name, device["id"]) for device in record.body.get("devices", ()))
        reported = iter(self._reported(keys))
        result: list[NodeValues] = []
        for record in records:
            own = next(reported)
            devices = {
                device["id"]: {**self._registered(device, record.updated), **next(reported)}
                for device in record.body.get("devices", ())
            }
            result.append(NodeValues(whole(self._measures.values(), own, list(devices.values())), devices))
        return result

    def _reported(self, keys: Sequence[tuple[str, str, str | None]]) -> list[Values]:
        """Newest values that were sampled and are not stale, subject by subject."""
        numbers = self._catalogue.of(self._tenant)
        known = [numbers[key] for key in keys if key in numbers]
        newest = self._store.newest(known, self._at)
        return [self._fresh(newest.get(numbers.get(key, -1), {})) for key in keys]

    def _fresh(self, observed: Mapping[str, ObservedValue]) -> dict[str, Value]:
        return {
            name: Value(result.quantity, result.instant, Provenance.measured)
            for name, result in observed.items()
            if not is_stale(self._measures[name], result.instant, self._at)
        }

    def _registered(self, device: Mapping[str, Any], updated: int) -> dict[str, Value]:
        """What the registration states; what a device is holds for all time, so no instant is too early for it."""
        return {
            measure: Value(device[member], min(updated, self._at), Provenance.registered)
            for measure, member in REGISTERED.items()
            if member in device
        }


def _measures() -> Iterator[Measure]:
    for indicator in registers.indicators().indicators:
        yield from indicator.measures


def _lines(own: Values, devices: Mapping[str, Values]) -> Iterator[dict[str, Any]]:
    """Values in order of indicator, measure and device."""
    for indicator in registers.indicators().indicators:
        for measure in indicator.measures:
            head = {"indicator": indicator.id, "measure": measure.name, "unit": measure.unit}
            if measure.name in own:
                yield head | _line(own[measure.name])
            for device in sorted(devices):
                if measure.name in devices[device]:
                    yield head | {"device": device} | _line(devices[device][measure.name])


def _line(value: Value) -> dict[str, Any]:
    line: dict[str, Any] = {
        _member(value.quantity): value.quantity,
        "observed_at": instants.to_text(value.observed),
        "provenance": value.provenance.value,
    }
    return line if value.parts is None else line | {"parts": value.parts}


def _member(quantity: Quantity) -> str:
    """Member of class IndicatorValue that holds values of this form."""
    match quantity:
        case str():
            return "state"
        case Mapping():
            return "by_precision"
        case _:
            return "number"
