"""RES-010, the collective follows the network, of a run with full requests.

Clause res-02-transfers: how long exchanges take, who the fixed opponents are, and in which order they send. Requests
say what was measured and what does not change; what links carried is in the line ``truth``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from math import fsum, inf, log
from pathlib import Path
from statistics import fmean

from second_judge.bounds import mean_lower, printed
from second_judge.reading import Json, Judged, asked, episode, exchanges, told, truth

REQUIREMENT = "RES-010"
WAYS = (("ring", 1), ("hierarchical", 1), *(("low_communication", period) for period in (5, 15, 50, 150, 500)))
FAMILIES = 4
HIDDEN = 2.0 / 3.0

Way = tuple[str, int]
Matrix = Sequence[Sequence[float]]
"""From domain to domain."""


@dataclass(frozen=True)
class Setting:
    """What does not change in a window: a request, and latencies by place of the domains."""

    request: Json
    latency: Matrix

    @classmethod
    def of(cls, request: Json) -> "Setting":
        """Of the first request of a window."""
        return cls(request, _matrix(request, lambda link: link["latency"]))

    @property
    def domains(self) -> int:
        """How many there are."""
        return len(self.request["domains"])

    def rate(self, way: Way, carried: Matrix, order: Sequence[int]) -> float:
        """Steps a second."""
        collective, period = way
        domains, nodes, step = self.domains, int(self.request["nodes"]), float(self.request["step_time"])
        bits, hidden = 8.0 * self.request["exchange"], HIDDEN * step
        together = domains * nodes if collective == "ring" else domains
        over = self._slowest(bits / together, carried, order)
        if collective == "ring":
            inside = self._message(bits / together) if nodes > 1 else 0.0
            exchanged = 2 * (together - 1) * max(over if domains > 1 else 0.0, inside)
            return 1.0 / (step + max(0.0, exchanged - hidden))
        inside = 2 * (nodes - 1) * self._message(bits / nodes)
        across = 2 * (domains - 1) * over if domains > 1 else 0.0
        if collective == "hierarchical":
            return 1.0 / (step + max(0.0, inside + across - hidden))
        lasts = period * (step + max(0.0, inside - hidden)) + max(0.0, across - max(0.0, hidden - inside))
        return period / (_more_tokens(domains, period) * lasts)

    def _message(self, bits: float) -> float:
        return float(self.request["node_latency"] + bits / self.request["node_bandwidth"])

    def _slowest(self, bits: float, carried: Matrix, order: Sequence[int]) -> float:
        """Seconds of the slowest message of a round over domains."""
        ends = zip(order, [*order[1:], order[0]], strict=True)
        return max((self.latency[a][b] + bits / carried[a][b] if carried[a][b] else inf) for a, b in ends)

    def best(self, way: Way, carried: Matrix) -> tuple[float, Sequence[int]]:
        """Steps a second in the quickest order, and that order, the first of those that are alike."""
        bits = 8.0 * self.request["exchange"]
        bits /= self.domains * (self.request["nodes"] if way[0] == "ring" else 1)
        orders = [(0, *rest) for rest in permutations(range(1, self.domains))]
        order = min(orders, key=lambda each: self._slowest(bits, carried, each))
        return self.rate(way, carried, order), order


def _more_tokens(domains: int, period: int) -> float:
    if domains == 1:
        return 1.0
    return float((1.0 + 0.0240 * (domains - 1) ** 0.818 * log(1.0 + period / 18.4)) ** (1.0 / 0.3658))


def _matrix(request: Json, value: Callable[[Json], float]) -> list[list[float]]:
    places = {name: place for place, name in enumerate(request["domains"])}
    made = [[0.0] * len(places) for _ in places]
    for link in request["links"]:
        made[places[link["source"]]][places[link["target"]]] = float(value(link))
    return made


@dataclass(frozen=True)
class Window:
    """Steps of a window in parts of those of one who always has the quickest for nothing."""

    chosen: float
    fixed: list[float]
    first: int


def judge(folder: Path) -> Judged:
    """The lesser lead: over the fixed way that is best of all windows, and over what was quickest at first."""
    events = list(episode(folder, "res_collectives"))
    answered = iter(exchanges(events, "/v1/collectives"))
    windows = [_window(list(islice(answered, len(each["carried"]))), each["carried"]) for each in truth(events)]
    means = [fmean(column) for column in zip(*(window.fixed for window in windows), strict=True)]
    best = means.index(max(means))
    leads = {
        "fixed": [window.chosen - window.fixed[best] for window in windows],
        "kept": [window.chosen - window.fixed[window.first] for window in windows],
    }
    bounds = [mean_lower(list(_rounds(found)), f"{REQUIREMENT} {name}") for name, found in leads.items()]
    return Judged(printed(min(map(fmean, leads.values()))), printed(min(bounds)), len(windows))


def _rounds(found: list[float]) -> Iterator[list[float]]:
    yield from (found[place : place + FAMILIES] for place in range(0, len(found), FAMILIES))


def _window(answered: list[Json], carried: Sequence[Matrix]) -> Window:
    first = asked(answered[0])
    setting, measured = Setting.of(first), _matrix(first, lambda link: link["bandwidths"][-1])
    begun = [setting.best(way, measured) for way in WAYS]
    quickest = fsum(max(setting.best(way, row)[0] for way in WAYS) for row in carried)
    fixed = [
        fsum(setting.rate(way, row, order) for row in carried) / quickest
        for way, (_, order) in zip(WAYS, begun, strict=True)
    ]
    rates = [rate for rate, _ in begun]
    return Window(fsum(_chosen(setting, answered, carried)) / quickest, fixed, rates.index(max(rates)))


def _chosen(setting: Setting, answered: list[Json], carried: Sequence[Matrix]) -> Iterator[float]:
    """Steps a second of each interval, less what switches take; a switch may take longer than an interval."""
    request, waits = setting.request, 0.0
    used: tuple[Way, tuple[int, ...]] | None = None
    for event, row in zip(answered, carried, strict=True):
        choice = told(event)
        order = tuple(request["domains"].index(name) for name in choice["order"])
        begin = order.index(0)
        now = (choice["collective"], choice["period"]), (*order[begin:], *order[:begin])
        waits += request["switch_time"] if used not in {None, now} else 0.0
        used, lost = now, min(request["interval"], waits)
        waits -= lost
        yield setting.rate(now[0], row, order) * (1.0 - lost / request["interval"])
