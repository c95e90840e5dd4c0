"""Operations and memory traffic of a workload, counted operator by operator.

``python -m kuayu.engine.workloads.counting`` prints what the workloads state, beside what is counted here.

Operations are those of PyTorch's own counter, which knows matrix products and convolutions, but not attention on
processors. Traffic takes every operator to read what it is given and to write what it makes, once, as it does when
nothing is fused and no cache helps; views move nothing, and a gather reads the rows that it takes. Both grow linearly
with the samples, so that two small counts give that of the whole batch, the optimiser's share among its samples.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from kuayu.engine.workloads.measurement import Training
from kuayu.engine.workloads.workload import Workload

_MOVE_NOTHING: Final = frozenset({"device", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
_GATHERS: Final = frozenset({"embedding"})


class Count(NamedTuple):
    """For one sample: floating-point operations and bytes."""

    work: float
    memory_traffic: float


def count(workload: Workload) -> Count:
    """Count one training step of ``workload``'s batch on the processors."""
    samples = workload.smallest
    (work, few), (_, more) = _counted(workload, samples), _counted(workload, 2 * samples)
    per_sample = (more - few) / samples
    return Count(work / samples, per_sample + (few - per_sample * samples) / workload.batch)


def _counted(workload: Workload, samples: int) -> tuple[int, int]:
    """Operations and bytes of a step; one before it lets the optimiser make its state.

    Tensors have shapes and no numbers here, so that nothing is computed.
    """
    with FakeTensorMode():
        training = Training(workload, "cpu")
        training.feed(samples)
        training.step()
        with FlopCounterMode(display=False) as operations, _Traffic() as traffic:
            training.step()
    return operations.get_total_flops(), traffic.bytes


class _Traffic(TorchDispatchMode):
    """Adds up the bytes that operators read and write."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operator and count it."""
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if not func.is_view and name not in _MOVE_NOTHING:
            given = args[1:] if name in _GATHERS else args
            self.bytes += _bytes((given, kwargs)) + _bytes(result) * (2 if name in _GATHERS else 1)
        return result


def _bytes(tree: Any) -> int:
    """Bytes of all tensors in ``tree``."""
    return sum(leaf.numel() * leaf.element_size() for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def main() -> None:
    """Print a line for each workload."""
    from kuayu.engine.workloads.workload import WORKLOADS, load

    print("workload  FLOP: stated, counted  By: stated, counted")  # noqa: T201 - a command
    for name in WORKLOADS:
        workload = load(name)
        work, traffic = count(workload)
        figures = f"{workload.work:.6g} {work:.6g}  {workload.memory_traffic:.4g} {traffic:.4g}"
        print(f"{workload.name}  {figures}")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
