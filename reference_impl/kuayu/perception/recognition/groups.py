"""Families and domains: sums over groups of nodes, and features that compare each node with its groups.

1. Arrays have one column for each node or group. Groups may overlap; nodes may be in none.
2. A family's job may run on some of its members only. Who neither works nor holds what it worked on takes no part in
   it, and says nothing about how the others should fare.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.perception.recognition.features import HOLDS, IDLE_UTILISATION, OWN, WORKS_AT_POWER
from kuayu.perception.recognition.values import Flags, Floats, Places, stacked

COMPARED = (
    *(OWN.index(f"level of {name}") for name in ("utilisation", "pipe", "dynamic power", "memory")),
    *(OWN.index(f"usual of {name}") for name in ("utilisation", "pipe", "memory pipe", "power", "flow")),
    OWN.index("usual of power per utilisation"),
    OWN.index("sudden in power"),
    OWN.index("sudden in utilisation"),
    *(OWN.index(f"recent in {name}") for name in ("utilisation", "pipe", "power", "flow")),
    OWN.index("sent over received"),
)
"""Own features that are compared with the median of those of the family that take part in its work."""

RELATED = (
    *(f"family's {OWN[place]}" for place in COMPARED),
    *(f"{OWN[place]} beside family" for place in COMPARED),
    "takes part",
    "family takes part",
    "family at work",
    "family missing",
    "most missing in family",
    "most utilised in family",
    "faults in family",
    "size of family",
    "power beside domain",
    "utilisation beside domain",
    "missing",
)
"""Names of the features that need other nodes."""

FEATURE_PLACE = {name: place for place, name in enumerate((*OWN, *RELATED))}
"""Row of each feature, own ones above those that need other nodes."""

NEARLY_SILENT = 0.6
"""Part of the way to silence at which a node counts as missing in its family."""

WAITED_FOR = 12.0
"""Further ways to silence after which a missing node is no news to its family any more: it waits by then, or not."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups with at least one member, in the order in which sums over them are made.

    Attributes:
        nodes: How many nodes there are.
        member: Node rows, sorted by group.
        group: Group of each of them.
        starts: Where each group begins in ``member``.
        sizes: Members of each group.
        places: For the first, second … group of each node its position; (nodes,) each.
        in_order: Whether the members are all nodes in their order.
        share: One over the number of groups of each node; zero where it is in none.
        tables: For groups of similar size, their positions and their members, padded with ``nodes``.
    """

    nodes: int
    member: Places
    group: Places
    starts: Places
    sizes: Places
    places: tuple[Places, ...]
    in_order: bool
    share: Floats
    tables: tuple[tuple[Places, Places], ...]

    @classmethod
    def of(cls, nodes: int, member: Places, group: Places) -> "Groups":
        """Groups from pairs of node row and group index, in any order."""
        order = np.lexsort((member, group))
        member = np.asarray(member, np.intp)[order]
        _, group = np.unique(np.asarray(group, np.intp)[order], return_inverse=True)
        sizes = np.bincount(group)
        starts = np.cumsum(sizes) - sizes
        times = np.bincount(member, minlength=nodes)
        share = np.divide(1.0, times, out=np.zeros(nodes), where=times > 0).astype(np.float32)
        return cls(
            nodes=nodes,
            member=member,
            group=group,
            starts=starts,
            sizes=sizes,
            places=_places(member, group, nodes),
            in_order=np.array_equal(member, np.arange(nodes)),
            share=share,
            tables=_tables(member, starts, sizes, nodes),
        )

    def mean(self, values: Floats) -> Floats:
        """Mean over the members of each group, (channels, groups)."""
        return self._mean(self._ranked(values))

    def maximum(self, values: Floats) -> Floats:
        """Largest value among the members of each group, (channels, groups)."""
        return self._maximum(self._ranked(values))

    def mean_and_maximum(self, values: Floats) -> tuple[Floats, Floats]:
        """Both, from members put in order once."""
        ranked = self._ranked(values)
        return self._mean(ranked), self._maximum(ranked)

    def _mean(self, ranked: Floats) -> Floats:
        if not len(self.sizes):
            return ranked[:, :0]
        means: Floats = np.add.reduceat(ranked, self.starts, axis=1)
        means /= self.sizes.astype(np.float32)
        return means

    def _maximum(self, ranked: Floats) -> Floats:
        return np.maximum.reduceat(ranked, self.starts, axis=1) if len(self.sizes) else ranked[:, :0]

    def _ranked(self, values: Floats) -> Floats:
        """Values of the members, one group after the other."""
        return values if self.in_order else np.take(values, self.member, axis=1)

    def median(self, values: Floats) -> Floats:
        """Median of the values that are not NaN, (channels, groups); NaN where there is none."""
        medians = np.full((len(values), len(self.sizes)), np.nan, np.float32)
        padded = np.concatenate([values, np.full((len(values), 1), np.nan, np.float32)], axis=1)
        for groups, members in self.tables:
            ranked = np.sort(padded[:, members], axis=2)
            known = ranked.shape[2] - np.isnan(ranked).sum(axis=2)
            low, high = np.maximum(known - 1, 0) // 2, np.minimum(known // 2, ranked.shape[2] - 1)
            pair = np.take_along_axis(ranked, np.stack([low, high], axis=2), axis=2)
            medians[:, groups] = 0.5 * (pair[..., 0] + pair[..., 1])
        return medians

    def back(self, values: Floats, out: Floats | None = None) -> Floats:
        """Mean over the groups of each node, (channels, nodes); zero for nodes in none."""
        means = np.empty((len(values), self.nodes), np.float32) if out is None else out
        if not self.places:
            means[:] = 0
            return means
        padded = np.concatenate([values.astype(np.float32), np.zeros((len(values), 1), np.float32)], axis=1)
        np.take(padded, self.places[0], axis=1, out=means, mode="clip")
        for place in self.places[1:]:
            means += np.take(padded, place, axis=1)
        if len(self.places) > 1:
            means *= self.share
        return means


def _places(member: Places, group: Places, nodes: int) -> tuple[Places, ...]:
    """For the first, second … group of each node its position; how many groups there are where it has none."""
    order = np.argsort(member, kind="stable")
    ranked = member[order]
    first = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.zeros(0, np.intp)
    rank = np.arange(len(ranked)) - np.repeat(first, np.diff(np.r_[first, len(ranked)]))
    positions = []
    for layer in range(int(rank.max()) + 1 if len(rank) else 0):
        place = np.full(nodes, int(group.max()) + 1, np.intp)
        place[ranked[rank == layer]] = group[order][rank == layer]
        positions.append(place)
    return tuple(positions)


def _tables(member: Places, starts: Places, sizes: Places, nodes: int) -> tuple[tuple[Places, Places], ...]:
    """Tables of members, one for the groups between two powers of two, so that little is padded."""
    tables = []
    classes = np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.intp)
    for size in np.unique(classes):
        groups = np.flatnonzero(classes == size)
        width = int(sizes[groups].max())
        places = starts[groups, None] + np.arange(width)
        inside = np.arange(width) < sizes[groups, None]
        tables.append((groups, np.where(inside, member[np.minimum(places, len(member) - 1)], nodes)))
    return tuple(tables)


def relate(own: Floats, missing: Floats, answers: Flags, families: Groups, domains: Groups, out: Floats) -> None:
    """Features that compare each node with its family and domain, (features, nodes).

    Args:
        own: Own features, (features, nodes).
        missing: How far each node is on the way to be silent.
        answers: Whether it has been heard and is not silent.
        families: Groups of nodes that work together.
        domains: Groups of nodes of a domain.
        out: Where they are put, (features, nodes).
    """
    news = np.minimum(missing, 2.0) * np.exp(-np.maximum(missing - 2.0, 0.0) / WAITED_FOR)
    compared = own[list(COMPARED)]
    works = (own[OWN.index("level of utilisation")] > IDLE_UTILISATION) & answers
    part = _takes_part(own) & answers
    middle = families.median(np.where(part, compared, np.float32(np.nan)))
    np.nan_to_num(middle, copy=False)
    usual_of_family = families.back(middle)
    faults = own[OWN.index("faults of seconds")]
    together = families.mean(np.stack([part, works & part, news > NEARLY_SILENT, faults]).astype(np.float32))
    together[1] /= np.maximum(together[0], np.float32(0.01))
    size = 0.3 * np.log(families.sizes).astype(np.float32)
    utilised = np.where(part, own[OWN.index("level of utilisation")], np.float32(0.0))
    most = families.maximum(np.stack([news, utilised]).astype(np.float32))
    of_family = families.back(np.vstack([together[:3], most, np.log1p(together[3] * families.sizes), size]))
    in_family = families.share > 0
    places = [OWN.index("level of dynamic power"), OWN.index("level of utilisation")]
    working = np.where(works, own[places], np.float32(np.nan))
    beside = own[places] - domains.back(domains.median(working))
    stacked(
        out,
        [
            usual_of_family,
            np.where(in_family, compared - usual_of_family, np.float32(0.0)),
            part,
            of_family,
            np.nan_to_num(beside),
            np.minimum(missing, 2.0),
        ],
    )


def _takes_part(own: Floats) -> Flags:
    """Who works, or holds what it worked on: a family's job may run on some of its members only."""

    def named(name: str) -> Floats:
        row: Floats = own[OWN.index(name)]
        return row

    runs = (named("level of utilisation") > IDLE_UTILISATION) | (named("level of dynamic power") > WORKS_AT_POWER)
    holds = np.where(named("has memory") > 0, named("level of memory") > HOLDS, named("samples at work") > 0)
    flags: Flags = runs | holds
    return flags
