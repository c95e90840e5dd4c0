"""Wrong in groups, in watts, in probe plans, and in how names that are not there are refused."""

from collections.abc import Iterator, Sequence

from miniature.core import Json, Refusal
from miniature.groups import Group
from miniature.indices import Place, Question
from miniature.plans import Prospect
from miniature.service import Miniature
from typing_extensions import override

from mutants.declaration import breaks


@breaks("IDX-012", "IDX-013", "IDX-014")
class MembersCountOnce(Miniature):
    """However many of a member there are, one is counted."""

    @override
    def times(self, member: Json) -> int:
        return 1


@breaks("IDX-012", "IDX-014")
class InnerGroupsCountOnce(Miniature):
    """However many of an inner group there are, one is counted."""

    @override
    def times(self, member: Json) -> int:
        return super().times(member) if "device" in member else 1


@breaks("IDX-012")
class MembersAreToldForDevices(Miniature):
    """The devices of a group are said to be as many as its members are."""

    @override
    def group_index(self, question: Question, group: Group, task: str) -> Json:
        members = sum(member["count"] for member in group.row["members"])
        return {**super().group_index(question, group, task), "devices": members}


@breaks("IDX-013")
class EfficiencyExceedsOne(Miniature):
    """One job over a group is sped up beyond the sum where the network is fast."""

    @override
    def one_job(self, question: Question, group: Group, task: str, value: float) -> Json:
        told = super().one_job(question, group, task, value)
        return told | ({"together": 1.02 * told["together"]} if told else {})


@breaks("IDX-013")
class FasterNetworksAreSlower(Miniature):
    """One job over a group is the slower, the faster its network."""

    @override
    def efficiency(self, throughput: float, seconds: float) -> float:
        return 1 - super().efficiency(throughput, seconds)


@breaks("IDX-013")
class EfficiencyIsAlwaysOne(Miniature):
    """Devices are said not to wait for their network, although the index shows that they do."""

    @override
    def one_job(self, question: Question, group: Group, task: str, value: float) -> Json:
        told = super().one_job(question, group, task, value)
        return told | ({"efficiency": 1.0} if told else {})


@breaks("IDX-014")
class WattsAreInverted(Miniature):
    """The index is multiplied by the device's power and divided by the reference's."""

    @override
    def per_watt(self, question: Question, device: str, task: str, value: float) -> float | None:
        watts = super().per_watt(question, device, task, value)
        return watts and value * value / watts


@breaks("IDX-014")
class DataSheetGoesBeforeMeasuredPower(Miniature):
    """The power of the data sheet counts where another was measured on the task."""

    @override
    def power(self, question: Question, device: str, task: str) -> float | None:
        own: float | None = question.calibration.devices[device].get("power")
        return super().power(question, device, task) if own is None else own


@breaks("IDX-014")
class UnknownPowerIsGuessed(Miniature):
    """A power that is not known is taken to be the reference's."""

    @override
    def power(self, question: Question, device: str, task: str) -> float | None:
        known = super().power(question, device, task)
        return super().power(question, question.calibration.reference, task) if known is None else known


@breaks("IDX-015")
class PlansAreFilledWithRepetitions(Miniature):
    """When there are no more candidates, the first one is to be measured again."""

    @override
    def probes(self, prospect: Prospect, body: Json) -> list[Json]:
        probes = super().probes(prospect, body)
        return probes + [{**probes[0], "half_width": probes[-1]["half_width"]}] * (body["probes"] - len(probes))


@breaks("IDX-015")
class PlansAreFilledWithStrangers(Miniature):
    """When there are no more candidates, what was measured already is to be measured again."""

    @override
    def probes(self, prospect: Prospect, body: Json) -> list[Json]:
        probes = super().probes(prospect, body)
        row = body["corpus"]["measurements"][0]
        more = {"device": row["device"], "task": row["task"], "half_width": probes[-1]["half_width"]}
        return [*probes, more] if len(probes) < body["probes"] else probes


@breaks("IDX-015")
class PlansAreOneTooLong(Miniature):
    """A plan holds one probe more than was asked for."""

    @override
    def probes(self, prospect: Prospect, body: Json) -> list[Json]:
        return super().probes(prospect, {**body, "probes": body["probes"] + 1})


@breaks("IDX-015")
class PlansAreSorted(Miniature):
    """A plan is in the order of the candidates, so that a shorter one need not begin a longer one."""

    @override
    def probes(self, prospect: Prospect, body: Json) -> list[Json]:
        probes = super().probes(prospect, body)
        order = {(row["device"], row["task"]): number for number, row in enumerate(body["candidates"])}
        made = sorted(probes, key=lambda probe: order[probe["device"], probe["task"]])
        return [{**probe, "half_width": old["half_width"]} for probe, old in zip(made, probes, strict=True)]


@breaks("IDX-015")
class PlansMakeItWorse(Miniature):
    """The expected width grows along a plan."""

    @override
    def probes(self, prospect: Prospect, body: Json) -> list[Json]:
        probes = super().probes(prospect, body)
        widths = sorted(probe["half_width"] for probe in probes)
        return [{**probe, "half_width": width} for probe, width in zip(probes, widths, strict=True)]


@breaks("IDX-016")
class UnknownDevicesAreSkipped(Miniature):
    """Devices that are asked for and are not in the corpus are not refused; the answer does without them."""

    @override
    def references(self, body: Json) -> Iterator[tuple[str, str, str]]:
        held = {row["id"] for row in body["corpus"]["devices"]}
        if "devices" in body:
            body["devices"] = [name for name in body["devices"] if name in held]
        return super().references(body)


@breaks("IDX-016")
class UnknownNamesHaveNoPlace(Miniature):
    """Problems point to the list that a wrong name stands in, not to its entry."""

    @override
    def refused(self, problem: str, detail: str, places: Sequence[Place]) -> Refusal:
        return super().refused(problem, detail, [("/" + pointer.split("/")[1], what) for pointer, what in places])


@breaks("IDX-016")
class LaterGroupsAreTaken(Miniature):
    """A group that consists of one that stands later is answered, as if the later one were empty."""

    @override
    def unknown_members(self, groups: Sequence[Json], devices: set[str]) -> Iterator[Place]:
        for pointer, what in super().unknown_members(groups, devices):
            if not pointer.endswith("/group"):
                yield pointer, what

    @override
    def groups(self, question: Question, body: Json) -> list[Json]:
        names = [row["id"] for row in body.get("groups", ())]
        kept = []
        for number, row in enumerate(body.get("groups", ())):
            members = [m for m in row["members"] if "device" in m or m["group"] in names[:number]]
            kept.append({**row, "members": members or [{"device": question.calibration.reference, "count": 1}]})
        return super().groups(question, {**body, "groups": kept})


@breaks("IDX-016")
class RepeatedNamesAreTaken(Miniature):
    """Of two devices or tasks of one name the later one counts."""

    @override
    def repeated(self, place: str, rows: Sequence[Json]) -> Iterator[Place]:
        return iter(())


@breaks("IDX-016")
class UnknownNamesAreNotFound(Miniature):
    """Names that are not in the corpus are answered with not-found."""

    @override
    def refused(self, problem: str, detail: str, places: Sequence[Place]) -> Refusal:
        return super().refused("not-found" if problem == "unknown-reference" else problem, detail, places)
