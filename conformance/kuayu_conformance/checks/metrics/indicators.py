"""The twelve indicators, from each exporter and for each kind of subject (MET-001)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.resources import domain, node, post, sample
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.exporters.player import PlayedExporter, played_exporters
from kuayu_conformance.findings import Claim, Figure, Finding, holds
from kuayu_schemas import registers
from kuayu_schemas.models import Indicator, Measure, SubjectKind, ValueKind

VALUES: dict[ValueKind, Any] = {
    ValueKind.number: 0.5,
    ValueKind.by_precision: {"bf16": 1e14, "fp32": 2e13},
    ValueKind.state: "degraded",
}
"""A value that every measure of the kind can have."""


@dataclass(frozen=True)
class ExpectedValue:
    """A value that an answer must hold: which measure of which device (None for the subject itself), from where."""

    origin: str
    measure: str
    device: str | None
    answer: Answer


@dataclass(frozen=True)
class IndicatorReports:
    """The register that the target publishes, and what was reported of each measure."""

    register: Answer
    wanted: tuple[ExpectedValue, ...]


def observe(episode: Episode) -> IndicatorReports:
    """Play each exporter, report by hand what no exporter yields, and query node, domain and link."""
    register = episode.ask("GET", "/v1/indicators")
    site, peer = domain(episode), domain(episode, "peer")
    wanted = [row for name in played_exporters() for row in _played(episode, site, name)]
    return IndicatorReports(register, (*wanted, *_reported(episode, site, peer)))


def _played(episode: Episode, site: str, name: str) -> Iterator[ExpectedValue]:
    played = PlayedExporter(name, episode.random)
    machine = node(episode, site, name, names=played.devices)
    now = episode.now()
    for place in (now - 20, now - 5):
        page = played.advance(place).text.encode()
        query = f"/v1/expositions?node={machine}&exporter={name}"
        episode.ask("POST", query, content=page, media_type="text/plain")
    answer = episode.ask("GET", f"/v1/nodes/{machine}/indicators")
    for row in played.mapped:
        for subject in row.series:
            yield ExpectedValue(name, row.measure.name, subject or None, answer)


def _reported(episode: Episode, site: str, peer: str) -> Iterator[ExpectedValue]:
    machine = node(episode, site, "by-hand", names=["0"])
    link = episode.name_of("l")
    episode.set_up("PUT", f"/v1/links/{link}", {"id": link, "source": site, "destination": peer})
    subjects = {
        SubjectKind.device: machine,
        SubjectKind.node: machine,
        SubjectKind.domain: site,
        SubjectKind.link: link,
    }
    now = instant(episode.now() - 1)
    bodies = []
    rows: list[tuple[SubjectKind, Measure]] = []
    for kind, subject in subjects.items():
        measures = [m for i in registers.indicators().indicators for m in i.measures if kind in m.subjects]
        rows += [(kind, measure) for measure in measures]
        body = sample(subject, now, kind=kind.value, **{m.name: VALUES[m.kind] for m in measures})
        bodies.append(body | ({"device": "0"} if kind is SubjectKind.device else {}))
    post(episode, bodies)
    queried = {
        SubjectKind.node: episode.ask("GET", f"/v1/nodes/{machine}/indicators"),
        SubjectKind.domain: episode.ask("GET", f"/v1/domains/{site}/indicators"),
        SubjectKind.link: episode.ask("GET", f"/v1/links/{link}/indicators"),
    }
    queried[SubjectKind.device] = queried[SubjectKind.node]
    for kind, measure in rows:
        yield ExpectedValue(
            f"{kind.value} sample", measure.name, "0" if kind is SubjectKind.device else None, queried[kind]
        )


def judge(o: IndicatorReports) -> Iterator[Finding]:
    """An indicator counts when each of its measures comes back, with its unit, from every origin that yields it."""
    published = {row.get("id") for row in o.register.items("indicators") if isinstance(row, dict)}
    complete = 0
    misses = []
    for indicator in registers.indicators().indicators:
        claims = list(_claims(indicator, o.wanted))
        unmet = [claim for claim in claims if not claim.met]
        if indicator.id not in published:
            unmet.append(holds("MET-001", False, f"GET /v1/indicators lists {indicator.id}", published, o.register))
        complete += not unmet
        misses += unmet
    yield Figure(
        "MET-001",
        complete,
        complete,
        len(o.wanted),
        f"indicators of which every measure is answered, with its unit, from each of {len(played_exporters())} "
        "exporters that yields it and as a sample of each kind of subject; a count of all, not a sample",
        misses=misses,
    )


def _claims(indicator: Indicator, wanted: tuple[ExpectedValue, ...]) -> Iterator[Claim]:
    measures = {measure.name: measure for measure in indicator.measures}
    for row in wanted:
        if row.measure in measures:
            measure = measures[row.measure]
            value = _value(row)
            member = {ValueKind.number: "number", ValueKind.state: "state"}.get(measure.kind, "by_precision")
            remote = (
                value is not None
                and value.get(member) is not None
                and value.get("unit") == measure.unit
                and value.get("indicator") == indicator.id
            )
            subject = f"device {row.device}" if row.device else "the subject"
            expected = f"{row.origin}: {row.measure} of {subject}, unit {measure.unit}, indicator {indicator.id}"
            yield holds("MET-001", remote, expected, value or "absent", row.answer)


def _value(row: ExpectedValue) -> dict[str, Any] | None:
    for value in row.answer.items("values"):
        if isinstance(value, dict) and value.get("measure") == row.measure and value.get("device") == row.device:
            return value
    return None


CHECK = Check("met_indicators", ("MET-001",), observe, judge)
