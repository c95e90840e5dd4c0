"""A domain runs jobs: on what is held for them, once, and what is held is free only when nothing runs there."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from engine.runs.fake import FakeEngine

from kuayu.client import Client, UnreachableError
from kuayu.engine.controller import DomainController
from kuayu.engine.holdings import Journal, LeaseClock, Pools
from kuayu.engine.runner import PORTS, Runner, name_of, port_of
from kuayu.engine.runs.protocol import EngineError, NodeUnavailableError, Placement, RunState
from kuayu_schemas import schema
from kuayu_schemas.models import Action, ActionKind, ActionOutcome, ActionPhase, ActionResult, Revision

PATIENCE_S = 60.0
LEASE_S = 100.0
POOLS: Pools = {"a800": {"m": 8, "n": 8}}
PREPARE, COMMIT, ABORT = ActionPhase.prepare, ActionPhase.commit, ActionPhase.abort

Shares = Sequence[tuple[str, Mapping[str, int]]]


def action(name: str, kind: ActionKind, phase: ActionPhase = COMMIT, **members: Any) -> Action:
    base = {"id": name, "kind": kind, "phase": phase, "revision": Revision(epoch="e", number=1), "domain": "x"}
    return Action.model_validate({"job": "job-1", **base, **members})


def reserve(name: str, phase: ActionPhase = PREPARE, **members: Any) -> Action:
    wanted = {"accelerator": "a800", "devices": 8, "expires_after": 60.0}
    return action(name, ActionKind.reserve, phase, **wanted | members)


def release(reservation: str) -> Action:
    return action(f"{reservation}.release", ActionKind.release, reservation=reservation)


def stop(name: str = "stop", attempt: int | None = 1, **members: Any) -> Action:
    return action(name, ActionKind.stop, attempt=attempt, **members)


def shares_of(shares: Shares) -> list[dict[str, Any]]:
    return [
        {
            "domain": domain,
            "accelerator": "a800",
            "devices": sum(nodes.values()),
            "nodes": [{"node": node, "devices": devices} for node, devices in nodes.items()],
        }
        for domain, nodes in shares
    ]


def start(
    reservation: str = "r", attempt: int = 1, shares: Shares = (("x", {"m": 8}),), name: str = "start", **run: Any
) -> Action:
    order = {
        "attempt": attempt,
        "workload": {"command": ["python", "train.py"], **run.pop("workload", {})},
        "shares": shares_of(shares),
        "split_mode": "none" if len(shares) == 1 else "periodic",
        "step": 0,
        "grace": 10.0,
        **run,
    }
    return action(name, ActionKind.start, reservation=reservation, run=order)


class Service(Client):
    """A service that asks what it is told to, and notes what is answered."""

    def __init__(self, *asked: Action) -> None:
        super().__init__("http://localhost")
        self.asked = list(asked)
        self.answers: dict[tuple[str, ActionPhase], ActionResult] = {}
        self.away = False

    def open_actions(self, domain: str, *, wait_s: float = 0.0) -> list[Action]:  # noqa: ARG002
        """What is not answered."""
        if self.away:
            raise UnreachableError("no answer", "wait", transient=True)
        return [each for each in self.asked if (each.id, each.phase) not in self.answers]

    def post_action_result(self, result: ActionResult) -> Any:
        """Take an answer."""
        if self.away:
            raise UnreachableError("no answer", "wait", transient=True)
        assert schema.errors("ActionResult", result.to_wire()) == []
        self.answers[result.action, result.phase] = result

    def outcome(self, name: str, phase: ActionPhase = COMMIT) -> ActionOutcome | None:
        """How a step was answered last; None where it was not."""
        answer = self.answers.get((name, phase))
        return None if answer is None else answer.outcome


class Domain:
    """A domain on a machine whose lease clock stands until it is set, with an engine that outlives its controller."""

    def __init__(self, folder: Path, *asked: Action, **options: Any) -> None:
        self.engine, self.service = FakeEngine(), Service(*asked)
        self.now = 1000.0
        self._options = options
        self._journal = folder / "held.json"
        self.runner: Runner = None  # type: ignore[assignment]
        self.begin()

    def begin(self, **options: Any) -> None:
        """Start a controller; the one before it was killed, and writes nothing any more."""
        if self.runner is not None:
            self.runner.bind(lambda: None)
            self.runner.close()
        self.runner = Runner(self.engine, "x", **self._options)
        with closing(Journal(self._journal, "x")) as kept:
            lease = LeaseClock(lambda: self.now, "boot")
            self.controller = DomainController(
                self.service, "x", POOLS, journal=kept, runs=self.runner, lease=lease, **options
            )

    def until(self, reached: Callable[[], bool], what: str = "it did not come to that") -> None:
        """Take turns until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            assert time.monotonic() < deadline, what
            if not self.service.away:
                self.controller.poll()
            time.sleep(0.005)

    def ask(self, *actions: Action) -> None:
        """Ask for something, and wait until all of it is answered."""
        self.service.asked += actions
        self.until(lambda: not self.service.open_actions("x"), f"{actions} are not answered")

    def running(self, **run: Any) -> str:
        """Have a run run with what is held as r; its name."""
        self.ask(reserve("r", lease=LEASE_S), reserve("r", COMMIT, lease=LEASE_S), start(**run))
        [name] = self.engine.alive()
        return name


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    return Domain(tmp_path)


def test_a_run_is_started_with_what_is_held_and_as_it_was_ordered(tmp_path: Path) -> None:
    domain = Domain(tmp_path, steps=tmp_path / "steps")
    held = {"m": 8, "n": 2}
    domain.ask(reserve("r", devices=10), reserve("r", COMMIT, devices=10))
    workload = {
        "image": "pytorch:2",
        "environment": [{"name": "SEED", "value": "7"}, {"name": "KUAYU_DOMAIN", "value": "mine"}],
        "working_directory": "/srv/job",
        "code": "https://example.com/code.tar.gz",
    }
    order = start(shares=[("x", held)], workload=workload, checkpoint="file:///ckpt/job%201", step=120, grace=45.0)
    domain.ask(order)
    assert domain.service.outcome("start") is ActionOutcome.committed
    [run] = domain.engine.given.values()
    assert run.name == name_of("x", "job-1", 1, "start")
    assert run.name.startswith("job-1.1.")
    assert (run.job, run.attempt, run.step, run.grace_seconds) == ("job-1", 1, 120, 45.0)
    assert list(run.command) == ["python", "train.py"]
    assert list(run.placements) == [Placement("m", 8), Placement("n", 2)]
    assert (run.image, run.working_directory, run.code) == ("pytorch:2", "/srv/job", "https://example.com/code.tar.gz")
    assert run.checkpoint == "/ckpt/job 1"  # what is a file of the host is told as its path
    assert run.environment["SEED"] == "7"
    assert run.environment["KUAYU_DOMAIN"] == "x"  # a job does not say where it is
    assert run.environment["KUAYU_STEP_FILE"] == str(tmp_path / "steps" / run.name)
    assert (run.rendezvous.port, run.rendezvous.world_size) == (0, 0)  # its engine says where it meets


def test_it_is_answered_when_the_engine_has_taken_it_over_and_not_before(domain: Domain) -> None:
    domain.engine.let_start.clear()
    domain.service.asked += [reserve("r"), reserve("r", COMMIT), start()]
    domain.until(lambda: bool(domain.engine.asked))
    domain.controller.poll()
    assert domain.service.outcome("start") is None
    domain.engine.let_start.set()
    domain.until(lambda: domain.service.outcome("start") is ActionOutcome.committed)


def test_a_controller_that_is_killed_while_a_run_is_being_started_starts_nothing_twice(domain: Domain) -> None:
    domain.engine.let_start.clear()
    domain.service.asked += [reserve("r"), reserve("r", COMMIT), start()]
    domain.until(lambda: bool(domain.engine.asked))
    domain.begin()
    domain.begin()
    domain.until(lambda: len(domain.engine.asked) > 1)
    domain.engine.let_start.set()
    domain.until(lambda: domain.service.outcome("start") is ActionOutcome.committed)
    assert list(domain.engine.begun.values()) == [1]
    assert len(domain.engine.given) == 1


def test_what_is_to_be_run_stands_in_no_journal(domain: Domain, tmp_path: Path) -> None:
    """An environment may hold passwords."""
    domain.running(workload={"environment": [{"name": "PASSWORD", "value": "swordfish"}]})
    domain.begin()
    assert "swordfish" not in (tmp_path / "held.json").read_text("utf-8")
    assert [record.job for record in domain.runner.records] == ["job-1"]


def test_what_the_engine_cannot_run_fails_once_nothing_of_it_is_alive(domain: Domain) -> None:
    domain.engine.troubles = [EngineError("there is no program train", "name one that is there")]
    domain.ask(reserve("r"), reserve("r", COMMIT), start())
    answer = domain.service.answers["start", COMMIT]
    assert answer.outcome is ActionOutcome.failed
    assert answer.problem is not None
    assert answer.problem.detail == "there is no program train; name one that is there"
    assert [what for what, _ in domain.engine.asked] == ["start", "stop"]
    assert sum(domain.controller.holdings.free("a800").values()) == 8  # whoever holds it gives it back
    domain.ask(release("r"))
    assert domain.runner.records == []


def test_a_node_that_is_lost_is_no_fault_of_the_run_and_not_waited_for(domain: Domain) -> None:
    domain.engine.troubles = [NodeUnavailableError("node n takes no jobs: down", "see sinfo")]
    domain.ask(reserve("r"), reserve("r", COMMIT), start())
    answer = domain.service.answers["start", COMMIT]
    assert answer.outcome is ActionOutcome.refused
    assert answer.problem is not None
    assert answer.problem.detail == "node n takes no jobs: down; see sinfo"
    assert [what for what, _ in domain.engine.asked] == ["start", "stop"]


def test_what_may_be_over_in_a_while_is_tried_again(domain: Domain) -> None:
    domain.engine.troubles = [EngineError("the devices are not free yet", transient=True)] * 2
    domain.running()
    assert domain.service.outcome("start") is ActionOutcome.committed
    assert [what for what, _ in domain.engine.asked] == ["start"] * 3


def test_an_engine_that_breaks_leaves_no_action_without_an_answer(domain: Domain) -> None:
    domain.engine.prepare = lambda _: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    domain.ask(reserve("r"), reserve("r", COMMIT), start())
    assert domain.service.outcome("start") is ActionOutcome.refused


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        (start("other"), "unknown-reference"),
        (start().model_copy(update={"job": "job-2"}), "unknown-reference"),
        (start().model_copy(update={"run": None}), "invalid-body"),
        (start(shares=[("x", {"n": 8})]), "invalid-body"),
        (start(shares=[("x", {"m": 4})]), "invalid-body"),
        (start(shares=[("y", {"m": 8})]), "invalid-body"),
    ],
)
def test_nothing_is_started_beside_what_is_held(domain: Domain, order: Action, problem: str) -> None:
    domain.ask(reserve("r"), reserve("r", COMMIT), order)
    answer = domain.service.answers["start", COMMIT]
    assert answer.outcome is ActionOutcome.refused
    assert answer.problem is not None
    assert answer.problem.type == f"urn:kuayu:problem:{problem}"
    assert domain.engine.asked == []


def test_a_promise_is_not_enough_to_run_on(domain: Domain) -> None:
    domain.ask(reserve("r"), start())
    assert domain.service.outcome("start") is ActionOutcome.refused


def test_one_reservation_sees_one_run(domain: Domain) -> None:
    name = domain.running()
    domain.ask(start(name="again"))
    assert domain.service.outcome("again") is ActionOutcome.refused
    domain.engine.end(name, RunState.FAILED, exit_code=1)
    domain.ask(start(name="once-more", attempt=2))
    assert domain.service.outcome("once-more") is ActionOutcome.refused
    assert list(domain.engine.begun.values()) == [1]


def test_a_stop_is_answered_when_nothing_is_alive_any_more(domain: Domain) -> None:
    name = domain.running()
    domain.engine.let_end.clear()
    domain.service.asked.append(stop())
    domain.until(lambda: ("stop", name) in domain.engine.asked)
    domain.controller.poll()
    assert domain.service.outcome("stop") is None
    domain.engine.let_end.set()
    domain.until(lambda: domain.service.outcome("stop") is ActionOutcome.committed)
    assert domain.engine.alive() == []
    assert domain.engine.graces[0] == 10.0


def test_a_stop_that_a_killed_controller_had_begun_is_finished_by_the_next(domain: Domain) -> None:
    name = domain.running()
    domain.engine.let_end.clear()
    domain.service.asked.append(stop())
    domain.until(lambda: ("stop", name) in domain.engine.asked)
    domain.begin()
    domain.engine.let_end.set()
    domain.until(lambda: domain.service.outcome("stop") is ActionOutcome.committed)
    assert domain.engine.alive() == []


def test_stopping_an_attempt_that_never_ran_here_is_done_and_it_never_will(domain: Domain) -> None:
    domain.ask(reserve("r"), reserve("r", COMMIT), stop(), start())
    assert domain.service.outcome("stop") is ActionOutcome.committed
    assert domain.service.outcome("start") is ActionOutcome.refused
    assert domain.engine.asked == []


def test_a_stop_of_another_attempt_lets_a_run_be(domain: Domain) -> None:
    domain.running(attempt=2)
    domain.ask(stop(attempt=1))
    assert domain.service.outcome("stop") is ActionOutcome.committed
    assert len(domain.engine.alive()) == 1
    domain.ask(stop("all", attempt=None, cause="it hangs"))
    assert domain.service.outcome("all") is ActionOutcome.committed
    assert domain.engine.alive() == []
    [record] = domain.runner.records
    assert (record.cause, record.own_fault) == ("it hangs", True)


def test_devices_are_free_only_when_nothing_runs_on_them_any_more(domain: Domain) -> None:
    name = domain.running()
    domain.ask(reserve("s"), reserve("s", COMMIT))
    domain.engine.let_end.clear()
    domain.service.asked.append(release("r"))
    domain.until(lambda: ("stop", name) in domain.engine.asked)
    domain.service.asked.append(reserve("t"))
    domain.until(lambda: domain.service.outcome("t", PREPARE) is not None)
    assert domain.service.outcome("t", PREPARE) is ActionOutcome.refused
    assert domain.service.outcome("r.release") is None
    domain.engine.let_end.set()
    domain.until(lambda: domain.service.outcome("r.release") is ActionOutcome.committed)
    assert domain.engine.alive() == []
    domain.ask(reserve("u"))
    assert domain.service.outcome("u", PREPARE) is ActionOutcome.prepared


def test_an_abort_of_what_was_taken_ends_what_runs_there_first(domain: Domain) -> None:
    domain.running()
    domain.ask(reserve("r", ABORT))
    assert domain.engine.alive() == []
    assert domain.controller.holdings.current == []


def test_an_engine_that_cannot_tell_is_asked_until_it_can(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    domain.running()
    honest, troubles = domain.engine.stop, [EngineError("the scheduler is away", transient=True)] * 2

    def ailing(name: str, grace_seconds: float | None = None) -> None:
        if troubles:
            raise troubles.pop()
        honest(name, grace_seconds)

    monkeypatch.setattr(domain.engine, "stop", ailing)
    domain.ask(release("r"))
    assert troubles == []
    assert domain.engine.alive() == []


def test_when_a_lease_is_over_runs_are_ended_before_the_devices_are_free(domain: Domain) -> None:
    name = domain.running()
    domain.engine.let_end.clear()
    domain.service.away = True
    domain.now += LEASE_S
    let_go(domain)
    assert domain.engine.alive() == [name]
    assert [each.action for each in domain.controller.holdings.current] == ["r"]
    domain.service.away = False  # too late: who was told nothing for so long takes it to be given back
    domain.controller.poll()
    domain.engine.let_end.set()
    domain.until(lambda: not domain.controller.holdings.current)
    assert domain.engine.alive() == []
    domain.until(lambda: domain.service.outcome("r") is ActionOutcome.expired)


def test_runs_are_asked_to_end_before_a_lease_is_over_so_that_nothing_is_left_then(domain: Domain) -> None:
    domain.running()
    domain.service.away = True
    domain.now += LEASE_S - 11.0
    let_go(domain)
    assert ("stop", "") not in domain.engine.asked
    assert len(domain.engine.alive()) == 1
    domain.now += 3.0
    let_go(domain)
    domain.until(lambda: domain.engine.alive() == [])
    assert domain.engine.graces[-1] == pytest.approx(8.0)
    assert [each.action for each in domain.controller.holdings.current] == ["r"]  # the lease itself is not over
    [record] = domain.runner.records
    assert (record.own_fault, "has not answered" in (record.cause or "")) == (False, True)


def test_a_lease_that_was_over_while_nobody_looked_ends_runs_at_the_next_start(domain: Domain) -> None:
    domain.running()
    domain.now += LEASE_S + 1.0
    domain.begin()
    domain.until(lambda: not domain.controller.holdings.current)
    assert domain.engine.alive() == []
    assert domain.engine.graces[-1] == 0.0


def test_where_the_service_still_counts_on_runs_they_go_on_though_their_lease_was_over(domain: Domain) -> None:
    """As where one program runs both: the service was away as well."""
    name = domain.running()
    domain.now += LEASE_S + 1.0
    doubted: list[str] = []
    domain.begin(confirm=lambda holding: bool(doubted.append(holding.action)) or True)
    for _ in range(3):
        domain.controller.poll()
    assert doubted == ["r"]
    assert domain.engine.alive() == [name]
    assert [each.action for each in domain.controller.holdings.current] == ["r"]


def test_where_it_does_not_they_end(domain: Domain) -> None:
    domain.running()
    domain.now += LEASE_S + 1.0
    domain.begin(confirm=lambda _: False)
    domain.until(lambda: not domain.controller.holdings.current)
    assert domain.engine.alive() == []
    domain.until(lambda: domain.service.outcome("r") is ActionOutcome.expired)


def test_and_where_it_cannot_be_asked_for_as_long_as_a_lease(domain: Domain) -> None:
    name = domain.running()
    domain.now += LEASE_S + 1.0
    domain.service.away = True
    domain.begin(confirm=lambda _: True)
    let_go(domain)
    assert domain.engine.alive() == [name]
    domain.now += LEASE_S + 1.0
    let_go(domain)
    domain.until(lambda: domain.engine.alive() == [])


def test_a_lease_that_was_not_over_needs_no_confirmation(domain: Domain) -> None:
    name = domain.running()
    domain.now += LEASE_S / 2
    domain.begin(confirm=lambda _: False)
    domain.controller.poll()
    assert domain.engine.alive() == [name]


def test_what_the_service_does_not_know_is_ended_and_given_back(domain: Domain) -> None:
    domain.running()
    domain.controller.disown("nothing")
    assert domain.engine.alive() != []
    domain.controller.disown("r")
    domain.begin()  # it is kept
    domain.until(lambda: not domain.controller.holdings.current)
    assert domain.engine.alive() == []
    assert domain.controller.holdings.free("a800") == POOLS["a800"]
    domain.controller.disown("r")  # once more changes nothing


def test_a_fence_ends_what_runs_on_its_nodes_and_says_so_then(domain: Domain) -> None:
    name = domain.running()
    domain.engine.let_end.clear()
    fence = action("f", ActionKind.fence, nodes=[{"node": "m", "devices": 8}], job=None, cause="m is dead")
    domain.service.asked += [fence, reserve("s", nodes=[{"node": "m", "devices": 8}])]
    domain.until(lambda: domain.service.outcome("s", PREPARE) is ActionOutcome.refused)
    domain.until(lambda: ("stop", name) in domain.engine.asked)
    assert domain.service.outcome("f") is None
    domain.engine.let_end.set()
    domain.until(lambda: domain.service.outcome("f") is ActionOutcome.committed)
    assert domain.engine.alive() == []
    [record] = domain.runner.records
    assert (record.cause, record.own_fault) == ("m is dead", False)


def test_other_nodes_run_on_when_one_is_fenced(domain: Domain) -> None:
    name = domain.running()
    domain.ask(action("f", ActionKind.fence, nodes=[{"node": "n", "devices": 8}], job=None))
    assert domain.engine.alive() == [name]


TWO: Shares = [("w", {"a": 4, "b": 4}), ("x", {"m": 8}), ("y", {"q": 2})]


def test_runs_in_several_domains_number_their_ranks_alike_and_meet_at_the_first_node(tmp_path: Path) -> None:
    domain = Domain(tmp_path, address_of={"a": "a.example"}.get)
    domain.running(shares=TWO, sync_period=50)
    [run] = domain.engine.given.values()
    meeting = run.rendezvous
    assert (meeting.address, meeting.rank_offset, meeting.world_size) == ("a.example", 8, 18)
    assert meeting.port == port_of("job-1", 1)
    assert meeting.port in PORTS
    assert port_of("job-1", 1) != port_of("job-1", 2)
    assert run.sync_period == 50
    assert run.environment["KUAYU_DOMAINS"] == "w,x,y"
    assert (run.environment["KUAYU_RANK_OFFSET"], run.environment["KUAYU_DOMAIN_WORLD_SIZE"]) == ("8", "8")
    [record] = domain.runner.records
    assert record.ranks == dict.fromkeys(range(8, 16), "m")


def test_processes_of_each_node_count_and_not_its_devices_where_they_differ(tmp_path: Path) -> None:
    domain = Domain(tmp_path, address_of={"a": "a.example"}.get)
    domain.running(shares=TWO, workload={"processes_per_node": 1})
    [run] = domain.engine.given.values()
    assert (run.rendezvous.rank_offset, run.rendezvous.world_size) == (2, 4)
    assert [rank for rank, _ in enumerate(run.processes)] == [0]


def test_without_an_address_runs_in_several_domains_are_refused_with_what_to_do(tmp_path: Path) -> None:
    domain = Domain(tmp_path)
    domain.ask(reserve("r"), reserve("r", COMMIT), start(shares=TWO))
    answer = domain.service.answers["start", COMMIT]
    assert answer.outcome is ActionOutcome.refused
    assert answer.problem is not None
    assert "node a of domain w" in (answer.problem.detail or "")
    assert "--address" in (answer.problem.detail or "")


def test_runs_of_which_the_journal_knows_nothing_are_ended(domain: Domain, tmp_path: Path) -> None:
    name = domain.running()
    (tmp_path / "held.json").unlink()
    domain.begin()
    assert domain.runner.end_strays() == [name]
    assert domain.engine.runs() == []


def test_names_of_runs_differ_where_domains_or_actions_do_and_can_be_cut() -> None:
    names = {name_of(domain, "j" * 128, 7, act) for domain in ("x", "y") for act in ("a", "b")}
    assert len(names) == 4
    assert all(len(name) <= 128 for name in names)


def test_the_controller_runs_jobs_while_it_waits_for_the_service(domain: Domain) -> None:
    """As it is run: a start and a stop that take their time are answered soon after they are done."""
    domain.service.asked = [reserve("r"), reserve("r", COMMIT), start()]
    answered, stopped = threading.Event(), threading.Event()
    take = domain.service.post_action_result

    def post(result: ActionResult) -> None:
        take(result)
        if result.action == "start":
            answered.set()

    domain.service.post_action_result = post  # type: ignore[method-assign]
    thread = threading.Thread(target=domain.controller.run, args=(stopped,))
    thread.start()
    try:
        assert answered.wait(PATIENCE_S)
    finally:
        stopped.set()
        thread.join(PATIENCE_S)
    assert len(domain.engine.alive()) == 1


def let_go(domain: Domain) -> None:
    """Look at leases once, as the controller's second thread does."""
    domain.controller._release_expired()  # noqa: SLF001
