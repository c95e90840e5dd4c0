"""Demands of trainings, layouts and sizes of tasks."""

from kuayu.client.connection import Connection
from kuayu_schemas.models import (
    LayoutReport,
    LayoutRequest,
    SizingReport,
    SizingRequest,
    TrainingDemandReport,
    TrainingDemandRequest,
)


class Demands(Connection):
    """What trainings and tasks need.

    Everything is computed from what the request holds; the service keeps nothing of it. A name that the request does
    not hold is a :class:`RefusedError` that points to it; a training that cannot run is an answer that says why.
    """

    def training_demands(self, request: TrainingDemandRequest) -> TrainingDemandReport:
        """Work, memory, traffic and time of each case, in their order."""
        return self._ask(TrainingDemandReport, "/v1/training-demands", request)

    def layouts(self, request: LayoutRequest) -> LayoutReport:
        """The quickest strategies of a model on so many accelerators, the quickest first."""
        return self._ask(LayoutReport, "/v1/layouts", request)

    def task_sizes(self, request: SizingRequest) -> SizingReport:
        """What each task should be given, in their order."""
        return self._ask(SizingReport, "/v1/task-sizes", request)
