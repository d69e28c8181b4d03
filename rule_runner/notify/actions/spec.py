"""Parser of ``--action``: what to do when a rule finds an issue."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rule_core.exceptions import SMDebugValueError
from rule_core.rules.actions.base import Action
from rule_core.rules.actions.message import MessageAction
from rule_core.rules.actions.parsing import EMAIL, SMS, check_job, problem
from rule_core.rules.actions.stop_training import StopTrainingAction
from rule_core.rules.params import did_you_mean
from rule_runner.errors import UsageError, translated
from rule_runner.notify.actions.command import CommandAction
from rule_runner.notify.actions.webhook import WebhookAction
from rule_runner.notify.spec_checks import check_kind, check_webhook


def parse_actions(texts: Sequence[str], ids: Sequence[str]) -> dict[str, tuple[Action, ...]]:
    """Return actions by ID of the rule job, from ``--action [ID=]SPEC``.

    An action without an ID applies to every rule job.

    Raises
    ------
    UsageError
        If a text does not have that form, or names an unknown rule job.
    """
    actions: dict[str, list[Action]] = {rule_id: [] for rule_id in ids}
    for text in texts:
        target, spec = split_id(text)
        if target is not None and target not in actions:
            hint = did_you_mean(target, list(ids))
            raise UsageError(
                f"Action for unknown rule {target!r}.{hint} The rules of this evaluation are: "
                f"{', '.join(map(repr, ids))}."
            )
        action = _action(spec)
        for rule_id in ids if target is None else (target,):
            actions[rule_id].append(action)
    return {rule_id: tuple(chosen) for rule_id, chosen in actions.items()}


def split_id(text: str) -> tuple[str | None, str]:
    """Split an action into the ID of its rule job, or None, and its specification.

    >>> split_id("a=email:x@example.com"), split_id("command:env A=b")
    (('a', 'email:x@example.com'), (None, 'command:env A=b'))
    """
    before, equals, rest = text.partition("=")
    return (before, rest) if equals and ":" not in before else (None, text)


def _action(spec: str) -> Action:
    kind, colon, rest = spec.partition(":")
    is_word = kind.replace("-", "").isalpha()  # anything else may be an endpoint
    check_kind("action", kind, _KINDS, label=kind if is_word else "...")
    if not colon or (not rest and kind != _STOP):
        raise UsageError(f"Action {kind!r} needs a value: {kind}:...")
    return _KINDS[kind](rest)


def _stop(name: str) -> Action:
    if name:
        with translated(UsageError, SMDebugValueError):
            check_job(name)
    return StopTrainingAction("", name)


def _message(kind: str) -> Callable[[str], Action]:
    def make(endpoint: str) -> Action:
        if expected := problem(kind, endpoint):
            raise UsageError(
                f"Action {kind!r} needs {expected}, got {len(endpoint)} other characters."
            )
        return MessageAction("", kind, endpoint)

    return make


def _webhook(url: str) -> Action:
    check_webhook(url)
    return WebhookAction(url)


def _command(text: str) -> Action:
    problem = "Action 'command' needs a valid command line: "
    with translated(UsageError, ValueError, before=problem, after="."):
        argv = shlex.split(text)
    if not argv or not argv[0] or "\0" in text:
        raise UsageError("Action 'command' needs a program: command:PROGRAM ARGUMENT...")
    return CommandAction(tuple(argv))


_STOP: Final = "stop-training"
_KINDS: Final[Mapping[str, Callable[[str], Action]]] = {
    _STOP: _stop,
    EMAIL: _message(EMAIL),
    SMS: _message(SMS),
    "webhook": _webhook,
    "command": _command,
}
