"""Whether the job ever ran twice, from the workers' own diaries and not from what the control plane believes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """A step as a worker wrote it down.

    Attributes:
        worker: Its identifier.
        at: When, in seconds of the steady clock.
        generation: Under which plan.
        step: Which step.
        loss: Its loss.
    """

    worker: str
    at: float
    generation: int
    step: int
    loss: float


@dataclass(frozen=True, slots=True)
class Account:
    """What the diaries show.

    Attributes:
        entries: Steps that were written down, by all workers.
        strangers: Of those, under a plan that the worker was no member of.
        twice: Of those, after the first step under a later plan: the job ran in two places.
        differing: Steps for which two entries have different losses.
    """

    entries: int
    strangers: tuple[Entry, ...]
    twice: tuple[Entry, ...]
    differing: tuple[int, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing of that kind was found."""
        return not (self.strangers or self.twice or self.differing)


def diaries(folder: Path) -> list[Entry]:
    """All entries of a folder; a last line that its writer did not finish is left out."""
    entries = []
    for file in sorted(folder.glob("*.steps")):
        for line in file.read_text("ascii").splitlines(keepends=True):
            if line.endswith("\n"):
                at, generation, step, loss = line.split()
                entries.append(Entry(file.stem, float(at), int(generation), int(step), float(loss)))
    return entries


def account(entries: Sequence[Entry], plans: Mapping[int, Sequence[str]]) -> Account:
    """Judge the entries of a run by the members of each generation."""
    begun: dict[int, float] = {}
    losses: dict[int, set[float]] = {}
    for entry in entries:
        begun[entry.generation] = min(entry.at, begun.get(entry.generation, entry.at))
        losses.setdefault(entry.step, set()).add(entry.loss)
    strangers = tuple(each for each in entries if each.worker not in plans.get(each.generation, ()))
    twice = tuple(
        each
        for each in entries
        if any(at < each.at for generation, at in begun.items() if generation > each.generation)
    )
    return Account(len(entries), strangers, twice, tuple(step for step, some in losses.items() if len(some) > 1))
