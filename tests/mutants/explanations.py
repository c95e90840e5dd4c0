"""Wrong in how compute indices are explained."""

from collections.abc import Mapping
from typing import Any

from miniature.core import Json
from miniature.estimation import Term
from miniature.indices import Question
from miniature.service import Miniature
from typing_extensions import override

from mutants.declaration import breaks


@breaks("IDX-009")
class WeightsDoNotSumToOne(Miniature):
    """The weights of an explanation sum to nine tenths."""

    @override
    def terms(self, question: Question, device: str, task: str) -> list[Term]:
        return [(name, 0.9 * weight, ratio) for name, weight, ratio in super().terms(question, device, task)]


class Retold(Miniature):
    """Explanations say something else."""

    @override
    def explanation(self, question: Question, device: str, task: str, value: float) -> Json:
        told = super().explanation(question, device, task, value)
        return {**told, **self.retold(told)}

    def retold(self, told: Mapping[str, Any]) -> Json:
        """What is said instead."""
        raise NotImplementedError


@breaks("IDX-009")
class SmallestShareDominates(Retold):
    """The term with the smallest share is called the dominant one."""

    @override
    def retold(self, told: Mapping[str, Any]) -> Json:
        return {"dominant": min(told["terms"], key=lambda term: term["share"])["capability"]}


@breaks("IDX-009")
class ResidualIsLeftOut(Retold):
    """Every residual is one."""

    @override
    def retold(self, told: Mapping[str, Any]) -> Json:
        return {"residual": 1.0}


@breaks("IDX-009")
class SharesAreThoseOfTheReference(Retold):
    """The share of a term is its weight, whatever the device."""

    @override
    def retold(self, told: Mapping[str, Any]) -> Json:
        terms = [{**term, "share": term["weight"]} for term in told["terms"]]
        return {"terms": terms, "dominant": max(terms, key=lambda term: term["share"])["capability"]}


class Overstated(Miniature):
    """Levers promise too much."""

    by = 1.0

    @override
    def lever(self, capability: str, value: float, share: float) -> Json:
        lever = super().lever(capability, value, share)
        return {**lever, "value": lever["value"] * self.by}


@breaks("IDX-010")
class LeversAreOverstatedByThreePercent(Overstated):
    """Levers promise 3 % more than comes of them, where it may be 2 %."""

    by = 1.03


@breaks()
class LeversAreOverstatedByOnePercent(Overstated):
    """Levers promise 1 % more than comes of them, where it may be 2 %: nothing is wrong."""

    by = 1.01


@breaks("IDX-010")
class LeverOfMemoryIsMissing(Retold):
    """What faster memory would do is not told."""

    @override
    def retold(self, told: Mapping[str, Any]) -> Json:
        return {"levers": [lever for lever in told["levers"] if lever["capability"] != "memory"]}
