"""Where copies of data sets are: those of the beginning stay, others are kept for a while after their last use."""

from collections.abc import Iterable, Iterator, Mapping

from kuayu_conformance.testbed.scheduling.values import Dataset

KEPT = 7 * 86_400.0
"""Seconds that a copy stays after its last use; an assumption, the same for every policy (it is varied by families)."""


class Copies:
    """Copies by data set and number of the domain.

    Args:
        datasets: By name.
        numbers: Number of each domain by name.
        kept: Seconds that a copy stays after its last use.
    """

    def __init__(self, datasets: Mapping[str, Dataset], numbers: Mapping[str, int], kept: float = KEPT) -> None:
        self.datasets = datasets
        self._kept = kept
        self._always = {
            name: tuple(sorted(numbers[site] for site in dataset.sites)) for name, dataset in datasets.items()
        }
        self._until: dict[str, dict[int, float]] = {}

    def at(self, name: str, now: float) -> tuple[int, ...]:
        """Domains that hold a copy, in order."""
        cached = self._until.get(name)
        if not cached:
            return self._always[name]
        return tuple(sorted({*self._always[name], *(site for site, until in cached.items() if until >= now)}))

    def moved(self, names: Iterable[str], now: float) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Those of some data sets that are in more domains than at the beginning, with all domains that hold them."""
        for name in names:
            cached = self._until.get(name)
            if cached and any(until >= now for until in cached.values()):
                yield name, self.at(name, now)

    def always(self, name: str) -> tuple[int, ...]:
        """Domains that hold a copy from the beginning to the end, in order."""
        return self._always[name]

    def use(self, name: str, site: int, now: float) -> None:
        """A copy is there, and in use."""
        if site not in self._always[name]:
            self._until.setdefault(name, {})[site] = now + self._kept
