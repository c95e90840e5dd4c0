"""Runs of a domain: what a service asks to start and to stop there is done by an engine.

1. A run is started with what is held under the reservation that its action names, and with nothing else: on these
   nodes, as many devices on each. One reservation sees one run.
2. Its name follows from the domain and the action, so that whoever asks again, or after a restart, starts nothing
   twice. It is in the journal before the engine hears of it. What to run is not: it may hold secrets, and the action
   comes again until it is answered.
3. The action is answered when the engine has taken the run over. Where it will not, it is asked to end whatever it may
   have begun, and only then the action is answered: ``failed`` where that is in what is to be run, as a program that is
   not there, so that it counts as a failure of the job; ``refused`` where it is in the domain.
4. A run that is to end is asked to until the engine says that nothing of it is alive. Until then its devices are not
   free (:mod:`kuayu.engine.controller`).
5. Runs of this domain that the engine knows and the journal does not are ended: nobody holds devices for them.

Ranks go through the shares of a job in the order in which its order lists them, and in each share through its nodes in
theirs, so that all domains number them alike. A run that is the whole job meets where its engine says. Runs in several
domains meet at the first node of the first share, by the address that its domain registered with it (extension
``org.kuayu/address`` of the node), at a port that follows from job and attempt. Nobody has looked whether that port is
free there: where it is not, the attempt fails, and the next one has another. It lies in ``PORTS``, which the nodes of
all domains have to let through.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

from kuayu.engine.holdings import Holding, RefusalError
from kuayu.engine.runs.protocol import ENDED, Engine, EngineError, NodeUnavailableError, Placement, Rendezvous, Run
from kuayu_schemas.models import Action, ActionOutcome, DomainShare, RunOrder

logger = logging.getLogger(__name__)

ADDRESS = "org.kuayu/address"
"""Extension of a node: host name or address by which nodes of other domains reach it."""

PORTS = range(20_000, 30_000)
"""Where runs in several domains meet; below the ports that Linux gives to connections (ip_local_port_range)."""

STEP_FILE = "KUAYU_STEP_FILE"
"""Variable of each process: the file that it tells its steps in (:mod:`kuayu.engine.log_tail`)."""

TRANSIENT_S = 60.0
"""How long an engine is asked again that cannot start a run now, as while devices are being cleared."""

FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 10.0

PAST = 50
"""Runs that have ended of which the engine keeps what there is to look at, such as their directories."""

MAX_CHARACTERS = 2000
"""Characters of what an engine complains of that are told."""

NAME_CHARACTERS = 80
"""Characters of a job's name that stand in the name of a run; what is beyond them tells no runs apart."""


Refusal = tuple[ActionOutcome, str, str]
"""Why an engine would not have a run: outcome of the step, name of the problem, words."""


JOURNAL_NAMES: Final = {"reported": "told"}
"""Members of a record that the journal calls otherwise, for journals outlive the program that wrote them."""


class Phase(StrEnum):
    """How far a run is with the domain."""

    ACCEPTED = "accepted"
    """It is in the journal; the engine may or may not have begun."""
    STARTED = "started"
    """The engine has taken it over."""
    REFUSED = "refused"
    """The engine has not, and nothing of it is alive."""
    ENDED = "ended"
    """Nothing of it is alive any more."""


@dataclass(slots=True)
class RunRecord:
    """A run as the domain keeps it.

    Attributes:
        action: Name of the action that asked for it.
        reservation: Name of the action by which its devices were reserved.
        job: The job.
        attempt: Which attempt.
        name: How the engine calls it.
        nodes: Devices on each node, in rank order.
        processes_per_node: Processes on each node; zero for one for each device.
        rank_offset: Ranks in domains before this one.
        grace: Seconds that its processes have to end.
        phase: How far it is.
        refusal: Outcome, name of the problem, and words, where the engine would not have it.
        cause: Why it was asked to end; None where it was not.
        own_fault: Whether that was because of what it runs, such as that it hangs.
        reported: Whether the service has heard of its end, and of all that it printed.
        free: Whether its devices were given back.
        fresh: Whether it was begun by this process, so that nothing of it has been told yet.
    """

    action: str
    reservation: str
    job: str
    attempt: int
    name: str
    nodes: dict[str, int]
    processes_per_node: int
    rank_offset: int
    grace: float
    phase: Phase = Phase.ACCEPTED
    refusal: Refusal | None = None
    cause: str | None = None
    own_fault: bool = False
    reported: bool = False
    free: bool = False
    fresh: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing of it is alive."""
        return self.phase in {Phase.REFUSED, Phase.ENDED}

    @property
    def ranks(self) -> dict[int, str]:
        """The node of each of its ranks."""
        nodes = [node for node, devices in self.nodes.items() for _ in range(self.processes_per_node or devices)]
        return dict(enumerate(nodes, self.rank_offset))

    def to_json(self) -> dict[str, Any]:
        """All that has to outlive the process."""
        document = {name: value for name, value in asdict(self).items() if name != "fresh"}
        return {JOURNAL_NAMES.get(name, name): value for name, value in document.items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The record of which :meth:`to_json` gave this.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        names = {written: name for name, written in JOURNAL_NAMES.items()}
        record = cls(**{names.get(name, name): value for name, value in document.items()})
        record.phase = Phase(record.phase)
        if record.refusal is not None:
            outcome, problem, detail = record.refusal
            record.refusal = ActionOutcome(outcome), problem, detail
        return record


@dataclass(slots=True)
class _Work:
    """What this process does with a run; it ends with the process.

    Attributes:
        order: What to run; None until the action has come again after a restart.
        launched: Whether a thread sees to its start.
        starting: Held while the engine is starting it.
        ending: Whether it is to end.
        deadline: When it is killed at the latest, by the steady clock, once it is to end.
    """

    order: RunOrder | None = None
    launched: bool = False
    starting: threading.Lock = field(default_factory=threading.Lock)
    ending: bool = False
    deadline: float = float("inf")


class Runner:
    """Runs of one domain.

    Args:
        engine: Does it.
        domain: The domain.
        address_of: Gives the address of a node of any domain; None where it has none.
        steps: Folder in which processes of runs can write, for their steps; None where there is none.
    """

    def __init__(
        self,
        engine: Engine,
        domain: str,
        *,
        address_of: Callable[[str], str | None] = lambda _: None,
        steps: Path | None = None,
    ) -> None:
        self._engine = engine
        self._domain = domain
        self._address_of = address_of
        self._steps = steps
        self._lock = threading.RLock()
        self._records: dict[str, RunRecord] = {}
        self._work: dict[str, _Work] = {}
        self._barred: set[str] = set()
        self._past: list[str] = []
        self._changed: Callable[[], None] = lambda: None
        self._closing = threading.Event()

    def bind(self, changed: Callable[[], None]) -> None:
        """Whom to tell when something has come out."""
        self._changed = changed

    # What the controller asks for.

    def start(self, action: Action, holding: Holding | None) -> bool:
        """Accept a run, or say how it stands; nothing is begun before :meth:`go_on`.

        Returns:
            Whether the engine has taken it over.

        Raises:
            RefusalError: It cannot be run here; nothing of it is alive.
        """
        with self._lock:
            record = self._records.get(action.id)
            if record is None:
                record = self._accepted(action, holding)
                self._records[action.id] = record
                self._work[action.id] = _Work()
            if record.refusal is not None:
                outcome, name, detail = record.refusal
                raise RefusalError(name, detail, outcome)
            if record.phase in {Phase.STARTED, Phase.ENDED}:
                return True
            assert action.run is not None
            self._work[action.id].order = action.run
            return False

    def go_on(self) -> None:
        """Begin what was accepted."""
        with self._lock:
            for name, record in self._records.items():
                work = self._work[name]
                if record.phase is Phase.ACCEPTED and work.order is not None and not work.launched:
                    work.launched = True
                    self._thread(f"start {record.name}", self._start, record, work, work.order)

    def stop(self, job: str, attempt: int | None, reservations: Collection[str], cause: str | None) -> bool:
        """End runs of a job; tells whether nothing of them is alive."""
        with self._lock:
            self._barred |= set(reservations) - {record.reservation for record in self._records.values()}
            records = [
                record for record in self._records.values() if record.job == job and attempt in {None, record.attempt}
            ]
            # Who ends one attempt ends what others have left of it; who ends all has something against the job.
            return self._ended(records, cause or "it was to be stopped", None, own_fault=attempt is None)

    def clear(self, reservation: str, cause: str, grace_s: float | None = None) -> bool:
        """End what runs on what an action reserved; tells whether nothing of it is alive."""
        with self._lock:
            records = [record for record in self._records.values() if record.reservation == reservation]
            return self._ended(records, cause, grace_s)

    def clear_nodes(self, nodes: Collection[str], cause: str) -> bool:
        """End what runs on some nodes; tells whether nothing of it is alive."""
        with self._lock:
            records = [record for record in self._records.values() if not record.nodes.keys().isdisjoint(nodes)]
            return self._ended(records, cause, None)

    def clear_all(self, cause: str) -> bool:
        """End all runs; tells whether nothing of them is alive."""
        with self._lock:
            return self._ended(list(self._records.values()), cause, None)

    def grace_s(self, reservation: str) -> float:
        """Seconds that processes on what an action reserved have to end; zero where there are none."""
        with self._lock:
            records = (record for record in self._records.values() if record.reservation == reservation)
            return max((record.grace for record in records if not record.over), default=0.0)

    def given_back(self, reservation: str) -> None:
        """What an action reserved is free again."""
        with self._lock:
            self._barred.discard(reservation)
            for record in [entry for entry in self._records.values() if entry.reservation == reservation]:
                record.free = True
                self._remove_where_done_with(record)

    def to_json(self) -> dict[str, Any]:
        """All that has to outlive the process, as JSON values."""
        with self._lock:
            return {
                "records": [record.to_json() for record in self._records.values()],
                "barred": sorted(self._barred),
                "past": list(self._past),
            }

    def restore(self, state: Any, reservations: Collection[str]) -> None:
        """Go on from what :meth:`to_json` gave.

        Args:
            state: What it gave.
            reservations: Actions by which something is held.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        if not state:
            return
        with self._lock:
            for entry in state["records"]:
                record = RunRecord.from_json(entry)
                record.free = record.reservation not in reservations
                self._records[record.action] = record
                self._work[record.action] = _Work()
            self._barred = set(state["barred"])
            self._past = list(state["past"])

    # What the reporter asks for.

    @property
    def records(self) -> list[RunRecord]:
        """All runs that are not done with, in the order in which they came."""
        with self._lock:
            return list(self._records.values())

    def has_ended(self, record: RunRecord) -> None:
        """The engine says that nothing of a run is alive any more."""
        with self._lock:
            if record.over:
                return
            record.phase = Phase.ENDED
        self._changed()

    def is_reported(self, record: RunRecord) -> None:
        """The service has heard of a run's end, and of all that it printed."""
        with self._lock:
            record.reported = True
            self._remove_where_done_with(record)
        self._changed()

    def forget(self) -> None:
        """Have the engine forget the oldest of the runs that are done with."""
        with self._lock:
            old, self._past = self._past[:-PAST], self._past[-PAST:]
        if not old:
            return
        for name in old:
            try:
                self._engine.forget(name)
            except EngineError as error:
                logger.warning("what is left of run %s cannot be removed: %s", name, error.cause)
            if self._steps is not None:
                (self._steps / name).unlink(missing_ok=True)
        self._changed()

    def step_file(self, record: RunRecord) -> Path | None:
        """Where the processes of a run tell their steps; None where they have no file for that."""
        return None if self._steps is None else self._steps / record.name

    def end_strays(self) -> list[str]:
        """End runs of this domain of which the journal knows nothing, and name them.

        Raises:
            EngineError: The engine cannot tell, or they do not end.
        """
        with self._lock:
            known = {record.name for record in self._records.values()} | set(self._past)
        ours = f".{_hash(self._domain)[:6]}"
        strays = [name for name in self._engine.runs() if name not in known and name[:-8].endswith(ours)]
        ended = []
        for name in strays:
            if self._engine.status(name).state not in ENDED:
                logger.warning("run %s is ended: no devices are held for it", name)
                self._engine.stop(name)
                ended.append(name)
            self._engine.forget(name)
        return ended

    def close(self) -> None:
        """Ask the engine nothing any more, and tell nobody anything; what runs goes on."""
        self._changed = lambda: None
        self._closing.set()

    # Within.

    def _accepted(self, action: Action, holding: Holding | None) -> RunRecord:
        """The record of a new run.

        Raises:
            RefusalError: The action contradicts itself, or what is held.
        """
        order = action.run
        if action.job is None or action.reservation is None or order is None:
            raise RefusalError("invalid-body", "the action does not say what to run, for which job, or on what")
        if holding is None or holding.until is not None or holding.job not in {None, action.job}:
            raise RefusalError("unknown-reference", f"no devices are held for {action.job} by {action.reservation}")
        if holding.over or action.reservation in self._barred:
            raise RefusalError("stale-revision", f"what {action.reservation} holds is being given back")
        for record in self._records.values():
            if record.reservation == action.reservation:
                detail = f"{record.action} has run on what {action.reservation} holds"
                raise RefusalError("stale-revision", detail)
            if (record.job, record.attempt) == (action.job, order.attempt) and not record.over:
                detail = f"attempt {order.attempt} of {action.job} runs here already"
                raise RefusalError("stale-revision", detail)
        nodes, offset = _part(order, self._domain, holding)
        return RunRecord(
            action=action.id,
            reservation=action.reservation,
            job=action.job,
            attempt=order.attempt,
            name=name_of(self._domain, action.job, order.attempt, action.id),
            nodes=nodes,
            processes_per_node=order.workload.processes_per_node or 0,
            rank_offset=offset,
            grace=float(order.grace),
            fresh=True,
        )

    def _start(self, record: RunRecord, work: _Work, order: RunOrder) -> None:
        """Have the engine take a run over, or refuse it."""
        with work.starting:
            refusal = self._taken_over(record, work, order)
            if refusal is not None and not self._end(record, 0.0):
                return  # this process ends before; the action stays open, and comes again
            with self._lock:
                record.phase, record.refusal = (Phase.STARTED if refusal is None else Phase.REFUSED), refusal
                work.order = None  # it may hold secrets
        self._changed()

    def _taken_over(self, record: RunRecord, work: _Work, order: RunOrder) -> Refusal | None:
        """Have the engine take a run over; the problem where it will not. Something of it may be alive even so."""
        pause, begun = FIRST_PAUSE_S, time.monotonic()
        while True:
            try:
                if self._begin(work, self._run(record, order)):
                    return None
                detail = record.cause or "it was to end before it was started"
                refusal = ActionOutcome.refused, "stale-revision", detail
            except EngineError as error:
                logger.warning("run %s is not started: %s", record.name, error.cause)
                refusal = _refusal(error)
                if not error.transient or time.monotonic() - begun > TRANSIENT_S:
                    return refusal
            except RefusalError as error:
                return error.outcome, error.name, str(error)
            except Exception as error:  # an engine that breaks must not leave an action without an answer
                logger.exception("the engine broke while it was to start run %s", record.name)
                return ActionOutcome.refused, "internal", f"the engine broke: {error}"
            if work.ending or self._closing.wait(pause):
                return refusal
            pause = min(2 * pause, MAX_PAUSE_S)

    def _begin(self, work: _Work, run: Run) -> bool:
        """Have the engine start a run, unless it is to end before; tells whether it has.

        Raises:
            EngineError: It will not.
        """
        if not work.ending:
            self._engine.prepare(run)
        if not work.ending:
            self._engine.start(run)
            return True
        return False

    def _ended(
        self, records: Sequence[RunRecord], cause: str, grace_s: float | None, *, own_fault: bool = False
    ) -> bool:
        """Have runs end; tells whether nothing of them is alive."""
        for record in records:
            if record.over:
                continue
            work = self._work[record.action]
            grace = record.grace if grace_s is None else grace_s
            if record.cause is None:
                record.cause, record.own_fault = cause, own_fault
            deadline = time.monotonic() + grace
            if not work.ending or deadline < work.deadline - FIRST_PAUSE_S:
                work.ending, work.deadline = True, deadline
                self._thread(f"end {record.name}", self._end_in_time, record, work, grace)
        return all(record.over for record in records)

    def _end_in_time(self, record: RunRecord, work: _Work, grace: float) -> None:
        if self._end(record, grace, started=work.starting):
            self.has_ended(record)

    def _end(self, record: RunRecord, grace: float, started: "threading.Lock | None" = None) -> bool:
        """Ask the engine to end a run until it has; False where this process is to end before."""
        pause = FIRST_PAUSE_S
        while not self._closing.is_set():
            try:
                self._engine.stop(record.name, grace_seconds=grace)
                if started is None:
                    return True
                with started:  # what was being started is so by now, or never will be
                    started = None
                continue
            except EngineError as error:
                logger.warning("run %s does not end: %s", record.name, error.cause)
            except Exception:  # nobody else sees to it
                logger.exception("the engine broke while it was to end run %s", record.name)
            self._closing.wait(pause)
            pause = min(2 * pause, MAX_PAUSE_S)
        return False

    def _run(self, record: RunRecord, order: RunOrder) -> Run:
        """What the engine is to run.

        Raises:
            RefusalError: Where its processes are to meet cannot be told.
        """
        workload = order.workload
        own = {
            "KUAYU_DOMAIN": self._domain,
            "KUAYU_DOMAINS": ",".join(share.domain for share in order.shares),
            "KUAYU_SPLIT_MODE": order.split_mode.value,
            "KUAYU_RANK_OFFSET": str(record.rank_offset),
            "KUAYU_DOMAIN_WORLD_SIZE": str(len(record.ranks)),
        }
        if (steps := self.step_file(record)) is not None:
            own[STEP_FILE] = str(steps)
        return Run(
            name=record.name,
            job=record.job,
            attempt=record.attempt,
            command=tuple(workload.command),
            placements=tuple(Placement(node, devices) for node, devices in record.nodes.items()),
            image=workload.image,
            environment={variable.name: variable.value for variable in workload.environment or ()} | own,
            working_directory=workload.working_directory,
            code=workload.code,
            processes_per_node=record.processes_per_node,
            rendezvous=self._rendezvous(record, order),
            checkpoint=None if order.checkpoint is None else local_path(order.checkpoint),
            step=order.step,
            sync_period=order.sync_period or 0,
            grace_seconds=record.grace,
        )

    def _rendezvous(self, record: RunRecord, order: RunOrder) -> Rendezvous:
        """Where the processes of a job meet.

        Raises:
            RefusalError: The first domain of several says no address.
        """
        if len(order.shares) == 1:
            return Rendezvous()
        counts = [sum(_processes(share, order)) for share in order.shares]
        first = order.shares[0]
        node = (first.nodes or [])[0].node
        try:
            address = self._address_of(node)
        except Exception as error:  # whoever is asked may be away
            raise EngineError(f"the address of {node} cannot be asked for: {error}", transient=True) from error
        if address is None:
            detail = (
                f"node {node} of domain {first.domain}, where all would meet, is registered without an address "
                f"(extension {ADDRESS}); run that domain with --address HOST"
            )
            raise RefusalError("unknown-reference", detail)
        return Rendezvous(
            address=address,
            port=port_of(record.job, record.attempt),
            rank_offset=record.rank_offset,
            world_size=sum(counts),
        )

    def _remove_where_done_with(self, record: RunRecord) -> None:
        """Nothing is kept of a run of which all is told, once its devices are free; no other is to run on them."""
        if not record.free or not (record.reported or record.phase is Phase.REFUSED):
            return
        self._records.pop(record.action, None)
        self._work.pop(record.action, None)
        self._past.append(record.name)

    @staticmethod
    def _thread(name: str, work: Callable[..., None], *arguments: Any) -> None:
        threading.Thread(target=work, args=arguments, name=name, daemon=True).start()


def name_of(domain: str, job: str, attempt: int, action: str) -> str:
    """Name of a run: for people by job and attempt, and never again by domain and action."""
    return f"{job[:NAME_CHARACTERS]}.{attempt}.{_hash(domain)[:6]}{_hash(action)[:8]}"


def port_of(job: str, attempt: int) -> int:
    """Where the runs of an attempt in several domains meet; each of them comes to the same by itself."""
    return PORTS[int(_hash(f"{job}.{attempt}"), 16) % len(PORTS)]


def local_path(uri: str) -> str:
    """A path in place of a URI that names a file of this host; any other URI as it is."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in {"", "localhost"} else uri


def _part(order: RunOrder, domain: str, holding: Holding) -> tuple[dict[str, int], int]:
    """What of an order is this domain's: devices on each node in rank order, and ranks before them.

    Raises:
        RefusalError: The order says otherwise than what is held.
    """
    places = [place for place, share in enumerate(order.shares) if share.domain == domain]
    if len(places) != 1:
        raise RefusalError("invalid-body", f"{domain} stands {len(places)} times among the shares of the run")
    place = places[0]
    share = order.shares[place]
    named = {node.node: node.devices for node in share.nodes or ()} or dict(holding.nodes)
    if named != dict(holding.nodes) or sum(named.values()) != share.devices:
        raise RefusalError("invalid-body", "the run does not lie on the nodes that are held for it")
    return named, sum(sum(_processes(other, order)) for other in order.shares[:place])


def _processes(share: DomainShare, order: RunOrder) -> list[int]:
    """Processes on each node of a share.

    Raises:
        RefusalError: That cannot be told.
    """
    if share.nodes is None:
        if len(order.shares) == 1:
            return [share.devices]
        raise RefusalError("invalid-body", f"the order does not say on which nodes of {share.domain} the job runs")
    return [order.workload.processes_per_node or node.devices for node in share.nodes]


def _refusal(error: EngineError) -> Refusal:
    """Why an engine would not have a run: a lost node, and what may pass, are the domain's, else the run's."""
    detail = (f"{error.cause}; {error.hint}" if error.hint else error.cause)[:MAX_CHARACTERS]
    if error.transient or isinstance(error, NodeUnavailableError):
        return ActionOutcome.refused, "no-capacity", detail
    return ActionOutcome.failed, "invalid-body", detail


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
