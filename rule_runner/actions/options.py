"""Reads --action: what the operator wants to be done when a rule finds something."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rule_runner.actions.command_action import CommandAction
from rule_runner.actions.webhook_action import WebhookAction
from rule_runner.errors import UsageError
from rule_runner.webhook import WebhookError, check
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.action.base import Action
from smdebug.rules.action.endpoints import EMAIL, SMS, problem
from smdebug.rules.action.message_action import MessageAction
from smdebug.rules.action.parsing import check_job
from smdebug.rules.action.stop_training_action import StopTrainingAction
from smdebug.rules.params import did_you_mean


def parse_actions(texts: Sequence[str], ids: Sequence[str]) -> dict[str, tuple[Action, ...]]:
    """Return actions by ID of the rule job, from ``--action [ID=]SPEC``.

    An action without an ID is one of every rule job.

    Raises
    ------
    UsageError
        If a text is not of that form, or names no rule job.
    """
    found: dict[str, list[Action]] = {one: [] for one in ids}
    for text in texts:
        one, spec = split_id(text)
        if one is not None and one not in found:
            known = ", ".join(map(repr, ids))
            hint = did_you_mean(one, list(ids))
            msg = f"An action is for {one!r}, no rule of this evaluation.{hint} Its IDs: {known}."
            raise UsageError(msg)
        action = _action(spec)
        for name in ids if one is None else (one,):
            found[name].append(action)
    return {one: tuple(actions) for one, actions in found.items()}


def split_id(text: str) -> tuple[str | None, str]:
    """Return the ID of the rule job that an action is for, or None, and the action.

    >>> split_id("a=email:x@example.com"), split_id("command:env A=b")
    (('a', 'email:x@example.com'), (None, 'command:env A=b'))
    """
    before, equals, rest = text.partition("=")
    return (before, rest) if equals and ":" not in before else (None, text)


def _action(spec: str) -> Action:
    kind, colon, rest = spec.partition(":")
    if kind not in _KINDS:
        known = ", ".join(f"{one}:..." for one in _KINDS)
        shown = kind if kind.replace("-", "").isalpha() else "..."  # it may be an endpoint
        msg = f"Unknown action {shown!r}.{did_you_mean(kind, list(_KINDS))} Actions: {known}."
        raise UsageError(msg)
    if not colon or (not rest and kind != _STOP):
        msg = f"Action {kind!r} needs something behind it: {kind}:..."
        raise UsageError(msg)
    return _KINDS[kind](rest)


def _stop(name: str) -> Action:
    try:
        if name:
            check_job(name)
    except SMDebugValueError as err:
        raise UsageError(str(err)) from err
    return StopTrainingAction("", name)


def _message(kind: str) -> Callable[[str], Action]:
    def made(endpoint: str) -> Action:
        if meant := problem(kind, endpoint):
            msg = f"Action {kind!r} needs {meant}, got {len(endpoint)} other characters."
            raise UsageError(msg)
        return MessageAction("", kind, endpoint)

    return made


def _webhook(url: str) -> Action:
    try:
        check(url)
    except WebhookError as err:
        raise UsageError(str(err)) from err
    return WebhookAction(url)


def _command(text: str) -> Action:
    try:
        argv = shlex.split(text)
    except ValueError as err:
        msg = f"Action 'command' needs a command line, and this one is none: {err}."
        raise UsageError(msg) from err
    if not argv or not argv[0] or "\0" in text:
        msg = "Action 'command' needs a program behind it: command:PROGRAM ARGUMENT..."
        raise UsageError(msg)
    return CommandAction(tuple(argv))


_STOP: Final = "stop-training"
_KINDS: Final[Mapping[str, Callable[[str], Action]]] = {
    _STOP: _stop,
    EMAIL: _message(EMAIL),
    SMS: _message(SMS),
    "webhook": _webhook,
    "command": _command,
}
