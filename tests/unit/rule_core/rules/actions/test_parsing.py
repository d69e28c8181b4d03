"""Actions as JSON: every form that platforms hand over, and what is wrong with any other."""

import json

import pytest

from rule_core.exceptions import SMDebugValueError
from rule_core.rules.actions.actions import Actions
from rule_core.rules.actions.message import MessageAction
from rule_core.rules.actions.parsing import masked, parse_actions, problem
from rule_core.rules.actions.stop_training import StopTrainingAction

STOP = {"name": "stoptraining", "training_job_prefix": "Job-1"}
EMAIL = {"name": "email", "endpoint": "First.Last@Mail.Example.museum"}
SMS = {"name": "sms", "endpoint": "+15550100"}


def escaped(value: object) -> str:
    return json.dumps(value).replace('"', '\\"')


@pytest.mark.parametrize("text", [None, "", "  ", "None", "[]", "[ ]"], ids=repr)
def test_none(text: str | None) -> None:
    assert parse_actions(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(json.dumps(STOP), [STOP], id="object"),
        pytest.param(escaped(STOP), [STOP], id="escaped-object"),
        pytest.param(json.dumps([EMAIL, SMS, STOP]), [EMAIL, SMS, STOP], id="list"),
        pytest.param(escaped([EMAIL, SMS, STOP]), [EMAIL, SMS, STOP], id="escaped-list"),
        pytest.param('{"name": "stoptraining"}', [{"name": "stoptraining"}], id="the-job-itself"),
        pytest.param(
            '{"Name": "StopTraining", "Training_Job_Prefix": "Job-1"}', [STOP], id="any-case"
        ),
        pytest.param(json.dumps([SMS] * 10), [SMS] * 10, id="as-many-as-can-be"),
    ],
)
def test_actions_as_platforms_hand_them_over(text: str, expected: object) -> None:
    assert parse_actions(text) == expected


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{stop", r"^Actions must be JSON: Expecting property name .* at character 1 of 5\.$"),
        ('{"name": "sms"', r"^Actions must be JSON: .* at character 14 of 14\.$"),
        ("[" * 100_000, r"^Actions must be JSON: it is nested too deeply\.$"),
        ("7", r"^An action must be a JSON object, got int\.$"),
        ("null", r"^An action must be a JSON object, got NoneType\.$"),
        ('["sms"]', r"^An action must be a JSON object, got str\.$"),
        ("[[]]", r"^An action must be a JSON object, got list\.$"),
        ("{}", r"^An action needs a string as 'name', got none\.$"),
        ('{"name": 1}', r"^An action needs a string as 'name', got int\.$"),
        (
            '{"name": "stoptrainin"}',
            r"^Unknown action 'stoptrainin'\. Did you mean 'stoptraining'\? Actions: 'stoptrai",
        ),
        (
            '{"name": "command", "argv": "rm"}',
            r"^Action 'command' is not accepted in rule parameters\. Pass it to the evaluation ",
        ),
        (
            '{"name": "webhook"}',
            r"^Action 'webhook' is not accepted .* with --action webhook:\.\.\.$",
        ),
        ('{"name": "email"}', r"^Action 'email' needs a string as 'endpoint', got none\.$"),
        ('{"name": "sms", "endpoint": 155}', r"^Action 'sms' needs .* 'endpoint', got int\.$"),
        (
            '{"name": "sms", "endpoint": null}',
            r"^Action 'sms' needs a string as 'endpoint', got none\.$",
        ),
        (
            '{"name": "stoptraining", "training_job_prefx": "a"}',
            r"no key 'training_job_prefx'\. Did you mean 'training_job_prefix'\?$",
        ),
        (
            '{"name": "stoptraining", "training_job_prefix": "a_b"}',
            r"^The name of a training job must be 1 to 63 letters, digits and hyphens, got 'a_b'",
        ),
        ('{"name": "stoptraining", "training_job_prefix": ""}', r"hyphens, got ''\.$"),
        (
            '{"name": "email", "endpoint": "me at example"}',
            r"^'endpoint' of action 'email' must be an e-mail address such as 'name@example\.com',",
        ),
        (json.dumps([SMS] * 11), r"^A rule takes at most 10 actions, got 11\.$"),
    ],
)
def test_actions_that_cannot_be(text: str, match: str) -> None:
    with pytest.raises(SMDebugValueError, match=match):
        Actions(text, "Plain")


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "email", "endpoint": "secret@example.com"}',
        '{"name": "sms", "endpoint": "secret"}',
        '{"name": "email", "endpoint": "secret@"}',
    ],
)
def test_no_error_shows_an_endpoint(text: str) -> None:
    with pytest.raises(SMDebugValueError) as raised:
        parse_actions(text)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "endpoint", "good"),
    [
        ("email", "a@b.io", True),
        ("email", "First.Last+tag@mail.sub.example.photography", True),
        ("email", "o'neil@xn--bcher-kva.example", True),
        ("email", "a@b", False),
        ("email", "a@b.c", False),
        ("email", "a..b@example.com", False),
        ("email", "a@-b.com", False),
        ("email", "a b@example.com", False),
        ("email", "a@example.com\n", False),
        ("email", "a" * 65 + "@example.com", False),
        ("email", "@example.com", False),
        ("sms", "+1", True),
        ("sms", "+123456789012345", True),
        ("sms", "+1234567890123456", False),
        ("sms", "15550100", False),
        ("sms", "+1555\n", False),
        ("sms", "+1555\u0661", False),
        ("sms", "+", False),
    ],
)
def test_which_endpoints_are_taken(kind: str, endpoint: str, good: bool) -> None:
    assert (problem(kind, endpoint) == "") is good


def test_endpoints_are_masked() -> None:
    assert masked("alice@example.com") == "a***@example.com"
    assert masked("+5551234") == "+*****1234"
    assert masked("+1234") == "+*****"


def test_the_objects_are_those_of_the_old_modules() -> None:
    result = Actions(json.dumps([STOP, EMAIL, SMS]), "Plain").actions
    assert result == [
        StopTrainingAction("Plain", "Job-1"),
        MessageAction("Plain", "email", EMAIL["endpoint"]),
        MessageAction("Plain", "sms", SMS["endpoint"]),
    ]
    assert [(one.name, one.target) for one in result] == [
        ("stoptraining", "Job-1"),
        ("email", "F***@Mail.Example.museum"),
        ("sms", "+*****0100"),
    ]
    assert "First" not in repr(result)
    assert "15550100" not in repr(result)
