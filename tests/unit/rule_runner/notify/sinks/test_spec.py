"""Sinks as the command line names them: every kind, and what is wrong in a sentence."""

import io
from typing import Any

import evaluating
import pytest

from rule_runner.errors import UsageError
from rule_runner.notify.sinks import (
    cloudwatch_logs,
    cloudwatch_metrics,
    eventbridge,
    local,
    sns,
    webhook,
)
from rule_runner.notify.sinks.spec import parse_sinks, sinks_in, writes_to_stdout

TOPIC = "arn:aws:sns:eu-west-1:123456789012:rules"


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


def inside(sink: Any) -> dict[str, Any]:
    """Return what a sink was made of."""
    return {name: value for name, value in vars(sink).items() if name.startswith("_") and value}


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("eventbridge", eventbridge.EventBridgeSink, {}),
        ("eventbridge:b", eventbridge.EventBridgeSink, {"_bus": "b"}),
        ("eventbridge,region=eu-west-1", eventbridge.EventBridgeSink, {"_region": "eu-west-1"}),
        (
            "eventbridge:b,region=x-1",
            eventbridge.EventBridgeSink,
            {"_bus": "b", "_region": "x-1"},
        ),
        (
            "eventbridge:arn:aws:events:eu-west-1:123456789012:event-bus/b",
            eventbridge.EventBridgeSink,
            {
                "_bus": "arn:aws:events:eu-west-1:123456789012:event-bus/b",
                "_region": "eu-west-1",
            },
        ),
        (
            "cloudwatch-metrics",
            cloudwatch_metrics.CloudWatchMetricsSink,
            {"_namespace": "RuleRunner/Rules"},
        ),
        (
            "cloudwatch-metrics:My/Space,region=x-1",
            cloudwatch_metrics.CloudWatchMetricsSink,
            {"_namespace": "My/Space", "_region": "x-1"},
        ),
        (
            "cloudwatch-logs",
            cloudwatch_logs.CloudWatchLogsSink,
            {"_group": "/rule-runner/RuleJobs"},
        ),
        ("cloudwatch-logs:/a", cloudwatch_logs.CloudWatchLogsSink, {"_group": "/a"}),
        (f"sns:{TOPIC}", sns.SnsSink, {"_topic": TOPIC, "_region": "eu-west-1"}),
    ],
)
def test_sinks_of_aws(text: str, kind: type, expected: dict[str, str]) -> None:
    (sink,) = parse_sinks([text])
    assert type(sink) is kind
    found = {name: value for name, value in inside(sink).items() if name != "_service"}
    assert (found, sink.label) == (expected, text)


def test_sinks_of_this_machine() -> None:
    stream = io.StringIO()
    texts = ["stdout", "emf", "emf:My/Space", "file:a/b,region=c"]
    found: list[Any] = parse_sinks(texts, stream)
    assert [type(one) for one in found] == [
        local.StdoutSink,
        cloudwatch_metrics.EmfSink,
        cloudwatch_metrics.EmfSink,
        local.FileSink,
    ]
    assert [one._stream for one in found[:3]] == [stream] * 3
    assert [one._namespace for one in found[1:3]] == ["RuleRunner/Rules", "My/Space"]
    assert str(found[3]._path) == "a/b,region=c"


def test_a_webhook_keeps_its_address_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULE_RUNNER_WEBHOOK_SECRET", "s")
    found: Any
    (found,) = parse_sinks(["webhook:https://hooks.example.org:8443/T0/secret?x=,region=y"])
    assert type(found) is webhook.WebhookSink
    assert (found._url, found._secret, found.label) == (
        "https://hooks.example.org:8443/T0/secret?x=,region=y",
        "s",
        "webhook:https://hooks.example.org:8443/...",
    )
    assert "secret" not in found.name


def test_names_differ_are_stable_and_fit_for_files() -> None:
    texts = ["stdout", "eventbridge", "eventbridge:a", "eventbridge:a,region=x-1", "file:/a b/c"]
    texts += ["webhook:https://a.example/1", "webhook:https://a.example/2", f"sns:{TOPIC}"]
    names = [sink.name for sink in parse_sinks(texts)]
    assert names == [sink.name for sink in parse_sinks(texts)]
    assert len(set(names)) == len(texts)
    assert (names[:2], names[2]) == (["stdout", "eventbridge"], "eventbridge-ca978112")
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("evntbridge:x", r"^Unknown sink 'evntbridge'\. Did you mean 'eventbridge'\? Sinks are: "),
        ("https://a.example/secret", r"^Unknown sink 'https'\. Sinks are: 'stdout', 'file', "),
        ("", "Unknown sink ''"),
        ("eventbridge:a,regin=x", r"has no option 'regin'\. Did you mean 'region'\? Its option is"),
        ("eventbridge,region=a b", r"Region of sink 'eventbridge' must be letters, .* got 'a b'\."),
        ("eventbridge,region=", "Region of sink 'eventbridge' must be"),
        (
            "eventbridge:a b",
            r"'eventbridge' needs the name or ARN of an event bus after its colon",
        ),
        ("stdout:x", r"^Sink 'stdout' takes no value after its colon, got 'x'\.$"),
        ("stdout,region=x", r"^Sink 'stdout' takes no value after its colon"),
        ("file", r"^Sink 'file' needs a path after its colon, got ''\.$"),
        ("file:a\0b", "Sink 'file' needs a path"),
        ("cloudwatch-metrics:AWS/x", r"needs a namespace that does not begin with 'AWS/'"),
        ("cloudwatch-metrics::x", "needs a namespace"),
        ("emf:AWS/x", "needs a namespace"),
        ("cloudwatch-logs:aws/x", "needs a log group that does not begin with 'aws/'"),
        ("cloudwatch-logs:a:b", "needs a log group"),
        ("sns", "Sink 'sns' needs the ARN of a topic after its colon, got ''"),
        ("sns:rules", "Sink 'sns' needs the ARN of a topic"),
        ("webhook", "Webhook address must begin with https://"),
        ("webhook:ftp://x/secret", r"Webhook address must begin with https:// .* got '\.\.\.'\.$"),
    ],
)
def test_what_is_wrong_is_a_sentence(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_sinks([text])


def test_a_sink_is_given_once() -> None:
    with pytest.raises(UsageError, match=r"^Sink 'eventbridge:a' is given twice\.$"):
        parse_sinks(["eventbridge:a", "stdout", "eventbridge:a"])


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, []),
        ({"RULE_RUNNER_SINKS": ""}, []),
        (
            {"RULE_RUNNER_SINKS": " stdout\n  eventbridge:b,region=x "},
            ["stdout", "eventbridge:b,region=x"],
        ),
    ],
)
def test_the_environment_may_name_sinks(environment: dict[str, str], expected: list[str]) -> None:
    assert sinks_in(environment) == expected


@pytest.mark.parametrize(
    ("texts", "kind"),
    [([], None), (["file:stdout"], None), (["file:x", "emf:A"], "emf"), (["stdout"], "stdout")],
)
def test_what_writes_to_stdout_is_known(texts: list[str], kind: str | None) -> None:
    assert writes_to_stdout(texts) == kind
