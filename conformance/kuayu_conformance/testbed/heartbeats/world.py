"""The judge's world of heartbeats: what is registered, what is sent turn by turn, and the truth. See :class:`World`.

1. **Delivery.** Most beats arrive at once, some late, lost, or held back and then together with others. No live node of
   a domain that is heard is silent for more than ``MOST_TURNS`` turns: where it would be, a beat comes in time after
   all. What was on its way for long when its node died is lost with it.
2. **World.** Everything follows from scale and seed. Clocks of nodes are ahead by a little, those of some are quite
   wrong.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.heartbeats.fault_plan import Course, Planner, Stepping
from kuayu_conformance.testbed.heartbeats.values import (
    JOB_HUNG,
    MOST_TURNS,
    PERIOD,
    TURN,
    Absence,
    Beat,
    Cut,
    Delivery,
    Incident,
    Job,
    Line,
    NameOf,
    Scale,
    Turns,
    cuts_of,
    domain_bodies,
    node_bodies,
    placed,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

Instants = NDArray[np.float64]
Numbers = NDArray[np.int64]
_LOST = 0.01  # share of beats
_LATE, _USUALLY, _SPREAD, _LATEST = 0.05, 0.2, 0.8, 1.2  # share of beats; log-normal: median s, sigma, most s
_PATH = (0.005, 0.03)  # seconds to the aggregator
_HELD_EVERY, _HELD = 100.0, (0.5, 1.5)  # seconds between two hold-ups of a node, and of one
_LAST_WORDS = 0.25  # seconds after a node has died in which a beat of it may still come
_NEVER = -1
_CLOCK = 0.02  # seconds that clocks are off
_WRONG, _WRONG_BY = 0.03, 3600.0  # share of nodes whose clock is quite wrong, and seconds by which


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


class World:
    """Domains with their nodes, and the beats and log lines of all turns; everything follows from scale and seed.

    Attributes:
        scale: How large it is.
        domains: To be registered first (class Domain).
        nodes: To be registered next (class Node).
        incidents: Faults in truth, in the order in which they begin; also those that nobody has to tell.
        cuts: Partitions.
        jobs: Jobs and where their ranks run.
        sendings: Batches of all domains, one after the other.
    """

    def __init__(self, scale: Scale, seed: str, name_of: NameOf) -> None:
        self.scale = scale
        self._turns = Turns(scale.domains)
        self._places = placed(scale, seed, name_of)
        self.domains = domain_bodies(self._places)
        self.nodes = node_bodies(self._places, scale)
        self.jobs = self._places.jobs
        self.cuts = cuts_of(scale, seed, self._places.exposed)
        self.sendings = scale.domains * scale.turns
        planner = Planner(scale, seed, self._places, self.cuts, self._turns)
        blockings = planner.blockings()
        self._courses = {
            job.name: Stepping(scale, seed, job, blockings.get(job.name)).course() for job in self._places.jobs
        }
        of_jobs = [
            self._named(job, incident) for job in self._places.jobs for incident in self._courses[job.name].incidents
        ]
        planner.plan(len(of_jobs))
        self.incidents = tuple(sorted([*planner.incidents, *of_jobs], key=lambda incident: incident.onset))
        self._lay_out(seed, planner)

    def delivery(self, sending: int) -> Delivery | None:
        """What is sent as the one of that number; None where the domain cannot be reached or has nothing to say."""
        turn, domain = divmod(sending, self.scale.domains)
        if any(cut.domain == domain and cut.since <= turn < cut.until for cut in self.cuts):
            return None
        numbers = range(*np.searchsorted(self._sending, [sending, sending + 1]).tolist())
        said = tuple(map(self._beat, numbers))
        lines = tuple(self._lines.get(sending, ()))
        if not said and not lines:
            return None
        return Delivery(self._turns.at(domain, turn), self._places.domains[domain], said, lines)

    def _named(self, job: Job, incident: Incident) -> Incident:
        """An incident of a job with the names of domains and nodes."""
        domains = [self._places.domains[row // self.scale.nodes] for row in job.nodes]
        if incident.kind == JOB_HUNG:
            return replace(incident, queried_domains=tuple(dict.fromkeys(domains)))
        rank = incident.rank or 0
        return replace(incident, domain=domains[rank], node=self._places.nodes[job.nodes[rank]])

    def _lay_out(self, seed: str, planner: Planner) -> None:
        """Beats and lines in the order in which they are sent."""
        rows, numbers, sent, sending = [], [], [], []
        for row in range(len(self.nodes)):
            domain = row // self.scale.nodes
            series = beats(row, domain, planner.absences.get(row, ()), self.cuts, self._turns, seed, self.scale.total)
            come = (series.turn >= 0) & (series.turn < self.scale.turns)
            rows.append(np.full(int(come.sum()), row))
            numbers.append(series.number[come])
            sent.append(series.sent[come])
            sending.append(series.turn[come] * self.scale.domains + domain)
        chance = stream(seed, "order within a batch")
        together = np.concatenate(sending)
        order = np.lexsort((chance.random(len(together)), together))
        self._row, self._number = np.concatenate(rows)[order], np.concatenate(numbers)[order]
        self._sent, self._sending = np.concatenate(sent)[order], together[order]
        self._ahead = _clocks(seed, len(self.nodes))
        self._ranks: dict[int, list[tuple[str, int, Course, list[float]]]] = defaultdict(list)
        for job in self._places.jobs:
            course = self._courses[job.name]
            for rank, row in enumerate(job.nodes):
                done = [instant for instant in course.done[:, rank].tolist() if isfinite(instant)]
                self._ranks[row].append((job.name, rank, course, done))
        self._lines: dict[int, list[Line]] = defaultdict(list)
        for instant, row, text in planner.lines:
            domain = row // self.scale.nodes
            number = self._turns.first(domain, instant) * self.scale.domains + domain
            body = {"node": self._places.nodes[row], "text": text}
            self._lines[number].append(Line(instant + self._ahead[row], body))

    def _beat(self, place: int) -> Beat:
        row, sent = int(self._row[place]), float(self._sent[place])
        body: dict[str, object] = {"node": self._places.nodes[row], "number": int(self._number[place])}
        steps: list[documents.RankStep] = []
        for job, rank, course, done in self._ranks.get(row, ()):
            count = bisect_right(done, sent)
            if count:
                steps.append({"job": job, "rank": rank, "step": course.first + count})
        if steps:
            body["steps"] = steps
        return Beat(sent, self._ahead[row], body)


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


def _clocks(seed: str, nodes: int) -> list[float]:
    """Seconds by which the clock of each node is ahead; those of some are quite wrong."""
    chance = Chance(seed, "clocks")
    return [
        chance.between(-_WRONG_BY, _WRONG_BY) if chance.fraction() < _WRONG else chance.between(-_CLOCK, _CLOCK)
        for _ in range(nodes)
    ]
