import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import s3_objects

from rule_runner.batch.plan import PlanLine, plan_text, read_plan
from rule_runner.batch.shards import Shard
from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import UsageError

REQUESTS = [EvaluationRequest(trial=f"/runs/{name}", output=f"/out/{name}") for name in "abcde"]
NOT_UTF8 = b"{\xff\n"


def test_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    place = tmp_path / "plan.jsonl"
    place.write_text(plan_text(REQUESTS))
    assert [line.request() for line in read_plan(str(place))] == REQUESTS


def test_shard_holds_its_lines_with_their_numbers(tmp_path: Path) -> None:
    place = tmp_path / "plan.jsonl"
    place.write_text(plan_text(REQUESTS).replace("\n", "\n\n"))  # empty lines count
    assert [line.number for line in read_plan(str(place), Shard(0, 4))] == [1, 5, 9]
    assert [line.number for line in read_plan(str(place), Shard(1, 2))] == []


def test_plan_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SimpleNamespace(buffer=io.BytesIO(plan_text(REQUESTS).encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert len([*read_plan("-")]) == len(REQUESTS)


def test_plan_comes_from_s3(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "plans/", {"p.jsonl": plan_text(REQUESTS).encode()})
    assert [line.request() for line in read_plan("s3://bucket/plans/p.jsonl")] == REQUESTS
    with pytest.raises(UsageError, match=r"Plan 's3://bucket/plans/q.jsonl' does not exist\."):
        [*read_plan("s3://bucket/plans/q.jsonl")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plan.jsonl", "Line 7 of the plan is not a JSON object, got 'plan.jsonl'."),
        ('{"trial": "/runs/a"', "Line 7 of the plan is no request. Request is not valid"),
        ('{"trail": "/runs/a"}', "contains unknown field `trail`"),
        ('{"trial": 3}', "Expected `str | null`, got `int` - at `$.trial`"),
        ('{"trial": "/runs/a"}', "Line 7 of the plan has no 'output', so it could not be resumed."),
    ],
)
def test_line_that_is_no_request_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        PlanLine(7, text).request()


def test_bytes_that_are_no_text_are_a_line_that_is_no_request(tmp_path: Path) -> None:
    (tmp_path / "plan.jsonl").write_bytes(NOT_UTF8 + plan_text(REQUESTS[:1]).encode())
    bad, good = read_plan(str(tmp_path / "plan.jsonl"))
    assert good.request() == REQUESTS[0]
    with pytest.raises(UsageError, match="Line 1 of the plan is no request"):
        bad.request()


@pytest.mark.parametrize("name", ["missing.jsonl", ""])
def test_plan_that_cannot_be_read_is_named_with_the_remedy(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="Give a file that 'rule-runner fleet plan' wrote"):
        [*read_plan(str(tmp_path / name))]
