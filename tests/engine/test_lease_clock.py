"""Leases as a domain keeps them: it lets go in time, says so, and a restart does not make them longer."""

import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from engine.test_controller import COMMIT, POOLS, Noted, Service, action

from kuayu.client import UnreachableError
from kuayu.engine.controller import DomainController
from kuayu.engine.holdings import Holding, Journal, LeaseClock
from kuayu_schemas.models import Action, ActionOutcome

LEASE = 100.0


def leased(phase: Any, lease: float = LEASE) -> Action:
    return action("a", phase).model_copy(update={"lease": lease})


class Machine:
    """A domain on a machine whose clock stands until it is set."""

    def __init__(self, folder: Path, *asked: Action) -> None:
        self.now, self.boot = 1000.0, "first"
        self.service, self.hooks = Service(*asked), Noted()
        self._journal = folder / "held.json"

    def controller(self) -> DomainController:
        """One that has just begun; the one before it was killed."""
        with closing(Journal(self._journal, "x")) as kept:
            lease = LeaseClock(lambda: self.now, self.boot)
            return DomainController(
                self.service, "x", POOLS, journal=kept, hooks=self.hooks, clock=lambda: self.now, lease=lease
            )

    def holding(self) -> DomainController:
        """One that holds something under a lease."""
        controller = self.controller()
        self.service.asked = [leased(action("a").phase), leased(COMMIT)]
        controller.poll()
        assert self.hooks.heard == [("take", "a")]
        return controller


class Hanging(Service):
    """A service that takes requests and does not answer them."""

    def open_actions(self, domain: str, *, wait_s: float = 0.0) -> list[Action]:  # noqa: ARG002
        """Nobody is answered."""
        time.sleep(0.1)
        raise UnreachableError("no answer", "wait", transient=True)


class Estranged(Service):
    """A service that has known the token and does so no more."""

    def open_actions(self, domain: str, *, wait_s: float = 0.0) -> list[Action]:
        """The first is answered."""
        answer = super().open_actions(domain, wait_s=wait_s)
        self.strangers = 1_000_000
        return answer


def test_a_lease_counts_from_when_an_answered_request_was_sent() -> None:
    now = 10.0
    lease = LeaseClock(lambda: now)
    promised, held = (Holding("a", "j", "a800", {"m": 8}, until, LEASE) for until in (50.0, None))
    free = Holding("b", "j", "a800", {"m": 8}, None)
    lease.answered(5.0)
    assert [lease.ends(each) for each in (promised, held, free)] == [None, 105.0, None]
    assert lease.first_end([promised, held, free]) == 105.0
    now = 104.9
    assert lease.over([promised, held, free]) == []
    now = 105.0
    assert lease.over([promised, held, free]) == [held]


def test_whoever_is_answered_keeps_what_it_holds(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    controller = machine.holding()
    for _ in range(10):
        machine.now += 0.9 * LEASE
        controller.poll()
    assert machine.hooks.heard == [("take", "a")]
    assert len(machine.service.taken) == 2


def test_an_answer_that_comes_when_the_lease_is_over_is_too_late(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    controller = machine.holding()
    machine.now += LEASE
    controller.poll()
    assert machine.hooks.heard == [("take", "a"), ("give back", "a")]
    last = machine.service.taken[-1]
    assert (last.action, last.phase, last.outcome) == ("a", COMMIT, ActionOutcome.expired)
    controller.poll()
    assert len(machine.service.taken) == 3  # it says so once


def test_that_it_let_go_is_said_until_it_is_taken_also_by_the_next_process(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    controller = machine.holding()
    machine.now += LEASE
    machine.service.lost = 1
    with pytest.raises(UnreachableError):
        controller.poll()
    again = machine.controller()
    assert again.holdings.current == []
    again.poll()
    assert machine.service.taken[-1].outcome is ActionOutcome.expired
    assert machine.hooks.heard == [("take", "a"), ("give back", "a")]


def test_what_the_service_will_never_take_is_said_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    controller = machine.holding()
    machine.now += LEASE
    machine.service.refused = 1
    controller.poll()
    controller.poll()
    assert len(machine.service.taken) == 2
    assert machine.controller().holdings.unacknowledged == []


@pytest.mark.parametrize(("seconds", "boot", "held"), [(0.5, "first", True), (1.0, "first", False), (0.5, "x", False)])
def test_a_restart_makes_no_lease_longer(tmp_path: Path, seconds: float, boot: str, held: bool) -> None:
    """Nor does a start of the machine, after which nobody knows how long it was off."""
    machine = Machine(tmp_path)
    machine.holding()
    machine.now += seconds * LEASE
    machine.boot, machine.hooks = boot, Noted()
    controller = machine.controller()
    assert bool(controller.holdings.current) is held
    assert machine.hooks.heard == [("take" if held else "give back", "a")]  # its job may run on, and has to end


@pytest.mark.parametrize("kind", [Hanging, Estranged])
def test_it_lets_go_in_time_while_a_request_hangs_and_where_its_token_was_taken_out(
    tmp_path: Path, kind: type[Service]
) -> None:
    hooks, stopped = Noted(), threading.Event()
    service = kind()
    with service, closing(Journal(tmp_path / "held.json", "x")) as kept:
        controller = DomainController(service, "x", POOLS, journal=kept, hooks=hooks)
        for step in (leased(action("a").phase, 1.0), leased(COMMIT, 1.0)):
            service.asked = [step]
            controller._carry_out(step)  # noqa: SLF001 - nothing else asks while the service hangs
        controller._lease.answered(controller._lease.now())  # noqa: SLF001
        began = time.monotonic()
        running = threading.Thread(target=controller.run, args=(stopped,))
        running.start()
        while ("give back", "a") not in hooks.heard:
            assert time.monotonic() - began < 10
            time.sleep(0.01)
        assert time.monotonic() - began > 0.9
        stopped.set()
        running.join()


class Broken(Noted):
    """Cannot give back."""

    def give_back(self, holding: Holding) -> None:  # noqa: ARG002
        """Raise, though hooks must not."""
        raise BrokenPipeError("nobody reads this any more")


def test_a_controller_that_could_keep_no_further_lease_ends(tmp_path: Path) -> None:
    with Hanging() as service, closing(Journal(tmp_path / "held.json", "x")) as kept:
        controller = DomainController(service, "x", POOLS, journal=kept, hooks=Broken())
        for step in (leased(action("a").phase, 1.0), leased(COMMIT, 1.0)):
            controller._carry_out(step)  # noqa: SLF001 - nothing else asks while the service hangs
        with pytest.raises(BrokenPipeError):
            controller.run(threading.Event())
