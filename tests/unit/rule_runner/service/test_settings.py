"""What settings refuse, so that nobody is let in by accident."""

import ipaddress
from pathlib import Path
from typing import Any

import pytest

from rule_runner.errors import UsageError
from rule_runner.service.settings import ServiceSettings

PROXY = {"trusted_proxies": (ipaddress.ip_network("10.0.0.0/8"),), "user_header": "X-User"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"host": "0.0.0.0"}, "needs --tokens FILE"),
        ({"host": "0.0.0.0", "tokens": Path("t")}, "needs TLS"),
        ({"tls_cert": Path("c")}, "belong together"),
        ({"user_header": "X-User"}, "belong together"),
        ({"trusted_proxies": PROXY["trusted_proxies"]}, "needs --user-header NAME or --tokens"),
    ],
)
def test_unsafe_settings_are_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        ServiceSettings(**fields).check()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"host": "::1"},
        {"host": "0.0.0.0", "tokens": Path("t"), "allow_plain_http": True},
        {"tokens": Path("t"), "trusted_proxies": PROXY["trusted_proxies"]},
        {"host": "h", "tls_cert": Path("c"), "tls_key": Path("k")} | PROXY,
    ],
)
def test_safe_settings_are_accepted(fields: dict[str, Any]) -> None:
    ServiceSettings(**fields).check()
