"""Compute index: how its constants are chosen, and how far off it is on devices and tables that it has not seen."""
