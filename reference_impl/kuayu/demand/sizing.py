"""Right-sizing: what tasks should be given, as those show that ran before.

1. After algorithm 1 of Yang, Hong and Tang: what tasks ask for is scaled down as long as they are expected to run no
   longer than allowed.
2. Records are tasks that ran, by kind, as columns that neither order nor names change.
3. Needs grow with what is asked for, or do not: need ≈ c · scale, where the scale is a power of the resource asked for,
   or a product of powers of all three, since what is asked of one also tells how large a task is. The scale is the one
   that leaves c the narrowest; the c of the records say how likely a task needs how much.
4. Work is kept: a task that needs n at its peak and uses u of it on average does as much on g < n, only later. With x
   for n/g it runs at least u·x/n − 1 longer, since it cannot use more than it has, and w · (x − 1) longer where a share
   w of its time passes at its peak; at worst it either idles or runs at its peak, and then w = u/n.
5. What w is, the tasks of a history tell that asked for less than they need. They used all they had, and waited there,
   so that all else of theirs idled more than it does in others of the kind; that tells by how much longer they ran and
   what they would have used. Where they are too few, or their other use tells too little, w is taken at its worst.
6. Each resource has a scale of its own, with an expected slow-down over all needs that a task of that kind and size may
   have; of all pairs of scales for accelerators and cores that together stay within what is allowed, that is taken
   which frees most, by the value of resources. Memory cannot be waited for: a task that lacks it dies and starts anew,
   so that memory is given which few exceed, and what they lose counts.
7. A request does not tell the cluster that it is for. What machines with accelerators hold is known though, and what
   tasks ask for at the same time is in the history; a resource is the scarcer, the more kinds of machines it fills
   first.
8. How long tasks run, gradient-boosted trees of each kind tell, on what they are given and use. Two models: `course`
   says how long a task runs that asks for so much, whose size that tells as well; the other knows what it used besides,
   and more of a resource never makes it slower there, so that it says what the time depends on (permutation
   importance). Both are fitted crosswise: no record is judged by trees that have seen it.
9. Pure: no clock, no chance from outside, neither order nor names of records count.

Source: Yang, Hong and Tang, High Technology Letters 2023, 33(5).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import xgboost
from scipy.special import ndtri, stdtrit

from kuayu.demand.strategy import Flags, Floats, Whole
from kuayu.refusals import RepeatedName, refuse, repeated

if TYPE_CHECKING:
    from kuayu_schemas import documents

RESOURCES = ("devices", "cores", "memory")
"""Accelerators, processor cores, bytes of the host's memory."""

MIN_RECORDS = 20
"""Records that are too few to give a task less than it asks for."""

MIN_FITTED_RECORDS = 100
"""Records that powers of all three resources are fitted to, at least."""

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Powers of what is asked for: from a need that is the same for all to a share of it."""

FOLDS = 3
"""Parts of the records that are held back in turn."""

MIN_GROUP = 150
"""Records that asked for about as much, at least, for a distribution of c of their own."""

POINTS = 50
"""Points that the distribution of c is told by, each as likely as any other; the last is the greatest."""

HEADROOM = (1.25, 1.25, 1.5)
"""Peak over mean where no record of the whole history tells a peak. An assumption, on the safe side."""

MIN_SHARE = 0.05
"""Nothing is cut to less than this share of what is asked for, be it ever so idle."""

WAITING = (0, 1)
"""Resources that a task can wait for: accelerators and cores; one that lacks memory dies."""

MIN_WAITING_TASKS = 8
"""Tasks that waited for a resource, at least, before less than the worst is believed."""

STEADY = 0.05
"""Most spread of mean use over peak, as half the range of the middle half of its logarithms, that still tells w.

Where use varies from task to task, its chance looks like waiting that never was.
"""

SURE = 0.95
"""How sure to be that tasks do not wait longer than w says, and that they do where durations say more."""

STEPS = 100
"""Scales between nothing and all."""

DYING = 0.005
"""Share of tasks that may run out of memory, at most."""

DYING_PART = 0.1
"""Share of the allowed slow-down that may go to tasks that run out of memory, at most."""

LOST = 0.5
"""Share of its run that a task loses that runs out of memory: its peak may come at any time. An assumption."""

_MEMORY_COLUMN = 2

ROUNDING = 1e-12

BATCH = 200
"""Tasks that are looked at together."""

GB = 1e9

MACHINES = (
    (8, 40, 512 * GB),
    (16, 48, 1536 * GB),
    (8, 128, 1024 * GB),
    (8, 112, 2048 * GB),
    (8, 192, 1024 * GB),
)
"""Accelerators, cores, memory: NVIDIA DGX-1, DGX-2, DGX A100 and DGX H100, Huawei Atlas 800 (9000), by data sheets."""

METHOD: "documents.DemandMethod" = {"name": "boosted trees with seen needs", "version": "2"}

SLOW_DOWN = 0.05
"""What a request allows that does not say."""

MAX_RECORDS = 6000
"""Records of a kind that trees are fitted to; of more, every so-many-th in the order of their contents."""

COVERAGE = 0.9
"""Share of durations that are to lie inside their intervals."""

TREES = 40
PARAMETERS = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_bin": 64,
    "max_depth": 4,
    "eta": 0.15,
    "min_child_weight": 5,
    "lambda": 1.0,
    "nthread": 1,
    "seed": 0,
}
"""Ordinary ones; none was searched for."""

GROUPS = ((0, 3, 7), (1, 4), (2, 5))
"""Columns of accelerators (given, used, their memory), cores, and memory."""

NEVER_SLOWER = (-1, -1, -1, 0, 0, 0, 0, 0)
"""More of what is given never makes a task slower; what it uses tells its size, in either direction."""

MATTERS = 0.02
"""What is given of a resource counts if shuffling that column alone costs so much of the error of the mean."""

SHUFFLES = 3


@dataclass(frozen=True)
class Records:
    """N tasks of one kind in an order of their own; equal if their contents are.

    Attributes:
        digest: Of all columns.
        given: Accelerators, cores, bytes that they were given, N × 3.
        used: The same on average, N × 3.
        peak: The same at most, N × 3; nan where it was not told.
        beside: Bits per second of network and bytes of accelerator memory, N × 2; nan where not told.
        duration: Seconds, N.
    """

    digest: bytes
    given: Floats = field(compare=False, repr=False)
    used: Floats = field(compare=False, repr=False)
    peak: Floats = field(compare=False, repr=False)
    beside: Floats = field(compare=False, repr=False)
    duration: Floats = field(compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.duration)


def by_kind(history: "Sequence[documents.TaskRecord]") -> dict[str, Records]:
    """Records of each kind, kinds in order of name.

    Args:
        history: ``TaskRecord`` as plain JSON.
    """
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for entry in history:
        rows[entry["kind"]].append(_row(entry))
    return {kind: records_of(np.array(rows[kind], dtype=np.float64)) for kind in sorted(rows)}


def records_of(table: Floats) -> Records:
    """Records of a table: given, used, peak (3 columns each), network, accelerator memory, duration; N × 12."""
    # Rows in the order of their contents: sums, folds and shuffles are the same however a history is written down.
    ordered = np.ascontiguousarray(table[np.lexsort(np.nan_to_num(table, nan=-1.0).T)])
    digest = sha256(ordered.tobytes()).digest()
    given, used, peak, beside = np.split(ordered[:, :11], (3, 6, 9), axis=1)
    return Records(digest, given, used, peak, beside, ordered[:, 11])


def amounts(resources: "documents.TaskResources | None") -> tuple[float, float, float]:
    """Columns of a ``TaskResources``; nan where there is none."""
    if resources is None:
        return np.nan, np.nan, np.nan
    return resources["devices"], resources["cores"], resources["memory"]


def _row(entry: "documents.TaskRecord") -> tuple[float, ...]:
    beside = (entry.get("network_flow"), entry.get("accelerator_memory"))
    flow, memory = (np.nan if value is None else value for value in beside)
    return (
        *amounts(entry["requested"]),
        *amounts(entry["used"]),
        *amounts(entry.get("peak")),
        flow,
        memory,
        entry["duration"],
    )


@dataclass(frozen=True)
class Need:
    """Need of a resource as a function of what is asked for: c · scale.

    Attributes:
        powers: Of what is asked for of each resource; their product is the scale, 3.
        resource: Which, by its place.
        shares: c of all records that asked for the resource; none where they are too few.
        bounds: Amounts asked for that part groups of records, G − 1: who asks for little is likelier to ask for too
            little, so that c is not the same for all.
        groups: c of each group by POINTS points at most, G × points.
    """

    resource: int
    powers: Floats
    shares: Floats
    bounds: Floats
    groups: Floats

    def likely(self, requested: Floats) -> Floats:
        """Needs of those that ask for so much, each as likely as the others, N × 3 → N × points."""
        group = np.searchsorted(self.bounds, requested[:, self.resource])
        return scale_of(requested, self.powers)[:, None] * self.groups[group]

    def most(self, requested: Floats, level: float) -> Floats:
        """What those that ask for so much need at most, with this probability, N × 3 → N."""
        return scale_of(requested, self.powers) * (upper(self.shares, level) if len(self.shares) else np.inf)


def scale_of(amounts: Floats, powers: Floats) -> Floats:
    """Product of powers of what is asked for, N × 3 → N; nothing asked for counts as one."""
    return np.asarray(np.exp(np.log(np.where(amounts > 0, amounts, 1.0)) @ powers))


def headroom(every: Sequence[Records]) -> Floats:
    """Peak over mean use that 95 % of the records of a history keep below, 3."""
    factors = []
    for resource, assumed in enumerate(HEADROOM):
        ratios = np.concatenate([_ratios(records, resource) for records in every]) if every else np.empty(0)
        factors.append(upper(ratios, 0.95) if len(ratios) >= MIN_RECORDS else assumed)
    return np.array(factors)


def needs(given: Floats, needed: Floats) -> tuple[Need, ...]:
    """Need of each resource.

    Args:
        given: What records of a kind asked for, N × 3.
        needed: What they needed at their peak, N × 3.
    """
    return tuple(_need(given, needed[:, number], number) for number in range(len(RESOURCES)))


def upper(values: Floats, level: float) -> float:
    """What the next value exceeds in a share 1 − level of cases.

    An order statistic where there are enough values (conformal prediction); else the limit of a log-normal (Student's
    t), but no less than the largest.
    """
    count, largest = len(values), float(values.max())
    place = int(np.ceil((count + 1) * level - 1e-9))
    if place <= count:
        return float(np.partition(values, place - 1)[place - 1])
    logs = np.log(values[values > 0])
    if level >= 1 or len(logs) < 2:  # noqa: PLR2004 - a spread takes two
        return largest
    spread = logs.std(ddof=1) * np.sqrt(1 + 1 / len(logs))
    return max(largest, float(np.exp(logs.mean() + stdtrit(len(logs) - 1, level) * spread)))


def _need(given: Floats, needed: Floats, resource: int) -> Need:
    own = np.eye(len(RESOURCES))[resource]
    requested = given[:, resource] > 0
    if requested.sum() < MIN_RECORDS:
        return Need(resource, own, np.empty(0), np.empty(0), np.ones((1, 1)))
    given, needed = given[requested], needed[requested]
    # An idle resource is needed a little, for its logarithm's sake.
    needed = np.maximum(needed, MIN_SHARE * given[:, resource])
    candidates = [(power * own, needed / scale_of(given, power * own)) for power in POWERS]
    if len(needed) >= MIN_FITTED_RECORDS and (given > 0).all():
        candidates.append(_fitted(given, needed))
    powers, shares = min(candidates, key=lambda candidate: round(float(np.log(candidate[1]).std()), 9))
    asked_for = given[:, resource]
    bounds = np.unique(
        np.quantile(asked_for, np.arange(1, len(shares) // MIN_GROUP) / max(len(shares) // MIN_GROUP, 1))
    )
    group = np.searchsorted(bounds, asked_for)
    # Where many ask for the same, some groups may be empty.
    bounds = bounds[[bool((group == number).any() and (group > number).any()) for number in range(len(bounds))]]
    group = np.searchsorted(bounds, asked_for)
    groups = np.array([_points(shares[group == number], len(shares)) for number in range(len(bounds) + 1)])
    return Need(resource, powers, shares, bounds, groups)


def _points(shares: Floats, count: int) -> Floats:
    """Points as likely as each other; as many as there are records where these are few."""
    count = min(count, POINTS)
    points = np.quantile(shares, (np.arange(count) + 0.5) / count)
    points[-1] = shares.max()
    return np.asarray(points)


def _fitted(given: Floats, needed: Floats) -> tuple[Floats, Floats]:
    """Powers by least squares of logarithms, drawn a little towards zero, and c of records that were held back."""
    logs, target, fold = np.log(given), np.log(needed), np.arange(len(given)) % FOLDS
    missed = np.empty(len(given))
    for number in range(FOLDS):
        training_rows, out = fold != number, fold == number
        powers, level = _powers(logs[training_rows], target[training_rows])
        missed[out] = target[out] - level - logs[out] @ powers
    powers, level = _powers(logs, target)
    return powers, np.exp(missed + level)


def _powers(logs: Floats, target: Floats) -> tuple[Floats, float]:
    middle, level = logs.mean(axis=0), float(target.mean())
    logs = logs - middle
    powers = np.asarray(np.linalg.solve(logs.T @ logs + np.eye(logs.shape[1]), logs.T @ (target - level)), np.float64)
    return powers, level - float(middle @ powers)


def _ratios(records: Records, resource: int) -> Floats:
    used, peak = records.used[:, resource], records.peak[:, resource]
    usable = (used > 0) & (peak >= used)
    with np.errstate(over="ignore"):
        return np.asarray(peak[usable] / used[usable])


@dataclass(frozen=True)
class Waits:
    """What records of a kind needed, and what it costs to have less.

    Attributes:
        needed: Peaks as they would have been with enough of everything, N × 3.
        usual: Mean use over peak where nothing is lacking, of accelerators and cores, 2.
        share: w, the share of the time that passes at the peak, 2.
        factor: By how much more slow-downs of the history weigh in its durations than w says; at least one.
    """

    needed: Floats
    usual: Floats
    share: Floats
    factor: float

    def slower(self, resource: int, over: Floats) -> Floats:
        """By how much longer a task runs that has the part 1/over of what it needs at its peak; zero where enough."""
        return self.factor * _slower(over, float(self.usual[resource]), self.share[resource])


def learn_waits(records: Records, headroom: Floats) -> Waits:
    """What tasks of a kind need and how they wait.

    Args:
        records: Those of the kind.
        headroom: Peak over mean use where they tell none, 3.
    """
    given, used = records.given, records.used
    peak = np.where(np.isnan(records.peak), used * headroom, np.fmax(records.peak, used))
    lacking = (given > 0) & (peak >= given * (1 - 1e-6))
    part = np.divide(used, peak, out=np.zeros_like(used), where=peak > 0)
    known = (part > 0) & ~np.isnan(records.peak)
    usual = np.array(
        [
            _usual(part[:, resource], known[:, resource], lacking[:, resource], headroom[resource])
            for resource in WAITING
        ]
    )
    steady = _steady(part[:, :2], np.logical_and.reduce(known[:, :2] & ~lacking[:, :2], axis=1))
    needed, share, late = peak.copy(), usual.copy(), np.zeros(len(records))
    for resource in WAITING:
        other = 1 - resource
        single = lacking[:, resource] & ~lacking[:, other] & known[:, resource] & known[:, other]
        # The other resource idles as much more as the task takes longer.
        longer = np.where(single, np.maximum(usual[other] / np.where(single, part[:, other], 1.0), 1.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.where(
                lacking[:, resource], used[:, resource] * longer / (usual[resource] * given[:, resource]), 1.0
            )
        over = np.maximum(over, 1.0)
        if single.sum() >= MIN_WAITING_TASKS:
            both = lacking[:, resource] & ~single
            over[both] = np.maximum(over[both], over[single].mean())
            if steady:
                share[resource] = _share(over[single], longer[single] - 1, float(usual[resource]))
        needed[lacking[:, resource], resource] = (over * given[:, resource])[lacking[:, resource]]
        late += _slower(over, float(usual[resource]), share[resource])
    return Waits(needed, usual, share, _weight_of_waiting(records, needed, late))


def _slower(over: Floats, usual: float, share: float | Floats) -> Floats:
    longer = np.asarray(share * (over - 1))
    np.maximum(longer, usual * over - 1, out=longer)
    return np.maximum(longer, 0.0, out=longer)


def _usual(part: Floats, known: Flags, lacking: Flags, headroom: float) -> float:
    enough = part[known & ~lacking] if (known & ~lacking).sum() >= MIN_WAITING_TASKS else part[known]
    return float(np.median(enough)) if len(enough) >= MIN_WAITING_TASKS else 1 / headroom


def _steady(part: Floats, enough: Flags) -> bool:
    if enough.sum() < MIN_WAITING_TASKS:
        return False
    low, high = np.quantile(np.log(part[enough]), (0.25, 0.75), axis=0)
    return bool((high - low).max() / 2 <= STEADY)


def _share(over: Floats, longer: Floats, usual: float) -> float:
    """The least w that foretells no less waiting than was seen; at most the worst, mean use over peak."""
    # Far below the need, what a task can use at most decides, and w cannot be told.
    near = (over > 1) & (usual * over - 1 < usual * (over - 1) / 2)
    if near.sum() < MIN_WAITING_TASKS:
        return usual
    over, longer = over[near], longer[near]
    for share in np.arange(0, usual, 0.01):
        surplus = _slower(over, usual, share) - longer
        if surplus.mean() >= ndtri(SURE) * surplus.std(ddof=1) / np.sqrt(len(over)):
            return float(share)
    return usual


def _weight_of_waiting(records: Records, needed: Floats, late: Floats) -> float:
    """How waiting weighs in durations, by least squares of logarithms; one unless it surely weighs more."""
    requested = (needed > 0).all(axis=0)
    columns = np.column_stack([np.ones(len(late)), np.log(needed[:, requested]), np.log1p(late)])
    if np.count_nonzero(late) < MIN_WAITING_TASKS or len(late) <= 2 * columns.shape[1]:
        return 1.0
    target = np.log(records.duration)
    solution, _, rank, _ = np.linalg.lstsq(columns, target, rcond=None)
    if rank < columns.shape[1]:
        return 1.0
    left = target - columns @ solution
    spread = np.sqrt(left @ left / (len(late) - rank) * np.linalg.inv(columns.T @ columns)[-1, -1])
    return float(solution[-1]) if solution[-1] - ndtri(SURE) * spread > 1 else 1.0


@dataclass(frozen=True)
class Cuts:
    """What N tasks of a kind are given, N × 3, and by how much longer than on what they ask for they should run, N."""

    given: Floats
    slower: Floats


def cut(
    requested: Floats, needed: Sequence[Need], waits: Waits, weights: Floats, allowed: float, *, whole: bool
) -> Cuts:
    """Sizes of tasks of a kind.

    Args:
        requested: What they ask for, N × 3.
        needed: Needs of the kind by resource.
        waits: How tasks of the kind wait.
        weights: Of what is asked for of each resource, 3.
        allowed: By how much longer they may run.
        whole: Whether accelerators cannot be shared.
    """
    batches = [requested[place : place + BATCH] for place in range(0, len(requested), BATCH)]
    parts = [_cut(batch, needed, waits, weights, allowed, whole=whole) for batch in batches]
    return Cuts(np.concatenate([part.given for part in parts]), np.concatenate([part.slower for part in parts]))


def _cut(
    requested: Floats, needed: Sequence[Need], waits: Waits, weights: Floats, allowed: float, *, whole: bool
) -> Cuts:
    own, dying = requested[:, _MEMORY_COLUMN], min(DYING, DYING_PART * allowed)
    memory = np.minimum(own, np.maximum(needed[_MEMORY_COLUMN].most(requested, 1 - dying), MIN_SHARE * own))
    dead = np.where(memory < own, LOST * dying, 0.0)
    parts, late = zip(
        *(_tried(requested, resource, needed[resource], waits, whole=whole) for resource in WAITING), strict=True
    )
    # Beside each part of the accelerators, the least part of the cores that is still allowed; N × parts.
    slack = allowed + 1e-12 - dead[:, None] - late[0]
    least = (
        np.array([np.searchsorted(resource, left, side="right") for resource, left in zip(late[1], slack, strict=True)])
        - 1
    )
    cores = np.take_along_axis(parts[1], np.maximum(least, 0), axis=1)
    freed = -(weights[0] * np.log(parts[0]) + weights[1] * np.log(cores))
    freed[least < 0] = -np.inf
    # All that is asked for is always allowed.
    freed[:, 0] = np.maximum(freed[:, 0], 0.0)
    rows, first = np.arange(len(requested)), freed.argmax(axis=1)
    chosen = first, np.maximum(least[rows, first], 0)
    parts_kept = [part[rows, resource] for part, resource in zip(parts, chosen, strict=True)]
    given = np.column_stack(
        [requested[:, resource] * part for resource, part in zip(WAITING, parts_kept, strict=True)] + [memory]
    )
    return Cuts(np.minimum(given, requested), late[0][rows, chosen[0]] + late[1][rows, chosen[1]] + dead)


def _tried(requested: Floats, resource: int, need: Need, waits: Waits, *, whole: bool) -> tuple[Floats, Floats]:
    """Parts of a resource that are tried, falling from one, and the slow-down that each is expected to lead to."""
    parts = np.arange(STEPS, round(MIN_SHARE * STEPS) - 1, -1) / STEPS
    parts = np.tile(parts, (len(requested), 1))
    own = requested[:, resource]
    if whole and resource == 0:
        parts = np.minimum(np.ceil(parts * own[:, None] - 1e-9) / np.maximum(own, 1e-300)[:, None], 1.0)
    if not len(need.shares):
        return np.ones_like(parts), np.zeros_like(parts)
    likely = need.likely(requested)
    over = likely / np.where(own > 0, own, np.inf)[:, None]
    before = waits.slower(resource, over)
    after = waits.slower(resource, over[:, None, :] / parts[:, :, None])
    # A mean over needs of (1 + after)/(1 + before) − 1.
    late = np.einsum("npk,nk->np", 1 + after, 1 / (1 + before)) / before.shape[1] - 1
    late = np.maximum.accumulate(np.where(late < ROUNDING, 0.0, late), axis=1)
    # Who asks for less than is likely needed is not given less, and who asks for nothing has nothing to give.
    untouched = (np.median(over, axis=1) >= 1 - 1e-9) | (own <= 0)
    parts[untouched], late[untouched] = 1.0, 0.0
    return parts, late


def resource_values(history: Iterable[Records]) -> Floats:
    """Parts of the value of all that tasks of a history asked for that fall to each resource, 3; their sum is one.

    Share of the machines that are full of it first; each resource counts as one kind of machine more, equally divided,
    so that none is worth nothing.
    """
    with np.errstate(over="ignore"):  # what is beyond doubles is scarce
        asked_for = sum((entry.duration @ entry.given for entry in history), np.zeros(len(RESOURCES)))
    first = np.full(len(RESOURCES), 1 / len(RESOURCES))
    for machine in np.array(MACHINES):
        full = asked_for / machine
        if full.max() > 0:
            first[int(full.argmax())] += 1
    return np.asarray(first / first.sum())


@dataclass(frozen=True)
class Times:
    """Durations of a kind.

    Attributes:
        course: Trees of what is given, one set a fold.
        misses: Logarithms of true over predicted duration of held-back records: lower end, median, upper end.
        importance: By how much the error grows when a resource is shuffled, in parts of the error of the mean, 3.
        matters: Whether it can be told from held-back records that what they are given of a resource counts, 3.
        error: Weighted absolute percentage error of held-back records.
    """

    course: tuple[xgboost.Booster, ...]
    misses: tuple[float, float, float]
    importance: tuple[float, float, float]
    matters: tuple[bool, bool, bool]
    error: float

    def duration(self, given: Floats) -> Floats:
        """Low, expected and high seconds of tasks that are given so much, N × 3."""
        logs = _mean_log(self.course, given)
        return np.asarray(np.exp(logs[:, None] + np.array(self.misses)))


def fit(records: Records) -> Times:
    """Durations of a kind with at least a few times FOLDS records."""
    every = slice(None, None, -(-len(records) // MAX_RECORDS))
    features = features_of(records)[every]
    logs = np.log(records.duration[every])
    fold = np.arange(len(logs)) % FOLDS
    with xgboost.config_context(verbosity=0, nthread=1):
        course = tuple(boosted(features[fold != number, :3], logs[fold != number]) for number in range(FOLDS))
        effect = tuple(
            boosted(features[fold != number], logs[fold != number], {"monotone_constraints": str(NEVER_SLOWER)})
            for number in range(FOLDS)
        )
        misses = logs - _held_back(course, features[:, :3], fold)
        known, grown = _grown_errors(
            effect, features, np.exp(logs), fold, [*GROUPS, *((number,) for number in range(3))]
        )
    tail = (1 - COVERAGE) / 2
    ends = _interval_ends(misses, tail)
    importance, alone = grown[:3], [growth > MATTERS for growth in grown[3:]]
    error = known / float(records.duration[every].mean())
    importance_of = (importance[0], importance[1], importance[2])
    return Times(course, ends, importance_of, (alone[0], alone[1], alone[2]), error)


def features_of(records: Records) -> Floats:
    """Columns that trees see: given, used, network and accelerator memory, N × 8; nan where not told."""
    return np.hstack([records.given, records.used, records.beside])


def boosted(features: Floats, target: Floats, more: dict[str, object] | None = None) -> xgboost.Booster:
    """Trees, fitted the same way every time."""
    parameters = PARAMETERS | (more or {})
    data = xgboost.QuantileDMatrix(features, target, max_bin=PARAMETERS["max_bin"], nthread=1)
    return xgboost.train(parameters, data, TREES)


def _mean_log(models: tuple[xgboost.Booster, ...], features: Floats) -> Floats:
    with xgboost.config_context(verbosity=0, nthread=1):
        logs = [model.inplace_predict(features) for model in models]
    return np.asarray(np.mean(logs, axis=0), dtype=np.float64)


def _held_back(models: tuple[xgboost.Booster, ...], features: Floats, fold: Whole) -> Floats:
    predictions = np.empty(len(features))
    for index, model in enumerate(models):
        predictions[fold == index] = model.inplace_predict(features[fold == index])
    return predictions


def _grown_errors(
    models: tuple[xgboost.Booster, ...],
    features: Floats,
    duration: Floats,
    fold: Whole,
    groups: Sequence[Sequence[int]],
) -> tuple[float, list[float]]:
    """Mean absolute error of held-back records, and by how much it grows with groups of columns shuffled."""

    def error(columns: Floats) -> float:
        return float(np.abs(np.exp(_held_back(models, columns, fold)) - duration).mean())

    unknowing = max(float(np.abs(duration - duration.mean()).mean()), 1e-12 * float(duration.mean()))
    known = error(features)
    chance = np.random.default_rng(0)
    orders = [chance.permutation(len(features)) for _ in range(SHUFFLES)]
    growth = []
    for group in groups:
        errors = []
        for order in orders:
            shuffled = features.copy()
            shuffled[:, list(group)] = features[order][:, list(group)]
            errors.append(error(shuffled))
        growth.append((float(np.mean(errors)) - known) / unknowing)
    return known, growth


def _interval_ends(misses: Floats, tail: float) -> tuple[float, float, float]:
    """Ends that a held-back miss lies between, widened as a finite sample asks for (conformal prediction)."""
    ordered, count = np.sort(misses), len(misses)
    place = max(int(np.floor((count + 1) * tail)), 1)
    return float(ordered[place - 1]), float(np.median(ordered)), float(ordered[count - place])


@dataclass(frozen=True)
class _SizedTasks:
    """N tasks of one kind with what they should be given: amounts N × 3, seconds N × 3 or None."""

    given: Floats
    duration: Floats | None
    coverage: float
    slower: Floats
    reason: str
    learnt: bool = False


@dataclass(frozen=True)
class _Situation:
    """What a whole history tells: peak over mean where none is told, value of resources; and what is allowed."""

    headroom: Floats
    weights: Floats
    whole: bool
    allowed: float


def size(request: "documents.SizingRequest") -> "documents.SizingReport":
    """Answer a ``SizingRequest`` with a ``SizingReport``.

    Raises:
        RepeatedName: Tasks share a name.
    """
    tasks = request["tasks"]
    refuse(RepeatedName, repeated("/tasks", [task["id"] for task in tasks]))
    allowed = float(request.get("slow_down", SLOW_DOWN))
    kinds = by_kind(request["history"])
    situation = _Situation(
        headroom(list(kinds.values())),
        resource_values(kinds.values()),
        # Where nobody ever held a part of an accelerator, parts cannot be had.
        whole=all((np.mod(kind.given[:, 0], 1) == 0).all() for kind in kinds.values()),
        allowed=allowed,
    )
    answers: dict[int, documents.SizedTask] = {}
    for kind in dict.fromkeys(task["kind"] for task in tasks):
        places = [place for place, task in enumerate(tasks) if task["kind"] == kind]
        requested = np.array([amounts(tasks[place]["requested"]) for place in places], dtype=np.float64)
        sized = _size_kind(kinds.get(kind), requested, situation)
        for row, place in enumerate(places):
            answers[place] = _answer(tasks[place], sized, row)
    return {
        "revision": request["revision"],
        "method": METHOD,
        "tasks": [answers[place] for place in range(len(tasks))],
        "importance": [_importance(kind, records) for kind, records in kinds.items()],
    }


@lru_cache(maxsize=64)
def _fitted_times(records: Records) -> Times:
    """Trees of records; those of the same contents are fitted once."""
    return fit(records)


def _size_kind(records: Records | None, requested: Floats, situation: _Situation) -> _SizedTasks:
    nothing = np.zeros(len(requested))
    if records is None:
        return _SizedTasks(requested, None, 0.0, nothing, "As asked: no task of this kind ran before.")
    if len(records) < MIN_RECORDS:
        reason = (
            f"As asked: {len(records)} tasks of this kind ran before, too few to give less; {MIN_RECORDS} are enough."
        )
        duration, coverage = _seen(records, len(requested))
        return _SizedTasks(requested, duration, coverage, nothing, reason)
    times = _fitted_times(records)
    waits = learn_waits(records, situation.headroom)
    needed = needs(records.given, waits.needed)
    cuts = cut(requested, needed, waits, situation.weights, situation.allowed, whole=situation.whole)
    duration = times.duration(requested) * (1 + cuts.slower[:, None])
    reason = f"{len(records)} tasks of this kind ran before; what they needed leaves room for less"
    depends = [name for name, matter in zip(RESOURCES, times.matters, strict=True) if matter]
    reason += f". Their time depends on {', '.join(depends)}." if depends else "; none of it shows in their time."
    return _SizedTasks(cuts.given, duration, COVERAGE, cuts.slower, reason, learnt=True)


def _seen(records: Records, count: int) -> tuple[Floats | None, float]:
    """Seconds between the shortest and the longest of n, where the next lies with probability (n − 1)/(n + 1)."""
    if len(records) < 2:  # noqa: PLR2004 - a range takes two
        return None, 0.0
    seconds = [records.duration.min(), np.median(records.duration), records.duration.max()]
    return np.tile(seconds, (count, 1)), (len(records) - 1) / (len(records) + 1)


def _answer(task: "documents.TaskRequest", sized: _SizedTasks, row: int) -> "documents.SizedTask":
    devices, cores, memory = sized.given[row].tolist()
    answer: documents.SizedTask = {
        "task": task["id"],
        "recommended": {"devices": devices, "cores": cores, "memory": memory},
        "slow_down": float(sized.slower[row]),
        "reason": sized.reason,
    }
    if sized.duration is not None:
        low, expected, high = (float(value) for value in sized.duration[row])
        answer["duration"] = {"expected": expected, "low": low, "high": high, "coverage": sized.coverage}
    if sized.learnt and amounts(answer["recommended"]) == amounts(task["requested"]):
        answer["reason"] = "As asked: tasks of this kind were seen to need it."
    return answer


def _importance(kind: str, records: Records) -> "documents.ResourceImportance":
    if len(records) >= MIN_RECORDS:
        times = _fitted_times(records)
        importance, error = times.importance, times.error
    else:
        importance, error = (0.0, 0.0, 0.0), _unlearnt(records.duration)
    devices, cores, memory = importance
    shares: documents.TaskResources = {"devices": devices, "cores": cores, "memory": memory}
    return {"kind": kind, **shares, "error": error, "records": len(records)}


def _unlearnt(duration: Floats) -> float:
    """Error of the mean of all others; all of it where there are none."""
    count = len(duration)
    if count == 1:
        return 1.0
    others = (duration.sum() - duration) / (count - 1)
    return float(np.abs(duration - others).sum() / duration.sum())
