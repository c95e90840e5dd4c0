"""Kinds of accelerators of a federation: what they are called, and what one is worth beside the others.

1. *Name.* Devices of one vendor and model are of one kind. Its name is their text in lower case, words joined by
   hyphens (:func:`accelerator_name`), so that a domain and a service that know the same registration know the same
   name.
2. *Index.* A compute index counts devices of one reference, :data:`REFERENCE`, which stays the same whatever is
   registered: device hours can be summed over months, and a duration "on the reference device" has one meaning.
   Devices are compared by the first number format of the profile's chain that they state, in this order of sources:

   - the sustained matrix throughput that was measured, where it was for every kind of the federation;
   - the peak that is registered, else that of the data sheet in :mod:`kuayu.demand.hardware`, else what was
     measured over the usual share of the peak that products reach;
   - nothing: a kind of which nothing is known counts as one reference device.

   Measured and nominal figures are never compared with each other, since a peak is reached nowhere.
3. *Profiles.* Trainings in 16 bits, and all jobs that do not say, have the profile ``training``; those that state
   another number format have one of their own, in which devices that lack the format count by their next wider one.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, Any

from kuayu.demand.hardware import CATALOGUE, USUAL_SHARE, Hardware

if TYPE_CHECKING:
    from kuayu_schemas import documents

REFERENCE = CATALOGUE["A100-SXM-80GB"]
"""The device of index one: the most frequent one in published measurements, so that most estimates are told for it."""

REFERENCE_PEAK: Mapping[str, float] = {"bf16": 312e12, "fp16": 312e12, "tf32": 156e12, "fp32": 19.5e12, "fp64": 19.5e12}
"""Its dense peaks in FLOP/s by number format (NVIDIA A100 data sheet, 2021); it is one in every profile."""

REFERENCE_SHARE = REFERENCE.reached["bf16"]
"""Share of them that products reach, as measured."""

PROFILE = "training"
"""Profile of jobs that state no number format, or one of 16 bits."""

WIDER = ("bf16", "fp16", "tf32", "fp32", "fp64")
"""Number formats that stand in for each other, the usual first."""

NARROW = ("fp4", "fp8")
"""Number formats that profiles of their own begin with, beside those of :data:`WIDER` from the third on."""

UNKNOWN_MEMORY = 1.0
"""Bytes of a device of which nobody states the memory: enough for jobs that state no need, and for no other."""

DIGITS = 4
"""Digits of an index that mean anything."""

MEMORY_SPREAD = 0.05
"""Relative difference of memories under one name from which on it is worth a note."""

MAX_NAME_CHARACTERS = 100


# A pass names every device of a federation, of which there are thousands of a few kinds.
@lru_cache(maxsize=4096)
def accelerator_name(vendor: str, model: str) -> str:
    """Name of a kind of accelerator, an Identifier that follows from vendor and model alone.

    >>> accelerator_name("NVIDIA", "NVIDIA H100 80GB HBM3")
    'nvidia-h100-80gb-hbm3'

    Letters that identifiers do not have are left out, and the name then ends with a digest of the whole text.
    """
    words = _words(vendor)
    own = _words(model)
    if own[: len(words)] != words:
        own = words + own
    name = "-".join(own)[:MAX_NAME_CHARACTERS].strip(".-_")
    text = unicodedata.normalize("NFKC", f"{vendor} {model}").casefold()
    lossy = (
        any(letter.isalnum() and not letter.isascii() for letter in text) or len("-".join(own)) > MAX_NAME_CHARACTERS
    )
    if lossy or not name:
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        name = f"{name}-{digest}" if name else f"accelerator-{digest}"
    return name


def _words(text: str) -> list[str]:
    """ASCII letters and digits of a text, in lower case, where something else stands between them."""
    return re.findall(r"[a-z0-9]+(?:\.[0-9]+)?", unicodedata.normalize("NFKC", text).casefold())


@dataclass(slots=True)
class Accelerator:
    """A kind of accelerator as it is registered.

    Attributes:
        name: What it is called.
        vendor: Who makes it.
        model: Name of the product.
        kind: What kind of processor it is.
        devices: How many are registered.
        memory: Bytes of one, the least that is registered; None where nobody states it.
        most_memory: The most that is registered.
        peak: Dense FLOP/s of the data sheet by number format, the least that is registered.
    """

    name: str
    vendor: str
    model: str
    kind: "documents.AcceleratorKind"
    devices: int = 0
    memory: float | None = None
    most_memory: float | None = None
    peak: dict[str, float] = field(default_factory=dict)

    def count(self, device: "documents.Device") -> None:
        """Take a registered device of this kind in."""
        self.devices += 1
        memory = device.get("memory_capacity")
        if memory:
            self.memory = memory if self.memory is None else min(self.memory, memory)
            self.most_memory = memory if self.most_memory is None else max(self.most_memory, memory)
        rates: Mapping[str, Any] = device.get("peak_matrix_throughput", {})
        for precision, rate in rates.items():
            if rate > 0:
                self.peak[precision] = min(rate, self.peak.get(precision, rate))


def kinds_of(nodes: "Iterable[documents.Node]") -> dict[str, Accelerator]:
    """Kinds of accelerators of registered nodes, in order of name."""
    by_name: dict[str, Accelerator] = {}
    for node in nodes:
        for device in node.get("devices", ()):
            name = accelerator_name(device["vendor"], device["model"])
            if name not in by_name:
                by_name[name] = Accelerator(name, device["vendor"], device["model"], device["kind"])
            by_name[name].count(device)
    return dict(sorted(by_name.items()))


def main_kind(node: "documents.Node") -> tuple[str, int, int]:
    """Name of the kind of which a node has most devices, how many, and how many of other kinds; a node with any."""
    counts = Counter(accelerator_name(device["vendor"], device["model"]) for device in node["devices"])
    name, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return name, count, counts.total() - count


def sustained_of(
    nodes: "Iterable[documents.Node]", measured: Mapping[tuple[str, str], Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Median of the sustained throughput that was measured, by kind and number format.

    Args:
        nodes: As they are registered.
        measured: FLOP/s by number format, by node and device.
    """
    rates: dict[str, dict[str, list[float]]] = {}
    for node in nodes:
        for device in node.get("devices", ()):
            by_format = measured.get((node["id"], device["id"]))
            if by_format:
                name = accelerator_name(device["vendor"], device["model"])
                for precision, rate in by_format.items():
                    if rate > 0:
                        rates.setdefault(name, {}).setdefault(precision, []).append(rate)
    return {
        name: {precision: median(throughputs) for precision, throughputs in by_format.items()}
        for name, by_format in rates.items()
    }


def profile_of(request: "documents.JobRequest") -> str:
    """Task profile of a job as it was submitted, class JobRequest."""
    precision = request.get("training", {}).get("strategy", {}).get("precision", WIDER[0])
    special = precision in NARROW or precision in WIDER[2:]
    return f"{PROFILE}-{precision}" if special else PROFILE


def chain_of(profile: str) -> tuple[str, ...]:
    """Number formats by which devices are compared in a profile, the first that a device states."""
    if profile == PROFILE:
        return WIDER
    precision = profile.removeprefix(f"{PROFILE}-")
    return (precision, *WIDER[WIDER.index(precision) + 1 :]) if precision in WIDER else (precision, *WIDER)


def sheet_of(accelerator: Accelerator) -> Hardware | None:
    """Data sheet of a kind of accelerator, found by words of its model's name; None where there is none."""
    words = set(_words(f"{accelerator.vendor} {accelerator.model}"))
    sheets = []
    for name, hardware in CATALOGUE.items():
        tokens = _words(name)
        family = tokens[:2] if tokens[0] in {"tpu", "ascend"} else tokens[:1]
        if words.issuperset(family):
            sheets.append(hardware)
    memory = accelerator.memory
    if not sheets:
        return None
    return sheets[0] if memory is None else min(sheets, key=lambda hardware: abs(hardware.memory - memory))


def offered(
    kinds: Mapping[str, Accelerator], sustained: Mapping[str, Mapping[str, float]], profiles: Sequence[str]
) -> "tuple[list[documents.OfferedAccelerator], list[str]]":
    """Kinds of accelerators as a scheduling state has them, and what to know of their figures.

    Args:
        kinds: By name.
        sustained: Measured FLOP/s by kind and number format.
        profiles: Which indices are wanted.

    Returns:
        Instances of OfferedAccelerator in order of name, and notes for people.
    """
    notes: list[str] = []
    indices: dict[str, list[documents.ProfileIndex]] = {name: [] for name in kinds}
    for profile in profiles:
        for name, value in _indices(kinds, sustained, profile, notes).items():
            indices[name].append({"profile": profile, "value": value})
    accelerators: list[documents.OfferedAccelerator] = [
        {"id": name, "kind": accelerator.kind, "memory": _memory(accelerator, notes), "indices": indices[name]}
        for name, accelerator in kinds.items()
    ]
    return accelerators, list(dict.fromkeys(notes))


def _indices(
    kinds: Mapping[str, Accelerator], sustained: Mapping[str, Mapping[str, float]], profile: str, notes: list[str]
) -> dict[str, float]:
    """Compute index of each kind in a profile."""
    chain = chain_of(profile)
    reference = _first(REFERENCE_PEAK, chain)
    assert reference is not None  # every chain ends with formats that it has
    measured = {name: _first(sustained.get(name, {}), chain) for name in kinds}
    if kinds and all(rate is not None for rate in measured.values()):
        reached = reference * REFERENCE_SHARE
        return {name: _rounded(rate / reached) for name, rate in measured.items() if rate is not None}
    index_of = {}
    for name, accelerator in kinds.items():
        rate = _peak(accelerator, measured[name], chain, notes)
        if rate is None:
            notes.append(f"{name}: nothing is known of its throughput, so it counts as one reference device")
        index_of[name] = 1.0 if rate is None else _rounded(rate / reference)
    return index_of


def _peak(accelerator: Accelerator, measured: float | None, chain: Sequence[str], notes: list[str]) -> float | None:
    """Peak of a kind by the first number format of a chain, from the surest source that has one; FLOP/s."""
    registered = _first(accelerator.peak, chain)
    if registered is not None:
        return registered
    sheet = sheet_of(accelerator)
    nominal = None if sheet is None else _first(sheet.peak, chain)
    if sheet is not None and nominal is not None:
        notes.append(f"{accelerator.name}: its peak is taken from the data sheet of {sheet.name}")
        return nominal
    if measured is not None:
        notes.append(f"{accelerator.name}: its peak is taken to be what was measured over {USUAL_SHARE:g}")
        return measured / USUAL_SHARE
    return None


def _memory(accelerator: Accelerator, notes: list[str]) -> float:
    """Bytes of one device."""
    memory, most = accelerator.memory, accelerator.most_memory
    if memory is not None and most is not None:
        if most > memory * (1.0 + MEMORY_SPREAD):
            notes.append(f"{accelerator.name}: memories differ, {memory:.3g} to {most:.3g} B; the least counts")
        return memory
    sheet = sheet_of(accelerator)
    if sheet is not None:
        notes.append(f"{accelerator.name}: its memory is taken from the data sheet of {sheet.name}")
        return sheet.memory
    notes.append(f"{accelerator.name}: nobody states its memory, so that only jobs without a need of it run on it")
    return UNKNOWN_MEMORY


def _first(rates: Mapping[str, float], chain: Iterable[str]) -> float | None:
    """Rate by the first number format of a chain that there is."""
    return next((rates[precision] for precision in chain if rates.get(precision, 0.0) > 0), None)


def _rounded(value: float) -> float:
    """A number in as many digits as mean anything, within what the wire has."""
    return min(max(float(f"{value:.{DIGITS}g}"), 1e-9), 1e9)
