"""Jobs as the standard specifies them, and placements."""

from math import inf
from typing import Any

from kuayu_conformance.testbed.scheduling.values import Dataset, Job, Placement, Split
from kuayu_conformance.testbed.scheduling.wire.names import Names

LOWER, HIGHER, COVERAGE = 0.5, 2.0, 0.8
"""Interval about the seconds that a job states: four in five lie inside, where jobs state what they usually do."""


def spec_of(job: Job, data: Dataset, names: Names) -> dict[str, Any]:
    """A ``JobSpec``: what was submitted, and nothing that only the world knows.

    Args:
        job: As policies know it.
        data: What it reads, where it lay at the beginning.
        names: What everything is called.
    """
    spec: dict[str, Any] = {
        "id": names.of("job", job.name),
        "tenant": names.of("tenant", job.tenant),
        "kind": job.kind.name.lower(),
        "priority": job.priority,
        "home_domain": names.of("domain", job.home),
        "submitted_at": names.instant(job.submitted),
        "devices": {"minimum": job.minimum, "maximum": job.maximum, "requested": job.requested},
        "memory_per_device": job.memory,
        "task_profile": names.of("profile", job.profile),
        "duration": {
            "expected": job.stated,
            "low": LOWER * job.stated,
            "high": HIGHER * job.stated,
            "coverage": COVERAGE,
        },
        "serial_share": job.serial,
        "communication": {
            "step_time": job.model.step,
            "exchange": job.model.gradient,
            "boundary": job.model.boundary,
            "checkpoint_size": job.model.checkpoint,
        },
        "split_modes": list(dict.fromkeys([Split.NONE.value, *(split.value for split in job.splits)])),
        "data": [artefact_of(data, names)],
    }
    if job.deadline < inf:
        spec["deadline"] = names.instant(job.deadline)
    return spec


def artefact_of(data: Dataset, names: Names) -> dict[str, Any]:
    """An ``Artefact``."""
    return {
        "id": names.of("data", data.name),
        "size": data.size,
        "domains": sorted(names.of("domain", site) for site in data.sites),
        "pinned": data.pinned,
    }


def placement_of(placement: Placement, names: Names) -> dict[str, Any]:
    """A ``JobPlacement``."""
    shares = [
        {
            "domain": names.of("domain", share.site),
            "accelerator": names.of("accelerator", share.device),
            "devices": share.devices,
        }
        for share in placement.shares
    ]
    placed: dict[str, Any] = {"shares": shares, "split_mode": placement.split.value}
    if placement.split is Split.PERIODIC:
        placed["sync_period"] = placement.period
    return placed
