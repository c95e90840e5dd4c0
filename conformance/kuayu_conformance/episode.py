"""An episode: one conversation with the target, live or replayed.

1. **Sources.** Checks see nothing else of the world. An episode hands out answers, clock readings, and what the suite's
   exporter saw; a *source* supplies them, from the network (:mod:`kuayu_conformance.run.live`) or from a transcript
   (:mod:`kuayu_conformance.run.replay`). What a check does must follow from the nonce and from these inputs alone.
2. **Segments.** Every run observes each check twice: as it happens, and from the transcript when the report is judged.
   A simulated window that is played with the service takes as long both times, though hardly anything comes of it but
   some figures. These are kept in the process with the questions and the answers that they came of, as digests: where
   the transcript holds just these questions and answers once more, the same comes of them. Where it holds anything
   else, or in another process, the segment is played.
"""

import hashlib
import json
import random
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeVar

from kuayu_conformance.answers import Answer, shorten
from kuayu_conformance.corpora import Table
from kuayu_conformance.kept_scores import KeptScores
from kuayu_conformance.streams import MEDIA_TYPE, Comment, StreamEvent
from kuayu_conformance.transcript import Request as Request  # noqa: PLC0414 - who drives an episode makes requests

MAX_EXCHANGES_KEPT = 1_000_000
"""Exchanges that are kept at most, less than a kB each; the oldest segments go first."""

PATIENCE = 30.0
"""Seconds after which a change of state must be visible (MET-005)."""
MOST_RETRIES = 5
"""Times that a request is sent again to a target that is overloaded."""
LONGEST_WAIT = 5.0
"""Seconds that are waited between."""


@dataclass(frozen=True, slots=True)
class Said:
    """A question and its answer, in brief.

    Attributes:
        request: The request without its body.
        digest: Of the request with its body, as in the transcript.
        words: The request for people.
        answer: Digest of all of the answer but when it came.
    """

    request: Request
    digest: str
    words: str
    answer: str


class PassingOver(ABC):
    """A source that holds recorded exchanges, if only as far as a run had come."""

    @abstractmethod
    def pass_over(self, exchanges: int, digest: str) -> list[tuple[Request, Answer]] | None:
        """Pass over so many exchanges of that :func:`digest_of`; None, and none is passed over, if others come."""


class Repeating(PassingOver):
    """A source that knows beforehand what will be asked and answered."""

    @abstractmethod
    def repeat(self, said: tuple[Said, ...]) -> list[Answer] | None:
        """Pass over just these exchanges and return their answers; None, and none is passed over, if others come."""


def answer_digest(answer: Answer) -> str:
    """Digest of all of an answer but when it came."""
    head = json.dumps([answer.status, sorted(answer.headers.items()), answer.failure], ensure_ascii=False)
    return hashlib.sha256(head.encode("utf-8", "surrogatepass") + b"\n" + answer.body).hexdigest()


def digest_of(said: Iterable[tuple[str, str]]) -> str:
    """Digest of exchanges, each given by the digests of its request and of its answer."""
    digest = hashlib.sha256()
    for request, answer in said:
        digest.update(f"{request} {answer}\n".encode())
    return digest.hexdigest()


class Segment:
    """A segment that is being played.

    Attributes:
        said: What was asked and answered in it so far.
        value: What came of it, once it is known to be worth keeping; it must never change.
    """

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.value: Any = None

    def keep(self, value: object) -> None:
        """Keep what came of it, which follows from the key of the segment and from the answers in it alone."""
        self.value = value


@dataclass(frozen=True, slots=True)
class Known:
    """A segment that was played.

    Attributes:
        said: What was asked and answered, in order.
        before: State of the episode's random numbers at the beginning.
        after: The same at the end.
        value: What came of it.
    """

    said: tuple[Said, ...]
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    value: Any


class SegmentStore:
    """Segments by key."""

    def __init__(self, most: int = MAX_EXCHANGES_KEPT) -> None:
        self._most, self._count = most, 0
        self._known: OrderedDict[Hashable, Known] = OrderedDict()
        self._lock = Lock()

    def put(self, key: Hashable, played: Known) -> None:
        """Keep a segment."""
        with self._lock:
            self._drop(key)
            self._known[key] = played
            self._count += len(played.said)
            while self._count > self._most:
                self._drop(next(iter(self._known)))

    def get(self, key: Hashable) -> Known | None:
        """A segment; None where it is not known."""
        with self._lock:
            return self._known.get(key)

    def _drop(self, key: Hashable) -> None:
        known = self._known.pop(key, None)
        self._count -= len(known.said) if known else 0


PLAYED = SegmentStore()
"""Those of this process."""


class SetUpFailure(Exception):
    """What a check needs beforehand could not be made; set-up never scores, so the check is not testable."""

    def __init__(self, what: str, answer: Answer) -> None:
        """Say what was being set up and what came back."""
        super().__init__(f"set-up failed: {what}: {answer.request} → {answer.brief}")
        self.answer = answer


class NotTestable(Exception):
    """The check cannot be carried out in this set-up."""

    def __init__(self, reason: str, hint: str) -> None:
        """Say why, and what would make it testable."""
        super().__init__(reason)
        self.hint = hint


class FellBehind(NotTestable):
    """A world that is played in real time had to wait for answers; whose delays these were is found out elsewhere.

    Attributes:
        most: How much it may wait, in words.
    """

    def __init__(self, reason: str, most: str) -> None:
        """Say how much it waited, and the most that it may."""
        super().__init__(reason, "run the suite nearer to the target, or on a machine with less else to do")
        self.most = most


class Source(Protocol):
    """Supplies what an episode learns from outside."""

    def exchange(self, request: Request) -> Answer:
        """Send the request and return the answer; a failure to connect is an answer too."""

    def now(self) -> float:
        """Unix time in seconds, to the millisecond."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""

    def publish(self, page: str, text: str) -> str:
        """Serve ``text`` as an exporter's page from now on; return its URL, or "" where the target cannot reach us."""

    def scrapes(self, page: str) -> Sequence[float]:
        """Unix times at which the page was fetched so far."""

    def open(self, request: Request) -> tuple[int, Answer]:
        """Open a stream; return its number in the episode and how it was answered, without its events."""

    def take(self, stream: int, seconds: float, at_least: int) -> "Taken":
        """What came on a stream since the last time; waits until there are so many events, or so long."""

    def hang_up(self, stream: int) -> None:
        """End a stream from this side."""

    def branch(self, label: str) -> "Source":
        """A source for a part of the episode that goes on beside others, and is recorded under a name of its own."""


@dataclass(frozen=True)
class Taken:
    """What came on a stream.

    Attributes:
        events: In order.
        comments: Comments that came meanwhile.
        ended: Whether the stream has ended from the other side.
    """

    events: tuple[StreamEvent, ...]
    comments: tuple[Comment, ...]
    ended: bool


class Stream:
    """A stream of server-sent events that an episode follows.

    Attributes:
        opening: How the request for it was answered.
        taken: Everything that was taken from it so far.
    """

    def __init__(self, source: Source, number: int, opening: Answer) -> None:
        """Follow the stream of that number."""
        self._source = source
        self._number = number
        self.opening = opening
        self.taken: list[Taken] = []

    def take(self, seconds: float, at_least: int = 1) -> tuple[StreamEvent, ...]:
        """Events since the last time; waits until there are ``at_least`` of them, at most so many seconds."""
        events = self._source.take(self._number, seconds, at_least)
        self.taken.append(events)
        return events.events

    @property
    def events(self) -> tuple[StreamEvent, ...]:
        """All events that were taken so far."""
        return tuple(event for batch in self.taken for event in batch.events)

    def hang_up(self) -> None:
        """End it from this side."""
        self._source.hang_up(self._number)


SizeT = TypeVar("SizeT")

NAME_DIGITS, MARK_DIGITS = 14, 4
"""Hexadecimal digits of a name, of which none of a million is likely to be given twice, and of the mark behind them."""


@dataclass(frozen=True)
class Settings:
    """What an episode may know of the run.

    Attributes:
        nonce: Seed of everything that the suite chooses.
        run: Name of this run alone; runs with the same nonce choose the same but never meet at the target.
        full: Whether the run is a full one.
        features: Options that the target declares.
        limits: Limits that the target declares.
        other_tenant: Whether credentials of a second tenant are at hand.
        tables: Measurements that the run may use; those that come with the suite and those of the data folder.
        traces: Job traces of the data folder that the run may use, by name, and that folder.
        profiles: Profiles that the target declares.
        operations: Operations that checks keep to, as ``METHOD /path``, where the run is about parts of profiles; None
            where it is about whole ones.
        score_store: Scores of windows that need not be played again.
        salt: What names follow from beside the nonce, so that those of an earlier run with it say nothing; empty in
            transcripts of before there was one, whose names also tell what they stand for.
        salts_all: Whether values follow from the salt as well: what has no figure need not be the same in two runs.
        keeps_truth: Whether the transcript keeps what was played.
        smoke: Whether the run is a smoke run, in which a figure has as many cases as its bound needs, and no more.
    """

    nonce: str
    run: str
    full: bool
    features: frozenset[str]
    limits: Mapping[str, float]
    other_tenant: bool
    tables: tuple[Table, ...] = ()
    traces: Mapping[str, Path] = field(default_factory=dict)
    profiles: frozenset[str] = frozenset()
    score_store: KeptScores = field(default_factory=KeptScores, compare=False)
    salt: str = ""
    salts_all: bool = False
    operations: frozenset[str] | None = None
    keeps_truth: bool = False
    smoke: bool = False

    def sized(self, *, smoke: SizeT, quick: SizeT, full: SizeT) -> SizeT:
        """The size that something has at the level of the run."""
        return full if self.full else smoke if self.smoke else quick

    def asks(self, operation: str, profile: str = "") -> bool:
        """Whether a check may call an operation of what it looks at.

        Args:
            operation: As ``METHOD /path``.
            profile: Profile without which nobody has to have it; empty where the check is about that profile.
        """
        if self.operations is not None:
            return operation in self.operations
        return not profile or profile in self.profiles


class Episode:
    """One conversation with the target.

    Attributes:
        name: Name of the episode, that of its check.
        settings: What may be known of the run.
        random: Random numbers that follow from the nonce and the name.
        naming: Those from which names are drawn, as far as these are not to be the same in two runs with one nonce.
        created: Paths of what was made, to be removed after the run, with the tenant that made it.
        exchanges: Every request, without its body, and its answer so far.
        patience: Seconds that are waited for a change to show; zero once that was in vain.
        behind: Why its world was given up, where it had to wait for answers.
        passed: Told how much of a long check is done: parts that are through, and all of them.
        truth: What was played and a figure needs, beside requests and answers, where the transcript keeps it.
    """

    def __init__(
        self, name: str, settings: Settings, source: Source, passed: Callable[[int, int], None] | None = None
    ) -> None:
        """Begin an episode; two episodes of one run never share names or random numbers."""
        self.name = name
        self.settings = settings
        self._source = source
        drawn = f"{settings.nonce}/{name}"
        seed = hashlib.sha256((self.salted(drawn) if settings.salts_all else drawn).encode()).hexdigest()
        self.random = random.Random(seed)  # noqa: S311 - reproducible by design, not secret
        salted = hashlib.sha256(f"names of {self.salted(drawn)}".encode()).hexdigest()
        self.naming = random.Random(salted) if settings.salt else self.random  # noqa: S311 - as above
        self._prefix = "k" + hashlib.sha256(f"{settings.run}/{name}".encode()).hexdigest()[:10]
        self.created: list[tuple[str, str]] = []
        self.exchanges: list[tuple[Request, Answer]] = []
        self.patience = PATIENCE
        self.behind: FellBehind | None = None
        self._segment: Segment | None = None
        self._branch = ""
        self.truth: list[Any] = []
        self.passed = passed or (lambda _done, _all: None)

    def name_of(self, label: str) -> str:
        """Identifier of the run's own for something to be made; the label tells things apart, and nobody sees it."""
        if not self.settings.salt:
            return f"{self._prefix}-{label}"
        drawn = hashlib.sha256(f"{self._prefix}/{label}".encode()).hexdigest()[:NAME_DIGITS]
        return drawn + self._mark_of(drawn)

    def is_of_this_run(self, name: str) -> bool:
        """Whether any episode of this run gave a name; where runs have no salt, whether any run did."""
        if not self.settings.salt:
            head = name.partition("-")[0]
            return len(head) == len(self._prefix) and head[0] == self._prefix[0]
        drawn, mark = name[:NAME_DIGITS], name[NAME_DIGITS:]
        return mark == self._mark_of(drawn)

    def _mark_of(self, drawn: str) -> str:
        """Last digits of a name, by which the run knows its own, and nobody else does."""
        run = self.settings.salt.partition("/")[0]
        return hashlib.sha256(f"{run} names {drawn}".encode()).hexdigest()[:MARK_DIGITS]

    def urn_of(self, tier: str, label: str) -> str:
        """Compute identifier of the run's own."""
        issuer = self.name_of("issuer") if self.settings.salt else "conformance"
        return f"urn:kuayu:{tier}:{issuer}:{self.name_of(label)}"

    def salted(self, seed: str) -> str:
        """A seed of names; not the same in two runs with one nonce."""
        return f"{seed}/{self.settings.salt}" if self.settings.salt else seed

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content: bytes | None = None,
        media_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        tenant: str = "own",
    ) -> Answer:
        """Send a request: ``body`` as JSON, or ``content`` as it is.

        Whatever a PUT makes is noted for removal after the run.
        """
        data = content if content is not None else b"" if body is None else json.dumps(body).encode()
        head = dict(headers or {})
        if body is not None or content is not None:
            head["content-type"] = media_type
        request = Request(method, path, head, data, tenant)
        answer = self._source.exchange(request)
        if self._branch:
            answer = replace(answer, branch=self._branch)
        bare = replace(request, body=b"")  # bodies of a long episode would fill the memory
        self.exchanges.append((bare, answer))
        if self._segment is not None:
            self._segment.said.append(Said(bare, request.digest, answer.request, answer_digest(answer)))
        if method == "PUT" and answer.status < 300:  # noqa: PLR2004 - any success
            self.created.append((path, tenant))
        return answer

    def again(self, key: Hashable) -> Any:
        """What came of a segment of this episode when it happened; None where it has to be played.

        It is passed over where the transcript holds the very questions and answers that there were then.
        """
        known = PLAYED.get(self._key(key)) if isinstance(self._source, Repeating) else None
        if known is None or not isinstance(self._source, Repeating) or self.random.getstate() != known.before:
            return None
        answers = self._source.repeat(known.said)
        if answers is None:
            return None
        self.random.setstate(known.after)
        self.exchanges += zip((entry.request for entry in known.said), answers, strict=True)
        return known.value

    def keep_truth(self, make: Callable[[], Any]) -> None:
        """Keep what was played, a JSON value, for whoever judges the run without the suite; made only if it is kept."""
        if self.settings.keeps_truth:
            self.truth.append(make())

    @property
    def recorded(self) -> bool:
        """Whether all answers are recorded ones."""
        return isinstance(self._source, Repeating)

    def branch(self, label: str) -> "Episode":
        """A part of this episode that may go on beside others, as long as none needs what came of another.

        Its exchanges are counted from zero, and recorded under the name of this episode and the label.
        """
        part = Episode(f"{self.name}/{label}", self.settings, self._source.branch(label))
        part._branch = part.name
        return part

    def join(self, branch: "Episode") -> None:
        """What was asked in a branch that has ended belongs to this episode from now on."""
        self.exchanges += branch.exchanges
        self.created += branch.created

    def pass_over(self, exchanges: int, digest: str) -> bool:
        """Pass over recorded exchanges of that digest; false where others were recorded, or none are."""
        passed_exchanges = self._source.pass_over(exchanges, digest) if isinstance(self._source, PassingOver) else None
        self.exchanges += passed_exchanges or ()
        return passed_exchanges is not None

    @contextmanager
    def segment(self, key: Hashable) -> Iterator[Segment]:
        """Play a segment in which nothing is done but ask, so that it need not be played again to judge the record.

        What came of it is kept where ``keep`` is called of the segment.
        """
        assert self._segment is None, "segments do not hold others"
        before, self._segment = self.random.getstate(), Segment()
        try:
            yield self._segment
            segment = self._segment
            if segment.said and segment.value is not None and not isinstance(self._source, Repeating):
                PLAYED.put(self._key(key), Known(tuple(segment.said), before, self.random.getstate(), segment.value))
        finally:
            self._segment = None

    def _key(self, key: Hashable) -> Hashable:
        settings = self.settings
        return settings.run, settings.nonce, settings.full, settings.smoke, self.name, key

    def follow(self, path: str, *, after: str = "", tenant: str = "own") -> Stream:
        """Open a stream of events, behind the event with the identifier ``after`` where one is named."""
        headers = {"accept": MEDIA_TYPE} | ({"last-event-id": after} if after else {})
        request = Request("GET", path, headers, b"", tenant)
        number, opening = self._source.open(request)
        if opening.status != 200 or opening.media_type != MEDIA_TYPE:  # noqa: PLR2004 - a stream has no body to judge
            self.exchanges.append((request, opening))
        return Stream(self._source, number, opening)

    def ask_patiently(
        self, method: str, path: str, body: object = None, *, content: bytes | None = None, tenant: str = "own"
    ) -> Answer:
        """Send a request again where the target is overloaded, after the time that it names, a few times at most."""
        answer = self.ask(method, path, body, content=content, tenant=tenant)
        for _ in range(MOST_RETRIES):
            if answer.problem != "overloaded":
                break
            self.sleep(min(LONGEST_WAIT, _seconds(answer.headers.get("retry-after"))))
            answer = self.ask(method, path, body, content=content, tenant=tenant)
        return answer

    def set_up(self, method: str, path: str, body: object = None, *, tenant: str = "own") -> Answer:
        """Send a request that must succeed before the check can begin.

        Raises:
            SetUpFailure: It did not.
        """
        answer = self.ask_patiently(method, path, body, tenant=tenant)
        if not 200 <= answer.status < 300:  # noqa: PLR2004 - any success
            raise SetUpFailure("a resource that the check needs could not be made or read", answer)
        return answer

    def now(self) -> float:
        """Unix time in seconds, to the millisecond."""
        return self._source.now()

    def sleep(self, seconds: float) -> None:
        """Let time pass; on replay none passes."""
        self._source.sleep(seconds)

    def publish(self, page: str, text: str) -> str:
        """Serve ``text`` as an exporter's page from now on and return its URL.

        Raises:
            NotTestable: The target cannot reach the suite.
        """
        url = self._source.publish(f"{self.name_of(page)}", text)
        if not url:
            raise NotTestable(
                "the target cannot reach the exporter that the suite plays",
                "give --callback-host with an address of this machine that the target can reach",
            )
        return url

    def scrapes(self, page: str) -> tuple[float, ...]:
        """Unix times at which the page was fetched so far."""
        return tuple(self._source.scrapes(self.name_of(page)))


def instant(seconds: float) -> str:
    """Unix time as an RFC 3339 instant with milliseconds."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{_second(whole)}.{milliseconds:03d}Z"


@lru_cache(1000)
def _second(seconds: int) -> str:
    """A whole second; thousands of samples are of the same."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def seconds_of(text: object) -> float | None:
    """RFC 3339 instant in Z as Unix time, or None where it is none."""
    if not isinstance(text, str) or not text.endswith("Z"):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _seconds(text: str | None) -> float:
    """Seconds of a header Retry-After; one where it states none."""
    try:
        return max(0.0, float(text or 1.0))
    except ValueError:
        return 1.0


def describe(request: Request) -> str:
    """A request for people."""
    text = f"{request.method} {request.path}"
    body = shorten(request.body[:1000].decode("utf-8", "replace"), 300)
    return f"{text} {body}".strip()
