"""Which nodes die, come and go, or fail, and when: each has one fault at a time and time to recover."""

from collections import defaultdict
from collections.abc import Sequence
from math import inf

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.heartbeats import lines
from kuayu_conformance.testbed.heartbeats.cutting import Reach, Turns
from kuayu_conformance.testbed.heartbeats.placing import Places
from kuayu_conformance.testbed.heartbeats.stepping import Blocking
from kuayu_conformance.testbed.heartbeats.values import (
    AMID,
    BLOCKING,
    CUT,
    DOMAIN_UNREACHABLE,
    FLAPPING,
    LOGGED,
    NODE_DEAD,
    NODE_FAILING,
    RACK,
    RESET,
    SINGLE,
    Absence,
    Cut,
    Incident,
    Scale,
)

RACK_NODES = 8
"""Nodes of a rack; those of a domain stand in the order of their rows."""

RECOVERY = 42.0
"""Seconds after a fault of a node in which nothing else happens to it."""

_DEAD = (13.0, 25.0)  # seconds until a node comes back
_BACK, _RACKS_BACK = 0.85, 0.5  # shares of nodes and racks that do
_GONE, _HERE, _TIMES = (3.6, 4.4), (2.6, 3.4), (3, 6)  # seconds away and back of a node that comes and goes, how often
_RESET, _RESET_AFTER, _RESET_TAKES = 0.5, (14.0, 20.0), (4.0, 6.0)  # share, and seconds, of nodes that are reset
_HARMLESS = 6.0  # harmless lines in a second, in all
_MOST_DRAWN = 2000


class Planner:
    """Draws what happens to nodes.

    Attributes:
        incidents: What was drawn.
        absences: When each row does not beat.
        lines: When which row logs what.
    """

    def __init__(self, scale: Scale, seed: str, places: Places, cuts: Sequence[Cut], turns: Turns) -> None:
        self._scale, self._seed, self._places, self._turns = scale, seed, places, turns
        self._cuts = cuts
        self._reach = Reach(tuple(cuts), turns)
        self._taken: dict[int, list[tuple[float, float]]] = defaultdict(list)
        self.incidents: list[Incident] = []
        self.absences: dict[int, list[Absence]] = defaultdict(list)
        self.lines: list[tuple[float, int, str]] = []
        for job in places.jobs:
            for row in job.nodes:
                self._taken[row] = [(-inf, inf)]

    def blockings(self) -> dict[str, Blocking]:
        """Let a node of each job that is to be blocked die for good; tells when, by the job."""
        chance, found = Chance(self._seed, "blocked jobs"), {}
        for job in (candidate for candidate in self._places.jobs if candidate.blocked):
            instant = chance.between(self._scale.warm_up, self._scale.end)
            row = chance.pick(job.nodes)
            self._die(row, instant, inf, BLOCKING)
            found[job.name] = Blocking(instant, tuple(rank for rank, node in enumerate(job.nodes) if node == row))
        return found

    def plan(self, others: int) -> None:
        """Draw everything, so that there are as many incidents as the world is to have with ``others``."""
        self._partitions()
        self._racks()
        self._come_and_go()
        self._fail()
        self._die_alone(self._scale.incidents - others)
        self._chatter()
        for absences in self.absences.values():
            absences.sort(key=lambda absence: absence.since)

    def _domain(self, row: int) -> int:
        return row // self._scale.nodes

    def _partitions(self) -> None:
        """Domains that cannot be reached, and nodes that die amid it: which is so from when the domain is heard."""
        chance = Chance(self._seed, "deaths amid partitions")
        for cut in self._cuts:
            name = self._places.domains[cut.domain]
            since, until = self._turns.at(cut.domain, cut.since), self._turns.at(cut.domain, cut.until)
            found = Incident(DOMAIN_UNREACHABLE, CUT, since, since, until, domain=name)
            self.incidents.append(found)
            for _ in range(self._scale.amid):
                dies = chance.between(since + 2.0, until - 3.0)
                back = until + chance.between(*_DEAD) if chance.fraction() < _BACK else inf
                row = self._free(chance, dies, back, amid=cut.domain)
                if row is not None:
                    self._die(row, dies, back, AMID, told_from=until)

    def _racks(self) -> None:
        chance = Chance(self._seed, "racks")
        for _ in range(self._scale.racks):
            for _ in range(_MOST_DRAWN):
                instant = self._moment(chance)
                first = RACK_NODES * chance.below(len(self._places.nodes) // RACK_NODES)
                rows = range(first, first + RACK_NODES)
                back = self._back(chance, self._domain(first), instant, _RACKS_BACK)
                if all(self._is_free(row, instant, back) for row in rows):
                    for row in rows:
                        self._die(row, instant, back, RACK)
                    break

    def _come_and_go(self) -> None:
        chance = Chance(self._seed, "nodes that come and go")
        for _ in range(self._scale.flapping):
            begin = instant = self._moment(chance)
            absences = []
            for _ in range(_TIMES[0] + chance.below(_TIMES[1] - _TIMES[0])):
                absences.append(Absence(instant, instant + chance.between(*_GONE), anew=False))
                instant = absences[-1].until + chance.between(*_HERE)
            over = absences[-1].until
            row = self._free(chance, begin, over, heard_until=over)
            if row is not None:
                self._take(row, begin, over)
                self.absences[row] += absences
                self._note(NODE_DEAD, FLAPPING, row, begin, over)

    def _fail(self) -> None:
        """Nodes whose logs tell that they have to be reset; some are, away for so short that it need not be told."""
        chance = Chance(self._seed, "nodes that fail")
        for _ in range(self._scale.logged):
            instant, is_reset = self._moment(chance), chance.fraction() < _RESET
            away = instant + chance.between(*_RESET_AFTER)
            over = away + chance.between(*_RESET_TAKES) if is_reset else inf
            text = lines.grave(chance)
            row = self._free(chance, instant, over, heard_until=over if is_reset else instant)
            if row is None:
                continue
            self._take(row, instant, over)
            delivered = self._turns.at(self._domain(row), self._turns.first(self._domain(row), instant))
            self.lines.append((instant, row, text))
            self._note(NODE_FAILING, LOGGED, row, delivered, over)
            if is_reset:
                self.absences[row].append(Absence(away, over, anew=True))
                self._note(NODE_DEAD, RESET, row, away, over, demanded=False)

    def _die_alone(self, until: int) -> None:
        """Single nodes, until there are so many incidents.

        Raises:
            ValueError: There are too few nodes.
        """
        chance = Chance(self._seed, "nodes that die")
        for _ in range(until - sum(incident.demanded for incident in self.incidents)):
            for _ in range(_MOST_DRAWN):
                instant = self._moment(chance)
                row = chance.below(len(self._places.nodes))
                back = self._back(chance, self._domain(row), instant, _BACK)
                if self._is_free(row, instant, back):
                    self._die(row, instant, back, SINGLE)
                    break
            else:
                raise ValueError("there are too few nodes for so many incidents")

    def _chatter(self) -> None:
        """Harmless lines of nodes that live."""
        chance = Chance(self._seed, "harmless lines")
        for _ in range(int(_HARMLESS * self._scale.total)):
            instant, row = chance.between(1.0, self._scale.total), chance.below(len(self._places.nodes))
            text = lines.harmless(chance)
            if not any(absence.since <= instant < absence.until for absence in self.absences.get(row, ())):
                self.lines.append((instant, row, text))
        self.lines.sort()

    def _moment(self, chance: Chance) -> float:
        return chance.between(self._scale.warm_up, self._scale.end)

    def _back(self, chance: Chance, domain: int, instant: float, share: float) -> float:
        """When who dies comes back, which is heard at once; never for some."""
        back = instant + chance.between(*_DEAD)
        return self._reach.open(domain, back) if chance.fraction() < share else inf

    def _free(
        self, chance: Chance, since: float, until: float, *, heard_until: float = -inf, amid: int | None = None
    ) -> int | None:
        """A row to which nothing happens near to that; of a domain that is named, be it heard or not."""
        for _ in range(_MOST_DRAWN):
            row = chance.below(len(self._places.nodes))
            if amid is None and self._is_free(row, since, until, heard_until):
                return row
            if amid == self._domain(row) and self._is_rested(row, since, until):
                return row
        return None

    def _is_free(self, row: int, since: float, until: float, heard_until: float = -inf) -> bool:
        """Whether a row has time for a fault, and its domain is heard when it begins, or until then."""
        reachable = self._reach.clear(self._domain(row), since, max(since, heard_until))
        return reachable and self._is_rested(row, since, until)

    def _is_rested(self, row: int, since: float, until: float) -> bool:
        return not any(since < end and until + RECOVERY > begin for begin, end in self._taken.get(row, ()))

    def _take(self, row: int, since: float, until: float) -> None:
        self._taken[row].append((since, until + RECOVERY))

    def _die(self, row: int, instant: float, back: float, cause: str, *, told_from: float | None = None) -> None:
        self._take(row, instant, back)
        self.absences[row].append(Absence(instant, back, anew=True))
        self._note(NODE_DEAD, cause, row, instant if told_from is None else told_from, back)

    def _note(self, kind: str, cause: str, row: int, instant: float, until: float, *, demanded: bool = True) -> None:
        domain = self._places.domains[self._domain(row)]
        node = self._places.nodes[row]
        self.incidents.append(
            Incident(
                kind,
                cause,
                instant,
                instant,
                until,
                domain,
                node,
                queried_domains=(domain,) * demanded,
                demanded=demanded,
            )
        )
