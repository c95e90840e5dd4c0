"""What accounts have used. It is counted from here on: of jobs that ended before, nothing is."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "account",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("used", sa.Double, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop it, and the half-life that it was counted with."""
    op.drop_table("account")
    op.execute("DELETE FROM meta WHERE name = 'half-life of use'")
