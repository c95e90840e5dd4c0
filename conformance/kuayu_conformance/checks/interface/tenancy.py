"""No tenant sees another's (COM-019)."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import Stage
from kuayu_conformance.checks.kit.requests import beat, domain, failing, faults_of, node, post, sample
from kuayu_conformance.contract import unsound
from kuayu_conformance.episode import Episode, NotTestable, Stream, instant
from kuayu_conformance.findings import Finding, answered, holds, lacks


@dataclass(frozen=True)
class Faults:
    """What a second tenant gets to see of a fault of the first's, and can do about it.

    Attributes:
        node: The node that it is about.
        own: The first tenant's faults.
        listing: The second one's.
        stream: Changes of the second one's faults while the fault was told.
        actions: What the second one's domain of the same name is asked for.
        beat: Answer to a heartbeat of the node from the second tenant.
        result: Answer to a result from the second tenant, of the action that the first one's domain was asked for.
    """

    node: str
    own: Answer
    listing: Answer
    stream: Stream
    actions: Answer
    beat: Answer
    result: Answer


@dataclass(frozen=True)
class Jobs:
    """What a second tenant gets to see of a running job of the first's, and can do about it.

    Attributes:
        job: Name of the job.
        reads: Answers to the second one's questions about it, by path.
        listing: The second one's jobs.
        stream: Changes of the second one's jobs while the first one's came to run.
        writes: Answers to the second one's reports and lines of its run, by path.
        cancel: Answer to the second one's calling it off.
        own: The job as the first one sees it then.
        reuse: Answer to a job of the second one under the same name.
    """

    job: str
    reads: tuple[tuple[str, Answer], ...]
    listing: Answer
    stream: Stream
    writes: tuple[tuple[str, Answer], ...]
    cancel: Answer
    own: Answer
    reuse: Answer


@dataclass(frozen=True)
class TenantViews:
    """What a second tenant, and somebody without credentials, get to see of the first's.

    ``faults`` and ``jobs`` are None where the target does not declare to tell any, or to run any.
    """

    site: str
    reads: tuple[tuple[str, Answer], ...]
    listing: Answer
    reuse: Answer
    own: Answer
    reference: Answer
    write: Answer
    replay: Answer
    after: Answer
    nobody: Answer
    faults: Faults | None
    jobs: Jobs | None


def observe(episode: Episode) -> TenantViews:
    """Make things as one tenant and look for them as another.

    Raises:
        NotTestable: There are no credentials of a second tenant.
    """
    if not episode.settings.other_tenant:
        raise NotTestable(
            "the target declares tenancy, but there are no credentials of a second tenant",
            "give --other-tenant-header 'Authorization: Bearer TOKEN'",
        )
    site = domain(episode)
    machine = node(episode, site)
    now = instant(episode.now() - 1)
    batch = {"mode": "per_item", "samples": [sample(machine, now, power=1.0)]}
    key = {"idempotency-key": episode.name_of("key")}
    episode.ask("POST", "/v1/samples", batch, headers=key)

    def ask(path: str) -> tuple[str, Answer]:
        return path, episode.ask("GET", path, tenant="other")

    shown = episode.settings.asks("GET /v1/nodes/{id}/indicators")
    reads = (
        ask(f"/v1/domains/{site}"),
        ask(f"/v1/nodes/{machine}"),
        *(ask(f"/v1/{path}/indicators") for path in (f"nodes/{machine}", f"domains/{site}") if shown),
        ask(f"/v1/samples?subject={machine}&subject_kind=node"),
    )
    listing = episode.ask("GET", f"/v1/nodes?domain={site}", tenant="other")
    stranger = episode.name_of("stranger")
    reference = episode.ask("PUT", f"/v1/nodes/{stranger}", {"id": stranger, "domain": site}, tenant="other")
    replay = episode.ask("POST", "/v1/samples", batch, headers=key, tenant="other")
    faults = _faults(episode) if episode.settings.asks("POST /v1/heartbeats", "RES") else None
    jobs = _jobs(episode) if episode.settings.asks("PUT /v1/jobs/{id}", "JOB") else None
    reuse = episode.ask("PUT", f"/v1/domains/{site}", {"id": site, "label": "theirs"}, tenant="other")
    return TenantViews(
        site,
        reads,
        listing,
        reuse,
        own=episode.ask("GET", f"/v1/domains/{site}"),
        reference=reference,
        write=episode.ask("DELETE", f"/v1/nodes/{machine}", tenant="other"),
        replay=replay,
        after=post(episode, [sample(machine, instant(episode.now()), power=2.0)]),
        nobody=episode.ask("GET", "/v1/domains", tenant="none"),
        faults=faults,
        jobs=jobs,
    )


def _faults(episode: Episode) -> Faults:
    """Let a node of the first tenant fail while the second one follows its own faults."""
    site = domain(episode, "faults")
    machine = node(episode, site, "f", names=["0"])
    stream = episode.follow("/v1/faults/events", tenant="other")
    failing(episode, [machine])
    own = faults_of(episode, site, "open", 1)
    now = instant(episode.now())
    action = str(own.at("items", 0, "actions", 0))
    result = {"action": action, "phase": "commit", "outcome": "committed", "at": now}
    stream.take(0.5)
    stream.hang_up()
    return Faults(
        machine,
        own,
        listing=episode.ask("GET", "/v1/faults", tenant="other"),
        stream=stream,
        actions=episode.ask("GET", f"/v1/actions?domain={site}&wait=0", tenant="other"),
        beat=episode.ask("POST", "/v1/heartbeats", {"beats": [beat(machine, 2, now)]}, tenant="other"),
        result=episode.ask("POST", "/v1/action-results", result, tenant="other"),
    )


def _jobs(episode: Episode) -> Jobs:
    """Let a job of the first tenant run while the second one follows its own jobs."""
    stream = episode.follow("/v1/jobs/events", tenant="other")
    stage = Stage(episode, "jobs")
    stage.open("a")
    job = stage.submit("job")
    stage.started(job, 1)
    stage.report("a", job, 1, "running")
    now = instant(episode.now())
    of_run = {"job": job, "attempt": 1, "domain": stage.domains["a"].name}
    line = {"number": 1, "rank": 0, "at": now, "text": "theirs"}
    bodies = {
        "/v1/run-reports": of_run | {"state": "succeeded", "at": now},
        "/v1/run-logs": of_run | {"lines": [line]},
    }

    def ask(method: str, path: str, body: object = None) -> tuple[str, Answer]:
        return path, episode.ask(method, path, body, tenant="other")

    reads = tuple(ask("GET", f"/v1/jobs/{job}{part}") for part in ("", "/decision", "/logs"))
    writes = tuple(ask("POST", path, body) for path, body in bodies.items())
    cancel = episode.ask("DELETE", f"/v1/jobs/{job}", tenant="other")
    stream.take(0.5)
    stream.hang_up()
    jobs = Jobs(
        job,
        reads,
        episode.ask("GET", "/v1/jobs", tenant="other"),
        stream,
        writes,
        cancel,
        stage.look(job),
        episode.ask("PUT", f"/v1/jobs/{job}", stage.jobs[job] | {"label": "theirs"}, tenant="other"),
    )
    stage.close()
    return jobs


def judge(o: TenantViews) -> Iterator[Finding]:
    """To a stranger another tenant's things are as if they were not there."""
    for path, answer in o.reads:
        yield answered("COM-019", answer, 404, f"{path} of another tenant is as if absent", problem="not-found")
    names = o.listing.items("items")
    yield lacks("COM-019", o.listing, names, "a listing holds nothing of another tenant")
    yield answered("COM-019", o.reference, 422, "nothing can refer to another tenant's", problem="unknown-reference")
    yield answered("COM-019", o.write, 404, "another tenant's node cannot be deleted", problem="not-found")
    foreign = o.replay.headers.get("idempotency-replayed") == "true" or o.replay.at("accepted") == 1
    apart = not (foreign or unsound(o.replay))
    yield holds("COM-019", apart, "idempotency keys of tenants do not meet", o.replay.brief, o.replay)
    yield answered("COM-019", o.reuse, 201, "the same identifier is free for another tenant")
    unchanged = o.own.status == 200 and not unsound(o.own) and o.own.at("label") is None
    yield holds("COM-019", unchanged, "one's own is left as it was", o.own.brief, o.own)
    yield holds("COM-019", o.after.at("accepted") == 1, "one's own node still takes samples", o.after.brief, o.after)
    yield answered("COM-019", o.nobody, 401, "without credentials nothing is answered", problem="unauthorised")
    challenged = "www-authenticate" in o.nobody.headers
    yield holds("COM-019", challenged, "401 comes with WWW-Authenticate", dict(o.nobody.headers), o.nobody)
    if o.faults:
        yield from _judge_faults(o.faults)
    if o.jobs:
        yield from _judge_jobs(o.jobs)


def _judge_faults(o: Faults) -> Iterator[Finding]:
    about = [item for item in o.listing.items("items") if isinstance(item, dict) and item.get("node") == o.node]
    yield lacks("COM-019", o.listing, about, "a listing of faults holds nothing of another tenant")
    leaked = [event.id for event in o.stream.events if f'"{o.node}"' in event.data]
    yield lacks("COM-019", o.stream.opening, leaked, "a stream of faults tells nothing of another tenant")
    actions = o.actions.items("items")
    yield lacks("COM-019", o.actions, actions, "nobody is asked to act on what is another tenant's")
    left = not (o.beat.at("accepted") == 1 or unsound(o.beat))
    yield holds("COM-019", left, "a heartbeat of another tenant's node is not taken", o.beat.brief, o.beat)
    because = "an action that another tenant was asked for cannot be answered"
    yield answered("COM-019", o.result, 422, because, problem="unknown-reference")


def _judge_jobs(o: Jobs) -> Iterator[Finding]:
    for path, answer in o.reads:
        yield answered("COM-019", answer, 404, f"{path} of another tenant is as if absent", problem="not-found")
    about = [item for item in o.listing.items("items") if isinstance(item, dict) and item.get("id") == o.job]
    yield lacks("COM-019", o.listing, about, "a listing of jobs holds nothing of another tenant")
    leaked = [event.id for event in o.stream.events if f'"{o.job}"' in event.data]
    yield lacks("COM-019", o.stream.opening, leaked, "a stream of jobs tells nothing of another tenant")
    for path, answer in o.writes:
        because = f"{path}: nothing is taken about a run of another tenant"
        yield answered("COM-019", answer, 422, because, problem="unknown-reference")
    yield answered("COM-019", o.cancel, 404, "another tenant's job cannot be called off", problem="not-found")
    runs = o.own.at("cancelling") is not True and o.own.at("state") not in {"cancelled", "succeeded"}
    unchanged = runs and o.own.at("label") is None and not unsound(o.own)
    yield holds("COM-019", unchanged, "one's own job is left as it was", o.own.brief, o.own)
    yield answered("COM-019", o.reuse, 201, "the name of a job is free for another tenant")


CHECK = Check("com_tenancy", ("COM-019",), observe, judge)
