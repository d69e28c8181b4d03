"""fleet.yaml: read, checked, and refused in one sentence."""

from pathlib import Path
from typing import Any

import pytest

from rule_runner.errors import JobError
from rule_runner.watch.config import WatchConfig, checked, read_config

FULL = """
roots: [runs, "s3://bucket/runs/*"]
judge:
  - trials: "*/toy-*"
    ignore: true
  - trials: "*/llm-*"
    job: llm.yaml
  - rules: [VanishingGradient, loss=LossSpike]
    parameters: [VanishingGradient.threshold=1e-9]
output: out/{trial}
sinks: [file:events.jsonl]
max_concurrent: 3
quiet_after: 6h
look_every: 2m
retention: 500
"""


def test_a_whole_configuration(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FULL)
    config = read_config(tmp_path / "fleet.yaml")
    assert config.roots == (str(tmp_path / "runs"), "s3://bucket/runs/*")
    assert config.output == str(tmp_path / "out/{trial}")
    assert (config.max_concurrent, config.quiet_s, config.look_every) == (3, 21600.0, "2m")
    assert config.assignment("/data/toy-1") is None
    llm, other = config.assignment("/data/llm-1"), config.assignment("/data/mnist")
    assert llm is not None
    assert llm.job == str(tmp_path / "llm.yaml")
    assert other is not None
    assert (other.rules, other.is_fitting) == (("VanishingGradient", "loss=LossSpike"), False)


def test_an_empty_configuration_judges_every_trial_by_the_rules_that_fit(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("")
    assignment = read_config(tmp_path / "fleet.yaml").assignment("/data/mnist")
    assert assignment is not None
    assert assignment.is_fitting


def test_a_trial_that_no_pattern_fits_is_ignored() -> None:
    config = checked({"judge": [{"trials": "*/llm-*", "rules": ["auto"]}]}, "test")
    assert config.assignment("/data/mnist") is None


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"rules": ["a"]}, "unknown field `rules`. It belongs to 'judge'."),
        ({"root": ["a"]}, "unknown field `root`. Did you mean 'roots'?"),
        ({"roots": "a"}, "Expected `array`, got `str` - at `$.roots`."),
        ({"roots": [""]}, "Expected `str` of length >= 1 - at `$.roots[0]`."),
        ({"max_concurrent": 0}, "Expected `int` >= 1 - at `$.max_concurrent`."),
        ({"max_concurrent": "many"}, "Expected `int`, got `str` - at `$.max_concurrent`."),
        ({"executor": "ray://"}, "An executor is local[:N], ray[:N], ray://HOST:PORT, dask[:N] or"),
        ({"executor": "local:4"}, "executor must be 'local', with the number as max_concurrent"),
        ({"quiet_after": "soon"}, "quiet_after must be a whole number with a unit"),
        ({"look_every": "0s"}, "look_every must be a whole number with a unit"),
        ({"output": "out/{name}"}, "output 'out/{name}' needs {id}"),
        ({"output": "out/{trail}"}, "output 'out/{trail}' has the field 'trail'. It may have"),
        ({"output": "out/{id}/{name}"}, "output must have its fields after the last '/'"),
        ({"judge": [{"trials": "*"}]}, "judge[0] must have one of 'rules', 'job' and 'ignore: tr"),
        ({"judge": [{"rules": ["a"], "job": "b"}]}, "judge[0] must have one of"),
        (
            {"judge": [{"rule": ["a"]}]},
            "unknown field `rule` - at `$.judge[0]`. Did you mean 'rules'?",
        ),
        ([], "Expected `object`, got `array`."),
        (3, "Expected `object`, got `int`."),
    ],
)
def test_a_wrong_configuration_is_one_sentence(raw: Any, sentence: str) -> None:
    with pytest.raises(JobError) as refused:
        checked(raw, "configuration fleet.yaml")
    text = str(refused.value)
    assert text.startswith("The configuration fleet.yaml is not valid: ")
    assert sentence in text


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (None, r"Configuration .*fleet\.yaml does not exist\."),
        (b"roots: [", r"The configuration .*fleet\.yaml does not parse: line \d"),
        (b"roots: \xff", r"Configuration .*fleet\.yaml is not UTF-8 text"),
        (b"roots: [a]\nroots: [b]\n", "does not parse"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, data: bytes | None, sentence: str) -> None:
    path = tmp_path / "fleet.yaml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(JobError, match=sentence):
        read_config(path)


def test_defaults() -> None:
    config = WatchConfig()
    assert (config.quiet_s, config.look_every, config.retention) == (900.0, "30s", None)


def test_alerts_and_the_address_of_the_pages() -> None:
    raw = {"alerts": {"sinks": ["apprise:$SLACK"]}, "public_url": "https://rules.example.org"}
    config = checked(raw, "x")
    assert config.alerts is not None
    assert (config.alerts.sinks, config.alerts.severity) == (("apprise:$SLACK",), "warning")
    assert (config.alerts.most_per_hour, config.alerts.digest_every) == (10, "15m")


@pytest.mark.parametrize(
    ("alerts", "sentence"),
    [
        ({}, "missing required field `sinks`"),
        ({"sinks": []}, "length >= 1"),
        ({"sinks": ["slack://x"]}, r"alerts\.sinks must begin with 'apprise:', got 'slack'"),
        ({"sinks": ["apprise:"]}, r"alerts\.sinks must begin with 'apprise:'"),
        ({"sinks": ["apprise:x"], "severity": "note"}, "Invalid enum value 'note'"),
        ({"sinks": ["apprise:x"], "digest_every": "5"}, r"alerts\.digest_every must be a whole"),
        ({"sinks": ["apprise:x"], "most_per_hour": -1}, "`int` >= 0"),
        ({"sinks": ["apprise:x"], "most_per_hours": 1}, "Did you mean 'most_per_hour'"),
    ],
)
def test_wrong_alerts(alerts: dict[str, Any], sentence: str) -> None:
    with pytest.raises(JobError, match=sentence):
        checked({"alerts": alerts}, "x")


def test_a_queue_is_named_by_its_address() -> None:
    with pytest.raises(JobError, match="queue must be the address of a queue, such as https://"):
        checked({"queue": "arn:aws:sqs:us-east-1:123456789012:runs"}, "x")


@pytest.mark.parametrize("url", ["rules.example.org", "ftp://x", "https://", "https://x?a=1", " "])
def test_the_address_of_the_pages_is_one(url: str) -> None:
    with pytest.raises(JobError, match="public_url must be an address"):
        checked({"public_url": url}, "x")
