"""What tells series apart: a shape and a colour each, so that the shape alone is enough.

A point is a stroke of next to no length, as thick as the symbol is wide: round ends make a disc, square ones a square,
along the diagonal a diamond. So all points of a series are one path, and as strokes do not scale with the drawing
(``vector-effect``), symbols keep their size.
"""

from collections.abc import Iterable
from dataclasses import dataclass

_COLOURS = 6
_SHAPES = ("disc", "square", "diamond", "ring", "frame", "lozenge")
_SLANTED = frozenset({"diamond", "lozenge"})
_HOLLOW = frozenset({"ring", "frame", "lozenge"})


@dataclass(frozen=True, slots=True)
class Symbol:
    """Shape and colour of a series' points, by the names of their classes in the style sheet.

    Attributes:
        shape: Name of the shape.
        colour: Name of the colour.
    """

    shape: str
    colour: str

    @property
    def hollow(self) -> bool:
        """Whether the shape is drawn twice, the second time in the colour of the paper."""
        return self.shape in _HOLLOW

    def path(self, places: Iterable[tuple[int, int]]) -> str:
        """The points at some places of the drawing, as the data of one SVG path."""
        nib = "l1 1" if self.shape in _SLANTED else "h.1"
        return "".join(f"M{x} {y}{nib}" for x, y in places)


def symbol(number: int) -> Symbol:
    """The symbol of a series by its number; the first six differ in both, the first 36 in either."""
    shape = (number + number // _COLOURS) % len(_SHAPES)
    return Symbol(_SHAPES[shape], f"colour-{number % _COLOURS}")
