"""Nodes that send heartbeats, to a detector that a test looks at."""

from collections.abc import Iterable

import numpy as np

from kuayu.resilience.detection import (
    DOMAIN_STATES,
    JOB_STATES,
    NODE_STATES,
    RANK_STATES,
    Beats,
    Detector,
    Population,
    Report,
    Settings,
    Steps,
)

PERIOD, TICK = 0.5, 0.1


class Hearts:
    """Domains of so many nodes each; every node sends at a phase of its own, and a test says who is heard."""

    def __init__(self, *domains: int, seed: int = 1, settings: Settings | None = None, **jobs: object) -> None:
        self.domain = np.repeat(np.arange(len(domains)), domains)
        self.watched = Population(self.domain, len(domains), **jobs)  # type: ignore[arg-type]
        self.detector = Detector(self.watched, settings)
        self.random = np.random.default_rng(seed)
        self.phase = self.random.uniform(0, PERIOD, len(self.domain))
        self.sequence = np.zeros(len(self.domain), np.int64)
        self.clock = np.zeros(len(self.domain))
        self.ticks = 0

    @property
    def now(self) -> float:
        """Seconds that have passed."""
        return self.ticks * TICK

    def go(self, seconds: float, mute: Iterable[int] = (), lossy: float = 0.0) -> Report:
        """Let time pass; mute nodes make beats that are not heard, others lose a share of theirs."""
        quiet = np.isin(np.arange(len(self.domain)), list(mute))
        for _ in range(round(seconds / TICK)):
            self.detector.hear(self.made(~quiet, lossy))
            report = self.detector.look(self.now)
        return report

    def made(self, heard: np.ndarray, lossy: float = 0.0) -> Beats:
        """Beats of the next tick."""
        begins, self.ticks = self.now, self.ticks + 1
        first = np.ceil((begins - self.phase) / PERIOD - 1e-9)
        due = self.phase + PERIOD * first
        sends = (due < self.now - 1e-9) & (due >= 0)
        self.sequence[sends] += 1
        kept = np.flatnonzero(sends & heard & (self.random.random(len(due)) >= lossy))
        received = due[kept] + self.random.uniform(0, 0.003, len(kept))
        return Beats(kept, self.sequence[kept].copy(), due[kept] + self.clock[kept], received)

    def restart(self, node: int) -> None:
        """Let a node count from the beginning."""
        self.sequence[node] = 0

    def hear(self, node: int, sequence: int, sent: float, received: float) -> None:
        """Let one beat arrive that a test has made."""
        self.detector.hear(Beats(np.array([node]), np.array([sequence]), np.array([sent]), np.array([received])))


def nodes(report: Report) -> list[str]:
    """States of the nodes by name."""
    return [NODE_STATES[each] for each in report.node]


def domains(report: Report) -> list[str]:
    """States of the domains by name."""
    return [DOMAIN_STATES[each] for each in report.domain]


def job_states(report: Report) -> list[str]:
    """States of the jobs by name."""
    return [JOB_STATES[each] for each in report.job]


def ranks(report: Report) -> list[str]:
    """States of the ranks by name."""
    return [RANK_STATES[each] for each in report.rank]


def steps(rank: Iterable[int], step: int | Iterable[int], received: Iterable[float]) -> Steps:
    """Steps of ranks."""
    rank = np.array(list(rank))
    step = np.broadcast_to(np.array(step if isinstance(step, int) else list(step)), rank.shape)
    return Steps(rank, step, np.array(list(received), float))
