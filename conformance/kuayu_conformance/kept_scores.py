"""Scores of simulated windows, kept beside the transcript of the run that they are of.

1. What a baseline reaches in a window follows from the nonce, and what the service reaches there from its recorded
   answers. To compute either again takes as long as it took first: hours, where whole jobs are played.
2. So a run writes them to ``scores.jsonl``, a line each, and whoever judges the run again may take them from there.
3. Nobody has to trust the file: of its lines ``SPOT_CHECKS``, drawn by whoever judges, are computed again and must come
   out the same. Whoever altered a tenth of them is found out in 98 of 100 judgements. ``verify --recompute`` computes
   all of them.
"""

import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Self, TypeVar

from pydantic import TypeAdapter

from kuayu_conformance.transcript import TranscriptError

FILE_NAME = "scores.jsonl"
PACKED_NAME = f"{FILE_NAME}.xz"

_T = TypeVar("_T")

SPOT_CHECKS = 40
"""Lines that are computed again."""


class KeptScores:
    """Scores by key, JSON values; without a folder they are kept for the process alone."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._drawn: frozenset[str] = frozenset()
        self._lock = Lock()
        self._path: Path | None = None
        self._file: BinaryIO | None = None

    @classmethod
    def begin(cls, folder: Path) -> Self:
        """Those of a run in a folder, which may have begun before: what is put is written there."""
        store = cls()
        store._path = path = folder / FILE_NAME
        if path.is_file():
            data = path.read_bytes()
            whole = data[: data.rfind(b"\n") + 1]  # a run that is killed may leave half a line
            store._known = dict(_read(whole, path))
            path.write_bytes(whole)
        return store

    @classmethod
    def of(cls, folder: Path, *, spot_checks: int | None = SPOT_CHECKS) -> Self:
        """Those in the folder of a report; so many, all where it is None, are to be computed again.

        Raises:
            TranscriptError: The file cannot be read.
        """
        store = cls()
        path, packed = folder / FILE_NAME, folder / PACKED_NAME
        if path.is_file() or packed.is_file():
            try:
                data = path.read_bytes() if path.is_file() else lzma.decompress(packed.read_bytes())
            except (OSError, lzma.LZMAError) as error:
                raise TranscriptError(f"the scores in {folder} cannot be read: {error}") from error
            store._known = dict(_read(data, path))
            keys = sorted(store._known)
            count = len(keys) if spot_checks is None else min(spot_checks, len(keys))
            store._drawn = frozenset(random.SystemRandom().sample(keys, count))
        return store

    def get(self, key: str) -> Any:
        """The score of a key; None where it is not known, or to be computed again."""
        return None if key in self._drawn else self._known.get(key)

    def get_or_make(self, key: str, kind: TypeAdapter[_T], make: Callable[[], _T]) -> _T:
        """What follows from the nonce alone: the value that was kept, else it is made, and kept.

        Args:
            key: Its own in the run.
            kind: Of what type it is, built of dataclasses and plain values.
            make: Makes it, which takes long.

        Raises:
            TranscriptError: Another one was kept.
        """
        if (known := self.get(key)) is not None:
            return kind.validate_python(known)
        value = make()
        self.put(key, kind.dump_python(value, mode="json", by_alias=True))
        return value

    def put(self, key: str, value: object) -> None:
        """Keep a score that was computed.

        Raises:
            TranscriptError: Another one was kept.
        """
        plain = json.loads(json.dumps(value))
        with self._lock:
            self._keep(key, plain)

    def _keep(self, key: str, plain: Any) -> None:
        known = self._known.setdefault(key, plain)
        if known != plain:
            raise TranscriptError(
                f"{FILE_NAME} does not hold what follows from the run, as was seen at {key}; "
                "with --recompute nothing is taken from it"
            )
        if self._path and known is plain:
            self._file = self._file or self._path.open("ab")
            self._file.write(json.dumps([key, plain], ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            self._file.flush()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        """In another process nothing is kept: the file is this one's."""
        return type(self), ()

    def close(self) -> None:
        """End writing."""
        if self._file:
            self._file.close()
            self._file = None


def _read(data: bytes, path: Path) -> list[tuple[str, Any]]:
    try:
        rows = [json.loads(line) for line in data.splitlines()]
        return [(str(key), value) for key, value in rows]
    except (ValueError, TypeError) as error:
        raise TranscriptError(f"{path} holds something that is no score: {error}") from error
