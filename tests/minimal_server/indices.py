"""Compute indices: how many of a reference one device is worth for a task, and why."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median

from minimal_server.core import Answer, Json, Refusal, Request
from minimal_server.estimation import Calibration, Term, amount
from minimal_server.scraping import Scraping

METHOD = {"name": "minimal server: harmonic mean and like tasks", "version": "1"}
LEVER = 2.0
"""How many times as much of a capability a lever tells of."""

Place = tuple[str, str]
"""JSON Pointer, and what is wrong there."""


@dataclass(frozen=True)
class Question:
    """An IndexRequest, read; absent members have their meaning.

    Attributes:
        calibration: What its corpus says.
        coverage: Share of cases that intervals are to hold.
        tolerance: Widest interval that is not abstained from.
        explain: Whether indices are explained.
        powers: Median of the powers measured for each device and task.
    """

    calibration: Calibration
    coverage: float
    tolerance: float
    explain: bool
    powers: dict[tuple[str, str], float]


def width(low: float, high: float) -> float:
    """√(high/low) - 1; endless where the lower end is nought."""
    return math.sqrt(high / low) - 1 if low else math.inf


class Indices(Scraping):
    """Answers that follow from the request alone."""

    def compute_indices(self, request: Request) -> Answer:
        """Indices of all devices and groups that are asked for."""
        body = self.body(request, "IndexRequest")
        self.check_names(body["corpus"], body.get("groups", ()), self.references(body))
        question = self.question(body)
        report = {
            "revision": self.echoed(body),
            "reference": body["reference"],
            "coverage": question.coverage,
            "method": METHOD,
            "indices": [
                self.index(question, device, task)
                for device in body.get("devices", question.calibration.devices)
                for task in body.get("tasks", question.calibration.tasks)
            ],
            "groups": self.groups(question, body),
        }
        return Answer(200, report)

    def groups(self, question: Question, body: Json) -> list[Json]:
        """Indices of groups."""
        raise NotImplementedError

    def question(self, body: Json) -> Question:
        """What is asked."""
        powers: dict[tuple[str, str], list[float]] = {}
        for row in body["corpus"]["measurements"]:
            if "power" in row:
                powers.setdefault((row["device"], row["task"]), []).append(row["power"])
        return Question(
            self.calibrated(body["corpus"], body["reference"]),
            body.get("coverage", 0.9),
            body.get("tolerance", 0.4),
            body.get("explain", False),
            {cell: median(values) for cell, values in powers.items()},
        )

    def calibrated(self, corpus: Json, reference: str) -> Calibration:
        """What a corpus says of indices over a reference."""
        return Calibration(corpus, reference)

    def echoed(self, body: Json) -> Json:
        """The revision that the request gives."""
        revision: Json = body["revision"]
        return revision

    def check_names(self, corpus: Json, groups: Sequence[Json], others: Iterable[tuple[str, str, str]]) -> None:
        """Names are given once and refer to what is there; ``others`` are triples of pointer, member and name."""
        held = {"device": corpus["devices"], "task": corpus["tasks"], "group": groups}
        places = {"device": "/corpus/devices", "task": "/corpus/tasks", "group": "/groups"}
        repeated = [place for kind, rows in held.items() for place in self.repeated(places[kind], rows)]
        if repeated:
            raise self.refused("invalid-body", "names are given twice", repeated)
        known = {kind: {row["id"] for row in rows} for kind, rows in held.items()}
        cells = self.cells("/corpus/measurements", corpus["measurements"])
        named = [*cells, *others]
        unknown = [
            (pointer, f"{name} is not in the corpus") for pointer, kind, name in named if name not in known[kind]
        ]
        unknown += self.unknown_members(groups, known["device"])
        if unknown:
            raise self.refused("unknown-reference", "names are not in the corpus", unknown)

    def repeated(self, place: str, rows: Sequence[Json]) -> Iterator[Place]:
        """Rows whose name an earlier one has."""
        seen: set[str] = set()
        for number, row in enumerate(rows):
            if row["id"] in seen:
                yield f"{place}/{number}/id", f"{row['id']} is the name of an earlier one"
            seen.add(row["id"])

    def unknown_members(self, groups: Sequence[Json], devices: set[str]) -> Iterator[Place]:
        """Members that are neither devices nor groups that stand earlier."""
        earlier: set[str] = set()
        for number, group in enumerate(groups):
            for position, member in enumerate(group["members"]):
                kind, held = ("device", devices) if "device" in member else ("group", earlier)
                if member[kind] not in held:
                    place = f"/groups/{number}/members/{position}/{kind}"
                    yield place, f"{member[kind]} is no {kind} that stands earlier"
            earlier.add(group["id"])

    def references(self, body: Json) -> Iterator[tuple[str, str, str]]:
        """Names outside the corpus and the groups: pointer, kind and name."""
        yield "/reference", "device", body["reference"]
        for kind in ("device", "task"):
            for number, name in enumerate(body.get(f"{kind}s", ())):
                yield f"/{kind}s/{number}", kind, name

    def cells(self, place: str, rows: Sequence[Json]) -> Iterator[tuple[str, str, str]]:
        """Names in rows that each give a device and a task."""
        for number, row in enumerate(rows):
            for kind in ("device", "task"):
                yield f"{place}/{number}/{kind}", kind, row[kind]

    def refused(self, problem: str, detail: str, places: Sequence[Place]) -> Refusal:
        """A refusal that points to every place."""
        return Refusal(problem, detail, [{"pointer": pointer, "detail": what} for pointer, what in places])

    def index(self, question: Question, device: str, task: str) -> Json:
        """One index."""
        sheet = question.calibration.devices[device]
        value, low, high = self.estimate(question, device, task)
        watts = self.per_watt(question, device, task, value)
        return {
            "device": device,
            "task": task,
            "value": value,
            "low": low,
            "high": high,
            "basis": self.basis(question.calibration, device, task),
            "abstained": self.abstains(low, high, question.tolerance),
            **({} if watts is None else {"per_watt": watts}),
            **self.told(sheet),
            **({"explanation": self.explanation(question, device, task, value)} if question.explain else {}),
        }

    def estimate(self, question: Question, device: str, task: str) -> tuple[float, float, float]:
        """Value and ends of its interval; what was measured stands as it was."""
        calibration = question.calibration
        value = amount(math.exp(calibration.logarithm(device, task)))
        if device == calibration.reference:
            value = 1.0
        half = NormalDist().inv_cdf(0.5 + question.coverage / 2) * calibration.spread(device, task)
        factor = math.exp(half)
        return value, value / factor, value * factor

    def basis(self, calibration: Calibration, device: str, task: str) -> str:
        """What the index rests on."""
        if calibration.is_measured(device, task):
            return "measured"
        return "probed" if calibration.tasks_of[device] else "specified"

    def abstains(self, low: float, high: float, tolerance: float) -> bool:
        """Whether the interval is too wide."""
        return width(low, high) > tolerance

    def told(self, sheet: Json) -> Json:
        """Software and date of the device."""
        return {name: sheet[name] for name in ("stack", "measured_at") if name in sheet}

    def power(self, question: Question, device: str, task: str) -> float | None:
        """Power that the device draws: on the task, else at all."""
        own: float | None = question.calibration.devices[device].get("power")
        return question.powers.get((device, task), own)

    def per_watt(self, question: Question, device: str, task: str, value: float) -> float | None:
        """Index for each watt, as many times as the reference's; None where a power is not known."""
        ours = self.power(question, device, task)
        theirs = self.power(question, question.calibration.reference, task)
        return amount(value * theirs / ours) if ours and theirs else None

    def explanation(self, question: Question, device: str, task: str, value: float) -> Json:
        """Terms and the residual that lead to the index, and what would change it."""
        terms = self.terms(question, device, task)
        time = math.fsum(weight / ratio for _, weight, ratio in terms)
        shares = {name: weight / ratio / time for name, weight, ratio in terms}
        return {
            "terms": [
                {"capability": name, "weight": weight, "ratio": ratio, "share": min(shares[name], 1.0)}
                for name, weight, ratio in terms
            ],
            "residual": amount(value * time),
            "dominant": max(shares, key=lambda name: shares[name]),
            "levers": [self.lever(name, value, shares[name]) for name in shares if name != "fixed"],
        }

    def terms(self, question: Question, device: str, task: str) -> list[Term]:
        """Terms of the index."""
        return question.calibration.terms(device, task)

    def lever(self, capability: str, value: float, share: float) -> Json:
        """What the index would be with more of a capability: its share of the time gets shorter."""
        return {"capability": capability, "factor": LEVER, "value": amount(value / (1 - share + share / LEVER))}
