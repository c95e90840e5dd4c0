"""Compute indices and probe plans."""

from kuayu.client.connection import Connection
from kuayu_schemas.models import IndexReport, IndexRequest, ProbePlan, ProbePlanRequest


class Indices(Connection):
    """What devices are worth for tasks."""

    def compute_indices(self, request: IndexRequest) -> IndexReport:
        """How many of a reference device other devices are worth for training tasks.

        The service keeps nothing of the request, so all that it is to know has to be in the corpus. A name that the
        corpus does not hold is a :class:`RefusedError` that points to it.
        """
        return self._ask(IndexReport, "/v1/compute-indices", request)

    def probe_plan(self, request: ProbePlanRequest) -> ProbePlan:
        """Which of the candidates to measure to make the targets surest, the most telling first."""
        return self._ask(ProbePlan, "/v1/probe-plans", request)
