"""What everything is called in a run, and what time it is there.

Names follow from the seed of the run, so that a name that was seen before says nothing; lists are in the order of these
names. The clock is shifted by whole days: hours stay what they are, as tariffs follow them.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from kuayu_conformance.testbed.chance import Chance

_SINCE = datetime(2000, 1, 1, 16, tzinfo=UTC)
"""Midnight in China; a scenario begins at one."""
_DAYS = 36_500


class Names:
    """Names of a run, and back.

    Args:
        seed: Names and the clock follow from it.
    """

    def __init__(self, seed: str) -> None:
        self._key = blake2b(seed.encode(), digest_size=16).digest()
        self._begin = _SINCE + timedelta(days=Chance(seed, "date").below(_DAYS))
        self.epoch = self._named("epoch", "")
        self._given: dict[tuple[str, str], str] = {}
        self._meant: dict[tuple[str, str], str] = {}

    def of(self, kind: str, name: str) -> str:
        """What something is called in this run.

        Args:
            kind: What it is, a word of lower-case letters.
            name: What it is called in the world.
        """
        given = self._given.get((kind, name))
        if given is None:
            given = self._given[kind, name] = self._named(kind, name)
            self._meant[kind, given] = name
        return given

    def meant(self, kind: str, given: str) -> str:
        """What something is called in the world; for a name that was never given, one that nothing there has."""
        return self._meant.get((kind, given), f"?{given}")

    def again(self, kind: str, name: str) -> str:
        """What an answer called it, which ``meant`` has translated."""
        return name[1:] if name.startswith("?") else self.of(kind, name)

    def by(self, kind: str) -> Callable[[str], str]:
        """``of`` for one kind."""
        return lambda name: self.of(kind, name)

    def instant(self, seconds: float) -> str:
        """The time of a second of the scenario, to the millisecond."""
        moment = self._begin + timedelta(milliseconds=round(seconds * 1e3))
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"

    def _named(self, kind: str, name: str) -> str:
        digest = blake2b(name.encode(), digest_size=6, key=self._key, person=kind.encode()[:16])
        return f"{kind}-{digest.hexdigest()}"
