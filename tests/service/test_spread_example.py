"""The example of one training over two domains: each has an engine of its own, and they agree every so many steps."""

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
from service.typed_folder import Folder, JobObject, folder, until

from kuayu.engine.runs.supervisor import started

__all__ = ["folder"]

EXAMPLE = Path(__file__).parents[2] / "docs/examples/spread"
BEGUN = re.compile(r"rank ([0-9]+) of ([0-9]+) in (\w+), process ([0-9]+), from step ([0-9]+), period ([0-9]+)")
AGREED = re.compile(r"agreed at step ([0-9]+), loss ([0-9.]+), parameters (\w+) to (\w+)")


def lines(folder: Folder, attempt: int) -> list[tuple[int, str]]:
    """What the ranks of an attempt have printed, each line with its rank."""
    said = folder.kuayu("logs", "spread", "--attempt", str(attempt), "--json").splitlines()
    return [(line["rank"], line["text"]) for line in map(json.loads, said)]


def begun(folder: Folder, attempt: int) -> dict[int, tuple[int, str, int, int, int]]:
    """World size, domain, process, first step and period of each rank of an attempt."""
    found = (BEGUN.fullmatch(text) for _, text in lines(folder, attempt))
    return {int(each[1]): (int(each[2]), each[3], int(each[4]), int(each[5]), int(each[6])) for each in found if each}


def agreements(folder: Folder, attempt: int) -> dict[int, dict[int, tuple[str, str, str]]]:
    """Loss and digests of parameters before and after each agreement, by step and rank."""
    result: dict[int, dict[int, tuple[str, str, str]]] = {}
    for rank, text in lines(folder, attempt):
        if (each := AGREED.fullmatch(text)) is not None:
            result.setdefault(int(each[1]), {})[rank] = (each[2], each[3], each[4])
    return {step: ranks for step, ranks in result.items() if len(ranks) == 2}


@pytest.mark.slow
def test_two_domains_train_one_model_and_go_on_together_when_one_loses_its_process(folder: Folder) -> None:
    pytest.importorskip("torch")
    shutil.copytree(EXAMPLE, folder.path / "spread")
    folder.up("--no-domain")
    for domain in ("east", "west"):
        folder.kuayu("domain", "add", domain, "--local", "--devices", "1", "--address", "127.0.0.1")

    folder.kuayu("domain", "link", "east", "west", "--capacity", "1Gbit/s")
    command = ("--set", f"command=[{sys.executable}, train.py]", "--set", "environment.GLOO_SOCKET_IFNAME=lo")
    pace = ("--set", "environment.STEPS=1000000", "--set", "environment.STEP_SECONDS=0.02")
    folder.kuayu("submit", "spread/train.yaml", *command, *pace)

    def reached(attempt: int, step: int) -> JobObject:
        def there(job: JobObject) -> bool:
            return (job["state"], job["attempt"]) == ("running", attempt) and job.get("checkpoint_step", 0) >= step

        return folder.await_job(there, f"it does not come to attempt {attempt} and step {step}", "spread")

    job = reached(1, 1)
    assert sorted(share["domain"] for share in job["placement"]["shares"]) == ["east", "west"]
    assert job["placement"]["split_mode"] == "periodic"
    period = job["placement"]["sync_period"]  # the file leaves it open
    assert period > 1
    assert f"every {period} steps" in folder.kuayu("why", "spread").replace("\n", " ")
    known = reached(1, 3 * period)["checkpoint_step"]
    until(lambda: len(agreements(folder, 1)) >= 3, "lines do not arrive")
    ranks = begun(folder, 1)
    assert {(world, domain, step, told) for world, domain, _, step, told in ranks.values()} == {
        (2, "east", 0, period),
        (2, "west", 0, period),
    }
    first = agreements(folder, 1)
    assert list(first)[:3] == [period, 2 * period, 3 * period]
    for each in first.values():
        (loss, before, after), (other_loss, other_before, other_after) = each[0], each[1]
        assert (loss, after) == (other_loss, other_after)
        assert before != other_before  # between agreements each goes its own way

    os.kill(ranks[1][2], signal.SIGKILL)
    job = reached(2, known + 10 * period)
    assert job["failures"] == 1
    assert all(started(process) is None for _, _, process, _, _ in ranks.values())
    until(lambda: len(agreements(folder, 2)) >= 3, "lines do not arrive")
    again = begun(folder, 2)
    [step] = {step for _, _, _, step, _ in again.values()}
    assert step >= known
    second, period = agreements(folder, 2), again[0][4]
    assert min(second) == (step // period + 1) * period
    assert all(each[0][2] == each[1][2] for each in second.values())
    assert float(second[max(second)][0][0]) < float(first[min(first)][0][0]) / 2
    assert folder.kuayu("cancel", "spread", "--wait").startswith("spread cancelled")
    until(lambda: all(started(process) is None for _, _, process, _, _ in again.values()), "a rank goes on")
    assert folder.end() == 0
