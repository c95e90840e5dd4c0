"""Checks of resilience (RES)."""
