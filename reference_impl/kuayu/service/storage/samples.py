"""Commands that write samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from kuayu.service.storage.answers import Answer
from kuayu.service.storage.blocks import Arrival, Block
from kuayu.service.storage.writer import Outcome, Transaction

Feed = Callable[[Sequence[Block], int], None]
"""What is told of samples once they are durable, with when they were received in milliseconds."""


@dataclass(frozen=True, slots=True)
class StoreSamples:
    """Write samples and give an answer that was made beforehand.

    Attributes:
        blocks: The samples.
        received: When they were received, in milliseconds.
        answer: What the sender is told once they are durable.
        feed: Who else is told then.
    """

    blocks: Sequence[Block]
    received: int
    answer: Answer
    feed: Feed

    @property
    def weight(self) -> int:
        """Number of samples."""
        return sum(map(len, self.blocks))

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Have them written together with those of other requests."""
        transaction.put(Arrival(self.blocks, self.received))
        return Outcome(self.answer, committed=partial(self.feed, self.blocks, self.received))
