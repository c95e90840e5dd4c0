"""Domains and their pools by number, in the order of the topology."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.values import DeviceType, Share, Site

Counts = NDArray[np.int64]
"""Whole numbers of devices."""
Holding = tuple[tuple[int, int], ...]
"""Numbers of pools, each with how many of its devices."""


class Places:
    """Domains, pools and kinds of accelerators by number.

    Attributes:
        sites: Names of the domains.
        pools: Name of the domain and of the accelerator, by pool.
        types: Names of the accelerators that are there, in alphabetical order.
        site: Number of the domain, by pool.
        type: Number of the accelerator, by pool.
        devices: How many there are when nothing is broken, by pool.
        per_node: Devices of a node, by pool.
        memory: Bytes of a device, by accelerator.
        of_site: Numbers of the pools, by domain.
    """

    def __init__(self, sites: Sequence[Site], devices: Mapping[str, DeviceType]) -> None:
        self.sites = tuple(site.name for site in sites)
        self.pools = tuple((site.name, pool.device) for site in sites for pool in site.pools)
        assert len(set(self.pools)) == len(self.pools), "a share names its pool by domain and accelerator"
        self.types = tuple(sorted({device for _, device in self.pools}))
        self.site = np.array([self.sites.index(name) for name, _ in self.pools], dtype=np.intp)
        self.type = np.array([self.types.index(device) for _, device in self.pools], dtype=np.intp)
        self.devices = np.array([pool.devices for site in sites for pool in site.pools], dtype=np.int64)
        self.per_node = np.array([pool.per_node for site in sites for pool in site.pools], dtype=np.int64)
        self.memory = np.array([devices[name].memory for name in self.types], dtype=np.float64)
        self.of_site = tuple(np.flatnonzero(self.site == site) for site in range(len(sites)))
        self._numbers = {pool: number for number, pool in enumerate(self.pools)}
        self._site_numbers = {name: number for number, name in enumerate(self.sites)}
        self._shares: dict[tuple[int, int], Share] = {}

    def site_number(self, name: str) -> int:
        """Number of a domain.

        Raises:
            KeyError: There is no such domain.
        """
        return self._site_numbers[name]

    def share(self, pool: int, devices: int) -> Share:
        """Devices of a pool as a share of a placement."""
        found = self._shares.get((pool, devices))
        if found is None:
            site, device = self.pools[pool]
            found = self._shares[pool, devices] = Share(site, device, devices)
        return found

    def holding(self, shares: Sequence[Share]) -> Holding:
        """Shares as numbers of pools and devices.

        Raises:
            KeyError: A pool does not exist.
        """
        return tuple((self._numbers[share.site, share.device], share.devices) for share in shares)
