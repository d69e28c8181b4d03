"""Reads actions from their JSON text, and says in one sentence what is wrong with it."""

import json
import re
from typing import Any, Final

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.action.endpoints import EMAIL, SMS, problem
from smdebug.rules.params import did_you_mean

STOP: Final = "stoptraining"
PREFIX: Final = "training_job_prefix"
ENDPOINT: Final = "endpoint"
LIMIT: Final = 10  # actions of one rule

_KEYS: Final = {STOP: PREFIX, EMAIL: ENDPOINT, SMS: ENDPOINT}
_OPERATORS: Final = frozenset({"command", "webhook"})
_JOB: Final = re.compile(r"[A-Za-z0-9-]{1,63}")


def parse_actions(text: str | None) -> list[dict[str, str]]:
    r"""Return the actions of a JSON text: an object or a list of objects; none of an empty text.

    The form with escaped quotation marks, in which platforms hand it over, is understood too.
    Names of actions and of their keys are taken in any case; values keep theirs.

    >>> parse_actions('{\\"name\\": \\"stoptraining\\", \\"training_job_prefix\\": \\"Job-1\\"}')
    [{'name': 'stoptraining', 'training_job_prefix': 'Job-1'}]

    Raises
    ------
    SMDebugValueError
        If the text is no such JSON, or one of its actions could never be carried out.
    """
    if not text or text.strip() in {"", "None"}:
        return []
    found = _loaded(text)
    listed = found if isinstance(found, list) else [found]
    if len(listed) > LIMIT:
        msg = f"A rule takes at most {LIMIT} actions, got {len(listed)}."
        raise SMDebugValueError(msg)
    return [_checked(one) for one in listed]


def check_job(name: str) -> None:
    """Accept what can be the name of a training job, or the beginning of one.

    Raises
    ------
    SMDebugValueError
        If it cannot.
    """
    if not _JOB.fullmatch(name):
        msg = f"Name of a training job must be 1 to 63 letters, digits and hyphens, got {name!r}."
        raise SMDebugValueError(msg)


def _loaded(text: str) -> Any:
    """Return what the JSON holds; its text, which may name endpoints, is not told."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(text.replace('\\"', '"'))
    except RecursionError:
        msg = "Actions must be JSON: it is nested too deeply."
    except json.JSONDecodeError as err:
        msg = f"Actions must be JSON: {err.msg} at character {err.pos} of {len(err.doc)}."
    raise SMDebugValueError(msg)


def _checked(given: object) -> dict[str, str]:
    """Return one action with nothing in it but its name and its key."""
    if not isinstance(given, dict):
        msg = f"An action must be a JSON object, got {type(given).__name__}."
        raise SMDebugValueError(msg)
    keys = {key.lower(): value for key, value in given.items()}
    name = _name(keys.pop("name", None))
    key = _KEYS[name]
    value = keys.pop(key, None)
    for unknown in keys:
        msg = f"Action {name!r} has no key {unknown!r}.{did_you_mean(unknown, ['name', key])}"
        raise SMDebugValueError(msg)
    if value is None and name == STOP:
        return {"name": name}
    if not isinstance(value, str):
        got = "none" if value is None else type(value).__name__
        msg = f"Action {name!r} needs a text as {key!r}, got {got}."
        raise SMDebugValueError(msg)
    if name == STOP:
        check_job(value)
    elif meant := problem(name, value):
        msg = f"{key!r} of action {name!r} must be {meant}, got {len(value)} other characters."
        raise SMDebugValueError(msg)
    return {"name": name, key: value}


def _name(given: object) -> str:
    """Return the name of an action that is known."""
    if not isinstance(given, str):
        got = "none" if given is None else type(given).__name__
        msg = f"An action needs a text as 'name', got {got}."
        raise SMDebugValueError(msg)
    name = given.lower()
    if name in _OPERATORS:
        msg = (
            f"Action {name!r} is not taken from a rule's parameters: whoever starts the evaluation "
            f"gives it with --action {name}:..."
        )
        raise SMDebugValueError(msg)
    if name not in _KEYS:
        known = ", ".join(map(repr, _KEYS))
        msg = f"Unknown action {given!r}.{did_you_mean(name, list(_KEYS))} Actions: {known}."
        raise SMDebugValueError(msg)
    return name
