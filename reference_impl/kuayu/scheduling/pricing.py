"""How devices are bought: reserved ones first, spot capacity where being interrupted is cheap, else on demand.

What spot capacity costs follows from its price and from what is done again: for an hour that is bought, as often as it
is taken away, half of the time between two checkpoints and a restart.
"""

import numpy as np

from kuayu.scheduling.state import NOWHERE, ON_DEMAND, PURCHASES, RESERVED, Counts, Floats, Numbers, Snapshot
from kuayu.scheduling.throughput import STARTING

HOUR = 3600.0
BETWEEN = 1800.0
"""Seconds between two checkpoints of a job that writes any."""
UNLIMITED = np.iinfo(np.int64).max // 4
OPTIONS = len(PURCHASES)


class PurchaseOptions:
    """Offers of all pools, and what of them is left while an epoch is being decided.

    A pool without offers costs nothing, and purchases there are not named.

    Attributes:
        largest: Devices that can be bought at once in each pool, in one way; an entry more at the end for no pool.

    Args:
        snapshot: Its pools.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        pools = len(snapshot.pools.offers)
        self._named = np.array([bool(offers) for offers in snapshot.pools.offers] + [False], dtype=np.bool_)
        self._left = np.zeros((pools + 1, OPTIONS), dtype=np.int64)
        self._price, self._taken = np.zeros((pools + 1, OPTIONS)), np.zeros((pools + 1, OPTIONS))
        for pool, offers in enumerate(snapshot.pools.offers):
            for offer in offers:
                self._left[pool, offer.purchase] = offer.devices
                self._price[pool, offer.purchase] = 0.0 if offer.purchase == RESERVED else offer.price
                self._taken[pool, offer.purchase] = offer.interruption
        self._left[~self._named, ON_DEMAND] = UNLIMITED
        self._jobs = snapshot.jobs
        self.largest: Counts = self._left.max(axis=1)

    def prices(self, job: Numbers, pools: Numbers, devices: Counts, seconds: Floats) -> Floats:
        """Money for holding devices so long, each share in its cheapest way that has as many, by row.

        Args:
            job: By row.
            pools: (rows, shares), ``NOWHERE`` in unused places.
            devices: (rows, shares).
            seconds: By row.
        """
        if not self._named.any():
            return np.zeros(len(job))
        dear = self._effective(job, pools, seconds)
        able = (self._left[pools] >= devices[..., None]) & (self._left[pools] > 0)
        least = np.where(able, dear, np.inf).min(axis=-1)
        # where no way has as many now, what is dearest is taken to be the price later
        usual = dear.max(axis=-1)
        price = np.where(np.isfinite(least), least, usual)
        prices: Floats = (price * devices).sum(axis=1) * seconds / HOUR
        return prices

    def purchase(self, job: int, pool: int, devices: int, seconds: float) -> int:
        """Take devices out of the cheapest offer that has as many.

        Returns:
            Number of the way of buying, or ``NOWHERE`` where the pool has no offers.

        Raises:
            ValueError: No offer has as many.
        """
        option = self.cheapest(job, pool, devices, seconds)
        if option != NOWHERE:
            self._left[pool, option] -= devices
            self.largest[pool] = self._left[pool].max()
        return option

    def put_back(self, pool: int, option: int, devices: int) -> None:
        """Devices that were bought so are not wanted after all."""
        if option != NOWHERE:
            self._left[pool, option] += devices
            self.largest[pool] = self._left[pool].max()

    def cheapest(self, job: int, pool: int, devices: int, seconds: float) -> int:
        """The same, and nothing is taken."""
        if not self._named[pool]:
            return NOWHERE
        row = np.array([job]), np.array([[pool]]), np.array([seconds])
        dear = np.where(self._left[pool] >= devices, self._effective(*row)[0, 0], np.inf)
        option = int(dear.argmin())
        if self._left[pool, option] < devices:
            raise ValueError(f"no offer of pool {pool} has {devices} devices")
        return option

    def _effective(self, job: Numbers, pools: Numbers, seconds: Floats) -> Floats:
        """Money for a device and an hour with what is done again, (rows, shares, options)."""
        saves = self._jobs.checkpoint[job] > 0.0
        lost = np.where(saves, np.minimum(BETWEEN, seconds), np.where(seconds < np.inf, seconds, 0.0)) / 2.0
        again = STARTING + lost
        prices: Floats = self._price[pools] * (1.0 + self._taken[pools] * again[:, None, None] / HOUR)
        return prices
