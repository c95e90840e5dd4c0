"""Kuayu information model, version 0.1.0.

Generated from spec/model by `make schemas`; do not edit.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from kuayu_schemas.base import Absent, Boolean, InstantText, Json, KuayuModel, Maybe, OmissibleJson, Real, WholeNumber

SPEC_VERSION = "0.1.0"
"""Version of the standard that these models are of."""


Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
"""Opaque name of a resource, unique for its kind within a tenant. It never encodes placement."""

ComputeUrn = Annotated[
    str, Field(pattern=r"^urn:kuayu:(service|family|node):[a-z0-9][a-z0-9-]{0,31}:[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
]
"""Compute identifier. The tier, the authority that gave the name, and an opaque name. It never encodes placement."""

Instant = Annotated[
    datetime,
    InstantText(
        r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?Z$"
    ),
]
"""RFC 3339 instant in UTC, written with Z, resolved to the millisecond."""

Duration = Annotated[Real, Field(ge=0)]
"""Length of time in seconds."""

Ratio = Annotated[Real, Field(ge=0, le=1)]
"""Fraction between nought and one."""

Amount = Annotated[Real, Field(ge=0)]
"""Quantity that is never negative; its unit stands with the slot."""

Count = Annotated[int, WholeNumber(0, 9007199254740991)]
"""Whole number that a double holds exactly."""

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
"""SHA-256 of the canonical JSON (RFC 8785) of what it stands for."""

Uri = Annotated[str, Field(pattern=r"^[a-z][a-z0-9+.-]*:[^ ]+$")]
"""Absolute URI."""

Pointer = Annotated[str, Field(pattern=r"^(/([^/~]|~0|~1)*)*$")]
"""JSON Pointer (RFC 6901); the empty string is the whole document."""

Text = Annotated[str, Field(pattern=r"^[^\u0000]*$", max_length=2048)]
"""Words for people, at most 2048 characters."""

PositiveAmount = Annotated[Real, Field(ge=1e-30, le=1e30)]
"""Quantity that is more than nought; its unit stands with the slot."""

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
"""Name of a variable of the environment (POSIX.1-2017, 8.1): letters, digits and underscores."""

SubProfileName = Annotated[str, Field(pattern=r"^[A-Z]{3}/[a-z]+(-[a-z]+)*$")]
"""Profile and name of a part of it, such as RES/collectives. Names of later versions are taken as they are."""

ClaimName = Annotated[str, Field(pattern=r"^[A-Z]{3}(/[a-z]+(-[a-z]+)*)?$")]
"""What can be claimed: a profile, or a sub-profile."""


class HealthState(StrEnum):
    """How fit something is to work, from best to worst; unknown where it cannot be told."""

    healthy = "healthy"
    """Works as it should."""

    degraded = "degraded"
    """Works, but slower or with errors that were mended."""

    faulty = "faulty"
    """Does not work as it should."""

    offline = "offline"
    """Does not answer."""

    unknown = "unknown"
    """Cannot be told."""


class PatchVerb(StrEnum):
    """What a patch operation does (RFC 6902)."""

    add = "add"
    """Insert a value."""

    remove = "remove"
    """Take a value away."""

    replace = "replace"  # type: ignore[assignment]
    """Put another value in its place."""

    test = "test"
    """Go on only where the value is this one."""


class AcceleratorKind(StrEnum):
    """What kind of processor does the matrix work."""

    gpu = "gpu"
    """Graphics processor."""

    npu = "npu"
    """Neural processor."""

    dcu = "dcu"
    """Deep computing unit."""

    mlu = "mlu"
    """Machine learning unit."""

    tpu = "tpu"
    """Tensor processor."""

    cpu = "cpu"
    """General processor doing the matrix work itself."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class LinkMedium(StrEnum):
    """What a link between domains runs over."""

    leased = "leased"
    """Leased line."""

    internet = "internet"
    """Public network."""

    private = "private"
    """Network of the operator's own."""

    unknown = "unknown"
    """Not stated."""


class IdentifierTier(StrEnum):
    """Tiers of compute identifiers, from what a user asks for to where it runs."""

    service = "service"
    """A compute service that users ask for (服务标识)."""

    family = "family"
    """A family of nodes that work together (节点组标识)."""

    node = "node"
    """A node (节点标识)."""


class Dimension(StrEnum):
    """The four dimensions of the metric model."""

    compute = "compute"
    """What can be computed (计算)."""

    storage = "storage"
    """What can be kept and moved in and out (存储)."""

    network = "network"
    """What can be exchanged (网络)."""

    state = "state"
    """How it stands now (状态)."""


class ValueKind(StrEnum):
    """Form of a value."""

    number = "number"
    """One number."""

    by_precision = "by_precision"
    """One number for each numeric precision."""

    state = "state"
    """One of the named states."""


class Constancy(StrEnum):
    """How often a value can change."""

    static = "static"
    """Changes only when the hardware does."""

    probed = "probed"
    """Measured by running a probe, now and then."""

    dynamic = "dynamic"
    """Changes all the time; sampled at least once a minute."""


class Direction(StrEnum):
    """Which way is better."""

    higher = "higher"
    """More is better."""

    lower = "lower"  # type: ignore[assignment]
    """Less is better."""

    neutral = "neutral"
    """Neither; it depends on the use."""


class Aggregation(StrEnum):
    """How values of parts become the value of the whole."""

    sum = "sum"
    """Sum over the parts."""

    mean = "mean"
    """Mean over the parts, each counting the same."""

    minimum = "minimum"
    """Least of the parts."""

    maximum = "maximum"
    """Greatest of the parts."""

    ratio_of_sums = "ratio_of_sums"
    """Quotient of the sums of the two measures that the formula names."""

    worst_state = "worst_state"
    """Worst state of the parts."""

    none = "none"
    """Not aggregated."""


class SubjectKind(StrEnum):
    """What a value is about."""

    device = "device"
    """Accelerator of a node."""

    node = "node"
    """Node."""

    domain = "domain"
    """Domain."""

    link = "link"
    """Link between domains."""


class Transform(StrEnum):
    """What turns an exporter's field into a measure."""

    gauge = "gauge"
    """The field's value times the factor."""

    rate = "rate"
    """Increase of the counter since the previous page, times the factor, over the time between the pages. A counter
    that fell below three quarters has been reset; its increase is its value.
    """

    increase = "increase"
    """Increase of the counter since the previous page, times the factor, with the same rule for a reset."""

    state = "state"
    """The state that the collection map gives for the field's value."""

    present = "present"
    """One when the field's value is not nought, otherwise nought."""


class PartRule(StrEnum):
    """How readings of the parts of a device become that of the whole."""

    sum = "sum"
    """The parts are added up, by the transform."""

    same = "same"
    """Each part shows the whole, so that one of them counts."""


class BulkMode(StrEnum):
    """What one bad item does to the others of a bulk request."""

    per_item = "per_item"
    """Good items are taken; bad ones are named."""

    atomic = "atomic"
    """One bad item refuses them all."""


class Durability(StrEnum):
    """Which crash an acknowledged write survives."""

    process = "process"
    """The service's own, at any moment."""

    host = "host"
    """The host's too, power failure included."""


class Provenance(StrEnum):
    """How a value came about."""

    registered = "registered"
    """Stated when the resource was registered."""

    measured = "measured"
    """Measured or probed."""

    derived = "derived"
    """Computed from other measures of the same subject."""

    aggregated = "aggregated"
    """Computed from the parts of the subject."""

    estimated = "estimated"
    """Inferred from other subjects."""

    unknown = "unknown"
    """Not stated."""


class ScrapeState(StrEnum):
    """How the last scrape of a target went."""

    pending = "pending"
    """Not scraped yet."""

    succeeded = "succeeded"
    """Values were taken."""

    failed = "failed"
    """No value could be taken."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class WarningKind(StrEnum):
    """What is to be known of a page that was taken."""

    nothing_used = "nothing_used"
    """The page has series and the collection map takes none of them."""

    counter_returned = "counter_returned"
    """A counter went back to where it had been before it fell or leapt, so that what it showed in between was wrong
    or another's.
    """

    identity_conflict = "identity_conflict"
    """Two sources report under one identity, as cloned hosts do; their counters give nothing until that ends."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class OperatingState(StrEnum):
    """What a node does, as far as telemetry tells."""

    idle = "idle"
    """Answers, and none of its accelerators works."""

    busy = "busy"
    """Its accelerators work as they should."""

    degraded = "degraded"
    """Works or could work, but with less than it should, and no other node waits for it."""

    straggling = "straggling"
    """Works, and the others of its family wait for it."""

    faulty = "faulty"
    """Answers, but what was given to it does not go on."""

    offline = "offline"
    """Does not answer, while others of its domain do."""

    unknown = "unknown"
    """Cannot be told."""


class LinkState(StrEnum):
    """How fit a link is to carry traffic."""

    up = "up"
    """Carries what it should."""

    degraded = "degraded"
    """Carries traffic, but less than it should or with loss."""

    down = "down"
    """Carries nothing."""

    unknown = "unknown"
    """Cannot be told."""


class VertexKind(StrEnum):
    """What the resource graph is made of."""

    domain = "domain"
    """A domain."""

    node = "node"
    """A node."""

    link = "link"
    """A link between two domains."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class NumericPrecision(StrEnum):
    """Number formats of matrix work."""

    fp64 = "fp64"
    """IEEE 754 binary64."""

    fp32 = "fp32"
    """IEEE 754 binary32."""

    tf32 = "tf32"
    """19-bit TensorFloat or alike."""

    bf16 = "bf16"
    """bfloat16."""

    fp16 = "fp16"
    """IEEE 754 binary16."""

    fp8 = "fp8"
    """Eight-bit floating point."""

    fp4 = "fp4"
    """Four-bit floating point."""

    int8 = "int8"
    """Eight-bit integers."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class Capability(StrEnum):
    """What a task's time on a device can depend on."""

    matrix = "matrix"
    """Peak matrix throughput, in the fastest precision that task and device share."""

    vector = "vector"
    """Peak throughput in binary32, which work outside the matrix units takes."""

    memory = "memory"
    """Accelerator memory bandwidth."""

    scale_out = "scale_out"
    """Bandwidth between devices that work together."""

    fixed = "fixed"
    """What no capability of the device makes shorter, such as the host's part."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class IndexBasis(StrEnum):
    """What a compute index rests on."""

    measured = "measured"
    """Device and reference were both measured on the task."""

    probed = "probed"
    """The device was measured on other tasks, and the index is inferred from them."""

    specified = "specified"
    """The device was not measured; the index rests on its data sheet."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class ActionKind(StrEnum):
    """What is to be done."""

    reserve = "reserve"
    """Hold devices for a job."""

    release = "release"
    """Give them back."""

    start = "start"
    """Start a job where it was placed."""

    stop = "stop"
    """Stop it."""

    checkpoint = "checkpoint"
    """Write a checkpoint."""

    migrate = "migrate"
    """Go on elsewhere from a checkpoint."""

    resize = "resize"
    """Go on with more or fewer devices."""

    replicate = "replicate"
    """Copy data or a checkpoint to another domain."""

    route = "route"
    """Carry traffic over another path."""

    reconfigure = "reconfigure"
    """Change a parameter of a running job."""

    fence = "fence"
    """Give out no device of its nodes and run nothing on them, until that is released."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class ActionPhase(StrEnum):
    """Step of the contract."""

    prepare = "prepare"
    """Promise that it can be done and hold what it needs."""

    commit = "commit"
    """Do it."""

    abort = "abort"
    """Let go of what was held."""


class ActionOutcome(StrEnum):
    """How a step ended."""

    prepared = "prepared"
    """Held until the promise expires."""

    committed = "committed"
    """Done."""

    aborted = "aborted"
    """Let go."""

    refused = "refused"
    """Cannot be done; nothing is held."""

    expired = "expired"
    """The promise ran out before it was committed."""

    failed = "failed"
    """Was begun and could not be finished."""

    unknown = "unknown"
    """Cannot be told now; ask again with the same identifier."""


class JobKind(StrEnum):
    """What a job does."""

    pretraining = "pretraining"
    """Trains a large model from the beginning."""

    fine_tuning = "fine_tuning"
    """Goes on training a model that is there."""

    training = "training"
    """Trains any other model."""

    serving = "serving"
    """Answers requests with a model."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class SplitMode(StrEnum):
    """How a job may be spread over domains."""

    none = "none"
    """Inside one domain only."""

    synchronous = "synchronous"
    """Data parallel; gradients are exchanged at every step."""

    periodic = "periodic"
    """Data parallel; models are reconciled every so many steps."""

    pipeline = "pipeline"
    """Layers are cut between domains."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class NodeScope(StrEnum):
    """How near to each other all devices of a job in a domain have to lie."""

    node = "node"
    """On one node."""

    switch = "switch"
    """On nodes of one leaf switch."""


class JobPhase(StrEnum):
    """Where a job stands."""

    pending = "pending"
    """Not placed yet."""

    staging = "staging"
    """Data is on its way."""

    running = "running"
    """Runs."""

    interrupted = "interrupted"
    """Was stopped and will go on."""

    succeeded = "succeeded"
    """Has done its work."""

    failed = "failed"
    """Will not go on."""

    cancelled = "cancelled"
    """Was called off."""

    unknown = "unknown"
    """Cannot be told."""


class PipelineSchedule(StrEnum):
    """In which order stages work through micro-batches."""

    one_forward_one_backward = "one_forward_one_backward"
    """One forward, one backward (1F1B), interleaved where stages have several pieces."""

    bidirectional = "bidirectional"
    """Micro-batches enter at both ends, and each accelerator holds the two stages that lie as far from either
    (DualPipe).
    """

    unknown = "unknown"
    """Of a kind that this version does not name."""


class Recomputation(StrEnum):
    """Which activations are computed anew in the backward pass."""

    none = "none"
    """None; all are kept."""

    selective = "selective"
    """Those of attention: its scores; of compressed attention what is quick to compute anew, up-projections,
    normalisations and activation functions.
    """

    full = "full"
    """All."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class MemoryPart(StrEnum):
    """What memory of an accelerator is for."""

    parameters = "parameters"
    """Weights."""

    gradients = "gradients"
    """Gradients."""

    optimizer = "optimizer"
    """State of the optimiser."""

    activations = "activations"
    """Activations kept for the backward pass."""

    working = "working"
    """Buffers, logits, fragmentation."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class ParallelDimension(StrEnum):
    """Which parallelism traffic belongs to."""

    data = "data"
    """Gradients, and weights where they are sharded."""

    tensor = "tensor"
    """Activations inside a layer."""

    pipeline = "pipeline"
    """Activations between stages."""

    context = "context"
    """Keys and values along the sequence."""

    expert = "expert"
    """Tokens to experts and back."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class LinkClass(StrEnum):
    """What traffic crosses."""

    node = "node"
    """Links between accelerators of a node."""

    domain = "domain"
    """The network between nodes of a domain."""

    federation = "federation"
    """Links between domains."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class StepActivity(StrEnum):
    """What happens in a part of a step."""

    filling = "filling"
    """A pipeline fills."""

    steady = "steady"
    """All stages work."""

    draining = "draining"
    """A pipeline empties."""

    exchange = "exchange"
    """Gradients are exchanged, and nothing hides it."""

    update = "update"
    """The optimiser changes the weights."""

    idle = "idle"
    """Nothing of the model is computed."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class TrainingPhase(StrEnum):
    """Phase of a training job."""

    warm_up = "warm_up"
    """The learning rate still rises."""

    fast_convergence = "fast_convergence"
    """The loss falls fast."""

    stable_convergence = "stable_convergence"
    """The loss falls slowly or not at all."""

    unknown = "unknown"
    """Cannot be told."""


class DemandQuantity(StrEnum):
    """What a series counts."""

    demanded_devices = "demanded_devices"
    """Devices that jobs hold or wait for."""

    held_devices = "held_devices"
    """Devices that jobs hold."""

    waiting_devices = "waiting_devices"
    """Devices that jobs wait for."""

    submitted_devices = "submitted_devices"
    """Devices that jobs asked for that were submitted within a step."""

    requests = "requests"
    """Requests that were served within a step."""

    utilisation = "utilisation"
    """Share of the devices held that is busy."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class EventKind(StrEnum):
    """What is known beforehand."""

    holiday = "holiday"
    """Days on which people do not work."""

    maintenance = "maintenance"
    """Devices are taken out."""

    campaign = "campaign"
    """Users have announced work."""

    deadline = "deadline"
    """Much is due."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class CollectiveKind(StrEnum):
    """How replicas add up their gradients."""

    ring = "ring"
    """All nodes in one ring, domain after domain."""

    hierarchical = "hierarchical"
    """Inside each domain first, then over domains, then inside again."""

    low_communication = "low_communication"
    """Inside each domain at every step, over domains once in a period of steps."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class NodeCondition(StrEnum):
    """Whether a node can do anything for a job."""

    fit = "fit"
    """It can."""

    failed = "failed"
    """It cannot, and nothing runs on it any more."""

    unreachable = "unreachable"
    """Nothing is heard of it; what ran on it may still run."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class RecoveryStrategy(StrEnum):
    """How a job goes on."""

    go_on = "go_on"
    """With the replicas that are whole, without the others."""

    replace = "replace"  # type: ignore[assignment]
    """Broken replicas get other nodes of its domain and the state of a whole one, and join again."""

    restore = "restore"
    """It begins anew from a copy of a checkpoint, in one domain."""

    wait = "wait"
    """It stands still until there is another way."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class TriggerKind(StrEnum):
    """What has changed."""

    load = "load"
    """The load of a domain."""

    latency = "latency"
    """The latency of a link."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class FaultKind(StrEnum):
    """What is wrong."""

    node_dead = "node_dead"
    """A node no longer runs, or can no longer be told from one that does not."""

    node_failing = "node_failing"
    """A node runs, but its log tells that it, or a device of it, has to be reset or repaired."""

    domain_unreachable = "domain_unreachable"
    """Nothing arrives any more from a domain; how its nodes are cannot be told."""

    job_hung = "job_hung"
    """A job makes no steps, though its nodes live."""

    rank_straggling = "rank_straggling"
    """A rank of a job is slower than its peers, again and again."""

    identity_conflict = "identity_conflict"
    """Telemetry of a node comes from two sources, as from hosts that were cloned or devices that trade places."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class FaultState(StrEnum):
    """How a fault stands."""

    open = "open"
    """It lasts."""

    cleared = "cleared"
    """It is over, or what it was about is no longer there."""


class PurchaseOption(StrEnum):
    """How capacity is bought."""

    reserved = "reserved"
    """Paid for whether it is used or not; using it costs nothing more."""

    on_demand = "on_demand"
    """Paid for while it is held."""

    spot = "spot"
    """Paid for while it is held, at a lower price; it may be taken away."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class PlacementVerb(StrEnum):
    """What a decision does with a job."""

    start = "start"
    """A waiting job is given its devices."""

    wait = "wait"
    """A waiting job goes on waiting."""

    stop = "stop"
    """A running job writes a checkpoint, gives its devices back and waits."""

    migrate = "migrate"
    """A running job goes on elsewhere from a checkpoint."""

    resize = "resize"
    """A running job goes on where it is with more or fewer devices."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class RefusalReason(StrEnum):
    """Why an earlier decision was not carried out."""

    unknown_job = "unknown_job"
    """There is no such job."""

    not_waiting = "not_waiting"
    """The job does not wait."""

    not_running = "not_running"
    """The job does not run."""

    unknown_pool = "unknown_pool"
    """There is no such pool."""

    twice = "twice"
    """A domain or a pool is named twice."""

    size = "size"
    """The job may not have so few devices or so many."""

    memory = "memory"
    """The devices have too little memory."""

    split = "split"  # type: ignore[assignment]
    """The job may not be spread like that."""

    data = "data"
    """Its data may not leave their domain."""

    unreachable = "unreachable"
    """A domain cannot be reached."""

    no_room = "no_room"
    """Not that many devices are free."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class AllocationPhase(StrEnum):
    """Where an allocation stands."""

    preparing = "preparing"
    """Promises are being collected."""

    committing = "committing"
    """All that is needed was promised, and is being taken."""

    committed = "committed"
    """Everything is held."""

    aborting = "aborting"
    """What was promised is being let go."""

    refused = "refused"
    """It could not be had, nor could any alternative; nothing is held."""

    releasing = "releasing"
    """What was held is being given back."""

    released = "released"
    """Nothing is held any more."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class JobState(StrEnum):
    """Where a job stands."""

    queued = "queued"
    """Waits for devices."""

    held = "held"
    """Is not considered until what holds it is over; the reason says what."""

    starting = "starting"
    """Devices are being reserved, or its runs are being started."""

    running = "running"
    """Runs in every domain that it was placed in."""

    restarting = "restarting"
    """A run was lost or stopped; what is left of it is being ended, and it is queued again then."""

    succeeded = "succeeded"
    """Has ended as it should."""

    failed = "failed"
    """Has ended otherwise, and is not tried again."""

    cancelled = "cancelled"
    """Was called off, and nothing of it runs any more."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class RunState(StrEnum):
    """Where a run stands."""

    running = "running"
    """All its processes run."""

    succeeded = "succeeded"
    """All its processes have ended as they should."""

    failed = "failed"
    """A process has ended otherwise or could not be started; nothing of it runs any more."""

    stopped = "stopped"
    """Was ended because that was asked; nothing of it runs any more."""

    unknown = "unknown"
    """Cannot be told now."""


class Profile(StrEnum):
    """Parts of the standard that can be claimed."""

    COM = "COM"
    """Common behaviour; always (通用)."""

    MET = "MET"
    """Metric model and perception (感知)."""

    IDX = "IDX"
    """Compute index (算力指数)."""

    DEM = "DEM"
    """Demand (需求)."""

    FCT = "FCT"
    """Forecast (预测)."""

    SCH = "SCH"
    """Scheduling (调度)."""

    RES = "RES"
    """Resilience (容错)."""

    JOB = "JOB"
    """Jobs (作业)."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class Feature(StrEnum):
    """Options within profiles; a declared feature is an obligation."""

    scrape = "scrape"
    """The service fetches exporters' pages by itself."""

    otlp = "otlp"
    """The service takes metrics of the OpenTelemetry protocol."""

    tenancy = "tenancy"
    """Several tenants share the service and do not see each other."""

    accounts = "accounts"
    """Use of devices is counted by account, and by it accounts take turns."""

    elastic = "elastic"
    """Jobs that run are given more devices, or fewer, between the least and the most that they can work with."""

    serving = "serving"
    """Serving jobs have as many replicas as their load needs, and jobs of lower priority give way to them."""

    unknown = "unknown"
    """Of a kind that this version does not name."""


class Level(StrEnum):
    """What a requirement is about."""

    interface = "interface"
    """Schemas and behaviour."""

    performance = "performance"
    """Figures."""


class Modal(StrEnum):
    """Force of a sentence (GB/T 1.1-2020: 应, 宜, 可)."""

    shall = "shall"
    """Must be met (应)."""

    should = "should"
    """Better met (宜)."""

    may = "may"
    """Allowed (可)."""


class Comparison(StrEnum):
    """On which side of the threshold a figure must lie."""

    at_least = "at_least"
    """The figure or more."""

    at_most = "at_most"
    """The figure or less."""


class RunLevel(StrEnum):
    """How much a run of the suite measures."""

    smoke = "smoke"
    """Four minutes: every interface, and the figures that can be had in the time."""

    quick = "quick"
    """A quarter of an hour: everything, on small samples."""

    full = "full"
    """As much as a published report needs."""


class Verdict(StrEnum):
    """What the suite found."""

    pass_ = "pass"
    """Met, and the bound shows it."""

    fail = "fail"
    """Not met."""

    inconclusive = "inconclusive"
    """Neither shown to be met nor shown not to be."""

    not_applicable = "not-applicable"
    """Belongs to a profile that is not declared, was not asked for, or is left to longer runs."""

    not_supported = "not-supported"
    """Belongs to an option that is not declared."""

    not_testable = "not-testable"
    """Could not be tested in this set-up; the reason says what is missing."""

    harness_error = "harness-error"
    """The suite itself failed."""


class PlotKind(StrEnum):
    """How a plot is drawn."""

    agreement = "agreement"
    """Points against the line where both are equal, both axes logarithmic."""

    lines = "lines"
    """Lines, both axes linear from nought."""

    graph = "graph"
    """Dots where vertices are drawn, without axes; in the series links every two points are the ends of a line."""


class OriginKind(StrEnum):
    """Who chose the nonce of a run, and who ran the suite."""

    self_asserted = "self-asserted"
    """Whoever ran the suite chose the nonce."""

    challenged = "challenged"
    """Somebody else chose the nonce, and signed it."""

    witnessed = "witnessed"
    """Whoever issues challenges ran the suite himself."""


class ClaimOutcome(StrEnum):
    """What becomes of the claim that an implementation conforms to a profile or sub-profile."""

    met = "met"
    """All that counts was judged and met."""

    not_met = "not-met"
    """Something that counts is not met."""

    undecided = "undecided"
    """Nothing is not met, but something that counts stays open."""

    not_claimed = "not-claimed"
    """Something of the profile was left out."""


class Replay(StrEnum):
    """How a verdict can be judged again from the report."""

    deterministic = "deterministic"
    """The requests are made again and the recorded answers are judged again."""

    recorded_times = "recorded-times"
    """As deterministic, with the times that were recorded."""


Extensions = Annotated[
    dict[Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9._-]{1,64}$")], Json],
    Field(max_length=64),
]
"""The only door for what the standard does not foresee, a JSON object of at most 64 members. Keys are the reverse
domain name of who defines them, a slash, and a name; readers keep what they do not know.
"""


class Revision(KuayuModel):
    """Point in the life of a service's state. The number grows by one with each change; the epoch changes when state
    was lost, and revisions of different epochs are not comparable.
    """

    epoch: Identifier = Field(description="Life of the state that the number counts in.")
    number: Count = Field(description="Changes since the epoch began.")


class ProblemError(KuayuModel):
    """One place in a request that is wrong."""

    pointer: Pointer = Field(description="Where in the body.")
    parameter: Maybe[Text] = Field(
        default=None, description="Where outside the body: a query, path or header parameter."
    )
    detail: Text = Field(description="What is wrong there.")


class Problem(KuayuModel):
    """Answer to a request that failed, media type application/problem+json (RFC 9457)."""

    type: Uri = Field(description="Registered problem type, urn:kuayu:problem:NAME.")
    title: Text = Field(description="Short summary of the problem type.")
    status: Annotated[int, WholeNumber(400, 599)] = Field(description="HTTP status code.")
    detail: Maybe[Text] = Field(default=None, description="What went wrong this time and what to do about it.")
    instance: Maybe[Text] = Field(default=None, description="Names this occurrence.")
    retryable: Boolean = Field(description="Whether the same request may succeed later.")
    retry_after: Maybe[Duration] = Field(
        default=None, description="Seconds to wait before trying again.", json_schema_extra={"x-unit": "s"}
    )
    errors: Maybe[Annotated[list[ProblemError], Field(max_length=100)]] = Field(
        default=None, description="The places in the request that are wrong."
    )


class ProblemType(KuayuModel):
    """Row of the registry of problem types."""

    name: Identifier = Field(description="Last part of the type URI.")
    type: Uri = Field(description="The type URI.")
    status: Annotated[int, WholeNumber(400, 599)] = Field(description="HTTP status code it comes with.")
    retryable: Boolean = Field(description="Whether the same request may succeed later.")
    title_en: Text = Field(description="English title.")
    title_zh: Text = Field(description="Chinese title.")
    remedy_en: Text = Field(description="What the caller can do (English).")
    remedy_zh: Text = Field(description="What the caller can do (Chinese).")


class ProblemRegister(KuayuModel):
    """All registered problem types."""

    problems: Annotated[list[ProblemType], Field(min_length=1)] = Field(description="The rows.")


class PatchOperation(KuayuModel):
    """One operation of a JSON Patch (RFC 6902)."""

    op: PatchVerb = Field(description="What is done.")
    path: Pointer = Field(description="Where.")
    value: OmissibleJson = Field(default_factory=Absent, description="With what; absent for remove.")


class Patch(KuayuModel):
    """Difference from a document that both sides hold, named by its digest. Who does not hold the base answers with
    unknown-base, and the sender sends the whole document.
    """

    base: Digest = Field(description="The document that the operations start from.")
    result: Digest = Field(description="The document that they must lead to.")
    operations: Annotated[list[PatchOperation], Field(max_length=100000)] = Field(description="In order.")


class AssignedCode(KuayuModel):
    """Code by which a registry outside this standard names the same thing, such as one that a national node of
    compute assigns. It stands beside the names of this standard, and nothing is derived from its form.
    """

    scheme: Uri = Field(
        description="Says by whose rules the code is made, by a URI of that registry; codes are unique within it."
    )
    code: Text = Field(description="The code as it was assigned, character by character.")


class Resource(KuayuModel):
    """What has an identifier and may be registered."""

    id: Identifier = Field(description="Name of the resource.")
    label: Maybe[Text] = Field(default=None, description="Name for people.")
    assigned_codes: Maybe[Annotated[list[AssignedCode], Field(max_length=16)]] = Field(
        default=None, description="Codes that registries outside this standard have assigned to it."
    )
    extensions: Maybe[Extensions] = Field(default=None, description="What the standard does not foresee.")


class Location(KuayuModel):
    """Where a domain stands."""

    latitude: Annotated[Real, Field(ge=-90, le=90)] = Field(
        description="North is positive.", json_schema_extra={"x-unit": "deg"}
    )
    longitude: Annotated[Real, Field(ge=-180, le=180)] = Field(
        description="East is positive.", json_schema_extra={"x-unit": "deg"}
    )
    region: Maybe[Text] = Field(default=None, description="Name of the region or hub.")


class Domain(Resource):
    """Data centre, or part of one, under one operator, inside which nodes reach each other without a wide-area link."""

    location: Maybe[Location] = Field(default=None, description="Where it stands.")
    operator: Maybe[Text] = Field(default=None, description="Who runs it.")


class PrecisionThroughput(KuayuModel):
    """Dense matrix throughput for each numeric precision; a precision that is absent is not stated."""

    fp64: Maybe[Amount] = Field(
        default=None, description="IEEE 754 binary64.", json_schema_extra={"x-unit": "{FLOP}/s"}
    )
    fp32: Maybe[Amount] = Field(
        default=None, description="IEEE 754 binary32.", json_schema_extra={"x-unit": "{FLOP}/s"}
    )
    tf32: Maybe[Amount] = Field(
        default=None, description="19-bit TensorFloat or alike.", json_schema_extra={"x-unit": "{FLOP}/s"}
    )
    bf16: Maybe[Amount] = Field(default=None, description="bfloat16.", json_schema_extra={"x-unit": "{FLOP}/s"})
    fp16: Maybe[Amount] = Field(
        default=None, description="IEEE 754 binary16.", json_schema_extra={"x-unit": "{FLOP}/s"}
    )
    fp8: Maybe[Amount] = Field(
        default=None, description="Eight-bit floating point.", json_schema_extra={"x-unit": "{FLOP}/s"}
    )
    fp4: Maybe[Amount] = Field(
        default=None, description="Four-bit floating point.", json_schema_extra={"x-unit": "{FLOP}/s"}
    )
    int8: Maybe[Amount] = Field(
        default=None, description="Eight-bit integers; operations for FLOP.", json_schema_extra={"x-unit": "{OP}/s"}
    )


class Device(KuayuModel):
    """Accelerator of a node. Its identifier is unique within the node."""

    id: Identifier = Field(description="Name within the node, commonly the index that the vendor's exporter uses.")
    kind: AcceleratorKind = Field(description="Kind of accelerator.")
    vendor: Text = Field(description="Who makes it.")
    model: Text = Field(description="Name of the product.")
    memory_capacity: Maybe[Amount] = Field(
        default=None, description="Memory of the accelerator.", json_schema_extra={"x-unit": "By"}
    )
    peak_matrix_throughput: Maybe[PrecisionThroughput] = Field(
        default=None, description="Dense throughput by the data sheet."
    )
    power_limit: Maybe[Amount] = Field(
        default=None, description="Power that it may draw.", json_schema_extra={"x-unit": "W"}
    )
    extensions: Maybe[Extensions] = Field(default=None, description="What the standard does not foresee.")


class Node(Resource):
    """Computer of a domain, with its accelerators."""

    domain: Identifier = Field(description="Domain that it belongs to.")
    devices: Maybe[Annotated[list[Device], Field(max_length=1024)]] = Field(
        default=None, description="Its accelerators."
    )
    compute_identifier: Maybe[ComputeUrn] = Field(
        default=None, description="Compute identifier of the node tier that names this node."
    )


class Link(Resource):
    """Directed path from one domain to another."""

    source: Identifier = Field(description="Domain where it starts.")
    destination: Identifier = Field(description="Domain where it ends.")
    capacity: Maybe[Amount] = Field(
        default=None, description="What is contracted or built.", json_schema_extra={"x-unit": "bit/s"}
    )
    medium: Maybe[LinkMedium] = Field(default=None, description="What it runs over.")


class DomainRecord(Domain):
    """Domain as the service holds it."""

    revision: Revision = Field(description="Revision at which it last changed.")
    updated_at: Instant = Field(description="When it last changed.")


class NodeRecord(Node):
    """Node as the service holds it."""

    revision: Revision = Field(description="Revision at which it last changed.")
    updated_at: Instant = Field(description="When it last changed.")


class LinkRecord(Link):
    """Link as the service holds it."""

    revision: Revision = Field(description="Revision at which it last changed.")
    updated_at: Instant = Field(description="When it last changed.")


class DomainPage(KuayuModel):
    """Part of the list of domains, as it stood at one revision."""

    items: list[DomainRecord] = Field(description="In order of identifier.")
    revision: Revision = Field(description="Revision that the whole listing shows.")
    next_cursor: Maybe[Text] = Field(default=None, description="Give it back to go on; absent on the last page.")


class NodePage(KuayuModel):
    """Part of the list of nodes, as it stood at one revision."""

    items: list[NodeRecord] = Field(description="In order of identifier.")
    revision: Revision = Field(description="Revision that the whole listing shows.")
    next_cursor: Maybe[Text] = Field(default=None, description="Give it back to go on; absent on the last page.")


class LinkPage(KuayuModel):
    """Part of the list of links, as it stood at one revision."""

    items: list[LinkRecord] = Field(description="In order of identifier.")
    revision: Revision = Field(description="Revision that the whole listing shows.")
    next_cursor: Maybe[Text] = Field(default=None, description="Give it back to go on; absent on the last page.")


class ResourceSnapshot(KuayuModel):
    """All resources of a tenant at one revision."""

    digest: Digest = Field(description="Digest of the members domains, nodes and links.")
    revision: Revision = Field(description="Revision that it shows.")
    taken_at: Instant = Field(description="When it was taken.")
    domains: list[Domain] = Field(description="In order of identifier.")
    nodes: list[Node] = Field(description="In order of identifier.")
    links: list[Link] = Field(description="In order of identifier.")


class ComputeIdentifier(KuayuModel):
    """Compute identifier and what it stands for: a service for families, a family for nodes. The mapping of a node's
    identifier to the node stands in the node's registration.
    """

    urn: ComputeUrn = Field(description="The identifier; of the tier service or family.")
    members: Annotated[list[ComputeUrn], Field(max_length=10000)] = Field(
        description="Identifiers of the tier below, without repetition."
    )
    label: Maybe[Text] = Field(default=None, description="Name for people.")
    assigned_codes: Maybe[Annotated[list[AssignedCode], Field(max_length=16)]] = Field(
        default=None, description="Codes that registries outside this standard have assigned to it."
    )
    extensions: Maybe[Extensions] = Field(default=None, description="What the standard does not foresee.")


class ComputeIdentifierRecord(ComputeIdentifier):
    """Compute identifier as the service holds it."""

    revision: Revision = Field(description="Revision at which it last changed.")
    updated_at: Instant = Field(description="When it last changed.")


class Resolution(KuayuModel):
    """A compute identifier with all that it leads to, downwards to nodes and upwards to services."""

    urn: ComputeUrn = Field(description="What was resolved.")
    tier: IdentifierTier = Field(description="Its tier.")
    services: list[ComputeUrn] = Field(description="Services that it is part of or is, in order.")
    families: list[ComputeUrn] = Field(description="Families that it holds, is or is part of, in order.")
    nodes: list[Identifier] = Field(description="Registered nodes that it leads to, in order.")
    unresolved: list[ComputeUrn] = Field(description="Members that lead to nothing registered, in order.")
    revision: Revision = Field(description="Revision that the answer shows.")


class LabelMatch(KuayuModel):
    """Condition on a label of a series."""

    label: Text = Field(description="Name of the label.")
    value: Text = Field(
        description=(
            "Value that it must have; a label that is absent is empty, so that the empty value asks for its absence."
        )
    )


class StateMatch(KuayuModel):
    """Value of a field and the health state that it means."""

    value: Real = Field(description="Value of the field.")
    state: HealthState = Field(description="What it means.")


class CollectionEntry(KuayuModel):
    """Row of the collection map."""

    exporter: Identifier = Field(description="Which exporter.")
    fields: Annotated[list[Text], Field(min_length=1)] = Field(
        description="Names of its series; where there are several, their sum."
    )
    field_unit: Text = Field(description="UCUM unit of the field.")
    transform: Transform = Field(description="What is done with it.")
    factor: Real = Field(description="From the field's unit to the measure's.")
    subject: SubjectKind = Field(description="What the field is about; series of the same subject are summed.")
    match: Maybe[list[LabelMatch]] = Field(default=None, description="Conditions on labels.")
    parts: Maybe[PartRule] = Field(
        default=None,
        description="What is taken where the page shows parts of a device and not the whole; nothing where it is absent.",
    )
    states: Maybe[list[StateMatch]] = Field(default=None, description="For the transform state.")
    resolution: Amount = Field(description="Least step of the field, in its own unit.")
    source: Text = Field(description="Citation.")


class Measure(KuayuModel):
    """A quantity on the wire that an indicator consists of."""

    name: Identifier = Field(description="Name of the slot in a sample.")
    name_zh: Text = Field(description="Chinese name.")
    definition_en: Text = Field(description="What it is (English).")
    definition_zh: Text = Field(description="What it is (Chinese).")
    formula: Text = Field(description="How it is computed.")
    unit: Text = Field(description="UCUM unit on the wire.")
    display_unit: Text = Field(description="UCUM unit for people.")
    display_factor: Real = Field(description="Value on the wire times this is the value for people.")
    kind: ValueKind = Field(description="Form of the value.")
    minimum: Maybe[Real] = Field(default=None, description="Least possible value.")
    maximum: Maybe[Real] = Field(default=None, description="Greatest possible value.")
    ceiling: Maybe[Real] = Field(
        default=None,
        description=(
            "Greatest value that a single series of an exporter's page can give; more is refused. Sums over parts"
            " may exceed it."
        ),
    )
    constancy: Constancy = Field(description="How often it can change.")
    period: Maybe[Duration] = Field(
        default=None,
        description="Longest time between samples of a dynamic measure.",
        json_schema_extra={"x-unit": "s"},
    )
    accuracy: Ratio = Field(
        description=(
            "Greatest relative error of a correct value; half the resolution of the exporter's field comes on top."
        ),
        json_schema_extra={"x-unit": "1"},
    )
    direction: Direction = Field(description="Which way is better.")
    subjects: Annotated[list[SubjectKind], Field(min_length=1)] = Field(description="What it may be reported for.")
    aggregation: Aggregation = Field(description="How devices become a node and nodes a domain.")
    numerator: Maybe[Identifier] = Field(default=None, description="For ratio_of_sums.")
    denominator: Maybe[Identifier] = Field(default=None, description="For ratio_of_sums.")
    collection: Maybe[list[CollectionEntry]] = Field(
        default=None, description="Which field of which exporter yields it."
    )
    collection_note: Maybe[Text] = Field(
        default=None, description="Where no exporter yields it, where else it comes from."
    )


class Indicator(KuayuModel):
    """One of the twelve indicators."""

    id: Identifier = Field(description="Permanent identifier, such as CMP-1.")
    dimension: Dimension = Field(description="Dimension that it belongs to.")
    name_en: Text = Field(description="English name.")
    name_zh: Text = Field(description="Chinese name.")
    definition_en: Text = Field(description="What it is (English).")
    definition_zh: Text = Field(description="What it is (Chinese).")
    measures: Annotated[list[Measure], Field(min_length=1)] = Field(
        description="What is measured for it; the first is the indicator's own value."
    )


class Exporter(KuayuModel):
    """Program that publishes telemetry in the Prometheus text format."""

    id: Identifier = Field(description="Name in the collection map.")
    vendor: Text = Field(description="Whose hardware or software it reports on.")
    version: Text = Field(description="Version that the map was made for.")
    device_label: Maybe[Text] = Field(
        default=None, description="Label that names the device; absent where the exporter reports on the node only."
    )
    blanks: Maybe[list[Real]] = Field(
        default=None,
        description="Values by which its fields say that there is none, beside the limits of integer and floating types.",
    )
    sharing_labels: Maybe[list[Text]] = Field(
        default=None,
        description="Labels that say who uses a device; series that differ in nothing else repeat one reading.",
    )
    part_labels: Maybe[list[Text]] = Field(
        default=None,
        description=(
            "Labels that name parts of a device, such as partitions; series that differ in these are readings of "
            "their own."
        ),
    )
    identity_labels: Maybe[list[Text]] = Field(
        default=None,
        description=(
            "Labels that name the piece of hardware, such as its serial number; they tell that pages are of two "
            "hosts, and nothing else."
        ),
    )
    host_labels: Maybe[list[Text]] = Field(
        default=None,
        description=(
            "Labels that name the host that a page is of, the first that a series has; they tell that pages are "
            "of two hosts, and nothing else."
        ),
    )
    source: Text = Field(description="Citation of its documentation or code.")
    note: Maybe[Text] = Field(default=None, description="What to know of it.")


class IndicatorRegister(KuayuModel):
    """The twelve indicators and the exporters that they are collected from."""

    indicators: Annotated[list[Indicator], Field(min_length=1)] = Field(description="In order.")
    exporters: list[Exporter] = Field(description="In order.")


class Measures(KuayuModel):
    """The measures of the twelve indicators, one slot each; what was not observed is absent."""

    peak_matrix_throughput: Maybe[PrecisionThroughput] = Field(
        default=None, description="CMP-1: dense matrix throughput by the data sheet."
    )
    sustained_matrix_throughput: Maybe[PrecisionThroughput] = Field(
        default=None, description="CMP-2: dense matrix throughput measured by the probe."
    )
    matrix_pipe_activity: Maybe[Ratio] = Field(
        default=None,
        description="CMP-2: share of time in which the matrix units work.",
        json_schema_extra={"x-unit": "1"},
    )
    energy_efficiency: Maybe[Amount] = Field(
        default=None,
        description="CMP-3: sustained throughput over the power drawn meanwhile.",
        json_schema_extra={"x-unit": "{FLOP}/J"},
    )
    power: Maybe[Amount] = Field(default=None, description="CMP-3: power drawn.", json_schema_extra={"x-unit": "W"})
    accelerator_memory_capacity: Maybe[Amount] = Field(
        default=None, description="STO-1: memory of the accelerators.", json_schema_extra={"x-unit": "By"}
    )
    accelerator_memory_used: Maybe[Amount] = Field(
        default=None, description="STO-1: memory in use.", json_schema_extra={"x-unit": "By"}
    )
    accelerator_memory_bandwidth: Maybe[Amount] = Field(
        default=None, description="STO-2: memory bandwidth measured by the probe.", json_schema_extra={"x-unit": "By/s"}
    )
    memory_bandwidth_utilisation: Maybe[Ratio] = Field(
        default=None, description="STO-2: share of the memory bandwidth in use.", json_schema_extra={"x-unit": "1"}
    )
    storage_throughput: Maybe[Amount] = Field(
        default=None,
        description="STO-3: throughput of the store for data and checkpoints, measured by the probe.",
        json_schema_extra={"x-unit": "By/s"},
    )
    storage_read_flow: Maybe[Amount] = Field(
        default=None, description="STO-3: bytes read from the store in a second.", json_schema_extra={"x-unit": "By/s"}
    )
    storage_write_flow: Maybe[Amount] = Field(
        default=None, description="STO-3: bytes written to the store in a second.", json_schema_extra={"x-unit": "By/s"}
    )
    scale_out_bandwidth: Maybe[Amount] = Field(
        default=None,
        description="NET-1: all-reduce bus bandwidth inside the domain, measured by the probe.",
        json_schema_extra={"x-unit": "By/s"},
    )
    scale_out_transmit_flow: Maybe[Amount] = Field(
        default=None,
        description="NET-1: bytes sent over the network in a second.",
        json_schema_extra={"x-unit": "By/s"},
    )
    scale_out_receive_flow: Maybe[Amount] = Field(
        default=None,
        description="NET-1: bytes received over the network in a second.",
        json_schema_extra={"x-unit": "By/s"},
    )
    inter_domain_bandwidth: Maybe[Amount] = Field(
        default=None,
        description="NET-2: bandwidth that is available between two domains.",
        json_schema_extra={"x-unit": "bit/s"},
    )
    round_trip_time: Maybe[Amount] = Field(
        default=None, description="NET-3: time to the other domain and back.", json_schema_extra={"x-unit": "s"}
    )
    jitter: Maybe[Amount] = Field(
        default=None,
        description="NET-3: mean difference between round-trip times that follow each other.",
        json_schema_extra={"x-unit": "s"},
    )
    packet_loss: Maybe[Ratio] = Field(
        default=None, description="NET-3: share of packets lost.", json_schema_extra={"x-unit": "1"}
    )
    accelerator_utilisation: Maybe[Ratio] = Field(
        default=None,
        description="STA-1: share of time in which the accelerator works.",
        json_schema_extra={"x-unit": "1"},
    )
    health_state: Maybe[HealthState] = Field(default=None, description="STA-2: how fit the subject is to work.")
    health_score: Maybe[Ratio] = Field(
        default=None, description="STA-2: one is healthy.", json_schema_extra={"x-unit": "1"}
    )
    faults: Maybe[Amount] = Field(
        default=None, description="STA-2: faults since the previous sample.", json_schema_extra={"x-unit": "{fault}"}
    )
    allocatable_share: Maybe[Ratio] = Field(
        default=None,
        description="STA-3: share of the accelerators that can be given out.",
        json_schema_extra={"x-unit": "1"},
    )
    queue_pressure: Maybe[Amount] = Field(
        default=None,
        description="STA-3: accelerators asked for by waiting jobs, over all accelerators.",
        json_schema_extra={"x-unit": "1"},
    )


class Sample(Measures):
    """What was observed of one subject at one instant."""

    subject: Identifier = Field(description="Node, domain or link that it is about.")
    subject_kind: SubjectKind = Field(description="What the subject is; device where a device of the node is meant.")
    device: Maybe[Identifier] = Field(
        default=None, description="Device of the node; required where the subject kind is device, absent elsewhere."
    )
    observed_at: Instant = Field(description="When it was observed.")

    @model_validator(mode="after")
    def device_names_device(self) -> Self:
        """A sample of a device names the device."""
        if self.subject_kind is SubjectKind.device and self.device is None:
            raise ValueError("A sample of a device names the device.")
        return self

    @model_validator(mode="after")
    def only_device_names_device(self) -> Self:
        """Only a sample of a device names a device."""
        if self.device is not None and self.subject_kind is not SubjectKind.device:
            raise ValueError("Only a sample of a device names a device.")
        return self


class SampleRecord(Sample):
    """Sample as the service holds it."""

    received_at: Instant = Field(
        description="When it was received; of samples that were merged, when the first of them was."
    )


class SampleBatch(KuayuModel):
    """Samples that travel together."""

    mode: BulkMode = Field(description="What one bad item does to the others.")
    sent_at: Maybe[Instant] = Field(
        default=None, description="The sender's clock when it sent; lets the receiver correct a clock that is off."
    )
    samples: Annotated[list[Sample], Field(min_length=1, max_length=10000)] = Field(description="In any order.")


class ItemRejection(KuayuModel):
    """Item of a bulk request that was not taken, and why."""

    index: Count = Field(description="Position in the request.")
    problem: Problem = Field(description="Why.")


class PageWarning(KuayuModel):
    """What is to be known of an exporter's page that was taken."""

    kind: WarningKind = Field(description="What kind of thing.")
    detail: Text = Field(description="What, and what may help, for people.")


class BatchResult(KuayuModel):
    """What became of a bulk request."""

    accepted: Count = Field(description="Items taken; a repetition of what is held counts as taken.")
    rejected: list[ItemRejection] = Field(description="Items not taken.")
    durability: Durability = Field(description="Which crash the taken items survive.")
    received_at: Instant = Field(description="When they were received.")
    clock_offset: Real = Field(
        description="Seconds that were added to each observed_at, nought where the sender's clock was near enough.",
        json_schema_extra={"x-unit": "s"},
    )
    warnings: Maybe[list[PageWarning]] = Field(
        default=None, description="What is to be known of an exporter's page; absent where there is nothing."
    )


class SamplePage(KuayuModel):
    """Part of a series of samples, by time."""

    items: list[SampleRecord] = Field(description="In order of observed_at, then device.")
    revision: Revision = Field(description="Revision that the whole listing shows.")
    next_cursor: Maybe[Text] = Field(default=None, description="Give it back to go on; absent on the last page.")


class ScrapeTarget(KuayuModel):
    """Exporter's page that the service fetches by itself."""

    id: Identifier = Field(description="Name of the target.")
    node: Identifier = Field(description="Node that it reports on.")
    exporter: Identifier = Field(description="Exporter of the collection map.")
    url: Uri = Field(description="Where the page is.")
    period: Maybe[Annotated[Real, Field(ge=0.1, le=60)]] = Field(
        default=None,
        description="Time between scrapes; the service chooses where it is absent.",
        json_schema_extra={"x-unit": "s"},
    )
    extensions: Maybe[Extensions] = Field(default=None, description="What the standard does not foresee.")


class ScrapeTargetRecord(ScrapeTarget):
    """Scrape target as the service holds it."""

    state: ScrapeState = Field(description="How the last scrape went.")
    last_scrape_at: Maybe[Instant] = Field(default=None, description="When it was last scraped.")
    last_problem: Maybe[Problem] = Field(default=None, description="Why the last scrape failed.")
    last_warnings: Maybe[list[PageWarning]] = Field(
        default=None,
        description="What is to be known of the page that was last scraped; absent where there is nothing.",
    )
    revision: Revision = Field(description="Revision at which it last changed.")
    updated_at: Instant = Field(description="When it last changed.")


class ScrapeTargetPage(KuayuModel):
    """Part of the list of scrape targets."""

    items: list[ScrapeTargetRecord] = Field(description="In order of identifier.")
    revision: Revision = Field(description="Revision that the whole listing shows.")
    next_cursor: Maybe[Text] = Field(default=None, description="Give it back to go on; absent on the last page.")


class IndicatorValue(KuayuModel):
    """Value of a measure of one subject."""

    indicator: Identifier = Field(description="Indicator that the measure belongs to.")
    measure: Identifier = Field(description="Name of the measure.")
    device: Maybe[Identifier] = Field(
        default=None, description="Device that it is about; absent for the subject as a whole."
    )
    number: Maybe[Real] = Field(default=None, description="The value of a measure that is a number.")
    by_precision: Maybe[PrecisionThroughput] = Field(
        default=None, description="The value of a measure that has one for each precision."
    )
    state: Maybe[HealthState] = Field(default=None, description="The value of a measure that is a state.")
    unit: Text = Field(description="UCUM unit.")
    observed_at: Instant = Field(description="When it was observed; for an aggregate the oldest of its parts.")
    provenance: Provenance = Field(description="How it came about.")
    parts: Maybe[Count] = Field(default=None, description="Parts that an aggregate was made of.")


class IndicatorReport(KuayuModel):
    """Indicators of one subject at one instant."""

    subject: Identifier = Field(description="What it is about.")
    subject_kind: SubjectKind = Field(description="What the subject is.")
    at: Instant = Field(description="The instant; each value is the newest at or before it.")
    values: list[IndicatorValue] = Field(
        description=(
            "In the order of the register of indicators; of each measure the subject's own value comes first, "
            "then those of its devices by identifier."
        )
    )
    revision: Revision = Field(description="Revision that the answer shows.")


class StateCounts(KuayuModel):
    """How many nodes are in each state."""

    idle: Count = Field(description="Idle nodes.")
    busy: Count = Field(description="Busy nodes.")
    degraded: Count = Field(description="Degraded nodes.")
    straggling: Count = Field(description="Straggling nodes.")
    faulty: Count = Field(description="Faulty nodes.")
    offline: Count = Field(description="Nodes that are offline.")
    unknown: Count = Field(description="Nodes whose state cannot be told.")


class DomainVertex(KuayuModel):
    """Domain in the resource graph, as the sum of its nodes."""

    id: Identifier = Field(description="The domain.")
    nodes: StateCounts = Field(description="Its nodes by state.")
    devices: Count = Field(description="Accelerators registered in it.")
    reachable: Boolean = Field(description="False while nothing arrives from any of its nodes that used to answer.")
    accelerator_utilisation: Maybe[Ratio] = Field(
        default=None,
        description="Mean over its nodes that answer; absent where none states it.",
        json_schema_extra={"x-unit": "1"},
    )


class NodeVertex(KuayuModel):
    """Node in the resource graph."""

    id: Identifier = Field(description="The node.")
    domain: Identifier = Field(description="Domain that it belongs to.")
    state: OperatingState = Field(description="What it does.")
    since: Instant = Field(description="When the service came to see it in this state.")
    confidence: Maybe[Ratio] = Field(
        default=None, description="How sure the service is of the state.", json_schema_extra={"x-unit": "1"}
    )
    because: Maybe[Text] = Field(default=None, description="What the state was told from, for people.")
    devices: Count = Field(description="Its accelerators.")


class LinkVertex(KuayuModel):
    """Link in the resource graph. What was not measured may be estimated, and says so."""

    id: Identifier = Field(description="The link.")
    source: Identifier = Field(description="Domain where it starts.")
    destination: Identifier = Field(description="Domain where it ends.")
    state: LinkState = Field(description="How fit it is.")
    provenance: Provenance = Field(
        description=(
            "How its quality came about: measured, or estimated from other links and places; unknown where "
            "nothing is stated."
        )
    )
    inter_domain_bandwidth: Maybe[Amount] = Field(
        default=None, description="Bandwidth that is available.", json_schema_extra={"x-unit": "bit/s"}
    )
    round_trip_time: Maybe[Amount] = Field(
        default=None, description="Time to the other domain and back.", json_schema_extra={"x-unit": "s"}
    )
    packet_loss: Maybe[Ratio] = Field(
        default=None, description="Share of packets lost.", json_schema_extra={"x-unit": "1"}
    )


class ResourceGraph(KuayuModel):
    """The resource graph, or the part of it that was asked for, at one revision."""

    digest: Digest = Field(description="Digest of an object of the members domains, nodes and links.")
    revision: Revision = Field(
        description="Revision of the graph that it shows; another count than that of registrations."
    )
    taken_at: Instant = Field(description="When it was taken.")
    domains: list[DomainVertex] = Field(description="In order of identifier.")
    nodes: list[NodeVertex] = Field(description="In order of identifier; none where only domains were asked for.")
    links: list[LinkVertex] = Field(description="In order of identifier.")


class GoneVertex(KuayuModel):
    """What is no longer in the resource graph, or in the part of it that was asked for."""

    kind: VertexKind = Field(description="What it was.")
    id: Identifier = Field(description="Its name.")


class GraphChange(KuayuModel):
    """One step of the resource graph, data of an event of its stream. What stands in it takes the place of what had
    the same identifier.
    """

    revision: Revision = Field(description="Revision that it leads to.")
    changed_at: Instant = Field(description="When the graph changed.")
    domains: list[DomainVertex] = Field(description="Domains that are new or have changed.")
    nodes: list[NodeVertex] = Field(description="Nodes that are new or have changed.")
    links: list[LinkVertex] = Field(description="Links that are new or have changed.")
    gone: list[GoneVertex] = Field(description="What is no longer there, or no longer part of what was asked for.")


class SeriesPoint(KuayuModel):
    """What was observed of a measure within one step of time."""

    start: Instant = Field(description="Where the step begins.")
    count: Count = Field(description="Values observed in it.")
    mean: Real = Field(description="Their mean.")
    minimum: Real = Field(description="The least.")
    maximum: Real = Field(description="The greatest.")


class Series(KuayuModel):
    """A measure of a subject over time, step by step; a step without values is left out."""

    subject: Identifier = Field(description="What it is about.")
    subject_kind: SubjectKind = Field(description="What the subject is.")
    device: Maybe[Identifier] = Field(
        default=None, description="Device of the node; present where the subject kind is device."
    )
    measure: Identifier = Field(description="Name of the measure.")
    unit: Text = Field(description="UCUM unit.")
    step: Duration = Field(description="Length of a step.", json_schema_extra={"x-unit": "s"})
    points: list[SeriesPoint] = Field(description="In order of time.")
    revision: Revision = Field(description="Revision that the answer shows.")


class IndexedDevice(KuayuModel):
    """Kind of accelerator with its software, as the compute index sees it. The same silicon with other software is
    another one.
    """

    id: Identifier = Field(description="Its name in this request.")
    stack: Text = Field(description="Software that it was measured with; driver, framework and their versions.")
    measured_at: Maybe[Instant] = Field(default=None, description="When it was measured.")
    peak_matrix_throughput: Maybe[PrecisionThroughput] = Field(
        default=None, description="CMP-1: dense matrix throughput by the data sheet."
    )
    accelerator_memory_capacity: Maybe[PositiveAmount] = Field(
        default=None, description="STO-1: its memory.", json_schema_extra={"x-unit": "By"}
    )
    accelerator_memory_bandwidth: Maybe[PositiveAmount] = Field(
        default=None,
        description="STO-2: memory bandwidth, measured or by the data sheet.",
        json_schema_extra={"x-unit": "By/s"},
    )
    scale_out_bandwidth: Maybe[PositiveAmount] = Field(
        default=None,
        description="NET-1: bandwidth to the devices that it works with.",
        json_schema_extra={"x-unit": "By/s"},
    )
    power: Maybe[PositiveAmount] = Field(
        default=None,
        description="CMP-3: power that it draws at work, measured or by the data sheet.",
        json_schema_extra={"x-unit": "W"},
    )


class IndexedTask(KuayuModel):
    """Training task, as the compute index sees it."""

    id: Identifier = Field(description="Its name in this request.")
    precisions: Annotated[list[NumericPrecision], Field(min_length=1)] = Field(
        description="Number formats that its matrix work may take; the fastest that the device has counts."
    )
    family: Maybe[Identifier] = Field(default=None, description="Family of models that it belongs to.")
    work: Maybe[PositiveAmount] = Field(
        default=None,
        description="Work of one unit of its throughput, such as one sample.",
        json_schema_extra={"x-unit": "{FLOP}"},
    )
    memory_traffic: Maybe[PositiveAmount] = Field(
        default=None,
        description="Bytes that one unit moves to and from accelerator memory.",
        json_schema_extra={"x-unit": "By"},
    )
    exchange: Maybe[PositiveAmount] = Field(
        default=None,
        description="Bytes that each device exchanges with the others for one unit.",
        json_schema_extra={"x-unit": "By"},
    )


class Measurement(KuayuModel):
    """Throughput of a task, measured on devices of one kind."""

    device: Identifier = Field(description="Which.")
    task: Identifier = Field(description="Which.")
    devices: Maybe[Annotated[int, WholeNumber(1, 9007199254740991)]] = Field(
        default=None, description="How many worked together; one where it is absent."
    )
    throughput: PositiveAmount = Field(
        description=(
            "Units of the task's own in a second that all of them did together; any unit will do that is the same"
            " for the whole task."
        )
    )
    power: Maybe[PositiveAmount] = Field(
        default=None, description="Power that one of them drew meanwhile.", json_schema_extra={"x-unit": "W"}
    )


class Corpus(KuayuModel):
    """What was measured on what. It is all that a compute index rests on, and it travels in the request."""

    devices: Annotated[list[IndexedDevice], Field(min_length=1, max_length=10000)] = Field(
        description="In any order, without repetition."
    )
    tasks: Annotated[list[IndexedTask], Field(min_length=1, max_length=1000)] = Field(
        description="In any order, without repetition."
    )
    measurements: Annotated[list[Measurement], Field(max_length=100000)] = Field(
        description="In any order. The same combination may be there several times."
    )


class GroupMember(KuayuModel):
    """Part of a group: so many devices of a kind, or so many groups that are alike."""

    device: Maybe[Identifier] = Field(default=None, description="Kind of device; either this or the group.")
    group: Maybe[Identifier] = Field(
        default=None, description="Group that stands earlier in the request; either this or the device."
    )
    count: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="How many.")

    @model_validator(mode="after")
    def device_or_group(self) -> Self:
        """A member is a device or a group."""
        if self.device is None and self.group is None:
            raise ValueError("A member is a device or a group.")
        return self

    @model_validator(mode="after")
    def not_both(self) -> Self:
        """A member is not a device and a group at once."""
        if self.device is not None and self.group is not None:
            raise ValueError("A member is not a device and a group at once.")
        return self


class DeviceGroup(KuayuModel):
    """Devices that are seen as one: a node, a domain, a federation."""

    id: Identifier = Field(description="Its name in this request.")
    members: Annotated[list[GroupMember], Field(min_length=1, max_length=10000)] = Field(
        description="What it consists of."
    )
    scale_out_bandwidth: Maybe[PositiveAmount] = Field(
        default=None,
        description="Bandwidth of each member to the others. Without it, only independent jobs are told.",
        json_schema_extra={"x-unit": "By/s"},
    )


class IndexRequest(KuayuModel):
    """Asks for compute indices. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the corpus was taken from; the answer repeats it.")
    corpus: Corpus = Field(description="What was measured.")
    reference: Identifier = Field(description="Device whose index is one, for every task.")
    devices: Maybe[list[Identifier]] = Field(default=None, description="Devices to tell of; all where it is absent.")
    tasks: Maybe[list[Identifier]] = Field(default=None, description="Tasks to tell of; all where it is absent.")
    groups: Maybe[Annotated[list[DeviceGroup], Field(max_length=10000)]] = Field(
        default=None, description="Groups to tell of; a group stands after those that it consists of."
    )
    coverage: Maybe[Annotated[Real, Field(ge=0.5, le=0.99)]] = Field(
        default=None,
        description="Share of cases that the intervals are to hold; 0.9 where it is absent.",
        json_schema_extra={"x-unit": "1"},
    )
    tolerance: Maybe[PositiveAmount] = Field(
        default=None,
        description="Widest interval that is still of use, as √(high/low) − 1; 0.4 where it is absent.",
        json_schema_extra={"x-unit": "1"},
    )
    explain: Maybe[Boolean] = Field(default=None, description="Whether each index is to be explained.")


class IndexTerm(KuayuModel):
    """Part of a compute index that one capability makes."""

    capability: Capability = Field(description="Which.")
    weight: Ratio = Field(
        description="Sensitivity of the task: share of its time on the reference. The weights of all terms sum to one.",
        json_schema_extra={"x-unit": "1"},
    )
    ratio: PositiveAmount = Field(
        description="The device's capability over the reference's, as calibrated by measurements.",
        json_schema_extra={"x-unit": "1"},
    )
    share: Ratio = Field(
        description="Share of the task's time on the device. The shares of all terms sum to one.",
        json_schema_extra={"x-unit": "1"},
    )


class IndexLever(KuayuModel):
    """What a compute index would be with another device."""

    capability: Capability = Field(description="What would be changed.")
    factor: PositiveAmount = Field(description="How many times as much of it.", json_schema_extra={"x-unit": "1"})
    value: PositiveAmount = Field(description="What the index would be.", json_schema_extra={"x-unit": "1"})


class IndexExplanation(KuayuModel):
    """Why a compute index is what it is: residual / Σ weight/ratio."""

    terms: Annotated[list[IndexTerm], Field(min_length=1)] = Field(
        description="One for each capability that the task depends on."
    )
    residual: PositiveAmount = Field(
        description="What measurements say beyond the terms; one where there is nothing to say.",
        json_schema_extra={"x-unit": "1"},
    )
    dominant: Capability = Field(description="The term with the largest share.")
    levers: list[IndexLever] = Field(description="What would change it.")


class ComputeIndex(KuayuModel):
    """How many of the reference one device is worth for a task."""

    device: Identifier = Field(description="Which.")
    task: Identifier = Field(description="Which.")
    value: PositiveAmount = Field(description="The index.", json_schema_extra={"x-unit": "1"})
    low: Annotated[Real, Field(ge=0, le=1e100)] = Field(
        description="Lower end of its interval.", json_schema_extra={"x-unit": "1"}
    )
    high: Annotated[Real, Field(ge=0, le=1e100)] = Field(
        description="Upper end of its interval.", json_schema_extra={"x-unit": "1"}
    )
    basis: IndexBasis = Field(description="What it rests on.")
    abstained: Boolean = Field(
        description="Whether the interval is wider than the tolerance; the value is then not to be relied on."
    )
    per_watt: Maybe[PositiveAmount] = Field(
        default=None,
        description="The index, times the reference's power over the device's; absent where a power is not known.",
        json_schema_extra={"x-unit": "1"},
    )
    stack: Text = Field(description="Software that it holds for.")
    measured_at: Maybe[Instant] = Field(default=None, description="When the device was measured.")
    explanation: Maybe[IndexExplanation] = Field(default=None, description="Why it is so, where that was asked for.")


class GroupIndex(KuayuModel):
    """How many of the reference a group is worth for a task."""

    group: Identifier = Field(description="Which.")
    task: Identifier = Field(description="Which.")
    devices: Count = Field(description="Devices in it.")
    independent: PositiveAmount = Field(
        description="For jobs of one device each: the sum of the indices.", json_schema_extra={"x-unit": "1"}
    )
    together: Maybe[PositiveAmount] = Field(
        default=None,
        description="For one job over all of its devices; absent where the exchange or the bandwidth is not known.",
        json_schema_extra={"x-unit": "1"},
    )
    efficiency: Maybe[Ratio] = Field(
        default=None, description="Scale-out efficiency, the quotient of the two.", json_schema_extra={"x-unit": "1"}
    )
    low: Annotated[Real, Field(ge=0, le=1e100)] = Field(
        description="Lower end of the interval of independent.", json_schema_extra={"x-unit": "1"}
    )
    high: Annotated[Real, Field(ge=0, le=1e100)] = Field(
        description="Upper end of the interval of independent.", json_schema_extra={"x-unit": "1"}
    )
    per_watt: Maybe[PositiveAmount] = Field(
        default=None,
        description="The sum of the indices, times the reference's power over that of all devices.",
        json_schema_extra={"x-unit": "1"},
    )


class IndexMethod(KuayuModel):
    """How an implementation computes."""

    name: Text = Field(description="Its name.")
    version: Text = Field(description="Its version; the same version gives the same answers.")


class IndexReport(KuayuModel):
    """Compute indices of devices and groups for tasks."""

    revision: Revision = Field(description="The request's.")
    reference: Identifier = Field(description="Device whose index is one.")
    coverage: Ratio = Field(
        description="Share of cases that the intervals are to hold.", json_schema_extra={"x-unit": "1"}
    )
    method: IndexMethod = Field(description="How they were computed.")
    indices: list[ComputeIndex] = Field(description="By device, then task, in the order of the request.")
    groups: list[GroupIndex] = Field(description="By group, then task, in the order of the request.")


class CorpusCell(KuayuModel):
    """A device and a task, measured or to be measured."""

    device: Identifier = Field(description="Which.")
    task: Identifier = Field(description="Which.")


class ProbePlanRequest(KuayuModel):
    """Asks which measurements would make indices surest. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the corpus was taken from; the answer repeats it.")
    corpus: Corpus = Field(description="What was measured so far.")
    candidates: Annotated[list[CorpusCell], Field(min_length=1, max_length=10000)] = Field(
        description="What could be measured."
    )
    targets: Annotated[list[CorpusCell], Field(min_length=1, max_length=10000)] = Field(
        description="Indices that are to become surer; a target that is measured counts as sure."
    )
    probes: Annotated[int, WholeNumber(1, 100)] = Field(description="How many measurements at most.")


class PlannedProbe(KuayuModel):
    """Measurement to make."""

    device: Identifier = Field(description="On which device.")
    task: Identifier = Field(description="Which task.")
    half_width: Annotated[Real, Field(ge=0, le=1e100)] = Field(
        description=(
            "Mean of √(high/low) − 1 over the targets that is expected once this and all earlier ones are made, "
            "at a coverage of 0.9."
        ),
        json_schema_extra={"x-unit": "1"},
    )


class ProbePlan(KuayuModel):
    """Which measurements to make, the most telling first."""

    revision: Revision = Field(description="The request's.")
    method: IndexMethod = Field(description="How it was computed.")
    without: Annotated[Real, Field(ge=0, le=1e100)] = Field(
        description="Mean of √(high/low) − 1 over the targets as things stand.", json_schema_extra={"x-unit": "1"}
    )
    probes: list[PlannedProbe] = Field(description="In this order.")


class NodeShare(KuayuModel):
    """Devices of a node."""

    node: Identifier = Field(description="Which.")
    devices: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="How many.")


class EnvironmentVariable(KuayuModel):
    """Variable that processes find in their environment."""

    name: VariableName = Field(description="Its name.")
    value: Text = Field(description="Its value.")


class Workload(KuayuModel):
    """What a job runs, on every node that it is given."""

    image: Maybe[Text] = Field(
        default=None, description="Container image that it runs in; on the node itself where it is absent."
    )
    command: Annotated[list[Text], Field(min_length=1, max_length=1000)] = Field(
        description="Program and its arguments, in this order."
    )
    environment: Maybe[Annotated[list[EnvironmentVariable], Field(max_length=1000)]] = Field(
        default=None, description="Variables, without repetition."
    )
    working_directory: Maybe[Text] = Field(
        default=None, description="Where processes begin; a directory of the run's own where it is absent."
    )
    code: Maybe[Uri] = Field(default=None, description="Bundle that is unpacked there before the start.")
    processes_per_node: Maybe[Annotated[int, WholeNumber(1, 1024)]] = Field(
        default=None, description="Processes on each node; one for each device where it is absent."
    )


class DomainShare(KuayuModel):
    """Devices of a pool that a job is given."""

    domain: Identifier = Field(description="In which domain.")
    accelerator: Identifier = Field(description="Of which kind.")
    devices: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="How many.")
    purchase: Maybe[PurchaseOption] = Field(
        default=None, description="How they are bought; stated where the pool has offers."
    )
    nodes: Maybe[Annotated[list[NodeShare], Field(max_length=10000)]] = Field(
        default=None, description="On which nodes; stated where the pool tells them."
    )


class RunOrder(KuayuModel):
    """What a domain is to run for an attempt of a job. It stands in actions of kind start."""

    attempt: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="Which attempt of the job.")
    workload: Workload = Field(description="What to run.")
    shares: Annotated[list[DomainShare], Field(min_length=1, max_length=1000)] = Field(
        description="What the job holds in all domains, in the order of ranks."
    )
    split_mode: SplitMode = Field(description="How domains work together.")
    sync_period: Maybe[Annotated[int, WholeNumber(1, 9007199254740991)]] = Field(
        default=None, description="Steps between reconciliations; stated where the split is periodic."
    )
    checkpoint: Maybe[Uri] = Field(default=None, description="Where checkpoints are.")
    step: Count = Field(
        description="Last step of which a checkpoint was reported, from which it goes on; nought at the beginning."
    )
    grace: Duration = Field(
        description="Seconds that processes have to end once they are asked to.", json_schema_extra={"x-unit": "s"}
    )


class Action(KuayuModel):
    """Something to be done by whoever owns the resource. The identifier makes it idempotent: the same identifier and
    phase give the same result however often they are sent.
    """

    id: Identifier = Field(description="Name of the action.")
    kind: ActionKind = Field(description="What is to be done.")
    phase: ActionPhase = Field(description="Step of the contract.")
    revision: Revision = Field(
        description="State of the world that it was decided on; a stale one is refused with 409."
    )
    job: Maybe[Identifier] = Field(default=None, description="Job that it is for.")
    domain: Identifier = Field(description="Domain that carries it out.")
    accelerator: Maybe[Identifier] = Field(default=None, description="Kind of the devices.")
    devices: Maybe[Count] = Field(default=None, description="Number of devices.")
    nodes: Maybe[Annotated[list[NodeShare], Field(max_length=10000)]] = Field(
        default=None,
        description="Nodes that it touches, with the devices of each; the domain chooses where it is absent.",
    )
    reservation: Maybe[Identifier] = Field(
        default=None, description="Action by which what it gives back was reserved or fenced; stated for release."
    )
    expires_after: Maybe[Duration] = Field(
        default=None, description="Seconds that a promise holds.", json_schema_extra={"x-unit": "s"}
    )
    lease: Maybe[Duration] = Field(
        default=None,
        description=(
            "Seconds for which what is reserved may be used without an answer of the service; without end where "
            "it is absent."
        ),
        json_schema_extra={"x-unit": "s"},
    )
    cause: Maybe[Text] = Field(default=None, description="Why it was decided.")
    run: Maybe[RunOrder] = Field(default=None, description="What is to be run; stated for start.")
    attempt: Maybe[Annotated[int, WholeNumber(1, 9007199254740991)]] = Field(
        default=None,
        description=(
            "Which attempt of the job is to be stopped; stated for stop where one attempt is meant, and all where"
            " it is absent."
        ),
    )
    parameters: Maybe[Extensions] = Field(default=None, description="What the kind of action needs beside.")


class ActionResult(KuayuModel):
    """What became of one step of an action."""

    action: Identifier = Field(description="The action.")
    phase: ActionPhase = Field(description="The step.")
    outcome: ActionOutcome = Field(description="How it ended.")
    at: Instant = Field(description="When.")
    expires_at: Maybe[Instant] = Field(default=None, description="Until when a promise holds.")
    nodes: Maybe[Annotated[list[NodeShare], Field(max_length=10000)]] = Field(
        default=None, description="Nodes that are held or were used, with the devices of each."
    )
    problem: Maybe[Problem] = Field(default=None, description="Why it was refused or failed.")

    @model_validator(mode="after")
    def prepared_states_expiry(self) -> Self:
        """A promise states until when it holds."""
        if self.outcome is ActionOutcome.prepared and self.expires_at is None:
            raise ValueError("A promise states until when it holds.")
        return self

    @model_validator(mode="after")
    def refused_states_problem(self) -> Self:
        """A refusal states why."""
        if self.outcome is ActionOutcome.refused and self.problem is None:
            raise ValueError("A refusal states why.")
        return self


class Elasticity(KuayuModel):
    """How many devices a job can work with."""

    minimum: Count = Field(description="Fewer will not do.")
    maximum: Count = Field(description="More are of no use.")
    requested: Maybe[Count] = Field(
        default=None,
        description="What was asked for, to which work and duration refer; the maximum where it is absent.",
    )
    step: Maybe[Count] = Field(default=None, description="The number is the minimum plus a multiple of this.")


class LinkNeed(KuayuModel):
    """What a job needs of the links between the domains that it spans."""

    bandwidth: Maybe[Amount] = Field(
        default=None, description="At least this much.", json_schema_extra={"x-unit": "bit/s"}
    )
    round_trip_time: Maybe[Duration] = Field(
        default=None, description="At most this long.", json_schema_extra={"x-unit": "s"}
    )
    packet_loss: Maybe[Ratio] = Field(
        default=None, description="At most this share.", json_schema_extra={"x-unit": "1"}
    )


class NodeNeed(KuayuModel):
    """How the devices of a job have to lie on the nodes of each domain that it is given."""

    devices_per_node: Maybe[Annotated[int, WholeNumber(1, 9007199254740991)]] = Field(
        default=None, description="So many on each node that it is given, neither more nor fewer."
    )
    within: Maybe[NodeScope] = Field(default=None, description="How near to each other all of them have to lie.")


class Artefact(KuayuModel):
    """Data set or checkpoint and where copies of it are."""

    id: Identifier = Field(description="Its name.")
    size: Amount = Field(description="Its size.", json_schema_extra={"x-unit": "By"})
    domains: list[Identifier] = Field(description="Domains that hold a copy.")
    pinned: Maybe[Boolean] = Field(default=None, description="Whether it may not leave them.")


class CommunicationProfile(KuayuModel):
    """What a job sends between the domains that it is spread over, and writes of itself."""

    step_time: Duration = Field(
        description="Time of a step on the devices asked for, of the reference device.",
        json_schema_extra={"x-unit": "s"},
    )
    exchange: Amount = Field(
        description="What all replicas sum up when they are reconciled.", json_schema_extra={"x-unit": "By"}
    )
    boundary: Amount = Field(
        description="What crosses a cut of a pipeline at a step, both ways together.",
        json_schema_extra={"x-unit": "By"},
    )
    checkpoint_size: Amount = Field(description="Size of a checkpoint.", json_schema_extra={"x-unit": "By"})


class Estimate(KuayuModel):
    """Expected value with its uncertainty."""

    expected: Amount = Field(description="Median.")
    low: Amount = Field(description="Lower end of the interval.")
    high: Amount = Field(description="Upper end of the interval.")
    coverage: Ratio = Field(description="Share of cases that lie inside.", json_schema_extra={"x-unit": "1"})


class JobSpec(KuayuModel):
    """What a job asks for. It does not change after it was submitted."""

    id: Identifier = Field(description="Name of the job.")
    tenant: Maybe[Identifier] = Field(default=None, description="Whose it is; taken from the credentials where absent.")
    account: Maybe[Identifier] = Field(
        default=None, description="Account that what it uses counts for; the account `default` where it is absent."
    )
    kind: Maybe[JobKind] = Field(default=None, description="What it does.")
    priority: Maybe[Annotated[int, WholeNumber(-1000, 1000)]] = Field(default=None, description="Higher goes first.")
    home_domain: Maybe[Identifier] = Field(default=None, description="Domain that it was submitted in.")
    submitted_at: Instant = Field(description="When it was submitted.")
    deadline: Maybe[Instant] = Field(default=None, description="When it should have ended.")
    devices: Elasticity = Field(description="Devices that were asked for.")
    device_kinds: Maybe[list[AcceleratorKind]] = Field(
        default=None, description="Kinds that will do; any where absent."
    )
    memory_per_device: Maybe[Amount] = Field(
        default=None, description="Memory that each device must have.", json_schema_extra={"x-unit": "By"}
    )
    task_profile: Maybe[Identifier] = Field(
        default=None, description="Task profile by which devices are compared for it."
    )
    work: Maybe[Estimate] = Field(default=None, description="Work to be done.", json_schema_extra={"x-unit": "{FLOP}"})
    duration: Maybe[Estimate] = Field(
        default=None,
        description="Time that it takes on what was asked for, of the reference device.",
        json_schema_extra={"x-unit": "s"},
    )
    serial_share: Maybe[Ratio] = Field(
        default=None,
        description="Share of its work that more devices do not shorten; nought where it is absent.",
        json_schema_extra={"x-unit": "1"},
    )
    communication: Maybe[CommunicationProfile] = Field(
        default=None, description="What it sends between domains; one without is not spread."
    )
    split_modes: Annotated[list[SplitMode], Field(min_length=1, max_length=8)] = Field(
        description="How it may be spread over domains; none is inside one."
    )
    sync_period: Maybe[Annotated[int, WholeNumber(1, 9007199254740991)]] = Field(
        default=None,
        description=(
            "Steps between reconciliations where it is spread periodically; whoever places it chooses where it is"
            " absent."
        ),
    )
    links: Maybe[LinkNeed] = Field(default=None, description="What it needs of the links.")
    nodes: Maybe[NodeNeed] = Field(
        default=None, description="What it needs of nodes; where it is absent, it is not cut where one has room for it."
    )
    data: Maybe[list[Artefact]] = Field(default=None, description="Data that it reads.")
    checkpoint: Maybe[Artefact] = Field(default=None, description="Checkpoint that it starts from.")
    forecast: Maybe[Uri] = Field(default=None, description="Forecast of its demand.")
    extensions: Maybe[Extensions] = Field(default=None, description="What the standard does not foresee.")


class JobStatus(KuayuModel):
    """How a job stands."""

    job: Identifier = Field(description="The job.")
    phase: JobPhase = Field(description="Where it stands.")
    at: Instant = Field(description="When this was so.")
    domains: list[Identifier] = Field(description="Domains where it runs.")
    devices_held: Count = Field(description="Devices that it holds.")
    devices_used: Maybe[Amount] = Field(default=None, description="Devices that it keeps busy.")
    progress: Maybe[Ratio] = Field(
        default=None, description="Share of the work that is done.", json_schema_extra={"x-unit": "1"}
    )
    finish: Maybe[Instant] = Field(default=None, description="When it is expected to end.")
    reason: Maybe[Text] = Field(default=None, description="Why it stands so.")


class LatentAttention(KuayuModel):
    """Attention with compressed queries, keys and values."""

    query_rank: Maybe[Annotated[int, WholeNumber(1, 9007199254740991)]] = Field(
        default=None, description="Width of compressed queries; absent where queries are not compressed."
    )
    value_rank: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(
        description="Width of compressed keys and values."
    )
    rotary_width: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(
        description="Width of the part of a key that carries the position, shared by all heads."
    )


class Adapter(KuayuModel):
    """Low-rank matrices beside frozen weights (LoRA); they alone are trained."""

    rank: Annotated[int, WholeNumber(1, 10000000)] = Field(description="Their rank.")
    attention: Maybe[Boolean] = Field(
        default=None, description="Whether the products of attention have them; they do where this is absent."
    )
    feed_forward: Maybe[Boolean] = Field(
        default=None,
        description=(
            "Whether the products of the feed-forward part have them, each expert its own; they do where this is "
            "absent."
        ),
    )
    frozen_size: Maybe[Annotated[Real, Field(ge=1e-30, le=8)]] = Field(
        default=None,
        description=(
            "Bytes of a frozen weight as it is kept, a half where it is quantised to four bits; two where it is absent."
        ),
        json_schema_extra={"x-unit": "By"},
    )


class ModelStructure(KuayuModel):
    """Transformer, dense or with a mixture of experts."""

    layers: Annotated[int, WholeNumber(1, 100000)] = Field(description="Transformer layers.")
    hidden: Annotated[int, WholeNumber(1, 10000000)] = Field(description="Width.")
    heads: Annotated[int, WholeNumber(1, 1000000)] = Field(description="Heads of attention.")
    sequence: Annotated[int, WholeNumber(1, 1000000000)] = Field(description="Tokens of a sequence.")
    vocabulary: Annotated[int, WholeNumber(1, 1000000000)] = Field(description="Tokens of the vocabulary.")
    key_value_heads: Maybe[Annotated[int, WholeNumber(1, 1000000)]] = Field(
        default=None, description="Heads of keys and values; as many as heads where it is absent."
    )
    head_width: Maybe[Annotated[int, WholeNumber(1, 10000000)]] = Field(
        default=None, description="Width of a head; the width over the heads where it is absent."
    )
    feed_forward: Maybe[Annotated[int, WholeNumber(1, 10000000)]] = Field(
        default=None, description="Width of the feed-forward part; four times the width where it is absent."
    )
    gated: Maybe[Boolean] = Field(default=None, description="Whether the feed-forward part has a gate.")
    tied: Maybe[Boolean] = Field(
        default=None,
        description="Whether the output layer shares the weights of the embedding; it does where this is absent.",
    )
    dropout: Maybe[Boolean] = Field(default=None, description="Whether there is dropout.")
    experts: Maybe[Annotated[int, WholeNumber(1, 1000000)]] = Field(
        default=None, description="Experts of a layer; one where it is absent."
    )
    experts_per_token: Maybe[Annotated[int, WholeNumber(1, 1000000)]] = Field(
        default=None, description="Experts that a token is sent to; one where it is absent."
    )
    nodes_per_token: Maybe[Annotated[int, WholeNumber(1, 1000000)]] = Field(
        default=None, description="Nodes that these lie on at most; any where it is absent."
    )
    expert_feed_forward: Maybe[Annotated[int, WholeNumber(1, 10000000)]] = Field(
        default=None, description="Width of an expert; that of the feed-forward part where it is absent."
    )
    shared_feed_forward: Maybe[Annotated[int, WholeNumber(0, 10000000)]] = Field(
        default=None, description="Width of all experts together that every token goes to."
    )
    expert_frequency: Maybe[Annotated[int, WholeNumber(1, 100000)]] = Field(
        default=None, description="Every how manieth layer has experts; each where it is absent."
    )
    dense_layers: Maybe[Annotated[int, WholeNumber(0, 100000)]] = Field(
        default=None, description="First layers that have no experts in any case."
    )
    window: Maybe[Annotated[int, WholeNumber(0, 1000000000)]] = Field(
        default=None,
        description="Tokens that a head looks back over in windowed layers; all where it is nought or absent.",
    )
    window_frequency: Maybe[Annotated[int, WholeNumber(1, 100000)]] = Field(
        default=None,
        description="Every how manieth layer is windowed, where there is a window; every second where it is absent.",
    )
    windowed_layers: Maybe[Annotated[int, WholeNumber(0, 100000)]] = Field(
        default=None,
        description=(
            "How many layers are windowed, where there is a window and window_frequency does not say it: five of "
            "six, for instance."
        ),
    )
    latent: Maybe[LatentAttention] = Field(default=None, description="Compressed attention.")
    adapter: Maybe[Adapter] = Field(
        default=None, description="What is trained in place of the weights, which are frozen then."
    )
    further_tokens: Maybe[Annotated[int, WholeNumber(0, 1000)]] = Field(
        default=None, description="Further tokens predicted, each by a layer of its own."
    )


class ParallelStrategy(KuayuModel):
    """How training is spread over accelerators; their number is the product of data, tensor, pipeline and context."""

    data: Annotated[int, WholeNumber(1, 10000000)] = Field(description="Replicas.")
    tensor: Annotated[int, WholeNumber(1, 100000)] = Field(description="Accelerators that share each layer.")
    pipeline: Annotated[int, WholeNumber(1, 100000)] = Field(description="Stages.")
    virtual_stages: Maybe[Annotated[int, WholeNumber(1, 100000)]] = Field(
        default=None, description="Pieces of each stage; one where it is absent."
    )
    first_stage_layers: Maybe[Annotated[int, WholeNumber(0, 100000)]] = Field(
        default=None,
        description="Layers of the first stage, where it has fewer or more than others; the others share the rest evenly.",
    )
    last_stage_layers: Maybe[Annotated[int, WholeNumber(0, 100000)]] = Field(
        default=None, description="Layers of the last stage, likewise; those of further tokens not counted."
    )
    context: Maybe[Annotated[int, WholeNumber(1, 100000)]] = Field(
        default=None, description="Parts of the sequence; one where it is absent."
    )
    expert: Maybe[Annotated[int, WholeNumber(1, 100000)]] = Field(
        default=None, description="Accelerators over which experts are spread; one where it is absent."
    )
    sequence_parallel: Maybe[Boolean] = Field(
        default=None, description="Whether what tensor parallelism repeats is split along the sequence."
    )
    sharding: Maybe[Annotated[int, WholeNumber(0, 3)]] = Field(
        default=None,
        description=(
            "What replicas share out: 1 optimiser, 2 gradients too, 3 weights too (ZeRO); nothing where it is "
            "nought or absent."
        ),
    )
    recomputation: Maybe[Recomputation] = Field(default=None, description="None where it is absent.")
    micro_batch: Annotated[int, WholeNumber(1, 10000000)] = Field(description="Sequences of a micro-batch.")
    global_batch: Annotated[int, WholeNumber(1, 1000000000)] = Field(description="Sequences of a step.")
    precision: Maybe[NumericPrecision] = Field(
        default=None, description="Of the matrix work of layers; bf16 where it is absent."
    )
    fused_attention: Maybe[Boolean] = Field(
        default=None, description="Whether scores of attention stay in fast memory; they do where this is absent."
    )
    attention_speed: Maybe[PositiveAmount] = Field(
        default=None,
        description="Speed of fused attention in that of FlashAttention-2; one where it is absent.",
        json_schema_extra={"x-unit": "1"},
    )
    overlap_data: Maybe[Boolean] = Field(
        default=None,
        description="Whether exchanges of data parallelism run beside the computation; they do where this is absent.",
    )
    overlap_tensor: Maybe[Boolean] = Field(
        default=None, description="Whether those of tensor parallelism do; they do not where this is absent."
    )
    overlap_expert: Maybe[Boolean] = Field(
        default=None, description="Whether those of expert parallelism do; they do not where this is absent."
    )
    dispatch_precision: Maybe[NumericPrecision] = Field(
        default=None,
        description=(
            "Of what is sent to experts, and of its gradients; bf16 where it is absent. What comes back is in 16 bits."
        ),
    )
    pipeline_schedule: Maybe[PipelineSchedule] = Field(
        default=None,
        description="In which order stages work through micro-batches; one forward, one backward where it is absent.",
    )
    scattered: Maybe[Boolean] = Field(
        default=None,
        description=(
            "Whether a message between stages is divided over the accelerators that share a layer; it is where "
            "this is absent."
        ),
    )
    gradient_size: Maybe[Annotated[Real, Field(ge=1e-30, le=8)]] = Field(
        default=None,
        description="Bytes of a gradient as it is added up; four where it is absent.",
        json_schema_extra={"x-unit": "By"},
    )
    exchanged_size: Maybe[Annotated[Real, Field(ge=1e-30, le=8)]] = Field(
        default=None,
        description="Bytes of a gradient as it is sent; four where it is absent.",
        json_schema_extra={"x-unit": "By"},
    )
    outermost: Maybe[ParallelDimension] = Field(
        default=None,
        description="Dimension whose neighbours lie farthest apart, pipeline or data; pipeline where it is absent.",
    )


class TrainingHardware(KuayuModel):
    """Accelerators of one kind with the links between them."""

    id: Identifier = Field(description="Its name in this request.")
    peak_matrix_throughput: PrecisionThroughput = Field(description="CMP-1: dense matrix throughput by the data sheet.")
    sustained_matrix_throughput: Maybe[PrecisionThroughput] = Field(
        default=None, description="CMP-2: the most that a matrix multiplication reached."
    )
    accelerator_memory_capacity: PositiveAmount = Field(
        description="STO-1: memory of one.", json_schema_extra={"x-unit": "By"}
    )
    accelerator_memory_bandwidth: PositiveAmount = Field(
        description="STO-2: its bandwidth.", json_schema_extra={"x-unit": "By/s"}
    )
    multiprocessors: Maybe[Annotated[int, WholeNumber(1, 1000000)]] = Field(
        default=None, description="Units that each multiply a tile of their own."
    )
    devices_per_node: Annotated[int, WholeNumber(1, 1000000)] = Field(
        description="Accelerators that the fastest links join."
    )
    node_bandwidth: PositiveAmount = Field(
        description="What one sends to others of its node.", json_schema_extra={"x-unit": "By/s"}
    )
    domain_bandwidth: PositiveAmount = Field(
        description="NET-1: what one sends to other nodes of its domain.", json_schema_extra={"x-unit": "By/s"}
    )
    devices_per_domain: Maybe[Annotated[int, WholeNumber(1, 10000000)]] = Field(
        default=None, description="Accelerators of a domain; all are in one where it is absent."
    )
    federation_bandwidth: Maybe[PositiveAmount] = Field(
        default=None, description="What a domain sends to others.", json_schema_extra={"x-unit": "By/s"}
    )


class MeasuredRun(KuayuModel):
    """Training that somebody has run and measured. Time, memory or both are stated."""

    source: Identifier = Field(description="Who measured it; runs of one source share habits and faults.")
    model: ModelStructure = Field(description="What was trained.")
    strategy: ParallelStrategy = Field(description="How it was spread.")
    hardware: Identifier = Field(description="On which hardware of the request.")
    step_time: Maybe[PositiveAmount] = Field(
        default=None, description="Time of a step.", json_schema_extra={"x-unit": "s"}
    )
    memory: Maybe[PositiveAmount] = Field(
        default=None, description="Memory of the fullest accelerator.", json_schema_extra={"x-unit": "By"}
    )


class PlannedPhase(KuayuModel):
    """Phase of a training job, as it is planned."""

    phase: TrainingPhase = Field(description="Which.")
    steps: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="Steps that it takes.")
    global_batch: Maybe[Annotated[int, WholeNumber(1, 1000000000)]] = Field(
        default=None, description="Sequences of a step; those of the strategy where it is absent."
    )
    sequence: Maybe[Annotated[int, WholeNumber(1, 1000000000)]] = Field(
        default=None, description="Tokens of a sequence; those of the model where it is absent."
    )


class TrainingCase(KuayuModel):
    """Training whose demand is asked for."""

    id: Identifier = Field(description="Its name in this request.")
    model: ModelStructure = Field(description="What is trained.")
    strategy: ParallelStrategy = Field(description="How it is spread.")
    hardware: Identifier = Field(description="On which hardware of the request.")
    phases: Maybe[Annotated[list[PlannedPhase], Field(max_length=100)]] = Field(
        default=None, description="Its phases in their order."
    )


class TrainingDemandRequest(KuayuModel):
    """Asks what trainings need. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    hardware: Annotated[list[TrainingHardware], Field(min_length=1, max_length=1000)] = Field(
        description="In any order, without repetition."
    )
    runs: Maybe[Annotated[list[MeasuredRun], Field(max_length=10000)]] = Field(
        default=None, description="What was measured."
    )
    cases: Annotated[list[TrainingCase], Field(min_length=1, max_length=10000)] = Field(
        description="What is asked for, without repetition."
    )
    coverage: Maybe[Annotated[Real, Field(ge=0.5, le=0.99)]] = Field(
        default=None,
        description="Share of cases that intervals are to hold; 0.9 where it is absent.",
        json_schema_extra={"x-unit": "1"},
    )
    profiles: Maybe[Boolean] = Field(default=None, description="Whether the inside of a step is to be told.")


class PartOfMemory(KuayuModel):
    """Memory of the fullest accelerator that serves one purpose."""

    part: MemoryPart = Field(description="What for.")
    size: Amount = Field(description="How much.", json_schema_extra={"x-unit": "By"})


class StepTraffic(KuayuModel):
    """What an accelerator sends in a step."""

    dimension: ParallelDimension = Field(description="For which parallelism.")
    link: LinkClass = Field(description="Over which links.")
    size: Amount = Field(
        description="How much, of the accelerator that sends most.", json_schema_extra={"x-unit": "By"}
    )


class LinkFlow(KuayuModel):
    """Flow of an accelerator over links of a class."""

    link: LinkClass = Field(description="Which.")
    flow: Amount = Field(description="Bytes a second.", json_schema_extra={"x-unit": "By/s"})


class StepSegment(KuayuModel):
    """Part of a step."""

    activity: StepActivity = Field(description="What happens.")
    begin: Duration = Field(description="Seconds from the begin of the step.", json_schema_extra={"x-unit": "s"})
    duration: Duration = Field(description="How long.", json_schema_extra={"x-unit": "s"})
    busy: Ratio = Field(description="Share of it in which an accelerator computes.", json_schema_extra={"x-unit": "1"})
    traffic: list[LinkFlow] = Field(
        description="What an accelerator sends meanwhile; links that carry nothing are left out."
    )


class PhaseDemand(KuayuModel):
    """What a training needs in one of its phases."""

    phase: TrainingPhase = Field(description="Which.")
    devices: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(
        description=(
            "Accelerators that it can put to use: all of the strategy, or as many whole replicas as its batch has"
            " micro-batches for."
        )
    )
    step_time: PositiveAmount = Field(description="Time of a step on these.", json_schema_extra={"x-unit": "s"})
    duration: PositiveAmount = Field(description="Of the phase.", json_schema_extra={"x-unit": "s"})
    work: PositiveAmount = Field(
        description="Of the phase, as the model needs it.", json_schema_extra={"x-unit": "{FLOP}"}
    )
    memory: PositiveAmount = Field(description="Of the fullest accelerator.", json_schema_extra={"x-unit": "By"})
    traffic: Amount = Field(
        description="What the accelerator that sends most sends in a step.", json_schema_extra={"x-unit": "By"}
    )


class TrainingDemand(KuayuModel):
    """What a training needs."""

    case: Identifier = Field(description="Of which case.")
    parameters: PositiveAmount = Field(description="Parameters of the model.", json_schema_extra={"x-unit": "1"})
    active_parameters: PositiveAmount = Field(
        description="Those that a token meets.", json_schema_extra={"x-unit": "1"}
    )
    trained_parameters: Maybe[PositiveAmount] = Field(
        default=None,
        description="Those that are trained, where an adapter is in place of the others.",
        json_schema_extra={"x-unit": "1"},
    )
    devices: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="Accelerators of the strategy.")
    work: PositiveAmount = Field(
        description="Of a step, as the model needs it; nothing computed twice.", json_schema_extra={"x-unit": "{FLOP}"}
    )
    executed_work: PositiveAmount = Field(
        description="Of a step, with what is computed anew.", json_schema_extra={"x-unit": "{FLOP}"}
    )
    step_time: Estimate = Field(description="Time of a step.", json_schema_extra={"x-unit": "s"})
    utilisation: Amount = Field(
        description="Work over what the accelerators could do in the expected time at their 16-bit peak.",
        json_schema_extra={"x-unit": "1"},
    )
    memory: PositiveAmount = Field(description="Of the fullest accelerator.", json_schema_extra={"x-unit": "By"})
    memory_parts: list[PartOfMemory] = Field(description="The same by purpose.")
    fits: Boolean = Field(description="Whether it can run there.")
    obstacles: list[Text] = Field(description="Why it cannot, in words.")
    traffic: list[StepTraffic] = Field(description="By parallelism and links; what is nought is left out.")
    segments: Maybe[list[StepSegment]] = Field(
        default=None, description="A step from begin to end, where that was asked for."
    )
    phases: Maybe[list[PhaseDemand]] = Field(
        default=None, description="By phase, in the order of the case; stated where the case has phases."
    )


class DemandMethod(KuayuModel):
    """How an implementation comes to a demand."""

    name: Text = Field(description="Its name.")
    version: Text = Field(description="Its version; the same version gives the same answers.")
    runs: Maybe[Count] = Field(default=None, description="Measured runs of the request that it rests on.")


class TrainingDemandReport(KuayuModel):
    """What trainings need."""

    revision: Revision = Field(description="The request's.")
    method: DemandMethod = Field(description="How it was computed.")
    demands: list[TrainingDemand] = Field(description="In the order of the cases.")


class LayoutRequest(KuayuModel):
    """Asks for the quickest strategies of a model on so many accelerators. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    hardware: Annotated[list[TrainingHardware], Field(min_length=1, max_length=1000)] = Field(
        description="In any order, without repetition."
    )
    runs: Maybe[Annotated[list[MeasuredRun], Field(max_length=10000)]] = Field(
        default=None, description="What was measured."
    )
    model: ModelStructure = Field(description="What is to be trained.")
    kind: Identifier = Field(description="On which hardware of the request.")
    devices: Annotated[int, WholeNumber(1, 1000000)] = Field(description="On how many accelerators.")
    global_batch: Annotated[int, WholeNumber(1, 1000000000)] = Field(description="Sequences of a step.")
    precision: Maybe[NumericPrecision] = Field(
        default=None, description="Of the matrix work of layers; bf16 where it is absent."
    )
    layouts: Maybe[Annotated[int, WholeNumber(1, 1000)]] = Field(
        default=None, description="How many to tell at most; ten where it is absent."
    )


class RankedLayout(KuayuModel):
    """Strategy with what it leads to."""

    strategy: ParallelStrategy = Field(description="Which.")
    step_time: Estimate = Field(description="Time of a step.", json_schema_extra={"x-unit": "s"})
    utilisation: Amount = Field(
        description="Work over what the accelerators could do in that time at their 16-bit peak.",
        json_schema_extra={"x-unit": "1"},
    )
    memory: PositiveAmount = Field(description="Of the fullest accelerator.", json_schema_extra={"x-unit": "By"})


class LayoutReport(KuayuModel):
    """The quickest strategies that were found."""

    revision: Revision = Field(description="The request's.")
    method: DemandMethod = Field(description="How they were found.")
    considered: Count = Field(description="Strategies that were looked at.")
    feasible: Count = Field(description="Those of them that can run.")
    layouts: list[RankedLayout] = Field(description="The quickest first; only such as can run.")


class TaskResources(KuayuModel):
    """What a task asks for or uses."""

    devices: Amount = Field(description="Accelerators; parts of one too.", json_schema_extra={"x-unit": "1"})
    cores: Amount = Field(description="Processor cores.", json_schema_extra={"x-unit": "1"})
    memory: Amount = Field(description="Memory of the host.", json_schema_extra={"x-unit": "By"})


class TaskRecord(KuayuModel):
    """Task that ran."""

    kind: Identifier = Field(description="Kind of task.")
    requested: TaskResources = Field(description="What it was given.")
    used: TaskResources = Field(description="What it used on average.")
    peak: Maybe[TaskResources] = Field(default=None, description="What it used at most.")
    network_flow: Maybe[Amount] = Field(
        default=None, description="What it sent and received.", json_schema_extra={"x-unit": "bit/s"}
    )
    accelerator_memory: Maybe[Amount] = Field(
        default=None, description="Accelerator memory that it used.", json_schema_extra={"x-unit": "By"}
    )
    duration: PositiveAmount = Field(description="How long it ran.", json_schema_extra={"x-unit": "s"})


class TaskRequest(KuayuModel):
    """Task that is to run."""

    id: Identifier = Field(description="Its name in this request.")
    kind: Identifier = Field(description="Kind of task.")
    requested: TaskResources = Field(description="What it asks for.")


class SizingRequest(KuayuModel):
    """Asks what tasks need, as those show that ran before. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    history: Annotated[list[TaskRecord], Field(max_length=100000)] = Field(description="What ran before.")
    tasks: Annotated[list[TaskRequest], Field(min_length=1, max_length=10000)] = Field(
        description="What is to run, without repetition."
    )
    slow_down: Maybe[Ratio] = Field(
        default=None,
        description="By how much a task may run longer than on what it asks for; 0.05 where it is absent.",
        json_schema_extra={"x-unit": "1"},
    )


class SizedTask(KuayuModel):
    """What a task should be given."""

    task: Identifier = Field(description="Which.")
    recommended: TaskResources = Field(description="No more of anything than it asks for.")
    duration: Maybe[Estimate] = Field(
        default=None,
        description="How long it is expected to run on that; absent where nothing like it ran before.",
        json_schema_extra={"x-unit": "s"},
    )
    slow_down: Real = Field(
        description="By how much longer than on what it asks for; negative where it is quicker.",
        json_schema_extra={"x-unit": "1"},
    )
    reason: Text = Field(description="In words.")


class ResourceImportance(KuayuModel):
    """How much the time of a kind of task depends on what it is given and uses."""

    kind: Identifier = Field(description="Kind of task.")
    devices: Real = Field(
        description="By how much the error grows when accelerators are shuffled, in parts of the error of the mean.",
        json_schema_extra={"x-unit": "1"},
    )
    cores: Real = Field(description="The same for processor cores.", json_schema_extra={"x-unit": "1"})
    memory: Real = Field(description="The same for memory of the host.", json_schema_extra={"x-unit": "1"})
    error: Amount = Field(
        description="Weighted absolute percentage error on records that were held back.",
        json_schema_extra={"x-unit": "1"},
    )
    records: Count = Field(description="Records of that kind.")


class SizingReport(KuayuModel):
    """What tasks should be given."""

    revision: Revision = Field(description="The request's.")
    method: DemandMethod = Field(description="How it was found.")
    tasks: list[SizedTask] = Field(description="In the order of the request.")
    importance: list[ResourceImportance] = Field(description="By kind of task, in order of name.")


class DemandSeries(KuayuModel):
    """Quantity of a domain, a tenant or a job, or of all, at equal steps."""

    id: Identifier = Field(description="Its name in this request.")
    quantity: DemandQuantity = Field(description="What it counts.")
    domain: Maybe[Identifier] = Field(default=None, description="Of which domain; of all where it is absent.")
    tenant: Maybe[Identifier] = Field(default=None, description="Of which tenant; of all where it is absent.")
    job: Maybe[Identifier] = Field(default=None, description="Of which job; of all where it is absent.")
    begin: Instant = Field(description="Instant of the first value.")
    step: Annotated[Real, Field(ge=1)] = Field(
        description="From one value to the next.", json_schema_extra={"x-unit": "s"}
    )
    values: Annotated[list[Amount | None], Field(min_length=2, max_length=100000)] = Field(
        description=(
            "In order of time, the last no later than now; null where a value is missing, which is not the same "
            "as zero."
        )
    )


class DemandPeriod(KuayuModel):
    """Part of the course of a job in which its demand is the same."""

    phase: Maybe[TrainingPhase] = Field(default=None, description="Phase of its training.")
    duration: Estimate = Field(description="How long, from its begin.", json_schema_extra={"x-unit": "s"})
    devices: Count = Field(description="Devices that it needs.")


class ForeseenJob(KuayuModel):
    """Job that runs, waits, was announced, or ended of late, with what its structure says of its demand."""

    id: Identifier = Field(description="Its name.")
    domain: Maybe[Identifier] = Field(default=None, description="Where it runs or was submitted.")
    tenant: Maybe[Identifier] = Field(default=None, description="Whose it is.")
    submitted_at: Instant = Field(description="When it was submitted, or is to be.")
    started_at: Maybe[Instant] = Field(default=None, description="When it began to run; absent while it waits.")
    ended_at: Maybe[Instant] = Field(
        default=None,
        description="When it ended; absent while it has not. Its periods are those that were foreseen while it was there.",
    )
    checkpoint_interval: Maybe[Duration] = Field(
        default=None, description="Time between its checkpoints.", json_schema_extra={"x-unit": "s"}
    )
    periods: Annotated[list[DemandPeriod], Field(min_length=1, max_length=1000)] = Field(
        description="Its course from the begin, as its structure and strategy lead to (see TrainingDemand)."
    )


class KnownEvent(KuayuModel):
    """What is known beforehand."""

    kind: EventKind = Field(description="What it is.")
    domain: Maybe[Identifier] = Field(default=None, description="Where; everywhere where it is absent.")
    tenant: Maybe[Identifier] = Field(default=None, description="Of which tenant; of all where it is absent.")
    begins_at: Instant = Field(description="From when.")
    ends_at: Instant = Field(description="Until when.")
    devices: Maybe[Amount] = Field(
        default=None, description="Devices that it adds, or takes out.", json_schema_extra={"x-unit": "1"}
    )


class ForecastRequest(KuayuModel):
    """Asks for forecasts of series. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    now: Instant = Field(description="The present instant.")
    series: Annotated[list[DemandSeries], Field(min_length=1, max_length=10000)] = Field(
        description="What was observed, without repetition. Each is forecast."
    )
    jobs: Maybe[Annotated[list[ForeseenJob], Field(max_length=100000)]] = Field(
        default=None, description="Jobs that are there or are to come, and those that ended of late."
    )
    events: Maybe[Annotated[list[KnownEvent], Field(max_length=10000)]] = Field(
        default=None, description="What is known beforehand."
    )
    horizons: Annotated[list[Duration], Field(min_length=1, max_length=1000)] = Field(
        description="Seconds from now, rising, each more than nought.", json_schema_extra={"x-unit": "s"}
    )
    levels: Annotated[list[Ratio], Field(min_length=1, max_length=100)] = Field(
        description="Levels of the quantiles, rising, between nought and one.", json_schema_extra={"x-unit": "1"}
    )


class Quantile(KuayuModel):
    """Value that is not exceeded in a share of cases."""

    level: Ratio = Field(description="Which share.", json_schema_extra={"x-unit": "1"})
    value: Amount = Field(description="Which value.")


class DemandForecastPoint(KuayuModel):
    """Forecast of a series for one horizon."""

    horizon: Duration = Field(description="Seconds from now.", json_schema_extra={"x-unit": "s"})
    expected: Amount = Field(description="Value that least absolute error is expected of.")
    quantiles: list[Quantile] = Field(description="By level, rising.")
    structure_share: Ratio = Field(
        description="How much of it comes from the structure of jobs, and not from history.",
        json_schema_extra={"x-unit": "1"},
    )


class SeriesForecast(KuayuModel):
    """Forecast of a series."""

    series: Identifier = Field(description="Which.")
    points: list[DemandForecastPoint] = Field(description="By horizon.")


class ForecastMethod(KuayuModel):
    """How an implementation forecasts."""

    name: Text = Field(description="Its name.")
    version: Text = Field(description="Its version; the same version gives the same answers.")


class ForecastReport(KuayuModel):
    """Forecasts of series."""

    revision: Revision = Field(description="The request's.")
    method: ForecastMethod = Field(description="How they were made.")
    forecasts: list[SeriesForecast] = Field(description="In the order of the series.")


class CurvePoint(KuayuModel):
    """What is known of a training at one of its steps."""

    step: Count = Field(description="Which step.")
    loss: Real = Field(description="Loss of training.", json_schema_extra={"x-unit": "1"})
    learning_rate: Amount = Field(description="Learning rate.", json_schema_extra={"x-unit": "1"})


class TrainingCurve(KuayuModel):
    """Course of a training until now."""

    id: Identifier = Field(description="Its name in this request.")
    points: Annotated[list[CurvePoint], Field(min_length=1, max_length=100000)] = Field(description="By rising step.")


class PhaseRequest(KuayuModel):
    """Asks in which phase trainings are. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    curves: Annotated[list[TrainingCurve], Field(min_length=1, max_length=10000)] = Field(
        description="Without repetition; a training may be there several times under several names."
    )


class RecognisedPhase(KuayuModel):
    """Phase of a training at the last step that is known."""

    curve: Identifier = Field(description="Of which curve.")
    phase: TrainingPhase = Field(description="Which.")
    since: Count = Field(description="Step at which it began.")
    confidence: Ratio = Field(description="Share of such answers that are right.", json_schema_extra={"x-unit": "1"})


class PhaseReport(KuayuModel):
    """In which phases trainings are."""

    revision: Revision = Field(description="The request's.")
    method: ForecastMethod = Field(description="How it was recognised.")
    phases: list[RecognisedPhase] = Field(description="In the order of the curves.")


class DevicePrice(KuayuModel):
    """Price of a device for a part of the day."""

    begin: Annotated[Real, Field(ge=0, le=86400)] = Field(
        description="Seconds from midnight, UTC; it holds until the next one.", json_schema_extra={"x-unit": "s"}
    )
    price: Amount = Field(description="For a device and an hour.", json_schema_extra={"x-unit": "{money}/h"})


class WaveformRequest(KuayuModel):
    """Asks for the waveform of demand over a coming period. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    now: Instant = Field(description="The present instant.")
    period: Annotated[Real, Field(ge=60)] = Field(description="How far it reaches.", json_schema_extra={"x-unit": "s"})
    step: Annotated[Real, Field(ge=1)] = Field(
        description="From one value to the next.", json_schema_extra={"x-unit": "s"}
    )
    jobs: Annotated[list[ForeseenJob], Field(max_length=100000)] = Field(
        description="Jobs that are there or are to come, and those that ended of late."
    )
    coverage: Maybe[Annotated[Real, Field(ge=0.5, le=0.99)]] = Field(
        default=None,
        description="Share of cases that lie between low and high; 0.9 where it is absent.",
        json_schema_extra={"x-unit": "1"},
    )
    prices: Maybe[Annotated[list[DevicePrice], Field(max_length=96)]] = Field(
        default=None, description="By rising begin, the first at midnight."
    )


class WaveformPoint(KuayuModel):
    """Demand at an instant."""

    at: Duration = Field(description="Seconds from now.", json_schema_extra={"x-unit": "s"})
    expected: Amount = Field(description="Devices, on average over all cases.", json_schema_extra={"x-unit": "1"})
    low: Amount = Field(description="Lower end of the interval.", json_schema_extra={"x-unit": "1"})
    high: Amount = Field(description="Upper end of the interval.", json_schema_extra={"x-unit": "1"})


class Waveform(KuayuModel):
    """Demand over a coming period."""

    revision: Revision = Field(description="The request's.")
    method: ForecastMethod = Field(description="How it was made.")
    points: list[WaveformPoint] = Field(description="From now, one each step, until the period is over.")
    device_seconds: Estimate = Field(description="What all points sum up to.", json_schema_extra={"x-unit": "s"})
    budget: Maybe[Estimate] = Field(
        default=None, description="What that costs, where prices are stated.", json_schema_extra={"x-unit": "{money}"}
    )


class MovableLoad(KuayuModel):
    """Work that may be done at another time."""

    id: Identifier = Field(description="Its name in this request.")
    devices: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(
        description="Devices that it holds while it runs."
    )
    slots: Annotated[int, WholeNumber(1, 100000)] = Field(description="For how many steps of the base it runs.")
    earliest: Annotated[int, WholeNumber(0, 100000)] = Field(
        description="Step of the base, from nought, in which it may begin."
    )
    latest: Annotated[int, WholeNumber(0, 100000)] = Field(description="Last step in which it may run.")
    planned: Annotated[int, WholeNumber(0, 100000)] = Field(description="Step in which it would begin otherwise.")
    interruptible: Maybe[Boolean] = Field(
        default=None, description="Whether it may pause; it may not where this is absent."
    )


class PeakRequest(KuayuModel):
    """Asks for a plan that lowers the peaks of demand. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    step: Annotated[Real, Field(ge=1)] = Field(
        description="From one value of the base to the next.", json_schema_extra={"x-unit": "s"}
    )
    base: Annotated[list[Amount], Field(min_length=1, max_length=10000)] = Field(
        description="Devices that are needed in any case.", json_schema_extra={"x-unit": "1"}
    )
    loads: Annotated[list[MovableLoad], Field(max_length=10000)] = Field(
        description="What may be moved, without repetition."
    )


class MovedLoad(KuayuModel):
    """When work is to be done."""

    load: Identifier = Field(description="Which.")
    slots: Annotated[list[Count], Field(min_length=1)] = Field(description="Steps in which it runs, rising.")


class PeakPlan(KuayuModel):
    """When movable work is to be done."""

    revision: Revision = Field(description="The request's.")
    method: ForecastMethod = Field(description="How it was made.")
    loads: list[MovedLoad] = Field(description="In the order of the request.")
    peak_before: Amount = Field(
        description="Most devices at once if nothing is moved.", json_schema_extra={"x-unit": "1"}
    )
    peak_after: Amount = Field(description="Most devices at once by the plan.", json_schema_extra={"x-unit": "1"})


class TenantQuality(KuayuModel):
    """What a tenant has been promised."""

    tenant: Identifier = Field(description="Which.")
    violations: Ratio = Field(
        description="Share of time in which less may be reserved than it needs.", json_schema_extra={"x-unit": "1"}
    )


class ReservationRequest(KuayuModel):
    """Asks what to reserve for tenants. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    now: Instant = Field(description="The present instant.")
    series: Annotated[list[DemandSeries], Field(min_length=1, max_length=10000)] = Field(
        description="Of tenants in domains; others are left aside."
    )
    jobs: Maybe[Annotated[list[ForeseenJob], Field(max_length=100000)]] = Field(
        default=None, description="Jobs that are there or are to come, and those that ended of late."
    )
    events: Maybe[Annotated[list[KnownEvent], Field(max_length=10000)]] = Field(
        default=None, description="What is known beforehand."
    )
    horizon: Annotated[Real, Field(ge=60)] = Field(
        description="How long the reservation holds.", json_schema_extra={"x-unit": "s"}
    )
    qualities: Annotated[list[TenantQuality], Field(min_length=1, max_length=10000)] = Field(
        description="What tenants have been promised, without repetition."
    )


class TenantReservation(KuayuModel):
    """What is to be reserved for a tenant."""

    series: Identifier = Field(description="From which series.")
    tenant: Identifier = Field(description="For which tenant.")
    domain: Maybe[Identifier] = Field(default=None, description="In which domain.")
    expected: Amount = Field(description="Devices that it is expected to need.", json_schema_extra={"x-unit": "1"})
    devices: Count = Field(description="Devices to reserve.")


class ReservationReport(KuayuModel):
    """What to reserve for tenants."""

    revision: Revision = Field(description="The request's.")
    method: ForecastMethod = Field(description="How it was found.")
    reservations: list[TenantReservation] = Field(description="In the order of the series.")


class TransferMethod(KuayuModel):
    """How an answer was found."""

    name: Text = Field(description="Its name.")
    version: Text = Field(description="Its version.")


class MeasuredLink(KuayuModel):
    """Way from one domain to another, with what it has carried."""

    source: Identifier = Field(description="Domain that sends.")
    target: Identifier = Field(description="Domain that receives.")
    latency: Duration = Field(
        description="What a request or a message takes beside its bytes.", json_schema_extra={"x-unit": "s"}
    )
    up: Maybe[Boolean] = Field(default=None, description="Whether it carries now; it does where this is absent.")
    bandwidths: Annotated[list[Amount], Field(max_length=10000)] = Field(
        description="What it could carry, the mean of each interval, oldest first and up to now; nought where it was out.",
        json_schema_extra={"x-unit": "bit/s"},
    )


class DataRoom(KuayuModel):
    """Room for data that come before they are needed."""

    domain: Identifier = Field(description="Where.")
    size: Amount = Field(description="How much.", json_schema_extra={"x-unit": "By"})


class ByteRange(KuayuModel):
    """Bytes of a stream, counted from the first byte of its next step that takes data from afar."""

    begin: Amount = Field(description="The first.", json_schema_extra={"x-unit": "By"})
    end: Amount = Field(description="The one after the last.", json_schema_extra={"x-unit": "By"})


class DataTransfer(ByteRange):
    """Transfer that has begun."""

    source: Identifier = Field(description="Domain that sends.")
    left: Amount = Field(description="Bytes that have not come.", json_schema_extra={"x-unit": "By"})


class DataStream(KuayuModel):
    """Data that the steps of one job take in one domain. A step takes data that came from afar, in the order of
    their bytes, or data of the local cache; a slot is when a step is due, whatever data it takes.
    """

    id: Identifier = Field(description="Its name in this request.")
    target: Identifier = Field(description="Domain that computes.")
    sources: Annotated[list[Identifier], Field(min_length=1, max_length=1000)] = Field(
        description="Domains that hold a whole copy."
    )
    step_size: PositiveAmount = Field(description="Bytes of a step.", json_schema_extra={"x-unit": "By"})
    step_time: PositiveAmount = Field(
        description="From one slot to the next where nothing is waited for.", json_schema_extra={"x-unit": "s"}
    )
    due: Duration = Field(description="When the next slot is due.", json_schema_extra={"x-unit": "s"})
    remote_steps: Count = Field(description="Steps to come that take data from afar.")
    local_steps: Maybe[Count] = Field(
        default=None,
        description=(
            "Steps to come whose data lie in the local cache and which may take any slot; none where it is absent."
        ),
    )
    missing: Annotated[list[ByteRange], Field(max_length=10000)] = Field(
        description="What neither is there nor under way, rising and apart."
    )
    transfers: Maybe[Annotated[list[DataTransfer], Field(max_length=10000)]] = Field(
        default=None, description="What is under way."
    )


class ShardPlanRequest(KuayuModel):
    """Asks what data to fetch, over how long a time to come. Instants are seconds from now. The answer depends on
    nothing else.
    """

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    interval: PositiveAmount = Field(
        description="Over which bandwidths were measured.", json_schema_extra={"x-unit": "s"}
    )
    horizon: PositiveAmount = Field(
        description="How far is to be planned at least; whoever asks may ask anew before.",
        json_schema_extra={"x-unit": "s"},
    )
    links: Annotated[list[MeasuredLink], Field(max_length=10000)] = Field(
        description="One at most from a domain to another."
    )
    rooms: Annotated[list[DataRoom], Field(max_length=1000)] = Field(
        description="By domain, without repetition; there is none where none is stated."
    )
    streams: Annotated[list[DataStream], Field(max_length=1000)] = Field(
        description="What is needed, without repetition."
    )


class PlannedShard(ByteRange):
    """Piece of a stream that is to be fetched at once."""

    stream: Identifier = Field(description="Of which stream.")
    source: Identifier = Field(description="From which domain.")
    after: Duration = Field(description="No sooner than this.", json_schema_extra={"x-unit": "s"})
    slot: Count = Field(description="Slot that takes its first byte, counted from the next one, which is nought.")


class AbandonedTransfer(KuayuModel):
    """Transfer that is to be stopped; what has come of it counts for nothing."""

    source: Identifier = Field(description="From which domain.")
    begin: Amount = Field(description="Its first byte.", json_schema_extra={"x-unit": "By"})


class StreamPlan(KuayuModel):
    """What becomes of a stream."""

    stream: Identifier = Field(description="Which.")
    steps_ahead: Count = Field(description="How many steps before it is due data are fetched at most.")
    shard_size: Amount = Field(description="Bytes of a shard.", json_schema_extra={"x-unit": "By"})
    local_slots: list[Count] = Field(description="Slots that take local data, rising and counted from the next one.")
    local_when_late: Boolean = Field(
        description="Whether any other slot takes local data too, where its data are not there when it is due."
    )
    abandoned: Maybe[list[AbandonedTransfer]] = Field(default=None, description="What is to be stopped.")
    reasons: Maybe[Annotated[list[Text], Field(max_length=100)]] = Field(
        default=None, description="Why, in words for people."
    )


class ShardPlan(KuayuModel):
    """What to fetch."""

    revision: Revision = Field(description="The request's.")
    method: TransferMethod = Field(description="How it was found.")
    streams: list[StreamPlan] = Field(description="In the order of the request.")
    shards: list[PlannedShard] = Field(description="In the order in which each link is to take its own.")


class CollectiveInUse(KuayuModel):
    """Collective that replicas use now."""

    collective: CollectiveKind = Field(description="Which.")
    period: Annotated[int, WholeNumber(1, 100000)] = Field(
        description="Steps from one exchange over domains to the next; one, unless communication is low."
    )
    order: Annotated[list[Identifier], Field(min_length=1, max_length=64)] = Field(
        description="Domains in the order of the ring."
    )
    since: Duration = Field(description="For how long it has been in use.", json_schema_extra={"x-unit": "s"})


class CollectiveRequest(KuayuModel):
    """Asks by which collective replicas are to agree. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    interval: PositiveAmount = Field(
        description="Over which bandwidths were measured.", json_schema_extra={"x-unit": "s"}
    )
    domains: Annotated[list[Identifier], Field(min_length=1, max_length=64)] = Field(
        description="Where replicas are, without repetition."
    )
    links: Annotated[list[MeasuredLink], Field(max_length=4032)] = Field(
        description="From each domain to each other, once."
    )
    nodes: Annotated[int, WholeNumber(1, 1000000)] = Field(description="Nodes in each domain.")
    node_bandwidth: PositiveAmount = Field(
        description="From a node to another of its domain.", json_schema_extra={"x-unit": "bit/s"}
    )
    node_latency: Duration = Field(description="Of a message there.", json_schema_extra={"x-unit": "s"})
    exchange: PositiveAmount = Field(
        description="What all replicas sum up when they agree.", json_schema_extra={"x-unit": "By"}
    )
    step_time: PositiveAmount = Field(description="Of a step without any exchange.", json_schema_extra={"x-unit": "s"})
    switch_time: Duration = Field(
        description="In which no step is made when the collective is changed.", json_schema_extra={"x-unit": "s"}
    )
    in_use: Maybe[CollectiveInUse] = Field(default=None, description="What is in use; nothing where it is absent.")


class CollectiveCandidate(KuayuModel):
    """Collective that was looked at."""

    collective: CollectiveKind = Field(description="Which.")
    period: Annotated[int, WholeNumber(1, 100000)] = Field(
        description="Steps from one exchange over domains to the next."
    )
    rate: Amount = Field(
        description="Steps a second that it is expected to make, less what rare exchanges cost in steps.",
        json_schema_extra={"x-unit": "/s"},
    )


class CollectiveChoice(KuayuModel):
    """By which collective replicas are to agree."""

    revision: Revision = Field(description="The request's.")
    method: TransferMethod = Field(description="How it was found.")
    collective: CollectiveKind = Field(description="Which.")
    period: Annotated[int, WholeNumber(1, 100000)] = Field(
        description="Steps from one exchange over domains to the next; one, unless communication is low."
    )
    order: Annotated[list[Identifier], Field(min_length=1, max_length=64)] = Field(
        description="All domains, in the order of the ring."
    )
    switched: Boolean = Field(description="Whether it is another one than that in use; false where none is.")
    candidates: Annotated[list[CollectiveCandidate], Field(min_length=1, max_length=1000)] = Field(
        description="What was looked at, the chosen one among it."
    )
    reasons: Maybe[Annotated[list[Text], Field(max_length=100)]] = Field(
        default=None, description="Why, in words for people."
    )


class RecoveryMethod(KuayuModel):
    """How an answer was found."""

    name: Text = Field(description="Its name.")
    version: Text = Field(description="Its version.")


class CheckpointStore(KuayuModel):
    """Where checkpoints are kept in a domain."""

    domain: Identifier = Field(description="Which.")
    bandwidth: PositiveAmount = Field(
        description="At which it is read and written, by all together.", json_schema_extra={"x-unit": "bit/s"}
    )
    free: Maybe[Amount] = Field(
        default=None,
        description="Room for copies that are to be planned; none where it is absent.",
        json_schema_extra={"x-unit": "By"},
    )


class StandingNode(KuayuModel):
    """Node as it is known now."""

    id: Identifier = Field(description="Which.")
    domain: Identifier = Field(description="Where.")
    condition: NodeCondition = Field(description="Whether it can do anything.")
    fenced_in: Maybe[Duration] = Field(
        default=None,
        description=(
            "For an unreachable node: when whatever ran on it has stopped for certain; nobody knows where it is absent."
        ),
        json_schema_extra={"x-unit": "s"},
    )
    job: Maybe[Identifier] = Field(default=None, description="Job that holds it; it is free where this is absent.")
    replica: Maybe[Count] = Field(default=None, description="Replica of the job that it is of, counted from nought.")


class CheckpointCopy(KuayuModel):
    """Copy of a checkpoint."""

    domain: Identifier = Field(description="Where it is.")
    age: Duration = Field(
        description="How long the job, when it is whole, takes for what it has done since.",
        json_schema_extra={"x-unit": "s"},
    )


class ProtectedJob(KuayuModel):
    """Job whose replicas all train the same model, in one domain."""

    id: Identifier = Field(description="Which.")
    priority: Annotated[int, WholeNumber(-1000, 1000)] = Field(description="Higher goes first.")
    domain: Identifier = Field(description="Where it runs or ran last.")
    replicas: Annotated[int, WholeNumber(1, 10000)] = Field(description="How many it has when it is whole.")
    least_replicas: Annotated[int, WholeNumber(1, 10000)] = Field(description="With how few it can go on.")
    nodes_each: Annotated[int, WholeNumber(1, 10000)] = Field(description="Nodes of a replica.")
    state_size: PositiveAmount = Field(
        description="Of a replica's state, and of a checkpoint.", json_schema_extra={"x-unit": "By"}
    )
    node_bandwidth: PositiveAmount = Field(
        description="At which one replica gives its state to another.", json_schema_extra={"x-unit": "bit/s"}
    )
    start_time: Duration = Field(
        description="What a replica that has its state takes before it can make a step.",
        json_schema_extra={"x-unit": "s"},
    )
    regroup_time: Duration = Field(
        description="In which no step is made when replicas leave or join.", json_schema_extra={"x-unit": "s"}
    )
    copies: Annotated[list[CheckpointCopy], Field(max_length=1000)] = Field(
        description="Of its checkpoints, one at most in a domain."
    )


class FailoverRequest(KuayuModel):
    """Asks how jobs go on after faults. Instants are seconds from now. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    interval: PositiveAmount = Field(
        description="Over which bandwidths were measured.", json_schema_extra={"x-unit": "s"}
    )
    links: Annotated[list[MeasuredLink], Field(max_length=10000)] = Field(
        description="One at most from a domain to another."
    )
    stores: Annotated[list[CheckpointStore], Field(max_length=1000)] = Field(
        description="By domain, without repetition."
    )
    nodes: Annotated[list[StandingNode], Field(max_length=100000)] = Field(
        description="All that jobs of the request hold, and all that are free."
    )
    jobs: Annotated[list[ProtectedJob], Field(max_length=10000)] = Field(
        description="Without repetition; those that are on their way back already are not among them."
    )


class PlacedReplica(KuayuModel):
    """Replica on the nodes that it gets."""

    replica: Count = Field(description="Which, counted from nought.")
    nodes: Annotated[list[Identifier], Field(min_length=1, max_length=10000)] = Field(description="Its nodes.")


class JobRecovery(KuayuModel):
    """How a job goes on."""

    job: Identifier = Field(description="Which.")
    strategy: RecoveryStrategy = Field(description="How.")
    replicas: Annotated[list[PlacedReplica], Field(max_length=10000)] = Field(
        description="Those that get nodes; none unless it is replaced or restored."
    )
    source: Maybe[Identifier] = Field(default=None, description="Domain whose copy it is restored from.")
    after: Duration = Field(description="No sooner than this.", json_schema_extra={"x-unit": "s"})
    resumes: Maybe[Duration] = Field(
        default=None,
        description="When it is expected to make a step that it has not made before; nobody knows where it is absent.",
        json_schema_extra={"x-unit": "s"},
    )
    reasons: Maybe[Annotated[list[Text], Field(max_length=100)]] = Field(
        default=None, description="Why, in words for people."
    )


class FailoverPlan(KuayuModel):
    """How jobs go on."""

    revision: Revision = Field(description="The request's.")
    method: RecoveryMethod = Field(description="How it was found.")
    recoveries: list[JobRecovery] = Field(
        description="Those of jobs with a broken replica, in the order of the request."
    )


class BackupDomain(KuayuModel):
    """Domain with what fails in it."""

    id: Identifier = Field(description="Which.")
    nodes: Count = Field(description="Nodes that jobs hold.")
    free: Count = Field(description="Nodes that nobody holds, which may be kept as spares.")
    time_between_failures: PositiveAmount = Field(
        description="Of one node, on average.", json_schema_extra={"x-unit": "s"}
    )
    repair_time: Duration = Field(
        description="After which a node that has failed is fit again.", json_schema_extra={"x-unit": "s"}
    )
    price: Amount = Field(description="Of a spare node.", json_schema_extra={"x-unit": "{money}/h"})


class BackedUpJob(KuayuModel):
    """Job for which spare nodes and copies are to be held."""

    id: Identifier = Field(description="Which.")
    priority: Annotated[int, WholeNumber(-1000, 1000)] = Field(description="Higher goes first.")
    domain: Identifier = Field(description="Where it runs.")
    replicas: Annotated[int, WholeNumber(1, 10000)] = Field(description="How many it has.")
    least_replicas: Annotated[int, WholeNumber(1, 10000)] = Field(description="With how few it can go on.")
    nodes_each: Annotated[int, WholeNumber(1, 10000)] = Field(description="Nodes of a replica.")
    state_size: PositiveAmount = Field(description="Of a checkpoint.", json_schema_extra={"x-unit": "By"})
    pause: Duration = Field(
        description="In which no step is made when a checkpoint is taken.", json_schema_extra={"x-unit": "s"}
    )


class BackupRequest(KuayuModel):
    """Asks what to hold against faults. The answer depends on nothing else."""

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    interval: PositiveAmount = Field(
        description="Over which bandwidths were measured.", json_schema_extra={"x-unit": "s"}
    )
    share: Ratio = Field(
        description="Of the bandwidth of each link and of each store that copies may take.",
        json_schema_extra={"x-unit": "1"},
    )
    risk: Ratio = Field(
        description="That may be run that more nodes of a domain fail within its repair time than there are spares.",
        json_schema_extra={"x-unit": "1"},
    )
    domains: Annotated[list[BackupDomain], Field(min_length=1, max_length=1000)] = Field(
        description="Without repetition."
    )
    links: Annotated[list[MeasuredLink], Field(max_length=10000)] = Field(
        description="One at most from a domain to another."
    )
    stores: Annotated[list[CheckpointStore], Field(max_length=1000)] = Field(
        description="By domain, without repetition."
    )
    jobs: Annotated[list[BackedUpJob], Field(max_length=10000)] = Field(description="Without repetition.")


class BackupPool(KuayuModel):
    """Spare nodes of a domain."""

    domain: Identifier = Field(description="Where.")
    spares: Count = Field(description="How many.")
    risk: Ratio = Field(
        description="That is run with them that more nodes fail within the repair time.",
        json_schema_extra={"x-unit": "1"},
    )
    price: Amount = Field(description="Of all of them.", json_schema_extra={"x-unit": "{money}/h"})


class PlannedCopy(KuayuModel):
    """Copies of a job's checkpoints in a domain."""

    job: Identifier = Field(description="Of which job.")
    domain: Identifier = Field(description="Where.")
    period: PositiveAmount = Field(description="From one to the next.", json_schema_extra={"x-unit": "s"})


class BackupPlan(KuayuModel):
    """What to hold against faults."""

    revision: Revision = Field(description="The request's.")
    method: RecoveryMethod = Field(description="How it was found.")
    pools: list[BackupPool] = Field(description="In the order of domains.")
    copies: Annotated[list[PlannedCopy], Field(max_length=100000)] = Field(
        description="One at most of a job in a domain."
    )
    reasons: Maybe[Annotated[list[Text], Field(max_length=100)]] = Field(
        default=None, description="Why, in words for people."
    )


class AdjustmentMethod(KuayuModel):
    """How an answer was found."""

    name: Text = Field(description="Its name.")
    version: Text = Field(description="Its version.")


class LoadedDomain(KuayuModel):
    """Domain with what others take of it."""

    id: Identifier = Field(description="Which.")
    level: Ratio = Field(description="Load that the policy in force was chosen for.", json_schema_extra={"x-unit": "1"})
    loads: Annotated[list[Ratio], Field(min_length=1, max_length=10000)] = Field(
        description="Share of its compute that others took, the mean of each interval, oldest first and up to now.",
        json_schema_extra={"x-unit": "1"},
    )


class DelayedLink(KuayuModel):
    """Way from one domain to another, with its latency."""

    source: Identifier = Field(description="Domain that sends.")
    target: Identifier = Field(description="Domain that receives.")
    bandwidth: PositiveAmount = Field(description="What it carries.", json_schema_extra={"x-unit": "bit/s"})
    level: Duration = Field(
        description="Latency that the policy in force was chosen for.", json_schema_extra={"x-unit": "s"}
    )
    latencies: Annotated[list[Duration], Field(min_length=1, max_length=10000)] = Field(
        description="What a message takes beside its bytes, the mean of each interval, oldest first and up to now.",
        json_schema_extra={"x-unit": "s"},
    )


class StepShare(KuayuModel):
    """What a domain computes of a job's step."""

    domain: Identifier = Field(description="Which.")
    parts: Annotated[int, WholeNumber(1, 1000000)] = Field(description="Parts of a step that it computes.")
    part_time: PositiveAmount = Field(
        description="What it takes for a part while nobody else takes anything of it.",
        json_schema_extra={"x-unit": "s"},
    )


class PolicyChange(KuayuModel):
    """Change of the policy of a job."""

    after: Duration = Field(
        description="No sooner than this, and not before the change before it is in force.",
        json_schema_extra={"x-unit": "s"},
    )
    parts: Annotated[list[Count], Field(min_length=1, max_length=64)] = Field(
        description="Parts that each domain computes from then on, in the order of the job's shares."
    )
    collective: CollectiveKind = Field(description="By which replicas agree from then on.")
    period: Annotated[int, WholeNumber(1, 100000)] = Field(
        description="Steps from one exchange over domains to the next; one, unless communication is low."
    )
    order: Annotated[list[Identifier], Field(min_length=1, max_length=64)] = Field(
        description="Domains in the order of the ring."
    )


class AdjustedJob(KuayuModel):
    """Job that runs in one domain or several, with the policy in force; one that is on its way counts as in force."""

    id: Identifier = Field(description="Which.")
    shares: Annotated[list[StepShare], Field(min_length=1, max_length=64)] = Field(
        description="By domain, without repetition; all parts of a step take the same work."
    )
    nodes: Annotated[int, WholeNumber(1, 1000000)] = Field(description="Nodes in each domain.")
    node_bandwidth: PositiveAmount = Field(
        description="From a node to another of its domain.", json_schema_extra={"x-unit": "bit/s"}
    )
    node_latency: Duration = Field(description="Of a message there.", json_schema_extra={"x-unit": "s"})
    exchange: PositiveAmount = Field(
        description="What all replicas sum up when they agree.", json_schema_extra={"x-unit": "By"}
    )
    collective: CollectiveKind = Field(description="By which they agree.")
    period: Annotated[int, WholeNumber(1, 100000)] = Field(
        description="Steps from one exchange over domains to the next; one, unless communication is low."
    )
    order: Annotated[list[Identifier], Field(min_length=1, max_length=64)] = Field(
        description="Domains in the order of the ring."
    )
    move_time: Duration = Field(
        description="In which no step is made for each part that another domain comes to compute.",
        json_schema_extra={"x-unit": "s"},
    )
    switch_time: Duration = Field(
        description="In which no step is made when the collective, its period or its order is changed.",
        json_schema_extra={"x-unit": "s"},
    )
    changed: Maybe[Duration] = Field(
        default=None,
        description=(
            "How long ago the last change came into force, nought while one is on its way; none ever did where it"
            " is absent."
        ),
        json_schema_extra={"x-unit": "s"},
    )
    planned: Maybe[Annotated[list[PolicyChange], Field(max_length=1000)]] = Field(
        default=None, description="Changes of earlier answers that have not begun, in their order."
    )


class AdjustmentRequest(KuayuModel):
    """Asks whether and how to adjust the policy of running jobs. Instants are seconds from now. The answer depends
    on nothing else.
    """

    revision: Revision = Field(description="State that the request was made from; the answer repeats it.")
    interval: PositiveAmount = Field(
        description="Over which load and latency were measured.", json_schema_extra={"x-unit": "s"}
    )
    patience: PositiveAmount = Field(description="Over which they are looked at.", json_schema_extra={"x-unit": "s"})
    window: PositiveAmount = Field(
        description="Over which the speed of a job is taken.", json_schema_extra={"x-unit": "s"}
    )
    allowance: Ratio = Field(
        description="Share of its speed over any window that a job may lose while it is adjusted.",
        json_schema_extra={"x-unit": "1"},
    )
    domains: Annotated[list[LoadedDomain], Field(min_length=1, max_length=1000)] = Field(
        description="Without repetition."
    )
    links: Annotated[list[DelayedLink], Field(max_length=10000)] = Field(
        description="One at most from a domain to another, and one from each domain of a job to each other."
    )
    jobs: Annotated[list[AdjustedJob], Field(max_length=1000)] = Field(description="Without repetition.")


class AdjustmentTrigger(KuayuModel):
    """Change of load or latency that counts."""

    kind: TriggerKind = Field(description="What has changed.")
    domain: Identifier = Field(description="Whose load, or the source of the link.")
    target: Maybe[Identifier] = Field(default=None, description="Target of the link; absent for a load.")
    before: Amount = Field(description="Level that the policy in force was chosen for; of a latency in seconds.")
    now: Amount = Field(description="Level now; of a latency in seconds.")


class JobAdjustment(KuayuModel):
    """What becomes of a job's policy."""

    job: Identifier = Field(description="Which.")
    rate: Amount = Field(
        description="Steps a second by the policy in force at the levels now, less what rare exchanges cost in steps.",
        json_schema_extra={"x-unit": "/s"},
    )
    expected_rate: Amount = Field(
        description="The same by the policy after the last change that is planned.", json_schema_extra={"x-unit": "/s"}
    )
    changes: Annotated[list[PolicyChange], Field(max_length=1000)] = Field(
        description=(
            "In their order; they take the place of what was planned. Where there are none, it stays as it was planned."
        )
    )
    reasons: Maybe[Annotated[list[Text], Field(max_length=100)]] = Field(
        default=None, description="Why, in words for people."
    )


class Adjustment(KuayuModel):
    """Whether and how policies are adjusted."""

    revision: Revision = Field(description="The request's.")
    method: AdjustmentMethod = Field(description="How it was found.")
    triggers: Annotated[list[AdjustmentTrigger], Field(max_length=11000)] = Field(description="What has changed.")
    jobs: list[JobAdjustment] = Field(description="In the order of the request.")


class RankStep(KuayuModel):
    """The last step that a rank has done."""

    job: Identifier = Field(description="The job.")
    rank: Count = Field(description="Which of its ranks, from nought.")
    step: Count = Field(description="The step; lower than before where the job began anew from a checkpoint.")
    ended: Maybe[Boolean] = Field(
        default=None,
        description=(
            "Whether the rank has ended as it should, so that no further step is to come; false where it is absent."
        ),
    )


class Heartbeat(KuayuModel):
    """Sign of life of a node."""

    node: Identifier = Field(description="The node, which is registered.")
    number: Count = Field(
        description="Greater by one than that of the beat before; it begins anew where the node was started anew."
    )
    sent_at: Instant = Field(
        description="When it was sent by the clock of the node; of that clock nothing is required."
    )
    steps: Maybe[Annotated[list[RankStep], Field(max_length=1024)]] = Field(
        default=None, description="How far the ranks are that run on it."
    )


class HeartbeatBatch(KuayuModel):
    """Heartbeats of several nodes."""

    beats: Annotated[list[Heartbeat], Field(min_length=1)] = Field(
        description="In any order; at most limits.max_batch of the declaration."
    )


class LogLine(KuayuModel):
    """Line of a log of a node."""

    node: Identifier = Field(description="The node, which is registered.")
    logged_at: Instant = Field(description="When it was logged by the clock of the node.")
    text: Text = Field(
        description="The line, with its header or without; whoever sends it leaves out what is beyond 2048 characters."
    )


class LogBatch(KuayuModel):
    """Lines of logs of several nodes."""

    lines: Annotated[list[LogLine], Field(min_length=1)] = Field(
        description="In the order of each log; at most limits.max_batch of the declaration."
    )


class IntakeResult(KuayuModel):
    """What became of a batch of heartbeats or log lines."""

    accepted: Count = Field(description="Items that were taken.")
    rejected: list[ItemRejection] = Field(description="The others, each with its reason, in order of index.")
    received_at: Instant = Field(description="When the service received the batch.")


class Fault(KuayuModel):
    """Something that is wrong, as far as the service can tell."""

    id: Identifier = Field(description="Name that the service gave it.")
    kind: FaultKind = Field(description="What is wrong.")
    state: FaultState = Field(description="How it stands.")
    domain: Maybe[Identifier] = Field(
        default=None, description="Domain that it is about, or that the node is of; absent where it is about a job."
    )
    node: Maybe[Identifier] = Field(
        default=None,
        description="Node that it is about, or on which the rank runs; absent where it is about a domain or a job.",
    )
    job: Maybe[Identifier] = Field(default=None, description="Job that it is about, or that the rank is of.")
    rank: Maybe[Count] = Field(default=None, description="The rank that straggles.")
    code: Maybe[Text] = Field(default=None, description="Which fault a log told, such as xid.79.")
    since: Instant = Field(description="From when on it is taken to last, such as the last sign of life.")
    told_at: Instant = Field(description="When the service had come to its verdict.")
    cleared_at: Maybe[Instant] = Field(default=None, description="When it was over; stated where it is cleared.")
    because: Text = Field(description="What it was told from, for people.")
    actions: list[Identifier] = Field(description="Actions that were asked for because of it, the oldest first.")
    revision: Revision = Field(description="Revision of the faults at which it last changed.")

    @model_validator(mode="after")
    def cleared_states_when(self) -> Self:
        """What is over says since when."""
        if self.state is FaultState.cleared and self.cleared_at is None:
            raise ValueError("What is over says since when.")
        return self


class FaultPage(KuayuModel):
    """Part of the list of faults, as it stood at one revision."""

    items: list[Fault] = Field(description="In order of identifier.")
    revision: Revision = Field(description="Revision that the whole listing shows.")
    next_cursor: Maybe[Text] = Field(default=None, description="Give it back to go on; absent on the last page.")


class ProfileIndex(KuayuModel):
    """Compute index of an accelerator for a task profile."""

    profile: Identifier = Field(description="Task profile.")
    value: PositiveAmount = Field(
        description="How many reference devices one is worth.", json_schema_extra={"x-unit": "1"}
    )


class OfferedAccelerator(KuayuModel):
    """Kind of accelerator that pools consist of."""

    id: Identifier = Field(description="Its name in this request.")
    kind: Maybe[AcceleratorKind] = Field(default=None, description="Kind of accelerator.")
    memory: PositiveAmount = Field(description="Memory of one.", json_schema_extra={"x-unit": "By"})
    indices: Annotated[list[ProfileIndex], Field(min_length=1, max_length=1000)] = Field(
        description="Its compute index by task profile; jobs of other profiles do not run on it."
    )


class PoolNode(KuayuModel):
    """Node of a pool."""

    id: Identifier = Field(description="Its name.")
    devices: Count = Field(description="Devices that work.")
    free: Count = Field(description="Devices that are free.")
    switch: Maybe[Identifier] = Field(
        default=None,
        description=(
            "Leaf switch that it hangs on. Nodes on one switch are nearer to each other than others of the domain."
        ),
    )


class CapacityOffer(KuayuModel):
    """Part of a pool that is bought in one way."""

    purchase: PurchaseOption = Field(description="How it is bought.")
    devices: Count = Field(description="Devices of the pool that can be had so; no more of them than are free.")
    price: Amount = Field(
        description="Money for a device and an hour, as it is now; what is reserved is paid for in any case.",
        json_schema_extra={"x-unit": "{money}/h"},
    )
    interruption_rate: Maybe[Amount] = Field(
        default=None,
        description="How often in an hour it is taken away; nought where it is absent.",
        json_schema_extra={"x-unit": "/h"},
    )


class ComputePool(KuayuModel):
    """Devices of one kind in a domain."""

    accelerator: Identifier = Field(description="Of which kind.")
    devices: Count = Field(description="Devices that work.")
    free: Count = Field(description="Devices that are free.")
    devices_per_node: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="Devices of a node.")
    nodes: Maybe[Annotated[list[PoolNode], Field(max_length=10000)]] = Field(
        default=None, description="Its nodes; where they are told, placements name those that a job is given."
    )
    offers: Maybe[Annotated[list[CapacityOffer], Field(max_length=8)]] = Field(
        default=None, description="How its capacity can be bought; where it is absent, it costs nothing."
    )


class PoolDomain(KuayuModel):
    """Domain as a place for jobs."""

    id: Identifier = Field(description="Its name.")
    reachable: Maybe[Boolean] = Field(
        default=None,
        description=(
            "Whether it can be reached; it can where this is absent. What is said of one that cannot is what was "
            "true last."
        ),
    )
    pools: Annotated[list[ComputePool], Field(max_length=100)] = Field(
        description="Its pools, one for each kind of accelerator."
    )


class PathLink(KuayuModel):
    """Link in one direction. It may begin or end at an exchange that is no domain."""

    source: Identifier = Field(description="Where it begins.")
    target: Identifier = Field(description="Where it ends.")
    bandwidth: Amount = Field(
        description="What it offers now to all flows together.", json_schema_extra={"x-unit": "bit/s"}
    )
    available: Amount = Field(description="What one more flow may hope for.", json_schema_extra={"x-unit": "bit/s"})
    round_trip_time: Duration = Field(description="There and back.", json_schema_extra={"x-unit": "s"})
    tariff: Amount = Field(
        description="Money for a bit a second that is held for a second, as it is now.",
        json_schema_extra={"x-unit": "{money}/bit"},
    )


class ArtefactCopies(KuayuModel):
    """Where copies of data are now; it prevails over what a job's specification said when the job was submitted."""

    artefact: Identifier = Field(description="Which.")
    domains: Annotated[list[Identifier], Field(min_length=1, max_length=1000)] = Field(
        description="Domains that hold a whole copy."
    )


class JobPlacement(KuayuModel):
    """Where a job runs and how it is spread."""

    shares: Annotated[list[DomainShare], Field(min_length=1, max_length=1000)] = Field(
        description="One for each domain. Rings and pipelines go through them in this order."
    )
    split_mode: SplitMode = Field(description="How domains work together; none where there is one.")
    sync_period: Maybe[Annotated[int, WholeNumber(1, 9007199254740991)]] = Field(
        default=None, description="Steps between reconciliations; stated where the split is periodic."
    )

    @model_validator(mode="after")
    def periodic_states_period(self) -> Self:
        """A periodic placement states its period."""
        if self.split_mode is SplitMode.periodic and self.sync_period is None:
            raise ValueError("A periodic placement states its period.")
        return self


class WaitingJob(KuayuModel):
    """Job that waits for devices."""

    spec: JobSpec = Field(description="What it asks for.")
    used: Maybe[Ratio] = Field(
        default=None,
        description="Share of the devices asked for that it kept busy, measured when it ran; absent before it has run.",
        json_schema_extra={"x-unit": "1"},
    )
    done: Maybe[Amount] = Field(
        default=None,
        description="Work that it has done, in seconds of a reference device; nought where it is absent.",
        json_schema_extra={"x-unit": "s"},
    )
    checkpoint_domain: Maybe[Identifier] = Field(
        default=None, description="Domain that holds the checkpoint that it goes on from."
    )


class RunningJob(KuayuModel):
    """Job that holds devices."""

    spec: JobSpec = Field(description="What it asks for.")
    placement: JobPlacement = Field(description="What it holds.")
    phase: JobPhase = Field(description="What it does.")
    used: Maybe[Ratio] = Field(
        default=None,
        description="Share of the devices asked for that it keeps busy, as measured; absent before its first step.",
        json_schema_extra={"x-unit": "1"},
    )
    done: Amount = Field(
        description="Work that it has done, in seconds of a reference device.", json_schema_extra={"x-unit": "s"}
    )
    rate: Maybe[Amount] = Field(
        default=None,
        description="Work a second that it does now, in reference devices; absent before its first step.",
        json_schema_extra={"x-unit": "1"},
    )
    ready_at: Maybe[Instant] = Field(default=None, description="When it is expected to run; stated until it does.")
    interrupted_at: Maybe[Instant] = Field(
        default=None,
        description=(
            "When a decision interrupted it last: it was told to stop, to migrate or to resize; absent where none did."
        ),
    )
    checkpoint_domain: Maybe[Identifier] = Field(default=None, description="Domain that holds its last checkpoint.")


class RefusedDecision(KuayuModel):
    """Decision of the epoch before that was not carried out."""

    job: Identifier = Field(description="For which job.")
    verb: PlacementVerb = Field(description="What was decided.")
    reason: RefusalReason = Field(description="Why not.")


class AccountUse(KuayuModel):
    """Account of a tenant, and what it has used."""

    id: Identifier = Field(description="Name of the account.")
    used: Amount = Field(
        description=(
            "Hours of reference devices that its jobs have held, each halved once for every half-life that has "
            "passed since."
        ),
        json_schema_extra={"x-unit": "h"},
    )
    weight: Annotated[Real, Field(ge=1e-06, le=1000000)] = Field(
        description="Its part of the devices, in proportion to the weights of others.",
        json_schema_extra={"x-unit": "1"},
    )


class SchedulingState(KuayuModel):
    """Everything that a scheduling decision may rest on."""

    revision: Revision = Field(description="Point in the life of the state.")
    now: Instant = Field(description="The present instant.")
    accelerators: Annotated[list[OfferedAccelerator], Field(max_length=1000)] = Field(
        description="Kinds that pools consist of."
    )
    domains: Annotated[list[PoolDomain], Field(min_length=1, max_length=1000)] = Field(
        description="Where jobs can run."
    )
    links: Annotated[list[PathLink], Field(max_length=100000)] = Field(
        description="What joins them; traffic takes the path of the shortest round-trip time."
    )
    copies: Maybe[Annotated[list[ArtefactCopies], Field(max_length=100000)]] = Field(
        default=None, description="Where data are now that have moved."
    )
    waiting: Annotated[list[WaitingJob], Field(max_length=100000)] = Field(
        description="Jobs that wait, those of higher priority first, and of these those that were submitted earlier."
    )
    running: Annotated[list[RunningJob], Field(max_length=100000)] = Field(description="Jobs that hold devices.")
    refused: Maybe[Annotated[list[RefusedDecision], Field(max_length=100000)]] = Field(
        default=None, description="What was decided before and not carried out."
    )
    accounts: Maybe[Annotated[list[AccountUse], Field(max_length=100000)]] = Field(
        default=None,
        description=(
            "Accounts that take turns; those of jobs that stand in none of these have used nothing, and their "
            "weight is one. Where it is absent, accounts do not matter."
        ),
    )


class ObjectiveWeights(KuayuModel):
    """What counts how much; only their ratios matter. One that is absent counts nothing."""

    period: Maybe[Annotated[Real, Field(ge=0, le=1000000)]] = Field(
        default=None, description="Time from submission to end.", json_schema_extra={"x-unit": "1"}
    )
    communication: Maybe[Annotated[Real, Field(ge=0, le=1000000)]] = Field(
        default=None, description="Money for bandwidth between domains.", json_schema_extra={"x-unit": "1"}
    )
    utilisation: Maybe[Annotated[Real, Field(ge=0, le=1000000)]] = Field(
        default=None,
        description="Work by capacity: devices are to run what they are best at, and to run it.",
        json_schema_extra={"x-unit": "1"},
    )
    price: Maybe[Annotated[Real, Field(ge=0, le=1000000)]] = Field(
        default=None, description="Money for devices.", json_schema_extra={"x-unit": "1"}
    )


class PlannedShare(KuayuModel):
    """Share of the compute given to jobs that a domain is to give."""

    domain: Identifier = Field(description="Which.")
    share: Ratio = Field(
        description="Its part of the compute of all domains, weighted by compute index; all parts sum to one.",
        json_schema_extra={"x-unit": "1"},
    )


class PlacementRequest(KuayuModel):
    """Asks what to do with the jobs of a state, sent whole or as a patch of one that was sent before. The answer
    depends on nothing else.
    """

    state: Maybe[SchedulingState] = Field(default=None, description="What is to be decided on.")
    digest: Maybe[Digest] = Field(
        default=None, description="Digest of the state; stated where a patch of this state may follow."
    )
    patch: Maybe[Patch] = Field(
        default=None, description="In place of the state: what leads to it from one that was answered before."
    )
    weights: Maybe[ObjectiveWeights] = Field(
        default=None, description="What counts; the service's own where it is absent."
    )
    shares: Maybe[Annotated[list[PlannedShare], Field(max_length=1000)]] = Field(
        default=None, description="Shares that what starts now is to keep to, domain by domain."
    )
    explain: Maybe[Boolean] = Field(default=None, description="Whether each decision is to be explained.")
    alternatives: Maybe[Annotated[int, WholeNumber(0, 10)]] = Field(
        default=None, description="How many of the next-best an explanation tells at most; three where it is absent."
    )

    @model_validator(mode="after")
    def state_or_patch(self) -> Self:
        """A request brings a state or a patch."""
        if self.patch is None and self.state is None:
            raise ValueError("A request brings a state or a patch.")
        return self

    @model_validator(mode="after")
    def state_not_patched(self) -> Self:
        """A request does not bring a state and a patch at once."""
        if self.state is not None and self.patch is not None:
            raise ValueError("A request does not bring a state and a patch at once.")
        return self

    @model_validator(mode="after")
    def digest_of_state(self) -> Self:
        """The digest is that of a whole state; a patch states its own."""
        if self.digest is not None and self.state is None:
            raise ValueError("The digest is that of a whole state; a patch states its own.")
        return self


class PredictedOutcome(KuayuModel):
    """What is expected of a job if a decision is carried out and nothing else happens."""

    run_at: Instant = Field(description="When it takes its first step.")
    finish_at: Instant = Field(description="When it ends.")
    communication_cost: Amount = Field(
        description="For bandwidth between domains from now on: data, checkpoints, exchanges.",
        json_schema_extra={"x-unit": "{money}"},
    )
    price: Amount = Field(description="For devices from now on.", json_schema_extra={"x-unit": "{money}"})
    efficiency: Amount = Field(
        description="Work a second for each device that it holds.", json_schema_extra={"x-unit": "1"}
    )
    score: Real = Field(
        description="What the weights make of it; less is better. Scores of one explanation can be compared.",
        json_schema_extra={"x-unit": "1"},
    )


class PlacementAlternative(KuayuModel):
    """What else could have been done with a job."""

    verb: PlacementVerb = Field(description="What.")
    placement: Maybe[JobPlacement] = Field(default=None, description="Where.")
    outcome: PredictedOutcome = Field(description="What would be expected.")


class PlacementExplanation(KuayuModel):
    """Why a decision is as it is."""

    outcome: Maybe[PredictedOutcome] = Field(
        default=None, description="What is expected of it; absent where a job waits with no way in sight."
    )
    alternatives: list[PlacementAlternative] = Field(
        description="The next-best, the better first; those that could be carried out now."
    )
    overtaken_until: Maybe[Instant] = Field(
        default=None,
        description=(
            "Until when jobs of its priority that were submitted later may be tried before it; stated for a job "
            "that waits."
        ),
    )
    beneficiary: Maybe[Identifier] = Field(
        default=None,
        description="Job that waits for what this one gives up; stated for a job that runs and makes room.",
    )
    reason: Text = Field(description="In words.")


class PlacementDecision(KuayuModel):
    """What is to be done with a job."""

    job: Identifier = Field(description="Which.")
    verb: PlacementVerb = Field(description="What.")
    placement: Maybe[JobPlacement] = Field(default=None, description="Where; stated for start, migrate and resize.")
    explanation: Maybe[PlacementExplanation] = Field(default=None, description="Why, where that was asked for.")


class SchedulingMethod(KuayuModel):
    """How an implementation decides."""

    name: Text = Field(description="Its name.")
    version: Text = Field(description="Its version; the same version gives the same answers.")
    weights: Maybe[ObjectiveWeights] = Field(default=None, description="What counted.")
    fallback: Maybe[Boolean] = Field(default=None, description="Whether a simpler method had to answer in its place.")


class PlacementReport(KuayuModel):
    """What is to be done, to be carried out in this order."""

    revision: Revision = Field(description="The state's.")
    method: SchedulingMethod = Field(description="How it was decided.")
    decisions: list[PlacementDecision] = Field(
        description=(
            "Whoever waits and is not named goes on waiting, and whoever runs goes on running. Where explanations"
            " were asked for, all jobs that wait are named."
        )
    )


class ParetoRequest(KuayuModel):
    """Asks for the best compromises between two ends: the mean period of the jobs that wait and the money for
    communication. Jobs run once, undisturbed, from the begin of a slot to their end. Without a time limit the
    answer depends on nothing else.
    """

    state: SchedulingState = Field(
        description="What is to be decided on; its waiting jobs are to be scheduled and nothing runs."
    )
    slot: Annotated[Real, Field(ge=1)] = Field(
        description=(
            "Jobs start at whole multiples of it from now on, the first one slot from now; a device is held for "
            "whole slots."
        ),
        json_schema_extra={"x-unit": "s"},
    )
    solutions: Maybe[Annotated[int, WholeNumber(1, 1000)]] = Field(
        default=None, description="How many at most; a hundred where it is absent."
    )
    time_limit: Maybe[Annotated[Real, Field(ge=0.1, le=600)]] = Field(
        default=None,
        description=(
            "Seconds of searching after which what has been found is answered; where it is absent, the search "
            "goes on to its own end."
        ),
        json_schema_extra={"x-unit": "s"},
    )


class ScheduledJob(KuayuModel):
    """Job in a schedule."""

    job: Identifier = Field(description="Which.")
    start: Duration = Field(
        description="Seconds from now, a whole multiple of the slot.", json_schema_extra={"x-unit": "s"}
    )
    placement: JobPlacement = Field(description="Where.")


class ParetoSolution(KuayuModel):
    """Schedule that no other of the answer beats in both ends."""

    mean_period: Duration = Field(
        description="Mean time from now to the end, over jobs.", json_schema_extra={"x-unit": "s"}
    )
    communication_cost: Amount = Field(
        description="For bandwidth between domains.", json_schema_extra={"x-unit": "{money}"}
    )
    jobs: list[ScheduledJob] = Field(description="All of them.")


class ParetoFront(KuayuModel):
    """The best compromises that were found."""

    revision: Revision = Field(description="The state's.")
    method: SchedulingMethod = Field(description="How they were found.")
    solutions: list[ParetoSolution] = Field(description="From the quickest to the cheapest.")
    partial: Maybe[Boolean] = Field(
        default=None,
        description=(
            "Whether the time limit ended the search, so that a longer one may find more; absent where it came to"
            " its own end."
        ),
    )


class DemandForecast(KuayuModel):
    """Devices that will be asked for."""

    domain: Identifier = Field(description="Domain where jobs will be submitted.")
    profile: Identifier = Field(description="Their task profile.")
    expected: Amount = Field(
        description="Reference devices on average over the horizon.", json_schema_extra={"x-unit": "1"}
    )
    high: Amount = Field(
        description="Reference devices that are exceeded in one case of ten.", json_schema_extra={"x-unit": "1"}
    )
    movable: Ratio = Field(description="Part that may run in other domains.", json_schema_extra={"x-unit": "1"})
    interruptible: Ratio = Field(
        description="Part that may be taken off spot capacity at any time.", json_schema_extra={"x-unit": "1"}
    )


class AllocationPlanRequest(KuayuModel):
    """Asks how much of which capacity to use and how to buy it. The answer depends on nothing else."""

    state: SchedulingState = Field(description="What there is; waiting jobs are demand beside the forecast.")
    horizon: Annotated[Real, Field(ge=60)] = Field(
        description="How long the plan holds.", json_schema_extra={"x-unit": "s"}
    )
    forecast: Maybe[Annotated[list[DemandForecast], Field(max_length=10000)]] = Field(
        default=None, description="What will be asked for."
    )
    weights: Maybe[ObjectiveWeights] = Field(
        default=None, description="What counts; the service's own where it is absent."
    )


class CapacityUse(KuayuModel):
    """Devices of a pool that a plan counts upon."""

    domain: Identifier = Field(description="In which domain.")
    accelerator: Identifier = Field(description="Of which kind.")
    purchase: PurchaseOption = Field(description="How they are bought; on demand where the pool has no offers.")
    devices: Count = Field(description="How many.")
    price: Amount = Field(description="Over the horizon.", json_schema_extra={"x-unit": "{money}"})


class AllocationPlan(KuayuModel):
    """How much of which capacity to use."""

    revision: Revision = Field(description="The state's.")
    method: SchedulingMethod = Field(description="How it was computed.")
    uses: list[CapacityUse] = Field(description="By domain, accelerator and way of buying; none of nought devices.")
    shares: list[PlannedShare] = Field(
        description="The same by domain, weighted by compute index, as placements take it; empty where nothing is used."
    )
    unmet: Amount = Field(
        description="Reference devices that were asked for and are not to be had.", json_schema_extra={"x-unit": "1"}
    )
    price: Amount = Field(description="Over the horizon.", json_schema_extra={"x-unit": "{money}"})


class RouteDemand(KuayuModel):
    """What is to be moved, or carried on and on, to one of several places."""

    id: Identifier = Field(description="Its name in this request.")
    sources: Annotated[list[Identifier], Field(min_length=1, max_length=1000)] = Field(
        description="Places that it may come from."
    )
    targets: Annotated[list[Identifier], Field(min_length=1, max_length=1000)] = Field(
        description="Places that it may go to."
    )
    size: Amount = Field(description="What is to be moved.", json_schema_extra={"x-unit": "By"})
    bandwidth: Maybe[PositiveAmount] = Field(
        default=None, description="More is of no use to it.", json_schema_extra={"x-unit": "bit/s"}
    )
    round_trip_time: Maybe[Duration] = Field(
        default=None, description="Longest round-trip time that will do.", json_schema_extra={"x-unit": "s"}
    )


class RouteRequest(KuayuModel):
    """Asks for paths, and for the places at their ends. The answer depends on nothing else."""

    revision: Revision = Field(description="State that links were taken from; the answer repeats it.")
    links: Annotated[list[PathLink], Field(min_length=1, max_length=100000)] = Field(
        description="What there is; available is what may be given out."
    )
    demands: Annotated[list[RouteDemand], Field(min_length=1, max_length=1000)] = Field(
        description="What is to be routed, the more urgent first."
    )
    weights: Maybe[ObjectiveWeights] = Field(
        default=None, description="How much time (period) counts beside money (communication)."
    )


class Route(KuayuModel):
    """Path of a demand."""

    demand: Identifier = Field(description="Which.")
    path: Annotated[list[Identifier], Field(min_length=1, max_length=1000)] = Field(
        description="Places from source to target; one alone where nothing need be moved."
    )
    bandwidth: Amount = Field(
        description="What it is given on every link of the path.", json_schema_extra={"x-unit": "bit/s"}
    )
    duration: Duration = Field(description="How long moving takes.", json_schema_extra={"x-unit": "s"})
    communication_cost: Amount = Field(description="For that bandwidth.", json_schema_extra={"x-unit": "{money}"})


class RoutePlan(KuayuModel):
    """Paths of demands."""

    revision: Revision = Field(description="The request's.")
    method: SchedulingMethod = Field(description="How they were found.")
    routes: list[Route] = Field(description="In the order of the demands.")
    unserved: list[Identifier] = Field(description="Demands that no path has room for.")


class Allocation(KuayuModel):
    """Devices that a job is to hold. What each domain has to do for it are actions: prepare in every domain, then
    commit, and abort everywhere if one refuses or does not answer in time.
    """

    id: Identifier = Field(description="Its name.")
    job: Identifier = Field(description="For which job.")
    revision: Revision = Field(description="State that it was decided on; the actions repeat it.")
    placement: JobPlacement = Field(description="What is to be held.")
    alternatives: Maybe[Annotated[list[JobPlacement], Field(max_length=10)]] = Field(
        default=None, description="What will do instead, tried in this order where a domain refuses."
    )
    patience: Maybe[Annotated[Real, Field(ge=0.1, le=3600)]] = Field(
        default=None,
        description="Seconds that a domain has to answer, and that promises hold; ten where it is absent.",
        json_schema_extra={"x-unit": "s"},
    )
    lease: Maybe[Annotated[Real, Field(ge=1, le=86400)]] = Field(
        default=None,
        description=(
            "Seconds for which a domain may run the job without an answer of the service; without end where it is"
            " absent."
        ),
        json_schema_extra={"x-unit": "s"},
    )


class AllocationRecord(Allocation):
    """Allocation as the service holds it."""

    phase: AllocationPhase = Field(description="Where it stands.")
    held: Maybe[JobPlacement] = Field(
        default=None, description="What is held, with nodes as domains named them; stated once it is committed."
    )
    reason: Maybe[Text] = Field(default=None, description="Why it stands so.")
    created_at: Instant = Field(description="When it was first written.")
    updated_at: Instant = Field(description="When it last changed.")


class AllocationPage(KuayuModel):
    """Part of the list of allocations, as it stood at one revision."""

    items: list[AllocationRecord] = Field(description="In order of identifier.")
    revision: Revision = Field(description="Revision that the whole listing shows.")
    next_cursor: Maybe[Text] = Field(default=None, description="Give it back to go on; absent on the last page.")


class OpenActions(KuayuModel):
    """What a domain has been asked to do and has not yet answered."""

    items: Annotated[list[Action], Field(max_length=1000)] = Field(
        description="Steps that wait for their result, the oldest first, at most a thousand."
    )


class PlannedTraining(KuayuModel):
    """Training that a job does, from which its demand follows."""

    model: ModelStructure = Field(description="What is trained.")
    strategy: ParallelStrategy = Field(description="How it is spread.")
    steps: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="Steps that it takes.")


class ServingNeed(KuayuModel):
    """How many replicas a serving job has, and what one of them carries. What else the job asks for holds for each
    replica.
    """

    minimum: Annotated[int, WholeNumber(1, 1000)] = Field(
        description="Replicas that it has at least, whatever its load."
    )
    maximum: Annotated[int, WholeNumber(1, 1000)] = Field(description="Replicas that it has at most.")
    rate: Amount = Field(
        description="Requests a second that a replica answers within its latency; more than nought.",
        json_schema_extra={"x-unit": "{request}/s"},
    )
    latency: Maybe[Duration] = Field(
        default=None,
        description="Time for the answer to a request to which the rate refers; for people.",
        json_schema_extra={"x-unit": "s"},
    )
    startup: Maybe[Annotated[Real, Field(ge=0, le=86400)]] = Field(
        default=None,
        description="Seconds from the decision to start a replica until it answers requests; 60 where it is absent.",
        json_schema_extra={"x-unit": "s"},
    )
    cool_down: Maybe[Annotated[Real, Field(ge=0, le=86400)]] = Field(
        default=None,
        description="Seconds for which it keeps the replicas that its highest load needed; 300 where it is absent.",
        json_schema_extra={"x-unit": "s"},
    )


class JobRequest(KuayuModel):
    """Job as it is submitted. It does not change afterwards."""

    id: Identifier = Field(description="Name of the job.")
    label: Maybe[Text] = Field(default=None, description="Name for people.")
    kind: Maybe[JobKind] = Field(default=None, description="What it does.")
    account: Maybe[Identifier] = Field(
        default=None, description="Account that what it uses counts for; the account `default` where it is absent."
    )
    workload: Workload = Field(description="What it runs.")
    devices: Elasticity = Field(description="Devices that it asks for.")
    device_kinds: Maybe[Annotated[list[AcceleratorKind], Field(max_length=100)]] = Field(
        default=None, description="Kinds that will do; any where absent."
    )
    memory_per_device: Maybe[Amount] = Field(
        default=None, description="Memory that each device must have.", json_schema_extra={"x-unit": "By"}
    )
    nodes: Maybe[NodeNeed] = Field(default=None, description="What it needs of nodes.")
    links: Maybe[LinkNeed] = Field(default=None, description="What it needs of the links between domains.")
    domains: Maybe[Annotated[list[Identifier], Field(max_length=1000)]] = Field(
        default=None, description="Domains that it may run in; any where absent."
    )
    data: Maybe[Annotated[list[Artefact], Field(max_length=1000)]] = Field(
        default=None, description="Data that it reads."
    )
    checkpoint: Maybe[Uri] = Field(
        default=None,
        description="Where it writes its checkpoints and finds the last one; without it, every attempt begins anew.",
    )
    split_modes: Maybe[Annotated[list[SplitMode], Field(max_length=8)]] = Field(
        default=None, description="How it may be spread over domains; inside one where it is absent."
    )
    sync_period: Maybe[Annotated[int, WholeNumber(1, 9007199254740991)]] = Field(
        default=None, description="Steps between reconciliations where it is spread periodically."
    )
    communication: Maybe[CommunicationProfile] = Field(
        default=None, description="What it sends between domains; one without is not spread."
    )
    duration: Maybe[Estimate] = Field(
        default=None,
        description="Time that it takes on the devices that it asks for, of the reference device.",
        json_schema_extra={"x-unit": "s"},
    )
    training: Maybe[PlannedTraining] = Field(
        default=None, description="What it trains; its duration follows from it where none is stated."
    )
    serving: Maybe[ServingNeed] = Field(
        default=None,
        description="How it answers requests, where it does: it has no run of its own then, but replicas, which are jobs.",
    )
    priority: Maybe[Annotated[int, WholeNumber(-1000, 1000)]] = Field(
        default=None, description="Higher goes first; nought where it is absent."
    )
    deadline: Maybe[Instant] = Field(default=None, description="When it should have ended.")
    budget: Maybe[Amount] = Field(
        default=None,
        description="What it may cost at most, devices and links together.",
        json_schema_extra={"x-unit": "{money}"},
    )
    retries: Maybe[Annotated[int, WholeNumber(0, 1000)]] = Field(
        default=None,
        description=(
            "How often it is started again after it failed; three times where it is absent. What was not its own "
            "fault does not count."
        ),
    )
    grace: Maybe[Annotated[Real, Field(ge=0, le=3600)]] = Field(
        default=None,
        description="Seconds that its processes have to end once they are asked to; ten where it is absent.",
        json_schema_extra={"x-unit": "s"},
    )
    extensions: Maybe[Extensions] = Field(default=None, description="What the standard does not foresee.")


class JobTransition(KuayuModel):
    """Change of the state of a job."""

    state: JobState = Field(description="What it came into.")
    at: Instant = Field(description="When.")
    attempt: Count = Field(description="Which attempt, from one; nought before the first.")
    reason: Text = Field(description="Why.")


class JobResize(KuayuModel):
    """Another number of devices that a job is to go on with."""

    devices: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(
        description="Devices that its next attempt is to have."
    )
    before: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(
        description="Devices that the attempt before it held."
    )
    beneficiary: Maybe[Identifier] = Field(
        default=None, description="Job that waits for what it gives up; absent where it grows."
    )


class ReplicaState(KuayuModel):
    """Replicas of a serving job, and the load that they are there for."""

    decided_at: Instant = Field(description="When this was so.")
    wanted: Count = Field(description="Replicas that it is to have.")
    running: Count = Field(description="Replicas that run.")
    load: Maybe[Amount] = Field(
        default=None,
        description="Requests a second, as they were told last; absent before.",
        json_schema_extra={"x-unit": "{request}/s"},
    )
    predicted: Maybe[Amount] = Field(
        default=None,
        description=(
            "Requests a second that are not expected to be exceeded until a replica that is started now answers; "
            "absent before any load was told."
        ),
        json_schema_extra={"x-unit": "{request}/s"},
    )
    jobs: Annotated[list[Identifier], Field(max_length=2000)] = Field(
        description="Names of its replicas that have not ended, in order."
    )


class AnnouncedLoad(KuayuModel):
    """Requests that are expected within a time, as the owner of a serving job knows beforehand."""

    begins_at: Instant = Field(description="From when.")
    ends_at: Instant = Field(description="Until when.")
    rate: Amount = Field(description="Requests a second at most.", json_schema_extra={"x-unit": "{request}/s"})


class JobLoad(KuayuModel):
    """Requests that come in for a serving job, told by whoever passes them on to its replicas."""

    job: Identifier = Field(description="The serving job.")
    observed_at: Instant = Field(description="When this was so.")
    rate: Amount = Field(
        description="Requests a second that come in, answered or not.", json_schema_extra={"x-unit": "{request}/s"}
    )
    announced: Maybe[Annotated[list[AnnouncedLoad], Field(max_length=1000)]] = Field(
        default=None,
        description="What is expected, in the place of what was announced before; where it is absent, that holds on.",
    )


class JobRecord(JobRequest):
    """Job as the service holds it."""

    state: JobState = Field(description="Where it stands.")
    reason: Text = Field(description="Why it stands so.")
    attempt: Count = Field(description="Which attempt is under way, or was the last; nought before the first.")
    failures: Count = Field(description="Attempts that failed by its own fault.")
    allocation: Maybe[Identifier] = Field(default=None, description="Allocation of the attempt that is under way.")
    placement: Maybe[JobPlacement] = Field(
        default=None, description="What the attempt holds, with its nodes; absent while nothing is held."
    )
    step: Maybe[Count] = Field(default=None, description="Last step that was reported.")
    checkpoint_step: Maybe[Count] = Field(default=None, description="Last step of which a checkpoint was reported.")
    device_hours: Amount = Field(
        description="Hours of reference devices that it has held: devices, each weighted by its compute index, by time.",
        json_schema_extra={"x-unit": "h"},
    )
    submitted_at: Instant = Field(description="When it was submitted.")
    started_at: Maybe[Instant] = Field(default=None, description="When it ran first.")
    ended_at: Maybe[Instant] = Field(
        default=None, description="When it had ended; stated for succeeded, failed and cancelled."
    )
    cancelling: Maybe[Boolean] = Field(default=None, description="Whether it is being called off.")
    resize: Maybe[JobResize] = Field(
        default=None,
        description="How it is resized, from when that was decided until its next attempt has its devices.",
    )
    replica_of: Maybe[Identifier] = Field(
        default=None, description="Serving job of which it is a replica; absent where it was submitted."
    )
    replicas: Maybe[ReplicaState] = Field(
        default=None, description="Replicas of a serving job, from when they were decided on first."
    )
    transitions: Annotated[list[JobTransition], Field(max_length=1000)] = Field(
        description="Its last changes of state, the oldest first, at most a thousand."
    )
    revision: Revision = Field(description="Revision of the jobs at which it last changed.")


class JobPage(KuayuModel):
    """Part of the list of jobs, as it stood at one revision."""

    items: list[JobRecord] = Field(description="In order of identifier.")
    revision: Revision = Field(description="Revision that the whole listing shows.")
    next_cursor: Maybe[Text] = Field(default=None, description="Give it back to go on; absent on the last page.")


class JobDecision(KuayuModel):
    """What was last decided about a job, and why."""

    job: Identifier = Field(description="Which.")
    at: Instant = Field(description="When it was decided.")
    revision: Revision = Field(description="State that it was decided on.")
    digest: Digest = Field(description="Digest of the scheduling state; who has that state gets the same decision.")
    method: SchedulingMethod = Field(description="How it was decided.")
    decision: PlacementDecision = Field(description="What was decided, with its explanation and alternatives.")


class Account(AccountUse):
    """Account as the service holds it."""

    quota: Maybe[Amount] = Field(
        default=None,
        description=(
            "Hours that it may have used; its jobs are held from when it has used so many until it has used less."
            " No limit where it is absent."
        ),
        json_schema_extra={"x-unit": "h"},
    )


class AccountList(KuayuModel):
    """What accounts have used, by which they take turns."""

    at: Instant = Field(description="When this was so.")
    half_life: Duration = Field(
        description="Seconds after which what was used counts half.", json_schema_extra={"x-unit": "s"}
    )
    items: Annotated[list[Account], Field(max_length=10000)] = Field(
        description="In order of identifier: those of which something was set, and others that have used something."
    )


class RunReport(KuayuModel):
    """How a run stands, as its domain says."""

    job: Identifier = Field(description="Which job.")
    attempt: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="Which attempt.")
    domain: Identifier = Field(description="Which domain.")
    state: RunState = Field(description="How it stands.")
    at: Instant = Field(description="Since when.")
    exit_code: Maybe[Annotated[int, WholeNumber(-255, 255)]] = Field(
        default=None, description="Exit code that decided it; negative for a signal."
    )
    own_fault: Maybe[Boolean] = Field(
        default=None,
        description="Whether it failed by what it runs rather than by a node or the domain; it did where this is absent.",
    )
    step: Maybe[Count] = Field(default=None, description="Last step that it has done.")
    checkpoint_step: Maybe[Count] = Field(default=None, description="Last step of which it has written a checkpoint.")
    reason: Maybe[Text] = Field(default=None, description="Why.")


class RunLogLine(KuayuModel):
    """Line that a process of a run has printed."""

    number: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(
        description="Its place among the lines of the run, from one, without gaps."
    )
    rank: Count = Field(description="Which process of the job, from nought.")
    at: Instant = Field(description="When it was read.")
    text: Text = Field(description="The line.")


class RunLogBatch(KuayuModel):
    """Lines of a run, in order."""

    job: Identifier = Field(description="Which job.")
    attempt: Annotated[int, WholeNumber(1, 9007199254740991)] = Field(description="Which attempt.")
    domain: Identifier = Field(description="Which domain.")
    lines: Annotated[list[RunLogLine], Field(min_length=1, max_length=10000)] = Field(description="In order of number.")


class RunLogResult(KuayuModel):
    """What became of a batch of lines."""

    last: Count = Field(
        description="Number of the last line that is kept of this run; the next batch goes on after it."
    )


class JobLogLine(RunLogLine):
    """Line of a job's log, with where it is from."""

    attempt: Count = Field(description="Of which attempt.")
    domain: Identifier = Field(description="From which domain.")


class JobLogPage(KuayuModel):
    """Part of a job's log."""

    items: Annotated[list[JobLogLine], Field(max_length=10000)] = Field(
        description="In the order in which they came; those of a run in order of number."
    )
    next_cursor: Text = Field(description="Give it back to go on after these lines, also where there are none yet.")
    ended: Boolean = Field(description="Whether no further line is to come.")


class Implementation(KuayuModel):
    """What is tested."""

    name: Text = Field(description="Its name.")
    version: Text = Field(description="Its version.")
    vendor: Maybe[Text] = Field(default=None, description="Who makes it.")


class Limits(KuayuModel):
    """What an implementation takes at once."""

    max_body: Count = Field(description="Largest request body.", json_schema_extra={"x-unit": "By"})
    max_batch: Count = Field(description="Most items of a bulk request, at least 1000.")
    max_page: Count = Field(description="Most items of a page.")
    retention: Duration = Field(description="How long samples are kept at least.", json_schema_extra={"x-unit": "s"})
    idempotency: Duration = Field(
        description="How long idempotency keys are remembered.", json_schema_extra={"x-unit": "s"}
    )
    max_resource: Maybe[Count] = Field(
        default=None,
        description=(
            "Most characters of a registered resource as JSON without spaces; bounded by max_body alone where absent."
        ),
    )
    max_resources: Maybe[Count] = Field(default=None, description="Most resources that a tenant can have registered.")
    max_resources_together: Maybe[Count] = Field(
        default=None,
        description="Most characters of a tenant's registered resources together, with versions that are still held.",
    )


class Declaration(KuayuModel):
    """What an implementation declares to conform to."""

    spec_version: Text = Field(description="Version of the standard.")
    implementation: Implementation = Field(description="What it is.")
    profiles: Annotated[list[Profile], Field(min_length=1)] = Field(
        description="Profiles that it implements whole; COM is always among them."
    )
    sub_profiles: Maybe[list[SubProfileName]] = Field(
        default=None,
        description="Parts that it implements of profiles that it does not implement whole; absent where there are none.",
    )
    features: list[Feature] = Field(description="Options that it implements.")
    limits: Limits = Field(description="What it takes at once.")
    durability: Durability = Field(description="Which crash an acknowledged write survives.")
    revision: Revision = Field(description="Where its state stands.")
    now: Instant = Field(description="Its clock.")


class Threshold(KuayuModel):
    """Figure that must be reached."""

    value: Real = Field(description="The figure.")
    comparison: Comparison = Field(description="Which side is right.")
    unit: Text = Field(description="UCUM unit.")


class Requirement(KuayuModel):
    """Normative sentence."""

    id: Identifier = Field(description="Permanent.")
    profile: Profile = Field(description="Profile that it belongs to.")
    level: Level = Field(description="What it is about.")
    modal: Modal = Field(description="Its force.")
    feature: Maybe[Feature] = Field(
        default=None, description="Option that it belongs to; absent where it always holds."
    )
    title_en: Text = Field(description="Short name (English).")
    title_zh: Text = Field(description="Short name (Chinese).")
    text_en: Text = Field(description="The sentence (English).")
    text_zh: Text = Field(description="The sentence (Chinese).")
    threshold: Maybe[Threshold] = Field(default=None, description="Figure that the verdict uses.")
    aim: Maybe[Threshold] = Field(
        default=None, description="Figure that the reference wants to reach; printed, never judged."
    )
    method_en: Text = Field(description="How it is measured (English).")
    method_zh: Text = Field(description="How it is measured (Chinese).")
    revised: Maybe[Instant] = Field(
        default=None,
        description="Since when it is measured like that; verdicts of runs that ended before are by an earlier method.",
    )
    source: Text = Field(description="Clause of the brief or of this standard that it comes from.")
    clause: Identifier = Field(description="Clause of the draft that states it.")
    check: Maybe[Text] = Field(default=None, description="Check that tests it.")
    unchecked_because_en: Maybe[Text] = Field(default=None, description="Where there is no check, why (English).")
    unchecked_because_zh: Maybe[Text] = Field(default=None, description="Where there is no check, why (Chinese).")

    @model_validator(mode="after")
    def unchecked_says_why(self) -> Self:
        """A requirement without a check says why."""
        if self.check is None and (self.unchecked_because_en is None or self.unchecked_because_zh is None):
            raise ValueError("A requirement without a check says why.")
        return self


class ProfileDefinition(KuayuModel):
    """What a profile is."""

    profile: Profile = Field(description="Which.")
    name_en: Text = Field(description="English name.")
    name_zh: Text = Field(description="Chinese name.")
    features: list[Feature] = Field(description="Options within it.")
    mandatory: list[Text] = Field(description="Operations that cannot be left out, as METHOD /path.")


class SubProfileDefinition(KuayuModel):
    """What a sub-profile is."""

    name: SubProfileName = Field(description="Which.")
    profile: Profile = Field(description="Profile that it is a part of.")
    name_en: Text = Field(description="English name.")
    name_zh: Text = Field(description="Chinese name.")
    features: list[Feature] = Field(description="Options within it.")
    mandatory: Annotated[list[Text], Field(min_length=1)] = Field(
        description="Operations that cannot be left out, as METHOD /path, in the order of the profile."
    )
    requirements: Annotated[list[Identifier], Field(min_length=1)] = Field(
        description=(
            "Requirements of the profile that belong to it, in order of the register; all of COM belong to it as well."
        )
    )


class WithdrawnRequirement(KuayuModel):
    """Requirement that is no more; its identifier is not used again."""

    id: Identifier = Field(description="Identifier that it had.")
    profile: Profile = Field(description="Profile that it belonged to.")
    sub_profiles: Maybe[list[SubProfileName]] = Field(
        default=None, description="Sub-profiles that it belonged to; absent where there were none."
    )
    title_en: Text = Field(description="Short name (English).")
    title_zh: Text = Field(description="Short name (Chinese).")
    withdrawn_in: Text = Field(description="First version of the standard without it.")
    replaced_by: list[Identifier] = Field(description="Requirements that replaced it; none where nothing did.")
    because_en: Text = Field(description="Why it was withdrawn (English).")
    because_zh: Text = Field(description="Why it was withdrawn (Chinese).")


class RequirementRegister(KuayuModel):
    """Every normative sentence of the standard."""

    spec_version: Text = Field(description="Version of the standard.")
    profiles: list[ProfileDefinition] = Field(description="In order.")
    sub_profiles: Maybe[list[SubProfileDefinition]] = Field(
        default=None,
        description=(
            "Parts of profiles that can be claimed by themselves, in order; absent in registers of before there "
            "were any."
        ),
    )
    requirements: Annotated[list[Requirement], Field(min_length=1)] = Field(description="In order.")
    withdrawn: Maybe[list[WithdrawnRequirement]] = Field(
        default=None,
        description=(
            "Requirements that are no more, in the order in which they were withdrawn; absent where there are none."
        ),
    )


class TableRow(KuayuModel):
    """Row of a table."""

    cells: list[Text] = Field(description="One for each column.")


class ReportTable(KuayuModel):
    """Figures beside a verdict that are printed, not judged."""

    title: Text = Field(description="What it shows.")
    columns: list[Text] = Field(description="Headings.")
    rows: list[TableRow] = Field(description="In order.")


class PlotSeries(KuayuModel):
    """Points that belong together."""

    label: Text = Field(description="What they are.")
    x: list[Real] = Field(description="Across.")
    y: list[Real] = Field(description="Up; as many as across.")


class ReportPlot(KuayuModel):
    """Picture beside a verdict."""

    title: Text = Field(description="What it shows.")
    kind: PlotKind = Field(description="How it is drawn.")
    x_label: Text = Field(description="What runs across.")
    y_label: Text = Field(description="What runs up.")
    series: list[PlotSeries] = Field(description="In order.")


class Evidence(KuayuModel):
    """What a verdict rests on."""

    episode: Text = Field(description="Part of the transcript.")
    exchange: Maybe[Count] = Field(
        default=None, description="Number of the exchange within it; absent where the whole part is meant."
    )
    expected: Text = Field(description="What the clause asks for.")
    found: Text = Field(description="What was found.")
    request: Maybe[Text] = Field(default=None, description="The request, shortened.")
    answer: Maybe[Text] = Field(default=None, description="The answer, shortened.")


class Part(KuayuModel):
    """Part of a figure, such as one stratum of a sample."""

    label: Text = Field(description="Which part.")
    estimate: Real = Field(description="Its figure.")
    bound: Maybe[Real] = Field(default=None, description="Its one-sided bound.")
    n: Count = Field(description="Observations in it.")


class RequirementResult(KuayuModel):
    """What the suite found for one requirement."""

    requirement: Identifier = Field(description="Which.")
    verdict: Verdict = Field(description="What was found.")
    required: Boolean = Field(description="Whether the exit code counts it.")
    reason: Maybe[Text] = Field(default=None, description="Why it is so.")
    hint: Maybe[Text] = Field(default=None, description="What to do about it.")
    estimate: Maybe[Real] = Field(default=None, description="Figure that was found.")
    bound: Maybe[Real] = Field(default=None, description="One-sided 95 % bound of the figure, on the side that counts.")
    threshold: Maybe[Threshold] = Field(default=None, description="Figure that was required.")
    aim: Maybe[Threshold] = Field(default=None, description="Figure that is aimed at; not judged.")
    aim_met: Maybe[Boolean] = Field(default=None, description="Whether it was reached.")
    n: Maybe[Count] = Field(default=None, description="Observations.")
    unit: Maybe[Text] = Field(default=None, description="UCUM unit.")
    estimator: Maybe[Text] = Field(default=None, description="How the figure and its bound were computed.")
    replay: Maybe[Replay] = Field(default=None, description="How it can be judged again.")
    parts: list[Part] = Field(description="Parts of the figure.")
    tables: Maybe[list[ReportTable]] = Field(default=None, description="Further figures.")
    plots: Maybe[list[ReportPlot]] = Field(default=None, description="Pictures.")
    evidence: list[Evidence] = Field(description="What it rests on.")
    duration: Maybe[Duration] = Field(
        default=None, description="Time that the check took.", json_schema_extra={"x-unit": "s"}
    )


class Environment(KuayuModel):
    """Where the suite ran."""

    python: Text = Field(description="Version of Python.")
    platform: Text = Field(description="Operating system and processor.")
    processors: Count = Field(description="Logical processors.")
    packages: list[Text] = Field(description="Libraries that figures depend on, with versions.")


class Summary(KuayuModel):
    """Verdicts counted."""

    verdict: Verdict = Field(description="Which.")
    count: Count = Field(description="How many.")


class DataTable(KuayuModel):
    """Table of measurements that a run used."""

    name: Identifier = Field(description="Its name.")
    digest: Digest = Field(description="Digest of what it holds.")


class Resumption(KuayuModel):
    """Where a run that had been broken off was gone on with."""

    at: Instant = Field(description="When it was gone on with.")
    broken_off_at: Instant = Field(description="When the last answer before had come.")
    again: list[Text] = Field(description="Checks of which something was asked again that had been asked before.")
    across_epochs: Maybe[Boolean] = Field(
        default=None,
        description=(
            "Whether the target had lost state meanwhile, so that it was in another epoch; absent where it was not."
        ),
    )


class Origin(KuayuModel):
    """Where a run comes from, as it says of itself."""

    kind: OriginKind = Field(description="Who chose the nonce and who ran the suite.")
    key: Maybe[Text] = Field(
        default=None,
        description=(
            "Identifier of the key of whoever issued the challenge, or of the witness: SHA-256 of its public part"
            " (DER)."
        ),
    )
    witness: Maybe[Text] = Field(default=None, description="Name that the witness gives himself.")
    issued_at: Maybe[Instant] = Field(default=None, description="When the challenge was issued.")
    expires_at: Maybe[Instant] = Field(default=None, description="Until when a run with it could begin.")


class ConformanceReport(KuayuModel):
    """What a run of the suite found."""

    spec_version: Text = Field(description="Version of the standard.")
    suite_version: Text = Field(description="Version of the suite.")
    target: Text = Field(description="Where the implementation was, without credentials.")
    declaration: Maybe[Declaration] = Field(default=None, description="What it declared.")
    run_level: RunLevel = Field(description="How much was measured.")
    profiles: list[Profile] = Field(description="Profiles that were asked for.")
    sub_profiles: Maybe[list[SubProfileName]] = Field(
        default=None, description="Sub-profiles that were asked for; absent where there were none."
    )
    selection: list[Identifier] = Field(description="Requirements that were asked for; empty for all.")
    nonce: Text = Field(description="Seed of everything that the suite chose.")
    started_at: Instant = Field(description="When the run began.")
    finished_at: Instant = Field(description="When it ended.")
    called_off: Maybe[Text] = Field(
        default=None, description="Why the run ended before all checks had; absent where it ran through."
    )
    resumptions: Maybe[list[Resumption]] = Field(
        default=None, description="Where it was gone on with after it had been broken off; absent where it ran through."
    )
    origin: Maybe[Origin] = Field(
        default=None, description="Where the run comes from; absent where it was made before runs said so."
    )
    environment: Environment = Field(description="Where the suite ran.")
    data: Maybe[list[DataTable]] = Field(default=None, description="Tables beyond those that come with the suite.")
    results: list[RequirementResult] = Field(description="In order of the register.")
    summary: list[Summary] = Field(description="Verdicts counted.")
    exit_code: Count = Field(
        description=(
            "0 all required pass; 1 any fail; 2 no fail, but something required is inconclusive or not testable, "
            "or neither a profile nor a sub-profile is declared; 3 the suite failed."
        )
    )
    transcript: Digest = Field(description="Digest of the bytes of the transcript.")


class ProfileClaim(KuayuModel):
    """What a report comes to for one profile or sub-profile, over all of its requirements and those of COM."""

    profile: ClaimName = Field(description="Which.")
    outcome: ClaimOutcome = Field(description="What becomes of it.")
    judged: Count = Field(description="Requirements that count.")
    passed: Count = Field(description="How many of them were passed.")
    failed: Count = Field(description="How many of them were not met.")
    lacking: list[Identifier] = Field(description="Requirements that were left out.")


class SubmittedFile(KuayuModel):
    """File of a submission."""

    name: Identifier = Field(description="Its name in the folder of the submission.")
    digest: Digest = Field(description="Digest of its bytes.")


class Submission(KuayuModel):
    """What comes with a report that a vendor hands in. All of it but name and contact follows from the report."""

    spec_version: Text = Field(description="Version of the standard.")
    suite_version: Text = Field(
        description="Version of the suite by which the report was made and can be judged again."
    )
    name: Identifier = Field(
        description=(
            "Name of the submission, unique among all of them: small letters of ASCII and digits, joined by hyphens."
        )
    )
    implementation: Implementation = Field(description="What was tested, as it declared itself.")
    contact: Text = Field(description="Who answers questions about it.")
    run_level: RunLevel = Field(description="How much was measured.")
    claims: Annotated[list[ProfileClaim], Field(min_length=1)] = Field(
        description="Each declared profile and sub-profile that was asked for, in order of the register."
    )
    nonce: Text = Field(description="Seed of everything that the suite chose.")
    started_at: Instant = Field(description="When the run began.")
    finished_at: Instant = Field(description="When it ended.")
    submitted_at: Instant = Field(description="When the submission was made of the report.")
    made_by: Text = Field(description="Command by which the run was made, without credentials.")
    repeat_by: Annotated[list[Text], Field(min_length=1)] = Field(
        description="Commands by which it is judged again and made again, in order."
    )
    files: Annotated[list[SubmittedFile], Field(min_length=1)] = Field(description="All other files of the folder.")
