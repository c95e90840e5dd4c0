"""Templates of lines by Drain (He, Zhu, Zheng and Lyu, ICWS 2017), as the library drain3 has it.

Only the tree is drain3's, with its own defaults (depth 4, similarity 0.4, 100 children). Before it stands a cache of
lines that are alike but for numbers; around it are limits, so that a log of lines that are all different takes neither
memory nor time without bound.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuayu.resilience.logs.headers import message
from kuayu.resilience.logs.masking import coarse, masked, plain

if TYPE_CHECKING:
    from drain3.drain import Drain, LogCluster, Node

MOST = 4096
"""Templates that are kept. Of the systems of Loghub-2.0 the richest has 1 241 (Jiang et al., ISSTA 2024)."""

AT_LEAF = 128
"""Newest templates of one leaf of the tree that a line is compared with."""

CACHED, CACHED_LENGTH = 16_384, 512
"""Lines that the cache holds, and bytes of the longest that it takes."""

MOST_NEW = 1024
"""New templates of one block after which its other lines are mined only where they are known."""

FORGOTTEN = 0.25
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

    def __init__(self, most: int = MOST) -> None:
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
        cache, made, last = self._cache, [], self._drain.clusters_counter + MOST_NEW
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
        if len(line) <= CACHED_LENGTH:
            if len(self._cache) >= CACHED:
                self._cache.clear()
            self._cache[line] = number
        return number

    def _forget(self) -> None:
        """Drop what has not been seen for longest, and of that first what was seen least."""
        known = self._drain.id_to_cluster
        order = sorted(known, key=lambda number: (self._last.get(number, 0), self._seen[number]))
        for number in order[: len(known) - int(self._most * (1 - FORGOTTEN))]:
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
        return [self._shown(each) for each in self._drain.id_to_cluster.values() if each is not None]

    def _shown(self, found: "LogCluster") -> Template:
        number = found.cluster_id
        return Template(number, tuple(found.log_template_tokens), self._seen[number], self._last.get(number, 0))

    def restore(self, templates: Sequence[Template]) -> None:
        """Know templates that were found before; only for a miner that has taken nothing yet.

        Raises:
            ValueError: Two have one number.
        """
        from drain3.drain import LogCluster

        for each in templates:
            if each.number in self._drain.id_to_cluster:
                raise ValueError(f"two templates have the number {each.number}")
            cluster = LogCluster(each.words, each.number)
            self._drain.id_to_cluster[each.number] = cluster
            self._drain.add_seq_to_prefix_tree(self._drain.root_node, cluster)
            self._seen[each.number], self._last[each.number] = each.seen, each.last
        self.lines = self._seen.total()
        self._drain.clusters_counter = max((each.number for each in templates), default=0)
        self._batch = max((each.last for each in templates), default=0)


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
            return super().fast_match(list(cluster_ids)[-AT_LEAF:], tokens, sim_th, include_params)

    return Bounded()
