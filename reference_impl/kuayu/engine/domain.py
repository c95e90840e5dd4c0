"""Everything that runs in a domain and asks a service for work: nothing has to be let in.

It registers the domain with its nodes, sends signs of life and telemetry of the host that it is on where that is a node
of it, holds devices as it is asked, has an engine run jobs on them, and tells how they stand. Each of these goes on
while the service is away.

    controller  asks for actions, and answers them      runner    has the engine start and end runs
    reporter    sends states, steps and lines of runs   sender    sends signs of life, with steps
    collector   sends telemetry                     node watch  says which nodes of a cluster take no runs
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from kuayu.client import Client, ClientError, NotFoundError
from kuayu.engine.collector import Collector, merged
from kuayu.engine.controller import AllocationHooks, DomainController
from kuayu.engine.heartbeats import HeartbeatSender
from kuayu.engine.holdings import Holding, Journal, Pools
from kuayu.engine.host import Host, seconds_up
from kuayu.engine.node_watch import NodeWatch
from kuayu.engine.run_reports import RunReporter
from kuayu.engine.runner import ADDRESS, Runner
from kuayu.engine.runs.protocol import Engine
from kuayu.jobs.accelerators import accelerator_name
from kuayu_schemas.models import Domain, JobState, Node, NodeRecord

logger = logging.getLogger(__name__)

BEAT_S: Final = 0.5
"""Seconds between signs of life (clause Faults)."""

BEATS_A_SECOND: Final = 20
"""Numbers of beats go up by so many a second while a host is up, so that whoever goes on counts above what was sent."""

BEAT_PATIENCE_S: Final = 2.0
OBSERVE_S: Final = 0.9
PATIENCE_S: Final = 10.0
REPORT_PATIENCE_S: Final = 5.0
FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 10.0
LOCAL_POLL_S: Final = 0.25
REMOTE_POLL_S: Final = 2.0
"""Seconds between two looks at runs: of this host, and of a cluster that is asked over a network."""

NODES_POLL_S: Final = 5.0
"""Seconds between two looks at the nodes of a cluster, which may be thousands and come in one answer."""

SAMPLES: Final = 5_000
"""Samples that wait for the service at most."""

FLUSH_S: Final = 5.0
"""How long runs are told of after their end when the domain is shut down."""


@dataclass(frozen=True)
class DomainSettings:
    """What a domain is.

    Attributes:
        url: Base URL of the service.
        token: Bearer token; None where it asks for none.
        domain: The domain.
        nodes: Its nodes as they are registered.
        addresses: By which nodes of other domains reach some of them.
        journal: File with what is promised, held and run.
        host: This host, where it is one of the nodes, which sends signs of life and telemetry then.
        host_node: Which node that is.
        steps: Folder for the steps of runs, which all nodes see; None where there is none.
        confirm_leases: Whether the service is asked, after this was away for longer than leases, if it still counts on
            what runs; where one program runs both, it was away as well.
    """

    url: str
    token: str | None
    domain: str
    nodes: Sequence[Node]
    journal: Path
    addresses: Mapping[str, str] = field(default_factory=dict)
    host: Host | None = None
    host_node: str = ""
    steps: Path | None = None
    confirm_leases: bool = False


def pools_of(nodes: Sequence[Node]) -> Pools:
    """Devices of each node, by kind of accelerator, as whoever knows the registration calls it."""
    pools: dict[str, dict[str, int]] = {}
    for node in nodes:
        for device in node.devices or ():
            kind = pools.setdefault(accelerator_name(device.vendor, device.model), {})
            kind[node.id] = kind.get(node.id, 0) + 1
    return pools


class RunningDomain:
    """A domain that runs jobs for a service; a context manager.

    Args:
        settings: What it is.
        engine: Runs jobs.
        hooks: Are told what is held and fenced.
    """

    def __init__(self, settings: DomainSettings, engine: Engine, hooks: AllocationHooks | None = None) -> None:
        """Read the journal, and end runs of which it knows nothing, where the engine is this domain's alone.

        Raises:
            JournalError: The journal cannot be used.
            EngineError: What runs here cannot be told, or ended.
        """
        self._settings = settings
        self._engine = engine
        self._stopped, self._registered = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        with ExitStack() as stack:
            journal = Journal(settings.journal, settings.domain)
            stack.callback(journal.close)
            self._client = stack.enter_context(self._connect(PATIENCE_S))
            self._asking = stack.enter_context(self._connect(PATIENCE_S))
            self._telling = stack.enter_context(self._connect(PATIENCE_S))
            if settings.steps is not None:
                settings.steps.mkdir(parents=True, exist_ok=True)
            self.runner = Runner(engine, settings.domain, address_of=self._address_of, steps=settings.steps)
            self.controller = DomainController(
                self._client,
                settings.domain,
                pools_of(settings.nodes),
                journal=journal,
                hooks=hooks,
                runs=self.runner,
                confirm=self._is_counted_on if settings.confirm_leases else None,
            )
            if engine.name == "local":
                self.runner.end_strays()
            poll_s = LOCAL_POLL_S if engine.name == "local" else REMOTE_POLL_S
            self._reporter = RunReporter(
                *(self._telling, settings.domain, engine, self.runner),
                poll_s=poll_s,
                disown=lambda record: self.controller.disown(record.reservation),
            )
            self._resources = stack.pop_all()

    def run(self, control: Callable[[DomainController], None]) -> None:
        """Register and do what is asked until ``control`` returns, which has the controller run.

        Raises:
            ClientError: The service will not talk to this domain.
            JournalError: What is promised cannot be kept.
        """
        self._start("registration", self._register)
        self._start("run reports", lambda: self._reporter.run(self._stopped))
        if self._engine.name != "local":
            self._start("node watch", self._watch_nodes)
        if self._settings.host is not None:
            self._start("signs of life", self._beat)
            self._start("telemetry", self._observe)
        control(self.controller)

    def end_runs(self, cause: str, given_up: Callable[[], bool]) -> bool:
        """End all runs and tell of it; whether that was done before it was given up. Nothing is told after it."""
        self.runner.clear_all(cause)
        self._stop_telling()
        while not self.runner.clear_all(cause):
            if given_up():
                return False
            self._reporter.poll()
            time.sleep(LOCAL_POLL_S)
        return self._reporter.flush(FLUSH_S) or not given_up()

    def close(self) -> None:
        """Let go of everything; what runs goes on."""
        self._stop_telling()
        self.runner.close()
        self._resources.close()
        let_go = getattr(self._engine, "close", None)  # some hold a connection to their cluster
        if callable(let_go):
            let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self, timeout_s: float) -> Client:
        return Client(self._settings.url, token=self._settings.token, timeout_s=timeout_s, attempts=1)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=work, name=name, daemon=True))
        self._threads[-1].start()

    def _stop_telling(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _address_of(self, node: str) -> str | None:
        """The address that a node of any domain is registered with; None where it has none.

        Raises:
            ClientError: The service is away.
        """
        own = self._settings.addresses.get(node)
        if own is not None:
            return own
        try:
            address = (self._asking.node(node).extensions or {}).get(ADDRESS)
        except NotFoundError:
            return None
        return address if isinstance(address, str) else None

    def _is_counted_on(self, holding: Holding) -> bool:
        """Whether the attempt for which something is held goes on, as the service has it.

        Raises:
            ClientError: The service is away.
        """
        if holding.job is None:
            return False
        try:
            job = self._asking.job(holding.job)
        except NotFoundError:
            return False
        attempts = {record.attempt for record in self.runner.records if record.reservation == holding.action}
        goes_on = job.state in {JobState.starting, JobState.running} and not job.cancelling
        return goes_on and attempts <= {job.attempt}

    def _register(self) -> None:
        """Register the domain and its nodes, once the service is there."""
        pause = FIRST_PAUSE_S
        with self._connect(PATIENCE_S) as client:
            while not self._stopped.is_set():
                try:
                    self._put_all(client)
                    self._registered.set()
                except ClientError as error:
                    if not error.transient:
                        logger.warning("the domain cannot be registered: %s; %s", error.cause, error.hint)
                        return
                    if pause == MAX_PAUSE_S:
                        logger.warning("the domain is not registered yet: %s", error.cause)
                else:
                    return
                self._stopped.wait(pause)
                pause = min(2 * pause, MAX_PAUSE_S)

    def _put_all(self, client: Client) -> None:
        settings = self._settings
        try:
            client.domain(settings.domain)
        except NotFoundError:
            client.put_domain(Domain(id=settings.domain))
        for node in settings.nodes:
            known: NodeRecord | None = None
            with suppress(NotFoundError):
                known = client.node(node.id)
            address = settings.addresses.get(node.id)
            own = {} if known is None else dict(known.extensions or {})
            own |= {} if address is None else {ADDRESS: address}
            client.put_node(merged(node.model_copy(update={"extensions": own or None}), known))

    def _await_registration(self) -> None:
        """Wait until the service knows the node, or we are stopped: before that it refuses what it is told of it."""
        while not self._stopped.is_set() and not self._registered.wait(LOCAL_POLL_S):
            pass

    def _beat(self) -> None:
        settings = self._settings
        self._await_registration()
        node = settings.host_node
        with self._connect(BEAT_PATIENCE_S) as client:
            steps = {node: self._reporter.progress_on(node)}
            sender = HeartbeatSender(client, [node], steps=steps, notify=_say, first=int(seconds_up() * BEATS_A_SECOND))
            try:
                sender.run(self._stopped, BEAT_S)
            except ClientError as error:
                logger.warning("no signs of life are sent any more: %s; %s", error.cause, error.hint)

    def _watch_nodes(self) -> None:
        self._await_registration()
        with self._connect(REPORT_PATIENCE_S) as client:
            watch = NodeWatch(client, self._engine, self._settings.domain, self._settings.nodes)
            while not self._stopped.is_set():
                watch.poll()
                self._stopped.wait(NODES_POLL_S)

    def _observe(self) -> None:
        settings = self._settings
        self._await_registration()
        assert settings.host is not None
        with self._connect(REPORT_PATIENCE_S) as client:
            collector = Collector(
                client, settings.host, domain=settings.domain, node=settings.host_node, capacity=SAMPLES
            )
            stopped = threading.Event()  # its own: the collector sets it where it cannot go on
            self._start_ending(stopped)
            try:
                collector.run(stopped, period_s=OBSERVE_S)
            except ClientError as error:
                logger.warning("no telemetry is sent any more: %s; %s", error.cause, error.hint)

    def _start_ending(self, stopped: threading.Event) -> None:
        """Have an event set when the domain is stopped."""

        def pass_on() -> None:
            self._stopped.wait()
            stopped.set()

        threading.Thread(target=pass_on, name="end of telemetry", daemon=True).start()


def _say(what: str, hint: str) -> None:
    logger.warning("%s%s", what, f"; {hint}" if hint else "")
