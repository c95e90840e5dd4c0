"""What sizes must never be, what they may cost, and which resource a kind must be said to depend on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.dem_sizing_questions import ALLOWED, Asked
from kuayu_conformance.checks.dem_sizing_scores import Played, Window
from kuayu_conformance.findings import Claim, holds
from kuayu_conformance.statistics.holm import LEVEL
from kuayu_conformance.statistics.quotients import Stratum, quotient
from kuayu_conformance.testbed.tasks.cluster import FIFO
from kuayu_conformance.testbed.tasks.kinds import KINDS, RESOURCES

FIGURE, SIZES = "DEM-003", "DEM-007"

MOST_DYING = 0.01
"""Share of the tasks of a mix that may run out of memory."""
MARGIN = 0.05
"""By how much tasks may be slower on the mean than was allowed."""
VANISHED = 0.03
"""Gain, or loss, in deployed tasks that is as good as none."""
ENOUGH_RECORDS = 300
"""From so many records of a kind on it must be said what it depends on."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Answered:
    """What is wrong with an answer.

    Attributes:
        label: Of the question.
        amiss: Why it is no answer; empty where it is one.
        faults: Wrong sizes, slow-downs and lists of kinds, a handful at most.
        answer: The exchange.
    """

    label: str
    amiss: str
    faults: tuple[str, ...]
    answer: Answer

    @classmethod
    def of(cls, label: str, asked: Asked) -> "Answered":
        """Look at an exchange."""
        faults = () if asked.amiss else tuple(_faults(asked))[:3]
        return cls(label, asked.amiss, faults, asked.answer)


@dataclass(frozen=True)
class Ranked:
    """What was said of a kind.

    Attributes:
        mix: Of the history.
        kind: Index of the kind.
        importance: Of devices, cores and memory.
        error: Stated error.
        records: Stated number of records.
        answer: The exchange.
    """

    mix: str
    kind: int
    importance: tuple[float, ...]
    error: float
    records: int
    answer: Answer

    @property
    def right(self) -> bool:
        """Whether the resource that matters stands before the others."""
        first = KINDS[self.kind].rules
        return all(self.importance[first] > value for k, value in enumerate(self.importance) if k != first)


def ranked(mix: str, asked: Asked) -> list[Ranked]:
    """What an answer says of the kinds that are told of in it."""
    return [
        Ranked(
            mix,
            asked.kinds.index(row["kind"]),
            tuple(float(row[name]) for name in RESOURCES),
            float(row["error"]),
            int(row["records"]),
            asked.answer,
        )
        for row in asked.importance
        if row["kind"] in asked.kinds
    ]


def _faults(asked: Asked) -> Iterator[str]:
    for task, size in asked.rows:
        for name in RESOURCES:
            wanted, given = task["requested"][name], size["recommended"][name]
            if given > wanted * (1.0 + _ROUNDING):
                yield f"{task['id']}: {given:g} of {name}, which is more than the {wanted:g} asked for"
            if wanted > 0.0 and given <= 0.0:
                yield f"{task['id']}: nothing of {name}, of which it asks for {wanted:g}"
        if size["slow_down"] > asked.allowed + _ROUNDING:
            yield f"{task['id']}: slower by {size['slow_down']:g}, where {asked.allowed:g} is allowed"
    told = [row["kind"] for row in asked.importance]
    if told != sorted(asked.kinds):
        yield f"importance is told of {told}, the kinds that ran are {sorted(asked.kinds)}"


def of_answers(answered: Sequence[Answered], ranks: Sequence[Ranked]) -> Iterator[Claim]:
    """Every question is answered, and rightly."""
    for each in answered:
        for requirement in (FIGURE, SIZES):
            expected = f"{each.label}: a size for every task, in their order"
            if each.amiss or requirement == SIZES:
                yield holds(requirement, not each.amiss, expected, each.amiss or "told", each.answer)
        if not each.amiss:
            yield holds(
                SIZES,
                not each.faults,
                f"{each.label}: no size exceeds what is asked for, none becomes nothing, no slow-down exceeds what is "
                "allowed, and importance is told of every kind that ran, in order of name",
                list(each.faults) or "so it is",
                each.answer,
            )
    for rank in ranks:
        kind = KINDS[rank.kind]
        if kind.strong and rank.records >= ENOUGH_RECORDS:
            yield holds(
                SIZES,
                rank.right,
                f"{rank.mix}: {RESOURCES[kind.rules]} matter most to tasks like {kind.name}",
                dict(zip(RESOURCES, rank.importance, strict=True)),
                rank.answer,
            )


def of_costs(mixes: Mapping[str, Sequence[Window]], nothing: Sequence[Window]) -> Iterator[Claim]:
    """Tasks do not die, are not slowed more than was allowed, and nothing is gained where nothing is to be had."""
    cells = [*((mix, its, ALLOWED) for mix, its in mixes.items())]
    if nothing:
        cells.append(("nothing asked for in excess", nothing, 0.0))
    for label, its, allowed in cells:
        dying = sum(window.dying for window in its) / len(its)
        slower = sum(window.slower for window in its) / len(its)
        expected = f"{label}: at most {MOST_DYING:.0%} of the tasks run out of memory"
        yield holds(FIGURE, dying <= MOST_DYING, expected, f"{dying:.2%} do")
        expected = f"{label}: tasks are slower by at most {allowed + MARGIN:.0%} on the mean"
        yield holds(FIGURE, slower <= allowed + MARGIN, expected, f"{slower:.1%}")
    if nothing:
        yield _vanished(nothing)


def _vanished(windows: Sequence[Window]) -> Claim:
    """The least change of sizes makes another schedule, with some per cent more or fewer tasks: chance is left out."""
    before, after = ([each[FIFO].four[0] for each in its] for its in _sides(windows))
    found = quotient([Stratum((after,), (before,))])
    low, high = found.lower(LEVEL / 2.0) - 1.0, found.upper(LEVEL / 2.0) - 1.0
    return holds(
        FIGURE,
        low <= VANISHED and high >= -VANISHED,
        f"the gain in deployed tasks is not shown to exceed {VANISHED:.0%} where nothing is asked for in excess and no "
        "slow-down is allowed, nor the loss",
        f"{found.estimate - 1.0:+.1%}, between {low:+.1%} and {high:+.1%} over {found.n} windows",
    )


def _sides(windows: Sequence[Window]) -> tuple[list[Mapping[str, Played]], list[Mapping[str, Played]]]:
    return [window.before for window in windows], [window.after for window in windows]
