"""Whose job goes first: order of what waits, usage of accounts, and quotas (JOB-009 to JOB-013).

1. Jobs that wait for the same devices are started in order, and it is said why they wait (JOB-009, JOB-010).
2. Accounts are told what they have used, and whose job goes first by it (JOB-011, JOB-012).
3. Jobs of an account that has used its quota are held, and it is said why (JOB-013).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import exp2
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.jobs.job_domains import DEVICES, Stage
from kuayu_conformance.episode import Episode, NotTestable
from kuayu_conformance.findings import Finding, answered, holds

PRIORITIES = {False: (0, 5, -3, 5, 0), True: (0, 5, -3, 5, 0, 999, 5, -999, 0, -3, 6, -3)}
"""Priorities of jobs in the order in which they are submitted, in a quick and in a full run."""

FIRST, LAST = 1000, -1000
"""Priority of the job that holds the devices meanwhile, and of the one that no domain has room for."""

UNPLACEABLE = 50 * DEVICES
"""Devices that no domain has."""


@dataclass(frozen=True)
class DecisionSet:
    """What is told of why jobs wait, at one time.

    Attributes:
        when: In words.
        decisions: Decisions on jobs that wait, by name.
    """

    when: str
    decisions: dict[str, Answer]


@dataclass(frozen=True)
class StartOrder:
    """Jobs, the order in which they were started, and what was told of those that waited.

    Attributes:
        wanted: Names in the order in which they are to be started.
        started: Names in the order in which they were.
        records: Jobs in the end, by name.
        waiting: What was told of those that waited, before the first of them was started and after.
    """

    wanted: tuple[str, ...]
    started: tuple[str, ...]
    records: dict[str, Answer]
    waiting: tuple[DecisionSet, ...]


def observe(episode: Episode) -> StartOrder:
    """One job holds the only devices while others are submitted; then each ends when it has been started."""
    stage = Stage(episode, "order")
    stage.open("a")
    holder = stage.submit("holder", priority=FIRST)
    stage.started(holder, 1)
    stage.report("a", holder, 1, "running")
    stage.reach(holder, "running")
    unplaceable = stage.submit("unplaceable", devices=UNPLACEABLE, priority=LAST)
    priorities = PRIORITIES[episode.settings.full]
    names = [stage.submit(f"job-{index:02d}", priority=priority) for index, priority in enumerate(priorities)]
    wanted = [names[index] for index in sorted(range(len(names)), key=lambda index: (-priorities[index], index))]
    waiting = [DecisionSet("while the devices are held by another", _decisions(stage, [unplaceable, *names]))]
    running, started = holder, list[str]()
    while len(started) < len(names):
        stage.report("a", running, 1, "succeeded", exit_code=0)
        if not stage.play(lambda: len(_started(stage, names)) > len(started), wanted[len(started)]):
            break
        running = _started(stage, names)[-1]
        started.append(running)
        stage.report("a", running, 1, "running")
        if len(started) == 1:
            left = [unplaceable, *(name for name in names if name != running)]
            when = "when one of them has come to hold the devices"
            waiting.append(DecisionSet(when, _decisions(stage, left, behind=waiting[0])))
    records = {name: stage.look(name) for name in (holder, unplaceable, *names)}
    stage.close()
    return StartOrder(tuple(wanted), tuple(started), records, tuple(waiting))


def _started(stage: Stage, names: Sequence[str]) -> list[str]:
    """Jobs that the domain was asked to start, in that order."""
    return [moment.job for moment in stage.moments if moment.kind == "start" and moment.job in names]


def _decisions(stage: Stage, jobs: Sequence[str], behind: DecisionSet | None = None) -> dict[str, Answer]:
    """Decisions on jobs as soon as there is one for each, made on another state than those before."""
    decisions: dict[str, Answer] = {}

    def all_there() -> bool:
        for job in jobs:
            before = behind.decisions[job].at("digest") if behind else None
            if job not in decisions or not _is_made(decisions[job], before):
                decisions[job] = stage.decision(job)
        return all(_is_made(decisions[job], behind.decisions[job].at("digest") if behind else None) for job in jobs)

    stage.play(all_there)
    return decisions


def _is_made(answer: Answer, before: object) -> bool:
    return answer.status == 200 and answer.at("decision", "verb") == "wait" and answer.at("digest") != before


def judge(o: StartOrder) -> Iterator[Finding]:
    """Who waits is started in order, and it is told why he waits."""
    last = o.records[o.wanted[-1]]
    places = [o.wanted.index(name) + 1 for name in o.started]
    expected = "jobs are started by their priority, and of the same priority as they were submitted"
    yield holds("JOB-009", places == list(range(1, len(o.wanted) + 1)), expected, f"places {places}", last)
    for waiting in o.waiting:
        for job, answer in waiting.decisions.items():
            yield from _is_told(waiting, job, answer)
        by_state: dict[str, set[str]] = {}
        for answer in waiting.decisions.values():
            state = f"{answer.at('revision')} at {answer.at('at')}"
            by_state.setdefault(state, set()).add(str(answer.at("digest")))
        several = [digests for digests in by_state.values() if len(digests) > 1]
        expected = f"{waiting.when}: decisions on one state have one digest"
        yield holds("JOB-010", not several, expected, several[:1] or "so", next(iter(waiting.decisions.values()), last))
    for before, after in zip(o.waiting, o.waiting[1:], strict=False):
        for job, answer in after.decisions.items():
            digests = before.decisions[job].at("digest"), answer.at("digest")
            expected = f"{after.when}: the decision on a job that goes on waiting rests on another state"
            yield holds("JOB-010", digests[0] != digests[1], expected, digests[1], answer)
    yield holds(
        "JOB-010", len(o.waiting) > 1, "jobs wait before and after one of them is started", len(o.waiting), last
    )


def _is_told(waiting: DecisionSet, job: str, answer: Answer) -> Iterator[Finding]:
    yield answered("JOB-010", answer, 200, f"{waiting.when}: the decision on a job that waits is told")
    about = {str(answer.at("job")), str(answer.at("decision", "job"))}
    yield holds("JOB-010", about == {job}, f"{waiting.when}: it is about this job", about, answer)
    verb = answer.at("decision", "verb")
    yield holds("JOB-010", verb == "wait", f"{waiting.when}: it is to wait", verb, answer)
    reason = str(answer.at("decision", "explanation", "reason") or "").strip()
    yield holds("JOB-010", bool(reason), f"{waiting.when}: it has a reason", reason or "none", answer)


CHECK = Check(
    "job_order",
    ("JOB-009", "JOB-010"),
    observe,
    judge,
    recorded_times=True,
    summary="In which order jobs are started that wait for the same devices, and why they wait (JOB-009, JOB-010).",
)
"""The check."""


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


def observe_accounts(episode: Episode) -> AccountRuns:
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


def judge_accounts(o: AccountRuns) -> Iterator[Finding]:
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


ACCOUNTS_CHECK = Check(
    "job_accounts",
    ("JOB-011", "JOB-012"),
    observe_accounts,
    judge_accounts,
    recorded_times=True,
    summary="What accounts are told to have used, and whose job goes first by it (JOB-011, JOB-012).",
)
"""The check."""


@dataclass(frozen=True)
class HeldJob:
    """A job of an account that has used its quota, beside one of another account.

    Attributes:
        account: The account that has.
        listing: Accounts as they were told before.
        beyond: Its job, when it had time to be held.
        within: The other job then.
        started: Names of jobs that the domain was asked to start.
        last: Its job in the end.
    """

    account: str
    listing: Answer
    beyond: Answer
    within: Answer
    started: frozenset[str]
    last: Answer


def observe_quotas(episode: Episode) -> HeldJob:
    """Devices are free for both jobs.

    Raises:
        NotTestable: No account has used its quota.
    """
    listing = episode.ask("GET", "/v1/accounts")
    spent = [row for row in listing.items("items") if isinstance(row, dict) and _has_used_quota(row)]
    if not spent:
        raise NotTestable(
            "the target declares accounts, but none is told that has used its quota",
            "have the target know an account with a quota of zero",
        )
    account = str(spent[0]["id"])
    stage = Stage(episode, "quotas")
    stage.open("a", devices=2 * DEVICES)
    beyond = stage.submit("beyond", account=account)
    within = stage.submit("within", account=episode.name_of("other"))
    stage.reach(beyond, "held")
    stage.started(within, 1)
    stage.pause(beyond)
    looks = stage.look(beyond), stage.look(within)
    started = frozenset(moment.job for moment in stage.moments if moment.kind == "start")
    stage.close()
    return HeldJob(account, listing, *looks, started, stage.look(beyond))


def _has_used_quota(row: dict[str, object]) -> bool:
    used, quota = row.get("used"), row.get("quota")
    return isinstance(used, int | float) and isinstance(quota, int | float) and used >= quota


def judge_quotas(o: HeldJob) -> Iterator[Finding]:
    """The one is held with a reason, the other one is started."""
    yield answered("JOB-013", o.listing, 200, "what accounts have used is told")
    state, reason = o.beyond.at("state"), str(o.beyond.at("reason") or "")
    yield holds("JOB-013", state == "held", f"a job of {o.account}, which has used its quota, is held", state, o.beyond)
    yield holds("JOB-013", o.account in reason, "its reason names the account", reason or "none", o.beyond)
    started = str(o.beyond.at("id")) in o.started
    yield holds("JOB-013", not started, "no domain is asked to start it", sorted(o.started), o.beyond)
    other = str(o.within.at("id")) in o.started
    yield holds("JOB-013", other, "a job of another account is started", sorted(o.started), o.within)


QUOTAS_CHECK = Check(
    "job_quotas",
    ("JOB-013",),
    observe_quotas,
    judge_quotas,
    recorded_times=True,
    summary="Jobs of an account that has used its quota are held, and it is said why (JOB-013).",
)
"""The check."""
