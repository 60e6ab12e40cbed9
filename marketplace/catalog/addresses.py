"""Which resolved addresses a fetch may connect to. Decided on addresses, never on names."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

DENIED = tuple(
    map(
        ip_network,
        (
            # Python's own flags differ between patch releases, so the list is spelled out.
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT, and one cloud's metadata service
            "127.0.0.0/8",
            "168.63.129.16/32",  # one cloud's host agent, on a public address
            "169.254.0.0/16",  # link-local, and most clouds' metadata service
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "::/96",
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",
            "2001:db8::/32",
            "3fff::/20",
            "5f00::/16",
            "fc00::/7",
            "fe80::/10",
            "fec0::/10",
            "ff00::/8",
        ),
    )
)

NAT64 = IPv6Network("64:ff9b::/96")


def is_denied(text: str) -> bool:
    """Whether an address, or one that it carries inside, is anything but a public host."""
    return any(_is_denied(address) for address in _with_inner(ip_address(text.partition("%")[0])))


def is_loopback(text: str) -> bool:
    return ip_address(text.partition("%")[0]).is_loopback


def _is_denied(address: IPv4Address | IPv6Address) -> bool:
    listed = any(address in network for network in DENIED if network.version == address.version)
    odd = address.is_multicast or address.is_reserved or address.is_unspecified
    # NAT64 counts as reserved; its inner address decides instead.
    return listed or not address.is_global or (odd and address not in NAT64)


def _with_inner(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """The address and every IPv4 address that a translator would turn it into."""
    if not isinstance(address, IPv6Address):
        yield address
        return
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in NAT64:
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    if address.ipv4_mapped is None:
        yield address
    yield from (each for each in inner if each is not None)
