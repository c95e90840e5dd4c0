"""A job at hand while an epoch is being decided."""

from dataclasses import dataclass

from kuayu.scheduling.scene import Flags, Floats, Numbers


@dataclass(slots=True)
class Turn:
    """A job at hand.

    Attributes:
        job: Its number.
        rows: Rows of its ways.
        features: Of these, (rows, features).
        now: Whether each could be taken now.
        scores: Of each.
        chosen: Place of what is chosen among the rows, or none.
        starts: Whether that is taken now.
        counts: Whether it was looked at to decide, and not merely to be explained.
    """

    job: int
    rows: Numbers
    features: Floats
    now: Flags
    scores: Floats
    chosen: int | None = None
    starts: bool = False
    counts: bool = True

    @property
    def row(self) -> int:
        """Row of what is chosen.

        Raises:
            ValueError: Nothing is.
        """
        if self.chosen is None:
            raise ValueError("nothing is chosen")
        return int(self.rows[self.chosen])
