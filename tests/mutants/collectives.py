"""Wrong in the choice of collectives: what is chosen and when, and what is told of it."""

from collections.abc import Sequence
from itertools import count

from minimal_server.agreeing import Network, Way
from minimal_server.core import Answer, Json, Request
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss


class Retelling(MinimalServer):
    """Tells choices otherwise."""

    @override
    def choose_collective(self, request: Request) -> Answer:
        told = super().choose_collective(request).body
        return Answer(200, {**told, **self.told_for(told, self.body(request, "CollectiveRequest"))})

    def told_for(self, told: Json, body: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("COM-028", "RES-010")
class ChoicesAreOfTheNextRevision(Retelling):
    """A choice tells the revision after that of the question."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"revision": {**told["revision"], "number": told["revision"]["number"] + 1}}


@breaks("COM-029")
class ChoicesAreNumbered(Retelling):
    """The version of the method is the number of the question, so that no choice is the same again."""

    numbers = count(1)

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"method": {**told["method"], "version": f"{next(self.numbers)}"}}


@breaks("RES-010")
class SwitchesAreNotTold(Retelling):
    """Whatever is chosen is told to be what is in use."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"switched": False}


@breaks("RES-010")
class NewOrdersAreNoSwitch(Retelling):
    """The same collective in another order is told not to be a switch."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        used = body.get("in_use", told)
        return {"switched": (told["collective"], told["period"]) != (used["collective"], used["period"])}


@breaks("RES-010")
class RingsThatBeginElsewhereAreSwitches(Retelling):
    """Rings are begun with their last domain each time, and told to be another one."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        order = told["order"]
        return {"order": [*order[1:], *order[:1]], "switched": "in_use" in body and len(order) > 1}


@breaks("RES-010")
class OrdersLackADomain(Retelling):
    """The last domain is missing in the order."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        return {"order": told["order"][:-1] or told["order"]}


@breaks("RES-010")
class RingsHaveAPeriod(Retelling):
    """What exchanges at every step is told to do it at every other one."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        rows = [{**row, "period": max(2, row["period"])} for row in told["candidates"]]
        return {"period": max(2, told["period"]), "candidates": rows}


@breaks("RES-010")
class TheChosenOneIsNoCandidate(Retelling):
    """Candidates are those that were not chosen."""

    @override
    def told_for(self, told: Json, body: Json) -> Json:
        chosen = told["collective"], told["period"]
        return {"candidates": [row for row in told["candidates"] if (row["collective"], row["period"]) != chosen]}


@breaks("RES-010")
class NothingIsEverSwitched(MinimalServer):
    """What is in use stays in use."""

    @override
    def pays(self, body: Json, network: Network, used: Way, best: Way) -> bool:
        return False


class Restless(MinimalServer):
    """Changes what has been in use for so many seconds for the quickest of all others, whatever the switch costs."""

    seconds = 0.0

    @override
    def quickest(self, body: Json, network: Network, ways: Sequence[Way]) -> Way:
        used = self.used(body)
        others = [way for way in ways if used is None or (way.kind, way.period) != (used.kind, used.period)]
        return super().quickest(body, network, others if used and self.is_tired(body) else ways)

    @override
    def pays(self, body: Json, network: Network, used: Way, best: Way) -> bool:
        return self.is_tired(body) or super().pays(body, network, used, best)

    def is_tired(self, body: Json) -> bool:
        """Whether it has been in use for as long."""
        return bool(body["in_use"]["since"] >= self.seconds)


@breaks("RES-010")
class EveryQuestionIsASwitch(Restless):
    """Of all collectives but that in use the quickest is chosen, whatever the switch costs."""


@near_miss("RES-010")
class EveryTenMinutesIsASwitch(Restless):
    """What has been in use for ten minutes is changed for the next best, so that hardly more than nothing is gained."""

    seconds = 600.0


@control("RES-010")
class EveryHalfHourIsASwitch(Restless):
    """What has been in use for half an hour is changed for the next best; following the network gains more."""

    seconds = 1800.0
