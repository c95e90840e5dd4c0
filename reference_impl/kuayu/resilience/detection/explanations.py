"""Why a node, domain, job, rank or link is in its state, in words and figures."""

from collections.abc import Callable

import numpy as np

from kuayu.resilience.detection import values as states
from kuayu.resilience.detection.links import ALARM as LINK_ALARM
from kuayu.resilience.detection.links import Links
from kuayu.resilience.detection.nodes import Nodes
from kuayu.resilience.detection.progress import Progress
from kuayu.resilience.detection.stragglers import ALARM as RANK_ALARM
from kuayu.resilience.detection.stragglers import Stragglers
from kuayu.resilience.detection.values import Explanation, Report, Watched

RAREST = 9.0
"""Suspicion above which it is not told how rare a silence is: so many gaps were never seen."""

Name = Callable[[int], str]
"""What a row is called."""


def of_node(node: int, report: Report, nodes: Nodes, watched: Watched) -> Explanation:
    """Why a node is in its state."""
    state = states.NODE_STATES[report.node[node]]
    told: list[str] = []
    senders = nodes.arrivals.senders
    if senders.count[node] == 0:
        return Explanation(state, float(report.node_since[node]), 0.0, float(report.threshold[node]), ("never heard",))
    silence, period = float(report.silence[node]), float(senders.period[node])
    told.append(f"last sign of life {silence:.2f} s ago, {silence / period:.1f} times its usual {period:.2f} s")
    domain = int(watched.domain[node])
    share = float(report.silent_share[domain])
    if report.node[node] == states.UNKNOWN:
        told.insert(0, f"its domain is silent: {share:.0%} of the beats that are due do not come")
    elif report.node[node] != states.ALIVE:
        gaps = 10 ** min(float(report.suspicion[node]), RAREST)
        told.append(f"one in {_rounded(gaps)} gaps of a live node is so long")
        told.append(f"{1 - share:.0%} of the beats that are due from its domain come")
    limit = float(nodes.limit()[node])
    if report.node[node] == states.DEAD and silence > limit:
        told.append(f"no node is granted more than {limit:.2f} s of silence of its own")
    if report.flapping[node]:
        told.append(f"it comes and goes, penalty {nodes.flapping.penalty(node):.0f}")
    if senders.lost[node] > 0.001:  # noqa: PLR2004 - below it is not worth telling
        told.append(f"{float(senders.lost[node]):.1%} of its beats were lost lately")
    return Explanation(
        state,
        float(report.node_since[node]),
        float(report.suspicion[node]),
        float(report.threshold[node]),
        tuple(told),
    )


def of_domain(domain: int, report: Report, nodes: Nodes, watched: Watched) -> Explanation:
    """Why a domain is in its state; what accrues is the share of due beats that do not come."""
    of_it = watched.domain == domain
    known = of_it & (nodes.arrivals.senders.count > 0)
    cut = int((report.node[known] == states.UNKNOWN).sum())
    share = float(report.silent_share[domain])
    heard = nodes.arrivals.senders.heard[known]
    told = [f"{share:.0%} of the beats that are due do not come"]
    if len(heard):
        told.append(f"last beat {report.now - float(heard.max()):.2f} s ago")
    told.append(f"{cut} of {int(of_it.sum())} nodes are unknown for that reason")
    since = float(report.domain_since[domain])
    return Explanation(states.DOMAIN_STATES[report.domain[domain]], since, share, 0.5, tuple(told))


def of_job(
    job: int, report: Report, progress: Progress, watched: Watched, threshold: float, names: tuple[Name, Name]
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
    told = [f"step {step} was done {pause:.1f} s ago, {pause / pace:.1f} times its usual {pace:.2f} s"]
    ranks = np.flatnonzero(watched.rank_job == job)
    if report.job[job] == states.BLOCKED:
        ill = np.unique(watched.rank_node[ranks][report.node[watched.rank_node[ranks]] != states.ALIVE])
        told.append(f"nodes that are not alive: {_listed(ill, node_name)}")
    if report.job[job] == states.HUNG:
        told.append("all of its nodes send heartbeats")
        short = ranks[progress.ranks.senders.top[ranks] < step]
        if 0 < len(short) < len(ranks):
            told.append(f"ranks that have not done this step: {_listed(short, rank_name)}")
    return Explanation(state, since, suspicion, threshold, tuple(told))


def of_rank(rank: int, report: Report, stragglers: Stragglers) -> Explanation:
    """Why a rank is in its state."""
    told = (f"it does its steps {float(report.behind[rank]):.0%} of a step later than the median of its peers",)
    state = states.RANK_STATES[report.rank[rank]]
    return Explanation(state, float(report.rank_since[rank]), float(stragglers.sum[rank]), RANK_ALARM, told)


def of_link(link: int, report: Report, links: Links) -> Explanation:
    """Why a link is in its state."""
    accrued, told = links.evidence(link)
    state = states.LINK_STATES[report.link[link]]
    return Explanation(state, float(report.link_since[link]), accrued, LINK_ALARM, told or ("never measured",))


def _listed(rows: states.Places, name: Name, most: int = 5) -> str:
    named = ", ".join(name(int(row)) for row in rows[:most])
    return named + (f" and {len(rows) - most} more" if len(rows) > most else "")


def _rounded(count: float) -> int:
    """A large number with one figure that counts."""
    return int(float(f"{count:.0e}"))
