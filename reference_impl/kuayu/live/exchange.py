"""The collective of a step: sums scattered over their owners, values gathered from them.

Every worker sends each peer that peer's stretch of its gradient; the owner sums, moves its stretch of the parameters
on, and sends it to all. With n workers each sends 2(n−1)/n times the vector, as in a ring, but in two rounds.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kuayu.live.mailbox import Mailbox, Slip
from kuayu.live.optimiser import Vector, stretch
from kuayu.live.peers import Peers

Sums = NDArray[np.int64]


class Exchange:
    """The collective of one generation.

    Args:
        peers: Connections.
        mailbox: Where messages arrive.
        generation: Of the plan.
        members: Identifiers by rank.
        rank: Own rank.
        size: Length of the vector.
    """

    def __init__(
        self, peers: Peers, mailbox: Mailbox, generation: int, members: Sequence[str], rank: int, size: int
    ) -> None:
        self._peers, self._mailbox, self._generation = peers, mailbox, generation
        self._members, self._rank, self._size = tuple(members), rank, size

    @property
    def own(self) -> slice:
        """The stretch that this worker owns."""
        return stretch(self._rank, len(self._members), self._size)

    def scatter(self, step: int, sums: Sums, loss: int) -> tuple[Sums, int]:
        """Sums over all workers: of the own stretch, and of the loss.

        Args:
            step: Number of the step.
            sums: Own gradient, shape (size,).
            loss: Own part of the loss.

        Raises:
            Superseded: There is a newer plan.
        """
        for rank, peer in self._others():
            theirs = sums[stretch(rank, len(self._members), self._size)]
            self._send(peer, "sums", step, theirs.tobytes(), loss)
        total = sums[self.own].copy()
        for _, peer in self._others():
            block, more = self._take(peer, "sums", step)
            total += np.frombuffer(block, dtype=np.int64)
            loss += more
        return total, loss

    def gather(self, step: int, own: Vector) -> Vector:
        """The whole vector, from all owners; shape (size,).

        Raises:
            Superseded: There is a newer plan.
        """
        for _, peer in self._others():
            self._send(peer, "values", step, own.tobytes())
        whole = np.empty(self._size, dtype=np.float32)
        whole[self.own] = own
        for rank, peer in self._others():
            block, _ = self._take(peer, "values", step)
            whole[stretch(rank, len(self._members), self._size)] = np.frombuffer(block, dtype=np.float32)
        return whole

    def _others(self) -> list[tuple[int, str]]:
        return [(rank, peer) for rank, peer in enumerate(self._members) if rank != self._rank]

    def _send(self, peer: str, kind: str, step: int, block: bytes, loss: int = 0) -> None:
        own = self._members[self._rank]
        header = {"kind": kind, "generation": self._generation, "step": step, "from": own, "loss": loss}
        self._peers.send(peer, header, block)

    def _take(self, peer: str, kind: str, step: int) -> tuple[bytes, int]:
        message = self._mailbox.take(Slip(self._generation, kind, step, peer))
        assert message is not None  # without a time limit it waits
        header, block = message
        return block, int(header["loss"])
