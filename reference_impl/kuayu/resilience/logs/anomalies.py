"""Lines and sessions that are unusual, told without labels: how much less probable they are than what was learned.

1. A line is judged by its template and by that template's rarest word; a session (the lines of one task, in their
   order) by how often each template is in it and by its rarest step from one template to the next.
2. Each has the probability with which it was seen, with half an occurrence added (R. Krichevsky, V. Trofimov, "The
   performance of universal encoding", IEEE Transactions on Information Theory 27, 1981); the surprise is the sum of
   −log2 of both.
3. A line is unusual when it surprises more than a template and a word that were each seen once: its form is new, and
   its words hardly less so.
4. The limit of sessions continues the upper half of what was learned, median to 90 % quantile, as an exponential to the
   share that may be unusual by chance, so that a few faulty ones that were learned do not move it.
5. Nothing is unusual before ``MIN_LEARNED`` lines or sessions were learned, nor lines of a log in which more than
   ``MAX_NOVEL_SHARE`` have a template that was seen once.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

BY_CHANCE = 0.01
"""Share of sessions that may be unusual by chance."""

CALM = frozenset({"TRACE", "DEBUG", "INFO", "NOTICE"})
"""Levels by which a line says itself that nothing is wrong; such lines are not called unusual."""

MIN_LEARNED = 1000
"""Lines, or sessions, that must have been learned before any is called unusual."""

MAX_NOVEL_SHARE = 0.1
"""Share of lines with a template seen only once above which a log has nothing usual yet.

By Good (1953) it is the probability that the next line has a template never seen.
"""

_WORD = re.compile(r"[^\W\d_]{3,}")

Session = Sequence[int]
"""Templates of the lines of one task, in their order."""


@dataclass(frozen=True, slots=True)
class Rarity:
    """How surprising lines of each template are, in bits, after so many lines.

    Attributes:
        lines: Lines learned.
        bits: Surprise of each template that was seen, by its number.
        usual: Median over the lines.
        novel: Probability that a line has a template never seen.
        words: Lines with each word.
    """

    lines: int
    bits: Mapping[int, float]
    usual: float
    novel: float
    words: Mapping[str, int]

    @classmethod
    def of(cls, templates: Mapping[int, tuple[Sequence[str], int]]) -> "Rarity":
        """From templates by number, each with its words and the lines that had it."""
        lines = sum(seen for _, seen in templates.values())
        words: Counter[str] = Counter()
        found = {number: _words(text) for number, (text, _) in templates.items()}
        for number, (_, seen) in templates.items():
            words.update(dict.fromkeys(found[number], seen))
        bits = {
            number: _bits(seen, lines) + max((_bits(words[word], lines) for word in found[number]), default=0.0)
            for number, (_, seen) in templates.items()
        }
        once = sum(seen == 1 for _, seen in templates.values())
        weights = [seen for _, seen in templates.values()]
        usual = _median(list(bits.values()), weights)
        return cls(lines, bits, usual, once / lines if lines else 1.0, words)

    @property
    def judges(self) -> bool:
        """Whether enough has been learned to call anything unusual."""
        return self.lines >= MIN_LEARNED and self.novel <= MAX_NOVEL_SHARE

    @property
    def limit(self) -> float:
        """Surprise in bits above which a line is unusual."""
        return 2 * _bits(1, self.lines)

    def of_line(self, number: int, words: Sequence[str]) -> float:
        """Surprise of a line in bits, by its template's number and words."""
        known = self.bits.get(number)
        if known is not None:
            return known
        rarest = max((_bits(self.words.get(word, 0), self.lines) for word in _words(words)), default=0.0)
        return _bits(0, self.lines) + rarest


@dataclass
class Sessions:
    """What is usual of sessions, learned from those of a calm time; a few faulty ones among them do little harm."""

    learned: int = 0
    _counts: dict[int, Counter[int]] = field(default_factory=dict)
    _steps: Counter[tuple[int | None, int | None]] = field(default_factory=Counter)
    _limit: float = math.inf

    def learn(self, sessions: Sequence[Session]) -> None:
        """Learn sessions; the limit is then set by those that were given now."""
        for session in sessions:
            self.learned += 1
            for item, count in Counter(session).items():
                self._counts.setdefault(item, Counter())[count] += 1
            self._steps.update(set(pairwise([None, *session, None])))
        if sessions:
            usual, high = np.quantile(self.surprises(sessions), [0.5, 0.9])
            self._limit = _limit(float(usual), float(high))

    def surprise(self, session: Session) -> float:
        """Surprise of a session in bits; an unseen template, count or step has half an occurrence."""
        counts = Counter(session)
        total = 0.0
        for item in self._counts.keys() | counts.keys():
            seen, count = self._counts.get(item, Counter()), counts.get(item, 0)
            total += _bits(seen[count] if count else self.learned - seen.total(), self.learned)
        return total + max(_bits(self._steps[step], self.learned) for step in pairwise([None, *session, None]))

    def surprises(self, sessions: Sequence[Session]) -> npt.NDArray[np.float64]:
        """Surprises of many, each different one reckoned once."""
        known: dict[tuple[int, ...], float] = {}
        for session in sessions:
            key = tuple(session)
            if key not in known:
                known[key] = self.surprise(key)
        return np.array([known[tuple(session)] for session in sessions], np.float64)

    @property
    def limit(self) -> float:
        """Surprise in bits above which a session is unusual; infinite while too little has been learned."""
        return self._limit if self.learned >= MIN_LEARNED else math.inf


def _bits(seen: int, of: int) -> float:
    return -math.log2((seen + 0.5) / (of + 1))


def _words(words: Sequence[str]) -> set[str]:
    """Words of letters in a template, in lower case; masks and paths in pieces."""
    return {part.lower() for word in words if not word.startswith("<") for part in _WORD.findall(word)}


def is_calm(words: Sequence[str]) -> bool:
    """Whether a line's words have a level by which nothing is wrong."""
    return any(word.strip("[]():<>|") in CALM for word in words)


def _limit(median: float, high: float) -> float:
    """The quantile that leaves ``BY_CHANCE`` above it where the tail falls off as from the median to 90 %.

    Where nearly all is alike there is no such fall; then it is what is ``BY_CHANCE`` times as probable as the median.
    """
    tail = (high - median) * math.log(0.5 / BY_CHANCE) / math.log(0.5 / 0.1)
    return median + max(tail, -math.log2(BY_CHANCE))


def _median(values: Sequence[float], weights: Sequence[int]) -> float:
    if not values:
        return 0.0
    order = np.argsort(values)
    reached = np.cumsum(np.asarray(weights)[order])
    return float(np.asarray(values)[order][int(np.searchsorted(reached, reached[-1] / 2))])
