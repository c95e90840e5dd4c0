"""Logs as they come: bytes in pieces of any size in, verdicts out; templates mined on the way, and what is unusual.

1. Each line is looked at, whatever it holds: a line of any length, bytes that are no text, no newline at the end.
   Memory has a bound: of a line that goes on and on no more than ``MAX_PENDING_BYTES`` is held at once.
2. Known faults are recognised first; what is unusual is told only of lines that tell no known fault. The same fault of
   the same subject on the same node is one group, with how often and where; beyond ``MAX_GROUPS`` subjects and nodes
   are put together. A link that went down several times and came up in between flaps, which is one fault.
3. What varies from line to line is masked before templates are mined: numbers, instants, addresses, identifiers. Two
   steps, so that most lines cost next to nothing: ``coarse`` works on whole blocks, and lines that are alike after it
   are alike for good; ``plain`` ends the work on one line.
4. Templates are mined by Drain (He, Zhu, Zheng and Lyu, ICWS 2017), as the library drain3 has it. Only the tree is
   drain3's, with its own defaults (depth 4, similarity 0.4, 100 children). Before it stands a cache of lines that are
   alike but for numbers; around it are limits, so that a log of lines that are all different takes neither memory nor
   time without bound.
5. The library of templates is kept as JSON, so that a restart does not learn anew. One object: ``version``, and
   ``templates`` with ``number``, ``words``, ``seen`` and ``last`` each. No code is stored and none is run when it is
   read.
6. Unusual is what is much less probable than what was learned; no labels are needed. A line is judged by its template
   and by that template's rarest word; a session (the lines of one task, in their order) by how often each template is
   in it and by its rarest step from one template to the next. Each has the probability with which it was seen, with
   half an occurrence added (R. Krichevsky, V. Trofimov, "The performance of universal encoding", IEEE Transactions on
   Information Theory 27, 1981); the surprise is the sum of −log2 of both.
7. A line is unusual when it surprises more than a template and a word that were each seen once: its form is new, and
   its words hardly less so. The limit of sessions continues the upper half of what was learned, median to 90 %
   quantile, as an exponential to the share that may be unusual by chance, so that a few faulty ones that were learned
   do not move it.
8. Nothing is unusual before ``MIN_LEARNED`` lines or sessions were learned, nor lines of a log in which more than
   ``MAX_NOVEL_SHARE`` have a template that was seen once.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kuayu.resilience.logs.headers import host_of, message
from kuayu.resilience.logs.recogniser import (
    BEFORE_BYTES,
    REACH,
    About,
    Confidence,
    Evidence,
    Follows,
    Severity,
    Verdict,
    recogniser,
    shown,
)

if TYPE_CHECKING:
    from drain3.drain import Drain, LogCluster, Node


BLOCK = 1 << 20
"""Bytes that are worked on at once."""

MAX_PENDING_BYTES = 1 << 20
"""Bytes of an unfinished line after which its beginning is judged without the rest."""

MAX_UNUSUAL = 16
"""Unusual templates told of one block; ``LogReader.untold`` counts those beyond."""

LEARN_AGAIN_RATIO = 1.1
"""Growth of the number of lines after which what is usual is reckoned anew."""

MAX_TEMPLATES = 4096
"""Templates that are kept. Of the systems of Loghub-2.0 the richest has 1 241 (Jiang et al., ISSTA 2024)."""


@dataclass(slots=True)
class Template:
    """A template: its number, its words with ``<*>`` where they vary, lines that had it, and the last batch with it."""

    number: int
    words: tuple[str, ...]
    seen: int
    last: int

    @property
    def text(self) -> str:
        """The template in one line."""
        return " ".join(self.words)


class Miner:
    """Finds the template of each line, and learns new ones."""

    def __init__(self, most: int = MAX_TEMPLATES) -> None:
        self._most = most
        self._drain = _tree()
        self._cache: dict[bytes, int] = {}
        self._seen: Counter[int] = Counter()
        self._last: dict[int, int] = {}
        self._batch = 0
        self.lines = 0
        """Lines of the templates that are kept."""
        self.forgotten = 0
        """Templates that were dropped since there were too many."""
        self.unmined = 0
        """Lines without a template, since too many new ones were in their block."""

    def take(self, block: bytes) -> list[int]:
        """Numbers of the templates of a block's lines, in their order; 0 for a line that has none.

        Args:
            block: Lines, each ended by a newline but perhaps the last.
        """
        self._batch += 1
        lines = coarse(block).split(b"\n")
        if not lines[-1]:
            lines.pop()
        cache, numbers, last = self._cache, [], self._drain.clusters_counter + MAX_NEW
        for line in lines:
            number = cache.get(line)
            if number is None:
                number = self._learn(line) if self._drain.clusters_counter < last else NOT_MINED
            numbers.append(number)
        counts = Counter(numbers)
        self.unmined += counts.pop(NOT_MINED, 0)
        self._seen.update(counts)
        self.lines += counts.total()
        self._last.update(dict.fromkeys(counts, self._batch))
        if len(self._drain.id_to_cluster) > self._most:
            self._forget()
        return numbers

    def _learn(self, line: bytes) -> int:
        cluster, _ = self._drain.add_log_message(masked(message(plain(line))))
        number: int = cluster.cluster_id
        if len(line) <= MAX_CACHED_BYTES:
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            self._cache[line] = number
        return number

    def _forget(self) -> None:
        """Drop what has not been seen for longest, and of that first what was seen least."""
        known = self._drain.id_to_cluster
        order = sorted(known, key=lambda number: (self._last.get(number, 0), self._seen[number]))
        for number in order[: len(known) - int(self._most * (1 - DROPPED_SHARE))]:
            del known[number]
            self.lines -= self._seen.pop(number, 0)
            self._last.pop(number, None)
            self.forgotten += 1
        self._cache.clear()
        _prune(self._drain.root_node, known)

    def template(self, number: int) -> Template | None:
        """A template, or None where it was dropped."""
        cluster = self._drain.id_to_cluster.get(number)
        return None if cluster is None else self._shown(cluster)

    def templates(self) -> list[Template]:
        """All templates, in the order in which they were found."""
        return [self._shown(cluster) for cluster in self._drain.id_to_cluster.values() if cluster is not None]

    def _shown(self, cluster: "LogCluster") -> Template:
        number = cluster.cluster_id
        return Template(number, tuple(cluster.log_template_tokens), self._seen[number], self._last.get(number, 0))

    def restore(self, templates: Sequence[Template]) -> None:
        """Know templates that were found before; only for a miner that has taken nothing yet.

        Raises:
            ValueError: Two have one number.
        """
        from drain3.drain import LogCluster

        for template in templates:
            if template.number in self._drain.id_to_cluster:
                raise ValueError(f"two templates have the number {template.number}")
            cluster = LogCluster(template.words, template.number)
            self._drain.id_to_cluster[template.number] = cluster
            self._drain.add_seq_to_prefix_tree(self._drain.root_node, cluster)
            self._seen[template.number], self._last[template.number] = template.seen, template.last
        self.lines = self._seen.total()
        self._drain.clusters_counter = max((template.number for template in templates), default=0)
        self._batch = max((template.last for template in templates), default=0)


class LogReader:
    """Reads one log.

    Args:
        miner: Knows templates already; a new one by default. Readers of many logs may share one.
        unusual: Whether unusual lines are told too; templates are mined only then.
    """

    def __init__(self, miner: Miner | None = None, *, unusual: bool = True) -> None:
        self.miner = miner or Miner()
        self.lines = 0
        """Lines that were ended."""
        self.bytes = 0
        self.untold = 0
        """Unusual templates beyond ``MAX_UNUSUAL`` of a block."""
        self._unusual = unusual
        self._recogniser = recogniser()
        self._rest = b""
        self._before = b""
        self._since = 0
        self._head: bytes | None = None
        self._rarity = Rarity.of({})
        self._told: set[int] = set()

    @property
    def judges(self) -> bool:
        """Whether enough has been learned to tell unusual lines."""
        return self._rarity.judges

    def take(self, data: bytes) -> list[Verdict]:
        """Verdicts of the lines that these bytes end, and of what is long already."""
        self.bytes += len(data)
        verdicts: list[Verdict] = []
        for start in range(0, len(data), BLOCK):
            self._rest += data[start : start + BLOCK]
            cut = self._rest.rfind(b"\n") + 1
            if cut:
                verdicts += self._block(cut)
            if len(self._rest) > MAX_PENDING_BYTES:
                verdicts += self._piece()
        return verdicts

    def end(self) -> list[Verdict]:
        """Verdicts of a last line without a newline."""
        if not self._rest:
            return []
        self._rest += b"\n"
        return self._block(len(self._rest))

    def _piece(self) -> list[Verdict]:
        """Judge the beginning of a line that has not ended; the end of it is judged again with what follows."""
        until = len(self._rest) - REACH
        verdicts = list(self._recogniser.scan(self._rest, [], self.lines + 1, self._since, until))
        if self._head is None:
            self._head = self._rest[:MAX_LINE_BYTES]
        self._rest, self._since = self._rest[until - REACH :], REACH
        return verdicts

    def _block(self, cut: int) -> list[Verdict]:
        block, self._rest = self._rest[:cut], self._rest[cut:]
        ends: list[int] = (np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1).tolist()
        first = self.lines + 1
        verdicts = list(self._recogniser.scan(block, ends, first, self._since, before=self._before))
        self._before = (self._before + block[-BEFORE_BYTES:])[-BEFORE_BYTES:]
        self.lines += len(ends)
        if self._unusual:
            verdicts = self._mine(block, ends, first, verdicts)
        self._since, self._head = 0, None
        return verdicts

    def _mine(self, block: bytes, ends: Sequence[int], first: int, verdicts: list[Verdict]) -> list[Verdict]:
        """Add templates to the evidence, and verdicts on what is unusual."""
        known = self.miner.lines
        if known >= LEARN_AGAIN_RATIO * self._rarity.lines:
            self._rarity = Rarity.of(
                {verdict.number: (verdict.words, verdict.seen) for verdict in self.miner.templates()}
            )
        mined = block if self._head is None else self._head + block[ends[0] - 1 :]
        numbers = self.miner.take(mined)
        verdicts = [
            replace(
                verdict, evidence=replace(verdict.evidence, template=self._text(numbers[verdict.evidence.line - first]))
            )
            for verdict in verdicts
        ]
        if not self._rarity.judges:
            return verdicts
        known_faults = {verdict.evidence.line for verdict in verdicts}
        strange = [
            verdict
            for verdict in self._strange(block, ends, first, numbers)
            if verdict.evidence.line not in known_faults
        ]
        return sorted(verdicts + strange, key=lambda verdict: verdict.evidence.line)

    def _strange(self, block: bytes, ends: Sequence[int], first: int, numbers: Sequence[int]) -> Iterator[Verdict]:
        """A verdict for each template that is unusual and was not told before."""
        reported = 0
        for number, row in {number: row for row, number in reversed(list(enumerate(numbers)))}.items():
            template = self.miner.template(number)
            if template is None or number in self._told or is_calm(template.words):
                continue
            bits = self._rarity.of_line(number, template.words)
            if bits <= self._rarity.limit:
                continue
            if len(self._told) > 2 * MAX_TEMPLATES:
                self._told.clear()
            self._told.add(number)
            if reported == MAX_UNUSUAL:
                self.untold += 1
                continue
            reported += 1
            begin = ends[row - 1] if row else 0
            yield Verdict(
                code="unusual.line",
                kind="anomaly",
                severity=Severity.INFO,
                about=About.NODE,
                subject=None,
                node=host_of(block[begin : begin + 256]),
                follows=Follows.WATCH,
                what=f"a line as this log hardly has any: surprise {bits:.0f} bits, usual {self._rarity.usual:.0f}",
                confidence=Confidence.POSSIBLE,
                evidence=Evidence(first + row, shown(block, begin, ends[row], begin), template.text),
                source=None,
            )

    def _text(self, number: int) -> str | None:
        template = self.miner.template(number)
        return None if template is None else template.text


MAX_GROUPS = 10_000
"""Different faults that are kept apart; beyond them subjects and nodes are put together."""

MIN_FLAPS = 3
"""Times that a link must go down, and come up in between, to be called flapping."""

_ORDER = tuple(Follows)


@dataclass(slots=True)
class Group:
    """The same fault of the same subject on the same node.

    Attributes:
        verdict: The first that told it.
        count: Lines that told it.
        last: Number of the last of them.
    """

    verdict: Verdict
    count: int
    last: int


class Summary:
    """Puts verdicts together as they come."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str | None, str | None], Group] = {}
        self._ups: dict[tuple[str | None, str | None], int] = {}

    def add(self, verdicts: Iterable[Verdict]) -> None:
        """Take verdicts in the order of their lines."""
        for verdict in verdicts:
            key = (verdict.code, verdict.node, verdict.subject)
            place = (verdict.node, verdict.subject)
            if len(self._groups) >= MAX_GROUPS and key not in self._groups:
                key = (verdict.code, None, None)
                verdict = replace(verdict, node=None, subject=None)  # noqa: PLW2901 - kept apart no longer
            if verdict.code == "link.up":
                if ("link.down", *place) in self._groups:
                    self._ups[place] = self._ups.get(place, 0) + 1
                continue
            group = self._groups.setdefault(key, Group(verdict, 0, verdict.evidence.line))
            group.count += 1
            group.last = verdict.evidence.line

    def groups(self) -> list[Group]:
        """What was told, what has most to follow first; links that flap are called so."""
        shown = [self._flapping(group) for group in self._groups.values()]
        return sorted(
            shown,
            key=lambda group: (
                -_ORDER.index(group.verdict.follows),
                -group.verdict.severity,
                group.verdict.evidence.line,
                group.verdict.code,
            ),
        )

    def _flapping(self, group: Group) -> Group:
        verdict = group.verdict
        ups = self._ups.get((verdict.node, verdict.subject), 0)
        if verdict.code != "link.down" or group.count < MIN_FLAPS or ups < MIN_FLAPS - 1:
            return group
        what = f"a link went down {group.count} times and came up again"
        return replace(group, verdict=replace(verdict, code="link.flap", severity=Severity.CRITICAL, what=what))


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
        words_of = {number: _words(text) for number, (text, _) in templates.items()}
        for number, (_, seen) in templates.items():
            words.update(dict.fromkeys(words_of[number], seen))
        bits = {
            number: _bits(seen, lines) + max((_bits(words[word], lines) for word in words_of[number]), default=0.0)
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


def is_calm(words: Sequence[str]) -> bool:
    """Whether a line's words have a level by which nothing is wrong."""
    return any(word.strip("[]():<>|") in CALM for word in words)


MAX_TOKENS = 128
"""Words of a line that make its template; what follows them is left out."""

MAX_LINE_BYTES = 8192
"""Bytes of a line that make its template."""

_DIGITS = bytes.maketrans(b"123456789\0\t\r\v\f", b"000000000     ")

_NUMBER = re.compile(rb"[-+]?0(?:[.,:+-]0)*")
_HEX = re.compile(rb"(?<![0-9A-Za-z])(?:0x[0-9a-fA-F]+|(?=[0a-fA-F]{0,32}0)[0a-fA-F]{6,})(?![0-9A-Za-z])")
_UUID = re.compile(rb"(?<![0-9A-Za-z])(?:[0a-fA-F]{1,8}-){4}[0a-fA-F]{1,12}(?![0-9A-Za-z])")
"""An identifier of RFC 9562 whose digits have been made noughts."""
NUMBER, HEX, UUID = b"<num>", b"<hex>", b"<uuid>"


def coarse(block: bytes) -> bytes:
    """A block of lines with each run of digits made one zero, and with plain blanks; ends of lines are kept."""
    block = block.translate(_DIGITS)
    while b"00" in block:
        block = block.replace(b"00", b"0")
    return block


def plain(line: bytes) -> bytes:
    """A coarse line with numbers and what joins them made one zero, so that headers can be told."""
    return _NUMBER.sub(b"0", _UUID.sub(UUID, line[:MAX_LINE_BYTES]))


def masked(line: bytes) -> str:
    """A plain line with its masks, as text; bytes that are no UTF-8 stand with a backslash and their value."""
    replaced = _HEX.sub(HEX, line).replace(b"0", NUMBER)
    return " ".join(replaced.decode("utf-8", "backslashreplace").split()[:MAX_TOKENS])


MAX_AT_LEAF = 128
"""Newest templates of one leaf of the tree that a line is compared with."""

MAX_CACHED, MAX_CACHED_BYTES = 16_384, 512
"""Lines that the cache holds, and bytes of the longest that it takes."""

MAX_NEW = 1024
"""New templates of one block after which its other lines are mined only where they are known."""

DROPPED_SHARE = 0.25
"""Share of the templates that is dropped, longest unseen first, when there are too many."""

NOT_MINED = 0
"""Number of no template."""

VERSION = 1

MAX_WORD = 8192
"""Characters of the longest word of a template."""


class LibraryError(ValueError):
    """The text is no library of templates."""


def encode_library(miner: Miner) -> str:
    """The templates of a miner as JSON."""
    rows = [json.dumps(asdict(template), ensure_ascii=False) for template in miner.templates()]
    return f'{{"version": {VERSION}, "templates": [\n' + ",\n".join(rows) + "\n]}\n"


def decode_library(text: str, most: int = MAX_TEMPLATES) -> Miner:
    """A miner that knows the templates of a library.

    Raises:
        NoLibrary: The text is none, or one of another version.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LibraryError("it is no JSON") from error
    if (
        not isinstance(document, dict)
        or document.get("version") != VERSION
        or not isinstance(document.get("templates"), list)
    ):
        raise LibraryError(f"it is no library of templates of version {VERSION}")
    if len(document["templates"]) > 2 * most:
        raise LibraryError(f"it has more than {2 * most} templates")
    miner = Miner(most)
    try:
        miner.restore([_template(template) for template in document["templates"]])
    except ValueError as error:
        raise LibraryError(str(error)) from error
    return miner


def _bits(seen: int, of: int) -> float:
    return -math.log2((seen + 0.5) / (of + 1))


def _words(words: Sequence[str]) -> set[str]:
    """Words of letters in a template, in lower case; masks and paths in pieces."""
    return {part.lower() for word in words if not word.startswith("<") for part in _WORD.findall(word)}


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


def _prune(node: "Node", known: Collection[int]) -> bool:
    """Whether anything is left under a node once what is no longer known has gone."""
    node.cluster_ids = [number for number in node.cluster_ids if number in known]
    for key in [key for key, child in node.key_to_child_node.items() if not _prune(child, known)]:
        del node.key_to_child_node[key]
    return bool(node.cluster_ids or node.key_to_child_node)


def _tree() -> "Drain":
    """Drain's tree, which looks only at the newest templates of a leaf."""
    from drain3.drain import Drain

    class BoundedDrain(Drain):
        def fast_match(
            self,
            cluster_ids: Collection[int],
            tokens: Sequence[str],
            sim_th: float,
            include_params: bool,  # noqa: FBT001 - drain3's signature
        ) -> "LogCluster | None":
            return super().fast_match(list(cluster_ids)[-MAX_AT_LEAF:], tokens, sim_th, include_params)

    return BoundedDrain()


def _template(entry: Any) -> Template:
    if not isinstance(entry, dict):
        raise LibraryError("a template is no object")
    numbers = [entry.get(name) for name in ("number", "seen", "last")]
    words = entry.get("words")
    if not all(isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**53 for number in numbers):
        raise LibraryError("number, seen and last of a template must be whole and not negative")
    if not isinstance(words, list) or len(words) > MAX_TOKENS:
        raise LibraryError(f"a template must have words, at most {MAX_TOKENS}")
    if not all(isinstance(word, str) and 0 < len(word) <= MAX_WORD for word in words):
        raise LibraryError(f"words of a template must have 1 to {MAX_WORD} characters")
    return Template(entry["number"], tuple(words), entry["seen"], entry["last"])
