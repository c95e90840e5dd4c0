"""The conformance suite of Kuayu: it knows a target only by HTTP and by the published schemas.

A *check* has two halves. ``observe`` drives the target through an :class:`~kuayu_conformance.episode.Episode` and
returns frozen observations; ``judge`` is a pure function from those observations to findings. Everything that an
observation depends on from outside (answers, clock readings, what the suite's own exporter saw) is written to the
transcript, so that anybody can run the same code on the record and must come to the same report.
"""

__version__ = "0.1.0"
