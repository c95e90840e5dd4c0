"""Jobs that step, pause for checkpoints, hang, and have slow ranks; what the detector says of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import beta, chi2

from kuayu.resilience.detection import JOB_STATES, RANK_STATES, Beats, Detector, Population, Steps

PERIOD, TICK, LEARNING = 0.5, 0.5, 600.0
HUNG, STRAGGLER = JOB_STATES.index("hung"), RANK_STATES.index("straggler")
RANKS, PER_NODE = 16, 8


class Job:
    """One job: the times at which its ranks have done their steps, drawn beforehand.

    Synchronous jobs wait for the slowest rank; the others go each at its own pace. Checkpoints come every so often.
    A straggler is slower by ``slow`` from ``slows`` on; a hang ends all steps at ``hangs``.
    """

    def __init__(self, random: np.random.Generator, seconds: float, *, other: bool, ill: bool) -> None:
        self.pace = random.uniform(0.4, 4.0) if other else float(np.exp(random.uniform(np.log(0.25), np.log(8))))
        self.sync = random.random() < 0.7
        self.noise = random.uniform(0.01, 0.04) if other else random.uniform(0.01, 0.06)
        every = random.integers(100, 300) if other else random.integers(40, 400)
        pause = random.uniform(3, 10) if other else random.uniform(2, 20)
        self.hangs, self.slows, self.slow, self.slow_rank = np.inf, np.inf, 1.0, int(random.integers(RANKS))
        if ill:
            at = LEARNING + random.uniform(0, 0.5) * (seconds - LEARNING)
            if random.random() < 0.5:
                self.hangs = at
            else:
                self.slows, self.slow = at, random.uniform(1.25, 2.0)
        steps = int(seconds / self.pace) + 1
        work = self.pace * (1 + self.noise * random.standard_normal((steps, RANKS)))
        work += self.pace * random.exponential(0.2, work.shape) * (random.random(work.shape) < 0.003)
        saves = np.arange(steps) % every == every - 1
        save = np.where(saves, pause * self.pace ** (0.0 if other else 0.3) * random.uniform(0.8, 1.3, steps), 0.0)
        times = np.empty((steps, RANKS))
        now = np.zeros(RANKS)
        for step in range(steps):
            mine = work[step].copy()
            mine[self.slow_rank] *= self.slow if now[self.slow_rank] > self.slows else 1.0
            now = now + mine
            times[step] = now
            now = (np.full(RANKS, now.max()) if self.sync else now) + save[step]
        self.ends = float(times[-1].max())
        heard = times + 0.002 * np.exp(0.6 * random.standard_normal(times.shape))
        kept = (times < self.hangs) & (times < seconds)
        self.step, self.rank = np.nonzero(kept)
        self.heard = heard[kept]


def arriving(all_jobs: list[Job], seconds: float) -> Iterator[tuple[float, Steps]]:
    """Steps of all jobs, a look at a time."""
    rank = np.concatenate([job.rank + RANKS * place for place, job in enumerate(all_jobs)])
    step = np.concatenate([job.step for job in all_jobs])
    heard = np.concatenate([job.heard for job in all_jobs])
    order = np.argsort(heard, kind="stable")
    rank, step, heard = rank[order], step[order], heard[order]
    times = TICK * np.arange(1, int(seconds / TICK))
    first = 0
    for now, last in zip(times.tolist(), np.searchsorted(heard, times, side="right").tolist(), strict=True):
        yield now, Steps(rank[first:last], step[first:last], heard[first:last])
        first = last


def played(seed: int, seconds: float, count: int, *, other: bool, ill: bool) -> dict[str, Any]:
    """First verdicts on jobs and ranks, and those that were false."""
    random = np.random.default_rng([seed, int(ill)])
    all_jobs = [Job(random, seconds, other=other, ill=ill) for _ in range(count)]
    rank_job = np.repeat(np.arange(count), RANKS)
    rank_node = np.arange(count * RANKS) // PER_NODE
    nodes = int(rank_node[-1]) + 1
    watched = Population(np.arange(nodes) * 5 // nodes, 5, rank_job, rank_node, count)
    detector = Detector(watched)
    hung, slow = np.zeros(count, bool), np.zeros(count * RANKS, bool)
    first_hung, first_slow = np.full(count, np.inf), np.full(count * RANKS, np.inf)
    false_hung = false_slow = beat = 0
    hangs = np.array([job.hangs for job in all_jobs])
    ends = np.array([job.ends for job in all_jobs])
    slows = np.full(count * RANKS, np.inf)
    for place, job in enumerate(all_jobs):
        slows[place * RANKS + job.slow_rank] = job.slows
    for now, steps in arriving(all_jobs, min(seconds, float(ends.min()))):
        if now >= beat * PERIOD:
            every = np.arange(nodes)
            detector.hear(Beats(every, np.full(nodes, beat), np.full(nodes, now), np.full(nodes, now)))
            beat += 1
        detector.follow(steps)
        report = detector.look(now)
        now_hung, now_slow = report.job == HUNG, report.rank == STRAGGLER
        if now > LEARNING:
            false_hung += int((now_hung & ~hung & (now < hangs)).sum())
            false_slow += int((now_slow & ~slow & (now < slows)).sum())
        first_hung = np.where(now_hung & (now >= hangs), np.minimum(first_hung, now), first_hung)
        first_slow = np.where(now_slow & (now >= slows), np.minimum(first_slow, now), first_slow)
        hung, slow = now_hung, now_slow
    paces = np.array([job.pace for job in all_jobs])
    ill_jobs, ill_ranks = np.isfinite(hangs), np.isfinite(slows)
    return {
        "hang": first_hung[ill_jobs] - hangs[ill_jobs],
        "hang steps": (first_hung[ill_jobs] - hangs[ill_jobs]) / paces[ill_jobs],
        "straggler": first_slow[ill_ranks] - slows[ill_ranks],
        "straggler steps": (first_slow[ill_ranks] - slows[ill_ranks]) / np.repeat(paces, RANKS)[ill_ranks],
        "false hangs": false_hung,
        "false stragglers": false_slow,
        "job-days": count * (seconds - LEARNING) / 86_400,
    }


def jobs(seed: int, count: int, *, other: bool, seconds: float = 1500.0) -> dict[str, Any]:
    """Recall and delays of hangs and stragglers, and false verdicts on jobs without either; prints them too."""
    ill = played(seed, seconds, count, other=other, ill=True)
    well = played(seed + 1, seconds, count, other=other, ill=False)
    found: dict[str, Any] = {"job-days without fault": well["job-days"]}
    print(f"\n{count} jobs of {RANKS} ranks, {seconds:.0f} s; {well['job-days']:.1f} job-days without fault")
    print("  fault         p50 s  p99 s  p50 steps  p99 steps   recall  bound     n  false per job-day  bound")
    for name, plural in (("hang", "false hangs"), ("straggler", "false stragglers")):
        delays, steps = ill[name], ill[f"{name} steps"]
        right, total = int(np.isfinite(delays).sum()), len(delays)
        false = well[plural]
        each = {
            "p50 s": quantile(delays, 0.5),
            "p99 s": quantile(delays, 0.99),
            "p50 steps": quantile(steps, 0.5),
            "p99 steps": quantile(steps, 0.99),
            "recall": right / total,
            "bound": float(beta.ppf(0.05, right, total - right + 1)) if right else 0.0,
            "n": total,
            "false per job-day": false / well["job-days"],
            "false bound": float(chi2.ppf(0.95, 2 * false + 2) / 2 / well["job-days"]),
        }
        found[name] = each
        print(f"  {name:11} {each['p50 s']!s:>7} {each['p99 s']!s:>6}"
              f" {each['p50 steps']!s:>10} {each['p99 steps']!s:>10} {each['recall']:8.2%} {each['bound']:6.2%}"
              f" {total:5d} {each['false per job-day']:18.3f} {each['false bound']:6.3f}")  # fmt: skip
    return found


def quantile(values: np.ndarray, share: float) -> float | str:
    """A quantile, rounded; ``never`` where it has no end, or there are none."""
    if not len(values):
        return "never"
    found = float(np.quantile(values, share, method="higher"))
    return round(found, 2) if np.isfinite(found) else "never"
