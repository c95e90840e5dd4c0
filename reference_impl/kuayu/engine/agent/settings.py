"""What the operator of an aggregator can set."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kuayu_schemas.models import Durability

_LIMIT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(samples|[kMGT]i?B|B)")
_UNITS = {"k": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True, slots=True)
class SpoolLimit:
    """How much the spool may hold; whichever is reached first counts.

    Attributes:
        samples: Most samples.
        octets: Most bytes of samples, each counted with what the file needs beside it.
    """

    samples: float = float("inf")
    octets: float = float("inf")

    @classmethod
    def parse(cls, text: str) -> "SpoolLimit":
        """Read ``500MB``, ``2GiB`` or ``1000000samples``.

        Raises:
            ValueError: It is none of these, or nought.
        """
        match = _LIMIT.fullmatch(text.strip())
        if match is None or not float(match[1]):
            raise ValueError(f"{text!r} is no limit of a spool")
        number, unit = float(match[1]), match[2]
        if unit == "samples":
            return cls(samples=number)
        base = 1024 if "i" in unit else 1000
        return cls(octets=number * base ** _UNITS.get(unit[0], 0))


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of an aggregator.

    Attributes:
        url: Base URL of the service.
        domain: Domain whose samples it takes.
        spool: File of the spool.
        limit: How much that may hold.
        token: Bearer token for the service, None where it asks for none.
        tokens: Bearer tokens of senders; with none, nobody is asked for one. The values are not used.
        durability: Which crash an acknowledged sample survives.
        batch: Most samples that are sent at once; the service may ask for fewer.
        linger: Seconds that samples may wait for others before they are sent.
        hold: Seconds for which samples whose subject the service does not know are sent again.
        thin: Seconds within which one sample of a subject is enough; nought for all samples.
        drain: Seconds for what is spooled when the aggregator is told to end.
        retention: Seconds back to which samples are taken, until the service has said how long it keeps them.
        idempotency: Seconds for which senders' idempotency keys are remembered.
        max_body: Bytes of the largest request body.
        max_batch: Items of the largest batch that is taken.
        max_queue: Samples that may wait for the disk before requests are turned away.
        timeout: Seconds for an answer of the service.
        longest_pause: Seconds between attempts at most, unless the service asks for more.
    """

    url: str
    domain: str
    spool: Path
    limit: SpoolLimit = SpoolLimit(octets=1 << 30)
    token: str | None = None
    tokens: Mapping[str, str] = field(default_factory=dict)
    durability: Durability = Durability.process
    batch: int = 10_000
    linger: float = 0.5
    hold: float = 120.0
    thin: float = 0.0
    drain: float = 10.0
    retention: float = 7 * 86_400.0
    idempotency: float = 600.0
    max_body: int = 16 * 1024 * 1024
    max_batch: int = 10_000
    max_queue: int = 100_000
    timeout: float = 30.0
    longest_pause: float = 10.0
