"""Tables.

``resource`` keeps every version of every resource with the revisions between which it was valid, so that a listing can
be shown as it stood at a revision. ``sample`` has one wide row for each subject and instant, one column for each
measure. What each column means for whoever reads the database by hand stands in its comment.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)

from kuayu_schemas.models import Measures

PRECISION_MEASURES = frozenset({"peak_matrix_throughput", "sustained_matrix_throughput"})
"""Measures with a number for each precision; they are kept as JSON text."""

STATE_MEASURES = frozenset({"health_state"})
"""Measures that are the name of a state."""

MEASURES = tuple(Measures.model_fields)
"""All measures, in the order of the columns."""

SCALAR_MEASURES = tuple(name for name in MEASURES if name not in PRECISION_MEASURES | STATE_MEASURES)
"""Measures that are one number."""

LASTING_MEASURES = (
    "peak_matrix_throughput",
    "sustained_matrix_throughput",
    "energy_efficiency",
    "accelerator_memory_capacity",
    "accelerator_memory_bandwidth",
    "storage_throughput",
    "scale_out_bandwidth",
)
"""Measures that may be observed long before they are asked for. An index on the few rows that have one finds them."""

metadata = MetaData()

_Name = String().with_variant(String(collation="C"), "postgresql")
_Serial = BigInteger().with_variant(Integer, "sqlite")

meta = Table(
    "meta",
    metadata,
    Column("name", _Name, primary_key=True),
    Column("value", Text, nullable=False),
    comment="Facts about the database as a whole.",
)

tenant = Table(
    "tenant",
    metadata,
    Column("name", _Name, primary_key=True),
    Column("number", BigInteger, nullable=False, comment="Changes of registered resources so far."),
    Column("allocations", BigInteger, nullable=False, server_default="0", comment="Changes of allocations so far."),
    Column("faults", BigInteger, nullable=False, server_default="0", comment="Changes of faults so far."),
    Column("jobs", BigInteger, nullable=False, server_default="0", comment="Changes of jobs so far."),
    Column(
        "resources", BigInteger, nullable=False, server_default="0", comment="Resources, allocations and jobs it has."
    ),
    Column("characters", BigInteger, nullable=False, server_default="0", comment="Of all their versions, as JSON."),
)

_gone = text("valid_to IS NOT NULL")
"""Versions that stand are left out: SQLite would look for a name among all of them, by tenant and null."""

resource = Table(
    "resource",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("kind", _Name, primary_key=True),
    Column("id", _Name, primary_key=True),
    Column("valid_from", BigInteger, primary_key=True, comment="Revision at which this version came."),
    Column("valid_to", BigInteger, comment="Revision at which it went; null while it is valid."),
    Column("parent", _Name, comment="Domain of a node."),
    Column("body", Text, nullable=False, comment="The resource as it was sent, JSON."),
    Column("updated", BigInteger, nullable=False, comment="Milliseconds since 1970."),
)
Index("resource_gone", resource.c.tenant, resource.c.valid_to, sqlite_where=_gone, postgresql_where=_gone)

reference = Table(
    "reference",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("kind", _Name, primary_key=True),
    Column("id", _Name, primary_key=True),
    Column("target_kind", _Name, primary_key=True),
    Column("target", _Name, primary_key=True),
    comment="Which valid resource names which other.",
)
Index("reference_target", reference.c.tenant, reference.c.target_kind, reference.c.target)

subject = Table(
    "subject",
    metadata,
    Column("no", _Serial, primary_key=True, autoincrement=True),
    Column("tenant", _Name, nullable=False),
    Column("kind", _Name, nullable=False),
    Column("id", _Name, nullable=False),
    Column("device", _Name, nullable=False, comment="Empty unless the kind is device."),
    comment="Short numbers for what samples are about. A number outlives its resource.",
)
Index("subject_name", subject.c.tenant, subject.c.kind, subject.c.id, subject.c.device, unique=True)


def _measure_type(name: str) -> Text | Double[float]:
    return Text() if name in PRECISION_MEASURES | STATE_MEASURES else Double()


sample = Table(
    "sample",
    metadata,
    Column("subject_no", BigInteger, primary_key=True, autoincrement=False),
    Column("observed", BigInteger, primary_key=True, autoincrement=False, comment="Milliseconds since 1970."),
    Column("received", BigInteger, nullable=False, comment="Milliseconds since 1970."),
    Column("sequence", BigInteger, nullable=False, comment="Commit that first brought this row."),
    Column("late", Text, comment="MEASURE=SEQUENCE for each measure that a later commit added."),
    *(Column(name, _measure_type(name)) for name in MEASURES),
    sqlite_with_rowid=False,
)
for _name in LASTING_MEASURES:
    _condition = text(f"{_name} IS NOT NULL")
    Index(
        f"sample_{_name}",
        sample.c.subject_no,
        sample.c.observed,
        sqlite_where=_condition,
        postgresql_where=_condition,
    )

rollup = Table(
    "rollup",
    metadata,
    Column("subject_no", BigInteger, primary_key=True, autoincrement=False),
    Column("measure", _Name, primary_key=True),
    Column("start", BigInteger, primary_key=True, autoincrement=False, comment="Milliseconds since 1970."),
    Column("packed", LargeBinary, nullable=False, comment="Count, mean, least and greatest of each step, packed."),
    comment="What is left of samples that are older than the retention, in blocks of three hours.",
    sqlite_with_rowid=False,
)

counter = Table(
    "counter",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("node", _Name, primary_key=True),
    Column("exporter", _Name, primary_key=True),
    Column("state", Text, nullable=False, comment="Instant and value of each counter on the newest page, JSON."),
)

answer = Table(
    "answer",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("operation", _Name, primary_key=True),
    Column("key", _Name, primary_key=True),
    Column("digest", _Name, nullable=False, comment="SHA-256 of the body, hexadecimal."),
    Column("status", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False, comment="Milliseconds since 1970."),
    comment="Answers given under idempotency keys.",
)
Index("answer_created", answer.c.created)

allocation = Table(
    "allocation",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("id", _Name, primary_key=True),
    Column("valid_from", BigInteger, primary_key=True, comment="Change of allocations by which this version came."),
    Column("valid_to", BigInteger, comment="Change by which it went; null while it is valid."),
    Column("job", _Name, nullable=False, comment="For which job."),
    Column("body", Text, nullable=False, comment="The allocation as it was sent, JSON."),
    Column("phase", _Name, nullable=False),
    Column("attempt", Integer, nullable=False, comment="0 for the placement, then its alternatives in turn."),
    Column("withdrawn", Boolean, nullable=False, comment="Whether nobody wants it any more."),
    Column("reason", Text),
    Column("held", Text, comment="What is held, JSON."),
    Column("deadline", BigInteger, comment="Until when answers are waited for, in milliseconds since 1970."),
    Column("created", BigInteger, nullable=False, comment="Milliseconds since 1970."),
    Column("updated", BigInteger, nullable=False, comment="Milliseconds since 1970."),
    Column("lease", Double, comment="Seconds for which domains may hold it unheard; null for any time."),
    comment="Every version of every allocation, like resource.",
)
Index("allocation_gone", allocation.c.tenant, allocation.c.valid_to, sqlite_where=_gone, postgresql_where=_gone)
_waited_for = text("deadline IS NOT NULL AND valid_to IS NULL")
Index("allocation_deadline", allocation.c.deadline, sqlite_where=_waited_for, postgresql_where=_waited_for)
_valid = text("valid_to IS NULL")
Index("allocation_valid", allocation.c.phase, allocation.c.updated, sqlite_where=_valid, postgresql_where=_valid)
Index("allocation_job", allocation.c.tenant, allocation.c.job, sqlite_where=_valid, postgresql_where=_valid)
_leased = text("lease IS NOT NULL AND valid_to IS NULL")
Index("allocation_lease", allocation.c.phase, sqlite_where=_leased, postgresql_where=_leased)

step = Table(
    "step",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("action", _Name, primary_key=True),
    Column("phase", _Name, primary_key=True),
    Column("allocation", _Name, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("domain", _Name, nullable=False),
    Column("body", Text, nullable=False, comment="The action as the domain is shown it, JSON."),
    Column("open_since", BigInteger, comment="Commit by which it was asked; null unless it is shown."),
    Column("outcome", _Name, comment="How it ended; null until the domain has answered."),
    Column("nodes", Text, comment="Nodes that the domain named, JSON."),
    comment="What domains are asked to do for allocations.",
)
Index("step_allocation", step.c.tenant, step.c.allocation)
_shown = text("open_since IS NOT NULL")
Index("step_open", step.c.tenant, step.c.domain, step.c.open_since, sqlite_where=_shown, postgresql_where=_shown)

watched = Table(
    "watched",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("node", _Name, primary_key=True),
    comment="Registered nodes that have sent a heartbeat.",
)

fault = Table(
    "fault",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("id", _Name, primary_key=True),
    Column("valid_from", BigInteger, primary_key=True, comment="Change of faults by which this version came."),
    Column("valid_to", BigInteger, comment="Change by which it went; null while it is valid."),
    Column("subject", Text, nullable=False, comment="What it is about; one fault at most is open about it."),
    Column("state", _Name, nullable=False),
    Column("domain", _Name),
    Column("body", Text, nullable=False, comment="The fault as it is shown but for its revision, JSON."),
    Column("cleared", BigInteger, comment="When it was over, in milliseconds since 1970; null while it is open."),
    comment="Every version of every fault, like resource.",
)
Index("fault_changes", fault.c.tenant, fault.c.valid_from)
Index("fault_gone", fault.c.tenant, fault.c.valid_to, sqlite_where=_gone, postgresql_where=_gone)
_lasts = text("cleared IS NULL AND valid_to IS NULL")
Index("fault_open", fault.c.tenant, fault.c.subject, sqlite_where=_lasts, postgresql_where=_lasts)
_over = text("cleared IS NOT NULL AND valid_to IS NULL")
Index("fault_cleared", fault.c.cleared, sqlite_where=_over, postgresql_where=_over)

response = Table(
    "response",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("action", _Name, primary_key=True),
    Column("fault", _Name, nullable=False),
    Column("domain", _Name, nullable=False),
    Column("body", Text, nullable=False, comment="The action as the domain is shown it, JSON."),
    Column("open_since", BigInteger, comment="Commit by which it was asked; null unless it is shown."),
    Column("outcome", _Name, comment="How it ended; null until the domain has answered."),
    comment="What domains are asked to do because of faults.",
)
Index("response_fault", response.c.tenant, response.c.fault)
Index(
    "response_open",
    response.c.tenant,
    response.c.domain,
    response.c.open_since,
    sqlite_where=_shown,
    postgresql_where=_shown,
)

job = Table(
    "job",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("id", _Name, primary_key=True),
    Column("valid_from", BigInteger, primary_key=True, comment="Change of jobs by which this version came."),
    Column("valid_to", BigInteger, comment="Change by which it went; null while it is valid."),
    Column("body", Text, nullable=False, comment="The job as it was submitted, JSON."),
    Column("state", _Name, nullable=False),
    Column("standing", Text, nullable=False, comment="What else is known of it, JSON."),
    Column("allocation", _Name, comment="Allocation of the attempt that is under way."),
    Column("attempt", Integer, nullable=False, comment="Attempt whose runs are under way; 0 where none are."),
    Column("deadline", BigInteger, comment="Until when its runs are to run, in milliseconds since 1970."),
    Column("submitted", BigInteger, nullable=False, comment="Milliseconds since 1970."),
    Column("ended", BigInteger, comment="When it had ended, in milliseconds since 1970; null before."),
    Column("updated", BigInteger, nullable=False, comment="Milliseconds since 1970."),
    comment="Every version of every job, like resource.",
)
Index("job_changes", job.c.tenant, job.c.valid_from)
Index("job_gone", job.c.tenant, job.c.valid_to, sqlite_where=_gone, postgresql_where=_gone)
Index("job_state", job.c.tenant, job.c.state, job.c.submitted, sqlite_where=_valid, postgresql_where=_valid)
_placed = text("allocation IS NOT NULL AND valid_to IS NULL")
Index("job_allocation", job.c.tenant, job.c.allocation, sqlite_where=_placed, postgresql_where=_placed)
Index("job_deadline", job.c.deadline, sqlite_where=_waited_for, postgresql_where=_waited_for)
_ended = text("ended IS NOT NULL AND valid_to IS NULL")
Index("job_ended", job.c.ended, sqlite_where=_ended, postgresql_where=_ended)

run = Table(
    "run",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("job", _Name, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("domain", _Name, primary_key=True),
    Column("position", Integer, nullable=False, comment="Its place among the runs of the attempt, in order of ranks."),
    Column("state", _Name, comment="As the domain reported it last; null before the first report."),
    Column("report", Text, comment="The last report, JSON."),
    Column("over", Boolean, nullable=False, comment="Whether nothing of it runs or will run."),
    Column("last", BigInteger, nullable=False, server_default="0", comment="Number of its last line that was kept."),
    Column("characters", BigInteger, nullable=False, server_default="0", comment="Of its lines that are kept."),
    comment="What a domain does for an attempt of a job.",
)

job_action = Table(
    "job_action",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("action", _Name, primary_key=True),
    Column("job", _Name, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("domain", _Name, nullable=False),
    Column("kind", _Name, nullable=False, comment="start or stop."),
    Column("body", Text, nullable=False, comment="The action as the domain is shown it, JSON."),
    Column("open_since", BigInteger, comment="Commit by which it was asked; null unless it is shown."),
    Column("outcome", _Name, comment="How it ended; null until the domain has answered."),
    comment="What domains are asked to do for runs of jobs.",
)
Index("job_action_job", job_action.c.tenant, job_action.c.job, job_action.c.attempt)
Index(
    "job_action_open",
    job_action.c.tenant,
    job_action.c.domain,
    job_action.c.open_since,
    sqlite_where=_shown,
    postgresql_where=_shown,
)

account = Table(
    "account",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("id", _Name, primary_key=True),
    Column("used", Double, nullable=False, comment="Hours of reference devices, of attempts that are over."),
    Column("at", BigInteger, nullable=False, comment="When that was so, in milliseconds since 1970."),
    comment="What accounts have used; it counts half after each half-life, which is in meta.",
)

job_log = Table(
    "job_log",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("job", _Name, primary_key=True),
    Column("position", BigInteger, nullable=False, comment="Lines of all its runs that have come so far."),
    comment="How far the log of a job has got.",
)

run_log = Table(
    "run_log",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("job", _Name, primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False, comment="In order of arrival, from 1."),
    Column("attempt", Integer, nullable=False),
    Column("domain", _Name, nullable=False),
    Column("number", BigInteger, nullable=False, comment="Its place among the lines of the run, from 1."),
    Column("rank", BigInteger, nullable=False),
    Column("at", Text, nullable=False, comment="When it was read, as the domain wrote it."),
    Column("text", Text, nullable=False),
    comment="What processes of jobs have printed, line by line.",
    sqlite_with_rowid=False,
)
Index("run_log_run", run_log.c.tenant, run_log.c.job, run_log.c.attempt, run_log.c.domain, run_log.c.number)

job_decision = Table(
    "job_decision",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("job", _Name, primary_key=True),
    Column("body", Text, nullable=False, comment="What was decided last about the job, JSON."),
)

job_load = Table(
    "job_load",
    metadata,
    Column("tenant", _Name, primary_key=True),
    Column("job", _Name, primary_key=True),
    Column("at", BigInteger, primary_key=True, autoincrement=False, comment="Seconds since 1970."),
    Column("rate", Double, nullable=False, comment="Requests a second, the most that were told of that second."),
    Column("last_at", BigInteger, nullable=False, server_default="0", comment="When that second was told of last."),
    Column("last_rate", Double, nullable=False, server_default="0", comment="Requests a second, as they were then."),
    comment="Load of serving jobs, as it was told.",
    sqlite_with_rowid=False,
)
