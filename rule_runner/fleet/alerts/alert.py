"""Alert: an issue that people are told about, and the messages about alerts."""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from rule_core.severity import Severity
from rule_runner.escape import printable
from rule_runner.fleet.output_names import digest
from rule_runner.loading.trials import trial_name
from rule_runner.notify.messenger import Message
from rule_runner.results.status import Outcome

MOST_LINES: Final = 20  # of a digest
_KEY_LENGTH: Final = 16


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """An issue of a rule on a trial, or why a trial could not be judged.

    Attributes
    ----------
    trial
        The number of the trial in the index.
    path
        Its path or address.
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
    rule: str
    outcome: str
    severity: Severity
    step: int | None = None
    problem: str = ""

    @property
    def key(self) -> str:
        """The identity of the alert: an issue that becomes more serious is another alert."""
        return _digest([self.path, self.rule, self.outcome, str(self.severity)])

    @property
    def title(self) -> str:
        """What happened, in a few words."""
        name = trial_name(self.path)
        did = f"found issues ({self.severity})" if self._is_issue else "failed"
        text = f"{name}: {self.rule} {did}" if self.rule else f"{name}: could not be judged"
        return printable(text).replace("](", "] (")  # a link in services that read Markdown

    @property
    def details(self) -> str:
        """Where or why it happened; "" if that is unknown."""
        if self.problem:
            return printable(self.problem)
        return "" if self.step is None else f"First at step {self.step}."

    @property
    def _is_issue(self) -> bool:
        return self.outcome == Outcome.ISSUES_FOUND


def message_on(alerts: Sequence[Alert], public_url: str | None) -> Message:
    """Return the message about some alerts: a digest if they are several.

    Parameters
    ----------
    public_url
        The address of the pages, for links; None for no links.
    """
    key = _digest(sorted(alert.key for alert in alerts))
    serious = any(alert.severity is Severity.ERROR for alert in alerts)
    if len(alerts) == 1:
        (alert,) = alerts
        lines = [alert.details, printable(f"Trial: {alert.path}"), _link(alert, public_url)]
        title = alert.title
    else:
        lines = [_line(alert, public_url) for alert in alerts[:MOST_LINES]]
        more = len(alerts) - MOST_LINES
        lines += [f"and {more} more"] * (more > 0)
        lines += [f"{public_url}/trials"] * (public_url is not None)
        trials = len({alert.path for alert in alerts})
        title = f"{len(alerts)} alerts on {trials} {'trial' if trials == 1 else 'trials'}"
    links = [_link(alert, public_url) for alert in alerts[:MOST_LINES]]
    links.append(f"{public_url}/trials")
    body = "\n".join([*filter(None, lines), f"Message {key}"])
    return Message(title, body, serious, key, tuple(links) if public_url else ())


def _line(alert: Alert, public_url: str | None) -> str:
    parts = [alert.title, alert.details, _link(alert, public_url)]
    return "- " + " ".join(filter(None, parts))


def _link(alert: Alert, public_url: str | None) -> str:
    return "" if public_url is None else f"{public_url}/trials/{alert.trial}"


def _digest(parts: Sequence[str]) -> str:
    return digest(json.dumps(parts), _KEY_LENGTH)
