"""Forwarded: what a trusted proxy says about the request that it passes on."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from rule_runner.service.settings import ServiceSettings

_FOR: Final = "x-forwarded-for"
_HOST: Final = "x-forwarded-host"
_SCHEME: Final = "x-forwarded-proto"
# Those that decide about access. A second one may be another's than that of the proxy.
_SINGLE: Final = frozenset(
    {"authorization", "host", "origin", "sec-fetch-site", "x-csrf-token", _HOST, _SCHEME}
)
_PORTS: Final = {"http": 80, "https": 443}


def duplicate_header(request: Request, settings: ServiceSettings) -> str | None:
    """Return a header that decides about access and is given more than once; None: there is none.

    ``X-Forwarded-For`` may be: each proxy may add a line, and the last one counts.
    """
    user_header = settings.user_header
    names = _SINGLE if user_header is None else {*_SINGLE, user_header.lower()}
    return next((name for name in names if len(request.headers.getlist(name)) > 1), None)


def has_proxy(request: Request, settings: ServiceSettings) -> bool:
    """Return whether the other end of the connection is a trusted proxy."""
    return _is_trusted(_address(peer_of(request)), settings)


def peer_of(request: Request) -> str:
    """Return the address of the other end of the connection."""
    return "" if request.client is None else request.client.host


def client_of(request: Request, settings: ServiceSettings) -> str:
    """Return the address of the client: the last in the chain that is no trusted proxy."""
    client = _address(peer_of(request))
    chain = ",".join(request.headers.getlist(_FOR)).split(",")
    while chain and _is_trusted(client, settings) and (sender := _address(chain.pop().strip())):
        client = sender
    return peer_of(request) if client is None else str(client)


def scheme_of(request: Request, settings: ServiceSettings) -> str:
    """Return ``https`` if the client uses TLS as far as is known, else ``http``."""
    is_https = settings.is_encrypted or _forwarded(request, settings, _SCHEME).lower() == "https"
    return "https" if is_https else "http"


def is_same_origin(request: Request, settings: ServiceSettings) -> bool:
    """Return whether a request is from a page of this service, or from no page at all.

    A proxy may have TLS without saying so: a page that came over TLS is then accepted too.
    """
    headers = request.headers
    if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        return False
    if (origin := headers.get("origin")) is None:
        return True
    scheme, _, authority = origin.partition("://")
    if scheme not in _PORTS or (scheme == "http" and scheme_of(request, settings) == "https"):
        return False
    host = _forwarded(request, settings, _HOST) or headers.get("host", "")
    own = _host_and_port(authority, scheme)
    return own is not None and own == _host_and_port(host, scheme)


def _forwarded(request: Request, settings: ServiceSettings, name: str) -> str:
    """Return what the nearest trusted proxy says in a header; "" if there is none."""
    if not has_proxy(request, settings):
        return ""
    return request.headers.get(name, "").rpartition(",")[2].strip()


def _host_and_port(authority: str, scheme: str) -> tuple[str, int] | None:
    """Return the parts of ``host:port``; None if they are not valid.

    >>> _host_and_port("Host:443", "https"), _host_and_port("[::1]", "http")
    (('host', 443), ('::1', 80))
    >>> _host_and_port("[", "http"), _host_and_port("host:x", "http"), _host_and_port("", "http")
    (None, None, None)
    """
    try:
        parts = urlsplit(f"//{authority}")
        return (parts.hostname, parts.port or _PORTS[scheme]) if parts.hostname else None
    except ValueError:
        return None


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address; None if the text is not one."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_trusted(address: IPv4Address | IPv6Address | None, settings: ServiceSettings) -> bool:
    """Return whether an address is that of a trusted proxy."""
    return address is not None and any(address in network for network in settings.trusted_proxies)
