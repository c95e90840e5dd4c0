"""Stories of allocations: what is asked for, and how the domains that the suite plays behave."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.sch_ledger import NODES, PER_NODE, RESERVED, Deed, Json, Place
from kuayu_conformance.episode import Episode

SITES = 5
QUIET = SITES - 1
"""The domain that does not answer for a while, where a story has one."""

MOST_DEVICES = 20
"""Of a share."""

_EACH = -(-MOST_DEVICES // PER_NODE)
"""Nodes of a share at most."""

AT_ONCE = RESERVED // _EACH
"""Allocations that name nodes and may be held together."""

Trouble = Mapping[tuple[int, str, int], str]
"""What goes otherwise than well: domain, step, and the how manieth time it is asked for that step of the job."""


@dataclass(frozen=True)
class Script:
    """An allocation, and what is to happen to it.

    Attributes:
        kind: In a word.
        body: What is put.
        trouble: What goes otherwise than well.
        committed: Which of the placements is to be committed in the end; None where it is to be refused.
        called_off: Whether it is deleted while its domains are being asked.
    """

    kind: str
    body: Json
    trouble: Trouble = field(default_factory=dict)
    committed: int | None = 0
    called_off: bool = False

    @property
    def name(self) -> str:
        """Name of the allocation, and of its job."""
        return str(self.body["id"])

    @property
    def placements(self) -> list[Json]:
        """What will do, the best first."""
        return [self.body["placement"], *self.body.get("alternatives", ())]


@dataclass(frozen=True)
class Story:
    """What became of an allocation.

    Attributes:
        script: What was to happen.
        put: Answer to putting it.
        again: Answer to putting it again, where that was done.
        deeds: Steps that domains have carried out or were shown, in order.
        record: How it stood when all was settled.
        taken: Devices that domains had taken then, by domain.
        promised: Devices that they had promised or taken then, by domain.
        seconds: For which the target let the domains wait, from putting it until it was settled.
        deleted: Answer to deleting it, where it was committed.
        last: How it stood in the end.
        left: Devices that domains had not given back then, by domain.
    """

    script: Script
    put: Answer
    again: Answer | None
    deeds: tuple[Deed, ...]
    record: Answer
    taken: Mapping[str, tuple[Place, ...]]
    promised: Mapping[str, int]
    seconds: float
    deleted: Answer | None
    last: Answer
    left: Mapping[str, tuple[Place, ...]]


class Scripts:
    """Writes them; all names are the run's own."""

    def __init__(self, episode: Episode) -> None:
        """Begin with number one."""
        self._episode = episode
        self._number = 0
        self.sites = [episode.name_of(f"site-{number}") for number in range(SITES)]
        self.kinds = [episode.name_of(f"kind-{number}") for number in range(2)]

    def plain(self) -> Script:
        """All goes well, over two domains mostly, and all of them at times."""
        count = self._episode.random.choice((1, 2, 2, 2, 3, SITES))
        chosen = self._episode.random.sample(range(SITES), count)
        return self._script("plain", chosen)

    def placed(self) -> Script:
        """The placement is to name nodes, with unlike shares; which ones is known once the order is."""
        return self._script("placed", self._shuffled()[:2])

    @staticmethod
    def _rows(turn: int, devices: int) -> Iterator[Json]:
        """Nodes that none of the allocations names that come shortly before or after."""
        first = NODES + turn % AT_ONCE * _EACH
        while devices:
            yield {"node": f"node-{first}", "devices": min(devices, PER_NODE)}
            devices -= min(devices, PER_NODE)
            first += 1

    def refused(self) -> Script:
        """A domain of the placement refuses, then one of the first alternative; the second will do."""
        first, second, *others = self._shuffled()
        trouble = {(first, "prepare", 0): "refuse", (second, "prepare", 0): "refuse"}
        return self._script("refused", [others[0], first], [others[0], second], others, trouble=trouble, committed=2)

    def exhausted(self) -> Script:
        """A domain refuses twice, and there is no other alternative."""
        first, *others = self._shuffled()
        trouble = {(first, "prepare", 0): "refuse", (first, "prepare", 1): "refuse"}
        return self._script("exhausted", [others[0], first], [first, others[1]], trouble=trouble, committed=None)

    def expired(self) -> Script:
        """A promise expires before it is committed."""
        first, second, *others = self._shuffled()
        trouble = {(first, "commit", 0): "expire"}
        return self._script("expired", [second, first], [second, others[0]], trouble=trouble, committed=1)

    def called_off(self) -> Script:
        """Nobody wants it any more while domains are being asked."""
        first, second, third, *_ = self._shuffled()
        return self._script("called off", [first, second], [third], committed=None, called_off=True)

    def silent(self, phase: str, patience: float) -> Script:
        """A domain is shown a step and does not answer within the patience of the allocation."""
        trouble = {(QUIET, phase, 0): "silent"}
        return self._script(f"silent at {phase}", [0, QUIET], [0, 1], trouble=trouble, committed=1, patience=patience)

    def shuffle(self, made: list[Script]) -> None:
        """Put stories into an order of no meaning, and name nodes so that those of one batch differ."""
        self._episode.random.shuffle(made)
        for turn, script in enumerate(script for script in made if script.kind == "placed"):
            for share in script.body["placement"]["shares"]:
                share["nodes"] = list(self._rows(turn, share["devices"]))

    def _shuffled(self) -> list[int]:
        return self._episode.random.sample(range(SITES), SITES)

    def _script(
        self,
        kind: str,
        *placements: Sequence[int],
        trouble: Trouble | None = None,
        committed: int | None = 0,
        called_off: bool = False,
        **members: Any,
    ) -> Script:
        self._number += 1
        counts = iter(self._episode.random.sample(range(1, MOST_DEVICES + 1), sum(map(len, placements))))
        first, *others = (self._placement(sites, counts) for sites in placements)
        body = {
            "id": self._episode.name_of(f"allocation-{self._number:04d}"),
            "job": self._episode.name_of(f"allocation-{self._number:04d}"),
            "revision": {"epoch": self._episode.name_of("world"), "number": self._number},
            "placement": first,
            "alternatives": others,
            **members,
        }
        return Script(kind, body, trouble or {}, committed, called_off)

    def _placement(self, sites: Sequence[int], counts: Iterator[int]) -> Json:
        """Shares of domains; no two of an allocation are alike, so that each step tells which it is about."""
        kinds = self._episode.random
        shares = [
            {"domain": self.sites[site], "accelerator": kinds.choice(self.kinds), "devices": next(counts)}
            for site in sites
        ]
        return {"shares": shares, "split_mode": "none" if len(shares) == 1 else "synchronous"}


def shares_of(placement: object) -> Iterator[Json]:
    """Shares of a placement as far as they can be read."""
    shares = placement.get("shares") if isinstance(placement, dict) else None
    for share in shares if isinstance(shares, list) else ():
        if isinstance(share, dict):
            yield share
