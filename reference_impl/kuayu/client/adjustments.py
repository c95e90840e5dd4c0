"""How running jobs follow load and latency."""

from kuayu.client.connection import Connection
from kuayu_schemas.models import Adjustment, AdjustmentRequest


class Adjustments(Connection):
    """How the policies of running jobs are adjusted.

    Everything is computed from what the request holds; the service keeps nothing of it.
    """

    def adjust(self, request: AdjustmentRequest) -> Adjustment:
        """Whether and how to adjust the policies of running jobs."""
        return self._ask(Adjustment, "/v1/adjustments", request)
