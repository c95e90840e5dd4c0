"""What domains, tenants and jobs will need, from the structure of their jobs and from what was observed.

Pure: an answer depends on the request alone. No input but the weights beside the code, no clock, no chance.
"""
