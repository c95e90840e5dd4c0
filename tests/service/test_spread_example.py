"""The example of one training over two domains: each has an engine of its own, and they agree every so many steps."""

import importlib.util
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from service.typed_folder import Folder, JobObject, folder, until

from kuayu.engine.runs.supervisor import started

__all__ = ["folder"]

EXAMPLE = Path(__file__).parents[2] / "docs/examples/spread"
START_LINE = re.compile(r"rank ([0-9]+) of ([0-9]+) in (\w+), process ([0-9]+), from step ([0-9]+), period ([0-9]+)")
AGREEMENT = re.compile(r"agreed at step ([0-9]+), loss ([0-9.]+), parameters (\w+) to (\w+)")


class StartLine(NamedTuple):
    """What a rank prints at its start."""

    world: int
    domain: str
    process: int
    step: int
    period: int


def log_lines(folder: Folder, attempt: int) -> list[tuple[int, str]]:
    """What the ranks of an attempt have printed, each line with its rank."""
    rows = folder.kuayu("logs", "spread", "--attempt", str(attempt), "--json").splitlines()
    return [(row["rank"], row["text"]) for row in map(json.loads, rows)]


def start_lines(folder: Folder, attempt: int) -> dict[int, StartLine]:
    """What each rank of an attempt has printed at its start."""
    matches = (START_LINE.fullmatch(text) for _, text in log_lines(folder, attempt))
    return {
        int(row[1]): StartLine(int(row[2]), row[3], int(row[4]), int(row[5]), int(row[6])) for row in matches if row
    }


def agreements(folder: Folder, attempt: int) -> dict[int, dict[int, tuple[str, str, str]]]:
    """Loss and digests of parameters before and after each agreement, by step and rank."""
    result: dict[int, dict[int, tuple[str, str, str]]] = {}
    for rank, text in log_lines(folder, attempt):
        if (row := AGREEMENT.fullmatch(text)) is not None:
            result.setdefault(int(row[1]), {})[rank] = (row[2], row[3], row[4])
    return {step: ranks for step, ranks in result.items() if len(ranks) == 2}


@pytest.mark.slow
def test_two_domains_train_one_model_and_go_on_together_when_one_loses_its_process(folder: Folder) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    shutil.copytree(EXAMPLE, folder.path / "spread")
    folder.up("--no-domain")
    for domain in ("east", "west"):
        folder.kuayu("domain", "add", domain, "--local", "--devices", "1", "--address", "127.0.0.1")

    folder.kuayu("domain", "link", "east", "west", "--capacity", "1Gbit/s")
    command = ("--set", f"command=[{sys.executable}, train.py]", "--set", "environment.GLOO_SOCKET_IFNAME=lo")
    pace = ("--set", "environment.STEPS=1000000", "--set", "environment.STEP_SECONDS=0.02")
    folder.kuayu("submit", "spread/train.yaml", *command, *pace)

    def reached(attempt: int, step: int) -> JobObject:
        """The job once it runs in an attempt, or a later one: the port of a rendezvous may have been taken."""

        def has_come(job: JobObject) -> bool:
            checkpoint = job.get("checkpoint_step", 0)
            return all((job["state"] == "running", job["attempt"] >= attempt, checkpoint >= step))

        return folder.await_job(has_come, f"it does not come to attempt {attempt} and step {step}", "spread")

    job = reached(1, 1)
    assert sorted(share["domain"] for share in job["placement"]["shares"]) == ["east", "west"]
    assert job["placement"]["split_mode"] == "periodic"
    period = job["placement"]["sync_period"]  # the file leaves it open
    assert period > 1
    assert f"every {period} steps" in folder.kuayu("why", "spread").replace("\n", " ")
    before_kill = reached(job["attempt"], 3 * period)
    attempt, known = before_kill["attempt"], before_kill["checkpoint_step"]
    until(lambda: len(agreements(folder, attempt)) >= 3, "lines do not arrive")
    ranks = start_lines(folder, attempt)
    assert {(line.world, line.domain, line.step, line.period) for line in ranks.values()} == {
        (2, "east", 0, period),
        (2, "west", 0, period),
    }
    first = agreements(folder, attempt)
    assert list(first)[:3] == [period, 2 * period, 3 * period]
    for row in first.values():
        (loss, before, after), (other_loss, other_before, other_after) = row[0], row[1]
        assert (loss, after) == (other_loss, other_after)
        assert before != other_before  # between agreements each goes its own way

    os.kill(ranks[1].process, signal.SIGKILL)
    job = reached(attempt + 1, known + 10 * period)
    assert job["failures"] - before_kill["failures"] == job["attempt"] - attempt
    assert all(started(line.process) is None for line in ranks.values())
    until(lambda: len(agreements(folder, job["attempt"])) >= 3, "lines do not arrive")
    restarted = start_lines(folder, job["attempt"])
    [step] = {line.step for line in restarted.values()}
    assert step >= known
    second, period = agreements(folder, job["attempt"]), restarted[0].period
    assert min(second) == (step // period + 1) * period
    assert all(row[0][2] == row[1][2] for row in second.values())
    assert float(second[max(second)][0][0]) < float(first[min(first)][0][0]) / 2
    assert folder.kuayu("cancel", "spread", "--wait").startswith("spread cancelled")
    until(lambda: all(started(line.process) is None for line in restarted.values()), "a rank goes on")
    assert folder.end() == 0
