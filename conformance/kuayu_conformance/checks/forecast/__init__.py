"""Checks of forecasts (FCT)."""
