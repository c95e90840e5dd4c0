"""Makes everything that is published from the LinkML model and the registers.

One command, ``python -m generator`` (``make schemas``), reads ``spec/`` and writes ``schemas/kuayu_schemas/``; nothing
that it writes is edited by hand.
"""
