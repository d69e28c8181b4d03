"""--action: whose it is and what it does, or one sentence on what is wrong with it."""

import pytest

from rule_runner.actions.command_action import CommandAction
from rule_runner.actions.options import parse_actions
from rule_runner.actions.webhook_action import WebhookAction
from rule_runner.errors import UsageError
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
            r"^Unknown action 'mail'\. Did you mean 'email'\? Actions: stop-training:\.\.\., ",
        ),
        ("secret@example.com", r"^Unknown action '\.\.\.'\. Actions: "),
        ("", r"^Unknown action ''|^Unknown action '\.\.\.'"),
        ("email:", r"^Action 'email' needs something behind it: email:\.\.\.$"),
        ("email", r"^Action 'email' needs something behind it"),
        ("stop-training", r"^Action 'stop-training' needs something behind it"),
        ("email:secret", r"^Action 'email' needs an e-mail address such as .*, got 6 other charac"),
        ("sms:0155secret", r"^Action 'sms' needs '\+' and 1 to 15 digits"),
        ("stop-training:a_b", r"^Name of a training job must be .*, got 'a_b'\.$"),
        ("webhook:ftp://secret/x", r"^Webhook address must begin with https:// and a host"),
        ("command:'", r"^Action 'command' needs a command line, and this one is none: No closing"),
        ("command:''", r"^Action 'command' needs a program behind it"),
        ("command: ", r"^Action 'command' needs a program behind it"),
        ("command:a\0b", r"^Action 'command' needs a program behind it"),
        (
            "frist=sms:+1",
            r"^An action is for 'frist', no rule of this evaluation\. Did you mean 'first'\?",
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
