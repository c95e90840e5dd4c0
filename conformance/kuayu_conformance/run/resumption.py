"""Going on with a run that was broken off: what stands of it, what is taken up, what is begun anew.

What the target answered is in the transcript, and what the suite asks follows from its header. An episode that ended
stands. One that did not is taken up in the middle where it asked for nothing but decisions, each of which follows from
its request alone; one that made something at the target, looked at its state or at the clock is begun anew, under names
of its own, once what it had made is removed.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.episode import Episode, instant
from kuayu_conformance.exporters.server import ExporterServer
from kuayu_conformance.run.agreement import CannotResume, agreed, same_data, same_epoch, same_suite, same_target
from kuayu_conformance.run.judgement import plan_of, read_declaration
from kuayu_conformance.run.live import LiveSource, remove
from kuayu_conformance.run.plan import PREAMBLE, Plan, blank_settings
from kuayu_conformance.run.progress import broken_off_at, count_answered, decided_alone, has_ended, made, standing
from kuayu_conformance.run.replay import ReplaySource
from kuayu_conformance.run.resumed_source import Misfit, Unlike
from kuayu_conformance.run.runner import (
    SIDE_BY_SIDE,
    SIDE_BY_SIDE_IN_SMOKE,
    Options,
    Progress,
    Run,
    TargetUnreachable,
    as_made,
    shown_target,
)
from kuayu_conformance.run.transcript_writer import TranscriptWriter
from kuayu_conformance.transcript import FILE_NAME, Event, Transcript, TranscriptError
from kuayu_schemas.models import ConformanceReport, RunLevel


def unfinished(folder: Path) -> Transcript | None:
    """The transcript of a run in a folder that was broken off after the target had answered, if there is one."""
    with contextlib.suppress(TranscriptError):
        begun = Transcript.read(folder, broken_off=True)
        if not begun.footer and any(event["status"] for event in begun.episodes.get(PREAMBLE, ())):
            return begun
    return None


class ResumedRun(Run):
    """A run that was broken off, gone on with."""

    def __init__(self, given: Options, folder: Path, progress: Progress) -> None:
        """Read what there is of the run; an option that is empty is taken from it.

        Raises:
            CannotResume: There is no such run in the folder, it cannot be read, or it was another run.
        """
        if not (folder / FILE_NAME).is_file():
            raise CannotResume(f"{folder} holds no transcript", "leave --resume out to begin a run in that folder")
        try:
            self._begun = Transcript.read(folder, broken_off=True)
        except TranscriptError as error:
            raise CannotResume(str(error), "begin a new run in another folder") from error
        if self._begun.wrong:
            raise CannotResume(
                f"{folder / FILE_NAME} is not as the suite wrote it: {self._begun.wrong}",
                "put the file back as it was, or begin a new run in another folder",
            )
        same_suite(self._begun.header)
        super().__init__(agreed(given, self._begun.header), folder, progress)
        same_data(self._begun.header["data"], self._data())
        if not (self.complete or unfinished(folder)):
            raise CannotResume("the target had answered nothing yet", "leave --resume out to begin the run")
        self._at_it: set[str] = set()

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be asked."""
        return bool(self._begun.footer)

    def execute(self) -> ConformanceReport:
        """Ask what has not been answered yet and return the report, which is judged from the whole transcript.

        Raises:
            TargetUnreachable: Nothing answers at the target.
            TargetGone: The target takes no connections any more.
            CannotResume: The target is another one by now, what was recorded is not what the suite asks, or another
                process writes to the transcript.
            KeyboardInterrupt: The run was called off.
        """
        if self.complete:
            return self._judged()
        try:
            transcript = TranscriptWriter.go_on(self._folder, self._begun)
        except TranscriptError as error:
            raise CannotResume(str(error), "wait until that run has ended") from error
        try:
            return self._carry_out(transcript, partial(self._taken_up, transcript))
        except Misfit as misfit:
            hint = "the suite or the transcript was changed; begin a new run in another folder"
            raise CannotResume(str(misfit), hint) from misfit

    def _taken_up(self, transcript: TranscriptWriter, client: httpx.Client, exporter: ExporterServer) -> Plan:
        plan = plan_of(self._begun, self._options.data)
        number = len(self._begun.resumptions) + 1
        seen: list[Event] = []
        credentials, listeners = self._options.credentials, self._options.listeners
        parts = (f"resumption {number}", client, credentials, exporter, _EventBuffer(seen), self._stop)
        source = LiveSource(*parts, listeners=listeners, full_requests=self._options.full_requests)
        declaration = read_declaration(Episode(PREAMBLE, blank_settings(self._begun.header), source))
        if declaration.failure:
            raise TargetUnreachable(f"{shown_target(self._options.target)} does not answer: {declaration.failure}")
        same_target(_declaration_of(self._begun), declaration)
        left = self._left_of(plan)
        same = same_epoch(_last_declaration_of(self._begun), declaration, self._looked_at_state(left))
        stand = {check.name: standing(check, known) for check in left if (known := self._events_of(check))}
        ahead = [check.name for check in as_made(left)]
        most = SIDE_BY_SIDE_IN_SMOKE if plan.level is RunLevel.smoke else SIDE_BY_SIDE
        self._at_it = {*ahead[:most], *(check.name for check in left if check.background)}
        self._progress.cleaned(len(remove(client, credentials, [*self._made(left, plan)], listeners)))
        self._progress.resumed(len(plan.checks()) - len(left), stand)
        begun = instant(declaration.started)
        across = {} if same else {"across_epochs": True}
        transcript.write({"kind": "resumed", "at": begun, "broken_off_at": self._broken_off_at(), **across})
        for event in seen:
            transcript.write(event)
        return plan

    def _events_of(self, check: Check[Any]) -> Sequence[Event]:
        return self._begun.episodes.get(check.name, ())

    def _standing(self, transcript: TranscriptWriter, branch: str) -> Sequence[Event]:
        recorded = self._begun.episodes.get(branch, ())
        stand = count_answered(recorded)
        if stand < len(recorded):
            transcript.write({"kind": "cut", "episode": branch, "stand": stand})
        return recorded[:stand]

    def _looked_at_state(self, left: Sequence[Check[Any]]) -> set[str]:
        """Checks that had begun, had not ended, and asked for more than decisions."""
        return {
            check.name
            for check in left
            for name, events in self._begun.episodes.items()
            if (name == check.name or name.startswith(f"{check.name}/")) and events and not decided_alone(check, events)
        }

    def _left_of(self, plan: Plan) -> list[Check[Any]]:
        return [check for check in plan.checks() if not has_ended(self._events_of(check))]

    def _made(self, left: Sequence[Check[Any]], plan: Plan) -> Iterator[tuple[str, str]]:
        """What the run may have left at the target, in the order in which it was made."""
        yield from made(self._begun.uncleared)
        for check in left:
            known = self._events_of(check)
            if known and not standing(check, known):
                request = broken_off_at(check, plan, known)
                if request is not None and request.method == "PUT":
                    yield request.path, request.tenant

    def _make(
        self,
        check: Check[Any],
        plan: Plan,
        exporter: ExporterServer,
        transcript: TranscriptWriter,
        known: Sequence[Event] | None = None,
    ) -> None:
        recorded = self._events_of(check)
        if recorded or check.name in self._at_it:
            known = recorded[: standing(check, recorded)]
        try:
            if known is not None and len(known) < len(recorded):
                plan = _cut(check, plan, len(known), transcript)
            super()._make(check, plan, exporter, transcript, known)
        except Unlike as unlike:
            if unlike.request.method == "PUT":
                episode = next(episode for episode in reversed(self._episodes) if episode.name == check.name)
                episode.created.append((unlike.request.path, unlike.request.tenant))
            super()._make(check, _cut(check, plan, 0, transcript), exporter, transcript)

    def _broken_off_at(self) -> str:
        """When the last answer had come."""
        answered = [event["started"] + event["seconds"] for event in self._begun.uncleared if "started" in event]
        if answered:
            return instant(max(answered))
        if self._begun.resumptions:
            return str(self._begun.resumptions[-1]["at"])
        return str(self._begun.header["started_at"])


def _cut(check: Check[Any], plan: Plan, stand: int, transcript: TranscriptWriter) -> Plan:
    """Say that only so many events of an episode stand; the plan, by which one without any gives other names."""
    transcript.write({"kind": "cut", "episode": check.name, "stand": stand})
    if stand:
        return plan
    return replace(plan, begun_anew={**plan.begun_anew, check.name: plan.begun_anew.get(check.name, 0) + 1})


class _EventBuffer:
    """Keeps events until it is known whether the run goes on."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events

    def write(self, event: Event) -> None:
        """Keep one event."""
        self._events.append(event)


def _declaration_of(begun: Transcript, episode: str = PREAMBLE) -> Answer:
    source = ReplaySource(episode, begun.episodes[episode])
    return read_declaration(Episode(PREAMBLE, blank_settings(begun.header), source))


def _last_declaration_of(begun: Transcript) -> Answer:
    """That with which it was last gone on with, for its state is the one that is there since."""
    last = f"resumption {len(begun.resumptions)}"
    return _declaration_of(begun, last if last in begun.episodes else PREAMBLE)
