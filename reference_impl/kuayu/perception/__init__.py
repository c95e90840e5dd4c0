"""Telemetry in, indicators out: pure algorithms that know nothing of HTTP, of the database or of the clock on the wall.

1. ``exposition`` and ``otlp`` turn what is sent into series; ``collection`` makes samples of them, with ``counters``
   and ``plausibility``; ``aggregation`` puts devices together to nodes and domains.
2. ``recognition`` tells the state of each node, ``links`` the quality of links that nobody has measured; ``graph``
   holds all of it as it stands at a revision.
3. Instants are whole milliseconds since 1970-01-01T00:00:00Z throughout; measures carry the units of the indicator
   register.
"""
