"""What is left of samples that are older than the retention."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "rollup",
        sa.Column("subject_no", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("measure", NAME, primary_key=True),
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("packed", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop the table, and everything in it."""
    op.drop_table("rollup")
