"""Engines by name. Each is imported when it is asked for, so that what one needs is no concern of the others."""

import importlib
import inspect
from pathlib import Path
from typing import Any, cast

from kuayu.engine.runs.protocol import Engine, EngineError

_ENGINES = {
    "local": ("kuayu.engine.runs.local", "LocalEngine"),
    "slurm": ("kuayu.engine.runs.slurm", "SlurmEngine"),
    "ray": ("kuayu.engine.runs.ray", "RayEngine"),
    "kubernetes": ("kuayu.engine.runs.kubernetes", "KubernetesEngine"),
}
"""Module and class of each engine."""


def names() -> list[str]:
    """Names of all engines, whether what they need is installed or not."""
    return list(_ENGINES)


def options(name: str) -> dict[str, inspect.Parameter]:
    """Options that an engine takes beside its directory, as parameters of its class.

    Raises:
        EngineError: There is no such engine, or it lacks an installation.
    """
    parameters = inspect.signature(_class(name)).parameters
    return {option: parameter for option, parameter in parameters.items() if option != "directory"}


def find(name: str, directory: Path, **given: Any) -> Engine:
    """An engine that keeps what it has to remember in a directory.

    Args:
        name: One of :func:`names`.
        directory: The engine's own; the same one finds its runs again.
        given: Options of the engine, by the names that its class gives them.

    Raises:
        EngineError: There is no such engine or option, or it lacks an installation, with how to get that.
    """
    known = options(name)
    if unknown := sorted(given.keys() - known.keys()):
        hint = f"its options are {', '.join(known)}" if known else "it has none"
        raise EngineError(f"the engine {name} has no option {unknown[0]}", hint)
    return cast("Engine", _class(name)(directory, **given))


def _class(name: str) -> Any:
    if name not in _ENGINES:
        raise EngineError(f"there is no engine {name}", f"engines are {', '.join(_ENGINES)}")
    module, engine = _ENGINES[name]
    try:
        return getattr(importlib.import_module(module), engine)
    except ModuleNotFoundError as error:
        raise EngineError(f"the engine {name} needs {error.name}", "pip install 'kuayu[reference]'") from error
