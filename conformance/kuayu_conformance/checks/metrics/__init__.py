"""Checks of perception (MET)."""
