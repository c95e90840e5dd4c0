"""Heartbeats of senders: which are news, which come twice, how likely a silence is, and who comes and goes.

1. Heartbeats as they arrive: which are news, which belong to a sender that began anew, and what gaps they end.

   Order of arrival decides, never the order in which they are handed over. A beat whose number is not above the
   highest seen is no news, so that reordering and duplicates raise nobody; unless its sender began anew, which is
   seen by a later clock, or, where the clock was set back, by three numbers that rise at the pace of beats. A beat
   that is late both by the sender's clock and by its number was sent long ago, so it does not raise the dead either:
   a clock that was stepped disagrees with the number, a stalled sender with the clock (numbers as the more reliable
   clock are the idea of Chen, Toueg and Aguilera 2002, "On the quality of service of failure detectors").
2. Heartbeats that were heard before: a network that repeats itself raises nobody, in whatever order and at what pace.

   A beat is known by its number and the sender's clock together, since a sender that was started anew uses numbers
   again. The last ``KEPT_BEATS`` beats of each sender are known; what was sent long before them is told by its number
   and clock alone.
3. How likely a live sender is silent for so long: survival of gaps, learned per row, shared in its group and by all.

   Plain φ accrual (Hayashibara et al. 2004, "The φ accrual failure detector") takes gaps for normal, from one window
   of the sender's own. That fails where detectors are needed: one lost beat doubles a gap, which a normal tail holds
   to be impossible; few samples give a narrow tail; a regime that changes is noticed a window too late. Here:

   - Gaps are counted in units of the sender's own usual period on a grid, and the tail is a product of chances to go
     on being silent from one point to the next (discrete-time survival; Kaplan and Meier 1958). Lost beats, runs of
     losses and stalls appear as what they are: chances that the next beat is missing too.
   - Each chance leans on that of the group, the group's on all, and theirs on a heavy (Pareto) tail: (gone on + a) ÷
     (at risk + a ÷ the wider chance), a gamma–Poisson mean (Robbins 1956, empirical Bayes). So few samples do not
     give thin tails, and what one sender taught is known of all.
   - The group has two memories, of hours and of seconds; the more cautious holds. So worse conditions count at once.
   - No condition is quite impossible: a small share ``TURN`` of the heavy tail always stays.

   Memory fades with gaps that were heard, never with mere time, so silence never lowers suspicion.
4. Flapping: who comes and goes is charged a penalty that decays (C. Villamizar et al., RFC 2439, 1998).

   A node that was taken for dead and is heard again, without having begun anew or after having done so, is charged.
   Above ``SUPPRESS`` it flaps until the penalty has decayed below ``REUSE``. While it flaps it is suspected at best,
   so that nobody relies on it, and it is dead only when it is silent for clearly longer than it has been and come
   back from: one death is announced, not one for each turn.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.values import Column, blank, rearranged
from kuayu.resilience.detection.records import Beats, Flags, Floats, Instants, Places

STALE_PERIODS = 1.0
"""Usual periods for which a beat may be late, by clock and by number, and still be a sign of life."""

RETURN_BEATS = 3
"""Beats a usual half period apart that raise a dead sender, or begin its numbers anew, however late they seem."""

PACE_TOLERANCE = 0.1
"""Share by which the pace of overtaken beats may be from the usual one."""

MIN_PERIOD_S, MAX_PERIOD_S = 0.01, 600.0
"""Bounds of a usual period, s."""

MIN_WEIGHT, MAX_LOG_CHANGE = 0.1, 0.2
"""Least weight of a beat in the usual period, and the greatest change of its logarithm that counts."""


@dataclass(slots=True)
class Senders:
    """What is known of each sender."""

    last_beat: Annotated[Instants, Column(np.nan, np.float64)]
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
class EndedGaps:
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

    def expect(self, node: Places, heard_at: Instants, period: Instants, gone: Flags) -> None:
        """Count senders as heard that were heard before this memory began; whatever they send next is news."""
        of = self.senders
        of.last_beat[node], of.period[node], of.gone[node] = heard_at, period, gone
        of.count[node] = 1

    def take(self, beats: Beats) -> tuple[list[EndedGaps], Flags]:
        """Take in beats; returns the gaps that they end, each node once at most in an item, and which are news."""
        order = np.lexsort((beats.sequence, beats.received, beats.node))
        sorted_beats = beats[order]
        node = sorted_beats.node
        starts = np.flatnonzero(np.diff(node, prepend=-1))
        place = np.arange(len(node)) - np.repeat(starts, np.diff(np.append(starts, len(node))))
        news = np.zeros(len(node), bool)
        ended = []
        for round_number in range(int(place.max(initial=-1)) + 1):
            which = order[place == round_number]
            gaps, news[which] = self._take(beats[which])
            ended.append(gaps)
        return ended, news

    def _take(self, beats: Beats) -> tuple[EndedGaps, Flags]:
        """Take in at most one beat of each node; also tells which are news."""
        of, node = self.senders, beats.node
        new = of.top[node] < 0
        half = of.period[node] / 2
        higher = beats.sequence > of.top[node]
        anew = ~new & ~higher & (beats.sent > of.sent[node] + half)
        anew |= ~new & ~higher & ~anew & self._begins_anew(beats, higher | new | anew, half)
        news = new | higher | anew
        beats, node, anew, new = beats[news], node[news], anew[news], new[news]
        fresh = new | anew | (self._lag(beats) < STALE_PERIODS * of.period[node])
        raised = self._raised(beats, fresh)
        seconds = beats.received - of.last_beat[node]
        self._pace(beats, np.where(new | anew, np.nan, seconds))
        gap = seconds / of.period[node]
        of.last_beat[node] = np.fmax(of.last_beat[node], beats.received)
        of.count[node] += 1
        of.top[node], of.sent[node] = beats.sequence, beats.sent
        of.begun[node[anew]] = beats.received[anew]
        to = node[fresh]
        of.fresh_at[to], of.fresh_sent[to] = beats.received[fresh], beats.sent[fresh]
        of.fresh_number[to] = beats.sequence[fresh]
        ended = ~new & (seconds > 0)
        return EndedGaps(node[ended], gap[ended], seconds[ended], raised[ended], anew[ended]), news

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
        anew: Flags = ~news & (of.other_count[node] >= RETURN_BEATS)
        of.other_count[node[anew]] = 0
        return anew & ~self._overtaken(beats)

    def _overtaken(self, beats: Beats) -> Flags:
        """Whether beats were sent as long before the highest one as their numbers tell: they are merely late."""
        of, node = self.senders, beats.node
        by_number = (of.top[node] - beats.sequence) * of.period[node]
        late: Flags = np.abs(of.sent[node] - beats.sent - by_number) < PACE_TOLERANCE * by_number + of.period[node]
        return late

    def _lag(self, beats: Beats) -> Instants:
        """Seconds for which a beat is later than the last fresh one was, by clock and by number; NaN gives zero."""
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
        raised = gone & (fresh | (of.returns[node] >= RETURN_BEATS))
        to = node[raised]
        of.gone[to], of.returns[to], of.returned_at[to] = False, 0, np.nan
        return raised

    def _pace(self, beats: Beats, seconds: Instants) -> None:
        """Follow the usual period by the median of gaps, each divided by the beats that it should have held."""
        of, node = self.senders, beats.node
        beats_due = np.maximum(beats.sequence - of.top[node], 1)
        usual = seconds / beats_due
        known = usual > MIN_PERIOD_S
        to, due = node[known], beats_due[known]
        weight = np.maximum(1 / np.maximum(of.count[to], 1), MIN_WEIGHT)
        change = np.log(usual[known] / of.period[to])
        limit = np.where(of.count[to] <= RETURN_BEATS, np.inf, MAX_LOG_CHANGE)
        of.period[to] = np.clip(
            of.period[to] * np.exp(weight * np.clip(change, -limit, limit)), MIN_PERIOD_S, MAX_PERIOD_S
        )
        of.lost[to] += np.float32(0.01) * ((due - 1) / due - of.lost[to])


KEPT_BEATS = 64
"""Beats of each sender that are known again; a number has its place by its remainder."""


@dataclass(slots=True)
class _RecentBeats:
    number: Annotated[NDArray[np.int64], Column(-1, np.int64, KEPT_BEATS)]
    sent: Annotated[Instants, Column(np.nan, np.float64, KEPT_BEATS)]


class Duplicates:
    """Knows beats again."""

    def __init__(self, nodes: int) -> None:
        self._rows = blank(_RecentBeats, nodes)

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    def new(self, beats: Beats) -> Flags:
        """Which of the beats were not heard before, shape (beats,); from now on they were."""
        rows, slot = self._rows, beats.sequence % KEPT_BEATS
        known = (rows.number[slot, beats.node] == beats.sequence) & (rows.sent[slot, beats.node] == beats.sent)
        rows.number[slot, beats.node], rows.sent[slot, beats.node] = beats.sequence, beats.sent
        fresh: Flags = ~known
        return fresh


_FINE = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.05, 2.1, 2.2, 2.35, 2.5, 2.7, 2.9, 3.05, 3.2, 3.5, 4.05, 4.2, 4.6)
GRID = np.array([0, *_FINE, 5.1, 6.1, 7.1, 8.1, 10, 12, 16, 20, 26, 34, 48, 64, 96, 128, 256])
"""Points of silence at which survival is known, in usual periods; between two of them that of the lower holds."""

POINTS = len(GRID)

TAIL = 3.0
"""Exponent of the Pareto tail that is assumed where nothing was seen."""

LEAN = 0.5
"""Events (a) that the wider chance counts for."""

TRUST = 100.0
"""Gaps that the tail of all counts for at most in that of a group, since domains differ."""

TURN = 3e-6
"""Share of gaps that are taken to be of conditions never seen."""

ROW_MEMORY = 1200.0
"""Gaps after which what a row taught counts for less by a factor e."""

GROUP_MEMORY = 20_000.0
"""The same for a group, in gaps of each of its rows."""

BRIEF_MEMORY = 10.0
"""The same for the brief memory of a group."""

REFRESH = 1.0
"""Seconds after which the tables are made anew."""

SURE = 40.0
"""Greatest φ that is told."""

_PRIOR = np.where(GRID > 1, 0.1 * np.maximum(GRID, 1.0) ** -TAIL, 1.0)
_PRIOR_CHANCE = _PRIOR[1:] / _PRIOR[:-1]
_FLOOR = np.log10(TURN * np.maximum(GRID, 1.0) ** -TAIL)


@dataclass(slots=True)
class _SenderSurvival:
    gaps: Annotated[Floats, Column(0.0, np.float32, POINTS)]
    fresh: Annotated[Floats, Column(0.0, np.float32)]
    table: Annotated[Floats, Column(0.0, np.float32, POINTS)]


@dataclass(slots=True)
class _GroupSurvival:
    gaps: Annotated[Instants, Column(0.0, np.float64, POINTS)]
    brief: Annotated[Instants, Column(0.0, np.float64, POINTS)]
    fresh: Annotated[Instants, Column(0.0, np.float64)]
    beats: Annotated[Instants, Column(0.0, np.float64)]
    log: Annotated[Instants, Column(0.0, np.float64, POINTS)]


class GapSurvival:
    """Survival of the gaps of rows that belong to groups.

    Args:
        group: Index of the group of each row, shape (rows,).
        groups: How many there are.
    """

    def __init__(self, group: Places, groups: int) -> None:
        self._group = group
        self._rows = blank(_SenderSurvival, len(group))
        self._groups = blank(_GroupSurvival, groups)
        self._refreshed = -np.inf
        self._tabulate()

    def rearrange(self, group: Places, groups: int, rows: Places, former: Places) -> None:
        """Take over what was learnt of the rows and groups that stay; −1 is new."""
        self._rows, self._groups = rearranged(self._rows, rows), rearranged(self._groups, former)
        self._group = group
        assert len(self._groups.fresh) == groups
        self._refreshed = -np.inf
        self._tabulate()

    def learn(self, row: Places, gap: Instants, lasting: Flags) -> None:
        """Take in gaps that have ended; a row may occur once only.

        Args:
            row: Rows of the gaps.
            gap: Their lengths in usual periods.
            lasting: Whether they say something of usual times, or are for the brief memory alone.
        """
        point = np.maximum(np.searchsorted(GRID, gap, side="left") - 1, 0)
        groups = self._groups
        group, count = self._group[row], len(groups.fresh)
        groups.brief += np.bincount(point * count + group, minlength=POINTS * count).reshape(POINTS, count)
        groups.beats += np.bincount(group, minlength=count)
        point, row, group = point[lasting], row[lasting], group[lasting]
        self._rows.gaps[point, row] += 1
        self._rows.fresh[row] += 1
        groups.gaps += np.bincount(point * count + group, minlength=POINTS * count).reshape(POINTS, count)
        groups.fresh += np.bincount(group, minlength=count)

    def refresh(self, now: float) -> bool:
        """Make the tables anew when it is time; tells whether it was."""
        if now < self._refreshed + REFRESH:
            return False
        self._refreshed = now
        self._tabulate()
        return True

    def suspicion(self, silence: Instants) -> Floats:
        """φ of each row that has been silent for so many of its usual periods, shape (rows,); NaN gives 0."""
        point = np.maximum(np.searchsorted(GRID, silence, side="left") - 1, 0)
        point = np.where(np.isnan(silence), 0, point)
        phi: Floats = 0.0 - self._rows.table[point, np.arange(len(point))]
        return phi

    def late(self, share: float) -> Floats:
        """Periods of silence beyond which fewer than this share of gaps last, of each group; 1.05 to 2.05."""
        short = self._groups.log < np.log10(share)
        first = np.where(short.any(axis=0), short.argmax(axis=0), POINTS - 1)
        periods: Floats = np.clip(GRID[first], 1.05, 2.05).astype(np.float32)
        return periods

    def usual_late(self, silence: Floats) -> Instants:
        """Share of gaps that last longer than so many periods, of each group, shape (groups,)."""
        point = np.maximum(np.searchsorted(GRID, silence, side="right") - 1, 0)
        shares: Instants = 10 ** self._groups.log[point, np.arange(len(point))]
        return shares

    def _tabulate(self) -> None:
        rows, groups = self._rows, self._groups
        sizes = np.maximum(np.bincount(self._group, minlength=len(groups.fresh)), 1)
        groups.gaps *= np.exp(-groups.fresh / sizes / GROUP_MEMORY)
        groups.brief *= np.exp(-groups.beats / sizes / BRIEF_MEMORY)
        groups.fresh[:], groups.beats[:] = 0, 0
        rows.gaps *= np.exp(-rows.fresh / np.float32(ROW_MEMORY))
        rows.fresh[:] = 0
        everyone = _chance(_beyond(groups.gaps.sum(axis=1, keepdims=True)), _PRIOR_CHANCE[:, None])
        shared = _chance(_beyond(groups.gaps), np.maximum(everyone, LEAN / TRUST))
        brief = _chance(_beyond(groups.brief), shared)
        groups.log = np.maximum(np.maximum(_survival(shared), _survival(brief)), _FLOOR[:, None])
        own = _survival(_chance(_beyond(rows.gaps), shared.astype(np.float32)[:, self._group]))
        # A row that seems better than its group is not trusted to be so: of a thousand rows some are lucky.
        rows.table = np.maximum(np.maximum(own, groups.log.astype(np.float32)[:, self._group]), np.float32(-SURE))


def _beyond(gaps: NDArray[np.floating]) -> NDArray[np.floating]:
    """Gaps that lasted beyond each point, from those that ended between two."""
    counts: NDArray[np.floating] = np.cumsum(gaps[::-1], axis=0)[::-1]
    return counts


def _chance(beyond: NDArray[np.floating], wider: NDArray[np.floating]) -> NDArray[np.floating]:
    """Chance to go on from each point to the next, leaning on the wider one."""
    chances: NDArray[np.floating] = (beyond[1:] + LEAN) / (beyond[:-1] + LEAN / wider)
    return chances


def _survival(chance: NDArray[np.floating]) -> NDArray[np.floating]:
    """log10 of the share of gaps that last beyond each point."""
    start = np.zeros((1, chance.shape[1]), chance.dtype)
    return np.concatenate([start, np.cumsum(np.log10(chance), axis=0)])


RETURN_PENALTY = 1000.0
"""Penalty of a return from the dead."""

SUPPRESS, REUSE, PENALTY_CEILING = 2000.0, 750.0, 6000.0
"""Penalties above which a node flaps, below which it does no longer, and which is the greatest (RFC 2439 §4.2)."""

MIN_ABSENCE_RATIO = 1.5
"""How many times its longest recent absence a flapping node has to be silent to be dead."""


@dataclass(slots=True)
class _Penalties:
    penalty: Annotated[Instants, Column(0.0, np.float64)]
    absence: Annotated[Instants, Column(0.0, np.float64)]
    flapping: Annotated[Flags, Column(0, np.bool_)]


class Flapping:
    """Penalties of nodes."""

    def __init__(self, nodes: int, half_life: float, patience: float) -> None:
        self._rows = blank(_Penalties, nodes)
        self._half_life, self._patience = half_life, patience
        self._now = np.nan

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    def charge(self, nodes: Places, absence: Instants) -> None:
        """Charge nodes for their return from an absence of so many seconds; a node may occur once only."""
        rows = self._rows
        rows.penalty[nodes] = np.minimum(rows.penalty[nodes] + RETURN_PENALTY, PENALTY_CEILING)
        rows.absence[nodes] = np.maximum(rows.absence[nodes], absence)
        rows.flapping[nodes] |= rows.penalty[nodes] >= SUPPRESS

    def at(self, now: float) -> Flags:
        """Who flaps at an instant, shape (nodes,)."""
        rows = self._rows
        passed = 0.0 if np.isnan(self._now) else max(0.0, now - self._now)
        self._now = now
        rows.penalty *= 0.5 ** (passed / self._half_life)
        rows.flapping &= rows.penalty >= REUSE
        rows.absence[rows.penalty < REUSE / 2] = 0.0
        return rows.flapping.copy()

    def patience(self) -> Instants:
        """Seconds of silence before which a node cannot be dead; zero for those that do not flap, shape (nodes,)."""
        rows = self._rows
        return np.where(rows.flapping, np.minimum(MIN_ABSENCE_RATIO * rows.absence, self._patience), 0.0)

    def penalty(self, node: int) -> float:
        """Penalty of a node at the last instant asked."""
        return float(self._rows.penalty[node])
