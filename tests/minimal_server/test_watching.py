"""Stories of nodes, domains, jobs and ranks that are watched, on a clock that the test moves."""

from typing import Any

import pytest

from minimal_server.core import Json, instant
from minimal_server.ground import BEGIN, Ground
from minimal_server.telling import told_by


def steps(ground: Ground, job: str, behind: int | None = None) -> None:
    """All nodes run a rank of the job, whose last step is that of now; one is a step behind."""
    step = (ground.service.now - BEGIN) // 500
    for rank, node in enumerate(ground.numbers):
        ground.steps[node] = [{"job": job, "rank": rank, "step": step - (rank == behind)}]


def run(ground: Ground, seconds: float, job: str = "job", behind: int | None = None) -> None:
    """Let time pass while the job makes a step every 0.5 s."""
    for _ in range(round(seconds * 10)):
        steps(ground, job, behind)
        ground.go(0.1)


def test_a_node_that_falls_silent_is_told_dead_within_three_seconds_and_no_other() -> None:
    ground = Ground(north=4, south=4)
    ground.go(5)
    ground.silent = {"north-1"}
    ground.go(1.5)
    assert ground.faults() == []
    ground.go(1.3)
    assert ground.told() == [("node_dead", "north-1")]
    (fault,) = ground.faults("?domain=north")
    assert fault["since"] <= instant(BEGIN + 5000) < fault["told_at"]
    ground.go(20)
    assert len(ground.faults()) == 1


def test_stalls_of_a_second_and_lost_beats_are_no_death() -> None:
    ground = Ground(north=6)
    ground.go(5)
    for _ in range(5):
        ground.silent = {"north-1", "north-2"}
        ground.go(1.4)
        ground.silent = set()
        ground.go(2)
    assert ground.faults() == []


def test_a_node_that_beats_every_two_seconds_is_as_alive() -> None:
    ground = Ground(north=4)
    for _ in range(20):
        ground.silent = {"north-1"}
        ground.go(1.5)
        ground.silent.clear()
        ground.go(0.5)
    assert ground.faults() == []


def test_a_domain_that_is_silent_as_a_whole_is_unreachable_and_none_of_its_nodes_is_dead() -> None:
    ground = Ground(north=5, south=4)
    ground.go(5)
    north = {node for node in ground.numbers if node.startswith("north")}
    ground.silent = set(north)
    ground.go(15)
    assert ground.told() == [("domain_unreachable", "north")]
    assert ground.actions("north") == []
    ground.silent = {"north-3"}  # died amid it
    ground.go(2)
    assert ground.told() == []
    ground.go(1.5)
    assert ground.told() == [("node_dead", "north-3")]
    assert ground.told("") == [("domain_unreachable", "north"), ("node_dead", "north-3")]


def test_nodes_of_a_rack_are_dead_though_they_are_most_of_their_domain() -> None:
    ground = Ground(north=8)
    ground.go(5)
    ground.silent = {f"north-{place}" for place in range(5)}
    ground.go(3)
    assert sorted(ground.told()) == [("node_dead", node) for node in sorted(ground.silent)]


def test_a_service_that_is_kept_from_watching_takes_nobody_for_dead() -> None:
    ground = Ground(north=4)
    ground.go(5)
    ground.service.now += 20_000
    ground.look()
    ground.go(2)
    assert ground.faults() == []


def test_a_death_is_cleared_when_the_node_has_beaten_for_a_while_and_the_next_is_another_fault() -> None:
    ground = Ground(north=4)
    ground.go(5)
    ground.silent = {"north-0"}
    ground.go(4)
    ground.silent = set()
    ground.go(3)
    assert ground.told() == [("node_dead", "north-0")]
    ground.go(7)
    (first,) = ground.faults()
    assert (first["state"], ground.told()) == ("cleared", [])
    assert first["told_at"] < first["cleared_at"] <= instant(ground.service.now)
    ground.silent = {"north-0"}
    ground.go(4)
    assert [fault["state"] for fault in ground.faults()] == ["cleared", "open"]
    assert ground.faults()[0] == first


def test_a_node_that_comes_and_goes_has_one_fault_that_is_cleared_in_the_end() -> None:
    ground = Ground(north=4)
    ground.go(5)
    for _ in range(6):
        ground.silent = {"north-0"}
        ground.go(4)
        ground.silent = set()
        ground.go(5)
    assert ground.told() == [("node_dead", "north-0")]
    ground.go(25)
    assert [fault["state"] for fault in ground.faults()] == ["cleared"]


def test_beats_that_were_heard_before_or_overtaken_are_no_sign_of_life() -> None:
    ground = Ground(north=4)
    ground.go(2)
    old: list[Json] = []
    for _ in range(10):
        ground.go(0.5)
        old.append(ground.sent["north-2"])
    overtaken = {**old[0], "number": 0, "sent_at": instant(BEGIN)}
    ground.silent = {"north-2"}
    for place in range(20):
        order = old if place % 2 else old[::-1]
        assert ground.beat([*order, overtaken])["accepted"] == 11
        ground.go(0.5)
    assert ground.told() == [("node_dead", "north-2")]


def test_a_sender_that_was_started_anew_is_alive_and_what_failed_before_is_over() -> None:
    ground = Ground(north=4)
    ground.numbers["north-1"] = 5000
    ground.go(5)
    ground.log("north-1", "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.")
    ground.log("north-2", "NVRM: Xid (PCI:0000:3b:00): 48, pid=7, DBE")
    assert ground.told() == [("node_failing", "north-1"), ("node_failing", "north-2")]
    ground.numbers["north-1"] = 0
    ground.go(10)
    assert ground.told() == [("node_failing", "north-2")]
    assert [fault["code"] for fault in ground.faults("?state=cleared")] == ["xid.79"]


def test_a_node_fails_once_however_often_its_log_tells_so() -> None:
    ground = Ground(north=2)
    text = "NVRM: Xid (PCI:0000:3b:00): 95, pid=7, Uncontained ECC error"
    ground.log("north-0", text)
    assert ground.faults() == []  # nothing was heard of it yet: it is not watched
    ground.go(2)
    for _ in range(3):
        ground.log("north-0", text)
    assert ground.told() == [("node_failing", "north-0")]
    assert len(ground.actions("north")) == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("NVRM: Xid (PCI:0000:05:00): 79, pid=7, GPU has fallen off the bus.", "xid.79"),
        ("[77.1] NVRM: Xid (0000:03:00): 119, pid=7, Timeout waiting for RPC from GSP", "xid.119"),
        ("NVRM: Xid (PCI:0000:05:00): 31, pid=7, name=python, MMU Fault", ""),
        ("NVRM: Xid (PCI:0000:05:00): 63, pid=7, Row Remapper", ""),
        ("NVRM: Xid (PCI:0000:05:00): 145, pid=7, RLW_REMAP Nonfatal XC0", ""),
        ("NVRM: Xid (PCI:0000:05:00): 145, pid=7, RLW_REMAP Fatal XC0", "xid.145"),
        ("NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (Reset)", "xid.154"),
        ("NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x1 (Reset) to 0x0 (None)", ""),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46", ""),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30", "sxid.20034"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "cuda.ecc"),
        ("amdgpu 0000:03:00.0: amdgpu: 1 uncorrectable hardware errors detected in umc block", "amd.ecc"),
        ("[fault_manager] event_id: [0x80E01809]", "npu.ecc"),
        ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0", "host.ecc.uncorrected"),
        ("EDAC MC1: 3 CE memory scrubbing error on CPU_SrcID#0", ""),
        ("torch.OutOfMemoryError: CUDA out of memory.", ""),
        ("[rank 3] EI0002: The wait execution of the Notify register times out.", ""),
        ("step 7900 loss 1.79 Xid 79", ""),
    ],
)
def test_lines_of_documented_forms_tell_what_has_to_be_reset_or_repaired(line: str, code: str) -> None:
    assert told_by(line) == code


def test_a_job_that_makes_no_step_while_all_its_nodes_beat_hangs_until_it_makes_one() -> None:
    ground = Ground(north=2, south=2)
    run(ground, 10)
    ground.go(30)
    assert ground.faults() == []
    ground.go(1.5)
    (fault,) = ground.faults("?state=open")
    assert (fault["kind"], fault["job"]) == ("job_hung", "job")
    assert fault.keys().isdisjoint({"domain", "node"})
    assert [(action["kind"], action["job"]) for action in ground.actions("north")] == [("stop", "job")]
    assert [action["domain"] for action in ground.actions("south")] == ["south"]
    ground.go(10)
    run(ground, 1)
    assert ground.actions("north") == [], "it is stopped no longer"
    assert ground.told("") == [("job_hung", "job")]
    assert ground.told() == []


def test_a_job_may_stand_for_three_times_its_longest_step_before_it_hangs() -> None:
    ground = Ground(north=3)
    for step in range(8):
        ground.steps = {node: [{"job": "slow", "rank": 0, "step": step}] for node in ["north-0"]}
        ground.go(12 if step < 7 else 0.5)
    ground.go(35)
    assert ground.faults() == []
    ground.go(3)
    assert ground.told() == [("job_hung", "slow")]


def test_a_job_whose_node_has_died_waits_for_it_and_does_not_hang() -> None:
    ground = Ground(north=4)
    run(ground, 10)
    ground.silent = {"north-0"}
    ground.go(40)
    assert ground.told("") == [("node_dead", "north-0")]


def test_a_job_whose_ranks_have_ended_does_not_hang() -> None:
    ground = Ground(north=3)
    run(ground, 10)
    for rank, node in enumerate(ground.numbers):
        ground.steps[node] = [{"job": "job", "rank": rank, "step": 20, "ended": True}]
    ground.go(40)
    assert ground.faults() == []


def test_a_job_that_begins_anew_without_a_rank_does_not_wait_for_it() -> None:
    ground = Ground(north=4)
    run(ground, 10)
    ground.steps.pop("north-3")
    for step in range(5, 40):
        for rank in range(3):
            ground.steps[f"north-{rank}"] = [{"job": "job", "rank": rank, "step": step}]
        ground.go(0.5)
    ground.silent = {"north-3"}
    ground.go(34)
    assert ground.told() == [("node_dead", "north-3"), ("job_hung", "job")]


def test_a_rank_that_comes_later_than_its_peers_again_and_again_straggles_until_it_does_not() -> None:
    ground = Ground(north=6)
    run(ground, 10)
    assert ground.faults() == []
    run(ground, 12, behind=2)
    (fault,) = ground.faults("?state=open")
    assert (fault["kind"], fault["node"], fault["rank"]) == ("rank_straggling", "north-2", 2)
    assert ground.actions("north") == []
    run(ground, 28)
    assert [fault["state"] for fault in ground.faults()] == ["cleared"]


def test_nodes_that_are_deleted_are_not_watched() -> None:
    ground = Ground(north=5)
    ground.go(5)
    ground.silent = {"north-0"}
    ground.go(4)
    assert ground.told() == [("node_dead", "north-0")]
    for node in ("north-0", "north-1"):
        assert ground.ask("DELETE", f"/v1/nodes/{node}").status == 204
        del ground.numbers[node]
    assert ground.told() == []
    ground.go(15)
    assert ground.told("") == [("node_dead", "north-0")]


def test_bad_items_are_named_and_good_ones_taken() -> None:
    ground = Ground(north=1)
    good = ground.next_beat("north-0")
    bad: list[Any] = [{**good, "node": "absent"}, {**good, "number": -1}, {**good, "more": 1}, "beat"]
    result = ground.beat([bad[0], good, *bad[1:]])
    assert ground.service.schema_errors("IntakeResult", result) == []
    assert (result["accepted"], [row["index"] for row in result["rejected"]]) == (1, [0, 2, 3, 4])
    types = [row["problem"]["type"].rpartition(":")[2] for row in result["rejected"]]
    assert types == ["unknown-reference", *["invalid-body"] * 3]
    assert ground.beat(bad)["accepted"] == 0
    line = {"node": "north-0", "logged_at": good["sent_at"], "text": "x" * 2049}
    assert ground.ask("POST", "/v1/log-lines", {"lines": [line]}).body["accepted"] == 0


@pytest.mark.parametrize("path", ["heartbeats", "log-lines"])
def test_what_is_no_batch_is_refused_as_a_whole(path: str) -> None:
    ground = Ground(north=1)
    member = {"heartbeats": "beats", "log-lines": "lines"}[path]
    bodies: list[Any] = [{}, {member: []}, {member: ["x"] * 1001}, {member: ["x"], "mode": "per_item"}, []]
    for body in bodies:
        answer = ground.ask("POST", f"/v1/{path}", body)
        assert (answer.status, answer.body["type"]) == (422, "urn:kuayu:problem:invalid-body")
    assert ground.ask("POST", f"/v1/{path}", {member: ["x"] * 1000}).status == 200
