"""Coordination as it is judged: what a sound service shows passes, and each thing that could be wrong is seen."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from minimal_server.client import SCHEMAS
from minimal_server.core import Json, Tenant
from minimal_server.reserving import Allocation, Step
from minimal_server.service import MinimalServer
from typing_extensions import override

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.scheduling import coordination as sch_coordination
from kuayu_conformance.checks.scheduling.coordination import AllocationOutcomes, AllocationScenarios, judge, observe
from kuayu_conformance.checks.scheduling.ledger import Site
from kuayu_conformance.episode import Episode, Request, Settings, Taken, describe
from kuayu_conformance.findings import Claim, Figure

BEGIN = 1_800_000_000_000


class Clock:
    """Time that passes when somebody waits, and a little with each request."""

    def __init__(self) -> None:
        """Milliseconds since 1970."""
        self.now = BEGIN

    def wait(self, seconds: float) -> bool:
        """Let time pass."""
        self.now += max(1, round(1000 * seconds))
        return True

    def notify_all(self) -> None:
        """Nobody else waits."""


class Timed:
    """A service in this process as a source of an episode."""

    def __init__(self, kind: type[MinimalServer]) -> None:
        """The service has just begun."""
        self.clock = Clock()
        self.service = kind(Path(SCHEMAS), {})
        self.service.read_clock = lambda: self.clock.now  # type: ignore[method-assign]
        self.service.changed_actions = self.clock  # type: ignore[assignment]
        self.number = 0

    def exchange(self, request: Request) -> Answer:
        """Ask the service."""
        started = self.clock.now
        self.clock.wait(0.001)
        found = self.service.answer(request.method, request.path, dict(request.headers), request.body)
        self.number += 1
        body = json.dumps(found.body).encode()
        headers = {"content-type": "application/json", **{name.lower(): text for name, text in found.headers.items()}}
        seconds = (self.clock.now - started) / 1000
        return Answer(self.number, describe(request), found.status, headers, body, "", started / 1000, seconds)

    def now(self) -> float:
        """The time."""
        return self.clock.now / 1000

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.wait(seconds)

    def publish(self, page: str, text: str) -> str:  # noqa: ARG002
        """Nothing is scraped."""
        return ""

    def scrapes(self, page: str) -> Sequence[float]:  # noqa: ARG002
        """Nothing is."""
        return ()

    def open(self, request: Request) -> tuple[int, Answer]:
        """There are no streams."""
        raise NotImplementedError

    def take(self, stream: int, seconds: float, at_least: int) -> Taken:
        """There are no streams."""
        raise NotImplementedError

    def hang_up(self, stream: int) -> None:
        """There are no streams."""


@pytest.fixture(scope="module", autouse=True)
def few() -> Iterator[None]:
    """Fewer allocations than in a run; all kinds of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sch_coordination, "QUICK", 36)
        yield


def played(kind: type[MinimalServer] = MinimalServer) -> AllocationOutcomes:
    settings = Settings("nonce", "run", False, frozenset(), {}, False)
    return observe(Episode("sch_coordination", settings, Timed(kind)))


def unmet(observation: AllocationOutcomes) -> set[str]:
    return {found.requirement for found in judge(observation) if isinstance(found, Claim) and not found.met}


def figure(observation: AllocationOutcomes) -> Figure:
    return next(found for found in judge(observation) if isinstance(found, Figure))


@pytest.fixture(scope="module")
def sound() -> AllocationOutcomes:
    return played()


def test_a_sound_service_passes(sound: AllocationOutcomes) -> None:
    assert unmet(sound) == set()
    assert len({story.scenario.kind for story in sound.stories}) == 8
    places = [place for story in sound.stories for site in story.taken.values() for place in site]
    assert {devices for _, _, devices in places} >= {1, 4, 8}


def test_nothing_is_left_behind(sound: AllocationOutcomes) -> None:
    for story in sound.stories:
        assert story.last.at("phase") in {"released", "refused"}
        assert story.left == {}
    assert 0.001 < figure(sound).estimate < 0.1


@pytest.mark.parametrize("nonce", [f"seed-{number}" for number in range(8)])
def test_allocations_that_are_held_together_never_name_one_node(nonce: str) -> None:
    episode = Episode("sch_coordination", Settings(nonce, "run", False, frozenset(), {}, False), Timed(MinimalServer))
    told = list(sch_coordination.ordinary(AllocationScenarios(episode), 270))
    for begin in range(0, len(told), sch_coordination.BATCH):
        named = [
            (share["domain"], share["accelerator"], row["node"])
            for script in told[begin : begin + sch_coordination.BATCH]
            for share in script.body["placement"]["shares"]
            for row in share.get("nodes", ())
        ]
        assert len(named) == len(set(named))


def test_an_episode_is_the_same_when_it_is_told_again(sound: AllocationOutcomes) -> None:
    again = played()
    assert [story.scenario for story in again.stories] == [story.scenario for story in sound.stories]
    assert [[deed.outcome for deed in story.steps] for story in again.stories] == [
        [deed.outcome for deed in story.steps] for story in sound.stories
    ]


def test_patience_does_not_count_but_what_comes_on_top_does(sound: AllocationOutcomes) -> None:
    silent = [story for story in sound.stories if story.scenario.kind.startswith("silent")]
    assert len(silent) == 6
    assert all(story.seconds < 0.3 for story in silent)


def test_a_service_is_judged_by_its_slowest_hundredth(sound: AllocationOutcomes) -> None:
    assert figure(sound).bound == 3600.0  # so few do not support a bound of that
    story = next(story for story in sound.stories if story.scenario.kind == "plain")
    many = AllocationOutcomes(tuple(replace(story, seconds=0.1) for _ in range(600)))
    late = replace(story, seconds=2.1)
    assert figure(AllocationOutcomes((*many.stories, late))).bound == 0.1
    assert figure(AllocationOutcomes((*many.stories, *[late] * 7))).bound == 2.1


class CommitsEarly(MinimalServer):
    """The first promise is enough."""

    @override
    def go_on(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        if one.phase == "preparing" and any(step.outcome == "prepared" for step in one.now("reserve", "prepare")):
            self.commit(tenant, one, moment)
        else:
            super().go_on(tenant, one, moment)


class AbortsOnlyWhoHasPromised(MinimalServer):
    """Domains that have not answered are not told to let go."""

    @override
    def to_be_aborted(self, one: Allocation) -> list[Step]:
        return [step for step in super().to_be_aborted(one) if step.outcome == "prepared"]


class BelievesWhoIsLate(MinimalServer):
    """Late promises are not aborted again."""

    @override
    def is_late(self, one: Allocation, step: Step, result: Json) -> bool:
        return False


class TriesNoAlternative(MinimalServer):
    """The first refusal is the last."""

    @override
    def settle_aborted(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        self.enter(tenant, one, "refused", moment)


class TriesAlternativesBackwards(MinimalServer):
    """The last alternative comes first."""

    @override
    def prepare(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        one.body.setdefault("alternatives", []).reverse()
        super().prepare(tenant, one, moment)


class ReleasesOneDomain(MinimalServer):
    """Only the first domain is to give back what it holds."""

    @override
    def release(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        assert one.held is not None
        one.held = {**one.held, "shares": one.held["shares"][:1]}
        super().release(tenant, one, moment)


class ForgetsNodes(MinimalServer):
    """The record does not tell on which nodes devices are held."""

    @override
    def on_nodes(self, share: Json, nodes: list[Json]) -> Json:
        return share


class SharesNodesEvenly(MinimalServer):
    """Nodes are told as if each had as many devices."""

    @override
    def on_nodes(self, share: Json, nodes: list[Json]) -> Json:
        each, over = divmod(share["devices"], len(nodes))
        rows = [{**row, "devices": each + (number < over)} for number, row in enumerate(nodes)]
        return {**share, "nodes": rows}


class LosesMember(MinimalServer):
    """Actions do not state something that their domain needs."""

    member = ""

    @override
    def action(self, one: Allocation, share: Json, kind: str, phase: str) -> Json:
        found = super().action(one, share, kind, phase)
        return {name: value for name, value in found.items() if name != self.member}


class AsksForAnyKind(LosesMember):
    """Domains with devices of two kinds are not told which."""

    member = "accelerator"


class AsksForAnyNodes(LosesMember):
    """Domains choose nodes also where the placement names them."""

    member = "nodes"


class ReleasesNothingOfThat(LosesMember):
    """Domains are not told what it is that they are to release."""

    member = "reservation"


class NeverGivesUp(MinimalServer):
    """Who is silent is waited for without end."""

    @override
    def overdue(self, tenant: Tenant, one: Allocation, moment: int) -> None:
        one.deadline = moment + 3_600_000


@pytest.mark.parametrize(
    ("kind", "requirements"),
    [
        (CommitsEarly, {"SCH-017", "SCH-018"}),
        (AbortsOnlyWhoHasPromised, {"SCH-017"}),
        (BelievesWhoIsLate, {"SCH-017"}),
        (TriesNoAlternative, {"SCH-018"}),
        (TriesAlternativesBackwards, {"SCH-018"}),
        (ReleasesOneDomain, {"SCH-019"}),
        (ForgetsNodes, {"SCH-017"}),
        (SharesNodesEvenly, {"SCH-017"}),
        (AsksForAnyKind, {"SCH-017", "SCH-018"}),
        (AsksForAnyNodes, {"SCH-017"}),
        (ReleasesNothingOfThat, {"SCH-017", "SCH-019"}),
        (NeverGivesUp, {"SCH-017", "SCH-018"}),
    ],
)
def test_what_is_wrong_is_seen(kind: type[MinimalServer], requirements: set[str]) -> None:
    assert unmet(played(kind)) == requirements


def test_whoever_is_asked_again_says_the_same() -> None:
    site = Site("north", ["gpu"])
    action = {"id": "a", "kind": "reserve", "phase": "prepare", "job": "job", "expires_after": 5}
    action |= {"accelerator": "gpu", "devices": 12}
    first = site.act(action, "grant", 1.8e9)
    assert (first["outcome"], first["nodes"]) == (
        "prepared",
        [{"node": "node-0", "devices": 8}, {"node": "node-1", "devices": 4}],
    )
    assert first["expires_at"] == "2027-01-15T08:00:05.000Z"
    assert site.act(action, "grant", 1.9e9) == first
    assert site.devices_of("job") == 12
    assert site.devices_of("job", taken=True) == 0
    assert site.act({**action, "phase": "commit"}, "grant", 1.8e9)["outcome"] == "committed"
    assert site.devices_of("job", taken=True) == 12
    assert site.act({**action, "phase": "abort"}, "grant", 1.8e9)["outcome"] == "aborted"
    assert sum(site.free["gpu"].values()) == 496
    assert site.act({**action, "id": "b", "devices": 257}, "grant", 1.8e9)["outcome"] == "refused"
    assert site.act({**action, "id": "c", "phase": "commit"}, "grant", 1.8e9)["outcome"] == "expired"
