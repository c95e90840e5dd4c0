"""The simulator: ``World`` runs a scenario by events and asks a policy at epochs.

From the outside in: ``episode`` plays a policy; ``world`` is time, submissions, disturbances and orders (``checking``);
``view`` is what policies see; ``stages`` is what becomes of a job that holds devices, with ``staging`` of its data
(``copies``) and ``runs``; ``traffic`` is all ``flows`` on wires (``routes``, ``sharing``); ``holdings`` is who has
which devices; ``register`` and ``progress`` are jobs as arrays; ``interfaces`` is what the engine asks of others.
"""
