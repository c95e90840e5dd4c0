"""What a training needs in each of its phases, and what is held in vain around their switches (DEM-002).

1. Device-seconds that are held in vain, or missing, when a plan meets what a training can use.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand.demand_requests import (
    NODE,
    DemandExchange,
    ask_demands,
    case,
    counted,
    hardware,
    model,
    names,
    revision,
    strategy,
)
from kuayu_conformance.checks.kit.decisions import near
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents


class Occupancy(NamedTuple):
    """So many accelerators for so many seconds."""

    devices: int
    seconds: float


def in_vain(plan: Sequence[Occupancy], use: Sequence[Occupancy], node: int) -> float:
    """Integral of the difference between what is held and what is of use, in device-seconds.

    Nodes are held whole. When the plan has ended before the use, nothing is held; when the use has ended, nothing is
    of use.

    Args:
        plan: What is held, one after the other.
        use: What is of use, likewise.
        node: Accelerators of a node.
    """
    ends = sorted({*accumulate(item.seconds for item in plan), *accumulate(entry.seconds for entry in use)})
    total, before = 0.0, 0.0
    for end in ends:
        middle = (before + end) / 2
        devices = ceil(_devices_at(plan, middle) / node) * node
        total += abs(devices - _devices_at(use, middle)) * (end - before)
        before = end
    return total


def _devices_at(course: Sequence[Occupancy], instant: float) -> int:
    for item, end in zip(course, accumulate(entry.seconds for entry in course), strict=True):
        if instant < end:
            return item.devices
    return 0


ID = "DEM-002"
QUICK, FULL = 6, 40
TENTH = 0.1
PHASES: "tuple[documents.TrainingPhase, ...]" = ("warm_up", "fast_convergence", "stable_convergence")


@dataclass(frozen=True)
class PhaseDemands:
    """Trainings by phase, and each of their phases as a training of its own.

    Attributes:
        whole: Trainings with phases.
        alone: Phases on their own.
        names: Name of a phase's case among these, by case and number of the phase; absent where its batch does not
            divide, so that it is no layout of its own.
    """

    whole: DemandExchange
    alone: DemandExchange
    names: Mapping[tuple[str, int], str]


def observe(episode: Episode) -> PhaseDemands:
    """Ask for trainings whose batch grows and whose sequences become longer, then for their phases on their own."""
    chance = episode.random
    count = FULL if episode.settings.full else QUICK
    machines = [hardware(chance, name) for name in names(chance, "h", 2)]
    cases = [_training(episode, name, number, machines) for number, name in enumerate(names(chance, "c", count))]
    apart: dict[tuple[str, int], documents.TrainingCase] = {}
    for training in cases:
        for number, phase in enumerate(training["phases"]):
            own = on_its_own(training, phase, f"{training['id']}-{number}")
            spread = own["strategy"]
            if spread["global_batch"] % (spread["data"] * spread["micro_batch"]) == 0:
                apart[training["id"], number] = own
    alone = list(apart.values())
    return PhaseDemands(
        ask_demands(episode, {"revision": revision(episode), "hardware": machines, "cases": cases}),
        ask_demands(
            episode,
            {"revision": revision(episode), "hardware": machines, "cases": chance.sample(alone, len(alone))},
        ),
        {place: own["id"] for place, own in apart.items()},
    )


def _training(
    episode: Episode, name: str, number: int, machines: "list[documents.TrainingHardware]"
) -> "documents.TrainingCase":
    """A training that begins with few sequences; its batch grows to many times that, then its sequences do.

    Replicas fill whole servers, so that servers can be given back and taken one by one.
    """
    chance = episode.random
    of = model(chance, ("plain", "grouped", "window")[number % 3])
    data, micro = chance.choice((8, 16, 32)), chance.choice((1, 2))
    tensor, pipeline = chance.choice(((8, 1), (8, 2), (4, 2), (2, 4)))
    most = data * micro * pipeline * chance.randint(2, 4)
    spread = strategy(
        chance, of, data=data, micro_batch=micro, tensor=tensor, pipeline=pipeline, global_batch=most, expert=1
    )
    few = chance.choice([size for size in (1, 2, 4) if size < data // 2])
    odd = micro * (data // 2) + (micro - 1)  # micro-batches are whole or not at all
    phases: list[documents.PlannedPhase] = [
        {"phase": PHASES[0], "steps": chance.randint(500, 5000), "global_batch": few * micro},
        {"phase": PHASES[0], "steps": chance.randint(500, 5000), "global_batch": odd},
        {"phase": PHASES[1], "steps": chance.randint(5000, 50_000)},
        {"phase": PHASES[2], "steps": chance.randint(500, 5000), "sequence": 4 * of["sequence"]},
    ]
    if number % 3 == 2:  # ends with less than a micro-batch
        phases.append({"phase": PHASES[2], "steps": chance.randint(50, 500), "global_batch": 1})
    return case(name, of, spread, chance.choice(machines)["id"], phases=phases)


def on_its_own(whole: "documents.TrainingCase", phase: "documents.PlannedPhase", name: str) -> "documents.TrainingCase":
    """A phase as a training: its batch and sequence, on as many replicas as have a micro-batch."""
    spread = whole["strategy"]
    batch = phase.get("global_batch", spread["global_batch"])
    replicas = max(1, min(spread["data"], batch // spread["micro_batch"]))
    of: documents.ModelStructure = {**whole["model"], "sequence": phase.get("sequence", whole["model"]["sequence"])}
    own: documents.ParallelStrategy = {**spread, "data": replicas, "global_batch": batch}
    return case(name, of, own, whole["hardware"])


def judge(observation: PhaseDemands) -> Iterable[Finding]:
    """Claims about each phase, then about each training."""
    for entry in (observation.whole, observation.alone):
        if entry.amiss:
            yield holds(ID, False, "a demand of every case, in their order", entry.amiss, entry.answer)
            return
    for training in observation.whole.body["cases"]:
        phases = observation.whole.demands[training["id"]].get("phases") or []
        order = [row["phase"] for row in phases]
        wanted = [phase["phase"] for phase in training["phases"]]
        yield _claim(observation, order == wanted, f"phases {wanted} of {training['id']}", order)
        if order == wanted:
            for number, (phase, row) in enumerate(zip(training["phases"], phases, strict=True)):
                yield from _phase(observation, training, phase, row, observation.names.get((training["id"], number)))
            yield _mismatch(observation, training, phases)


def _phase(
    observation: PhaseDemands,
    training: "documents.TrainingCase",
    phase: "documents.PlannedPhase",
    row: "documents.PhaseDemand",
    alone: str | None,
) -> Iterator[Finding]:
    own = on_its_own(training, phase, "")
    spread, of, steps = own["strategy"], own["model"], phase["steps"]
    what = f"{training['id']}, {phase['phase']} with {spread['global_batch']} sequences of {of['sequence']}"
    devices = spread["tensor"] * spread["pipeline"] * spread.get("context", 1) * spread["data"]
    yield _claim(observation, row["devices"] == devices, f"{what}: {devices} accelerators", row["devices"])
    work = steps * counted(of).work(spread["global_batch"] * of["sequence"])
    yield _claim(observation, near(row["work"], work), f"{what}: {work:.5g} FLOP", f"{row['work']:.5g}")
    lasts = steps * row["step_time"]
    yield _claim(observation, near(row["duration"], lasts), f"{what}: lasts {lasts:.5g} s", f"{row['duration']:.5g}")
    if alone is None:
        return
    single = observation.alone.demands[alone]
    sent = [flow["size"] for flow in single["traffic"]]
    time, memory = single["step_time"]["expected"], single["memory"]
    for name, stated, wanted in (("step_time", row["step_time"], time), ("memory", row["memory"], memory)):
        expected = f"{what}: {name} as on its own, {wanted:.5g}"
        yield _claim(observation, near(stated, wanted), expected, f"{stated:.5g}")
    least, most = max(sent, default=0.0), sum(sent)
    fine = least * 0.99 <= row["traffic"] <= most * 1.01
    expected = f"{what}: traffic of a step between {least:.5g} and {most:.5g} B, as on its own"
    yield _claim(observation, fine, expected, f"{row['traffic']:.5g}")


def _mismatch(
    observation: PhaseDemands, training: "documents.TrainingCase", phases: "list[documents.PhaseDemand]"
) -> Claim:
    """Accelerators held and of no use, or of use and not held: by the phases told, and where a job holds all."""
    planned = [Occupancy(row["devices"], row["duration"]) for row in phases]
    true = []
    for number, (phase, row) in enumerate(zip(training["phases"], phases, strict=True)):
        own = on_its_own(training, phase, "")["strategy"]
        alone = observation.names.get((training["id"], number))
        step = observation.alone.demands[alone]["step_time"]["expected"] if alone else row["step_time"]
        useful = own["tensor"] * own["pipeline"] * own.get("context", 1) * own["data"]
        true.append(Occupancy(useful, phase["steps"] * step))
    spread = training["strategy"]
    everything = spread["tensor"] * spread["pipeline"] * spread.get("context", 1) * spread["data"]
    without = in_vain([Occupancy(everything, entry.seconds) for entry in true], true, NODE)
    by_phase = in_vain(planned, true, NODE)
    expected = f"{training['id']}: by its phases at most a tenth of {without:.4g} device-seconds is held in vain"
    return _claim(observation, by_phase <= TENTH * without and without > 0, expected, f"{by_phase:.4g}")


def _claim(observation: PhaseDemands, met: bool, expected: str, observed: object) -> Claim:  # noqa: FBT001
    return holds(ID, met, expected, observed, observation.whole.answer)


CHECK = Check("dem_phases", (ID,), observe, judge)
