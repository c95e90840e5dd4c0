"""Engines: what really starts, stops and watches the processes of a job in a domain.

``protocol`` says what an engine does; ``local``, ``slurm``, ``ray`` and ``kubernetes`` do it; ``registry`` finds one by
its name and says what it lacks. Whoever controls a domain (:mod:`kuayu.engine.controller`) calls them; nothing here
knows of the service.
"""
