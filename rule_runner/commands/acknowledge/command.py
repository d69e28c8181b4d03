"""acknowledge: records that somebody has seen or muted findings of a trial, or lists them."""

import getpass
from collections.abc import Iterator
from datetime import UTC, date, datetime
from operator import attrgetter
from typing import Final

from rule_core.rules.params import did_you_mean
from rule_runner.commands.report import results_at
from rule_runner.errors import ClientError, UsageError, translated
from rule_runner.escape import printable
from rule_runner.report.saved_results import Run
from rule_runner.report.text import evidence, verdict
from rule_runner.results import acknowledgements
from rule_runner.results.issues.acknowledged import finding_ids
from rule_runner.results.issues.incidents import incidents, root_of
from rule_runner.results.schema import RuleResult

_LISTED: Final = 20  # findings of a rule


def acknowledge(
    place: str,
    rule: str | None,
    finding: str | None,
    incident: str | None,
    kind: acknowledgements.AcknowledgementKind,
    reason: str,
    *,
    who: str | None = None,
    until: date | None = None,
) -> None:
    """Add an acknowledgement to the results at a place, and say so.

    Parameters
    ----------
    place
        The output folder of an evaluation, or its ``s3://`` address.
    rule, finding, incident
        What is acknowledged: a rule job, one finding by its ID, or an incident by its ID or the
        name of its root cause; the others are None.
    who
        By default the name of the user of this process.
    until
        The last day on which it holds.

    Raises
    ------
    ClientError
        If there are no results, or they have no such rule, finding or incident.
    OutputError
        If it cannot be written.
    UsageError
        If a text is empty or too long, or the day has passed.
    """
    now = datetime.now(UTC)
    if until is not None and until < now.date():
        raise UsageError(f"Option --until must be a day that has not passed, got {until}.")
    run = _run(place)
    if incident is not None:
        incident = _root(run, incident)
    name = incident or _check(run, rule, finding)
    problem = "Options --reason and --who must be 1 to 1000 characters long: "
    with translated(UsageError, ValueError, before=problem, after="."):
        said = acknowledgements.Acknowledgement(
            kind=kind,
            who=who or _user(),
            reason=reason,
            at=now,
            finding=finding,
            rule=rule,
            incident=incident,
            until=until,
        )
        acknowledgements.append_acknowledgement(run.output, said)
    what = "all findings" if finding is None else f"finding {finding}"
    what = f"{what} of {name}" + " and what may follow from it" * (incident is not None)
    end = f" until {until}" if until else ""
    print(printable(f"{str(kind).capitalize()}{end}: {what} in {run.output}."))


def list_findings(place: str) -> None:
    """Print the findings at a place with their IDs and what was said about them.

    Raises
    ------
    ClientError
        If there are no results.
    """
    rules = [job.result for job in _run(place).jobs]
    for group in filter(attrgetter("consequences"), incidents(rules)):
        record = group.record()
        names = ", ".join(record.consequences)
        print(printable(f"{record.id}  {record.root} and what may follow from it: {names}"))
    for rule in rules:
        if rule.evidence:
            print(printable(f"{rule.configuration_name}: {verdict(rule)}"))
            for line in _lines(rule):
                print(f"  {line}")


def _lines(rule: RuleResult) -> Iterator[str]:
    for number, finding in [*zip(finding_ids(rule), rule.evidence, strict=True)][:_LISTED]:
        yield f"{number}  {evidence(finding, rule.unit)}"
    if (more := len(rule.evidence) - _LISTED) > 0:
        yield f"and {more} more in the results"


def _run(place: str) -> Run:
    """Return the only evaluation at a place."""
    saved = results_at([place])
    if saved.problems:
        raise ClientError(saved.problems[0])
    if len(saved.runs) != 1:
        raise ClientError(
            f"{place!r} holds {len(saved.runs)} evaluations. Give the output folder of one of "
            f"them, such as {saved.runs[0].output!r}."
        )
    return saved.runs[0]


def _root(run: Run, incident: str) -> str:
    """Return the name of the rule job that is the root cause of an incident.

    Raises
    ------
    ClientError
        If there is no such incident.
    """
    root = root_of(incident, [job.result for job in run.jobs])
    if root is None:
        raise ClientError(
            f"No incident {incident!r} in {run.output!r}. List them and their IDs with "
            f"'rule-runner acknowledge {run.output}'."
        )
    return root.configuration_name


def _check(run: Run, rule: str | None, finding: str | None) -> str:
    """Check that a run has a rule or finding; return the name of the rule job.

    Raises
    ------
    ClientError
        If it does not.
    """
    rules = {job.result.configuration_name: job.result for job in run.jobs}
    if rule is not None:
        if rule not in rules:
            hint = did_you_mean(rule, sorted(rules))
            names = ", ".join(sorted(rules))
            raise ClientError(f"No rule {rule!r} in {run.output!r}.{hint} Rules there: {names}.")
        return rule
    for name, result in rules.items():
        if finding in finding_ids(result):
            return name
    raise ClientError(
        f"No finding {finding!r} in {run.output!r}. List them and their IDs with "
        f"'rule-runner acknowledge {run.output}'."
    )


def _user() -> str:
    """Return the name of the user of this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in containers
        return "unknown"
