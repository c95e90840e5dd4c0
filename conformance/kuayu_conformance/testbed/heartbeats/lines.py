"""Lines of logs, by documented forms: those that tell that a device has to be reset, and what logs hold otherwise.

Sources: NVIDIA, "Analyzing Xid Errors with the Xid Catalog" and its Fabric Manager user guide (SXid); Huawei, CANN
troubleshooting (event 0x80E01809: several bits of HBM); the Linux kernel's own forms. Addresses are made up.
"""

from kuayu_conformance.testbed.chance import Chance

_GRAVE = (
    "NVRM: Xid (PCI:0000:{bus}:00): 79, pid={pid}, name=python3, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:{bus}:00): 48, pid={pid}, An uncorrectable double bit error (DBE) has been detected on GPU",
    "NVRM: Xid (PCI:0000:{bus}:00): 95, pid={pid}, name=python3, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    "NVRM: Xid (PCI:0000:{bus}:00): 119, pid={pid}, Timeout after 6s of waiting for RPC response from GPU{small} GSP!",
    "nvidia-nvswitch2: SXid (PCI:0000:{bus}:00.0): 20034, Fatal, Link 28 LTSSM Fault Up",
    "[fault_manager] dev_id: [{small}], event_id: [0x80E01809], HBM multi-bit ECC error",
)

_HARMLESS = (
    "NVRM: Xid (PCI:0000:{bus}:00): 31, pid={pid}, name=python3, Ch 00000008, MMU Fault: ENGINE GRAPHICS faulted",
    "NVRM: Xid (PCI:0000:{bus}:00): 13, pid={pid}, name=python3, Graphics SM Warp Exception: Out Of Range Address",
    "NVRM: Xid (PCI:0000:{bus}:00): 43, pid={pid}, name=python3, Ch 00000008",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {small} has 79 GiB",
    "Memory cgroup out of memory: Killed process {pid} (python3) total-vm:51234kB, anon-rss:40960kB",
    "systemd[1]: Started Session {pid} of user trainer.",
    "systemd[1]: logrotate.service: Deactivated successfully.",
    "sshd[{pid}]: Accepted publickey for trainer from 10.0.{small}.17 port 50514 ssh2",
    "python3[{pid}]: step {pid} loss 2.31 grad_norm 0.42",
    "nvidia-nvswitch1: SXid (PCI:0000:{bus}:00.0): 19084, Non-fatal, Link 29 AN1 Heartbeat Timeout Error (First)",
    "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
    "EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0",
    "ops[{pid}]: ticket closed, the board whose GPU had fallen off the bus was replaced last week",
    "node_exporter: the watchdog of rack {small} has been told to reset its counters",
)


def grave(chance: Chance) -> str:
    """A line after which a device has to be reset, or a node started anew."""
    return _filled(chance.pick(_GRAVE), chance)


def harmless(chance: Chance) -> str:
    """A line that tells nothing of the kind, though it may have words of faults."""
    return _filled(chance.pick(_HARMLESS), chance)


def _filled(form: str, chance: Chance) -> str:
    bus = f"{16 * (1 + chance.below(15)) + chance.below(16):02x}"
    return form.format(bus=bus, pid=1000 + chance.below(90_000), small=chance.below(8))
