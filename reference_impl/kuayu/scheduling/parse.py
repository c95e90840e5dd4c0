"""A snapshot of the scheduler from the state of a request, in plain dicts of validated JSON.

1. Jobs are read column by column, since there are thousands of them; a specification that is the very same object as
   in the state before is not read again (decision 39).
2. Domains and pools take an order that follows from what they are, so that no decision depends on names.
3. Names are taken for granted: :mod:`.validation` has looked at them.

Source: class ``SchedulingState`` of the information model (``spec/model/scheduling.yaml``).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from math import inf, nan
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kuayu.scheduling import DEFAULT_ACCOUNT
from kuayu.scheduling.state import (
    ANYWHERE,
    MODES,
    NOWHERE,
    PURCHASES,
    SCOPES,
    Accounts,
    Counts,
    Flags,
    Floats,
    Holdings,
    Jobs,
    Links,
    Names,
    NodeOccupancy,
    Nodes,
    Numbers,
    Offer,
    Pools,
    Snapshot,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

_PURCHASE: Mapping[str, int] = {name: number for number, name in enumerate(PURCHASES)}


def alike(state: "documents.SchedulingState", parsed: "ParsedJobs") -> "list[documents.PoolDomain]":
    """Domains with their pools in an order that follows from what they are, so that no decision depends on names.

    Those that are alike in everything stay in the order of the request.
    """
    kinds = {accelerator["id"]: _kind(accelerator) for accelerator in state["accelerators"]}
    links: dict[str, list[tuple[float, ...]]] = {}
    for link in state["links"]:
        figures = (link["round_trip_time"], link["tariff"], link["bandwidth"], link["available"])
        links.setdefault(link["source"], []).append((0.0, *figures))
        links.setdefault(link["target"], []).append((1.0, *figures))

    def pool_key(pool: "documents.ComputePool") -> tuple[Any, ...]:
        return (kinds[pool["accelerator"]], pool["devices"], pool["free"], pool["devices_per_node"])

    def key(domain: "documents.PoolDomain") -> tuple[Any, ...]:
        pools = sorted(pool_key(pool) for pool in domain["pools"])
        return (pools, sorted(links.get(domain["id"], ())), parsed.copies[domain["id"]])

    domains: list[documents.PoolDomain] = [
        {**domain, "pools": sorted(domain["pools"], key=pool_key)} for domain in state["domains"]
    ]
    return sorted(domains, key=key)


def _kind(accelerator: "documents.OfferedAccelerator") -> tuple[Any, ...]:
    return (sorted(value["value"] for value in accelerator["indices"]), accelerator["memory"])


def pools_of(
    domains: "Sequence[documents.PoolDomain]", accelerators: Mapping[str, int]
) -> tuple[Pools, dict[tuple[int, int], int]]:
    """Pools of domains by number, and the number of each by those of its domain and its accelerator."""
    rows = [(number, pool) for number, entry in enumerate(domains) for pool in entry["pools"]]
    domain = np.array([number for number, _ in rows], dtype=np.intp)
    accelerator = np.array([accelerators[pool["accelerator"]] for _, pool in rows], dtype=np.intp)
    switches: list[dict[str, int]] = [{} for _ in domains]
    pools = Pools(
        domain,
        accelerator,
        np.array([pool["devices"] for _, pool in rows], dtype=np.int64),
        np.array([pool["free"] for _, pool in rows], dtype=np.int64),
        np.array([pool["devices_per_node"] for _, pool in rows], dtype=np.int64),
        tuple(tuple(_offer(offer) for offer in pool.get("offers") or ()) for _, pool in rows),
        tuple(_nodes(pool.get("nodes"), switches[number]) for number, pool in rows),
    )
    numbers = {key: number for number, key in enumerate(zip(domain.tolist(), accelerator.tolist(), strict=True))}
    return pools, numbers


def _offer(offer: "documents.CapacityOffer") -> Offer:
    """A way of buying that this version does not know is taken for one on demand."""
    purchase = _PURCHASE.get(offer["purchase"], _PURCHASE["on_demand"])
    return Offer(purchase, offer["devices"], float(offer["price"]), float(offer.get("interruption_rate") or 0.0))


def _nodes(nodes: "Sequence[documents.PoolNode] | None", switches: dict[str, int]) -> Nodes | None:
    if nodes is None:
        return None
    named = [node.get("switch") for node in nodes]
    return Nodes(
        tuple(node["id"] for node in nodes),
        np.array([node["devices"] for node in nodes], dtype=np.int64),
        np.array([node["free"] for node in nodes], dtype=np.int64),
        np.array([NOWHERE if n is None else switches.setdefault(n, len(switches)) for n in named], dtype=np.intp),
    )


def index_of(accelerators: "Sequence[documents.OfferedAccelerator]") -> tuple[dict[str, int], Floats]:
    """Row of each profile, and the index, (profiles, accelerators); zero where an accelerator has none."""
    profiles: dict[str, int] = {}
    for accelerator in accelerators:
        for value in accelerator["indices"]:
            profiles.setdefault(value["profile"], len(profiles))
    index = np.zeros((len(profiles), len(accelerators)))
    for number, accelerator in enumerate(accelerators):
        for value in accelerator["indices"]:
            index[profiles[value["profile"]], number] = value["value"]
    return profiles, index


_NOTHING: Mapping[str, Any] = {}
"""Stands for a part of a specification that is not there."""

_FIGURES = (
    *("minimum", "maximum", "requested", "step", "memory", "serial", "duration", "priority", "period"),
    *("step_time", "exchange", "boundary", "checkpoint", "bandwidth", "round_trip", "submitted", "deadline"),
    *("per_node", "shortest", "longest"),
)
"""What is read of a specification as a number; instants are seconds from 1970."""

_INSTANTS = ("submitted", "deadline")
_NUMBERED = ("profile", "home", "modes", "kinds", "within", "account")

Columns = Mapping[str, Sequence[Any]]
"""What is told, by name, and in each by job."""


def _columns_of(specs: "Sequence[documents.JobSpec]") -> Columns:
    """Columns of specifications: what is read as it is, and as a number; none where there is none."""
    devices = [spec["devices"] for spec in specs]
    talks: list[documents.CommunicationProfile | Mapping[str, Any]]
    talks = [spec.get("communication") or _NOTHING for spec in specs]
    needs: list[documents.LinkNeed | Mapping[str, Any]] = [spec.get("links") or _NOTHING for spec in specs]
    nodes: list[documents.NodeNeed | Mapping[str, Any]] = [spec.get("nodes") or _NOTHING for spec in specs]
    lasting: list[documents.Estimate | Mapping[str, Any]] = [spec.get("duration") or _NOTHING for spec in specs]
    return {
        "id": [spec["id"] for spec in specs],
        "data": [spec.get("data") or () for spec in specs],
        "start": [spec.get("checkpoint") for spec in specs],
        "profile": [spec.get("task_profile") for spec in specs],
        "home": [spec.get("home_domain") for spec in specs],
        "account": [spec.get("account") for spec in specs],
        "modes": [(*spec["split_modes"], bool(talk)) for spec, talk in zip(specs, talks, strict=True)],
        "kinds": [tuple(spec.get("device_kinds") or ()) for spec in specs],
        "within": [node.get("within") for node in nodes],
        "minimum": [elasticity["minimum"] for elasticity in devices],
        "maximum": [elasticity["maximum"] for elasticity in devices],
        "requested": [elasticity.get("requested") for elasticity in devices],
        "step": [elasticity.get("step") for elasticity in devices],
        "memory": [spec.get("memory_per_device") for spec in specs],
        "serial": [spec.get("serial_share") for spec in specs],
        "duration": [estimate.get("expected") for estimate in lasting],
        "shortest": [estimate.get("low") for estimate in lasting],
        "longest": [estimate.get("high") for estimate in lasting],
        "priority": [spec.get("priority") for spec in specs],
        "period": [spec.get("sync_period") for spec in specs],
        "step_time": [talk.get("step_time") for talk in talks],
        "exchange": [talk.get("exchange") for talk in talks],
        "boundary": [talk.get("boundary") for talk in talks],
        "checkpoint": [talk.get("checkpoint_size") for talk in talks],
        "bandwidth": [need.get("bandwidth") for need in needs],
        "round_trip": [need.get("round_trip_time") for need in needs],
        "submitted": [spec["submitted_at"] for spec in specs],
        "deadline": [spec.get("deadline") for spec in specs],
        "per_node": [node.get("devices_per_node") for node in nodes],
    }


@dataclass(frozen=True, slots=True)
class ParsedHoldings:
    """What running jobs tell of what they hold, column by column.

    Attributes:
        lengths: How many shares, by job.
        domains: Names, by share.
        accelerators: Names, by share.
        devices: By share.
        purchases: Ways of buying or none, by share.
        nodes: Number of the share and name of each node that is told.
        node_devices: Devices on each of these.
        modes: Split modes, by job.
        periods: Steps between reconciliations or none, by job.
        phases: By job.
        rates: Work a second or none, by job.
        ready: Instants or none, by job.
        interrupted: Likewise.
    """

    lengths: Sequence[int]
    domains: Sequence[str]
    accelerators: Sequence[str]
    devices: Sequence[int]
    purchases: Sequence[str | None]
    nodes: tuple[Sequence[int], Sequence[str]]
    node_devices: Sequence[int]
    modes: Sequence[str]
    periods: Sequence[int | None]
    phases: Sequence[str]
    rates: Sequence[float | None]
    ready: Sequence[str | None]
    interrupted: Sequence[str | None]

    @classmethod
    def of(cls, running: "Sequence[documents.RunningJob]") -> "ParsedHoldings":
        """What is told by running jobs."""
        placements = [entry["placement"] for entry in running]
        shares = [share for placement in placements for share in placement["shares"]]
        named = [(number, node) for number, share in enumerate(shares) for node in share.get("nodes") or ()]
        return cls(
            lengths=[len(placement["shares"]) for placement in placements],
            domains=[share["domain"] for share in shares],
            accelerators=[share["accelerator"] for share in shares],
            devices=[share["devices"] for share in shares],
            purchases=[share.get("purchase") for share in shares],
            nodes=([number for number, _ in named], [node["node"] for _, node in named]),
            node_devices=[node["devices"] for _, node in named],
            modes=[placement["split_mode"] for placement in placements],
            periods=[placement.get("sync_period") for placement in placements],
            phases=[entry["phase"] for entry in running],
            rates=[entry.get("rate") for entry in running],
            ready=[entry.get("ready_at") for entry in running],
            interrupted=[entry.get("interrupted_at") for entry in running],
        )


class _JobColumns(Protocol):
    """Jobs of a state, column by column: of plain JSON, or decoded by types (:mod:`.typed`). See :class:`PlainJobs`."""

    @property
    def waiting(self) -> int: ...

    @property
    def specs(self) -> list[Any]: ...

    @property
    def saved(self) -> Sequence[str | None]: ...

    @property
    def used(self) -> Sequence[float | None]: ...

    @property
    def done(self) -> Sequence[float | None]: ...

    @property
    def holdings(self) -> "ParsedHoldings": ...

    def columns_of(self, specs: Sequence[Any], /) -> "Columns": ...

    def artefacts(self, reads: Sequence[Any], /) -> tuple[Sequence[Any], ...]: ...


class PlainJobs:
    """Jobs of a state in plain JSON.

    Attributes:
        waiting: How many of them wait.
        specs: Specifications.
        saved: Name of the domain of its last checkpoint, or none.
        used: Share of the requested devices that it keeps busy, or none.
        done: Work, or none.
        holdings: What running jobs hold.
    """

    def __init__(self, state: "documents.SchedulingState") -> None:
        entries: list[documents.WaitingJob | documents.RunningJob] = [*state["waiting"], *state["running"]]
        self.waiting = len(state["waiting"])
        self.specs = [entry["spec"] for entry in entries]
        self.saved: Sequence[str | None] = [entry.get("checkpoint_domain") for entry in entries]
        self.used: Sequence[float | None] = [entry.get("used") for entry in entries]
        self.done: Sequence[float | None] = [entry.get("done") for entry in entries]
        self.holdings = ParsedHoldings.of(state["running"])

    @staticmethod
    def columns_of(specs: "Sequence[documents.JobSpec]") -> Columns:
        """What specifications tell, of jobs that the state before did not have: all of them where there was none."""
        return _columns_of(specs)

    @staticmethod
    def artefacts(reads: "Sequence[documents.Artefact]") -> tuple[Sequence[Any], ...]:
        """Names, bytes, domains and whether they are pinned, of artefacts."""
        named = tuple(list(map(itemgetter(name), reads)) for name in ("id", "size", "domains"))
        return (*named, [artefact.get("pinned") for artefact in reads])


STALE = 2
"""How many times as many values as specifications may be known before those that nobody has any more are let go."""


class NumberedColumn:
    """A column of few values, by the numbers of these.

    Args:
        values: The column.
        known: Numbers of values so far; those that are new are added.

    Attributes:
        known: Numbers of values.
        numbers: By place in the column.
    """

    def __init__(self, values: Sequence[Hashable], known: dict[Any, int]) -> None:
        self.known = known
        for value in dict.fromkeys(values):
            known.setdefault(value, len(known))
        self.numbers: Numbers = _numbers(list(map(known.__getitem__, values)))

    def followed_by(self, fresh: "NumberedColumn", order: Numbers) -> "NumberedColumn":
        """A column of the same values: places of this one, and behind them of another that knows the same numbers."""
        joined = NumberedColumn((), self.known)
        joined.numbers = np.concatenate([self.numbers, fresh.numbers])[order]
        return joined

    def used(self) -> set[Any]:
        """Values that stand in the column."""
        values = list(self.known)
        return {values[number] for number in np.unique(self.numbers).tolist()}

    def mapped(self, value_of: Callable[[Any], Any], kind: type) -> NDArray[Any]:
        """What is found for each value, by place in the column."""
        return np.array([value_of(value) for value in self.known], dtype=kind)[self.numbers]


class ParsedSpecs:
    """What is read of specifications, column by column: it stays as it is for as long as a job lives.

    Args:
        specs: Specifications of jobs, in plain JSON or as objects of :mod:`.typed`: nothing but their identity counts.
        columns: What they tell, if that has been looked at.
        known: Numbers of values by column, of specifications before.

    Attributes:
        specs: The same.
        figures: (:data:`_FIGURES`, specifications); not a number where there is none.
        columns: By name, texts, what is read, and the checkpoint that it starts from, or none.
        numbered: By name, the task profile and the home domain or none, split modes with whether the job tells anything
            of its communication, kinds of devices that will do, empty where all do, and how near to each other these
            have to lie or none.
    """

    def __init__(
        self, specs: Sequence[object], columns: Columns, known: Mapping[str, dict[Any, int]] | None = None
    ) -> None:
        self.specs: Sequence[object] = specs
        self.columns: dict[str, Sequence[Any]] = {name: columns[name] for name in ("id", "data", "start")}
        known = known or {name: {} for name in _NUMBERED}
        self.numbered = {name: NumberedColumn(columns[name], known[name]) for name in _NUMBERED}
        self.figures: Floats = np.empty((len(_FIGURES), len(specs)))
        for row, name in enumerate(_FIGURES):
            self.figures[row] = _seconds(columns[name]) if name in _INSTANTS else columns[name]

    @property
    def stale(self) -> bool:
        """Whether values of jobs that are gone should be let go."""
        return any(len(column.known) > STALE * len(self.specs) + 100 for column in self.numbered.values())

    def followed_by(self, specs: Sequence[object], columns_of: Callable[[Sequence[Any]], Columns]) -> "ParsedSpecs":
        """What is read of other specifications, of which those that are the very same objects are not read again.

        Args:
            specs: All of them.
            columns_of: Tells what those tell that are not known.
        """
        rows = dict(zip(map(id, self.specs), range(len(self.specs)), strict=True))
        order = _numbers([rows.get(number, NOWHERE) for number in map(id, specs)])
        missing = np.flatnonzero(order == NOWHERE)
        known = {name: column.known for name, column in self.numbered.items()}
        new = [specs[row] for row in missing.tolist()]
        fresh = ParsedSpecs(new, columns_of(new), known)
        order[missing] = len(self.specs) + np.arange(len(missing))
        places = order.tolist()
        joined = object.__new__(ParsedSpecs)
        joined.specs = specs
        joined.figures = np.concatenate([self.figures, fresh.figures], axis=1)[:, order]
        joined.columns = {
            name: _gathered([*column, *fresh.columns[name]], places) for name, column in self.columns.items()
        }
        joined.numbered = {
            name: column.followed_by(fresh.numbered[name], order) for name, column in self.numbered.items()
        }
        return joined


def _gathered(column: Sequence[Any], places: Sequence[int]) -> Sequence[Any]:
    """Values of a column by their places."""
    gathered: Sequence[Any] = itemgetter(*places)(column) if len(places) > 1 else [column[place] for place in places]
    return gathered


class ParsedJobs:
    """What is read of jobs, column by column: a state has thousands of them.

    Args:
        jobs: Jobs that wait and jobs that run.
        before: What was read of a state before; specifications that are the very same objects are not read again.

    Attributes:
        specs: What is read of their specifications.
        figures: By name; not a number where there is none.
        holdings: What running jobs hold.
        waiting: How many of the jobs wait.
        names: Of jobs.
        saved: Name of the domain of its last checkpoint, or none.
        resumes: Whether it goes on from a checkpoint.
        readers: Number of the job, by artefact that is read.
        artefacts: Names of these.
        sizes: Bytes of each.
        pinned: Whether it may not leave its domains, if that is told.
        domains: Names of the domains that hold it.
        begun: Likewise of what jobs start from, whether it is still read or not.
        copies: How many of the artefacts that waiting jobs read are in each domain.
    """

    def __init__(self, jobs: "_JobColumns", before: "ParsedJobs | None" = None) -> None:
        specs, self.holdings, self.waiting = jobs.specs, jobs.holdings, jobs.waiting
        self.specs: ParsedSpecs = (
            ParsedSpecs(specs, jobs.columns_of(specs))
            if before is None
            else before.specs.followed_by(specs, jobs.columns_of)
        )
        columns = self.specs.columns
        self.names: tuple[str, ...] = tuple(columns["id"])
        self.saved = jobs.saved
        starts = [(number, start) for number, start in enumerate(columns["start"]) if start is not None]
        _, sizes, begun, _ = jobs.artefacts([start for _, start in starts])
        self.begun: Sequence[Sequence[str]] = begun
        self.resumes = [saved is not None for saved in self.saved]
        self.figures: dict[str, Floats] = dict(zip(_FIGURES, self.specs.figures, strict=True))
        self.figures["used"] = np.array(jobs.used, dtype=np.float64)
        self.figures["done"] = np.array(jobs.done, dtype=np.float64)
        reads: list[Any] = list(chain.from_iterable(columns["data"]))
        readers = np.repeat(np.arange(len(specs)), list(map(len, columns["data"])))
        late: list[int] = []
        count = int(np.searchsorted(readers, self.waiting))
        if starts:
            self.figures["checkpoint"] = self.figures["checkpoint"].copy()
        for (number, start), size in zip(starts, sizes, strict=True):
            if not self.resumes[number]:
                # what it starts from is read like data until it has written one of its own
                reads.append(start)
                late.append(number)
                self.figures["checkpoint"][number] = size
            self.resumes[number] = True
        if late:
            readers = np.concatenate([readers, late])
            order = np.argsort(readers, kind="stable")
            readers, reads = readers[order], [reads[place] for place in order.tolist()]
        self.readers: Numbers = readers.astype(np.intp)
        self.artefacts, self.sizes, self.domains, self.pinned = jobs.artefacts(reads)
        data = self.domains if not late else jobs.artefacts(list(chain.from_iterable(columns["data"])))[2]
        self.copies: Counter[str] = Counter(chain.from_iterable(data[:count]))

    def figure(self, name: str, absent: float) -> Floats:
        """Figures by job."""
        values = self.figures[name]
        return np.where(np.isnan(values), absent, values)

    def whole(self, name: str, absent: float = 0.0) -> Counts:
        """Whole numbers by job."""
        return self.figure(name, absent).astype(np.int64)


def parse_jobs(state: "documents.SchedulingState", before: ParsedJobs | None = None) -> ParsedJobs:
    """What is read of the jobs of a state.

    Args:
        state: Not looked at but for its jobs.
        before: What was read of the state that this one was made of by a patch.
    """
    return ParsedJobs(PlainJobs(state), None if before is not None and before.specs.stale else before)


_MODE: Mapping[str, int] = {name: number for number, name in enumerate(MODES)}
_SCOPE = {name: number for number, name in enumerate(SCOPES)}


def instant(text: str) -> float:
    """Seconds from 1970 to an instant as it is written in a request."""
    return datetime.fromisoformat(text).timestamp()


def snapshot_of(state: "documents.SchedulingState", parsed: ParsedJobs | None = None) -> Snapshot:
    """Arrays of a state whose names have been checked.

    Args:
        state: A valid one.
        parsed: What has been read of its jobs, if it has.
    """
    now = instant(state["now"])
    parsed = parsed or parse_jobs(state)
    ordered = alike(state, parsed)
    domains = {domain["id"]: number for number, domain in enumerate(ordered)}
    accelerators = {accelerator["id"]: number for number, accelerator in enumerate(state["accelerators"])}
    pools, numbers = pools_of(ordered, accelerators)
    profiles, index = index_of(state["accelerators"])
    copies = {copy["artefact"]: copy["domains"] for copy in state.get("copies") or ()}
    jobs = _jobs(parsed, now, _Known(domains, profiles, copies, state["accelerators"]))
    holdings = _holdings(parsed.holdings, parsed.waiting, now, domains, accelerators, numbers)
    if jobs.particular[: parsed.waiting].any():
        holdings = replace(holdings, nodes=_node_occupancy(parsed.holdings, holdings.pool, pools))
    refused = {entry["job"] for entry in state.get("refused") or () if entry["reason"] == "no_room"}
    return Snapshot(
        waiting=parsed.waiting,
        memory=np.array([accelerator["memory"] for accelerator in state["accelerators"]], dtype=np.float64),
        index=index,
        reachable=np.array([domain.get("reachable") is not False for domain in ordered], dtype=np.bool_),
        pools=pools,
        links=links_of(state["links"], domains),
        jobs=jobs,
        holdings=holdings,
        names=Names(tuple(accelerators), tuple(domains), parsed.names),
        now=now,
        denied=frozenset(
            number for number, name in enumerate(parsed.names[: parsed.waiting]) if refused and name in refused
        ),
        accounts=_accounts(state, parsed),
    )


def _accounts(state: "documents.SchedulingState", parsed: ParsedJobs) -> Accounts | None:
    """Accounts of jobs that wait; None where the state has none."""
    if not (stated := state.get("accounts")):
        return None
    known = {account["id"]: number for number, account in enumerate(stated)}
    column = parsed.specs.numbered["account"]
    number = column.mapped(lambda name: known.setdefault(name or DEFAULT_ACCOUNT, len(known)), np.intp)
    used, weight = np.zeros(len(known)), np.ones(len(known))
    used[: len(stated)] = [account["used"] for account in stated]
    weight[: len(stated)] = [account["weight"] for account in stated]
    return Accounts(number[: parsed.waiting], used, weight)


def links_of(links: "Sequence[documents.PathLink]", places: Mapping[str, int]) -> Links:
    """Links by number; places that have none yet come after those that are given."""
    numbers = dict(places)
    source = [numbers.setdefault(link["source"], len(numbers)) for link in links]
    target = [numbers.setdefault(link["target"], len(numbers)) for link in links]
    bandwidth = np.array([link["bandwidth"] for link in links], dtype=np.float64)
    available = np.array([link["available"] for link in links], dtype=np.float64)
    round_trip = np.array([link["round_trip_time"] for link in links], dtype=np.float64)
    tariff = np.array([link["tariff"] for link in links], dtype=np.float64)
    return Links(len(numbers), _numbers(source), _numbers(target), bandwidth, available, round_trip, tariff)


class _Known:
    """What the columns of jobs point at.

    Args:
        domains: Numbers by name.
        profiles: Rows of the index by name.
        copies: Domains that hold a copy, by artefact.
        accelerators: Kinds of accelerators as the request tells them.
    """

    def __init__(
        self,
        domains: Mapping[str, int],
        profiles: Mapping[str, int],
        copies: Mapping[str, Sequence[str]],
        accelerators: "Sequence[documents.OfferedAccelerator]",
    ) -> None:
        self.domains, self.profiles, self._copies = domains, profiles, copies
        self.kinds = [accelerator.get("kind") for accelerator in accelerators]

    def has_copy(self, parsed: ParsedJobs) -> Flags:
        """Which domains hold each artefact now; those that this request does not know are left out."""
        rows: dict[tuple[str, ...], int] = {}
        named: Sequence[Sequence[str]] = parsed.domains
        if copies := self._copies:
            named = [copies.get(name) or own for name, own in zip(parsed.artefacts, parsed.domains, strict=True)]
        keys = list(map(tuple, named))
        for key in dict.fromkeys(keys):
            rows[key] = len(rows)
        numbers = list(map(rows.__getitem__, keys))
        holding = [[name in holders for name in self.domains] for holders in rows]
        flags: Flags = np.array(holding, dtype=np.bool_).reshape(len(rows), len(self.domains))[_numbers(numbers)]
        return flags

    def places(self, names: Sequence[str | None]) -> Numbers:
        """Numbers of domains; nowhere for those that are not named, or not known."""
        return _numbers([NOWHERE if name is None else self.domains.get(name, NOWHERE) for name in names])

    def place(self, name: str | None) -> int:
        """Number of a domain; nowhere for one that is not named, or not known."""
        return NOWHERE if name is None else self.domains.get(name, NOWHERE)


def _jobs(parsed: ParsedJobs, now: float, known: _Known) -> Jobs:
    seen = {name: number for number, name in enumerate(dict.fromkeys(parsed.artefacts))}
    numbered = parsed.specs.numbered
    used, requested = parsed.figures["used"], parsed.figures["requested"]
    return Jobs(
        requested=np.where(np.isnan(requested), parsed.figures["maximum"], requested).astype(np.int64),
        minimum=parsed.whole("minimum"),
        maximum=parsed.whole("maximum"),
        step=np.maximum(parsed.whole("step", 1.0), 1),
        memory=parsed.figure("memory", 0.0),
        profile=numbered["profile"].mapped(lambda name: known.profiles.get(name or "", NOWHERE), np.intp),
        kinds=_allowed(numbered["kinds"], known.kinds),
        serial=parsed.figure("serial", 0.0),
        used=np.where(np.isnan(used), 1.0, used),
        measured=~np.isnan(used),
        duration=parsed.figure("duration", 0.0),
        done=parsed.figure("done", 0.0),
        submitted=parsed.figures["submitted"] - now,
        deadline=parsed.figure("deadline", inf) - now,
        priority=parsed.whole("priority"),
        home=numbered["home"].mapped(known.place, np.intp),
        modes=_modes(numbered["modes"]),
        period=parsed.whole("period"),
        step_time=parsed.figure("step_time", 0.0),
        exchange=parsed.figure("exchange", 0.0),
        boundary=parsed.figure("boundary", 0.0),
        checkpoint=parsed.figure("checkpoint", 0.0),
        saved=known.places(parsed.saved),
        resumes=np.array(parsed.resumes, dtype=np.bool_),
        least_bandwidth=parsed.figure("bandwidth", 0.0),
        longest_round_trip=parsed.figure("round_trip", inf),
        per_node=parsed.whole("per_node"),
        within=numbered["within"].mapped(lambda name: _SCOPE.get(name, ANYWHERE), np.intp),
        reader=parsed.readers,
        artefact=_numbers(list(map(seen.__getitem__, parsed.artefacts))),
        size=np.array(parsed.sizes, dtype=np.float64),
        pinned=np.array(parsed.pinned, dtype=np.bool_),
        has_copy=known.has_copy(parsed),
    )


def _holdings(
    parsed: ParsedHoldings,
    first: int,
    now: float,
    domains: Mapping[str, int],
    accelerators: Mapping[str, int],
    numbers: Mapping[tuple[int, int], int],
) -> Holdings:
    pool = [
        numbers[domains[domain], accelerators[accelerator]]
        for domain, accelerator in zip(parsed.domains, parsed.accelerators, strict=True)
    ]
    # zero for one that runs, not a number where nobody says when it will
    runs = np.array([phase == "running" for phase in parsed.phases], dtype=np.bool_)
    ready = np.array(_seconds(parsed.ready)) - now
    undisturbed = now - np.array(_seconds(parsed.interrupted))
    return Holdings(
        holder=np.repeat(np.arange(first, first + len(parsed.lengths)), _numbers(parsed.lengths)),
        pool=_numbers(pool),
        devices=np.array(parsed.devices, dtype=np.int64),
        purchase=_numbers([_PURCHASE.get(purchase or "", NOWHERE) for purchase in parsed.purchases]),
        mode=_numbers([_MODE.get(mode, 0) for mode in parsed.modes]),
        period=np.array([period or 1 for period in parsed.periods], dtype=np.int64),
        rate=np.array(parsed.rates, dtype=np.float64),
        ready=np.where(runs, 0.0, np.maximum(ready, 0.0)),
        saving=np.array([phase == "interrupted" for phase in parsed.phases], dtype=np.bool_),
        undisturbed=np.where(np.isnan(undisturbed), inf, undisturbed),
    )


def _node_occupancy(parsed: ParsedHoldings, pool: Numbers, pools: Pools) -> NodeOccupancy:
    """What running jobs hold by node; nodes that their pool no longer has are left out.

    Args:
        parsed: What they tell.
        pool: Number of the pool, by share.
        pools: With their nodes.
    """
    shares, names = parsed.nodes
    known: dict[int, dict[str, int]] = {}
    rows: list[tuple[int, int, int]] = []
    for share, name, devices in zip(shares, names, parsed.node_devices, strict=True):
        where = int(pool[share])
        if where not in known:
            nodes = pools.nodes[where]
            known[where] = {} if nodes is None else {node: number for number, node in enumerate(nodes.names)}
        if name in known[where]:
            rows.append((share, known[where][name], devices))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return NodeOccupancy(columns[:, 0].astype(np.intp), columns[:, 1].astype(np.intp), columns[:, 2])


def _numbers(values: Sequence[int]) -> Numbers:
    return np.array(values, dtype=np.intp)


def _seconds(texts: Sequence[str | None]) -> list[float]:
    """Seconds from 1970, not a number where there is no text; many are the same, so that each is read once."""
    known = {text: nan if text is None else instant(text) for text in set(texts)}
    return [known[text] for text in texts]


def _allowed(column: NumberedColumn, kinds: Sequence[str | None]) -> Flags:
    """Whether accelerators are of a kind that will do, (jobs, accelerators)."""
    rows = [[not accepted or kind in accepted for kind in kinds] for accepted in column.known]
    return np.array(rows, dtype=np.bool_).reshape(len(rows), len(kinds))[column.numbers]


def _modes(column: NumberedColumn) -> Flags:
    """How jobs may be spread; one that tells nothing of its communication is not spread."""
    rows = [[mode in modes and (mode == MODES[0] or modes[-1]) for mode in MODES] for modes in column.known]
    return np.array(rows, dtype=np.bool_).reshape(len(rows), len(MODES))[column.numbers]
