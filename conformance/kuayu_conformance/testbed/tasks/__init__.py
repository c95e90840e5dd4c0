"""Tasks that ask for more than they need, and the cluster that they queue for: the world of right-sizing (DEM-003).

``kinds``    Kinds of task, mixes and the cluster: facts, and what had to be assumed.
``drawing``  Tasks of a window and records of tasks that ran before, from a seed.
``law``      How long a task takes on what it is given, what it uses meanwhile, and when it dies.
``cluster``  A queue before a cluster, event by event: FIFO, SRTF or DRF.
``wire``     The same in the words of the standard, under names that tell nothing.

It is not the trace that the source used. Yang, Hong and Tang ("Artificial intelligence computing power cluster
scheduling based on task resource demand prediction", High Technology Letters) took 100 000 records of Alibaba's PAI
cluster (Weng et al., "MLaaS in the Wild", NSDI 2022), chosen by rules that they do not publish. Everything here is
drawn from the figures that they print.
"""
