"""Alert: an issue to report to people, and the messages about alerts."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from rule_core.severity import Severity
from rule_core.sources.address import address_of
from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.notify.messenger import Message
from rule_runner.results.json_text import json_digest
from rule_runner.results.status import Outcome

MOST_LINES: Final = 20  # of a digest
_KEY_LENGTH: Final = 16


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """An issue of a rule on a trial, or why a trial could not be judged.

    Attributes
    ----------
    trial
        The number of the trial in the index.
    path, output
        Its path or address, and that of its output folder.
    rule
        The name of the rule job; "" for the trial itself.
    outcome
        ``IssuesFound`` or ``Error``.
    step
        The step of the first finding.
    problem
        Why the trial could not be judged; "" for a rule.
    """

    trial: int
    path: str
    output: str
    rule: str
    outcome: str
    severity: Severity
    step: int | None = None
    problem: str = ""

    @property
    def key(self) -> str:
        """The identity of the alert: an issue that becomes more serious is another alert."""
        return json_digest([self.path, self.rule, self.outcome, str(self.severity)], _KEY_LENGTH)

    @property
    def title(self) -> str:
        """What happened, in a few words."""
        name = address_of(self.path).name
        is_issue = self.outcome == Outcome.ISSUES_FOUND
        did = f"found issues ({self.severity})" if is_issue else "failed"
        text = f"{name}: {self.rule} {did}" if self.rule else f"{name}: could not be judged"
        return printable(text).replace("](", "] (")  # a link in services that read Markdown

    @property
    def details(self) -> str:
        """Where or why it happened, as far as the index knows; "" if it does not."""
        if self.problem:
            return printable(self.problem)
        return "" if self.step is None else f"step {self.step}"


def message_on(
    alerts: Sequence[Alert],
    public_url: str | None,
    details_of: Callable[[Alert], str] = attrgetter("details"),
) -> Message:
    """Return the message about some alerts: a digest if they are several.

    Parameters
    ----------
    details_of
        Says where or why an alert happened; called for those that the message lists.
    public_url
        The address of the pages, for links; None for no links.
    """
    key = json_digest(sorted(alert.key for alert in alerts), _KEY_LENGTH)
    serious = any(alert.severity is Severity.ERROR for alert in alerts)
    listed = alerts[:MOST_LINES]
    links = [f"{public_url}/trials/{alert.trial}" * (public_url is not None) for alert in listed]
    if len(alerts) == 1:
        (alert,) = alerts
        lines = [details_of(alert), printable(f"Trial: {alert.path}"), *links]
        title = alert.title
    else:
        pairs = zip(listed, links, strict=True)
        lines = [_line(alert, details_of(alert), link) for alert, link in pairs]
        more = len(alerts) - MOST_LINES
        lines += [f"and {more} more"] * (more > 0)
        lines += [f"{public_url}/trials"] * (public_url is not None)
        trials = len({alert.path for alert in alerts})
        title = f"{len(alerts)} alerts on {counted(trials, 'trial')}"
    links.append(f"{public_url}/trials")
    body = "\n".join([*filter(None, lines), f"Message {key}"])
    return Message(title, body, serious, key, tuple(links) if public_url else ())


def _line(alert: Alert, details: str, link: str) -> str:
    return " ".join(filter(None, [f"- {alert.title}{':' * bool(details)}", details, link]))
