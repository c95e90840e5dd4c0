"""Requests for demand that name what they do not hold, one thing twice, or what cannot be (DEM-006)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand.demand_requests import (
    DEMANDS,
    LAYOUTS,
    SIZES,
    case,
    hardware,
    model,
    names,
    revision,
    strategy,
)
from kuayu_conformance.checks.kit.decisions import (
    INVALID,
    BadRequest,
    Fault,
    at,
    bad_requests,
    refusals,
    repeated,
    unknown,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding

if TYPE_CHECKING:
    from kuayu_schemas import documents

ID = "DEM-006"


def observe(episode: Episode) -> tuple[BadRequest, ...]:
    """Ask as it should be, then with one thing wrong each time.

    Raises:
        SetUpFailure: What is right is not answered.
    """
    return bad_requests(episode, requests(episode), _faults, lambda _, path, body: episode.set_up("POST", path, body))


def requests(episode: Episode) -> dict[str, Mapping[str, Any]]:
    """A small request for each operation, with a name in every place that may hold one."""
    chance = episode.random
    labels = names(chance, "n", 8)
    machines = [hardware(chance, label) for label in labels[:2]]
    of = model(chance, "experts")
    spread = strategy(chance, of)
    run: documents.MeasuredRun = {
        "source": labels[2],
        "model": of,
        "strategy": spread,
        "hardware": labels[0],
        "step_time": chance.uniform(1.0, 30.0),
    }
    made_from = revision(episode)
    runs: list[documents.MeasuredRun] = [run, {**run, "hardware": labels[1]}]
    given: documents.TaskResources = {"devices": 1.0, "cores": 8.0, "memory": 3.2e10}
    used: documents.TaskResources = {"devices": 0.5, "cores": 3.0, "memory": 1.1e10}
    demands: documents.TrainingDemandRequest = {
        "revision": made_from,
        "hardware": machines,
        "runs": runs,
        "cases": [case(label, of, spread, labels[0]) for label in labels[4:6]],
    }
    layouts: documents.LayoutRequest = {
        "revision": made_from,
        "hardware": machines,
        "runs": runs,
        "model": of,
        "kind": labels[0],
        "devices": 8,
        "global_batch": 64,
    }
    sizes: documents.SizingRequest = {
        "revision": made_from,
        "history": [{"kind": labels[3], "requested": given, "used": used, "duration": chance.uniform(100.0, 1000.0)}],
        "tasks": [{"id": label, "kind": labels[3], "requested": given} for label in labels[6:8]],
    }
    return {DEMANDS: demands, LAYOUTS: layouts, SIZES: sizes}


USED: Mapping[str, tuple[tuple[str, str], ...]] = {
    DEMANDS: (("hardware of a case", "/cases/1/hardware"), ("hardware of a run", "/runs/1/hardware")),
    LAYOUTS: (("kind of hardware", "/kind"), ("hardware of a run", "/runs/1/hardware")),
    SIZES: (),
}
"""Places of names that point at something, by operation; each is given one that nothing has."""
TWICE: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    DEMANDS: (
        ("hardware", "/hardware/1/id", "/hardware/0/id"),
        ("case", "/cases/1/id", "/cases/0/id"),
    ),
    LAYOUTS: (("hardware", "/hardware/1/id", "/hardware/0/id"),),
    SIZES: (("task", "/tasks/1/id", "/tasks/0/id"),),
}
"""Places of names that something else has already, and where, by operation."""
IMPOSSIBLE: Mapping[str, tuple[str, ...]] = {
    DEMANDS: ("/cases/1/model", "/runs/1/model"),
    LAYOUTS: ("/model", "/runs/1/model"),
    SIZES: (),
}
"""Places of models; each is given tokens that go to more experts than there are."""


@dataclass(frozen=True)
class ModelFault(Fault):
    """A model that cannot be; places within it will do, which the words of the claim do not say."""

    @property
    def where(self) -> str:
        """The place of the model."""
        return self.pointer


def _faults(path: str, whole: Mapping[str, Any]) -> Iterator[Fault]:
    """What can be wrong with the request of an operation."""
    for what, pointer in USED[path]:
        yield unknown(f"{what} that is unknown", pointer)
    for what, pointer, source in TWICE[path]:
        yield repeated(f"{what} that stands twice", pointer, whole, source)
    for place in IMPOSSIBLE[path]:
        values = {f"{place}/experts_per_token": at(whole, place)["experts"] + 1}
        yield ModelFault("more experts for a token than there are", INVALID, place, True, values)


def judge(observation: tuple[BadRequest, ...]) -> Iterable[Finding]:
    """Claims about refusals."""
    return refusals(ID, observation)


CHECK = Check("dem_names", (ID,), observe, judge)
