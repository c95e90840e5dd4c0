"""A domain's controller: fetches what a service asks of the domain, holds and fences, and says what became of it.

>>> with Client("https://kuayu.example", token="...") as client:          # doctest: +SKIP
...     journal = Journal(Path("held.json"), "gz-1")
...     controller = DomainController(client, "gz-1", {"a800": {"node-1": 8, "node-2": 8}}, journal=journal)
...     controller.run(threading.Event())

What it is asked it does in one thread, so nothing overtakes anything; a second one only lets go when a lease is over,
whatever a request waits for. What it has promised is in its journal before the service hears of it, so that it keeps
its word over a restart; what it has said it says again, so that an answer that got lost harms nobody.

Where it has somebody who runs jobs (:class:`Runs`), devices that are given back count as free only when nothing runs on
them any more. What takes its time, to start a run or to end one, is under way while the controller goes on asking; its
action stays open and is answered when it is done.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from kuayu.client import Client, ClientError, RefusedError, UnauthorisedError
from kuayu.engine.holdings import (
    Fence,
    Holding,
    Holdings,
    Journal,
    JournalError,
    LeaseClock,
    Pools,
    RefusalError,
    problem_of,
    result_of,
    shortest,
    this_boot,
)
from kuayu_schemas.models import Action, ActionKind, ActionOutcome, ActionPhase, ActionResult

logger = logging.getLogger(__name__)

WAIT_S = 20.0
"""Seconds that a service waits for something to do before it answers; the standard allows 30."""

FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 5.0

MIN_WAIT_S = 0.05
"""Seconds between two requests at least, however short a lease is."""

SHARE_OF_LEASE = 4
"""Requests that it makes at least while a lease goes on."""

UNDER_WAY_S = 0.5
"""Seconds between two requests at most while a run is being started or ended: a service answers at once then."""

WARNING_SHARE = 5
"""Part of a lease at its end, one in so many, in which runs may be asked to end, so that nothing is left at the end."""


class AllocationHooks(Protocol):
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


class Runs(Protocol):
    """Who runs jobs with what is held. Nothing here waits: what takes its time is begun, and asked for again.

    All methods are called by one thread at a time. ``bind`` is given a function to call, from any thread but not from
    within these methods, whenever something has come out.
    """

    def bind(self, changed: Callable[[], None]) -> None:
        """Whom to tell."""

    def start(self, action: Action, holding: Holding | None) -> bool:
        """Run what an action of kind start says on what it reserved; tells whether that was taken over by now.

        Nothing is begun before :meth:`go_on`.

        Raises:
            RefusalError: It cannot be; nothing of it runs, or will.
        """

    def go_on(self) -> None:
        """Begin what was accepted: it is in the journal now."""

    def stop(self, job: str, attempt: int | None, reservations: Collection[str], cause: str | None) -> bool:
        """End runs of a job; tells whether nothing of them is alive.

        Args:
            job: The job.
            attempt: Which attempt; all where it is None.
            reservations: Actions by which devices are held for the job: no run is started with these any more.
            cause: Why.
        """

    def clear(self, reservation: str, cause: str, grace_s: float | None = None) -> bool:
        """End what runs on what an action reserved; tells whether nothing of it is alive.

        Args:
            reservation: The action.
            cause: Why.
            grace_s: Seconds that processes have to end; as long as the run says where it is None.
        """

    def clear_nodes(self, nodes: Collection[str], cause: str) -> bool:
        """End what runs on some nodes; tells whether nothing of it is alive."""

    def grace_s(self, reservation: str) -> float:
        """Seconds that processes on what an action reserved have to end; zero where there are none."""

    def given_back(self, reservation: str) -> None:
        """What an action reserved is free again."""

    def to_json(self) -> Any:
        """All that has to outlive the process, as JSON values."""

    def restore(self, state: Any, reservations: Collection[str]) -> None:
        """Go on from what :meth:`to_json` gave.

        Args:
            state: What it gave; empty at the beginning.
            reservations: Actions by which something is promised or held.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """


class DomainController:
    """Carries out what one service asks of one domain.

    Args:
        client: Connection to the service.
        domain: The domain.
        pools: Devices of each of its nodes, by kind of accelerator.
        journal: Keeps what is promised and held; None where it need not outlive the process.
        hooks: Are told what is held or fenced and what no longer is, and which jobs are to be stopped.
        runs: Runs jobs; actions of kind start are refused where it is None.
        confirm: Asks the service whether it still counts on something that is held. Where leases were over while this
            controller was away, they do not end by that alone then, for the service may have been away as well, as
            where one program runs both; what the service does not count on any more is let go of. None where the lease
            alone decides.
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
        hooks: AllocationHooks | None = None,
        runs: Runs | None = None,
        confirm: Callable[[Holding], bool] | None = None,
        wait_s: float = WAIT_S,
        clock: Callable[[], float] = time.time,
        lease: LeaseClock | None = None,
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
        self._hooks = hooks
        self._runs = runs
        self._runs_written: Any = None
        self._confirm = confirm
        self._doubtful: set[str] = set()
        self._disowned: set[str] = set()
        self._under_way: set[str] = set()
        self._progress = 0
        self._wait_s = wait_s
        self._clock = clock
        self._lease = lease or LeaseClock(boot=this_boot())
        self._written = float("-inf")
        self._changed = threading.Condition()
        self._failure: Exception | None = None
        self._was_known = False  # the token, to the service
        if journal is not None and (state := journal.read()) is not None:
            try:
                self.holdings.restore(state)
                self._lease.restore(state.get("lease", {}))
                if runs is not None:
                    runs.restore(state.get("runs", {}), {holding.action for holding in self.holdings.current})
            except (KeyError, TypeError, ValueError) as error:
                raise JournalError(f"the journal is damaged: {error}", "restore it, or begin with another") from error
        if confirm is not None:
            self._doubtful = {holding.action for holding in self._lease.over(self.holdings.current) if not holding.over}
            self._lease.answered(self._lease.now())
        if runs is not None:
            runs.bind(self._has_changed)
        with self._changed:  # runs that have to end tell by other threads when they have
            before = self._in_force()
            if self._end_leases() or self.holdings.unacknowledged:
                self._write()
            self._call_hooks({name: gone for name, gone in before.items() if name not in self._in_force()}, {})
            self._call_hooks({}, self._in_force())

    def run(self, stopped: threading.Event) -> None:
        """Carry out what is asked until told to stop; a service that is away is waited for.

        So is one that does not know the token any more: what is held under a lease is let go of in time, and a token
        that is taken out by mistake, or late put in anew, costs no more than that.

        Raises:
            ClientError: The service will not talk to this domain, as where the token was never known.
            JournalError: What is promised cannot be kept, so that nothing may be promised.
        """
        ended = threading.Event()
        keeping = threading.Thread(target=self._watch_leases, args=(ended,), name="leases", daemon=True)
        keeping.start()
        try:
            self._poll_until(stopped)
        finally:
            ended.set()
            with self._changed:
                self._changed.notify_all()
            keeping.join()

    def disown(self, reservation: str) -> None:
        """Let go of something, and end what runs on it: the service does not know that, as after it was restored.

        Args:
            reservation: Action by which it was reserved.

        Raises:
            JournalError: It cannot be kept that it is let go of.
        """
        with self._changed:
            holding = self.holdings.find(reservation)
            if holding is None or holding.over:
                return
            logger.warning("let go of %s: the service does not know what runs on it", holding.job or reservation)
            self._disowned.add(reservation)
            self.holdings.end_lease(reservation)
            self._write()
            self._changed.notify_all()

    def _poll_until(self, stopped: threading.Event) -> None:
        pause = FIRST_PAUSE_S
        while not stopped.is_set():
            if self._failure is not None:
                raise self._failure
            try:
                if self.poll():
                    pause = FIRST_PAUSE_S
                    self._await_runs()
                    continue
                logger.warning("what was said is not taken; again in %g s", pause)
            except ClientError as error:
                if not (error.transient or (self._was_known and isinstance(error, UnauthorisedError))):
                    raise
                logger.warning("%s; again in %g s", error.cause, pause)
            self.idle = True
            stopped.wait(min(pause, self._longest_wait))
            self.idle = False
            pause = min(2 * pause, MAX_PAUSE_S)

    def poll(self) -> bool:
        """Fetch what is asked, or wait for it, and carry it out; tells whether all results were taken.

        Raises:
            ClientError: The service is away or refuses.
            JournalError: What is promised cannot be kept.
        """
        sent, self._progress = self._lease.now(), 0
        self.idle = True
        try:
            wait_s = 0.0 if self._doubtful else min(self._wait_s, self._longest_wait)
            actions = self._client.open_actions(self._domain, wait_s=wait_s)
        finally:
            self.idle = False
        self._was_known = True
        self._confirm_leases()
        self._release_expired()  # until there was an answer it counted nothing
        with self._changed:
            self._lease.answered(sent)
            if self._lease.now() - self._written > self._longest_wait / 2:
                self._write()
        for result in self.holdings.unacknowledged:
            self._send_result(result)  # what is refused for good need not be said again
            with self._changed:
                self.holdings.acknowledge(result)
                self._write()
        self._under_way.intersection_update(action.id for action in actions)
        taken = [self._carry_out(action) for action in actions]
        return all(taken)

    def _carry_out(self, action: Action) -> bool:
        """Carry out a step and say what became of it; tells whether that was taken, or is under way."""
        with self._changed:
            before = self._in_force()
            result = self._result_of(action)
            if result is not None or self._runs_to_write():
                self._write()
            if self._runs is not None:
                self._runs.go_on()
            self._call_hooks(before, self._in_force())
            self._changed.notify_all()  # there may be a lease to keep
        if result is None:
            self._under_way.add(action.id)
            return True
        self._under_way.discard(action.id)
        if self._hooks is not None and action.kind is ActionKind.stop and result.outcome is ActionOutcome.committed:
            self._hooks.stop(str(action.job), action.cause)
        return self._send_result(result)

    def _result_of(self, action: Action) -> ActionResult | None:
        """What became of a step; None while runs are being started or ended for it."""
        runs = self._runs
        if runs is None:
            return self.holdings.carry_out(action, self._clock())
        match action.kind, action.phase:
            case ActionKind.fence, ActionPhase.commit:
                return self._fenced(runs, action)
            case _ if self.holdings.answer_of(action) is not None:
                pass
            case ActionKind.start, ActionPhase.commit:
                return self._started(runs, action)
            case ActionKind.stop, ActionPhase.commit:
                return self._stopped(runs, action)
            case (ActionKind.release, ActionPhase.commit) | (_, ActionPhase.abort):
                reservation = action.id if action.phase is ActionPhase.abort else action.reservation
                if reservation is not None and not runs.clear(reservation, action.cause or "its devices go back"):
                    return None
        return self.holdings.carry_out(action, self._clock())

    def _fenced(self, runs: Runs, action: Action) -> ActionResult | None:
        """Give nothing out of nodes any more at once, and say so when nothing runs there."""
        result = self.holdings.carry_out(action, self._clock())
        nodes = next((fence.nodes for fence in self.holdings.fences if fence.action == action.id), {})
        return result if runs.clear_nodes(nodes, action.cause or "its node was fenced") else None

    def _stopped(self, runs: Runs, action: Action) -> ActionResult | None:
        """End runs of a job. That nothing of an attempt is alive is said also where nothing ever was."""
        if action.job is not None:
            reservations = [
                holding.action
                for holding in self.holdings.current
                if holding.job == action.job and holding.until is None
            ]
            if not runs.stop(action.job, action.attempt, reservations, action.cause):
                return None
            if action.attempt is not None:
                return self.holdings.keep(result_of(action, ActionOutcome.committed, self._clock()))
        return self.holdings.carry_out(action, self._clock())

    def _started(self, runs: Runs, action: Action) -> ActionResult | None:
        now = self._clock()
        holding = None if action.reservation is None else self.holdings.find(action.reservation)
        try:
            if not runs.start(action, holding):
                return None
        except RefusalError as refusal:
            return self.holdings.keep(result_of(action, refusal.outcome, now, problem=problem_of(refusal)))
        nodes = None if holding is None else holding.nodes
        return self.holdings.keep(result_of(action, ActionOutcome.committed, now, nodes))

    def _has_changed(self) -> None:
        """A run was started, or has ended."""
        with self._changed:
            self._progress += 1
            try:
                if self._runs_to_write():
                    self._write()
            except JournalError as error:
                self._failure = error
            self._changed.notify_all()

    def _await_runs(self) -> None:
        """Wait a moment where something is under way, or until something of that has come out."""
        with self._changed:
            if self._under_way and not self._progress:
                self.idle = True
                try:
                    self._changed.wait(min(UNDER_WAY_S, self._longest_wait))
                finally:
                    self.idle = False

    def _send_result(self, result: ActionResult) -> bool:
        """Tell what became of a step; whether that was taken."""
        try:
            self._client.post_action_result(result)
        except RefusedError as error:
            if error.transient or isinstance(error, UnauthorisedError):
                raise
            logger.warning("the result of %s was not taken: %s", result.action, error.cause)
            return False
        return True

    @property
    def _longest_wait(self) -> float:
        """Seconds that it may wait for an answer so that no lease is over that need not be."""
        lease = shortest(self.holdings.current)
        return float("inf") if lease is None else max(MIN_WAIT_S, lease / SHARE_OF_LEASE)

    def _watch_leases(self, ended: threading.Event) -> None:
        """Let go in time of what leases are over for, also while a request hangs."""
        try:
            while not ended.is_set():
                self._release_expired()
                with self._changed:
                    end = self._next_end()
                    if not ended.is_set():
                        # A wait does not count what the machine sleeps through, so it is looked again now and then.
                        self._changed.wait(None if end is None else min(1.0, max(0.0, end - self._lease.now())))
        except Exception as error:  # noqa: BLE001 - without this thread no lease is kept, so the controller has to end
            self._failure = error

    def _release_expired(self) -> None:
        with self._changed:
            before = self._in_force()
            ended = self._end_leases()
            self._call_hooks(before, self._in_force())
            try:
                if ended:
                    self._write()
            except JournalError as error:  # by what it says, the lease is over at the next start, too
                logger.warning("%s; %s", error, error.hint)

    def _confirm_leases(self) -> None:
        """Ask whether the service still counts on what leases were over for; it was just answered, and goes on to.

        Raises:
            ClientError: The service is away.
        """
        for name in sorted(self._doubtful):
            holding = self.holdings.find(name)
            counted_on = holding is None or self._confirm is None or self._confirm(holding)
            with self._changed:
                self._doubtful.discard(name)
                if holding is not None and not counted_on:
                    logger.warning("let go of %s: the service does not count on it any more", holding.job or name)
                    self.holdings.end_lease(name)

    def _end_leases(self) -> bool:
        """Let go of what leases are over for, where nothing runs on it any more, and have end what runs on the rest.

        Returns:
            Whether that is to be written.
        """
        changed = False
        for holding in self._lease.over(self.holdings.current):
            cause = UNKNOWN_RUN if holding.action in self._disowned or holding.lease is None else _silence(holding)
            if not holding.over:
                logger.warning(
                    "let go of %s: no answer of the service for %g s", holding.job or holding.action, holding.lease
                )
                self.holdings.end_lease(holding.action)
                changed = True
            if self._runs is None or self._runs.clear(holding.action, cause, 0.0):
                self.holdings.expire_lease(holding.action, self._clock())
                self._disowned.discard(holding.action)
                changed = True
        if self._runs is None:
            return changed
        now = self._lease.now()
        for holding in self.holdings.current:
            end = self._lease.ends(holding)
            if end is not None and not holding.over and now >= end - self._warning(holding):
                self._runs.clear(holding.action, _silence(holding), max(0.0, end - now))
        return changed

    def _next_end(self) -> float | None:
        """The count at which something is to be done about a lease; None where there are none."""
        leased = [holding for holding in self.holdings.current if not holding.over]
        first, now = self._lease.first_end(leased), self._lease.now()
        if first is None:
            return None
        warnings = [
            end - self._warning(holding) for holding in leased if (end := self._lease.ends(holding)) is not None
        ]
        return min([first, *(count for count in warnings if count > now)])

    def _warning(self, holding: Holding) -> float:
        """Seconds before the end of a lease at which runs are asked to end."""
        if self._runs is None or holding.lease is None:
            return 0.0
        return min(self._runs.grace_s(holding.action), holding.lease / WARNING_SHARE)

    def _write(self) -> None:
        runs = {} if self._runs is None else {"runs": self._runs.to_json()}
        if self._journal is not None:
            self._journal.write({**self.holdings.to_json(), "lease": self._lease.to_json(), **runs})
        self._written, self._runs_written = self._lease.now(), runs.get("runs")

    def _runs_to_write(self) -> bool:
        return self._runs is not None and self._runs.to_json() != self._runs_written

    def _in_force(self) -> dict[str, Holding | Fence]:
        """What is held for good and what is fenced, by action."""
        holdings = {holding.action: holding for holding in self.holdings.current if holding.until is None}
        return {**holdings, **{fence.action: fence for fence in self.holdings.fences}}

    def _call_hooks(self, before: Mapping[str, Holding | Fence], after: Mapping[str, Holding | Fence]) -> None:
        if self._runs is not None:
            for name in _given_back(before, after):
                self._runs.given_back(name)
        if self._hooks is None:
            return
        for name in [*before, *(other for other in after if other not in before)]:
            gone, come = before.get(name), after.get(name)
            if gone == come:
                continue
            if isinstance(gone, Fence):
                self._hooks.lift(gone)
            elif gone is not None:
                self._hooks.give_back(gone)
            if isinstance(come, Fence):
                self._hooks.fence(come)
            elif come is not None:
                self._hooks.take(come)


UNKNOWN_RUN = "the service does not know it"


def _silence(holding: Holding) -> str:
    return f"the service has not answered for {holding.lease:g} s, so that the lease of its devices is over"


def _given_back(before: Mapping[str, Holding | Fence], after: Mapping[str, Holding | Fence]) -> list[str]:
    """Actions of which nothing is held any more."""
    return [name for name, standing in before.items() if isinstance(standing, Holding) and name not in after]
