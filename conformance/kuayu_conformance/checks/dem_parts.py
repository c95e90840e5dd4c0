"""Claims about single demands: counts, sums, and what lies inside a step (DEM-004)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kuayu_conformance.checks.dem_anchors import ANCHORS
from kuayu_conformance.checks.dem_counting import counted, devices
from kuayu_conformance.checks.dem_fixtures import Asked, Document, near
from kuayu_conformance.findings import Claim, Finding, holds

ID = "DEM-004"
HUNDREDTH, TWENTIETH = 0.01, 0.05
_DIMENSIONS = ("data", "tensor", "pipeline", "context", "expert")


@dataclass(frozen=True)
class Each:
    """A case with its demand and its hardware."""

    case: Document
    demand: Document
    machine: Document

    @property
    def tokens(self) -> float:
        """Tokens of a step."""
        return float(self.case["strategy"]["global_batch"] * self.case["model"]["sequence"])

    @property
    def sixteen(self) -> float:
        """FLOP/s of an accelerator in 16 bits."""
        peaks = self.machine["peak_matrix_throughput"]
        return float(peaks.get("bf16", peaks.get("fp16")))


def every(asked: Asked) -> list[Each]:
    """Cases with their demands."""
    machines = {entry["id"]: entry for entry in asked.body["hardware"]}
    return [Each(case, asked.demands[case["id"]], machines[case["hardware"]]) for case in asked.body["cases"]]


def counts(asked: Asked) -> Iterator[Finding]:
    """Parameters, work and accelerators are those that a count of the structure gives."""
    published = {str(sorted(of.items(), key=str)): (name, size) for name, (of, size) in ANCHORS.items()}
    for each in every(asked):
        own, row, spread = counted(each.case["model"]), each.demand, each.case["strategy"]
        wanted = {"parameters": own.parameters, "active_parameters": own.active, "work": own.work(each.tokens)}
        for name, value in wanted.items():
            yield _close(asked, each, name, row[name], value)
        least = own.executed(each.tokens, spread.get("recomputation", "none"))
        # Fused attention may compute its scores once more in the backward pass; that is allowed to count.
        most = least + (each.tokens * own.score_work if spread.get("fused_attention", True) else 0.0)
        found = row["executed_work"]
        inside = least * (1 - HUNDREDTH) <= found <= most * (1 + HUNDREDTH)
        yield holds(ID, inside, f"executed work of {each.case['id']}: {least:.5g} to {most:.5g}", found, asked.answer)
        number = devices(spread)
        yield holds(ID, row["devices"] == number, f"{number} accelerators", row["devices"], asked.answer)
        key = str(sorted(each.case["model"].items(), key=str))
        if key in published:
            name, size = published[key]
            found = row["parameters"]
            yield holds(ID, near(found, size), f"{name}: {size:.5g} parameters", f"{found:.5g}", asked.answer)


def hangs_together(asked: Asked) -> Iterator[Finding]:
    """Sums, utilisation, intervals, and which parallelism has traffic."""
    coverage = asked.body.get("coverage", 0.9)
    for each in every(asked):
        row, spread = each.demand, each.case["strategy"]
        yield _close(asked, each, "sum of memory parts", sum(p["size"] for p in row["memory_parts"]), row["memory"])
        told = [p["part"] for p in row["memory_parts"]]
        yield holds(ID, len(set(told)) == len(told), "each part of memory once", told, asked.answer)
        time = row["step_time"]
        if time["expected"] > 0:
            share = row["work"] / (time["expected"] * devices(spread) * each.sixteen)
            yield _close(asked, each, "utilisation", row["utilisation"], share)
        ordered = 0 < time["low"] <= time["expected"] <= time["high"] and time["coverage"] == coverage
        yield holds(ID, ordered, f"an interval of {coverage} about the expected time", time, asked.answer)
        sent = {flow["dimension"] for flow in row["traffic"] if flow["size"] > 0}
        alone = {name for name in _DIMENSIONS if spread.get(name, 1) == 1}
        if spread.get("context", 1) > 1:
            alone.discard("data")  # parts of the sequence exchange gradients too
        idle = sorted(sent & alone)
        yield holds(ID, not idle, "no traffic of a parallelism that has one member", idle, asked.answer)
        silent = sorted(name for name in _DIMENSIONS if spread.get(name, 1) > 1 and name not in sent)
        yield holds(ID, not silent, "traffic of every parallelism that has several members", silent, asked.answer)


def tiles(asked: Asked) -> Iterator[Finding]:
    """Segments cover the step without a gap, and carry the traffic."""
    for each in every(asked):
        name, row = each.case["id"], each.demand
        segments = row.get("segments") or []
        yield holds(ID, bool(segments), f"the inside of a step of {name}, which was asked for", segments, asked.answer)
        if not segments:
            continue
        expected = row["step_time"]["expected"]
        at, gaps = 0.0, []
        for segment in segments:
            if abs(segment["begin"] - at) > HUNDREDTH * expected:
                gaps.append(f"{segment['activity']} at {segment['begin']:.6g} s, not at {at:.6g} s")
            at = segment["begin"] + segment["duration"]
        yield holds(ID, not gaps, f"segments of {name} one after the other from nought", gaps[:3], asked.answer)
        yield _close(asked, each, "end of the last segment", at, expected)
        yield from _carried(asked, each, segments)


def _carried(asked: Asked, each: Each, segments: list[Document]) -> Iterator[Finding]:
    carried: dict[str, float] = {}
    for segment in segments:
        for flow in segment["traffic"]:
            carried[flow["link"]] = carried.get(flow["link"], 0.0) + flow["flow"] * segment["duration"]
    sent: dict[str, float] = {}
    for row in each.demand["traffic"]:
        sent[row["link"]] = sent.get(row["link"], 0.0) + row["size"]
    for link in sorted(carried.keys() | sent.keys()):
        some, all_of_it = carried.get(link, 0.0), sent.get(link, 0.0)
        # Segments are means over accelerators, traffic is that of the one which sends most.
        fine = some <= all_of_it * (1 + TWENTIETH) and (some > 0 or all_of_it == 0)
        expected = f"{each.case['id']}: segments carry traffic of links {link}, no more than {all_of_it:.5g} B"
        yield holds(ID, fine, expected, f"{some:.5g} B", asked.answer)


def _close(asked: Asked, each: Each, name: str, found: float, wanted: float) -> Claim:
    expected = f"{name} of {each.case['id']} ({_described(each.case['model'])}): {wanted:.5g} to 1 %"
    return holds(ID, near(found, wanted, HUNDREDTH), expected, f"{found:.5g}", asked.answer)


def _described(model: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in model.items())
