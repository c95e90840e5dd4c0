"""The standard explained a second time: one small server, the Python standard library, nothing of ours.

It reads the published registers and schemas as data and shares no code with the reference. Each promise of the standard
is one short method of :class:`minimal_server.service.MinimalServer`, which inherits them from a chain of classes, one a
subject: ``core`` (time, tenants, problems, pages), ``resources``, ``identifiers``, ``samples``, ``series``,
``conversion``, ``aggregation``, ``scraping``, ``indices``, ``groups``, ``plans``, ``states``, ``graph``, ``streams``;
for scheduling ``speeds``, ``ways``, ``packing``, ``weighing``, ``choosing``, ``explaining``, ``sharing``, ``naming``,
``placing``, ``fronts``, ``buying``, ``routing``, ``reserving``, ``allocating``; for demand ``counting``, ``sending``,
``holding``, ``demanding``, ``layouts``, ``sizing``; for forecasts ``phasing``, ``premises``, ``foreseeing``,
``waving``, ``shaving``; for transfers ``doubting``, ``sharding``, ``agreeing``; for recovery ``suspecting``,
``backing``, ``recovering``; for adjustments ``questioning``, ``adjusting``; for faults ``faults``, ``stepping``,
``watching``; for jobs ``jobs``, ``attempts``. Beside them stand ``scene`` and ``timeline``, ``validator``,
``exposition`` (the text format), ``estimation`` (of compute indices), ``recognition`` (of states, from ``records`` of
nodes and what ``families`` of them do), ``telling`` (what lines of logs tell), ``hearing`` (what was heard of nodes and
jobs), ``canonical`` (JSON and digests), ``client`` (for tests) and ``http``.
"""
