"""EvaluationConfig: where an evaluation writes."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import evaluating
import pytest

from rule_core.sources.address import address_of
from rule_runner.config.model import check_is_local, default_output
from rule_runner.errors import UsageError
from smdebug.rules import Rule


class Plain(Rule):
    def invoke_at_step(self, step: int) -> bool:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("trial", "name"),
    [
        ("/runs/mnist", "mnist"),
        ("/", "trial"),
        ("..", "trial"),
        ("/runs/a b\n", "a-b-"),
        ("/" + "x" * 300, "x" * 100),
    ],
)
def test_default_output(trial: str, name: str) -> None:
    now = datetime.fromisoformat("2026-01-02T03:04:05")
    assert default_output(trial, now) == Path(f"rule-output/{name}-20260102-030405")


def test_default_outputs_of_one_second_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    now = datetime.fromisoformat("2026-01-02T03:04:05")
    for name in ("a-20260102-030405", "a-20260102-030405-2", "a-20260102-030405-3"):
        assert default_output("a", now) == Path("rule-output", name)
        Path("rule-output", name).mkdir(parents=True)


def test_one_rule_writes_to_the_folder_and_several_below_it() -> None:
    one, two = evaluating.rule_job(Plain, "one"), evaluating.rule_job(Plain, "two")
    alone = evaluating.configured(Path("out"), [one])
    both = evaluating.configured(Path("out"), [one, two])
    assert alone.folder_of(one) == Path("out")
    assert [both.folder_of(job) for job in both.rules] == [Path("out/one"), Path("out/two")]


def test_profiler_data_in_s3_is_remote_like_a_trial() -> None:
    config = evaluating.configured(Path("out"), [Plain], "/runs/mnist")
    assert not config.is_remote
    assert replace(config, profiler_trial=address_of("s3://bucket/profile")).is_remote
    assert replace(config, other_trials=("csv:s3://bucket/log.csv",)).is_remote


@pytest.mark.parametrize("place", ["s3://b/t", "S3:/b/t", Path("s3a://b/t")])
def test_an_address_is_no_folder_of_this_machine(place: str | Path) -> None:
    sentence = rf"^--output of demo must be a folder of this machine, got '{place}'\.$"
    with pytest.raises(UsageError, match=sentence):
        check_is_local(place, "--output of demo")
    check_is_local(f"./{place}", "--output of demo")
