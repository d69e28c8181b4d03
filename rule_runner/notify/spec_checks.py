"""Checks that the specifications of sinks and actions share."""

from collections.abc import Iterable

from rule_core.rules.params import did_you_mean
from rule_runner.errors import UsageError, translated
from rule_runner.notify.webhook import WebhookError, check


def check_kind(noun: str, kind: str, kinds: Iterable[str], *, label: str | None = None) -> None:
    """Check that a kind of sink or action exists.

    Parameters
    ----------
    noun
        ``sink`` or ``action``.
    label
        Text that stands for `kind` in the message; by default `kind`.

    Raises
    ------
    UsageError
        If `kind` is not one of `kinds`.
    """
    names = list(kinds)
    if kind not in names:
        hint = did_you_mean(kind, names)
        choices = ", ".join(map(repr, names))
        label = kind if label is None else label
        raise UsageError(f"Unknown {noun} {label!r}.{hint} {noun.capitalize()}s are: {choices}.")


def check_webhook(url: str) -> None:
    """Check the address of a webhook.

    Raises
    ------
    UsageError
        If webhooks must not be sent to it; see `rule_runner.notify.webhook.check`.
    """
    with translated(UsageError, WebhookError):
        check(url)
