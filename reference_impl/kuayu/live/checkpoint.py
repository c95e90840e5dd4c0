"""The state of a training: optimiser, exchange of gradients, checkpoints and their restoration.

1. Adam (Kingma and Ba, ICLR 2015) on a stretch of the parameters, with its state. Each worker keeps the state of its
   own stretch alone, as ZeRO does in its first stage (Rajbhandari et al., SC 2020): a worker that is lost takes state
   with it that nobody else holds, so that replicas are needed in earnest.
2. Pieces of checkpoints: what one rank owns, kept in memory, by a peer, and at times in a file. A piece has 12 bytes
   for each parameter: its value and both of its moments, in single precision.
3. Getting a checkpoint together from those who hold its pieces, and handing pieces out.
4. The collective of a step: sums scattered over their owners, values gathered from them. Every worker sends each peer
   that peer's stretch of its gradient; the owner sums, moves its stretch of the parameters on, and sends it to all.
   With n workers each sends 2(n−1)/n times the vector, as in a ring, but in two rounds.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kuayu.live.plan import FILE, Plan, Restore
from kuayu.live.transport import Header, Inbox, MessageKey, Peers

LEARNING_RATE, WARM_UP_STEPS, BETA_1, BETA_2, EPSILON = 3e-3, 20, 0.9, 0.99, 1e-8

Vector = NDArray[np.float32]


def rank_slice(rank: int, world: int, size: int) -> slice:
    """The stretch of a vector that a rank owns; stretches differ by one at most."""
    return slice(rank * size // world, (rank + 1) * size // world)


@dataclass(slots=True)
class Moments:
    """Running moments of the gradient, each of shape (stretch,)."""

    first: Vector
    second: Vector

    @classmethod
    def none(cls, size: int) -> "Moments":
        """Those before the first step."""
        return cls(np.zeros(size, np.float32), np.zeros(size, np.float32))


def advance(values: Vector, moments: Moments, gradient: Vector, step: int) -> Vector:
    """Parameters after a step; the moments move on in place.

    Args:
        values: Parameters of the stretch.
        moments: Their moments.
        gradient: Gradient of the mean loss, of the same shape.
        step: Number of the step, from 1.
    """
    one = np.float32(1)
    first, second = np.float32(BETA_1), np.float32(BETA_2)
    moments.first = moments.first * first + gradient * (one - first)
    moments.second = moments.second * second + gradient * gradient * (one - second)
    rate = np.float32(LEARNING_RATE * min(1.0, step / WARM_UP_STEPS) / (1 - BETA_1**step))
    spread = np.sqrt(moments.second / np.float32(1 - BETA_2**step)) + np.float32(EPSILON)
    after: Vector = values - rate * moments.first / spread
    return after


KEPT = 3
"""Checkpoints that are kept in memory and in files; the newest."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Which piece it is.

    Attributes:
        step: Step after which it was taken.
        generation: Generation in which it was taken.
        piece: Its rank.
    """

    step: int
    generation: int
    piece: int

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.step:08}-{self.generation}-{self.piece}.piece"


@dataclass(frozen=True, slots=True)
class State:
    """Parameters with their moments, or a stretch of them."""

    values: Vector
    moments: Moments

    def to_bytes(self) -> bytes:
        """As one block, 12 bytes for each parameter."""
        return np.stack([self.values, self.moments.first, self.moments.second]).tobytes()

    @classmethod
    def of_bytes(cls, block: bytes) -> Self:
        """From such a block."""
        values, first, second = np.frombuffer(block, dtype=np.float32).reshape(3, -1).copy()
        return cls(values, Moments(first, second))

    @classmethod
    def joined(cls, pieces: list[bytes]) -> Self:
        """The whole from its pieces, in their order."""
        rows = np.concatenate([np.frombuffer(piece, dtype=np.float32).reshape(3, -1) for piece in pieces], axis=1)
        values, first, second = rows.copy()
        return cls(values, Moments(first, second))


class Store:
    """Pieces that a worker holds, its own and replicas of a peer's. Safe for several threads.

    Args:
        folder: Where files go; None for none.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._pieces: dict[Key, bytes] = {}
        self._folder = folder

    def put(self, key: Key, block: bytes) -> None:
        """Hold a piece; of steps, the newest are kept."""
        with self._lock:
            self._pieces[key] = block
            newest = sorted({entry.step for entry in self._pieces})[-KEPT:]
            self._pieces = {entry: existing for entry, existing in self._pieces.items() if entry.step in newest}

    def get(self, key: Key) -> bytes | None:
        """A piece, from memory alone."""
        with self._lock:
            return self._pieces.get(key)

    def write(self, key: Key, block: bytes) -> bool:
        """Write a piece to its file, whole or not at all; whether there is a folder for it."""
        if self._folder is None:
            return False
        part = self._folder / f"{key.file}.part"
        part.write_bytes(block)
        part.replace(self._folder / key.file)
        for old in sorted(self._folder.glob(f"*-{key.piece}.piece"))[:-KEPT]:
            old.unlink(missing_ok=True)
        return True

    def read(self, key: Key) -> bytes | None:
        """A piece from its file; None where there is none."""
        if self._folder is None:
            return None
        try:
            return (self._folder / key.file).read_bytes()
        except FileNotFoundError:
            return None


ANSWER_S = 1.0
"""Seconds that a holder has to answer before the next one is asked."""


def restore_checkpoint(own: str, plan: Plan, restore: Restore, store: Store, peers: Peers, inbox: Inbox) -> State:
    """The whole state that a plan goes on from.

    All pieces are asked for at once. Whoever does not answer in time is passed over; when all were asked in vain they
    are asked again, until the control plane has a better plan.

    Raises:
        Superseded: It has.
    """
    keys = [Key(restore.step, restore.generation, piece) for piece in range(len(restore.holders))]
    result = {key: block for key in keys if (block := store.get(key)) is not None}
    attempt = 0
    while len(result) < len(keys):
        missing = [key for key in keys if key not in result]
        for key in missing:
            holders = [entry for entry in restore.holders[key.piece] if entry != own] or [FILE]
            holder = holders[attempt % len(holders)]
            if holder != FILE:
                peers.send(holder, _request(own, plan.generation, key))
            elif (block := store.read(key)) is not None:
                result[key] = block
        for key in missing:
            message = None if key in result else inbox.take(_message_key(plan.generation, key), ANSWER_S)
            if message is not None:
                result[key] = message[1]
        attempt += 1
        inbox.check()
    return State.joined([result[key] for key in keys])


def hand_out(request: Header, store: Store, peers: Peers) -> None:
    """Answer a peer that asks for a piece; not at all where it is not held."""
    key = Key(request["step"], request["taken"], request["piece"])
    block = store.get(key)
    if block is not None:
        answer = {"kind": "piece", "generation": request["generation"], "step": key.step, "from": str(key.piece)}
        peers.send(request["from"], answer, block)


def _request(own: str, generation: int, key: Key) -> Header:
    names = {"step": key.step, "taken": key.generation, "piece": key.piece}
    return {"kind": "give", "generation": generation, "from": own, **names}


def _message_key(generation: int, key: Key) -> MessageKey:
    return MessageKey(generation, "piece", key.step, str(key.piece))


Sums = NDArray[np.int64]


class Exchange:
    """The collective of one generation.

    Args:
        peers: Connections.
        inbox: Where messages arrive.
        generation: Of the plan.
        members: Identifiers by rank.
        rank: Own rank.
        size: Length of the vector.
    """

    def __init__(
        self, peers: Peers, inbox: Inbox, generation: int, members: Sequence[str], rank: int, size: int
    ) -> None:
        self._peers, self._inbox, self._generation = peers, inbox, generation
        self._members, self._rank, self._size = tuple(members), rank, size

    @property
    def own(self) -> slice:
        """The stretch that this worker owns."""
        return rank_slice(self._rank, len(self._members), self._size)

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
            theirs = sums[rank_slice(rank, len(self._members), self._size)]
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
            whole[rank_slice(rank, len(self._members), self._size)] = np.frombuffer(block, dtype=np.float32)
        return whole

    def _others(self) -> list[tuple[int, str]]:
        return [(rank, peer) for rank, peer in enumerate(self._members) if rank != self._rank]

    def _send(self, peer: str, kind: str, step: int, block: bytes, loss: int = 0) -> None:
        own = self._members[self._rank]
        header = {"kind": kind, "generation": self._generation, "step": step, "from": own, "loss": loss}
        self._peers.send(peer, header, block)

    def _take(self, peer: str, kind: str, step: int) -> tuple[bytes, int]:
        message = self._inbox.take(MessageKey(self._generation, kind, step, peer))
        assert message is not None  # without a time limit it waits
        header, block = message
        return block, int(header["loss"])
