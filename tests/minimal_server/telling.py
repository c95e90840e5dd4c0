"""What a line of a log tells: whether a node, or a device of it, has to be reset or repaired.

Forms are those that vendors document: NVIDIA for Xid and SXid, CUDA for its errors, AMD and Huawei for ECC, and the
Linux kernel for the host.
"""

import re

XIDS = frozenset({46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158, 167, 169})
"""Xids after which a device has to be reset, a machine started anew or something to be looked after."""

MEMORY_XIDS = frozenset({171, 172})
"""Those of memory that ECC could not correct, told apart by where it is."""

LINK_XIDS = frozenset(range(144, 151))
"""Those of links, which say themselves whether they are fatal."""

CHANGED_XID = 154
"""The one that tells what has to be done from now on, which may be nothing."""

XID = re.compile(r"NVRM: Xid \([^)]{1,80}\): ([0-9]{1,5})\b(.*)", re.DOTALL)
SXID = re.compile(r"SXid \([^)]{1,80}\): ([0-9]{1,6}), Fatal\b", re.IGNORECASE)
TO_NOTHING = re.compile(r"\bto [^()]{1,40}\(None\)")
TO_SOMETHING = re.compile(r"\bto [^()]{1,40}\([^()]{1,40}\)")

WORDS = (
    ("gpu.bus", r"(NVRM|nvidia).*(fallen off the bus|lost from the bus|GPU is lost)"),
    ("gpu.init", r"NVRM: GPU .*: rm_?init_?adapter failed"),
    ("cuda.ecc", r"uncorrectable ECC error encountered|cuda_?error_?ecc_?uncorrectable"),
    ("cuda.nvlink", r"uncorrectable NVLink error|cuda_?error_?nvlink_?uncorrectable"),
    ("amd.ecc", r"amdgpu .*uncorrectable hardware errors detected"),
    ("npu.ecc", r"\b0x80E01809\b"),
    ("host.ecc.uncorrected", r"EDAC MC[0-9]+: ([0-9]+ )?UE\b"),
    ("host.panic", r"Kernel panic - not syncing|fatal machine check"),
    ("host.lockup", r"\bhard lock-?up on cpu"),
    ("pcie.uncorrected", r"PCIe Bus Error: severity=Uncorrect[a-z]* \(Fatal\)"),
    ("nic.firmware", r"mlx5_core .*(health poll failed|will cause a leak of a command resource|health compromised)"),
    ("storage.readonly", r"Remounting filesystem read-only"),
    ("storage.xfs", r"XFS \(.*shutting down filesystem"),
)
"""What else tells a fault, and the form of its line."""

FORMS = tuple((code, re.compile(form, re.IGNORECASE)) for code, form in WORDS)


def told_by(text: str) -> str:
    """Name of the fault that a line tells; empty where it tells none that needs a reset or repair."""
    xid = XID.search(text)
    if xid is not None:
        return f"xid.{int(xid[1])}" if is_serious(int(xid[1]), xid[2]) else ""
    sxid = SXID.search(text)
    if sxid is not None:
        return f"sxid.{sxid[1]}"
    return next((code for code, form in FORMS if form.search(text)), "")


def is_serious(number: int, rest: str) -> bool:
    """Whether something has to be done after an Xid, by its number and by what its line adds."""
    if number in LINK_XIDS:
        return re.search(r"non-?fatal", rest, re.IGNORECASE) is None
    if number == CHANGED_XID:
        return TO_SOMETHING.search(rest) is not None and TO_NOTHING.search(rest) is None
    return number in XIDS | MEMORY_XIDS
