"""What a message about alerts says."""

from typing import Any

from rule_core.severity import Severity
from rule_runner.watch.alerts.alert import MOST_LINES, Alert, message_on

URL = "https://rules.example.org"


def alert(**fields: Any) -> Alert:
    defaults: dict[str, Any] = {
        "trial": 7,
        "path": "/runs/mnist",
        "output": "/out/mnist",
        "rule": "Loss",
        "outcome": "IssuesFound",
        "severity": Severity.ERROR,
        "step": 130,
    }
    return Alert(**(defaults | fields))


def test_one_alert_is_a_message_with_a_link() -> None:
    message = message_on([alert()], URL)
    assert message.title == "mnist: Loss found issues (error)"
    assert message.body.splitlines() == [
        "step 130",
        "Trial: /runs/mnist",
        "https://rules.example.org/trials/7",
        f"Message {message.key}",
    ]
    assert message.serious


def test_without_an_address_there_is_no_link() -> None:
    assert "http" not in message_on([alert()], None).body
    assert "http" not in message_on([alert(), alert(rule="b")], None).body


def test_rules_that_failed_and_trials_that_were_not_judged() -> None:
    failed = alert(outcome="Error", step=None)
    assert message_on([failed], None).title == "mnist: Loss failed"
    lost = alert(rule="", outcome="Error", step=None, problem="Its evaluation ended 4 times.")
    message = message_on([lost], None)
    assert message.title == "mnist: could not be judged"
    assert message.body.startswith("Its evaluation ended 4 times.\nTrial: /runs/mnist\n")


def test_several_alerts_are_a_digest() -> None:
    alerts = [alert(rule=f"rule-{number}") for number in range(MOST_LINES + 3)]
    message = message_on(alerts, URL)
    lines = message.body.splitlines()
    assert message.title == f"{MOST_LINES + 3} alerts on 1 trial"
    assert lines[0] == (
        "- mnist: rule-0 found issues (error): step 130 https://rules.example.org/trials/7"
    )
    assert lines[MOST_LINES:-1] == ["and 3 more", "https://rules.example.org/trials"]
    assert message_on([alert(), alert(path="/runs/b")], None).title == "2 alerts on 2 trials"


def test_a_message_is_serious_if_one_of_its_alerts_is() -> None:
    mild = alert(severity=Severity.WARNING)
    assert not message_on([mild], None).serious
    assert message_on([mild, alert()], None).serious


def test_an_incident_names_its_consequences_and_its_end() -> None:
    message = message_on([alert(consequences=("Dead", "Vanishing"), incident="i")], URL)
    assert message.body.splitlines()[:2] == [
        "step 130",
        "What may follow from it: Dead, Vanishing",
    ]
    assert (message.incident, message.recovered) == ("i", False)
    back = message_on([alert(recovered_at=150, incident="i")], URL)
    assert back.title == "mnist: Loss has recovered"
    assert back.body.startswith("recovered at step 150\nTrial: ")
    assert (back.incident, back.recovered, back.serious) == ("i", True, False)
    both = message_on([alert(recovered_at=150, incident="i"), alert(incident="i")], None)
    assert (both.incident, both.recovered, both.serious) == ("", False, True)
    assert both.body.startswith("- mnist: Loss has recovered: recovered at step 150\n")


def test_keys_identify_alerts_and_messages() -> None:
    same = [alert(), alert(trial=8), alert(step=20)]
    assert len({each.key for each in same}) == 1
    assert alert(since=130).key != alert(recovered_at=140, since=130).key != alert().key
    others = [
        alert(path="/runs/b"),
        alert(rule="b"),
        alert(severity=Severity.WARNING),
        alert(outcome="Error"),
    ]
    assert len({each.key for each in (*same, *others)}) == 5
    one, other = message_on(others, None).key, message_on(others[::-1], None).key
    assert one == other != message_on(others[:3], None).key


def test_names_of_trials_are_printable() -> None:
    message = message_on([alert(path="/runs/\x1b[31m\nFROM: x", rule="\x00")], None)
    assert message.title == "\\x1b[31m\\nFROM: x: \\x00 found issues (error)"
    assert len(message.body.splitlines()) == 3
