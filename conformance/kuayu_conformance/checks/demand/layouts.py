"""Layouts that a service recommends (DEM-005)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand.demand_requests import (
    DEMANDS,
    GIGA,
    LAYOUTS,
    case,
    counted,
    devices,
    hardware,
    model,
    names,
    report,
    revision,
)
from kuayu_conformance.checks.kit.decisions import near
from kuayu_conformance.episode import Episode, SetUpFailure
from kuayu_conformance.findings import Claim, Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

ID = "DEM-005"
QUICK, FULL = 5, 24
MAX_LAYOUTS = 10
"""Layouts that are told where a request does not say how many."""
SLIGHTLY = 1e-6
ROOM = 192 * GIGA


@dataclass(frozen=True)
class Question:
    """A question for layouts, what was told, and the same strategies asked for as cases.

    Attributes:
        body: What was asked.
        answer: The exchange.
        report: The report.
        again: How cases of the same strategies were answered; None where there were no layouts.
        demands: Rows of that by layout; empty where it is no report of these cases.
    """

    body: "documents.LayoutRequest"
    answer: Answer
    report: "documents.LayoutReport"
    again: Answer | None
    demands: "tuple[documents.TrainingDemand, ...]"

    @property
    def machine(self) -> "documents.TrainingHardware":
        """Hardware that was asked about."""
        return next(entry for entry in self.body["hardware"] if entry["id"] == self.body["kind"])


@dataclass(frozen=True)
class LayoutAnswers:
    """Questions that have answers, and one about a model that fits nowhere."""

    questions: tuple[Question, ...]
    hopeless: Question


def observe(episode: Episode) -> LayoutAnswers:
    """Ask for layouts of several models, then for the demand of each layout that was told.

    Raises:
        SetUpFailure: An answer is no report.
    """
    chance = episode.random
    kinds = ("grouped", "plain", "experts", "latent", "window")
    questions = []
    for number in range(FULL if episode.settings.full else QUICK):
        machines = [hardware(chance, name, memory=ROOM) for name in names(chance, "h", 2)]
        count = 8 * 2 ** chance.randint(0, 5)
        body: documents.LayoutRequest = {
            "revision": revision(episode),
            "hardware": machines,
            "model": _small(model(chance, kinds[number % len(kinds)])),
            "kind": chance.choice(machines)["id"],
            "devices": count,
            "global_batch": count * chance.choice((4, 8, 12)),
        }
        if number:
            body["layouts"] = chance.randint(3, 25)
        questions.append(_ask(episode, body))
    tiny = hardware(chance, "tiny", memory=GIGA)
    giant: documents.ModelStructure = {**model(chance, "plain"), "layers": 96, "heads": 128, "hidden": 16384}
    hopeless: documents.LayoutRequest = {
        "revision": revision(episode),
        "hardware": [tiny],
        "model": giant,
        "kind": "tiny",
        "devices": 8,
        "global_batch": 64,
    }
    return LayoutAnswers(tuple(questions), _ask(episode, hopeless))


def _small(of: "documents.ModelStructure") -> "documents.ModelStructure":
    """A model with which eight accelerators have room enough."""
    heads = min(32, of["heads"])
    small: documents.ModelStructure = {**of, "layers": 16, "heads": heads, "hidden": 128 * heads}
    return {**small, "experts": 8} if "experts" in of else small


def _ask(episode: Episode, body: "documents.LayoutRequest") -> Question:
    answer = episode.set_up("POST", LAYOUTS, body)
    layout_report: documents.LayoutReport | None = report(answer, "LayoutReport")
    if layout_report is None:
        raise SetUpFailure("the answer is not a valid report of layouts", answer)
    rows = layout_report["layouts"]
    if not rows:
        return Question(body, answer, layout_report, None, ())
    cases = [
        case(name, body["model"], row["strategy"], body["kind"])
        for name, row in zip(names(episode.random, "c", len(rows)), rows, strict=True)
    ]
    request: documents.TrainingDemandRequest = {
        "revision": revision(episode),
        "hardware": body["hardware"],
        "cases": cases,
    }
    again = episode.ask_patiently("POST", DEMANDS, request)
    demands = (report(again, "TrainingDemandReport") or {"demands": []})["demands"]
    same = [row["case"] for row in demands] == [entry["id"] for entry in cases]
    return Question(body, answer, layout_report, again, tuple(demands) if same else ())


def judge(observation: LayoutAnswers) -> Iterable[Finding]:
    """Claims about every layout."""
    for question in observation.questions:
        yield _claim(question, bool(question.report["layouts"]), "layouts, since there is room for the model", "none")
        yield from _list(question)
        for number, row in enumerate(question.report["layouts"]):
            yield from _layout(question, number, row)
    layout_report = observation.hopeless.report
    none = not layout_report["layouts"] and layout_report["feasible"] == 0
    observed = {
        "considered": layout_report["considered"],
        "feasible": layout_report["feasible"],
        "layouts": layout_report["layouts"],
    }
    yield _claim(observation.hopeless, none, "no layout of a model that has no room", observed)


def _list(question: Question) -> Iterator[Claim]:
    layout_report, most = question.report, question.body.get("layouts", MAX_LAYOUTS)
    rows = layout_report["layouts"]
    yield _claim(question, len(rows) <= most, f"at most {most} layouts", len(rows))
    counts = (layout_report["considered"], layout_report["feasible"])
    yield _claim(question, counts[0] >= counts[1] >= len(rows), "no more than were considered, and could run", counts)
    times = [row["step_time"]["expected"] for row in rows]
    rising = all(after >= before * (1 - SLIGHTLY) for before, after in pairwise(times))
    yield _claim(question, rising, "by rising expected time of a step", times[:5])
    twice = len(rows) - len({str(sorted(row["strategy"].items())) for row in rows})
    yield _claim(question, twice == 0, "no strategy twice", f"{twice} are repeated")


def _layout(question: Question, number: int, row: "documents.RankedLayout") -> Iterator[Claim]:
    body, spread, machine = question.body, row["strategy"], question.machine
    what = f"layout {number + 1} of {body['devices']} accelerators"
    count = devices(spread)
    yield _claim(question, count == body["devices"], f"{what}: parallelism makes up that number", count)
    batch = (spread["global_batch"], spread["data"], spread["micro_batch"])
    divides = batch[0] == body["global_batch"] and batch[0] % (batch[1] * batch[2]) == 0
    yield _claim(question, divides, f"{what}: {body['global_batch']} sequences in whole micro-batches", batch)
    precision, wanted = spread.get("precision", "bf16"), body.get("precision", "bf16")
    yield _claim(question, precision == wanted, f"{what}: in {wanted}", precision)
    size = machine["accelerator_memory_capacity"]
    yield _claim(question, row["memory"] <= size, f"{what}: at most {size:.5g} B", f"{row['memory']:.5g}")
    work = counted(body["model"]).work(body["global_batch"] * body["model"]["sequence"])
    seconds = row["step_time"]["expected"]
    share = work / (count * machine["peak_matrix_throughput"]["bf16"] * seconds) if seconds > 0 else 0.0
    yield _claim(question, near(row["utilisation"], share), f"{what}: utilisation {share:.4g}", row["utilisation"])
    yield from _as_case(question, number, row, what)


def _as_case(question: Question, number: int, row: "documents.RankedLayout", what: str) -> Iterator[Claim]:
    if not question.demands:
        brief = question.again.brief if question.again else "none"
        yield _claim(question, False, f"{what}: a demand of the same strategy", brief)
        return
    demand = question.demands[number]
    yield _claim(question, demand["fits"], f"{what}: fits as a case too", demand["obstacles"])
    pairs: tuple[tuple[str, Any, Any], ...] = (
        ("step time", row["step_time"]["expected"], demand["step_time"]["expected"]),
        ("memory", row["memory"], demand["memory"]),
    )
    for name, value, wanted in pairs:
        yield _claim(question, near(value, wanted), f"{what}: {name} as for a case, {wanted:.5g}", f"{value:.5g}")


def _claim(question: Question, met: bool, expected: str, observed: object) -> Claim:  # noqa: FBT001
    return holds(ID, met, expected, observed, question.answer)


CHECK = Check("dem_layouts", (ID,), observe, judge)
