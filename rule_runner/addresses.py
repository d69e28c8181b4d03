"""Addresses that nothing may be posted to: link-local, of clouds' metadata, of nobody."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

# What is neither link-local nor multicast and must not be reached either: the addresses at which
# clouds hand out credentials, and those that mean this machine or nobody.
_CLOSED: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "240.0.0.0/4",
            "100.100.100.200/32",
            "168.63.129.16/32",
            "192.0.0.192/32",
            "fd00:ec2::/32",
            "fd20:ce::254/128",
        ),
    )
)
_TRANSLATED: Final = ip_network("64:ff9b::/96")  # RFC 6052: an IPv4 address in the last four bytes
_COMPATIBLE: Final = ip_network("::/96")  # RFC 4291 2.5.5.1, long deprecated; holds :: and ::1


def meant(text: str) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or the address.

    >>> meant("::ffff:169.254.169.254"), meant("64:ff9b::a9fe:a9fe"), meant("::1")
    (IPv4Address('169.254.169.254'), IPv4Address('169.254.169.254'), IPv6Address('::1'))

    Raises
    ------
    ValueError
        If it is no address.
    """
    address = ip_address(text)
    if not isinstance(address, IPv6Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    odd = address in _COMPATIBLE and not (address.is_loopback or address.is_unspecified)
    if odd or address in _TRANSLATED:
        inner = IPv4Address(address.packed[-4:])
    return inner or address


def is_closed(address: Address) -> bool:
    """Say whether nothing of ours may be sent to an address."""
    return (
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or any(address in network for network in _CLOSED)
    )


def resolved(host: str, port: int) -> list[str]:
    """Return the addresses of a host, as the machine resolves it.

    Raises
    ------
    OSError
        If it cannot be resolved.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))
