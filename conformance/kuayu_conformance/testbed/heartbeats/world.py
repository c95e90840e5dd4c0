"""The judge's world of heartbeats: what is registered, what is sent turn by turn, and the truth. See :class:`World`."""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.heartbeats.cutting import Turns, cuts_of
from kuayu_conformance.testbed.heartbeats.placing import Job, NameOf, domain_bodies, node_bodies, placed
from kuayu_conformance.testbed.heartbeats.planning import Planner
from kuayu_conformance.testbed.heartbeats.stepping import Course, Stepping
from kuayu_conformance.testbed.heartbeats.values import JOB_HUNG, Beat, Delivery, Incident, Line, Scale
from kuayu_conformance.testbed.heartbeats.weather import beats

if TYPE_CHECKING:
    from kuayu_schemas import documents

_CLOCK = 0.02  # seconds that clocks are off
_WRONG, _WRONG_BY = 0.03, 3600.0  # share of nodes whose clock is quite wrong, and seconds by which


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


def _clocks(seed: str, nodes: int) -> list[float]:
    """Seconds by which the clock of each node is ahead; those of some are quite wrong."""
    chance = Chance(seed, "clocks")
    return [
        chance.between(-_WRONG_BY, _WRONG_BY) if chance.fraction() < _WRONG else chance.between(-_CLOCK, _CLOCK)
        for _ in range(nodes)
    ]
