"""Parses actions from JSON text, and validates and masks their recipients."""

import json
import re
from typing import Any, Final

from rule_core.exceptions import SMDebugValueError
from rule_core.rules.params import did_you_mean

STOP: Final = "stoptraining"
EMAIL: Final = "email"
SMS: Final = "sms"
PREFIX: Final = "training_job_prefix"
ENDPOINT: Final = "endpoint"
LIMIT: Final = 10  # actions of one rule

_KEYS: Final = {STOP: PREFIX, EMAIL: ENDPOINT, SMS: ENDPOINT}
_OPERATORS: Final = frozenset({"command", "webhook"})
_JOB: Final = re.compile(r"[A-Za-z0-9-]{1,63}")
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


def parse_actions(text: str | None) -> list[dict[str, str]]:
    r"""Parse a JSON object or list of objects into actions; empty text has none.

    JSON with escaped quotation marks, as platforms pass it, is also accepted. Names of actions and
    keys are case-insensitive; values keep their case.

    >>> parse_actions('{\\"name\\": \\"stoptraining\\", \\"training_job_prefix\\": \\"Job-1\\"}')
    [{'name': 'stoptraining', 'training_job_prefix': 'Job-1'}]

    Raises
    ------
    SMDebugValueError
        If the text is not such JSON, or an action cannot be carried out.
    """
    if not text or text.strip() in {"", "None"}:
        return []
    content = _load(text)
    actions = content if isinstance(content, list) else [content]
    if len(actions) > LIMIT:
        raise SMDebugValueError(f"A rule takes at most {LIMIT} actions, got {len(actions)}.")
    return [_check_action(action) for action in actions]


def check_job(name: str) -> None:
    """Check the name of a training job, or a prefix of it.

    Raises
    ------
    SMDebugValueError
        If it is invalid.
    """
    if not _JOB.fullmatch(name):
        raise SMDebugValueError(
            f"The name of a training job must be 1 to 63 letters, digits and hyphens, got {name!r}."
        )


def _load(text: str) -> Any:
    """Parse JSON; error messages omit the text, which may contain endpoints."""
    msg = ""
    for candidate in (text, text.replace('\\"', '"')):
        try:
            return json.loads(candidate)
        except RecursionError:
            msg = "Actions must be JSON: it is nested too deeply."
        except json.JSONDecodeError as err:
            msg = f"Actions must be JSON: {err.msg} at character {err.pos} of {len(err.doc)}."
    raise SMDebugValueError(msg)


def _check_action(action: object) -> dict[str, str]:
    """Validate one action and return its name and key."""
    if not isinstance(action, dict):
        raise SMDebugValueError(f"An action must be a JSON object, got {type(action).__name__}.")
    keys = {key.lower(): value for key, value in action.items()}
    name = _name(keys.pop("name", None))
    key = _KEYS[name]
    value = keys.pop(key, None)
    for unknown in keys:
        raise SMDebugValueError(
            f"Action {name!r} has no key {unknown!r}.{did_you_mean(unknown, ['name', key])}"
        )
    if value is None and name == STOP:
        return {"name": name}
    if not isinstance(value, str):
        got = "none" if value is None else type(value).__name__
        raise SMDebugValueError(f"Action {name!r} needs a string as {key!r}, got {got}.")
    if name == STOP:
        check_job(value)
    elif expected := problem(name, value):
        raise SMDebugValueError(
            f"{key!r} of action {name!r} must be {expected}, got {len(value)} other characters."
        )
    return {"name": name, key: value}


def _name(raw: object) -> str:
    """Validate the name of an action and return it in lower case."""
    if not isinstance(raw, str):
        got = "none" if raw is None else type(raw).__name__
        raise SMDebugValueError(f"An action needs a string as 'name', got {got}.")
    name = raw.lower()
    if name in _OPERATORS:
        raise SMDebugValueError(
            f"Action {name!r} is not accepted in rule parameters. "
            f"Pass it to the evaluation with --action {name}:..."
        )
    if name not in _KEYS:
        names = ", ".join(map(repr, _KEYS))
        raise SMDebugValueError(
            f"Unknown action {raw!r}.{did_you_mean(name, list(_KEYS))} Actions: {names}."
        )
    return name


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
