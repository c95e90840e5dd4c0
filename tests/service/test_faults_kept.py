"""Faults in the database: written once, across the service's end, forgotten when they are over for long."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from service.conftest import StartService
from service.databases import opened
from service.graph_reader import event_id
from service.herd import FaultReader, Herd, actions, answer, faults, log, wait_for_faults
from service.test_postgres import postgres  # noqa: F401 - a fixture
from sqlalchemy import create_engine, func, select, text

from kuayu.resilience.faults import Change, Subject
from kuayu.service import fault_store
from kuayu.service.action_dispatcher import TakeActionResult
from kuayu.service.allocation_rules import Result
from kuayu.service.fault_store import FAULT_RETENTION, FaultChanges, FaultStore, RecordFaults
from kuayu.service.fault_watcher import RECOVERY_SECONDS, STALL_SECONDS, TICK_SECONDS, StarvationProbe
from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.tables import fault, response
from kuayu.service.storage.writer import Command, Transaction
from kuayu_schemas.models import ActionOutcome, ActionPhase

HOUR = 3_600_000
NOW = 1_800_000_000_000
DEAD = Subject("node_dead", "domain", "node")

KEPT = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of the kind that the test is parametrised by."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'kuayu.db'}"
    server: str = request.getfixturevalue("postgres")
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    name = f"faults_{time.monotonic_ns()}"
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    made = engine.url.set(database=name).render_as_string(hide_password=False)
    engine.dispose()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("url", KEPT, indirect=True)
def test_kill_9_loses_no_fault_and_asks_nothing_twice(start_service: StartService, url: str) -> None:
    service = start_service(database=url)
    client = service.client
    for node in ("a", "b", "dead", "failing", "dying", "gone"):
        service.register(node, 4)
    with FaultReader(client) as reader, Herd(service, "a", "b", "dead", "failing", "dying", "gone") as herd:
        herd.wait(8)
        log(client, "failing").raise_for_status()
        herd.silent.update(("dead", "gone"))
        before = wait_for_faults(client, ("dead", "open"), ("failing", "open"), ("gone", "open"))
        told = {fault["node"]: fault for fault in before}
        answer(client, told["dead"]["actions"][0]).raise_for_status()
        assert client.delete("/v1/nodes/gone").status_code == 204
        asked = actions(client)
        first = reader.wait_until(bool)[0]
        service.stop(signal.SIGKILL)

        herd.silent.add("dying")
        time.sleep(1)
        service.start()
        after = wait_for_faults(client, ("dead", "open"), ("failing", "open"), ("dying", "open"), ("gone", "cleared"))
        still_told = {fault["node"]: fault for fault in after}
        assert [still_told[node] for node in ("dead", "failing")] == [told["dead"], told["failing"]]
        assert all(action in actions(client) for action in asked)

        herd.anew("dead")
        herd.anew("failing")
        herd.silent.clear()
        over = wait_for_faults(client, *((node, "cleared") for node in ("dead", "failing", "dying", "gone")))
        kinds = {fault["id"]: [name.rpartition(".")[2] for name in fault["actions"]] for fault in over}
        assert all(kind == ["fence", "release"] for kind in kinds.values())
        still = sorted(action["id"] for action in actions(client))
        assert still == sorted(
            name for fault in over for name in fault["actions"] if name != told["dead"]["actions"][0]
        )
        everything = faults(client)
        last = max(fault["revision"]["number"] for fault in everything)
        with FaultReader(client, event_id(first)) as resumed:
            changes = resumed.wait_until(lambda found: found and found[-1]["revision"]["number"] >= last)
        numbers = [change["revision"]["number"] for change in changes]
        assert numbers == list(range(first["revision"]["number"] + 1, last + 1))
        assert {change["id"]: change for change in [first, *changes]} == {fault["id"]: fault for fault in everything}


@pytest.mark.slow
def test_kill_9_at_any_moment_leaves_one_fence_for_each_fault(start_service: StartService) -> None:
    chance = random.Random(20_261_123)
    service = start_service()
    nodes = [f"n{number}" for number in range(12)]
    for node in nodes:
        service.register(node)
    with Herd(service, *nodes) as herd:
        herd.wait(8)
        for _ in range(4):
            for node in chance.sample(nodes, 3):
                log(service.client, node).raise_for_status()
            acknowledged = {fault["id"] for fault in faults(service.client)}
            herd.silent.add(chance.choice(nodes))
            time.sleep(chance.uniform(0.0, 3.0))
            service.stop(signal.SIGKILL)
            service.start()
            assert acknowledged <= {fault["id"] for fault in faults(service.client)}
            for node in nodes:
                herd.anew(node)
        found = faults(service.client)
        asked = [(action["id"], action["kind"]) for action in actions(service.client)]
    assert len({(fault["node"], fault["kind"]) for fault in found if fault["state"] == "open"}) == len(
        [fault for fault in found if fault["state"] == "open"]
    )
    for each in found:
        wanted = [f"{each['id']}.fence", f"{each['id']}.release"][: 1 + (each["state"] == "cleared")]
        assert each["actions"] == wanted
        assert [name for name, _ in asked if name.startswith(each["id"])] == wanted


def carry_out(database: Database, command: Command[object]) -> None:
    """Carry a command out, and tell who follows."""
    with database.write.begin() as connection:
        transaction = Transaction(connection, 1)
        outcome = command.apply(transaction)
        transaction.finish()
    if outcome.committed is not None:
        outcome.committed()


def tell(database: Database, *changes: Change, now: int = NOW) -> list[FaultChanges]:
    """Write changes; what followers are told."""
    told: list[FaultChanges] = []
    command = RecordFaults("t", database.epoch, changes, now, offset=0, devices=lambda _: 8, follower=told.append)
    carry_out(database, command)
    return told


def opened_fault(since: int = NOW, subject: Subject = DEAD) -> Change:
    return Change(subject, open=True, since=since / 1000, because="silent")


def cleared_fault(since: int = NOW, subject: Subject = DEAD) -> Change:
    return Change(subject, open=False, since=since / 1000, because="heard again")


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """An empty database."""
    with opened(url) as found:
        yield found


@pytest.mark.parametrize("url", KEPT, indirect=True)
def test_a_change_that_was_written_before_changes_nothing(database: Database) -> None:
    [first] = tell(database, opened_fault())
    assert tell(database, opened_fault(NOW + 5)) == []
    assert tell(database, cleared_fault(subject=Subject("node_dead", "domain", "other"))) == []
    [second] = tell(database, cleared_fault(NOW + 10))
    assert tell(database, cleared_fault(NOW + 20)) == []
    assert [record.number for told in (first, second) for record in told.records] == [1, 2]
    [third] = tell(database, opened_fault(NOW + 30))
    assert third.records[0].name != first.records[0].name


@pytest.mark.parametrize("url", KEPT, indirect=True)
def test_a_hung_job_is_stopped_by_each_of_its_domains_and_others_are_only_told(database: Database) -> None:
    job = Subject("job_hung", job="job")
    [told] = tell(
        database,
        Change(job, open=True, since=NOW / 1000, because="no steps", domains=("one", "two")),
        opened_fault(subject=Subject("domain_unreachable", "three")),
        opened_fault(subject=Subject("rank_straggling", "one", "node", "job", 3)),
    )
    assert told.domains == {"one", "two"}
    assert [len(record.body["actions"]) for record in told.records] == [2, 0, 0]
    [over] = tell(database, cleared_fault(subject=job))
    assert over.domains == set()
    assert over.records[0].body["actions"] == told.records[0].body["actions"]
    with database.write.begin() as connection:  # whoever has not stopped it by then does not any more
        asked = [fault_store.find_response(connection, "t", name) for name in over.records[0].body["actions"]]
    assert [each is not None and each.open for each in asked] == [False, False]


@pytest.mark.parametrize("url", KEPT, indirect=True)
def test_what_is_over_for_long_and_answered_is_forgotten_and_nothing_else(database: Database) -> None:
    subjects = {name: Subject("node_dead", "domain", name) for name in ("old", "unanswered", "recent", "lasting")}
    [told] = tell(database, *(opened_fault(subject=subject) for subject in subjects.values()))
    names = dict(zip(subjects, [record.name for record in told.records], strict=True))
    tell(database, *(cleared_fault(subject=subjects[name]) for name in ("old", "unanswered")), now=NOW)
    tell(database, cleared_fault(NOW + HOUR, subjects["recent"]), now=NOW + HOUR)
    for action in (f"{names['old']}.fence", f"{names['old']}.release", f"{names['unanswered']}.fence"):
        result = Result(action, ActionPhase.commit, ActionOutcome.committed)
        carry_out(database, TakeActionResult("t", database.epoch, result, NOW, follower=lambda _: None))
    store = FaultStore(database)

    def held() -> set[str]:
        listing = store.listing("t", revision=None, after="", limit=100, domain=None, state=None)
        assert listing is not None
        return {str(record.body["node"]) for record in listing.records}

    carry_out(database, FAULT_RETENTION.forget(NOW, 100))
    assert held() == subjects.keys()
    carry_out(database, FAULT_RETENTION.forget(NOW + 1, 100))
    assert held() == {"unanswered", "recent", "lasting"}
    with database.read.connect() as connection:
        of_old = select(func.count()).select_from(response).where(response.c.fault == names["old"])
        assert connection.execute(of_old).scalar_one() == 0
    at_first = store.listing("t", revision=Revision(database.epoch, 4), after="", limit=100, domain=None, state="open")
    assert at_first is not None
    assert len(at_first.records) == 4
    carry_out(database, FAULT_RETENTION.forget(NOW + 1, 0))
    assert (
        store.listing("t", revision=Revision(database.epoch, 4), after="", limit=100, domain=None, state=None) is None
    )
    with database.read.connect() as connection:
        assert connection.execute(select(func.count()).select_from(fault)).scalar_one() == 3


def test_silence_tells_nothing_while_the_service_is_behind_and_shortly_after() -> None:
    now, alive = [0.0], [True]
    due: list[tuple[float, Callable[[], None]]] = []
    attention = StarvationProbe(lambda seconds, see: due.append((now[0] + seconds, see)), clock=lambda: now[0])

    def given_for(seconds: float) -> list[bool]:
        """What it says, asked at every sign of life that the event loop may give."""
        found = []
        for _ in range(round(seconds / TICK_SECONDS)):
            now[0] += TICK_SECONDS
            while alive[0] and due and due[0][0] <= now[0] + 1e-9:
                due.pop(0)[1]()
            found.append(attention.given())
        return found

    assert all(given_for(5.0))
    alive[0] = False
    assert all(given_for(STALL_SECONDS))
    assert not any(given_for(3.0))
    alive[0] = True
    recovering = given_for(RECOVERY_SECONDS + STALL_SECONDS)
    assert not any(recovering[: round(RECOVERY_SECONDS / TICK_SECONDS)])
    assert all(recovering[-2:])
    now[0] += STALL_SECONDS * 1.5
    assert not attention.given()


def test_a_watcher_that_is_late_has_missed_nothing_while_the_event_loop_kept_up() -> None:
    """Log lines that take it seconds to read must not keep it from telling that a node of another tenant is dead."""
    now = [0.0]
    due: list[Callable[[], None]] = []
    attention = StarvationProbe(lambda _, see: due.append(see), clock=lambda: now[0])
    for _ in range(5):
        for _ in range(round(3.0 / TICK_SECONDS)):
            now[0] += TICK_SECONDS
            due.pop()()
        assert attention.given()
