"""Backup plans that hold what they shall, and no more than there is room for (RES-015).

1. Whether a backup plan holds what it shall, given its request (RES-015).

   Where the risk of a number of spares is within a billionth of what may be run, either number is right.
2. Draws the parts of requests for backup plans.
3. Requests for backup plans that are hard to answer: risks at a step, pools that are too small, rooms for one copy.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import CaseVerdicts, drawn, name, revision, revision_faults, verdicts
from kuayu_conformance.checks.resilience import resilience_requests as res_recovery_draft
from kuayu_conformance.checks.resilience.resilience_requests import BACKUPS, INTERVAL, bandwidth
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding

if TYPE_CHECKING:
    from kuayu_schemas import documents

_SAME = 1e-9
"""Relative: risks and prices that are equal."""

_STATED, _STATED_LEAST = 0.01, 1e-9
"""Relative and absolute: how far a stated risk may be off."""

_SLACK = 1e-3
"""Relative: by how much sums over copies may be above what there is."""

_NOTHING = 1e-300
"""Below this, a risk may come out as zero."""

Way = tuple[str, str]
"""Source and target of a link."""


def tail(spares: int, mean: float) -> float:
    """The chance that a Poisson variable of a mean is greater than so many."""
    from scipy.special import pdtrc

    return float(pdtrc(float(spares), mean))


def fewest(domain: "documents.BackupDomain", risk: float) -> int:
    """The fewest spares of a domain whose risk is no more than the risk, or all that are free."""
    low, high, mean = 0, int(domain["free"]), mean_of(domain)
    while low < high:
        middle = (low + high) // 2
        if tail(middle, mean) <= risk:
            high = middle
        else:
            low = middle + 1
    return low


def mean_of(domain: "documents.BackupDomain") -> float:
    """How many nodes of a domain fail on average within its repair time."""
    return float(domain["nodes"]) * float(domain["repair_time"]) / float(domain["time_between_failures"])


def backup_deviations(request: "documents.BackupRequest", plan: "documents.BackupPlan") -> list[str]:
    """All that deviates in a valid plan, with expected and found.

    Args:
        request: It is valid and does not contradict itself.
        plan: Its answer.
    """
    faults = [*revision_faults(request, plan)]
    domains, pools_of = [item["id"] for item in request["domains"]], [entry["domain"] for entry in plan["pools"]]
    if pools_of != domains:
        faults.append(f"pools of {pools_of[:5]} where the request's domains are {domains[:5]}")
    else:
        pools = zip(request["domains"], plan["pools"], strict=True)
        faults += chain.from_iterable(_of_pool(domain, request["risk"], pool) for domain, pool in pools)
    return [*faults, *_of_copies(request, plan["copies"])]


def _of_pool(domain: "documents.BackupDomain", risk: float, pool: "documents.BackupPool") -> Iterator[str]:
    where, spares, free, mean = f"pool of {domain['id']}", pool["spares"], domain["free"], mean_of(domain)
    if spares > free:
        yield f"{where}: {spares} spares where {free} nodes are free"
    elif (spares < free and _short(tail(spares, mean), risk)) or (
        spares > 0 and _enough(tail(spares - 1, mean), risk, mean)
    ):
        yield f"{where}: {spares} spares where {fewest(domain, risk)} are the fewest at a mean of {mean:.6g} failures"
    run = tail(spares, mean)
    if abs(pool["risk"] - run) > max(_STATED * run, _STATED_LEAST):
        yield f"{where}: risk {pool['risk']:.6g} where {spares} spares run {run:.6g}"
    price = spares * domain["price"]
    if abs(pool["price"] - price) > _SAME * price:
        yield f"{where}: price {pool['price']} where {spares} spares cost {price}"


def _short(run: float, risk: float) -> bool:
    """Whether a risk that is run is plainly above what may be run; nothing is above one."""
    return risk < 1.0 and run > max((1.0 + _SAME) * risk, _NOTHING)


def _enough(run: float, risk: float, mean: float) -> bool:
    """Whether a risk that is run is plainly no more than what may be run."""
    if risk >= 1.0 or mean == 0.0:
        return True
    return run <= (1.0 - _SAME) * risk and risk > _NOTHING


def _of_copies(request: "documents.BackupRequest", copies: "Sequence[documents.PlannedCopy]") -> Iterator[str]:
    jobs = {job["id"]: job for job in request["jobs"]}
    stores = {store["domain"]: store for store in request["stores"]}
    links = {(link["source"], link["target"]): link for link in request["links"]}
    for (job_id, domain), times in Counter((copy["job"], copy["domain"]) for copy in copies).items():
        if times > 1:
            yield f"{times} copies of job {job_id} in {domain} where one at most is held"
    space: dict[str, float] = defaultdict(float)
    written: dict[str, float] = defaultdict(float)
    sent: dict[Way, float] = defaultdict(float)
    for copy in copies:
        job, domain = jobs.get(copy["job"]), copy["domain"]
        fault = _out_of_reach(job, domain, stores, links)
        if job is None or fault:
            yield f"copy of job {copy['job']} in {domain}: {fault}"
            continue
        size = float(job["state_size"])
        rate = 8.0 * size / float(copy["period"])
        space[domain] += 2.0 * size
        written[domain] += rate
        if domain != job["domain"]:
            sent[job["domain"], domain] += rate
    share = request["share"]
    yield from _above("bytes", "room", space, {entry: stores[entry].get("free", 0.0) for entry in space})
    yield from _above("bit/s", "share", written, {item: share * stores[item]["bandwidth"] for item in written})
    yield from _above("bit/s", "share", sent, {pair: share * fmean(links[pair]["bandwidths"]) for pair in sent})


def _out_of_reach(
    job: "documents.BackedUpJob | None",
    domain: str,
    stores: Container[str],
    links: "Mapping[Way, documents.MeasuredLink]",
) -> str:
    """Why no copy of a job can be held in a domain; empty where one can."""
    if job is None:
        return "there is no such job"
    if domain not in stores:
        return "there is no store"
    if domain == job["domain"]:
        return ""
    link = links.get((job["domain"], domain))
    if link is None:
        return f"no link leads there from {job['domain']}"
    if not link.get("up", True):
        return f"the link from {job['domain']} is out"
    return "" if link["bandwidths"] else f"nothing is known of the link from {job['domain']}"


def _above(unit: str, what: str, taken: Mapping[Any, float], most: Mapping[Any, float]) -> Iterator[str]:
    for place, amount in taken.items():
        if amount > (1.0 + _SLACK) * most[place]:
            where = place if isinstance(place, str) else " to ".join(place)
            yield f"copies in or to {where} take {amount:.6g} {unit} where the {what} is {most[place]:.6g} {unit}"


DAY = 86_400.0


class BackupRequestBuilder(res_recovery_draft.FailoverRequestBuilder):
    """Draws the parts of a request for a backup plan, with links and domains as for a failover plan."""

    def domain(self, which: str, nodes: int, free: int, mean: float, **members: Any) -> "documents.BackupDomain":
        """A domain where about so many nodes fail within the repair time."""
        repair = round(self.chance.uniform(0.5, 4.0) * 3600.0, 3)
        between = nodes * repair / (mean * self.chance.uniform(0.8, 1.25)) if nodes else 30 * DAY
        price = round(self.chance.uniform(1.0, 20.0), 2)
        body = {"id": which, "nodes": nodes, "free": free, "time_between_failures": round(between, 3)}
        whole = {**body, "repair_time": repair, "price": price, **members}
        return cast("documents.BackupDomain", whole)

    def quiet(self) -> "list[documents.BackupDomain]":
        """The three domains, where failures hardly matter."""
        return [self.domain(entry, 64, 8, 0.3) for entry in self.domains]

    def backed_up(self, where: str, size: float | None = None) -> "documents.BackedUpJob":
        """A job in a domain."""
        replicas = self.chance.randrange(2, 6)
        return {
            "id": name(self.chance),
            "priority": self.chance.randrange(-5, 6),
            "domain": where,
            "replicas": replicas,
            "least_replicas": self.chance.randrange(1, replicas),
            "nodes_each": self.chance.randrange(1, 5),
            "state_size": size or float(self.chance.randrange(20_000_000_000, 600_000_000_000)),
            "pause": round(self.chance.uniform(1.0, 10.0), 3),
        }

    def store(self, where: str, free: float | None = 1e14, **members: Any) -> "documents.CheckpointStore":
        """A store that is written at some 100 Gbit/s, with so much room, or with none that is stated."""
        body = {"domain": where, "bandwidth": bandwidth(self.chance, 40.0, 160.0), **members}
        return cast("documents.CheckpointStore", body if free is None else {**body, "free": free})

    def stores(self, free: float | None = 1e14, **members: Any) -> "list[documents.CheckpointStore]":
        """In all domains."""
        return [self.store(domain, free, **members) for domain in self.domains]

    def jobs(self, count: int) -> "list[documents.BackedUpJob]":
        """So many, here and near by in turn."""
        return [self.backed_up(self.domains[number % 2]) for number in range(count)]

    def plan_request(
        self, domains: "list[documents.BackupDomain]", jobs: "list[documents.BackedUpJob]", **members: Any
    ) -> "documents.BackupRequest":
        """A request with links and stores for all that is wished, but for what is said otherwise."""
        request = {
            "revision": revision(self.chance),
            "interval": INTERVAL,
            "share": round(self.chance.uniform(0.1, 0.5), 3),
            "risk": round(self.chance.uniform(0.001, 0.05), 6),
            "domains": domains,
            "links": self.links(),
            "stores": self.stores(),
            "jobs": jobs,
            **members,
        }
        return cast("documents.BackupRequest", request)


_BESIDE = 1e-6
"""Relative: so far beside a step, there is no doubt which number is the fewest."""


def many_failures(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Dozens, hundreds and a hundred thousand nodes fail within the repair time."""
    cases = (2_000, 900, 40.0), (30_000, 5_000, 700.0), (9_000_000, 400_000, 1e5)
    domains = [builder.domain(entry, *case) for entry, case in zip(builder.domains, cases, strict=True)]
    return builder.plan_request(domains, builder.jobs(2))


def few_failures(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Hardly any fail: less than the risk, about as much, and somewhat more."""
    risk = round(builder.chance.uniform(0.01, 0.05), 6)
    domains = [
        builder.domain(entry, 30, 9, part * risk) for entry, part in zip(builder.domains, (0.1, 1.0, 4), strict=True)
    ]
    return builder.plan_request(domains, builder.jobs(2), risk=risk)


def few_free(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Free nodes are far too few, nearly enough, and none."""
    domains = [builder.domain(entry, 400, free, 12.0) for entry, free in zip(builder.domains, (2, 16, 0), strict=True)]
    return builder.plan_request(domains, builder.jobs(2), risk=0.001)


def nothing_fails(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Nobody holds a node, repair takes no time, and both."""
    local, near, far = builder.domains
    at_once = {"repair_time": 0.0}
    domains = [builder.domain(local, 0, 9, 1.0), builder.domain(near, 300, 9, 1.0, **at_once)]
    return builder.plan_request([*domains, builder.domain(far, 0, 9, 1.0, **at_once)], builder.jobs(2))


def no_risk(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """No risk may be run: all free nodes, but where nothing can fail."""
    local, near, far = builder.domains
    domains = [builder.domain(local, 64, 5, 0.4), builder.domain(near, 64, 3, 20.0), builder.domain(far, 0, 6, 1.0)]
    return builder.plan_request(domains, builder.jobs(2), risk=0.0)


def any_risk(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Any risk may be run: no spares."""
    domains = [
        builder.domain(entry, 400, 40, mean) for entry, mean in zip(builder.domains, (0.1, 3.0, 30.0), strict=True)
    ]
    return builder.plan_request(domains, builder.jobs(2), risk=1.0)


def _beside(builder: BackupRequestBuilder, factor: float) -> "documents.BackupRequest":
    spares = builder.chance.randrange(2, 7)
    domains = [builder.domain(builder.here, 200, 20, 2.5), builder.domain(builder.near, 200, 20, 0.5)]
    return builder.plan_request(domains, builder.jobs(2), risk=factor * tail(spares, mean_of(domains[0])))


def at_a_step(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """The risk is exactly that of so many spares."""
    return _beside(builder, 1.0)


def above_a_step(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """The risk is hardly above that of so many spares: they are enough."""
    return _beside(builder, 1.0 + _BESIDE)


def below_a_step(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """The risk is hardly below that of so many spares: one more is needed."""
    return _beside(builder, 1.0 - _BESIDE)


def for_nothing(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Spares cost nothing in one domain; there are no jobs, links and stores."""
    domains = [builder.domain(builder.here, 900, 90, 9.0, price=0.0), builder.domain(builder.near, 900, 90, 5.0)]
    return builder.plan_request(domains, [], links=[], stores=[])


def room_for_all(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """All copies that anybody may want find room and bandwidth."""
    return builder.plan_request(builder.quiet(), builder.jobs(6))


def room_for_one(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Two jobs of one size; each store has room for just one copy, which takes twice the size of the state."""
    size = float(builder.chance.randrange(20_000_000_000, 600_000_000_000))
    jobs = [builder.backed_up(builder.here, size), builder.backed_up(builder.here, size)]
    return builder.plan_request(builder.quiet(), jobs, stores=builder.stores(2.0 * size))


def hardly_too_little_room(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Stores have room for a state and nine tenths."""
    size = float(builder.chance.randrange(20_000_000_000, 600_000_000_000))
    return builder.plan_request(
        builder.quiet(), [builder.backed_up(builder.here, size)], stores=builder.stores(float(round(1.9 * size)))
    )


def no_room(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """A store is full, one states no room, and one domain has none."""
    stores = [builder.store(builder.here, 0.0), builder.store(builder.near, None)]
    return builder.plan_request(builder.quiet(), builder.jobs(4), stores=stores)


def no_stores(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """There is a store in one domain only, where no job runs."""
    return builder.plan_request(builder.quiet(), builder.jobs(3), stores=[builder.store(builder.far)])


def no_links(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """No link leads anywhere but back from where no job runs."""
    links = [builder.link(builder.far, builder.here), builder.link(builder.far, builder.near)]
    return builder.plan_request(
        builder.quiet(), builder.jobs(3), links=links, stores=[builder.store(builder.near), builder.store(builder.far)]
    )


def links_out(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Links are out, were never measured, or have carried nothing; one of three jobs has a store where it runs."""
    jobs = [builder.backed_up(builder.here), builder.backed_up(builder.near), builder.backed_up(builder.here)]
    links = [
        builder.link(builder.here, builder.far, up=False),
        builder.link(builder.near, builder.far, bandwidths=[]),
        builder.link(builder.here, builder.near, bandwidths=[0.0] * 10),
    ]
    return builder.plan_request(
        builder.quiet(), jobs, links=links, stores=[builder.store(builder.near), builder.store(builder.far)]
    )


def thin_links(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Five jobs share links that carry next to nothing; stores where they run have no room."""
    links = builder.links()
    for link in links:
        link["bandwidths"] = [float(round(0.01 * bandwidth)) for bandwidth in link["bandwidths"]]
    stores = [builder.store(builder.here, 0.0), builder.store(builder.near), builder.store(builder.far)]
    jobs = [builder.backed_up(builder.here) for _ in range(5)]
    return builder.plan_request(builder.quiet(), jobs, links=links, stores=stores)


def links_that_falter(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Links carry much now and carried nothing before: on average little. There is no store where jobs run."""
    links = [builder.link(builder.here, entry) for entry in (builder.near, builder.far)]
    for link in links:
        link["bandwidths"] = [0.0] * (9 * len(link["bandwidths"])) + link["bandwidths"]
    jobs = [builder.backed_up(builder.here) for _ in range(4)]
    stores = [builder.store(builder.near), builder.store(builder.far)]
    return builder.plan_request(builder.quiet(), jobs, links=links, stores=stores)


def slow_store(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Jobs of all domains share one slow store; links are far faster."""
    jobs = [builder.backed_up(domain) for domain in builder.domains for _ in range(2)]
    store = builder.store(builder.far, bandwidth=bandwidth(builder.chance, 0.05, 0.2))
    return builder.plan_request(builder.quiet(), jobs, stores=[store])


def no_share(builder: BackupRequestBuilder) -> "documents.BackupRequest":
    """Copies may take nothing of any link or store."""
    return builder.plan_request(builder.quiet(), builder.jobs(3), share=0.0)


QUESTIONS: "dict[str, Callable[[BackupRequestBuilder], documents.BackupRequest]]" = {
    "many failures": many_failures,
    "few failures": few_failures,
    "few free nodes": few_free,
    "nothing that can fail": nothing_fails,
    "no risk that may be run": no_risk,
    "any risk": any_risk,
    "a risk at a step": at_a_step,
    "a risk above a step": above_a_step,
    "a risk below a step": below_a_step,
    "spares for nothing": for_nothing,
    "room for all copies": room_for_all,
    "room for one copy": room_for_one,
    "hardly too little room": hardly_too_little_room,
    "no room": no_room,
    "no stores": no_stores,
    "no links": no_links,
    "links that are out": links_out,
    "thin links": thin_links,
    "links that falter": links_that_falter,
    "a slow store": slow_store,
    "no share": no_share,
}
"""By what is hard about them."""


def questions(chance: Random, times: int) -> "Iterator[tuple[str, documents.BackupRequest]]":
    """Each so many times, with other numbers."""
    return drawn(QUESTIONS, BackupRequestBuilder, chance, times)


REQUIREMENT = "RES-015"


def observe(episode: Episode) -> CaseVerdicts:
    """Ask hard questions."""
    return verdicts(episode, BACKUPS, "backup plan", questions, backup_deviations)


def judge(observation: CaseVerdicts) -> Iterable[Finding]:
    """Claims about every hard question."""
    return observation.findings(REQUIREMENT)


CHECK = Check("res_backups", (REQUIREMENT,), observe, judge)
