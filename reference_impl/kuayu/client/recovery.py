"""How jobs recover from faults."""

from kuayu.client.connection import Connection
from kuayu_schemas.models import BackupPlan, BackupRequest, FailoverPlan, FailoverRequest


class Recovery(Connection):
    """What to hold against faults, and how jobs go on after one.

    Everything is computed from what the request holds; the service keeps nothing of it.
    """

    def backup_plan(self, request: BackupRequest) -> BackupPlan:
        """How many spare nodes and which copies of checkpoints to hold."""
        return self._ask(BackupPlan, "/v1/backup-plans", request)

    def failover_plan(self, request: FailoverRequest) -> FailoverPlan:
        """How jobs go on, and on which nodes."""
        return self._ask(FailoverPlan, "/v1/failover-plans", request)
