"""Files of the operator with an entry in each line, such as tokens and accounts, that are read again when they change.

1. A line that is empty, or begins with ``#``, is a remark.
2. A file is taken as a whole or not at all: where a line is wrong, it is said which, and what was read before holds.
"""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

logger = logging.getLogger(__name__)


class OperatorFileError(ValueError):
    """The file cannot be used; the message says why and, where it is one line, in which."""


class OperatorFile(ABC):
    """A file with an entry in each line.

    Args:
        path: The file.

    Raises:
        OperatorFileError: It cannot be read, or a line of it.

    Attributes:
        what: What its entries are, in the plural.
    """

    what: str

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state: object = None
        self.read()

    def read(self) -> bool:
        """Read the file if it has changed; what it held before stays where it cannot be used.

        Returns:
            Whether it was read.

        Raises:
            OperatorFileError: It cannot be read, or a line of it.
        """
        try:
            status = self._path.stat()
            state = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
            if state == self._state:
                return False
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise OperatorFileError(f"cannot read the {self.what} in {self._path}: {error}") from error
        self._state = state
        numbered = enumerate(lines, start=1)
        self._take([(n, line) for n, line in numbered if line.strip() and not line.lstrip().startswith("#")], status)
        return True

    def read_again(self) -> None:
        """Read the file if it has changed, and log what came of it."""
        try:
            if self.read():
                logger.info("read %d %s from %s", self.count, self.what, self._path)
        except OperatorFileError as error:
            logger.error("%s; the %s from before still hold", error, self.what)  # noqa: TRY400 - the cause is all there is

    def _wrong(self, number: int, why: object) -> OperatorFileError:
        """What is wrong with a line."""
        return OperatorFileError(f"{self._path}, line {number}: {why}")

    @property
    @abstractmethod
    def count(self) -> int:
        """How many entries it has."""

    @abstractmethod
    def _take(self, lines: Sequence[tuple[int, str]], status: os.stat_result) -> None:
        """Take its lines, each with its number, in the place of those from before.

        Raises:
            OperatorFileError: One of them is wrong; nothing was taken.
        """
