"""Accelerators of the domains: what is published of them, and how fast they are on kinds of work.

Figures are those of ``accelerator_facts`` (stas00/ml-engineering ``compute/accelerator`` [744d01e], FlagOpen/FlagPerf
``base/benchmarks`` [1b5a030], citsjtu2020/LLM-Prof ``hardware_spec.md``, wangzy0327/hblas-bench ``DCU-bench.md``, the
vendor's announcement for the MLU370-X8). Public figures of Chinese accelerators contradict each other: for the Ascend
910B the peak is what follows from the measured 304 TFLOP/s at the A100's share of its peak, and its memory bandwidth is
of low confidence. Assumptions of the usual order are the power of the K100 AI and the H20, and the peak of the BI150.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.scheduling.topology.fitted import fitted
from kuayu_conformance.testbed.scheduling.values import DeviceType, JobKind

REFERENCE = "A800"
"""Device whose index is one for every profile."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is published.

    Attributes:
        peak: FLOP/s of the matrix units in bf16, dense.
        sustained: FLOP/s of the best product of matrices that was measured, or 0.85 of the peak where none was.
        bandwidth: Bytes a second from its memory.
        memory: Bytes.
        power: Watts that it may draw.
        domestic: Whether it is made by a Chinese vendor.
    """

    peak: float
    sustained: float
    bandwidth: float
    memory: float
    power: float
    domestic: bool = False


_USUAL = 0.85
"""Share of the peak that is sustained where nobody measured: 0.80 H100, 0.83 C550, 0.87 A100, 0.92 A800."""

SHEETS: Mapping[str, Sheet] = MappingProxyType(
    {
        "H800": Sheet(989e12, 794.5e12, 3350e9, 80e9, 700.0),
        "A800": Sheet(312e12, 286e12, 2039e9, 80e9, 400.0),
        "H20": Sheet(148e12, _USUAL * 148e12, 4022e9, 96e9, 400.0),
        "Ascend 910B": Sheet(350e12, 304.277e12, 768e9, 64e9, 350.0, domestic=True),
        "BI150": Sheet(_USUAL**-1 * 196.77e12, 196.77e12, 590.01e9, 64e9, 350.0, domestic=True),
        "DCU K100 AI": Sheet(196e12, _USUAL * 196e12, 896e9, 64e9, 350.0, domestic=True),
        "MLU370-X8": Sheet(96e12, _USUAL * 96e12, 614.4e9, 48e9, 250.0, domestic=True),
    }
)
"""Published figures by device. The H800 computes as the H100 does, whose product of matrices was measured."""

PROFILES: tuple[str, ...] = tuple(kind.value for kind in JobKind)
"""Task profiles: one for each kind of job."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the time that a task takes on the reference device; they sum to one.

    Attributes:
        compute: In products of matrices.
        memory: Waiting for memory.
        rest: What no device shortens.
    """

    compute: float
    memory: float
    rest: float


def weights(profile: str) -> Weights:
    """Weights of a profile.

    Those of fine-tuning (BERT) and of training (vision, speech, translation) are fitted to measured throughputs, see
    ``fitting``. Those of pre-training and serving are assumptions: large models spend most of their time in products of
    matrices, decoding waits for memory.

    Raises:
        KeyError: There is no such profile.
    """
    return {
        JobKind.PRETRAINING: Weights(0.8, 0.2, 0.0),
        JobKind.FINE_TUNING: Weights(*fitted().weights["fine-tuning"]),
        JobKind.TRAINING: Weights(*fitted().weights["training"]),
        JobKind.SERVING: Weights(0.3, 0.7, 0.0),
    }[JobKind(profile)]


def law(name: str, profile: str) -> float:
    """Speed of a device on a profile over that of the reference device: the inverse of the sum of its times."""
    if name == REFERENCE:
        return 1.0
    device, reference, share = SHEETS[name], SHEETS[REFERENCE], weights(profile)
    time = share.compute * reference.sustained / device.sustained
    return 1.0 / (time + share.memory * reference.bandwidth / device.bandwidth + share.rest)


def devices(names: frozenset[str], noise: float, seed: str) -> dict[str, DeviceType]:
    """Some accelerators with their true indices, around the law by what is hidden from data sheets.

    Args:
        names: Which.
        noise: Standard deviation of the logarithm of an index; the reference device has none.
        seed: What the noise is drawn from.

    Raises:
        KeyError: There is no such device.
    """
    made = {}
    for name in sorted(names):
        sheet = SHEETS[name]
        index = {profile: law(name, profile) * _hidden(name, profile, noise, seed) for profile in PROFILES}
        made[name] = DeviceType(name, sheet.memory, sheet.peak, index, sheet.power)
    return made


def _hidden(name: str, profile: str, noise: float, seed: str) -> float:
    if name == REFERENCE:
        return 1.0
    chance = Chance(seed, f"speed of {name} on {profile}")
    bell = sum(chance.fraction() for _ in range(12)) - 6.0  # mean 0, deviation 1, and no logarithm
    return exponential(noise * bell)
