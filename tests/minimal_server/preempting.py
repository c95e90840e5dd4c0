"""Jobs that run give devices up for jobs of higher priority that would wait for longer than they take."""

from minimal_server.choosing import Seat
from minimal_server.core import Json
from minimal_server.explaining import Explaining
from minimal_server.scene import Job, Pool, Scene, seconds

LEFT_ALONE = 1_800
"""Seconds after an interruption before which there is no other."""


class Preempting(Explaining):
    """Makes room, and no more than is needed."""

    def interruptions(self, scene: Scene, seats: list[Seat], *, explain: bool) -> list[Json]:
        """What is to be done with jobs that run, for all that wait; each is interrupted once."""
        found: list[Json] = []
        gone: set[str] = set()
        for seat in seats:
            if not seat.starts and self.waits_long(seat):
                decisions = self.making_room(scene, seat.job, gone)
                gone |= {decision["job"] for decision in decisions}
                found += decisions
        for decision in found if explain else ():
            decision["explanation"] = {"alternatives": [], "reason": "a job of higher priority needs its devices"}
        return found

    def waits_long(self, seat: Seat) -> bool:
        """Whether a job would wait for longer than it takes."""
        return seat.outlook is None or seat.outlook.begin > seat.outlook.prospect.lasting

    def making_room(self, scene: Scene, job: Job, gone: set[str]) -> list[Json]:
        """Who makes room for a job, in the first pool where enough can be had."""
        for pool in scene.pools:
            if not self.fits(pool, job):
                continue
            others = [other for other in scene.running if other.name not in gone]
            lower = [other for other in others if self.may_go(scene, other, job, pool)]
            decisions = self.given_up(scene, lower, job.requested - pool.free)
            if decisions:
                return decisions
        return []

    def may_go(self, scene: Scene, other: Job, job: Job, pool: Pool) -> bool:
        """Whether a job that runs in a pool, and there alone, may be interrupted for another."""
        shares = scene.held(other).shares
        lower = other.spec.get("priority", 0) < job.spec.get("priority", 0)
        there = len(shares) == 1 and shares[0][0] == pool.number and other.row["phase"] == "running"
        return lower and there and self.is_rested(scene, other)

    def is_rested(self, scene: Scene, job: Job) -> bool:
        """Whether a job was not interrupted just now."""
        last = job.row.get("interrupted_at")
        return last is None or scene.now - seconds(last) >= LEFT_ALONE

    def given_up(self, scene: Scene, jobs: list[Job], missing: int) -> list[Json]:
        """Jobs that give so many devices up, and no more: of those that can do with fewer, else of the smallest."""
        if missing <= 0:
            return []
        return self.smaller(jobs, missing) or self.stopped(scene, jobs, missing)

    def smaller(self, jobs: list[Job], missing: int) -> list[Json]:
        """One job goes on with exactly so many fewer."""
        for job in jobs:
            (share,) = job.row["placement"]["shares"]
            devices = share["devices"] - missing
            if job.takes(devices) and "nodes" not in share:
                placement = {**job.row["placement"], "shares": [{**share, "devices": devices}]}
                return [{"job": job.name, "verb": "resize", "placement": placement}]
        return []

    def stopped(self, scene: Scene, jobs: list[Job], missing: int) -> list[Json]:
        """The smallest are stopped until there is enough; nobody where there never is."""
        found: list[Json] = []
        for job in sorted(jobs, key=lambda job: scene.held(job).devices):
            if missing > 0:
                missing -= scene.held(job).devices
                found.append({"job": job.name, "verb": "stop"})
        return found if missing <= 0 else []
