"""Jobs: from what is known of a federation to what is to be done with each job, and why.

Pure: an answer depends on what is given alone. No input or output, no clock, no chance.

- :mod:`.accelerators` names the kinds of accelerators of registered nodes and compares them.
- :mod:`.specification` makes what scheduling asks of a job from what was submitted; :mod:`.progress` tells how far a
  job has come and how it has fared.
- :mod:`.fair_share` counts what accounts have used, and says whose job goes first by it and whose a quota holds.
- :mod:`.federation` makes a ``SchedulingState`` of a snapshot of the federation.
- :mod:`.decisions` turns the placement report on that state into steps for the service.
"""
