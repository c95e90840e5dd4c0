"""Heartbeats as they arrive: columns of what the wire has, kept until the next look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from kuayu.resilience.detection import Beats
from kuayu.resilience.detection.values import Flags, Places
from kuayu.resilience.watching.roll import RankName


@dataclass(frozen=True, slots=True)
class Reports:
    """How far ranks are, in the order in which it was told; items of lists and arrays belong together.

    Attributes:
        rank: Jobs and numbers of the ranks.
        step: The last step that each has done.
        ended: Whether no further step is to come.
        beat: Place of the beat that tells it.
    """

    rank: list[RankName]
    step: list[int]
    ended: list[bool]
    beat: Places


@dataclass(slots=True)
class Arrived:
    """Beats in the order in which they arrived, a column for each member of class Heartbeat.

    Attributes:
        node: Names of the senders.
        domain: Their domains at that time.
        number: Numbers of the beats.
        sent: By the senders' clocks, Unix seconds.
        received: When they were heard, Unix seconds.
        steps: What they tell of ranks, by their places; places of beats that tell nothing are absent.
    """

    node: list[str] = field(default_factory=list)
    domain: list[str] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    received: list[float] = field(default_factory=list)
    steps: dict[int, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def add(self, beats: Sequence[Mapping[str, Any]], domains: Mapping[str, str], received: float) -> None:
        """Add a batch; beats of nodes that have no domain are passed over."""
        if any(beat["node"] not in domains for beat in beats):
            beats = [beat for beat in beats if beat["node"] in domains]
        first, read = len(self.node), datetime.fromisoformat
        nodes = [beat["node"] for beat in beats]
        self.node += nodes
        self.domain += map(domains.__getitem__, nodes)
        self.number += [beat["number"] for beat in beats]
        self.sent += [read(beat["sent_at"]).timestamp() for beat in beats]
        self.received += [received] * len(beats)
        self.steps.update((first + place, beat["steps"]) for place, beat in enumerate(beats) if beat.get("steps"))

    def beats(self, rows: Mapping[str, int]) -> Beats:
        """The beats for the detector; ``rows`` are those of the nodes."""
        node = np.fromiter(map(rows.__getitem__, self.node), np.intp, len(self.node))
        return Beats(node, np.array(self.number, np.int64), np.array(self.sent), np.array(self.received))

    def reports(self, places: Sequence[int]) -> Reports:
        """What the beats in some places tell of ranks."""
        told = [self.steps[place] for place in places]
        return Reports(
            [(each["job"], each["rank"]) for steps in told for each in steps],
            [each["step"] for steps in told for each in steps],
            ["ended" in each and each["ended"] for steps in told for each in steps],
            np.repeat(np.array(places, np.intp), [len(steps) for steps in told]),
        )

    def telling(self, beats: Beats, news: Flags) -> list[int]:
        """Places of beats that are news and tell of ranks, by reception and number: a batch has them in any order."""
        places = np.fromiter(self.steps, np.intp, len(self.steps))
        places = places[news[places]]
        found: list[int] = places[np.lexsort((beats.sequence[places], beats.received[places]))].tolist()
        return found
