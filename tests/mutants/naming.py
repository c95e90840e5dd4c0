"""Wrong in names of requests for scheduling decisions."""

from collections.abc import Iterable, Iterator

from minimal_server.core import Json
from minimal_server.naming import Wrong
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-042")
class UnknownHomesAreTaken(MinimalServer):
    """Jobs may be at home in domains that are not there."""

    @override
    def unknown_in_spec(self, place: str, spec: Json, domains: set[str]) -> Iterator[Wrong]:
        return super().unknown_in_spec(place, spec, {*domains, spec.get("home_domain", "")})


@breaks("COM-042")
class JobsMayHaveOneName(MinimalServer):
    """Of two jobs of one name both are decided on."""

    @override
    def given_twice(self, body: Json) -> Iterator[Wrong]:
        yield from (wrong for wrong in super().given_twice(body) if not wrong[0].endswith("/spec/id"))


@breaks("COM-042")
class DemandsFromNowhereAreNotServed(MinimalServer):
    """Demands between places that are not there are not refused; they are not served."""

    @override
    def unknown_places(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("SCH-020")
class MoreMayBeFreeThanThereIs(MinimalServer):
    """Free devices of pools and nodes are believed, however many."""

    @override
    def contradicting(self, state: Json) -> Iterator[Wrong]:
        yield from (wrong for wrong in super().contradicting(state) if not wrong[0].endswith("/free"))


@breaks("SCH-020")
class MoreMayBeHeldThanThereIs(MinimalServer):
    """What running jobs hold is not added up."""

    @override
    def held_of_pool(self, state: Json, domain: str, accelerator: str) -> int:
        return 0


@breaks("SCH-020")
class LeastMayBeAboveMost(MinimalServer):
    """A job that no number of devices would do for waits for ever."""

    @override
    def unsatisfiable(self, devices: Json) -> bool:
        asked = devices.get("requested", devices["maximum"])
        return asked < devices["minimum"] <= devices["maximum"] or asked > devices["maximum"]


@breaks("COM-042", "SCH-020")
class WrongNamesStandInTheState(MinimalServer):
    """Problems point to the member of the request that a wrong name is in, not to its place."""

    @override
    def refuse_if(self, problem: str, detail: str, wrong: Iterable[Wrong]) -> None:
        super().refuse_if(problem, detail, [("/" + pointer.split("/")[1], what) for pointer, what in wrong])


@breaks("COM-042")
class UnknownNamesSpoilTheBody(MinimalServer):
    """Names that refer to nothing are answered with invalid-body."""

    @override
    def refuse_if(self, problem: str, detail: str, wrong: Iterable[Wrong]) -> None:
        super().refuse_if("invalid-body", detail, wrong)
