"""What really runs on a host: the collector of its telemetry and the measured probes.

:mod:`~kuayu.engine.host` says what the host is and how it stands, :mod:`~kuayu.engine.probes` measures what it can do,
:mod:`~kuayu.engine.collector` sends both to a service of the standard. :mod:`~kuayu.engine.controller` holds devices of
a domain as a service asks.
"""
