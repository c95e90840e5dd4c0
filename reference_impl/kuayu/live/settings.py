"""What all processes of a run have to agree on."""

import json
from dataclasses import asdict, dataclass
from typing import Self

HUBS = ("beijing", "yangtze", "bay", "chengyu", "mongolia", "guizhou", "gansu", "ningxia")
"""Names of domains, after the eight national hubs of computing (东数西算)."""
LEAST_DOMAINS = 3
"""With fewer, there is no majority of peers to confirm a suspicion."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A run.

    Attributes:
        seed: Of parameters, text and incidents.
        domains: Domains that train.
        spares: Domains that stand by.
        parts: Parts of a batch, the same whoever computes them.
        every: Steps from one checkpoint to the next.
        files: Checkpoints from one that is written to files too to the next.
        period: Seconds from one heartbeat to the next.
        delay: Seconds that a gateway takes for what passes it.
        rate: Bits in a second that pass a gateway in each connection; 0 for as many as can.
        service: Port of the service that hears beats and tells faults; 0 where the run judges for itself.
    """

    seed: int = 1
    domains: int = 5
    spares: int = 1
    parts: int = 12
    every: int = 10
    files: int = 3
    period: float = 0.25
    delay: float = 0.001
    rate: float = 0.0
    service: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all domains."""
        return HUBS[: self.domains + self.spares]

    def to_json(self) -> str:
        """As one argument of a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Self:
        """From an argument of a command line."""
        return cls(**json.loads(text))
