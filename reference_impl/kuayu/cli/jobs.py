"""``kuayu jobs``, ``why``, ``load`` and ``cancel``: how jobs stand and why, what comes in for them, and their end.

1. ``kuayu logs``: what the processes of a job print.
2. ``kuayu submit``: hand a job to a service, and say where and when it runs, what it costs, and what is next best.
3. Jobs and decisions about them as tables and lines for people.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.markup import escape
from rich.text import Text

from kuayu.cli import data_directory
from kuayu.cli.data_directory import connected
from kuayu.cli.decisions import content_of, listed
from kuayu.cli.place import length, where
from kuayu.cli.terminal import USAGE, fail, plain_table
from kuayu_schemas.models import (
    AccountList,
    DomainShare,
    JobDecision,
    JobLoad,
    JobLogLine,
    JobRecord,
    JobState,
    PlacementVerb,
    PredictedOutcome,
)

STYLES = {
    JobState.running: "green",
    JobState.succeeded: "green",
    JobState.starting: "yellow",
    JobState.restarting: "yellow",
    JobState.failed: "bold red",
    JobState.held: "magenta",
    JobState.cancelled: "dim",
}
OVER = frozenset({JobState.succeeded, JobState.failed, JobState.cancelled})
"""States that last."""

MAX_WIDTH = 40
"""Characters of a column that are shown in any case; only why a job stands so gives way to a narrow terminal."""

ALTERNATIVES = 3
"""Alternatives of a decision that are told."""

console = Console(highlight=False)


def table(jobs: Sequence[JobRecord], now: datetime) -> Group:
    """Jobs, those that have ended last, and in each part the newest first."""
    rows = plain_table("job", "state", "where", ">attempt", ">step", ">for", "because")
    for column in rows.columns:
        column.no_wrap = True
    rows.columns[-1].overflow = "ellipsis"
    for job in sorted(jobs, key=lambda entry: (entry.state in OVER, -entry.submitted_at.timestamp(), entry.id)):
        style = STYLES.get(job.state, "")
        rows.add_row(
            f"[bold]{escape(job.id)}[/]",
            f"[{style}]{job.state.value}[/]" if style else job.state.value,
            ", ".join(f"{share.devices} in {escape(share.domain)}" for share in _shares(job)),
            str(job.attempt) if job.attempt else "–",
            "–" if job.step is None else str(job.step),
            length(now - _since(job)),
            escape(job.reason),
        )
    for column in rows.columns[:-1]:
        cells = (Text.from_markup(str(cell)) for cell in (column.header, *column.cells))
        column.min_width = min(MAX_WIDTH, max(cell.cell_len for cell in cells))
    counts = {state: sum(job.state is state for job in jobs) for state in JobState}
    counted = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    return Group(*([rows] if jobs else []), counted or "there are no jobs")


def details(job: JobRecord) -> Group:
    """One job: how it stands, and how it came to that."""
    style = STYLES.get(job.state, "bold")
    cancelling = ", being called off" if job.cancelling and job.state not in OVER else ""
    head = [
        f"[bold]{escape(job.id)}[/] [{style}]{job.state.value}[/]{cancelling}: {escape(job.reason)}",
        *([] if job.placement is None else [f"runs on   {where(job.placement)}"]),
        *_replicas(job),
        f"attempt   {job.attempt}, {job.failures} of {3 if job.retries is None else job.retries} retries used",
        *([] if job.step is None else [f"step      {job.step}{_checkpoint(job)}"]),
        f"has held  {job.device_hours:.3g} h of reference devices",
    ]
    rows = plain_table("at", "state", ">attempt", "because")
    rows.columns[-1].overflow = "fold"
    for change in job.transitions:
        rows.add_row(moment(change.at), change.state.value, str(change.attempt), escape(change.reason))
    return Group(*head, "", rows)


def _replicas(job: JobRecord) -> Iterator[str]:
    """What is told of a serving job, or of one of its replicas."""
    if job.replica_of is not None:
        yield f"replica of {escape(job.replica_of)}"
    if job.replicas is not None:
        state = job.replicas
        load = "" if state.load is None else f", for {state.load:.4g} requests/s"
        yield f"replicas  {state.running} of {state.wanted} run{load}: {escape(', '.join(state.jobs)) or 'none'}"


def decision(product: JobDecision) -> Group:
    """What was decided last about a job, why, and what the next-best would have been."""
    chosen, explanation = product.decision, product.decision.explanation
    outcome = None if explanation is None else explanation.outcome
    what = chosen.verb.value if chosen.placement is None else f"{chosen.verb.value} {where(chosen.placement)}"
    lines = [f"[bold]{escape(product.job)}[/] {what}{_expected(outcome, product.at)}"]
    if explanation is not None:
        lines.append(f"because   {escape(explanation.reason)}")
        if explanation.overtaken_until is not None:
            lines.append(f"it may be overtaken until {moment(explanation.overtaken_until)}")
        for alternative in explanation.alternatives[:ALTERNATIVES]:
            instead = alternative.verb.value if alternative.placement is None else where(alternative.placement)
            lines.append(f"next best {instead}{_expected(alternative.outcome, product.at)}")
    simpler = ", in place of the usual method" if product.method.fallback else ""
    lines.append(
        f"[dim]decided {moment(product.at)} by {escape(product.method.name)} {escape(product.method.version)}{simpler},"
        f" on the state {escape(product.digest)}[/]"
    )
    return Group(*lines)


def account_table(accounts: AccountList) -> Group:
    """What accounts have used, those that have used most for their weight last."""
    rows = plain_table("account", ">used, h", ">weight", ">used for its weight, h", ">quota, h")
    for account in sorted(accounts.items, key=lambda entry: (entry.used / entry.weight, entry.id)):
        rows.add_row(
            f"[bold]{escape(account.id)}[/]",
            f"{account.used:.4g}",
            f"{account.weight:g}",
            f"{account.used / account.weight:.4g}",
            "–" if account.quota is None else f"{account.quota:g}",
        )
    half_life = length(timedelta(seconds=accounts.half_life))
    unit = f"hours of reference devices, which count half after {half_life}"
    return Group(*([rows] if accounts.items else ["no account has used anything"]), unit)


def change(job: JobRecord) -> str:
    """What a change says, in a line."""
    instant = job.transitions[-1].at if job.transitions else job.submitted_at
    placed = f" {where(job.placement)}" if job.placement is not None and job.state not in OVER else ""
    step = f" step {job.step}" if job.step is not None else ""
    return f"{moment(instant)} {job.id} {job.state.value}{placed}{step}: {job.reason}"


def log_line(line: JobLogLine, *, several: bool) -> str:
    """A line of a log, with where it is from where there are several ranks or domains."""
    return f"{line.domain}/{line.rank} {line.text}" if several else line.text


def moment(instant: datetime) -> str:
    """An instant: the time of a day, and the day where that is not today."""
    form = "%H:%M:%SZ" if instant.date() == datetime.now(UTC).date() else "%Y-%m-%d %H:%M:%SZ"
    return f"{instant.astimezone(UTC):{form}}"


def starts(outcome: JobDecision) -> bool:
    """Whether a decision has a job start."""
    return outcome.decision.verb is PlacementVerb.start


def _shares(job: JobRecord) -> list[DomainShare]:
    return [] if job.placement is None else job.placement.shares


def _since(job: JobRecord) -> datetime:
    return job.transitions[-1].at if job.transitions else job.submitted_at


def _checkpoint(job: JobRecord) -> str:
    return "" if job.checkpoint_step is None else f", checkpoint of step {job.checkpoint_step}"


def _expected(outcome: PredictedOutcome | None, now: datetime) -> str:
    """When it is expected to run and to end, and what that costs."""
    if outcome is None:
        return ""
    money = outcome.price + outcome.communication_cost
    cost = f", costs {money:,.2f}" if money else ", costs nothing"
    return f": runs in {length(outcome.run_at - now)}, ends in {length(outcome.finish_at - now)}{cost}"


if TYPE_CHECKING:
    from kuayu.client import Client
    from kuayu_schemas.models import JobRecord

Job = Annotated[str, typer.Argument(metavar="JOB", help="Name of the job.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]

CANCELLED = 3
"""Exit status where a job that was waited for was called off."""


def jobs(
    job: Annotated[str | None, typer.Argument(metavar="JOB", help="Name of a job; all by default.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Follow changes as they come, until Ctrl-C.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: a list of jobs, and with --watch a line for each change.")
    ] = False,
    accounts: Annotated[
        bool, typer.Option("--accounts", help="Tell what accounts have used, with their weights and quotas.")
    ] = False,
    url: data_directory.Url = None,
    token: data_directory.Token = None,
    data: data_directory.Data = data_directory.DEFAULT,
) -> None:
    """List jobs and where they stand, or tell of one how it came to that.

    FOR is how long a job has been in its state. Ended jobs are listed for as long as the service remembers them.
    With --accounts it is told what accounts have used, the one first whose jobs go first.
    """
    if accounts and (watch or job is not None):
        raise typer.BadParameter("accounts are told by themselves", param_hint="'--accounts'")
    with connected(url, token, data) as client:
        if accounts:
            listed = client.accounts()
            if as_json:
                typer.echo(listed.to_json())
            else:
                console.print(account_table(listed))
        elif watch:
            _watch(client, job, as_json=as_json)
        elif job is not None:
            record = client.job(job)
            if as_json:
                typer.echo(record.to_json())
            else:
                console.print(details(record))
        else:
            result = list(client.jobs())
            if as_json:
                typer.echo(json.dumps([entry.to_wire() for entry in result], ensure_ascii=False, indent=2))
            else:
                console.print(table(result, datetime.now(UTC)))


def why(
    job: Job,
    as_json: AsJson = False,
    url: data_directory.Url = None,
    token: data_directory.Token = None,
    data: data_directory.Data = data_directory.DEFAULT,
) -> None:
    """Tell what was decided about a job, why, and what the next-best would have been."""
    from kuayu.client import NotFoundError

    with connected(url, token, data) as client:
        record = client.job(job)
        try:
            outcome = client.job_decision(job)
        except NotFoundError:
            outcome = None
        if as_json:
            report = {"job": record.to_wire(), "decision": None if outcome is None else outcome.to_wire()}
            typer.echo(json.dumps(report, ensure_ascii=False, indent=2))
            return
        console.print(details(record))
        console.print()
        if record.serving is not None:
            console.print("it has no devices of its own; kuayu why tells of each replica where it runs")
        else:
            console.print("nothing was decided about it yet" if outcome is None else decision(outcome))


def load(
    job: Job,
    rate: Annotated[float, typer.Argument(metavar="RATE", min=0.0, help="Requests a second that come in now.")],
    url: data_directory.Url = None,
    token: data_directory.Token = None,
    data: data_directory.Data = data_directory.DEFAULT,
) -> None:
    """Tell how many requests come in for a serving job; as many replicas are started or stopped as that needs.

    Programs that pass requests on do the same with POST /v1/job-loads.
    """
    with connected(url, token, data) as client:
        record = client.post_job_load(JobLoad(job=job, observed_at=datetime.now(UTC), rate=rate))
        typer.echo(f"{record.id} {record.state.value}: {record.reason}")


def cancel(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB…", help="Names of jobs.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until none of their processes runs any more.")] = False,
    url: data_directory.Url = None,
    token: data_directory.Token = None,
    data: data_directory.Data = data_directory.DEFAULT,
) -> None:
    """Call jobs off: what runs of them is stopped, and what they hold is given back. Their records and logs stay.

    All are called off before any is waited for. One that is not there, or not for the token, keeps none of the others
    from it, and is told in the end.
    """
    from kuayu.client import NotFoundError, RefusedError

    missing: list[str] = []
    forbidden: list[RefusedError] = []
    with connected(url, token, data) as client:
        records = []
        for job in dict.fromkeys(jobs):
            try:
                records.append(client.cancel_job(job))
            except NotFoundError:
                missing.append(job)
            except RefusedError as error:
                if error.name != "forbidden":
                    raise
                forbidden.append(error)
        for record in records:
            ended = awaited(client, record) if wait else record
            typer.echo(f"{ended.id} {ended.state.value}: {ended.reason}")
    ends = [fail(error.cause, error.hint) for error in forbidden]
    if missing:
        ends.append(fail(f"there is no job {', '.join(missing)}", "kuayu jobs lists all"))
    if ends:
        raise ends[0]


def awaited(client: "Client", record: "JobRecord") -> "JobRecord":
    """A job once it has ended."""
    if record.state in OVER:
        return record
    for job in client.follow_jobs(after=record.revision):
        if job.id == record.id and job.state in OVER:
            return job
    raise AssertionError  # a stream that is followed does not end by itself


def status_of(record: "JobRecord") -> int:
    """Exit status for a job that has ended: zero where it succeeded."""
    from kuayu_schemas.models import JobState

    return {JobState.succeeded: 0, JobState.cancelled: CANCELLED}.get(record.state, 1)


def _watch(client: "Client", job: str | None, *, as_json: bool) -> None:
    """Show what comes: a table that changes on a terminal, a line for each change elsewhere."""
    from rich.live import Live

    if job is not None:
        client.job(job)  # one that is not there is told at once
    news = (entry for entry in client.follow_jobs() if job in {None, entry.id})
    if as_json or not console.is_terminal:
        for new in news:
            typer.echo(new.to_json() if as_json else change(new))
        return
    known: dict[str, JobRecord] = {}
    with Live(table([], datetime.now(UTC)), console=console, screen=True, auto_refresh=False) as live:
        for new in news:
            known[new.id] = new
            live.update(table(list(known.values()), datetime.now(UTC)), refresh=True)


if TYPE_CHECKING:
    from collections.abc import Iterator

    from kuayu.client import Client
    from kuayu_schemas.models import JobLogLine


def logs(
    *,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name of the job.")],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Wait for further lines until the job ends.")] = False,
    tail: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only the last N of the lines so far.")] = None,
    attempt: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only lines of this attempt; of all attempts by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    url: data_directory.Url = None,
    token: data_directory.Token = None,
    data: data_directory.Data = data_directory.DEFAULT,
) -> None:
    """Print what the processes of a job have printed, in all domains and attempts.

    Where several processes print, each line begins with its domain and rank. Faults in log files are found by kuayu
    diagnose.
    """
    if "/" in job or job == "-":
        raise fail(f"{job} is not the name of a job", f"faults in a log file are found by kuayu diagnose {job}", USAGE)
    with connected(url, token, data) as client:
        _check_job(client, job)
        several, before = False, (0, "")
        first: int | None = None
        for line in _lines(client, job, follow=follow, tail=tail):
            if attempt is not None and line.attempt != attempt:
                continue
            first = line.rank if first is None else first
            several = several or line.rank != first or before[1] not in {"", line.domain}
            if before[0] not in {0, line.attempt} and not as_json:
                typer.echo(f"— attempt {line.attempt} in {line.domain} —")
            before = line.attempt, line.domain
            typer.echo(line.to_json() if as_json else log_line(line, several=several))


def _check_job(client: "Client", job: str) -> None:
    """See whether there is such a job; where there is a file of that name instead, that was probably meant.

    Raises:
        ClientError: There is none.
        typer.Exit: There is such a file.
    """
    from kuayu.client import NotFoundError, UnreachableError

    try:
        client.job(job)
    except (NotFoundError, UnreachableError) as error:
        if Path(job).is_file():
            hint = f"faults in a log file are found by kuayu diagnose {job}"
            raise fail(f"there is no job {job}, but a file of that name", hint, USAGE) from error
        raise


def _lines(client: "Client", job: str, *, follow: bool, tail: int | None) -> "Iterator[JobLogLine]":
    """Lines of a job's log; with a tail, the last of those that are there, and what comes after."""
    if tail is None:
        yield from client.job_logs(job, follow=follow)
        return
    from collections import deque

    last: deque[JobLogLine] = deque(maxlen=tail)
    cursor: str | None = None
    for page in client.job_log_pages(job):
        last.extend(page.items)
        cursor = page.next_cursor
    yield from last
    if follow:
        yield from client.job_logs(job, follow=True, after=cursor)


if TYPE_CHECKING:
    from kuayu.client import Client
    from kuayu_schemas.models import JobDecision, JobRecord

DECISION_S = 20.0
"""How long a decision is waited for: several passes of a control loop, or the first one of a service."""

LOOK_SECONDS = 0.3

NAMES_TRIED = 100
"""Names that are tried for a job without one, where others take them meanwhile."""


def submit(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The job, in YAML or JSON; - for the standard input.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Overrides the file, as devices.least=2; may be repeated."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the job has ended; exits with 0 if it succeeded.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Print what it prints until it has ended; exits with 0 if it succeeded.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the job as JSON, without waiting for a decision.")
    ] = False,
    url: data_directory.Url = None,
    token: data_directory.Token = None,
    data: data_directory.Data = data_directory.DEFAULT,
) -> None:
    """Submit a job.

    The same file may be submitted again: a job of a name is there once. One without a name gets that of the file and a
    number, and is another one each time.
    """
    outcome = _read(file, settings or [])
    with connected(url, token, data) as client:
        record = _submitted(client, outcome, file)
        if as_json:
            typer.echo(record.to_json())
        else:
            console.print(f"[bold]{record.id}[/] {record.state.value}: {record.reason}", soft_wrap=True)
            with console.status("it is being decided where it runs; Ctrl-C does not call it off"):
                result = _decision(client, record)
            if result is not None:
                console.print(decision(result), soft_wrap=True)
            else:
                console.print(f"[dim]nothing is decided yet; kuayu why {record.id} tells it later[/]")
        if follow:
            for line in client.job_logs(record.id, follow=True):
                typer.echo(log_line(line, several=record.devices.maximum > 1))
        if wait or follow:
            record = awaited(client, client.job(record.id))
            if not as_json:
                typer.echo(f"{record.id} {record.state.value}: {record.reason}")
            raise typer.Exit(status_of(record))


def _read(file: str, settings: list[str]) -> dict[str, Any]:
    """What a job file says.

    Raises:
        typer.Exit: It is none.
    """
    from kuayu.cli.job_file import JobFileError, Surroundings, read_job_file

    content = content_of(file, "job", "YAML or JSON")
    folder = Path.cwd() if file == "-" else Path(file).absolute().parent
    name = "the standard input" if file == "-" else file
    try:
        return read_job_file(content, settings, Surroundings(name, folder, os.environ, datetime.now(UTC)))
    except JobFileError as error:
        cause = error.faults[0] if len(error.faults) == 1 else listed("this is no job", error.faults)
        hint = "the guide Running jobs lists all keys: name, command, devices, checkpoint, retries, …"
        raise fail(cause, hint, USAGE) from error


def _submitted(client: "Client", outcome: dict[str, Any], file: str) -> "JobRecord":
    """The job as the service holds it.

    Raises:
        ClientError: It will not have it.
        typer.Exit: Another one has its name.
    """
    from kuayu.cli.job_file import request_of
    from kuayu.client import RefusedError

    named = "id" in outcome
    stem = "job" if file == "-" else re.sub(r"[^A-Za-z0-9._-]+", "-", Path(file).stem).strip("-._") or "job"
    number = 1 if named else _next_number(client, stem)
    for tried in range(number, number + NAMES_TRIED):
        request = request_of(outcome if named else {"id": f"{stem[:100]}-{tried}", **outcome})
        try:
            return client.submit_job(request)
        except RefusedError as error:
            if error.name != "invalid-body" or not _is_taken(client, request.id):
                raise
            if named:
                hint = f"choose another one, as with --set name={request.id}-2; a job does not change afterwards"
                raise fail(f"there is another job {request.id}", hint) from error
    raise fail(f"there is no free name after {stem}-{number}", "give the job a name in the file")


def _next_number(client: "Client", stem: str) -> int:
    """Number of the first job by a name without number that is not there yet."""
    pattern = re.compile(rf"{re.escape(stem[:100])}-([0-9]{{1,9}})")
    result = (pattern.fullmatch(job.id) for job in client.jobs())
    return max((int(entry[1]) for entry in result if entry), default=0) + 1


def _is_taken(client: "Client", name: str) -> bool:
    from kuayu.client import NotFoundError

    try:
        client.job(name)
    except NotFoundError:
        return False
    return True


def _decision(client: "Client", record: "JobRecord") -> "JobDecision | None":
    """What was decided about a job, once it was; None where that takes too long."""
    from kuayu.client import NotFoundError

    deadline = time.monotonic() + DECISION_S
    while True:
        try:
            return client.job_decision(record.id)
        except NotFoundError:
            if time.monotonic() > deadline:
                return None
        time.sleep(LOOK_SECONDS)
