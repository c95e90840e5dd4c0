"""Jobs, their runs, what domains are asked to do for them, and what they print."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("jobs", sa.BigInteger, nullable=False, server_default="0"))
    _create_jobs()
    _create_runs()
    _create_logs()


def downgrade() -> None:
    """Drop the tables, and everything in them."""
    own = "FROM job WHERE job.tenant = tenant.name"
    op.execute(
        f"UPDATE tenant SET resources = resources - (SELECT count(*) {own} AND valid_to IS NULL),"  # noqa: S608 - no input
        f" characters = characters - (SELECT coalesce(sum(length(body)), 0) {own})"
    )
    for table in ("job_decision", "run_log", "job_log", "job_action", "run", "job"):
        op.drop_table(table)
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("jobs")


def _create_jobs() -> None:
    op.create_table(
        "job",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("valid_from", sa.BigInteger, primary_key=True),
        sa.Column("valid_to", sa.BigInteger),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("standing", sa.Text, nullable=False),
        sa.Column("allocation", NAME),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("deadline", sa.BigInteger),
        sa.Column("submitted", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.BigInteger),
        sa.Column("updated", sa.BigInteger, nullable=False),
    )
    op.create_index("job_changes", "job", ["tenant", "valid_from"])
    op.create_index("job_gone", "job", ["tenant", "valid_to"])
    _create_partial_index("job_state", "job", ["tenant", "state", "submitted"], "valid_to IS NULL")
    _create_partial_index(
        "job_allocation", "job", ["tenant", "allocation"], "allocation IS NOT NULL AND valid_to IS NULL"
    )
    _create_partial_index("job_deadline", "job", ["deadline"], "deadline IS NOT NULL AND valid_to IS NULL")
    _create_partial_index("job_ended", "job", ["ended"], "ended IS NOT NULL AND valid_to IS NULL")
    op.create_table(
        "job_decision",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("job", NAME, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )


def _create_runs() -> None:
    op.create_table(
        "run",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("job", NAME, primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("domain", NAME, primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("state", NAME),
        sa.Column("report", sa.Text),
        sa.Column("over", sa.Boolean, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("characters", sa.BigInteger, nullable=False, server_default="0"),
    )
    op.create_table(
        "job_action",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("action", NAME, primary_key=True),
        sa.Column("job", NAME, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("domain", NAME, nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("open_since", sa.BigInteger),
        sa.Column("outcome", NAME),
    )
    op.create_index("job_action_job", "job_action", ["tenant", "job", "attempt"])
    _create_partial_index("job_action_open", "job_action", ["tenant", "domain", "open_since"], "open_since IS NOT NULL")


def _create_logs() -> None:
    op.create_table(
        "job_log",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("job", NAME, primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "run_log",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("job", NAME, primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("domain", NAME, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("rank", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("run_log_run", "run_log", ["tenant", "job", "attempt", "domain", "number"])


def _create_partial_index(name: str, table: str, columns: list[str], condition: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(condition), postgresql_where=sa.text(condition))
