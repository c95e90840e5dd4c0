"""No job runs in two places, whatever is lost, late or cut off (RES-011).

The suite plays the domains, and knows what the target cannot know: from when until when each really runs a job.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.check import Check
from kuayu_conformance.checks.res_apart_stage import NOWHERE, Look, Place, Stage, Story
from kuayu_conformance.checks.res_apart_stories import STORIES
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, answered, holds

QUICK, FULL = 3, 30
"""Jobs of each kind."""

TOGETHER = 3
"""Jobs that are played at once, so that pauses are shared."""


LETTING_GO = frozenset({"aborting", "releasing"})
"""Phases in which some domains run it, and others do not any more."""


@dataclass(frozen=True)
class Observation:
    """What became of all jobs."""

    stories: tuple[Story, ...]


def observe(episode: Episode) -> Observation:
    """Play all stories, a few of a kind at a time."""
    jobs = FULL if episode.settings.full else QUICK
    stories: list[Story] = []
    for kind in STORIES:
        for begin in range(0, jobs, TOGETHER):
            stages = [Stage(episode, kind, number) for number in range(begin, begin + TOGETHER)]
            _play(episode, stages)
            stories += [stage.story for stage in stages]
            episode.passed(len(stories), jobs * len(STORIES))
    return Observation(tuple(stories))


def _play(episode: Episode, stages: list[Stage]) -> None:
    tellings = [(STORIES[stage.kind](stage), stage.second) for stage in stages]
    while tellings:
        told = [(telling, second, next(telling, None)) for telling, second in tellings]
        tellings = [(telling, second) for telling, second, pause in told if pause is not None]
        if longest := max((pause * second for _, second, pause in told if pause), default=0.0):
            episode.sleep(longest)


def judge(observation: Observation) -> Iterator[Claim]:
    """Claims about each job."""
    for story in observation.stories:
        yield from _apart(story)
        for look in story.looks:
            yield from _as_told(story, look)
        for answer in story.lost:
            yield answered("RES-011", answer, 200, f"{story.kind}: a domain says that it let go by itself")


def _apart(story: Story) -> Iterator[Claim]:
    """No domain begins to run the job while it runs elsewhere by another placement."""
    running: set[tuple[str, Place]] = set()
    for turn in story.turns:
        if not turn.runs:
            running.discard((turn.site, turn.place))
            continue
        elsewhere = sorted(site for site, place in running if _overlap(story, place, turn.place))
        expected = f"{story.kind}: domain {turn.site} is asked to commit when the job runs nowhere else"
        found = f"it still runs in {', '.join(elsewhere)}" if elsewhere else "it does not"
        yield holds("RES-011", not elsewhere, expected, found, turn.answer)
        running.add((turn.site, turn.place))


def _overlap(story: Story, one: Place, other: Place) -> bool:
    """Whether one job runs in two places where both run."""
    if NOWHERE in (one, other):
        return True
    return one != other and story.jobs[one[0]] == story.jobs[other[0]]


def _as_told(story: Story, look: Look) -> Iterator[Claim]:
    """An allocation stands as it has to, and domains run the job as it stands."""
    stands = str(look.answer.at("phase"))
    expected = f"{story.kind}: allocation {look.number + 1} is {' or '.join(look.wanted)}, since {look.what}"
    yield holds("RES-011", stands in look.wanted, expected, stands, look.answer)
    runs: dict[Place, set[str]] = {place: set() for place in story.shares if place[0] == look.number}
    for turn in story.turns[: look.turns]:
        if turn.place in runs:
            (runs[turn.place].add if turn.runs else runs[turn.place].discard)(turn.site)
    found = [sites for sites in runs.values() if sites]
    whole = [set(story.shares[place]) for place in runs]
    if stands == "committed":
        expected, sound = "domains run it by a whole placement", len(found) == 1 and found[0] in whole
    else:
        expected, sound = "no domain runs it", not found
    if stands not in LETTING_GO:
        yield holds("RES-011", sound, f"{story.kind}, {stands}: {expected}", found or "none does", look.answer)


CHECK = Check("res_apart", ("RES-011",), observe, judge, recorded_times=True, heavy=True)
"""The check."""
