"""Endpoints: which e-mail addresses and telephone numbers are taken, and how they are shown."""

import re
from typing import Final

EMAIL: Final = "email"
SMS: Final = "sms"

_LONGEST: Final = 254  # characters of an address that mail servers pass on
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_WORD: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_FORMS: Final = {
    EMAIL: re.compile(
        rf"(?=.{{1,64}}@){_WORD}(?:\.{_WORD})*@(?:{_LABEL}\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]"
    ),
    SMS: re.compile(r"\+[0-9]{1,15}"),
}
_MEANT: Final = {
    EMAIL: "an e-mail address such as 'name@example.com'",
    SMS: "'+' and 1 to 15 digits, country first, such as '+15550100'",
}
_SHOWN: Final = 4  # digits of a number


def problem(kind: str, endpoint: str) -> str:
    """Return what an endpoint must be if it is not that, or "".

    >>> problem("email", "First.Last@mail.example.museum"), problem("sms", "+15550100")
    ('', '')
    >>> problem("sms", "0155 50100")
    "'+' and 1 to 15 digits, country first, such as '+15550100'"
    """
    good = len(endpoint) <= _LONGEST and _FORMS[kind].fullmatch(endpoint)
    return "" if good else _MEANT[kind]


def masked(endpoint: str) -> str:
    """Return an endpoint as logs and results show it.

    >>> masked("alice@example.com"), masked("+15551234"), masked("+15"), masked("x")
    ('a***@example.com', '+*****1234', '+*****', '*****')
    """
    name, at, domain = endpoint.rpartition("@")
    if at:
        return f"{name[:1]}***@{domain}"
    plus, digits = endpoint[:1] * endpoint.startswith("+"), endpoint.removeprefix("+")
    return f"{plus}*****{digits[-_SHOWN:] if len(digits) > _SHOWN else ''}"
