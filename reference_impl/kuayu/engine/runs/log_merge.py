"""The log of a run whose ranks write files: what was added to each is numbered in one log when somebody looks.

Lines of one rank stay in their order; those of several are in the order in which they were found. How far each file has
been read stands beside the log and is written after it, so that a reader that is killed between the two leaves lines
that the next one cuts off and writes again.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kuayu.engine.locking import lock
from kuayu.engine.runs import supervisor
from kuayu.engine.runs.devices import wait_for_lock
from kuayu.engine.runs.protocol import MAX_LINE_CHARACTERS

_STATE = "merged.json"
_LOCK = "merged"
_LOCK_SECONDS = 30.0
_PIECE_BYTES = 1 << 20
"""Bytes of a file that are read at once. A line that is longer is cut into several."""

_TAIL_BYTES = 1 << 16
"""Bytes of each file's end that are kept where the log is full."""


def merge(directory: Path, sources: Sequence[tuple[int, Path]], most: int, *, last: bool) -> None:
    """Add what was written since to the log of a run; nothing where somebody else is doing so, except at the end.

    Args:
        directory: Of the run.
        sources: Files by the rank that writes each; those that are not there are passed over.
        most: Bytes of the log after which lines are left out, but for the last ones of each file.
        last: Whether nothing will be written any more, so that lines without an end are whole too.

    Raises:
        OSError: A file cannot be read, or the log not be written.
        EngineError: At the end, somebody else has been at it for long.
    """
    try:
        lock_file = wait_for_lock(directory / _LOCK, _LOCK_SECONDS) if last else lock(directory / _LOCK)
    except BlockingIOError:
        return
    with lock_file:
        state = supervisor.read_state(directory, _STATE) or {"offsets": {}, "size": 0, "lines": 0, "full": False}
        log = supervisor.LogFile(directory, state["size"], state["lines"])
        try:
            changed = _follow(log, state, sources, most, last=last)
            if last and state["full"]:
                changed |= _tails(log, state, sources)
        finally:
            log.close()
        if changed:
            supervisor.write_state(directory, {**state, "size": log.size, "lines": log.lines}, _STATE)


def _follow(
    log: supervisor.LogFile, state: dict[str, Any], sources: Sequence[tuple[int, Path]], most: int, *, last: bool
) -> bool:
    """Read all files on, piece by piece in turn; whether anything was found."""
    changed, waiting = False, list(sources)
    while waiting and not state["full"]:
        longer = []
        for rank, path in waiting:
            piece, whole = _piece(path, state["offsets"].get(path.name, 0), last=last)
            if not piece:
                continue
            changed = True
            if not log.append(_encoded(rank, piece)):
                raise OSError(f"there is no room for the log of {path}")
            state["offsets"][path.name] = state["offsets"].get(path.name, 0) + len(piece)
            if not whole:
                longer.append((rank, path))
            if log.size > most:
                note = f"kuayu: this log is full ({most} bytes); the last lines follow when the run has ended"
                log.append([supervisor.encode(sources[0][0], note)])
                state["full"] = True
                break
        waiting = longer
    return changed


def _tails(log: supervisor.LogFile, state: dict[str, Any], sources: Sequence[tuple[int, Path]]) -> bool:
    """Write the end of each file, after how much of it was left out."""
    changed = False
    for rank, path in sources:
        offset = state["offsets"].get(path.name, 0)
        size = path.stat().st_size if path.exists() else 0
        if size <= offset:
            continue
        with path.open("rb") as file:
            begin = max(offset, size - _TAIL_BYTES)
            file.seek(begin)
            if begin > offset:
                begin += len(file.readline(_TAIL_BYTES))  # what is left of a line that began before
                log.append([supervisor.encode(rank, f"kuayu: {begin - offset} bytes were left out here")])
            log.append(_encoded(rank, file.read(size - begin)))
        state["offsets"][path.name] = size
        changed = True
    return changed


def _piece(path: Path, offset: int, *, last: bool) -> tuple[bytes, bool]:
    """Whole lines of a file from an offset on, and whether these are all that there are."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            piece = file.read(_PIECE_BYTES)
    except FileNotFoundError:
        return b"", True
    if len(piece) == _PIECE_BYTES:
        return piece[: piece.rfind(b"\n") + 1] or piece, False
    return (piece if last else piece[: piece.rfind(b"\n") + 1]), True


def _encoded(rank: int, piece: bytes) -> list[bytes]:
    lines = supervisor.Lines(MAX_LINE_CHARACTERS)
    return [supervisor.encode(rank, text) for text in [*lines.feed(piece), *lines.end()]]
