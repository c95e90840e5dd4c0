"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")
SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")

MEASURES = {
    "peak_matrix_throughput": sa.Text,
    "sustained_matrix_throughput": sa.Text,
    "matrix_pipe_activity": sa.Double,
    "energy_efficiency": sa.Double,
    "power": sa.Double,
    "accelerator_memory_capacity": sa.Double,
    "accelerator_memory_used": sa.Double,
    "accelerator_memory_bandwidth": sa.Double,
    "memory_bandwidth_utilisation": sa.Double,
    "storage_throughput": sa.Double,
    "storage_read_flow": sa.Double,
    "storage_write_flow": sa.Double,
    "scale_out_bandwidth": sa.Double,
    "scale_out_transmit_flow": sa.Double,
    "scale_out_receive_flow": sa.Double,
    "inter_domain_bandwidth": sa.Double,
    "round_trip_time": sa.Double,
    "jitter": sa.Double,
    "packet_loss": sa.Double,
    "accelerator_utilisation": sa.Double,
    "health_state": sa.Text,
    "health_score": sa.Double,
    "faults": sa.Double,
    "allocatable_share": sa.Double,
    "queue_pressure": sa.Double,
}
LASTING = (
    "peak_matrix_throughput",
    "sustained_matrix_throughput",
    "energy_efficiency",
    "accelerator_memory_capacity",
    "accelerator_memory_bandwidth",
    "storage_throughput",
    "scale_out_bandwidth",
)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "meta",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "tenant",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "resource",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("kind", NAME, primary_key=True),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("valid_from", sa.BigInteger, primary_key=True),
        sa.Column("valid_to", sa.BigInteger),
        sa.Column("parent", NAME),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("updated", sa.BigInteger, nullable=False),
    )
    op.create_index("resource_gone", "resource", ["tenant", "valid_to"])
    op.create_table(
        "reference",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("kind", NAME, primary_key=True),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("target_kind", NAME, primary_key=True),
        sa.Column("target", NAME, primary_key=True),
    )
    op.create_index("reference_target", "reference", ["tenant", "target_kind", "target"])
    op.create_table(
        "subject",
        sa.Column("no", SERIAL, primary_key=True, autoincrement=True),
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("device", NAME, nullable=False),
    )
    op.create_index("subject_name", "subject", ["tenant", "kind", "id", "device"], unique=True)
    op.create_table(
        "sample",
        sa.Column("subject_no", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("observed", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("received", sa.BigInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("late", sa.Text),
        *(sa.Column(name, kind) for name, kind in MEASURES.items()),
        sqlite_with_rowid=False,
    )
    for name in LASTING:
        condition = sa.text(f"{name} IS NOT NULL")
        op.create_index(
            f"sample_{name}",
            "sample",
            ["subject_no", "observed"],
            sqlite_where=condition,
            postgresql_where=condition,
        )
    op.create_table(
        "counter",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("node", NAME, primary_key=True),
        sa.Column("exporter", NAME, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_table(
        "answer",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("operation", NAME, primary_key=True),
        sa.Column("key", NAME, primary_key=True),
        sa.Column("digest", NAME, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
    )
    op.create_index("answer_created", "answer", ["created"])


def downgrade() -> None:
    """Drop the tables, and everything in them."""
    for name in ("answer", "counter", "sample", "subject", "reference", "resource", "tenant", "meta"):
        op.drop_table(name)
