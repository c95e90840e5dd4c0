"""Checks of the compute index (IDX)."""
