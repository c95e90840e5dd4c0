"""What the workloads of a host gave as part of a corpus, and the file that collects such parts.

A corpus is what compute indices rest on, and it travels in the request for them; no service keeps it. So the figures of
a host are handed over as a file: each host adds its own, and the file goes to whoever asks for indices.
"""

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kuayu.engine.workloads.workload import WorkloadReport, WorkloadResult
from kuayu_schemas import schema
from kuayu_schemas.models import Corpus, IndexedDevice, Measurement


class CorpusFileError(Exception):
    """A corpus file cannot be read, written or added to.

    Attributes:
        cause: Why.
        hint: What would help.
    """

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"{cause}; {hint}")
        self.cause = cause
        self.hint = hint


def fragment(report: WorkloadReport, bandwidths: Mapping[str, float] | None = None) -> Corpus | None:
    """What was measured as a corpus; None where nothing was.

    Args:
        report: Outcome of the workloads.
        bandwidths: Memory bandwidth in By/s that was measured, by the device's name in the host.
    """
    devices = []
    for place in report.places:
        results = [result for result in report.results if result.place == place.id]
        if not results:
            continue
        powers = [result.power for result in results if result.power is not None]
        device = IndexedDevice(
            id=place.id,
            stack=place.stack,
            measured_at=report.finished_at,
            accelerator_memory_capacity=place.capacity or None,
            accelerator_memory_bandwidth=(bandwidths or {}).get(place.host_device or ""),
            power=statistics.median(powers) if powers else None,
        )
        devices.append(device)
    measured = {result.workload for result in report.results}
    tasks = [workload.task() for workload in report.workloads if workload.name in measured]
    return Corpus(devices=devices, tasks=tasks, measurements=_measurements(report.results)) if devices else None


def _measurements(results: tuple[WorkloadResult, ...]) -> list[Measurement]:
    return [
        Measurement(device=result.place, task=result.workload, throughput=result.value, power=result.power)
        for result in results
    ]


def merged(old: Mapping[str, Any], new: Corpus) -> dict[str, Any]:
    """The corpus ``old``, as JSON, with what ``new`` holds.

    Other devices, tasks and measurements stay as they are. Of a device that ``old`` has with the same stack, the
    measurements of the same tasks on as many devices at once are replaced, and so is what ``new`` knows of it; what
    only ``old`` knows, such as figures of a data sheet, stays.

    Raises:
        CorpusFileError: ``old`` has a device of the same name with another stack, or would become too large.
    """
    wire = new.to_wire()
    devices = {device["id"]: device for device in old["devices"]}
    for device in wire["devices"]:
        before = devices.get(device["id"], device)
        if before["stack"] != device["stack"]:
            raise CorpusFileError(f"its device {device['id']} has another stack", "give that one another name")
        devices[device["id"]] = before | device
    tasks = {task["id"]: task for task in wire["tasks"]} | {task["id"]: task for task in old["tasks"]}
    anew = {_setting(measurement) for measurement in wire["measurements"]}
    kept = [measurement for measurement in old["measurements"] if _setting(measurement) not in anew]
    whole = {**old, "devices": [*devices.values()], "tasks": [*tasks.values()]}
    whole["measurements"] = [*kept, *wire["measurements"]]
    for wrong in schema.errors("Corpus", whole):
        raise CorpusFileError(f"no corpus can hold all of it: {wrong.detail} (at {wrong.pointer})", "name another file")
    return whole


def _setting(measurement: Mapping[str, Any]) -> tuple[str, str, int]:
    """What was measured on what: device, task and number of devices that worked together."""
    return measurement["device"], measurement["task"], measurement.get("devices") or 1


def read(path: Path) -> dict[str, Any] | None:
    """The corpus in the file, as JSON; None where there is no file.

    Raises:
        CorpusFileError: The file cannot be read, is no JSON, or breaks the schema; or there is no folder for it.
    """
    if not path.parent.is_dir():
        raise CorpusFileError(f"there is no folder {path.parent}", "make it first")
    hint = "name another file, or mend this one; it is left as it is"
    try:
        corpus = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CorpusFileError(f"{path}: {error.strerror or error}", hint) from error
    except ValueError as error:
        raise CorpusFileError(f"{path} is no JSON ({error})", hint) from error
    for wrong in schema.errors("Corpus", corpus):
        raise CorpusFileError(f"{path} is no corpus: {wrong.detail} (at {wrong.pointer or 'its root'})", hint)
    assert isinstance(corpus, dict)
    return corpus


def write(path: Path, corpus: Mapping[str, Any]) -> None:
    """Replace the file as a whole, so that it is never half of one.

    Raises:
        CorpusFileError: The folder cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(json.dumps(corpus, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise CorpusFileError(f"{path}: {error.strerror or error}", "name a file that can be written") from error
