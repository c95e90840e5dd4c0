"""Templates of lines: what varies is masked, templates are mined, and the library of them is kept.

1. What varies from line to line is masked before templates are mined: numbers, instants, addresses, identifiers.

   Two steps, so that most lines cost next to nothing: ``coarse`` works on whole blocks, and lines that are alike
   after it are alike for good; ``plain`` ends the work on one line.
2. Templates of lines by Drain (He, Zhu, Zheng and Lyu, ICWS 2017), as the library drain3 has it.

   Only the tree is drain3's, with its own defaults (depth 4, similarity 0.4, 100 children). Before it stands a cache
   of lines that are alike but for numbers; around it are limits, so that a log of lines that are all different takes
   neither memory nor time without bound.
3. The library of templates as JSON, kept so that a restart does not learn anew.

   One object: ``version``, and ``templates`` with ``number``, ``words``, ``seen`` and ``last`` each. No code is
   stored and none is run when it is read.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kuayu.resilience.logs.headers import message

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
    made = _HEX.sub(HEX, line).replace(b"0", NUMBER)
    return " ".join(made.decode("utf-8", "backslashreplace").split()[:MAX_TOKENS])


if TYPE_CHECKING:
    from drain3.drain import Drain, LogCluster, Node

MAX_TEMPLATES = 4096
"""Templates that are kept. Of the systems of Loghub-2.0 the richest has 1 241 (Jiang et al., ISSTA 2024)."""

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
        cache, made, last = self._cache, [], self._drain.clusters_counter + MAX_NEW
        for line in lines:
            number = cache.get(line)
            if number is None:
                number = self._learn(line) if self._drain.clusters_counter < last else NOT_MINED
            made.append(number)
        counts = Counter(made)
        self.unmined += counts.pop(NOT_MINED, 0)
        self._seen.update(counts)
        self.lines += counts.total()
        self._last.update(dict.fromkeys(counts, self._batch))
        if len(self._drain.id_to_cluster) > self._most:
            self._forget()
        return made

    def _learn(self, line: bytes) -> int:
        found, _ = self._drain.add_log_message(masked(message(plain(line))))
        number: int = found.cluster_id
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
        found = self._drain.id_to_cluster.get(number)
        return None if found is None else self._shown(found)

    def templates(self) -> list[Template]:
        """All templates, in the order in which they were found."""
        return [self._shown(cluster) for cluster in self._drain.id_to_cluster.values() if cluster is not None]

    def _shown(self, found: "LogCluster") -> Template:
        number = found.cluster_id
        return Template(number, tuple(found.log_template_tokens), self._seen[number], self._last.get(number, 0))

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


def _prune(node: "Node", known: Collection[int]) -> bool:
    """Whether anything is left under a node once what is no longer known has gone."""
    node.cluster_ids = [number for number in node.cluster_ids if number in known]
    for key in [key for key, child in node.key_to_child_node.items() if not _prune(child, known)]:
        del node.key_to_child_node[key]
    return bool(node.cluster_ids or node.key_to_child_node)


def _tree() -> "Drain":
    """Drain's tree, which looks only at the newest templates of a leaf."""
    from drain3.drain import Drain

    class Bounded(Drain):
        def fast_match(
            self,
            cluster_ids: Collection[int],
            tokens: Sequence[str],
            sim_th: float,
            include_params: bool,  # noqa: FBT001 - drain3's signature
        ) -> "LogCluster | None":
            return super().fast_match(list(cluster_ids)[-MAX_AT_LEAF:], tokens, sim_th, include_params)

    return Bounded()


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
