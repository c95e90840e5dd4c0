"""Stories of jobs that move, are cut off, wait and go on. Where a story yields, it lets so many seconds pass."""

from collections.abc import Callable

from kuayu_conformance.checks.res_apart_leases import LEASE, Telling, lapsed, lost, renewed, unfinished
from kuayu_conformance.checks.res_apart_stage import SITES, Stage

SHORT = 1.5
"""Patience of an allocation with which a domain is to lose it, in seconds of the story."""

SLACK = 0.5
"""Seconds beyond patience that a target may take."""

STEPS = 30
"""Things that happen in a storm."""

MOST_PUT = 5
"""Allocations of a storm."""


def moved(stage: Stage) -> Telling:
    """A job moves: it is promised elsewhere, and taken there when it is gone here, and not before."""
    old = stage.put("ab")
    stage.play()
    stage.look(old, "committed", what="nothing else is of the job")
    new = stage.put("cd")
    stage.play("cd")
    stage.delete(old)
    stage.visit("a")
    stage.play("cd")
    yield SLACK
    stage.play("cd")
    stage.look(old, "releasing", what="a domain has not released it yet")
    stage.look(new, "preparing", what="a domain has not released the other yet")
    stage.fail("b")
    stage.play("cd")
    stage.look(new, "preparing", what="a domain could not release the other")
    stage.visit("b", heard=False)
    stage.deliver("b")
    stage.play()
    stage.look(old, "released", what="all have released it")
    stage.look(new, "committed", what="all have released the other")


def cut(stage: Stage) -> Telling:
    """A domain commits and is cut off before that is heard: the alternative has to wait until it is back."""
    one = stage.put("ab", "ac", patience=SHORT)
    stage.visit("a")
    stage.visit("b")
    stage.visit("b", heard=False)
    stage.visit("a")
    yield SHORT + SLACK
    stage.play("ac")
    yield SHORT + SLACK
    stage.play("ac")
    stage.look(one, "aborting", what="a domain that was to commit is silent beyond patience")
    stage.deliver("b")
    stage.play()
    stage.look(one, "committed", what="the silent one is back and has let go")


def blocked(stage: Stage) -> Telling:
    """A job runs on while another allocation of it waits in vain; other jobs are not held up."""
    old = stage.put("ab")
    stage.play()
    new = stage.put("c", patience=SHORT)
    stage.play("cd")
    other = stage.put("cd", job=f"{stage.job}-other")
    stage.play("cd")
    stage.look(other, "committed", what="only another job is held")
    yield SHORT + SLACK
    stage.play("cd")
    stage.look(new, "refused", what="it has waited for longer than its patience")
    stage.look(old, "committed", what="the other has waited in vain")
    stage.delete(old)
    stage.play()
    last = stage.put("bd")
    stage.play()
    stage.look(last, "committed", what="nothing else is held of the job any more")


def reordered(stage: Stage) -> Telling:
    """Results of the commit arrive after those of the abort, and twice."""
    old = stage.put("ab")
    stage.visit("a")
    stage.visit("b")
    stage.visit("a", heard=False)
    new = stage.put("c")
    stage.play("c")
    stage.delete(old)
    stage.visit("b")
    stage.play("c")
    stage.visit("a", heard=False)
    stage.deliver("a")
    yield SLACK
    stage.play()
    stage.look(old, "refused", what="all have let go, and a commit was told after that")
    stage.look(new, "committed", what="the other has been let go of")


def queued(stage: Stage) -> Telling:
    """Two wait for the same, and take their turns in order of age."""
    first, second, third = stage.put("a"), stage.put("b"), stage.put("c")
    for gone, held, waits in ((None, first, second), (first, second, third)):
        if gone is not None:
            stage.delete(gone)
        for _ in range(2):
            stage.play()
        stage.look(held, "committed", what="it is the oldest")
        stage.look(waits, "preparing", what="an older one is held")
        yield 0.0
    stage.delete(second)
    stage.play()
    stage.look(third, "committed", what="the older ones are gone")


def storm(stage: Stage) -> Telling:
    """Anything happens, in any order; in the end all domains are back."""
    put: list[int] = []
    chance = stage.episode.random
    for _ in range(STEPS):
        match chance.choice(("put", "delete", "visit", "visit", "visit", "visit", "deaf", "deaf", "late", "pause")):
            case "put" if len(put) < MOST_PUT:
                placements = ["".join(chance.sample(SITES, chance.choice((1, 2, 2)))) for _ in range(2)]
                put.append(stage.put(*placements, patience=SHORT, lease=chance.choice((None, LEASE))))
            case "delete" if put:
                stage.delete(chance.choice(put))
            case "late":
                stage.deliver(chance.choice(SITES))
            case "pause":
                yield chance.choice((0.0, 0.0, SHORT))
            case kind:
                stage.visit(chance.choice(SITES), heard=kind != "deaf")
    for label in SITES:
        stage.deliver(label)
    stage.play()
    for number in put:
        stage.delete(number)
    stage.play()
    yield SHORT + SLACK
    stage.play()
    for number in put:
        stage.look(number, "refused", "released", what="all were deleted and all domains are back")


STORIES: dict[str, Callable[[Stage], Telling]] = {
    "moved": moved,
    "cut-off": cut,
    "blocked": blocked,
    "reordered": reordered,
    "queued": queued,
    "storm": storm,
    "lapsed": lapsed,
    "renewed": renewed,
    "lost": lost,
    "unfinished": unfinished,
}
"""All kinds of stories."""
