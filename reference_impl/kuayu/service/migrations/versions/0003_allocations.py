"""Allocations, and what domains are asked to do for them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("allocations", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "allocation",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("valid_from", sa.BigInteger, primary_key=True),
        sa.Column("valid_to", sa.BigInteger),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("phase", NAME, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("withdrawn", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("held", sa.Text),
        sa.Column("deadline", sa.BigInteger),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("updated", sa.BigInteger, nullable=False),
    )
    op.create_index("allocation_gone", "allocation", ["tenant", "valid_to"])
    waited_for = "deadline IS NOT NULL AND valid_to IS NULL"
    _create_partial_index("allocation_deadline", "allocation", ["deadline"], waited_for)
    _create_partial_index("allocation_valid", "allocation", ["phase", "updated"], "valid_to IS NULL")
    op.create_table(
        "step",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("action", NAME, primary_key=True),
        sa.Column("phase", NAME, primary_key=True),
        sa.Column("allocation", NAME, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("domain", NAME, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("open_since", sa.BigInteger),
        sa.Column("outcome", NAME),
        sa.Column("nodes", sa.Text),
    )
    op.create_index("step_allocation", "step", ["tenant", "allocation"])
    _create_partial_index("step_open", "step", ["tenant", "domain", "open_since"], "open_since IS NOT NULL")


def downgrade() -> None:
    """Drop the tables, and everything in them."""
    op.drop_table("step")
    op.drop_table("allocation")
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("allocations")


def _create_partial_index(name: str, table: str, columns: list[str], condition: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(condition), postgresql_where=sa.text(condition))
