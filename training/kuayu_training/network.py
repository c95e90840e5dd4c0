"""The networks of ``kuayu.perception.recognition.network`` in PyTorch, to be trained; same names, same results.

Arrays have one row for each node here; several snapshots of one world are stacked along the rows.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from kuayu.perception.recognition.features import OWN
from kuayu.perception.recognition.groups import Groups
from kuayu.perception.recognition.network import ROUNDS, Ties
from kuayu.perception.recognition.relations import RELATED
from kuayu.perception.recognition.values import WORKING, Floats

HIDDEN, HIDDEN_DOMAIN, HIDDEN_PLAIN = 48, 16, 112


@dataclass(frozen=True, slots=True)
class Stack:
    """Groups of several snapshots of one world, one after the other.

    Attributes:
        member: Rows of the pairs, sorted by snapshot and group.
        group: Group of each pair.
        sizes: Members of each group.
        share: One over the number of groups of each row, (rows, 1).
    """

    member: Tensor
    group: Tensor
    sizes: Tensor
    share: Tensor

    @classmethod
    def of(cls, groups: Groups, snapshots: int) -> "Stack":
        """The same groups in each of so many snapshots."""
        shift = np.arange(snapshots)[:, None]
        member = torch.from_numpy((groups.member + shift * groups.nodes).reshape(-1))
        group = torch.from_numpy((groups.group + shift * len(groups.sizes)).reshape(-1))
        sizes = torch.from_numpy(np.tile(groups.sizes, snapshots))
        return cls(member, group, sizes, torch.from_numpy(np.tile(groups.share, snapshots))[:, None])

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the members of each group."""
        summed = values.new_zeros((len(self.sizes), values.shape[1])).index_add(0, self.group, values[self.member])
        return summed / self.sizes[:, None]

    def maximum(self, values: Tensor) -> Tensor:
        """Largest entries among the members of each group."""
        if not len(self.sizes):
            return values[:0]
        return torch.segment_reduce(values[self.member], "max", lengths=self.sizes)

    def back(self, values: Tensor) -> Tensor:
        """Mean over the groups of each row."""
        summed = values.new_zeros((len(self.share), values.shape[1])).index_add(0, self.member, values[self.group])
        return summed * self.share


class Graph(nn.Module):
    """Message passing over families and domains."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(len(OWN) + len(RELATED), HIDDEN)
        for turn in range(ROUNDS):
            family, domain = nn.Linear(2 * HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN_DOMAIN)
            node = nn.Linear(2 * HIDDEN + HIDDEN_DOMAIN, HIDDEN)
            self.add_module(str(turn), nn.ModuleDict({"family": family, "domain": domain, "node": node}))
        self.leave = nn.Linear(HIDDEN, WORKING)

    def forward(self, features: Tensor, answers: Tensor, families: Stack, domains: Stack) -> Tensor:
        """Logits, (rows, states), from features (rows, features) and who answers (rows, 1)."""
        hidden = torch.relu(self.enter(features))
        for turn in range(ROUNDS):
            layers = self.get_submodule(str(turn))
            assert isinstance(layers, nn.ModuleDict)
            sent = hidden * answers
            seen = torch.cat([families.mean(sent), families.maximum(sent)], 1)
            of_family = families.back(torch.relu(layers["family"](seen)))
            of_domain = domains.back(torch.relu(layers["domain"](domains.mean(sent))))
            hidden = hidden + torch.relu(layers["node"](torch.cat([hidden, of_family, of_domain], 1)))
        made: Tensor = self.leave(hidden)
        return made


class Plain(nn.Module):
    """Own features alone, with about as many weights."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(len(OWN), HIDDEN_PLAIN)
        self.middle = nn.Linear(HIDDEN_PLAIN, HIDDEN_PLAIN)
        self.leave = nn.Linear(HIDDEN_PLAIN, WORKING)

    def forward(self, features: Tensor) -> Tensor:
        """Logits, (rows, states)."""
        hidden = torch.relu(self.enter(features))
        made: Tensor = self.leave(hidden + torch.relu(self.middle(hidden)))
        return made


def stacked(ties: Ties, snapshots: int) -> tuple[Stack, Stack]:
    """Families and domains of so many snapshots."""
    return Stack.of(ties.families, snapshots), Stack.of(ties.domains, snapshots)


def weights_of(name: str, module: nn.Module) -> dict[str, Floats]:
    """Weights of a network, by the names under which NumPy finds them."""
    return {f"{name}.{key}": value.detach().numpy().astype(np.float32) for key, value in module.state_dict().items()}
