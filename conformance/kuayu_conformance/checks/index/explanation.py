"""Explanations of compute indices (IDX-009, IDX-010)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.index.index_requests import (
    UNMEASURED,
    IndexExchange,
    ask,
    changed,
    corpus,
    device_of,
    incomplete,
    question,
)
from kuayu_conformance.checks.kit.decisions import near
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Finding, holds
from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu_schemas import documents

THOUSANDTH, LEVER = 1e-3, 0.02
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


def observe(episode: Episode) -> ExplainedIndices:
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


def judge(observation: ExplainedIndices) -> Iterable[Finding]:
    """Claims about terms and levers."""
    if wrong := incomplete(CHECK.requirements, [observation.explained]):
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


CHECK = Check("idx_explanation", ("IDX-009", "IDX-010"), observe, judge)
