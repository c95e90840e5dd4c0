"""Extras that some checks need beside the suite, and how to install what is lacking.

A light installation tests COM, and MET but for what telemetry is played for. That is drawn by NumPy (Philox, ziggurat)
and computed in its arrays for thousands of nodes; transcripts are judged again by the very same numbers, so that other
generators cannot stand in for it.
"""

from importlib.util import find_spec

LIBRARIES = {"telemetry": ("numpy",), "simulation": ("numba", "numpy", "scipy")}
"""Libraries of each extra that checks need, as ``pyproject.toml`` lists them."""


def lacking() -> frozenset[str]:
    """Extras of which a library is not installed."""
    return frozenset(extra for extra, names in LIBRARIES.items() if not all(map(find_spec, names)))


def command(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'kuayu[{extra}]'"
