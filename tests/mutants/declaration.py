"""What a mutant is, and how one is declared."""

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from miniature.adjusting import Adjusting
from miniature.agreeing import Agreeing
from miniature.allocating import Allocating
from miniature.backing import Backing
from miniature.bases import Bases
from miniature.buying import Buying
from miniature.choosing import Choosing
from miniature.conversion import Conversion
from miniature.core import Core
from miniature.counting import Counting
from miniature.demanding import Demanding
from miniature.doubting import Doubting
from miniature.explaining import Explaining
from miniature.faults import Faults
from miniature.foreseeing import Foreseeing
from miniature.fronts import Fronts
from miniature.graph import Graphs
from miniature.groups import Groups
from miniature.holding import Holding
from miniature.indices import Indices
from miniature.layouts import Layouts
from miniature.naming import Naming
from miniature.otlp import Otlp
from miniature.packing import Packing
from miniature.phasing import Phasing
from miniature.placing import Placing
from miniature.plans import Plans
from miniature.preempting import Preempting
from miniature.premises import Premises
from miniature.questioning import Questioning
from miniature.recovering import Recovering
from miniature.reserving import Reserving
from miniature.routing import Routing
from miniature.samples import Samples
from miniature.scraping import Scraping
from miniature.sending import Sending
from miniature.series import Stepped
from miniature.service import Miniature
from miniature.sharding import Sharding
from miniature.sharing import Sharing
from miniature.shaving import Shaving
from miniature.sizing import Sizing
from miniature.speeds import Speeds
from miniature.states import States
from miniature.stepping import Stepping
from miniature.streams import Streams
from miniature.suspecting import Suspecting
from miniature.watching import Watching
from miniature.waving import Waving
from miniature.ways import Ways
from miniature.weighing import Weighing

from kuayu_schemas import registers
from kuayu_schemas.models import Profile
from mutants.oracle import Oracle

Service = type[Miniature]

JUDGED_BY_THEMSELVES = {
    "DEM-003": "test_dem_sizing.py::test_a_gain_of_99_hundredths_is_too_little_and_one_of_101_is_enough",
    "FCT-001": "test_fct_accuracy.py::test_an_error_of_85_thousandths_in_ten_minutes_is_too_much_and_one_of_75_is_not",
    "FCT-002": "test_fct_accuracy.py::test_an_error_of_125_thousandths_in_an_hour_is_too_much_and_one_of_115_is_not",
    "FCT-003": "test_fct_phases.py::test_nineteen_of_twenty_steps_have_to_be_right",
    "RES-001": "test_res_detection.py::test_one_of_so_many_may_be_missed_and_five_are_too_many",
    "RES-002": "test_res_detection.py::test_a_fifth_of_a_second_makes_the_difference",
    "SCH-002": "test_sch_figures.py::test_latency_is_judged_by_its_99th_percentile",
    "SCH-003": "test_sch_gains.py::test_a_period_shorter_by_24_percent_is_too_long_and_one_by_26_is_not",
    "SCH-004": "test_sch_gains.py::test_a_utilisation_higher_by_34_percent_is_too_low_and_one_by_36_is_not",
    "SCH-005": "test_sch_gains.py::test_cost_lower_by_29_percent_is_too_high_and_one_by_31_is_not",
    "SCH-006": "test_sch_coordination.py::test_a_service_is_judged_by_its_slowest_hundredth",
    "SCH-008": "test_sch_stability.py::test_an_interruption_of_eleven_thousandths_is_too_much_and_one_of_nine_is_not",
    "SCH-011": "test_sch_gains.py::test_whoever_saves_cost_by_staying_at_home_may_not_claim_it",
}
"""Requirements that no mutant is held against, with the test that judges a near-miss and a control.

Whole scenarios are played for them, or hundreds of decisions on large states are timed, which takes minutes for each
implementation, and their figures have to be those of a good service, which the miniature is not. What a verdict rests
on is a few numbers; the near-miss and the control are such numbers, in ``tests/conformance``. What else a service may
do wrong while scenarios are played, it does wrong in the short checks as well.
"""

CHECKED = tuple(
    row for row in registers.requirements().requirements if row.check and row.id not in JUDGED_BY_THEMSELVES
)
"""Requirements that have a check which mutants are held against."""

SCHEDULED = frozenset(row.id for row in CHECKED if row.profile is Profile.SCH) | {"COM-021", "COM-030", "RES-011"}
"""Requirements whose checks call operations of scheduling."""

HELD = frozenset({"SCH-017", "SCH-018", "SCH-019", "RES-011"})
"""Requirements whose checks play hundreds of allocations."""

LONG = HELD | {"SCH-001", "SCH-007", "SCH-014", "FCT-004"}
"""Requirements whose checks keep a processor busy for more than a second."""

DECIDING: tuple[type, ...] = (Placing, Sharing, Preempting, Explaining, Choosing, Weighing)
"""What answers requests for placements."""

UNDERLYING: tuple[type, ...] = (*DECIDING, Packing, Ways, Speeds)
"""What answers requests for placements and for fronts."""

SCHEDULING: tuple[type, ...] = (*UNDERLYING, Bases, Naming, Fronts, Buying, Routing, Reserving, Allocating)
"""What answers operations of scheduling and nothing else."""

LAID_OUT: tuple[type, ...] = (Counting, Sending, Holding, Demanding)
"""What answers requests for demands and for layouts."""

DEMANDED = frozenset(row.id for row in CHECKED if row.profile is Profile.DEM)
"""Requirements whose checks call operations of demand."""

FORECASTING: tuple[type, ...] = (Phasing, Premises, Foreseeing, Waving, Shaving)
"""What answers operations of forecasts and nothing else."""

FORESEEN = frozenset(row.id for row in CHECKED if row.profile is Profile.FCT)
"""Requirements whose checks call operations of forecasts."""

PLAYED_OUT = frozenset({"FCT-004"})
"""Requirements whose checks ask for forecasts through days of worlds, which takes a processor some seconds."""

TRANSFERRING: tuple[type, ...] = (Doubting, Sharding, Agreeing)
"""What answers operations of transfers and nothing else."""

RECOVERING: tuple[type, ...] = (Suspecting, Backing, Recovering)
"""What answers operations of recovery and nothing else."""

RECOVERED = frozenset({"RES-003", "RES-004", "RES-013", "RES-014", "RES-015"})
"""Requirements whose checks call operations of recovery."""

ADJUSTING: tuple[type, ...] = (Questioning, Adjusting)
"""What answers requests for adjustments and nothing else."""

ADJUSTED = frozenset({"RES-007", "RES-008", "RES-009", "RES-013", "RES-016"})
"""Requirements whose checks call the operation of adjustments."""

WATCHING: tuple[type, ...] = (Faults, Stepping, Watching)
"""What answers operations of faults and nothing else."""

WATCHED = frozenset({"RES-017", "RES-018", "RES-019", "RES-020", "RES-021", "RES-022", "RES-023"})
"""Requirements whose check lets nodes beat, die and come back for a minute."""

RESILIENT = frozenset(row.id for row in CHECKED if row.profile is Profile.RES) - WATCHED - HELD
"""Requirements whose checks call operations of transfers, of recovery or of adjustments."""

TRANSFERRED = RESILIENT - RECOVERED - ADJUSTED | {"RES-013"}
"""Requirements whose checks call operations of transfers."""

FAILED_OVER = frozenset({"RES-003", "RES-004"})
"""Requirements whose check plays hours in which jobs lose nodes, asking all the while."""

DISTURBED = frozenset({"RES-007", "RES-008", "RES-009"})
"""Requirements whose check plays hours in which loads and latencies change, asking all the while."""

CARRIED_OUT = FAILED_OVER | DISTURBED | {"RES-005", "RES-006", "RES-010", "RES-012", "RES-014", "RES-016"}
"""Requirements whose checks carry hundreds of plans, choices or changes out."""

INDEXING: tuple[type, ...] = (Oracle, Plans, Groups, Indices)
"""What answers operations of the compute index."""

ECHOED = frozenset({"echoed"})
"""What stands with the compute index and answers operations of scheduling too."""

DRAWN_ON = frozenset({"scene", "ledger", "ending", "account", "give_back", "nodes", "placement", "cheapest"})
"""What stands with placements and answers requests for fronts too."""

MEASURED = frozenset({"carried"})
"""What stands with shard plans and answers requests for collectives and for failover plans too."""

RECKONED = frozenset(
    {
        "tried",
        "best_order",
        "slowest_message",
        "message_time",
        "steps_a_second",
        "exchanges",
        "more_steps",
        "is_other",
        "turned",
    }
)
"""What stands with collectives and answers requests for adjustments too: how quick each of them is."""

AT_HOME = frozenset({"home"})
"""What stands with refusals of requests for adjustments and answers these too."""


COMMON = frozenset(row.id for row in CHECKED if row.profile is Profile.COM) - SCHEDULED
"""Requirements on all operations."""

DECIDED = frozenset({"COM-001", "COM-002", "COM-003", "COM-028", "COM-029"})
"""Those of them whose checks call operations that decide; all others call only those that keep something."""

KEEPING = frozenset({Scraping, Conversion, Otlp, Stepped, Graphs, Streams, *WATCHING})
"""What answers operations that keep something, or tell of what is kept."""


@dataclass(frozen=True)
class Slice:
    """What answers some operations and nothing else.

    Attributes:
        kinds: Classes of the miniature.
        requirements: Those whose checks call these operations, beside those of COM.
        but: Methods of these classes that others call too.
    """

    kinds: tuple[type, ...]
    requirements: frozenset[str]
    but: frozenset[str] = frozenset()

    @property
    def common(self) -> frozenset[str]:
        """Requirements of COM whose checks call these operations, or may."""
        return DECIDED if KEEPING.isdisjoint(self.kinds) else COMMON

    @cached_property
    def own(self) -> frozenset[str]:
        """Names of methods that belong to it and to nothing else."""
        behind = {name for kind in self.kinds for name in vars(kind)}
        beyond = {name for kind in Miniature.__mro__ if kind not in self.kinds for name in vars(kind)}
        return frozenset(behind - beyond - self.but)

    def holds(self, replaced: AbstractSet[str]) -> bool:
        """Whether methods belong to it, all of them."""
        return bool(replaced) and replaced <= self.own


INDEXED = frozenset(row.id for row in CHECKED if row.profile is Profile.IDX)
"""Requirements whose checks call operations of the compute index."""

SLICES: tuple[Slice, ...] = (
    Slice(INDEXING, INDEXED, but=ECHOED),
    Slice(INDEXING, INDEXED | SCHEDULED - LONG),
    Slice((Scraping,), frozenset({"MET-002", "MET-010"})),
    Slice((Conversion,), frozenset({"MET-001", "MET-002", "MET-003", "MET-008", "MET-010", "MET-021"})),
    Slice((Otlp,), frozenset({"MET-021"})),
    Slice((Stepped,), frozenset({"MET-020"})),
    Slice((Graphs, Streams), frozenset({"MET-017", "MET-018", "MET-019", "MET-023"})),
    Slice((Bases,), frozenset({"COM-021", "COM-022"})),
    Slice((Naming,), SCHEDULED - LONG | {"DEM-006", "FCT-007", "RES-013"}),
    Slice((Layouts,), frozenset({"DEM-005", "DEM-006"})),
    Slice((Sizing,), frozenset({"DEM-006", "DEM-007"})),
    Slice((*LAID_OUT, Layouts), DEMANDED - {"DEM-007"}),
    Slice((Phasing,), frozenset({"FCT-007"})),
    Slice((Waving,), frozenset({"FCT-005", "FCT-007"})),
    Slice((Shaving,), frozenset({"FCT-005", "FCT-007"})),
    Slice((Premises,), FORESEEN - PLAYED_OUT),
    Slice((Foreseeing,), FORESEEN),
    Slice((Doubting,), frozenset({"RES-013"})),
    Slice((Sharding,), frozenset({"RES-005", "RES-006", "RES-012", "RES-013"}), but=MEASURED),
    Slice((Agreeing,), frozenset({"RES-010", "RES-013"}), but=RECKONED),
    Slice(TRANSFERRING, TRANSFERRED, but=MEASURED | RECKONED),
    Slice((Suspecting,), frozenset({"RES-013"})),
    Slice((Recovering,), RECOVERED - {"RES-015"}),
    Slice(RECOVERING, RECOVERED),
    Slice((Questioning,), frozenset({"RES-013"}), but=AT_HOME),
    Slice(ADJUSTING, ADJUSTED),
    Slice(WATCHING, WATCHED),
    Slice((Routing,), frozenset({"COM-030", "SCH-012", "SCH-013", "SCH-016"})),
    Slice((Buying,), frozenset({"SCH-007", "SCH-012", "SCH-015", "SCH-020"})),
    Slice((Fronts,), frozenset({"SCH-001", "SCH-012", "SCH-014", "SCH-020"})),
    Slice((Reserving, Allocating), HELD),
    Slice(DECIDING, SCHEDULED - HELD - {"SCH-001", "SCH-014"}, but=DRAWN_ON),
    Slice(UNDERLYING, SCHEDULED - HELD),
    Slice(SCHEDULING, SCHEDULED),
)
"""The narrowest that a mutant belongs to comes first."""


@dataclass(frozen=True, slots=True)
class Realm:
    """Operations with classes of their own, and the checks that call them.

    Attributes:
        kinds: Classes of the miniature that answer them, beside those that all operations rest on.
        requirements: Those whose checks call them.
        long: Those of them that what all operations rest on is not held against.
    """

    kinds: tuple[type, ...]
    requirements: frozenset[str]
    long: frozenset[str]

    def spared(self, replaced: AbstractSet[str]) -> frozenset[str]:
        """Requirements that methods are not held against."""
        behind = {name for kind in self.kinds for name in vars(kind)} - {"__init__"}
        if not replaced or replaced & behind:
            return frozenset()
        beneath = ECHOED | {name for kind in (Miniature, Core) for name in vars(kind)}
        return self.long if replaced & beneath else self.requirements


TOLD_APART = frozenset({"MET-003"})
"""Requirements whose checks post thousands of pages, which takes a processor some seconds."""

REALMS: tuple[Realm, ...] = (
    Realm((Conversion, Samples), TOLD_APART, TOLD_APART),
    Realm(SCHEDULING, SCHEDULED, LONG),
    Realm((Naming, *FORECASTING), FORESEEN, PLAYED_OUT),
    Realm((Naming, *LAID_OUT, Layouts, Sizing), DEMANDED, frozenset({"DEM-001", "DEM-007"})),
    Realm((Naming, *TRANSFERRING, *RECOVERING, *ADJUSTING), RESILIENT, CARRIED_OUT),
    Realm(WATCHING, WATCHED, WATCHED),
)
"""Apart from what else telemetry and the compute index rest on."""

BUSY = frozenset(requirement for realm in REALMS for requirement in realm.long)
"""Requirements whose checks keep a processor busy for more than a second."""

PLAYED = frozenset({"MET-004", "MET-005", "MET-006", "MET-016", "MET-022", "MET-024"})
"""Requirements whose checks play the telemetry of a few domains for more than a minute."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """An implementation that is wrong in one way.

    Attributes:
        name: What it is served under.
        wrong: What is wrong with it, in a sentence.
        breaks: Requirements that do not pass because of it; all others do.
        service: The implementation.
        near_miss_of: Requirement whose threshold it misses by little; empty where it is not about a figure.
        control_for: Requirement whose threshold it comes near to and keeps; it breaks nothing.
    """

    name: str
    wrong: str
    breaks: frozenset[str]
    service: Service
    near_miss_of: str = ""
    control_for: str = ""

    @property
    def requirements(self) -> frozenset[str]:
        """Requirements that it can be held against.

        What replaces only methods that some operations call, and nobody else, answers every other request as the
        miniature does. It is held against the requirements on those operations, those of COM among them. What replaces
        nothing that operations of a realm call is not held against the requirements on these, and what replaces only
        what all operations rest on is held against those of them that are judged quickly. Hours of faults, and of
        changes of load and latency, are played only before those that declare to fail by them, or come near: what else
        is wrong with plans, short checks see.
        """
        its = next((each.requirements | each.common for each in SLICES if each.holds(self._replaced)), None)
        if its is None:
            spared = {requirement for realm in REALMS for requirement in realm.spared(self._replaced)}
            found = frozenset(row.id for row in CHECKED) - spared
        else:
            found = its
        for hours in (FAILED_OVER, DISTURBED):
            if not (self.breaks | {self.control_for}) & hours:
                found -= hours
        return found | PLAYED if self.plays else found - PLAYED

    @property
    def plays(self) -> bool:
        """Whether the telemetry of five domains is played before it, for it differs in what makes states."""
        return bool(self.breaks & PLAYED) or self.control_for in PLAYED or bool(self._replaced & vars(States).keys())

    @property
    def _replaced(self) -> set[str]:
        """Names of what it does otherwise than the miniature."""
        own = [kind for kind in self.service.__mro__ if kind.__module__.startswith("mutants.") and kind is not Oracle]
        members = ((name, value) for kind in own for name, value in vars(kind).items() if hasattr(Oracle, name))
        return {name for name, value in members if callable(value) or not name.startswith("__")}


def served(service: Service) -> Service:
    """The implementation with figures of profile IDX that pass, unless it has its own."""
    return service if issubclass(service, Oracle) else type(service.__name__, (service, Oracle), {})


DECLARED: dict[str, Mutant] = {}
"""Every mutant whose module was imported, by name."""


def breaks(*requirements: str) -> Callable[[Service], Service]:
    """Declare a mutant: its name follows from the class's, what is wrong is the docstring."""
    return _declare(frozenset(requirements))


def near_miss(requirement: str, *others: str) -> Callable[[Service], Service]:
    """Declare a mutant that misses a threshold by little, and what else it cannot help breaking."""
    return _declare(frozenset({requirement, *others}), near_miss_of=requirement)


def control(requirement: str) -> Callable[[Service], Service]:
    """Declare an implementation that is as near to a threshold as a near-miss is, on the right side."""
    return _declare(frozenset(), control_for=requirement)


def _declare(broken: frozenset[str], *, near_miss_of: str = "", control_for: str = "") -> Callable[[Service], Service]:
    def declare(service: Service) -> Service:
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", service.__name__).lower()
        if name in DECLARED:
            raise ValueError(f"two mutants are named {name}")
        wrong = " ".join((service.__doc__ or "").split())
        DECLARED[name] = Mutant(name, wrong, broken, service, near_miss_of, control_for)
        return service

    return declare
