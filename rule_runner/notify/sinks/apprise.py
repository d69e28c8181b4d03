"""AppriseSink: messages for people, in chats, by e-mail and to pagers, through Apprise."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rule_core.severity import Severity
from rule_runner.notify.event import Event, statuses
from rule_runner.notify.messenger import Message, Messenger, NotSentError
from rule_runner.notify.sinks.base import EventSink, Sent, SinkError
from rule_runner.results.status import NOT_ENOUGH, FindingState, RuleStatus

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
        self._messenger = Messenger(address)

    def send(self, events: Sequence[Event]) -> Sent:
        """Send one message about all `events`, if any of them needs attention; see `EventSink`.

        Raises
        ------
        SinkError
            If the service did not take it.
        """
        message = compose([alert for event in events for alert in _alerts(event)])
        if message is not None:
            try:
                self._messenger.send(message)
            except NotSentError as err:
                raise SinkError(str(err), transient=True) from err
        return Sent(len(events))


def _alerts(event: Event) -> Iterator[_Alert]:
    """Yield the rules that changed to a status that needs attention."""
    detail: Any = event["detail"]
    changed = detail.get("ChangedRules", ())
    findings = {each["RuleConfigurationName"]: each for each in detail.get("Findings", ())}
    for entry in statuses(detail):
        status, rule = entry["RuleEvaluationStatus"], entry["RuleConfigurationName"]
        details = entry.get("StatusDetails", "")
        judged_nothing = details.startswith(NOT_ENOUGH)  # in SageMaker's statuses, an error
        if rule not in changed or status not in _ATTENTION or judged_nothing:
            continue
        severity = entry.get("RuleEvaluationSeverity", Severity.ERROR)
        found = status == RuleStatus.ISSUES_FOUND
        recovered = entry.get("RuleEvaluationState") == FindingState.RECOVERED
        found_issues = (
            "has recovered from its issues" if recovered else f"found issues ({severity})"
        )
        yield _Alert(
            detail["TrainingJobName"],
            rule,
            found_issues if found else "failed",
            _sentences(findings.get(rule, {})) or (details.partition(": ")[2] or details).strip(),
            not found or (severity == Severity.ERROR and not recovered),
        )


def _sentences(finding: Mapping[str, str]) -> str:
    return " ".join(filter(None, (finding.get("Summary"), finding.get("Advice"))))


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
