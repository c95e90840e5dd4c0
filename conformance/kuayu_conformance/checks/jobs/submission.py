"""Jobs that are submitted, once and again: listed once, as they were, and not changed (JOB-001, JOB-002).

None of them can run: no domain has so many devices. So they stay what they are while they are looked at.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import request_of
from kuayu_conformance.checks.kit.requests import domain
from kuayu_conformance.checks.scheduling.ledger import Json
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds
from kuayu_schemas.models import JobRequest

QUICK, FULL = 8, 60
"""Jobs that are submitted."""

TOO_MANY = 100_000
"""Devices that a job asks for which is to wait."""

PAGES = (1, 3, 1000)
"""Jobs of a page; where the target gives fewer at most (``limits.max_page``), so many."""

MOST_PAGES = 2000
"""Pages of one listing that are read; a target that never comes to an end must not keep the suite."""

TRIES = 100
"""Names that are looked at for one that comes before another."""

MEMBERS = frozenset(JobRequest.model_fields)
"""Members of a submission; a record has others beside them."""


@dataclass(frozen=True)
class Conflict:
    """A submission that is to be refused: in what it is another one, and the answer."""

    what: str
    answer: Answer


@dataclass(frozen=True)
class Submissions:
    """What was submitted and what is told of it.

    Attributes:
        bodies: What was submitted first, by name.
        created: Answers to that.
        again: Answers to the same once more.
        others: Answers to other jobs under these names.
        records: How the jobs are told in the end.
        listings: Pages of each listing.
        between: Jobs that were submitted between two pages of a listing.
        cancelled: Name of a job that was called off and submitted again.
    """

    bodies: Mapping[str, Json]
    created: Mapping[str, Answer]
    again: tuple[tuple[str, Answer], ...]
    others: tuple[Conflict, ...]
    records: Mapping[str, Answer]
    listings: tuple[tuple[Answer, ...], ...]
    between: frozenset[str]
    cancelled: str


def observe(episode: Episode) -> Submissions:
    """Submit jobs, the same ones again, and others under their names."""
    place = domain(episode)
    number = FULL if episode.settings.full else QUICK
    names = [episode.name_of(f"job-{number_of_job:03d}") for number_of_job in range(number)]
    bodies = {name: _body(episode, name, number_of_job, place) for number_of_job, name in enumerate(names)}
    created, again = dict[str, Answer](), list[tuple[str, Answer]]()
    for name, body in bodies.items():
        created[name] = episode.ask("PUT", f"/v1/jobs/{name}", body)
        if episode.random.random() < 0.5:  # at once, as who has got no answer does
            again.append((name, _put_reordered(episode, body)))
    cancelled = next(iter(bodies))
    episode.ask("DELETE", f"/v1/jobs/{cancelled}")
    again += [(name, _put_reordered(episode, body)) for name, body in bodies.items()]
    others = [
        _other(episode, body, what)
        for number_of_job, body in enumerate(bodies.values())
        for what in _changes(number_of_job, body)
    ]
    others += list(_elsewhere(episode, list(bodies.values())))
    listings, between = [], dict[str, Json]()
    for limit in PAGES:
        most = min(limit, int(episode.settings.limits["max_page"]))
        first = episode.ask("GET", f"/v1/jobs?limit={most}")
        name = _name_before(episode, limit, str(first.at("items", -1, "id")))
        between[name] = _body(episode, name, number + len(between), place)
        episode.ask("PUT", f"/v1/jobs/{name}", between[name])
        listings.append((first, *_further_pages(episode, most, first)))
    records = {name: episode.ask("GET", f"/v1/jobs/{name}") for name in {**bodies, **between}}
    return Submissions(
        {**bodies, **between},
        created,
        tuple(again),
        tuple(others),
        records,
        tuple(listings),
        frozenset(between),
        cancelled,
    )


def _name_before(episode: Episode, limit: int, last: str) -> str:
    """A name that comes before the last one of a page, so that a listing that is not pinned shows that one again."""
    names = [episode.name_of(f"{number:02d}-between-{limit}") for number in range(TRIES)]
    return next((name for name in names if name < last), names[0])


def _body(episode: Episode, name: str, number: int, place: str) -> Json:
    """A job with few members, or with many."""
    chance = episode.random
    body = request_of(name, TOO_MANY) | {"domains": [place]}
    if number % 3 == 0:
        return body
    many: Json = {
        "label": chance.choice(("作业一", "näher", "a b\tc", "")),
        "device_kinds": ["gpu", "npu"],
        "memory_per_device": 6.4e10,
        "nodes": {"devices_per_node": 8},
        "links": {"bandwidth": 1e10, "round_trip_time": 0.02},
        "data": [{"id": "a-corpus", "size": 1.5e12, "domains": [place], "pinned": False}],
        "checkpoint": f"s3://bucket/{name}",
        "split_modes": ["none", "periodic"],
        "sync_period": chance.randint(1, 1000),
        "communication": {"step_time": 1.25, "exchange": 1e9, "boundary": 1e7, "checkpoint_size": 1e10},
        "priority": chance.randint(-1000, 1000),
        "deadline": "2099-01-01T00:00:00.000Z",
        "budget": chance.randint(1, 10**6) / 8,
        "retries": chance.randint(0, 9),
        "grace": 0.5,
        "extensions": {"example.org/ticket": {"number": number, "open": True, "words": [None, "", 1.5]}},
    }
    chosen = many if number % 3 == 1 else {member: many[member] for member in chance.sample(sorted(many), 5)}
    if "split_modes" in chosen:  # what is spread says what it sends
        chosen["communication"] = many["communication"]
    workload = {
        "image": "registry.example.org/train:1",
        "command": ["python", "train.py", "--seed", str(number), "--seed", "7", ""],
        "environment": [{"name": "A", "value": ""}, {"name": "B_2", "value": "ü=\n"}],
        "working_directory": "/work",
        "code": "https://example.org/code.tar.gz",
        "processes_per_node": 4,
    }
    return body | chosen | {"workload": workload}


def _put_reordered(episode: Episode, body: Json) -> Answer:
    """Submit the same, written otherwise."""
    names = list(body)
    episode.random.shuffle(names)
    text = json.dumps({name: body[name] for name in names}, indent=episode.random.choice((None, 1)), ensure_ascii=False)
    return episode.ask("PUT", f"/v1/jobs/{body['id']}", content=text.encode())


def _changes(index: int, body: Json) -> list[str]:
    """In what others are unlike this job: two of what is possible, in turn."""
    possible = ["last argument", "order of arguments", "one more member", "devices"]
    possible += [name for name in ("priority", "checkpoint", "extensions", "retries", "deadline") if name in body]
    return [possible[number % len(possible)] for number in (2 * index, 2 * index + 1)]


def _other(episode: Episode, body: Json, what: str) -> Conflict:
    """Another job under the name of one."""
    changed = deepcopy(body)
    command = changed["workload"]["command"]
    match what:
        case "last argument":
            command[-1] += "x"
        case "order of arguments":
            command[-1], command[-2] = command[-2], command[-1]
        case "one more member":
            changed["memory_per_device"] = changed.get("memory_per_device", 0.0) + 1.0
        case "devices":
            changed["devices"]["minimum"] -= 1
        case "extensions":
            changed["extensions"]["example.org/ticket"]["words"][1] = "another"
        case "priority":
            changed["priority"] += 1 if changed["priority"] < 0 else -1
        case _:
            del changed[what]
    return Conflict(f"another {what}", episode.ask("PUT", f"/v1/jobs/{body['id']}", changed))


def _elsewhere(episode: Episode, bodies: Sequence[Json]) -> Iterator[Conflict]:
    """Jobs under a path that names another one: one that is there, and one that is not."""
    for name in (str(bodies[1]["id"]), episode.name_of("nobody")):
        yield Conflict("the path of another", episode.ask("PUT", f"/v1/jobs/{name}", bodies[0]))


def _further_pages(episode: Episode, limit: int, answer: Answer) -> Iterator[Answer]:
    """Pages behind a first one."""
    for _ in range(MOST_PAGES):
        cursor = answer.at("next_cursor")
        if not isinstance(cursor, str):
            return
        answer = episode.ask("GET", f"/v1/jobs?limit={limit}&cursor={quote(cursor, safe='')}")
        yield answer


def judge(o: Submissions) -> Iterator[Finding]:
    """Each job is there once and as it was; others are refused."""
    for name, answer in o.created.items():
        yield answered("JOB-001", answer, 201, "a job is submitted")
        yield from _as_submitted(o.bodies[name], answer, "the answer to its submission")
    for name, answer in o.again:
        yield answered("JOB-001", answer, 200, "the same is submitted again")
        yield from _as_submitted(o.bodies[name], answer, "the answer to its repetition")
        same = all(answer.at(member) == o.created[name].at(member) for member in ("submitted_at", "attempt"))
        yield holds("JOB-001", same, "submitting the same again changes nothing", answer.brief, answer)
    for name, answer in o.records.items():
        yield answered("JOB-001", answer, 200, "a job that was acknowledged is there")
        yield from _as_submitted(o.bodies[name], answer, "its record")
    called_off = o.records[o.cancelled]
    expected = "a job that was called off is not begun anew by submitting it again"
    yield holds("JOB-001", called_off.at("state") == "cancelled", expected, called_off.at("state"), called_off)
    for pages in o.listings:
        yield from _listed(o, pages)
    for other in o.others:
        because = f"a job with {other.what} is another one"
        yield answered("JOB-002", other.answer, 422, because, problem="invalid-body")
    for name, answer in o.records.items():
        same = not _unlike(o.bodies[name], answer.json)
        yield holds("JOB-002", same, "the job is what it was, whatever was refused", answer.brief, answer)


def _as_submitted(body: Json, answer: Answer, what: str) -> Iterator[Finding]:
    unlike = _unlike(body, answer.json)
    observed = f"others are {', '.join(unlike)}" if unlike else "so"
    yield holds("JOB-001", not unlike, f"{what} is as it was submitted", observed, answer)


def _unlike(body: Json, record: Any) -> list[str]:
    """Members of a job that are not as they were submitted.

    Where none was submitted, a record can name the account to which its sender is bound (clause Accounts).
    """
    stated = {name: record[name] for name in MEMBERS & record.keys()} if isinstance(record, dict) else {}
    if "account" not in body:
        stated.pop("account", None)
    return sorted(name for name in {**body, **stated} if body.get(name) != stated.get(name))


def _listed(o: Submissions, pages: Sequence[Answer]) -> Iterator[Finding]:
    """Each job that was there before the first page is listed once, in order, as it was submitted."""
    for page in pages:
        yield answered("JOB-001", page, 200, "jobs are listed")
    rows = [row for page in pages for row in page.items("items") if isinstance(row, dict)]
    ours = [row for row in rows if str(row.get("id")) in o.bodies]
    names = [str(row.get("id")) for row in ours]
    wanted = sorted(name for name in o.bodies if name not in o.between)
    missing = [name for name in wanted if name not in names]
    twice = sorted({name for name in names if names.count(name) > 1})
    observed = f"missing {missing[:3]}, twice {twice[:3]}" if missing or twice else "so"
    yield holds("JOB-001", not missing and not twice, "each job is listed once", observed, pages[0])
    order = [str(row.get("id")) for row in rows]
    in_order = order == sorted(order)
    yield holds("JOB-001", in_order, "jobs are listed in order of identifier", names[:5], pages[0])
    unlike = [row.get("id") for row in ours if _unlike(o.bodies[str(row.get("id"))], row)]
    yield holds("JOB-001", not unlike, "jobs are listed as they were submitted", unlike[:3] or "so", pages[0])


CHECK = Check("job_submission", ("JOB-001", "JOB-002"), observe, judge)
"""The check."""
