"""Forbidden addresses of webhooks: link-local, cloud metadata, reserved, translated."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

# In addition to link-local and multicast addresses: cloud metadata services, which hand out
# credentials; this host and reserved ranges; and ranges through which a translator or tunnel may
# reach any of these. Source: IANA's registries of special-purpose addresses.
_FORBIDDEN: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "240.0.0.0/4",
            "100.100.100.200/32",
            "168.63.129.16/32",
            "192.0.0.0/24",  # protocol assignments, and the metadata service of one cloud
            "192.88.99.0/24",  # 6to4 relays
            "fd00:ec2::/32",
            "fd20:ce::254/128",
            "::ffff:0:0:0/96",  # RFC 2765: IPv4-translated
            "64:ff9b:1::/48",  # RFC 8215: IPv4-translated, in a layout chosen by each network
            "2001::/32",  # RFC 4380: Teredo
            "100::/64",  # RFC 6666: discarded
            "100:0:0:1::/64",  # RFC 9780: dummies
            "fec0::/10",  # RFC 3879: site-local, deprecated
            "5f00::/16",  # RFC 9602: segment routing
        ),
    )
)
_TRANSLATED: Final = ip_network("64:ff9b::/96")  # RFC 6052: an IPv4 address in the last four bytes
_ISATAP: Final = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")  # RFC 5214: before the last four bytes
_COMPATIBLE: Final = ip_network("::/96")  # RFC 4291 2.5.5.1, long deprecated; holds :: and ::1


def effective_address(text: str) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or the address.

    >>> effective_address("::ffff:169.254.169.254"), effective_address("64:ff9b::a9fe:a9fe")
    (IPv4Address('169.254.169.254'), IPv4Address('169.254.169.254'))
    >>> effective_address("::1")
    IPv6Address('::1')

    Raises
    ------
    ValueError
        If it is not an address.
    """
    address = ip_address(text)
    if not isinstance(address, IPv6Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    is_compatible = address in _COMPATIBLE and not (address.is_loopback or address.is_unspecified)
    if is_compatible or address in _TRANSLATED or address.packed[8:12] in _ISATAP:
        inner = IPv4Address(address.packed[-4:])
    return inner or address


def is_forbidden(address: Address) -> bool:
    """Return whether webhooks must not be sent to an address."""
    return (
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or any(address in network for network in _FORBIDDEN)
    )


def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses to which this machine resolves a host.

    Raises
    ------
    OSError
        If it cannot be resolved.
    """
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))
