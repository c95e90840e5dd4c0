"""The backup planner: spare nodes by domain, and which copies of checkpoints are taken how often.

1. Spares: the fewest nodes of which more are in repair with no more than the chance that is asked for; failures that
   do not know of each other make that a Poisson variable (C. C. Sherbrooke, "METRIC", Operations Research 16, 1968).
2. Checkpoints are as far apart as pauses and lost work together take least (J. W. Young 1974, J. T. Daly 2006), yet no
   further than lost work may be.
3. One copy goes to the job's own domain, where it is read soonest, and one to where it outlives that domain.
4. Where a store or link cannot carry all, bandwidth goes by the square root of faults a second × bits, which makes the
   sum of lost work least; higher priorities count for more.
5. A copy in another domain is of every so many checkpoints, so that it costs no pause of its own.
"""

import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil, isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import pdtrc

from kuayu.resilience.network import BITS_PER_BYTE
from kuayu.resilience.recovery_validation import MAX_FIGURE, MIN_FIGURE, bounded, check_backup

if TYPE_CHECKING:
    from kuayu_schemas import documents

MAX_NODES = 2**53
"""More nodes than any count has."""


def spare_pool(domain: "documents.BackupDomain", risk: float) -> "documents.BackupPool":
    """The spares of one domain.

    Failures of many nodes that do not know of each other make a Poisson variable of those that are in repair, however
    long repairs last in particular (C. C. Sherbrooke, "METRIC: A multi-echelon technique for recoverable item control",
    1968, by a theorem of C. Palm).

    Args:
        domain: Which.
        risk: That may be run.
    """
    mean = expected_failures(domain)
    spares = min(_fewest(mean, risk), domain["free"])
    return {
        "domain": domain["id"],
        "spares": spares,
        "risk": chance_beyond(spares, mean),
        "price": min(spares * domain["price"], sys.float_info.max),
    }


def expected_failures(domain: "documents.BackupDomain") -> float:
    """Nodes that fail within the repair time, on average; at most more than there can be."""
    repairs = min(domain["repair_time"] / domain["time_between_failures"], float(MAX_NODES))
    return min(float(domain["nodes"] * repairs), float(MAX_NODES))


def chance_beyond(spares: int, mean: float) -> float:
    """Chance that a Poisson variable is greater than so many."""
    return min(max(float(pdtrc(float(spares), mean)), 0.0), 1.0) if mean > 0.0 else 0.0


def _fewest(mean: float, risk: float) -> int:
    """The least number that is exceeded with a chance of no more than ``risk``.

    Of no risk at all every number falls short, however small the chance is when it is worked out.
    """
    if mean == 0.0 or risk >= 1.0:
        return 0
    if risk <= 0.0:
        return MAX_NODES
    low, high = -1, MAX_NODES  # exceeded too often, and seldom enough
    while high - low > 1:
        middle = (low + high) // 2
        if chance_beyond(middle, mean) <= risk:
            high = middle
        else:
            low = middle
    return high


WIDE_SHARE = 0.05
"""Faults that take all replicas of a job, or its whole domain, for each failure of one of their nodes: a guess, as a
request tells of nodes alone."""

MAX_LOST_S = 200.0
"""Work that may be lost even where faults are rare, so that a job is past it in ten minutes (RES-004) together with
the time in which it is fenced, reads its copy and starts."""

MAX_PAUSED_SHARE = 0.05
"""Most of a job's time that checkpoints may take for that."""

MIN_PERIOD_S = 30.0
"""Seconds that lie between checkpoints at least."""


@dataclass(frozen=True, slots=True)
class CopyNeed:
    """Of one job.

    Attributes:
        job: The job itself.
        place: In the request, counted from zero.
        rank: Zero for the highest priority, one for the next, and so on.
        near_rate: Faults a second after which it is restored where its own store can be read.
        far_rate: Faults a second after which it cannot.
        period_s: Seconds between checkpoints if bandwidth were no matter.
    """

    job: "documents.BackedUpJob"
    place: int
    rank: int
    near_rate: float
    far_rate: float
    period_s: float

    @property
    def least_nodes(self) -> int:
        """Nodes with which it can go on."""
        return self.job["least_replicas"] * self.job["nodes_each"]


def copy_needs(request: "documents.BackupRequest") -> list[CopyNeed]:
    """Needs of all jobs, by priority and then in the order of the request."""
    domains = {domain["id"]: domain for domain in request["domains"]}
    ranks = {priority: rank for rank, priority in enumerate(sorted({-job["priority"] for job in request["jobs"]}))}
    needs = [
        _need(job, place, ranks[-job["priority"]], domains[job["domain"]]) for place, job in enumerate(request["jobs"])
    ]
    return sorted(needs, key=lambda need: need.rank)


def _need(job: "documents.BackedUpJob", place: int, rank: int, domain: "documents.BackupDomain") -> CopyNeed:
    """One replica alone is restored whenever a node fails; of several, a whole one hands over its state."""
    failures = 1.0 / domain["time_between_failures"] if domain["time_between_failures"] > MIN_FIGURE else MAX_FIGURE
    mine = float(job["replicas"] * job["nodes_each"])
    near = failures * mine * (1.0 + WIDE_SHARE if job["replicas"] == 1 else WIDE_SHARE)
    far = failures * max(mine, float(domain["nodes"])) * WIDE_SHARE
    near, far = (min(max(rate, 1.0 / MAX_FIGURE), MAX_FIGURE) for rate in (near, far))
    return CopyNeed(job, place, rank, near, far, _best_period_s(job["pause"], near + far))


def _best_period_s(pause_s: float, rate: float) -> float:
    """Seconds between checkpoints at which pauses and lost work together take least.

    J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM 17, 1974;
    further terms by J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
    Generation Computer Systems 22, 2006.
    """
    pause_s = min(pause_s, MAX_FIGURE)
    part = pause_s * rate / 2.0
    best_s = 1.0 / rate
    if part < 1.0:
        best_s = sqrt(2.0 * pause_s / rate) * (1.0 + sqrt(part) / 3.0 + part / 9.0) - pause_s
    return min(max(MIN_PERIOD_S, min(best_s, max(MAX_LOST_S, pause_s / MAX_PAUSED_SHARE))), MAX_FIGURE)


Link = tuple[str, str]

FASTEST = 1e18
"""Bits a second; no more is reckoned with."""

STEADY = 0.25
"""Share of measurements that a link carried less than what copies are planned for, where that is less than its mean: a
copy that takes longer than its period makes the next one be skipped. A link that is out so often is taken at its mean,
as no level makes up for that."""

SPREAD = 1.5
"""Periods that have gone by since a copy was taken, on average: half a period, and one on the way."""


@dataclass(frozen=True, slots=True)
class CheckpointCopy:
    """A copy that has a place.

    Attributes:
        need: Of which job.
        domain: Where.
        link: That it travels over; None in the job's own domain.
        bits: That it has.
    """

    need: CopyNeed
    domain: str
    link: Link | None
    bits: float


@dataclass(slots=True)
class CopyPlaces:
    """Room and bandwidth for copies, and what is taken of them.

    Attributes:
        stores: Bits a second of each store that copies may take.
        links: Bits a second of each link that copies may take, of those that carry.
        linked_domains: Domains that those links lead to, by the domain that they leave.
        free_bytes: Bytes that are left in each store.
        spares: Spare nodes of each domain.
        taken: Bits of all copies that use a store or link.
        promised: Nodes that jobs of a first domain will look for in a second one.
        without: Names of jobs that got none, by where they should have been.
        cramped: Names of jobs with a copy in another domain that has not enough spares for them.
    """

    stores: dict[str, float]
    links: dict[Link, float]
    linked_domains: Mapping[str, Sequence[str]]
    free_bytes: dict[str, float]
    spares: Mapping[str, int]
    taken: defaultdict[str | Link, float] = field(default_factory=lambda: defaultdict(float))
    promised: defaultdict[Link, int] = field(default_factory=lambda: defaultdict(int))
    without: dict[str, list[str]] = field(default_factory=lambda: {"own": [], "other": []})
    cramped: list[str] = field(default_factory=list)


def place_copies(
    request: "documents.BackupRequest", needs: Sequence[CopyNeed], spares: Mapping[str, int]
) -> tuple[list[CheckpointCopy], CopyPlaces]:
    """Places of copies, those of a higher priority first, and of one priority first those in own domains."""
    places = _places(request, spares)
    copies: list[CheckpointCopy] = []
    for _, group in groupby(needs, key=lambda need: need.rank):
        peers = list(group)
        copies.extend(_own(peers, places))
        copies.extend(_others(peers, places))
    return copies, places


def _places(request: "documents.BackupRequest", spares: Mapping[str, int]) -> CopyPlaces:
    share = request["share"]
    stores = {store["domain"]: share * min(store["bandwidth"], FASTEST) for store in request["stores"]}
    space = {store["domain"]: store.get("free") or 0.0 for store in request["stores"]}
    links: dict[Link, float] = {}
    targets: dict[str, list[str]] = defaultdict(list)
    for link in request["links"]:
        if link.get("up", True) and link["bandwidths"]:
            carried = np.minimum(np.array(link["bandwidths"], dtype=np.float64), FASTEST)
            mean, steady = float(carried.mean()), float(np.sort(carried)[int(STEADY * len(carried))])
            links[link["source"], link["target"]] = share * min(mean, steady or mean)
            targets[link["source"]].append(link["target"])
    return CopyPlaces(stores, links, targets, space, spares)


def _own(needs: Sequence[CopyNeed], places: CopyPlaces) -> Iterator[CheckpointCopy]:
    for need in needs:
        home = need.job["domain"]
        if _fits(need, home, None, places):
            yield _take(need, home, None, places)
        else:
            places.without["own"].append(need.job["id"])


def _others(needs: Sequence[CopyNeed], places: CopyPlaces) -> Iterator[CheckpointCopy]:
    """Those with most to carry choose first, as the narrowest links suit them least."""
    for need in sorted(needs, key=lambda place: -place.job["state_size"]):
        home = need.job["domain"]
        able = [target for target in places.linked_domains.get(home, ()) if _fits(need, target, (home, target), places)]
        if able:
            roomy = _with_nodes(need, places)
            target = min(able, key=lambda place: _lost_s(need, place, roomy, places))
            places.promised[home, target] += need.least_nodes
            if target not in roomy:
                places.cramped.append(need.job["id"])
            yield _take(need, target, (home, target), places)
        else:
            places.without["other"].append(need.job["id"])


def _fits(need: CopyNeed, domain: str, link: Link | None, places: CopyPlaces) -> bool:
    bits, narrow = _bits(need), places.stores.get(domain, 0.0)
    if link is not None:
        narrow = min(narrow, places.links[link])
    return (
        2.0 * need.job["state_size"] <= places.free_bytes.get(domain, 0.0)
        and narrow > 0.0
        and bits <= MAX_FIGURE * narrow
    )


def _take(need: CopyNeed, domain: str, link: Link | None, places: CopyPlaces) -> CheckpointCopy:
    copy = CheckpointCopy(need, domain, link, _bits(need))
    places.free_bytes[domain] -= 2.0 * need.job["state_size"]
    places.taken[domain] += copy.bits
    if link is not None:
        places.taken[link] += copy.bits
    return copy


def _with_nodes(need: CopyNeed, places: CopyPlaces) -> set[str]:
    """Other domains with enough spares for a job, beside what is promised to others that would come with it."""
    home, least = need.job["domain"], need.least_nodes
    return {
        domain
        for domain, spares in places.spares.items()
        if domain != home and spares - places.promised.get((home, domain), 0) >= least
    }


def _lost_s(need: CopyNeed, target: str, roomy: Collection[str], places: CopyPlaces) -> float:
    """Seconds that are lost when the job's domain is, with a copy in this one: its age, and until it is read."""
    home, bits = need.job["domain"], _bits(need)
    period_s = max(
        need.period_s,
        (bits + places.taken.get((home, target), 0.0)) / places.links[home, target],
        (bits + places.taken.get(target, 0.0)) / places.stores[target],
    )
    return SPREAD * period_s + _read_s(bits, target, roomy, places)


def _read_s(bits: float, target: str, roomy: Collection[str], places: CopyPlaces) -> float:
    """Seconds until the copy is read where there are enough spares for it: in its own domain, or over a link."""
    if target in roomy:
        return bits / places.stores[target]
    rate = max((places.links.get((target, other), 0.0) for other in roomy), default=0.0)
    return min(bits / rate, MAX_FIGURE) if rate > bits / MAX_FIGURE else MAX_FIGURE


def _bits(need: CopyNeed) -> float:
    return BITS_PER_BYTE * need.job["state_size"]


Floats = npt.NDArray[np.float64]

ROUNDS = 6
"""Times that each store and link shares out what the others leave to its copies."""

LOWER_WORTH = 0.25
"""What a copy is worth of one of the next higher priority."""

MAX_RANK = 3
"""Ranks after which priorities make no more difference."""

_SAME = 1e-9


def copy_periods(copies: Sequence[CheckpointCopy], places: CopyPlaces) -> list[float]:
    """Seconds from one copy to the next, for each; infinite where there is no bandwidth for it.

    Where a store or link cannot carry all, bandwidth goes by the square root of faults a second × bits, which makes the
    sum of lost work least (the first-order condition of the sum of rate × period / 2 under a sum of bits / period).
    Copies that need less than that have what they need. Those in other domains come of every so many checkpoints, so
    that they cost no pause of their own.
    """
    wanted = np.array([copy.bits / copy.need.period_s for copy in copies])
    weight = np.array([_weight(copy) for copy in copies])
    users: dict[str | Link, list[tuple[int, int]]] = {}
    for place, copy in enumerate(copies):
        users.setdefault(copy.domain, []).append((place, 0))
        if copy.link is not None:
            users.setdefault(copy.link, []).append((place, 1))
    rates = _shared(wanted, weight, [(np.array(rows), _budget(name, places)) for name, rows in users.items()])
    with np.errstate(divide="ignore"):
        periods = np.array([copy.bits for copy in copies]) / rates
    return _in_step(copies, periods.tolist())


def _weight(copy: CheckpointCopy) -> float:
    need = copy.need
    rate = need.near_rate if copy.link is None else need.far_rate
    importance = LOWER_WORTH ** min(need.rank, MAX_RANK)
    return float(np.sqrt(importance * rate * bounded(copy.bits)))


def _shared(wanted: Floats, weight: Floats, users: Sequence[tuple[npt.NDArray[np.int64], float]]) -> Floats:
    """Bits a second of each copy: no more than wanted, and over each store and link no more than it carries."""
    caps = np.full((len(wanted), 2), np.inf)
    for _ in range(ROUNDS):
        for rows, budget in users:
            mine, others = caps[rows[:, 0], 1 - rows[:, 1]], weight[rows[:, 0]]
            caps[rows[:, 0], rows[:, 1]] = others * _level(np.minimum(wanted[rows[:, 0]], mine), others, budget)
    rates: Floats = np.minimum(wanted, caps.min(axis=1, initial=np.inf))
    over = np.ones(len(wanted))
    for rows, budget in users:
        np.maximum.at(over, rows[:, 0], float(rates[rows[:, 0]].sum()) / budget)
    return rates / over


def _level(wanted: Floats, weight: Floats, budget: float) -> float:
    """What each unit of weight gets, so that all of a budget is given out and nobody has more than is wanted."""
    if float(wanted.sum()) <= budget:
        return np.inf
    order = np.argsort(wanted / weight, kind="stable")
    wanted, weight = wanted[order], weight[order]
    before = np.concatenate([[0.0], np.cumsum(wanted)[:-1]])
    after = np.cumsum(weight[::-1])[::-1]
    levels = (budget - before) / after
    short = np.flatnonzero(levels * weight < wanted)
    return float(levels[short[0]]) if len(short) else np.inf


def _in_step(copies: Sequence[CheckpointCopy], periods: list[float]) -> list[float]:
    """Whole seconds, and in other domains whole numbers of the job's own period."""
    own = {copy.need.place: _whole(periods[place]) for place, copy in enumerate(copies) if copy.link is None}
    whole_periods = []
    for copy, period_s in zip(copies, periods, strict=True):
        base_s = own.get(copy.need.place, np.inf)
        if copy.link is None or base_s > MAX_FIGURE or period_s > MAX_FIGURE:
            whole_periods.append(_whole(period_s))
        else:
            whole_periods.append(base_s * max(1, ceil(period_s / base_s * (1.0 - _SAME))))
    return whole_periods


def _budget(name: str | Link, places: CopyPlaces) -> float:
    """Bits a second that copies may take of a store or a link."""
    return places.stores[name] if isinstance(name, str) else places.links[name]


def _whole(period_s: float) -> float:
    return float(ceil(period_s)) if period_s <= MAX_FIGURE else np.inf


METHOD: "documents.RecoveryMethod" = {"name": "kuayu-poisson-and-young", "version": "1.0.0"}

MAX_NAMED = 10
"""Most domains or jobs that a reason names."""

_WHERE = {"own": "their own domain", "other": "another domain"}


def backup_plan(request: "documents.BackupRequest") -> "documents.BackupPlan":
    """Plan what to hold against faults.

    Returns:
        A plan that follows from the request and from nothing else.

    Raises:
        kuayu.refusals.RepeatedName: Domains, jobs, stores or links share a name.
        kuayu.refusals.UnknownName: A job runs in no domain of the request.
        kuayu.refusals.Impossible: Members contradict each other, or there is more than can be planned at once.
    """
    check_backup(request)
    pools = [spare_pool(domain, request["risk"]) for domain in request["domains"]]
    wanted = copy_needs(request)
    copies, places = place_copies(request, wanted, {pool["domain"]: pool["spares"] for pool in pools})
    timed_copies = sorted(zip(copies, copy_periods(copies, places), strict=True), key=_order)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "pools": pools,
        "copies": [
            {"job": copy.need.job["id"], "domain": copy.domain, "period": period_s}
            for copy, period_s in timed_copies
            if isfinite(period_s)
        ],
        "reasons": list(_reasons(request, pools, timed_copies, places)),
    }


def _order(copy: tuple[CheckpointCopy, float]) -> tuple[int, bool]:
    """By job, that in its own domain first."""
    return copy[0].need.place, copy[0].link is not None


def _reasons(
    request: "documents.BackupRequest",
    pools: "Sequence[documents.BackupPool]",
    timed_copies: Sequence[tuple[CheckpointCopy, float]],
    places: CopyPlaces,
) -> Iterator[str]:
    for domain, pool in list(zip(request["domains"], pools, strict=True))[:MAX_NAMED]:
        short = "; that is all there are" if pool["risk"] > request["risk"] else ""
        words = f"{expected_failures(domain):.3g} nodes fail within a repair on average"
        yield f"{domain['id']}: {words}, more than {pool['spares']} with a chance of {pool['risk']:.2g}{short}."
    if timed_copies:
        yield (
            "Checkpoints are as far apart as pauses and lost work together take least, "
            f"yet no further than {MAX_LOST_S:.0f} s or {1.0 / MAX_PAUSED_SHARE:.0f} pauses, whichever is more."
        )
    slowed = [copy for copy, period_s in timed_copies if copy.link is None and period_s > copy.need.period_s + 1.0]
    if slowed:
        yield f"Stores carry copies of {_named(_jobs(slowed))} less often than would be best."
    far = [copy for copy, period_s in timed_copies if copy.link is not None and period_s > 2.0 * copy.need.period_s]
    if far:
        jobs = _named(_jobs(far))
        yield f"Links carry copies of {jobs} to another domain no more than half as often as would be best."
    if places.cramped:
        words = "spares are too few to restore there at once"
        yield f"Where copies of {_named(places.cramped)} are in another domain, {words}."
    for where, names in places.without.items():
        if names:
            reason = "no store there has room and bandwidth, or no link that carries leads there"
            yield f"No copy in {_WHERE[where]} for {_named(names)}: {reason}."


def _jobs(copies: Sequence[CheckpointCopy]) -> list[str]:
    return [copy.need.job["id"] for copy in copies]


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) + (f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else "")
