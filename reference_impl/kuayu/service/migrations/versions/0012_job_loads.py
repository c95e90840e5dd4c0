"""Load of serving jobs, as it is told."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "job_load",
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("job", NAME, primary_key=True),
        sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("rate", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("job_load")
