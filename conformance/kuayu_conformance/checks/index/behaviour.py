"""How compute indices behave (IDX-005 to IDX-008 and IDX-011)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import TYPE_CHECKING, Any

from kuayu_conformance.check import Check
from kuayu_conformance.checks.index.index_requests import (
    PROBED,
    REFERENCE,
    UNMEASURED,
    IndexExchange,
    Pair,
    ask,
    changed,
    corpus,
    device_of,
    incomplete,
    question,
)
from kuayu_conformance.checks.kit.decisions import near
from kuayu_conformance.episode import Episode, seconds_of
from kuayu_conformance.findings import Claim, Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

TOLERANCES = (0.01, 0.05, 0.15, 0.4, 3.0)
FACTORS = (1.25, 2.0, 8.0)
NUMBERS = ("accelerator_memory_bandwidth", "accelerator_memory_capacity", "scale_out_bandwidth")
MILLIONTH, THOUSANDTH = 1e-6, 1e-3


@dataclass(frozen=True)
class BehaviourIndices:
    """What was asked, and how the names of a later question lead back to those of the first."""

    tolerances: tuple[IndexExchange, ...]
    risen: tuple[tuple[str, IndexExchange], ...]
    doubled: IndexExchange
    renamed: IndexExchange
    names: Mapping[str, str]
    rescaled: IndexExchange

    @property
    def plain(self) -> IndexExchange:
        """The corpus as it is."""
        return self.tolerances[0]

    @property
    def exchanges(self) -> list[IndexExchange]:
        """Every question."""
        risen = [exchange for _, exchange in self.risen]
        return [*self.tolerances, *risen, self.doubled, self.renamed, self.rescaled]


def observe(episode: Episode) -> BehaviourIndices:
    """Ask for one corpus again and again, with one thing changed each time."""
    of = _with_repetitions(corpus(episode))
    names = {row["id"]: f"x{number}" for number, row in enumerate(_shuffled(episode, of["devices"]))}
    names |= {row["id"]: f"y{number}" for number, row in enumerate(_shuffled(episode, of["tasks"]))}
    units = {row["id"]: episode.random.uniform(1e-3, 1e3) for row in of["tasks"]}
    return BehaviourIndices(
        tuple(ask(episode, question(episode, of, tolerance=tolerance)) for tolerance in TOLERANCES),
        tuple((what, ask(episode, question(episode, entry))) for what, entry in _risen(of)),
        ask(episode, question(episode, _all_doubled(of))),
        ask(
            episode,
            {**question(episode, _renamed(episode, of, names), tolerance=TOLERANCES[0]), "reference": names[REFERENCE]},
        ),
        names,
        ask(episode, question(episode, _rescaled(of, units), tolerance=TOLERANCES[0])),
    )


def _with_repetitions(of: "documents.Corpus") -> "documents.Corpus":
    """One combination measured three times, far apart, so that a mean is not a median."""
    first = next(row for row in of["measurements"] if row["device"] == "device-2")
    more: list[documents.Measurement] = [
        {**first, "throughput": first["throughput"] * factor} for factor in (1.02, 1.3)
    ]
    return {**of, "measurements": [*of["measurements"], *more]}


def _risen(of: "documents.Corpus") -> "Iterator[tuple[str, documents.Corpus]]":
    sheet: Mapping[str, Any] = device_of(of, UNMEASURED)
    peaks = sheet["peak_matrix_throughput"]
    for factor in FACTORS:
        for name in NUMBERS:
            yield f"{name} × {factor:g}", changed(of, UNMEASURED, **{name: sheet[name] * factor})
        every = {precision: peak * factor for precision, peak in peaks.items()}
        yield f"all peaks × {factor:g}", changed(of, UNMEASURED, peak_matrix_throughput=every)
        one = {**peaks, "fp32": peaks["fp32"] * factor}
        yield f"fp32 peak × {factor:g}", changed(of, UNMEASURED, peak_matrix_throughput=one)


def _all_doubled(of: "documents.Corpus") -> "documents.Corpus":
    sheet: Mapping[str, Any] = device_of(of, UNMEASURED)
    peaks = {precision: 2 * peak for precision, peak in sheet["peak_matrix_throughput"].items()}
    return changed(of, UNMEASURED, peak_matrix_throughput=peaks, **{name: 2 * sheet[name] for name in NUMBERS})


def _renamed(episode: Episode, of: "documents.Corpus", names: Mapping[str, str]) -> "documents.Corpus":
    families = {row["family"]: f"z{number}" for number, row in enumerate(_shuffled(episode, of["tasks"]))}
    return {
        "devices": _shuffled(episode, [{**row, "id": names[row["id"]]} for row in of["devices"]]),
        "tasks": _shuffled(
            episode, [{**row, "id": names[row["id"]], "family": families[row["family"]]} for row in of["tasks"]]
        ),
        "measurements": _shuffled(
            episode,
            [{**row, "device": names[row["device"]], "task": names[row["task"]]} for row in of["measurements"]],
        ),
    }


def _rescaled(of: "documents.Corpus", units: Mapping[str, float]) -> "documents.Corpus":
    rows: list[documents.Measurement] = [
        {**row, "throughput": row["throughput"] * units[row["task"]]} for row in of["measurements"]
    ]
    return {**of, "measurements": rows}


def _shuffled(episode: Episode, rows: list[Any]) -> list[Any]:
    return episode.random.sample(rows, len(rows))


def judge(observation: BehaviourIndices) -> Iterable[Finding]:
    """Claims about each property."""
    if wrong := incomplete(CHECK.requirements, observation.exchanges):
        yield from wrong
        return
    yield from _abstention(observation.tolerances)
    yield from _monotone(observation)
    yield from _invariant(observation)
    yield from _measured(observation.plain)
    yield from _stack(observation.plain)


def _abstention(exchanges: tuple[IndexExchange, ...]) -> Iterator[Claim]:
    first = exchanges[0]
    for entry, tolerance in zip(exchanges, TOLERANCES, strict=True):
        wrong = [
            f"{pair}: abstained {row['abstained']} at a width of {_width(row):.4g}"
            for pair, row in entry.indices.items()
            if row["abstained"] != (_width(row) > tolerance) and not near(_width(row), tolerance, MILLIONTH)
        ]
        yield holds("IDX-005", not wrong, f"abstained where wider than {tolerance}", wrong[:3], entry.answer)
        outside = [pair for pair, row in entry.indices.items() if not row["low"] <= row["value"] <= row["high"]]
        yield holds("IDX-005", not outside, "values inside their intervals", outside[:3], entry.answer)
        moved = [
            pair
            for pair, row in entry.indices.items()
            if not all(near(row[name], first.indices[pair][name], MILLIONTH) for name in ("value", "low", "high"))
        ]
        yield holds("IDX-005", not moved, "the same values and intervals at every tolerance", moved[:3], entry.answer)


def _width(row: Mapping[str, Any]) -> float:
    return sqrt(row["high"] / row["low"]) - 1 if row["low"] else float("inf")


def _of(exchange: IndexExchange, device: str) -> dict[str, float]:
    return {task: row["value"] for (name, task), row in exchange.indices.items() if name == device}


def _monotone(observation: BehaviourIndices) -> Iterator[Claim]:
    before = _of(observation.plain, UNMEASURED)
    for what, exchange in observation.risen:
        fallen = {
            task: f"{before[task]:.6g} → {value:.6g}"
            for task, value in _of(exchange, UNMEASURED).items()
            if value < before[task] * (1 - MILLIONTH)
        }
        yield holds("IDX-006", not fallen, f"no index falls with {what}", fallen, exchange.answer)
    after = _of(observation.doubled, UNMEASURED)
    risen = any(after[task] >= 1.1 * value for task, value in before.items())
    yield holds("IDX-006", risen, "an index rises with all capabilities doubled", after, observation.doubled.answer)


def _invariant(observation: BehaviourIndices) -> Iterator[Claim]:
    plain, names = observation.plain, observation.names
    renamed = {pair: observation.renamed.indices[names[pair[0]], names[pair[1]]] for pair in plain.indices}
    for what, exchange, rows in (
        ("names and order", observation.renamed, renamed),
        ("units", observation.rescaled, observation.rescaled.indices),
    ):
        moved = [
            f"{pair} {name}: {row[name]:.6g} → {rows[pair][name]:.6g}"
            for pair, row in plain.indices.items()
            for name in ("value", "low", "high")
            if not near(rows[pair][name], row[name], THOUSANDTH)
        ]
        yield holds("IDX-007", not moved, f"the same indices with other {what}", moved[:3], exchange.answer)


def _measured(exchange: IndexExchange) -> Iterator[Claim]:
    measured: dict[Pair, list[float]] = {}
    for entry in exchange.body["corpus"]["measurements"]:
        measured.setdefault((entry["device"], entry["task"]), []).append(entry["throughput"])
    throughput = {pair: median(values) for pair, values in measured.items()}
    off, basis = [], []
    for (device, task), row in exchange.indices.items():
        expected = "measured" if (device, task) in measured else {PROBED: "probed", UNMEASURED: "specified"}[device]
        if row["basis"] != expected:
            basis.append(f"({device}, {task}): {row['basis']}, not {expected}")
        if (device, task) in measured:
            ratio = throughput[device, task] / throughput[REFERENCE, task]
            if not near(row["value"], ratio, MILLIONTH):
                off.append(f"({device}, {task}): {row['value']:.6g}, measured {ratio:.6g}")
    yield holds("IDX-008", not off, "ratios of measured throughputs where both were measured", off[:3], exchange.answer)
    yield holds("IDX-008", not basis, "the basis of every index", basis[:3], exchange.answer)


def _plain(value: object) -> object:
    """An instant as a number, since there are several ways to write it; anything else as it is."""
    seconds = seconds_of(value)
    return value if seconds is None else seconds


def _stack(exchange: IndexExchange) -> Iterator[Claim]:
    sheets = {row["id"]: row for row in exchange.body["corpus"]["devices"]}
    for name in ("stack", "measured_at"):
        wrong = [
            f"{pair}: {row.get(name)}"
            for pair, row in exchange.indices.items()
            if _plain(row.get(name)) != _plain(sheets[pair[0]].get(name))
        ]
        yield holds("IDX-011", not wrong, f"{name} of the device", wrong[:3], exchange.answer)


CHECK = Check("idx_behaviour", ("IDX-005", "IDX-006", "IDX-007", "IDX-008", "IDX-011"), observe, judge)
