"""Heartbeats and log lines in, faults out, and what domains are asked to do because of them.

``batches`` arrive by requests; ``registry`` knows whose node is where; ``watcher`` has the thread that hears, reads and
looks; ``commands`` make durable what it finds, ``storage`` keeps it, and ``reads`` show it.
"""
