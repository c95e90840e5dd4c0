"""Which hosts may be scraped.

A host that is listed by name is trusted by name. Any other is resolved, and only addresses within the listed networks
will do. Whoever connects must connect to the address that was checked here: a name that is resolved twice may give
two answers.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = {"http": 80, "https": 443}


class NotAllowedError(Exception):
    """The target is not one that the operator allows, or is none at all; the message says why."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A target that is allowed, with the address to connect to."""

    host: str
    port: int
    address: str


@dataclass(frozen=True, slots=True)
class AllowList:
    """Hosts and networks that an operator allows."""

    hosts: frozenset[str]
    networks: tuple[Network, ...]

    @classmethod
    def parse(cls, entries: Iterable[str]) -> "AllowList":
        """Read hosts (``exporter.example``), addresses and CIDRs (``10.0.0.0/8``).

        Raises:
            ValueError: An entry looks like a network but is none.
        """
        hosts: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry))
            except ValueError:
                if "/" in entry or not entry.strip():
                    raise
                hosts.add(entry.lower().rstrip("."))
        return cls(frozenset(hosts), tuple(networks))

    async def check(self, url: str) -> Destination:
        """Resolve a URL's host to an address that may be connected to.

        Raises:
            NotAllowedError: There is none.
        """
        host, port = _host_and_port(url)
        addresses = await _resolve(host, port)
        if host not in self.hosts:
            addresses = [address for address in addresses if self._holds(address)]
        if not addresses:
            raise NotAllowedError(f"{host!r} is not among the hosts that the operator of this service allows")
        return Destination(host, port, addresses[0])

    def _holds(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        mapped = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(mapped in network for network in self.networks)


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise NotAllowedError(f"{url!r} is not a URL: {error}") from error
    if parts.scheme not in PORTS or not host:
        raise NotAllowedError("only http://HOST/… and https://HOST/… can be scraped")
    if parts.username is not None:
        raise NotAllowedError("the URL of a target holds no credentials")
    return host.lower().rstrip("."), port or PORTS[parts.scheme]


async def _resolve(host: str, port: int) -> list[str]:
    """Addresses of a host; none where the name is unknown."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(address[0]) for *_, address in found]
