"""When each beat arrives, if it does: most at once, some late, lost, or held back and then together with others.

No live node of a domain that is heard is silent for more than ``MOST_TURNS`` turns: where weather would have it so, a
beat comes in time after all. What was on its way for long when its node died is lost with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.heartbeats.cutting import Turns
from kuayu_conformance.testbed.heartbeats.values import MOST_TURNS, PERIOD, TURN, Absence, Cut

Instants = NDArray[np.float64]
Numbers = NDArray[np.int64]

_LOST = 0.01  # share of beats
_LATE, _USUALLY, _SPREAD, _LATEST = 0.05, 0.2, 0.8, 1.2  # share of beats; log-normal: median s, sigma, most s
_PATH = (0.005, 0.03)  # seconds to the aggregator
_HELD_EVERY, _HELD = 100.0, (0.5, 1.5)  # seconds between two hold-ups of a node, and of one
_LAST_WORDS = 0.25  # seconds after a node has died in which a beat of it may still come
_NEVER = -1


@dataclass(frozen=True, slots=True)
class Sent:
    """Beats of one node, in the order of sending: number, instant, and turn in which they come, -1 for never."""

    number: Numbers
    sent: Instants
    turn: Numbers


def beats(
    row: int, domain: int, absences: Sequence[Absence], cuts: Sequence[Cut], turns: Turns, seed: str, total: float
) -> Sent:
    """What a node sends in ``total`` seconds, and when it comes."""
    chance = stream(seed, f"beats of {row}")
    lives = _lives(absences, total)
    begin = float(chance.uniform(0.0, PERIOD))
    number, sent, ends = [], [], []
    base = 0
    for since, until, anew in lives:
        phase = since if anew else begin + PERIOD * np.ceil((since - begin) / PERIOD)
        times = np.arange(phase, until, PERIOD)
        base = 0 if anew else round((phase - begin) / PERIOD)
        number.append(base + np.arange(len(times)))
        sent.append(times)
        ends.append(np.full(len(times), until))
    when = np.concatenate(sent)
    count = len(when)
    usual = when + chance.uniform(*_PATH, count)
    arrives = np.maximum(usual, _held(when, usual, chance, total))
    late = chance.random(count) < _LATE
    by = np.minimum(_LATEST, _USUALLY * np.exp(_SPREAD * chance.standard_normal(count)))
    arrives = np.where(late, arrives + by, arrives)
    lost = (chance.random(count) < _LOST) | (arrives > np.concatenate(ends) + _LAST_WORDS)
    turn = np.where(lost, _NEVER, _turn(turns, domain, arrives))
    mine = [cut for cut in cuts if cut.domain == domain]
    for cut in mine:
        turn[(turn >= cut.since) & (turn < cut.until)] = _NEVER
    soonest = _turn(turns, domain, usual)
    for since, until, _ in lives:
        alive = (when >= since) & (when < until)
        for first, last in _heard(_turn(turns, domain, since), _turn(turns, domain, until), mine):
            turn[alive] = _in_time(turn[alive], soonest[alive], first, last)
    return Sent(np.concatenate(number), when, turn)


def _lives(absences: Sequence[Absence], total: float) -> list[tuple[float, float, bool]]:
    """From when until when it beats, and whether its numbers begin anew."""
    found, since, anew = [], 0.0, False
    for absence in absences:
        found.append((since, absence.since, anew))
        since, anew = absence.until, absence.anew
    return [(begin, min(end, total), new) for begin, end, new in [*found, (since, total, anew)] if begin < total]


def _turn(turns: Turns, domain: int, second: Instants | float) -> Numbers:
    found: Numbers = np.ceil(np.asarray(second) / TURN - turns.at(domain, 0) / TURN - 1e-9).astype(np.int64)
    return found


def _held(when: Instants, usual: Instants, chance: np.random.Generator, total: float) -> Instants:
    """When beats come that are held back; what is sent meanwhile comes together at its end."""
    found = usual.copy()
    for since in chance.uniform(0.0, total, int(chance.poisson(total / _HELD_EVERY))):
        until = since + chance.uniform(*_HELD)
        found = np.where((when >= since) & (when < until), np.maximum(found, until), found)
    return found


def _heard(first: Numbers, last: Numbers, cuts: Sequence[Cut]) -> list[tuple[int, int]]:
    """Turns from ``first`` to ``last`` without those in which the domain cannot be reached."""
    found, begin = [], int(first)
    for cut in cuts:
        if cut.since < last and cut.until > begin:
            found.append((begin, cut.since))
            begin = cut.until
    return [(since, until) for since, until in [*found, (begin, int(last))] if since < until]


def _in_time(turn: Numbers, soonest: Numbers, first: int, last: int) -> Numbers:
    """Turns of beats, changed so that between ``first`` and ``last`` nobody waits for news for too long."""
    turn = turn.copy()
    known = first
    while (gap := _silence(turn, known, last)) is not None:
        deadline = gap + MOST_TURNS
        in_reach = np.flatnonzero((soonest <= deadline) & (soonest >= first))
        turn[in_reach[-1]] = deadline
        known = gap
    return turn


def _silence(turn: Numbers, known: int, last: int) -> int | None:
    """The first turn after which no news come for too long, from ``known`` on; None where there is none."""
    indices = np.flatnonzero((turn != _NEVER) & (turn <= last))
    order = indices[np.lexsort((-indices, turn[indices]))]
    ahead = np.maximum.accumulate(order) if len(order) else order
    news = turn[order[order == ahead]]
    news_turns = np.concatenate([[known], news[(news > known)], [last]])
    long = np.flatnonzero(np.diff(news_turns) > MOST_TURNS)
    return int(news_turns[long[0]]) if len(long) else None
