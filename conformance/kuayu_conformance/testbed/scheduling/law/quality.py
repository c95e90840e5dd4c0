"""What it costs in tokens that domains reconcile only now and then.

Replicas that train apart for ``period`` steps end at a higher loss than one model that is trained in step, with as many
tokens. Over all that was published at 20 tokens a parameter, for 35 million to 10 billion parameters, the distance is a
share of that part of the loss which tokens reduce. The share grows with replicas and with the period, and hardly
depends on the size: with tokens by an exponent of -0.03 ± 0.02, which is left out. So it takes ``(1 + share)^(1/β)``
times as many tokens to the same loss, where that part falls with tokens to the power of -β; so many more steps are
charged.

Where it errs: nothing is granted where two replicas did better than one model (at 2.4 to 10 billion parameters, by 0.1
to 0.2 % of the loss). With 94 times the tokens and a period of 500, eight replicas lost 0.020 nats where it says 0.053.
Four of a billion parameters lost 0.06 on 25 billion tokens where it says 0.04, and 0.02 on 100 billion, as it says. It
is charged to other training than that of language models as well, for which no tokens to a target were published;
accuracy falls there too (J. J. Gonzalez Ortiz et al., "Trade-offs of local SGD at scale", arXiv:2110.08133). The
command of this package prints all of these, and the penalty under another law of tokens.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.law.facts import DATA_EXPONENT, GAP, PERIOD_SCALE, REPLICA_EXPONENT
from kuayu_conformance.testbed.scheduling.powers import logarithm, power


def shares(replicas: NDArray[np.float64], periods: NDArray[np.float64]) -> NDArray[np.float64]:
    """By what share the part of the loss that tokens reduce is larger; arrays of one shape, zero for one replica."""
    others = power(np.maximum(replicas - 1.0, 1.0), REPLICA_EXPONENT)
    return np.where(replicas > 1.0, GAP * others * logarithm(1.0 + periods / PERIOD_SCALE), 0.0)


def penalties(replicas: NDArray[np.float64], periods: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many times as many steps it takes to the same loss; arrays of one shape.

    Args:
        replicas: Domains that train apart, at least one.
        periods: Steps between reconciliations, at least one.
    """
    return power(1.0 + shares(replicas, periods), 1.0 / DATA_EXPONENT)


@cache
def penalty(replicas: int, period: int) -> float:
    """The same for one job."""
    return float(penalties(np.array([float(replicas)]), np.array([float(period)]))[0])
