"""Jobs in memory, the domains that are there, and a control loop that goes on whatever fails."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service.conftest import PATIENCE
from service.databases import opened
from sqlalchemy.exc import OperationalError

from kuayu.jobs.decisions import JobVerb, PassResult
from kuayu.service import job_rules
from kuayu.service.action_dispatcher import REACHABLE_SECONDS, DomainReachability
from kuayu.service.allocation_commands import AllocationCoordinator
from kuayu.service.concurrency import Notifier, Threads
from kuayu.service.job_loop import JobCoordinator, JobLoop
from kuayu.service.job_rules import JobStanding
from kuayu.service.job_snapshot import MAX_ALIKE_JOBS, MAX_FRONT_JOBS, ActiveJobs, SnapshotReader
from kuayu.service.job_store import JobRecord
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu.service.storage.queries import Store
from kuayu.service.storage.resources import DOMAIN, NODE, Catalogue, PutResource, Revision, Scope
from kuayu.service.storage.writer import Writer
from kuayu.service.tenant_graphs import Graphs
from kuayu_schemas.models import JobState

SHAPE = "as it is"


def request(name: str, devices: int = 8, **members: Any) -> dict[str, Any]:
    return {
        "id": name,
        "workload": {"command": ["train"]},
        "devices": {"minimum": devices, "maximum": devices},
        **members,
    }


def queued(name: str, devices: int = 8, submitted: int = 1_000, **members: Any) -> JobRecord:
    return JobRecord(job_rules.submit(request(name, devices, **members), submitted), Revision("e", 1), submitted)


def into(record: JobRecord, state: JobState, **changes: Any) -> JobRecord:
    standing: JobStanding = replace(record.standing, state=state, **changes)
    return replace(record, standing=standing)


def names(records: list[JobRecord]) -> list[str]:
    return [record.name for record in records]


def test_the_queue_is_in_order_of_priority_and_then_of_submission() -> None:
    book = ActiveJobs()
    for record in (queued("c", submitted=3), queued("b", submitted=2), queued("a", submitted=9, priority=1)):
        book.put(record)
    assert names(book.front(SHAPE)) == ["a", "b", "c"]
    assert [book.place(name) for name in ("a", "b", "c")] == [0, 1, 2]
    book.put(into(queued("b", submitted=2), JobState.starting))
    assert names(book.front(SHAPE)) == ["a", "c"]
    assert names(book.active()) == ["b"]
    book.put(into(queued("b", submitted=2), JobState.held))
    assert (names(book.held_jobs()), book.active()) == (["b"], [])
    book.put(into(queued("b", submitted=2), JobState.cancelled))
    assert (len(book), book.waiting) == (2, 2)


def test_many_jobs_alike_do_not_hide_others_behind_them() -> None:
    book = ActiveJobs()
    for number in range(2 * MAX_FRONT_JOBS):
        book.put(queued(f"large-{number:04d}", 64, submitted=number))
    assert len(book.front(SHAPE)) == MAX_FRONT_JOBS
    book.put(queued("small", 1, submitted=10_000))
    front = book.front(SHAPE)
    assert len(front) == MAX_FRONT_JOBS
    assert front[-1].name == "small"
    assert names(front[:MAX_ALIKE_JOBS]) == [f"large-{number:04d}" for number in range(MAX_ALIKE_JOBS)]


def test_of_a_job_in_the_queue_a_decision_is_kept_once_until_it_comes_into_the_queue_again() -> None:
    book = ActiveJobs()
    book.put(queued("a"))
    book.put(queued("b"))
    book.note_decided("a")
    book.put(queued("a"))  # something else has changed
    assert book.undecided(10) == ["b"]
    book.put(into(queued("a"), JobState.starting))
    book.put(queued("a"))
    assert book.undecided(10) == ["b", "a"]
    assert book.undecided(1) == ["b"]


def test_who_had_no_way_is_left_out_until_something_has_changed() -> None:
    book = ActiveJobs()
    book.put(queued("a"))
    book.put(queued("b", submitted=2_000))
    book.note_ways(SHAPE, {"a": False, "b": True})
    assert names(book.front(SHAPE)) == ["b"]
    assert names(book.front("another")) == ["a", "b"]
    book.note_ways("another", {"a": True})
    assert names(book.front(SHAPE)) == ["a", "b"]


def test_how_fast_a_job_is_follows_from_its_reports_and_begins_anew_when_it_does() -> None:
    book = ActiveJobs()

    def step(number: int, at: int, state: JobState = JobState.running) -> None:
        book.put(replace(into(queued("a"), state, step=number), updated=at))

    step(10, 0)
    assert book.steps_per_second() == {}
    step(30, 10_000)
    assert book.steps_per_second() == {"a": 2.0}
    step(30, 20_000)  # something else has changed
    assert book.steps_per_second() == {"a": 2.0}
    step(430, 210_000)  # what was long ago counts no more
    assert book.steps_per_second() == {"a": 2.0}
    step(430, 220_000, JobState.restarting)
    step(20, 230_000)
    assert book.steps_per_second() == {}


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(-2, 2), st.sampled_from(list(JobState)), st.integers(1, 3)),
        max_size=40,
    )
)
def test_however_jobs_change_the_book_holds_what_has_not_ended_in_the_right_order(
    changes: list[tuple[int, int, JobState, int]],
) -> None:
    """A job keeps what it was submitted with: the first that is told of it."""
    book, truth = ActiveJobs(), dict[str, JobRecord]()
    first: dict[str, JobRecord] = {}
    for number, priority, state, devices in changes:
        name = f"job-{number}"
        born = first.setdefault(name, queued(name, devices, submitted=number % 4, priority=priority))
        record = into(born, state)
        book.put(record)
        if state in {JobState.succeeded, JobState.failed, JobState.cancelled}:
            truth.pop(name, None)
        else:
            truth[name] = record
    waits = [record for record in truth.values() if record.standing.state is JobState.queued]
    waits.sort(key=lambda each: (-each.standing.spec["priority"], each.standing.submitted, each.name))
    assert names(book.front(SHAPE)) == names(waits)
    assert [book.place(name) for name in names(waits)] == list(range(len(waits)))
    assert sorted(book.undecided(100)) == sorted(names(waits))
    assert {each.name for each in (*book.active(), *book.held_jobs(), *waits)} == truth.keys()
    assert (len(book), book.waiting) == (len(truth), len(waits))


def test_a_domain_is_there_while_it_waits_for_actions_and_for_a_while_after() -> None:
    now, came = [0.0], list[str]()
    reach = DomainReachability(lambda: now[0])
    reach.came = came.append
    with reach.asking("t", "east"):
        now[0] = 1000.0
        assert reach.of("t") == {"east"}
    assert came == ["t"]
    now[0] += REACHABLE_SECONDS
    assert reach.of("t") == {"east"}
    with reach.asking("t", "east"):
        pass
    assert came == ["t"]
    now[0] += REACHABLE_SECONDS + 1
    assert reach.of("t") == frozenset()
    assert reach.of("other") == frozenset()
    with reach.asking("t", "east"), reach.asking("t", "west"):
        assert reach.of("t") == {"east", "west"}
    assert came == ["t", "t", "t"]


class Failing:
    """Decides passes in the event loop, after so many have failed."""

    def __init__(self, failures: list[Exception]) -> None:
        self.failures = failures
        self.passes: list[PassResult] = []

    async def compute(
        self, _: str, decide: Callable[[bytes, bytes], PassResult], registry: bytes, others: bytes, *, tenant: str
    ) -> PassResult:
        """What the function gives, in the event loop."""
        assert tenant == "t"
        if self.failures:
            raise self.failures.pop()
        result = decide(registry, others)
        self.passes.append(result)
        return result


class Away(Failing):
    """The same, where passes fail because the database is away for a moment, as whoever reads from it says."""

    def __init__(self, failures: list[Exception], database: Database) -> None:
        super().__init__(failures)
        self._presence = database.presence

    async def compute(self, *arguments: Any, tenant: str) -> PassResult:
        """What the function gives, in the event loop."""
        if not self.failures:
            return await super().compute(*arguments, tenant=tenant)
        problem = self._presence.failed(self.failures.pop())
        asyncio.get_running_loop().call_later(0.02, self._presence.present)
        raise problem


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with opened(f"sqlite:///{tmp_path / 'jobs.db'}") as database:
        yield database


@dataclass(frozen=True, slots=True)
class Played:
    """A control loop for the tenant ``t`` with all that it needs but a service around it.

    Attributes:
        metrics: Are told of its passes.
        jobs: The jobs.
        coordinator: Of their allocations.
        reach: Domains that are there.
    """

    metrics: Metrics
    jobs: JobCoordinator
    coordinator: AllocationCoordinator
    reach: DomainReachability

    def state(self, name: str) -> JobState:
        """State of a job."""
        record = self.jobs.store.record("t", name)
        assert record is not None
        return record.standing.state

    def reason(self, name: str) -> str | None:
        """What was decided last about a job, in words; None where nothing was."""
        told = self.jobs.store.decision("t", name)
        return None if told is None else json.loads(told)["decision"]["explanation"]["reason"]

    async def until(self, wanted: Callable[[], bool]) -> None:
        """Wait until something holds; it is looked at whenever a job has changed, and every so often."""
        async with asyncio.timeout(PATIENCE):
            while not wanted():
                self.jobs.changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.jobs.changed.wait(), 0.05)

    def passes(self, outcome: str) -> float:
        """How many passes had an outcome."""
        samples = (sample for metric in self.metrics.job_passes.collect() for sample in metric.samples)
        return sum(each.value for each in samples if each.labels == {"outcome": outcome} and "total" in each.name)


@contextlib.asynccontextmanager
async def playing(database: Database, decisions: Failing) -> AsyncIterator[Played]:
    """The loop goes on meanwhile, over one domain with one device."""
    metrics, store, catalogue, reach = Metrics(), Store(database), Catalogue(), DomainReachability()
    writer, threads = Writer(database.write, 1_000, metrics), Threads("work", 2, 2)
    coordinator = AllocationCoordinator(Settings(), metrics, database, writer, Notifier())
    jobs = JobCoordinator(Settings(), metrics, database, writer, coordinator, threads)
    graphs = Graphs(Settings(), metrics, database, store, catalogue)
    gatherer = SnapshotReader(database, store, catalogue, graphs)
    loop = JobLoop(metrics, gatherer, decisions, jobs, threads, reach)  # type: ignore[arg-type]
    coordinator.listen(loop.heed)
    scope = Scope("t", database.epoch, catalogue, (graphs, loop))
    device = {"id": "0", "kind": "gpu", "vendor": "Example", "model": "Example"}
    node = {"id": "n", "domain": "east", "devices": [device]}
    writer.start()
    try:
        await writer.write(PutResource(scope, DOMAIN, "east", {"id": "east"}, None))
        await writer.write(PutResource(scope, NODE, "n", node, None))
        loop.start()
        yield Played(metrics, jobs, coordinator, reach)
    finally:
        await loop.close()
        writer.close()
        threads.close()


def test_passes_that_fail_are_made_again_and_no_job_is_lost_by_that(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first pass fails because too much waits, the second by a mistake; the third places the job."""
    monkeypatch.setattr("kuayu.service.job_loop.FIRST_PAUSE_SECONDS", 0.01)
    decisions = Failing([RuntimeError("a mistake"), ProblemException("overloaded", "too much waits")])

    async def story() -> None:
        async with playing(database, decisions) as played:
            await played.jobs.submit("t", request("job", 1))
            with played.reach.asking("t", "east"):
                await played.until(lambda: played.state("job") is JobState.starting)
            record = played.jobs.store.record("t", "job")
            assert record is not None
            assert played.coordinator.store.record("t", str(record.standing.allocation)) is not None
            assert played.passes("failed") == 2

    asyncio.run(story())
    assert decisions.failures == []
    assert Counter(step.verb for result in decisions.passes for step in result.steps)[JobVerb.PLACE] == 1


def test_that_the_database_was_away_puts_off_nothing_unless_it_goes_on(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What fails six times in a row for an absence may be its cause: from the fifth on it waits longer and longer."""
    monkeypatch.setattr("kuayu.service.job_loop.FIRST_PAUSE_SECONDS", 0.01)
    caplog.set_level("DEBUG", "kuayu.service.job_loop")
    decisions = Away([OperationalError("SELECT 1", None, Exception("terminated")) for _ in range(6)], database)

    async def story() -> None:
        async with playing(database, decisions) as played:
            await played.jobs.submit("t", request("job", 1))
            with played.reach.asking("t", "east"):
                await played.until(lambda: played.passes("failed") == 6 and database.presence.absence is None)
                await played.until(lambda: played.state("job") is JobState.starting)

    asyncio.run(story())
    pauses = [record.args[1] for record in caplog.records if "a pass over the jobs" in record.msg and record.args]
    assert pauses == [0.01, 0.01, 0.01, 0.01, 0.02, 0.04]


def test_while_the_database_is_away_no_pass_is_begun(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kuayu.service.job_loop.FIRST_PAUSE_SECONDS", 0.01)

    async def story() -> None:
        async with playing(database, Failing([])) as played:
            await played.jobs.submit("t", request("job", 1))
            await played.until(lambda: played.passes("made") > 0)
            database.presence.failed(OperationalError("SELECT 1", None, Exception("terminated")))
            before = played.passes("made")
            with played.reach.asking("t", "east"):
                await asyncio.sleep(0.3)
                assert played.passes("made") <= before + 1, "at most the one that was under way"
                assert played.passes("failed") == 0
                database.presence.present()
                await played.until(lambda: played.state("job") is JobState.starting)

    asyncio.run(story())


def test_who_stands_behind_the_front_of_the_queue_is_told_so_and_decided_on_when_its_turn_comes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kuayu.service.job_snapshot.MAX_FRONT_JOBS", 2)

    async def story() -> None:
        async with playing(database, Failing([])) as played:
            for number in range(5):
                await played.jobs.submit("t", request(f"job-{number}", 1))
            await played.until(lambda: played.reason("job-4") is not None)
            assert (played.reason("job-0") or "").startswith("No pool that can be reached")
            assert (played.reason("job-4") or "").startswith("4 jobs stand before it")
            with played.reach.asking("t", "east"):
                await played.until(lambda: played.state("job-0") is JobState.starting)
                await played.until(lambda: (played.reason("job-2") or "").startswith("It w"))
            assert [played.state(f"job-{number}") for number in range(1, 5)] == [JobState.queued] * 4

    asyncio.run(story())


def test_a_tenant_without_jobs_costs_nothing(database: Database) -> None:
    """Neither registrations nor domains that ask have anything decided, nor does a job that has ended."""
    decisions = Failing([])

    async def story() -> None:
        async with playing(database, decisions) as played:
            with played.reach.asking("t", "east"):
                await asyncio.sleep(0)
            assert played.passes("made") == 0
            await played.jobs.submit("t", request("job", 1))
            await played.until(lambda: bool(decisions.passes))
            await played.jobs.cancel("t", "job")
            await played.until(lambda: played.passes("made") >= 2)
            made = len(decisions.passes)
            with played.reach.asking("t", "east"):
                await asyncio.sleep(0.2)
            assert len(decisions.passes) == made

    asyncio.run(story())
