"""Heartbeats as they arrive: which are news, which belong to a sender that began anew, and what gaps they end.

Order of arrival decides, never the order in which they are handed over. A beat whose number is not above the highest
seen is no news, so that reordering and duplicates raise nobody; unless its sender began anew, which is seen by a later
clock, or, where the clock was set back, by three numbers that rise at the pace of beats. A beat that is late both by
the sender's clock and by its number was sent long ago, so it does not raise the dead either: a clock that was stepped
disagrees with the number, a stalled sender with the clock (numbers as the more reliable clock are the idea of Chen,
Toueg and Aguilera 2002, "On the quality of service of failure detectors").
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.resilience.detection.values import Beats, Flags, Floats, Instants, Places

STALE = 1.0
"""Usual periods for which a beat may be late, by clock and by number, and still be a sign of life."""

RETURNS = 3
"""Beats a usual half period apart that raise a dead sender, or begin its numbers anew, however late they seem."""

AMISS = 0.1
"""Share by which the pace of overtaken beats may be from the usual one."""

LEAST, MOST = 0.01, 600.0
"""Bounds of a usual period, s."""

STEADY, CHANGE = 0.1, 0.2
"""Least weight of a beat in the usual period, and the greatest change of its logarithm that counts."""


@dataclass(slots=True)
class Senders:
    """What is known of each sender."""

    heard: Annotated[Instants, Column(np.nan, np.float64)]
    period: Annotated[Instants, Column(0.5, np.float64)]
    count: Annotated[NDArray[np.int64], Column(0, np.int64)]
    top: Annotated[NDArray[np.int64], Column(-1, np.int64)]
    sent: Annotated[Instants, Column(np.nan, np.float64)]
    fresh_at: Annotated[Instants, Column(np.nan, np.float64)]
    fresh_sent: Annotated[Instants, Column(np.nan, np.float64)]
    fresh_number: Annotated[NDArray[np.int64], Column(-1, np.int64)]
    other: Annotated[NDArray[np.int64], Column(-1, np.int64)]
    other_at: Annotated[Instants, Column(np.nan, np.float64)]
    other_count: Annotated[NDArray[np.int64], Column(0, np.int64)]
    gone: Annotated[Flags, Column(0, np.bool_)]
    returns: Annotated[NDArray[np.int64], Column(0, np.int64)]
    returned_at: Annotated[Instants, Column(np.nan, np.float64)]
    lost: Annotated[Floats, Column(0.0, np.float32)]
    begun: Annotated[Instants, Column(np.nan, np.float64)]


@dataclass(frozen=True, slots=True)
class Ended:
    """Gaps that beats have ended, shape (gaps,) each.

    Attributes:
        node: Row of the sender.
        gap: How long it was silent, in its usual periods.
        seconds: The same in s.
        raised: Whether it was taken for dead until then and lives.
        anew: Whether it began anew, so that it had been down.
    """

    node: Places
    gap: Instants
    seconds: Instants
    raised: Flags
    anew: Flags


class Arrivals:
    """Keeps who was heard when; ``gone`` in ``senders`` is set by whoever judges."""

    def __init__(self, nodes: int, period: float) -> None:
        self._usual = period
        self.senders = blank(Senders, nodes)
        self.senders.period[:] = period

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self.senders = rearranged(self.senders, origin)
        self.senders.period[origin < 0] = self._usual

    def expect(self, node: Places, at: Instants, period: Instants, gone: Flags) -> None:
        """Count senders as heard that were heard before this memory began; whatever they send next is news."""
        of = self.senders
        of.heard[node], of.period[node], of.gone[node] = at, period, gone
        of.count[node] = 1

    def take(self, beats: Beats) -> tuple[list[Ended], Flags]:
        """Take in beats; returns the gaps that they end, each node once at most in an item, and which are news."""
        order = np.lexsort((beats.sequence, beats.received, beats.node))
        sorted_beats = beats[order]
        node = sorted_beats.node
        starts = np.flatnonzero(np.diff(node, prepend=-1))
        place = np.arange(len(node)) - np.repeat(starts, np.diff(np.append(starts, len(node))))
        news = np.zeros(len(node), bool)
        ended = []
        for turn in range(int(place.max(initial=-1)) + 1):
            which = order[place == turn]
            gaps, news[which] = self._take(beats[which])
            ended.append(gaps)
        return ended, news

    def _take(self, beats: Beats) -> tuple[Ended, Flags]:
        """Take in at most one beat of each node; also tells which are news."""
        of, node = self.senders, beats.node
        new = of.top[node] < 0
        half = of.period[node] / 2
        higher = beats.sequence > of.top[node]
        anew = ~new & ~higher & (beats.sent > of.sent[node] + half)
        anew |= ~new & ~higher & ~anew & self._begins_anew(beats, higher | new | anew, half)
        news = new | higher | anew
        beats, node, anew, new = beats[news], node[news], anew[news], new[news]
        fresh = new | anew | (self._lag(beats) < STALE * of.period[node])
        raised = self._raised(beats, fresh)
        seconds = beats.received - of.heard[node]
        self._pace(beats, np.where(new | anew, np.nan, seconds))
        gap = seconds / of.period[node]
        of.heard[node] = np.fmax(of.heard[node], beats.received)
        of.count[node] += 1
        of.top[node], of.sent[node] = beats.sequence, beats.sent
        of.begun[node[anew]] = beats.received[anew]
        to = node[fresh]
        of.fresh_at[to], of.fresh_sent[to] = beats.received[fresh], beats.sent[fresh]
        of.fresh_number[to] = beats.sequence[fresh]
        ended = ~new & (seconds > 0)
        return Ended(node[ended], gap[ended], seconds[ended], raised[ended], anew[ended]), news

    def _begins_anew(self, beats: Beats, news: Flags, half: Instants) -> Flags:
        """Whether low numbers rise at the pace of beats; also keeps count of it."""
        of, node = self.senders, beats.node
        of.other_count[node[news]] = 0
        rising = (beats.sequence > of.other[node]) & (of.other_count[node] > 0)
        apart = ~(beats.received - of.other_at[node] < half)
        counted = ~news & (~rising | apart)
        to = node[counted]
        of.other_count[to] = np.where(rising[counted], of.other_count[to] + 1, 1)
        of.other[to], of.other_at[to] = beats.sequence[counted], beats.received[counted]
        found: Flags = ~news & (of.other_count[node] >= RETURNS)
        of.other_count[node[found]] = 0
        return found & ~self._overtaken(beats)

    def _overtaken(self, beats: Beats) -> Flags:
        """Whether beats were sent as long before the highest one as their numbers tell: they are merely late."""
        of, node = self.senders, beats.node
        by_number = (of.top[node] - beats.sequence) * of.period[node]
        found: Flags = np.abs(of.sent[node] - beats.sent - by_number) < AMISS * by_number + of.period[node]
        return found

    def _lag(self, beats: Beats) -> Instants:
        """Seconds for which a beat is later than the last fresh one was, by clock and by number; NaN gives nought."""
        of, node = self.senders, beats.node
        passed = beats.received - of.fresh_at[node]
        by_clock = passed - (beats.sent - of.fresh_sent[node])
        by_number = passed - (beats.sequence - of.fresh_number[node]) * of.period[node]
        return np.nan_to_num(np.minimum(by_clock, by_number), nan=0.0)

    def _raised(self, beats: Beats, fresh: Flags) -> Flags:
        """Which of the dead live: those with a fresh beat, or with several at the pace of beats."""
        of, node = self.senders, beats.node
        gone = of.gone[node]
        apart = gone & ~(beats.received - of.returned_at[node] < of.period[node] / 2)
        of.returns[node[apart]] += 1
        of.returned_at[node[apart]] = beats.received[apart]
        raised = gone & (fresh | (of.returns[node] >= RETURNS))
        to = node[raised]
        of.gone[to], of.returns[to], of.returned_at[to] = False, 0, np.nan
        return raised

    def _pace(self, beats: Beats, seconds: Instants) -> None:
        """Follow the usual period by the median of gaps, each divided by the beats that it should have held."""
        of, node = self.senders, beats.node
        beats_due = np.maximum(beats.sequence - of.top[node], 1)
        usual = seconds / beats_due
        known = usual > LEAST
        to, due = node[known], beats_due[known]
        weight = np.maximum(1 / np.maximum(of.count[to], 1), STEADY)
        change = np.log(usual[known] / of.period[to])
        limit = np.where(of.count[to] <= RETURNS, np.inf, CHANGE)
        of.period[to] = np.clip(of.period[to] * np.exp(weight * np.clip(change, -limit, limit)), LEAST, MOST)
        of.lost[to] += np.float32(0.01) * ((due - 1) / due - of.lost[to])
