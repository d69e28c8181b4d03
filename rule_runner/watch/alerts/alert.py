"""Alert: an incident to report to people, and the messages about alerts."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from rule_core.model.segments import step_text
from rule_core.severity import Severity
from rule_core.sources.address import address_of
from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.notify.messenger import Message
from rule_runner.results.json_text import json_digest
from rule_runner.results.status import FindingState, Outcome

MOST_LINES: Final = 20  # of a digest
RECOVERED: Final = str(FindingState.RECOVERED)
_KEY_LENGTH: Final = 16


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """An incident of a trial, the failure of a rule, or why a trial could not be judged.

    Attributes
    ----------
    trial
        The number of the trial in the index.
    path, output
        Its path or address, and that of its output folder.
    rule
        The name of the rule job that failed, or found the root cause; "" for the trial itself.
    outcome
        ``IssuesFound`` or ``Error``.
    step
        The global step of the first finding that still holds.
    problem
        Why the trial could not be judged; "" for a rule.
    consequences, former
        The names of the other rule jobs of the incident, and of those that were.
    since
        The latest global step at which a rule of the incident found its issue.
    recovered_at
        The step since which nothing of the incident holds; None while anything does.
    incident
        The identity of the incident to receivers: the root cause may change.
    """

    trial: int
    path: str
    output: str
    rule: str
    outcome: str
    severity: Severity
    step: int | None = None
    problem: str = ""
    consequences: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    since: int = 0
    recovered_at: int | None = None
    incident: str = ""

    @property
    def phase(self) -> str:
        """What people are told of the incident: its severity, or that it has recovered."""
        return str(self.severity) if self.recovered_at is None else RECOVERED

    @property
    def rules(self) -> frozenset[str]:
        """The rule jobs that are, or were, of the incident."""
        return frozenset({self.rule, *self.consequences, *self.former})

    @property
    def key(self) -> str:
        """The identity of the news: an incident that becomes more serious is other news."""
        news = [self.path, self.rule, self.outcome, self.phase, self.since, *self.consequences]
        return json_digest(news, _KEY_LENGTH)

    @property
    def title(self) -> str:
        """What happened, in a few words."""
        name = address_of(self.path).name
        is_issue = self.outcome == Outcome.ISSUES_FOUND
        did = f"found issues ({self.severity})" if is_issue else "failed"
        did = did if self.recovered_at is None else "has recovered"
        text = f"{name}: {self.rule} {did}" if self.rule else f"{name}: could not be judged"
        return printable(text).replace("](", "] (")  # a link in services that read Markdown

    @property
    def details(self) -> str:
        """Where or why it happened, as far as the index knows; "" if it does not."""
        if self.problem:
            return printable(self.problem)
        if self.recovered_at is not None:
            return f"recovered at step {self.recovered_at}"
        return "" if self.step is None else f"step {step_text(self.step)}"

    @property
    def following(self) -> str:
        """Which rule jobs found what may follow from the root cause; "" if none did."""
        names = ", ".join(self.consequences)
        return printable(f"What may follow from it: {names}") if names else ""

    def stands_for(self, other: "Alert") -> bool:
        """Return whether another alert is on the incident of this one, whose root may change."""
        is_same = self.rule in other.rules or other.rule in self.rules
        return self.outcome == other.outcome and is_same


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
    serious = any(alert.phase == Severity.ERROR for alert in alerts)
    listed = alerts[:MOST_LINES]
    links = [f"{public_url}/trials/{alert.trial}" * (public_url is not None) for alert in listed]
    if len(alerts) == 1:
        (alert,) = alerts
        path = printable(f"Trial: {alert.path}")
        lines = [details_of(alert), alert.following, path, *links]
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
    incident = alerts[0].incident if len(alerts) == 1 else ""
    has_recovered = all(alert.phase == RECOVERED for alert in alerts)
    return Message(
        title, body, serious, key, tuple(links) if public_url else (), incident, has_recovered
    )


def _line(alert: Alert, details: str, link: str) -> str:
    return " ".join(filter(None, [f"- {alert.title}{':' * bool(details)}", details, link]))
