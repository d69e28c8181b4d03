"""baseline make: where the file is written, and from where it is read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3_objects
from judging import judge_to_the_end

from builtin_rules import Baseline
from builtin_rules.statistics.baselines.baseline_file import read_baseline
from rule_core.exceptions import SMDebugValueError
from rule_core.rules.params import FileParam
from rule_core.sources.options import SourceOptions
from rule_runner.commands.baseline import make
from rule_runner.errors import OutputError

ADDRESS = "s3://bucket/recipes/good.json"


@pytest.fixture
def bucket(aws_endpoint: str) -> Any:
    return s3_objects.make_bucket(aws_endpoint)


def logs(folder: Path, *losses: float) -> list[str]:
    """Write a log for each loss, and return their paths."""
    for seed, loss in enumerate(losses):
        rng = np.random.default_rng(seed)
        noise = 0.01 * rng.normal(size=100)
        rows = [{"step": step, "loss": loss + each} for step, each in enumerate(noise)]
        (folder / f"run_{seed}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return [str(folder / f"run_{seed}.jsonl") for seed in range(len(losses))]


def test_a_baseline_may_be_in_s3(
    bucket: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = logs(tmp_path, *[1.0] * 5, 1.5)
    make(paths[:5], ADDRESS, SourceOptions())
    assert f"{ADDRESS}: 5 runs, aligned by steps." in capsys.readouterr().out
    make(paths[:5], str(tmp_path / "good.json"), SourceOptions())
    written = bucket.get_object(Bucket="bucket", Key="recipes/good.json")["Body"].read()
    assert written == (tmp_path / "good.json").read_bytes()
    assert read_baseline(ADDRESS) == read_baseline(str(tmp_path / "good.json"))
    assert FileParam.digest(ADDRESS) == FileParam.digest(str(tmp_path / "good.json")) != ""
    (worse,) = {
        each.tensor
        for each in judge_to_the_end(Baseline, Path(paths[5]), baseline=ADDRESS).findings
    }
    assert worse == "loss"


def test_what_is_missing_in_s3_gets_one_sentence(bucket: Any, tmp_path: Path) -> None:
    sentence = r"^Baseline 's3://bucket/recipes/good\.json' cannot be used: .*'rule-runner baseline"
    with pytest.raises(SMDebugValueError, match=sentence):
        read_baseline(ADDRESS)
    assert FileParam.digest(ADDRESS) == ""
    with pytest.raises(OutputError, match=r"^Cannot write 's3://other/good\.json': .*bucket"):
        make(logs(tmp_path, 1.0), "s3://other/good.json", SourceOptions())
    bucket.put_object(Bucket="bucket", Key="recipes/good.json", Body=b"1" * ((4 << 20) + 1))
    with pytest.raises(SMDebugValueError, match="of more than 4 MiB"):
        read_baseline(ADDRESS)
