"""What a mutant is, and how one is declared."""

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from conforming import Change, Edit, Json
from minimal_server.accounts import Accounts
from minimal_server.adjusting import Adjusting
from minimal_server.agreeing import Agreeing
from minimal_server.allocating import Allocating
from minimal_server.attempts import Attempts
from minimal_server.backing import Backing
from minimal_server.bases import Bases
from minimal_server.buying import Buying
from minimal_server.choosing import Choosing
from minimal_server.conversion import Conversion
from minimal_server.core import Core
from minimal_server.counting import Counting
from minimal_server.demanding import Demanding
from minimal_server.doubting import Doubting
from minimal_server.elastic import Elastic
from minimal_server.explaining import Explaining
from minimal_server.faults import Faults
from minimal_server.foreseeing import Foreseeing
from minimal_server.fronts import Fronts
from minimal_server.graph import Graphs
from minimal_server.groups import Groups
from minimal_server.holding import Holding
from minimal_server.indices import Indices
from minimal_server.jobs import Jobs
from minimal_server.layouts import Layouts
from minimal_server.naming import Naming
from minimal_server.otlp import Otlp
from minimal_server.packing import Packing
from minimal_server.phasing import Phasing
from minimal_server.placing import Placing
from minimal_server.plans import Plans
from minimal_server.preempting import Preempting
from minimal_server.premises import Premises
from minimal_server.questioning import Questioning
from minimal_server.recovering import Recovering
from minimal_server.reserving import Reserving
from minimal_server.routing import Routing
from minimal_server.samples import Samples
from minimal_server.scraping import Scraping
from minimal_server.sending import Sending
from minimal_server.series import Stepped
from minimal_server.service import MinimalServer
from minimal_server.serving import Serving
from minimal_server.sharding import Sharding
from minimal_server.sharing import Sharing
from minimal_server.shaving import Shaving
from minimal_server.sizing import Sizing
from minimal_server.speeds import Speeds
from minimal_server.states import States
from minimal_server.stepping import Stepping
from minimal_server.streams import Streams
from minimal_server.suspecting import Suspecting
from minimal_server.watching import Watching
from minimal_server.waving import Waving
from minimal_server.ways import Ways
from minimal_server.weighing import Weighing

from kuayu_schemas import registers
from kuayu_schemas.models import Profile
from mutants.oracle import Oracle

Service = type[MinimalServer]

INDICES, PROBE_PLANS = "/v1/compute-indices", "/v1/probe-plans"

JUDGED_BY_THEMSELVES = {
    "DEM-003": "test_dem_sizing.py::test_a_gain_of_99_hundredths_of_the_rate_is_too_little_and_one_of_101_is_enough",
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
implementation, and their figures have to be those of a good service, which the minimal server is not. What a verdict
rests on is a few numbers; the near-miss and the control are such numbers, in ``tests/conformance``. What else a service
may do wrong while scenarios are played, it does wrong in the short checks as well.
"""

CHECKED = tuple(
    row for row in registers.requirements().requirements if row.check and row.id not in JUDGED_BY_THEMSELVES
)
"""Requirements that have a check which mutants are held against."""

SCHEDULED = frozenset(row.id for row in CHECKED if row.profile is Profile.SCH) | {"COM-021", "COM-030", "RES-011"}
"""Requirements whose checks call operations of scheduling."""

HELD = frozenset({"SCH-017", "SCH-018", "SCH-019", "RES-011"})
"""Requirements whose checks play hundreds of allocations."""

LONG = HELD | {"SCH-001", "SCH-007", "SCH-014", "SCH-040", "FCT-004"}
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

RECOVERED = frozenset({"RES-003", "RES-004", "RES-014", "RES-015"})
"""Requirements whose checks call operations of recovery."""

ADJUSTING: tuple[type, ...] = (Questioning, Adjusting)
"""What answers requests for adjustments and nothing else."""

ADJUSTED = frozenset({"RES-007", "RES-008", "RES-009", "RES-016"})
"""Requirements whose checks call the operation of adjustments."""

WATCHING: tuple[type, ...] = (Faults, Stepping, Watching)
"""What answers operations of faults and nothing else."""

WATCHED = frozenset({"RES-017", "RES-018", "RES-019", "RES-020", "RES-021", "RES-022", "RES-023"})
"""Requirements whose check lets nodes beat, die and come back for a minute."""

RESILIENT = frozenset(row.id for row in CHECKED if row.profile is Profile.RES) - WATCHED - HELD
"""Requirements whose checks call operations of transfers, of recovery or of adjustments."""

TRANSFERRED = RESILIENT - RECOVERED - ADJUSTED
"""Requirements whose checks call operations of transfers."""

FAILED_OVER = frozenset({"RES-003", "RES-004"})
"""Requirements whose check plays hours in which jobs lose nodes, asking all the while."""

DISTURBED = frozenset({"RES-007", "RES-008", "RES-009"})
"""Requirements whose check plays hours in which loads and latencies change, asking all the while."""

CARRIED_OUT = FAILED_OVER | DISTURBED | {"RES-005", "RES-006", "RES-010", "RES-012", "RES-014", "RES-016"}
"""Requirements whose checks carry hundreds of plans, choices or changes out."""

JOBBING: tuple[type, ...] = (Jobs, Attempts, Accounts, Elastic, Serving)
"""What answers operations of jobs and nothing else."""

JOBBED = frozenset(row.id for row in CHECKED if row.profile is Profile.JOB)
"""Requirements whose checks submit jobs and play their domains."""

PLAYED_JOBS = JOBBED - {"JOB-001", "JOB-002"}
"""Requirements whose checks play the domains of jobs."""

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

DECIDED = frozenset({"COM-001", "COM-002", "COM-003", "COM-028", "COM-029", "COM-042"})
"""Those of them whose checks call operations that decide; all others call only those that keep something."""

KEEPING = frozenset({Scraping, Conversion, Otlp, Stepped, Graphs, Streams, *WATCHING})
"""What answers operations that keep something, or tell of what is kept."""


@dataclass(frozen=True)
class Slice:
    """What answers some operations and nothing else.

    Attributes:
        kinds: Classes of the minimal server.
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
        beyond = {name for kind in MinimalServer.__mro__ if kind not in self.kinds for name in vars(kind)}
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
    Slice((Naming,), SCHEDULED - LONG),
    Slice((Layouts,), frozenset({"DEM-005"})),
    Slice((Sizing,), frozenset({"DEM-007"})),
    Slice((*LAID_OUT, Layouts), DEMANDED - {"DEM-007"}),
    Slice((Phasing,), frozenset()),
    Slice((Waving,), frozenset({"FCT-005"})),
    Slice((Shaving,), frozenset({"FCT-005"})),
    Slice((Premises,), FORESEEN - PLAYED_OUT),
    Slice((Foreseeing,), FORESEEN),
    Slice((Doubting,), frozenset()),
    Slice((Sharding,), frozenset({"RES-005", "RES-006", "RES-012"}), but=MEASURED),
    Slice((Agreeing,), frozenset({"RES-010"}), but=RECKONED),
    Slice(TRANSFERRING, TRANSFERRED, but=MEASURED | RECKONED),
    Slice((Suspecting,), frozenset()),
    Slice((Recovering,), RECOVERED - {"RES-015"}),
    Slice(RECOVERING, RECOVERED),
    Slice((Questioning,), frozenset(), but=AT_HOME),
    Slice(ADJUSTING, ADJUSTED),
    Slice(WATCHING, WATCHED),
    Slice(JOBBING, JOBBED),
    Slice((Routing,), frozenset({"COM-030", "SCH-013", "SCH-016"})),
    Slice((Buying,), frozenset({"SCH-007", "SCH-015", "SCH-020"})),
    Slice((Fronts,), frozenset({"SCH-001", "SCH-014", "SCH-020", "SCH-040"})),
    Slice((Reserving, Allocating), HELD),
    Slice(DECIDING, SCHEDULED - HELD - {"SCH-001", "SCH-014", "SCH-040"}, but=DRAWN_ON),
    Slice(UNDERLYING, SCHEDULED - HELD),
    Slice(SCHEDULING, SCHEDULED),
)
"""The narrowest that a mutant belongs to comes first."""


@dataclass(frozen=True, slots=True)
class Realm:
    """Operations with classes of their own, and the checks that call them.

    Attributes:
        kinds: Classes of the minimal server that answer them, beside those that all operations rest on.
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
        beneath = ECHOED | {name for kind in (MinimalServer, Core) for name in vars(kind)}
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
    Realm(JOBBING, JOBBED, PLAYED_JOBS),
)
"""Apart from what else telemetry and the compute index rest on."""

BUSY = frozenset(requirement for realm in REALMS for requirement in realm.long)
"""Requirements whose checks keep a processor busy for more than a second."""

RECKONED_LONG = BUSY - HELD - WATCHED - PLAYED_JOBS - {"MET-003"}
"""Those of them whose checks ask for nothing but decisions."""

PLAYED_WHOLE = frozenset({"MET-004", "MET-005", "MET-006", "MET-016", "MET-022"})
"""Requirements whose check plays the telemetry of five domains for two minutes."""

PLAYED_SPARSE = frozenset({"MET-024"})
"""Requirements whose check plays sparse telemetry for two minutes."""

PLAYED = PLAYED_WHOLE | PLAYED_SPARSE
"""Requirements whose checks play telemetry, and of which delays are measured."""

TIMED = PLAYED | WATCHED | PLAYED_JOBS
"""Requirements whose checks play a world in real time, and say nothing where they fell behind it."""

WAITED_FOR = TIMED | {"MET-002"}
"""Requirements whose checks mostly wait: for a world, or for scrapes of a minute."""


STATEFUL = KEEPING | {*JOBBING, Reserving, Allocating}
"""What answers with a state: what is wrong with it is shown by a server of its own."""

HTTP_ALONE = frozenset({"COM-001", "COM-002"})
"""Requirements of :data:`DECIDED` whose check calls all operations, those with a state and streams among them."""

EDGES_BY_PROFILE: Mapping[str, tuple[str, str]] = {
    "IDX": ("abstains-never", "plans-are-sorted"),
    "DEM": ("accelerators-are-left-over", "layouts-need-not-fit"),
    "FCT": ("only-short-loads-are-moved", "tenants-may-be-promised-twice"),
    "SCH": ("unknown-homes-are-taken", "ends-are-chosen-first"),
    "RES": ("streams-may-have-one-name", "links-are-not-looked-at"),
}
"""Mutants of decisions that are served over HTTP all the same, by profile, to try both ways."""

EDGES = frozenset(name for names in EDGES_BY_PROFILE.values() for name in names)
"""All of them."""

BEHIND = dict.fromkeys((INDICES, PROBE_PLANS), Slice(INDEXING, INDEXED))
"""What answers an operation whose answers are edited."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """An implementation that is wrong in one way.

    Attributes:
        name: What it is served under.
        wrong: What is wrong with it, in a sentence.
        breaks: Requirements that do not pass because of it; all others do.
        service: The implementation, or what is edited.
        edit: What is wrong, as an edit of answers; None where it is in the implementation.
        defined: The class or the function in which it is wrong.
        near_miss_of: Requirement whose threshold, or another bound, it misses by little; empty where there is none.
        control_for: Requirement whose bound it comes near to and keeps; it breaks nothing.
    """

    name: str
    wrong: str
    breaks: frozenset[str]
    service: Service
    edit: Edit | None
    defined: Any
    near_miss_of: str = ""
    control_for: str = ""

    @property
    def over_http(self) -> bool:
        """Whether it is served; what is wrong with a decision is looked at in this process."""
        return self.name in EDGES or not self._decides

    @property
    def _decides(self) -> bool:
        """Whether it is wrong in nothing but answers that follow from their requests alone."""
        if self.edit:
            return True
        own = self._slice
        return own is not None and STATEFUL.isdisjoint(own.kinds)

    @property
    def _slice(self) -> Slice | None:
        """The narrowest that it belongs to."""
        return next((each for each in SLICES if each.holds(self._replaced)), None)

    @property
    def requirements(self) -> frozenset[str]:
        """Requirements that it can be held against.

        What replaces only methods that some operations call, and nobody else, answers every other request as the
        minimal server does. It is held against the requirements on those operations, those of COM among them. What
        replaces nothing that operations of a realm call is not held against the requirements on these, and what
        replaces only what all operations rest on is held against those of them that are judged quickly. Hours of
        faults, and of changes of load and latency, and sparse telemetry are played only before those that declare to
        fail by them, or come near: what else is wrong with plans and states, other checks see.
        """
        own = self._slice
        if self.edit:
            found = DECIDED.union(*(BEHIND[path].requirements for path in self.edit.paths))
        elif own:
            found = own.requirements | own.common
        else:
            spared = {requirement for realm in REALMS for requirement in realm.spared(self._replaced)}
            found = frozenset(row.id for row in CHECKED) - spared
        if not self.over_http:
            found -= HTTP_ALONE
        found = found | PLAYED if self.plays else found - PLAYED
        for world in (FAILED_OVER, DISTURBED, PLAYED_SPARSE):
            if not (self.breaks | {self.control_for}) & world:
                found -= world
        return found

    @property
    def nearest(self) -> frozenset[str]:
        """Those that are of a profile of which it breaks something, and ``COM-003``, which looks at all answers."""
        profiles = {requirement.partition("-")[0] for requirement in self.breaks}
        return frozenset(row for row in self.requirements if row == "COM-003" or row.partition("-")[0] in profiles)

    @property
    def plays(self) -> bool:
        """Whether the telemetry of five domains is played before it, for it differs in what makes states."""
        return bool(self.breaks & PLAYED) or self.control_for in PLAYED or bool(self._replaced & vars(States).keys())

    @property
    def _replaced(self) -> set[str]:
        """Names of what it does otherwise than the minimal server."""
        own = [kind for kind in self.service.__mro__ if kind.__module__.startswith("mutants.") and kind is not Oracle]
        members = ((name, value) for kind in own for name, value in vars(kind).items() if hasattr(Oracle, name))
        return {name for name, value in members if callable(value) or not name.startswith("__")}


def with_oracle(service: Service) -> Service:
    """The implementation with figures of profile IDX that pass, unless it has its own."""
    return service if issubclass(service, Oracle) else type(service.__name__, (service, Oracle), {})


DECLARED: dict[str, Mutant] = {}
"""Every mutant whose module was imported, by name."""


Wrong = TypeVar("Wrong", Service, Edit)
"""What is declared: a class of servers, or an edit of answers."""


def answers(*paths: str) -> Callable[[Change], Edit]:
    """What becomes of answers of some operations: the function takes a request and its answer."""
    return lambda change: Edit(frozenset(paths), answer=change)


def problems(*paths: str) -> Callable[[Change], Edit]:
    """What becomes of problems of some operations: the function takes a request and its problem."""
    return lambda change: Edit(frozenset(paths), problem=change)


def requests(*paths: str) -> Callable[[Callable[[Json], Json]], Edit]:
    """What is answered instead of requests to some operations."""
    return lambda change: Edit(frozenset(paths), request=change)


def breaks(*requirements: str) -> Callable[[Wrong], Wrong]:
    """Declare a mutant: its name follows from that of the class or function, what is wrong is the docstring."""
    return _declare(frozenset(requirements))


def near_miss(requirement: str, *others: str) -> Callable[[Wrong], Wrong]:
    """Declare a mutant that misses a threshold by little, and what else it cannot help breaking."""
    return _declare(frozenset({requirement, *others}), near_miss_of=requirement)


def control(requirement: str) -> Callable[[Wrong], Wrong]:
    """Declare an implementation that is as near to a threshold as a near-miss is, on the right side."""
    return _declare(frozenset(), control_for=requirement)


def _declare(broken: frozenset[str], *, near_miss_of: str = "", control_for: str = "") -> Callable[[Wrong], Wrong]:
    def declare(wrong: Wrong) -> Wrong:
        edit = wrong if isinstance(wrong, Edit) else None
        defined: Any = wrong if edit is None else edit.function
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", defined.__name__).replace("_", "-").lower()
        if name in DECLARED:
            raise ValueError(f"two mutants are named {name}")
        words = " ".join((defined.__doc__ or "").split())
        service = Oracle if edit else defined
        DECLARED[name] = Mutant(name, words, broken, service, edit, defined, near_miss_of, control_for)
        return wrong

    return declare
