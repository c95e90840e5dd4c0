"""Recommendation: rows gathered from large tables, and a small network, in half precision.

Model: X. He et al., "Neural Collaborative Filtering", WWW 2017 (NeuMF): a product of factors beside a network of layers
256, 256, 128, 64, with 64 factors. Tables for 131 072 users and 32 768 items, together 126 MB, more than the caches of
accelerators hold. A sample is a user, an item and whether they met; a step has 32 768 samples drawn evenly. Gradients
of the tables are dense and the optimiser is Adam, as in the counterpart. The step is never cut into parts, for each
would make gradients of whole tables. Bound by memory: latency of the gathers, bandwidth of the optimiser.
"""

from functools import partial
from itertools import pairwise
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from kuayu.engine.workloads.workload import Arithmetic, Workload

USERS: Final = 131_072
ITEMS: Final = 32_768
FACTORS: Final = 64
LAYERS: Final = (256, 256, 128, 64)

# Users' and items' halves enter the first layer side by side; the last layer sees its outcome beside the factors.
_PRODUCTS: Final = (*pairwise(LAYERS), (LAYERS[-1] + FACTORS, 1))
_PARAMETERS: Final = (USERS + ITEMS) * (FACTORS + LAYERS[0] // 2) + sum(i * o + o for i, o in _PRODUCTS)


class _Recommendation(nn.Module):
    """NeuMF and its loss."""

    def __init__(self) -> None:
        super().__init__()
        row = FACTORS + LAYERS[0] // 2
        self.users, self.items = nn.Embedding(USERS, row), nn.Embedding(ITEMS, row)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.01)
        layers = [part for i, o in _PRODUCTS[:-1] for part in (nn.Linear(i, o), nn.ReLU(inplace=True))]
        self.layers, self.last = nn.Sequential(*layers), nn.Linear(*_PRODUCTS[-1])

    def forward(self, users: Tensor, items: Tensor, met: Tensor) -> Tensor:
        """Cross entropy; all three have the shape (samples,)."""
        user, item = self.users(users), self.items(items)
        product = user[:, :FACTORS] * item[:, :FACTORS]
        deep = self.layers(torch.cat((user[:, FACTORS:], item[:, FACTORS:]), 1))
        chance = self.last(torch.cat((product, deep), 1)).squeeze(1)
        return functional.binary_cross_entropy_with_logits(chance.float(), met)


def _data(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    users, items = (torch.randint(size, (samples,), generator=generator) for size in (USERS, ITEMS))
    return users, items, torch.randint(2, (samples,), generator=generator).float()


HALF: Final = Workload(
    name="kuayu-recommendation-half-1",
    counterpart="Neural collaborative filtering (NCF), fp16",
    family="recommendation",
    arithmetic=Arithmetic.half,
    batch=32_768,
    smallest=32_768,
    work=3 * sum(2 * i * o for i, o in _PRODUCTS),
    memory_traffic=1.145e5,
    parameters=_PARAMETERS,
    model=_Recommendation,
    data=_data,
    optimiser=partial(torch.optim.Adam, lr=1e-3),
)
