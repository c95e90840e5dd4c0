"""A domain's controller: fetches what a service asks of the domain, holds and fences, and says what became of it.

>>> with Client("https://kuayu.example", token="...") as client:          # doctest: +SKIP
...     journal = Journal(Path("held.json"), "gz-1")
...     controller = DomainController(client, "gz-1", {"a800": {"node-1": 8, "node-2": 8}}, journal=journal)
...     controller.run(threading.Event())

What it is asked it does in one thread, so nothing overtakes anything; a second one only lets go when a lease is over,
whatever a request waits for. What it has promised is in its journal before the service hears of it, so that it keeps
its word over a restart; what it has said it says again, so that an answer that got lost harms nobody.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from kuayu.client import Client, ClientError, RefusedError
from kuayu.engine.holdings import Fence, Holding, Holdings, Pools
from kuayu.engine.journal import Journal, JournalError
from kuayu.engine.leasing import Lease, shortest, this_boot
from kuayu_schemas.models import Action, ActionKind, ActionOutcome, ActionResult

logger = logging.getLogger(__name__)

WAIT_S = 20.0
"""Seconds that a service waits for something to do before it answers; the standard allows 30."""

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0

LEAST_WAIT_S = 0.05
"""Seconds between two requests at least, however short a lease is."""

SHARE_OF_LEASE = 4
"""Requests that it makes at least while a lease goes on."""


class Hands(Protocol):
    """Who does something with devices, nodes and jobs. They must not raise.

    All is told at least once; what is held or fenced is told again after a restart.
    """

    def take(self, holding: Holding) -> None:
        """These devices are held for a job."""

    def give_back(self, holding: Holding) -> None:
        """These devices are not held any more."""

    def fence(self, fence: Fence) -> None:
        """Nothing may run on these nodes; their devices are given to nobody."""

    def lift(self, fence: Fence) -> None:
        """These nodes may be used again."""

    def stop(self, job: str, cause: str | None) -> None:
        """This job is to be stopped; its devices stay held until its owner gives them back."""


class DomainController:
    """Carries out what one service asks of one domain.

    Args:
        client: Connection to the service.
        domain: The domain.
        pools: Devices of each of its nodes, by kind of accelerator.
        journal: Keeps what is promised and held; None where it need not outlive the process.
        hands: Are told what is held or fenced and what no longer is, and which jobs are to be stopped.
        wait_s: Seconds that the service is to wait for something to do before it answers.
        clock: Seconds since 1970.
        lease: Its count for leases.

    Attributes:
        holdings: What is promised, held and fenced.
        idle: Whether it waits for something to do, so that whoever interrupts it interrupts nothing.
    """

    def __init__(
        self,
        client: Client,
        domain: str,
        pools: Pools,
        *,
        journal: Journal | None = None,
        hands: Hands | None = None,
        wait_s: float = WAIT_S,
        clock: Callable[[], float] = time.time,
        lease: Lease | None = None,
    ) -> None:
        """Read the journal, where there is one.

        Raises:
            JournalError: It cannot be read, or holds something else.
        """
        self.holdings = Holdings(pools)
        self.idle = False
        self._client = client
        self._domain = domain
        self._journal = journal
        self._hands = hands
        self._wait_s = wait_s
        self._clock = clock
        self._lease = lease or Lease(boot=this_boot())
        self._written = float("-inf")
        self._changed = threading.Condition()
        self._trouble: Exception | None = None
        if journal is not None and (kept := journal.read()) is not None:
            try:
                self.holdings.restore(kept)
                self._lease.restore(kept.get("lease", {}))
            except (KeyError, TypeError, ValueError) as error:
                raise JournalError(f"the journal is damaged: {error}", "restore it, or begin with another") from error
        held = self._standing()
        for each in self._lease.over(self.holdings.held):
            self.holdings.lose(each.action, self._clock())
        if self.holdings.unsaid:
            self._write()
        self._tell({name: gone for name, gone in held.items() if name not in self._standing()}, {})
        self._tell({}, self._standing())

    def run(self, stopped: threading.Event) -> None:
        """Carry out what is asked until told to stop; a service that is away is waited for.

        Raises:
            ClientError: The service will not talk to this domain, as where the token is unknown.
            JournalError: What is promised cannot be kept, so that nothing may be promised.
        """
        ended = threading.Event()
        keeping = threading.Thread(target=self._keep_leases, args=(ended,), name="leases", daemon=True)
        keeping.start()
        try:
            self._take_turns(stopped)
        finally:
            ended.set()
            with self._changed:
                self._changed.notify_all()
            keeping.join()

    def _take_turns(self, stopped: threading.Event) -> None:
        pause = FIRST_PAUSE_S
        while not stopped.is_set():
            if self._trouble is not None:
                raise self._trouble
            try:
                if self.turn():
                    pause = FIRST_PAUSE_S
                    continue
                logger.warning("what was said is not taken; again in %g s", pause)
            except ClientError as error:
                if not error.transient:
                    raise
                logger.warning("%s; again in %g s", error.cause, pause)
            self.idle = True
            stopped.wait(min(pause, self._longest_wait))
            self.idle = False
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def turn(self) -> bool:
        """Fetch what is asked, or wait for it, and carry it out; tells whether all results were taken.

        Raises:
            ClientError: The service is away or refuses.
            JournalError: What is promised cannot be kept.
        """
        sent = self._lease.now()
        self.idle = True
        try:
            asked = self._client.open_actions(self._domain, wait_s=min(self._wait_s, self._longest_wait))
        finally:
            self.idle = False
        self._let_go_of_what_is_over()  # until there was an answer it counted nothing
        with self._changed:
            self._lease.answered(sent)
            if self._lease.now() - self._written > self._longest_wait / 2:
                self._write()
        for result in self.holdings.unsaid:
            self._say(result)  # what is refused for good need not be said again
            with self._changed:
                self.holdings.said(result)
                self._write()
        taken = [self._carry_out(action) for action in asked]
        return all(taken)

    def _carry_out(self, action: Action) -> bool:
        with self._changed:
            before = self._standing()
            result = self.holdings.carry_out(action, self._clock())
            self._write()
            self._tell(before, self._standing())
            self._changed.notify_all()  # there may be a lease to keep
        if self._hands is not None and action.kind is ActionKind.stop and result.outcome is ActionOutcome.committed:
            self._hands.stop(str(action.job), action.cause)
        return self._say(result)

    def _say(self, result: ActionResult) -> bool:
        """Tell what became of a step; whether that was taken."""
        try:
            self._client.post_action_result(result)
        except RefusedError as error:
            if error.transient:
                raise
            logger.warning("the result of %s was not taken: %s", result.action, error.cause)
            return False
        return True

    @property
    def _longest_wait(self) -> float:
        """Seconds that it may wait for an answer so that no lease is over that need not be."""
        lease = shortest(self.holdings.held)
        return float("inf") if lease is None else max(LEAST_WAIT_S, lease / SHARE_OF_LEASE)

    def _keep_leases(self, ended: threading.Event) -> None:
        """Let go in time of what leases are over for, also while a request hangs."""
        try:
            while not ended.is_set():
                self._let_go_of_what_is_over()
                with self._changed:
                    end = self._lease.first_end(self.holdings.held)
                    if not ended.is_set():
                        # A wait does not count what the machine sleeps through, so it is looked again now and then.
                        self._changed.wait(None if end is None else min(1.0, max(0.0, end - self._lease.now())))
        except Exception as error:  # noqa: BLE001 - without this thread no lease is kept, so the controller has to end
            self._trouble = error

    def _let_go_of_what_is_over(self) -> None:
        with self._changed:
            before = self._standing()
            over = self._lease.over(self.holdings.held)
            for each in over:
                logger.warning("let go of %s: no answer of the service for %g s", each.job or each.action, each.lease)
                self.holdings.lose(each.action, self._clock())
            self._tell(before, self._standing())
            try:
                if over:
                    self._write()
            except JournalError as error:  # by what it says, the lease is over at the next start, too
                logger.warning("%s; %s", error, error.hint)

    def _write(self) -> None:
        if self._journal is not None:
            self._journal.write({**self.holdings.to_json(), "lease": self._lease.to_json()})
        self._written = self._lease.now()

    def _standing(self) -> dict[str, Holding | Fence]:
        """What is held for good and what is fenced, by action."""
        held = {each.action: each for each in self.holdings.held if each.until is None}
        return {**held, **{each.action: each for each in self.holdings.fences}}

    def _tell(self, before: Mapping[str, Holding | Fence], after: Mapping[str, Holding | Fence]) -> None:
        if self._hands is None:
            return
        for name in [*before, *(each for each in after if each not in before)]:
            gone, come = before.get(name), after.get(name)
            if gone == come:
                continue
            if isinstance(gone, Fence):
                self._hands.lift(gone)
            elif gone is not None:
                self._hands.give_back(gone)
            if isinstance(come, Fence):
                self._hands.fence(come)
            elif come is not None:
                self._hands.take(come)
