"""The simulator: ``World`` runs a scenario by events and asks a policy at epochs.

From the outside in: ``world`` is time, submissions, orders and a policy that plays; ``view`` is what policies see, and
``orders`` what they may order; ``disturbances`` is what goes wrong, and what domains report meanwhile; ``stages`` is
what becomes of a job that holds devices, with its data; ``outcome`` is what became of all jobs; ``traffic`` is all that
goes over wires, by ``paths`` and fair rates; ``state`` is domains, devices, copies and jobs as arrays; ``interfaces``
is what the engine asks of others.
"""
