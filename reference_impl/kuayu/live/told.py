"""What a service told of a run that it watched."""

from collections.abc import Sequence
from dataclasses import dataclass

from kuayu.live.timeline import Incident


@dataclass(frozen=True, slots=True)
class Told:
    """A fault that a service has told.

    Attributes:
        kind: As class Fault has it.
        node: The node that it is about; None where it is about a domain or a job.
        domain: The domain that it is about, or of the node.
        at: When it was told, in seconds of the steady clock.
        actions: Actions that domains were asked for because of it.
    """

    kind: str
    node: str | None
    domain: str | None
    at: float
    actions: int


@dataclass(frozen=True, slots=True)
class Service:
    """All that it told, and what became of what it asked.

    Attributes:
        told: Faults in the order in which they were told.
        unanswered: Actions that no domain had answered at the end.
    """

    told: Sequence[Told]
    unanswered: int

    @property
    def asked(self) -> int:
        """Actions that domains were asked for."""
        return sum(each.actions for each in self.told)

    def of(self, incident: Incident) -> Told | None:
        """The first fault about an incident's worker or its domain after it was brought about; None where none was."""
        worker, domain = incident.worker, domain_of(incident.worker)
        about = [each for each in self.told if each.node == worker or (each.node is None and each.domain == domain)]
        return min((each for each in about if each.at >= incident.at), key=lambda each: each.at, default=None)

    def strange(self, incidents: Sequence[Incident]) -> list[Told]:
        """Faults about nodes and domains to which nothing had been done."""
        workers = {each.worker for each in incidents}
        domains = {domain_of(each) for each in workers}
        whole = [each for each in self.told if each.node is None and each.domain is not None]
        return [
            *(each for each in self.told if each.node is not None and each.node not in workers),
            *(each for each in whole if each.domain not in domains),
        ]


def domain_of(worker: str) -> str:
    """Domain of a worker, by whose name and a number it is called."""
    return worker.rpartition("-")[0]
