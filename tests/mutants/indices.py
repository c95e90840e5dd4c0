"""Wrong in compute indices: how they behave, what they say of themselves, groups, watts, probe plans, and names.

What is wrong with the figures stands in :mod:`mutants.estimates`. All others are edits of answers; those that tell of
another value tell of one that agrees with itself, so that nothing shows but what is wrong. Where groups are asked for,
values stand, for sums over members would no longer agree with them.
"""

import math
from collections.abc import Callable, Iterator
from itertools import count
from statistics import fmean

from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import INDICES, PROBE_PLANS, Json, answers, breaks, problems, requests
from mutants.oracle import MARGIN

MEASURED = "measured"
TOLERANCE = 0.4
"""Tolerance of a request that names none, by the standard."""

UNKNOWN_REFERENCE = "urn:kuayu:problem:unknown-reference"
NOT_FOUND = {"type": "urn:kuayu:problem:not-found", "title": "Nothing is known under this path", "status": 404}


def scaled(row: Json, factor: float, *, ends: bool = True) -> None:
    """Multiply an index and all that follows from its value; the ends of its interval, too, or not."""
    for name in ("value", "per_watt", *(("low", "high") if ends else ())):
        if name in row:
            row[name] *= factor
    for part, name in _explained(row):
        part[name] *= factor


def _explained(row: Json) -> Iterator[tuple[Json, str]]:
    """Figures of an explanation that go with the value, each by what holds it and its name."""
    if "explanation" in row:
        yield row["explanation"], "residual"
        yield from ((lever, "value") for lever in row["explanation"]["levers"])


def inferred(request: Json, answer: Json) -> Iterator[Json]:
    """Indices that were not measured, and are not those of the reference."""
    if not request.get("groups"):
        yield from (
            row for row in answer["indices"] if row["basis"] != MEASURED and row["device"] != request["reference"]
        )


def unknown(request: Json, answer: Json) -> Iterator[Json]:
    """Those of them that the test double does not know: what becomes of its figures is not what is tried here."""
    yield from (row for row in inferred(request, answer) if not math.isclose(row["high"], row["value"] * MARGIN))


def by_name(rows: list[Json]) -> dict[str, Json]:
    """Rows of a corpus by their names."""
    return {row["id"]: row for row in rows}


def explanations(answer: Json) -> Iterator[Json]:
    """All explanations of an answer."""
    yield from (row["explanation"] for row in answer["indices"] if "explanation" in row)


@breaks("IDX-005")
@answers(INDICES)
def width_is_high_over_low(request: Json, answer: Json) -> Json:
    """Abstains where high/low - 1 is wider than the tolerance, without the root."""
    for row in answer["indices"]:
        row["abstained"] = row["high"] > row["low"] * (1 + request.get("tolerance", TOLERANCE))
    return answer


@breaks("IDX-005")
@answers(INDICES)
def abstains_never(_: Json, answer: Json) -> Json:
    """Abstains from nothing."""
    for row in answer["indices"]:
        row["abstained"] = False
    return answer


@breaks("IDX-005")
@answers(INDICES)
def intervals_are_cut_to_the_tolerance(request: Json, answer: Json) -> Json:
    """Intervals are made as narrow as the tolerance, so that nothing is abstained from."""
    most = 1 + request.get("tolerance", TOLERANCE)
    for row in answer["indices"] if not request.get("groups") else ():
        row["low"], row["high"] = max(row["low"], row["value"] / most), min(row["high"], row["value"] * most)
        row["abstained"] = False
    return answer


@breaks("IDX-005")
@answers(INDICES)
def values_lie_outside_their_intervals(request: Json, answer: Json) -> Json:
    """Intervals that are not points end a little below their value."""
    for row in inferred(request, answer):
        scaled(row, row["high"] * 1.001 / row["value"], ends=False)
    return answer


@breaks("IDX-006")
@answers(INDICES)
def falls_with_memory_capacity(request: Json, answer: Json) -> Json:
    """The more memory a device has, the less it is worth."""
    sheets, memory = by_name(request["corpus"]["devices"]), "accelerator_memory_capacity"
    for row in inferred(request, answer):
        theirs, ours = (sheets[name].get(memory, 1.0) for name in (request["reference"], row["device"]))
        scaled(row, math.pow(theirs / ours, 0.01))
    return answer


@breaks("IDX-006", "IDX-010")
@answers(INDICES)
def falls_with_memory_bandwidth(request: Json, answer: Json) -> Json:
    """The faster the memory of a device, the less it is worth; the levers say otherwise."""
    sheets, memory = by_name(request["corpus"]["devices"]), "accelerator_memory_bandwidth"
    for row in unknown(request, answer):
        theirs, ours = (sheets[name].get(memory, 1.0) for name in (request["reference"], row["device"]))
        scaled(row, math.pow(theirs / ours, 2.0))
    return answer


@breaks("IDX-006", "IDX-010")
@answers(INDICES)
def data_sheets_are_ignored(request: Json, answer: Json) -> Json:
    """A device that was not measured is worth as much as the reference."""
    for row in unknown(request, answer):
        scaled(row, 1 / row["value"])
    return answer


@breaks("IDX-007")
@answers(INDICES)
def later_devices_are_worth_less(request: Json, answer: Json) -> Json:
    """The later a device stands in the corpus, the less it is worth."""
    places = list(by_name(request["corpus"]["devices"]))
    for row in inferred(request, answer):
        scaled(row, 1 - 0.003 * places.index(row["device"]))
    return answer


@breaks("IDX-007")
@answers(INDICES)
def long_names_are_worth_more(request: Json, answer: Json) -> Json:
    """The longer its name, the more a device is worth."""
    for row in inferred(request, answer):
        scaled(row, 1 + 0.001 * len(row["device"]))
    return answer


@breaks("IDX-007")
@answers(INDICES)
def small_units_are_worth_more(request: Json, answer: Json) -> Json:
    """The more units of the task in a second, the more a device is worth."""
    for row in inferred(request, answer):
        made = [each["throughput"] for each in request["corpus"]["measurements"] if each["task"] == row["task"]]
        scaled(row, math.pow(max(made, default=1.0), 0.002))
    return answer


@breaks("IDX-008")
@answers(INDICES)
def measured_pairs_are_smoothed(request: Json, answer: Json) -> Json:
    """Measured indices are drawn towards that of the reference, by one hundredth."""
    for row in answer["indices"] if not request.get("groups") else ():
        if row["basis"] == MEASURED and row["device"] != request["reference"]:
            scaled(row, 0.99 if row["value"] > 1 else 1.01)
    return answer


@breaks("IDX-008")
@requests(INDICES)
def repetitions_are_averaged(request: Json) -> Json:
    """Of several measurements of the same the mean counts, not the median."""

    def same(row: Json) -> tuple[object, ...]:
        return row["device"], row["task"], row.get("devices", 1)

    rows = request["corpus"]["measurements"]
    for row in rows:
        row["mean"] = fmean(other["throughput"] for other in rows if same(other) == same(row))
    for row in rows:
        row["throughput"] = row.pop("mean")
    return request


@breaks("IDX-008")
@answers(INDICES)
def probed_call_themselves_measured(_: Json, answer: Json) -> Json:
    """An index that was inferred from other tasks claims to be measured."""
    for row in answer["indices"]:
        row["basis"] = MEASURED if row["basis"] == "probed" else row["basis"]
    return answer


@breaks("IDX-011")
@answers(INDICES)
def stack_is_the_references(request: Json, answer: Json) -> Json:
    """Every index names the software stack of the reference."""
    sheet = by_name(request["corpus"]["devices"])[request["reference"]]
    for row in answer["indices"]:
        row["stack"] = sheet["stack"]
    return answer


@breaks("IDX-011")
@answers(INDICES)
def date_is_missing(_: Json, answer: Json) -> Json:
    """No index says when its device was measured."""
    for row in answer["indices"]:
        row.pop("measured_at", None)
    return answer


@breaks("COM-028", "SCH-013", "SCH-015", "SCH-016")
class DecisionsTellTheServicesRevision(MinimalServer):
    """Decisions tell the revision of the service instead of the request's."""

    @override
    def echoed(self, body: Json) -> Json:
        return {"epoch": self.epoch, "number": 0}


COMPUTED = count(1)


@breaks("COM-029")
@answers(INDICES)
def estimates_tremble_in_the_last_digits(request: Json, answer: Json) -> Json:
    """Each time an index is computed, it is a trillionth larger, as if a random start were left in it."""
    for row in inferred(request, answer):
        scaled(row, 1 + 1e-12 * next(COMPUTED))
    return answer


@breaks("IDX-009")
@answers(INDICES)
def weights_do_not_sum_to_one(_: Json, answer: Json) -> Json:
    """The weights of an explanation sum to nine tenths."""
    for explanation in explanations(answer):
        explanation["residual"] *= 0.9
        for term in explanation["terms"]:
            term["weight"] *= 0.9
    return answer


@breaks("IDX-009")
@answers(INDICES)
def smallest_share_dominates(_: Json, answer: Json) -> Json:
    """The term with the smallest share is called the dominant one."""
    for explanation in explanations(answer):
        explanation["dominant"] = min(explanation["terms"], key=_share)["capability"]
    return answer


@breaks("IDX-009")
@answers(INDICES)
def residual_is_left_out(_: Json, answer: Json) -> Json:
    """Every residual is one."""
    for explanation in explanations(answer):
        explanation["residual"] = 1.0
    return answer


@breaks("IDX-009")
@answers(INDICES)
def shares_are_those_of_the_reference(_: Json, answer: Json) -> Json:
    """The share of a term is its weight, whatever the device."""
    for explanation in explanations(answer):
        for term in explanation["terms"]:
            term["share"] = term["weight"]
        explanation["dominant"] = max(explanation["terms"], key=_share)["capability"]
    return answer


def _share(term: Json) -> float:
    share: float = term["share"]
    return share


def _levers(answer: Json, factor: float) -> Json:
    for explanation in explanations(answer):
        for lever in explanation["levers"]:
            lever["value"] *= factor
    return answer


@breaks("IDX-010")
@answers(INDICES)
def levers_are_overstated_by_three_percent(_: Json, answer: Json) -> Json:
    """Levers promise 3 % more than comes of them, where it may be 2 %."""
    return _levers(answer, 1.03)


@breaks()
@answers(INDICES)
def levers_are_overstated_by_one_percent(_: Json, answer: Json) -> Json:
    """Levers promise 1 % more than comes of them, where it may be 2 %: nothing is wrong."""
    return _levers(answer, 1.01)


@breaks("IDX-010")
@answers(INDICES)
def lever_of_memory_is_missing(_: Json, answer: Json) -> Json:
    """What faster memory would do is not told."""
    for explanation in explanations(answer):
        explanation["levers"] = [lever for lever in explanation["levers"] if lever["capability"] != "memory"]
    return answer


def members(request: Json) -> Iterator[Json]:
    """Members of all groups of a request."""
    yield from (member for group in request.get("groups", ()) for member in group["members"])


@breaks("IDX-012", "IDX-013", "IDX-014")
@requests(INDICES)
def members_count_once(request: Json) -> Json:
    """However many of a member there are, one is counted."""
    for member in members(request):
        member["count"] = 1
    return request


@breaks("IDX-012", "IDX-014")
@requests(INDICES)
def inner_groups_count_once(request: Json) -> Json:
    """However many of an inner group there are, one is counted."""
    for member in members(request):
        member["count"] = member["count"] if "device" in member else 1
    return request


@breaks("IDX-012")
@answers(INDICES)
def members_are_told_for_devices(request: Json, answer: Json) -> Json:
    """The devices of a group are said to be as many as its members are."""
    groups = by_name(request.get("groups", []))
    for row in answer["groups"]:
        row["devices"] = sum(member["count"] for member in groups[row["group"]]["members"])
    return answer


@breaks("IDX-013")
@answers(INDICES)
def efficiency_exceeds_one(_: Json, answer: Json) -> Json:
    """One job over a group is sped up beyond the sum where the network is fast."""
    return _one_job(answer, lambda row: {"together": 1.02 * row["together"]})


@breaks("IDX-013")
@answers(INDICES)
def faster_networks_are_slower(_: Json, answer: Json) -> Json:
    """One job over a group is the slower, the faster its network."""
    return _one_job(
        answer,
        lambda row: {"efficiency": 1 - row["efficiency"], "together": row["independent"] * (1 - row["efficiency"])},
    )


@breaks("IDX-013")
@answers(INDICES)
def efficiency_is_always_one(_: Json, answer: Json) -> Json:
    """Devices are said not to wait for their network, although the index shows that they do."""
    return _one_job(answer, lambda _: {"efficiency": 1.0})


def _one_job(answer: Json, members_of: Callable[[Json], Json]) -> Json:
    """Replace members of what is answered for one job over a group."""
    for row in answer["groups"]:
        row.update(members_of(row) if "together" in row else {})
    return answer


@breaks("IDX-014")
@answers(INDICES)
def watts_are_inverted(_: Json, answer: Json) -> Json:
    """The index is multiplied by the device's power and divided by the reference's."""
    for row in answer["indices"]:
        if "per_watt" in row:
            row["per_watt"] = row["value"] ** 2 / row["per_watt"]
    return answer


@breaks("IDX-014")
@requests(INDICES)
def data_sheet_goes_before_measured_power(request: Json) -> Json:
    """The power of the data sheet counts where another was measured on the task."""
    sheets = by_name(request["corpus"]["devices"])
    for row in request["corpus"]["measurements"]:
        if "power" in sheets.get(row["device"], {}):
            row.pop("power", None)
    return request


@breaks("IDX-014")
@answers(INDICES)
def unknown_power_is_guessed(request: Json, answer: Json) -> Json:
    """A power that is not known is taken to be the reference's, where that is on its data sheet."""
    if "power" in by_name(request["corpus"]["devices"])[request["reference"]]:
        for row in answer["indices"]:
            row.setdefault("per_watt", row["value"])
    return answer


def _filled(request: Json, answer: Json, cell: Json) -> Json:
    """Make as many probes as are asked for of one cell where there are too few."""
    made = answer["probes"]
    if made:
        more = {**{name: cell[name] for name in ("device", "task")}, "half_width": made[-1]["half_width"]}
        made += [more] * (request["probes"] - len(made))
    return answer


@breaks("IDX-015")
@answers(PROBE_PLANS)
def plans_are_filled_with_repetitions(request: Json, answer: Json) -> Json:
    """When there are no more candidates, the first one is to be measured again."""
    return _filled(request, answer, answer["probes"][0]) if answer["probes"] else answer


@breaks("IDX-015")
@answers(PROBE_PLANS)
def plans_are_filled_with_strangers(request: Json, answer: Json) -> Json:
    """When there are no more candidates, what was measured already is to be measured again."""
    return _filled(request, answer, request["corpus"]["measurements"][0])


@breaks("IDX-015")
@requests(PROBE_PLANS)
def plans_are_one_too_long(request: Json) -> Json:
    """A plan holds one probe more than was asked for."""
    return {**request, "probes": request["probes"] + 1}


@breaks("IDX-015")
@answers(PROBE_PLANS)
def plans_are_sorted(request: Json, answer: Json) -> Json:
    """A plan is in the order of the candidates, so that a shorter one need not begin a longer one."""
    order = [(row["device"], row["task"]) for row in request["candidates"]]
    made = sorted(answer["probes"], key=lambda probe: order.index((probe["device"], probe["task"])))
    widths = [probe["half_width"] for probe in answer["probes"]]
    return {**answer, "probes": [{**probe, "half_width": width} for probe, width in zip(made, widths, strict=True)]}


@breaks("IDX-015")
@answers(PROBE_PLANS)
def plans_make_it_worse(_: Json, answer: Json) -> Json:
    """The expected width grows along a plan."""
    widths = sorted(probe["half_width"] for probe in answer["probes"])
    for probe, width in zip(answer["probes"], widths, strict=True):
        probe["half_width"] = width
    return answer


@breaks("COM-042")
@requests(INDICES)
def unknown_devices_are_skipped(request: Json) -> Json:
    """Devices that are asked for and are not in the corpus are not refused; the answer does without them."""
    if isinstance(request.get("devices"), list):
        sheets = by_name(request["corpus"]["devices"])
        request["devices"] = [name for name in request["devices"] if name in sheets]
    return request


@breaks("COM-042")
@problems(INDICES, PROBE_PLANS)
def unknown_names_have_no_place(_: Json, problem: Json) -> Json:
    """Problems point to the list that a wrong name stands in, not to its entry."""
    for error in problem.get("errors", ()):
        error["pointer"] = "/".join(error["pointer"].split("/")[:2])
    return problem


@breaks("COM-042")
@requests(INDICES)
def later_groups_are_taken(request: Json) -> Json:
    """A group that consists of one that stands later is answered, as if the later one were empty."""
    earlier: set[str] = set()
    for group in request.get("groups", ()):
        kept = [member for member in group["members"] if "device" in member or member["group"] in earlier]
        group["members"] = kept or [{"device": request["reference"], "count": 1}]
        earlier.add(group["id"])
    return request


@breaks("COM-042")
@requests(INDICES, PROBE_PLANS)
def repeated_names_are_taken(request: Json) -> Json:
    """Of two devices, tasks or groups of one name the later one counts."""
    for rows in (request["corpus"]["devices"], request["corpus"]["tasks"], request.get("groups", [])):
        rows[:] = by_name(rows).values()
    return request


@breaks("COM-042")
@problems(INDICES, PROBE_PLANS)
def unknown_names_are_not_found(_: Json, problem: Json) -> Json:
    """Names that are not in the corpus are answered with not-found."""
    return {**problem, **NOT_FOUND} if problem["type"] == UNKNOWN_REFERENCE else problem
