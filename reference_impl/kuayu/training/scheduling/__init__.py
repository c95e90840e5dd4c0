"""Training of the network that chooses where jobs run: worlds of the suite, imitation of the rule, then MaskablePPO.

- ``scenarios``: worlds to learn in, from seeds that no judge takes;
- ``views``: a snapshot of ``kuayu.scheduling`` from what the suite shows a policy;
- ``env``: a Gymnasium environment over them; ``yardstick`` and ``ledger`` make its reward;
- ``scorer``: the network in PyTorch; ``imitation`` fits it to the rule, ``learning`` improves it by MaskablePPO;
- ``judging`` compares policies on the same seeds; ``curves`` draws how training went; ``scheduler`` is all of it.
"""
