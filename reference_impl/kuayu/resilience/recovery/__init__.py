"""How jobs recover from faults: spare nodes and copies that are held beforehand, and how each job goes on afterwards.

Pure: an answer depends on the request alone. No clock, no chance, no input but what is handed over.
"""
