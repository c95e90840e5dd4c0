"""What was computed once and follows from its key alone: remembered while the process lives, or kept for the user.

1. **In the process.** A run observes every check twice, as it happens and from the transcript, and plays the same
   beside the service both times. Only what does not depend on the service's answers is remembered, so that no check can
   pass by it.
2. **In the user's cache folder.** A key holds everything that the value follows from but the code; a digest of the
   code's files is added, so that another version never finds it. Where the folder cannot be written to, everything is
   computed again.
"""

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

FOLDER = "KUAYU_CACHE"
"""Environment variable that names another folder; empty for none at all."""
DEPENDS_ON = ("numpy", "scipy")


class Memory(Generic[Value]):
    """Values by key, the last ones that were used; they are handed out as they are, so they must never change.

    Args:
        most: How many are kept at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()

    def of(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The value of a key; found now where it is not known, by two threads at a time if need be."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = compute()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


def folder() -> Path | None:
    """The user's cache folder for Kuayu; None where there is to be none."""
    named = os.environ.get(FOLDER)
    if named is not None:
        return Path(named) if named else None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "kuayu" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kuayu"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kuayu"


class Cache:
    """Values by key.

    Args:
        kind: Name of the subfolder.
        code: Modules and packages whose files the values follow from.
        where: Folder, or None for the user's.
    """

    def __init__(self, kind: str, code: Sequence[ModuleType], where: Path | None = None) -> None:
        base = where or folder()
        self._folder = base / kind if base else None
        self._code = digest_of(*(module.__name__ for module in code))

    def get(self, key: Sequence[object]) -> Any:
        """The value of a key, or None where there is none that can be read."""
        if self._folder is None:
            return None
        try:
            entry = json.loads(self._path(key).read_bytes())
            return entry["value"] if entry["key"] == [str(part) for part in key] else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: Sequence[object], value: Any) -> None:
        """Keep a value, which has to be JSON; another run that keeps the same at the same time does no harm."""
        if self._folder is None:
            return
        path = self._path(key)
        text = json.dumps({"key": [str(part) for part in key], "value": value}, separators=(",", ":"))
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as written:
                written.write(text)
            Path(written.name).replace(path)

    def _path(self, key: Sequence[object]) -> Path:
        assert self._folder is not None
        name = hashlib.sha256(json.dumps([self._code, *map(str, key)]).encode()).hexdigest()
        return self._folder / name[:2] / f"{name}.json"


@cache
def digest_of(*modules: str) -> str:
    """Digest of the files of some modules and packages that are loaded, and of the versions of numeric libraries."""
    digest = hashlib.sha256(json.dumps([f"{name} {version(name)}" for name in DEPENDS_ON]).encode())
    for name in modules:
        module = sys.modules[name]
        for root in map(Path, getattr(module, "__path__", None) or [str(module.__file__)]):
            for file in sorted(root.rglob("*")) if root.is_dir() else [root]:
                if file.suffix in {".py", ".json"} and file.is_file():
                    digest.update(file.relative_to(root.parent).as_posix().encode())
                    digest.update(file.read_bytes())
    return digest.hexdigest()
