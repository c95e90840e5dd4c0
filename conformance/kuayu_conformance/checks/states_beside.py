"""Changes beside the played world that leave nothing to be recognised: each node and each link changes once."""

from collections.abc import Iterator
from dataclasses import dataclass

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.fixtures import domain, sample
from kuayu_conformance.episode import Episode, instant

KINDS = ("registered", "faulty", "offline", "deleted", "link down", "link up")
"""What is changed in every second, each of another node or link."""

HELD = 32
"""Seconds for which a link stays down: longer than a change may take to be shown, so that none is overtaken."""


@dataclass(frozen=True)
class Change:
    """A change that leaves nothing to be recognised: what, of which node or link, and how it was answered."""

    what: str
    name: str
    answer: Answer


class Beside:
    """A pair of domains of the suite's own, whose states are stated and not recognised."""

    def __init__(self, episode: Episode, seconds: int) -> None:
        """Register what is to be changed, a node and a link for each second and kind."""
        self._episode = episode
        self._site = domain(episode, "beside")
        other = domain(episode, "opposite")
        for second in range(seconds):
            for kind in ("faulty", "offline", "deleted"):
                name = self._name(kind, second)
                episode.set_up("PUT", f"/v1/nodes/{name}", {"id": name, "domain": self._site})
            name = self._name("link", second)
            body = {"id": name, "source": self._site, "destination": other}
            episode.set_up("PUT", f"/v1/links/{name}", body)

    def change(self, second: int, what: str) -> Iterator[Change]:
        """Make the change of that second; links come up again after a while."""
        if what.startswith("link"):
            of = second if what == "link down" else second - HELD
            if of < 0:
                return
            name = self._name("link", of)
            answer = self._report(name, "link", packet_loss=float(what == "link down"))
        else:
            name = self._name(what, second)
            if what == "registered":
                answer = self._episode.ask("PUT", f"/v1/nodes/{name}", {"id": name, "domain": self._site})
            elif what == "deleted":
                answer = self._episode.ask("DELETE", f"/v1/nodes/{name}")
            else:
                answer = self._report(name, "node", health_state=what)
        yield Change(what, name, answer)

    def _name(self, kind: str, second: int) -> str:
        return self._episode.name_of(f"{kind}{second}")

    def _report(self, name: str, kind: str, **measures: float | str) -> Answer:
        reported = sample(name, instant(self._episode.now()), kind=kind, **measures)
        return self._episode.ask("POST", "/v1/samples", {"mode": "per_item", "samples": [reported]})
