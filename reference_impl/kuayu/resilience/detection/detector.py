"""The fault detector: takes heartbeats, steps and measurements, says what holds at any instant, and why.

1. Pure but for its memory: the time comes in with each call and must not go back.
2. A step that a rank has done is a sign of life of its node.
3. A rank is not held slow for what a node does not tell that is late, dead or unknown.
4. Every state is explained by figures, the weightiest first: suspicion, and the threshold that it is compared with.
"""

from collections.abc import Callable

import numpy as np

from kuayu.resilience.detection import records as states
from kuayu.resilience.detection.jobs import ALARM as RANK_ALARM
from kuayu.resilience.detection.jobs import Progress, Stragglers
from kuayu.resilience.detection.nodes import LINK_ALARM, Links, Nodes
from kuayu.resilience.detection.records import (
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
    Population,
    Report,
    Settings,
    Steps,
)

RAREST = 9.0
"""Suspicion above which it is not told how rare a silence is: so many gaps were never seen."""

Name = Callable[[int], str]
"""What a row is called."""


def explain_node(node: int, report: Report, nodes: Nodes, watched: Population) -> Explanation:
    """Why a node is in its state."""
    state = states.NODE_STATES[report.node[node]]
    evidence: list[str] = []
    senders = nodes.arrivals.senders
    if senders.count[node] == 0:
        return Explanation(state, float(report.node_since[node]), 0.0, float(report.threshold[node]), ("never heard",))
    silence, period = float(report.silence[node]), float(senders.period[node])
    evidence.append(f"last sign of life {silence:.2f} s ago, {silence / period:.1f} times its usual {period:.2f} s")
    domain = int(watched.domain[node])
    share = float(report.silent_share[domain])
    if report.node[node] == states.UNKNOWN:
        evidence.insert(0, f"its domain is silent: {share:.0%} of the beats that are due do not come")
    elif report.node[node] != states.ALIVE:
        gaps = 10 ** min(float(report.suspicion[node]), RAREST)
        evidence.append(f"one in {_rounded(gaps)} gaps of a live node is so long")
        evidence.append(f"{1 - share:.0%} of the beats that are due from its domain come")
    limit = float(nodes.limit()[node])
    if report.node[node] == states.DEAD and silence > limit:
        evidence.append(f"no node is granted more than {limit:.2f} s of silence of its own")
    if report.flapping[node]:
        evidence.append(f"it comes and goes, penalty {nodes.flapping.penalty(node):.0f}")
    if senders.lost[node] > 0.001:  # noqa: PLR2004 - below it is not worth telling
        evidence.append(f"{float(senders.lost[node]):.1%} of its beats were lost lately")
    return Explanation(
        state,
        float(report.node_since[node]),
        float(report.suspicion[node]),
        float(report.threshold[node]),
        tuple(evidence),
    )


def explain_domain(domain: int, report: Report, nodes: Nodes, watched: Population) -> Explanation:
    """Why a domain is in its state; what accrues is the share of due beats that do not come."""
    of_it = watched.domain == domain
    known = of_it & (nodes.arrivals.senders.count > 0)
    cut = int((report.node[known] == states.UNKNOWN).sum())
    share = float(report.silent_share[domain])
    last_beats = nodes.arrivals.senders.last_beat[known]
    evidence = [f"{share:.0%} of the beats that are due do not come"]
    if len(last_beats):
        evidence.append(f"last beat {report.now - float(last_beats.max()):.2f} s ago")
    evidence.append(f"{cut} of {int(of_it.sum())} nodes are unknown for that reason")
    since = float(report.domain_since[domain])
    return Explanation(states.DOMAIN_STATES[report.domain[domain]], since, share, 0.5, tuple(evidence))


def explain_job(
    job: int, report: Report, progress: Progress, watched: Population, threshold: float, names: tuple[Name, Name]
) -> Explanation:
    """Why a job is in its state; ``names`` are those of nodes and of ranks."""
    node_name, rank_name = names
    state = states.JOB_STATES[report.job[job]]
    since = float(report.job_since[job])
    suspicion = float(report.job_suspicion[job])
    step = int(progress.step[job])
    if report.job[job] == states.UNPACED:
        return Explanation(state, since, suspicion, threshold, ("too few steps to know its pace",))
    pause, pace = report.now - float(progress.advanced[job]), float(progress.pace[job])
    evidence = [f"step {step} was done {pause:.1f} s ago, {pause / pace:.1f} times its usual {pace:.2f} s"]
    ranks = np.flatnonzero(watched.rank_job == job)
    if report.job[job] == states.BLOCKED:
        ill = np.unique(watched.rank_node[ranks][report.node[watched.rank_node[ranks]] != states.ALIVE])
        evidence.append(f"nodes that are not alive: {_listed(ill, node_name)}")
    if report.job[job] == states.HUNG:
        evidence.append("all of its nodes send heartbeats")
        short = ranks[progress.ranks.senders.top[ranks] < step]
        if 0 < len(short) < len(ranks):
            evidence.append(f"ranks that have not done this step: {_listed(short, rank_name)}")
    return Explanation(state, since, suspicion, threshold, tuple(evidence))


def explain_rank(rank: int, report: Report, stragglers: Stragglers) -> Explanation:
    """Why a rank is in its state."""
    evidence = (f"it does its steps {float(report.behind[rank]):.0%} of a step later than the median of its peers",)
    state = states.RANK_STATES[report.rank[rank]]
    return Explanation(state, float(report.rank_since[rank]), float(stragglers.sum[rank]), RANK_ALARM, evidence)


def explain_link(link: int, report: Report, links: Links) -> Explanation:
    """Why a link is in its state."""
    accrued, evidence = links.evidence(link)
    state = states.LINK_STATES[report.link[link]]
    return Explanation(state, float(report.link_since[link]), accrued, LINK_ALARM, evidence or ("never measured",))


def _listed(rows: states.Places, name: Name, most: int = 5) -> str:
    named = ", ".join(name(int(row)) for row in rows[:most])
    return named + (f" and {len(rows) - most} more" if len(rows) > most else "")


def _rounded(count: float) -> int:
    """A large number with one figure that counts."""
    return int(float(f"{count:.0e}"))


class Detector:
    """Judges nodes, domains, links, jobs and ranks; pure but for its memory: the time comes in with each call.

    Args:
        watched: What is watched; ``rearrange`` changes it.
        settings: What the operator decides.
    """

    def __init__(self, watched: Population, settings: Settings | None = None) -> None:
        self.watched = watched
        self.settings = settings or Settings()
        self._nodes = Nodes(watched, self.settings)
        self._progress = Progress(watched, self.settings)
        self._stragglers = Stragglers(watched)
        self._links = Links(watched.links)
        self._now = -np.inf
        self._job_threshold: Floats = np.zeros(watched.jobs, np.float32)

    def rearrange(self, watched: Population, origins: Origins) -> None:
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

    def expect(self, node: Places, heard_at: Instants, period: Instants, dead: Flags) -> None:
        """Take nodes for heard that have beaten before this detector was made, and the dead of them for dead.

        Args:
            node: Their rows, shape (nodes,); of new nodes.
            heard_at: When each is taken to have been heard last, s.
            period: Usual seconds between the beats of each.
            dead: Whether each was dead.
        """
        self._nodes.arrivals.expect(node, heard_at, period, dead)

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
        self._nodes.vouch(self.watched.rank_node[moved], senders.last_beat[moved])
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
        return explain_node(node, report, self._nodes, self.watched)

    def explain_domain(self, domain: int, report: Report) -> Explanation:
        """Why a domain is in its state; the report has to be the last one."""
        return explain_domain(domain, report, self._nodes, self.watched)

    def explain_job(self, job: int, report: Report, *, node_name: Name = str, rank_name: Name = str) -> Explanation:
        """Why a job is in its state; the report has to be the last one. Nodes and ranks are called by their rows."""
        threshold = float(self._job_threshold[job])
        return explain_job(job, report, self._progress, self.watched, threshold, (node_name, rank_name))

    def explain_rank(self, rank: int, report: Report) -> Explanation:
        """Why a rank is in its state; the report has to be the last one."""
        return explain_rank(rank, report, self._stragglers)

    def explain_link(self, link: int, report: Report) -> Explanation:
        """Why a link is in its state; the report has to be the last one."""
        return explain_link(link, report, self._links)
