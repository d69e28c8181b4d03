"""The sink apprise: messages for people, to real local servers and as requests to real services."""

import dataclasses
import io
import json
import logging
import re
import sys
from typing import Any

import http_places
import mail_server
import pytest
import responses
from http_places import Answer
from told import GOING, JOB, MET, many, told

from rule_core.severity import Severity
from rule_runner.errors import UsageError
from rule_runner.notify.event import EventSubject, RuleState
from rule_runner.notify.sinks import Sent, SinkError
from rule_runner.notify.sinks.apprise import MOST_LINES, AppriseSink
from rule_runner.notify.sinks.spec import parse_sinks
from rule_runner.results.status import NOT_ENOUGH, FindingState, RuleStatus

# Apprise imports it in Python 3.11 and 3.12.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#training"
TEAMS = "workflows://prod-1.westus.logic.azure.com:443/643e69f83c8944/iWgxkb9dvWLZvi"
PAGER = "pagerduty://A1BRTD4JD@TIiajkdnlazkcOXrIdevi7F"
CONDITION = str(MET.details).partition(": ")[2].strip()
HOSTILE = "<!channel> <b>&"
WARNING = dataclasses.replace(MET, severity=Severity.WARNING)
NOT_EVALUATED = RuleState("a", RuleStatus.ERROR, f"{NOT_ENOUGH}Rule 'a' judged none.")
FAILED = RuleState("Overfit", RuleStatus.ERROR, "ClientError: 'loss' is no number.")


def alert(number: int) -> dict[str, Any]:
    """Return an event about a rule that found issues."""
    name = f"rule-{number}"
    state = dataclasses.replace(MET, configuration_name=name)
    return told(state, sequence=number, changed=[name])


def posted(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a server got from Apprise's own JSON service."""
    with http_places.serving() as place:
        address = place.url.replace("http:", "json:")
        assert AppriseSink(f"{address}/alerts").send(events) == Sent(len(events))
    return [json.loads(request.body) for request in place.requests]


@pytest.mark.parametrize(
    ("state", "title", "message", "kind"),
    [
        (
            MET,
            "mnist-42: LossCheck found issues (error)",
            CONDITION,
            "failure",
        ),
        (
            WARNING,
            "mnist-42: LossCheck found issues (warning)",
            CONDITION,
            "warning",
        ),
        (
            dataclasses.replace(MET, finding_state=FindingState.RECOVERED, state_step=9),
            "mnist-42: LossCheck has recovered from its issues",
            CONDITION,
            "warning",
        ),
        (FAILED, "mnist-42: Overfit failed", "'loss' is no number.", "failure"),
    ],
)
def test_a_rule_that_needs_attention_is_a_message(
    state: RuleState, title: str, message: str, kind: str
) -> None:
    (body,) = posted(told(state, changed=[state.configuration_name]))
    assert (body["title"], body["message"], body["type"]) == (title, message, kind)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(many(1)[0], id="nothing-changed"),
        pytest.param(told(MET, GOING, changed=["Overfit"]), id="another-rule-changed"),
        pytest.param(
            told(RuleState("a", RuleStatus.NO_ISSUES_FOUND), changed=["a"]), id="no-issues"
        ),
        pytest.param(told(RuleState("a", RuleStatus.STOPPED, "x"), changed=["a"]), id="stopped"),
        pytest.param(told(NOT_EVALUATED, changed=["a"]), id="judged-nothing"),
    ],
)
def test_other_changes_send_nothing(event: dict[str, Any]) -> None:
    assert posted(event) == []


def test_rules_that_wait_become_one_digest() -> None:
    (body,) = posted(*map(alert, range(MOST_LINES + 3)))
    assert body["title"] == f"mnist-42: {MOST_LINES + 3} rules need attention"
    lines = body["message"].splitlines()
    assert lines[0].startswith("- rule-0 found issues (error): Evaluation of")
    assert lines[MOST_LINES - 1].startswith(f"- rule-{MOST_LINES - 1} ")
    assert lines[MOST_LINES:] == ["and 3 more"]


@pytest.mark.parametrize("status", [404, 500])
def test_a_message_that_is_not_taken_is_sent_again_later(status: int) -> None:
    with http_places.serving(lambda _: Answer(status)) as place:
        address = place.url.replace("http://", "json://user:hidden@")
        with pytest.raises(SinkError, match=f"error={status}") as found:
            AppriseSink(address).send([alert(1)])
    assert found.value.transient
    assert "hidden" not in str(found.value)


def test_a_service_that_is_down_is_a_reason() -> None:
    with http_places.serving() as place:
        address = place.url.replace("http:", "json:")
    with pytest.raises(SinkError, match="Connection error"):
        AppriseSink(address).send([alert(1)])


def test_an_e_mail_arrives() -> None:
    with mail_server.receiving() as mails:
        address = f"mailto://127.0.0.1:{mails.port}?from=rules@example.org&to=team@example.org"
        assert AppriseSink(address).send([alert(1)]) == Sent(1)
    (letter,) = mails.letters
    assert letter.rcpt_tos == ["team@example.org"]
    assert b"Subject: mnist-42: rule-1 found issues (error)" in letter.content


@pytest.mark.parametrize(
    ("address", "url", "parts"),
    [
        (SLACK, "https://hooks.slack.com/services/T1JJ3T3L2/", ["&lt;!channel&gt;", "#training"]),
        (TEAMS, "https://prod-1.westus.logic.azure.com:443/workflows/", ["AdaptiveCard", HOSTILE]),
        (PAGER, "https://events.pagerduty.com/v2/enqueue", ['"severity": "critical"', HOSTILE]),
    ],
)
def test_services_get_requests_of_theirs(address: str, url: str, parts: list[str]) -> None:
    rule = dataclasses.replace(MET, configuration_name=HOSTILE)
    job = EventSubject(HOSTILE, JOB.started_at)
    status = 202 if address is PAGER else 200
    with responses.RequestsMock() as transport:
        transport.add(responses.POST, re.compile(".*"), status=status, body="ok")
        assert AppriseSink(address).send([told(rule, changed=[HOSTILE], job=job)]) == Sent(1)
        (call,) = transport.calls
    body = call.request.body
    text = body.decode() if isinstance(body, bytes) else str(body)
    assert str(call.request.url).startswith(url)
    assert [part for part in parts if part not in text] == []
    assert "<!channel>" not in text or address is not SLACK
    assert "github" not in text


def test_an_address_may_be_in_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_places.serving() as place:
        monkeypatch.setenv("ALERTS", place.url.replace("http:", "json:"))
        (sink,) = parse_sinks(["apprise:$ALERTS"])
        assert sink.send([alert(1)]) == Sent(1)
    assert len(place.requests) == 1
    assert sink.label == "apprise:$ALERTS"


def test_labels_have_no_secrets() -> None:
    (sink,) = parse_sinks([f"apprise:{SLACK}"])
    assert sink.label == "apprise:slack://..."
    assert "T1JJ" not in sink.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apprise:slak://T0/hidden", r"does not know the address 'slak://\.\.\.'"),
        ("apprise:slack://hidden", r"does not know the address 'slack://\.\.\.'"),
        ("apprise:hidden", r"does not know the address '\.\.\.'"),
        ("apprise:$MISSING", "in the variable MISSING, which is not set"),
        ("apprise:", "needs an address of Apprise"),
        ("apprise", "needs an address of Apprise"),
        ("aprise:x", "Did you mean 'apprise'"),
    ],
)
def test_wrong_addresses_are_refused_without_their_secrets(text: str, message: str) -> None:
    log = logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(log)
    try:
        with pytest.raises(UsageError, match=message) as found:
            parse_sinks([text])
    finally:
        logging.getLogger().removeHandler(log)
    assert "hidden" not in f"{found.value}{log.stream.getvalue()}"


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(UsageError, match=r"pip install 'rule-runner\[apprise\]'"):
        AppriseSink("json://localhost")
