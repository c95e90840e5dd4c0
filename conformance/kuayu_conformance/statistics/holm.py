"""Several hypotheses at once: the chance that any true one is rejected stays at the level.

Sources: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979)
65-70.
"""

from collections.abc import Callable, Mapping

from kuayu_conformance.statistics.proportions import CONFIDENCE

LEVEL = 1.0 - CONFIDENCE
"""Of all hypotheses together."""


def stepped_down(rejects: Mapping[str, Callable[[float], bool]], level: float = LEVEL) -> dict[str, float]:
    """Level at which each hypothesis is tested in the end: its bound at that level tells whether it is rejected.

    All begin with an equal share of the level. Whatever is rejected leaves its share to those that are not.

    Args:
        rejects: Whether a test of its own rejects at a level; whoever does at one does at every higher one.
        level: Of all together.
    """
    levels: dict[str, float] = {}
    left = list(rejects)
    while left:
        share = level / len(left)
        gone = [name for name in left if rejects[name](share)]
        levels |= dict.fromkeys(gone or left, share)
        left = [name for name in left if name not in gone] if gone else []
    return levels
