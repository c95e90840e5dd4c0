"""Which devices of a node are lost, and which shows the node's faults, where devices are reported."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.telemetry.history import Floats
from kuayu_conformance.testbed.telemetry.metering import Subjects


@dataclass(frozen=True)
class Parts:
    """Devices in the order in which they are lost, drawn by node, and the one that fails by itself.

    Attributes:
        subjects: What samples are about.
        turn: Place of each subject in that order among the subjects of its node; the last is never lost.
        prone: The turn of the device that shows faults while it is there, by subject.
    """

    subjects: Subjects
    turn: NDArray[np.int64]
    prone: NDArray[np.int64]

    @classmethod
    def drawn(cls, subjects: Subjects, chance: np.random.Generator) -> "Parts":
        """An order for each node, and a device that does not follow from it."""
        rows = len(subjects.row)
        order = np.lexsort((chance.random(rows), subjects.row))
        firsts = np.searchsorted(subjects.row, subjects.row)
        turn = np.empty(rows, dtype=np.int64)
        turn[order] = np.arange(rows) - firsts
        prone = (chance.random(int(subjects.row[-1]) + 1)[subjects.row] * subjects.parts).astype(np.int64)
        return cls(subjects, turn, prone)

    def there(self, lost: Floats) -> NDArray[np.bool_]:
        """Which subjects could be read, subjects × samples, from the share of devices that are lost, by row."""
        of_devices = self.subjects.device >= 0
        return ~(of_devices[:, np.newaxis] & (self.turn[:, np.newaxis] < self._gone(lost)))

    def faults(self, faults: Floats, lost: Floats) -> Floats:
        """Faults by subject, from those by row: of one device that is there; of the node where it is the subject."""
        last = (self.subjects.parts - 1)[:, np.newaxis]
        prone = self.prone[:, np.newaxis]
        shows = np.where(prone < self._gone(lost), last, prone)
        shown: Floats = faults[self.subjects.row] * (self.turn[:, np.newaxis] == shows)
        return shown

    def _gone(self, lost: Floats) -> Floats:
        """How many devices are lost; of a node that is one subject what it says means nothing."""
        gone: Floats = np.rint(lost[self.subjects.row] * self.subjects.parts[:, np.newaxis])
        return gone
