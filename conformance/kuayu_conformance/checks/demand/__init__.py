"""Checks of demand estimates (DEM)."""
