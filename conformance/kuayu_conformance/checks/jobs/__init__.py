"""Checks of jobs (JOB)."""
