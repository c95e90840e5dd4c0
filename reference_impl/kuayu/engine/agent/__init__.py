"""The aggregator of a domain: takes samples as a service does, and forwards them to one (clause *Aggregators*).

``app`` answers HTTP: ``intake`` validates samples and writes them to the ``spool``, in groups, and an answer waits for
its group; everything else is handed on to the service. ``forwarder`` sends what is spooled, in order of arrival and in
large batches, and takes it out of the spool once the service has acknowledged it.

What keeps a sample from being lost: it is committed before it is acknowledged, and stays until the service's answer is
committed too. What keeps it from being taken twice: a batch is committed with its idempotency key before it is first
sent, and whatever dies meanwhile, the same bytes are sent under that key until its fate is known.
"""
