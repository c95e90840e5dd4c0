"""Lines by documented forms, one for each fault of the catalogue at least, with what they tell.

Identifiers are made up. Each line is written from the source that the catalogue names for its fault.
"""

LINES: dict[str, tuple[str, ...]] = {
    "sxid": ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore MCTO (First)",),
    "gpu.bus": (
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "NVRM: The NVIDIA GPU 0000:3b:00.0 has fallen off the bus; its GPU is lost",
    ),
    "gpu.init": ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:894)",),
    "cuda.ecc": ("RuntimeError: CUDA error: uncorrectable ECC error encountered",),
    "cuda.nvlink": ("CUDA error: uncorrectable NVLink error detected during the execution",),
    "job.memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB",
        "RuntimeError: NPU out of memory. Tried to allocate 22.00 MiB (NPU 0; 60.97 GiB total capacity)",
    ),
    "npu.memory": ("EL0004: [PID: 553] Failed to allocate memory.",),
    "nccl.timeout": (
        "[E ProcessGroupNCCL.cpp:607] [Rank 12] Watchdog caught collective operation timeout: WorkNCCL(1)",
    ),
    "nccl.remote": ("ncclRemoteError: A call failed possibly due to a network error or a remote process exiting",),
    "nccl.completion": (
        "gpu7:1:2 [3] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<1> with error 12, vendor err 129",
    ),
    "nccl.cuda": ("ncclUnhandledCudaError: Call to CUDA function failed.",),
    "nccl.system": ("NCCL error in: NCCLUtils.hpp:275, unhandled system error, NCCL version 2.21.5",),
    "nccl.internal": ("ncclInternalError: Internal check failed.",),
    "nccl.usage": ("ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",),
    "nccl.warning": ("gpu7:77:88 [0] init.cc:20 NCCL WARN Duplicate GPU detected : rank 0 and rank 1",),
    **{f"hccl.EI{n:04}": (f"EI{n:04}: [PID: 77] 2026-11-22-10:00:00 told by HCCL",) for n in (*range(1, 6), 7, 8)},
    **{f"hccl.EI{n:04}": (f"EI{n:04}: [PID: 77] 2026-11-22-10:00:00 told by HCCL",) for n in range(9, 21)},
    "hccl.EI0006": ("[ERROR] HCCL(39,all_reduce):[hccl_socket_manager.cc:816] wait socket establish timeout, role[0]",),
    "hccl.lost": ("Cluster Exception Location[IP/ID]:[127.10.0.1/1], ExceptionType:[Heartbeat Lost Occurred]",),
    "hccl.stuck": ("Cluster Exception Location[IP/ID]:[127.10.0.1/1], ExceptionType:[Stuck Occurred]",),
    "npu.ecc": ("[fault_manager] event_id: [0x80E01809]",),
    "npu.timeout": ("EE1002: Stream synchronize timeout. rtDeviceSynchronize execute failed",),
    "npu.core": ("[Error]: The vector core execution is abnormal.",),
    "amd.ecc": ("amdgpu 0000:03:00.0: amdgpu: 1 uncorrectable hardware errors detected in umc block",),
    "amd.reset": ("amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",),
    "cuda.program": ("RuntimeError: CUDA error: an illegal memory access was encountered",),
    "host.memory.cgroup": ("Memory cgroup out of memory: Killed process 4321 (python) total-vm:1kB",),
    "host.memory": ("Out of memory: Killed process 4321 (python) total-vm:1kB, anon-rss:1kB",),
    "host.machine-check": ("Kernel panic - not syncing: Fatal machine check",),
    "host.panic": ("Kernel panic - not syncing: Attempted to kill init!",),
    "host.ecc.uncorrected": ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0",),
    "host.ecc.corrected": ("EDAC MC1: 3 CE memory scrubbing error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0",),
    "host.machine-check.logged": ("mce: [Hardware Error]: Machine check events logged",),
    "pcie.uncorrected": (
        "pcieport 0000:00:01.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer",
    ),
    "pcie.nonfatal": ("pcieport 0000:00:01.0: AER: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Data Link",),
    "pcie.corrected": ("pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",),
    "nic.firmware": (
        "mlx5_core 0000:3b:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count",
    ),
    "nic.queue": ("NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out",),
    "link.down": (
        "mlx5_core 0000:3b:00.0 ens1f0np0: Link down",
        "igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down",
        "bond0: (slave eth1): link status definitely down for interface eth1, disabling it",
    ),
    "link.up": ("mlx5_core 0000:3b:00.0 ens1f0np0: Link up",),
    "storage.nfs": ("nfs: server 10.1.2.3 not responding, still trying",),
    "storage.stale": ("OSError: [Errno 116] Stale file handle: '/data/shard-7'",),
    "storage.lustre.evicted": (
        "LustreError: 167-0: fs-OST0000-osc: This client was evicted by fs-OST0000; in progress",
    ),
    "storage.lustre.lost": (
        "Lustre: fs: Connection to fs-OST0000 (at 10.0.0.1@o2ib) was lost; in progress operations wait",
    ),
    "storage.lustre": ("LustreError: 11-0: fs-MDT0000-mdc: operation mds_connect failed with -107",),
    "storage.readonly": ("EXT4-fs (sda1): Remounting filesystem read-only",),
    "storage.ext4": ("EXT4-fs error (device sda1): ext4_lookup:1785: inode #2: comm ls: deleted inode referenced",),
    "storage.xfs": ("XFS (dm-0): Corruption of in-memory data detected. Shutting down filesystem",),
    "storage.nvme": ("nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10",),
    "storage.disk": ("blk_update_request: I/O error, dev sda, sector 123456",),
    "storage.input-output": ("OSError: [Errno 5] Input/output error: '/data/shard-7'",),
    "storage.full": ("OSError: [Errno 28] No space left on device",),
    "host.lockup": ("watchdog: Watchdog detected hard LOCKUP on cpu 3",),
    "host.soft-lockup": ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:77]",),
    "host.hung": ("INFO: task python:77 blocked for more than 120 seconds.",),
    "xid": ("NVRM: Xid (PCI:0000:05:00): 79, pid=77, name=python, GPU has fallen off the bus.",),
}

CALM = (
    "ata3: SATA link down (SStatus 0 SControl 300)",
    "nfs: server 10.1.2.3 OK",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
    "NVRM: Xid (PCI:0000:05:00): abc, pid=77",
    "gpu7:1:2 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>",
    "EDAC MC: Ver: 3.0.0",
    "java.lang.OutOfMemoryError: Java heap space",
    "The watchdog of the room is not responding to its name",
    "step 1200 loss 2.31 grad_norm 0.4 tokens/s 12000",
    "PCIe Bus Error reporting is enabled",
    "CUDA out of the box",
    "we talked about Xid 79 at lunch",
)
"""Lines that tell no fault, though some have words of faults."""
