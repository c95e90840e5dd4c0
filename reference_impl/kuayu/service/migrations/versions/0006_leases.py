"""Allocations by lease, since the service looks after those that have one."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the lease; there were none before."""
    with op.batch_alter_table("allocation") as allocation:
        allocation.add_column(sa.Column("lease", sa.Double))
    leased = sa.text("lease IS NOT NULL AND valid_to IS NULL")
    op.create_index("allocation_lease", "allocation", ["phase"], sqlite_where=leased, postgresql_where=leased)


def downgrade() -> None:
    """Take it away again."""
    op.drop_index("allocation_lease", "allocation")
    with op.batch_alter_table("allocation") as allocation:
        allocation.drop_column("lease")
