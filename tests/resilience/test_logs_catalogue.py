"""The catalogue of log faults: each entry's own examples, lists of lines, and headers that a fault's line may have."""

import re
from collections.abc import Sequence

import pytest

from kuayu.resilience.logs.headers import Channel
from kuayu.resilience.logs.recogniser import GRAM, About, Fault, Follows, Verdict, WordSearch, catalogue
from kuayu_training.resilience.logs_lines import LISTS, calm, faulty, judged, verdicts

FAULTS = catalogue().faults
IDS = [f"{number}-{fault.code}" for number, fault in enumerate(FAULTS)]


def one(text: str) -> Verdict:
    (found,) = verdicts(text)
    return found


def is_of(verdict: Verdict, fault: Fault) -> bool:
    """Whether a verdict is of a fault; a number may have been added to the code."""
    return verdict.code == fault.code or verdict.code.startswith(f"{fault.code}.")


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_the_examples_of_a_fault_tell_it_and_its_near_misses_do_not(fault: Fault) -> None:
    assert fault.examples
    assert fault.counterexamples
    for text in fault.examples:
        found = one(text)
        assert is_of(found, fault), text
        if fault.code not in {"xid", "sxid"}:
            assert found.follows is fault.follows, text
    for text in fault.counterexamples:
        assert not [each for each in verdicts(text) if is_of(each, fault)], text


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_each_pattern_of_a_fault_has_a_needle_that_finds_it(fault: Fault) -> None:
    for text in fault.examples:
        assert any(needle in text.lower().encode() for needle in fault.needles), text


HEADER = re.compile(r"(?:.{0,20}kernel: )?(?:(?:<\d>)?\[ ?\d+\.\d+\] )?")

DRAINS = [fault for fault in FAULTS if fault.follows is Follows.DRAIN]


@pytest.mark.parametrize("fault", DRAINS, ids=[fault.code for fault in DRAINS])
@pytest.mark.parametrize(
    "quoted",
    [
        "[sample] {}",
        "[rank0]: [sample] user: {}",
        "user: {}",
        '"{}"',
        "he said: {} and left",
        "2026-03-12 04:12:15,120 - trainer - INFO - {}",
        "2026-03-12 04:12:15,120 {}",
        "[2026-03-12 04:12:15] {}",
        "04:12:15 {}",
        "out3: {}",
        "<|assistant|>{}",
        "Generated: {}",
        "`{}`",
        "# {}",
        "* {}",
        "[2026-03-12 04:12:15,120] [WARNING] [loop.py:88:train] {}",
        "INFO:root:{}",
        '{{"level":"error","msg":"{}"}}',
        '{{"log":"{}\\n","stream":"stderr"}}',
        "2026-03-12 04:12:15.120 | ERROR | app:run:12 - {}",
        "grep -q '{}' kern.log",
        "retry_on: {}",
    ],
)
def test_what_quotes_a_fault_drains_nothing(fault: Fault, quoted: str) -> None:
    for text in fault.examples:
        line = HEADER.sub("", text.splitlines()[-1], count=1)
        assert [each.code for each in verdicts(quoted.format(line)) if each.follows is Follows.DRAIN] == []


KERNEL = [fault for fault in DRAINS if fault.channel is Channel.KERNEL and fault.code not in {"xid", "sxid"}]


@pytest.mark.parametrize("fault", KERNEL, ids=[fault.code for fault in KERNEL])
@pytest.mark.parametrize(
    "header",
    [
        "Mar 12 04:12:15 n12 kernel: {}",
        "<3>Mar 12 04:12:15 n12 kernel: [  812.123456] {}",
        "<3>1 2026-03-12T04:12:15.000003Z n12 kernel - - - {}",
        "2026-03-12T04:12:15.123456+08:00 n12 kernel: {}",
        "2026-03-12 04:12:15 n12 kernel: {}",
        "Thu 2026-03-12 04:12:15 CST n12 kernel: {}",
        "[  812.123456] {}",
        "[  812.123456] [ T1234] {}",
        "[Thu Mar 12 04:12:15 2026] {}",
        "[Mar12 04:12] {}",
        "[  +0.000013] {}",
        "2026-03-12T04:12:15,123456+08:00 {}",
        "kern  :err   : [  812.123456] {}",
        "<3>[  812.123456] {}",
        "3,1234,812123456,-;{}",
        "kernel: {}",
        "n12 kernel: {}",
        "n12: [Thu Mar 12 04:12:15 2026] {}",
        "dmesg-1  | [  812.123456] {}",
        "2026-03-12T04:12:15.000003Z stdout F [  812.123456] {}",
        "[pod/tailer-x7/dmesg] [  812.123456] {}",
        "\x1b[32m[  812.123456] \x1b[0m{}",
        "\x1b[1mMar 12 04:12:15 n12 kernel:\x1b[0m {}",
    ],
)
def test_the_kernel_s_message_is_told_behind_each_of_its_headers(fault: Fault, header: str) -> None:
    for text in fault.examples:
        message = HEADER.sub("", text.splitlines()[-1], count=1)
        found = verdicts(header.format(message))
        assert [each.follows for each in found if is_of(each, fault)] == [fault.follows], header.format(message)


@pytest.mark.parametrize(
    "header",
    [
        "[rank3]: {}",
        "[default3]:{}",
        "[1,3]<stderr>:{}",
        "3: {}",
        "(RayWorker pid=77, ip=10.0.0.1) {}",
        "worker-1  | {}",
        "n12: {}",
        "2026-03-12T04:12:15.000003Z stderr F {}",
        "[pod/train-0/trainer] {}",
        "Mar 12 04:12:15 n12 python[77]: {}",
        "\x1b[31m{}\x1b[0m",
        " 50%|████ | 1/2 [00:01<00:01]\r{}",
    ],
)
def test_a_job_s_error_is_told_behind_what_launchers_and_containers_put_before_it(header: str) -> None:
    found = one(header.format("RuntimeError: CUDA error: uncorrectable ECC error encountered"))
    assert (found.code, found.follows) == ("cuda.ecc", Follows.DRAIN)
    assert (
        one(header.format("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB")).code == "job.memory"
    )


def test_a_gpu_that_fell_off_the_bus_is_told_over_three_lines_amid_others() -> None:
    log = (
        "Mar 12 04:12:15 n11 kernel: NVRM: The NVIDIA GPU 0000:1b:00.0\n"
        "Mar 12 04:12:15 n12 kernel: NVRM: The NVIDIA GPU 0000:9b:00.0\n"
        "Mar 12 04:12:15 n12 kernel: NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "Mar 12 04:12:15 n11 kernel: usb 1-1: new device\n"
        "Mar 12 04:12:15 n12 kernel: NVRM: fallen off the bus and is not responding to commands.\n"
    )
    found = one(log)
    assert (found.code, found.node, found.subject) == ("gpu.bus", "n12", "0000:9b:00.0")
    assert (found.follows, found.about, found.evidence.line) == (Follows.DRAIN, About.DEVICE, 5)


def test_ranks_that_hang_are_told_by_each_of_pytorch_s_forms() -> None:
    log = (
        "[rank7]:[E626 05:14:36.393067540 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 7] "
        "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring.\n"
        "[rank3]:[E711 11:02:01.101 ProcessGroupNCCL.cpp:1316] [PG 0 Rank 3] Heartbeat monitor timed out! Process will "
        "be terminated after dumping debug info. workMetaList_.size()=103\n"
        "[rank2]:[E626 05:06:30.929096625 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=120049, OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1800065 milliseconds\n"
        "[rank1]:[E ProcessGroupNCCL.cpp:563] [PG ID 2 PG GUID 9(EXPERT_MODEL_PARALLEL_GROUP) Rank 1] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=1) ran for 600027 milliseconds before timing out.\n"
    )
    assert [(each.subject, each.follows) for each in verdicts(log)] == [(n, Follows.RESTART) for n in "7321"]


def test_an_npu_s_core_and_its_watchdog_are_told() -> None:
    core = one(
        "The error from device(chipId:4, dieId:1), serial number is 3, there is an exception of fftsplus aicore error, "
        "core id is 0, error code = 0x800000"
    )
    assert (core.code, core.follows, core.subject) == ("npu.core", Follows.RESTART, "chipId:4, dieId:1")
    ended = one(
        "[rank9]:[E508 03:20:31.678676591 compiler_depend.ts:1693] [Rank 9] HCCL watchdog thread terminated with "
        "exception:"
    )
    assert (ended.follows, ended.subject) == (Follows.RESTART, "9")


def test_what_slurm_says_of_a_killed_step_and_of_a_lost_node_is_told() -> None:
    killed = one(
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1234.0. Some of the step tasks have been OOM Killed."
    )
    assert (killed.about, killed.follows, killed.subject) == (About.JOB, Follows.RESTART, "1234.0")
    lost = one(
        "slurmstepd: error: *** JOB 1234 ON n07 CANCELLED AT 2026-03-10T12:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD "
        "LOG FOR DETAILS ***"
    )
    assert (lost.about, lost.follows, lost.subject) == (About.NODE, Follows.WATCH, "n07")
    for line in ("srun: error: Node failure on n07", "slurmctld: error: Nodes n07 not responding, setting DOWN"):
        assert one(line).subject == "n07"


def test_faults_of_amd_s_runtime_and_kernel_are_told() -> None:
    fault = one(
        "Memory access fault by GPU node-3 (Agent handle: 0x55c0) on address 0x7098436. Reason: Write access to a "
        "read-only page."
    )
    assert (fault.follows, fault.subject) == (Follows.RESTART, "node-3")
    page = one(
        "[19277.975] amdgpu 0000:3d:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:160 vmid:3 pasid:32790)"
    )
    assert (page.follows, page.subject) == (Follows.RESTART, "0000:3d:00.0")
    assert one("RuntimeError: HIP error: an illegal memory access was encountered").follows is Follows.RESTART


def test_at_least_95_of_100_lines_of_each_list_are_told_rightly() -> None:
    found = judged()
    assert sum(found[name]["lines"] for name in LISTS) >= 200
    assert len(faulty("held_out")) * 3 >= len(faulty("held_out")) + len(faulty("collected"))
    for name in LISTS:
        assert found[name]["told"] >= 0.95 * found[name]["lines"], found[name]["misses"]


@pytest.mark.parametrize(("text", "most"), list(calm()))
def test_after_a_calm_line_no_more_follows_than_may(text: str, most: Follows) -> None:
    order = list(Follows)
    assert max((order.index(each.follows) for each in verdicts(text)), default=0) <= order.index(most)


def test_there_are_a_hundred_calm_lines() -> None:
    assert len(list(calm())) >= 100


def test_words_are_found_wherever_they_stand() -> None:
    words = [b"abcd", b"abcdefgh", b"not responding", b"xid ("]
    needles = WordSearch(words)
    block = b"..abcdefgh..nvrm: xid (1) is not responding; abcd"
    for shift in range(GRAM + 1):
        low = b"-" * shift + block
        wanted = {(at, word) for word in words for at in range(len(low)) if low.startswith(word, at)}
        assert set(needles.find(low, 0, len(low))) == wanted
        assert set(needles.find(low, 10, 30)) == {(at, word) for at, word in wanted if 10 <= at < 30}
    assert list(needles.find(b"abc", 0, 3)) == []
    with pytest.raises(ValueError, match="fewer than 4"):
        WordSearch([b"xid"])


@pytest.mark.parametrize(
    "quoted",
    [
        "user: {}",
        "[sample] {}",
        "[generated] {}",
        "Q: {}",
        "assistant: It says {}",
        "Generated text: {}",
        "<|user|> {}",
        "> {}",
        "The log said: {}",
        "I got: {}",
        '{{"text":"{}"}}',
    ],
)
def test_what_a_training_prints_as_a_sample_starts_nothing_again(quoted: str) -> None:
    assert acted_on(quoted, FAULTS) == []


@pytest.mark.parametrize("quoted", ["caption: {}", "doc 12: {}", "step 3 sample: {}"])
def test_words_that_say_of_no_failure_are_no_job_s_own_before_those_of_a_library(quoted: str) -> None:
    # Behind a command's name and a file's, what stands before may be anything.
    assert acted_on(quoted, [fault for fault in FAULTS if fault.kind != "storage"]) == []
    assert one("training failed: CUDA out of memory. Tried to allocate 2.00 GiB").follows is Follows.RESTART


def acted_on(quoted: str, faults: Sequence[Fault]) -> list[str]:
    """Examples after which something follows where they are quoted."""
    lines = [text for fault in faults for text in fault.examples if "\n" not in text]
    acted = {Follows.DRAIN, Follows.RESTART}
    return [text for text in lines if any(each.follows in acted for each in verdicts(quoted.format(text)))]
