"""Demand law: from a model's structure, a layout and hardware to FLOPs, memory, traffic and time.

Pure: no input or output, no clock, no chance. Layouts are columns, so that thousands are predicted at once.
"""
