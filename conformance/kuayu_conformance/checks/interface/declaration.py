"""The declaration, and that what it declares is there (COM-001, COM-002)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import Stage
from kuayu_conformance.checks.kit.requests import DECISIONS, GRAVE, REVISION, domain, line, mandatory, node, reports
from kuayu_conformance.contract import operation_of
from kuayu_conformance.episode import Episode, SetUpFailure, instant, seconds_of
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_schemas import schema

_SOON = 5
"""Seconds in which what calls for an action shows as one of its domain."""

_DONE = {"prepare": "prepared", "commit": "committed", "abort": "aborted"}
"""How each step of an action ends that goes well."""

MANY = 1000
"""Items that every implementation takes in one batch (class Limits)."""


@dataclass(frozen=True)
class DeclarationAnswers:
    """The declaration, the clock when it was read, and one answer to each mandatory operation that it implies."""

    declaration: Answer
    again: Answer
    read_at: float
    operations: tuple[tuple[str, Answer], ...]


def observe(episode: Episode) -> DeclarationAnswers:
    """Read the declaration twice and call each mandatory operation of what is declared once, as far as the run goes."""
    declaration = episode.ask("GET", "/v1/conformance")
    read_at = episode.now()
    again = episode.ask("GET", "/v1/conformance")
    answers = list[tuple[str, Answer]]()
    try:
        operations = [row for row in mandatory(declaration) if episode.settings.asks(row)]
        jobs = [item for item in operations if "/v1/jobs" in item or "/v1/run-" in item]
        answers += _call_each(episode, [entry for entry in operations if entry not in jobs])
        answers += _of_jobs(episode, jobs) if jobs else ()
    except SetUpFailure as failed:  # what could not be set up is an operation that this check is about
        refused = failed.answer
        operation = operation_of(refused.method, refused.path)
        answers.append((f"{refused.method} {operation.template if operation else refused.path}", refused))
    return DeclarationAnswers(declaration, again, read_at, tuple(answers))


def _call_each(episode: Episode, wanted: Sequence[str]) -> Iterator[tuple[str, Answer]]:
    """Call each operation once: what is written comes first, what is deleted last.

    Results are of actions: where neither allocations nor faults call for one, none is sent.
    """
    site = peer = machine = episode.name_of("nowhere")
    registers_nodes, allocates = "PUT /v1/nodes/{id}" in wanted, "PUT /v1/allocations/{id}" in wanted
    if registers_nodes:
        site, peer = domain(episode), domain(episode, "peer")
        machine = node(episode, site, names=["0"])
    names = {
        "/v1/domains/{id}": site,
        "/v1/nodes/{id}": machine,
        "/v1/links/{id}": episode.name_of("l"),
        "/v1/compute-identifiers/{urn}": episode.urn_of("family", "f"),
        "/v1/allocations/{id}": episode.name_of("a"),
    }
    holder = episode.name_of("d")
    share = {"domain": holder, "accelerator": "device", "devices": 1}
    bodies: dict[str, Mapping[str, Any]] = {
        "/v1/domains/{id}": {"id": site},
        "/v1/nodes/{id}": {"id": machine, "domain": site, "compute_identifier": episode.urn_of("node", "n")},
        "/v1/links/{id}": {"id": episode.name_of("l"), "source": site, "destination": peer},
        "/v1/compute-identifiers/{urn}": {
            "urn": episode.urn_of("family", "f"),
            "members": [episode.urn_of("node", "n")],
        },
        "/v1/allocations/{id}": {
            "id": episode.name_of("a"),
            "job": episode.name_of("j"),
            "revision": REVISION,
            "placement": {"shares": [share], "split_mode": "none"},
        },
    }
    now = instant(episode.now())
    posted = {**DECISIONS, **reports(machine, now)}
    subject = f"?subject={machine}&subject_kind=node"
    queries = {
        "GET /v1/samples": subject,
        "GET /v1/series": f"{subject}&measure=power&from={now}&to={instant(episode.now() + 1)}&step=60",
        "GET /v1/actions": f"?domain={holder}&wait=0",
    }
    for operation in sorted(wanted, key=_order_of):
        method, template = operation.split()
        base = template.removesuffix("/indicators").removesuffix("/resolution")
        path = template.replace("{id}", names.get(base, "")).replace("{urn}", names.get(base, ""))
        match operation:
            case "POST /v1/expositions":
                query = f"?node={machine}&exporter=node-exporter"
                answer = episode.ask(method, path + query, content=b"up 1\n", media_type="text/plain")
            case "GET /v1/graph/patch":
                base = quote(str(episode.ask("GET", "/v1/graph").at("digest"))[:200], safe="")
                answer = episode.ask(method, f"{path}?base={base}")
            case "GET /v1/graph/events" | "GET /v1/faults/events":
                stream = episode.follow(path)
                stream.hang_up()
                answer = stream.opening
            case "POST /v1/action-results" if allocates:
                answer = episode.ask(method, path, _done(episode, holder))
            case "POST /v1/action-results" if "POST /v1/log-lines" in wanted and registers_nodes:
                episode.ask(method, "/v1/log-lines", {"lines": [line(machine, now, GRAVE)]})  # calls for a fence
                answer = episode.ask(method, path, _done(episode, site))
            case "POST /v1/action-results":
                continue
            case _:
                body = bodies.get(base) if method == "PUT" else posted.get(operation)
                answer = episode.ask(method, path + queries.get(operation, ""), body)
        yield operation, answer


def _of_jobs(episode: Episode, wanted: Sequence[str]) -> Iterator[tuple[str, Answer]]:
    """Call each operation of jobs once, while one is carried from its submission to its end."""
    stage = Stage(episode, "jobs")
    stage.open("a")
    job = stage.submit("job")
    yield "PUT /v1/jobs/{id}", stage.moments[-1].answer
    stage.started(job, 1)
    results = [moment.answer for moment in stage.moments if moment.kind == "result"]
    yield "POST /v1/action-results", results[0] if results else stage.look(job)
    yield "POST /v1/run-reports", stage.report("a", job, 1, "running")
    yield "POST /v1/run-logs", stage.print_lines("a", job, 1, 1, 1, "told")
    for operation in (entry for entry in wanted if entry.startswith("GET /v1/jobs")):
        path = operation.removeprefix("GET ").replace("{id}", job)
        if path.endswith("/events"):
            stream = episode.follow(path)
            stream.hang_up()
            yield operation, stream.opening
        else:
            yield operation, episode.ask("GET", path)
    yield "DELETE /v1/jobs/{id}", stage.cancel(job)
    stage.close()


def _done(episode: Episode, holder: str) -> Mapping[str, Any]:
    """What a domain answers that has done the first step that it is asked for, whichever that is by now."""
    open_actions = episode.ask("GET", f"/v1/actions?domain={holder}&wait={_SOON}").items("items")
    action = open_actions[0] if open_actions and isinstance(open_actions[0], dict) else {}
    now, phase = episode.now(), action.get("phase")
    until = {"expires_at": instant(now + 60)} if phase == "prepare" else {}
    return {"action": action.get("id"), "phase": phase, "outcome": _DONE.get(str(phase)), "at": instant(now), **until}


def _order_of(operation: str) -> tuple[int, int]:
    """Writes first, then reads, then deletions: those that refer to others before those that are referred to."""
    method, path = operation.split()
    referring = (
        "/v1/allocations/{id}",
        "/v1/links/{id}",
        "/v1/compute-identifiers/{urn}",
        "/v1/nodes/{id}",
        "/v1/domains/{id}",
    )
    return ("PUT", "POST", "GET", "DELETE").index(method), referring.index(path) if method == "DELETE" else 0


def judge(observed: DeclarationAnswers) -> Iterator[Finding]:
    """Hold the declaration against its schema and itself, and each operation against its published answer."""
    declaration = observed.declaration
    yield answered("COM-001", declaration, 200, "GET /v1/conformance is answered")
    wrong = schema.errors("Declaration", declaration.json, reader=True)
    actual = f"{wrong[0].pointer or '/'} {wrong[0].detail}" if wrong else "valid"
    yield holds("COM-001", not wrong, "the answer is a valid Declaration", actual, declaration)
    profiles = declaration.items("profiles")
    yield holds("COM-001", "COM" in profiles, "profile COM is among those declared", profiles, declaration)
    largest = declaration.at("limits", "max_batch")
    enough = isinstance(largest, int | float) and largest >= MANY
    yield holds("COM-001", enough, f"a batch may hold {MANY} items or more", largest, declaration)
    now = seconds_of(declaration.at("now"))
    near = now is not None and abs(now - observed.read_at) < 60
    yield holds(
        "COM-001", near, "the declared clock is within a minute of the suite's", declaration.at("now"), declaration
    )
    same = declaration.at("revision", "epoch") == observed.again.at("revision", "epoch")
    yield holds(
        "COM-001", same, "the epoch stays the same while no state is lost", observed.again.brief, observed.again
    )
    for operation, answer in observed.operations:
        yield answered("COM-002", answer, (200, 201, 204), f"{operation} is carried out")


CHECK = Check("com_declaration", ("COM-001", "COM-002"), observe, judge)
