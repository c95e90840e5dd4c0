"""Requests for decisions that name what is not in them, one thing twice, or contradict themselves (COM-042).

1. A row of the table is one thing that can be wrong: in words, the problem that it calls for, the place that has to be
   named, and an edit that puts it into a request in which nothing is wrong.
2. Each decision service of the declared profiles, or of the parts that a run is about, is sent the right request, and
   then one for each of its rows. Others are not asked.
3. Each answer is a problem of that type with status 422 and a pointer to the place (RFC 9457, RFC 6901). Where members
   contradict each other, a place within what holds them will do.
4. Where the right request is not answered, nothing can be said of that operation, and nothing is said of the
   requirement unless a row of another one speaks against it.

    twice("load", "/loads/1/id", "/loads/0/id")   # the second load is named as the first: invalid-body, /loads/1/id

Sources: requirement COM-042; the clauses IDX to RES for what contradicts itself.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand.demand_requests import DEMANDS, LAYOUTS, SIZES
from kuayu_conformance.checks.interface.reference_requests import (
    FORECASTS,
    HOUR,
    INDICES,
    PEAKS,
    PHASES,
    PROBE_PLANS,
    RESERVATIONS,
    STEP_BYTES,
    WAVEFORMS,
    requests,
)
from kuayu_conformance.checks.kit.decisions import RequestT
from kuayu_conformance.checks.kit.requests import decision_services
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS, BACKUPS, COLLECTIVES, FAILOVERS, SHARDS
from kuayu_conformance.checks.scheduling.placement_requests import FRONTS, PLACEMENTS, PLANS, ROUTES
from kuayu_conformance.episode import Episode, SetUpFailure
from kuayu_conformance.findings import Claim, Finding, answered, holds

REQUIREMENT = "COM-042"
UNKNOWN, INVALID = "unknown-reference", "invalid-body"
"""Problems: a name that is not in the request, and all else."""
NOWHERE = "nowhere"
"""A name that nothing has."""

Edit = Callable[[Any], Mapping[str, Any]]
"""What is put where in a request, by pointers."""


@dataclass(frozen=True)
class Row:
    """One thing that can be wrong with a request.

    Attributes:
        what: In words.
        problem: What it calls for.
        pointer: The place that is to be named.
        edit: Puts it into a request that is right.
        within: Whether a place within that one may be named, too.
        instead: Another place that may be named as well as that one, or a place within it; none where it is empty.
    """

    what: str
    problem: str
    pointer: str
    edit: Edit
    within: bool = False
    instead: str = ""

    @property
    def where(self) -> str:
        """Places that may be named, in words."""
        first = f"{self.pointer} or a place within it" if self.within else self.pointer
        return first + (f", or {self.instead} or a place within it" if self.instead else "")

    def names(self, pointer: str) -> bool:
        """Whether that is one of them."""
        roots = [self.pointer] * self.within + [self.instead] * bool(self.instead)
        return pointer in {self.pointer, *roots} or any(pointer.startswith(f"{root}/") for root in roots)

    def spoil(self, request: RequestT) -> RequestT:
        """A copy of a request with that wrong in it."""
        return edited(request, self.edit(request))


def edited(request: RequestT, values: Mapping[str, Any]) -> RequestT:
    """A copy of a request with other values at some places, put there one after the other."""
    # what stands in two places is one thing to a deep copy
    body: RequestT = json.loads(json.dumps(request))
    for pointer, value in values.items():
        parent_pointer, _, last = pointer.rpartition("/")
        parent = value_at(body, parent_pointer)
        parent[int(last) if isinstance(parent, list) else last] = json.loads(json.dumps(value))
    return body


def value_at(request: Any, pointer: str) -> Any:
    """What stands at a place of a request.

    Raises:
        LookupError: Nothing does.
    """
    value = request
    for step in pointer.split("/")[1:]:
        value = value[int(step) if isinstance(value, list) else step]
    return value


def unknown(what: str, pointer: str) -> Row:
    """A name that nothing has, at a place that points at something."""
    return Row(f"{what}, unknown", UNKNOWN, pointer, put(pointer, NOWHERE))


def twice(what: str, pointer: str, source: str) -> Row:
    """A name that something else in the request has already, at another place."""
    return Row(f"{what}, twice", INVALID, pointer, copied(pointer, source))


def repeated(what: str, pointer: str) -> Row:
    """The first entry of a list once more, at the place behind its last one."""
    return Row(f"{what}, twice", INVALID, pointer, like_first(pointer), within=True)


def contradiction(what: str, pointer: str, edit: Edit, instead: str = "") -> Row:
    """Members beneath a place that cannot all be."""
    return Row(what, INVALID, pointer, edit, True, instead)


def put(pointer: str, value: object) -> Edit:
    """The same value whatever the request is."""
    return lambda _: {pointer: value}


def copied(pointer: str, source: str) -> Edit:
    """What stands at another place of the request."""
    return lambda request: {pointer: value_at(request, source)}


def like_first(pointer: str, end: str = "", value: Callable[[Any], object] = str) -> Edit:
    """One entry more at the end of a list, where the place is: the first once more, with another value of a member."""
    rows = pointer.rpartition("/")[0]

    def edit(request: Any) -> Mapping[str, Any]:
        entries = value_at(request, rows)
        return {rows: [*entries, {**entries[0], end: value(entries[0])} if end else entries[0]]}

    return edit


def one_more(pointer: str, source: str) -> Edit:
    """A number that is greater by one than the one at another place."""
    return lambda request: {pointer: value_at(request, source) + 1}


def replaced(pointer: str, change: Callable[[Any], object]) -> Edit:
    """Something else in its place, which follows from it."""
    return lambda request: {pointer: change(value_at(request, pointer))}


def both(first: Edit, second: Edit) -> Edit:
    """Two edits as one."""
    return lambda request: {**first(request), **second(request)}


def _links(pointer: str, *, known_ends: bool = False) -> Iterator[Row]:
    """A link more, behind the last one: the first once more, one that leads nowhere else, ones with an unknown end."""
    yield repeated("link", pointer)
    yield contradiction("a link to its source", pointer, like_first(pointer, "target", lambda link: link["source"]))
    for end in ("source", "target") if known_ends else ():
        edit = like_first(pointer, end, lambda _: NOWHERE)
        yield Row(f"{end} of a link, unknown", UNKNOWN, f"{pointer}/{end}", edit)


def _experts(what: str, pointer: str) -> Row:
    """A model whose tokens go to more experts than there are."""
    return contradiction(
        f"{what} with more experts for a token than there are",
        pointer,
        one_more(f"{pointer}/experts_per_token", f"{pointer}/experts"),
    )


_HARDWARE = (
    unknown("hardware of a run", "/runs/1/hardware"),
    twice("hardware", "/hardware/1/id", "/hardware/0/id"),
    _experts("a model of a run", "/runs/1/model"),
)
_SERIES = (
    twice("series", "/series/1/id", "/series/0/id"),
    contradiction(
        "a series that reaches beyond now",
        "/series/1",
        lambda request: {"/series/1/values": [*value_at(request, "/series/1/values"), 1.0, 2.0]},
    ),
)
_FORESEEN = (
    twice("job", "/jobs/1/id", "/jobs/0/id"),
    contradiction("a job without periods", "/jobs/1", put("/jobs/1/periods", [])),
)
_STATE = (
    unknown("accelerator of a pool", "/state/domains/1/pools/0/accelerator"),
    unknown("domain of a copy", "/state/copies/0/domains/1"),
    unknown("home of a job", "/state/waiting/1/spec/home_domain"),
    unknown("domain of data", "/state/waiting/1/spec/data/0/domains/0"),
    twice("accelerator", "/state/accelerators/2/id", "/state/accelerators/0/id"),
    twice("domain", "/state/domains/2/id", "/state/domains/0/id"),
    twice("pool of a domain", "/state/domains/0/pools/1/accelerator", "/state/domains/0/pools/0/accelerator"),
    twice("node of a pool", "/state/domains/0/pools/0/nodes/1/id", "/state/domains/0/pools/0/nodes/0/id"),
    twice("job that waits", "/state/waiting/1/spec/id", "/state/waiting/0/spec/id"),
)
_HELD_DEVICES = "/state/running/0/placement/shares/0"
_PROTECTED = (
    twice("job", "/jobs/1/id", "/jobs/0/id"),
    twice("store", "/stores/2/domain", "/stores/0/domain"),
    *_links("/links/7"),
    contradiction(
        "a least number above the number of replicas", "/jobs/1", one_more("/jobs/1/least_replicas", "/jobs/1/replicas")
    ),
)


def _streams() -> Iterator[Row]:
    """What can be wrong with the second of two streams: its bytes are missing, under way or there."""
    stream = "/streams/1"
    missing, transfers = f"{stream}/missing", f"{stream}/transfers"
    for what, rows, more in (
        ("missing bytes", missing, {}),
        ("transfers", transfers, {f"{transfers}/1/left": 0.0}),
    ):
        yield contradiction(f"{what} without a byte", f"{rows}/1", _ending(f"{rows}/1", 1.0, more))
        yield contradiction(f"{what} that end before they begin", f"{rows}/1", _ending(f"{rows}/1", 0.5, more))
        yield contradiction(f"{what} beyond the last step", stream, _beyond(f"{rows}/1", f"{stream}/remote_steps"))
    yield contradiction("missing bytes that do not rise", missing, replaced(missing, lambda entries: entries[::-1]))
    yield contradiction("missing bytes that overlap", missing, put(f"{missing}/1/begin", 9 * STEP_BYTES))
    yield contradiction("transfers that overlap", stream, put(f"{transfers}/1/begin", 0.5 * STEP_BYTES))
    yield contradiction("a transfer of missing bytes", stream, put(f"{transfers}/1/end", 3.5 * STEP_BYTES))
    yield contradiction(
        "a transfer with more left than it has", f"{transfers}/1", put(f"{transfers}/1/left", 2.0 * STEP_BYTES)
    )


def _ending(rows: str, share: float, more: Mapping[str, Any]) -> Edit:
    """Bytes that end at a share of where they begin."""
    return lambda request: {**more, f"{rows}/end": share * value_at(request, f"{rows}/begin")}


def _beyond(rows: str, steps: str) -> Edit:
    """Bytes of the step behind the last one."""

    def edit(request: Any) -> Mapping[str, Any]:
        last = value_at(request, steps) * STEP_BYTES
        return {f"{rows}/begin": last, f"{rows}/end": last + STEP_BYTES}

    return edit


def _policies() -> Iterator[Row]:
    """What can be wrong with the policy in force of the second job, and with the last change that is planned for it."""
    change = "/jobs/1/planned/1"
    for what, policy in (("in force", "/jobs/1"), ("planned", change)):
        order = f"{policy}/order"
        yield unknown(f"domain in an order {what}", f"{order}/1")
        yield contradiction(f"an order {what} that leaves one out", order, _without_first(order))
        yield contradiction(f"an order {what} that holds one twice", order, copied(f"{order}/1", f"{order}/0"))
        yield contradiction(f"an order {what} with one beyond", order, _extended(order, "/domains/3/id"))
        yield from _periods(policy, f" {what}")
    parts = f"{change}/parts"
    for what, divided in (
        ("for a domain too few", lambda pair: [sum(pair)]),
        ("for a domain too many", lambda pair: [pair[1], 1, pair[0] - 1]),
        ("of another sum", lambda pair: [pair[0], pair[1] + 1]),
        ("of zero", lambda pair: [sum(pair), 0]),
    ):
        yield contradiction(f"planned parts {what}", change, replaced(parts, divided))
    yield contradiction(
        "a change that is planned for sooner than the one before",
        "/jobs/1/planned",
        lambda request: {f"{change}/after": value_at(request, "/jobs/1/planned/0/after") - 0.5},
    )


def _without_first(rows: str) -> Edit:
    """A list without its first entry."""
    return replaced(rows, lambda entries: entries[1:])


def _extended(rows: str, source: str) -> Edit:
    """A list with what stands at another place behind its entries."""
    return lambda request: {rows: [*value_at(request, rows), value_at(request, source)]}


def _periods(policy: str, when: str = "") -> Iterator[Row]:
    """A period of several steps with collectives that have none."""
    for collective in ("ring", "hierarchical"):
        edit = both(put(f"{policy}/collective", collective), put(f"{policy}/period", 5))
        yield contradiction(f"a period of 5 with {collective}{when}", policy, edit)


ROWS: Mapping[str, tuple[Row, ...]] = {
    INDICES: (
        unknown("device of a measurement", "/corpus/measurements/0/device"),
        unknown("task of a measurement", "/corpus/measurements/0/task"),
        unknown("reference", "/reference"),
        unknown("device asked for", "/devices/1"),
        unknown("task asked for", "/tasks/0"),
        unknown("device of a group", "/groups/0/members/0/device"),
        Row(
            "a group of one that stands later",
            UNKNOWN,
            "/groups/0/members/0/group",
            lambda request: {"/groups/0/members/0": {"group": value_at(request, "/groups/1/id"), "count": 1}},
        ),
        twice("group", "/groups/1/id", "/groups/0/id"),
        twice("device", "/corpus/devices/2/id", "/corpus/devices/0/id"),
        Row("task, twice", INVALID, "/corpus/tasks/2/id", like_first("/corpus/tasks/2")),
    ),
    PROBE_PLANS: (
        unknown("device of a candidate", "/candidates/1/device"),
        unknown("task of a candidate", "/candidates/1/task"),
        unknown("device of a target", "/targets/1/device"),
        unknown("task of a target", "/targets/1/task"),
    ),
    DEMANDS: (
        *_HARDWARE,
        unknown("hardware of a case", "/cases/1/hardware"),
        twice("case", "/cases/1/id", "/cases/0/id"),
        _experts("a model of a case", "/cases/1/model"),
    ),
    LAYOUTS: (*_HARDWARE, unknown("kind of hardware", "/kind"), _experts("a model", "/model")),
    SIZES: (twice("task", "/tasks/1/id", "/tasks/0/id"),),
    FORECASTS: (
        *_SERIES,
        *_FORESEEN,
        contradiction("horizons that do not rise", "/horizons", put("/horizons", [HOUR, 600.0])),
        contradiction("a horizon that stands twice", "/horizons", put("/horizons", [600.0, 600.0])),
        contradiction("levels that do not rise", "/levels", put("/levels", [0.1, 0.9, 0.5])),
        contradiction("a level that stands twice", "/levels", put("/levels", [0.5, 0.5])),
        contradiction("a level of zero", "/levels", put("/levels", [0.0, 0.5])),
        contradiction("a level of one", "/levels", put("/levels", [0.5, 1.0])),
    ),
    PHASES: (
        twice("curve", "/curves/1/id", "/curves/0/id"),
        contradiction(
            "steps of a curve that fall", "/curves/1", copied("/curves/1/points/2/step", "/curves/1/points/0/step")
        ),
        contradiction(
            "a step of a curve that stands twice",
            "/curves/1",
            copied("/curves/1/points/2/step", "/curves/1/points/1/step"),
        ),
    ),
    WAVEFORMS: _FORESEEN,
    PEAKS: (
        twice("load", "/loads/1/id", "/loads/0/id"),
        contradiction(
            "a load whose window is too short",
            "/loads/1",
            both(put("/loads/1/earliest", 8), put("/loads/1/planned", 8)),
        ),
    ),
    RESERVATIONS: (
        *_SERIES,
        *_FORESEEN,
        twice("tenant of a promise", "/qualities/1/tenant", "/qualities/0/tenant"),
    ),
    PLACEMENTS: (
        *_STATE,
        unknown("domain where a job runs", f"{_HELD_DEVICES}/domain"),
        unknown("accelerator on which a job runs", f"{_HELD_DEVICES}/accelerator"),
        unknown("node on which a job runs", f"{_HELD_DEVICES}/nodes/0/node"),
        unknown("domain of a planned share", "/shares/1/domain"),
        twice("job that waits and runs", "/state/running/0/spec/id", "/state/waiting/0/spec/id"),
        twice("domain of planned shares", "/shares/1/domain", "/shares/0/domain"),
    ),
    FRONTS: _STATE,
    PLANS: (*_STATE, unknown("domain of a forecast", "/forecast/0/domain")),
    ROUTES: (
        unknown("source of a demand", "/demands/1/sources/0"),
        unknown("target of a demand", "/demands/0/targets/0"),
        twice("demand", "/demands/1/id", "/demands/0/id"),
    ),
    ADJUSTMENTS: (
        unknown("domain of a share", "/jobs/0/shares/0/domain"),
        *_links("/links/7", known_ends=True),
        # the last link between domains of a job: either end of the contradiction may be named
        contradiction(
            "domains without a link",
            "/links",
            replaced("/links", lambda links: [*links[:5], *links[6:]]),
            instead="/jobs/2",
        ),
        repeated("domain", "/domains/4"),
        twice("job", "/jobs/1/id", "/jobs/0/id"),
        repeated("share", "/jobs/2/shares/3"),
        *_policies(),
    ),
    BACKUPS: (
        unknown("domain of a job", "/jobs/1/domain"),
        twice("domain", "/domains/2/id", "/domains/0/id"),
        *_PROTECTED,
    ),
    FAILOVERS: (
        unknown("store of a copy", "/jobs/1/copies/1/domain"),
        contradiction(
            "copy, twice", "/jobs/1/copies/1/domain", copied("/jobs/1/copies/1/domain", "/jobs/1/copies/0/domain")
        ),
        twice("node", "/nodes/11/id", "/nodes/0/id"),
        contradiction("a replica without a job", "/nodes/11", put("/nodes/11/replica", 0)),
        contradiction(
            "a job without a replica",
            "/nodes/6",
            replaced("/nodes/6", lambda node: {key: node[key] for key in node if key != "replica"}),
        ),
        contradiction("a fit node that is fenced", "/nodes/6", put("/nodes/6/fenced_in", 30.0)),
        contradiction("a failed node that is fenced", "/nodes/3", put("/nodes/3/fenced_in", 30.0)),
        contradiction("a replica beyond the last", "/nodes/6", copied("/nodes/6/replica", "/jobs/1/replicas")),
        contradiction(
            "a node in another domain than its job", "/nodes/6", copied("/nodes/6/domain", "/nodes/9/domain")
        ),
        contradiction(
            "a replica with more nodes than it needs",
            "/nodes",
            both(copied("/nodes/11/job", "/nodes/6/job"), copied("/nodes/11/replica", "/nodes/6/replica")),
        ),
        *_PROTECTED,
    ),
    SHARDS: (
        unknown("source of a transfer", "/streams/1/transfers/1/source"),
        twice("stream", "/streams/1/id", "/streams/0/id"),
        twice("room", "/rooms/1/domain", "/rooms/0/domain"),
        contradiction("link, twice", "/links/2", copied("/links/2/source", "/links/0/source")),
        contradiction("a link to its source", "/links/2", copied("/links/2/target", "/links/2/source")),
        *_streams(),
    ),
    COLLECTIVES: (
        *_links("/links/6", known_ends=True),
        unknown("domain in use", "/in_use/order/1"),
        contradiction("domain, twice", "/domains", _extended("/domains", "/domains/0")),
        contradiction("domains without a link", "/links", _without_first("/links")),
        contradiction("an order that leaves one out", "/in_use/order", _without_first("/in_use/order")),
        contradiction("an order that holds one twice", "/in_use/order", copied("/in_use/order/1", "/in_use/order/0")),
        *_periods("/in_use"),
    ),
}
"""What can be wrong with a request, one thing each, by operation."""


@dataclass(frozen=True)
class SpoiltRequest:
    """A request with one thing wrong, and what came.

    Attributes:
        path: Operation.
        row: What is wrong.
        answer: The exchange.
    """

    path: str
    row: Row
    answer: Answer

    def claims(self) -> Iterator[Claim]:
        """It is refused with the problem that it calls for, and the place is named."""
        what = f"{self.row.what} ({self.path})"
        yield answered(REQUIREMENT, self.answer, 422, what, problem=self.row.problem)
        pointers = [str(error.get("pointer")) for error in self.answer.items("errors") if isinstance(error, dict)]
        named = any(map(self.row.names, pointers))
        yield holds(REQUIREMENT, named, f"{what}: the place {self.row.where}", pointers, self.answer)


@dataclass(frozen=True)
class SpoiltRequests:
    """What came of all that was asked.

    Attributes:
        requests: With one thing wrong each.
        unanswered: Why nothing was asked of an operation; empty where all right requests were answered.
    """

    requests: tuple[SpoiltRequest, ...]
    unanswered: tuple[SetUpFailure, ...] = ()


def observe(episode: Episode) -> SpoiltRequests:
    """Ask each service as it should be asked, then with one thing wrong each time."""
    bodies = requests(episode.random, episode.naming)
    spoilt, unanswered = list[SpoiltRequest](), list[SetUpFailure]()
    for service in decision_services(episode):
        path = service.removeprefix("POST ")
        try:
            episode.set_up("POST", path, bodies[path])
        except SetUpFailure as failed:
            unanswered.append(failed)
            continue
        spoilt += [SpoiltRequest(path, row, episode.ask("POST", path, row.spoil(bodies[path]))) for row in ROWS[path]]
    return SpoiltRequests(tuple(spoilt), tuple(unanswered))


def judge(observation: SpoiltRequests) -> list[Finding]:
    """Claims about every row.

    Raises:
        SetUpFailure: An operation did not answer what is right, and nothing speaks against the others.
    """
    claims = [claim for request in observation.requests for claim in request.claims()]
    if observation.unanswered and all(claim.met for claim in claims):
        raise observation.unanswered[0]
    return list(claims)


CHECK = Check("com_names", (REQUIREMENT,), observe, judge)
