"""A placement request from its bytes to columns of jobs, without plain JSON of any job.

1. msgspec reads jobs into objects whose types are made of the published schema, so that types, bounds, enumerations,
   lengths and names of members are checked while they are read. It holds no text against a pattern and takes a name
   that stands twice: both are looked at afterwards, column by column.
2. Specifications and placements are most of a state, and from one minute to the next nearly all of them are the same
   texts. So jobs are split into such texts first, and only those that the state before did not have are read
   (:class:`JobCache`); the others are the objects that were made of the same text then.
3. Everything else of a request, a small part of it, stays plain JSON and is judged by the schema as ever.
4. Only what is sure to be right is read so. Whatever else a body is, :func:`read` says nothing of it, and whoever asked
   reads it in the way that says what is wrong and where.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import chain
from math import nan
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
import orjson
from msgspec.structs import astuple

from kuayu.scheduling.parse import Columns, ParsedHoldings, ParsedJobs
from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu_schemas import documents

_NAMING = {"description", "title", "x-label-zh", "x-unit", "format"}
"""Keywords that judge nothing here."""

INSTANT_FORMAT = "date-time"
"""The only format: that there is such an instant is looked at when it is read."""

_JOBS = ("waiting", "running")

_STAYING = {"placement": "JobPlacement", "spec": "JobSpec"}
"""Members of jobs that stay as they are for long, with their classes: they are kept as texts at first."""

COLONS_IN_INSTANT = 2

NO_NUMBER = nan
"""Stands for a number that is not there; no text of JSON is one, so that this very object tells."""


class _NotCoveredError(Exception):
    """The schema says something that no type says."""


class _Member:
    """A member of a class.

    Attributes:
        name: Its name.
        absent: What stands for one that is not there.
        required: Whether it has to be there.
        pattern: Which its text has to match, if it is one of that kind.
    """

    def __init__(self, name: str, judging: Mapping[str, Any], *, required: bool) -> None:
        self.name, self.required = name, required
        self.pattern: str | None = judging.get("pattern") or judging.get("items", {}).get("pattern")
        self.absent: Any = NO_NUMBER if judging.get("type") in {"integer", "number"} else None


class _Types:
    """Types of classes of the schema.

    Attributes:
        members: Of each class, in the order of the fields of its type.
    """

    def __init__(self) -> None:
        self._classes: Mapping[str, Any] = schema.document()["$defs"]
        self._structs: dict[str, type[msgspec.Struct]] = {}
        self.members: dict[str, list[_Member]] = {}

    def of(self, name: str) -> type[msgspec.Struct]:
        """The type of a class.

        Raises:
            _NotCoveredError: It is judged by something that no type says.
        """
        if name not in self._structs:
            judging = self._classes[name]
            unknown = judging.keys() - _NAMING - {"type", "properties", "required", "additionalProperties"}
            if (unknown and name not in _CONDITIONS) or judging.get("additionalProperties") is not False:
                raise _NotCoveredError(name)
            fields: list[Any] = []
            self.members[name] = []
            required = judging.get("required", [])
            for member in sorted(judging["properties"], key=lambda name: name not in required):
                inside = self._resolved(judging["properties"][member])
                entry = _Member(member, inside, required=member in required)
                try:
                    kind = msgspec.Raw if inside.get("class") in _STAYING.values() else self._kind(inside)
                except _NotCoveredError:
                    if entry.required:
                        raise
                    continue  # who sends it is read in the other way
                self.members[name].append(entry)
                fields.append((member, kind) if entry.required else (member, kind, entry.absent))
            self._structs[name] = msgspec.defstruct(
                name, fields, forbid_unknown_fields=True, omit_defaults=True, gc=False, kw_only=False
            )
        return self._structs[name]

    def _resolved(self, judging: Mapping[str, Any]) -> Mapping[str, Any]:
        """A part of the schema with what it refers to, closer bounds before wider ones."""
        if "$ref" not in judging:
            resolved = dict(judging)
        else:
            name = judging["$ref"].rpartition("/")[2]
            target = self._resolved(self._classes[name])
            resolved = {**target, **{key: value for key, value in judging.items() if key != "$ref"}, "class": name}
        if "items" in resolved:
            resolved["items"] = self._resolved(resolved["items"])
        return resolved

    def _kind(self, judging: Mapping[str, Any]) -> Any:
        kind = judging.get("type")
        if kind == "object":
            return self.of(judging["class"])
        beyond = judging.get("format", INSTANT_FORMAT) != INSTANT_FORMAT
        if kind not in _KEYWORDS or beyond or judging.keys() - _NAMING - {"type", "class", *_KEYWORDS[kind]}:
            raise _NotCoveredError(str(judging))
        if kind == "string":
            return Literal[tuple(judging["enum"])] if "enum" in judging else str
        if kind == "boolean":
            return bool
        convert = float if kind == "number" else int
        bounds: dict[str, Any] = {_BOUNDS[key]: convert(judging[key]) for key in _BOUNDS.keys() & judging.keys()}
        python_type: Any = list[self._kind(judging["items"])] if kind == "array" else convert  # type: ignore[misc]
        return Annotated[python_type, msgspec.Meta(**bounds)] if bounds else python_type


_KEYWORDS = {
    "string": ("enum", "pattern"),
    "boolean": (),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "array": ("items", "minItems", "maxItems"),
}
_BOUNDS = {"minimum": "ge", "maximum": "le", "minItems": "min_length", "maxItems": "max_length"}

_CONDITIONS = {"JobPlacement"}
"""Classes with conditions, which :class:`TypedJobs` looks at."""

_PERIODIC = {
    "if": {"properties": {"split_mode": {"const": "periodic"}}, "required": ["split_mode"]},
    "then": {"required": ["sync_period"]},
}
"""The one of placements."""


@cache
def _types() -> _Types:
    types = _Types()
    for name in ("WaitingJob", "RunningJob", *_STAYING.values()):
        types.of(name)
    judging = schema.document()["$defs"]["JobPlacement"]
    if {key: judging[key] for key in judging.keys() - _NAMING if key in _PERIODIC} != _PERIODIC or (
        judging.keys() - _NAMING - {"type", "properties", "required", "additionalProperties"} != _PERIODIC.keys()
    ):
        raise _NotCoveredError("JobPlacement")
    return types


@cache
def _decoder() -> tuple[msgspec.json.Decoder[Any], tuple[str, ...], tuple[str, ...]]:
    """Reads a request; and the names of what stays as it was sent, of the request and of its state."""
    types, classes = _types(), schema.document()["$defs"]
    outside = tuple(classes["PlacementRequest"]["properties"].keys() - {"state", "patch", "digest"})
    inside = tuple(classes["SchedulingState"]["properties"].keys() - set(_JOBS))
    raw = msgspec.Raw
    queues = [
        (queue, Annotated[list[types.of(kind)], msgspec.Meta(max_length=_most(queue))])  # type: ignore[misc]
        for queue, kind in zip(_JOBS, ("WaitingJob", "RunningJob"), strict=True)
    ]
    state = msgspec.defstruct(
        "State", [*queues, *((name, raw, None) for name in inside)], forbid_unknown_fields=True, gc=False
    )
    request = msgspec.defstruct(
        "Request", [("state", state), *((name, raw, None) for name in outside)], forbid_unknown_fields=True, gc=False
    )
    return msgspec.json.Decoder(request), outside, inside


@cache
def _part_decoder(name: str) -> msgspec.json.Decoder[Any]:
    """Reads an array of objects of a class."""
    return msgspec.json.Decoder(list[_types().of(name)])  # type: ignore[misc]


def _most(queue: str) -> int:
    most: int = schema.document()["$defs"]["SchedulingState"]["properties"][queue]["maxItems"]
    return most


class _Doubtful(Exception):
    """Something that is not sure to be right."""


Texts = dict[bytes, tuple[Any, int]]
"""What was read of texts, and how many colons stand in each."""


@dataclass(slots=True)
class JobCache:
    """What was read of the jobs of a state, by their texts.

    Attributes:
        specs: Of specifications.
        placements: Of placements.
        parsed: All jobs, column by column; None before there was a state.
    """

    specs: Texts = field(default_factory=dict)
    placements: Texts = field(default_factory=dict)
    parsed: ParsedJobs | None = None

    @property
    def size(self) -> int:
        """Bytes of all texts."""
        return sum(map(len, self.specs)) + sum(map(len, self.placements))


class JobCaches:
    """The jobs of the state that each tenant sent last, in bounded memory.

    What is answered does not depend on them: a text means the same, whoever sent it, and whenever.

    Args:
        capacity: Bytes of texts that all of them may have together; what was read of a text takes about three times
            more.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._caches: OrderedDict[str, tuple[JobCache, int]] = OrderedDict()

    def of(self, tenant: str) -> JobCache:
        """What is known of a tenant's jobs; empty where nothing is."""
        entry = self._caches.get(tenant)
        return entry[0] if entry else JobCache()

    def keep(self, tenant: str, cache: JobCache) -> None:
        """Keep what was read of a tenant's state, in place of the one before."""
        self._caches.pop(tenant, None)
        self._caches[tenant] = cache, cache.size
        while sum(size for _, size in self._caches.values()) > self._capacity:
            self._caches.popitem(last=False)


class TypedJobs:
    """Jobs of a state in columns; what attributes are says :class:`kuayu.scheduling.parse.PlainJobs`.

    Attributes:
        colons: That stand in the text of the jobs, if no name stands twice in any object.
        placements: Of jobs that run, as they were read.
        cache: What was read of this state, by texts; columns are missing.

    Args:
        waiting: Jobs that wait.
        running: Jobs that run.
        before: What was read of a state before.

    Raises:
        _Doubtful: Something may be wrong.
    """

    def __init__(self, waiting: Sequence[Any], running: Sequence[Any], before: JobCache) -> None:
        self.colons = 0
        self._texts: dict[str, set[Any]] = {}
        self.cache = JobCache()
        queued, runs = self._read("WaitingJob", waiting), self._read("RunningJob", running)
        self.waiting = len(waiting)
        self.saved: Sequence[str | None] = [*queued["checkpoint_domain"], *runs["checkpoint_domain"]]
        self.used: Sequence[float] = [*queued["used"], *runs["used"]]
        self.done: Sequence[float] = [*queued["done"], *runs["done"]]
        outside, self.colons = self.colons, 0
        texts = list(map(bytes, [*queued["spec"], *runs["spec"]]))
        self._new, new_colons = self._missing("JobSpec", texts, before.specs)
        self._columns = self._columns_of(self._new)
        self._settle(new_colons)
        self.specs, self.cache.specs, inside = self._all(texts, before.specs)
        if len(self.cache.specs) < len(texts):  # a job stands twice
            raise _Doubtful
        texts = list(map(bytes, runs["placement"]))
        placed, new_colons = self._missing("JobPlacement", texts, before.placements)
        self._check_placements(placed)
        self._settle(new_colons)
        self.placements, self.cache.placements, more = self._all(texts, before.placements)
        self.holdings = _holdings(self.placements, runs)
        self.colons = outside + inside + more
        self._check()

    def columns_of(self, specs: Sequence[Any]) -> Columns:
        """What specifications tell that no state before had."""
        if len(specs) != len(self._new):
            raise ValueError("columns are of the specifications that are new")
        return self._columns

    def _missing(self, name: str, texts: Sequence[bytes], known: Texts) -> tuple[list[Any], int]:
        """Objects of texts that are not known, which are numbered from then on, and their colons."""
        new = [text for text in dict.fromkeys(texts) if text not in known]
        objects = _part_decoder(name).decode(b"[" + b",".join(new) + b"]")
        if len(objects) != len(new):
            raise _Doubtful
        colons = [text.count(b":") for text in new]
        self._fresh: Texts = dict(zip(new, zip(objects, colons, strict=True), strict=True))
        return objects, sum(colons)

    def _settle(self, colons: int) -> None:
        """No name stands twice in what was just read, if it has as many colons as members."""
        if colons != self.colons:
            raise _Doubtful
        self.colons = 0

    def _all(self, texts: Sequence[bytes], known: Texts) -> tuple[list[Any], Texts, int]:
        """Objects of all texts, what is known of these texts alone, and all their colons."""
        if self._fresh:
            known = known | self._fresh
        pairs = list(map(known.__getitem__, texts))
        return [job for job, _ in pairs], dict(zip(texts, pairs, strict=True)), sum([colons for _, colons in pairs])

    @staticmethod
    def artefacts(reads: Sequence[Any]) -> tuple[Sequence[Any], ...]:
        """Names, bytes, domains and whether they are pinned, of artefacts."""
        return (
            [artefact.id for artefact in reads],
            [artefact.size for artefact in reads],
            [artefact.domains for artefact in reads],
            [artefact.pinned for artefact in reads],
        )

    def _read(self, name: str, objects: Sequence[Any]) -> dict[str, Sequence[Any]]:
        """Columns of objects of a class, of which members are counted and texts gathered."""
        members = _types().members[name]
        columns = zip(*map(astuple, objects), strict=True) if objects else [()] * len(members)
        by_member: dict[str, Sequence[Any]] = {}
        for member, column in zip(members, columns, strict=True):
            by_member[member.name] = column
            present = len(column) - (0 if member.required else column.count(member.absent))
            self.colons += present
            if present and member.pattern is not None:
                texts = self._texts.setdefault(member.pattern, set())
                if isinstance(column[0] or next(filter(None, column), None), list):
                    texts.update(*filter(None, column))
                else:
                    texts.update(column)
                    if member.pattern == _instant():
                        self.colons += COLONS_IN_INSTANT * present
        return by_member

    def _inside(self, name: str, column: Sequence[Any], wanted: Sequence[str]) -> dict[str, Sequence[Any]]:
        """Some columns of objects that may be absent; where one is, so is all that is in it."""
        present = [value is not None for value in column]
        columns = self._read(name, [value for value in column if value is not None])
        if all(present):
            return {key: columns[key] for key in wanted}
        absent = {member.name: member.absent for member in _types().members[name]}
        rows = np.where(present, np.cumsum(present) - 1, -1).tolist()
        return {key: list(map([*columns[key], absent[key]].__getitem__, rows)) for key in wanted}

    def _columns_of(self, specs: Sequence[Any]) -> Columns:
        spec = self._read("JobSpec", specs)
        devices = self._read("Elasticity", spec["devices"])
        lasting = self._inside("Estimate", spec["duration"], ["expected", "low", "high"])
        self._inside("Estimate", spec["work"], [])
        talks = self._inside(
            "CommunicationProfile", spec["communication"], ["step_time", "exchange", "boundary", "checkpoint_size"]
        )
        needs = self._inside("LinkNeed", spec["links"], ["bandwidth", "round_trip_time"])
        nodes = self._inside("NodeNeed", spec["nodes"], ["devices_per_node", "within"])
        data = [artefacts or () for artefacts in spec["data"]]
        starts = [start for start in spec["checkpoint"] if start is not None]
        self._read("Artefact", [*chain.from_iterable(data), *starts])
        has_profile = [profile is not None for profile in spec["communication"]]
        return {
            "id": spec["id"],
            "data": data,
            "start": spec["checkpoint"],
            "profile": spec["task_profile"],
            "home": spec["home_domain"],
            "account": spec["account"],
            "modes": [
                (*modes, communicates) for modes, communicates in zip(spec["split_modes"], has_profile, strict=True)
            ],
            "kinds": [tuple(kinds or ()) for kinds in spec["device_kinds"]],
            "within": nodes["within"],
            "minimum": devices["minimum"],
            "maximum": devices["maximum"],
            "requested": devices["requested"],
            "step": devices["step"],
            "memory": spec["memory_per_device"],
            "serial": spec["serial_share"],
            "duration": lasting["expected"],
            "shortest": lasting["low"],
            "longest": lasting["high"],
            "priority": spec["priority"],
            "period": spec["sync_period"],
            "step_time": talks["step_time"],
            "exchange": talks["exchange"],
            "boundary": talks["boundary"],
            "checkpoint": talks["checkpoint_size"],
            "bandwidth": needs["bandwidth"],
            "round_trip": needs["round_trip_time"],
            "submitted": spec["submitted_at"],
            "deadline": spec["deadline"],
            "per_node": nodes["devices_per_node"],
        }

    def _check_placements(self, placed: Sequence[Any]) -> None:
        """Look at placements that are new as at everything that is read."""
        columns = self._read("JobPlacement", placed)
        modes, periods = columns["split_mode"], columns["sync_period"]
        if any(mode == "periodic" and period is NO_NUMBER for mode, period in zip(modes, periods, strict=True)):
            raise _Doubtful
        shares = self._read("DomainShare", list(chain.from_iterable(columns["shares"])))
        self._read("NodeShare", list(chain.from_iterable(filter(None, shares["nodes"]))))

    def _check(self) -> None:
        """Hold texts against their patterns."""
        for pattern, texts in self._texts.items():
            texts.discard(None)
            if pattern == _identifier() and _is_simple(texts):
                continue
            if not all(map(_compiled(pattern).fullmatch, texts)):
                raise _Doubtful
        for text in self._texts.get(_instant(), ()):
            datetime.fromisoformat(text)


def _holdings(placements: Sequence[Any], runs: Mapping[str, Sequence[Any]]) -> ParsedHoldings:
    """What running jobs hold, from their placements and the columns of what else they tell."""
    by_job = [placement.shares for placement in placements]
    shares = list(chain.from_iterable(by_job))
    by_share = [share.nodes or () for share in shares]
    return ParsedHoldings(
        lengths=list(map(len, by_job)),
        domains=[share.domain for share in shares],
        accelerators=[share.accelerator for share in shares],
        devices=[share.devices for share in shares],
        purchases=[share.purchase for share in shares],
        nodes=(
            np.repeat(np.arange(len(shares)), list(map(len, by_share))).tolist(),
            [node.node for node in chain.from_iterable(by_share)],
        ),
        node_devices=[node.devices for node in chain.from_iterable(by_share)],
        modes=[placement.split_mode for placement in placements],
        periods=[None if placement.sync_period is NO_NUMBER else placement.sync_period for placement in placements],
        phases=runs["phase"],
        rates=runs["rate"],
        ready=runs["ready_at"],
        interrupted=runs["interrupted_at"],
    )


def _is_simple(texts: set[str]) -> bool:
    """Whether texts are identifiers of letters and digits alone, as most are: that is soon seen of all together."""
    together = "".join(texts)
    return "" not in texts and together.isascii() and together.isalnum() and max(map(len, texts)) <= SHORT


SHORT = 128
"""Characters that an identifier may have."""


@cache
def _identifier() -> str:
    pattern: str = schema.document()["$defs"]["Identifier"]["pattern"]
    return pattern if pattern == "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" else ""


@cache
def _instant() -> str:
    pattern: str = schema.document()["$defs"]["Instant"]["pattern"]
    return pattern


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the schema, for whole texts: ``$`` alone would let an end of line pass."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        raise _NotCoveredError(pattern)
    return re.compile(pattern[1:-1], re.ASCII)


_NONE_BEFORE = JobCache()


def read(body: bytes, before: JobCache = _NONE_BEFORE) -> "tuple[documents.PlacementRequest, TypedJobs] | None":
    """Read a request for placements that brings a whole state without its digest.

    Args:
        body: The request.
        before: What was read of a state before; texts that it had are not read again.

    Returns:
        The request in plain JSON, valid, but that nobody waits or runs in its state; and the jobs of the state. None
        where it is not sure that the request is valid.
    """
    if b"\\" in body:  # a colon may hide in an escape, and names need none
        return None
    decoder, outside, inside = _decoder()
    try:
        decoded = decoder.decode(body)
        state = decoded.state
        text = _object([*_members(decoded, outside), (b'"state":', _object([*_members(state, inside), *_NOBODY]))])
        request: documents.PlacementRequest = orjson.loads(text)
        jobs = TypedJobs(state.waiting, state.running, before)
    except (msgspec.DecodeError, ValueError, RecursionError, _Doubtful):
        return None
    if not schema.is_valid("PlacementRequest", request):
        return None
    again = orjson.dumps(request).count(b":") + jobs.colons
    return (request, jobs) if again == count(body, b":") else None


def count(body: bytes, character: bytes) -> int:
    """How often a character of ASCII stands in a body; several times faster than bytes count it."""
    return int(np.count_nonzero(np.frombuffer(body, dtype=np.uint8) == character[0]))


_NOBODY = tuple((b'"%s":' % queue.encode(), b"[]") for queue in _JOBS)


def _members(decoded: Any, names: Iterable[str]) -> list[tuple[bytes, bytes]]:
    raw = [(name, getattr(decoded, name)) for name in names]
    return [(b'"%s":' % name.encode(), bytes(value)) for name, value in raw if value is not None]


def _object(members: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"{" + b",".join(name + value for name, value in members) + b"}"


def plain(value: Any) -> Any:
    """What was read of a job, or a part of it, as plain JSON."""
    return msgspec.to_builtins(value)
