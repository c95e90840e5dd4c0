"""The simulator: ``World`` runs a scenario by events and asks a policy at epochs.

From the outside in: ``world`` is time, submissions, what goes wrong, orders and a policy that plays; ``view`` is what
policies see, and ``orders`` what they may order; ``stages`` is what becomes of a job that holds devices, with its data;
``traffic`` is all that goes over links, by ``paths`` and fair rates; ``state`` is domains, devices, copies and jobs as
arrays, and what became of them; ``interfaces`` is what the engine asks of others.
"""
