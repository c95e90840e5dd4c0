"""Allocations by job, since those of one job wait for each other."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")

KEY = ("tenant", "id", "valid_from")


def upgrade() -> None:
    """Give every allocation its job, which so far stood in its body alone."""
    with op.batch_alter_table("allocation") as allocation:
        allocation.add_column(sa.Column("job", NAME, nullable=False, server_default=""))
    _fill()
    with op.batch_alter_table("allocation") as allocation:
        allocation.alter_column("job", server_default=None)
    valid = sa.text("valid_to IS NULL")
    op.create_index("allocation_job", "allocation", ["tenant", "job"], sqlite_where=valid, postgresql_where=valid)


def downgrade() -> None:
    """Take it away again."""
    op.drop_index("allocation_job", "allocation")
    with op.batch_alter_table("allocation") as allocation:
        allocation.drop_column("job")


def _fill() -> None:
    names = [*KEY, "body", "job"]
    table = sa.table("allocation", *map(sa.column, names))
    connection = op.get_bind()
    for row in connection.execute(sa.select(table)).mappings().all():
        this = sa.and_(*(table.c[name] == row[name] for name in KEY))
        connection.execute(sa.update(table).where(this).values(job=json.loads(row["body"])["job"]))
