"""Names of a request: what they point at, what is unknown, what stands twice."""

from collections.abc import Iterable, Sequence

from kuayu.refusals import Complaint, RepeatedName, UnknownName, refuse, repeated
from kuayu_schemas.models import Corpus, CorpusCell, DeviceGroup, IndexRequest, Measurement, ProbePlanRequest


def check_indices(request: IndexRequest) -> None:
    """Check the names of a request for indices.

    Raises:
        RepeatedName: Devices, tasks or groups share a name.
        UnknownName: A name is not in the corpus, or a group is not earlier in the list.
    """
    groups = request.groups or []
    refuse(RepeatedName, [*_repeated_in_corpus(request.corpus), *repeated("/groups", [group.id for group in groups])])
    devices, tasks = _names(request.corpus)
    found = [*_unknown_in_measurements(request.corpus), *_unknown([("/reference", request.reference)], devices)]
    found += _unknown(_each("/devices", request.devices or []), devices)
    found += _unknown(_each("/tasks", request.tasks or []), tasks)
    refuse(UnknownName, [*found, *_unknown_members(groups, devices)])


def check_plan(request: ProbePlanRequest) -> None:
    """Check the names of a request for a probe plan.

    Raises:
        RepeatedName: Devices or tasks share a name.
        UnknownName: A name is not in the corpus.
    """
    refuse(RepeatedName, _repeated_in_corpus(request.corpus))
    found = _unknown_in_measurements(request.corpus)
    for place, cells in (("/candidates", request.candidates), ("/targets", request.targets)):
        found += _unknown_in_cells(place, cells, *_names(request.corpus))
    refuse(UnknownName, found)


def _names(corpus: Corpus) -> tuple[set[str], set[str]]:
    return {device.id for device in corpus.devices}, {task.id for task in corpus.tasks}


def _each(place: str, names: Sequence[str]) -> list[Complaint]:
    return [(f"{place}/{position}", name) for position, name in enumerate(names)]


def _unknown(places: Iterable[Complaint], known: set[str]) -> list[Complaint]:
    return [(pointer, f"{name} is not in the corpus") for pointer, name in places if name not in known]


def _unknown_in_measurements(corpus: Corpus) -> list[Complaint]:
    return _unknown_in_cells("/corpus/measurements", corpus.measurements, *_names(corpus))


def _unknown_in_cells(
    place: str, cells: Sequence[CorpusCell | Measurement], devices: set[str], tasks: set[str]
) -> list[Complaint]:
    found: list[Complaint] = []
    for position, cell in enumerate(cells):
        if cell.device not in devices:
            found.append((f"{place}/{position}/device", f"{cell.device} is not in the corpus"))
        if cell.task not in tasks:
            found.append((f"{place}/{position}/task", f"{cell.task} is not in the corpus"))
    return found


def _unknown_members(groups: Sequence[DeviceGroup], devices: set[str]) -> list[Complaint]:
    found: list[Complaint] = []
    earlier: set[str] = set()
    for position, group in enumerate(groups):
        for place, member in enumerate(group.members):
            pointer = f"/groups/{position}/members/{place}"
            if member.device is not None and member.device not in devices:
                found.append((f"{pointer}/device", f"{member.device} is not in the corpus"))
            if member.group is not None and member.group not in earlier:
                found.append((f"{pointer}/group", f"{member.group} is no group that stands earlier"))
        earlier.add(group.id)
    return found


def _repeated_in_corpus(corpus: Corpus) -> list[Complaint]:
    devices = repeated("/corpus/devices", [device.id for device in corpus.devices])
    return [*devices, *repeated("/corpus/tasks", [task.id for task in corpus.tasks])]
