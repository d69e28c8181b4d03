"""Addresses: which of them nothing may be posted to, however they are written."""

import pytest

from rule_runner.notify.webhook_addresses import effective_address, is_forbidden, resolve_host


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "0.0.0.0",
        "0.1.2.3",
        "::",
        "224.0.0.1",
        "239.255.255.250",
        "ff02::1",
        "255.255.255.255",
        "240.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "::ffff:100.100.100.200",
        "::ffff:224.0.0.1",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:ffff::8.8.8.8",
        "::ffff:0:169.254.169.254",
        "::ffff:0:8.8.8.8",
        "2001:0:4136:e378:8000:63bf:5601:5601",
        "2606:2800::5efe:169.254.169.254",
        "2606:2800::200:5efe:169.254.169.254",
        "100::1",
        "100:0:0:1::1",
        "fec0::1",
        "feff:ffff::1",
        "5f00::1",
        "192.0.0.170",
        "192.88.99.1",
        "::ffff:192.0.0.192",
    ],
)
def test_address_that_is_closed(address: str) -> None:
    assert is_forbidden(effective_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
        "192.168.1.1",
        "100.100.100.201",
        "93.184.216.34",
        "2606:2800:220:1::1",
        "::ffff:10.0.0.1",
        "64:ff9b::808:808",
        "fd12:3456::1",
        "64:ff9a:ffff::a9fe:a9fe",
        "2001:4860:4860::8888",
        "2002:808:808::1",
        "2606:2800::5efe:8.8.8.8",
        "::ffff:1:0:0",
        "192.0.1.1",
    ],
)
def test_address_that_is_open(address: str) -> None:
    assert not is_forbidden(effective_address(address))


def test_what_is_no_address_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        effective_address("hooks.example.org")


def test_the_machine_resolves() -> None:
    assert resolve_host("127.0.0.1", 80) == ["127.0.0.1"]
