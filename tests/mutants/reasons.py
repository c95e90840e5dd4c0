"""Wrong in why a job was treated as it was, and in what counts."""

import json
from collections.abc import Mapping
from functools import cached_property

from minimal_server.choosing import Ledger, Seat
from minimal_server.core import Answer, Json, Request
from minimal_server.scene import Job, Scene, Way
from minimal_server.service import MinimalServer
from minimal_server.weighing import OWN_WEIGHTS, Weights
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss


@near_miss("SCH-009")
class OneDecisionIsNotExplained(MinimalServer):
    """The decision on a job that waits alone has no reason; there is one of these among all states."""

    @override
    def told_why(self, scene: Scene, weights: Weights, seat: Seat, ledger: Ledger, most: int) -> Json:
        told = super().told_why(scene, weights, seat, ledger, most)
        return told if len(scene.waiting) > 1 else {**told, "reason": " "}


@control("SCH-009")
class OneAlternativeIsEnough(MinimalServer):
    """However many alternatives are asked for, the best of them is told."""

    @override
    def alternatives(self, scene: Scene, weights: Weights, seat: Seat, ledger: Ledger, most: int) -> list[Json]:
        return super().alternatives(scene, weights, seat, ledger, min(1, most))


@breaks("SCH-009", "SCH-024")
class WaitingIsNotExplained(MinimalServer):
    """Only jobs that start are told of."""

    @override
    def place(self, request: Request) -> Answer:
        answer = super().place(request)
        started = [row for row in answer.body["decisions"] if row["verb"] != "wait"]
        return Answer(200, {**answer.body, "decisions": started})


@breaks("SCH-009")
class TheChoiceIsItsOwnAlternative(MinimalServer):
    """What was chosen stands among the alternatives."""

    @override
    def alternatives(self, scene: Scene, weights: Weights, seat: Seat, ledger: Ledger, most: int) -> list[Json]:
        others = super().alternatives(scene, weights, seat, ledger, most)
        if not seat.starts or seat.outlook is None:
            return others
        chosen = {**self.decision(scene, seat), "outcome": self.outcome(scene, seat.outlook)}
        del chosen["job"]
        return [chosen, *others][:most]


@breaks("SCH-009")
class WorseAlternativesComeFirst(MinimalServer):
    """Alternatives are told in the opposite order."""

    @override
    def alternatives(self, scene: Scene, weights: Weights, seat: Seat, ledger: Ledger, most: int) -> list[Json]:
        return super().alternatives(scene, weights, seat, ledger, most)[::-1]


@breaks("SCH-009")
class AlternativesHaveNoRoom(MinimalServer):
    """Alternatives are told that would fit if everything were free."""

    @override
    def alternatives(self, scene: Scene, weights: Weights, seat: Seat, ledger: Ledger, most: int) -> list[Json]:
        empty = ledger.copy()
        empty.free = [pool.row["devices"] for pool in scene.pools]
        empty.nodes = [{node["id"]: node["devices"] for node in pool.row.get("nodes", ())} for pool in scene.pools]
        seat = Seat(seat.job, seat.way if seat.starts else None, seat.outlook)
        return super().alternatives(scene, weights, seat, empty, most)


@breaks("SCH-009")
class WeightsAreNotHeard(MinimalServer):
    """What counts is what the service thinks, whatever the request says."""

    @override
    def weights(self, body: Json) -> Weights:
        return OWN_WEIGHTS if "state" in body else super().weights(body)


@breaks("SCH-009")
class PricesDoNotCount(MinimalServer):
    """Whoever asks for what is cheap is given what is quick."""

    @override
    def score(self, weights: Weights, objectives: Mapping[str, float]) -> float:
        return super().score({**weights, "period": weights.get("period", 0.0) + 1e-9, "price": 0.0}, objectives)


@breaks("SCH-009")
class UseIsOfWhatIsFast(MinimalServer):
    """What others would gain more from does not count against it."""

    @override
    def lacking(self, scene: Scene, job: Job, way: Way) -> float:
        return -super().lacking(scene, job, way)


@breaks("SCH-009")
class DecisionsAreKept(MinimalServer):
    """What was decided on a state is told again, although something else counts now."""

    @cached_property
    def kept(self) -> dict[str, Json]:
        """Decisions by revision of the state."""
        return {}

    @override
    def place(self, request: Request) -> Answer:
        answer = super().place(request)
        kept = self.kept.setdefault(json.dumps(answer.body["revision"]), answer.body)
        return Answer(200, kept)
