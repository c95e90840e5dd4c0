"""Wrong in what is told of adjustments: rates, the levels that they follow from, and the shape of changes."""

from collections.abc import Sequence
from itertools import count
from statistics import mean

from minimal_server.adjusting import Levels, Policy
from minimal_server.core import Answer, Json, Request
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


class Retelling(MinimalServer):
    """Tells adjustments otherwise."""

    @override
    def plan_adjustments(self, request: Request) -> Answer:
        told = super().plan_adjustments(request).body
        return Answer(200, {**told, **self.adjustment_otherwise(told)})

    def adjustment_otherwise(self, told: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("COM-028", "RES-016")
class AdjustmentsAreOfTheFirstRevision(Retelling):
    """Adjustments tell the revision of the first question that was ever asked."""

    kept: Json | None = None

    @override
    def adjustment_otherwise(self, told: Json) -> Json:
        self.kept = self.kept or told["revision"]
        return {"revision": self.kept}


@breaks("COM-029")
class AdjustmentsAreNumbered(Retelling):
    """The version of the method is the number of the question, so that no adjustment is the same again."""

    numbers = count(1)

    @override
    def adjustment_otherwise(self, told: Json) -> Json:
        return {"method": {**told["method"], "version": f"{next(self.numbers)}"}}


@breaks("RES-016")
class JobsStandByTheirRate(Retelling):
    """Jobs are told of in the order of their rates, the slowest one in front."""

    @override
    def adjustment_otherwise(self, told: Json) -> Json:
        return {"jobs": sorted(told["jobs"], key=lambda row: float(row["rate"]))}


@breaks("RES-016")
class JobsWithoutChangesAreLeftOut(Retelling):
    """Only jobs that have changes are told of."""

    @override
    def adjustment_otherwise(self, told: Json) -> Json:
        return {"jobs": [row for row in told["jobs"] if row["changes"]]}


class Telling(MinimalServer):
    """Tells what becomes of jobs otherwise."""

    @override
    def adjusted(self, body: Json, levels: Levels, job: Json) -> Json:
        told = super().adjusted(body, levels, job)
        return {**told, **self.job_otherwise(told, levels, job)}

    def job_otherwise(self, told: Json, levels: Levels, job: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("RES-016")
class WhatIsPlannedIsNotExpected(Telling):
    """Where nothing is changed, the expected rate is that of the policy in force, whatever is planned."""

    @override
    def job_otherwise(self, told: Json, levels: Levels, job: Json) -> Json:
        return {} if told["changes"] else {"expected_rate": told["rate"]}


@breaks("RES-016")
class TheFirstChangeIsExpected(Telling):
    """Of several changes the rate by the first one is told."""

    @override
    def job_otherwise(self, told: Json, levels: Levels, job: Json) -> Json:
        first = next(iter(told["changes"]), None)
        return {"expected_rate": self.pace(levels, job, self.policy_of(first, first["parts"]))} if first else {}


@breaks("RES-016")
class RareExchangesCostNoSteps(Telling):
    """Rates count all steps, though with low communication more of them are needed."""

    @override
    def job_otherwise(self, told: Json, levels: Levels, job: Json) -> Json:
        used = self.in_force(job).way
        more = self.more_steps(len(used.order), used.period) if used.kind == "low_communication" else 1
        return {"rate": told["rate"] * more}


@breaks("RES-016")
class RatesAreOfTheMiddleDomain(MinimalServer):
    """A step is taken to last as long as the parts of its domains do on average."""

    @override
    def as_collective(self, levels: Levels, job: Json, parts: Sequence[int]) -> Json:
        times = zip(parts, self.part_times(levels, job), strict=True)
        return {**super().as_collective(levels, job, parts), "step_time": mean(n * time for n, time in times)}


@breaks("RES-016")
class LevelsAreMeans(MinimalServer):
    """The level now is the mean of the last intervals, so that one of them can move it."""

    @override
    def level_now(self, body: Json, values: Sequence[float]) -> float:
        return float(mean(self.within_patience(body, values)))


@breaks("RES-016")
class LevelsAreOfAllThatIsTold(MinimalServer):
    """The level now is the middle of all intervals, however long ago they were."""

    @override
    def within_patience(self, body: Json, values: Sequence[float]) -> Sequence[float]:
        return values


class Shaping(MinimalServer):
    """Tells changes otherwise."""

    @override
    def told_changes(self, body: Json, job: Json, changes: Sequence[Policy]) -> list[Json]:
        return [{**row, **self.change_otherwise(row)} for row in super().told_changes(body, job, changes)]

    def change_otherwise(self, row: Json) -> Json:
        """Members that it tells otherwise."""
        raise NotImplementedError


@breaks("RES-016")
class MovedPartsAreLost(Shaping):
    """The domain that has most loses a part on the way."""

    @override
    def change_otherwise(self, row: Json) -> Json:
        parts = [*row["parts"]]
        parts[parts.index(max(parts))] -= 1
        return {"parts": parts}


@breaks("RES-016")
class DomainsAreLeftEmpty(Shaping):
    """The domain that has fewest parts gives them to the one that has most."""

    @override
    def change_otherwise(self, row: Json) -> Json:
        parts = [*row["parts"]]
        few, most = parts.index(min(parts)), len(parts) - 1 - parts[::-1].index(max(parts))
        parts[few], parts[most] = 0, parts[most] + parts[few]
        return {"parts": parts}


@breaks("RES-016")
class ChangesNameTheirFirstDomainTwice(Shaping):
    """In the order of a change the first domain stands in the place of the last one too."""

    @override
    def change_otherwise(self, row: Json) -> Json:
        return {"order": [*row["order"][:-1], row["order"][0]]}


@breaks("RES-016")
class ChangesHaveAPeriodWhateverTheyAre(Shaping):
    """What exchanges at every step is told to do it at every other one."""

    @override
    def change_otherwise(self, row: Json) -> Json:
        return {"period": max(2, row["period"])}


@breaks("RES-016")
class LastChangesComeFirst(MinimalServer):
    """Of several changes the instants fall."""

    @override
    def told_changes(self, body: Json, job: Json, changes: Sequence[Policy]) -> list[Json]:
        told = super().told_changes(body, job, changes)
        begins = [row["after"] for row in told]
        return [{**row, "after": begin} for row, begin in zip(told, reversed(begins), strict=True)]


@breaks("RES-016")
class RingsAreTurnedAtTheEnd(MinimalServer):
    """When all is done the ring is begun at its next domain, which changes nothing."""

    @override
    def told_changes(self, body: Json, job: Json, changes: Sequence[Policy]) -> list[Json]:
        told = super().told_changes(body, job, changes)
        return [*told, *({**row, "order": [*row["order"][1:], row["order"][0]]} for row in told[-1:])]
