"""Series of a page that say the same of the same thing.

Rules (clause on expositions):

* A line that stands twice with the same value is one.
* Series that differ in nothing but who uses the device (the register's ``sharing_labels``) repeat one reading. Where
  they differ in who uses it, other labels may be the user's as well (labels of a pod), so that of these only the ones
  that name parts of the device tell readings apart.
* Labels that name the piece of hardware (``identity_labels``) or the host (``host_labels``) tell no readings apart: a
  device is one piece, and a node one host.
* Repetitions whose values differ contradict each other, and nothing is taken of them; a difference that is smaller than
  the accuracy asked for is none, as where the value moved while the page was made.

Sources: NVIDIA/dcgm-exporter#582, #587 and pull request 432 (``KUBERNETES_VIRTUAL_GPUS``); NVIDIA/k8s-device-plugin,
"Shared access to GPUs" (time slicing); Prometheus, "Exposition formats" (each line has its own name and labels).
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kuayu.perception.exposition import Series
from kuayu_schemas.models import Exporter

NEAR = 0.02
"""Relative difference up to which repetitions agree: the accuracy that the register asks for."""


@dataclass(slots=True)
class Distinct:
    """A series that repeats no other one.

    Attributes:
        series: The first of those that say the same.
        key: What it is told from others by, page after page.
        values: Its value and those of its repetitions, each once.
        contradicts: Whether these are further apart than the accuracy and the step of the field allow.
    """

    series: Series
    key: str
    values: list[float]
    contradicts: bool = False


def distinct(
    page: Iterable[Series], exporter: Exporter, steps: Mapping[str, float], telling: Collection[str]
) -> list[Distinct]:
    """Series of one instant, each once, in order.

    Args:
        page: Series, all of them with a value.
        exporter: Whose page it is.
        steps: Least step of each field, in its own unit.
        telling: Labels that the map asks about.
    """
    series = list(page)
    sharing = frozenset(exporter.sharing_labels or ())
    ignored = sharing.union(exporter.identity_labels or (), exporter.host_labels or ())
    label = exporter.device_label or ""
    shared = {(entry.name, entry.labels.get(label)) for entry in series if any(map(entry.labels.get, sharing))}
    parts = frozenset(exporter.part_labels or ()).union(telling, [label])
    by_key: dict[str, Distinct] = {}
    for entry in series:
        in_part = bool(label) and (entry.name, entry.labels.get(label)) in shared
        key = _key(entry, parts if in_part else entry.labels.keys() - ignored)
        first = by_key.setdefault(key, Distinct(entry, key, [entry.value]))
        if entry.value not in first.values:
            first.values.append(entry.value)
            step = steps.get(entry.name, 0.0)
            first.contradicts |= not math.isclose(first.series.value, entry.value, rel_tol=NEAR, abs_tol=step)
    return list(by_key.values())


def _key(series: Series, labels_kept: Iterable[str]) -> str:
    """Name of a series: metric and labels, in an order that does not depend on the page."""
    labels = sorted((label, series.labels[label]) for label in labels_kept if label in series.labels)
    return series.name + "".join(f"\x1f{label}\x1f{value}" for label, value in labels)
