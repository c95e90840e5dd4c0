"""Indexes of versions that went hold those alone.

Held with those that stand, an index of a tenant and of null answers as well as the primary key does, as far as SQLite
knows before it has seen the data: who was looked for by name was then sought among all that stand.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TABLES = ("resource", "allocation", "fault", "job")


def upgrade() -> None:
    """Leave out of them what stands."""
    gone = sa.text("valid_to IS NOT NULL")
    for table in TABLES:
        op.drop_index(f"{table}_gone", table_name=table)
        op.create_index(f"{table}_gone", table, ["tenant", "valid_to"], sqlite_where=gone, postgresql_where=gone)


def downgrade() -> None:
    """Take it in again."""
    for table in TABLES:
        op.drop_index(f"{table}_gone", table_name=table)
        op.create_index(f"{table}_gone", table, ["tenant", "valid_to"])
