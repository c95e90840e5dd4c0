"""Faults told by logs: known ones by documented forms, others by what is unusual; templates mined on the way.

``reader.LogReader`` takes bytes as they come and gives verdicts. Nothing here opens files or sockets.
"""
