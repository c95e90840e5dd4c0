"""How compute indices behave, how they are explained, those of groups, and probe plans (IDX-005 to IDX-015).

Corpora are made up (:mod:`.index_requests`); what is judged are properties that hold whatever an index is fitted to.

1. An index hangs on what was measured and on nothing else, and says how sure it is (IDX-005 to IDX-008, IDX-011).
2. An explanation adds up to the index that it explains (IDX-009, IDX-010).
3. The index of a group follows from those of its parts, and so does that for each watt (IDX-012 to IDX-014).
4. A probe plan names what is worth measuring (IDX-015).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import median
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
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
from kuayu_conformance.episode import Episode, SetUpFailure, seconds_of
from kuayu_conformance.findings import Claim, Finding, holds
from kuayu_schemas import schema

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


CHECK = Check(
    "idx_behaviour",
    ("IDX-005", "IDX-006", "IDX-007", "IDX-008", "IDX-011"),
    observe,
    judge,
    summary="How compute indices behave (IDX-005 to IDX-008 and IDX-011).",
)


LEVER = 0.02
MIN_PULL_SHARE = 0.1
"""Part by which a lever changes its capability at least; less would show nothing."""


@dataclass(frozen=True)
class PulledLever:
    """A lever, what it is said to do, and the answer to the corpus with it pulled."""

    task: str
    capability: str
    factor: float
    said: float
    answer: Answer

    @property
    def observed(self) -> float | None:
        """The index with the lever pulled; None where the answer does not tell it."""
        if self.answer.status != 200 or not schema.is_valid("IndexReport", self.answer.json, reader=True):
            return None
        rows = {(row["device"], row["task"]): row["value"] for row in self.answer.json["indices"]}
        return rows.get((UNMEASURED, self.task))


@dataclass(frozen=True)
class ExplainedIndices:
    """Explained indices, and the levers of the device that was not measured."""

    explained: IndexExchange
    tried: tuple[PulledLever, ...]


def observe_explanation(episode: Episode) -> ExplainedIndices:
    """Ask for explanations, then for the indices with each lever pulled."""
    of = corpus(episode)
    explained = ask(episode, question(episode, of, explain=True))
    tried = []
    for task in of["tasks"]:
        row = explained.indices.get((UNMEASURED, task["id"]), {})
        levers = {lever["capability"]: lever for lever in row.get("explanation", {}).get("levers", [])}
        for capability, lever in levers.items():
            if pulled := _pulled(of, task, capability, lever["factor"]):
                body = question(episode, pulled, devices=[UNMEASURED])
                answer = episode.ask("POST", "/v1/compute-indices", body)
                tried.append(PulledLever(task["id"], capability, lever["factor"], lever["value"], answer))
    return ExplainedIndices(explained, tuple(tried))


def _pulled(
    of: "documents.Corpus", task: "documents.IndexedTask", capability: str, factor: float
) -> "documents.Corpus | None":
    sheet = device_of(of, UNMEASURED)
    peaks: Mapping[str, Any] = sheet["peak_matrix_throughput"]
    match capability:
        case "matrix":
            more = {name: peak * factor if name in task["precisions"] else peak for name, peak in peaks.items()}
            return changed(of, UNMEASURED, peak_matrix_throughput=more)
        case "vector":
            return changed(of, UNMEASURED, peak_matrix_throughput={**peaks, "fp32": peaks["fp32"] * factor})
        case "memory":
            bandwidth = sheet["accelerator_memory_bandwidth"] * factor
            return changed(of, UNMEASURED, accelerator_memory_bandwidth=bandwidth)
        case "scale_out":
            return changed(of, UNMEASURED, scale_out_bandwidth=sheet["scale_out_bandwidth"] * factor)
    return None


def judge_explanation(observation: ExplainedIndices) -> Iterable[Finding]:
    """Claims about terms and levers."""
    if wrong := incomplete(EXPLANATION_CHECK.requirements, [observation.explained]):
        yield from wrong
        return
    yield from _terms(observation.explained)
    yield from _levers(observation)


def _terms(exchange: IndexExchange) -> Iterator[Claim]:
    silent = [pair for pair, row in exchange.indices.items() if "explanation" not in row]
    yield holds("IDX-009", not silent, "an explanation of every index", silent[:3], exchange.answer)
    wrong = [f"{pair}: {fault}" for pair, row in exchange.indices.items() if (fault := _fault(row))]
    yield holds("IDX-009", not wrong, "terms and residual that lead to the index", wrong[:3], exchange.answer)


def _fault(row: Mapping[str, Any]) -> str:
    """What is wrong with an explanation, in words; nothing where it adds up."""
    explanation = row.get("explanation")
    if not explanation:
        return ""
    terms = explanation["terms"]
    parts = [term["weight"] / term["ratio"] for term in terms]
    total = sum(parts)
    shares = {term["capability"]: term["share"] for term in terms}
    if not near(sum(term["weight"] for term in terms), 1, THOUSANDTH):
        return "weights do not sum to one"
    if not near(sum(shares.values()), 1, THOUSANDTH):
        return "shares do not sum to one"
    if len(shares) < len(terms):
        return "a capability has two terms"
    if not total or not near(explanation["residual"] / total, row["value"], THOUSANDTH):
        return f"residual / Σ weight/ratio is not {row['value']:.6g}"
    if any(abs(term["share"] - part / total) > THOUSANDTH for term, part in zip(terms, parts, strict=True)):
        return "a share is not the term's part of the sum"
    if shares.get(explanation["dominant"], 0.0) < max(shares.values()) - THOUSANDTH:
        return f"{explanation['dominant']} is not the largest share"
    return ""


def _levers(observation: ExplainedIndices) -> Iterator[Claim]:
    answer = observation.explained.answer
    of = observation.explained.body["corpus"]
    for task in of["tasks"]:
        row = observation.explained.indices.get((UNMEASURED, task["id"]), {})
        terms = {term["capability"] for term in row.get("explanation", {}).get("terms", [])} - {"fixed"}
        pulled = {
            t.capability for t in observation.tried if t.task == task["id"] and abs(t.factor - 1) >= MIN_PULL_SHARE
        }
        lacking = sorted(terms - pulled)
        yield holds("IDX-010", bool(terms), f"a term that depends on the device for {task['id']}", terms, answer)
        yield holds("IDX-010", not lacking, f"a lever for each term of {task['id']}", lacking, answer)
    for tried in observation.tried:
        met = tried.observed is not None and near(tried.observed, tried.said, LEVER)
        expected = f"{tried.said:.6g} for {tried.task} with {tried.factor:g} times as much {tried.capability}"
        yield holds("IDX-010", met, expected, tried.observed, tried.answer)


EXPLANATION_CHECK = Check(
    "idx_explanation",
    ("IDX-009", "IDX-010"),
    observe_explanation,
    judge_explanation,
    summary="Explanations of compute indices (IDX-009, IDX-010).",
)


EXCHANGED = "task-0"
"""Task whose exchange is known."""
BANDWIDTHS = (1e4, 1e6, 1e8, 1e10, 1e12, 1e14)
ALIKE = 8
SILENT = "device-3"
"""Device whose power is not known."""
MEASURED_POWERS = (310.0, 330.0, 420.0)


@dataclass(frozen=True)
class GroupIndices:
    """The federation with its parts, and one node at several bandwidths."""

    nested: IndexExchange
    nodes: IndexExchange


def observe_groups(episode: Episode) -> GroupIndices:
    """Ask for nodes, domains and a federation; then for one node over networks of several speeds."""
    of = _with_powers(episode, corpus(episode))
    counts = [episode.random.randrange(2, 6) for _ in range(4)]
    groups: list[documents.DeviceGroup] = [
        {"id": "node-a", "members": [{"device": "device-1", "count": counts[0]}], "scale_out_bandwidth": 3e11},
        {
            "id": "node-b",
            "members": [{"device": "device-2", "count": counts[1]}, {"device": "device-4", "count": 1}],
            "scale_out_bandwidth": 6e10,
        },
        {
            "id": "domain",
            "members": [{"group": "node-a", "count": counts[2]}, {"group": "node-b", "count": 2}],
            "scale_out_bandwidth": 2.5e10,
        },
        {"id": "federation", "members": [{"group": "domain", "count": counts[3]}, {"device": SILENT, "count": 1}]},
    ]
    alike: list[documents.GroupMember] = [{"device": "device-1", "count": ALIKE}]
    nodes: list[documents.DeviceGroup] = [
        {"id": f"node-{number}", "members": alike, "scale_out_bandwidth": bandwidth}
        for number, bandwidth in enumerate(BANDWIDTHS)
    ]
    return GroupIndices(
        ask(episode, question(episode, of, groups=groups)),
        ask(episode, question(episode, changed(of, "device-1", scale_out_bandwidth=None), groups=nodes)),
    )


def _with_powers(episode: Episode, of: "documents.Corpus") -> "documents.Corpus":
    """A power for every device but one, a power measured on one task, and a task whose exchange is known."""
    for row in of["devices"]:
        power = None if row["id"] == SILENT else episode.random.uniform(150.0, 700.0)
        of = changed(of, row["id"], power=power)
    measured = [row for row in of["measurements"] if (row["device"], row["task"]) == ("device-1", EXCHANGED)]
    again: list[documents.Measurement] = [{**measured[0], "power": power} for power in MEASURED_POWERS]
    others = [row for row in of["measurements"] if row not in measured]
    tasks: list[documents.IndexedTask] = [
        {**row, "exchange": 1e6} if row["id"] == EXCHANGED else row for row in of["tasks"]
    ]
    return {**of, "tasks": tasks, "measurements": [*others, *again]}


def judge_groups(observation: GroupIndices) -> Iterable[Finding]:
    """Claims about sums, about one job over a group, and about watts."""
    if wrong := incomplete(GROUPS_CHECK.requirements, [observation.nested, observation.nodes]):
        yield from wrong
        return
    nested = observation.nested
    members = {group["id"]: _devices(nested.body["groups"], group["id"]) for group in nested.body["groups"]}
    yield from _sums(nested, members)
    yield from _together(observation.nodes)
    yield from _watts(nested, members)


def _devices(groups: "list[documents.DeviceGroup]", name: str) -> dict[str, int]:
    """How many devices of each kind a group comes down to."""
    counts: dict[str, int] = {}
    for member in next(group["members"] for group in groups if group["id"] == name):
        parts = _devices(groups, member["group"]) if "group" in member else {member["device"]: 1}
        for device, count in parts.items():
            counts[device] = counts.get(device, 0) + count * member["count"]
    return counts


def _sums(exchange: IndexExchange, members: Mapping[str, Mapping[str, int]]) -> Iterator[Claim]:
    tasks = [task["id"] for task in exchange.body["corpus"]["tasks"]]
    for group, devices in members.items():
        wrong = []
        for task in tasks:
            row = exchange.groups[group, task]
            total = sum(count * exchange.indices[device, task]["value"] for device, count in devices.items())
            if row["devices"] != sum(devices.values()) or not near(row["independent"], total, THOUSANDTH):
                wrong.append(f"{task}: {row['independent']} of {row['devices']}, not {total:.6g}")
        expected = f"{group}: {sum(devices.values())} devices and the sum of their indices"
        yield holds("IDX-012", not wrong, expected, wrong[:3], exchange.answer)


def _together(exchange: IndexExchange) -> Iterator[Claim]:
    rows = [exchange.groups[f"node-{number}", EXCHANGED] for number in range(len(BANDWIDTHS))]
    stated = all("together" in row and "efficiency" in row for row in rows)
    yield holds("IDX-013", stated, "an index for one job where the exchange is known", stated, exchange.answer)
    if not stated:
        return
    values = [row["together"] for row in rows]
    sums = [row["independent"] for row in rows]
    rising = all(after >= before * (1 - 1e-9) for before, after in pairwise(values))
    yield holds("IDX-013", rising, "never less with more bandwidth", values, exchange.answer)
    above = [value for value, total in zip(values, sums, strict=True) if value > total * (1 + 1e-9)]
    yield holds("IDX-013", not above, "never more than the sum", above, exchange.answer)
    share = [value / total for value, total in zip(values, sums, strict=True)]
    spread = share[0] < 0.5 < share[-1]
    yield holds(
        "IDX-013", spread, "below one half at the lowest bandwidth, above at the highest", share, exchange.answer
    )
    apart = [
        row["efficiency"] for row, part in zip(rows, share, strict=True) if abs(row["efficiency"] - part) > THOUSANDTH
    ]
    yield holds("IDX-013", not apart, "the efficiency is the quotient of the two", apart, exchange.answer)


def _watts(exchange: IndexExchange, members: Mapping[str, Mapping[str, int]]) -> Iterator[Claim]:
    wrong: list[str] = []
    for (device, task), row in exchange.indices.items():
        wrong += _wrong_watts(f"({device}, {task})", row, "value", _power(exchange, task, {device: 1}))
    yield holds("IDX-014", not wrong, "the index over the relative power of the device", wrong[:3], exchange.answer)
    wrong = []
    for (group, task), row in exchange.groups.items():
        wrong += _wrong_watts(f"({group}, {task})", row, "independent", _power(exchange, task, members[group]))
    yield holds("IDX-014", not wrong, "the sum over the relative power of the group", wrong[:3], exchange.answer)


def _power(exchange: IndexExchange, task: str, devices: Mapping[str, int]) -> float | None:
    """Power of these devices over that of the reference; None where one is not known."""
    of = exchange.body["corpus"]
    powers = {row["id"]: row["power"] for row in of["devices"] if "power" in row}
    if task == EXCHANGED:
        powers["device-1"] = median(MEASURED_POWERS)
    if any(device not in powers for device in devices) or not powers.get(REFERENCE):
        return None
    return float(sum(count * powers[device] for device, count in devices.items()) / powers[REFERENCE])


def _wrong_watts(what: str, row: Mapping[str, Any], value: str, power: float | None) -> Iterator[str]:
    said = row.get("per_watt")
    if power is None:
        if said is not None:
            yield f"{what}: {said} although a power is not known"
    elif said is None or not near(said, row[value] / power, THOUSANDTH):
        yield f"{what}: {said}, not {row[value] / power:.6g}"


GROUPS_CHECK = Check(
    "idx_groups",
    ("IDX-012", "IDX-013", "IDX-014"),
    observe_groups,
    judge_groups,
    summary="Compute indices of groups, and for each watt (IDX-012 to IDX-014).",
)


PLANS = "/v1/probe-plans"


@dataclass(frozen=True)
class Plan:
    """A plan that was asked for: how many probes, and what came."""

    size: int
    candidates: tuple[tuple[str, str], ...]
    answer: Answer


def observe_plans(episode: Episode) -> tuple[Plan, ...]:
    """Ask for plans of several lengths."""
    of = corpus(episode)
    known = {(row["device"], row["task"]) for row in of["measurements"]}
    pairs = [(device, task["id"]) for device in (PROBED, UNMEASURED) for task in of["tasks"]]
    candidates = tuple(pair for pair in pairs if pair not in known)
    cells = [{"device": device, "task": task} for device, task in candidates]
    request = {name: value for name, value in question(episode, of).items() if name != "reference"}
    request = {**request, "candidates": cells, "targets": cells}
    plans = []
    for probes in (1, 3, len(cells) + 5):
        answer = episode.set_up("POST", PLANS, {**request, "probes": probes})
        if not schema.is_valid("ProbePlan", answer.json, reader=True):
            raise SetUpFailure("the answer is not a valid probe plan", answer)
        plans.append(Plan(probes, candidates, answer))
    return tuple(plans)


def judge_plans(observation: tuple[Plan, ...]) -> Iterable[Finding]:
    """Claims about plans."""
    for plan in observation:
        yield from _sound(plan)
    for shorter, longer in pairwise(observation):
        begins = _probes(longer)[: len(_probes(shorter))] == _probes(shorter)
        expected = f"the plan of {shorter.size} begins that of {longer.size}"
        yield holds("IDX-015", begins, expected, _probes(longer), longer.answer)


def _probes(plan: Plan) -> list[tuple[str, str]]:
    return [(probe["device"], probe["task"]) for probe in plan.answer.json["probes"]]


def _sound(plan: Plan) -> Iterator[Claim]:
    probes = _probes(plan)
    foreign = sorted(set(probes) - set(plan.candidates))
    yield holds("IDX-015", not foreign, "candidates only", foreign, plan.answer)
    yield holds("IDX-015", len(set(probes)) == len(probes), "no candidate twice", probes, plan.answer)
    few = len(probes) <= plan.size
    yield holds("IDX-015", few, f"at most {plan.size} probes", len(probes), plan.answer)
    widths = [plan.answer.json["without"], *(probe["half_width"] for probe in plan.answer.json["probes"])]
    shrinks = all(after <= before * (1 + 1e-9) for before, after in pairwise(widths))
    yield holds("IDX-015", shrinks, "widths that never grow", widths, plan.answer)


PLANS_CHECK = Check("idx_plans", ("IDX-015",), observe_plans, judge_plans, summary="Probe plans (IDX-015).")
