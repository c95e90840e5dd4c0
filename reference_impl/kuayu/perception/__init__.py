"""Telemetry in, indicators out: pure algorithms that know nothing of HTTP, of the database or of the clock on the wall.

Instants are whole milliseconds since 1970-01-01T00:00:00Z throughout; measures carry the units of the indicator
register.
"""
