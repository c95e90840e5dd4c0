"""How training is laid out over devices: one layout, or thousands as columns."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum, StrEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Recompute(IntEnum):
    """What the backward pass computes once more instead of keeping it (Korthikanti et al., arXiv:2205.05198)."""

    NONE = 0
    SELECTIVE = 1
    """The scores of attention. Of latent attention what DeepSeek-V3 computes again (arXiv:2412.19437, section 3.2.3;
    Megatron-Core's ``--recompute-modules mla_up_proj layernorm moe_act``): up-projections, normalisations and
    activation functions."""
    FULL = 2
    """Every layer from its input."""


class Sharding(IntEnum):
    """What data parallelism divides rather than repeats (stages of ZeRO, arXiv:1910.02054)."""

    NOTHING = 0
    OPTIMIZER = 1
    GRADIENTS = 2
    PARAMETERS = 3
    """Stage 3, fully sharded data parallelism: parameters are gathered for every micro-batch."""


class Outermost(StrEnum):
    """The dimension whose neighbours lie farthest apart, in other domains where there are several."""

    PIPELINE = "pipeline"
    DATA = "data"


@dataclass(frozen=True)
class Strategy:
    """One layout.

    Attributes:
        data: Replicas; the product with tensor, context and pipeline is the number of devices.
        tensor: Devices over which a layer's matrices are divided.
        pipeline: Stages.
        virtual: Pieces of each stage (interleaved schedule).
        first_layers: Layers of the first stage where it is stated; -1 where stages share layers evenly.
        last_layers: Layers of the last stage, likewise, without those of further tokens.
        context: Devices over which a sequence is divided.
        expert: Devices, of data × context, over which the experts of a layer are divided.
        sequence_parallel: What lies between the matrices is divided over the tensor devices too.
        sharding: Stage of ZeRO.
        recompute: What is computed once more.
        micro_batch: Sequences of a micro-batch.
        global_batch: Sequences of a step.
        precision: Number format of the matrix multiplications of layers; a key of a hardware's peaks.
        fused_attention: Scores stay in the device's fast memory and masked ones are skipped (FlashAttention).
        attention_speed: Speed of its fused attention in that of FlashAttention-2.
        overlap_data: Exchanges of data parallelism run beside the computation.
        overlap_tensor: So do those of tensor parallelism.
        overlap_expert: So do those of expert parallelism.
        dispatch_precision: Number format of what is sent to experts, and of its gradients; what comes back has 16 bits.
        bidirectional: Micro-batches enter the pipeline at both ends, and a device holds the two stages that lie as far
            from either (DualPipe, arXiv:2412.19437, section 3.2.1).
        scattered: A message between stages is divided over the tensor devices (arXiv:2104.04473, section 4.1).
        gradient_bytes: Bytes of a gradient as it is added up.
        exchanged_bytes: Bytes of a gradient as it is sent.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    virtual: int = 1
    context: int = 1
    expert: int = 1
    sequence_parallel: bool = False
    sharding: Sharding = Sharding.NOTHING
    recompute: Recompute = Recompute.NONE
    micro_batch: int = 1
    global_batch: int = 1
    precision: str = "bf16"
    fused_attention: bool = True
    attention_speed: float = 1.0
    overlap_data: bool = True
    overlap_tensor: bool = False
    overlap_expert: bool = False
    dispatch_precision: str = "bf16"
    bidirectional: bool = False
    scattered: bool = True
    gradient_bytes: float = 4.0
    exchanged_bytes: float = 4.0
    outermost: Outermost = Outermost.PIPELINE
    first_layers: int = -1
    last_layers: int = -1

    @property
    def devices(self) -> int:
        """Devices it takes."""
        return self.data * self.tensor * self.pipeline * self.context

    def described(self) -> str:
        """The same in a few signs, such as ``D8 T4 P12 ×2 ZeRO-1 full b2``."""
        parts = [f"D{self.data}", f"T{self.tensor}", f"P{self.pipeline}"]
        parts[2] += f"×{self.virtual}" if self.virtual > 1 else ""
        parts += [f"C{self.context}"] if self.context > 1 else []
        parts += [f"E{self.expert}"] if self.expert > 1 else []
        parts += [f"ZeRO-{int(self.sharding)}"] if self.sharding else []
        parts += [self.recompute.name.lower()] if self.recompute else []
        return " ".join([*parts, f"b{self.micro_batch}"])


COLUMNS = (
    "data",
    "tensor",
    "pipeline",
    "virtual",
    "context",
    "expert",
    "sharding",
    "recompute",
    "micro_batch",
    "global_batch",
)


@dataclass(frozen=True)
class Layouts:
    """N layouts that differ in whole numbers only; all columns have N rows.

    Attributes:
        common: What they have in common; its whole numbers do not count.
    """

    data: Whole
    tensor: Whole
    pipeline: Whole
    virtual: Whole
    context: Whole
    expert: Whole
    sharding: Whole
    recompute: Whole
    micro_batch: Whole
    global_batch: Whole
    common: Strategy

    @classmethod
    def of(cls, strategies: Sequence[Strategy]) -> Self:
        """Columns of strategies that are alike but for their whole numbers.

        Raises:
            ValueError: If there are none, or they differ in something else.
        """
        if not strategies:
            raise ValueError("no layout")
        plain = {replace(strategy, **cls.neutral()) for strategy in strategies}
        if len(plain) > 1:
            raise ValueError("layouts of one table differ in whole numbers only")
        columns = {name: np.array([int(getattr(strategy, name)) for strategy in strategies]) for name in COLUMNS}
        return cls(**columns, common=plain.pop())

    @staticmethod
    def neutral() -> dict[str, Any]:
        """Whole numbers that do not count."""
        return {
            name: (Sharding.NOTHING if name == "sharding" else Recompute.NONE if name == "recompute" else 1)
            for name in COLUMNS
        }

    def __len__(self) -> int:
        return len(self.data)

    def only(self, rows: Whole | Flags) -> "Layouts":
        """Some of the rows."""
        return Layouts(**{name: getattr(self, name)[rows] for name in COLUMNS}, common=self.common)

    def row(self, place: int) -> Strategy:
        """One of the rows."""
        values: dict[str, Any] = {name: int(getattr(self, name)[place]) for name in COLUMNS}
        values |= {"sharding": Sharding(values["sharding"]), "recompute": Recompute(values["recompute"])}
        return replace(self.common, **values)

    @property
    def devices(self) -> Whole:
        """Devices of each."""
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def micro_batches(self) -> Floats:
        """Micro-batches of each replica in a step; at least one."""
        return np.maximum(1.0, self.global_batch / (self.data * self.micro_batch))

    @property
    def divided(self) -> Whole:
        """Over how many devices that is divided which lies between the matrices (sequence parallelism)."""
        return self.tensor if self.common.sequence_parallel else np.ones_like(self.tensor)


assert {field.name for field in fields(Layouts)} == {*COLUMNS, "common"}
