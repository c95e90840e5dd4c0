"""Whether a job runs in two places, as it is judged: a sound service passes, and what could be wrong is seen."""

from dataclasses import replace

import pytest
from conformance.test_sch_coordination import Timed
from minimal_server.core import Json, Tenant
from minimal_server.reserving import Allocation, Step
from minimal_server.service import MinimalServer
from mutants.turning import (
    ClocksOfDomainsAreBelieved,
    FailuresCountAsReleases,
    JobsRunTwice,
    LapsesAreNotHeeded,
    LeasesAreCountedShort,
    LeasesAreIgnored,
    LeasesAreNotRenewed,
    OnlyTheSilentLetsGo,
    TheAlternativeDoesNotWait,
    TheFirstReleaseIsForAll,
    TheYoungestGoesFirst,
    WhoWaitsIsForgotten,
)
from typing_extensions import override

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.resilience.partitions import STORIES, PartitionedJobs, judge, observe
from kuayu_conformance.episode import Episode, Request, Settings


def played(kind: type[MinimalServer] = MinimalServer, nonce: str = "nonce") -> PartitionedJobs:
    settings = Settings(nonce, "run", False, frozenset(), {}, False)
    return observe(Episode("res_apart", settings, Timed(kind)))


def unmet(observation: PartitionedJobs) -> set[str]:
    """Kinds of stories in which something is wrong."""
    return {claim.expected.split(":")[0].split(",")[0] for claim in judge(observation) if not claim.met}


@pytest.fixture(scope="module")
def sound() -> PartitionedJobs:
    return played()


def test_a_sound_service_passes(sound: PartitionedJobs) -> None:
    assert unmet(sound) == set()
    assert {story.kind for story in sound.stories} == set(STORIES)


@pytest.mark.parametrize("nonce", [f"seed-{number}" for number in range(6)])
def test_it_passes_whatever_happens_in_a_storm(nonce: str) -> None:
    assert unmet(played(nonce=nonce)) == set()


def test_a_target_that_takes_long_to_answer_is_given_its_time() -> None:
    class Far(Timed):
        """A service that takes a fifth of a second to answer."""

        def exchange(self, request: Request) -> Answer:
            """Ask it."""
            started = self.clock.now
            self.clock.wait(0.2)
            answer = super().exchange(request)
            return replace(answer, started=started / 1000, seconds=answer.seconds + 0.2)

    settings = Settings("nonce", "run", False, frozenset(), {}, False)
    far = observe(Episode("res_apart", settings, Far(MinimalServer)))
    assert unmet(far) == set()


def test_stories_show_what_they_are_about(sound: PartitionedJobs) -> None:
    begun = [turn for story in sound.stories for turn in story.transitions if turn.runs]
    assert len(begun) > 5 * len(sound.stories) // 2
    assert {turn.place[1] for turn in begun} == {0, 1}  # placements and alternatives
    for story in sound.stories:
        assert story.looks


def test_an_episode_is_the_same_when_it_is_told_again(sound: PartitionedJobs) -> None:
    again = played()
    assert [[turn.place for turn in story.transitions] for story in again.stories] == [
        [turn.place for turn in story.transitions] for story in sound.stories
    ]


class CommitsNothing(MinimalServer):
    """Nothing is ever committed, and so never twice."""

    @override
    def commit(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        pass


class ForgetsRevisions(MinimalServer):
    """Actions do not say on which state they were decided."""

    @override
    def action(self, one: Allocation, share: Json, kind: str, phase: str) -> Json:
        return {**super().action(one, share, kind, phase), "revision": {"epoch": "e", "number": 9}}


class HoldsUpEverybody(MinimalServer):
    """Allocations of all jobs wait for each other."""

    @override
    def held_up(self, of_job: list[Allocation]) -> bool:
        [book] = self.books.values()
        return super().held_up(list(book.allocations.values()))


class ReleasesInWordsOnly(MinimalServer):
    """An allocation that is deleted is said to be released before its domains have let go."""

    @override
    def release(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        super().release(tenant, one, moment)
        one.held = None
        self.enter(tenant, one, "released", moment)


class AsksOnceOnly(MinimalServer):
    """Who could not let go is never asked again."""

    @override
    def unsettled(self, step: Step) -> set[str]:
        return {"unknown"}

    @override
    def let_go(self, one: Allocation) -> set[str]:
        failed = [step.action for step in one.steps.values() if step.outcome == "failed"]
        return super().let_go(one) - {action.get("reservation", action["id"]) for action in failed}


@pytest.mark.parametrize(
    ("kind", "seen_in"),
    [
        (JobsRunTwice, {"moved", "blocked", "reordered", "queued", "storm"}),
        (TheAlternativeDoesNotWait, {"cut-off"}),
        (TheFirstReleaseIsForAll, {"moved"}),
        (FailuresCountAsReleases, {"moved"}),
        (WhoWaitsIsForgotten, {"moved", "reordered", "queued"}),
        (TheYoungestGoesFirst, {"queued"}),
        (ClocksOfDomainsAreBelieved, {"moved"}),
        (LeasesAreIgnored, {"lapsed", "unfinished"}),
        (LeasesAreCountedShort, {"lapsed"}),
        (LeasesAreNotRenewed, {"renewed"}),
        (LapsesAreNotHeeded, {"lost"}),
        (OnlyTheSilentLetsGo, {"lapsed", "lost"}),
        (CommitsNothing, set(STORIES) - {"storm"}),
        (ForgetsRevisions, set(STORIES)),
        (HoldsUpEverybody, {"blocked"}),
        (ReleasesInWordsOnly, {"moved"}),
        (AsksOnceOnly, {"moved"}),
    ],
)
def test_what_is_wrong_is_seen(kind: type[MinimalServer], seen_in: set[str]) -> None:
    assert unmet(played(kind)) >= seen_in
