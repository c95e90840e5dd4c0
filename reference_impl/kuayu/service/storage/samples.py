"""Commands that write samples."""

from collections.abc import Sequence
from dataclasses import dataclass

from kuayu.service.storage import blocks
from kuayu.service.storage.answers import Answer
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.writer import Outcome, Transaction


@dataclass(frozen=True, slots=True)
class StoreSamples:
    """Write samples and give an answer that was made beforehand.

    Attributes:
        blocks: The samples.
        received: When they were received, in milliseconds.
        answer: What the sender is told once they are durable.
    """

    blocks: Sequence[Block]
    received: int
    answer: Answer

    @property
    def weight(self) -> int:
        """Number of samples."""
        return sum(map(len, self.blocks))

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Write them."""
        blocks.write(transaction.connection, self.blocks, self.received, transaction.sequence)
        return Outcome(self.answer)
