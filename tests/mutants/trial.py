"""One run of the kill matrix: an implementation, and what the suite says of it.

1. What is wrong with a decision shows in answers that follow from their requests alone. Such a mutant is asked in this
   process (:mod:`conforming`), by the very checks that ask over HTTP, and judged once.
2. Everything else is served as a process, and tested over HTTP by the suite in another one, as a vendor's would be; so
   are the unchanged server and :data:`mutants.declaration.EDGES`, mutants of decisions that show that both ways agree.

Processes are forked from one that has imported everything, for a short run costs less than the imports.
"""

import json
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import psutil
from conforming import TENANTS, Fake, InProcess, Reply

from kuayu_conformance import corpora
from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.cli import nonce_of
from kuayu_conformance.episode import Episode, Request
from kuayu_conformance.run.judgement import Results, judge_check, judge_whole_run, read_declaration
from kuayu_conformance.run.plan import PREAMBLE, Plan, blank_settings
from kuayu_conformance.run.runner import Options, Progress, Run
from mutants.declaration import (
    BUSY,
    DECLARED,
    HELD,
    PLAYED,
    PLAYED_JOBS,
    PLAYED_OUT,
    PLAYED_SPARSE,
    PLAYED_WHOLE,
    RECKONED_LONG,
    WAITED_FOR,
    WATCHED,
    Mutant,
    with_oracle,
)
from mutants.oracle import Oracle
from mutants.page import Row
from mutants.serve import MINIMAL_SERVER, PUBLISHED, main, options_of

SEED = 1
NONCE = nonce_of(SEED, None)

PATIENCE = 60.0
"""Seconds to wait for one answer; with as many processes as there are processors, some wait long for their turn."""

LONGEST = 900.0
"""Seconds after which a run is taken to hang."""

ANSWERED_ALIKE = "COM-029"
"""Requirement that equal requests are answered alike."""

POLITE = 15
"""Niceness of runs in which no delays are measured."""

PATIENT = 7
"""Niceness of runs that wait for beats or scrapes. Ten that begin together keep all processors busy for seconds, and
telemetry that was played meanwhile was recognised seconds late."""


@dataclass(frozen=True)
class Trial:
    """A run to be made: an implementation, what it is held against, and whether that is over HTTP."""

    name: str
    requirements: frozenset[str]
    over_http: bool = True
    again: bool = False

    @property
    def plays(self) -> bool:
        """Whether telemetry is played in it."""
        return self.over_http and bool(self.requirements & PLAYED)

    @property
    def waits(self) -> bool:
        """Whether it mostly waits, and what it measures may be delays."""
        return self.over_http and bool(self.requirements & WAITED_FOR)

    @property
    def niceness(self) -> int:
        """How far it stands back for others: the more, the less a delay changes what it measures."""
        return 0 if self.plays else PATIENT if self.waits else POLITE

    @property
    def seconds(self) -> float:
        """How long it takes on a processor of its own, about."""
        if not self.waits:
            return self.processor_seconds
        return 125.0 if self.plays else 85.0 if self.requirements & (WAITED_FOR - PLAYED_JOBS) else 30.0

    @property
    def processor_seconds(self) -> float:
        """How much of a processor's time it takes, about."""
        heavy = self.requirements & (BUSY - WATCHED - PLAYED_JOBS)
        if not self.over_http:
            return 0.1 * len(self.requirements) + (25.0 if heavy & PLAYED_OUT else 5.0 if heavy else 0.0)
        asked = (8.0 if heavy & HELD else 0.0) + 3.0 * len(heavy - HELD)
        return (30.0 if self.plays else 3.0) + 0.2 * len(self.requirements) + asked

    def parts(self) -> list["Trial"]:
        """The runs that it consists of: one for each telemetry that is played, one that waits, and one that asks.

        The unchanged server is asked in this process for what is reckoned long: it is what mutants are compared with.
        """
        if not self.over_http:
            return [self]
        decided = self.requirements & RECKONED_LONG if self.name == MINIMAL_SERVER else frozenset[str]()
        asked = self.requirements - WAITED_FOR - decided
        kinds = (PLAYED_WHOLE, PLAYED_SPARSE, WAITED_FOR - PLAYED, asked)
        shares = [share for kind in kinds if (share := self.requirements & kind)]
        everywhere = self.requirements & {"COM-003"} if len(shares) > 1 else frozenset[str]()
        shares = [share for share in shares if share - everywhere]  # who asks nothing has nothing to look at
        by_profile = groupby(sorted(decided), key=lambda requirement: requirement.partition("-")[0])
        return [
            *(replace(self, requirements=share | everywhere) for share in shares),
            *(replace(self, requirements=frozenset(share), over_http=False) for _, share in by_profile),
        ]


def header_of(requirements: frozenset[str]) -> dict[str, Any]:
    """Header of a run in this process; each has the same names, so that the fake is asked the same."""
    run = {"profiles": [], "selection": sorted(requirements), "run_level": "quick", "nonce": NONCE, "run": "matrix"}
    return {**run, "other_tenant": True, "salted": True}


@cache
def conforming() -> Fake:
    """What all edits of this process are made of."""
    return Fake(Oracle(PUBLISHED, TENANTS))


@dataclass(frozen=True)
class Usual:
    """A check of the conforming fake: what it asks and is answered, and what comes of it."""

    exchanged: Sequence[tuple[Request, Reply]]
    results: Results


@cache
def plan_of(requirements: frozenset[str]) -> Plan:
    """The plan of a run in this process."""
    header = header_of(requirements)
    declaration = read_declaration(Episode(PREAMBLE, blank_settings(header), InProcess(conforming())))
    return Plan.from_header(header, declaration, corpora.shipped())


@cache
def usual(check: Check[Any]) -> Usual:
    """A check of the conforming fake."""
    plan, source = plan_of(frozenset(check.requirements)), InProcess(conforming())
    results = judge_check(check, Episode(check.name, plan.settings_of(check), source), plan, duration=None)
    return Usual(source.exchanged, results)


def _fake(mutant: Mutant) -> Fake:
    """What a mutant answers from; where it is no edit of answers, one that has been asked nothing yet."""
    return conforming() if mutant.edit else Fake(with_oracle(mutant.service)(PUBLISHED, TENANTS), remembers=False)


def in_process(trials: Sequence[Trial]) -> list[Row]:
    """Ask implementations in this process, one after the other, for they share what is usual."""
    return [_in_process(trial) for trial in trials]


def _in_process(trial: Trial) -> Row:
    """Ask an implementation in this process; the verdicts are those of the checks that a run over HTTP would make.

    What a check asks follows from what it was answered before. Where an implementation answers all that the conforming
    fake was asked as that did, the same comes of it, and the check is not made again; that takes for granted that it
    answers equal requests alike. One that never answers otherwise shows nothing, whatever it declares.
    """
    begun, processor = time.monotonic(), time.process_time()
    plan = plan_of(trial.requirements)
    if trial.name == MINIMAL_SERVER:
        found = [result for check in plan.checks() for result in usual(check).results.values()]
        rows = [result.model_dump(mode="json") for result in found if result.requirement in trial.requirements]
        return row_of(trial.name, rows, time.monotonic() - begun, time.process_time() - processor)
    mutant = DECLARED[trial.name]
    results, exchanges = Results(), list[tuple[str, Request, Answer]]()
    source = InProcess(_fake(mutant), mutant.edit)
    for check in plan.checks():
        before = None if ANSWERED_ALIKE in mutant.breaks else usual(check)
        if before and all(source.reply(request) == reply for request, reply in before.exchanged):
            results |= {name: result for name, result in before.results.items() if name in trial.requirements}
            continue
        # Not of the fake that was just asked, which holds what it was sent: no state would be one that it never saw.
        episode = Episode(check.name, plan.settings_of(check), InProcess(_fake(mutant), mutant.edit))
        results |= judge_check(check, episode, plan, duration=None)
        exchanges += [(check.name, *exchange) for exchange in episode.exchanges]
    if not exchanges:
        return Row(trial.name, {}, time.monotonic() - begun, "it answers all that is asked as the conforming fake does")
    results |= judge_whole_run(plan, tuple(exchanges), {})
    rows = [result.model_dump(mode="json") for result in results.values()]
    return row_of(trial.name, rows, time.monotonic() - begun, time.process_time() - processor)


def row_of(name: str, results: list[dict[str, Any]], seconds: float, processor_seconds: float) -> Row:
    """A row of the matrix, of results as they are in a report."""
    found = {row["requirement"]: row["verdict"] for row in results if row["verdict"] != "not-applicable"}
    reasons = {row["requirement"]: _reason(row) for row in results if row["verdict"] != "pass"}
    return Row(name, found, round(seconds, 1), reasons=reasons, processor_seconds=round(processor_seconds, 2))


def _reason(result: Mapping[str, Any]) -> str:
    """Why a requirement did not pass, with the first piece of evidence."""
    first: Mapping[str, Any] = next(iter(result.get("evidence") or ()), {})
    found = [f"{name}: {first[name]}" for name in ("expected", "found", "request", "answer") if first.get(name)]
    return "; ".join([str(result.get("reason") or ""), *found])[:1000]


@cache
def processes() -> ForkServerContext:
    """What processes of runs are forked from; they have neither more measurements than come with the suite, nor state.

    Sources: ``multiprocessing`` of the Python manual, *Contexts and start methods*; the server takes its search path
    from the environment.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["mutants.trial", "scipy.stats"])  # a check imports it when it needs it
    before = dict(os.environ)
    os.environ.pop("KUAYU_DATA", None)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return context


def over_http(trials: Sequence[Trial]) -> list[Row]:
    """Serve implementations, one after the other, and run the suite against each."""
    return [_over_http(trial) for trial in trials]


def _over_http(trial: Trial) -> Row:
    """Serve an implementation, run the suite against it, each as a process."""
    begun, processor = time.monotonic(), 0.0
    with _started(_serve, trial) as (server, printed):
        with open(printed.fileno(), closefd=False) as lines:
            target = lines.readline().rpartition(" ")[2].strip()
        with _started(_test, trial, target) as (_, results):
            try:
                found, processor = results.recv() if results.poll(LONGEST) else ("it took too long", 0.0)
                processor += sum(psutil.Process(server.pid).cpu_times()[:2])
            except EOFError:
                found = "it ended without a word"
    if isinstance(found, str):
        return Row(trial.name, {}, time.monotonic() - begun, found[-2000:])
    return row_of(trial.name, found, time.monotonic() - begun, processor)


@contextmanager
def _started(what: Any, trial: Trial, *arguments: str) -> Iterator[tuple[ForkServerProcess, Connection]]:
    """A process that does something with one end of a pipe, and the other end; it is ended when the block is left."""
    context = processes()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=what, args=(theirs, trial, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.terminate()
        process.join()
        ours.close()


def _serve(output: Connection, trial: Trial) -> None:
    os.nice(trial.niceness)
    os.dup2(output.fileno(), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    main(options_of(trial.name))


def _test(output: Connection, trial: Trial, target: str) -> None:
    """Send results as they are in a report, and the processor's seconds; or why there are none."""
    os.nice(trial.niceness)
    options = Options(
        target=target,
        nonce=NONCE,
        headers={"Authorization": "Bearer own"},
        other_headers={"Authorization": "Bearer other"},
        selection=tuple(sorted(trial.requirements)),
        timeout=PATIENCE,
        watch=False,  # runs beside this one keep the machine busy, and what is wrong is wrong all the same
    )
    try:
        with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
            report = Run(options, Path(folder), Progress()).execute()
        results = json.loads(report.model_dump_json(exclude_none=True))["results"]
        output.send((results, sum(resource.getrusage(resource.RUSAGE_SELF)[:2])))
    except Exception:  # noqa: BLE001 - whatever it is
        output.send((traceback.format_exc(), 0.0))
