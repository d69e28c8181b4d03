"""Recipients: validation and masking of e-mail addresses and telephone numbers."""

import re
from typing import Final

EMAIL: Final = "email"
SMS: Final = "sms"

_LONGEST: Final = 254  # characters of an e-mail address
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_WORD: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_FORMS: Final = {
    EMAIL: re.compile(
        rf"(?=.{{1,64}}@){_WORD}(?:\.{_WORD})*@(?:{_LABEL}\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]"
    ),
    SMS: re.compile(r"\+[0-9]{1,15}"),
}
_EXPECTED: Final = {
    EMAIL: "an e-mail address such as 'name@example.com'",
    SMS: "'+' and 1 to 15 digits, country first, such as '+15550100'",
}
_VISIBLE_DIGITS: Final = 4


def problem(kind: str, endpoint: str) -> str:
    """Return what an endpoint must be if it is invalid, or "".

    >>> problem("email", "First.Last@mail.example.museum"), problem("sms", "+15550100")
    ('', '')
    >>> problem("sms", "0155 50100")
    "'+' and 1 to 15 digits, country first, such as '+15550100'"
    """
    good = len(endpoint) <= _LONGEST and _FORMS[kind].fullmatch(endpoint)
    return "" if good else _EXPECTED[kind]


def masked(endpoint: str) -> str:
    """Mask an endpoint for logs and results.

    >>> masked("alice@example.com"), masked("+15551234"), masked("+15"), masked("x")
    ('a***@example.com', '+*****1234', '+*****', '*****')
    """
    name, separator, domain = endpoint.rpartition("@")
    if separator:
        return f"{name[:1]}***@{domain}"
    plus, digits = endpoint[:1] * endpoint.startswith("+"), endpoint.removeprefix("+")
    return f"{plus}*****{digits[-_VISIBLE_DIGITS:] if len(digits) > _VISIBLE_DIGITS else ''}"
