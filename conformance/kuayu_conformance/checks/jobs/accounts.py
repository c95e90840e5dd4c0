"""What accounts are told to have used, and whose job goes first by it (JOB-011, JOB-012)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import exp2
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import Stage
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds

RUN_SECONDS = {False: 2.0, True: 6.0}
"""Seconds that jobs run that are to have used much, in a quick and in a full run."""

JOBS = (("red", 0), ("red", 0), ("blue", 0), ("blue", 3), ("blue", 0))
"""Account of each job in the order of submission, and how many times that long it runs."""

MOST_OFF = 0.01
"""Share by which what is told may differ from what was held: that of the requirement."""

LEAST_GROWTH = 0.5
"""Share of what a job holds that has to be told while it runs; when exactly that was read is not known."""

LEAST_SEEN = 0.5
"""Share of the time of a job that has to lie between two readings for what grows between them to be looked at."""

ROUNDING = 1e-6
"""Share by which two uses may differ that are the same."""


@dataclass(frozen=True)
class AccountRun:
    """A job that was started, with what was told before the one before it ended, and then.

    Attributes:
        job: Its name.
        account: Its account.
        waiting: Accounts of jobs that waited as well.
        before: Accounts as they were told while the job before was still running.
        after: Accounts as they were told when this one had been started.
        end: Accounts as they were told before this one ended.
    """

    job: str
    account: str
    waiting: frozenset[str]
    before: Answer
    after: Answer
    end: Answer


@dataclass(frozen=True)
class AccountRuns:
    """Jobs of two accounts that were started one after the other.

    Attributes:
        accounts: Names of the accounts.
        account_of: Account of each job, by name.
        runs: Jobs that waited, in the order in which they were started.
        records: Jobs in the end, by name.
        closing: Accounts when nothing ran any more.
        later: Accounts a while after that.
    """

    accounts: tuple[str, str]
    account_of: Mapping[str, str]
    runs: tuple[AccountRun, ...]
    records: Mapping[str, Answer]
    closing: Answer
    later: Answer


def observe(episode: Episode) -> AccountRuns:
    """One account holds the only devices, while jobs of both are submitted; then each ends when it has run."""
    stage = Stage(episode, "accounts")
    stage.open("a")
    red, blue = episode.name_of("red"), episode.name_of("blue")
    named = {"red": red, "blue": blue}
    holder = stage.submit("holder", account=red)
    lasts = {holder: RUN_SECONDS[episode.settings.full]}
    account_of = {holder: red}
    stage.started(holder, 1)
    stage.report("a", holder, 1, "running")
    for number, (account, times) in enumerate(JOBS):
        name = stage.submit(f"job-{number}", account=named[account])
        lasts[name], account_of[name] = times * lasts[holder], named[account]
    runs: list[AccountRun] = []
    running, after, waiting = holder, _accounts(stage), [name for name in account_of if name != holder]
    while running:
        stage.play(lambda: False, seconds=lasts[running])
        end = _accounts(stage)
        if runs:
            runs[-1] = AccountRun(running, account_of[running], runs[-1].waiting, runs[-1].before, after, end)
        stage.report("a", running, 1, "succeeded", exit_code=0)
        running = _next(stage, waiting) if waiting else ""
        if running:
            stage.report("a", running, 1, "running")
            after = _accounts(stage)
            left = frozenset(account_of[name] for name in waiting if name != running)
            runs.append(AccountRun(running, account_of[running], left, end, after, after))
            waiting.remove(running)
    for name in account_of:
        if name not in waiting:
            stage.reach(name, "succeeded")
    closing = _accounts(stage)
    stage.play(lambda: False, seconds=1.0)
    later = _accounts(stage)
    records = {name: stage.look(name) for name in account_of}
    stage.close()
    return AccountRuns((red, blue), account_of, tuple(runs), records, closing, later)


def _accounts(stage: Stage) -> Answer:
    return stage.episode.ask("GET", "/v1/accounts")


def _next(stage: Stage, waiting: list[str]) -> str:
    """The job that is started next; empty where none is."""

    def started() -> list[str]:
        return [moment.job for moment in stage.moments if moment.kind == "start" and moment.job in waiting]

    return started()[0] if stage.play(lambda: bool(started()), waiting[0]) else ""


def judge(o: AccountRuns) -> Iterator[Finding]:
    """Who has used less for its weight goes first, and what is told is what was held."""
    yield from _start_order(o)
    for answer in (o.closing, o.later):
        yield answered("JOB-011", answer, 200, "what accounts have used is told")
    half_life = _half_life(o.closing)
    now = _seconds(o.closing.at("at"))
    for account in o.accounts:
        records = [record for name, record in o.records.items() if o.account_of[name] == account]
        least = sum(_halved(record, "submitted_at", now, half_life) for record in records)
        most = sum(_halved(record, "ended_at", now, half_life) for record in records)
        used = _used(o.closing, account)
        near = (1 - MOST_OFF) * least <= used <= (1 + MOST_OFF) * most
        expected = f"{account}: it has used what its jobs have held, {least:.6g} to {most:.6g} h"
        yield holds("JOB-011", near and most > 0, expected, f"{used:.6g} h", o.closing)
        later = _used(o.later, account)
        expected = f"{account}: it uses nothing while nothing of it runs"
        yield holds("JOB-011", later <= used * (1 + ROUNDING), expected, f"{used:.6g} h, then {later:.6g} h", o.later)
    for run in o.runs:
        yield from _grows(o, run)


def _start_order(o: AccountRuns) -> Iterator[Finding]:
    expected = "all jobs that wait are started"
    yield holds("JOB-012", len(o.runs) == len(JOBS), expected, f"{len(o.runs)} of {len(JOBS)}", o.closing)
    for run in o.runs:
        yield answered("JOB-012", run.before, 200, "what accounts have used is told while a job runs")
        for other in sorted(run.waiting - {run.account}):
            least = min(_for_weight(answer, run.account) for answer in (run.before, run.after))
            most = max(_for_weight(answer, other) for answer in (run.before, run.after))
            expected = f"{run.job}: {run.account} is not before {other}, where that has used less for its weight"
            observed = f"{least:.6g} h at least, and {most:.6g} h at most"
            yield holds("JOB-012", least <= most * (1 + ROUNDING), expected, observed, run.after)


def _grows(o: AccountRuns, run: AccountRun) -> Iterator[Finding]:
    """While a job runs, what its account is told to have used becomes more."""
    record = o.records[run.job]
    began = min((_seconds(change.get("at")) for change in _changes(record, "starting")), default=0.0)
    lasted = max(_seconds(record.at("ended_at")) - began, 1e-3)
    passed = run.end.started - run.after.started - run.after.seconds
    half_life = _half_life(run.end)
    wanted = LEAST_GROWTH * passed / lasted * _number(record.at("device_hours")) * 2.0 ** (-lasted / half_life)
    before = _used(run.after, run.account) * 2.0 ** (-(passed + run.after.seconds) / half_life)
    used = _used(run.end, run.account)
    expected = (
        f"{run.job}: while it runs, {wanted:.6g} h at least come to the {before:.6g} h that {run.account} has used"
    )
    if passed / lasted > LEAST_SEEN:
        yield holds("JOB-011", used >= before + wanted > 0, expected, f"{used:.6g} h", run.end)


def _half_life(answer: Answer) -> float:
    """Seconds, infinite where none is told that could be."""
    stated = _number(answer.at("half_life"))
    return stated if stated > 0 else float("inf")


def _changes(record: Answer, state: str) -> list[Mapping[str, Any]]:
    return [change for change in record.items("transitions") if change.get("state") == state]


def _halved(record: Answer, member: str, now: float, half_life: float) -> float:
    """What counts now of what a job has held, as if all of that had been at an instant of its record."""
    since = max(now - _seconds(record.at(member)), 0.0)
    return _number(record.at("device_hours")) * exp2(-since / half_life)


def account_in(answer: Answer, name: str) -> Mapping[str, Any]:
    """An account as it is told; one that is not has used nothing."""
    matches = (entry for entry in answer.items("items") if isinstance(entry, dict) and entry.get("id") == name)
    return next(matches, {})


def _used(answer: Answer, account: str) -> float:
    return _number(account_in(answer, account).get("used"))


def _for_weight(answer: Answer, account: str) -> float:
    weight = _number(account_in(answer, account).get("weight", 1.0))
    return _used(answer, account) / weight if weight > 0 else float("inf")


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _seconds(text: object) -> float:
    """Unix seconds of an instant; zero of what is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


CHECK = Check("job_accounts", ("JOB-011", "JOB-012"), observe, judge, recorded_times=True)
"""The check."""
