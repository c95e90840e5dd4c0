"""The first ten minutes: `kuayu up`, a job, a rank that is killed, and all of it ended and found again."""

import json
import os
import re
import signal
import sys

import httpx
import pytest
from service.typed_folder import Folder, JobObject, folder, until

from kuayu.engine.runs.supervisor import started

__all__ = ["folder"]


@pytest.mark.slow
def test_a_job_trains_again_from_its_checkpoint_when_a_rank_is_killed(folder: Folder) -> None:
    folder.up()
    connection = folder.path / "kuayu-data" / "connection.json"
    assert connection.stat().st_mode & 0o077 == 0
    assert json.loads(connection.read_text("utf-8"))["token"] not in (folder.path / "up.log").read_text("utf-8")
    assert folder.kuayu("jobs") == "there are no jobs\n"

    submitted = folder.kuayu("submit", "train.yaml")
    assert submitted.startswith("job-1 queued")
    job = folder.await_job(
        lambda job: job["state"] == "running" and job.get("checkpoint_step", 0) >= 10, "no checkpoint"
    )
    assert (job["attempt"], job["failures"]) == (1, 0)
    assert "running" in folder.kuayu("jobs")
    assert re.search(r"^job-1 start 2 × \S+ in here", folder.kuayu("why", "job-1"), re.MULTILINE)

    ranks = folder.ranks()
    assert len(ranks) == 2
    os.kill(ranks[1], signal.SIGKILL)
    job = folder.await_job(lambda job: job["state"] == "running" and job["attempt"] == 2, "it is not started again")
    assert job["failures"] == 1
    known = job["checkpoint_step"]
    assert [change["state"] for change in job["transitions"]] == [
        *("queued", "starting", "running", "restarting", "queued", "starting", "running")
    ]  # fmt: skip
    assert "SIGKILL" in job["transitions"][3]["reason"]
    until(lambda: started(ranks[0]) is None, "the other rank goes on")  # all or none

    job = folder.await_job(lambda job: job.get("checkpoint_step", 0) >= known + 10, "it does not go on")
    log = folder.kuayu("logs", "job-1")
    begun = [(int(step), int(told)) for step, told in re.findall(r"from step ([0-9]+), told ([0-9]+)", log)]
    assert begun[:2] == [(0, 0), (0, 0)]
    [(step, told)] = set(begun[2:])
    assert step >= told > 0  # another one may have been written and not told of when the process was killed
    assert 10 <= step <= known
    losses = {}
    for step, loss in re.findall(r"step ([0-9]+) loss ([0-9.]+)", log):
        assert losses.setdefault(int(step), loss) == loss  # what was done twice came to the same
    assert sorted(losses) == list(range(1, max(losses) + 1))

    why = folder.kuayu("why", "job-1")
    assert "restarting" in why
    assert "decided " in why
    cancelled = folder.kuayu("cancel", "job-1", "--wait")
    assert cancelled.startswith("job-1 cancelled")
    for rank in folder.ranks():
        assert started(rank) is None
    assert folder.end() == 0
    assert "all of it has ended" in (folder.path / "up.log").read_text("utf-8")


@pytest.mark.slow
def test_runs_outlive_a_kill_of_everything_and_are_found_again(folder: Folder) -> None:
    folder.up()
    folder.kuayu("submit", "train.yaml")
    folder.await_job(lambda job: job["state"] == "running" and job.get("step", 0) > 0, "it does not run")
    ranks = folder.ranks()
    folder.end(signal.SIGKILL)
    folder.up()
    before = folder.job()
    assert all(started(rank) is not None for rank in ranks)
    job = folder.await_job(lambda job: job.get("step", 0) >= before["step"] + 10, "nothing is heard of it any more")
    assert (job["state"], job["attempt"]) == ("running", 1)
    assert folder.ranks() == ranks
    assert folder.end() == 0
    assert all(started(rank) is None for rank in ranks)


@pytest.mark.slow
def test_a_domain_that_is_added_takes_jobs_at_once_and_ends_them_when_it_is_removed(folder: Folder) -> None:
    folder.up()
    assert "kuayu up takes it up now" in folder.kuayu("domain", "add", "two", "--local", "--devices", "1")
    folder.kuayu("submit", "train.yaml", "--set", "domains=[two]", "--set", "devices=1")
    job = folder.await_job(lambda job: job["state"] == "running", "it does not run in the other domain")
    assert [share["domain"] for share in job["placement"]["shares"]] == ["two"]
    assert re.search(r"^two +local +yes", folder.kuayu("domain", "list"), re.MULTILINE)
    [rank] = folder.ranks()
    folder.kuayu("domain", "remove", "two")
    until(lambda: started(rank) is None, "it goes on though its domain was removed")
    job = folder.await_job(lambda job: job["state"] in {"restarting", "queued"}, "nobody has noticed")
    assert (job["failures"], "shut down" in "".join(each["reason"] for each in job["transitions"])) == (0, True)
    assert folder.end() == 0


@pytest.mark.slow
def test_what_was_stopped_with_everything_goes_on_at_the_next_start(folder: Folder) -> None:
    folder.up()
    folder.kuayu("submit", "train.yaml")
    folder.await_job(lambda job: job.get("checkpoint_step", 0) >= 5, "no checkpoint")
    ranks = folder.ranks()
    assert folder.end() == 0
    assert all(started(rank) is None for rank in ranks)
    folder.up()
    job = folder.await_job(lambda job: job["state"] == "running" and job["attempt"] == 2, "it is not started again")
    assert job["failures"] == 0  # that was no fault of its own

    def begun() -> list[str]:
        return re.findall(r"from step ([0-9]+), told", folder.kuayu("logs", "job-1", "--attempt", "2"))

    until(lambda: bool(begun()), "its process has not said from which step it goes on")
    assert int(begun()[0]) >= 5
    assert folder.kuayu("cancel", "job-1", "--wait").startswith("job-1 cancelled")
    assert folder.end() == 0


def world_sizes(folder: Folder, name: str) -> list[tuple[int, int, int]]:
    """Processes of each attempt of a job, from which step they went on, and from which they were told to, in order."""
    log = folder.kuayu("logs", name)
    found = re.findall(r"rank 0 of ([0-9]+), process [0-9]+, from step ([0-9]+), told ([0-9]+)", log)
    losses: dict[int, str] = {}
    for step, loss in re.findall(r"step ([0-9]+) loss ([0-9.]+)", log):
        assert losses.setdefault(int(step), loss) == loss  # what was done twice came to the same
    assert sorted(losses) == list(range(1, max(losses) + 1))  # and no step is missing
    return [(int(world), int(begun), int(told)) for world, begun, told in found]


@pytest.mark.slow
def test_jobs_grow_onto_devices_that_come_free_and_shrink_for_one_that_waits(folder: Folder) -> None:
    """On real processes: all ranks of an attempt know its size, and each goes on from the checkpoint before."""
    folder.up("--devices", "4")
    long = ("--set", "duration=100h", "--set", "devices.least=1", "--set", "devices.most=4")

    def reached(name: str, attempt: int, step: int) -> JobObject:
        def there(job: JobObject) -> bool:
            return (job["state"], job["attempt"]) == ("running", attempt) and job.get("checkpoint_step", 0) >= step

        return folder.await_job(there, f"{name} does not come to attempt {attempt} and step {step}", name)

    # Two of four devices are taken for long: the other job has what is left, and all of them when they come free.
    folder.kuayu(
        "submit",
        "train.yaml",
        "--set",
        "name=holder",
        "--set",
        "checkpoint=of-holder",
        "--set",
        "devices=2",
        "--set",
        "duration=1000h",
    )
    folder.await_job(lambda job: job["state"] == "running", "it does not run", "holder")
    folder.kuayu("submit", "train.yaml", "--set", "name=grows", "--set", "checkpoint=of-grows", *long)
    known = reached("grows", 1, 5)["checkpoint_step"]
    folder.kuayu("cancel", "holder", "--wait")
    grown = reached("grows", 2, known + 10)
    reason = next(change["reason"] for change in grown["transitions"] if change["state"] == "restarting")
    assert "grown to 4 of at most 4" in reason
    assert "grown to 4 of at most 4" in folder.kuayu("why", "grows").replace("\n", " ")
    [(first, begun, _), (second, again, told)] = world_sizes(folder, "grows")
    assert (first, begun, second) == (2, 0, 4)
    assert again >= told >= known
    assert grown["failures"] == 0
    folder.kuayu("cancel", "grows", "--wait")

    # A job has all devices; a short one comes, and it makes room for that.
    folder.kuayu("submit", "train.yaml", "--set", "name=shrinks", "--set", "checkpoint=of-shrinks", *long)
    known = reached("shrinks", 1, 5)["checkpoint_step"]
    folder.kuayu(
        "submit",
        "train.yaml",
        "--set",
        "name=short",
        "--set",
        "checkpoint=of-short",
        "--set",
        "devices=2",
        "--set",
        "duration=10min",
    )
    shrunk = reached("shrinks", 2, known + 10)
    folder.await_job(lambda job: job["state"] == "running", "nobody makes room for it", "short")
    reason = next(change["reason"] for change in shrunk["transitions"] if change["state"] == "restarting")
    assert "shrunk to 2 to make room for short" in reason
    [(first, begun, _), (second, again, told)] = world_sizes(folder, "shrinks")
    assert (first, begun, second) == (4, 0, 2)
    assert again >= told >= known
    assert shrunk["failures"] == 0
    folder.kuayu("cancel", "shrinks", "short", "--wait")
    assert folder.end() == 0


SERVER = """
import http.server, os, pathlib

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = os.environ["KUAYU_JOB"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
fresh = pathlib.Path(os.environ["PORTS"], os.environ["KUAYU_JOB"] + ".fresh")
fresh.write_text(str(server.server_address[1]))
fresh.rename(fresh.with_suffix(""))
server.serve_forever()
"""

SERVICE = f"""
name: chat
kind: serving
command: [{sys.executable}, -S, -E, serve.py]
code: code
environment:
  PORTS: .
devices: 1
serving: {{least: 1, most: 3, rate: 10, startup: 1s, cool_down: 8s}}
priority: 10
grace: 2s
"""

GIVEN = ("shrunk to 3 to make room for chat.1", "shrunk to 1 to make room for chat.2", "it takes back what it gave up")
"""What the training job is told of its three interruptions."""


def answered(folder: Folder, name: str) -> bool:
    """Whether a replica answers a request, with its own name."""
    port = folder.path / "ports" / name
    if not port.exists():
        return False
    try:
        answer = httpx.get(f"http://127.0.0.1:{port.read_text('utf-8')}/", trust_env=False)
    except httpx.TransportError:
        return False
    return answer.text == name


@pytest.mark.slow
def test_replicas_of_a_service_follow_its_load_and_training_gives_way_and_loses_no_step(folder: Folder) -> None:
    """On real processes: requests are answered by each replica that runs, and every step of the training is there."""
    folder.up("--devices", "4")
    (folder.path / "ports").mkdir()
    (folder.path / "code" / "serve.py").write_text(SERVER, encoding="utf-8")
    (folder.path / "chat.yaml").write_text(SERVICE, encoding="utf-8")

    def trains(attempt: int, known: int) -> int:
        """The last checkpoint of the training, once its attempt has written two more."""

        def there(job: JobObject) -> bool:
            return (job["state"], job["attempt"]) == ("running", attempt) and job.get(
                "checkpoint_step", 0
            ) >= known + 10

        job = folder.await_job(there, f"it does not come to attempt {attempt}", "trains")
        assert job["failures"] == 0
        step: int = job["checkpoint_step"]
        return step

    def served(number: int) -> list[str]:
        """Names of the replicas, once so many run, and answer."""

        def there(job: JobObject) -> bool:
            told = job.get("replicas", {})
            return (told.get("wanted"), told.get("running"), len(told.get("jobs", ()))) == (number, number, number)

        names: list[str] = folder.await_job(there, f"{number} replicas do not run", "chat")["replicas"]["jobs"]
        until(lambda: all(answered(folder, name) for name in names), "a replica does not answer")
        return names

    sizes = ("--set", "devices.least=1", "--set", "devices.most=4", "--set", "duration=100h")
    folder.kuayu("submit", "train.yaml", "--set", "name=trains", *sizes)
    known = [0, trains(1, 0)]
    folder.kuayu("submit", "chat.yaml", "--set", f"environment.PORTS={folder.path / 'ports'}")
    folder.kuayu("load", "chat", "5")
    assert served(1) == ["chat.1"]
    known.append(trains(2, known[-1]))
    folder.kuayu("load", "chat", "25")
    assert served(3) == ["chat.1", "chat.2", "chat.3"]
    known.append(trains(3, known[-1]))
    why = folder.kuayu("why", "chat").replace("\n", " ")
    assert "3 of 3 run" in why
    assert "for 25 requests/s" in why
    folder.kuayu("load", "chat", "5")
    assert served(1) == ["chat.1"]
    trains(4, known[-1])
    assert not answered(folder, "chat.2")
    reasons = [change["reason"] for change in folder.job("trains")["transitions"] if change["state"] == "restarting"]
    assert [bool(re.search(words, reason)) for words, reason in zip(GIVEN, reasons, strict=True)] == [True] * 3
    attempts = world_sizes(folder, "trains")
    assert [world for world, _, _ in attempts] == [4, 3, 1, 3]
    assert all(begun >= told >= least for (_, begun, told), least in zip(attempts, known, strict=True))
    assert folder.kuayu("cancel", "chat", "--wait").startswith("chat cancelled")
    assert not answered(folder, "chat.1")
    folder.kuayu("cancel", "trains", "--wait")
    assert folder.end() == 0
