"""Allocations of one job wait for each other, so that no job runs in two places (RES-011)."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from service import postgres_server
from service.conftest import JsonObject, Service, StartService
from service.test_allocation_rules import GRANTED, allocation
from service.test_allocations import actions, answer, put, standing, wanted
from sqlalchemy import Connection

from kuayu.service import allocation_store
from kuayu.service.allocation_commands import (
    LapseLeases,
    PutAllocation,
    TakeResult,
    WithdrawAllocation,
    expire_allocations,
)
from kuayu.service.allocation_rules import FINISHED, AllocationStanding, Result, Step
from kuayu.service.allocation_store import AllocationLease
from kuayu.service.storage.database import Database, open_database
from kuayu.service.storage.writer import Command, Transaction
from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, AllocationPhase, Durability


def hold(service: Service, name: str, *domains: str) -> None:
    """Every domain does what it is asked twice: it promises and takes."""
    for _ in range(2):
        for domain in domains:
            answer(service, domain)
    assert standing(service, name)["phase"] == "committed"


def of_one_job(name: str, *domains: str, **members: Any) -> JsonObject:
    return wanted(name, *domains, **{"job": f"job-of-{domains[0][:2]}", **members})


def test_one_that_moves_is_promised_at_once_and_taken_when_the_other_is_given_back(shared: Service) -> None:
    put(shared, of_one_job("mv-old", "mv-x", "mv-y"))
    hold(shared, "mv-old", "mv-x", "mv-y")
    put(shared, of_one_job("mv-new", "mv-z", patience=60))
    assert answer(shared, "mv-z")["phase"] == "preparing"
    assert actions(shared, "mv-z") == []
    shared.client.delete("/v1/allocations/mv-old").raise_for_status()
    assert answer(shared, "mv-x")["phase"] == "releasing"
    assert actions(shared, "mv-z") == []  # the job still runs in part
    assert answer(shared, "mv-y")["phase"] == "released"
    assert [each["phase"] for each in actions(shared, "mv-z", wait=10)] == ["commit"]
    assert answer(shared, "mv-z")["phase"] == "committed"


def test_who_waits_too_long_lets_go_and_says_why(shared: Service) -> None:
    put(shared, of_one_job("wt-old", "wt-x"))
    hold(shared, "wt-old", "wt-x")
    put(shared, of_one_job("wt-new", "wt-z", patience=0.3))
    answer(shared, "wt-z")
    assert [each["phase"] for each in actions(shared, "wt-z", wait=10)] == ["abort"]
    assert answer(shared, "wt-z")["phase"] == "refused"
    assert standing(shared, "wt-new")["reason"] == "devices of the same job were not let go of within 0.3 s"
    assert standing(shared, "wt-old")["phase"] == "committed"


def test_the_oldest_of_those_that_wait_goes_first_and_the_others_wait_for_it(shared: Service) -> None:
    for name, domain in (("fi-1", "fi-x"), ("fi-2", "fi-y"), ("fi-3", "fi-z")):
        put(shared, of_one_job(name, domain, job="job-of-fi", patience=60))
        answer(shared, domain)
    answer(shared, "fi-x")
    assert actions(shared, "fi-y") + actions(shared, "fi-z") == []
    shared.client.delete("/v1/allocations/fi-1").raise_for_status()
    answer(shared, "fi-x")
    assert (len(actions(shared, "fi-y")), actions(shared, "fi-z")) == (1, [])
    assert answer(shared, "fi-y", "expired")["phase"] == "aborting"
    assert actions(shared, "fi-z") == []  # it may have been carried out in part
    answer(shared, "fi-y")
    assert answer(shared, "fi-z")["phase"] == "committed"


def through_a_kill(service: Service) -> None:
    """A new process knows who is waited for."""
    put(service, of_one_job("ki-old", "ki-x"))
    hold(service, "ki-old", "ki-x")
    put(service, of_one_job("ki-new", "ki-z", patience=60))
    answer(service, "ki-z")
    service.stop(signal.SIGKILL)
    service.start()
    assert actions(service, "ki-z") == []
    service.client.delete("/v1/allocations/ki-old").raise_for_status()
    service.stop(signal.SIGKILL)
    service.start()
    assert answer(service, "ki-x")["phase"] == "released"
    assert answer(service, "ki-z")["phase"] == "committed"


@pytest.mark.slow
def test_kill_9_while_one_waits_for_the_other(start_service: StartService) -> None:
    through_a_kill(start_service())


@pytest.mark.slow
@pytest.mark.postgres
def test_kill_9_while_one_waits_for_the_other_on_postgresql(start_service: StartService) -> None:
    with postgres_server.running() as server:
        service = start_service(database=server.url)
        through_a_kill(service)
        service.stop()


class Truth:
    """What domains really do, whoever hears of it: each runs a job from its commit until it lets go."""

    def __init__(self) -> None:
        self.runs: set[tuple[str, int, str]] = set()  # allocation, attempt, domain
        self.let_go: set[str] = set()  # actions

    def carry_out(self, name: str, step: Step, *, well: bool) -> ActionOutcome:
        """Do a step; how it ends."""
        place = (name, step.attempt, step.domain)
        if step.phase.value == "abort" or step.kind is ActionKind.release:
            self.runs.discard(place)
            self.let_go.add(step.action)
        elif step.phase.value == "commit":
            if not well or step.action in self.let_go:
                return ActionOutcome.expired
            assert {each[:2] for each in self.runs} <= {place[:2]}, f"{place} is begun while {self.runs} run"
            self.runs.add(place)
        elif not well:
            return ActionOutcome.refused
        return GRANTED[step.phase]

    def let_go_of(self, name: str, step: Step) -> None:
        """A domain lets go of something by itself."""
        self.runs.discard((name, step.attempt, step.domain))
        self.let_go.add(step.action)


MOVES = st.one_of(
    st.tuples(st.just("answer"), st.integers(0, 9)),
    st.tuples(st.just("answer"), st.integers(0, 9)),
    st.tuples(st.just("fail"), st.integers(0, 9)),
    st.tuples(st.just("lose"), st.integers(0, 9)),
    st.tuples(st.just("deliver"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.integers(0, 25_000)),
    st.tuples(st.just("withdraw"), st.integers(0, 2)),
    st.tuples(st.just("lapse"), st.integers(0, 9)),
    st.tuples(st.just("say"), st.integers(0, 9)),
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("turns")
    database = open_database(f"sqlite:///{folder / 'turns.sqlite'}", Durability.process)
    yield database
    database.close()


class Play:
    """Three allocations of a job, and domains that answer or do not."""

    NAMES = ("one", "two", "three")

    def __init__(self, connection: Connection) -> None:
        self.truth = Truth()
        self.now = 0
        self._transaction = Transaction(connection, 0)
        self._said: list[Result] = []
        for name, domains in zip(self.NAMES, [("x", "y"), ("y",), ("z", "x")], strict=True):
            self._apply(PutAllocation("", {**allocation(domains, ("w",)), "id": name}, self.now, follow))

    def move(self, kind: str, number: int) -> None:
        """Something happens."""
        if kind == "wait":
            self.wait(number)
        elif kind == "withdraw":
            self._apply(WithdrawAllocation("", self.NAMES[number], self.now, follow))
        elif kind == "deliver":
            for result in self._said[number : number + 1]:
                self._apply(TakeResult("", result, self.now, follow))
        elif kind in {"lapse", "say"}:
            self.lapse(number, told=kind == "say")
        elif asked := self.asked():
            self.carry_out(*asked[number % len(asked)], well=kind != "fail", heard=kind != "lose")

    def wait(self, milliseconds: int) -> None:
        """Time passes."""
        self.now += milliseconds
        self._apply(expire_allocations(self.now, follow))

    def asked(self) -> list[tuple[str, Step]]:
        """What domains can fetch."""
        return [(name, step) for name, each in self.stand().items() for step in each.steps if step.open]

    def carry_out(self, name: str, step: Step, *, well: bool = True, heard: bool = True) -> None:
        """A domain does what it is asked, and perhaps the service hears of it."""
        outcome = self.truth.carry_out(name, step, well=well)
        self._said.append(Result(step.action, step.phase, outcome))
        if heard:
            self._apply(TakeResult("", self._said[-1], self.now, follow))

    def lapse(self, number: int, *, told: bool) -> None:
        """A domain lets go by itself, and says so, or its lease is over."""
        held = [(name, step) for name, each in self.stand().items() for step in each.maybe_held()]
        for name, step in held[number : number + 1]:
            if told:
                self.truth.let_go_of(name, step)
                said = Result(step.action, ActionPhase.commit, ActionOutcome.expired)
                self._apply(TakeResult("", said, self.now, follow))
                continue
            for other, each in held:
                if (other, each.domain) == (name, step.domain):
                    self.truth.let_go_of(other, each)
            self._apply(LapseLeases([AllocationLease("", name, 1.0, [step.domain])], self.now, follow))

    def stand(self) -> dict[str, AllocationStanding]:
        """How allocations stand."""
        found = [allocation_store.find(self._transaction.connection, "", name) for name in self.NAMES]
        return {each.name: each.standing for each in found if each is not None}

    def _apply(self, command: Command[Any]) -> None:
        command.apply(self._transaction)


def follow(changes: object) -> None:
    """Nobody follows."""


@settings(max_examples=80, deadline=None)
@given(moves=st.lists(MOVES, max_size=50))
def test_whatever_is_lost_or_late_a_job_runs_in_one_place(database: Database, moves: list[tuple[str, int]]) -> None:
    """Answers are lost, come late and in any order; domains do what they were asked, and are away for any time."""
    with database.write.connect() as connection, connection.begin() as transaction:
        play = Play(connection)
        for move in moves:
            play.move(*move)
        for _ in range(60):  # everyone is back, and time passes
            for name, step in play.asked():
                play.carry_out(name, step)
            play.wait(4_000)
        stand = play.stand()
        held = {name for name, each in stand.items() if each.phase is AllocationPhase.committed}
        assert all(each.phase in FINISHED for name, each in stand.items() if name not in held)
        assert {name for name, *_ in play.truth.runs} == held
        assert len(held) <= 1
        transaction.rollback()
