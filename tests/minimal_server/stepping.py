"""Jobs that hang and ranks that straggle, by the steps that heartbeats tell of."""

from minimal_server.core import Json, Tenant
from minimal_server.faults import Faults
from minimal_server.hearing import Job, Rank, Ward

STANDSTILL, TIMES = 30_500, 3
"""A job hangs that makes no step for so many milliseconds, and for so many times as long as it ever took."""

UNHEARD = 1200
"""A job may do steps that nobody is told of while one of its nodes was silent for so many milliseconds."""

LATE, SURELY = 0.1, 50.0
"""A rank is late by more than so much of a step and so many milliseconds; paths to domains differ by a few of these."""

OFTEN = 4
"""Late steps of the last twenty at which a rank straggles: twice a second is too seldom to see all of them."""

IN_TIME, LONGEST = 12_000, 25_000
"""Milliseconds without a late step after which a rank straggles no more: three steps of it, but not for ever."""


class Stepping(Faults):
    """What follows from steps."""

    def take_step(self, tenant: Tenant, ward: Ward, node: str, told: Json, seen: float) -> None:
        """A rank has come so far."""
        name, number, step = told["job"], told["rank"], told["step"]
        job = ward.jobs.get(name)
        rank = job.ranks.get(number) if job else None
        if told.get("ended"):
            if job is not None and rank is not None:
                self.end_rank(tenant, ward, name, job, number)
            return
        if job is None:
            job = ward.jobs[name] = Job(front=step, turned=ward.clock)
        if rank is None:
            job.ranks[number] = Rank(node, step, seen)
            job.moved = ward.clock
            return
        rank.node = node
        if step < rank.step:
            self.clear_ranks(tenant, name, job)
            job.begin_anew(number, Rank(node, step, seen), ward.clock)
            return
        if step > rank.step:
            self.note_lateness(job, rank, ward.clock)
            job.go_on(rank, step, ward.clock, seen)
            rank.step = step
        rank.seen = seen

    def note_lateness(self, job: Job, rank: Rank, clock: int) -> None:
        """A step was late if others had done it for a while when the rank was last seen not to have."""
        pace, done = job.pace, job.done.get(rank.step + 1)
        if pace is not None and done is not None:
            late = rank.seen - done > max(LATE * pace, SURELY)
            rank.lates.append(late)
            rank.late = clock if late else rank.late

    def end_rank(self, tenant: Tenant, ward: Ward, name: str, job: Job, number: int) -> None:
        """A rank is watched no more, nor is its job when it was the last."""
        del job.ranks[number]
        self.clear(tenant, ("rank_straggling", name, number), self.moment)
        if not job.ranks:
            del ward.jobs[name]
            self.clear(tenant, ("job_hung", name, -1), self.moment)

    def clear_ranks(self, tenant: Tenant, name: str, job: Job) -> None:
        """A job begins anew: what its ranks were is over."""
        for number in job.ranks:
            self.clear(tenant, ("rank_straggling", name, number), self.moment)

    def forget_ranks(self, tenant: Tenant, ward: Ward, node: str) -> None:
        """Ranks on a node that is no more are not watched."""
        for name, job in list(ward.jobs.items()):
            for number in [number for number, rank in job.ranks.items() if rank.node == node]:
                self.end_rank(tenant, ward, name, job, number)

    def look_at_jobs(self, tenant: Tenant, ward: Ward) -> None:
        """Tell which jobs hang and which ranks straggle."""
        for name, job in ward.jobs.items():
            self.judge_job(tenant, ward, name, job)
            for number, rank in job.ranks.items():
                if rank.late:
                    self.judge_rank(tenant, ward, (name, number), job, rank)

    def judge_job(self, tenant: Tenant, ward: Ward, name: str, job: Job) -> None:
        """A job hangs that makes no step though all its nodes live, from when they do."""
        key = "job_hung", name, -1
        pace = job.pace
        limit = max(STANDSTILL, TIMES * job.longest)
        if pace is None or ward.clock - job.moved <= limit:
            self.clear(tenant, key, self.moment)
            return
        told = self.docket(tenant).open
        nodes = {rank.node for rank in job.ranks.values()}
        sites = {self.held(tenant, "nodes")[node]["domain"] for node in nodes}
        if any(("node_dead", node, -1) in told for node in nodes) or any(
            ("domain_unreachable", site, -1) in told for site in sites
        ):
            self.clear(tenant, key, self.moment)
            return
        watches = [ward.nodes[node] for node in nodes]
        since = max(job.moved, *(watch.revived for watch in watches), *(ward.sites[site].back for site in sites))
        heard = all(ward.clock - watch.heard <= max(UNHEARD, 2 * watch.period) for watch in watches)
        if heard and ward.clock - since > limit:
            still = ward.clock - job.moved
            because = f"no step for {still / 1000:.1f} s, though one takes {pace / 1000:.2f} s and all its nodes live"
            self.tell(tenant, key, {"job": name, "domains": sorted(sites)}, self.moment - still, because)

    def judge_rank(self, tenant: Tenant, ward: Ward, which: tuple[str, int], job: Job, rank: Rank) -> None:
        """A rank straggles that is late again and again."""
        key = "rank_straggling", *which
        if ward.clock - rank.late > min(max(IN_TIME, 3 * (job.pace or 0)), LONGEST):
            rank.late = 0.0
            rank.lates.clear()
            self.clear(tenant, key, self.moment)
        elif sum(rank.lates) >= OFTEN and which[0] in ward.jobs:
            domain = self.held(tenant, "nodes")[rank.node]["domain"]
            about = {"domain": domain, "node": rank.node, "job": which[0], "rank": which[1]}
            because = f"{sum(rank.lates)} of its last {len(rank.lates)} steps came later than those of its peers"
            self.tell(tenant, key, about, self.moment, because)
