"""A service that remembers what it was sent finds answers in it, and no proof of IDX-001.

Folds send what other folds hold back. Whoever keeps all corpora, and matches devices by the ratios of their data sheets
and tasks by the ratios of throughputs, undoes the disguise, and reads off most of what is asked later. Devices that
arrive one by one are asked for before anything of them is sent.
"""

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import pytest
from minimal_server.core import Json
from minimal_server.estimation import Calibration, measured
from minimal_server.http import Server
from minimal_server.indices import Question
from minimal_server.service import MinimalServer
from mutants.oracle import SAME, Print, prints
from typing_extensions import override

import kuayu_schemas
from kuayu_conformance.run.runner import Options, Progress, Run
from kuayu_schemas.models import RequirementResult, Verdict

PUBLISHED = Path(kuayu_schemas.__file__).parent / "published"
COMMON = 2
"""Devices whose throughputs on two tasks have the same ratio where the tasks are taken to be one."""


class Remembered:
    """A corpus that was sent before, with its own names."""

    def __init__(self, corpus: Json) -> None:
        self.names: dict[Print, str] = {own: name for name, own in prints(corpus["devices"]).items()}
        self.rows: dict[str, dict[str, float]] = {}
        for (device, task), (value, *_) in measured(corpus["measurements"]).items():
            self.rows.setdefault(task, {})[device] = value

    def ratio(self, seen: Mapping[str, str], row: Mapping[str, float], reference: str, device: str) -> float | None:
        """Throughput of a device over that of the reference, on the task with the same ratios; None if none has.

        Args:
            seen: Names of the devices of the request in this corpus.
            row: Throughputs of the task in the request, by device.
            reference: In the request.
            device: In the request.
        """
        for known in self.rows.values():
            quotients = [known[seen[name]] / value for name, value in row.items() if seen.get(name) in known]
            alike = len(quotients) >= COMMON and all(
                math.isclose(quotient, quotients[0], rel_tol=SAME) for quotient in quotients
            )
            if alike and {seen.get(device), seen.get(reference)} <= known.keys():
                return known[seen[device]] / known[seen[reference]]
        return None


@dataclass(frozen=True)
class Recalled(Question):
    """A question, with its devices by their names in each corpus of before."""

    before: tuple[tuple[Remembered, Mapping[str, str]], ...]


class Remembering(MinimalServer):
    """Says what an earlier request has told it, and is as good as the minimal server otherwise.

    Attributes:
        recalled: Whether each pair that it was not sent with the question was found in what came before.
    """

    def __init__(self) -> None:
        super().__init__(PUBLISHED, {})
        self.corpora: list[Remembered] = []
        self.recalled: list[bool] = []

    @override
    def question(self, body: Json) -> Question:
        asked, own = super().question(body), prints(body["corpus"]["devices"])
        before = tuple(
            (known, {name: known.names[print_] for name, print_ in own.items() if print_ in known.names})
            for known in self.corpora
        )
        self.corpora.append(Remembered(body["corpus"]))
        return Recalled(**vars(asked), before=before)

    @override
    def estimate(self, question: Question, device: str, task: str) -> tuple[float, float, float]:
        calibration = question.calibration
        if isinstance(question, Recalled) and not calibration.is_measured(device, task):
            found = self.recall(question, calibration, device, task)
            self.recalled.append(found is not None)
            if found is not None:
                return found, found / 1.05, found * 1.05
        return super().estimate(question, device, task)

    def recall(self, question: Recalled, calibration: Calibration, device: str, task: str) -> float | None:
        """The index as it was sent before."""
        row = {name: calibration.throughputs[name, task] for name in calibration.devices_of[task]}
        ratios = (known.ratio(seen, row, calibration.reference, device) for known, seen in question.before)
        return next((ratio for ratio in ratios if ratio is not None), None)


@contextmanager
def serving(service: MinimalServer) -> Iterator[str]:
    """Base URL of a service in this process."""
    with Server(("127.0.0.1", 0), service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def judged(options: Options, service: MinimalServer, folder: Path) -> RequirementResult:
    """What IDX-001 comes to."""
    with serving(service) as target:
        chosen = replace(options, target=target, headers={}, other_headers={}, selection=("IDX-001",), level="quick")
        report = Run(chosen, folder, Progress()).execute()
    return next(row for row in report.results if row.requirement == "IDX-001")


def test_memory_undoes_the_disguise_and_proves_nothing(options: Options, tmp_path: Path) -> None:
    """It recalls none of what is asked first, and three in four of what is asked later."""
    service = Remembering()
    attacked = judged(options, service, tmp_path / "remembering")
    conforming = judged(options, MinimalServer(PUBLISHED, {}), tmp_path / "minimal-server")
    arriving = sum(part.n for part in attacked.parts if "arrive" in part.label)
    assert not any(service.recalled[:arriving])
    assert fmean(service.recalled[arriving:]) == pytest.approx(0.76, abs=0.05)
    assert (attacked.estimate, conforming.estimate) == (pytest.approx(0.016, abs=0.02), pytest.approx(0.123, abs=0.02))
    assert attacked.bound == conforming.bound
    assert (attacked.verdict, conforming.verdict) == (Verdict.inconclusive, Verdict.fail)
