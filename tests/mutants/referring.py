"""Wrong in names of requests for demands, layouts and sizes, and in what such requests may not ask for."""

from collections.abc import Iterable, Iterator

from minimal_server.core import Json, Refusal
from minimal_server.naming import Wrong
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


class Lenient(MinimalServer):
    """Looks at a request from which it has taken what is wrong."""

    @override
    def check_demand(self, body: Json) -> None:
        held = {row["id"] for row in body["hardware"]}
        super().check_demand({**body, **self.mended(body, held)})

    def mended(self, body: Json, held: set[str]) -> Json:
        """Members that it mends; ``held`` are names of hardware."""
        raise NotImplementedError

    @override
    def sheets(self, body: Json) -> dict[str, Json]:
        named = {row["hardware"]: body["hardware"][0] for _, _, row in self.trainings(body)}
        kind = {body["kind"]: body["hardware"][0]} if "kind" in body else {}
        return {**named, **kind, **super().sheets(body)}


@breaks("COM-042")
class UnknownHardwareOfCasesIsTheFirst(Lenient):
    """Cases on hardware that is not in the request are answered for the first that is."""

    @override
    def mended(self, body: Json, held: set[str]) -> Json:
        return {"cases": [row for row in body["cases"] if row["hardware"] in held]} if "cases" in body else {}


@breaks("COM-042")
class UnknownHardwareOfRunsIsTheFirst(Lenient):
    """Runs on hardware that is not in the request are taken to be on the first that is."""

    @override
    def mended(self, body: Json, held: set[str]) -> Json:
        return {"runs": [row for row in body["runs"] if row["hardware"] in held]} if "runs" in body else {}


@breaks("COM-042")
class UnknownKindsAreTheFirst(Lenient):
    """Layouts for hardware that is not in the request are those for the first that is."""

    @override
    def mended(self, body: Json, held: set[str]) -> Json:
        return {"kind": body["hardware"][0]["id"]} if "kind" in body else {}


@breaks("COM-042")
class LaterHardwareCounts(Lenient):
    """Of two sheets of one name the later one counts."""

    @override
    def mended(self, body: Json, held: set[str]) -> Json:
        return {"hardware": list({row["id"]: row for row in body["hardware"]}.values())}


@breaks("COM-042")
class CasesMayHaveOneName(Lenient):
    """Of two cases of one name both are answered."""

    @override
    def mended(self, body: Json, held: set[str]) -> Json:
        return {"cases": list({row["id"]: row for row in body["cases"]}.values())} if "cases" in body else {}


@breaks("COM-042")
class TasksMayHaveOneName(MinimalServer):
    """Of two tasks of one name both get a size."""

    @override
    def check_tasks(self, body: Json) -> None:
        return


@breaks("COM-042")
class MoreExpertsThanThereAre(MinimalServer):
    """Tokens go to more experts than there are."""

    @override
    def impossible(self, models: Iterable[tuple[str, Json]]) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class RunsMayContradictThemselves(MinimalServer):
    """Models of runs that cannot be are taken."""

    @override
    def impossible(self, models: Iterable[tuple[str, Json]]) -> Iterator[Wrong]:
        return super().impossible((place, model) for place, model in models if not place.startswith("/runs/"))


@breaks("COM-042")
class RowsCountFromOne(MinimalServer):
    """Problems point to the row after the wrong one."""

    @override
    def trainings(self, body: Json) -> Iterator[tuple[str, int, Json]]:
        return ((member, number + 1, row) for member, number, row in super().trainings(body))


@breaks("COM-042")
class UnknownHardwareIsNotFound(MinimalServer):
    """Hardware that is not in the request is answered with not-found."""

    @override
    def check_demand(self, body: Json) -> None:
        try:
            super().check_demand(body)
        except Refusal as refusal:
            name = "not-found" if refusal.name == "unknown-reference" else refusal.name
            raise Refusal(name, refusal.detail, refusal.errors) from refusal
