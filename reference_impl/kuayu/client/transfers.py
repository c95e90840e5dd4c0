"""How training data and gradients travel between domains."""

from kuayu.client.connection import Connection
from kuayu_schemas.models import CollectiveChoice, CollectiveRequest, ShardPlan, ShardPlanRequest


class Transfers(Connection):
    """What to fetch, and by which collective to agree.

    Everything is computed from what the request holds; the service keeps nothing of it.
    """

    def shard_plan(self, request: ShardPlanRequest) -> ShardPlan:
        """What training data to fetch, from where, in what pieces and how early."""
        return self._ask(ShardPlan, "/v1/shard-plans", request)

    def collective(self, request: CollectiveRequest) -> CollectiveChoice:
        """By which collective replicas are to agree."""
        return self._ask(CollectiveChoice, "/v1/collectives", request)
