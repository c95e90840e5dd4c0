"""``kuayu live`` under a service: workers beat to it, it tells faults, and agents of domains fence as it asks.

The run itself (:mod:`kuayu.live`) knows nothing of HTTP; it is given a
:class:`~kuayu.engine.live.service.WatchingService`.
"""
