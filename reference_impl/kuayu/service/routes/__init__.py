"""HTTP routes, one module for each group of operations; each only reads the request and writes the answer."""
