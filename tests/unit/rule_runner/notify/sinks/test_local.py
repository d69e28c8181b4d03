"""Sinks on this machine: one line an event, and the embedded metric format."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from told import GOING, MET, many, told

from rule_runner.errors import OutputError
from rule_runner.notify.event import RuleState
from rule_runner.notify.sinks import Sent
from rule_runner.notify.sinks.cloudwatch_metrics import EmfSink, dimension
from rule_runner.notify.sinks.local import FileSink, StdoutSink
from rule_runner.results.status import RuleStatus


def test_stdout_gets_one_harmless_line_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    events: list[Any] = [{"id": "1", "detail": {"Name": "a\n\x9b\u202e\ud800é"}}, {"id": "2"}]
    assert StdoutSink().send(events) == Sent(2)
    out = capsys.readouterr().out
    assert out == '{"id": "1", "detail": {"Name": "a\\n\\u009b\\u202e\ufffdé"}}\n{"id": "2"}\n'


def test_another_stream_may_be_given() -> None:
    stream = io.StringIO()
    sink = StdoutSink(stream)
    for event in many(2):
        sink.send([event])
    assert list(map(json.loads, stream.getvalue().splitlines())) == many(2)


def test_a_file_grows_and_is_shared(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("mine\n")
    assert FileSink(path).send(many(3)[:2]) == Sent(2)
    assert FileSink(path).send(many(3)[2:]) == Sent(1)
    first, *lines = path.read_text().splitlines()
    assert (first, list(map(json.loads, lines))) == ("mine", many(3))


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"^Cannot write '.*events\.jsonl': No such file or dir"):
        FileSink(tmp_path / "missing" / "events.jsonl").send(many(1))


def test_embedded_metrics_are_a_line_for_each_rule() -> None:
    stream = io.StringIO()
    failed = RuleState("Broken", RuleStatus.ERROR, "ClientError: x.")
    event = told(MET, GOING, failed)
    assert EmfSink("My/Space", stream).send([event]) == Sent(1)
    found = list(map(json.loads, stream.getvalue().splitlines()))
    units = {"IssuesFound": "Count", "StepsEvaluated": "Count", "LastStep": "None"}
    units |= {"EvaluationLagSeconds": "Seconds", "EvaluatorErrors": "Count"}
    metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
    assert found[0] == {
        "_aws": {
            "Timestamp": 1772366490000,
            "CloudWatchMetrics": [
                {"Namespace": "My/Space", "Dimensions": [["Run", "Rule"]], "Metrics": metrics}
            ],
        },
        "Run": "mnist-42",
        "Rule": "LossCheck",
        "IssuesFound": 1,
        "StepsEvaluated": 51,
        "LastStep": 500,
        "EvaluationLagSeconds": 1.25,
        "EvaluatorErrors": 0,
    }
    shown = [(one["Rule"], one["IssuesFound"], one["EvaluatorErrors"]) for one in found]
    assert shown == [("LossCheck", 1, 0), ("Overfit", 0, 0), ("Broken", 0, 1)]
    assert "LastStep" not in found[1]
    names = [one["Name"] for one in found[1]["_aws"]["CloudWatchMetrics"][0]["Metrics"]]
    assert names == [name for name in units if name != "LastStep"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mnist-42", "mnist-42"),
        (":x:y", "_x:y"),
        ("é\n", "__"),
        ("  ", "_"),
        ("", "_"),
        ("x" * 2000, "x" * 1024),
    ],
)
def test_a_dimension_is_what_cloudwatch_takes(text: str, value: str) -> None:
    assert dimension(text) == value
