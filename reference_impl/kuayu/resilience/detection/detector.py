"""The fault detector: takes heartbeats, steps and measurements, and says what holds at any instant."""

import numpy as np

from kuayu.resilience.detection import explanations
from kuayu.resilience.detection.explanations import Name
from kuayu.resilience.detection.links import Links
from kuayu.resilience.detection.nodes import Nodes
from kuayu.resilience.detection.progress import Progress
from kuayu.resilience.detection.stragglers import Stragglers
from kuayu.resilience.detection.values import (
    DEAD,
    UNKNOWN,
    Beats,
    Explanation,
    Flags,
    Floats,
    Instants,
    Measurements,
    Origins,
    Places,
    Report,
    Settings,
    Steps,
    Watched,
)


class Detector:
    """Judges nodes, domains, links, jobs and ranks; pure but for its memory: the time comes in with each call.

    Args:
        watched: What is watched; ``rearrange`` changes it.
        settings: What the operator decides.
    """

    def __init__(self, watched: Watched, settings: Settings | None = None) -> None:
        self.watched = watched
        self.settings = settings or Settings()
        self._nodes = Nodes(watched, self.settings)
        self._progress = Progress(watched, self.settings)
        self._stragglers = Stragglers(watched)
        self._links = Links(watched.links)
        self._now = -np.inf
        self._job_threshold: Floats = np.zeros(watched.jobs, np.float32)

    def rearrange(self, watched: Watched, origins: Origins) -> None:
        """Go on with other rows; row i of a kind was row ``origins.kind[i]`` before, or is new where that is −1."""
        self.watched = watched
        self._nodes.rearrange(watched, origins)
        self._progress.rearrange(watched, origins)
        self._stragglers.rearrange(watched, origins)
        self._links.rearrange(np.arange(watched.links) if origins.links is None else origins.links)

    def hear(self, beats: Beats) -> Flags:
        """Take in heartbeats, in any order.

        Returns:
            Whether each is news, shape (beats,): not heard before, and not overtaken by a later one.
        """
        return self._nodes.hear(beats)

    def expect(self, node: Places, at: Instants, period: Instants, dead: Flags) -> None:
        """Take nodes for heard that have beaten before this detector was made, and the dead of them for dead.

        Args:
            node: Their rows, shape (nodes,); of new nodes.
            at: When each is taken to have been heard last, s.
            period: Usual seconds between the beats of each.
            dead: Whether each was dead.
        """
        self._nodes.arrivals.expect(node, at, period, dead)

    @property
    def period(self) -> Instants:
        """Usual seconds between beats of each node, shape (nodes,); NaN where fewer than two were heard."""
        senders = self._nodes.arrivals.senders
        return np.where(senders.count > 1, senders.period, np.nan)

    def follow(self, steps: Steps) -> None:
        """Take in steps of ranks, in any order; they are signs of life of the ranks' nodes too."""
        if not len(steps.rank):
            return
        before = self._progress.ranks.senders.top.copy()
        moved = self._progress.follow(steps)
        senders = self._progress.ranks.senders
        self._nodes.vouch(self.watched.rank_node[moved], senders.heard[moved])
        anew = moved[senders.top[moved] < before[moved]]
        if len(anew):
            self._stragglers.restart(anew, senders.top[anew])
        self._stragglers.follow(steps)

    def measure(self, measurements: Measurements) -> None:
        """Take in measurements of links, in any order."""
        self._links.measure(measurements)

    def look(self, now: float) -> Report:
        """What holds at an instant.

        Raises:
            ValueError: The instant is before the last one asked for.
        """
        if not now >= self._now:
            raise ValueError(f"asked for {now} s after {self._now} s")
        self._now = now
        judged = self._nodes.look(now)
        senders, domain = self._nodes.arrivals.senders, self.watched.domain
        late = judged.silence > (judged.late[domain] + 0.5) * senders.period
        missed = np.where(late, judged.silence, 0.0)
        suspicion, self._job_threshold = self._progress.look(now, self._nodes.state, missed)
        unheard = late | (self._nodes.state == DEAD) | (self._nodes.state == UNKNOWN)
        self._stragglers.look(now, self._progress.pace, unheard[self.watched.rank_node])
        self._links.look(now)
        return Report(
            now=now,
            node=self._nodes.state.copy(),
            node_since=self._nodes.since.copy(),
            node_begun=senders.begun.copy(),
            silence=judged.silence,
            limit=self._nodes.limit(),
            suspicion=judged.suspicion,
            threshold=judged.threshold,
            flapping=judged.flapping,
            domain=self._nodes.domains.state.copy(),
            domain_since=self._nodes.domains.since.copy(),
            silent_share=judged.shared.share,
            link=self._links.state.copy(),
            link_since=self._links.since.copy(),
            job=self._progress.state.copy(),
            job_since=self._progress.since.copy(),
            job_pause=self._progress.pause.copy(),
            job_longest=self._progress.longest,
            job_begun=self._progress.begun.copy(),
            job_begun_step=self._progress.begun_step.copy(),
            job_suspicion=suspicion,
            rank=self._stragglers.state.copy(),
            rank_since=self._stragglers.since.copy(),
            behind=self._stragglers.behind.copy(),
        )

    def explain_node(self, node: int, report: Report) -> Explanation:
        """Why a node is in its state; the report has to be the last one."""
        return explanations.of_node(node, report, self._nodes, self.watched)

    def explain_domain(self, domain: int, report: Report) -> Explanation:
        """Why a domain is in its state; the report has to be the last one."""
        return explanations.of_domain(domain, report, self._nodes, self.watched)

    def explain_job(self, job: int, report: Report, *, node_name: Name = str, rank_name: Name = str) -> Explanation:
        """Why a job is in its state; the report has to be the last one. Nodes and ranks are called by their rows."""
        threshold = float(self._job_threshold[job])
        return explanations.of_job(job, report, self._progress, self.watched, threshold, (node_name, rank_name))

    def explain_rank(self, rank: int, report: Report) -> Explanation:
        """Why a rank is in its state; the report has to be the last one."""
        return explanations.of_rank(rank, report, self._stragglers)

    def explain_link(self, link: int, report: Report) -> Explanation:
        """Why a link is in its state; the report has to be the last one."""
        return explanations.of_link(link, report, self._links)
