"""Lines of the same kinds in other words, versions and programs than those that the catalogue was first made with."""

import pytest

from kuayu.resilience.logs.recogniser import Follows
from kuayu_training.resilience.logs_lines import verdicts

DRAIN, RESTART, WATCH = Follows.DRAIN, Follows.RESTART, Follows.WATCH


def told(text: str) -> list[tuple[Follows, str | None]]:
    return [(each.follows, each.subject) for each in verdicts(text)]


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        (
            (
                "NVRM: The NVIDIA GPU 0000:9b:00.0 (PCI ID: 10de:2330)\n"
                "NVRM: installed in this system has fallen off the bus and\n"
                "NVRM: is not responding to commands.\n"
            ),
            "0000:9b:00.0",
        ),
        (
            (
                "[ 77.1] NVRM: The NVIDIA GPU 0000:9b:00.0 (PCI ID: 10de:2330)\n"
                "               NVRM: installed in this system has fallen off the bus and\n"
                "               NVRM: is not responding to commands.\n"
            ),
            "0000:9b:00.0",
        ),
        (
            (
                "Mar 12 04:12:15 n12 kernel: NVRM: The NVIDIA GPU 0000:9b:00.0#012NVRM: (PCI ID: 10de:2330) installed "
                "in this system has#012NVRM: fallen off the bus and is not responding to commands."
            ),
            "0000:9b:00.0",
        ),
        ("Unable to determine the device handle for GPU0000:9B:00.0: Unknown Error", "0000:9B:00.0"),
        ("NVRM: GPU0 nvAssertOkFailedNoLog: Assertion failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0xF)", None),
        ("Unable to determine the device handle for GPU1: 0000:9B:00.0: Unknown Error", "0000:9B:00.0"),
        ("Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost.", "0000:9B:00.0"),
        ("nvidia 0000:9b:00.0: probe with driver nvidia failed with error -1", "0000:9b:00.0"),
    ],
)
def test_a_gpu_that_is_gone_is_drained_however_the_driver_says_it(text: str, subject: str | None) -> None:
    """NVIDIA's driver, kernel-open/nvidia/nv.c of several versions, rsyslog's ``#012``, nvidia-smi, the driver core."""
    assert told(text) == [(DRAIN, subject)]


E = "[E1112 05:14:36.393067540 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 3]"


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        (f"[rank3]:{E} Observed flight recorder dump signal from another rank via TCPStore.", "3"),
        (f"[rank3]:{E}  failure detected by watchdog at work sequence id: 41 PG status: last enqueued work: 41", "3"),
        (f"[rank3]:{E} Could not acquire GIL within 300 ms on exit, possible GIL induced hang", "3"),
        (f"[rank3]:{E} ProcessGroupNCCL preparing to dump debug info.", "3"),
        ("[E ProcessGroupNCCL.cpp:460] To avoid data inconsistency, we are taking the entire process down.", None),
        ("RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] x", None),
        ("RuntimeError: [Rank 0]: Ranks 5, 6 failed to pass monitoredBarrier in 1800000 ms", "5, 6"),
        ("RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - in use).", None),
        ("RuntimeError: Timed out initializing process group in store based barrier on rank: 3, for key: k", None),
        ("torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL", None),
        ("subprocess.CalledProcessError: Command '['python3', 'train.py']' died with <Signals.SIGKILL: 9>.", None),
        ("Fatal Python error: Bus error", None),
        ("[1,3]<stderr>:[n07:12345] *** Process received signal ***", None),
        ("prterun noticed that process rank 3 with PID 77 on node n07 exited on signal 9 (Killed).", None),
        (
            (
                "E0312 04:12:15.123456    77 client.cc:89] Terminating process because the JAX distributed service "
                "detected fatal errors."
            ),
            None,
        ),
        ("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", None),
        ("ray.exceptions.LocalRayletDiedError: The task's local raylet died.", None),
        (
            (
                "(raylet) [2026-03-12 04:12:15,123 E 77 77] (raylet) node_manager.cc:3193: 1 Workers (tasks / actors) "
                "killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 6f)"
            ),
            None,
        ),
        ("RuntimeError: CUDA error: launch timed out and was terminated", None),
        ("[n07:4112:0:4112] Caught signal 11 (Segmentation fault: address not mapped to object)", None),
        ("horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by x", None),
        ("XlaRuntimeError: UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 heartbeat timeout.", None),
    ],
)
def test_a_job_whose_rank_hangs_or_is_gone_is_restarted_in_every_framework_s_words(
    text: str, subject: str | None
) -> None:
    """PyTorch's ProcessGroupNCCL Gloo, c10d and spawn; CPython; Open MPI and PRRTE; JAX; Ray."""
    assert told(text) == [(RESTART, subject)]


LONG = "/long_pathname_so_that_rpms_can_package_the_debug_info/src/external/rccl/build/hipify/src"


@pytest.mark.parametrize(
    "text",
    [
        (
            f"n07:4021:4388 [2] {LONG}/transport/net_ib.cc:1040 NCCL WARN NET/IB : Got completion from peer a<3> with "
            "status=12 opcode=0 len=0 vendor err 129 (Recv)"
        ),
        f"n07:4021:4388 [2] {LONG}/misc/socket.cc:550 NCCL WARN socketProgress: Connection closed by remote peer n9<3>",
        "n07:4021:4388 [2] misc/socket.cc:57 NCCL WARN socketProgressOpt: Call to recv from 10.0.0.1<3> failed : Br",
        "n07:4021:4388 [2] misc/socket.cc:526 NCCL WARN socketPollConnect: Connect to 10.0.0.1<4> returned 110(x)",
        "n07:4021:4388 [2] misc/ibvwrap.cc:160 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate",
        "n07: Test NCCL failure all_reduce.cu:44 'remote process exited or there was a network error / '",
        "n07: Test CUDA failure common.cu:941 'out of memory'",
    ],
)
def test_what_nccl_rccl_and_their_tests_lose_restarts_the_job(text: str) -> None:
    """NCCL 2.18 to 2.27, RCCL as AMD packages it, nccl-tests and rccl-tests."""
    assert [follows for follows, _ in told(text)] == [RESTART]


@pytest.mark.parametrize(
    ("text", "follows", "subject"),
    [
        ("The error from device(2), serial number is 4. there is an aicore error, core id is 0", RESTART, "2"),
        (
            (
                "The error from device(chipId:0, dieId:1), serial number is 12, there is an aivec error exception, "
                "core id is 5"
            ),
            RESTART,
            "chipId:0, dieId:1",
        ),
        ("Aicore kernel execute failed, device_id=0, stream_id=3, fault kernel_name=MatMulV2_x", RESTART, None),
        (
            (
                "[ERROR] RUNTIME(758,python):2026-05-08-03:20:31.101.123 [davinci_kernel_task.cc:1143]1023 "
                "PrintErrorInfoForDavinciTask:[INIT][DEFAULT]Aicore kernel execute failed, device_id=0"
            ),
            RESTART,
            None,
        ),
        (
            (
                "[ERROR] HCCL(758,python):2026-05-08-03:20:31.101.123 [heartbeat.cc:560] [1023][HCCL_TRACE]Cluster "
                "Exception Location[IP/ID]:[10.0.0.3/2], ExceptionType:[Heartbeat Lost Occurred]"
            ),
            RESTART,
            "10.0.0.3/2",
        ),
        (
            "[ERROR] 2026-05-08-03:20:31 (PID:758, Device:3, RankID:3) ERR02200 DIST call hccl api failed.",
            RESTART,
            None,
        ),
        ("[ERROR] 2026-05-08-03:20:31 (PID:758, Device:3, RankID:3) ERR02011 DIST timeout error", RESTART, None),
        ("[ERROR] 2026-05-08-03:20:31 (PID:758, Device:0, RankID:-1) ERR00006 PTA memory error", RESTART, None),
        ("rtEventSynchronize execute failed, reason=[the model stream execute failed]", RESTART, None),
        ("RuntimeError: HBM MULTI BIT ECC ERROR", RESTART, None),
        ("EZ9999: Inner Error!", RESTART, None),
        ("dcmi module initialize failed. ret is -8005", WATCH, None),
        ("[PID: 7] 2026-05-08-03:20:31.1 Communication_Error_Notify_Wait(EI0002): The wait times out.", RESTART, None),
    ],
)
def test_ascend_s_faults_are_told_in_each_version_s_words(text: str, follows: Follows, subject: str | None) -> None:
    """CANN (runtime and HCCL, plain and in its own log), torch_npu's table of codes ERRxxyyy, npu-smi."""
    assert told(text) == [(follows, subject)]


@pytest.mark.parametrize(
    "text",
    [
        "[ERROR] 2026-05-08-03:20:31 (PID:758, Device:0, RankID:-1) ERR00001 PTA invalid parameter",
        "[ERROR] 2026-05-08-03:20:31 (PID:758, Device:0, RankID:-1) ERR01003 OPS invalid value",
        "[rank3]:[W1112 05:14:36.1 ProcessGroupNCCL.cpp:1250] Warning: destroy_process_group() was not called",
        "[rank3]:[I1112 05:14:36.1 ProcessGroupNCCL.cpp:900] [PG ID 0 Rank 3] ProcessGroupNCCL initialization options",
        "slurmctld: Node n07 now responding",
        "slurmctld: update_node: node n07 state set to IDLE",
        "[2026-03-10T12:00:00.101] node n07 returned to service",
        "amdgpu 0000:0b:00.0: amdgpu: GPU reset(1) succeeded!",
        "i801_smbus: probe of 0000:00:1f.4 failed with error -16",
        "rcu: Hierarchical RCU implementation.",
        "train-worker-3   1/1     Running     0          2m",
    ],
)
def test_what_is_no_fault_in_such_words_makes_nothing_follow(text: str) -> None:
    """Mistakes of a program by torch_npu's table, warnings of PyTorch, what Slurm and drivers say of what is well."""
    assert [each for each in told(text) if each[0] is not Follows.NONE] == []


@pytest.mark.parametrize(
    ("text", "follows", "subject"),
    [
        ("slurmctld: Killing JobId=1234 on failed node n07", WATCH, "n07"),
        ("[2026-03-10T12:00:00.101] requeue job JobId=1234 due to failure of node n07", WATCH, "n07"),
        ("[2026-03-10T12:00:00.101] update_node: node n07 reason set to: Kill task failed", WATCH, "n07"),
        ("[2026-03-10T12:00:00.101] update_node: node n07 state set to DRAINING", WATCH, "n07"),
        ("[2026-03-10T12:00:00.101] error: Nodes n[07-08] not responding", WATCH, "n[07-08]"),
        ("[2026-03-10T12:00:00.101] validate_node_specs: Node n07 unexpectedly rebooted boot_time=1", WATCH, "n07"),
        ("[2026-03-10T12:00:00.101] error: slurmd error running JobId=1234 on node(s)=n07: Prolog error", WATCH, "n07"),
        ("srun: error: Task launch for StepId=1234.0 failed on node n07: Socket timed out on send/recv", WATCH, "n07"),
        (
            (
                "slurmstepd: error: *** STEP 1234.0 STEPD TERMINATED ON n07 AT 2026-03-10T12:00:00 DUE TO JOB NOT "
                "ENDING WITH SIGNALS ***"
            ),
            WATCH,
            "n07",
        ),
        ("pdsh@head: n07: ssh exited with exit code 255", WATCH, "n07"),
        ("slurmstepd: error: Job 1234 exceeded memory limit (4224360 > 4194304), being killed", RESTART, None),
        ("slurmd: error: Unable to register: Unable to contact slurm controller (connect failure)", WATCH, None),
        ("train-worker-3   0/1     OOMKilled   0          2m", RESTART, None),
        ("Mar 12 04:12:15 n07 systemd[1]: train.service: Failed with result 'oom-kill'.", RESTART, "train.service"),
        (
            (
                'E0312 04:12:15.120000 1182 kubelet.go:2448] "Skipping pod synchronization" err="PLEG is not healthy: '
                'pleg was last seen active 3m7.6s ago; threshold is 3m0s"'
            ),
            WATCH,
            None,
        ),
        (
            (
                "I0312 04:12:15.120000       1 health.go:159] XidCriticalError: Xid=79 on Device=GPU-8ff1; marking "
                "device as unhealthy."
            ),
            WATCH,
            "GPU-8ff1",
        ),
    ],
)
def test_what_resource_managers_say_of_nodes_and_tasks_names_them(
    text: str, follows: Follows, subject: str | None
) -> None:
    """Slurm 20 to 25 (slurmctld, slurmd, slurmstepd, srun), kubectl, kubelet, systemd, NVIDIA's device plugin."""
    assert told(text) == [(follows, subject)]


@pytest.mark.parametrize(
    ("text", "follows", "subject"),
    [
        ("amdgpu 0000:0b:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24)", RESTART, "0000:0b:00.0"),
        ("amdgpu 0000:0b:00.0: [gfxhub0] no-retry page fault (src_id:0 ring:158 vmid:8)", RESTART, "0000:0b:00.0"),
        ("amdgpu: qcm fence wait loop timeout expired", RESTART, None),
        ("amdgpu 0000:0b:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=12", RESTART, "0000:0b:00.0"),
        (
            "amdgpu 0000:0b:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
            DRAIN,
            "0000:0b:00.0",
        ),
        ("amdgpu 0000:0b:00.0: amdgpu: Fatal error during GPU init", DRAIN, "0000:0b:00.0"),
        ("amdgpu: probe of 0000:0b:00.0 failed with error -62", DRAIN, "0000:0b:00.0"),
        ("Memory access fault by GPU node-2 on address 0x7f3a. Reason: Page not present.", RESTART, "node-2"),
        ("RuntimeError: HIP error: uncorrectable ECC error encountered", DRAIN, None),
        ("RuntimeError: HIP error: shared object initialization failed", RESTART, None),
        ("RuntimeError: CUDA error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasGemmEx(h)`", RESTART, None),
        ("RuntimeError: miopenStatusUnknownError", RESTART, None),
        ("RuntimeError: No HIP GPUs are available", RESTART, None),
        ("xe 0000:4d:00.0: [drm] CRITICAL: Xe has declared device 0000:4d:00.0 as wedged.", DRAIN, "0000:4d:00.0"),
        ("habanalabs 0000:33:00.0: Device heartbeat failed!", DRAIN, "0000:33:00.0"),
    ],
)
def test_faults_of_amd_and_intel_are_told_by_driver_and_runtime(
    text: str, follows: Follows, subject: str | None
) -> None:
    """Drivers amdgpu (Linux 5.4 to 6.14), xe and habanalabs; ROCr, older and newer; HIP, hipBLAS, MIOpen."""
    assert told(text) == [(follows, subject)]


@pytest.mark.parametrize(
    ("text", "follows"),
    [
        ("nvme0n1: Read(0x2) @ LBA 1234, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR ", WATCH),
        ("nvme nvme0: frozen state error detected, reset controller", WATCH),
        ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: be00000000800400", WATCH),
        ("[Hardware Error]: Uncorrected, software restartable error.", WATCH),
        ("pcieport 0000:16:02.0: AER: Multiple Uncorrectable (Fatal) error message received from 0000:17:00.0", DRAIN),
        ("ceph: mds0 hung", WATCH),
    ],
)
def test_faults_of_hosts_are_told_in_each_kernel_s_words(text: str, follows: Follows) -> None:
    """Linux: nvme with CONFIG_NVME_VERBOSE_ERRORS, mce and mce_amd, AER with several errors at once, ceph."""
    assert [each for each, _ in told(text)] == [follows]
