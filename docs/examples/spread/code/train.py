"""One data-parallel training over several domains that agree every so many steps: local SGD with an outer step.

Within a domain, gradients are averaged at every step. Between domains nothing is sent until KUAYU_SYNC_PERIOD steps
are over; then the way that each domain has gone since is averaged, and taken as the gradient of an outer step with
Nesterov momentum (A. Douillard et al., "DiLoCo", arXiv:2311.08105, with its outer rate and momentum). In one domain,
or where KUAYU_SPLIT_MODE is synchronous, it is ordinary data-parallel training.

It needs PyTorch and nothing of Kuayu: all that it knows it has from its environment. Rank 0 keeps the checkpoint, and
hands it to the others, which need no files in common with it. Steps and checkpoints are reported by printed lines.
The model is small, and its data follow from a seed, so that nothing has to be downloaded.
"""

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn

STEPS = int(os.environ.get("STEPS", "2000"))
PAUSE = float(os.environ.get("STEP_SECONDS", "0"))
WIDTH, BATCH, SEED = 32, 64, 7
OUTER_RATE, MOMENTUM = 0.7, 0.9

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DOMAIN = os.environ.get("KUAYU_DOMAIN", "here")
FIRST = int(os.environ.get("KUAYU_RANK_OFFSET", "0"))
PERIODIC = os.environ.get("KUAYU_SPLIT_MODE") == "periodic"
PERIOD = int(os.environ.get("KUAYU_SYNC_PERIOD", "1")) if PERIODIC else 1
CHECKPOINT = Path(os.environ["KUAYU_CHECKPOINT"])


def domain_group() -> distributed.ProcessGroup:
    """The ranks of this domain. All ranks take part in making the group of each domain, in the same order."""
    firsts = [torch.zeros(1, dtype=torch.int64) for _ in range(WORLD)]
    distributed.all_gather(firsts, torch.tensor([FIRST]))
    begins = sorted({int(first) for first in firsts})
    groups = {
        begin: distributed.new_group(list(range(begin, end)))
        for begin, end in zip(begins, [*begins[1:], WORLD], strict=True)
    }
    return groups[FIRST]


def averaged(tensor: Tensor, group: distributed.ProcessGroup | None, count: int) -> Tensor:
    """The mean of a tensor over some ranks."""
    total = tensor.clone()
    distributed.all_reduce(total, group=group)
    return total / count


def flat(model: nn.Module) -> Tensor:
    """All parameters in a row."""
    return nn.utils.parameters_to_vector(model.parameters()).detach().clone()


def batch(step: int) -> tuple[Tensor, Tensor]:
    """The part of a step's batch that this rank computes: points, and what a function says of them."""
    generator = torch.Generator().manual_seed(SEED + step * 100_003 + RANK)
    points = torch.randn(BATCH, WIDTH, generator=generator)
    return points, torch.sin(points[:, :4].sum(1, keepdim=True))


def digest(values: Tensor) -> str:
    """A few characters that differ where parameters do."""
    return hashlib.sha256(values.numpy().tobytes()).hexdigest()[:12]


class OuterStep:
    """What domains agree on: the parameters of the last outer step, and its momentum.

    Args:
        values: Parameters at the beginning, the same on all ranks.
    """

    def __init__(self, values: Tensor) -> None:
        self.values, self.momentum = values, torch.zeros_like(values)

    def take(self, model: nn.Module) -> None:
        """Have the model go on from where all domains together have come to."""
        way = averaged(self.values - flat(model), None, WORLD)
        self.momentum = MOMENTUM * self.momentum + way
        self.values = self.values - OUTER_RATE * (way + MOMENTUM * self.momentum)
        nn.utils.vector_to_parameters(self.values.clone(), model.parameters())


def main() -> None:
    """Train from the last checkpoint on."""
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    distributed.init_process_group("gloo")  # where, and as whom, it reads from the environment
    group = domain_group()
    inside = distributed.get_world_size(group)
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.Tanh(), nn.Linear(64, 1))
    inner, outer, step = torch.optim.AdamW(model.parameters(), lr=3e-3), OuterStep(flat(model)), 0
    last = CHECKPOINT / "last.pt"
    shared: list[dict[str, Any] | None] = [torch.load(last) if RANK == 0 and last.exists() else None]
    distributed.broadcast_object_list(shared, src=0)
    if (state := shared[0]) is not None:
        step, outer.values, outer.momentum = state["step"], state["values"], state["momentum"]
        nn.utils.vector_to_parameters(outer.values.clone(), model.parameters())
        inner.load_state_dict(state["inner"])  # that of the first domain, as the number of domains may be another one
    print(f"rank {RANK} of {WORLD} in {DOMAIN}, process {os.getpid()}, from step {step}, period {PERIOD}", flush=True)
    while step < STEPS:
        step += 1
        points, wanted = batch(step)
        inner.zero_grad()
        loss = nn.functional.mse_loss(model(points), wanted)
        loss.backward()
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.grad = averaged(parameter.grad, group if PERIODIC else None, inside if PERIODIC else WORLD)
        inner.step()
        time.sleep(PAUSE)
        if step % PERIOD and step < STEPS:
            continue
        before = digest(flat(model))
        if PERIODIC:
            outer.take(model)
        else:
            outer.values = flat(model)
        mean = float(averaged(loss.detach(), None, WORLD))
        print(f"agreed at step {step}, loss {mean:.5f}, parameters {before} to {digest(flat(model))}", flush=True)
        if RANK == 0:
            CHECKPOINT.mkdir(parents=True, exist_ok=True)
            state = {"step": step, "values": outer.values, "momentum": outer.momentum, "inner": inner.state_dict()}
            torch.save(state, CHECKPOINT / "fresh.pt")
            (CHECKPOINT / "fresh.pt").replace(last)
            print(f"kuayu step {step}\nkuayu checkpoint {step}", flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
