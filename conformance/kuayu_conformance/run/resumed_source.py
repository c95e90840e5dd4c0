"""An episode that is taken up in the middle: what was recorded of it first, then the target."""

from collections.abc import Callable, Sequence

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.kit.requests import DECISIONS
from kuayu_conformance.episode import Source, Taken
from kuayu_conformance.run.live import LiveSource
from kuayu_conformance.run.replay import ReplaySource
from kuayu_conformance.segments import PassingOver
from kuayu_conformance.transcript import Event, Request, TranscriptError

ANSWERED_ALIKE = {"GET /v1/conformance", *DECISIONS}
"""Operations whose answers follow from the request and the version of the target alone, as far as checks look."""


def alike(method: str, path: str) -> bool:
    """Whether a request would be answered alike, whenever it is sent."""
    return f"{method} {path}" in ANSWERED_ALIKE


class Misfit(BaseException):
    """What was recorded is not what the suite asks; like :class:`Unlike`, no fault of a check."""


class Unlike(BaseException):
    """An episode was broken off at a request whose answer does not follow from it alone, so it is to be begun anew.

    Attributes:
        request: Which it was; the target may have carried it out.
    """

    def __init__(self, request: Request) -> None:
        """Name the request."""
        super().__init__(f"{request.method} {request.path}")
        self.request = request


class TakenUp(PassingOver):
    """Gives an episode the recorded answers as long as there are any, then those of another source."""

    def __init__(
        self,
        episode: str,
        events: Sequence[Event] | None,
        live: LiveSource,
        standing: Callable[[str], Sequence[Event]] = lambda _: (),
    ) -> None:
        """Answer from ``events``, which are exchanges, then from ``live``, whose events are numbered behind them.

        ``events`` is None of an episode that had not begun; ``standing`` gives those that stand of a branch, by its
        name.
        """
        self._episode = episode
        self._standing = standing
        self._branches: list[TakenUp] = []
        self._broken_off = events is not None
        self._recorded = ReplaySource(episode, events or ())
        self._left = len(events or ())
        self._live = live
        self._waited = 0.0

    @property
    def waited(self) -> float:
        """Seconds that recorded answers took, those of branches included."""
        return self._waited + sum(branch.waited for branch in self._branches)

    def branch(self, label: str) -> "TakenUp":
        """What was recorded of a branch, then the network."""
        name = f"{self._episode}/{label}"
        events = self._standing(name)
        source = TakenUp(name, events or None, self._live.branch(label, len(events)), self._standing)
        self._branches.append(source)
        return source

    @property
    def _source(self) -> Source:
        return self._recorded if self._left else self._live

    def exchange(self, request: Request) -> Answer:
        """The recorded answer to the same request, or that of the target.

        Raises:
            Misfit: Another request was recorded.
            Unlike: The request at which the record ends may have been carried out, and would be answered otherwise.
        """
        if not self._left:
            if self._broken_off and not alike(request.method, request.path):
                raise Unlike(request)
            self._broken_off = False
            return self._live.exchange(request)
        try:
            answer = self._recorded.exchange(request)
        except TranscriptError as error:
            raise Misfit(str(error)) from error
        self._left -= 1
        self._waited += answer.seconds
        return answer

    def pass_over(self, exchanges: int, digest: str) -> list[tuple[Request, Answer]] | None:
        """The next recorded exchanges, if they are of that digest; else None."""
        passed = self._recorded.pass_over(exchanges, digest) if exchanges <= self._left else None
        if passed is not None:
            self._left -= exchanges
            self._waited += sum(answer.seconds for _, answer in passed)
        return passed

    def now(self) -> float:
        """Unix time in seconds, to the millisecond."""
        return self._source.now()

    def sleep(self, seconds: float) -> None:
        """Let time pass, unless it has passed already."""
        self._source.sleep(seconds)

    def publish(self, page: str, text: str) -> str:
        """Serve an exporter's page to the target."""
        return self._source.publish(page, text)

    def scrapes(self, page: str) -> Sequence[float]:
        """Times at which the target fetched the page."""
        return self._source.scrapes(page)

    def open(self, request: Request) -> tuple[int, Answer]:
        """Open a stream."""
        return self._source.open(request)

    def take(self, stream: int, seconds: float, at_least: int) -> Taken:
        """What came on a stream since the last time."""
        return self._source.take(stream, seconds, at_least)

    def hang_up(self, stream: int) -> None:
        """End a stream from this side."""
        self._source.hang_up(stream)
