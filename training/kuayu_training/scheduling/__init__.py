"""Training of the network that says by how much constants of the rule are changed, and tuning of these constants.

- ``scenarios``: worlds to learn in, from seeds that no judge takes; ``windows``: whole windows of them, to compare in;
- ``env``: a Gymnasium environment over them, ``registration`` its name there; ``driver`` asks, ``observation`` is what
  is seen, ``ledger`` makes rewards;
- ``core``: the rule compiled, which decides what the reference does; ``vector``: many worlds in one call, over it;
- ``learning``: the network in PyTorch, trained by PPO; ``tuning`` of the constants of the rule;
- ``comparison`` with the rule, with bounds; ``curves`` draws how training went; ``scheduler`` is all of it.

Snapshots of views, and the reference as a policy, are those of ``kuayu.bench``.
"""
