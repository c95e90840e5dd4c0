"""Reference implementation of the Kuayu standard: the service and the algorithms behind it."""

__version__ = "0.1.0"
