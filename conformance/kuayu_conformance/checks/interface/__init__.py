"""Checks of the common interface (COM)."""
