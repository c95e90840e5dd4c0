"""The test double under the kill matrix, and which profiles a mutant is held against."""

import random
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from minimal_server.core import Answer, Json, Tenant
from minimal_server.service import MinimalServer
from typing_extensions import override

import kuayu_schemas
from kuayu_conformance import corpora
from kuayu_conformance.holdout import Disguise, Fold, arrivals, folds
from mutants import MUTANTS
from mutants.declaration import Mutant
from mutants.estimates import IndicesAreTenAndAHalfPercentTooHigh
from mutants.oracle import Oracle, tables

PUBLISHED = Path(kuayu_schemas.__file__).parent / "published"


def indices(service: MinimalServer, fold: Fold, probes: int) -> Sequence[tuple[float, float]]:
    """What a service says of a disguised fold with the first cells as probes, and what was measured."""
    disguise = Disguise(random.Random(3), fold.corpus)
    made, left = fold.cells[:probes], fold.cells[probes:]
    found = []
    for reference, told in fold.referred(left, random.Random(4)):
        body = {"corpus": disguise.corpus(fold.with_probes(made)), "reference": disguise.device(reference)}
        question = service.question(body)
        for cell in told:
            value, _, _ = service.estimate(question, disguise.device(cell.device), disguise.task(cell.task))
            found.append((value, fold.truth[cell] / fold.truth[type(cell)(reference, cell.task)]))
    return found


@pytest.mark.parametrize("name", ["neusight", "mlperf"])
def test_what_is_held_back_is_told_as_it_was_measured(name: str) -> None:
    service, seen, table = Oracle(PUBLISHED, {}), 0, corpora.load(name, None)
    arriving = (fold for seed in range(5) for fold in arrivals(table, random.Random(seed)))
    for fold in chain(arriving, folds(table, random.Random(1))):
        for value, truth in indices(service, fold, min(4, fold.max_probes)):
            assert value == pytest.approx(truth, rel=1e-6)
            seen += 1
    assert seen > 20


def test_an_error_is_just_what_the_mutant_says() -> None:
    service = IndicesAreTenAndAHalfPercentTooHigh(PUBLISHED, {})
    fold = next(folds(corpora.load("neusight", None), random.Random(1)))
    assert [value / truth for value, truth in indices(service, fold, 4)] == pytest.approx(
        [1.105] * (len(fold.cells) - 4), rel=1e-6
    )


def test_other_devices_are_answered_by_the_minimal_server_itself() -> None:
    table = tables()[0]
    devices = [{**row, "accelerator_memory_bandwidth": 1e12 * (n + 1)} for n, row in enumerate(table.corpus["devices"])]
    measurements = table.corpus["measurements"][1:]
    body = {"corpus": {**table.corpus, "devices": devices, "measurements": measurements}, "reference": devices[0]["id"]}
    oracle, minimal_server = Oracle(PUBLISHED, {}), MinimalServer(PUBLISHED, {})
    for device in devices:
        for task in table.corpus["tasks"]:
            asked = device["id"], task["id"]
            assert oracle.estimate(oracle.question(body), *asked) == minimal_server.estimate(
                minimal_server.question(body), *asked
            )


class WrongInIndicesOnly(MinimalServer):
    """Replaces what only the compute index calls."""

    @override
    def times(self, member: Json) -> int:
        return 1


class WrongInBoth(WrongInIndicesOnly):
    """Replaces what every operation calls, too."""

    @override
    def parse(self, body: bytes) -> Any:
        return super().parse(body)


class WrongFromTheStart(WrongInIndicesOnly):
    """Replaces how the service begins, too."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)


class WrongInPassing(WrongInIndicesOnly):
    """Replaces the way that every request takes, too."""

    @override
    def carry_out(self, tenant: Tenant, method: str, *others: Any) -> Answer:
        return super().carry_out(tenant, method, *others)


def test_only_what_lies_behind_the_index_is_spared_other_profiles() -> None:
    def profiles(service: type[MinimalServer]) -> set[str]:
        return {name[:3] for name in Mutant("", "", frozenset(), service, None, service).requirements}

    assert profiles(WrongInIndicesOnly) == {"COM", "IDX"}
    everything = {"COM", "MET", "IDX", "SCH", "DEM", "FCT", "RES", "JOB"}
    assert [profiles(kind) for kind in (WrongInBoth, WrongFromTheStart, WrongInPassing, MinimalServer)] == [
        everything
    ] * 4
    assert all(mutant.breaks <= mutant.requirements for mutant in MUTANTS)
