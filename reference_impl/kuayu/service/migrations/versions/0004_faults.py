"""Faults, what domains are asked to do because of them, and which nodes are watched."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("faults", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "watched",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("node", NAME, primary_key=True),
    )
    op.create_table(
        "fault",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("valid_from", sa.BigInteger, primary_key=True),
        sa.Column("valid_to", sa.BigInteger),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("domain", NAME),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("cleared", sa.BigInteger),
    )
    op.create_index("fault_changes", "fault", ["tenant", "valid_from"])
    op.create_index("fault_gone", "fault", ["tenant", "valid_to"])
    _create_partial_index("fault_open", "fault", ["tenant", "subject"], "cleared IS NULL AND valid_to IS NULL")
    _create_partial_index("fault_cleared", "fault", ["cleared"], "cleared IS NOT NULL AND valid_to IS NULL")
    op.create_table(
        "response",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("action", NAME, primary_key=True),
        sa.Column("fault", NAME, nullable=False),
        sa.Column("domain", NAME, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("open_since", sa.BigInteger),
        sa.Column("outcome", NAME),
    )
    op.create_index("response_fault", "response", ["tenant", "fault"])
    _create_partial_index("response_open", "response", ["tenant", "domain", "open_since"], "open_since IS NOT NULL")


def downgrade() -> None:
    """Drop the tables, and everything in them."""
    op.drop_table("response")
    op.drop_table("fault")
    op.drop_table("watched")
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("faults")


def _create_partial_index(name: str, table: str, columns: list[str], condition: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(condition), postgresql_where=sa.text(condition))
