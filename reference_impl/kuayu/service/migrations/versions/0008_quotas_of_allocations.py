"""Allocations count against what a tenant may have."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Count the allocations that are there."""
    _count("+")


def downgrade() -> None:
    """Count resources alone."""
    _count("-")


def _count(sign: str) -> None:
    own = "FROM allocation WHERE allocation.tenant = tenant.name"
    op.execute(
        f"UPDATE tenant SET resources = resources {sign} (SELECT count(*) {own} AND valid_to IS NULL),"  # noqa: S608 - no input
        f" characters = characters {sign} (SELECT coalesce(sum(length(body)), 0) {own})"
    )
