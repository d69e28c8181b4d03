"""What people are told of an incident while it changes: each of its news once."""

from collections.abc import Mapping
from typing import Any

from rule_core.severity import Severity
from rule_runner.watch.alerts.alert import Alert
from rule_runner.watch.alerts.entries import AlertEntry, Wait, advance

PATH = "/runs/a"


def alert(rule: str, *consequences: str, severity: str = "error", **fields: Any) -> Alert:
    defaults: dict[str, Any] = {"trial": 1, "path": PATH, "output": "/out", "since": 20}
    return Alert(
        rule=rule,
        consequences=consequences,
        severity=Severity(severity),
        **({"outcome": "IssuesFound"} | defaults | fields),
    )


class People:
    """Someone who is told all news at once."""

    def __init__(self) -> None:
        self.entries: list[AlertEntry] = []
        self.now = 0.0

    def see(self, *alerts: Alert, **recovered: int | None) -> list[str]:
        """Return the news that follow from what is open, and from recoveries by rule."""
        self.look(*alerts, recovered=recovered)
        news = [entry for entry in self.entries if entry.waits is Wait.MESSAGE]
        updates = [entry for entry in self.entries if entry.waits is Wait.UPDATE]
        self.entries = [
            entry._replace(
                id=number,
                known_phase=entry.alert.phase if entry.waits is Wait.MESSAGE else entry.known_phase,
                waits=Wait.NOTHING,
            )
            for number, entry in enumerate(self.entries)
        ]
        return [f"{entry.alert.rule} {entry.alert.phase}" for entry in news] + [
            f"{entry.alert.rule} changed" for entry in updates
        ]

    def look(self, *alerts: Alert, recovered: Mapping[str, int | None]) -> None:
        self.now += 1.0
        self.entries = [*advance(self.entries, alerts, {PATH: recovered}, self.now)]


def test_consequences_that_join_are_no_news() -> None:
    people = People()
    assert people.see(alert("Spike")) == ["Spike error"]
    assert people.see(alert("Spike")) == []
    assert people.see(alert("Spike", "Loss", since=40)) == ["Spike changed"]
    assert people.see(alert("Spike", "Loss", since=40)) == []
    assert people.see(alert("Spike", "Loss"), alert("Wiring")) == ["Wiring error"]


def test_a_root_cause_that_is_found_later_takes_over() -> None:
    people = People()
    assert people.see(alert("Loss")) == ["Loss error"]
    incident = people.entries[0].alert.incident
    assert people.see(alert("Spike", "Dead", "Loss", since=60)) == ["Spike changed"]
    assert [entry.alert.incident for entry in people.entries] == [incident]
    assert people.see(alert("Dead", "Loss", since=60)) == ["Dead changed"], "Spike recovered"
    assert people.see(Spike=70, Dead=80, Loss=90) == ["Dead recovered"]
    assert people.entries[0].alert.recovered_at == 90


def test_another_fault_does_not_take_over() -> None:
    people = People()
    assert people.see(alert("Batches", "Overfit")) == ["Batches error"]
    found = alert("Accumulates", "Overfit"), alert("Batches")
    assert people.see(*found) == ["Accumulates error", "Batches changed"]
    assert people.see(*found) == []


def test_what_was_acknowledged_does_not_stand_for_a_new_root_cause() -> None:
    people = People()
    assert people.see(alert("Loss")) == ["Loss error"]
    assert people.see() == [], "Loss was acknowledged"
    assert people.see(alert("Spike")) == ["Spike error"]
    assert people.see(alert("Spike", "Loss")) == ["Spike changed"], "that was withdrawn"


def test_an_incident_that_becomes_more_serious_is_told_again_once() -> None:
    people = People()
    assert people.see(alert("Spike", severity="warning")) == ["Spike warning"]
    assert people.see(alert("Spike", "Loss")) == ["Spike error"]
    assert people.see(alert("Spike", severity="warning")) == ["Spike changed"]
    assert people.see(alert("Spike", "Loss")) == ["Spike changed"]


def test_recovered_is_told_once_and_when_all_has_recovered() -> None:
    people = People()
    people.see(alert("Spike", "Loss"))
    assert people.see(alert("Loss"), Spike=30, Loss=None) == ["Loss changed"]
    assert people.see(Spike=30, Loss=None) == [], "Loss was acknowledged"
    assert people.see(Spike=30, Loss=50) == ["Loss recovered"]
    assert people.see(Spike=30, Loss=50) == []


def test_what_nobody_was_told_of_recovers_in_silence() -> None:
    people = People()
    people.look(alert("Spike"), recovered={})
    assert people.see(Spike=30) == []
    assert people.entries == []


def test_what_holds_again_is_news_unless_the_run_is_judged_again() -> None:
    people = People()
    people.see(alert("Spike", since=20))
    assert people.see(Spike=30) == ["Spike recovered"]
    assert people.see() == [], "the run is judged again"
    assert people.see(alert("Spike", since=20)) == []
    assert people.see(Spike=30) == []
    people.look(alert("Spike", since=70), recovered={})
    assert people.see(alert("Spike", since=70)) == ["Spike error"]
    assert people.see(Spike=90) == ["Spike recovered"]
    assert people.see(alert("Spike", since=70)) == []


def test_a_recovery_that_waits_is_forgotten_if_the_issue_holds_again() -> None:
    people = People()
    people.see(alert("Spike"))
    people.look(recovered={"Spike": 30})
    assert people.see(alert("Spike", since=40)) == []
    assert people.see(Spike=50) == ["Spike recovered"]


def test_alerts_that_wait_keep_their_turn() -> None:
    people = People()
    people.look(alert("Spike"), recovered={})
    people.look(alert("Spike", "Loss"), recovered={})
    (entry,) = people.entries
    assert (entry.found_at, entry.alert.consequences) == (1.0, ("Loss",))


def test_a_rule_that_fails_is_no_issue_of_it() -> None:
    people = People()
    assert people.see(alert("Spike", outcome="Error", since=0)) == ["Spike error"]
    assert people.see(alert("Spike")) == ["Spike error"]
    assert len(people.entries) == 2
