"""Kuayu information model, version 0.1.0: types of JSON documents, for type checkers.

Generated from spec/model by `make schemas`; do not edit. Import it under ``TYPE_CHECKING``. The members of a class are
described in ``models.py``, under the same name.
"""

from typing import Any, Literal, NotRequired, TypedDict, final


HealthState = Literal["healthy", "degraded", "faulty", "offline", "unknown"]
"""How fit something is to work, from best to worst; unknown where it cannot be told."""

PatchVerb = Literal["add", "remove", "replace", "test"]
"""What a patch operation does (RFC 6902)."""

AcceleratorKind = Literal["gpu", "npu", "dcu", "mlu", "tpu", "cpu", "unknown"]
"""What kind of processor does the matrix work."""

LinkMedium = Literal["leased", "internet", "private", "unknown"]
"""What a link between domains runs over."""

IdentifierTier = Literal["service", "family", "node"]
"""Tiers of compute identifiers, from what a user asks for to where it runs."""

Dimension = Literal["compute", "storage", "network", "state"]
"""The four dimensions of the metric model."""

ValueKind = Literal["number", "by_precision", "state"]
"""Form of a value."""

Constancy = Literal["static", "probed", "dynamic"]
"""How often a value can change."""

Direction = Literal["higher", "lower", "neutral"]
"""Which way is better."""

Aggregation = Literal["sum", "mean", "minimum", "maximum", "ratio_of_sums", "worst_state", "none"]
"""How values of parts become the value of the whole."""

SubjectKind = Literal["device", "node", "domain", "link"]
"""What a value is about."""

Transform = Literal["gauge", "rate", "increase", "state", "present"]
"""What turns an exporter's field into a measure."""

PartRule = Literal["sum", "same"]
"""How readings of the parts of a device become that of the whole."""

BulkMode = Literal["per_item", "atomic"]
"""What one bad item does to the others of a bulk request."""

Durability = Literal["process", "host"]
"""Which crash an acknowledged write survives."""

Provenance = Literal["registered", "measured", "derived", "aggregated", "estimated", "unknown"]
"""How a value came about."""

ScrapeState = Literal["pending", "succeeded", "failed", "unknown"]
"""How the last scrape of a target went."""

WarningKind = Literal["nothing_used", "counter_returned", "identity_conflict", "unknown"]
"""What is to be known of a page that was taken."""

OperatingState = Literal["idle", "busy", "degraded", "straggling", "faulty", "offline", "unknown"]
"""What a node does, as far as telemetry tells."""

LinkState = Literal["up", "degraded", "down", "unknown"]
"""How fit a link is to carry traffic."""

VertexKind = Literal["domain", "node", "link", "unknown"]
"""What the resource graph is made of."""

NumericPrecision = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8", "unknown"]
"""Number formats of matrix work."""

Capability = Literal["matrix", "vector", "memory", "scale_out", "fixed", "unknown"]
"""What a task's time on a device can depend on."""

IndexBasis = Literal["measured", "probed", "specified", "unknown"]
"""What a compute index rests on."""

ActionKind = Literal[
    "reserve",
    "release",
    "start",
    "stop",
    "checkpoint",
    "migrate",
    "resize",
    "replicate",
    "route",
    "reconfigure",
    "fence",
    "unknown",
]
"""What is to be done."""

ActionPhase = Literal["prepare", "commit", "abort"]
"""Step of the contract."""

ActionOutcome = Literal["prepared", "committed", "aborted", "refused", "expired", "failed", "unknown"]
"""How a step ended."""

JobKind = Literal["pretraining", "fine_tuning", "training", "serving", "unknown"]
"""What a job does."""

SplitMode = Literal["none", "synchronous", "periodic", "pipeline", "unknown"]
"""How a job may be spread over domains."""

NodeScope = Literal["node", "switch"]
"""How near to each other all devices of a job in a domain have to lie."""

JobPhase = Literal["pending", "staging", "running", "interrupted", "succeeded", "failed", "cancelled", "unknown"]
"""Where a job stands."""

PipelineSchedule = Literal["one_forward_one_backward", "bidirectional", "unknown"]
"""In which order stages work through micro-batches."""

Recomputation = Literal["none", "selective", "full", "unknown"]
"""Which activations are computed anew in the backward pass."""

MemoryPart = Literal["parameters", "gradients", "optimizer", "activations", "working", "unknown"]
"""What memory of an accelerator is for."""

ParallelDimension = Literal["data", "tensor", "pipeline", "context", "expert", "unknown"]
"""Which parallelism traffic belongs to."""

LinkClass = Literal["node", "domain", "federation", "unknown"]
"""What traffic crosses."""

StepActivity = Literal["filling", "steady", "draining", "exchange", "update", "idle", "unknown"]
"""What happens in a part of a step."""

TrainingPhase = Literal["warm_up", "fast_convergence", "stable_convergence", "unknown"]
"""Phase of a training job."""

DemandQuantity = Literal[
    "demanded_devices", "held_devices", "waiting_devices", "submitted_devices", "requests", "utilisation", "unknown"
]
"""What a series counts."""

EventKind = Literal["holiday", "maintenance", "campaign", "deadline", "unknown"]
"""What is known beforehand."""

CollectiveKind = Literal["ring", "hierarchical", "low_communication", "unknown"]
"""How replicas add up their gradients."""

NodeCondition = Literal["fit", "failed", "unreachable", "unknown"]
"""Whether a node can do anything for a job."""

RecoveryStrategy = Literal["go_on", "replace", "restore", "wait", "unknown"]
"""How a job goes on."""

TriggerKind = Literal["load", "latency", "unknown"]
"""What has changed."""

FaultKind = Literal[
    "node_dead", "node_failing", "domain_unreachable", "job_hung", "rank_straggling", "identity_conflict", "unknown"
]
"""What is wrong."""

FaultState = Literal["open", "cleared"]
"""How a fault stands."""

PurchaseOption = Literal["reserved", "on_demand", "spot", "unknown"]
"""How capacity is bought."""

PlacementVerb = Literal["start", "wait", "stop", "migrate", "resize", "unknown"]
"""What a decision does with a job."""

RefusalReason = Literal[
    "unknown_job",
    "not_waiting",
    "not_running",
    "unknown_pool",
    "twice",
    "size",
    "memory",
    "split",
    "data",
    "unreachable",
    "no_room",
    "unknown",
]
"""Why an earlier decision was not carried out."""

AllocationPhase = Literal[
    "preparing", "committing", "committed", "aborting", "refused", "releasing", "released", "unknown"
]
"""Where an allocation stands."""

JobState = Literal["queued", "held", "starting", "running", "restarting", "succeeded", "failed", "cancelled", "unknown"]
"""Where a job stands."""

RunState = Literal["running", "succeeded", "failed", "stopped", "unknown"]
"""Where a run stands."""

Profile = Literal["COM", "MET", "IDX", "DEM", "FCT", "SCH", "RES", "JOB", "unknown"]
"""Parts of the standard that can be claimed."""

Feature = Literal["scrape", "otlp", "tenancy", "accounts", "elastic", "serving", "unknown"]
"""Options within profiles; a declared feature is an obligation."""

Level = Literal["interface", "performance"]
"""What a requirement is about."""

Modal = Literal["shall", "should", "may"]
"""Force of a sentence (GB/T 1.1-2020: 应, 宜, 可)."""

Comparison = Literal["at_least", "at_most"]
"""On which side of the threshold a figure must lie."""

RunLevel = Literal["smoke", "quick", "full"]
"""How much a run of the suite measures."""

Verdict = Literal["pass", "fail", "inconclusive", "not-applicable", "not-supported", "not-testable", "harness-error"]
"""What the suite found."""

PlotKind = Literal["agreement", "lines", "graph"]
"""How a plot is drawn."""

OriginKind = Literal["self-asserted", "challenged", "witnessed"]
"""Who chose the nonce of a run, and who ran the suite."""

ClaimOutcome = Literal["met", "not-met", "undecided", "not-claimed"]
"""What becomes of the claim that an implementation conforms to a profile or sub-profile."""

Replay = Literal["deterministic", "recorded-times"]
"""How a verdict can be judged again from the report."""


@final
class Revision(TypedDict):
    """Point in the life of a service's state. The number grows by one with each change; the epoch changes when state
    was lost, and revisions of different epochs are not comparable.
    """

    epoch: str
    number: int


@final
class ProblemError(TypedDict):
    """One place in a request that is wrong."""

    pointer: str
    parameter: NotRequired[str]
    detail: str


@final
class Problem(TypedDict):
    """Answer to a request that failed, media type application/problem+json (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: NotRequired[str]
    instance: NotRequired[str]
    retryable: bool
    retry_after: NotRequired[float]
    errors: NotRequired[list[ProblemError]]


@final
class ProblemType(TypedDict):
    """Row of the registry of problem types."""

    name: str
    type: str
    status: int
    retryable: bool
    title_en: str
    title_zh: str
    remedy_en: str
    remedy_zh: str


@final
class ProblemRegister(TypedDict):
    """All registered problem types."""

    problems: list[ProblemType]


@final
class PatchOperation(TypedDict):
    """One operation of a JSON Patch (RFC 6902)."""

    op: PatchVerb
    path: str
    value: NotRequired[Any]


@final
class Patch(TypedDict):
    """Difference from a document that both sides hold, named by its digest. Who does not hold the base answers with
    unknown-base, and the sender sends the whole document.
    """

    base: str
    result: str
    operations: list[PatchOperation]


@final
class AssignedCode(TypedDict):
    """Code by which a registry outside this standard names the same thing, such as one that a national node of
    compute assigns. It stands beside the names of this standard, and nothing is derived from its form.
    """

    scheme: str
    code: str


class Resource(TypedDict):
    """What has an identifier and may be registered."""

    id: str
    label: NotRequired[str]
    assigned_codes: NotRequired[list[AssignedCode]]
    extensions: NotRequired[dict[str, Any]]


@final
class Location(TypedDict):
    """Where a domain stands."""

    latitude: float
    longitude: float
    region: NotRequired[str]


class Domain(Resource):
    """Data centre, or part of one, under one operator, inside which nodes reach each other without a wide-area link."""

    location: NotRequired[Location]
    operator: NotRequired[str]


@final
class PrecisionThroughput(TypedDict):
    """Dense matrix throughput for each numeric precision; a precision that is absent is not stated."""

    fp64: NotRequired[float]
    fp32: NotRequired[float]
    tf32: NotRequired[float]
    bf16: NotRequired[float]
    fp16: NotRequired[float]
    fp8: NotRequired[float]
    fp4: NotRequired[float]
    int8: NotRequired[float]


@final
class Device(TypedDict):
    """Accelerator of a node. Its identifier is unique within the node."""

    id: str
    kind: AcceleratorKind
    vendor: str
    model: str
    memory_capacity: NotRequired[float]
    peak_matrix_throughput: NotRequired[PrecisionThroughput]
    power_limit: NotRequired[float]
    extensions: NotRequired[dict[str, Any]]


class Node(Resource):
    """Computer of a domain, with its accelerators."""

    domain: str
    devices: NotRequired[list[Device]]
    compute_identifier: NotRequired[str]


class Link(Resource):
    """Directed path from one domain to another."""

    source: str
    destination: str
    capacity: NotRequired[float]
    medium: NotRequired[LinkMedium]


@final
class DomainRecord(Domain):
    """Domain as the service holds it."""

    revision: Revision
    updated_at: str


@final
class NodeRecord(Node):
    """Node as the service holds it."""

    revision: Revision
    updated_at: str


@final
class LinkRecord(Link):
    """Link as the service holds it."""

    revision: Revision
    updated_at: str


@final
class DomainPage(TypedDict):
    """Part of the list of domains, as it stood at one revision."""

    items: list[DomainRecord]
    revision: Revision
    next_cursor: NotRequired[str]


@final
class NodePage(TypedDict):
    """Part of the list of nodes, as it stood at one revision."""

    items: list[NodeRecord]
    revision: Revision
    next_cursor: NotRequired[str]


@final
class LinkPage(TypedDict):
    """Part of the list of links, as it stood at one revision."""

    items: list[LinkRecord]
    revision: Revision
    next_cursor: NotRequired[str]


@final
class ResourceSnapshot(TypedDict):
    """All resources of a tenant at one revision."""

    digest: str
    revision: Revision
    taken_at: str
    domains: list[Domain]
    nodes: list[Node]
    links: list[Link]


class ComputeIdentifier(TypedDict):
    """Compute identifier and what it stands for: a service for families, a family for nodes. The mapping of a node's
    identifier to the node stands in the node's registration.
    """

    urn: str
    members: list[str]
    label: NotRequired[str]
    assigned_codes: NotRequired[list[AssignedCode]]
    extensions: NotRequired[dict[str, Any]]


@final
class ComputeIdentifierRecord(ComputeIdentifier):
    """Compute identifier as the service holds it."""

    revision: Revision
    updated_at: str


@final
class Resolution(TypedDict):
    """A compute identifier with all that it leads to, downwards to nodes and upwards to services."""

    urn: str
    tier: IdentifierTier
    services: list[str]
    families: list[str]
    nodes: list[str]
    unresolved: list[str]
    revision: Revision


@final
class LabelMatch(TypedDict):
    """Condition on a label of a series."""

    label: str
    value: str


@final
class StateMatch(TypedDict):
    """Value of a field and the health state that it means."""

    value: float
    state: HealthState


@final
class CollectionEntry(TypedDict):
    """Row of the collection map."""

    exporter: str
    fields: list[str]
    field_unit: str
    transform: Transform
    factor: float
    subject: SubjectKind
    match: NotRequired[list[LabelMatch]]
    parts: NotRequired[PartRule]
    states: NotRequired[list[StateMatch]]
    resolution: float
    source: str


@final
class Measure(TypedDict):
    """A quantity on the wire that an indicator consists of."""

    name: str
    name_zh: str
    definition_en: str
    definition_zh: str
    formula: str
    unit: str
    display_unit: str
    display_factor: float
    kind: ValueKind
    minimum: NotRequired[float]
    maximum: NotRequired[float]
    ceiling: NotRequired[float]
    constancy: Constancy
    period: NotRequired[float]
    accuracy: float
    direction: Direction
    subjects: list[SubjectKind]
    aggregation: Aggregation
    numerator: NotRequired[str]
    denominator: NotRequired[str]
    collection: NotRequired[list[CollectionEntry]]
    collection_note: NotRequired[str]


@final
class Indicator(TypedDict):
    """One of the twelve indicators."""

    id: str
    dimension: Dimension
    name_en: str
    name_zh: str
    definition_en: str
    definition_zh: str
    measures: list[Measure]


@final
class Exporter(TypedDict):
    """Program that publishes telemetry in the Prometheus text format."""

    id: str
    vendor: str
    version: str
    device_label: NotRequired[str]
    blanks: NotRequired[list[float]]
    sharing_labels: NotRequired[list[str]]
    part_labels: NotRequired[list[str]]
    identity_labels: NotRequired[list[str]]
    host_labels: NotRequired[list[str]]
    source: str
    note: NotRequired[str]


@final
class IndicatorRegister(TypedDict):
    """The twelve indicators and the exporters that they are collected from."""

    indicators: list[Indicator]
    exporters: list[Exporter]


class Measures(TypedDict):
    """The measures of the twelve indicators, one slot each; what was not observed is absent."""

    peak_matrix_throughput: NotRequired[PrecisionThroughput]
    sustained_matrix_throughput: NotRequired[PrecisionThroughput]
    matrix_pipe_activity: NotRequired[float]
    energy_efficiency: NotRequired[float]
    power: NotRequired[float]
    accelerator_memory_capacity: NotRequired[float]
    accelerator_memory_used: NotRequired[float]
    accelerator_memory_bandwidth: NotRequired[float]
    memory_bandwidth_utilisation: NotRequired[float]
    storage_throughput: NotRequired[float]
    storage_read_flow: NotRequired[float]
    storage_write_flow: NotRequired[float]
    scale_out_bandwidth: NotRequired[float]
    scale_out_transmit_flow: NotRequired[float]
    scale_out_receive_flow: NotRequired[float]
    inter_domain_bandwidth: NotRequired[float]
    round_trip_time: NotRequired[float]
    jitter: NotRequired[float]
    packet_loss: NotRequired[float]
    accelerator_utilisation: NotRequired[float]
    health_state: NotRequired[HealthState]
    health_score: NotRequired[float]
    faults: NotRequired[float]
    allocatable_share: NotRequired[float]
    queue_pressure: NotRequired[float]


class Sample(Measures):
    """What was observed of one subject at one instant."""

    subject: str
    subject_kind: SubjectKind
    device: NotRequired[str]
    observed_at: str


@final
class SampleRecord(Sample):
    """Sample as the service holds it."""

    received_at: str


@final
class SampleBatch(TypedDict):
    """Samples that travel together."""

    mode: BulkMode
    sent_at: NotRequired[str]
    samples: list[Sample]


@final
class ItemRejection(TypedDict):
    """Item of a bulk request that was not taken, and why."""

    index: int
    problem: Problem


@final
class PageWarning(TypedDict):
    """What is to be known of an exporter's page that was taken."""

    kind: WarningKind
    detail: str


@final
class BatchResult(TypedDict):
    """What became of a bulk request."""

    accepted: int
    rejected: list[ItemRejection]
    durability: Durability
    received_at: str
    clock_offset: float
    warnings: NotRequired[list[PageWarning]]


@final
class SamplePage(TypedDict):
    """Part of a series of samples, by time."""

    items: list[SampleRecord]
    revision: Revision
    next_cursor: NotRequired[str]


class ScrapeTarget(TypedDict):
    """Exporter's page that the service fetches by itself."""

    id: str
    node: str
    exporter: str
    url: str
    period: NotRequired[float]
    extensions: NotRequired[dict[str, Any]]


@final
class ScrapeTargetRecord(ScrapeTarget):
    """Scrape target as the service holds it."""

    state: ScrapeState
    last_scrape_at: NotRequired[str]
    last_problem: NotRequired[Problem]
    last_warnings: NotRequired[list[PageWarning]]
    revision: Revision
    updated_at: str


@final
class ScrapeTargetPage(TypedDict):
    """Part of the list of scrape targets."""

    items: list[ScrapeTargetRecord]
    revision: Revision
    next_cursor: NotRequired[str]


@final
class IndicatorValue(TypedDict):
    """Value of a measure of one subject."""

    indicator: str
    measure: str
    device: NotRequired[str]
    number: NotRequired[float]
    by_precision: NotRequired[PrecisionThroughput]
    state: NotRequired[HealthState]
    unit: str
    observed_at: str
    provenance: Provenance
    parts: NotRequired[int]


@final
class IndicatorReport(TypedDict):
    """Indicators of one subject at one instant."""

    subject: str
    subject_kind: SubjectKind
    at: str
    values: list[IndicatorValue]
    revision: Revision


@final
class StateCounts(TypedDict):
    """How many nodes are in each state."""

    idle: int
    busy: int
    degraded: int
    straggling: int
    faulty: int
    offline: int
    unknown: int


@final
class DomainVertex(TypedDict):
    """Domain in the resource graph, as the sum of its nodes."""

    id: str
    nodes: StateCounts
    devices: int
    reachable: bool
    accelerator_utilisation: NotRequired[float]


@final
class NodeVertex(TypedDict):
    """Node in the resource graph."""

    id: str
    domain: str
    state: OperatingState
    since: str
    confidence: NotRequired[float]
    because: NotRequired[str]
    devices: int


@final
class LinkVertex(TypedDict):
    """Link in the resource graph. What was not measured may be estimated, and says so."""

    id: str
    source: str
    destination: str
    state: LinkState
    provenance: Provenance
    inter_domain_bandwidth: NotRequired[float]
    round_trip_time: NotRequired[float]
    packet_loss: NotRequired[float]


@final
class ResourceGraph(TypedDict):
    """The resource graph, or the part of it that was asked for, at one revision."""

    digest: str
    revision: Revision
    taken_at: str
    domains: list[DomainVertex]
    nodes: list[NodeVertex]
    links: list[LinkVertex]


@final
class GoneVertex(TypedDict):
    """What is no longer in the resource graph, or in the part of it that was asked for."""

    kind: VertexKind
    id: str


@final
class GraphChange(TypedDict):
    """One step of the resource graph, data of an event of its stream. What stands in it takes the place of what had
    the same identifier.
    """

    revision: Revision
    changed_at: str
    domains: list[DomainVertex]
    nodes: list[NodeVertex]
    links: list[LinkVertex]
    gone: list[GoneVertex]


@final
class SeriesPoint(TypedDict):
    """What was observed of a measure within one step of time."""

    start: str
    count: int
    mean: float
    minimum: float
    maximum: float


@final
class Series(TypedDict):
    """A measure of a subject over time, step by step; a step without values is left out."""

    subject: str
    subject_kind: SubjectKind
    device: NotRequired[str]
    measure: str
    unit: str
    step: float
    points: list[SeriesPoint]
    revision: Revision


@final
class IndexedDevice(TypedDict):
    """Kind of accelerator with its software, as the compute index sees it. The same silicon with other software is
    another one.
    """

    id: str
    stack: str
    measured_at: NotRequired[str]
    peak_matrix_throughput: NotRequired[PrecisionThroughput]
    accelerator_memory_capacity: NotRequired[float]
    accelerator_memory_bandwidth: NotRequired[float]
    scale_out_bandwidth: NotRequired[float]
    power: NotRequired[float]


@final
class IndexedTask(TypedDict):
    """Training task, as the compute index sees it."""

    id: str
    precisions: list[NumericPrecision]
    family: NotRequired[str]
    work: NotRequired[float]
    memory_traffic: NotRequired[float]
    exchange: NotRequired[float]


@final
class Measurement(TypedDict):
    """Throughput of a task, measured on devices of one kind."""

    device: str
    task: str
    devices: NotRequired[int]
    throughput: float
    power: NotRequired[float]


@final
class Corpus(TypedDict):
    """What was measured on what. It is all that a compute index rests on, and it travels in the request."""

    devices: list[IndexedDevice]
    tasks: list[IndexedTask]
    measurements: list[Measurement]


@final
class GroupMember(TypedDict):
    """Part of a group: so many devices of a kind, or so many groups that are alike."""

    device: NotRequired[str]
    group: NotRequired[str]
    count: int


@final
class DeviceGroup(TypedDict):
    """Devices that are seen as one: a node, a domain, a federation."""

    id: str
    members: list[GroupMember]
    scale_out_bandwidth: NotRequired[float]


@final
class IndexRequest(TypedDict):
    """Asks for compute indices. The answer depends on nothing else."""

    revision: Revision
    corpus: Corpus
    reference: str
    devices: NotRequired[list[str]]
    tasks: NotRequired[list[str]]
    groups: NotRequired[list[DeviceGroup]]
    coverage: NotRequired[float]
    tolerance: NotRequired[float]
    explain: NotRequired[bool]


@final
class IndexTerm(TypedDict):
    """Part of a compute index that one capability makes."""

    capability: Capability
    weight: float
    ratio: float
    share: float


@final
class IndexLever(TypedDict):
    """What a compute index would be with another device."""

    capability: Capability
    factor: float
    value: float


@final
class IndexExplanation(TypedDict):
    """Why a compute index is what it is: residual / Σ weight/ratio."""

    terms: list[IndexTerm]
    residual: float
    dominant: Capability
    levers: list[IndexLever]


@final
class ComputeIndex(TypedDict):
    """How many of the reference one device is worth for a task."""

    device: str
    task: str
    value: float
    low: float
    high: float
    basis: IndexBasis
    abstained: bool
    per_watt: NotRequired[float]
    stack: str
    measured_at: NotRequired[str]
    explanation: NotRequired[IndexExplanation]


@final
class GroupIndex(TypedDict):
    """How many of the reference a group is worth for a task."""

    group: str
    task: str
    devices: int
    independent: float
    together: NotRequired[float]
    efficiency: NotRequired[float]
    low: float
    high: float
    per_watt: NotRequired[float]


@final
class IndexMethod(TypedDict):
    """How an implementation computes."""

    name: str
    version: str


@final
class IndexReport(TypedDict):
    """Compute indices of devices and groups for tasks."""

    revision: Revision
    reference: str
    coverage: float
    method: IndexMethod
    indices: list[ComputeIndex]
    groups: list[GroupIndex]


@final
class CorpusCell(TypedDict):
    """A device and a task, measured or to be measured."""

    device: str
    task: str


@final
class ProbePlanRequest(TypedDict):
    """Asks which measurements would make indices surest. The answer depends on nothing else."""

    revision: Revision
    corpus: Corpus
    candidates: list[CorpusCell]
    targets: list[CorpusCell]
    probes: int


@final
class PlannedProbe(TypedDict):
    """Measurement to make."""

    device: str
    task: str
    half_width: float


@final
class ProbePlan(TypedDict):
    """Which measurements to make, the most telling first."""

    revision: Revision
    method: IndexMethod
    without: float
    probes: list[PlannedProbe]


@final
class NodeShare(TypedDict):
    """Devices of a node."""

    node: str
    devices: int


@final
class EnvironmentVariable(TypedDict):
    """Variable that processes find in their environment."""

    name: str
    value: str


@final
class Workload(TypedDict):
    """What a job runs, on every node that it is given."""

    image: NotRequired[str]
    command: list[str]
    environment: NotRequired[list[EnvironmentVariable]]
    working_directory: NotRequired[str]
    code: NotRequired[str]
    processes_per_node: NotRequired[int]


@final
class DomainShare(TypedDict):
    """Devices of a pool that a job is given."""

    domain: str
    accelerator: str
    devices: int
    purchase: NotRequired[PurchaseOption]
    nodes: NotRequired[list[NodeShare]]


@final
class RunOrder(TypedDict):
    """What a domain is to run for an attempt of a job. It stands in actions of kind start."""

    attempt: int
    workload: Workload
    shares: list[DomainShare]
    split_mode: SplitMode
    sync_period: NotRequired[int]
    checkpoint: NotRequired[str]
    step: int
    grace: float


@final
class Action(TypedDict):
    """Something to be done by whoever owns the resource. The identifier makes it idempotent: the same identifier and
    phase give the same result however often they are sent.
    """

    id: str
    kind: ActionKind
    phase: ActionPhase
    revision: Revision
    job: NotRequired[str]
    domain: str
    accelerator: NotRequired[str]
    devices: NotRequired[int]
    nodes: NotRequired[list[NodeShare]]
    reservation: NotRequired[str]
    expires_after: NotRequired[float]
    lease: NotRequired[float]
    cause: NotRequired[str]
    run: NotRequired[RunOrder]
    attempt: NotRequired[int]
    parameters: NotRequired[dict[str, Any]]


@final
class ActionResult(TypedDict):
    """What became of one step of an action."""

    action: str
    phase: ActionPhase
    outcome: ActionOutcome
    at: str
    expires_at: NotRequired[str]
    nodes: NotRequired[list[NodeShare]]
    problem: NotRequired[Problem]


@final
class Elasticity(TypedDict):
    """How many devices a job can work with."""

    minimum: int
    maximum: int
    requested: NotRequired[int]
    step: NotRequired[int]


@final
class LinkNeed(TypedDict):
    """What a job needs of the links between the domains that it spans."""

    bandwidth: NotRequired[float]
    round_trip_time: NotRequired[float]
    packet_loss: NotRequired[float]


@final
class NodeNeed(TypedDict):
    """How the devices of a job have to lie on the nodes of each domain that it is given."""

    devices_per_node: NotRequired[int]
    within: NotRequired[NodeScope]


@final
class Artefact(TypedDict):
    """Data set or checkpoint and where copies of it are."""

    id: str
    size: float
    domains: list[str]
    pinned: NotRequired[bool]


@final
class CommunicationProfile(TypedDict):
    """What a job sends between the domains that it is spread over, and writes of itself."""

    step_time: float
    exchange: float
    boundary: float
    checkpoint_size: float


@final
class Estimate(TypedDict):
    """Expected value with its uncertainty."""

    expected: float
    low: float
    high: float
    coverage: float


@final
class JobSpec(TypedDict):
    """What a job asks for. It does not change after it was submitted."""

    id: str
    tenant: NotRequired[str]
    account: NotRequired[str]
    kind: NotRequired[JobKind]
    priority: NotRequired[int]
    home_domain: NotRequired[str]
    submitted_at: str
    deadline: NotRequired[str]
    devices: Elasticity
    device_kinds: NotRequired[list[AcceleratorKind]]
    memory_per_device: NotRequired[float]
    task_profile: NotRequired[str]
    work: NotRequired[Estimate]
    duration: NotRequired[Estimate]
    serial_share: NotRequired[float]
    communication: NotRequired[CommunicationProfile]
    split_modes: list[SplitMode]
    sync_period: NotRequired[int]
    links: NotRequired[LinkNeed]
    nodes: NotRequired[NodeNeed]
    data: NotRequired[list[Artefact]]
    checkpoint: NotRequired[Artefact]
    forecast: NotRequired[str]
    extensions: NotRequired[dict[str, Any]]


@final
class JobStatus(TypedDict):
    """How a job stands."""

    job: str
    phase: JobPhase
    at: str
    domains: list[str]
    devices_held: int
    devices_used: NotRequired[float]
    progress: NotRequired[float]
    finish: NotRequired[str]
    reason: NotRequired[str]


@final
class LatentAttention(TypedDict):
    """Attention with compressed queries, keys and values."""

    query_rank: NotRequired[int]
    value_rank: int
    rotary_width: int


@final
class Adapter(TypedDict):
    """Low-rank matrices beside frozen weights (LoRA); they alone are trained."""

    rank: int
    attention: NotRequired[bool]
    feed_forward: NotRequired[bool]
    frozen_size: NotRequired[float]


@final
class ModelStructure(TypedDict):
    """Transformer, dense or with a mixture of experts."""

    layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int
    key_value_heads: NotRequired[int]
    head_width: NotRequired[int]
    feed_forward: NotRequired[int]
    gated: NotRequired[bool]
    tied: NotRequired[bool]
    dropout: NotRequired[bool]
    experts: NotRequired[int]
    experts_per_token: NotRequired[int]
    nodes_per_token: NotRequired[int]
    expert_feed_forward: NotRequired[int]
    shared_feed_forward: NotRequired[int]
    expert_frequency: NotRequired[int]
    dense_layers: NotRequired[int]
    window: NotRequired[int]
    window_frequency: NotRequired[int]
    windowed_layers: NotRequired[int]
    latent: NotRequired[LatentAttention]
    adapter: NotRequired[Adapter]
    further_tokens: NotRequired[int]


@final
class ParallelStrategy(TypedDict):
    """How training is spread over accelerators; their number is the product of data, tensor, pipeline and context."""

    data: int
    tensor: int
    pipeline: int
    virtual_stages: NotRequired[int]
    first_stage_layers: NotRequired[int]
    last_stage_layers: NotRequired[int]
    context: NotRequired[int]
    expert: NotRequired[int]
    sequence_parallel: NotRequired[bool]
    sharding: NotRequired[int]
    recomputation: NotRequired[Recomputation]
    micro_batch: int
    global_batch: int
    precision: NotRequired[NumericPrecision]
    fused_attention: NotRequired[bool]
    attention_speed: NotRequired[float]
    overlap_data: NotRequired[bool]
    overlap_tensor: NotRequired[bool]
    overlap_expert: NotRequired[bool]
    dispatch_precision: NotRequired[NumericPrecision]
    pipeline_schedule: NotRequired[PipelineSchedule]
    scattered: NotRequired[bool]
    gradient_size: NotRequired[float]
    exchanged_size: NotRequired[float]
    outermost: NotRequired[ParallelDimension]


@final
class TrainingHardware(TypedDict):
    """Accelerators of one kind with the links between them."""

    id: str
    peak_matrix_throughput: PrecisionThroughput
    sustained_matrix_throughput: NotRequired[PrecisionThroughput]
    accelerator_memory_capacity: float
    accelerator_memory_bandwidth: float
    multiprocessors: NotRequired[int]
    devices_per_node: int
    node_bandwidth: float
    domain_bandwidth: float
    devices_per_domain: NotRequired[int]
    federation_bandwidth: NotRequired[float]


@final
class MeasuredRun(TypedDict):
    """Training that somebody has run and measured. Time, memory or both are stated."""

    source: str
    model: ModelStructure
    strategy: ParallelStrategy
    hardware: str
    step_time: NotRequired[float]
    memory: NotRequired[float]


@final
class PlannedPhase(TypedDict):
    """Phase of a training job, as it is planned."""

    phase: TrainingPhase
    steps: int
    global_batch: NotRequired[int]
    sequence: NotRequired[int]


@final
class TrainingCase(TypedDict):
    """Training whose demand is asked for."""

    id: str
    model: ModelStructure
    strategy: ParallelStrategy
    hardware: str
    phases: NotRequired[list[PlannedPhase]]


@final
class TrainingDemandRequest(TypedDict):
    """Asks what trainings need. The answer depends on nothing else."""

    revision: Revision
    hardware: list[TrainingHardware]
    runs: NotRequired[list[MeasuredRun]]
    cases: list[TrainingCase]
    coverage: NotRequired[float]
    profiles: NotRequired[bool]


@final
class PartOfMemory(TypedDict):
    """Memory of the fullest accelerator that serves one purpose."""

    part: MemoryPart
    size: float


@final
class StepTraffic(TypedDict):
    """What an accelerator sends in a step."""

    dimension: ParallelDimension
    link: LinkClass
    size: float


@final
class LinkFlow(TypedDict):
    """Flow of an accelerator over links of a class."""

    link: LinkClass
    flow: float


@final
class StepSegment(TypedDict):
    """Part of a step."""

    activity: StepActivity
    begin: float
    duration: float
    busy: float
    traffic: list[LinkFlow]


@final
class PhaseDemand(TypedDict):
    """What a training needs in one of its phases."""

    phase: TrainingPhase
    devices: int
    step_time: float
    duration: float
    work: float
    memory: float
    traffic: float


@final
class TrainingDemand(TypedDict):
    """What a training needs."""

    case: str
    parameters: float
    active_parameters: float
    trained_parameters: NotRequired[float]
    devices: int
    work: float
    executed_work: float
    step_time: Estimate
    utilisation: float
    memory: float
    memory_parts: list[PartOfMemory]
    fits: bool
    obstacles: list[str]
    traffic: list[StepTraffic]
    segments: NotRequired[list[StepSegment]]
    phases: NotRequired[list[PhaseDemand]]


@final
class DemandMethod(TypedDict):
    """How an implementation comes to a demand."""

    name: str
    version: str
    runs: NotRequired[int]


@final
class TrainingDemandReport(TypedDict):
    """What trainings need."""

    revision: Revision
    method: DemandMethod
    demands: list[TrainingDemand]


@final
class LayoutRequest(TypedDict):
    """Asks for the quickest strategies of a model on so many accelerators. The answer depends on nothing else."""

    revision: Revision
    hardware: list[TrainingHardware]
    runs: NotRequired[list[MeasuredRun]]
    model: ModelStructure
    kind: str
    devices: int
    global_batch: int
    precision: NotRequired[NumericPrecision]
    layouts: NotRequired[int]


@final
class RankedLayout(TypedDict):
    """Strategy with what it leads to."""

    strategy: ParallelStrategy
    step_time: Estimate
    utilisation: float
    memory: float


@final
class LayoutReport(TypedDict):
    """The quickest strategies that were found."""

    revision: Revision
    method: DemandMethod
    considered: int
    feasible: int
    layouts: list[RankedLayout]


@final
class TaskResources(TypedDict):
    """What a task asks for or uses."""

    devices: float
    cores: float
    memory: float


@final
class TaskRecord(TypedDict):
    """Task that ran."""

    kind: str
    requested: TaskResources
    used: TaskResources
    peak: NotRequired[TaskResources]
    network_flow: NotRequired[float]
    accelerator_memory: NotRequired[float]
    duration: float


@final
class TaskRequest(TypedDict):
    """Task that is to run."""

    id: str
    kind: str
    requested: TaskResources


@final
class SizingRequest(TypedDict):
    """Asks what tasks need, as those show that ran before. The answer depends on nothing else."""

    revision: Revision
    history: list[TaskRecord]
    tasks: list[TaskRequest]
    slow_down: NotRequired[float]


@final
class SizedTask(TypedDict):
    """What a task should be given."""

    task: str
    recommended: TaskResources
    duration: NotRequired[Estimate]
    slow_down: float
    reason: str


@final
class ResourceImportance(TypedDict):
    """How much the time of a kind of task depends on what it is given and uses."""

    kind: str
    devices: float
    cores: float
    memory: float
    error: float
    records: int


@final
class SizingReport(TypedDict):
    """What tasks should be given."""

    revision: Revision
    method: DemandMethod
    tasks: list[SizedTask]
    importance: list[ResourceImportance]


@final
class DemandSeries(TypedDict):
    """Quantity of a domain, a tenant or a job, or of all, at equal steps."""

    id: str
    quantity: DemandQuantity
    domain: NotRequired[str]
    tenant: NotRequired[str]
    job: NotRequired[str]
    begin: str
    step: float
    values: list[float | None]


@final
class DemandPeriod(TypedDict):
    """Part of the course of a job in which its demand is the same."""

    phase: NotRequired[TrainingPhase]
    duration: Estimate
    devices: int


@final
class ForeseenJob(TypedDict):
    """Job that runs, waits, was announced, or ended of late, with what its structure says of its demand."""

    id: str
    domain: NotRequired[str]
    tenant: NotRequired[str]
    submitted_at: str
    started_at: NotRequired[str]
    ended_at: NotRequired[str]
    checkpoint_interval: NotRequired[float]
    periods: list[DemandPeriod]


@final
class KnownEvent(TypedDict):
    """What is known beforehand."""

    kind: EventKind
    domain: NotRequired[str]
    tenant: NotRequired[str]
    begins_at: str
    ends_at: str
    devices: NotRequired[float]


@final
class ForecastRequest(TypedDict):
    """Asks for forecasts of series. The answer depends on nothing else."""

    revision: Revision
    now: str
    series: list[DemandSeries]
    jobs: NotRequired[list[ForeseenJob]]
    events: NotRequired[list[KnownEvent]]
    horizons: list[float]
    levels: list[float]


@final
class Quantile(TypedDict):
    """Value that is not exceeded in a share of cases."""

    level: float
    value: float


@final
class DemandForecastPoint(TypedDict):
    """Forecast of a series for one horizon."""

    horizon: float
    expected: float
    quantiles: list[Quantile]
    structure_share: float


@final
class SeriesForecast(TypedDict):
    """Forecast of a series."""

    series: str
    points: list[DemandForecastPoint]


@final
class ForecastMethod(TypedDict):
    """How an implementation forecasts."""

    name: str
    version: str


@final
class ForecastReport(TypedDict):
    """Forecasts of series."""

    revision: Revision
    method: ForecastMethod
    forecasts: list[SeriesForecast]


@final
class CurvePoint(TypedDict):
    """What is known of a training at one of its steps."""

    step: int
    loss: float
    learning_rate: float


@final
class TrainingCurve(TypedDict):
    """Course of a training until now."""

    id: str
    points: list[CurvePoint]


@final
class PhaseRequest(TypedDict):
    """Asks in which phase trainings are. The answer depends on nothing else."""

    revision: Revision
    curves: list[TrainingCurve]


@final
class RecognisedPhase(TypedDict):
    """Phase of a training at the last step that is known."""

    curve: str
    phase: TrainingPhase
    since: int
    confidence: float


@final
class PhaseReport(TypedDict):
    """In which phases trainings are."""

    revision: Revision
    method: ForecastMethod
    phases: list[RecognisedPhase]


@final
class DevicePrice(TypedDict):
    """Price of a device for a part of the day."""

    begin: float
    price: float


@final
class WaveformRequest(TypedDict):
    """Asks for the waveform of demand over a coming period. The answer depends on nothing else."""

    revision: Revision
    now: str
    period: float
    step: float
    jobs: list[ForeseenJob]
    coverage: NotRequired[float]
    prices: NotRequired[list[DevicePrice]]


@final
class WaveformPoint(TypedDict):
    """Demand at an instant."""

    at: float
    expected: float
    low: float
    high: float


@final
class Waveform(TypedDict):
    """Demand over a coming period."""

    revision: Revision
    method: ForecastMethod
    points: list[WaveformPoint]
    device_seconds: Estimate
    budget: NotRequired[Estimate]


@final
class MovableLoad(TypedDict):
    """Work that may be done at another time."""

    id: str
    devices: int
    slots: int
    earliest: int
    latest: int
    planned: int
    interruptible: NotRequired[bool]


@final
class PeakRequest(TypedDict):
    """Asks for a plan that lowers the peaks of demand. The answer depends on nothing else."""

    revision: Revision
    step: float
    base: list[float]
    loads: list[MovableLoad]


@final
class MovedLoad(TypedDict):
    """When work is to be done."""

    load: str
    slots: list[int]


@final
class PeakPlan(TypedDict):
    """When movable work is to be done."""

    revision: Revision
    method: ForecastMethod
    loads: list[MovedLoad]
    peak_before: float
    peak_after: float


@final
class TenantQuality(TypedDict):
    """What a tenant has been promised."""

    tenant: str
    violations: float


@final
class ReservationRequest(TypedDict):
    """Asks what to reserve for tenants. The answer depends on nothing else."""

    revision: Revision
    now: str
    series: list[DemandSeries]
    jobs: NotRequired[list[ForeseenJob]]
    events: NotRequired[list[KnownEvent]]
    horizon: float
    qualities: list[TenantQuality]


@final
class TenantReservation(TypedDict):
    """What is to be reserved for a tenant."""

    series: str
    tenant: str
    domain: NotRequired[str]
    expected: float
    devices: int


@final
class ReservationReport(TypedDict):
    """What to reserve for tenants."""

    revision: Revision
    method: ForecastMethod
    reservations: list[TenantReservation]


@final
class TransferMethod(TypedDict):
    """How an answer was found."""

    name: str
    version: str


@final
class MeasuredLink(TypedDict):
    """Way from one domain to another, with what it has carried."""

    source: str
    target: str
    latency: float
    up: NotRequired[bool]
    bandwidths: list[float]


@final
class DataRoom(TypedDict):
    """Room for data that come before they are needed."""

    domain: str
    size: float


class ByteRange(TypedDict):
    """Bytes of a stream, counted from the first byte of its next step that takes data from afar."""

    begin: float
    end: float


@final
class DataTransfer(ByteRange):
    """Transfer that has begun."""

    source: str
    left: float


@final
class DataStream(TypedDict):
    """Data that the steps of one job take in one domain. A step takes data that came from afar, in the order of
    their bytes, or data of the local cache; a slot is when a step is due, whatever data it takes.
    """

    id: str
    target: str
    sources: list[str]
    step_size: float
    step_time: float
    due: float
    remote_steps: int
    local_steps: NotRequired[int]
    missing: list[ByteRange]
    transfers: NotRequired[list[DataTransfer]]


@final
class ShardPlanRequest(TypedDict):
    """Asks what data to fetch, over how long a time to come. Instants are seconds from now. The answer depends on
    nothing else.
    """

    revision: Revision
    interval: float
    horizon: float
    links: list[MeasuredLink]
    rooms: list[DataRoom]
    streams: list[DataStream]


@final
class PlannedShard(ByteRange):
    """Piece of a stream that is to be fetched at once."""

    stream: str
    source: str
    after: float
    slot: int


@final
class AbandonedTransfer(TypedDict):
    """Transfer that is to be stopped; what has come of it counts for nothing."""

    source: str
    begin: float


@final
class StreamPlan(TypedDict):
    """What becomes of a stream."""

    stream: str
    steps_ahead: int
    shard_size: float
    local_slots: list[int]
    local_when_late: bool
    abandoned: NotRequired[list[AbandonedTransfer]]
    reasons: NotRequired[list[str]]


@final
class ShardPlan(TypedDict):
    """What to fetch."""

    revision: Revision
    method: TransferMethod
    streams: list[StreamPlan]
    shards: list[PlannedShard]


@final
class CollectiveInUse(TypedDict):
    """Collective that replicas use now."""

    collective: CollectiveKind
    period: int
    order: list[str]
    since: float


@final
class CollectiveRequest(TypedDict):
    """Asks by which collective replicas are to agree. The answer depends on nothing else."""

    revision: Revision
    interval: float
    domains: list[str]
    links: list[MeasuredLink]
    nodes: int
    node_bandwidth: float
    node_latency: float
    exchange: float
    step_time: float
    switch_time: float
    in_use: NotRequired[CollectiveInUse]


@final
class CollectiveCandidate(TypedDict):
    """Collective that was looked at."""

    collective: CollectiveKind
    period: int
    rate: float


@final
class CollectiveChoice(TypedDict):
    """By which collective replicas are to agree."""

    revision: Revision
    method: TransferMethod
    collective: CollectiveKind
    period: int
    order: list[str]
    switched: bool
    candidates: list[CollectiveCandidate]
    reasons: NotRequired[list[str]]


@final
class RecoveryMethod(TypedDict):
    """How an answer was found."""

    name: str
    version: str


@final
class CheckpointStore(TypedDict):
    """Where checkpoints are kept in a domain."""

    domain: str
    bandwidth: float
    free: NotRequired[float]


@final
class StandingNode(TypedDict):
    """Node as it is known now."""

    id: str
    domain: str
    condition: NodeCondition
    fenced_in: NotRequired[float]
    job: NotRequired[str]
    replica: NotRequired[int]


@final
class CheckpointCopy(TypedDict):
    """Copy of a checkpoint."""

    domain: str
    age: float


@final
class ProtectedJob(TypedDict):
    """Job whose replicas all train the same model, in one domain."""

    id: str
    priority: int
    domain: str
    replicas: int
    least_replicas: int
    nodes_each: int
    state_size: float
    node_bandwidth: float
    start_time: float
    regroup_time: float
    copies: list[CheckpointCopy]


@final
class FailoverRequest(TypedDict):
    """Asks how jobs go on after faults. Instants are seconds from now. The answer depends on nothing else."""

    revision: Revision
    interval: float
    links: list[MeasuredLink]
    stores: list[CheckpointStore]
    nodes: list[StandingNode]
    jobs: list[ProtectedJob]


@final
class PlacedReplica(TypedDict):
    """Replica on the nodes that it gets."""

    replica: int
    nodes: list[str]


@final
class JobRecovery(TypedDict):
    """How a job goes on."""

    job: str
    strategy: RecoveryStrategy
    replicas: list[PlacedReplica]
    source: NotRequired[str]
    after: float
    resumes: NotRequired[float]
    reasons: NotRequired[list[str]]


@final
class FailoverPlan(TypedDict):
    """How jobs go on."""

    revision: Revision
    method: RecoveryMethod
    recoveries: list[JobRecovery]


@final
class BackupDomain(TypedDict):
    """Domain with what fails in it."""

    id: str
    nodes: int
    free: int
    time_between_failures: float
    repair_time: float
    price: float


@final
class BackedUpJob(TypedDict):
    """Job for which spare nodes and copies are to be held."""

    id: str
    priority: int
    domain: str
    replicas: int
    least_replicas: int
    nodes_each: int
    state_size: float
    pause: float


@final
class BackupRequest(TypedDict):
    """Asks what to hold against faults. The answer depends on nothing else."""

    revision: Revision
    interval: float
    share: float
    risk: float
    domains: list[BackupDomain]
    links: list[MeasuredLink]
    stores: list[CheckpointStore]
    jobs: list[BackedUpJob]


@final
class BackupPool(TypedDict):
    """Spare nodes of a domain."""

    domain: str
    spares: int
    risk: float
    price: float


@final
class PlannedCopy(TypedDict):
    """Copies of a job's checkpoints in a domain."""

    job: str
    domain: str
    period: float


@final
class BackupPlan(TypedDict):
    """What to hold against faults."""

    revision: Revision
    method: RecoveryMethod
    pools: list[BackupPool]
    copies: list[PlannedCopy]
    reasons: NotRequired[list[str]]


@final
class AdjustmentMethod(TypedDict):
    """How an answer was found."""

    name: str
    version: str


@final
class LoadedDomain(TypedDict):
    """Domain with what others take of it."""

    id: str
    level: float
    loads: list[float]


@final
class DelayedLink(TypedDict):
    """Way from one domain to another, with its latency."""

    source: str
    target: str
    bandwidth: float
    level: float
    latencies: list[float]


@final
class StepShare(TypedDict):
    """What a domain computes of a job's step."""

    domain: str
    parts: int
    part_time: float


@final
class PolicyChange(TypedDict):
    """Change of the policy of a job."""

    after: float
    parts: list[int]
    collective: CollectiveKind
    period: int
    order: list[str]


@final
class AdjustedJob(TypedDict):
    """Job that runs in one domain or several, with the policy in force; one that is on its way counts as in force."""

    id: str
    shares: list[StepShare]
    nodes: int
    node_bandwidth: float
    node_latency: float
    exchange: float
    collective: CollectiveKind
    period: int
    order: list[str]
    move_time: float
    switch_time: float
    changed: NotRequired[float]
    planned: NotRequired[list[PolicyChange]]


@final
class AdjustmentRequest(TypedDict):
    """Asks whether and how to adjust the policy of running jobs. Instants are seconds from now. The answer depends
    on nothing else.
    """

    revision: Revision
    interval: float
    patience: float
    window: float
    allowance: float
    domains: list[LoadedDomain]
    links: list[DelayedLink]
    jobs: list[AdjustedJob]


@final
class AdjustmentTrigger(TypedDict):
    """Change of load or latency that counts."""

    kind: TriggerKind
    domain: str
    target: NotRequired[str]
    before: float
    now: float


@final
class JobAdjustment(TypedDict):
    """What becomes of a job's policy."""

    job: str
    rate: float
    expected_rate: float
    changes: list[PolicyChange]
    reasons: NotRequired[list[str]]


@final
class Adjustment(TypedDict):
    """Whether and how policies are adjusted."""

    revision: Revision
    method: AdjustmentMethod
    triggers: list[AdjustmentTrigger]
    jobs: list[JobAdjustment]


@final
class RankStep(TypedDict):
    """The last step that a rank has done."""

    job: str
    rank: int
    step: int
    ended: NotRequired[bool]


@final
class Heartbeat(TypedDict):
    """Sign of life of a node."""

    node: str
    number: int
    sent_at: str
    steps: NotRequired[list[RankStep]]


@final
class HeartbeatBatch(TypedDict):
    """Heartbeats of several nodes."""

    beats: list[Heartbeat]


@final
class LogLine(TypedDict):
    """Line of a log of a node."""

    node: str
    logged_at: str
    text: str


@final
class LogBatch(TypedDict):
    """Lines of logs of several nodes."""

    lines: list[LogLine]


@final
class IntakeResult(TypedDict):
    """What became of a batch of heartbeats or log lines."""

    accepted: int
    rejected: list[ItemRejection]
    received_at: str


@final
class Fault(TypedDict):
    """Something that is wrong, as far as the service can tell."""

    id: str
    kind: FaultKind
    state: FaultState
    domain: NotRequired[str]
    node: NotRequired[str]
    job: NotRequired[str]
    rank: NotRequired[int]
    code: NotRequired[str]
    since: str
    told_at: str
    cleared_at: NotRequired[str]
    because: str
    actions: list[str]
    revision: Revision


@final
class FaultPage(TypedDict):
    """Part of the list of faults, as it stood at one revision."""

    items: list[Fault]
    revision: Revision
    next_cursor: NotRequired[str]


@final
class ProfileIndex(TypedDict):
    """Compute index of an accelerator for a task profile."""

    profile: str
    value: float


@final
class OfferedAccelerator(TypedDict):
    """Kind of accelerator that pools consist of."""

    id: str
    kind: NotRequired[AcceleratorKind]
    memory: float
    indices: list[ProfileIndex]


@final
class PoolNode(TypedDict):
    """Node of a pool."""

    id: str
    devices: int
    free: int
    switch: NotRequired[str]


@final
class CapacityOffer(TypedDict):
    """Part of a pool that is bought in one way."""

    purchase: PurchaseOption
    devices: int
    price: float
    interruption_rate: NotRequired[float]


@final
class ComputePool(TypedDict):
    """Devices of one kind in a domain."""

    accelerator: str
    devices: int
    free: int
    devices_per_node: int
    nodes: NotRequired[list[PoolNode]]
    offers: NotRequired[list[CapacityOffer]]


@final
class PoolDomain(TypedDict):
    """Domain as a place for jobs."""

    id: str
    reachable: NotRequired[bool]
    pools: list[ComputePool]


@final
class PathLink(TypedDict):
    """Link in one direction. It may begin or end at an exchange that is no domain."""

    source: str
    target: str
    bandwidth: float
    available: float
    round_trip_time: float
    tariff: float


@final
class ArtefactCopies(TypedDict):
    """Where copies of data are now; it prevails over what a job's specification said when the job was submitted."""

    artefact: str
    domains: list[str]


@final
class JobPlacement(TypedDict):
    """Where a job runs and how it is spread."""

    shares: list[DomainShare]
    split_mode: SplitMode
    sync_period: NotRequired[int]


@final
class WaitingJob(TypedDict):
    """Job that waits for devices."""

    spec: JobSpec
    used: NotRequired[float]
    done: NotRequired[float]
    checkpoint_domain: NotRequired[str]


@final
class RunningJob(TypedDict):
    """Job that holds devices."""

    spec: JobSpec
    placement: JobPlacement
    phase: JobPhase
    used: NotRequired[float]
    done: float
    rate: NotRequired[float]
    ready_at: NotRequired[str]
    interrupted_at: NotRequired[str]
    checkpoint_domain: NotRequired[str]


@final
class RefusedDecision(TypedDict):
    """Decision of the epoch before that was not carried out."""

    job: str
    verb: PlacementVerb
    reason: RefusalReason


class AccountUse(TypedDict):
    """Account of a tenant, and what it has used."""

    id: str
    used: float
    weight: float


@final
class SchedulingState(TypedDict):
    """Everything that a scheduling decision may rest on."""

    revision: Revision
    now: str
    accelerators: list[OfferedAccelerator]
    domains: list[PoolDomain]
    links: list[PathLink]
    copies: NotRequired[list[ArtefactCopies]]
    waiting: list[WaitingJob]
    running: list[RunningJob]
    refused: NotRequired[list[RefusedDecision]]
    accounts: NotRequired[list[AccountUse]]


@final
class ObjectiveWeights(TypedDict):
    """What counts how much; only their ratios matter. One that is absent counts nothing."""

    period: NotRequired[float]
    communication: NotRequired[float]
    utilisation: NotRequired[float]
    price: NotRequired[float]


@final
class PlannedShare(TypedDict):
    """Share of the compute given to jobs that a domain is to give."""

    domain: str
    share: float


@final
class PlacementRequest(TypedDict):
    """Asks what to do with the jobs of a state, sent whole or as a patch of one that was sent before. The answer
    depends on nothing else.
    """

    state: NotRequired[SchedulingState]
    digest: NotRequired[str]
    patch: NotRequired[Patch]
    weights: NotRequired[ObjectiveWeights]
    shares: NotRequired[list[PlannedShare]]
    explain: NotRequired[bool]
    alternatives: NotRequired[int]


@final
class PredictedOutcome(TypedDict):
    """What is expected of a job if a decision is carried out and nothing else happens."""

    run_at: str
    finish_at: str
    communication_cost: float
    price: float
    efficiency: float
    score: float


@final
class PlacementAlternative(TypedDict):
    """What else could have been done with a job."""

    verb: PlacementVerb
    placement: NotRequired[JobPlacement]
    outcome: PredictedOutcome


@final
class PlacementExplanation(TypedDict):
    """Why a decision is as it is."""

    outcome: NotRequired[PredictedOutcome]
    alternatives: list[PlacementAlternative]
    overtaken_until: NotRequired[str]
    beneficiary: NotRequired[str]
    reason: str


@final
class PlacementDecision(TypedDict):
    """What is to be done with a job."""

    job: str
    verb: PlacementVerb
    placement: NotRequired[JobPlacement]
    explanation: NotRequired[PlacementExplanation]


@final
class SchedulingMethod(TypedDict):
    """How an implementation decides."""

    name: str
    version: str
    weights: NotRequired[ObjectiveWeights]
    fallback: NotRequired[bool]


@final
class PlacementReport(TypedDict):
    """What is to be done, to be carried out in this order."""

    revision: Revision
    method: SchedulingMethod
    decisions: list[PlacementDecision]


@final
class ParetoRequest(TypedDict):
    """Asks for the best compromises between two ends: the mean period of the jobs that wait and the money for
    communication. Jobs run once, undisturbed, from the begin of a slot to their end. Without a time limit the
    answer depends on nothing else.
    """

    state: SchedulingState
    slot: float
    solutions: NotRequired[int]
    time_limit: NotRequired[float]


@final
class ScheduledJob(TypedDict):
    """Job in a schedule."""

    job: str
    start: float
    placement: JobPlacement


@final
class ParetoSolution(TypedDict):
    """Schedule that no other of the answer beats in both ends."""

    mean_period: float
    communication_cost: float
    jobs: list[ScheduledJob]


@final
class ParetoFront(TypedDict):
    """The best compromises that were found."""

    revision: Revision
    method: SchedulingMethod
    solutions: list[ParetoSolution]
    partial: NotRequired[bool]


@final
class DemandForecast(TypedDict):
    """Devices that will be asked for."""

    domain: str
    profile: str
    expected: float
    high: float
    movable: float
    interruptible: float


@final
class AllocationPlanRequest(TypedDict):
    """Asks how much of which capacity to use and how to buy it. The answer depends on nothing else."""

    state: SchedulingState
    horizon: float
    forecast: NotRequired[list[DemandForecast]]
    weights: NotRequired[ObjectiveWeights]


@final
class CapacityUse(TypedDict):
    """Devices of a pool that a plan counts upon."""

    domain: str
    accelerator: str
    purchase: PurchaseOption
    devices: int
    price: float


@final
class AllocationPlan(TypedDict):
    """How much of which capacity to use."""

    revision: Revision
    method: SchedulingMethod
    uses: list[CapacityUse]
    shares: list[PlannedShare]
    unmet: float
    price: float


@final
class RouteDemand(TypedDict):
    """What is to be moved, or carried on and on, to one of several places."""

    id: str
    sources: list[str]
    targets: list[str]
    size: float
    bandwidth: NotRequired[float]
    round_trip_time: NotRequired[float]


@final
class RouteRequest(TypedDict):
    """Asks for paths, and for the places at their ends. The answer depends on nothing else."""

    revision: Revision
    links: list[PathLink]
    demands: list[RouteDemand]
    weights: NotRequired[ObjectiveWeights]


@final
class Route(TypedDict):
    """Path of a demand."""

    demand: str
    path: list[str]
    bandwidth: float
    duration: float
    communication_cost: float


@final
class RoutePlan(TypedDict):
    """Paths of demands."""

    revision: Revision
    method: SchedulingMethod
    routes: list[Route]
    unserved: list[str]


class Allocation(TypedDict):
    """Devices that a job is to hold. What each domain has to do for it are actions: prepare in every domain, then
    commit, and abort everywhere if one refuses or does not answer in time.
    """

    id: str
    job: str
    revision: Revision
    placement: JobPlacement
    alternatives: NotRequired[list[JobPlacement]]
    patience: NotRequired[float]
    lease: NotRequired[float]


@final
class AllocationRecord(Allocation):
    """Allocation as the service holds it."""

    phase: AllocationPhase
    held: NotRequired[JobPlacement]
    reason: NotRequired[str]
    created_at: str
    updated_at: str


@final
class AllocationPage(TypedDict):
    """Part of the list of allocations, as it stood at one revision."""

    items: list[AllocationRecord]
    revision: Revision
    next_cursor: NotRequired[str]


@final
class OpenActions(TypedDict):
    """What a domain has been asked to do and has not yet answered."""

    items: list[Action]


@final
class PlannedTraining(TypedDict):
    """Training that a job does, from which its demand follows."""

    model: ModelStructure
    strategy: ParallelStrategy
    steps: int


@final
class ServingNeed(TypedDict):
    """How many replicas a serving job has, and what one of them carries. What else the job asks for holds for each
    replica.
    """

    minimum: int
    maximum: int
    rate: float
    latency: NotRequired[float]
    startup: NotRequired[float]
    cool_down: NotRequired[float]


class JobRequest(TypedDict):
    """Job as it is submitted. It does not change afterwards."""

    id: str
    label: NotRequired[str]
    kind: NotRequired[JobKind]
    account: NotRequired[str]
    workload: Workload
    devices: Elasticity
    device_kinds: NotRequired[list[AcceleratorKind]]
    memory_per_device: NotRequired[float]
    nodes: NotRequired[NodeNeed]
    links: NotRequired[LinkNeed]
    domains: NotRequired[list[str]]
    data: NotRequired[list[Artefact]]
    checkpoint: NotRequired[str]
    split_modes: NotRequired[list[SplitMode]]
    sync_period: NotRequired[int]
    communication: NotRequired[CommunicationProfile]
    duration: NotRequired[Estimate]
    training: NotRequired[PlannedTraining]
    serving: NotRequired[ServingNeed]
    priority: NotRequired[int]
    deadline: NotRequired[str]
    budget: NotRequired[float]
    retries: NotRequired[int]
    grace: NotRequired[float]
    extensions: NotRequired[dict[str, Any]]


@final
class JobTransition(TypedDict):
    """Change of the state of a job."""

    state: JobState
    at: str
    attempt: int
    reason: str


@final
class JobResize(TypedDict):
    """Another number of devices that a job is to go on with."""

    devices: int
    before: int
    beneficiary: NotRequired[str]


@final
class ReplicaState(TypedDict):
    """Replicas of a serving job, and the load that they are there for."""

    decided_at: str
    wanted: int
    running: int
    load: NotRequired[float]
    predicted: NotRequired[float]
    jobs: list[str]


@final
class AnnouncedLoad(TypedDict):
    """Requests that are expected within a time, as the owner of a serving job knows beforehand."""

    begins_at: str
    ends_at: str
    rate: float


@final
class JobLoad(TypedDict):
    """Requests that come in for a serving job, told by whoever passes them on to its replicas."""

    job: str
    observed_at: str
    rate: float
    announced: NotRequired[list[AnnouncedLoad]]


@final
class JobRecord(JobRequest):
    """Job as the service holds it."""

    state: JobState
    reason: str
    attempt: int
    failures: int
    allocation: NotRequired[str]
    placement: NotRequired[JobPlacement]
    step: NotRequired[int]
    checkpoint_step: NotRequired[int]
    device_hours: float
    submitted_at: str
    started_at: NotRequired[str]
    ended_at: NotRequired[str]
    cancelling: NotRequired[bool]
    resize: NotRequired[JobResize]
    replica_of: NotRequired[str]
    replicas: NotRequired[ReplicaState]
    transitions: list[JobTransition]
    revision: Revision


@final
class JobPage(TypedDict):
    """Part of the list of jobs, as it stood at one revision."""

    items: list[JobRecord]
    revision: Revision
    next_cursor: NotRequired[str]


@final
class JobDecision(TypedDict):
    """What was last decided about a job, and why."""

    job: str
    at: str
    revision: Revision
    digest: str
    method: SchedulingMethod
    decision: PlacementDecision


@final
class Account(AccountUse):
    """Account as the service holds it."""

    quota: NotRequired[float]


@final
class AccountList(TypedDict):
    """What accounts have used, by which they take turns."""

    at: str
    half_life: float
    items: list[Account]


@final
class RunReport(TypedDict):
    """How a run stands, as its domain says."""

    job: str
    attempt: int
    domain: str
    state: RunState
    at: str
    exit_code: NotRequired[int]
    own_fault: NotRequired[bool]
    step: NotRequired[int]
    checkpoint_step: NotRequired[int]
    reason: NotRequired[str]


class RunLogLine(TypedDict):
    """Line that a process of a run has printed."""

    number: int
    rank: int
    at: str
    text: str


@final
class RunLogBatch(TypedDict):
    """Lines of a run, in order."""

    job: str
    attempt: int
    domain: str
    lines: list[RunLogLine]


@final
class RunLogResult(TypedDict):
    """What became of a batch of lines."""

    last: int


@final
class JobLogLine(RunLogLine):
    """Line of a job's log, with where it is from."""

    attempt: int
    domain: str


@final
class JobLogPage(TypedDict):
    """Part of a job's log."""

    items: list[JobLogLine]
    next_cursor: str
    ended: bool


@final
class Implementation(TypedDict):
    """What is tested."""

    name: str
    version: str
    vendor: NotRequired[str]


@final
class Limits(TypedDict):
    """What an implementation takes at once."""

    max_body: int
    max_batch: int
    max_page: int
    retention: float
    idempotency: float
    max_resource: NotRequired[int]
    max_resources: NotRequired[int]
    max_resources_together: NotRequired[int]


@final
class Declaration(TypedDict):
    """What an implementation declares to conform to."""

    spec_version: str
    implementation: Implementation
    profiles: list[Profile]
    sub_profiles: NotRequired[list[str]]
    features: list[Feature]
    limits: Limits
    durability: Durability
    revision: Revision
    now: str


@final
class Threshold(TypedDict):
    """Figure that must be reached."""

    value: float
    comparison: Comparison
    unit: str


@final
class Requirement(TypedDict):
    """Normative sentence."""

    id: str
    profile: Profile
    level: Level
    modal: Modal
    feature: NotRequired[Feature]
    title_en: str
    title_zh: str
    text_en: str
    text_zh: str
    threshold: NotRequired[Threshold]
    aim: NotRequired[Threshold]
    method_en: str
    method_zh: str
    revised: NotRequired[str]
    source: str
    clause: str
    check: NotRequired[str]
    unchecked_because_en: NotRequired[str]
    unchecked_because_zh: NotRequired[str]


@final
class ProfileDefinition(TypedDict):
    """What a profile is."""

    profile: Profile
    name_en: str
    name_zh: str
    features: list[Feature]
    mandatory: list[str]


@final
class SubProfileDefinition(TypedDict):
    """What a sub-profile is."""

    name: str
    profile: Profile
    name_en: str
    name_zh: str
    features: list[Feature]
    mandatory: list[str]
    requirements: list[str]


@final
class WithdrawnRequirement(TypedDict):
    """Requirement that is no more; its identifier is not used again."""

    id: str
    profile: Profile
    sub_profiles: NotRequired[list[str]]
    title_en: str
    title_zh: str
    withdrawn_in: str
    replaced_by: list[str]
    because_en: str
    because_zh: str


@final
class RequirementRegister(TypedDict):
    """Every normative sentence of the standard."""

    spec_version: str
    profiles: list[ProfileDefinition]
    sub_profiles: NotRequired[list[SubProfileDefinition]]
    requirements: list[Requirement]
    withdrawn: NotRequired[list[WithdrawnRequirement]]


@final
class TableRow(TypedDict):
    """Row of a table."""

    cells: list[str]


@final
class ReportTable(TypedDict):
    """Figures beside a verdict that are printed, not judged."""

    title: str
    columns: list[str]
    rows: list[TableRow]


@final
class PlotSeries(TypedDict):
    """Points that belong together."""

    label: str
    x: list[float]
    y: list[float]


@final
class ReportPlot(TypedDict):
    """Picture beside a verdict."""

    title: str
    kind: PlotKind
    x_label: str
    y_label: str
    series: list[PlotSeries]


@final
class Evidence(TypedDict):
    """What a verdict rests on."""

    episode: str
    exchange: NotRequired[int]
    expected: str
    found: str
    request: NotRequired[str]
    answer: NotRequired[str]


@final
class Part(TypedDict):
    """Part of a figure, such as one stratum of a sample."""

    label: str
    estimate: float
    bound: NotRequired[float]
    n: int


@final
class RequirementResult(TypedDict):
    """What the suite found for one requirement."""

    requirement: str
    verdict: Verdict
    required: bool
    reason: NotRequired[str]
    hint: NotRequired[str]
    estimate: NotRequired[float]
    bound: NotRequired[float]
    threshold: NotRequired[Threshold]
    aim: NotRequired[Threshold]
    aim_met: NotRequired[bool]
    n: NotRequired[int]
    unit: NotRequired[str]
    estimator: NotRequired[str]
    replay: NotRequired[Replay]
    parts: list[Part]
    tables: NotRequired[list[ReportTable]]
    plots: NotRequired[list[ReportPlot]]
    evidence: list[Evidence]
    duration: NotRequired[float]


@final
class Environment(TypedDict):
    """Where the suite ran."""

    python: str
    platform: str
    processors: int
    packages: list[str]


@final
class Summary(TypedDict):
    """Verdicts counted."""

    verdict: Verdict
    count: int


@final
class DataTable(TypedDict):
    """Table of measurements that a run used."""

    name: str
    digest: str


@final
class Resumption(TypedDict):
    """Where a run that had been broken off was gone on with."""

    at: str
    broken_off_at: str
    again: list[str]
    across_epochs: NotRequired[bool]


@final
class Origin(TypedDict):
    """Where a run comes from, as it says of itself."""

    kind: OriginKind
    key: NotRequired[str]
    witness: NotRequired[str]
    issued_at: NotRequired[str]
    expires_at: NotRequired[str]


@final
class ConformanceReport(TypedDict):
    """What a run of the suite found."""

    spec_version: str
    suite_version: str
    target: str
    declaration: NotRequired[Declaration]
    run_level: RunLevel
    profiles: list[Profile]
    sub_profiles: NotRequired[list[str]]
    selection: list[str]
    nonce: str
    started_at: str
    finished_at: str
    called_off: NotRequired[str]
    resumptions: NotRequired[list[Resumption]]
    origin: NotRequired[Origin]
    environment: Environment
    data: NotRequired[list[DataTable]]
    results: list[RequirementResult]
    summary: list[Summary]
    exit_code: int
    transcript: str


@final
class ProfileClaim(TypedDict):
    """What a report comes to for one profile or sub-profile, over all of its requirements and those of COM."""

    profile: str
    outcome: ClaimOutcome
    judged: int
    passed: int
    failed: int
    lacking: list[str]


@final
class SubmittedFile(TypedDict):
    """File of a submission."""

    name: str
    digest: str


@final
class Submission(TypedDict):
    """What comes with a report that a vendor hands in. All of it but name and contact follows from the report."""

    spec_version: str
    suite_version: str
    name: str
    implementation: Implementation
    contact: str
    run_level: RunLevel
    claims: list[ProfileClaim]
    nonce: str
    started_at: str
    finished_at: str
    submitted_at: str
    made_by: str
    repeat_by: list[str]
    files: list[SubmittedFile]
