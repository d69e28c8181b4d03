"""AppriseSink: messages for people, in chats, by e-mail and to pagers, through Apprise."""

import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from rule_core.severity import Severity
from rule_runner.errors import UsageError
from rule_runner.notify.event import Event, statuses
from rule_runner.notify.sinks.base import EventSink, Sent, SinkError
from rule_runner.results.status import NOT_ENOUGH, RuleStatus

VARIABLE: Final = "$"  # begins the name of a variable that has the address
MOST_LINES: Final = 20  # of a digest
_ATTENTION: Final = frozenset({RuleStatus.ISSUES_FOUND, RuleStatus.ERROR})


class _Alert(NamedTuple):
    """A rule of a training job that needs attention.

    Attributes
    ----------
    word
        What the rule did, for the title.
    details
        Where and why.
    serious
        Whether it failed or found an error, not a warning.
    """

    job: str
    rule: str
    word: str
    details: str
    serious: bool


class Message(NamedTuple):
    """A message in plain text; `serious` as in an alert."""

    title: str
    body: str
    serious: bool


class AppriseSink(EventSink):
    """Sends a message for each rule that finds issues or fails; several that wait become one.

    Other changes of status are taken and send nothing.

    Parameters
    ----------
    address
        An address of Apprise, or ``$NAME``: the variable that has it.

    Raises
    ------
    UsageError
        If Apprise is not installed, or does not know the address.
    """

    def __init__(self, address: str) -> None:
        try:
            import apprise
        except ImportError as err:
            msg = (
                "Sink 'apprise' needs the package apprise. "
                "Install it with pip install 'rule-runner[apprise]'."
            )
            raise UsageError(msg) from err
        asset = apprise.AppriseAsset(
            app_id="rule-runner",
            app_desc="rule-runner",
            app_url="",
            image_url_mask="",
            image_url_logo="",
            storage_mode="memory",
        )
        self._apprise = apprise.Apprise(asset=asset)
        # Apprise logs addresses that it does not know, with their secrets.
        logging.getLogger("apprise").propagate = False
        if not self._apprise.add(_resolved(address)):
            msg = (
                f"Apprise does not know the address {masked(address)!r}, or a part of it is "
                "missing. Its documentation lists the addresses of all services."
            )
            raise UsageError(msg)

    def send(self, events: Sequence[Event]) -> Sent:
        """Send one message about all `events`, if any of them needs attention; see `EventSink`.

        Raises
        ------
        SinkError
            If the service did not take it.
        """
        message = compose([alert for event in events for alert in _alerts(event)])
        if message is not None:
            self._notify(message)
        return Sent(len(events))

    def _notify(self, message: Message) -> None:
        result = self._apprise.notify(
            title=message.title,
            body=message.body,
            notify_type="failure" if message.serious else "warning",
            body_format="text",
            log_level=logging.WARNING,
        )
        if not result:
            said = [entry.message for entry in result.logs()]
            reason = said[-1] if said else "the service did not take the message."
            raise SinkError(reason, transient=True)


def masked(address: str) -> str:
    """Return an address without the parts that may be secret.

    >>> masked("slack://T0/B1/secret")
    'slack://...'
    >>> masked("$ALERTS")
    '$ALERTS'
    """
    if address.startswith(VARIABLE):
        return address
    scheme, separator, _ = address.partition("://")
    return f"{scheme}://..." if separator else "..."


def _resolved(address: str) -> str:
    """Return an address, read from the environment if it is the name of a variable."""
    if not address.startswith(VARIABLE):
        return address
    name = address.removeprefix(VARIABLE)
    value = os.environ.get(name)
    if not value:
        msg = (
            f"Sink 'apprise:{address}' needs its address in the variable {name}, which is not set."
        )
        raise UsageError(msg)
    return value


def _alerts(event: Event) -> Iterator[_Alert]:
    """Yield the rules that changed to a status that needs attention."""
    detail: Any = event["detail"]
    changed = detail.get("ChangedRules", ())
    for entry in statuses(detail):
        status, rule = entry["RuleEvaluationStatus"], entry["RuleConfigurationName"]
        details = entry.get("StatusDetails", "")
        judged_nothing = details.startswith(NOT_ENOUGH)  # in SageMaker's statuses, an error
        if rule not in changed or status not in _ATTENTION or judged_nothing:
            continue
        severity = entry.get("RuleEvaluationSeverity", Severity.ERROR)
        found = status == RuleStatus.ISSUES_FOUND
        yield _Alert(
            detail["TrainingJobName"],
            rule,
            f"found issues ({severity})" if found else "failed",
            (details.partition(": ")[2] or details).strip(),
            not found or severity == Severity.ERROR,
        )


def compose(alerts: Sequence[_Alert]) -> Message | None:
    """Return the message about some alerts, a digest if they are several; None without any."""
    if not alerts:
        return None
    serious = any(alert.serious for alert in alerts)
    first = alerts[0]
    if len(alerts) == 1:
        return Message(f"{first.job}: {first.rule} {first.word}", first.details, serious)
    lines = [f"- {alert.rule} {alert.word}: {alert.details}" for alert in alerts[:MOST_LINES]]
    if len(alerts) > MOST_LINES:
        lines.append(f"and {len(alerts) - MOST_LINES} more")
    title = f"{first.job}: {len(alerts)} rules need attention"
    return Message(title, "\n".join(lines), serious)
