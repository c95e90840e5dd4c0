"""Forecasts of demand, phases of trainings, and what follows from both."""

from kuayu.client.connection import Connection
from kuayu_schemas.models import (
    ForecastReport,
    ForecastRequest,
    PeakPlan,
    PeakRequest,
    PhaseReport,
    PhaseRequest,
    ReservationReport,
    ReservationRequest,
    Waveform,
    WaveformRequest,
)


class Forecasts(Connection):
    """What will be needed, and what to do about it.

    Everything is computed from what the request holds; the service keeps nothing of it.
    """

    def forecasts(self, request: ForecastRequest) -> ForecastReport:
        """What each series will show after each horizon, with quantiles."""
        return self._ask(ForecastReport, "/v1/forecasts", request)

    def training_phases(self, request: PhaseRequest) -> PhaseReport:
        """In which phase each training is at its last step that is known."""
        return self._ask(PhaseReport, "/v1/training-phases", request)

    def waveform(self, request: WaveformRequest) -> Waveform:
        """Demand over a coming period, from the course of jobs."""
        return self._ask(Waveform, "/v1/waveforms", request)

    def peak_plan(self, request: PeakRequest) -> PeakPlan:
        """When to do movable work so that peaks are low."""
        return self._ask(PeakPlan, "/v1/peak-plans", request)

    def reservations(self, request: ReservationRequest) -> ReservationReport:
        """How many devices to reserve for tenants."""
        return self._ask(ReservationReport, "/v1/reservations", request)
