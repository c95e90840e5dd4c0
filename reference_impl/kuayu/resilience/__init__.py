"""Failure, recovery and transfers: what is suspected, what to do about it, and how data travels meanwhile."""
