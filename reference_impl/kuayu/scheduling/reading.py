"""A scene from the state of a request, in plain dicts of validated JSON; speed counts, since there are many jobs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf, nan
from typing import Any

import numpy as np

from kuayu.scheduling.reading_jobs import Read, read_of
from kuayu.scheduling.reading_places import alike, index_of, pools_of
from kuayu.scheduling.scene import (
    MODES,
    NOWHERE,
    PURCHASES,
    Flags,
    Floats,
    Held,
    Jobs,
    Links,
    Names,
    Numbers,
    Scene,
)

Plain = Mapping[str, Any]

_NOTHING: Plain = {}
_PURCHASE: Mapping[str | None, int] = {name: number for number, name in enumerate(PURCHASES)}
_MODE = {name: number for number, name in enumerate(MODES)}


def instant(text: str) -> float:
    """Seconds from 1970 to an instant as it is written in a request."""
    return datetime.fromisoformat(text).timestamp()


def scene_of(state: Plain, read: Read | None = None) -> Scene:
    """Arrays of a state whose names have been checked.

    Args:
        state: A ``SchedulingState``.
        read: What has been read of it, if it has.
    """
    now = instant(state["now"])
    told = alike(state)
    domains = {each["id"]: number for number, each in enumerate(told)}
    accelerators = {each["id"]: number for number, each in enumerate(state["accelerators"])}
    pools, numbers = pools_of(told, accelerators)
    profiles, index = index_of(state["accelerators"])
    read = read or read_of(state)
    copies = {each["artefact"]: each["domains"] for each in state.get("copies") or ()}
    refused = {each["job"] for each in state.get("refused") or () if each["reason"] == "no_room"}
    return Scene(
        waiting=len(state["waiting"]),
        memory=np.array([each["memory"] for each in state["accelerators"]], dtype=np.float64),
        index=index,
        reachable=np.array([each.get("reachable") is not False for each in told], dtype=np.bool_),
        pools=pools,
        links=links_of(state["links"], domains),
        jobs=_jobs(read, now, _Known(domains, profiles, copies, state["accelerators"])),
        held=_held(state["running"], len(state["waiting"]), now, domains, accelerators, numbers),
        names=Names(tuple(accelerators), tuple(domains), tuple(read.names)),
        now=now,
        denied=frozenset(number for number, name in enumerate(read.names[: len(state["waiting"])]) if name in refused),
    )


def links_of(links: Sequence[Plain], places: Mapping[str, int]) -> Links:
    """Links by number; places that have none yet come after those that are given."""
    numbers = dict(places)
    source = [numbers.setdefault(each["source"], len(numbers)) for each in links]
    target = [numbers.setdefault(each["target"], len(numbers)) for each in links]
    bandwidth, available, round_trip, tariff = (
        np.array([each[name] for each in links], dtype=np.float64)
        for name in ("bandwidth", "available", "round_trip_time", "tariff")
    )
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
        accelerators: Sequence[Plain],
    ) -> None:
        self.domains, self.profiles, self._copies = domains, profiles, copies
        self.kinds = [each.get("kind") for each in accelerators]

    def at(self, read: Read) -> Flags:
        """Which domains hold each artefact now; those that this request does not know are left out."""
        rows: dict[tuple[str, ...], int] = {}
        named: Sequence[Sequence[str]] = read.domains
        if copies := self._copies:
            named = [copies.get(name) or held for name, held in zip(read.artefacts, read.domains, strict=True)]
        numbers = [rows.setdefault(tuple(each), len(rows)) for each in named]
        holding = [[name in each for name in self.domains] for each in rows]
        found: Flags = np.array(holding, dtype=np.bool_).reshape(len(rows), len(self.domains))[_numbers(numbers)]
        return found

    def places(self, names: Sequence[str | None]) -> Numbers:
        """Numbers of domains; nowhere for those that are not named, or not known."""
        known = self.domains
        return _numbers([NOWHERE if name is None else known.get(name, NOWHERE) for name in names])


def _jobs(read: Read, now: float, known: _Known) -> Jobs:
    seen: dict[str, int] = {}
    used, requested = read.figures["used"], read.figures["requested"]
    return Jobs(
        requested=np.where(np.isnan(requested), read.figures["maximum"], requested).astype(np.int64),
        minimum=read.whole("minimum"),
        maximum=read.whole("maximum"),
        step=np.maximum(read.whole("step", 1.0), 1),
        memory=read.figure("memory", 0.0),
        profile=_numbers([known.profiles.get(name or "", NOWHERE) for name in read.profile]),
        kinds=_allowed(read.kinds, known.kinds),
        serial=read.figure("serial", 0.0),
        used=np.where(np.isnan(used), 1.0, used),
        measured=~np.isnan(used),
        duration=read.figure("duration", 0.0),
        done=read.figure("done", 0.0),
        submitted=_instants(read.submitted, now, nan),
        deadline=_instants(read.deadline, now, inf),
        priority=read.whole("priority"),
        home=known.places(read.home),
        modes=_modes(read.modes),
        period=read.whole("period"),
        step_time=read.figure("step_time", 0.0),
        exchange=read.figure("exchange", 0.0),
        boundary=read.figure("boundary", 0.0),
        checkpoint=read.figure("checkpoint", 0.0),
        saved=known.places(read.saved),
        resumes=np.array(read.resumes, dtype=np.bool_),
        least_bandwidth=read.figure("bandwidth", 0.0),
        longest_round_trip=read.figure("round_trip", inf),
        reader=_numbers(read.readers),
        artefact=_numbers([seen.setdefault(each, len(seen)) for each in read.artefacts]),
        size=np.array(read.sizes, dtype=np.float64),
        pinned=np.array(read.pinned, dtype=np.bool_),
        at=known.at(read),
    )


def _held(
    running: Sequence[Plain],
    first: int,
    now: float,
    domains: Mapping[str, int],
    accelerators: Mapping[str, int],
    numbers: Mapping[tuple[int, int], int],
) -> Held:
    placements: list[Plain] = [entry["placement"] for entry in running]
    shares = [(number, share) for number, each in enumerate(placements, first) for share in each["shares"]]
    pool = [numbers[domains[share["domain"]], accelerators[share["accelerator"]]] for _, share in shares]
    rates = [entry.get("rate") for entry in running]
    return Held(
        holder=_numbers([number for number, _ in shares]),
        pool=_numbers(pool),
        devices=np.array([share["devices"] for _, share in shares], dtype=np.int64),
        purchase=_numbers([_PURCHASE.get(share.get("purchase"), NOWHERE) for _, share in shares]),
        mode=_numbers([_MODE.get(each["split_mode"], 0) for each in placements]),
        period=np.array([each.get("sync_period") or 1 for each in placements], dtype=np.int64),
        rate=np.array(rates, dtype=np.float64),
        ready=np.array([_ready(entry, now) for entry in running], dtype=np.float64),
        saving=np.array([entry["phase"] == "interrupted" for entry in running], dtype=np.bool_),
    )


def _ready(entry: Plain, now: float) -> float:
    """Seconds until a job that holds devices runs; not a number where nobody says so."""
    if entry["phase"] == "running":
        return 0.0
    ready = entry.get("ready_at")
    return nan if ready is None else max(instant(ready) - now, 0.0)


def _numbers(values: Sequence[int]) -> Numbers:
    return np.array(values, dtype=np.intp)


def _instants(texts: Sequence[str | None], now: float, absent: float) -> Floats:
    """Seconds from now; many jobs are submitted in the same second, so that each text is read once."""
    read = {text: absent if text is None else instant(text) - now for text in set(texts)}
    return np.array([read[text] for text in texts], dtype=np.float64)


def _allowed(asked: Sequence[tuple[str, ...]], kinds: Sequence[str | None]) -> Flags:
    """Whether accelerators are of a kind that will do; what many jobs ask for alike is looked at once."""
    rows = {each: [not each or kind in each for kind in kinds] for each in set(asked)}
    return np.array([rows[each] for each in asked], dtype=np.bool_).reshape(len(asked), len(kinds))


def _modes(asked: Sequence[tuple[Any, ...]]) -> Flags:
    """How jobs may be spread; one that tells nothing of its communication is not spread."""
    rows = {each: [mode in each and (mode == MODES[0] or each[-1]) for mode in MODES] for each in set(asked)}
    return np.array([rows[each] for each in asked], dtype=np.bool_).reshape(len(asked), len(MODES))
