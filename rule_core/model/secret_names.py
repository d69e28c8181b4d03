"""is_secret and without_secrets: keep passwords and keys out of messages and results."""

import re
from typing import Final

MASK: Final = "***"
_NAMES: Final = (
    r"(?i:(?:api|access|private|secret|auth)[_-]?key|passw(?:or)?d|secret|credential"
    r"|token(?!s|iz))"
)
_NAME: Final = re.compile(_NAMES + r"[\w./-]{0,40}[\"']?")
_VALUE: Final = re.compile(r"'[^']*'|\"[^\"]*\"|(?<=[:=])\s?[^\s,;}]+")


def is_secret(name: str) -> bool:
    """Return whether the value of a field with this name must not be shown.

    >>> is_secret("WANDB_API_KEY"), is_secret("hf_token"), is_secret("num_tokens")
    (True, True, False)
    """
    return _NAME.search(name) is not None


def without_secrets(message: str) -> str:
    """Return a text without the values that follow the name of a secret.

    >>> without_secrets('{"lr": 0.1, "api_key": "abc"}'), without_secrets("2 tokens: 'a'")
    ('{"lr": 0.1, "api_key":***}', "2 tokens: 'a'")
    """
    name = _NAME.search(message)
    start = name.end() if name else len(message)
    return message[:start] + _VALUE.sub(MASK, message[start:])
