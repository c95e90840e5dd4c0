"""Where the service keeps things: SQLite or PostgreSQL through one SQLAlchemy layer.

One thread writes (:mod:`~kuayu.service.storage.writer`), many read (:mod:`~kuayu.service.storage.queries`).
"""
