"""--action: whose it is and what it does, or one sentence on what is wrong with it."""

import pytest

from rule_runner.errors import UsageError
from rule_runner.notify.actions.command import CommandAction
from rule_runner.notify.actions.spec import parse_actions
from rule_runner.notify.actions.webhook import WebhookAction
from smdebug.rules.action.action import MessageAction, StopTrainingAction

IDS = ["first", "second"]


def test_an_action_is_one_rules_or_all_rules() -> None:
    texts = ["email:A.b@Example.com", "second=stop-training:Job-1", "first=sms:+15550100"]
    email = MessageAction("", "email", "A.b@Example.com")
    assert parse_actions(texts, IDS) == {
        "first": (email, MessageAction("", "sms", "+15550100")),
        "second": (email, StopTrainingAction("", "Job-1")),
    }
    assert parse_actions([], IDS) == {"first": (), "second": ()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stop-training:", StopTrainingAction("", "")),
        ("webhook:https://example.com/a?b=c:d", WebhookAction("https://example.com/a?b=c:d")),
        ("command:notify --to='a b' x=y", CommandAction(("notify", "--to=a b", "x=y"))),
        ("first=command:env A=b sh", CommandAction(("env", "A=b", "sh"))),
    ],
)
def test_kinds(text: str, expected: object) -> None:
    assert parse_actions([text], ["first"]) == {"first": (expected,)}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (
            "mail:a@example.com",
            r"^Unknown action 'mail'\. Did you mean 'email'\? Actions are: 'stop-training', ",
        ),
        ("secret@example.com", r"^Unknown action '\.\.\.'\. Actions are: "),
        ("", r"^Unknown action ''|^Unknown action '\.\.\.'"),
        ("email:", r"^Action 'email' needs a value: email:\.\.\.$"),
        ("email", r"^Action 'email' needs a value"),
        ("stop-training", r"^Action 'stop-training' needs a value"),
        ("email:secret", r"^Action 'email' needs an e-mail address such as .*, got 6 other charac"),
        ("sms:0155secret", r"^Action 'sms' needs '\+' and 1 to 15 digits"),
        ("stop-training:a_b", r"^The name of a training job must be .*, got 'a_b'\.$"),
        ("webhook:ftp://secret/x", r"^Webhook address must begin with https:// and a host"),
        ("command:'", r"^Action 'command' needs a valid command line: No closing"),
        ("command:''", r"^Action 'command' needs a program"),
        ("command: ", r"^Action 'command' needs a program"),
        ("command:a\0b", r"^Action 'command' needs a program"),
        (
            "frist=sms:+1",
            r"^Action for unknown rule 'frist'\. Did you mean 'first'\?",
        ),
    ],
)
def test_what_is_no_action(text: str, match: str) -> None:
    with pytest.raises(UsageError, match=match) as raised:
        parse_actions([text], IDS)
    assert "secret" not in str(raised.value)


def test_what_actions_concern_is_shown_masked() -> None:
    texts = ["webhook:https://u.example.com/secret", "command:/opt/bin/tell --token=secret"]
    (actions,) = parse_actions(texts, ["first"]).values()
    assert [one.target for one in actions] == ["https://u.example.com/...", "tell"]
    assert "secret" not in repr(actions)
