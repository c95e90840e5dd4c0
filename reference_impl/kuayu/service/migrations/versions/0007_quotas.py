"""How much each tenant has registered, since that is bounded."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the counts, and count what is there."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("resources", sa.BigInteger, nullable=False, server_default="0"))
        tenant.add_column(sa.Column("characters", sa.BigInteger, nullable=False, server_default="0"))
    op.execute(
        "UPDATE tenant SET"
        " resources = (SELECT count(*) FROM resource WHERE resource.tenant = tenant.name AND valid_to IS NULL),"
        " characters = (SELECT coalesce(sum(length(body)), 0) FROM resource WHERE resource.tenant = tenant.name)"
    )


def downgrade() -> None:
    """Take them away again."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("resources")
        tenant.drop_column("characters")
