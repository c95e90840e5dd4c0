"""What peers have sent and nobody has taken yet, by generation."""

import threading
from dataclasses import dataclass

from kuayu.live.wire import Header


class Superseded(Exception):
    """There is a newer plan; what is under way for the old one is void."""


@dataclass(frozen=True, slots=True)
class Slip:
    """What a message is.

    Attributes:
        generation: Generation of its sender.
        kind: What it holds.
        step: Step that it belongs to.
        sender: Its sender, or which piece of a checkpoint it is.
    """

    generation: int
    kind: str
    step: int
    sender: str


class Mailbox:
    """Messages by what they are. Safe for several threads.

    Attributes:
        refused: Messages of an older generation that were dropped.
    """

    def __init__(self) -> None:
        self.refused = 0
        self._changed = threading.Condition()
        self._generation, self._newest = 0, 0
        self._messages: dict[Slip, tuple[Header, bytes]] = {}

    @property
    def generation(self) -> int:
        """Generation that is current."""
        return self._generation

    def announce(self, generation: int) -> None:
        """There is a plan of this generation: whoever waits for a message of an older one is woken."""
        with self._changed:
            self._newest = max(self._newest, generation)
            self._changed.notify_all()

    def advance(self, generation: int) -> None:
        """Work under this generation from now on; what is older is dropped."""
        with self._changed:
            self._generation = generation
            old = [slip for slip in self._messages if slip.generation < generation]
            for slip in old:
                del self._messages[slip]

    def knows(self, generation: int, timeout: float) -> bool:
        """Whether the newest plan is of this generation, or becomes so within so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest >= generation, timeout)
            return self._newest == generation

    def put(self, slip: Slip, header: Header, payload: bytes) -> None:
        """A message came; one of an older generation counts nothing, one of a newer waits for its plan."""
        with self._changed:
            if slip.generation < self._generation:
                self.refused += 1
                return
            self._messages[slip] = header, payload
            self._changed.notify_all()

    def take(self, slip: Slip, timeout: float | None = None) -> tuple[Header, bytes] | None:
        """Wait for a message; None where it has not come within so many seconds.

        Raises:
            Superseded: There is a newer plan.
        """
        with self._changed:
            self._changed.wait_for(lambda: slip in self._messages or self._newest > slip.generation, timeout)
            self._check(slip.generation)
            return self._messages.pop(slip, None)

    def check(self) -> None:
        """Go on only while the current plan is the newest.

        Raises:
            Superseded: It is not.
        """
        with self._changed:
            self._check(self._generation)

    def wait(self) -> None:
        """Wait for a newer plan than the current one."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest > self._generation)

    def _check(self, generation: int) -> None:
        if self._newest > generation:
            raise Superseded
