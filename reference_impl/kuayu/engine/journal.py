"""The journal of a domain's controller: what was promised and is held, in a file that outlives the process."""

import json
import os
from pathlib import Path
from typing import IO, Any

from kuayu.engine.locking import lock, lock_of

MEMBERS = {"domain", "holdings", "fences", "answers", "unsaid", "lease", "runs"}
"""What a journal holds."""

LATER = {"fences", "unsaid", "lease", "runs"}
"""What it did not hold before there were fences and leases, and does not hold where nothing is run."""


class JournalError(Exception):
    """The journal cannot be read or written.

    Attributes:
        cause: What went wrong.
        hint: What can be done about it.
    """

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.hint = hint


class Journal:
    """A file with what one domain has promised; whoever has it keeps others off it until it is closed.

    Args:
        path: The file; made with the first promise where there is none.
        domain: Whose promises they are.
    """

    def __init__(self, path: Path, domain: str) -> None:
        """Keep others off the file.

        Raises:
            JournalError: Another controller has it, or its folder cannot be written.
        """
        self._path = path
        self._domain = domain
        self._lock = _locked(path)

    def close(self) -> None:
        """Let others have it."""
        self._lock.close()

    def read(self) -> dict[str, Any] | None:
        """What it holds, as it was written; None where there is no file yet.

        Raises:
            JournalError: It is no journal of this domain, or cannot be read.
        """
        if not self._path.exists():
            return None
        hint = "name the journal of this domain, or another file to begin without one"
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise JournalError(f"cannot read {self._path}: {error}", hint) from error
        if not isinstance(kept, dict) or kept.keys() | LATER != MEMBERS:
            raise JournalError(f"{self._path} is no journal of a domain", hint)
        if kept.pop("domain") != self._domain:
            raise JournalError(f"{self._path} is the journal of another domain than {self._domain}", hint)
        return kept

    def write(self, kept: dict[str, Any]) -> None:
        """Have the file hold this, whole, or what it held before.

        Raises:
            JournalError: It cannot be written.
        """
        beside = self._path.with_name(self._path.name + ".new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                json.dump({"domain": self._domain, **kept}, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            hint = "see to its folder; until then nothing is promised"
            raise JournalError(f"cannot write {self._path}: {error.strerror}", hint) from error


def _locked(path: Path) -> IO[str]:
    try:
        return lock(path)
    except BlockingIOError as error:
        raise JournalError(f"another controller has the journal {path}", "stop it, or name another file") from error
    except OSError as error:
        hint = "name a folder that may be written"
        raise JournalError(f"cannot write {lock_of(path)}: {error.strerror}", hint) from error
