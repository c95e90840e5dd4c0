"""Small populations and telemetry by hand, for tests of recognition."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kuayu.perception.recognition import SIGNALS, STATES, Population, Recogniser, Recognition, Telemetry

AT_WORK = {
    "accelerator_utilisation": 0.97,
    "matrix_pipe_activity": 0.45,
    "power": 4200.0,
    "accelerator_memory_used": 5e11,
    "memory_bandwidth_utilisation": 0.5,
    "scale_out_transmit_flow": 8e9,
    "scale_out_receive_flow": 8e9,
    "storage_read_flow": 2e8,
    "faults": 0.0,
    "device_share": 1.0,
}
IDLE = AT_WORK | {
    "accelerator_utilisation": 0.0,
    "matrix_pipe_activity": 0.0,
    "power": 900.0,
    "accelerator_memory_used": 4e9,
    "memory_bandwidth_utilisation": 0.0,
    "scale_out_transmit_flow": 2e4,
    "scale_out_receive_flow": 2e4,
    "storage_read_flow": 1e4,
}
WAITING = AT_WORK | {
    "matrix_pipe_activity": 0.0,
    "power": 2200.0,
    "memory_bandwidth_utilisation": 0.01,
    "scale_out_transmit_flow": 1e5,
    "scale_out_receive_flow": 1e5,
    "storage_read_flow": 1e4,
}
HUNG = IDLE | {"accelerator_memory_used": 5e11, "power": 1000.0, "faults": 1.0}


def slowed(by: float) -> dict[str, float]:
    """A node that waits busily for another, its family at this share of its pace."""
    return AT_WORK | {
        "matrix_pipe_activity": 0.45 * by,
        "power": 2200 + 2000 * by,
        "memory_bandwidth_utilisation": 0.5 * by,
        "scale_out_transmit_flow": 8e9 * by,
        "scale_out_receive_flow": 8e9 * by,
        "storage_read_flow": 2e8 * by,
    }


def slow_clock(speed: float) -> dict[str, float]:
    """A node whose clocks are slow: busy all the time, at less power, and moving less."""
    return slowed(speed) | {"matrix_pipe_activity": 0.45, "power": 900 + 3300 * speed**1.8}


def population(domains: Sequence[int], families: Sequence[Sequence[int]] = ()) -> Population:
    """Domains of so many nodes with eight devices, and families of node rows."""
    domain = np.repeat(np.arange(len(domains)), domains)
    member = np.array([node for family in families for node in family], np.intp)
    family = np.repeat(np.arange(len(families)), [len(each) for each in families]).astype(np.intp)
    return Population(domain, len(domains), member, family, len(families), np.full(len(domain), 8))


@dataclass
class Play:
    """Plays telemetry by hand, one second after the other, into a recogniser."""

    people: Population
    noise: float = 0.02
    kind: Any = Recogniser
    now: float = 1000.0
    random: Any = field(default_factory=lambda: np.random.default_rng(5))

    def __post_init__(self) -> None:
        nodes = len(self.people.domain)
        self.recogniser = self.kind(self.people)
        self.values = np.full((nodes, len(SIGNALS)), np.nan)
        self.observed = np.full(nodes, np.nan)

    def second(self, does: Sequence[dict[str, float] | None]) -> Recognition:
        """One second, in which each node does something, or says nothing."""
        self.now += 1
        fresh = np.array([each is not None for each in does])
        for row, each in enumerate(does):
            if each is not None:
                for name, value in each.items():
                    exact = name in {"faults", "device_share", "health_state", "allocatable_share"}
                    factor = 1.0 if exact else float(np.exp(self.random.normal(0, self.noise)))
                    limit = 1.0 if name.endswith(("utilisation", "activity")) else np.inf
                    self.values[row, SIGNALS.index(name)] = min(value * factor, limit)
        self.observed[fresh] = self.now
        return self.recogniser.update(
            Telemetry(self.now, self.values.copy(), self.observed.copy(), self.observed.copy(), fresh)
        )

    def seconds(self, count: int, does: Sequence[dict[str, float] | None]) -> Iterator[Recognition]:
        """Several seconds of the same."""
        for _ in range(count):
            yield self.second(does)

    def after(self, count: int, does: Sequence[dict[str, float] | None]) -> Recognition:
        """What is recognised after several seconds of the same."""
        return list(self.seconds(count, does))[-1]


def names(found: Recognition) -> list[str]:
    """States by name."""
    return [STATES[state] for state in found.state]
