"""Allocations: devices in several domains, held together or not at all.

``rules`` say what becomes of an allocation, without I/O; ``steps`` make what domains are asked to do; ``commands``
change what ``storage`` keeps; ``coordinator`` looks after time and tells those who wait.
"""
