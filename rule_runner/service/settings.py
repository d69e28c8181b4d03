"""ServiceSettings: how the service listens, and whom it lets in."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rule_runner.errors import UsageError

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How the service listens, and whom it lets in.

    Attributes
    ----------
    host, port
        Where it listens; port 0 is any that is free.
    tls_cert, tls_key
        Files in PEM format; None: plain HTTP.
    allow_plain_http
        Whether HTTP without TLS is accepted beyond this machine.
    tokens
        The file with the tokens; None: none are needed on this machine.
    trusted_proxies
        The proxies whose ``X-Forwarded-*`` headers count; ignored from any other peer.
    user_header
        The header in which they name the user; None: they do not.
    allowed_hosts
        Host names of the service, in addition to those of this machine.
    max_streams
        How many event streams may be open at the same time.
    max_connections
        How many connections may be; they include those of streams.
    """

    host: str = "127.0.0.1"
    port: int = 8420
    tls_cert: Path | None = None
    tls_key: Path | None = None
    allow_plain_http: bool = False
    tokens: Path | None = None
    trusted_proxies: tuple[Network, ...] = ()
    user_header: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    max_streams: int = 250
    max_connections: int = 1000

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)

    @property
    def is_open(self) -> bool:
        """Whether everyone who can connect may act: on this machine, without tokens."""
        return self.tokens is None and self.user_header is None

    @property
    def is_encrypted(self) -> bool:
        """Whether the service itself uses TLS."""
        return self.tls_cert is not None

    def check(self) -> None:
        """Check that nobody is let in by accident.

        Raises
        ------
        UsageError
            If settings are unsafe or contradict each other.
        """
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError("Options --tls-cert and --tls-key belong together: give both.")
        if self.user_header is not None and not self.trusted_proxies:
            raise UsageError(
                "Options --trusted-proxy and --user-header belong together: give both."
            )
        if self.trusted_proxies and self.is_open:
            raise UsageError("Option --trusted-proxy needs --user-header NAME or --tokens FILE.")
        if self.is_loopback:
            return
        if self.is_open:
            raise UsageError(
                f"Host {self.host!r} can be reached from other machines, which needs --tokens FILE "
                "(see 'rule-runner serve-token add') or --trusted-proxy CIDR with --user-header."
            )
        if not (self.is_encrypted or self.allow_plain_http):
            raise UsageError(
                f"Host {self.host!r} can be reached from other machines, which needs TLS: give "
                "--tls-cert and --tls-key, or --allow-plain-http behind a proxy that has it."
            )


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost")
    (True, True, True)
    >>> is_loopback("0.0.0.0"), is_loopback("example.com")
    (False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
