"""Jobs as they are judged: what conforms passes, however it does so, and each thing that is wrong is seen."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest
from conformance.job_target import Timed, episode
from minimal_server.core import Answer as Told
from minimal_server.core import Json, Request, Tenant
from minimal_server.jobs import Job
from minimal_server.service import MinimalServer
from mutants import accounts as wrong_accounts
from mutants import elastic as wrong_elastic
from mutants import job_bounds
from mutants import jobs as wrong_jobs
from mutants import serving as wrong_serving
from mutants.declaration import DECLARED, Mutant
from typing_extensions import override

from kuayu_conformance import checks
from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.jobs import order, runs
from kuayu_conformance.checks.jobs.job_domains import Moment
from kuayu_conformance.checks.jobs.runs import STORIES, JobHistory, JobRuns, judge, observe
from kuayu_conformance.episode import FellBehind, NotTestable
from kuayu_conformance.episode import Request as Asked
from kuayu_conformance.folder import verify, write
from kuayu_conformance.run.runner import Options, Progress, Run

CHECKS = [entry.load() for entry in checks.CHECKS if entry.name.startswith("job_")]
WRONG_IN = {each.__name__ for each in (wrong_jobs, job_bounds, wrong_accounts, wrong_elastic, wrong_serving)}
WRONG = [mutant for mutant in DECLARED.values() if mutant.service.__module__ in WRONG_IN]


def unmet(claims: Any) -> set[str]:
    return {claim.requirement for claim in claims if not claim.met}


def found(kind: type[MinimalServer]) -> set[str]:
    """Requirements that a service does not meet, by all checks of jobs."""
    return {name for check in CHECKS for name in unmet(check.judge(check.observe(episode(check.name, kind))))}


@pytest.fixture(scope="module")
def sound() -> JobRuns:
    return observe(episode("job_runs"))


def test_a_sound_service_passes_and_every_story_is_told(sound: JobRuns) -> None:
    assert unmet(judge(sound)) == set()
    assert [story.kind for story in sound.stories] == list(STORIES)
    states = {story.kind: {wanted.state for wanted in story.wanted} for story in sound.stories}
    assert states["silent"] == {"succeeded"}, "the lease of the second server is short enough to be waited for"
    attempts = max(runs.attempt_of(m.body) for story in sound.stories for m in story.moments if m.kind == "start")
    assert attempts == 3
    assert len(sound.pieces) > 2


def test_a_slow_machine_costs_no_lease_or_says_that_it_fell_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases are of three seconds; who asks again in time keeps them, however much else is sent meanwhile."""
    at_once = Timed.exchange

    def delayed(seconds: float) -> Callable[[Timed, Asked], Answer]:
        def exchange(target: Timed, request: Asked) -> Answer:
            target.clock.wait(seconds)
            return at_once(target, request)

        return exchange

    monkeypatch.setattr(Timed, "exchange", delayed(1.0))
    assert unmet(order.judge(order.observe(episode("job_order")))) == set()
    monkeypatch.setattr(Timed, "exchange", delayed(1.6))
    with pytest.raises(FellBehind, match=r"asked for nothing in \d+\.\d s"):
        order.observe(episode("job_order"))


def test_an_episode_is_the_same_when_it_is_told_again(sound: JobRuns) -> None:
    again = observe(episode("job_runs"))
    for one, other in zip(sound.stories, again.stories, strict=True):
        assert [(m.kind, m.domain) for m in one.moments] == [(m.kind, m.domain) for m in other.moments]


@pytest.mark.parametrize("mutant", WRONG, ids=lambda mutant: mutant.name)
def test_what_is_wrong_is_seen_and_nothing_else_is_blamed(mutant: Mutant) -> None:
    """As the kill matrix says, in a process of its own; here time passes at once."""
    assert found(mutant.service) == mutant.breaks


# Services that are no mutants: they show nothing, have nothing to be tested, or count otherwise


class PlacesNothing(MinimalServer):
    """Jobs are taken in, and wait."""

    @override
    def placement_of(self, tenant: Tenant, job: Job) -> Json | None:
        return None


def test_who_starts_nothing_has_shown_nothing() -> None:
    assert {"JOB-004", "JOB-005", "JOB-007", "JOB-009", "JOB-011", "JOB-012", "JOB-013"} <= found(PlacesNothing)


class HasNoQuotas(MinimalServer):
    """No account has a quota."""

    @override
    def shown_account(self, tenant: Tenant, name: str, moment: int) -> Json:
        told = super().shown_account(tenant, name, moment)
        return {member: value for member, value in told.items() if member != "quota"}


def test_where_no_account_has_used_its_quota_that_cannot_be_tested() -> None:
    with pytest.raises(NotTestable, match="none is told that has used its quota"):
        order.observe_quotas(episode("job_quotas", HasNoQuotas))


class CountsHalfAfterTenSeconds(MinimalServer):
    """What was used is soon forgotten."""

    @override
    def get_accounts(self, request: Request) -> Told:
        told = super().get_accounts(request)
        return Told(200, {**told.body, "half_life": 10.0})

    @override
    def counting(self, devices: int, since: int, until: int, moment: int) -> float:
        first, last = (2.0 ** (-(moment - end) / 1000 / 10.0) for end in (since, until))
        return devices * (last - first) * 10.0 / log(2.0) / 3600


def test_any_half_life_will_do() -> None:
    check = order.ACCOUNTS_CHECK
    assert unmet(check.judge(check.observe(episode(check.name, CountsHalfAfterTenSeconds)))) == set()


# What the judge makes of things that no service did


def story(sound: JobRuns, kind: str) -> JobHistory:
    return next(story for story in sound.stories if story.kind == kind)


def with_story(sound: JobRuns, changed: JobHistory) -> JobRuns:
    stories = tuple(changed if story.kind == changed.kind else story for story in sound.stories)
    return replace(sound, stories=stories)


def with_moments(sound: JobRuns, kind: str, change: Callable[[Moment], Moment | None]) -> JobRuns:
    one = story(sound, kind)
    moments = tuple(changed for moment in one.moments if (changed := change(moment)) is not None)
    return with_story(sound, replace(one, moments=moments))


def answering(answer: Answer, **members: Any) -> Answer:
    """An answer with other members; None takes one out."""
    body = {**answer.json, **members}
    kept = {name: value for name, value in body.items() if value is not None}
    return replace(answer, body=json.dumps(kept).encode())


def test_a_stop_that_never_came_is_missed(sound: JobRuns) -> None:
    without = with_moments(sound, "called off", lambda moment: None if moment.kind == "stop" else moment)
    assert unmet(judge(without)) == {"JOB-008"}


def test_cancelled_while_something_is_held_is_seen_in_an_event_as_in_an_answer(sound: JobRuns) -> None:
    def early(moment: Moment) -> Moment:
        if moment.kind == "event" and moment.holdings:
            return replace(moment, body={**moment.body, "state": "cancelled"})
        return moment

    assert unmet(judge(with_moments(sound, "spread", early))) == {"JOB-008"}


def test_a_start_beside_what_an_attempt_before_holds_is_seen(sound: JobRuns) -> None:
    first = next(moment for moment in story(sound, "refused").moments if moment.kind == "start")

    def beside(moment: Moment) -> Moment:
        second = moment.kind == "start" and runs.attempt_of(moment.body) == 2
        return replace(moment, holdings=(*first.holdings, *moment.holdings)) if second else moment

    assert first.holdings
    assert unmet(judge(with_moments(sound, "refused", beside))) == {"JOB-005"}


@pytest.mark.parametrize("member", ["devices", "accelerator", "reservation"])
def test_a_start_that_is_not_on_what_is_held_is_seen(sound: JobRuns, member: str) -> None:
    def changed(moment: Moment) -> Moment:
        other: Mapping[str, Any] = {"devices": 3, "accelerator": "abacus", "reservation": "nobodys"}
        return replace(moment, body={**moment.body, member: other[member]}) if moment.kind == "start" else moment

    assert unmet(judge(with_moments(sound, "succeeds", changed))) == {"JOB-004"}


def test_domains_that_are_told_unlike_things_are_seen(sound: JobRuns) -> None:
    last = [moment for moment in story(sound, "spread").moments if moment.kind == "start"][-1]

    def changed(moment: Moment) -> Moment:
        run = {**moment.body["run"], "split_mode": "pipeline"} if moment is last else None
        return replace(moment, body={**moment.body, "run": run}) if run else moment

    assert unmet(judge(with_moments(sound, "spread", changed))) == {"JOB-004"}


def test_a_late_report_that_is_refused_is_seen(sound: JobRuns) -> None:
    def refused(moment: Moment) -> Moment:
        late = moment.kind == "report" and moment.body.get("step") == 500
        return replace(moment, answer=replace(moment.answer, status=422)) if late else moment

    assert unmet(judge(with_moments(sound, "restarts", refused))) == {"JOB-033"}


def test_a_late_report_that_moves_a_job_on_is_seen(sound: JobRuns) -> None:
    def moved(moment: Moment) -> Moment:
        late = moment.kind == "report" and moment.body.get("step") == 99
        return replace(moment, answer=answering(moment.answer, step=99)) if late else moment

    assert unmet(judge(with_moments(sound, "restarts", moved))) == {"JOB-033"}


def test_a_run_that_is_left_running_when_another_is_lost_is_seen(sound: JobRuns) -> None:
    def unasked(moment: Moment) -> Moment | None:
        return None if moment.kind == "stop" and moment.body.get("attempt") == 1 else moment

    assert unmet(judge(with_moments(sound, "spread", unasked))) == {"JOB-032"}


def test_devices_that_are_given_back_while_another_run_ends_are_seen(sound: JobRuns) -> None:
    last = next(m for m in story(sound, "spread").moments if m.kind == "report" and m.body["state"] == "stopped")

    def halved(moment: Moment) -> Moment:
        return replace(moment, holdings=moment.holdings[:1]) if moment is last else moment

    assert len(last.holdings) == 2
    assert unmet(judge(with_moments(sound, "spread", halved))) == {"JOB-032"}


@pytest.mark.parametrize("count", [1, 3])
def test_failures_are_counted_as_they_were(sound: JobRuns, count: int) -> None:
    one = story(sound, "restarts")
    finals = {job: answering(answer, failures=count) for job, answer in one.finals.items()}
    claims = [claim for claim in judge(with_story(sound, replace(one, finals=finals))) if not claim.met]
    assert "JOB-007" in {claim.requirement for claim in claims}


def test_a_state_that_cannot_follow_is_seen(sound: JobRuns) -> None:
    one = story(sound, "succeeds")
    (job, answer), *_ = one.finals.items()
    changes = answer.json["transitions"]
    swapped = answering(answer, transitions=[changes[0], changes[2], changes[1], *changes[3:]])
    claims = list(judge(with_story(sound, replace(one, finals={job: swapped}))))
    assert any(claim.expected == "succeeds: states follow each other" and not claim.met for claim in claims)


def test_a_line_that_is_missing_from_the_log_is_seen(sound: JobRuns) -> None:
    one = story(sound, "restarts")
    reading = one.readings[-1]
    page = answering(reading.pages[0], items=reading.pages[0].json["items"][:-1])
    readings = (*one.readings[:-1], replace(reading, pages=(page, *reading.pages[1:])))
    assert unmet(judge(with_story(sound, replace(one, readings=readings)))) == {"JOB-006"}


def test_lines_in_another_order_are_seen(sound: JobRuns) -> None:
    one = story(sound, "succeeds")
    reading = max(one.readings, key=lambda reading: len(reading.pages[0].items("items")))
    page = answering(reading.pages[0], items=reading.pages[0].json["items"][::-1])
    readings = tuple(replace(row, pages=(page, *row.pages[1:])) if row is reading else row for row in one.readings)
    assert unmet(judge(with_story(sound, replace(one, readings=readings)))) == {"JOB-006"}


def test_an_event_that_did_not_come_is_missed(sound: JobRuns) -> None:
    event = sound.unbroken.events[1]
    for taken in sound.unbroken.taken:
        if event in taken.events:
            break
    kept = sound.unbroken.taken[:]
    try:
        place = kept.index(taken)
        events = tuple(row for row in taken.events if row is not event)
        sound.unbroken.taken[place] = replace(taken, events=events)
        assert unmet(judge(sound)) == {"JOB-003"}
    finally:
        sound.unbroken.taken[:] = kept


# Nonsense


class Babbler(MinimalServer):
    """What it answers about jobs is of the published form at best by chance."""

    chance = random.Random(0)
    scraps: tuple[Any, ...] = (None, True, 0, -1, "x", [], {}, [[]], {"id": 5}, [{"kind": []}], 10**400, "queued")

    @override
    def carry_out(self, tenant: Tenant, method: str, target: str, headers: Any, body: bytes) -> Told:
        told = super().carry_out(tenant, method, target, headers, body)
        about_jobs = any(part in target for part in ("/jobs", "/run-", "/action"))
        if not about_jobs or not isinstance(told.body, dict) or told.status >= 400 or self.chance.random() < 0.3:
            return told
        return replace(told, body=self.spoilt(told.body))

    def spoilt(self, body: Json) -> Json:
        """A body of which members are something else, or gone, here or further in."""
        found: Json = {}
        for member, value in body.items():
            if self.chance.random() < 0.1:
                found[member] = self.chance.choice(self.scraps)
            elif isinstance(value, dict):
                found[member] = self.spoilt(value)
            elif isinstance(value, list):
                rows = [self.spoilt(row) if isinstance(row, dict) else row for row in value]
                found[member] = [*rows, self.chance.choice(self.scraps)] if self.chance.random() < 0.1 else rows
            elif self.chance.random() < 0.95:
                found[member] = value
        return found

    @override
    def job_event(self, record: Json) -> bytes:
        return super().job_event({**self.spoilt(record), "revision": record["revision"]})


@pytest.mark.parametrize("seed", range(6))
def test_nonsense_is_found_and_nothing_stumbles(seed: int) -> None:
    kind = type("Seeded", (Babbler,), {"chance": random.Random(seed)})
    assert {"JOB-001", "JOB-003", "JOB-010"} <= found(kind)


class TellsNoActions(MinimalServer):
    """Domains are answered with an object without members."""

    @override
    def get_actions(self, request: Request) -> Told:
        return Told(200, {})


def test_whoever_gives_no_actions_out_is_not_waited_for() -> None:
    played = episode("job_runs", TellsNoActions)
    begun = played.now()
    assert {"JOB-004", "JOB-005", "JOB-007"} <= unmet(judge(observe(played)))
    assert played.now() - begun < 5


# A run over HTTP


@pytest.mark.slow
def test_a_run_passes_and_can_be_judged_again(options: Options, tmp_path: Path) -> None:
    asked = replace(options, selection=("JOB-003", "JOB-004", "JOB-009", "JOB-010"))
    report = Run(asked, tmp_path, Progress()).execute()
    write(tmp_path, report)
    said = {result.requirement: result.verdict.value for result in report.results}
    assert {name: said[name] for name in asked.selection} == dict.fromkeys(asked.selection, "pass")
    assert all(verdict.agrees for verdict in verify(tmp_path))
