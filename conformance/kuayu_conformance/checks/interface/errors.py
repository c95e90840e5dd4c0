"""Errors: problems, closed requests, hostile input, limits (COM-004 to COM-007)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import PROBLEM_MEDIA_TYPE, Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import request_of
from kuayu_conformance.checks.kit.requests import GRAVE, beat, domain, line, node, sample
from kuayu_conformance.contract import unsound
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_schemas import registers

REPORTS = (("/v1/heartbeats", "beats"), ("/v1/log-lines", "lines"))
"""Where what tells of faults is sent, and the member that holds it."""


@dataclass(frozen=True)
class Case:
    """One wrong request: what is wrong, the answer, what status and problem it calls for, and where the fault is."""

    what: str
    answer: Answer
    status: int
    problem: str
    pointer: str | None = None
    parameter: str | None = None


@dataclass(frozen=True)
class ErrorAnswers:
    """Answers to wrong requests, grouped by what they are about."""

    wrong: tuple[Case, ...]
    open_door: tuple[Case, ...]
    hostile: tuple[tuple[str, Answer], ...]
    limits: tuple[Case, ...]
    alive: Answer


def observe(episode: Episode) -> ErrorAnswers:
    """Send wrong requests of every sort, and see whether the target still stands afterwards."""
    site = domain(episode)
    machine = node(episode, site, names=["0"])
    watches = episode.settings.asks("POST /v1/heartbeats", "RES")
    runs_jobs = episode.settings.asks("PUT /v1/jobs/{id}", "JOB")
    hostile = [*_hostile(episode, site), *(_hostile_reports(episode, machine) if watches else ())]
    wrong = [*_wrong(episode, site), *(_wrong_of_faults(episode) if watches else ())]
    wrong += _wrong_of_jobs(episode) if runs_jobs else ()
    unknown = [*_unknown_members(episode, site, machine), *(_unknown_of_faults(episode, machine) if watches else ())]
    unknown += _unknown_of_jobs(episode) if runs_jobs else ()
    limits = [*_beyond_limits(episode, machine), *(_reports_beyond_limits(episode, machine) if watches else ())]
    alive = episode.ask("GET", f"/v1/domains/{site}")
    return ErrorAnswers(tuple(wrong), tuple(unknown), tuple(hostile), tuple(limits), alive)


def _wrong(episode: Episode, site: str) -> Iterator[Case]:
    absent = episode.name_of("absent")
    path = f"/v1/domains/{absent}"
    ask = episode.ask
    yield Case("a resource that is not there", ask("GET", path), 404, "not-found")
    yield Case("a path that is not there", ask("GET", f"/v1/{absent}"), 404, "not-found")
    yield Case("a method that the path has not", ask("POST", f"/v1/domains/{site}", {}), 405, "method-not-allowed")
    yield Case("a body that is not JSON", ask("PUT", path, content=b'{"id": '), 400, "malformed-json")
    yield Case("a member given twice", ask("PUT", path, content=b'{"id":"a","id":"a"}'), 400, "malformed-json")
    yield Case("NaN", ask("PUT", path, content=b'{"id": NaN}'), 400, "malformed-json")
    yield Case(
        "a media type other than JSON",
        ask("PUT", path, content=b"id: a", media_type="application/yaml"),
        415,
        "unsupported-media-type",
    )
    yield Case("a required member missing", ask("PUT", path, {"label": "x"}), 422, "invalid-body", pointer="")
    yield Case(
        "a member of the wrong type", ask("PUT", path, {"id": absent, "label": 7}), 422, "invalid-body", "/label"
    )
    located = {"id": absent, "location": {"latitude": 91, "longitude": 0}}
    yield Case("a number out of range", ask("PUT", path, located), 422, "invalid-body", "/location/latitude")
    yield Case("another identifier than the path's", ask("PUT", path, {"id": "other"}), 422, "invalid-body", "/id")
    orphan = episode.name_of("orphan")
    lost = ask("PUT", f"/v1/nodes/{orphan}", {"id": orphan, "domain": absent})
    yield Case("a reference to what is not there", lost, 422, "unknown-reference", "/domain")
    yield Case("a limit of nought", ask("GET", "/v1/domains?limit=0"), 400, "invalid-parameter", parameter="limit")
    yield Case(
        "a limit that is no number", ask("GET", "/v1/domains?limit=x"), 400, "invalid-parameter", parameter="limit"
    )
    yield Case("a cursor that no one gave", ask("GET", "/v1/domains?cursor=made-up"), 400, "invalid-cursor")


def _wrong_of_faults(episode: Episode) -> Iterator[Case]:
    ask = episode.ask
    for path, member in REPORTS:
        yield Case(f"{member} that are not JSON", ask("POST", path, content=b'{"'), 400, "malformed-json")
        yield Case(f"no {member}", ask("POST", path, {}), 422, "invalid-body", pointer="")
        yield Case(f"{member} that are no list", ask("POST", path, {member: {}}), 422, "invalid-body", f"/{member}")
    for query, what, name in (
        ("state=ajar", "a state that no fault has", "state"),
        ("domain=a%20b", "faults of what is no identifier", "domain"),
        ("limit=0", "a limit of nought, of faults", "limit"),
    ):
        yield Case(what, ask("GET", f"/v1/faults?{query}"), 400, "invalid-parameter", parameter=name)
    yield Case("a cursor of faults that no one gave", ask("GET", "/v1/faults?cursor=made-up"), 400, "invalid-cursor")
    now = instant(episode.now())
    result = {"action": episode.name_of("none"), "phase": "commit", "outcome": "committed", "at": now}
    answer = ask("POST", "/v1/action-results", result)
    yield Case("the result of what no one asked for", answer, 422, "unknown-reference", "/action")


def _wrong_of_jobs(episode: Episode) -> Iterator[Case]:
    ask, absent = episode.ask, episode.name_of("no-job")
    path = f"/v1/jobs/{absent}"
    for part in ("", "/decision", "/logs"):
        yield Case(f"a job that is not there{part}", ask("GET", path + part), 404, "not-found")
    yield Case("a job that is not JSON", ask("PUT", path, content=b'{"id": '), 400, "malformed-json")
    body = request_of(absent)
    nothing = {name: value for name, value in body.items() if name != "workload"}
    yield Case("a job that runs nothing", ask("PUT", path, nothing), 422, "invalid-body", pointer="")
    answer = ask("PUT", path, body | {"priority": 1001})
    yield Case("a priority out of range", answer, 422, "invalid-body", "/priority")
    run = {"job": absent, "attempt": 1, "domain": absent}
    now = instant(episode.now())
    report = ask("POST", "/v1/run-reports", {**run, "state": "running", "at": now})
    yield Case("a report of a job that is not there", report, 422, "unknown-reference")
    lines = [{"number": 1, "rank": 0, "at": now, "text": ""}]
    answer = ask("POST", "/v1/run-logs", {**run, "lines": lines})
    yield Case("lines of a job that is not there", answer, 422, "unknown-reference")
    yield Case(
        "a limit of nought, of jobs", ask("GET", "/v1/jobs?limit=0"), 400, "invalid-parameter", parameter="limit"
    )
    yield Case("a cursor of jobs that no one gave", ask("GET", "/v1/jobs?cursor=made-up"), 400, "invalid-cursor")


def _unknown_members(episode: Episode, site: str, machine: str) -> Iterator[Case]:
    ask = episode.ask
    unknown = episode.name_of("closed")
    yield Case(
        "a domain with a member unknown to the schema",
        ask("PUT", f"/v1/domains/{unknown}", {"id": unknown, "colour": "red"}),
        422,
        "invalid-body",
    )
    nested = {"id": unknown, "location": {"latitude": 0, "longitude": 0, "altitude": 5}}
    yield Case("an unknown member further in", ask("PUT", f"/v1/domains/{unknown}", nested), 422, "invalid-body")
    device = {"id": "0", "kind": "abacus", "vendor": "x", "model": "x"}
    body = {"id": machine, "domain": site, "devices": [device]}
    answer = ask("PUT", f"/v1/nodes/{machine}", body)
    yield Case("a name that the enumeration has not", answer, 422, "invalid-body")
    batch = {"mode": "per_item", "samples": [sample(machine, instant(episode.now()))], "priority": 1}
    yield Case("a batch with an unknown member", ask("POST", "/v1/samples", batch), 422, "invalid-body")
    query = ask("GET", "/v1/domains?colour=red")
    yield Case("an unknown query parameter", query, 400, "invalid-parameter")


def _unknown_of_faults(episode: Episode, machine: str) -> Iterator[Case]:
    now = instant(episode.now())
    beats = {"beats": [beat(machine, 1, now)], "mode": "per_item"}
    answer = episode.ask("POST", "/v1/heartbeats", beats)
    yield Case("heartbeats with an unknown member", answer, 422, "invalid-body")
    lines = {"lines": [line(machine, now, "")], "mode": "per_item"}
    answer = episode.ask("POST", "/v1/log-lines", lines)
    yield Case("log lines with an unknown member", answer, 422, "invalid-body")
    listing = episode.ask("GET", "/v1/faults?colour=red")
    yield Case("an unknown query parameter of faults", listing, 400, "invalid-parameter")
    stream = episode.follow("/v1/faults/events?colour=red")
    stream.hang_up()
    yield Case("an unknown query parameter of a stream", stream.opening, 400, "invalid-parameter")


def _unknown_of_jobs(episode: Episode) -> Iterator[Case]:
    name = episode.name_of("closed-job")
    body = request_of(name)
    answer = episode.ask("PUT", f"/v1/jobs/{name}", {**body, "queue": "fast"})
    yield Case("a job with an unknown member", answer, 422, "invalid-body")
    nested = {**body, "workload": {**body["workload"], "shell": True}}
    answer = episode.ask("PUT", f"/v1/jobs/{name}", nested)
    yield Case("a job with an unknown member further in", answer, 422, "invalid-body")
    listing = episode.ask("GET", "/v1/jobs?colour=red")
    yield Case("an unknown query parameter of jobs", listing, 400, "invalid-parameter")


def _hostile(episode: Episode, site: str) -> Iterator[tuple[str, Answer]]:
    path = f"/v1/domains/{site}"
    bodies = {
        "nothing": b"",
        "null": b"null",
        "a bare number": b"1",
        "an array": b"[]",
        "nested a thousand deep": b'{"id":' * 1000 + b"1" + b"}" * 1000,
        "arrays nested a hundred thousand deep": b"[" * 100_000,
        "bytes that are not UTF-8": b'{"id":"\xff\xfe"}',
        "half of a surrogate pair": b'{"id":"\\ud800"}',
        "U+0000 in a text": b'{"id":"x","label":"\\u0000"}',
        "a number of ten thousand digits": b'{"id":' + b"9" * 10_000 + b"}",
        "a number beyond doubles": b'{"id":"x","location":{"latitude":1e400,"longitude":0}}',
        "Infinity": b'{"id":"x","location":{"latitude":-Infinity,"longitude":0}}',
        "a million members": b"{" + b",".join(b'"%d":0' % i for i in range(20_000)) + b"}",
        "SQL in an identifier": b'{"id":"x\' OR 1=1 --"}',
    }
    for what, body in bodies.items():
        yield f"body: {what}", episode.ask("PUT", path, content=body)
    for tail in ("%00", "..%2f..%2fetc%2fpasswd", "'%20OR%201=1--", "%F0%9F%92%A5", "x" * 4000, "%ff"):
        yield f"path: {tail[:20]}", episode.ask("GET", f"/v1/domains/{tail}")
        yield f"query: {tail[:20]}", episode.ask("GET", f"/v1/domains?cursor={tail}")
    yield "header: If-Match", episode.ask("PUT", path, {"id": site}, headers={"if-match": '"' * 300})
    yield "method that no resource has", episode.ask("PATCH", path, {"id": site})
    if not episode.settings.asks("POST /v1/expositions"):
        return
    page = b'# TYPE a counter\na{b="' + b"\\" * 501 + b"\n"
    target = f"/v1/expositions?node={site}&exporter=node-exporter"
    yield "exposition", episode.ask("POST", target, content=page, media_type="text/plain")


def _hostile_reports(episode: Episode, machine: str) -> Iterator[tuple[str, Answer]]:
    now = instant(episode.now())
    for path, member in REPORTS:
        yield f"{member}: null", episode.ask("POST", path, content=b"null")
        yield f"{member}: arrays nested", episode.ask("POST", path, content=f'{{"{member}":'.encode() + b"[" * 100_000)
        yield f"{member}: bare numbers", episode.ask("POST", path, {member: [1] * 100})
    huge = json.dumps({"beats": [beat(machine, 0, now)]}).replace('"number": 0', '"number": ' + "9" * 10_000)
    yield "beats: a number of ten thousand digits", episode.ask("POST", "/v1/heartbeats", content=huge.encode())
    texts = [
        "\0",
        "\n" * 2048,
        "\u2028\x1b[2J",
        "NVRM: Xid (" * 186,
        GRAVE + "(" * 1900,
        "NVRM: Xid (x): " + "7" * 2000,
    ]
    lines = [line(machine, now, text) for text in texts]
    yield "lines: odd texts", episode.ask("POST", "/v1/log-lines", {"lines": lines})


def _beyond_limits(episode: Episode, machine: str) -> Iterator[Case]:
    limits = episode.settings.limits
    now = instant(episode.now())
    most = int(min(limits["max_batch"], 10_000))
    many = {"mode": "per_item", "samples": [sample(machine, now, power=1.0)] * (most + 1)}
    within = {"mode": "per_item", "samples": [sample(machine, now, power=1.0)] * 1000}
    yield Case("a thousand items", episode.ask("POST", "/v1/samples", within), 200, "")
    yield Case("one item more than declared", episode.ask("POST", "/v1/samples", many), 422, "invalid-body")
    if limits["max_body"] <= 20_000_000:
        big = b'{"id":"' + b"x" * int(limits["max_body"]) + b'"}'
        answer = episode.ask("PUT", f"/v1/domains/{episode.name_of('big')}", content=big)
        yield Case("a body larger than declared", answer, 413, "payload-too-large")
    page = int(limits["max_page"]) + 1
    answer = episode.ask("GET", f"/v1/domains?limit={page}")
    yield Case("a page larger than declared", answer, 400, "invalid-parameter", parameter="limit")


def _reports_beyond_limits(episode: Episode, machine: str) -> Iterator[Case]:
    most = int(min(episode.settings.limits["max_batch"], 10_000))
    now = instant(episode.now())
    items = {"beats": beat(machine, 1, now), "lines": line(machine, now, "")}
    for path, member in REPORTS:
        within = episode.ask("POST", path, {member: [items[member]] * 1000})
        yield Case(f"a thousand {member}", within, 200, "")
        beyond = episode.ask("POST", path, {member: [items[member]] * (most + 1)})
        yield Case(f"{member}: one more than declared", beyond, 422, "invalid-body")


def judge(observed: ErrorAnswers) -> Iterator[Finding]:
    """Hold each answer against the problem that the case calls for."""
    for case in observed.wrong:
        yield from _problem(case)
    yield from _allow(observed.wrong)
    for case in observed.open_door:
        yield answered("COM-005", case.answer, case.status, case.what, problem=case.problem)
    for what, answer in observed.hostile:
        wrong = unsound(answer)
        actual = f"{wrong}: {answer.brief}" if wrong else answer.brief
        yield holds("COM-006", not wrong, f"{what}: an answer below 500", actual, answer)
    yield answered("COM-006", observed.alive, 200, "the target still answers afterwards")
    for case in observed.limits:
        yield answered("COM-007", case.answer, case.status, case.what, problem=case.problem)


def _problem(case: Case) -> Iterator[Finding]:
    answer = case.answer
    yield answered("COM-004", answer, case.status, case.what, problem=case.problem)
    kind = answer.media_type
    yield holds("COM-004", kind == PROBLEM_MEDIA_TYPE, f"{case.what}: media type {PROBLEM_MEDIA_TYPE}", kind, answer)
    if answer.problem not in {row.name for row in registers.problems().problems}:
        yield holds("COM-004", False, f"{case.what}: a registered problem type", answer.at("type"), answer)
        return
    agrees = answer.at("status") == answer.status
    yield holds("COM-004", agrees, f"{case.what}: member status is the HTTP status", answer.at("status"), answer)
    places = [(e.get("pointer"), e.get("parameter")) for e in answer.items("errors") if isinstance(e, dict)]
    if case.pointer is not None:
        named = any(pointer == case.pointer for pointer, _ in places)
        yield holds(
            "COM-004", named, f"{case.what}: errors name the place {case.pointer or '(the whole)'}", places, answer
        )
    if case.parameter is not None:
        named = any(parameter == case.parameter for _, parameter in places)
        yield holds("COM-004", named, f"{case.what}: errors name the parameter {case.parameter}", places, answer)


def _allow(cases: tuple[Case, ...]) -> Iterator[Finding]:
    for case in cases:
        if case.status == 405:
            allow = case.answer.headers.get("allow", "")
            yield holds("COM-004", "GET" in allow, "405 comes with Allow", allow or "no Allow", case.answer)


CHECK = Check("com_errors", ("COM-004", "COM-005", "COM-006", "COM-007"), observe, judge)
