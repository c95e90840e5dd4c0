"""Stretches of an episode that were played in this process already, and need not be played a second time.

Every run observes each check twice: as it happens, and from the transcript when the report is judged. A simulated
window that is played with the service takes as long both times, though hardly anything comes of it but some figures.
These are kept here with the questions and the answers that they came of, as digests: where the transcript holds just
these questions and answers once more, the same comes of them. Where it holds anything else, or in another process, the
stretch is played.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.transcript import Request

MAX_EXCHANGES_KEPT = 1_000_000
"""Exchanges that are kept at most, less than a kB each; the oldest stretches go first."""


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
    """A stretch that is being played.

    Attributes:
        said: What was asked and answered in it so far.
        value: What came of it, once it is known to be worth keeping; it must never change.
    """

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.value: Any = None

    def keep(self, value: object) -> None:
        """Keep what came of it, which follows from the key of the stretch and from the answers in it alone."""
        self.value = value


@dataclass(frozen=True, slots=True)
class Known:
    """A stretch that was played.

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


class Stretches:
    """Stretches by key."""

    def __init__(self, most: int = MAX_EXCHANGES_KEPT) -> None:
        self._most, self._count = most, 0
        self._known: OrderedDict[Hashable, Known] = OrderedDict()
        self._lock = Lock()

    def put(self, key: Hashable, played: Known) -> None:
        """Keep a stretch."""
        with self._lock:
            self._drop(key)
            self._known[key] = played
            self._count += len(played.said)
            while self._count > self._most:
                self._drop(next(iter(self._known)))

    def get(self, key: Hashable) -> Known | None:
        """A stretch; None where it is not known."""
        with self._lock:
            return self._known.get(key)

    def _drop(self, key: Hashable) -> None:
        known = self._known.pop(key, None)
        self._count -= len(known.said) if known else 0


PLAYED = Stretches()
"""Those of this process."""
