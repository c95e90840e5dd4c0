"""Makes the environment known to Gymnasium.

``gymnasium.make("kuayu_training.scheduling.registration:kuayu/Scheduling-v0")`` imports this module and makes one.

Arguments of :class:`~kuayu_training.scheduling.env.SchedulingEnv` may follow, for example ``purpose="mine"``, whose
scenarios are then of one's own, or ``scenarios``, a function from a number to a scenario of the suite. Masks of
actions are ``env.unwrapped.action_masks()``, or ``env.get_wrapper_attr("action_masks")()``.
"""

import gymnasium

NAME = "kuayu/Scheduling-v0"


def register() -> None:
    """Register it, unless that has been done."""
    if NAME not in gymnasium.registry:
        gymnasium.register(NAME, entry_point="kuayu_training.scheduling.env:SchedulingEnv")


register()
