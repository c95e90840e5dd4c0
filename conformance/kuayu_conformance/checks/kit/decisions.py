"""What checks of pure decisions share: requests, what is wrong on purpose, what holds of every answer, and tables.

A decision service answers from its request alone (COM-028, COM-029), so that a check of one draws requests, asks them,
and holds each answer against its own request. The profiles IDX, DEM, FCT, SCH and RES do so, each with requests and
invariants of its own; what they do alike stands here.

1. **Requests.** Names and revisions that tell nothing, drawn from the random numbers of an episode; an exchange with a
   service, and whether its answer is what the published operation answers with (:mod:`kuayu_conformance.contract`).
2. **Invariants.** Requests that are hard to answer, each by itself, and what deviates in the answers (RES-012, RES-014
   to RES-016).
3. **Windows.** A service that is asked again and again while a simulated world goes on: it is given up after too many
   questions in vain, and of what deviates the first few answers are kept as evidence.
4. **Reports.** Cells, tables and lines that stand beside a verdict.

Nothing here knows a threshold. Random numbers are drawn in the order in which requests are made, so that what a target
is asked follows from the nonce and from its answers alone.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from kuayu_conformance.answers import Answer
from kuayu_conformance.contract import operation_of
from kuayu_conformance.episode import Episode, SetUpFailure
from kuayu_conformance.findings import Claim, Finding, holds
from kuayu_schemas import schema
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

if TYPE_CHECKING:
    from kuayu_schemas import documents

Json = dict[str, Any]
"""JSON that a check puts together or takes apart without regard to its class: members that a request is varied by, or
states that are patched. What is a document of a class has its type (:mod:`kuayu_schemas.documents`)."""

RequestT = TypeVar("RequestT", bound=Mapping[str, Any])
"""Class of a request."""
Builder = TypeVar("Builder")
"""What draws the parts of a profile's requests."""

Key = TypeVar("Key", bound=Hashable)
Played = TypeVar("Played")
"""What comes of a window."""

_OK = 200
_EARLIEST, _SPAN = 1_800_000_000, 200_000_000
"""Unix times in which requests are placed, 2027 to 2033: no clock is asked."""
_ENDLESS = re.compile(rb"\d{300}")
"""Digits of a number that no double holds (the greatest has 309)."""


@dataclass(frozen=True)
class DecisionExchange:
    """A request and its answer, which is what the operation answers with."""

    body: Mapping[str, Any]
    answer: Answer

    @property
    def decision(self) -> Any:
        """The answer as JSON, of the class that the operation answers with; whoever asked knows which."""
        return self.answer.json


def ask(episode: Episode, path: str, body: Mapping[str, Any]) -> DecisionExchange:
    """Ask for a decision.

    Raises:
        SetUpFailure: The answer is none.
    """
    exchange = DecisionExchange(body, episode.set_up("POST", path, body))
    if not is_answer(path, exchange.answer):
        raise SetUpFailure(f"the answer is no valid {answer_class(path)}", exchange.answer)
    return exchange


def is_answer(path: str, answer: Answer) -> bool:
    """Whether an answer is what the operation answers with, without numbers that no double holds."""
    valid = answer.status == _OK and schema.is_valid(answer_class(path), answer.json, reader=True)
    return valid and not _ENDLESS.search(answer.body)


@cache
def answer_class(path: str) -> str:
    """Class of the model that the published operation behind a path answers with.

    Raises:
        ValueError: No operation that can be posted to has the path, or its answer is not of one class.
    """
    operation = operation_of("POST", path)
    (name,) = operation.answers[_OK] if operation else ()
    return name


def name(chance: Random) -> str:
    """A name that nothing else has."""
    return f"{chance.getrandbits(56):014x}"


def revision(chance: Random) -> "documents.Revision":
    """Revision of a state that a request was made from, in a life of its own."""
    return {"epoch": name(chance), "number": chance.randrange(1_000_000)}


def named_revision(episode: Episode, label: str) -> "documents.Revision":
    """Revision of a state that a request was made from, in the life that the episode has a label for."""
    return {"epoch": episode.name_of(label), "number": episode.random.randrange(1_000_000)}


def present(chance: Random) -> int:
    """Present instant of a request, Unix time in whole seconds."""
    return _EARLIEST + chance.randrange(_SPAN)


def near(value: float, expected: float, relative: float = 0.01) -> bool:
    """Whether a figure is within a share of the one that is expected."""
    return abs(value - expected) <= relative * abs(expected)


SHOWN = 3
"""Answers that are not sound, and faults of each, that are kept to be told."""

TIMES_QUICK, TIMES_FULL = 1, 10
"""How often each hard request is drawn."""


@dataclass(frozen=True)
class CaseVerdict:
    """A hard request and what is wrong with its answer; nothing where it is sound.

    Attributes:
        what: What is hard about it, in words.
        body: The request.
        valid: Whether the answer is what the operation answers with.
        faults: The first of them.
        answer: The exchange.
    """

    what: str
    body: Mapping[str, Any]
    valid: bool
    faults: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True)
class CaseVerdicts:
    """Hard requests of one operation, and what is wrong with the answers."""

    called: str
    cases: tuple[CaseVerdict, ...]

    def findings(self, requirement: str) -> Iterator[Finding]:
        """A claim about every hard request."""
        for case in self.cases:
            observed = "; ".join(case.faults) or "it is sound"
            yield holds(requirement, not case.faults, f"{case.what}: a sound {self.called}", observed, case.answer)


def drawn(
    cases: Mapping[str, Callable[[Builder], RequestT]], builder: Callable[[Random], Builder], chance: Random, times: int
) -> Iterator[tuple[str, RequestT]]:
    """Each hard request so many times, with other numbers: what is hard about it, and the request."""
    for _ in range(times):
        for what, case in cases.items():
            yield what, case(builder(chance))


def verdicts(
    episode: Episode,
    path: str,
    called: str,
    questions: Callable[[Random, int], Iterable[tuple[str, RequestT]]],
    deviations: Callable[[RequestT, Any], Iterable[str]],
) -> CaseVerdicts:
    """Ask hard requests one after the other, and look at each answer.

    Args:
        episode: With the service, and the random numbers that requests are drawn from.
        path: Of the operation.
        called: What it answers with, in words.
        questions: Draws each hard request so many times.
        deviations: What is wrong with a valid answer, given its request.
    """
    cases = []
    for what, body in questions(episode.random, TIMES_FULL if episode.settings.full else TIMES_QUICK):
        answer = episode.ask("POST", path, body)
        valid = is_answer(path, answer)
        wrong = deviations(body, answer.json) if valid else [f"no {called}: {answer.brief}"]
        cases.append(CaseVerdict(what, body, valid, tuple(islice(wrong, SHOWN)), answer))
    return CaseVerdicts(called, tuple(cases))


def revision_faults(body: Mapping[str, Any], decision: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the revision of an answer: it is that of the request, or of nothing (COM-028)."""
    if decision["revision"] != body["revision"]:
        yield f"revision {decision['revision']} where the request's is {body['revision']}"


GIVEN_UP = 20
"""Questions one after the other without an answer, after which a service is not asked again."""


@dataclass(frozen=True)
class UnsoundAnswer:
    """An answer that is not sound.

    Attributes:
        faults: Why, the first of them.
        answer: The exchange.
    """

    faults: tuple[str, ...]
    answer: Answer


@dataclass(frozen=True)
class UnsoundAnswers:
    """Answers that are not sound.

    Attributes:
        count: How many there are.
        shown: The first of them.
    """

    count: int = 0
    shown: tuple[UnsoundAnswer, ...] = ()

    def noted(self, faults: Iterable[str], answer: Answer) -> "UnsoundAnswers":
        """The same with one more, if there is anything wrong with it."""
        wrong = tuple(islice(faults, SHOWN))
        if not wrong:
            return self
        more = (UnsoundAnswer(wrong, answer),) if len(self.shown) < SHOWN else ()
        return replace(self, count=self.count + 1, shown=self.shown + more)

    def findings(self, requirement: str, expected: str, count: str) -> Iterator[Claim]:
        """A claim about each that is shown, or one that is met where there is none.

        Args:
            requirement: Its identifier.
            expected: What every answer is to be, in words.
            count: How many answers are not, in words.
        """
        if not self.count:
            yield holds(requirement, True, expected, count)
        for one in self.shown:
            yield holds(requirement, False, expected, f"{count}: {'; '.join(one.faults)}", one.answer)

    def misses(self, requirement: str, expected: str) -> Iterator[Claim]:
        """What speaks against a figure."""
        for one in self.shown:
            yield holds(requirement, False, f"{expected} ({self.count} had others)", "; ".join(one.faults), one.answer)


@dataclass
class WindowClient:
    """Asks a decision service while windows of a simulated world are played, until it has answered nothing too often.

    Attributes:
        episode: With the service.
        answers: How often the answer was what the operation answers with.
        bad_answers: How often it was not.
        bad: The first of these.
        unsound: Answers that were not sound, and were not carried out as they stood.
    """

    episode: Episode
    answers: int = 0
    bad_answers: int = 0
    bad: Answer | None = None
    unsound: UnsoundAnswers = field(default_factory=UnsoundAnswers)
    _in_vain: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether the service is not asked any more."""
        return self._in_vain >= GIVEN_UP

    @property
    def _amiss(self) -> int:
        """How many answers there were with anything amiss, which evidence is made of."""
        return self.bad_answers + self.unsound.count

    def _ask(self, path: str, body: Mapping[str, Any]) -> Answer | None:
        """An answer; None where it is not what the operation answers with, or was not too often."""
        if self.hopeless:
            return None
        answer = self.episode.ask_patiently("POST", path, body)
        if is_answer(path, answer):
            self._in_vain = 0
            self.answers += 1
            return answer
        self.bad_answers += 1
        self._in_vain += 1
        self.bad = self.bad or answer
        return None

    def _once(self, key: Hashable, play: Callable[[], Played]) -> Played:
        """Play a window; one without anything amiss need not be played again to judge its record.

        Args:
            key: Of the window in the episode.
            play: Plays it; what comes of it follows from the key and from the answers alone, and never changes.
        """
        known: tuple[Played, int] | None = self.episode.again(key)
        if known is not None:
            self.answers += known[1]
            self._in_vain = 0
            return known[0]
        answers, amiss = self.answers, self._amiss
        with self.episode.segment(key) as segment:
            outcome = play()
            if self._amiss == amiss:
                segment.keep((outcome, self.answers - answers))
        return outcome

    def played(self, windows: Sequence[Key], play: Callable[[Key], Played]) -> tuple[Played, ...]:
        """All windows in their order, until the service is not asked any more."""
        rows: list[Played] = []
        for key in windows:
            if self.hopeless:
                break
            rows.append(play(key))
            self.episode.passed(len(rows), len(windows))
        return tuple(rows)


NONE = "–"


def percent(share: float | None) -> str:
    """A share as per cent, with a minus sign."""
    return NONE if share is None else f"{100 * share:.1f} %".replace("-", "−")


def short(number: float) -> float:
    """Four digits are more than a picture shows."""
    return float(f"{number:.4g}")


def lines(title: str, x: str, y: str, points: Mapping[str, Sequence[tuple[float, float]]]) -> ReportPlot:
    """A plot of lines."""
    series = [
        PlotSeries(label=name, x=[round(a, 4) for a, _ in pairs], y=[round(b, 2) for _, b in pairs])
        for name, pairs in points.items()
    ]
    return ReportPlot(title=title, kind=PlotKind.lines, x_label=x, y_label=y, series=series)


def table(title: str, columns: str, rows: Iterable[Sequence[str]]) -> ReportTable:
    """A table; names of columns are separated by bars."""
    return ReportTable(title=title, columns=columns.split("|"), rows=[TableRow(cells=list(cells)) for cells in rows])
