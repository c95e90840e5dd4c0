"""What requests about running jobs take for granted: names that stand once, and policies that can be."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from minimal_server.agreeing import Agreeing
from minimal_server.core import Json
from minimal_server.naming import Wrong


class Questioning(Agreeing):
    """Requests for adjustments that cannot be are refused."""

    def check_adjustment(self, body: Json) -> None:
        """A request names nothing twice, nothing that it does not hold, and does not contradict itself."""
        self.refuse_if("invalid-body", "names are given twice", self.loads_twice(body))
        unknown = [*self.ends_of_nowhere(body), *self.shares_of_nowhere(body), *self.orders_of_nowhere(body)]
        self.refuse_if("unknown-reference", "domains are not in the request", unknown)
        wrong = [*self.links_to_themselves(body["links"]), *self.jobs_apart(body)]
        wrong += [*self.orders_of_others(body), *self.idle_periods(body)]
        wrong += [*self.other_parts(body), *self.falling_begins(body)]
        self.refuse_if("invalid-body", "what cannot be", wrong)

    def loads_twice(self, body: Json) -> Iterator[Wrong]:
        """Domains, links, jobs and shares whose name an earlier one has."""
        yield from self.twice("/domains", body["domains"], "id")
        yield from self.links_twice(body["links"])
        yield from self.twice("/jobs", body["jobs"], "id")
        for number, job in enumerate(body["jobs"]):
            yield from self.twice(f"/jobs/{number}/shares", job["shares"], "domain")

    def loaded(self, body: Json) -> set[str]:
        """Names of domains."""
        return {row["id"] for row in body["domains"]}

    def ends_of_nowhere(self, body: Json) -> Iterator[Wrong]:
        """Ends of links that are not among the domains."""
        held = self.loaded(body)
        for number, link in enumerate(body["links"]):
            for end in ("source", "target"):
                yield from self.unknown(f"/links/{number}/{end}", link[end], held)

    def shares_of_nowhere(self, body: Json) -> Iterator[Wrong]:
        """Shares in domains that are not there."""
        held = self.loaded(body)
        for number, job in enumerate(body["jobs"]):
            for position, share in enumerate(job["shares"]):
                yield from self.unknown(f"/jobs/{number}/shares/{position}/domain", share["domain"], held)

    def policies(self, body: Json) -> Iterator[tuple[str, Json, Json]]:
        """Place of each policy, in force or planned, with the policy and its job."""
        for number, job in enumerate(body["jobs"]):
            yield f"/jobs/{number}", job, job
            for position, row in enumerate(job.get("planned", ())):
                yield f"/jobs/{number}/planned/{position}", row, job

    def orders_of_nowhere(self, body: Json) -> Iterator[Wrong]:
        """Domains of orders that are not there."""
        held = self.loaded(body)
        for place, policy, _ in self.policies(body):
            for number, name in enumerate(policy["order"]):
                yield from self.unknown(f"{place}/order/{number}", name, held)

    def home(self, job: Json) -> list[str]:
        """Domains of a job, in the order of its shares."""
        return [share["domain"] for share in job["shares"]]

    def jobs_apart(self, body: Json) -> Iterator[Wrong]:
        """Domains of a job from which no link leads to each other one of it."""
        held = {(link["source"], link["target"]) for link in body["links"]}
        for job in body["jobs"]:
            for one in self.home(job):
                missing = [other for other in self.home(job) if other != one and (one, other) not in held]
                if missing:
                    yield "/links", f"{job['id']} has no link from {one} to {', '.join(missing)}"

    def orders_of_others(self, body: Json) -> Iterator[Wrong]:
        """Orders in which a domain of the job stands twice or not at all."""
        for place, policy, job in self.policies(body):
            if sorted(policy["order"]) != sorted(self.home(job)):
                yield f"{place}/order", "every domain of the job must stand in it once"

    def idle_periods(self, body: Json) -> Iterator[Wrong]:
        """Periods of what exchanges at every step."""
        for place, policy, _ in self.policies(body):
            if policy["collective"] != "low_communication" and policy["period"] != 1:
                yield f"{place}/period", "only communication that is low has a period other than one"

    def other_parts(self, body: Json) -> Iterator[Wrong]:
        """Planned parts that are not those of the job, or leave a domain without any."""
        for place, policy, job in self.policies(body):
            parts = policy.get("parts")
            if parts is not None and not self.divides(job, parts):
                yield f"{place}/parts", "they are as many as those in force, one number at least for each domain"

    def divides(self, job: Json, parts: Sequence[int]) -> bool:
        """Whether numbers are a division of the parts of a job among its domains."""
        whole = sum(share["parts"] for share in job["shares"])
        return len(parts) == len(job["shares"]) and sum(parts) == whole and min(parts) >= 1

    def falling_begins(self, body: Json) -> Iterator[Wrong]:
        """Planned changes that begin before the one in front of them."""
        for number, job in enumerate(body["jobs"]):
            for position, (one, other) in enumerate(pairwise(job.get("planned", ())), 1):
                if other["after"] < one["after"]:
                    yield f"/jobs/{number}/planned/{position}/after", "changes stand in their order"
