"""Addresses: the bound on connections of each, and the proxies that stand for many clients."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from faultline.errors import ConfigError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(named: Sequence[str]) -> tuple[Network, ...]:
    """Addresses and networks, as `192.0.2.1` or `10.0.0.0/8`.

    >>> networks(["192.0.2.1", "10.0.0.0/8"])
    (IPv4Network('192.0.2.1/32'), IPv4Network('10.0.0.0/8'))
    """
    try:
        return tuple(ipaddress.ip_network(name) for name in named)
    except ValueError as error:
        raise ConfigError(f"--trust-proxy takes an address or a network: {error}") from None


@lru_cache(maxsize=4096)
def plain(host: str) -> str:
    """An address in one spelling: an IPv4 one that came over IPv6 is the same address.

    >>> plain("::ffff:192.0.2.1"), plain("fe80::1%eth0"), plain("nonsense")
    ('192.0.2.1', 'fe80::1', 'nonsense')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


class AddressAllowance:
    """The bound on connections of one address; a proxy may have all of them.

    >>> AddressAllowance(5, networks(["10.0.0.0/8"])).of("10.1.2.3") is None
    True
    >>> AddressAllowance(5, ()).of("10.1.2.3"), AddressAllowance(5, (), behind_proxy=True).of("10.1.2.3")
    (5, None)
    """

    def __init__(self, most: int, proxies: tuple[Network, ...] = (), *, behind_proxy: bool = False) -> None:
        self._most = most
        self._proxies = proxies
        # Behind an unknown proxy, every connection may be the proxy's.
        self._all = behind_proxy and not proxies

    def of(self, host: str) -> int | None:
        """The bound; None where only the bound on all connections applies."""
        if self._all:
            return None
        try:
            address = ipaddress.ip_address(plain(host))
        except ValueError:
            return self._most
        return None if any(address in network for network in self._proxies) else self._most
