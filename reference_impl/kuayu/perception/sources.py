"""Which source a page comes from, by what it names: pieces of hardware, and hosts.

Rules (clause on expositions):

* A device is known by the labels that name its piece of hardware (the register's ``identity_labels``). Series of parts
  are asked only where the page does not show the whole, and each part by itself: parts may have names of their own.
* Where no hardware is named, a device is known by the host that its series name (``host_labels``). One host may have
  two names, such as a short and a long one: what stands behind the first dot of a name and the port count for nothing.
  Counters tell better than names whether two pages are of one host, so that names count only where there are none.
* One name in place of another is a piece that was replaced or a host that was renamed. A name that comes back after
  another one, both ways within ten minutes, or two names for one device on one page are two sources
  (:func:`kuayu.perception.counters.sighting`).

Sources of names: NVIDIA/dcgm-exporter README.md (``UUID``, ``Hostname``); Prometheus, "Jobs and instances"
(``instance`` is the host and port that was scraped).
"""

import ipaddress
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from kuayu.perception.counters import SMALL_COUNT
from kuayu.perception.exposition import Series
from kuayu_schemas.models import Exporter


@dataclass(frozen=True, slots=True)
class Source:
    """What a page says of who stands behind a device.

    Attributes:
        key: What it is remembered under.
        subject: Whom it is about, for people.
        names: Names that the page has for it, sorted; more than one where it contradicts itself.
    """

    key: str
    subject: str
    names: tuple[str, ...]


def sources_of(page: Iterable[Series], exporter: Exporter, counts: Callable[[Series], bool]) -> list[Source]:
    """Who stands behind each device that a page of one instant is about.

    Args:
        page: Series, all of them with a value.
        exporter: Whose page it is.
        counts: Whether a series is a counter that the map takes.
    """
    series = list(page)
    label = exporter.device_label or ""
    hardware = _hardware(series, exporter, label)
    result = [
        Source(f"\x1eidentity\x1f{key}", f"the hardware behind device {device}", tuple(sorted(names)))
        for (device, key), names in hardware.items()
    ]
    known = {device for device, _ in hardware}
    counting = {entry.labels.get(label) for entry in series if counts(entry) and entry.value >= SMALL_COUNT}
    hosts: dict[str | None, set[str]] = {}
    for entry in series:
        device = entry.labels.get(label)
        host = _first(entry, exporter.host_labels or ())
        if host and device not in known and device not in counting:
            hosts.setdefault(device, set()).add(_short(host))
    for device, names in hosts.items():
        subject = "the host" if device is None else f"the host behind device {device}"
        result.append(Source(f"\x1ehost\x1f{device or ''}", subject, tuple(sorted(names))))
    return result


def _hardware(series: Collection[Series], exporter: Exporter, label: str) -> dict[tuple[str, str], set[str]]:
    """Names of the pieces behind each device, of wholes where there are any; by device and key."""
    wholes: dict[tuple[str, str], set[str]] = {}
    parts: dict[tuple[str, str], set[str]] = {}
    for entry in series:
        identity = "\x1f".join(filter(None, map(entry.labels.get, exporter.identity_labels or ())))
        if not identity or label not in entry.labels:
            continue
        device = entry.labels[label]
        part = "\x1f".join(filter(None, map(entry.labels.get, exporter.part_labels or ())))
        if part:
            parts.setdefault((device, f"{device}\x1f{part}"), set()).add(identity)
        else:
            wholes.setdefault((device, device), set()).add(identity)
    shown = {device for device, _ in wholes}
    return wholes | {key: names for key, names in parts.items() if key[0] not in shown}


def _first(series: Series, labels: Iterable[str]) -> str:
    return next((series.labels[label] for label in labels if series.labels.get(label)), "")


def _short(host: str) -> str:
    """A host's name without port and domain; an address without its port."""
    bare = host.casefold()
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return str(ipaddress.ip_address(bare.strip("[]")))
    except ValueError:
        return bare.partition(".")[0]
