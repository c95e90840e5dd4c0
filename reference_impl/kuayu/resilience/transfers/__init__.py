"""How training data and gradients travel between domains: shard plans and the choice of a collective.

Pure: an answer depends on the request alone. No clock, no chance, no input but what is handed over.
"""
