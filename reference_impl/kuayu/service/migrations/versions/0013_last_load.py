"""What was told last of a second of load, beside the most of it."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; of seconds from before, the most stands for what was told last."""
    with op.batch_alter_table("job_load") as load:
        load.add_column(sa.Column("last_at", sa.BigInteger, nullable=False, server_default="0"))
        load.add_column(sa.Column("last_rate", sa.Double, nullable=False, server_default="0"))
    op.execute(sa.text("UPDATE job_load SET last_at = at * 1000, last_rate = rate"))


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("job_load") as load:
        load.drop_column("last_rate")
        load.drop_column("last_at")
