"""Checks of scheduling (SCH)."""
