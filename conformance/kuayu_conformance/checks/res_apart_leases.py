"""Stories of jobs under a lease, told as those without one."""

from collections.abc import Iterator

from kuayu_conformance.checks.res_apart_stage import Stage

LEASE = 2.0
"""Seconds of the story that a domain runs a job unanswered."""

STEP = 0.5
"""Seconds between visits to a domain that is not cut off."""

OVER = 7
"""Visits after which the lease of a domain that is cut off is over for the target, too, by about a second."""

Telling = Iterator[float]
"""Pauses of a story, in seconds."""


def lapsed(stage: Stage) -> Telling:
    """A domain is cut off for good: when its lease is over the job ends everywhere, and goes on elsewhere."""
    old = stage.put("ab", lease=LEASE)
    stage.play("ab")
    stage.look(old, "committed", what="nothing else is of the job")
    new = stage.put("cd")
    for _ in range(OVER):
        stage.play("acd")
        yield STEP
    stage.play("acd")
    stage.look(old, "released", what="the lease of a domain that is cut off is over")
    stage.look(new, "committed", what="the other has been let go of everywhere")
    stage.play()
    stage.look(new, "committed", what="the domain is back that was cut off")


def renewed(stage: Stage) -> Telling:
    """Domains that are answered keep what they hold for longer than a lease."""
    one = stage.put("ab", lease=LEASE)
    stage.play("ab")
    for _ in range(OVER + OVER // 2):
        stage.play("ab")
        yield STEP
    stage.look(one, "committed", what="its domains were answered all the time")


def lost(stage: Stage) -> Telling:
    """No answer reaches a domain, which the target cannot know: the domain lets go, and says so when it can."""
    old = stage.put("ab", lease=LEASE)
    stage.play("ab")
    new = stage.put("c")
    for _ in range(OVER - 2):
        stage.play("ac")
        stage.miss("b")
        yield STEP
    stage.look(new, "preparing", what="all requests were answered")
    stage.visit("b")
    stage.play("ac")
    stage.look(old, "released", what="a domain has said that it let go")
    stage.look(new, "committed", what="the other has been let go of everywhere")


def unfinished(stage: Stage) -> Telling:
    """A domain commits and is cut off before that is heard: when its lease is over, the alternative is tried."""
    one = stage.put("ab", "ac", lease=LEASE)
    stage.visit("a")
    stage.visit("b")
    stage.visit("b", heard=False)
    for _ in range(OVER):
        stage.play("ac")
        yield STEP
    stage.play("ac")
    stage.look(one, "committed", what="the lease of the domain that is cut off is over")
    stage.deliver("b")
    stage.play()
    stage.look(one, "committed", what="the domain is back that was cut off")
