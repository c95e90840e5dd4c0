"""Training of the network that chooses where jobs run: worlds of the suite, imitation of the rule, then MaskablePPO.

- ``scenarios``: worlds to learn in, from seeds that no judge takes;
- ``env``: a Gymnasium environment over them, ``registration`` its name there; ``desk`` asks, ``ledger`` makes rewards;
- ``scorer``: the network in PyTorch; ``imitation`` fits it to the rule, ``learning`` improves it by MaskablePPO;
- ``core``: the rule compiled, which decides what the reference does; ``vector``: many worlds in one call, over it;
- ``tuning`` of the constants of the rule;
- ``held_out`` compares what was trained with the rule; ``curves`` draws how training went; ``scheduler`` is all of it.

Snapshots of views, and the reference as a policy, are those of ``kuayu.bench``.
"""
