"""From devices to nodes to domains, by the rules of the register (MET-009)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, post, sample
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, answered, holds, lacks
from kuayu_schemas import registers
from kuayu_schemas.models import Aggregation, Constancy, Measure, SubjectKind, ValueKind

Value = float | str | dict[str, float]

STATES = ("healthy", "degraded", "unknown", "faulty", "offline")
"""Health states from best to worst, as the clause orders them."""


@dataclass(frozen=True)
class AggregateAnswers:
    """What was reported of each device, and what is answered for nodes and the domain."""

    devices: Mapping[tuple[str, str], Mapping[str, Value]]
    nodes: Mapping[str, Answer]
    whole: Answer
    overruled: Answer
    earlier: Answer
    registered: Answer
    stale: str


def observe(episode: Episode) -> AggregateAnswers:
    """Report two nodes with two devices each, one node that has been silent, and ask at each height."""
    site = domain(episode)
    now = episode.now()
    devices: dict[tuple[str, str], dict[str, Value]] = {}
    names = [node(episode, site, label, names=["0", "1"]) for label in ("a", "b")]
    silent = node(episode, site, "silent", names=["0"])
    batch = []
    for machine in names:
        for device in ("0", "1"):
            values = {measure.name: _drawn(episode, measure) for measure in device_measures()}
            devices[machine, device] = values
            batch.append(sample(machine, instant(now - 5), kind="device", device=device, **values))
    old = {m.name: _drawn(episode, m) for m in device_measures() if m.constancy is Constancy.dynamic}
    batch.append(sample(silent, instant(now - 1800), kind="device", device="0", **old))
    post(episode, batch)
    nodes = {machine: episode.ask("GET", f"/v1/nodes/{machine}/indicators") for machine in names}
    whole = episode.ask("GET", f"/v1/domains/{site}/indicators")
    stated = {"id": "0", "kind": "gpu", "vendor": "conformance", "model": "probe", "memory_capacity": 6.4e10}
    stated["peak_matrix_throughput"] = {"bf16": 3e14}
    paper = episode.name_of("paper")
    elsewhere = domain(episode, "elsewhere")
    episode.set_up("PUT", f"/v1/nodes/{paper}", {"id": paper, "domain": elsewhere, "devices": [stated]})
    post(episode, [sample(site, instant(now - 4), kind="domain", accelerator_utilisation=0.125)])
    return AggregateAnswers(
        devices,
        nodes,
        whole,
        overruled=episode.ask("GET", f"/v1/domains/{site}/indicators"),
        earlier=episode.ask("GET", f"/v1/nodes/{names[0]}/indicators?at={instant(now - 3600)}"),
        registered=episode.ask("GET", f"/v1/domains/{elsewhere}/indicators"),
        stale=silent,
    )


def device_measures() -> list[Measure]:
    """Measures that devices report and that are aggregated."""
    measures = [m for i in registers.indicators().indicators for m in i.measures]
    return [m for m in measures if SubjectKind.device in m.subjects and m.aggregation is not Aggregation.none]


def _drawn(episode: Episode, measure: Measure) -> Value:
    draw = episode.random
    match measure.kind:
        case ValueKind.state:
            return draw.choice(STATES)
        case ValueKind.by_precision:
            both = {"bf16": round(draw.uniform(1e13, 1e15)), "fp32": round(draw.uniform(1e12, 1e14))}
            return {"bf16": both["bf16"]} if draw.random() < 0.5 else {name: float(v) for name, v in both.items()}
        case _:
            top = 1.0 if measure.maximum == 1 else 1e9
            return round(draw.uniform(0.01, 1.0) * top, 6)


def combined(measure: Measure, parts: Sequence[Mapping[str, Value]]) -> Value | None:
    """The value of a whole by the register's rule; None where no part has one."""
    values = [part[measure.name] for part in parts if measure.name in part]
    if measure.aggregation is Aggregation.ratio_of_sums:
        over, under = str(measure.numerator), str(measure.denominator)
        pairs = [(part.get(over), part.get(under)) for part in parts]
        both = [(a, b) for a, b in pairs if isinstance(a, int | float) and isinstance(b, int | float)]
        below = sum(b for _, b in both)
        return sum(a for a, _ in both) / below if below else None
    if not values:
        return None
    if measure.kind is ValueKind.state:
        return max((str(v) for v in values), key=STATES.index)
    if measure.kind is ValueKind.by_precision:
        columns: dict[str, list[float]] = {}
        for value in values:
            assert isinstance(value, dict)
            for precision, number in value.items():
                columns.setdefault(precision, []).append(number)
        return {precision: _number(measure.aggregation, numbers) for precision, numbers in columns.items()}
    return _number(measure.aggregation, [float(v) for v in values])  # type: ignore[arg-type]


def _number(rule: Aggregation, numbers: Sequence[float]) -> float:
    match rule:
        case Aggregation.sum:
            return sum(numbers)
        case Aggregation.mean:
            return sum(numbers) / len(numbers)
        case Aggregation.minimum:
            return min(numbers)
        case _:
            return max(numbers)


def judge(o: AggregateAnswers) -> Iterator[Finding]:
    """Compute each whole from its parts and compare."""
    wholes: list[Mapping[str, Value]] = []
    for machine, answer in o.nodes.items():
        yield answered("MET-009", answer, 200, "the indicators of a node are answered")
        parts = [values for (owner, _), values in o.devices.items() if owner == machine]
        whole = {m.name: v for m in device_measures() if (v := combined(m, parts)) is not None}
        wholes.append(whole)
        yield from _compared(answer, whole, SubjectKind.node)
        for (owner, device), values in o.devices.items():
            if owner == machine:
                yield from _compared(answer, values, SubjectKind.device, device)
    yield answered("MET-009", o.whole, 200, "the indicators of a domain are answered")
    expected = {m.name: v for m in device_measures() if (v := combined(m, wholes)) is not None}
    yield from _compared(o.whole, expected, SubjectKind.domain)
    devices = [v.get("device") for v in o.whole.items("values") if isinstance(v, dict) and v.get("device")]
    yield holds("MET-009", not devices, "a domain's report holds no values of devices", devices, o.whole)
    own = _reported_value(o.overruled, "accelerator_utilisation", None)
    yield holds("MET-009", _same(own, 0.125), "a value reported for the domain itself wins", own, o.overruled)
    early = o.earlier.items("values")
    dynamic = [v for v in early if isinstance(v, dict) and v.get("provenance") != "registered"]
    yield lacks("MET-009", o.earlier, dynamic, "an hour earlier nothing had been observed")
    capacity = _reported_value(o.registered, "accelerator_memory_capacity", None)
    yield holds(
        "MET-009", _same(capacity, 6.4e10), "what nobody measured comes from the registration", capacity, o.registered
    )


def _compared(
    answer: Answer, expected: Mapping[str, Value], kind: SubjectKind, device: str | None = None
) -> Iterator[Finding]:
    by_name = {measure.name: measure for measure in device_measures()}
    for name, value in expected.items():
        measure = by_name[name]
        if kind not in measure.subjects:
            continue
        observed = _reported_value(answer, name, device)
        what = f"{name} of {kind.value}{f' {device}' if device else ''} ({measure.aggregation.value}) is {value}"
        yield holds("MET-009", _same(observed, value), what, observed, answer)


def _reported_value(answer: Answer, measure: str, device: str | None) -> Any:
    for value in answer.items("values"):
        if isinstance(value, dict) and value.get("measure") == measure and value.get("device") == device:
            return next((value[k] for k in ("number", "by_precision", "state") if value.get(k) is not None), None)
    return None


def _same(observed: Any, expected: Value) -> bool:
    if isinstance(expected, dict):
        return (
            isinstance(observed, dict)
            and observed.keys() == expected.keys()
            and all(_same(observed[name], number) for name, number in expected.items())
        )
    if isinstance(expected, str):
        return bool(observed == expected)
    number = isinstance(observed, int | float) and not isinstance(observed, bool)
    return number and abs(observed - expected) <= 1e-9 * max(1.0, abs(expected))


CHECK = Check("met_aggregation", ("MET-009",), observe, judge)
