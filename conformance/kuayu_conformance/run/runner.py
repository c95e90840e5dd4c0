"""A live run: order, background episodes, progress, clean-up."""

import contextlib
import ipaddress
import os
import platform
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

import kuayu_conformance
from kuayu_conformance import corpora
from kuayu_conformance.check import Check
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.exporters.server import ExporterServer
from kuayu_conformance.kept_scores import KeptScores
from kuayu_conformance.run.judgement import (
    Results,
    attributed,
    duration_of,
    excused,
    judge,
    judge_check,
    read_declaration,
)
from kuayu_conformance.run.live import Credentials, Interruption, Listener, LiveSource, TakenUp, TargetGone, remove
from kuayu_conformance.run.machine import MachineWatch, short_pauses
from kuayu_conformance.run.plan import (
    PREAMBLE,
    Plan,
    blank_settings,
    lacking,
    original_entries,
    originals_at_hand,
    traces_of,
)
from kuayu_conformance.transcript import Event, Transcript, TranscriptError, TranscriptWriter
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, OriginKind, RunLevel

FIGURES_DEPEND_ON = ("numpy", "scipy", "pydantic", "jsonschema-rs", "httpx")

SIDE_BY_SIDE, SIDE_BY_SIDE_IN_SMOKE = 2, 3
"""Heavy checks that are made at a time where no verdict rests on the clock: while the target computes for one,
the suite goes on with the other. Those of a smoke run are short, and a third fills the gaps."""

KEPT_CONNECTIONS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=3.0)
"""Connections that are kept for the next request, for less long than servers keep theirs (uvicorn, Node.js: 5 s): one
that meets a server about to hang up is answered by nobody, which is no fault of the target (RFC 9112, 9.3.1)."""

AWAY = 30.0
"""Seconds after which a target that takes no connections any more is taken to be gone, and the run is broken off."""


class TargetUnreachable(Exception):
    """Nothing answers at the target."""


@dataclass(frozen=True)
class Options:
    """A run as the command line asks for it.

    Attributes:
        target: Base URL of the implementation.
        headers: Headers to send, such as credentials.
        other_headers: Headers of a second tenant; empty where there is none.
        profiles: Profiles and sub-profiles to test; empty for all that are declared.
        selection: Requirements to test; empty for all.
        excluded: Requirements that are not tested, each with the reason why.
        level: ``quick`` or ``full``.
        nonce: Seed of everything that the suite chooses.
        timeout: Seconds to wait for one answer.
        callback_host: Address of this machine as the target reaches it; "" to find out for targets on this machine.
        data: Folder of further tables of measurements; None for those that come with the suite only.
        listeners: Told of each exchange with the target while it goes on; nothing of theirs is in the transcript.
        watch: Whether it is looked at what else keeps this machine busy, which delays are not blamed on the target for.
        origin: Who chose the nonce, or runs the suite, as the header has it; empty where nobody else but who runs it.
        full_requests: Whether the transcript keeps requests and what was played, so that a program that has nothing of
            the suite can judge the run.
    """

    target: str
    nonce: str
    headers: Mapping[str, str] = field(default_factory=dict)
    other_headers: Mapping[str, str] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    selection: tuple[str, ...] = ()
    excluded: Mapping[str, str] = field(default_factory=dict)
    level: str = "quick"
    timeout: float = 10.0
    callback_host: str = ""
    data: Path | None = None
    listeners: tuple[Listener, ...] = ()
    watch: bool = True
    origin: Mapping[str, Any] = field(default_factory=dict)
    full_requests: bool = False

    @property
    def credentials(self) -> Credentials:
        """Headers for each tenant."""
        return {"own": self.headers, "other": self.other_headers, "none": {}}

    def exporter_host(self) -> str:
        """Where the suite's exporter is served: as asked for, on loopback for a target on loopback, else nowhere."""
        if self.callback_host:
            return self.callback_host
        host = urlsplit(self.target).hostname or ""
        try:
            return "127.0.0.1" if host == "localhost" or ipaddress.ip_address(host).is_loopback else ""
        except ValueError:
            return ""


class Progress:
    """Told how a run goes; this one says nothing."""

    def planned(self, checks: list[Check[Any]]) -> None:
        """These checks will be made."""

    def resumed(self, ended: int, stand: Mapping[str, int]) -> None:
        """So many checks had ended; of each that had begun and had not, so many exchanges stand."""

    def started(self, check: Check[Any]) -> None:
        """A check begins."""

    def passed(self, check: str, done: int, of: int) -> None:
        """So many parts of a long check are through."""

    def finished(self, check: Check[Any], results: Results) -> None:
        """A check has ended with these results."""

    def cleaned(self, left: int) -> None:
        """Clean-up is done; so many things could not be removed."""

    def judging(self) -> None:
        """The transcript is complete, and judged from now on."""


def environment() -> dict[str, Any]:
    """Where the suite runs, as class Environment of the model."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "processors": os.cpu_count() or 1,
        "packages": list(_installed(FIGURES_DEPEND_ON)),
    }


def _installed(packages: Iterable[str]) -> Iterator[str]:
    """Those of some packages that are installed, with their versions."""
    for name in packages:
        with contextlib.suppress(PackageNotFoundError):
            yield f"{name} {version(name)}"


def shown_target(target: str) -> str:
    """The target without credentials that its URL may hold."""
    parts = urlsplit(target)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _called_off(why: str) -> Event:
    return {"kind": "called off", "finished_at": instant(time.time()), "why": why}


def as_made(checks: Sequence[Check[Any]]) -> list[Check[Any]]:
    """Checks that are not made in the background, in the order in which they are made."""
    ahead = [check for check in checks if not check.background]
    return sorted(ahead, key=lambda check: (check.heavy, check.heavy and not check.recorded_times))


class Run:
    """One live run against one target, written to a folder.

    Attributes:
        cleaned: Whether a run that was called off has removed what it had made at the target.
    """

    def __init__(self, options: Options, folder: Path, progress: Progress) -> None:
        """Prepare a run; nothing is sent yet."""
        self._options = options
        self._folder = folder
        self._progress = progress
        self._stop = threading.Event()
        self.cleaned = False
        self._machine = MachineWatch(options.target)
        self._episodes: list[Episode] = []

    def execute(self) -> ConformanceReport:
        """Carry the run out and return the report, which is judged from the transcript just written.

        Raises:
            TargetUnreachable: Nothing answers at the target.
            TargetGone: The target takes no connections any more; whoever goes on with the run removes what it had made.
            KeyboardInterrupt: The run was called off; what it had made at the target was removed, if ``cleaned``.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        header = self._header()
        transcript = TranscriptWriter.begin(self._folder, header)

        def plan(client: httpx.Client, exporter: ExporterServer) -> Plan:
            return self._preamble(client, exporter, transcript, header)

        return self._carry_out(transcript, plan)

    def _header(self) -> dict[str, Any]:
        options = self._options
        return {
            "spec_version": registers.SPEC_VERSION,
            "suite_version": kuayu_conformance.__version__,
            "target": shown_target(options.target),
            "profiles": [name for name in options.profiles if name not in registers.sub_profiles()],
            "sub_profiles": [name for name in options.profiles if name in registers.sub_profiles()],
            "selection": list(options.selection),
            "excluded": dict(options.excluded),
            "run_level": options.level,
            "nonce": options.nonce,
            "run": secrets.token_hex(8),
            "other_tenant": bool(options.other_headers),
            "salted": True,
            "without": sorted(lacking()),
            "started_at": instant(time.time()),
            "environment": environment(),
            "data": self._data(),
            "origin": dict(options.origin) or {"kind": OriginKind.self_asserted.value},
            **({"full_requests": True} if options.full_requests else {}),
        }

    def _carry_out(
        self, transcript: TranscriptWriter, plan: Callable[[httpx.Client, ExporterServer], Plan]
    ) -> ConformanceReport:
        """Make a plan and carry it out; a transcript without a footer is one that can be gone on with."""
        exporter = ExporterServer(self._options.exporter_host())
        watched = self._machine if self._options.watch else contextlib.nullcontext()
        with (
            contextlib.closing(transcript),
            contextlib.closing(exporter),
            self._client() as client,
            short_pauses(),
            watched,
        ):
            run_plan = plan(client, exporter)
            try:
                with contextlib.closing(KeptScores.begin(self._folder)) as score_store:
                    self._episodes_of(replace(run_plan, score_store=score_store), exporter, transcript, client)
            except TargetGone as gone:
                self._stop.set()
                transcript.write(_called_off(f"the target took no connections any more ({gone})"))
                raise
            except BaseException as error:
                self._stop.set()
                try:
                    if not self._clean(client):
                        transcript.write({"kind": "cleaned"})
                        self.cleaned = True
                finally:  # who is impatient calls off the removal too, and is owed the report of what there is
                    if isinstance(error, KeyboardInterrupt):
                        transcript.write(_called_off("it was called off"))
                raise
            footer = {"finished_at": instant(time.time())}
            self._clean(client)
            transcript.write({"kind": "footer", **footer})
        return self._judged()

    def _clean(self, client: httpx.Client) -> int:
        """Remove what was made at the target, and say what could not be; how many things are left."""
        left = self._removed(client, self._episodes)
        self._progress.cleaned(left)
        return left

    def _removed(self, client: httpx.Client, episodes: Sequence[Episode]) -> int:
        """Remove what episodes that are over made at the target; how many things are left, to be tried again."""
        for episode in episodes:
            episode.created[:] = remove(client, self._options.credentials, episode.created, self._options.listeners)
        return sum(len(episode.created) for episode in episodes)

    def so_far(self) -> ConformanceReport | None:
        """The report of a run that was called off, judged by what had ended; None where nothing had."""
        with contextlib.suppress(TranscriptError):
            transcript = Transcript.read(self._folder)
            if any(duration_of(events) is not None for events in transcript.episodes.values()):
                return self._judge(transcript)
        return None

    def _judged(self) -> ConformanceReport:
        return self._judge(Transcript.read(self._folder))

    def _judge(self, transcript: Transcript) -> ConformanceReport:
        """The report; scores that this run has written itself need no spot checks."""
        self._progress.judging()
        score_store = KeptScores.of(self._folder, spot_checks=0)
        # Of longer runs there is too much to hand from process to process, and it is told how far they are judged.
        smoke = transcript.header["run_level"] == RunLevel.smoke.value
        processes = (os.cpu_count() or 1) if smoke else 1
        return judge(transcript, self._options.data, self._progress.passed, score_store, processes)

    def _data(self) -> list[dict[str, str]]:
        """Tables and originals beyond those that come with the suite, with their digests."""
        return [
            *({"name": table.name, "digest": table.digest} for table in self._further_tables()),
            *original_entries(self._traces()),
        ]

    def _further_tables(self) -> list[corpora.Table]:
        own = {table.name for table in corpora.shipped()}
        return [table for table in corpora.available(self._options.data) if table.name not in own]

    def _traces(self) -> dict[str, Path]:
        return originals_at_hand(traces_of(RunLevel(self._options.level)), self._options.data)

    @cached_property
    def _authorities(self) -> ssl.SSLContext:
        """Whom clients trust; all the same, since it takes a while to read them."""
        return httpx.create_ssl_context(trust_env=False)

    def _client(self) -> httpx.Client:
        return httpx.Client(
            base_url=self._options.target.rstrip("/"),
            timeout=self._options.timeout,
            limits=KEPT_CONNECTIONS,
            follow_redirects=False,
            trust_env=False,
            verify=self._authorities,
        )

    def _preamble(
        self, client: httpx.Client, exporter: ExporterServer, transcript: TranscriptWriter, header: Mapping[str, Any]
    ) -> Plan:
        parts = (PREAMBLE, client, self._options.credentials, exporter, transcript, self._stop)
        full = self._options.full_requests
        source = LiveSource(*parts, listeners=self._options.listeners, full_requests=full)
        declaration = read_declaration(Episode(PREAMBLE, blank_settings(header), source))
        if declaration.failure:
            raise TargetUnreachable(f"{shown_target(self._options.target)} does not answer: {declaration.failure}")
        plan = Plan.from_header(header, declaration, corpora.available(self._options.data))
        return replace(plan, traces=self._traces())

    def _left_of(self, plan: Plan) -> list[Check[Any]]:
        """Checks of a plan that are to be made."""
        return plan.checks()

    def _standing(self, transcript: TranscriptWriter, branch: str) -> Sequence[Event]:  # noqa: ARG002 - of those resumed
        """What stands of a branch that had begun before."""
        return ()

    def _make(
        self,
        check: Check[Any],
        plan: Plan,
        exporter: ExporterServer,
        transcript: TranscriptWriter,
        known: Sequence[Event] | None = None,
    ) -> None:
        """Make a check, of whose exchanges some are known already where it had begun, and remove what it made.

        What is left of one check is there for the next: a job that waits decides what is due to others, and nodes that
        are silent keep a target busy.
        """
        with self._client() as client:
            live = LiveSource(
                *(check.name, client, self._options.credentials, exporter, transcript, self._stop),
                patience=AWAY,
                begin=len(known or ()),
                listeners=self._options.listeners,
                full_requests=self._options.full_requests,
            )
            source = TakenUp(check.name, known, live, partial(self._standing, transcript))
            begun = Episode(check.name, plan.settings_of(check), source, partial(self._progress.passed, check.name))
            self._episodes.append(begun)
            self._progress.started(check)
            clock, since = time.perf_counter(), time.monotonic()
            try:
                results = judge_check(check, begun, plan, duration=None)
            except Interruption:
                return
            finally:
                live.close()
            seconds = round(time.perf_counter() - clock + source.waited, 3)
            if begun.truth:
                transcript.write({"kind": "truth", "episode": check.name, "value": begun.truth})
            load = self._machine.since(since)
            if load is not None:
                load = replace(load, round_trip=live.round_trip)
                transcript.write({"kind": "machine", "episode": check.name, **load.event()})
                results = attributed(excused(results, check, begun, load, self._options.target), begun, load)
            transcript.write({"kind": "end", "episode": check.name, "seconds": seconds})
            self._progress.finished(check, results)
            self._removed(client, (begun,))

    def _episodes_of(
        self, plan: Plan, exporter: ExporterServer, transcript: TranscriptWriter, client: httpx.Client
    ) -> None:
        checks = self._left_of(plan)
        self._progress.planned(checks)
        background, ahead = [check for check in checks if check.background], as_made(checks)
        with ThreadPoolExecutor(max_workers=max(1, len(background)), thread_name_prefix="episode") as pool:
            waiting: list[Future[None]] = [
                pool.submit(self._make, check, plan, exporter, transcript) for check in background
            ]
            try:
                for check in ahead:
                    if not check.heavy:
                        self._make(check, plan, exporter, transcript)
                for future in waiting:
                    future.result()
                self._make_heavy(
                    [check for check in as_made(checks) if check.heavy], plan, exporter, transcript, client
                )
            except BaseException:
                self._stop.set()
                raise

    def _make_heavy(
        self,
        checks: Sequence[Check[Any]],
        plan: Plan,
        exporter: ExporterServer,
        transcript: TranscriptWriter,
        client: httpx.Client,
    ) -> None:
        """Make checks that keep the target or this machine busy: side by side where no verdict rests on the clock.

        What is timed is made alone: the suite's own next check would be in its way. It comes before what is not, so
        that whoever makes a long run has to leave the machine alone for the first part of it, and no more. What could
        not be removed when its check was over is tried again first.
        """
        self._removed(client, tuple(self._episodes))
        for check in checks:
            if check.recorded_times:
                self._make(check, plan, exporter, transcript)
        smoke = plan.level is RunLevel.smoke
        make = partial(self._make, plan=plan, exporter=exporter, transcript=transcript)
        untimed = [partial(make, check) for check in checks if not check.recorded_times]
        self._side_by_side(untimed, SIDE_BY_SIDE_IN_SMOKE if smoke else SIDE_BY_SIDE)

    def _side_by_side(self, tasks: Sequence[Callable[[], object]], most: int) -> None:
        """Do all of it, so much at a time."""
        with ThreadPoolExecutor(most, thread_name_prefix="episode") as pool:
            try:
                for future in as_completed([pool.submit(task) for task in tasks]):
                    future.result()
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
