"""What scheduling asks of a job (class JobSpec), from what was submitted (class JobRequest).

1. *Duration*, on the devices asked for, of the reference device:

   - what the request states;
   - else, where it says what it trains, steps × time of a step by the demand law (:mod:`kuayu.demand`) on the reference
     device, in proportion where the strategy has another number of devices than is asked for; its interval is the
     law's for a model that nobody has measured. The time is counted on the reference device and not on the best one of
     the federation, since that is what a duration refers to; indices carry it over to other devices;
   - else :data:`UNKNOWN_DURATION`, which is wide.

2. *Domains.* A specification has no member for domains that a job may run in. What says exactly the same is data that
   lie there and may not leave: such a job reads an artefact (:data:`CONFINED`) of one byte, pinned, that lies
   in the domains which it names. The job goes nowhere else, and all jobs are decided on together, in
   the order of their priority; a decision for each group of domains by itself could not keep that order.

3. *Size.* A job that waits since it was resized asks for that many devices at most, so that what it gave up is left to
   whom it was given up for; its work stays what it was.

4. *Checkpoints* are told by a URI that all domains reach, so that none of them is nearer to it.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import orjson

from kuayu.jobs.accelerators import REFERENCE, REFERENCE_PEAK, REFERENCE_SHARE, profile_of
from kuayu.refusals import Refusal

if TYPE_CHECKING:
    from kuayu_schemas import documents

UNKNOWN_DURATION: "documents.Estimate" = {"expected": 3600.0, "low": 60.0, "high": 604_800.0, "coverage": 0.8}
"""Of a job that says nothing of how long it takes: an hour, as likely as not; between a minute and a week in four cases
of five. No measurement: durations of training jobs in published traces span that much and more (Q. Hu et al., SC 2021;
M. Jeon et al., USENIX ATC 2019)."""

CONFINED = "kuayu.domains"
"""Begins the name of an artefact that lies in the domains that a job may run in, a byte that may not leave."""

INSIDE: "documents.SplitMode" = "none"
"""Split mode of a job that says nothing: inside one domain."""

COPIED = (
    *("id", "kind", "account", "priority", "submitted_at", "device_kinds", "memory_per_device", "communication"),
    "sync_period",
)
"""Members that a specification has from the record as they are, and"""

COPIED_TOO = ("links", "nodes")
"""these, which stand behind them."""

WAITING_STATES = frozenset({"queued", "held"})
"""States in which a job holds nothing."""

MAX_DURATION_SECONDS = 1e12
"""Seconds of the longest duration that is told, some thirty thousand years."""

KNOWN_AT_MOST = 20_000
"""Trainings whose duration is remembered: a request does not change, and the law takes milliseconds for each."""

_REVISION: "documents.Revision" = {"epoch": "reference", "number": 0}

_HARDWARE: "documents.TrainingHardware" = {
    "id": "reference",
    "peak_matrix_throughput": cast("documents.PrecisionThroughput", dict(REFERENCE_PEAK)),
    "sustained_matrix_throughput": cast(
        "documents.PrecisionThroughput", {name: rate * REFERENCE_SHARE for name, rate in REFERENCE_PEAK.items()}
    ),
    "accelerator_memory_capacity": REFERENCE.memory,
    "accelerator_memory_bandwidth": REFERENCE.memory_bandwidth,
    "multiprocessors": REFERENCE.units,
    "devices_per_node": REFERENCE.per_node,
    "node_bandwidth": REFERENCE.inside,
    "domain_bandwidth": REFERENCE.between,
}
"""The reference device as class TrainingHardware has it."""

_known: "dict[bytes, tuple[documents.Estimate, int] | None]" = {}
"""Time of a step, and devices, by what is trained and how it is spread; None where the law refuses it."""


def specifications(records: "Sequence[documents.JobRecord]", domains: Collection[str]) -> "list[documents.JobSpec]":
    """Specifications of jobs, in their order.

    Args:
        records: Class JobRecord.
        domains: Domains that there are; others that a job names are left out, since nothing is known of them.

    Returns:
        Instances of JobSpec, each with a duration.
    """
    _learn([record["training"] for record in records if _is_predicted(record)])
    return [_specification(record, domains) for record in records]


def duration_of(record: "documents.JobRecord") -> "documents.Estimate":
    """Time that a job takes on the devices that it asks for, of the reference device; class Estimate in seconds."""
    if "duration" in record:
        return record["duration"].copy()
    step = None
    if _is_predicted(record):
        _learn([record["training"]])
        step = _known.get(_key(record["training"]))
    if step is None:
        return UNKNOWN_DURATION.copy()
    training, devices = record["training"], record["devices"]
    requested = max(int(devices.get("requested", devices["maximum"])), 1)
    time, on = step
    factor = training["steps"] * on / requested
    low, expected, high = (
        min(bound * factor, MAX_DURATION_SECONDS) for bound in (time["low"], time["expected"], time["high"])
    )
    return {"expected": expected, "low": low, "high": high, "coverage": time["coverage"]}


def is_guessed(record: "documents.JobRecord") -> bool:
    """Whether nothing that was submitted tells how long a job takes."""
    return "duration" not in record and (not _is_predicted(record) or _known.get(_key(record["training"])) is None)


def contradiction(record: "documents.JobRecord") -> str | None:
    """Why no number of devices would do for a job, or no duration, in words; None where one would.

    A state with such a job would be refused as a whole.
    """
    devices = record["devices"]
    least, most = devices["minimum"], devices["maximum"]
    requested = devices.get("requested", most)
    if most < 1 or requested < 1:
        return "It asks for no device at all."
    if least > most:
        return f"It asks for at least {least} devices, and at most {most}."
    if not least <= requested <= most:
        return f"It asks for {requested} devices, where {least} to {most} would do."
    duration = record.get("duration")
    if duration and not duration["low"] <= duration["expected"] <= duration["high"]:
        return "The duration that is expected of it does not lie between both ends of its interval."
    return None


def _specification(record: "documents.JobRecord", domains: Collection[str]) -> "documents.JobSpec":
    members: Mapping[str, Any] = record
    spec: dict[str, Any] = {name: members[name] for name in COPIED if name in members}
    devices, duration = _sized(record)
    spec |= {
        "devices": devices,
        "task_profile": profile_of(record),
        "duration": duration,
        "split_modes": list(record.get("split_modes") or [INSIDE]),
    }
    spec |= {name: members[name] for name in COPIED_TOO if name in members}
    if "deadline" in record and _is_instant(record["deadline"]):
        spec["deadline"] = record["deadline"]
    data: list[documents.Artefact] = [
        {**artefact, "domains": [name for name in artefact["domains"] if name in domains]}
        for artefact in record.get("data", ())
    ]
    if record.get("domains"):
        data.append(_confinement(name for name in record["domains"] if name in domains))
    if data:
        spec["data"] = data
    return cast("documents.JobSpec", spec)


def _sized(record: "documents.JobRecord") -> "tuple[documents.Elasticity, documents.Estimate]":
    """Devices that a job asks for, and how long it takes on these; those of its resize, where it waits since that."""
    devices, duration = record["devices"], duration_of(record)
    if "resize" not in record or record["state"] not in WAITING_STATES:
        return devices, duration
    most = max(min(record["resize"]["devices"], devices["maximum"]), devices["minimum"])
    before = devices.get("requested", devices["maximum"])
    requested = min(before, most)
    longer = before / max(requested, 1)
    low, expected, high = (
        min(bound * longer, MAX_DURATION_SECONDS) for bound in (duration["low"], duration["expected"], duration["high"])
    )
    sized: documents.Elasticity = {**devices, "maximum": most, "requested": requested}
    return sized, {"expected": expected, "low": low, "high": high, "coverage": duration["coverage"]}


def _confinement(domains: Iterable[str]) -> "documents.Artefact":
    """Artefact that keeps a job in some domains; jobs that may run in the same ones share it, and no others do."""
    allowed = sorted(domains)
    digest = hashlib.sha256("\0".join(allowed).encode()).hexdigest()[:16]
    return {"id": f"{CONFINED}.{digest}", "size": 1.0, "domains": allowed, "pinned": True}


def _is_predicted(record: "documents.JobRecord") -> bool:
    return "training" in record and "duration" not in record


def _key(training: "documents.PlannedTraining") -> bytes:
    return orjson.dumps([training["model"], training["strategy"]], option=orjson.OPT_SORT_KEYS)


def _learn(trainings: "Sequence[documents.PlannedTraining]") -> None:
    """Have the law predict what is not known yet, all of it at once."""
    wanted = {key: training for training in trainings if (key := _key(training)) not in _known}
    if not wanted:
        return
    if len(_known) + len(wanted) > KNOWN_AT_MOST:
        _known.clear()
    names = list(wanted)
    predicted = _predicted([wanted[name] for name in names])
    _known.update(zip(names, predicted, strict=True))


def _predicted(trainings: "Sequence[documents.PlannedTraining]") -> "list[tuple[documents.Estimate, int] | None]":
    """Time of a step of each training with the devices of its strategy; None where the law refuses it."""
    from kuayu.demand.demand_report import demand  # not before: with it comes SciPy

    step_times: list[tuple[documents.Estimate, int] | None] = [None] * len(trainings)
    open_ones = list(range(len(trainings)))
    while open_ones:
        try:
            demands = demand(_request([trainings[place] for place in open_ones]))["demands"]
        except Refusal as refusal:
            refused = {int(pointer.split("/")[2]) for pointer, _ in refusal.pointers if pointer.startswith("/cases/")}
            if not refused:
                return step_times
            open_ones = [place for number, place in enumerate(open_ones) if number not in refused]
            continue
        for place, predicted in zip(open_ones, demands, strict=True):
            step_times[place] = predicted["step_time"], predicted["devices"]
        return step_times
    return step_times


def _request(trainings: "Sequence[documents.PlannedTraining]") -> "documents.TrainingDemandRequest":
    """Asks for the demand of trainings on the reference device, class TrainingDemandRequest."""
    cases: list[documents.TrainingCase] = [
        {"id": str(number), "model": training["model"], "strategy": training["strategy"], "hardware": _HARDWARE["id"]}
        for number, training in enumerate(trainings)
    ]
    return {"revision": _REVISION, "hardware": [_HARDWARE], "cases": cases}


def _is_instant(text: str) -> bool:
    """Whether there is such an instant."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
