"""EvaluationRequest: the same after a way through JSON; what is wrong is one sentence."""

import io
import sys
from math import inf
from pathlib import Path

import pytest

from rule_runner.config.defaults import Isolation
from rule_runner.config.job_file.definition import JobDefinition, Kind, RuleConfiguration
from rule_runner.config.request import (
    ContainerRule,
    EvaluationRequest,
    RuleRequest,
    read_request,
)
from rule_runner.errors import UsageError

REQUESTS = (
    EvaluationRequest(),
    EvaluationRequest(
        trial="t",
        rules=(RuleRequest("a", "AllZero"), RuleRequest(source="r.py")),
        parameters=("a.tensor_regex=x",),
        modes=("observe",),
        timeout=2.5,
        wait=False,
        isolate=Isolation.PROCESS,
        sinks=("file:x",),
    ),
    EvaluationRequest(
        job=JobDefinition("the job", (RuleConfiguration("a", Kind.PROFILER, {"x": "1"}),))
    ),
    EvaluationRequest(container=ContainerRule("a", {"rule_to_invoke": "AllZero"}, profiler=True)),
)


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_survives_json(request_: EvaluationRequest, tmp_path: Path) -> None:
    text = request_.to_json()
    assert read_request(text) == request_
    file = tmp_path / "request.json"
    file.write_text(text)
    assert read_request(str(file)) == request_


def test_json_leaves_defaults_out_and_has_no_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    assert EvaluationRequest().to_json() == "{}"
    text = EvaluationRequest(wait_for_trial=inf).to_json()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert read_request("-").wait_for_trial == 1e9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Request is not valid: Input data was truncated."),
        ('{"trail": "t"}', "Request is not valid: Object contains unknown field `trail`."),
        (
            '{"trial": 1}',
            "Request is not valid: Expected `str | null`, got `int` - at `$.trial`.",
        ),
        (
            '{"start_step": -1}',
            "Request is not valid: Expected `int` >= 0 - at `$.start_step`.",
        ),
        ("/none", "Request from '/none' cannot be read: No such file or directory."),
    ],
)
def test_a_wrong_request_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_request(text)
    assert str(caught.value) == message
