"""What of an index people are to be told."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alerted import Index, issue

from rule_core.severity import Severity
from rule_runner.errors import OutputError
from rule_runner.watch.alerts.alert import Alert
from rule_runner.watch.alerts.open_alerts import OpenAlerts


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with closing(Index(tmp_path)) as index:
        yield index


def open_in(alerts: OpenAlerts) -> list[Alert]:
    state = alerts.changed()
    return [] if state is None else state.alerts


def told(index: Index, least: str = "warning") -> list[tuple[str, str, str]]:
    alerts = open_in(OpenAlerts(index.path, Severity(least)))
    return [(alert.path, alert.rule, alert.severity) for alert in alerts]


def test_open_issues_and_errors_are_alerts(index: Index) -> None:
    healthy = issue("c", outcome="NoIssuesFound", severity=None)
    failed = issue("b", outcome="Error", severity=None)
    number = index.judge("a", issue("a"), failed, healthy, issue("d", "warning"))
    assert sorted(told(index)) == [
        ("/runs/a", "a", "error"),
        ("/runs/a", "b", "error"),
        ("/runs/a", "d", "warning"),
    ]
    assert len(told(index, "error")) == 2
    (_, first) = open_in(OpenAlerts(index.path, Severity.ERROR))
    assert (first.trial, first.step, first.outcome, first.problem) == (
        number,
        130,
        "IssuesFound",
        "",
    )


def test_the_rule_jobs_of_an_incident_are_one_alert(index: Index) -> None:
    index.judge(
        "a",
        issue("Dead", "warning", root="Spike", since=60),
        issue("Loss", root="Spike", since=40),
        issue("Seen", root="Spike", since=20, acknowledged=True),
        issue("Spike", "warning", root="Spike", since=50),
        issue("Other", root="Other", since=5),
    )
    other, alert = open_in(OpenAlerts(index.path, Severity.ERROR))
    assert (other.rule, other.consequences) == ("Other", ())
    assert (alert.rule, alert.consequences) == ("Spike", ("Loss", "Dead"))
    assert (alert.severity, alert.step, alert.since) == (Severity.ERROR, 50, 60)


def test_without_its_root_an_incident_is_on_the_earliest_of_the_others(index: Index) -> None:
    index.judge(
        "a",
        issue("Dead", root="Spike", since=60),
        issue("Loss", root="Spike", since=40),
        issue("Spike", root="Spike", since=5, acknowledged=True),
    )
    (alert,) = open_in(OpenAlerts(index.path, Severity.ERROR))
    assert (alert.rule, alert.consequences) == ("Loss", ("Dead",))


def test_recoveries_are_those_of_trials_with_any(index: Index) -> None:
    index.judge(
        "a",
        issue("Back", counted_severity=None, recovered_at=70),
        issue("Loss", acknowledged=True),
        issue("Runs", None, outcome="InProgress"),
        issue("Observed", mode="observe", counted_severity=None, recovered_at=9),
    )
    index.judge("b", issue())
    state = OpenAlerts(index.path, Severity.ERROR).changed()
    assert state is not None
    assert state.recoveries == {"/runs/a": {"Back": 70, "Loss": None, "Runs": None}}
    assert [alert.path for alert in state.alerts] == ["/runs/b"]


def test_what_was_acknowledged_or_muted_or_is_observed_is_none(index: Index) -> None:
    index.judge(
        "a",
        issue("a", acknowledged=True),
        issue("b", counted_severity=None),
        issue("c", mode="observe"),
        issue("d", outcome="Error", counted_severity=None, acknowledged=True),
    )
    assert told(index) == []


def test_muting_the_errors_leaves_a_warning(index: Index) -> None:
    index.judge("a", issue("a", counted_severity=Severity.WARNING))
    assert told(index) == [("/runs/a", "a", "warning")]


def test_a_trial_that_could_not_be_judged_is_an_alert(index: Index) -> None:
    index.judge("a", outcome="Error", problem="Its evaluation ended 4 times without a verdict.")
    assert told(index) == [("/runs/a", "", "error")]


def test_nothing_is_read_again_without_changes_and_a_new_file_is_noticed(index: Index) -> None:
    index.judge("a", issue())
    alerts = OpenAlerts(index.path, Severity.WARNING)
    assert len(open_in(alerts)) == 1
    assert alerts.changed() is None
    index.judge("b", issue())
    assert len(open_in(alerts)) == 2
    index.close()
    index.path.unlink()
    with pytest.raises(OutputError, match="No such file"):
        alerts.changed()
    index.database = Index(index.path.parent).database
    assert alerts.changed() == ([], {})
