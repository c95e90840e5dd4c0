"""Going on with a run that was broken off: what stands of it, what is taken up, what is begun anew.

1. What the target answered is in the transcript, and what the suite asks follows from its header. An episode that ended
   stands. One that did not is taken up in the middle where it asked for nothing but decisions, each of which follows
   from its request alone; one that made something at the target, looked at its state or at the clock is begun anew,
   under names of its own, once what it had made is removed.
2. The run that was broken off and what it is to be gone on with have to be the same: options, suite, data, target.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx

import kuayu_conformance
from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.episode import Episode, Said, instant
from kuayu_conformance.exporters.server import ExporterServer
from kuayu_conformance.run.judgement import plan_of, read_declaration
from kuayu_conformance.run.live import LiveSource, Misfit, Unlike, alike, remove
from kuayu_conformance.run.plan import PREAMBLE, Plan, blank_settings, lacking
from kuayu_conformance.run.replay import ReplaySource
from kuayu_conformance.run.runner import (
    SIDE_BY_SIDE,
    SIDE_BY_SIDE_IN_SMOKE,
    Options,
    Progress,
    Run,
    TargetUnreachable,
    as_made,
    environment,
    shown_target,
)
from kuayu_conformance.transcript import FILE_NAME, Event, Request, Transcript, TranscriptError, TranscriptWriter
from kuayu_schemas.models import ConformanceReport, RunLevel

MOVES = ("now", "revision")
"""Members of a declaration that change while a target runs."""


class CannotResume(Exception):
    """The run cannot be gone on with.

    Attributes:
        hint: What to do.
    """

    def __init__(self, cause: str, hint: str) -> None:
        """Say why, and what to do."""
        super().__init__(cause)
        self.hint = hint


class Contradiction(CannotResume):
    """An option was given that is not that of the run."""


def agreed(given: Options, header: Event) -> Options:
    """Options of the run; what is given and empty is taken from its header.

    Raises:
        Contradiction: An option is given that is another one there.
    """
    hint = "leave the option out, or begin another run in another folder"
    profiles = (*header["profiles"], *header.get("sub_profiles", ()))
    for option, now, then in (
        ("--nonce", given.nonce, header["nonce"]),
        ("--level", given.level, header["run_level"]),
        ("--profile", set(given.profiles), set(profiles)),
        ("--requirement", set(given.selection), set(header["selection"])),
        ("--exclude", _exclusions(given.excluded), _exclusions(header.get("excluded", {}))),
    ):
        if now and now != then:
            raise Contradiction(f"the run was begun with {option} {_said(then)}, not {_said(now)}", hint)
    if given.full_requests and not header.get("full_requests", False):
        raise Contradiction("the run was begun without --full-requests", hint)
    origin = header.get("origin", {})
    if given.origin and given.origin != origin:
        raise Contradiction("the run was not begun with that --challenge, or with another --witness", hint)
    if shown_target(given.target).rstrip("/") != header["target"].rstrip("/"):
        then = header["target"]
        raise Contradiction(f"the run was begun with --target {then}, not {shown_target(given.target)}", hint)
    if bool(given.other_headers) != header["other_tenant"]:
        then, now = ("with", "without") if header["other_tenant"] else ("without", "with")
        raise Contradiction(
            f"the run was begun {then} credentials of a second tenant, and is to go on {now} them",
            "give --other-tenant-header as then",
        )
    return replace(
        given,
        nonce=header["nonce"],
        level=header["run_level"],
        profiles=profiles,
        selection=tuple(header["selection"]),
        excluded=dict(header.get("excluded", {})),
        origin=origin,
        full_requests=header.get("full_requests", False),
    )


def _exclusions(excluded: Mapping[str, str]) -> set[str]:
    """Exclusions as they are typed."""
    return {f"{name}={reason}" for name, reason in excluded.items()}


def _said(value: Any) -> str:
    return value if isinstance(value, str) else ", ".join(sorted(value)) or "of none in particular"


def _names(data: Sequence[Mapping[str, str]]) -> str:
    return ", ".join(f"{used['name']} ({used['digest'][:15]}…)" for used in data) or "nothing"


def same_data(then: Sequence[Mapping[str, str]], now: Sequence[Mapping[str, str]]) -> None:
    """Hold the measurements and originals at hand against those that the run was begun with, by their digests.

    Raises:
        Contradiction: They differ.
    """
    if then != now:
        raise Contradiction(
            f"the run was begun with {_names(then)} beyond what comes with the suite, now there is {_names(now)}",
            "name the folder of then with --data or KUAYU_DATA",
        )


def same_suite(header: Event) -> None:
    """Hold this suite and where it runs against those that began the run.

    Raises:
        CannotResume: They differ.
    """
    without = "what extras are lacking"
    now = {"suite_version": kuayu_conformance.__version__, **environment(), without: sorted(lacking())}
    begun_without = {without: header.get("without", [])}
    then = {"suite_version": header.get("suite_version"), **header.get("environment", {}), **begun_without}
    for name, value in now.items():
        if then.get(name) != value:
            raise CannotResume(
                f"the run was begun by another suite or elsewhere: {name} was {then.get(name)}, is {value}",
                "a report says once by what it was made; go on as then, or begin a new run in another folder",
            )


def same_target(then: Answer, now: Answer) -> None:
    """Hold the declaration of now against that of then.

    Raises:
        CannotResume: They differ in more than clock and state.
    """
    for name, was, now_is in _differences(_declared(then), _declared(now)):
        raise CannotResume(
            f"the target is another one than that which the run was begun with: {name} was {was}, is {now_is}",
            "two versions cannot share a report; serve the one of then, or begin a new run in another folder",
        )


def same_epoch(then: Answer, now: Answer, looked: Collection[str]) -> bool:
    """Hold the epoch of now against that of then: a target that changed it has lost state.

    Checks that had begun and not ended (``looked``) and had made something there, or looked at its state, would go on
    with what is there no more. Decisions follow from their requests alone, so that they are the same in any epoch.

    Returns:
        Whether it is the same.

    Raises:
        CannotResume: It is another one, and there are such checks.
    """
    was, now_is = _epoch(then), _epoch(now)
    if was != now_is and looked:
        raise CannotResume(
            f"the target has lost state since: its epoch was {was}, is {now_is}, and {', '.join(sorted(looked))} had "
            "begun on that of then",
            "serve the target with its state of then (the reference: the same --database), or begin a new run in "
            "another folder",
        )
    return bool(was == now_is)


def _epoch(answer: Answer) -> Any:
    revision = answer.json.get("revision") if isinstance(answer.json, dict) else None
    return revision.get("epoch") if isinstance(revision, dict) else None


def _declared(answer: Answer) -> Mapping[str, Any]:
    body = answer.json
    members = {name: body[name] for name in body if name not in MOVES} if isinstance(body, dict) else {"body": body}
    return {"status": answer.status, **members}


def _differences(then: Mapping[str, Any], now: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any, Any]]:
    for name in [*then, *(name for name in now if name not in then)]:
        was, now_is = then.get(name), now.get(name)
        if isinstance(was, dict) and isinstance(now_is, dict):
            yield from _differences(was, now_is, f"{within}{name}.")
        elif was != now_is:
            yield f"{within}{name}", was, now_is


def standing(check: Check[Any], events: Sequence[Event]) -> int:
    """How many events stand of an episode that did not end.

    Of one that is taken up in the middle these are all, but the last where no answer came: what broke the run off may
    have kept it away.
    """
    return count_answered(events) if decided_alone(check, events) else 0


def decided_alone(check: Check[Any], events: Sequence[Event]) -> bool:
    """Whether an episode, as far as it came, asked for nothing but what follows from the request alone."""
    if check.recorded_times or check.background:
        return False
    return all(event["kind"] == "exchange" and alike(event["method"], event["path"]) for event in events)


def count_answered(exchanges: Sequence[Event]) -> int:
    """How many of some exchanges there are up to the last that was answered."""
    stand = len(exchanges)
    while stand and not exchanges[stand - 1]["status"]:
        stand -= 1
    return stand


def has_ended(events: Iterable[Event]) -> bool:
    """Whether an episode with these events ended."""
    return any(event["kind"] == "end" for event in events)


def created_paths(events: Iterable[Event]) -> Iterator[tuple[str, str]]:
    """Paths of what these exchanges made at the target, in order, with the tenant that made it."""
    for event in events:
        if event["kind"] == "exchange" and event["method"] == "PUT" and event["status"] < 300:  # noqa: PLR2004
            yield event["path"], event["tenant"]


class _LastRequest(ReplaySource):
    """Replays an episode that was broken off, and notes the request that it was broken off at."""

    request: Request | None = None

    def exchange(self, request: Request) -> Answer:
        """The recorded answer to the same request."""
        self.request = request
        answer = super().exchange(request)
        self.request = None
        return answer

    def repeat(self, said: Sequence[Said]) -> list[Answer] | None:  # noqa: ARG002 - all is to be asked one by one
        """Nothing is passed over."""
        return None


def broken_off_at(check: Check[Any], plan: Plan, events: Sequence[Event]) -> Request | None:
    """The request that an episode was to send next when it was broken off; the target may have carried it out."""
    source = _LastRequest(check.name, events)
    with contextlib.suppress(Exception):  # it ends as the transcript ends, in whatever the check makes of that
        check.observe(Episode(check.name, plan.settings_of(check), source))
    return source.request


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
        self._progress.cleaned(len(remove(client, credentials, [*self._left_at_target(left, plan)], listeners)))
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

    def _left_at_target(self, left: Sequence[Check[Any]], plan: Plan) -> Iterator[tuple[str, str]]:
        """What the run may have left at the target, in the order in which it was made."""
        yield from created_paths(self._begun.uncleared)
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
