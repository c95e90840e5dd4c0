"""How the policies of running jobs follow load and latency: who computes how much, and how replicas agree.

Pure: an answer depends on the request alone. No clock, no chance, no input but what is handed over.
"""
